// SPDX-License-Identifier: Apache-2.0
// What the graph needs to know of an op: name, attributes and how result types follow from
// operand types. The rules of transforms, passes and emission are in op_def.h.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "weft/api.h"
#include "weft/attr.h"
#include "weft/error.h"
#include "weft/type.h"

namespace weft {

enum Effect : uint32_t {
  kPure = 0,
  kUnordered = 1,  // must run, in any order
  kOrdered = 2,    // must run, in program order with other ordered ops
  kChecks = 4,     // holds checks of users, which have to be made outputs before it can run
  kActs = 8,       // does more on the host than to report: must not run where it does not belong
};

struct OpInfo;
using TypeRefs = SmallVector<TypeRef, 4>;

// What type inference sees. Messages go through fail(), which prefixes "[op]".
struct InferCtx {
  const OpInfo& op;
  std::span<const TypeRef> operands;
  const AttrRecord* attrs;  // null only if the op has no attributes

  size_t size() const { return operands.size(); }
  TypeRef in(size_t i) const { return operands[i]; }
  const AttrRecord& attr() const { return *attrs; }
  // fail(kShape, "expected ...; got ...")  ->  "[add] expected ...; got ..."
  template <typename... Parts>
  [[noreturn]] void fail(ErrorKind kind, const Parts&... parts) const;
};

using InferRule = std::function<TypeRefs(const InferCtx&)>;

struct OpInfo {
  std::string name;
  std::string doc;  // one sentence
  AttrSchema attrs;
  int num_operands = -1;          // -1: variadic
  bool commutative = false;       // op(x, y) is op(y, x), to the bit but for which nan a nan is
  bool elementwise = false;       // result element i depends on element i of each operand only
  bool multiple_results = false;  // results are a list, also when there is only one
  uint32_t effects = kPure;
  std::string effects_if;  // the boolean attribute without which the op has no effects
  std::string ordered_by;  // the boolean attribute that makes the effects ordered ones too
  bool built_in = false;   // set by the registry: every process has the op
  InferRule infer;
};

template <typename... Parts>
[[noreturn]] void InferCtx::fail(ErrorKind kind, const Parts&... parts) const {
  weft::fail(kind, "[", op.name, "] ", parts...);
}

// Checks arity, then runs the op's inference.
WEFT_API TypeRefs infer_types(const OpInfo& op, std::span<const TypeRef> operands,
                              const AttrsRef& attrs);

// Effects of an op with these attributes: its own and those of its graphs.
WEFT_API uint32_t effects_of(const OpInfo& op, const AttrsRef& attrs);
// Levels of graphs in these attributes; 0 if there is none.
WEFT_API uint32_t depth_of(const AttrsRef& attrs);
// Names of mapped axes that these attributes and their graphs refer to, without those that they
// bind; sorted.
WEFT_API std::vector<std::string> axis_names_of(const AttrsRef& attrs);
// Adds to a sorted list of names those of another.
void merge_names(std::vector<std::string>& names, const std::vector<std::string>& more);

}  // namespace weft
