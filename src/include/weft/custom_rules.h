// SPDX-License-Identifier: Apache-2.0
// Derivatives that an embedding lets its users write for a function. The ops custom_jvp_call and
// custom_vjp_call call the function's graph and hold such an object; the transforms ask it when a
// derivative is taken, and never otherwise. Objects are compared by identity, but for policies that
// come with weft, and rules that are derived from equal ones in the same way.
//
// "Inputs" are those of the function. Values that it closed over ("consts") come first among the
// operands of the call, and among the inputs of a rule's graphs: a rule may close over them as
// well.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/attr.h"
#include "weft/error.h"
#include "weft/graph_rules.h"
#include "weft/op.h"

namespace weft {

struct IdentityObject : AttrObject {
  uint64_t hash() const override { return reinterpret_cast<uintptr_t>(this); }
  bool equals(const AttrObject& other) const override { return this == &other; }
};

struct CustomJvp : IdentityObject {
  // The function with its derivative, for tangents of the masked inputs: consts, inputs, tangents
  // -> outputs, tangents.
  virtual std::shared_ptr<const JvpGraph> jvp(const Mask& in_mask) const = 0;
  std::string text() const override { return "custom_jvp"; }
};

struct CustomBackward : IdentityObject {
  // residuals, those cotangents that there are -> cotangents of the inputs that have a tangent.
  // One entry of the mask per float or complex output.
  virtual GraphRef backward(const Mask& cotangents) const = 0;
  // The types of the function's float and complex outputs.
  virtual TypeRefs out_types() const = 0;
  // Per float or complex output over which of a mesh's axes it varies; null: not known.
  virtual const SmallVector<AxisSet, 8>* varying(const std::vector<std::string>& /*axes*/) const {
    return nullptr;
  }
  std::string text() const override { return "backward"; }
};

struct CustomForward {
  GraphRef forward;  // consts, inputs -> outputs, residuals
  std::shared_ptr<const CustomBackward> backward;
};

struct CustomVjp : IdentityObject {
  virtual std::shared_ptr<const CustomForward> forward(const Mask& in_mask) const = 0;
  std::string text() const override { return "custom_vjp"; }
};

// A derivative by a value that a function with a rule closed over, of which the rule says nothing.
class WEFT_API ClosedOverError : public Error {
 public:
  explicit ClosedOverError(const std::string& message) : Error(ErrorKind::kType, message) {}
};

// Whether a value made by an op is kept for the backward pass through a checkpoint.
struct SavePolicy : IdentityObject {
  virtual bool saves(const OpInfo& op, const AttrsRef& attrs) const = 0;
  std::string text() const override { return "policy"; }
};
// The policies that come with weft: "everything_saveable", "nothing_saveable", "dots_saveable",
// "dots_with_no_batch_dims_saveable", and three that go by the names given with the op `name`:
// "save_only_these_names", "save_any_names_but_these", "save_anything_except_these_names".
WEFT_API std::shared_ptr<const SavePolicy> save_policy(std::string_view kind,
                                                       std::vector<std::string> names = {});

}  // namespace weft
