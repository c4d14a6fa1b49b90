// What the drivers share: the context of a rule for one op of the source graph, errors that carry
// the user's line, and the keys under which results are kept on the graph they came from.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "ops/def/walk.h"
#include "weft/custom_rules.h"
#include "weft/error.h"
#include "weft/op_def.h"
#include "weft/transforms.h"

namespace weft {

// Runs f; an error thrown in it gets the line that `op` stands for.
template <typename F>
void at_op(const Op& op, F&& f) {
  auto text = [&](const Error& error) {
    return op.loc == kNoLoc ? std::string(error.what())
                            : cat(error.what(), "\n  at ", loc_text(op.loc));
  };
  try {
    f();
  } catch (const ClosedOverError& error) {
    throw ClosedOverError(text(error));
  } catch (const Error& error) { throw Error(error.kind(), text(error)); }
}

// Where an op stands, or `outer` if that is not known; marked as that of an op derived from it.
inline Loc loc_or(const Op& op, Loc outer, Loc mark = 0) {
  Loc loc = op.loc != kNoLoc ? op.loc : outer;
  return loc == kNoLoc ? loc : loc | mark;
}

[[noreturn]] inline void missing_rule(const OpInfo& op, std::string_view what) {
  fail(ErrorKind::kNotImplemented, "[", op.name, "] has no rule for ", what);
}

inline RuleCtx rule_ctx(Builder& b, const Graph& graph, const Op& op,
                        std::span<const Value> operands, std::span<const TypeRef> in_types) {
  return {b, def(*op.info), op.attrs, operands, in_types, graph.result_types(op), &transforms()};
}

inline bool is_differentiable(TypeRef type) { return is_inexact(type->dtype()); }

inline void check_mask(std::string_view transform, std::string_view what, size_t size,
                       size_t expected) {
  if (size != expected) {
    fail(ErrorKind::kInternal, transform, " expected one entry per ", what, ", ", expected,
         "; got ", size);
  }
}

// Parts of a cache key.
inline void append_key(std::string& key, const Mask& mask) {
  key += ':';
  for (bool m : mask) key += m ? '1' : '0';
}
inline void append_key(std::string& key, const BatchDims& dims) {
  key += ':';
  for (int d : dims) key += cat(d, ',');
}

}  // namespace weft
