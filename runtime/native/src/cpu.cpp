// Which instruction sets this processor has, and the choice among the tables.
#include <atomic>
#include <cstring>
#include <initializer_list>

#include "table.h"

#ifdef LARDER_X86
#ifdef _MSC_VER
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace larder {
namespace {

#ifdef LARDER_X86
struct Registers {
    unsigned a, b, c, d;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
#ifdef _MSC_VER
    int values[4];
    __cpuidex(values, static_cast<int>(leaf), static_cast<int>(subleaf));
    return {static_cast<unsigned>(values[0]), static_cast<unsigned>(values[1]),
            static_cast<unsigned>(values[2]), static_cast<unsigned>(values[3])};
#else
    Registers r{};
    __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
    return r;
#endif
}

// Register state that the system saves when it switches threads.
unsigned saved_state() {
#ifdef _MSC_VER
    return static_cast<unsigned>(_xgetbv(0));
#else
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

constexpr unsigned bit(int index) { return 1u << index; }

bool has_all(unsigned value, unsigned mask) { return (value & mask) == mask; }

struct Features {
    bool avx2 = false;
    bool avx512 = false;

    Features() {
        if (cpuid(0, 0).a < 7) return;
        const Registers one = cpuid(1, 0);
        const unsigned fma_xsave_avx_f16c = bit(12) | bit(27) | bit(28) | bit(29);
        if (!has_all(one.c, fma_xsave_avx_f16c)) return;
        const unsigned state = saved_state();
        const Registers seven = cpuid(7, 0);
        avx2 = has_all(state, 0x6) && has_all(seven.b, bit(5));
        const unsigned f_dq_bw_vl = bit(16) | bit(17) | bit(30) | bit(31);
        const unsigned vnni = bit(11);
        avx512 = avx2 && has_all(state, 0xe6) && has_all(seven.b, f_dq_bw_vl) && has_all(seven.c, vnni);
    }
};

const Features& features() {
    static const Features found;
    return found;
}
#endif

const KernelTable* find(const char* name) {
    const KernelTable& portable = portable_table();
    if (std::strcmp(name, portable.name) == 0) return &portable;
#ifdef LARDER_X86
    if (features().avx2 && std::strcmp(name, "avx2") == 0) return &avx2_table();
    if (features().avx512 && std::strcmp(name, "avx512") == 0) return &avx512_table();
#endif
    return nullptr;
}

const KernelTable* widest() {
    for (const char* name : {"avx512", "avx2"}) {
        if (const KernelTable* found = find(name)) return found;
    }
    return &portable_table();
}

std::atomic<const KernelTable*>& current() {
    static std::atomic<const KernelTable*> chosen{widest()};
    return chosen;
}

}  // namespace

const KernelTable& table() { return *current().load(std::memory_order_relaxed); }

bool select_table(const char* name) {
    const KernelTable* found = find(name);
    if (found) current().store(found, std::memory_order_relaxed);
    return found != nullptr;
}

}  // namespace larder
