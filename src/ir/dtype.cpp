// The dtype table and look-ups in it. Promotion is in promote.cpp.
#include "weft/dtype.h"

namespace weft {

const DTypeInfo kDTypeInfo[] = {
#define X(name, short_name, numpy_name, mlir, bits, kind) \
  {short_name, numpy_name, mlir, bits, DTypeKind::kind},
    WEFT_DTYPES(X)
#undef X
};

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kDTypeInfo[i].short_name == name || kDTypeInfo[i].numpy_name == name) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

DType canonicalize(DType d, bool x64) {
  if (x64) return d;
  switch (d) {
    case DType::kI64:
      return DType::kI32;
    case DType::kU64:
      return DType::kU32;
    case DType::kF64:
      return DType::kF32;
    case DType::kC128:
      return DType::kC64;
    default:
      return d;
  }
}

}  // namespace weft
