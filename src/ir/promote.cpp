// Type promotion: the least upper bound of two dtypes in the lattice that JAX documents,
//
//   bool -> i* -> u8 -> u16 -> u32 -> u64 -> f*
//           i* -> i8 -> i16 -> i32 -> i64 -> f*,   u8 -> i16, u16 -> i32, u32 -> i64
//   f* -> bf16, f16 -> f32 -> f64;   f* -> c* -> c64 -> c128;   f32 -> c64, f64 -> c128
//
// where i*, f* and c* are the weak types of Python's int, float and complex. The integers of 2 and
// 4 bits (above i*) and the floats of 4 and 8 bits (above f*) promote to nothing else.
#include <array>
#include <bit>

#include "weft/dtype.h"

namespace weft {

namespace {

// Nodes of the lattice: the dtypes, then the three weak types.
constexpr int kWeakInt = kNumDTypes;
constexpr int kWeakFloat = kNumDTypes + 1;
constexpr int kWeakComplex = kNumDTypes + 2;
constexpr int kNumNodes = kNumDTypes + 3;
static_assert(kNumNodes <= 64, "a set of nodes is a 64-bit mask");

struct Edge {
  int from;
  int to;
};

constexpr int node(DType d) { return static_cast<int>(d); }

constexpr Edge kEdges[] = {
    {node(DType::kBool), kWeakInt},
    {kWeakInt, node(DType::kI2)},
    {kWeakInt, node(DType::kI4)},
    {kWeakInt, node(DType::kI8)},
    {kWeakInt, node(DType::kU2)},
    {kWeakInt, node(DType::kU4)},
    {kWeakInt, node(DType::kU8)},
    {node(DType::kI8), node(DType::kI16)},
    {node(DType::kI16), node(DType::kI32)},
    {node(DType::kI32), node(DType::kI64)},
    {node(DType::kU8), node(DType::kU16)},
    {node(DType::kU16), node(DType::kU32)},
    {node(DType::kU32), node(DType::kU64)},
    {node(DType::kU8), node(DType::kI16)},
    {node(DType::kU16), node(DType::kI32)},
    {node(DType::kU32), node(DType::kI64)},
    {node(DType::kI64), kWeakFloat},
    {node(DType::kU64), kWeakFloat},
    {kWeakFloat, node(DType::kBF16)},
    {kWeakFloat, node(DType::kF16)},
    {node(DType::kBF16), node(DType::kF32)},
    {node(DType::kF16), node(DType::kF32)},
    {node(DType::kF32), node(DType::kF64)},
    {kWeakFloat, kWeakComplex},
    {kWeakComplex, node(DType::kC64)},
    {node(DType::kF32), node(DType::kC64)},
    {node(DType::kF64), node(DType::kC128)},
    {node(DType::kC64), node(DType::kC128)},
};

constexpr bool is_narrow_float(DType d) {
  return node(d) >= node(DType::kF4E2M1FN) && node(d) <= node(DType::kF8E8M0FNU);
}

constexpr uint64_t bit(int n) { return uint64_t{1} << n; }

// For each node the set of nodes at or above it.
constexpr std::array<uint64_t, kNumNodes> upper_bounds() {
  std::array<uint64_t, kNumNodes> above{};
  for (int n = 0; n < kNumNodes; ++n) above[n] = bit(n);
  for (int pass = 0; pass < kNumNodes; ++pass) {
    for (const Edge& edge : kEdges) above[edge.from] |= above[edge.to];
  }
  // Everything up to f* goes to each narrow float.
  for (int n = 0; n < kNumDTypes; ++n) {
    if (!is_narrow_float(static_cast<DType>(n))) continue;
    for (int below = 0; below < kNumNodes; ++below) {
      if (above[below] & bit(kWeakFloat)) above[below] |= bit(n);
    }
  }
  return above;
}

constexpr std::array<uint64_t, kNumNodes> kUpperBounds = upper_bounds();

int weak_node(DType d) {
  switch (kind(d)) {
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned:
      return kWeakInt;
    case DTypeKind::kFloat:
      return kWeakFloat;
    case DTypeKind::kComplex:
      return kWeakComplex;
    default:
      return node(d);
  }
}

PromotionType from_node(int n) {
  switch (n) {
    case kWeakInt:
      return {DType::kI64, true};
    case kWeakFloat:
      return {DType::kF64, true};
    case kWeakComplex:
      return {DType::kC128, true};
    default:
      return {static_cast<DType>(n), false};
  }
}

}  // namespace

std::optional<PromotionType> promote(PromotionType a, PromotionType b) {
  if (a.weak && b.weak) {
    // Between weak types the dtypes decide, and the result stays weak.
    std::optional<PromotionType> strong = promote({a.dtype, false}, {b.dtype, false});
    if (strong) strong->weak = !is_bool(strong->dtype);  // of bools nothing is adapted
    return strong;
  }
  if (a == b) return a;
  if (is_key(a.dtype) || is_key(b.dtype)) return std::nullopt;
  int x = a.weak ? weak_node(a.dtype) : node(a.dtype);
  int y = b.weak ? weak_node(b.dtype) : node(b.dtype);
  // The least of the common upper bounds is the one below all the others.
  uint64_t common = kUpperBounds[static_cast<size_t>(x)] & kUpperBounds[static_cast<size_t>(y)];
  for (uint64_t rest = common; rest != 0; rest &= rest - 1) {
    int n = std::countr_zero(rest);
    if (kUpperBounds[static_cast<size_t>(n)] == common) return from_node(n);
  }
  return std::nullopt;
}

PromotionType to_inexact(PromotionType d, bool x64) {
  // float0 and keys stand for no number at all; an op says that it does not take them.
  if (is_inexact(d.dtype) || d.dtype == DType::kFloat0 || is_key(d.dtype)) return d;
  bool wide = x64 && info(d.dtype).bits == 64;
  return {wide ? DType::kF64 : DType::kF32, d.weak};
}

}  // namespace weft
