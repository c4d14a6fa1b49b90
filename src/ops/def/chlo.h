// Functions that CHLO has an op for, in terms of other ops: for compilers without CHLO (plain.h).
#pragma once

#include <string_view>

#include "weft/build.h"

namespace weft {

// What an op of CHLO, "chlo.asin", gives for operands of one type. Throws kInternal for ops that
// weft does not emit.
Val in_plain_ops(std::string_view chlo, const Vals& operands);

}  // namespace weft
