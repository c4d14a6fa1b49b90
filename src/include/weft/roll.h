// SPDX-License-Identifier: Apache-2.0
// Rolling: what a loop of the user's language wrote out, made a loop again.
#pragma once

#include <memory>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

struct RollOptions {
  // Of all that becomes loops: ops at least, and how many times fewer are left of them at least.
  uint32_t min_ops = 0;
  double min_reduction = 1;
  // Of a loop.
  uint32_t min_iterations = 3;
  // The part of an iteration at most that may go into the loop itself, by estimate; iterations are
  // put together until it is that.
  double max_overhead = 1e9;
  // What arrays that are not there before may take besides what the program takes, and the part of
  // that at most.
  int64_t few_bytes = int64_t{1} << 40;
  double max_growth = 1;

  // Programs that XLA takes a second for or more, whose calls are as quick afterwards.
  static RollOptions for_speed() {
    return {.min_ops = 500,
            .min_reduction = 4,
            .min_iterations = 8,
            .max_overhead = 0.03,
            .few_bytes = int64_t{1} << 18,
            .max_growth = 1.03};
  }
};

struct Rolled {
  struct Loop {
    uint32_t length, unroll;      // iterations, and how many of them follow each other in its body
    uint32_t num_ops, num_after;  // that it stands for, and of its body
  };
  GraphRef graph;
  std::vector<Loop> loops;  // in the order of the program
};

// Makes loops of what repeats in an optimised program; null if nothing does, if it is not worth it,
// or if the program has effects, whose order matters.
WEFT_API std::shared_ptr<const Rolled> roll(const GraphRef& graph, const RollOptions& options = {});

}  // namespace weft
