// Kernels for x86 processors with AVX2, FMA and F16C.
#define LARDER_TABLE avx2_table
#include "vector_avx2.h"

#include "quads_avx2.h"

#include "bits_x86.h"

#include "kernel_body.h"
