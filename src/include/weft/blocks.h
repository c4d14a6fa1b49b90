// SPDX-License-Identifier: Apache-2.0
// Blocks: a program cut into pieces that are compiled on their own and run one after the other, so
// that what repeats in it (layers, steps, their derivatives) is compiled once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

struct BlockOptions {
  // Smaller programs stay whole.
  uint32_t min_program_ops = 0;
  // What a step takes at least, by estimate: shorter pieces that repeat become parts of longer
  // ones.
  double min_seconds = 0;
  // The part of that at most which may go into starting it and handing arrays on.
  double max_overhead = 1e9;
  // The part of the work at least, by estimate, that matrix products do. XLA's kernels of these end
  // at their results, so that steps lose little; of convolutions and others it is not known.
  double min_products = 0;
  // A piece that repeats is worth a program of its own from this many ops on.
  uint32_t min_ops = 16;

  // Steps that cost next to nothing at each call, of programs that XLA takes more than a second
  // for. Of smaller ones it merges so many equal kernels that blocks, each with its own, may take
  // longer.
  static BlockOptions for_speed() {
    return {.min_program_ops = 2000, .min_seconds = 3e-3, .max_overhead = 0.1, .min_products = 0.5};
  }
};

// One run of a piece. Slots are numbers of values of the whole program that leave the piece which
// makes them; the first are its inputs.
struct BlockStep {
  uint32_t block;  // in BlockPlan::blocks
  std::vector<uint32_t> inputs, outputs;
  std::vector<uint32_t> done;  // slots that no later step reads, and that are no outputs
};

struct BlockPlan {
  struct Block {
    GraphRef graph;
    uint32_t num_steps;
    // Per input the output that its buffer becomes, or -1; empty if none does. In every step the
    // slot is done, is read once, and is no input of the program's but a donated one.
    std::vector<int> aliases = {};
  };
  std::vector<Block> blocks;  // distinct ones
  std::vector<BlockStep> steps;
  uint32_t num_slots = 0;
  std::vector<uint32_t> outputs;  // of the program, slots

  // Of the whole program; bytes of its inputs and outputs.
  uint32_t num_ops = 0, num_inputs = 0;
  int64_t outer = 0;
  // The most bytes of intermediate values at once, in steps and in one module, by estimate.
  int64_t peak = 0, whole_peak = 0;

  // Per step, the bytes of intermediate values between steps that are alive while it runs.
  WEFT_API std::vector<int64_t> held_bytes() const;
  // Whether so much less is compiled, and so little more memory needed, that it is worth to run in
  // steps.
  WEFT_API bool is_worth_it() const;
};

// Cuts an optimised program; null if nothing in it repeats, or if it has effects or holds what
// other processes cannot have, whose order and identity matter. `donated`: the inputs whose buffers
// the program may reuse; empty: none.
WEFT_API std::shared_ptr<const BlockPlan> find_blocks(const GraphRef& graph,
                                                      const BlockOptions& options = {},
                                                      const std::vector<bool>& donated = {});

}  // namespace weft
