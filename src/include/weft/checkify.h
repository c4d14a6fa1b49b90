// checked() as weft.experimental.checkify wants it.
#pragma once

#include "weft/checks.h"

namespace weft {

// A NaN counts although an operand has one, too, where the op computes; one that moves, chooses or
// rounds values still has to make it of operands that have none.
WEFT_API std::shared_ptr<const CheckedGraph> checkified(const GraphRef& graph,
                                                        const CheckOptions& options);

}  // namespace weft
