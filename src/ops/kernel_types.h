// Which element types XLA's emitter of kernels (OpDef::in_kernel) takes with the bits that it gives
// elsewhere.
#pragma once

#include <algorithm>

#include "weft/op_def.h"

namespace weft {

// Moved from place to place.
inline bool moves_in_kernels(DType d) {
  if (is_float(d))
    return d == DType::kF64 || d == DType::kF32 || d == DType::kF16 || d == DType::kBF16;
  return is_bool(d) || is_complex(d) || (is_integer(d) && info(d).bits >= 8);
}

// Computed with.
inline bool counts_in_kernels(DType d) {
  return moves_in_kernels(d) && !is_complex(d) && !(is_float(d) && info(d).bits < 32);
}

// In-kernel rules by the types of operands and results alone.
inline bool all_types(const CostCtx& c, bool (*holds)(DType)) {
  auto type_holds = [holds](TypeRef t) { return holds(t->dtype()); };
  return std::ranges::all_of(c.in_types, type_holds) &&
         std::ranges::all_of(c.out_types, type_holds);
}
inline bool only_moves(const CostCtx& c) { return all_types(c, moves_in_kernels); }
inline bool only_counts(const CostCtx& c) { return all_types(c, counts_in_kernels); }

}  // namespace weft
