// Kernels for every processor; the compiler maps vectors of four floats to what it has.
#define LARDER_TABLE portable_table
#include "vector_portable.h"

#include "kernel_body.h"
