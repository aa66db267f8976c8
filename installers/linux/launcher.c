// The program that a person starts: runs our Python with our modules, wherever the folder lies.
//
// It cleans what could lead Python or Qt to files of others, waits for the program, and when that
// was ended by a fault has a message shown. Named larderctl it runs the terminal's program.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child = 0;

static void pass_on(int number) {
  if (child > 0) kill(child, number);
}

static void wait_on(int number) { (void)number; }

static void clean_environment(void) {
  static const char *names[] = {
      "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONSAFEPATH",
      "PYTHONOPTIMIZE", "PYTHONINSPECT", "PYTHONEXECUTABLE", "PYTHONPLATLIBDIR", "PYTHONWARNINGS",
      "QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH", "QML2_IMPORT_PATH", "QT_STYLE_OVERRIDE",
      "LD_PRELOAD_32", NULL};
  for (int i = 0; names[i]; i++) unsetenv(names[i]);
  // The packaged modules are compiled already, and the folder may be closed to us.
  setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
}

static pid_t start(char **words, pid_t parent) {
  pid_t made = fork();
  if (made != 0) return made;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  execv(words[0], words);
  fprintf(stderr, "larder: %s cannot be started: %s; install Larder again\n", words[0],
          strerror(errno));
  _exit(127);
}

// Put a newer version, which was unpacked beside us while the window was open, into our place. The one
// before is kept until the new one has started once: app/state/updates.py lets go of it.
static void take_newer(const char *here) {
  char fresh[PATH_MAX + 16], ready[PATH_MAX + 32], previous[PATH_MAX + 16];
  snprintf(fresh, sizeof fresh, "%s.new", here);
  snprintf(ready, sizeof ready, "%s/.ready", fresh);
  snprintf(previous, sizeof previous, "%s.previous", here);
  if (access(ready, F_OK) != 0 || rename(here, previous) != 0) return;
  if (rename(fresh, here) != 0) {
    rename(previous, here);
    return;
  }
  snprintf(ready, sizeof ready, "%s/.ready", here);
  unlink(ready);
}

int main(int count, char **given) {
  char here[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
  if (length <= 0) {
    fprintf(stderr, "larder: /proc is not mounted, so the program cannot find its files\n");
    return 1;
  }
  here[length] = 0;
  *strrchr(here, '/') = 0;
  const char *name = strrchr(given[0], '/') ? strrchr(given[0], '/') + 1 : given[0];
  int is_terminal = strcmp(name, "larderctl") == 0;

  char *python;
  if (asprintf(&python, "%s/python/bin/python3.11", here) < 0) return 1;
  char **words = calloc((size_t)count + 5, sizeof *words);
  if (!words) return 1;
  words[0] = python;
  words[1] = "-P";
  words[2] = "-m";
  words[3] = is_terminal ? "runtime.cli" : "app";
  for (int i = 1; i < count; i++) words[3 + i] = given[i];
  clean_environment();
  if (is_terminal) {
    execv(python, words);
    fprintf(stderr, "larder: %s cannot be started: %s; install Larder again\n", python,
            strerror(errno));
    return 127;
  }

  pid_t self = getpid();
  struct sigaction action = {.sa_handler = pass_on};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  // The terminal sends Ctrl+C to both; a handler, unlike ignoring it, is not inherited.
  sigaction(SIGINT, &(struct sigaction){.sa_handler = wait_on}, NULL);
  child = start(words, self);
  if (child < 0) return 1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  child = 0;
  take_newer(here);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  int number = WTERMSIG(status);
  if (number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGILL ||
      number == SIGFPE) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    char *tell[] = {python, "-P", "-m", "app.last_words", text, NULL};
    pid_t told = start(tell, self);
    if (told > 0)
      while (waitpid(told, &status, 0) < 0 && errno == EINTR) {
      }
  }
  return 128 + number;
}
