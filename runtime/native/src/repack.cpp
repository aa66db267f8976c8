// Blocks of GGUF files into the grouped formats, by what this processor has.
#include "repack.h"

namespace larder {

bool repack(int kind, Format format, const uint8_t* stored, int64_t rows, int64_t columns,
            uint8_t* out) {
    return table().repack(kind, format, stored, rows, columns, out);
}

}  // namespace larder
