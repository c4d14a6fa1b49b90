// Bits of integers and truth values: not, and, or, xor, shifts and counts.
#include <bit>

#include "ops/def/presets.h"
#include "ops/elementwise/family.h"

namespace weft {

namespace {

// The bits of an integer in its own width, without sign extension.
uint64_t in_width(const Literal& x) {
  int unused = 64 - info(x.dtype).bits;
  return x.lo << unused >> unused;
}

// The top bit is repeated, for unsigned dtypes too.
int64_t sign_extended(const Literal& x) {
  int unused = 64 - info(x.dtype).bits;
  return static_cast<int64_t>(x.lo << unused) >> unused;
}

Literal of_bits(DType dtype, uint64_t x) { return make_literal(dtype, static_cast<int64_t>(x)); }

// All bits set: -1, the largest unsigned number, or true.
bool is_all_ones(SimplifyCtx& c, Val v) {
  std::optional<Literal> x = c.splat(v);
  if (!x) return false;
  return is_bool(x->dtype) ? x->as_bool() : *x == make_literal(x->dtype, int64_t{-1});
}

void register_not(OpRegistry& r) {
  auto negated_compare = [](SimplifyCtx& c) -> Vals {
    struct Opposite {
      const OpDef& compare;
      Val (*op)(Val, Val);
      bool with_nan;  // the two are opposites for unordered operands too
    };
    static const Opposite kOpposites[] = {
        {op_named<"eq">(), ne, true},  {op_named<"ne">(), eq, true},
        {op_named<"lt">(), ge, false}, {op_named<"ge">(), lt, false},
        {op_named<"le">(), gt, false}, {op_named<"gt">(), le, false}};
    for (const Opposite& o : kOpposites) {
      const Op* op = c.producer(c.x(0), o.compare);
      if (!op) continue;
      Val lhs = c.operand(*op, 0), rhs = c.operand(*op, 1);
      if (o.with_nan || !is_inexact(lhs.dtype())) return {o.op(lhs, rhs)};
    }
    return {};
  };
  r.add(unary({.name = "not",
               .doc = "Bitwise complement; logical negation of truth values.",
               .hlo = "stablehlo.not",
               .dtypes = kBoolsAndInts,
               .jvp_kind = JvpKind::kZero,
               .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                 uint64_t x = c.xs[0].lo;
                 return of_bits(c.out, is_bool(c.out) ? x == 0 : ~x);
               },
               .simplify = {{"not_not", "not(not(x)) -> x",
                             [](SimplifyCtx& c) -> Vals {
                               Val x = c.operand_of<"not">(c.x(0));
                               return x ? Vals{x} : Vals{};
                             }},
                            {"not_compare", "not(x == y) -> x != y; the orders for integers only",
                             negated_compare}}}));
}

void register_counts(OpRegistry& r) {
  r.add(unary({.name = "population_count",
               .doc = "The number of bits that are set, elementwise.",
               .hlo = "stablehlo.popcnt",
               .dtypes = kInts,
               .jvp_kind = JvpKind::kZero,
               .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                 return make_literal(c.out, int64_t{std::popcount(in_width(c.xs[0]))});
               }}));
  r.add(unary({.name = "clz",
               .doc = "The number of zero bits above the highest bit that is set, elementwise.",
               .hlo = "stablehlo.count_leading_zeros",
               .dtypes = kInts,
               .jvp_kind = JvpKind::kZero,
               .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                 int unused = 64 - info(c.out).bits;
                 return make_literal(c.out, int64_t{std::countl_zero(in_width(c.xs[0])) - unused});
               }}));
}

FoldRule fold_bits(uint64_t (*f)(uint64_t, uint64_t)) {
  return [f](const FoldCtx& c) -> std::optional<Literal> {
    return of_bits(c.out, f(c.xs[0].lo, c.xs[1].lo));
  };
}

Vals if_same(SimplifyCtx& c) {
  return c.x(0).value == c.x(1).value ? replacement(c, c.x(0)) : Vals{};
}

// x where the other operand has no bits set (or all of them).
Vals if_other_is(SimplifyCtx& c, bool all_ones) {
  Val x = c.beside([&](Val v) { return all_ones ? is_all_ones(c, v) : c.is_splat(v, 0); });
  return x ? replacement(c, x) : Vals{};
}

// The constant itself, if one operand has no bits set (or all of them).
Vals if_absorbed(SimplifyCtx& c, bool all_ones) {
  for (size_t i = 0; i < 2; ++i)
    if (all_ones ? is_all_ones(c, c.x(i)) : c.is_splat(c.x(i), 0)) return replacement(c, c.x(i));
  return {};
}

