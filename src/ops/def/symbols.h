// Which ops take sizes that are symbols. A handle is a number, and a rule that compares one as it
// compares numbers would be wrong without a word; so ops are refused until theirs have been read.
#pragma once

#include "weft/op_def.h"

namespace weft {

// Has the inference of an op refuse symbolic dimensions, if it is not ready for them.
void guard_symbols(OpDef& op);
// In rules that count: throws kNotImplemented if one of the sizes is a symbolic dimension.
void need_numbers(const OpDef& op, std::span<const int64_t> sizes);

}  // namespace weft
