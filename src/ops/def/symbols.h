// Which ops take sizes that are symbols. A handle is a number, and a rule that compares one as it
// compares numbers would be wrong without a word; so ops are refused until theirs have been read.
#pragma once

#include "weft/op_def.h"

namespace weft {

// Has the inference of an op refuse symbolic dimensions, if it is not ready for them.
void guard_symbols(OpDef& op);
// Throws kNotImplemented if one of the types has symbolic dimensions and the rules of the op, for
// derivatives and for vmap, are not ready for them.
void check_symbols(const OpDef& op, std::span<const TypeRef> types);

}  // namespace weft
