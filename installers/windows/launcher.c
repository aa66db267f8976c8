// The program that a person starts on Windows: runs our Python with our modules, without a console.
//
// Compiled twice: with MODULE=L"app" for the window, with MODULE=L"runtime.cli" and TERMINAL for
// larderctl.exe.
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

#define LONGEST 32767

static int fail(const wchar_t *text) {
#ifdef TERMINAL
  fwprintf(stderr, L"larder: %ls\n", text);
#else
  MessageBoxW(NULL, text, L"Larder", MB_ICONERROR);
#endif
  return 1;
}

// The rest of the command line behind the program's own name, as it was written.
static const wchar_t *arguments(void) {
  const wchar_t *at = GetCommandLineW();
  if (*at == L'"') {
    at = wcschr(at + 1, L'"');
    at = at ? at + 1 : L"";
  } else {
    while (*at && *at != L' ' && *at != L'\t') at++;
  }
  return at;
}

static int run(void) {
  static wchar_t folder[LONGEST], python[LONGEST], words[LONGEST], text[LONGEST];
  if (!GetModuleFileNameW(NULL, folder, LONGEST)) return fail(L"Larder cannot find its own folder.");
  *wcsrchr(folder, L'\\') = 0;
  if (swprintf(python, LONGEST, L"%ls\\python\\python.exe", folder) < 0 ||
      swprintf(words, LONGEST, L"\"%ls\" -P -m %ls%ls", python, MODULE, arguments()) < 0)
    return fail(L"The names given to Larder are too long.");
  static const wchar_t *others[] = {L"PYTHONHOME", L"PYTHONPATH", L"PYTHONSTARTUP",
                                    L"QT_PLUGIN_PATH", L"QT_QPA_PLATFORM_PLUGIN_PATH", NULL};
  for (int i = 0; others[i]; i++) SetEnvironmentVariableW(others[i], NULL);
  SetEnvironmentVariableW(L"PYTHONDONTWRITEBYTECODE", L"1");
  STARTUPINFOW start = {.cb = sizeof start};
  PROCESS_INFORMATION made;
#ifdef TERMINAL
  DWORD how = 0;
  SetConsoleCtrlHandler(NULL, FALSE);
#else
  DWORD how = CREATE_NO_WINDOW;
#endif
  if (!CreateProcessW(python, words, NULL, NULL, TRUE, how, NULL, NULL, &start, &made)) {
    swprintf(text, LONGEST, L"%ls cannot be started (error %lu). Install Larder again.", python,
             GetLastError());
    return fail(text);
  }
  CloseHandle(made.hThread);
  DWORD status = 1;
  WaitForSingleObject(made.hProcess, INFINITE);
  GetExitCodeProcess(made.hProcess, &status);
  CloseHandle(made.hProcess);
#ifndef TERMINAL
  if (status >= 0xC0000000u) {
    swprintf(text, LONGEST,
             L"Larder was ended by a fault (%08lX). Your chats and models are untouched.\n\nStart it "
             L"again; if that happens each time, update the driver of your graphics card, or install "
             L"Larder again.", status);
    fail(text);
  }
#endif
  return (int)status;
}

#ifdef TERMINAL
int wmain(void) { return run(); }
#else
int WINAPI wWinMain(HINSTANCE self, HINSTANCE before, PWSTR line, int show) {
  (void)self, (void)before, (void)line, (void)show;
  return run();
}
#endif
