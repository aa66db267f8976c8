// Reading the squashfs image behind the AppImage's own program.
#pragma once
#include <squashfuse/ll.h>

// Called with the bytes written so far; may be NULL.
typedef void (*Told)(uint64_t written_bytes, void *context);

// Keep more unpacked blocks than the library does, for readers of several files at once.
void squash_widen_cache(sqfs *image);

// Write everything in the image into an existing folder; 0 with errno where that fails, EBADMSG
// where the image is not what it should be.
int squash_unpack(sqfs *image, const char *folder, Told told, void *context);
