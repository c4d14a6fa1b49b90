// SPDX-License-Identifier: Apache-2.0
// The type of a value: dtype and shape. Types are interned for the life of the process, so equal
// types are the same pointer. One takes 110 bytes (of up to 6 dimensions): nothing next to a
// program compiled for it, and 1 MB for every ten thousand shapes that a process ever sees.
//
// Weak typing is no part of a type: it says how a Python scalar promotes while a program is being
// traced, and means nothing to the program that results. Tracers and arrays carry that bit.
#pragma once

#include <span>

#include "weft/api.h"
#include "weft/dtype.h"
#include "weft/small_vector.h"
#include "weft/text.h"

namespace weft {

class Type {
 public:
  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t dim(int i) const { return shape_[static_cast<size_t>(i)]; }
  int64_t num_elements() const { return num_elements_; }
  // Bytes of a dense buffer; sub-byte elements are packed. Always fits: see make_type().
  int64_t num_bytes() const { return (num_elements_ * info(dtype_).bits + 7) / 8; }
  uint64_t hash() const { return hash_; }

 private:
  friend class TypeTable;
  Type() = default;
  DType dtype_;
  Dims shape_;
  int64_t num_elements_;
  uint64_t hash_;
};

using TypeRef = const Type*;

// Larger than any dimension.
inline constexpr int64_t kMaxDim = int64_t{1} << 62;

// Throws kShape for a negative dimension, and for an array of 2**60 bytes or more; dimensions of
// size 0 do not count for that. So whatever is made of dimensions of one type alone (elements,
// bytes, bits, products of some of its dimensions) fits 64 bits.
WEFT_API TypeRef make_type(DType dtype, std::span<const int64_t> shape);
inline TypeRef make_type(DType dtype, const Dims& shape) {
  return make_type(dtype, std::span<const int64_t>(shape));
}
inline TypeRef scalar_type(DType dtype) { return make_type(dtype, std::span<const int64_t>()); }
inline TypeRef with_dtype(TypeRef t, DType d) { return make_type(d, t->shape()); }
inline TypeRef with_shape(TypeRef t, const Dims& shape) { return make_type(t->dtype(), shape); }

// "f32[8,128]"
WEFT_API Text& operator<<(Text& out, TypeRef type);
// Reads "f32[8,128]", "f32[]" or "float32[3]"; throws kParse.
WEFT_API TypeRef parse_type(std::string_view text);

}  // namespace weft
