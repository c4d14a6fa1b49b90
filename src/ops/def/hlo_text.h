// Pieces of StableHLO text that emit rules of several families share.
#pragma once

#include <string>

#include "weft/op_def.h"

namespace weft {

// "%0, %1": all operands; the token of an op with ordered effects comes last.
inline std::string operand_list(EmitCtx& c) {
  Text t;
  for (size_t i = 0; i < c.size(); ++i) t << (i ? ", " : "") << c.in(i);
  if (std::string token = c.token(); !token.empty()) t << (c.size() ? ", " : "") << token;
  return t.take();
}

inline constexpr std::string_view kTokenType = "!stablehlo.token";

// "(tensor<3xf32>) -> tensor<3xf32>": operand and result types; several results in parentheses. A
// token is taken or given last.
inline std::string signature(std::span<const TypeRef> in, std::span<const TypeRef> out,
                             bool token_in = false, bool token_out = false) {
  Text t;
  auto list = [&](std::span<const TypeRef> types, bool token) {
    for (size_t i = 0; i < types.size(); ++i) t << (i ? ", " : "") << mlir_type(types[i]);
    if (token) t << (types.empty() ? "" : ", ") << kTokenType;
  };
  t << '(';
  list(in, token_in);
  t << ") -> ";
  bool single = out.size() + token_out == 1;
  if (!single) t << '(';
  list(out, token_out);
  if (!single) t << ')';
  return t.take();
}
inline std::string signature(EmitCtx& c) {
  bool token = !c.token().empty();
  return signature(c.in_types, c.out_types, token, token);
}

// Has the compiler split a value so; the name of the result.
inline std::string emit_constraint(EmitCtx& c, std::string_view x, TypeRef type,
                                   ShardingRef sharding) {
  return c.line(cat("sdy.sharding_constraint ", x, ' ', c.sharding(sharding, type->rank()), " : ",
                    mlir_type(type)));
}

// "[0, 1]"
inline std::string bracketed(std::span<const int64_t> xs) {
  Text t;
  t << '[';
  for (size_t i = 0; i < xs.size(); ++i) t << (i ? ", " : "") << xs[i];
  t << ']';
  return t.take();
}

// Appends one op line and declares its values to be the results, and the token after them.
inline void emit_results(EmitCtx& c, std::string_view text) {
  size_t n = c.out_types.size();
  bool token = !c.token().empty();
  size_t all = n + token;
  std::string name = c.line(text, static_cast<int>(all));
  auto nth = [&](size_t i) { return all == 1 ? name : cat(name, "#", i); };
  for (size_t i = 0; i < n; ++i) c.set_out(i, nth(i));
  if (token) c.set_token(nth(n));
}

// The op as a call of a function that holds the graph; `attributes` of the call, " {...}". One that
// is `kNoInline` stays a function of its own: what it gives is computed once, and so is what it
// takes, where XLA would compute them again in each kernel that reads them.
inline constexpr std::string_view kNoInline =
    " {mhlo.frontend_attributes = {inlineable = \"false\"}}";
inline void emit_call(EmitCtx& c, const GraphRef& graph, std::string_view name,
                      std::string_view attributes = {}) {
  std::string callee = c.function(graph, name);
  emit_results(
      c, cat("func.call ", callee, "(", operand_list(c), ")", attributes, " : ", signature(c)));
}

}  // namespace weft
