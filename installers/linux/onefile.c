// The one-file program: this code, then a tar file packed by xz, then a trailer.
//
//   | this program | payload (tar.xz) | magic 8 | payload's length 8 | name 48 |
//
// The first start of a version unpacks it beside the cache's other files under a temporary name and
// renames it in one step, so that a folder with the right name is always whole. Later starts only
// look whether it is there. While the program runs it holds a shared lock on the file `.lock` of
// its folder; folders of other versions that nobody holds are removed.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <lzma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512, TRAILER = 64, NAME = 48, CHUNK = 1 << 20, FOLDERS_LEFT = 16 };
static const char MAGIC[8] = "LARDER\x01\n";

typedef struct {
  uint64_t length;
  uint64_t offset;
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

static int read_payload(int self, Payload *found) {
  unsigned char end[TRAILER];
  off_t size = lseek(self, 0, SEEK_END);
  if (size < TRAILER || pread(self, end, TRAILER, size - TRAILER) != TRAILER) return 0;
  if (memcmp(end, MAGIC, sizeof MAGIC) != 0) return 0;
  found->length = 0;
  for (int i = 7; i >= 0; i--) found->length = found->length << 8 | end[8 + i];
  if (found->length > (uint64_t)size - TRAILER) return 0;
  found->offset = (uint64_t)size - TRAILER - found->length;
  memcpy(found->name, end + 16, NAME);
  found->name[NAME] = 0;
  return found->name[0] && !strchr(found->name, '/') && found->name[0] != '.';
}

// A stream of unpacked bytes.
typedef struct {
  int self;
  uint64_t left, length, place;
  int percent;
  lzma_stream decoder;
  lzma_action action;
  int is_done;
  FILE *progress;
  uint8_t in[CHUNK];
} Stream;

static void tell_progress(Stream *stream) {
  int percent = (int)((stream->length - stream->left) * 100 / (stream->length + 1));
  if (percent == stream->percent || !stream->progress) return;
  stream->percent = percent;
  fprintf(stream->progress, "%d\n", percent);
  fflush(stream->progress);
}

static int fill(Stream *stream, uint8_t *out, size_t size) {
  stream->decoder.next_out = out;
  stream->decoder.avail_out = size;
  while (stream->decoder.avail_out > 0) {
    if (stream->is_done) return 0;
    if (stream->decoder.avail_in == 0 && stream->left > 0) {
      size_t wanted = stream->left < CHUNK ? (size_t)stream->left : CHUNK;
      ssize_t got = pread(stream->self, stream->in, wanted, (off_t)stream->place);
      if (got <= 0) return 0;
      stream->place += (uint64_t)got;
      stream->left -= (uint64_t)got;
      stream->decoder.next_in = stream->in;
      stream->decoder.avail_in = (size_t)got;
      if (stream->left == 0) stream->action = LZMA_FINISH;
      tell_progress(stream);
    }
    lzma_ret result = lzma_code(&stream->decoder, stream->action);
    if (result == LZMA_STREAM_END)
      stream->is_done = 1;
    else if (result != LZMA_OK)
      return 0;
  }
  return 1;
}

// Read what is left, so that every checksum of the payload is compared.
static int drain(Stream *stream) {
  static uint8_t rest[1 << 16];
  while (!stream->is_done)
    if (!fill(stream, rest, sizeof rest) && !stream->is_done) return 0;
  return stream->left == 0;
}

static uint64_t octal(const char *field, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size && field[i]; i++)
    if (field[i] >= '0' && field[i] <= '7') value = value * 8 + (uint64_t)(field[i] - '0');
  return value;
}

static int is_safe(const char *path) {
  if (path[0] == '/' || !path[0]) return 0;
  for (const char *part = path; part; part = strchr(part, '/')) {
    if (*part == '/') part++;
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0)) return 0;
  }
  return 1;
}

// Read the records "LENGTH KEY=VALUE\n" of an extended header.
static void read_extended(char *text, uint64_t size, char *path, char *link) {
  char *at = text, *end = text + size;
  while (at < end) {
    char *after = NULL;
    unsigned long length = strtoul(at, &after, 10);
    if (length == 0 || at + length > end || *after != ' ') return;
    char *key = after + 1, *stop = at + length - 1;
    char *equals = memchr(key, '=', (size_t)(stop - key));
    if (!equals) return;
    *equals = 0;
    *stop = 0;
    if (!strcmp(key, "path")) snprintf(path, PATH_MAX, "%s", equals + 1);
    if (!strcmp(key, "linkpath")) snprintf(link, PATH_MAX, "%s", equals + 1);
    at += length;
  }
}

// Write one file of the tar; the stream stands behind it and its padding afterwards.
static int write_file(Stream *stream, const char *path, uint64_t size, mode_t mode) {
  static uint8_t buffer[CHUNK];
  int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, mode);
  if (file < 0) return 0;
  uint64_t padded = (size + BLOCK - 1) / BLOCK * BLOCK, left = size;
  while (padded > 0) {
    size_t part = padded < CHUNK ? (size_t)padded : CHUNK;
    if (!fill(stream, buffer, part)) return close(file), 0;
    size_t own = left < part ? (size_t)left : part, done = 0;
    while (done < own) {
      ssize_t got = write(file, buffer + done, own - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return close(file), 0;
      done += (size_t)got;
    }
    left -= own;
    padded -= part;
  }
  return close(file) == 0;
}