void register_logic(OpRegistry& r) {
  r.add(binary({.name = "and",
                .doc = "Bitwise and; logical and of truth values.",
                .hlo = "stablehlo.and",
                .dtypes = kBoolsAndInts,
                .jvp_kind = JvpKind::kZero,
                .fold = fold_bits([](uint64_t x, uint64_t y) { return x & y; }),
                .simplify = {{"and_self", "x & x -> x", if_same},
                             {"and_ones", "x & ~0 -> x",
                              [](SimplifyCtx& c) { return if_other_is(c, true); }},
                             {"and_zero", "x & 0 -> 0",
                              [](SimplifyCtx& c) { return if_absorbed(c, false); }}},
                .commutative = true}));
  r.add(binary(
      {.name = "or",
       .doc = "Bitwise or; logical or of truth values.",
       .hlo = "stablehlo.or",
       .dtypes = kBoolsAndInts,
       .jvp_kind = JvpKind::kZero,
       .fold = fold_bits([](uint64_t x, uint64_t y) { return x | y; }),
       .simplify = {{"or_self", "x | x -> x", if_same},
                    {"or_zero", "x | 0 -> x", [](SimplifyCtx& c) { return if_other_is(c, false); }},
                    {"or_ones", "x | ~0 -> ~0",
                     [](SimplifyCtx& c) { return if_absorbed(c, true); }}},
       .commutative = true}));
  r.add(binary({.name = "xor",
                .doc = "Bitwise exclusive or; inequality of truth values.",
                .hlo = "stablehlo.xor",
                .dtypes = kBoolsAndInts,
                .jvp_kind = JvpKind::kZero,
                .fold = fold_bits([](uint64_t x, uint64_t y) { return x ^ y; }),
                .simplify = {{"xor_zero", "x ^ 0 -> x",
                              [](SimplifyCtx& c) { return if_other_is(c, false); }},
                             {"xor_self", "x ^ x -> 0",
                              [](SimplifyCtx& c) -> Vals {
                                bool equal = c.x(0).value == c.x(1).value;
                                return equal ? Vals{full(c.b, c.out_types[0], 0)} : Vals{};
                              }}},
                .commutative = true}));
}

// A shift by the width or more leaves no bit of x.
void register_shift(OpRegistry& r, const char* name, const char* doc, std::string hlo,
                    Literal (*shift)(const Literal& x, int by),
                    Literal (*shift_out)(const Literal&)) {
  r.add(binary(
      {.name = name,
       .doc = doc,
       .hlo = std::move(hlo),
       .dtypes = kInts,
       .jvp_kind = JvpKind::kZero,
       .fold = [shift, shift_out](const FoldCtx& c) -> std::optional<Literal> {
         const Literal& x = c.xs[0];
         uint64_t by = in_width(c.xs[1]);
         bool all = by >= static_cast<uint64_t>(info(c.out).bits);
         return all ? shift_out(x) : shift(x, static_cast<int>(by));
       },
       .simplify = {{cat(name, "_zero"), cat(name, "(x, 0) -> x"), [](SimplifyCtx& c) -> Vals {
                       return c.is_splat(c.x(1), 0) ? replacement(c, c.x(0)) : Vals{};
                     }}}}));
}

void register_shifts(OpRegistry& r) {
  auto zero = [](const Literal& x) { return make_literal(x.dtype, int64_t{0}); };
  register_shift(
      r, "shift_left", "x * 2**y by shifting bits, elementwise.", "stablehlo.shift_left",
      [](const Literal& x, int by) { return of_bits(x.dtype, x.lo << by); }, zero);
  register_shift(
      r, "shift_right_logical", "Shifts bits down by y, filling with zeros.",
      "stablehlo.shift_right_logical",
      [](const Literal& x, int by) { return of_bits(x.dtype, in_width(x) >> by); }, zero);
  register_shift(
      r, "shift_right_arithmetic", "Shifts bits down by y, repeating the top bit.",
      "stablehlo.shift_right_arithmetic",
      [](const Literal& x, int by) { return make_literal(x.dtype, sign_extended(x) >> by); },
      [](const Literal& x) { return make_literal(x.dtype, sign_extended(x) >> 63); });
}

}  // namespace

void register_bitwise(OpRegistry& r) {
  register_not(r);
  register_counts(r);
  register_logic(r);
  register_shifts(r);
}

}  // namespace weft
