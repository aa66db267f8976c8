// The AppImage: this program, then a squashfs image of the whole tree, then a trailer.
//
//   | this program | image | magic 8 | image's length 8 | its CRC-64 8 | bytes unpacked 8 | name 32 |
//
// It is a type-2 AppImage: the letters AI and 2 stand at the ninth byte, and the image begins where
// the program ends. Where the system has FUSE the image is mounted by a process that lives as long as
// the program and those it started. Where it has not, the first start of a version unpacks the image
// under a temporary name and renames it in one step, so that a folder with the right name is always
// whole; later starts only look whether it is there. A program that runs from such a folder holds a
// shared lock on its file `.lock`; folders of other versions that nobody holds are removed.
#define _GNU_SOURCE
#include "squash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <lzma.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRAILER = 64, NAME = 32, FOLDERS_LEFT = 16, LOOK_MS = 250, LOOKS = 80, READY_MS = 15000 };
static const char MAGIC[8] = "LARDER\x02\n";
static const char SELF[] = "/proc/self/exe";

typedef struct {
  uint64_t length, offset, checksum, unpacked;
  char name[NAME + 1];
} Payload;

static void fail(const char *format, ...) {
  char text[2048];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  fprintf(stderr, "larder: %s\n", text);
  if (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")) {
    char option[2100];
    snprintf(option, sizeof option, "--text=%s", text);
    execlp("zenity", "zenity", "--error", "--no-markup", "--title=Larder", option, NULL);
    execlp("kdialog", "kdialog", "--title", "Larder", "--error", text, NULL);
    execlp("xmessage", "xmessage", "-center", text, NULL);
  }
  exit(1);
}

static uint64_t number(const unsigned char *at) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

static int read_payload(int self, Payload *found) {
  unsigned char end[TRAILER];
  off_t size = lseek(self, 0, SEEK_END);
  if (size < TRAILER || pread(self, end, TRAILER, size - TRAILER) != TRAILER) return 0;
  if (memcmp(end, MAGIC, sizeof MAGIC) != 0) return 0;
  found->length = number(end + 8);
  found->checksum = number(end + 16);
  found->unpacked = number(end + 24);
  if (found->length > (uint64_t)size - TRAILER) return 0;
  found->offset = (uint64_t)size - TRAILER - found->length;
  memcpy(found->name, end + TRAILER - NAME, NAME);
  found->name[NAME] = 0;
  return found->name[0] && !strchr(found->name, '/') && found->name[0] != '.';
}

// Whether the image is the one that was packed.
static int is_whole(int self, const Payload *payload) {
  static uint8_t buffer[1 << 20];
  uint64_t sum = 0, left = payload->length, at = payload->offset;
  while (left > 0) {
    size_t wanted = left < sizeof buffer ? (size_t)left : sizeof buffer;
    ssize_t got = pread(self, buffer, wanted, (off_t)at);
    if (got <= 0) return 0;
    sum = lzma_crc64(buffer, (size_t)got, sum);
    at += (uint64_t)got;
    left -= (uint64_t)got;
  }
  return sum == payload->checksum;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *walk) {
  (void)facts, (void)kind, (void)walk;
  return remove(path);
}

static void remove_folder(const char *path) {
  nftw(path, remove_one, FOLDERS_LEFT, FTW_DEPTH | FTW_PHYS);
}

// Make a folder and those above it; whether it is there afterwards and may be written to.
static int make_folders(const char *path) {
  char part[PATH_MAX];
  snprintf(part, sizeof part, "%s", path);
  for (char *at = part + 1; *at; at++)
    if (*at == '/') {
      *at = 0;
      mkdir(part, 0755);
      *at = '/';
    }
  mkdir(part, 0700);
  return access(part, W_OK | X_OK) == 0;
}

