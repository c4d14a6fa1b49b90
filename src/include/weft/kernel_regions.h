// SPDX-License-Identifier: Apache-2.0
// Kernels: parts of a program that XLA's compiler for CPUs emits as one function each, loops and
// branches included, in place of a kernel for each few operations. What is small runs many times as
// fast.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

struct Kernels {
  struct Kernel {
    uint32_t num_ops;  // with those of its loops and branches
    double apart;      // seconds of a call of the program that its operations take one by one,
    double saved;      // and how many fewer the kernel takes, by estimate
    Loc loc;           // of the op that takes most of them
  };
  GraphRef graph;  // with ops `kernel` in place of the regions
  std::vector<Kernel> kernels;
  // Whether it runs faster if LLVM unrolls its loops, by so much that the longer compilation is
  // worth it.
  bool unroll = false;
};

enum class KernelChoice : uint8_t {
  kNever,
  kAuto,    // what runs faster so, by estimate
  kAlways,  // whatever may be part of a kernel
};

// Chooses regions of an optimised program on one device of a CPU. The result's graph is the one
// given if no region is chosen.
WEFT_API Kernels choose_kernels(const GraphRef& graph, KernelChoice choice);

}  // namespace weft
