// SPDX-License-Identifier: Apache-2.0
// What is at fault where a compiler fails: a small program that shows the failure (shrink), and the
// rewrite that brings it about (bisect). Both ask a test of the caller's about programs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"
#include "weft/passes.h"

namespace weft {

// Whether a program still has what is looked for.
using ProgramTest = std::function<bool(const Graph&)>;

struct Shrunk {
  GraphRef graph;
  uint32_t num_tests = 0;
};
// Takes ops, outputs and inputs away from a program, also from the graphs in it, as long as `test`
// holds; values that ops no longer compute become inputs, or zeros in graphs of ops. No op of the
// result can be taken away alone. Throws kValue where `test` does not hold of the program given.
WEFT_API Shrunk shrink(const GraphRef& graph, const ProgramTest& test);

struct Bisection {
  std::string pass;
  // Which application of a rewrite in that pass, from 1 on, of how many; 0: the pass itself, what
  // it does beside the rewrites that have names.
  size_t application = 0;
  size_t num_applications = 0;
  // That one, then what followed from it before another began.
  std::vector<AppliedRewrite> rewrites;
  GraphRef before, after;  // programs without it and with it, and without what comes later
  uint32_t num_tests = 0;
};
// Which rewrite changes what `test` says, when passes are run on a graph one after the other. Where
// several do, it is one of them. Throws kValue where `test` says the same of the program given and
// of the result.
WEFT_API Bisection bisect(const GraphRef& graph, std::span<const std::string> passes,
                          const PassOptions& options, const ProgramTest& test);

}  // namespace weft
