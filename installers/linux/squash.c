#define _GNU_SOURCE
#include "squash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
  CHUNK = 1 << 20,
  KEPT_BLOCKS = 64,
  KEPT_TABLES = 256,  // of 8 KiB: all that a start asks of names and files
  LARGEST_BLOCK = 1 << 20,
  ZSTD_TYPE = 6
};

// The library's own choice of decompressors would bring one whose licence does not fit; of them all
// only zstd is used. With these three names defined here the linker leaves its own aside.
static sqfs_err decompress(void *in, size_t in_size, void *out, size_t *out_size) {
  static ZSTD_DCtx *kept;  // one thread serves; making one takes as long as unpacking a small block
  if (!kept) kept = ZSTD_createDCtx();
  if (!kept) return SQFS_ERR;
  size_t made = ZSTD_decompressDCtx(kept, out, *out_size, in, in_size);
  if (ZSTD_isError(made)) return SQFS_ERR;
  *out_size = made;
  return SQFS_OK;
}

sqfs_decompressor sqfs_decompressor_get(sqfs_compression_type type) {
  return type == ZSTD_TYPE ? decompress : NULL;
}

char *sqfs_compression_name(sqfs_compression_type type) {
  return type == ZSTD_TYPE ? "zstd" : NULL;
}

void sqfs_compression_supported(sqfs_compression_type *types) {
  types[0] = ZSTD_TYPE;
  types[1] = SQFS_COMP_UNKNOWN;
}

void squash_widen_cache(sqfs *image) {
  // A block's memory goes to the next block, not back to the system and through its page faults.
  mallopt(M_MMAP_THRESHOLD, 2 * LARGEST_BLOCK);
  mallopt(M_TRIM_THRESHOLD, KEPT_BLOCKS * LARGEST_BLOCK);
  sqfs_cache_destroy(&image->md_cache);
  sqfs_block_cache_init(&image->md_cache, KEPT_TABLES);
  sqfs_cache_destroy(&image->data_cache);
  sqfs_cache_destroy(&image->frag_cache);
  sqfs_block_cache_init(&image->data_cache, KEPT_BLOCKS);
  sqfs_block_cache_init(&image->frag_cache, KEPT_BLOCKS);
}

static int is_safe_link(const char *link) {
  if (link[0] == '/' || !link[0]) return 0;
  for (const char *part = link; part; part = strchr(part, '/')) {
    if (*part == '/') part++;
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0)) return 0;
  }
  return 1;
}

static int write_all(int file, const char *data, size_t size) {
  while (size > 0) {
    ssize_t got = write(file, data, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    data += got;
    size -= (size_t)got;
  }
  return 1;
}

static int write_file(sqfs *image, sqfs_inode *inode, const char *path) {
  static char buffer[CHUNK];
  int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW,
                  inode->base.mode & 0100 ? 0755 : 0644);
  if (file < 0) return 0;
  uint64_t size = inode->xtra.reg.file_size;
  for (uint64_t at = 0; at < size;) {
    sqfs_off_t part = size - at < CHUNK ? (sqfs_off_t)(size - at) : CHUNK;
    if (sqfs_read_range(image, inode, (sqfs_off_t)at, &part, buffer) != SQFS_OK || part <= 0) {
      close(file);
      errno = EBADMSG;
      return 0;
    }
    if (!write_all(file, buffer, (size_t)part)) return close(file), 0;
    at += (uint64_t)part;
  }
  return close(file) == 0;
}

static int write_entry(sqfs *image, sqfs_dir_entry *entry, const char *path, uint64_t *written) {
  sqfs_inode inode;
  errno = EBADMSG;
  const char *name = sqfs_dentry_name(entry);
  if (!name || !name[0] || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..")) return 0;
  if (sqfs_inode_get(image, &inode, sqfs_dentry_inode(entry)) != SQFS_OK) return 0;
  mode_t mode = sqfs_dentry_mode(entry);
  if (S_ISDIR(mode)) return mkdir(path, 0755) == 0;
  if (S_ISREG(mode)) {
    *written += inode.xtra.reg.file_size;
    return write_file(image, &inode, path);
  }
  if (!S_ISLNK(mode)) return 0;
  char link[PATH_MAX];
  size_t size = sizeof link;
  if (sqfs_readlink(image, &inode, link, &size) != SQFS_OK || !is_safe_link(link)) return 0;
  return symlink(link, path) == 0;
}

int squash_unpack(sqfs *image, const char *folder, Told told, void *context) {
  sqfs_traverse walk;
  sqfs_err error = sqfs_traverse_open(&walk, image, sqfs_inode_root(image));
  errno = EBADMSG;
  if (error != SQFS_OK) return 0;
  uint64_t written = 0;
  int is_good = 1;
  char *path = NULL;
  while (is_good && sqfs_traverse_next(&walk, &error)) {
    if (walk.dir_end) continue;
    is_good = asprintf(&path, "%s/%s", folder, walk.path) > 0;
    is_good = is_good && write_entry(image, &walk.entry, path, &written);
    int why = errno;
    free(path);
    path = NULL;
    if (told) told(written, context);
    errno = why;
  }
  if (is_good && error != SQFS_OK) {
    errno = EBADMSG;
    is_good = 0;
  }
  int why = errno;
  sqfs_traverse_close(&walk);
  errno = why;
  return is_good;
}
