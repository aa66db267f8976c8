@echo off
rem The same verbs as the Makefile, for Windows: make run, make test, make check ...
setlocal
cd /d "%~dp0"
set "VERB=%*"
if "%~1"=="" set "VERB=run"
if defined LARDER_PYTHON (
  "%LARDER_PYTHON%" .ci\verb.py %VERB%
  exit /b
)
for %%V in (3.13 3.12 3.11) do (
  py -%%V -c "" >nul 2>&1 && (
    py -%%V .ci\verb.py %VERB%
    exit /b
  )
)
python -c "import sys; raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" >nul 2>&1 && (
  python .ci\verb.py %VERB%
  exit /b
)
echo larder: no Python 3.11, 3.12 or 3.13 found; install one from python.org, or set LARDER_PYTHON to its path 1>&2
exit /b 1
