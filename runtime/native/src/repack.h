// Blocks of GGUF files into the grouped formats.
#pragma once

#include <cstdint>

#include "table.h"

namespace larder {

// Whole rows of a kind, named by its number in the format, into a grouped matrix; rows are filled
// up to a whole block. False, and nothing that counts in `out`, for a kind or a format that is not
// known here, and for scales that the format cannot hold.
bool repack(int kind, Format format, const uint8_t* stored, int64_t rows, int64_t columns,
            uint8_t* out);

}  // namespace larder
