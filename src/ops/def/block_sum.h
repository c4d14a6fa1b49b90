// Sums of cotangents of blocks of an array: x[0], x[1], ... each have one of an element.
#pragma once

#include <vector>

#include "weft/op_def.h"

namespace weft {

// `sum` (none: zero), an array of this type, with the blocks added where they start.
Val with_blocks(Val sum, TypeRef type, std::vector<Block> blocks);

}  // namespace weft
