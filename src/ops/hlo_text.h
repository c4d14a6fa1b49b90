// Pieces of StableHLO text that emit rules of several families share.
#pragma once

#include <string>

#include "weft/op_def.h"

namespace weft {

// "%0, %1": all operands.
inline std::string operand_list(EmitCtx& c) {
  Text t;
  for (size_t i = 0; i < c.size(); ++i) t << (i ? ", " : "") << c.in(i);
  return t.take();
}

// "(tensor<3xf32>) -> tensor<3xf32>": operand and result types; several results in parentheses.
inline std::string signature(std::span<const TypeRef> in, std::span<const TypeRef> out) {
  Text t;
  t << '(';
  for (size_t i = 0; i < in.size(); ++i) t << (i ? ", " : "") << mlir_type(in[i]);
  t << ") -> ";
  if (out.size() != 1) t << '(';
  for (size_t i = 0; i < out.size(); ++i) t << (i ? ", " : "") << mlir_type(out[i]);
  if (out.size() != 1) t << ')';
  return t.take();
}
inline std::string signature(const EmitCtx& c) { return signature(c.in_types, c.out_types); }

// "[0, 1]"
inline std::string bracketed(std::span<const int64_t> xs) {
  Text t;
  t << '[';
  for (size_t i = 0; i < xs.size(); ++i) t << (i ? ", " : "") << xs[i];
  t << ']';
  return t.take();
}

// Appends one op line and declares its values to be the results.
inline void emit_results(EmitCtx& c, std::string_view text) {
  size_t n = c.out_types.size();
  std::string name = c.line(text, static_cast<int>(n));
  if (n == 1) {
    c.set_out(0, name);
  } else {
    for (size_t i = 0; i < n; ++i) c.set_out(i, cat(name, "#", i));
  }
}

}  // namespace weft
