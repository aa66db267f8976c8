// The program that a person starts on macOS: runs our Python with our modules from inside the bundle.
//
// Compiled twice: plain for the window, with TERMINAL for larderctl. It waits for the window and has a
// message shown where that was ended by a fault.
#include <errno.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
#ifndef TERMINAL
static pid_t child = 0;

static void pass_on(int number) {
  if (child > 0) kill(child, number);
}
#endif

static void clean_environment(const char *resources) {
  static const char *names[] = {"PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONSAFEPATH",
                                "PYTHONINSPECT", "QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH", NULL};
  char packages[PATH_MAX];
  for (int i = 0; names[i]; i++) unsetenv(names[i]);
  snprintf(packages, sizeof packages, "%s/packages", resources);
  setenv("PYTHONPATH", packages, 1);
  setenv("PYTHONNOUSERSITE", "1", 1);
  // The bundle is signed: nothing may be written into it.
  setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
}

int main(int count, char **given) {
  char named[PATH_MAX], here[PATH_MAX], resources[PATH_MAX], python[PATH_MAX];
  uint32_t size = sizeof named;
  if (_NSGetExecutablePath(named, &size) != 0 || !realpath(named, here)) {
    fprintf(stderr, "larder: the program cannot find its own files\n");
    return 1;
  }
  *strrchr(here, '/') = 0;
  snprintf(resources, sizeof resources, "%s/../Resources", here);
  snprintf(python, sizeof python, "%s/python/bin/python3.11", resources);
  char **words = calloc((size_t)count + 5, sizeof *words);
  if (!words) return 1;
  words[0] = python;
  words[1] = "-P";
  words[2] = "-m";
#ifdef TERMINAL
  words[3] = "runtime.cli";
#else
  words[3] = "app";
#endif
  for (int i = 1; i < count; i++) words[3 + i] = given[i];
  clean_environment(resources);
#ifdef TERMINAL
  execv(python, words);
  fprintf(stderr, "larder: %s cannot be started: %s; install Larder again\n", python, strerror(errno));
  return 127;
#else
  signal(SIGTERM, pass_on);
  signal(SIGHUP, pass_on);
  if (posix_spawn(&child, python, NULL, NULL, words, environ) != 0) {
    fprintf(stderr, "larder: %s cannot be started; install Larder again\n", python);
    return 127;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  child = 0;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  int number = WTERMSIG(status);
  if (number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGILL || number == SIGFPE) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    char *tell[] = {python, "-P", "-m", "app.last_words", text, NULL};
    pid_t told = 0;
    if (posix_spawn(&told, python, NULL, NULL, tell, environ) == 0) waitpid(told, &status, 0);
  }
  return 128 + number;
#endif
}
