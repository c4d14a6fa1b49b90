// A handful of ops for testing the graph core without the real ones.
#pragma once

#include "weft/builder.h"
#include "weft/format.h"
#include "weft/op.h"

namespace weft::test {

// neg x: any type.   add x y: equal types, or a scalar with an array.
extern const OpInfo kNeg, kAdd;
// iota[dimension=0]; dtype and shape are read off the result.
extern const OpInfo kIota;
// split[axis=0 sizes=(1, 2)] x: one result per size.
extern const OpInfo kSplit;
// concatenate[dimension=0] x...
extern const OpInfo kConcatenate;
// jit[name=f jaxpr={ ... }] x...: name is cosmetic.
extern const OpInfo kJit;
// cond[branches=({ ... } { ... })] i x...
extern const OpInfo kCond;
// log[tag=...] x: no results, ordered.  tick: no results, no attributes, unordered.
extern const OpInfo kLog, kTick;
// One attribute of each type; no operands, one f32[] result.
extern const OpInfo kEverything;

const OpInfo* find_test_op(std::string_view name);
inline GraphRef parse_test(std::string_view text) { return parse(text, find_test_op); }

inline TypeRef f32(std::initializer_list<int64_t> shape = {}) {
  return make_type(DType::kF32, Dims(shape));
}
inline Value add_op(Builder& b, const OpInfo& op, std::initializer_list<Value> operands,
                    std::initializer_list<NamedAttr> attrs = {}) {
  Values results = b.add(op, std::span<const Value>(operands.begin(), operands.size()),
                         AttrRecord::make(op.name, op.attrs, attrs));
  return results.empty() ? Value{} : results[0];
}

}  // namespace weft::test
