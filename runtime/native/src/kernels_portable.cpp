// Kernels for every processor.
#define LARDER_TABLE portable_table
#if defined(__GNUC__)
#include "vector_portable.h"
#else
#include "vector_scalar.h"
#endif

#include "quads_portable.h"

#include "bits_portable.h"

#include "kernel_body.h"
