// A program that runs in steps, each of them one executable, on slots of a table of buffers.
#pragma once

#include <memory>
#include <vector>

#include "executable.h"
#include "weft/blocks.h"

namespace weft::py {

struct Steps {
  std::shared_ptr<const BlockPlan> plan;
  std::vector<ExecutableRef> blocks;  // per block of the plan
};

}  // namespace weft::py
