// Kernels for x86 processors with AVX-512 F, BW, DQ, VL and VNNI.
#define LARDER_TABLE avx512_table
#include "vector_avx512.h"

#include "quads_vnni.h"

#include "bits_x86.h"

#include "kernel_body.h"
