// SPDX-License-Identifier: Apache-2.0
// Packing: what a loop does in the same way to many small values, done to arrays of them.
#pragma once

#include <cstdint>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

struct PackOptions {
  // Of a loop's body: how many operations fewer there are at least, and what part of them is left
  // at most.
  uint32_t min_saved = 1;
  double max_left = 1;

  // Loops that take XLA as long as other whole programs: calls gain, or stay about the same.
  static PackOptions for_speed() { return {.min_saved = 60, .max_left = 0.5}; }
};

struct Packed {
  GraphRef graph;          // the one given, if nothing was packed
  uint32_t num_saved = 0;  // operations of loops' bodies
};

// Makes arrays of small values that the loops (OpDef::loop) of an optimised program carry, where
// their iterations do the same to each: pytrees of scalars, lists of cells. A value is computed as
// before, from the same operands by the same element-wise operations.
WEFT_API Packed pack(const GraphRef& graph, const PackOptions& options = {});

}  // namespace weft
