// Floats by their order, exactly: XLA's threads take subnormal numbers for zeros in comparisons.
#pragma once

#include "weft/build.h"

namespace weft {

// Integers that are in the order of the floats, where zeros are equal and NaN is first or last.
Val ordered_bits(Val x, bool nan_last);
// Integers in the order of the bits of floats: -nan first, -0 before 0, nan last; of others x
// itself.
Val in_total_order(Val x);

}  // namespace weft