// Where versions are unpacked: the person's cache or, where that is closed, a folder of theirs in
// the place for temporary files.
static void find_place(char *place) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && cache[0] == '/')
    snprintf(place, PATH_MAX, "%s/larder/program", cache);
  else
    snprintf(place, PATH_MAX, "%s/.cache/larder/program", home ? home : "");
  if (place[0] == '/' && make_folders(place)) return;
  const char *temporary = getenv("TMPDIR");
  if (!temporary || temporary[0] != '/') temporary = "/tmp";
  snprintf(place, PATH_MAX, "%s/larder-program-%u", temporary, (unsigned)geteuid());
  struct stat facts;
  if (!make_folders(place) || lstat(place, &facts) != 0 || !S_ISDIR(facts.st_mode) ||
      facts.st_uid != geteuid() || (facts.st_mode & 022))
    fail("there is no place to unpack to: neither the cache folder nor %s can be written to. "
         "Set XDG_CACHE_HOME to a folder with 1 GB free.", place);
}

static int hold(const char *folder, int how) {
  char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s/.lock", folder);
  int file = open(path, O_CREAT | O_RDWR, 0644);
  if (file >= 0 && flock(file, how) != 0) {
    close(file);
    return -1;
  }
  return file;
}

// Remove what other versions and broken starts left, as far as nobody uses it.
static void tidy(const char *place, const char *kept) {
  DIR *folder = opendir(place);
  struct dirent *entry;
  while (folder && (entry = readdir(folder))) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
        !strcmp(entry->d_name, kept) || entry->d_type != DT_DIR)
      continue;
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", place, entry->d_name);
    int held = hold(path, LOCK_EX | LOCK_NB);
    if (held < 0) continue;
    remove_folder(path);
    close(held);
  }
  if (folder) closedir(folder);
}

typedef struct {
  FILE *pipe;
  uint64_t all;
  int percent;
} Progress;

static void tell_progress(uint64_t written, void *context) {
  Progress *progress = context;
  int percent = (int)(written * 100 / (progress->all + 1));
  if (!progress->pipe || percent == progress->percent) return;
  progress->percent = percent;
  fprintf(progress->pipe, "%d\n", percent);
  fflush(progress->pipe);
}

