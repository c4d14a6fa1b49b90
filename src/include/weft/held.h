// SPDX-License-Identifier: Apache-2.0
// Arrays in programs. The core owns dense constants. Others are held by the embedding language, and
// a graph refers to them: an array that a rule written there closed over, or a value of a program
// that is still being traced.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/attr.h"
#include "weft/graph.h"
#include "weft/literal.h"
#include "weft/type.h"

namespace weft {

// What a `constant` op stands for.
struct HeldValue : AttrObject {
  virtual TypeRef type() const = 0;
  // Its elements in memory order, for programs in which it stays a constant. Throws kType for a
  // value that is not known yet.
  virtual std::string bytes() const = 0;
};

// Elements of a type, in row-major order, each in whole bytes, the low ones first. Immutable,
// shared, hashed once; graphs that hold no other arrays are printed and read back, compared and
// emitted without the embedding language.
class WEFT_API DenseConstant final : public HeldValue {
 public:
  DenseConstant(TypeRef type, std::string bytes);

  TypeRef type() const override { return type_; }
  std::string bytes() const override { return bytes_; }
  uint64_t hash() const override { return hash_; }
  uint64_t content_hash() const override { return hash_; }
  bool equals(const AttrObject& other) const override;
  std::string text() const override;
  bool is_portable() const override { return true; }

  // The element that all are equal to, bit by bit; nullopt if there is none, if it is a nan (a
  // literal would not keep its bits), or a float of 8 bits or fewer.
  std::optional<Literal> splat() const;

 private:
  TypeRef type_;
  std::string bytes_;
  uint64_t hash_;
};
// Throws kValue for a number of bytes that is not the type's.
WEFT_API std::shared_ptr<const DenseConstant> make_constant(TypeRef type, std::string bytes);
// An axis of literals; null for dtypes other than bool, f32, f64 and integers of whole bytes.
WEFT_API std::shared_ptr<const DenseConstant> make_constant(DType dtype,
                                                            std::span<const Literal> elements);

// Held values other than dense constants become inputs, in front of the others: programs do not
// depend on them then.
struct LiftedGraph {
  GraphRef graph;
  std::vector<ObjectRef> constants;  // HeldValue, one per new input
};
WEFT_API std::shared_ptr<const LiftedGraph> lift_constants(const GraphRef& graph);

}  // namespace weft
