# The development commands. What each does stands in .ci/verb.py, which make.cmd calls too.
PYTHON ?= $(shell for name in "$$LARDER_PYTHON" python3 python3.13 python3.12 python3.11; do \
	if [ -n "$$name" ] && "$$name" -c 'import sys; raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	>/dev/null 2>&1; then echo "$$name"; break; fi; done)

.PHONY: run setup test check fix lab deep installer clean python
.DEFAULT_GOAL := run

run setup test check fix lab deep installer clean: python
	@"$(PYTHON)" .ci/verb.py $@

bench-%: python
	@"$(PYTHON)" .ci/verb.py $@

python:
	@if [ -z "$(PYTHON)" ]; then \
	echo "larder: no Python 3.11, 3.12 or 3.13 found; install one, or name it with LARDER_PYTHON=/path/to/python3" >&2; \
	exit 1; fi