static void unpack_version(int self, const Payload *payload, const char *place, const char *folder) {
  char fresh[2 * PATH_MAX];
  snprintf(fresh, sizeof fresh, "%s/.unpacking-XXXXXX", place);
  if (!mkdtemp(fresh)) fail("%s cannot be made: %s", fresh, strerror(errno));
  chmod(fresh, 0755);
  int held = hold(fresh, LOCK_EX | LOCK_NB);
  fprintf(stderr, "larder: unpacking into %s, once for this version\n", place);
  Progress progress = {.all = payload->unpacked, .percent = -1};
  signal(SIGPIPE, SIG_IGN);
  if (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"))
    progress.pipe = popen("exec zenity --progress --auto-close --no-cancel --title=Larder "
                          "--text='Getting ready, once for this version' 2>/dev/null", "w");
  sqfs image;
  int why = EBADMSG;
  int is_done = is_whole(self, payload) && sqfs_init(&image, self, payload->offset) == SQFS_OK;
  if (is_done) {
    is_done = squash_unpack(&image, fresh, tell_progress, &progress);
    why = errno;
    sqfs_destroy(&image);
  }
  if (progress.pipe) pclose(progress.pipe);
  signal(SIGPIPE, SIG_DFL);
  if (is_done && rename(fresh, folder) != 0) {
    why = errno;
    // Another start of the same version was faster: its folder is as good.
    is_done = why == ENOTEMPTY || why == EEXIST;
    if (is_done) remove_folder(fresh);
  }
  if (held >= 0) close(held);
  if (is_done) return;
  remove_folder(fresh);
  if (why == EBADMSG)
    fail("this file is damaged: download it again and compare its checksum");
  fail("unpacking into %s failed: %s. It takes 1 GB; make room, or set XDG_CACHE_HOME.", place,
       strerror(why));
}

static const struct fuse_lowlevel_ops OPERATIONS = {
    .getattr = sqfs_ll_op_getattr,
    .opendir = sqfs_ll_op_opendir,
    .releasedir = sqfs_ll_op_releasedir,
    .readdir = sqfs_ll_op_readdir,
    .lookup = sqfs_ll_op_lookup,
    .open = sqfs_ll_op_open,
    .create = sqfs_ll_op_create,
    .release = sqfs_ll_op_release,
    .read = sqfs_ll_op_read,
    .readlink = sqfs_ll_op_readlink,
    .forget = sqfs_ll_op_forget,
    .statfs = stfs_ll_op_statfs,
};

static void say_nothing(enum fuse_log_level level, const char *format, va_list values) {
  (void)level, (void)format, (void)values;
}

// Take the mount away if nobody uses it any more.
static void try_unmount(const char *place) {
  if (geteuid() == 0 && umount2(place, UMOUNT_NOFOLLOW) == 0) return;
  char *words[] = {"fusermount3", "-u", "-q", (char *)place, NULL};
  pid_t made;
  if (posix_spawnp(&made, words[0], NULL, NULL, words, environ) == 0) waitpid(made, NULL, 0);
}

// Answer what the kernel asks until the program has ended and nothing uses the mount any more.
static void serve(struct fuse_session *session, int alive, const char *place) {
  struct fuse_buf buffer = {.mem = NULL};
  pid_t unmounting = 0;
  int num_looks = 0;
  while (!fuse_session_exited(session)) {
    struct pollfd wanted[2] = {{.fd = fuse_session_fd(session), .events = POLLIN},
                               {.fd = unmounting || num_looks ? -1 : alive, .events = 0}};
    int found = poll(wanted, 2, num_looks ? LOOK_MS : -1);
    if (found < 0 && errno != EINTR) break;
    if (found > 0 && (wanted[0].revents & (POLLERR | POLLNVAL))) break;
    if (found > 0 && (wanted[0].revents & POLLIN)) {
      int got = fuse_session_receive_buf(session, &buffer);
      if (got == -EINTR || got == -EAGAIN) continue;
      if (got <= 0) break;
      fuse_session_process_buf(session, &buffer);
      continue;
    }
    if (found > 0 && !(wanted[1].revents & (POLLHUP | POLLERR))) continue;
    // The program has ended. Another process unmounts, because the kernel asks us meanwhile.
    if (unmounting > 0 && waitpid(unmounting, NULL, WNOHANG) == 0) continue;
    if (++num_looks > LOOKS) break;
    unmounting = fork();
    if (unmounting == 0) {
      try_unmount(place);
      _exit(0);
    }
  }
  free(buffer.mem);
}

// Mount, tell through `ready`, and serve; the process ends with the mount.
static void keep_mounted(const Payload *payload, const char *place, int ready, int alive) {
  setsid();
  int nowhere = open("/dev/null", O_RDWR);
  for (int file = 0; file < 3; file++) dup2(nowhere, file);
  if (nowhere > 2) close(nowhere);
  for (int i = 0; i < 3; i++) signal((int[]){SIGINT, SIGHUP, SIGTERM}[i], SIG_IGN);
  fuse_set_log_func(say_nothing);
  char *words[] = {"larder", "-oro,nosuid,nodev,auto_unmount,fsname=larder,subtype=AppImage", NULL};
  struct fuse_args arguments = FUSE_ARGS_INIT(2, words);
  sqfs_ll *image = sqfs_ll_open(SELF, payload->offset);
  if (!image) _exit(1);
  squash_widen_cache(&image->fs);
  struct fuse_session *session = fuse_session_new(&arguments, &OPERATIONS, sizeof OPERATIONS, image);
  if (!session || fuse_session_mount(session, place) != 0) {
    rmdir(place);
    _exit(1);
  }
  if (write(ready, "1", 1) == 1) {
    close(ready);
    serve(session, alive, place);
  }
  fuse_session_unmount(session);
  rmdir(place);
  _exit(0);
}

// Mount the image into a new folder, whose path is put into `place`; whether that worked. The mount
// lives as long as this process, the program that it becomes, and those that inherit from it.
static int mount_image(const Payload *payload, char *place) {
  const char *top = getenv("XDG_RUNTIME_DIR");
  if (!top || top[0] != '/' || access(top, W_OK | X_OK) != 0) top = "/tmp";
  snprintf(place, PATH_MAX, "%s/.mount_larderXXXXXX", top);
  // Without the table of mounts fusermount3 mounts for a user and cannot unmount afterwards.
  if (geteuid() != 0 && access("/etc/mtab", R_OK) != 0) return 0;
  if (access("/dev/fuse", R_OK | W_OK) != 0 || !mkdtemp(place)) return 0;
  int ready[2], alive[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe(alive) != 0) return rmdir(place), 0;
  fcntl(alive[0], F_SETFD, FD_CLOEXEC);
  pid_t made = fork();
  if (made == 0) {
    close(ready[0]);
    close(alive[1]);
    // Of nobody's children, so that the program waits for its own alone.
    if (fork() == 0) keep_mounted(payload, place, ready[1], alive[0]);
    _exit(0);
  }
  if (made > 0) waitpid(made, NULL, 0);
  close(ready[1]);
  close(alive[0]);
  char told = 0;
  struct pollfd wanted = {.fd = ready[0], .events = POLLIN};
  int is_mounted = poll(&wanted, 1, READY_MS) > 0 && read(ready[0], &told, 1) == 1;
  close(ready[0]);
  if (is_mounted) return 1;
  close(alive[1]);  // a process that is late ends by that
  rmdir(place);
  return 0;
}

// `--appimage-extract` of the format's own tools: everything into ./squashfs-root.
static int extract(int self, const Payload *payload) {
  sqfs image;
  if (!is_whole(self, payload) || sqfs_init(&image, self, payload->offset) != SQFS_OK)
    fail("this file is damaged: download it again and compare its checksum");
  if (mkdir("squashfs-root", 0755) != 0 || !squash_unpack(&image, "squashfs-root", NULL, NULL))
    fail("squashfs-root cannot be written here: %s", strerror(errno));
  printf("squashfs-root\n");
  return 0;
}

static void put_path(const char *name, const char *value) {
  if (setenv(name, value, 1) != 0) fail("there is no memory left");
}

int main(int count, char **words) {
  char place[PATH_MAX], folder[2 * PATH_MAX], program[3 * PATH_MAX], own[PATH_MAX];
  Payload payload;
  int self = open(SELF, O_RDONLY | O_CLOEXEC);
  ssize_t length = readlink(SELF, own, sizeof own - 1);
  if (self < 0 || length < 0) fail("/proc is not mounted, so this file cannot read itself");
  own[length] = 0;
  if (!read_payload(self, &payload)) fail("this file is not whole: download it again");
  if (count > 1 && !strcmp(words[1], "--appimage-offset"))
    return printf("%llu\n", (unsigned long long)payload.offset) < 0;
  if (count > 1 && !strcmp(words[1], "--appimage-extract")) return extract(self, &payload);
  const char *choice = getenv("APPIMAGE_EXTRACT_AND_RUN");
  if ((choice && choice[0] == '1') || !mount_image(&payload, folder)) {
    find_place(place);
    snprintf(folder, sizeof folder, "%s/%s", place, payload.name);
    snprintf(program, sizeof program, "%s/larder", folder);
    if (access(program, X_OK) != 0) unpack_version(self, &payload, place, folder);
    hold(folder, LOCK_SH | LOCK_NB);  // inherited by the program, and given up when it ends
    tidy(place, payload.name);
  }
  const char *name = strrchr(words[0], '/') ? strrchr(words[0], '/') + 1 : words[0];
  snprintf(program, sizeof program, "%s/%s", folder,
           strcmp(name, "larderctl") ? "larder" : "larderctl");
  put_path("APPIMAGE", own);
  put_path("APPDIR", folder);
  put_path("ARGV0", words[0]);
  words[0] = program;
  execv(program, words);
  fail("%s cannot be started: %s", program, strerror(errno));
}
