// Kernels for x86 processors with AVX-512 F, BW, DQ and VL.
#define LARDER_TABLE avx512_table
#include "vector_avx512.h"

#include "kernel_body.h"
