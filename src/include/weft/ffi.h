// SPDX-License-Identifier: Apache-2.0
// Calls of functions outside of the compiler, which the runtime knows by name: XLA's typed FFI.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/api.h"
#include "weft/op_def.h"

namespace weft {

struct FfiCall {
  std::string target;
  std::vector<std::string> operands = {};  // SSA names; none: all operands of the op
  // What stands between the braces of the attribute dictionary, "uplo = 76 : ui8"; for versions
  // before the typed one the string that is passed.
  std::string attributes = {};
  // Axes from minor to major, per operand and per result; no lists: all are row-major.
  std::vector<Dims> operand_layouts = {};
  std::vector<Dims> result_layouts = {};
  // (operand, result): the result is written over the operand.
  std::vector<std::pair<size_t, size_t>> aliases = {};
  bool has_side_effect = false;
  int64_t api_version = kTyped;

  static constexpr int64_t kTyped = 4;
};

// The call, of operands and results of the op's types, as text for EmitCtx::line. The token of an
// op with ordered effects is one more of each.
WEFT_API std::string ffi_call_text(EmitCtx& c, const FfiCall& call);
// Emits the op as this call.
WEFT_API void emit_ffi_call(EmitCtx& c, const FfiCall& call);

}  // namespace weft
