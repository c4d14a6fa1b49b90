// A program that runs in steps, each of them one executable, on slots of a table of buffers.
#pragma once

#include <memory>
#include <vector>

#include "execution/compile.h"
#include "execution/executable.h"
#include "references/function_ref.h"
#include "weft/blocks.h"

namespace weft::py {

struct Steps {
  std::shared_ptr<const BlockPlan> plan;
  std::vector<ExecutableRef> blocks;  // per block of the plan
};

// How the graph is cut, if that is wanted and something in it repeats. `donated`: per input.
std::shared_ptr<const BlockPlan> plan_of(const GraphRef& graph, Cut cut,
                                         const std::vector<bool>& donated);

// Runs on a list of buffers, which is emptied so that none lives longer than it is needed; returns
// a list of buffers.
Ref run_steps(const Steps& steps, Ref buffers, FunctionRef<Ref(Executable&, PyObject*)> execute);

}  // namespace weft::py
