// Vectorisation of calls of functions that no rule can look into.
#pragma once

#include <functional>

#include "weft/op_def.h"

namespace weft {

// By the attribute `vmap_method`; the types of the results are the attribute `result_avals`.
// `widen`, where given, gives the attributes of the op once all results, and the operands of the
// mask `grown`, have a new leading axis; for those of `whole` it is as long as the results'.
using WidenRule =
    std::function<AttrsRef(const AttrsRef& attrs, const Mask& grown, const Mask& whole)>;
void batch_by_method(BatchCtx& c, const WidenRule& widen = nullptr);

}  // namespace weft
