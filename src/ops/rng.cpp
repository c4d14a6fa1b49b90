// threefry2x32: the counter-based random bits that weft.random is made of (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011; 20 rounds).
#include "ops/axes.h"
#include "ops/families.h"
#include "ops/hlo_text.h"
#include "ops/presets.h"

namespace weft {
namespace {

constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
constexpr int64_t kParity = 0x1BD11BDA;
constexpr int kGroups = 5;  // of four rounds, with the key mixed in after each

Val xor_bits(Val x, Val y) { return apply1("xor", {x, y}); }

Val rotate_left(Val x, int n) {
  Val left = apply1("shift_left", {x, scalar_like(x, n)});
  return logical_or(left, apply1("shift_right_logical", {x, scalar_like(x, 32 - n)}));
}

Vals threefry(Val key0, Val key1, Val x0, Val x1) {
  Val parity = scalar_like(key0, static_cast<double>(kParity));
  Val keys[] = {key0, key1, xor_bits(xor_bits(key0, key1), parity)};
  x0 = x0 + keys[0];
  x1 = x1 + keys[1];
  for (int group = 0; group < kGroups; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x0 = x0 + x1;
      x1 = xor_bits(rotate_left(x1, rotation), x0);
    }
    x0 = x0 + keys[(group + 1) % 3];
    x1 = x1 + (keys[(group + 2) % 3] + static_cast<double>(group + 1));
  }
  return {x0, x1};
}

TypeRefs infer_threefry(const InferCtx& c) {
  for (TypeRef t : c.operands)
    if (t->dtype() != DType::kU32)
      c.fail(ErrorKind::kDtype, "expected uint32 operands; got ", operand_types(c));
  TypeRef out = make_type(DType::kU32, common_shape(c));
  return {out, out};
}

// A function, since a program draws many times and the rounds are a hundred ops.
void emit_threefry(EmitCtx& c) {
  GraphBuilder b;
  Vals xs;
  for (TypeRef t : c.in_types) xs.push_back({&b, b.input(t)});
  Values results;
  for (Val v : threefry(xs[0], xs[1], xs[2], xs[3]))
    results.push_back(broadcast_to(v, c.out_type()->shape()).value);
  std::string callee = c.function(b.finish(results), "threefry2x32");
  emit_results(c, cat("func.call ", callee, "(", operand_list(c), ") : ", signature(c)));
}

OpDef threefry2x32_op() {
  OpDef d;
  d.name = "threefry2x32";
  d.doc = "Two words of random bits from two words of key and two of counter, elementwise.";
  d.num_operands = 4;
  d.multiple_results = true;
  d.infer = infer_threefry;
  zero_tangent(d);
  d.batch = batch_elementwise;
  d.emit = emit_threefry;
  d.cost = [](const CostCtx& c) {
    return cost_elementwise(c, 4 * kGroups * 5 + 3 * kGroups, false);
  };
  return d;
}

}  // namespace

void register_rng(OpRegistry& r) { r.add(threefry2x32_op()); }

}  // namespace weft
