// The kernels of one instruction set, from the vector operations included before.
//
// Included by one source file for each instruction set. Everything is in an unnamed namespace and
// no standard templates are used, so that no function compiled for one instruction set can be
// taken by the linker for code that runs on another.
#pragma once

#include "half.h"
#include "table.h"

#include "kernel_plain.h"

#include "kernel_quads.h"

#include "kernel_bits.h"

#include "kernel_spans.h"

#include "kernel_half_spans.h"

#include "kernel_softmax.h"

#include "kernel_activation.h"

#include "kernel_repack.h"

namespace larder {

const KernelTable& LARDER_TABLE() {
    static const KernelTable kernels{
        kTableName,
        {dot_plain<LoadF32>, dot_plain<LoadF16>, dot_plain<LoadBf16>, dot_quads<EightBit>,
         dot_quads<FourBit>, dot_quads<Fp4>, dot_quads<Affine>, dot_quads<SixBit>,
         dot_quads<SmallBits<3>>, dot_quads<SmallBits<2>>, dot_quads<Spans>,
         dot_quads<SixSpans>, dot_quads<FiveSpans>,
         dot_quads<ThreeSpans>, dot_quads<TwoSpans>},
        quantise,
        activate,
        exponentials,
        accumulate,
        read_through,
        repack_rows,
    };
    return kernels;
}

}  // namespace larder