// Unpack into `folder`, leaving out the first part of every path; 0 with errno where it fails.
static int unpack(Stream *stream, const char *folder) {
  char header[BLOCK], path[PATH_MAX], link[PATH_MAX], place[2 * PATH_MAX];
  path[0] = link[0] = 0;
  for (;;) {
    errno = EBADMSG;
    if (!fill(stream, (uint8_t *)header, BLOCK)) return 0;
    if (!header[0]) return drain(stream);
    uint64_t size = octal(header + 124, 12);
    char kind = header[156];
    if (kind == 'x') {
      uint64_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
      if (padded > 1 << 16) return 0;
      char *text = malloc((size_t)padded + 1);
      if (!text || !fill(stream, (uint8_t *)text, (size_t)padded)) return 0;
      read_extended(text, size, path, link);
      free(text);
      continue;
    }
    if (!path[0]) {
      if (header[345])
        snprintf(path, sizeof path, "%.155s/%.100s", header + 345, header);
      else
        snprintf(path, sizeof path, "%.100s", header);
    }
    if (!link[0]) snprintf(link, sizeof link, "%.100s", header + 157);
    size_t end = strlen(path);
    if (end && path[end - 1] == '/') path[end - 1] = 0;
    if (!is_safe(path)) return 0;
    const char *inner = strchr(path, '/');
    snprintf(place, sizeof place, "%s%s", folder, inner ? inner : "");
    int is_good = 1;
    if (kind == '5')
      is_good = mkdir(place, 0755) == 0 || errno == EEXIST;
    else if (kind == '2')
      is_good = is_safe(link) && symlink(link, place) == 0;
    else if (kind == '0' || kind == 0)
      is_good = write_file(stream, place, size, octal(header + 100, 8) & 0100 ? 0755 : 0644);
    else
      is_good = 0;
    if (!is_good) return 0;
    path[0] = link[0] = 0;
  }
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

static void unpack_version(int self, const Payload *payload, const char *place, const char *folder) {
  char fresh[2 * PATH_MAX];
  snprintf(fresh, sizeof fresh, "%s/.unpacking-XXXXXX", place);
  if (!mkdtemp(fresh)) fail("%s cannot be made: %s", fresh, strerror(errno));
  chmod(fresh, 0755);
  int held = hold(fresh, LOCK_EX | LOCK_NB);
  fprintf(stderr, "larder: unpacking into %s, once for this version\n", place);
  Stream *stream = calloc(1, sizeof *stream);
  if (!stream) fail("there is no memory left");
  stream->self = self;
  stream->place = payload->offset;
  stream->left = stream->length = payload->length;
  stream->decoder = (lzma_stream)LZMA_STREAM_INIT;
  stream->action = LZMA_RUN;
  signal(SIGPIPE, SIG_IGN);
  if (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"))
    stream->progress = popen("exec zenity --progress --auto-close --no-cancel --title=Larder "
                             "--text='Getting ready, once for this version' 2>/dev/null", "w");
  lzma_mt options = {.flags = 0, .timeout = 0, .memlimit_threading = 512ULL << 20,
                     .memlimit_stop = UINT64_MAX};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  options.threads = cores < 1 ? 1 : cores > 8 ? 8 : (uint32_t)cores;
  if (lzma_stream_decoder_mt(&stream->decoder, &options) != LZMA_OK) fail("there is no memory left");
  int is_whole = unpack(stream, fresh);
  int why = errno;
  lzma_end(&stream->decoder);
  if (stream->progress) pclose(stream->progress);
  signal(SIGPIPE, SIG_DFL);
  if (is_whole && rename(fresh, folder) != 0) {
    why = errno;
    // Another start of the same version was faster: its folder is as good.
    is_whole = why == ENOTEMPTY || why == EEXIST;
    if (is_whole) remove_folder(fresh);
  }
  free(stream);
  if (held >= 0) close(held);
  if (is_whole) return;
  remove_folder(fresh);
  if (why == EBADMSG)
    fail("this file is damaged: download it again and compare its checksum");
  fail("unpacking into %s failed: %s. It takes 1 GB; make room, or set XDG_CACHE_HOME.", place,
       strerror(why));
}

int main(int count, char **words) {
  (void)count;
  char place[PATH_MAX], folder[2 * PATH_MAX], program[3 * PATH_MAX];
  Payload payload;
  int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) fail("/proc is not mounted, so this file cannot read itself");
  if (!read_payload(self, &payload)) fail("this file is not whole: download it again");
  find_place(place);
  snprintf(folder, sizeof folder, "%s/%s", place, payload.name);
  const char *name = strrchr(words[0], '/') ? strrchr(words[0], '/') + 1 : words[0];
  int is_terminal = !strcmp(name, "larderctl");
  snprintf(program, sizeof program, "%s/%s", folder, is_terminal ? "larderctl" : "larder");
  if (access(program, X_OK) != 0) unpack_version(self, &payload, place, folder);
  hold(folder, LOCK_SH | LOCK_NB);  // inherited by the program, and given up when it ends
  tidy(place, payload.name);
  words[0] = program;
  execv(program, words);
  fail("%s cannot be started: %s", program, strerror(errno));
}
