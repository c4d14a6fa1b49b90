// SPDX-License-Identifier: Apache-2.0
// What a program makes of inputs that are the same arrays at every call, or of nothing at all, made
// by a program of its own: the prologue, which runs once for those arrays.
#pragma once

#include <memory>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

struct ConstantOptions {
  int64_t max_bytes = int64_t{1} << 28;  // that what is kept may take in all
  // What a call is spared at least, by estimate, and which part of it that is at least.
  double min_seconds = 3e-6;
  double min_part = 0.01;
};

struct ConstantSplit {
  GraphRef prologue;
  std::vector<uint32_t> reads;   // inputs of the program that the prologue takes
  GraphRef main;                 // what is left of the program
  std::vector<uint32_t> inputs;  // those that it takes; the results of the prologue follow
  int64_t bytes = 0;             // of these results
  double seconds = 0;            // that each call is spared, by estimate
};

// Splits an optimised program, given which of its inputs are constants; null if that is not worth
// it. Only pure ops move, and nothing that is an output. Calls are looked into.
WEFT_API std::shared_ptr<const ConstantSplit> split_constants(const GraphRef& graph,
                                                              const std::vector<bool>& constants,
                                                              const ConstantOptions& options = {});

}  // namespace weft
