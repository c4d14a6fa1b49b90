// threefry2x32: the counter-based random bits that weft.random is made of (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011; 20 rounds). rng_bit_generator and rng_uniform: those
// that XLA makes.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/presets.h"
#include "ops/host/family.h"

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

// Up to so many words are made once on CPU, by a function that stays one. XLA would make them again
// in each kernel that needs them, the keys that they come from as well: of a few layers with
// dropout that is a third of the time to compile, and a fifth of that of a call. Of more words,
// writing and reading them again takes longer.
constexpr int64_t kKeptWords = 16384;

// A function, since a program draws many times and the rounds are a hundred ops.
void emit_threefry(EmitCtx& c) {
  GraphBuilder b;
  Vals xs;
  for (TypeRef t : c.in_types) xs.push_back({&b, b.input(t)});
  Values results;
  for (Val v : threefry(xs[0], xs[1], xs[2], xs[3]))
    results.push_back(broadcast_to(v, c.out_type()->shape()).value);
  bool stays = c.platform() == "cpu" && c.out_type()->num_elements() <= kKeptWords;
  emit_call(c, b.finish(results), "threefry2x32", stays ? kNoInline : std::string_view());
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
  // Its function stays one in kernels as well: of a few words the rounds, written out where they
  // are used, take twice as long.
  d.in_kernel = [](const CostCtx& c) {
    return is_same_in_kernel(c) && c.out_types[0]->num_elements() <= kKeptWords;
  };
  d.cost = [](const CostCtx& c) {
    return cost_elementwise(c, 4 * kGroups * 5 + 3 * kGroups, false);
  };
  return d;
}

constexpr std::string_view kAlgorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};

TypeRefs infer_rng_bit_generator(const InferCtx& c) {
  TypeRef key = c.in(0);
  if (key != make_type(DType::kU32, {4}) && key != make_type(DType::kU64, {2}))
    c.fail(ErrorKind::kType, "expected a key of type u32[4] or u64[2]; got ", key);
  int64_t algorithm = c.attr().integer("algorithm");
  if (algorithm < 0 || algorithm >= static_cast<int64_t>(std::size(kAlgorithms)))
    c.fail(ErrorKind::kValue, "expected algorithm between 0 and 2: default, threefry, philox; got ",
           "algorithm=", algorithm);
  DType dtype = c.attr().dtype("dtype");
  if (!contains(kUnsignedInts, dtype) || info(dtype).bits < 8)
    c.fail(ErrorKind::kDtype,
           "expected dtype to be uint8, uint16, uint32 or uint64; got dtype=", numpy_name(dtype));
  return {key, make_type(dtype, c.attr().ints("shape"))};
}

// One stream for all lanes, of the first key; only that key moves on.
void batch_rng_bit_generator(BatchCtx& c) {
  Val keys = c.at(0, 0);
  int64_t words = c.in_types[0]->dim(0);
  Val first = reshape(slice(keys, {0, 0}, {1, words}), {words});
  Vals made = apply(c.op, Vals{first},
                    c.attrs->with({{"shape", inserted(c.attr().ints("shape"), 0, c.size)}}));
  Vals all{expand_dim(made[0], 0)};
  if (c.size != 1) all.push_back(slice(keys, {1, 0}, {c.size, words}));
  c.result(concatenate(all, 0), 0);
  c.result(made[1], 0);
}

void emit_rng_bit_generator(EmitCtx& c) {
  TypeRef key = c.in_type(0), state = make_type(DType::kU64, {2});
  TypeRef pairs = make_type(DType::kU32, {2, 2});
  bool wide = key == state;
  std::string x = c.in(0);
  auto change = [&](std::string_view op, std::string_view from, TypeRef in, TypeRef out) {
    return c.line(cat(op, " ", from, " : (", mlir_type(in), ") -> ", mlir_type(out)));
  };
  if (!wide) {
    x = change("stablehlo.reshape", x, key, pairs);
    x = change("stablehlo.bitcast_convert", x, pairs, state);
  }
  size_t algorithm = static_cast<size_t>(c.attr().integer("algorithm"));
  std::string made = c.line(
      cat("stablehlo.rng_bit_generator ", x, ", algorithm = ", kAlgorithms[algorithm], " : (",
          mlir_type(state), ") -> (", mlir_type(state), ", ", mlir_type(c.out_type(1)), ")"),
      2);
  std::string next = cat(made, "#0");
  if (!wide) {
    next = change("stablehlo.bitcast_convert", next, state, pairs);
    next = change("stablehlo.reshape", next, pairs, key);
  }
  c.set_out(0, next);
  c.set_out(1, cat(made, "#1"));
}

OpDef rng_bit_generator_op() {
  OpDef d;
  d.name = "rng_bit_generator";
  d.doc = "The next key and random bits of an algorithm of XLA's, from a key.";
  d.attrs = {
      {"algorithm", AttrType::kInt}, {"dtype", AttrType::kDType}, {"shape", AttrType::kInts}};
  d.num_operands = 1;
  d.multiple_results = true;
  d.infer = infer_rng_bit_generator;
  zero_tangent(d);
  d.batch = batch_rng_bit_generator;
  d.emit = emit_rng_bit_generator;
  d.in_kernel = is_same_in_kernel;
  d.cost = [](const CostCtx& c) {  // ten rounds of four words by four
    Cost cost = cost_bytes(c);
    cost.flops = 10 * static_cast<double>(c.out_types[1]->num_bytes());
    return cost;
  };
  return d;
}

TypeRefs infer_rng_uniform(const InferCtx& c) {
  for (TypeRef t : c.operands) {
    if (t->rank() != 0)
      c.fail(ErrorKind::kShape, "expected scalars as bounds; got ", operand_types(c));
    if (!contains(kReals, t->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(kReals), "; got ", operand_types(c));
    if (t != c.in(0))
      c.fail(ErrorKind::kDtype, "expected bounds of one dtype; got ", operand_types(c));
  }
  return {make_type(c.in(0)->dtype(), c.attr().ints("shape"))};
}

// XLA draws floats of 16 bits or more, and integers of 32 or more.
DType drawn_as(DType dtype) {
  if (is_float(dtype)) return info(dtype).bits < 16 ? DType::kF32 : dtype;
  if (info(dtype).bits >= 32) return dtype;
  return is_signed_int(dtype) ? DType::kI32 : DType::kU32;
}

void emit_rng_uniform(EmitCtx& c) {
  TypeRef bound = c.in_type(0);
  DType dtype = drawn_as(bound->dtype());
  TypeRef scalar = scalar_type(dtype), drawn = with_dtype(c.out_type(), dtype);
  auto converted = [&](std::string x, TypeRef from, TypeRef to) {
    if (from == to) return x;
    return c.line(cat("stablehlo.convert ", x, " : (", mlir_type(from), ") -> ", mlir_type(to)));
  };
  std::string low = converted(c.in(0), bound, scalar), high = converted(c.in(1), bound, scalar);
  const Dims& sizes = c.out_type()->shape();
  std::string dims_type = cat("tensor<", sizes.size(), "xi64>");
  std::string shape = c.line(cat("stablehlo.constant dense<", bracketed(sizes), "> : ", dims_type));
  std::string type = mlir_type(scalar);
  std::string x =
      c.line(cat("stablehlo.rng ", low, ", ", high, ", ", shape, ", distribution = UNIFORM : (",
                 type, ", ", type, ", ", dims_type, ") -> ", mlir_type(drawn)));
  c.set_out(0, converted(x, drawn, c.out_type()));
}

// Numbers that differ from run to run: an effect, so that two of them are not taken for one.
OpDef rng_uniform_op() {
  OpDef d;
  d.name = "rng_uniform";
  d.doc = "Random numbers between two bounds, others at each run.";
  d.attrs = {{"shape", AttrType::kInts}};
  d.num_operands = 2;
  d.effects = kUnordered;
  d.infer = infer_rng_uniform;
  d.emit = emit_rng_uniform;
  d.cost = [](const CostCtx& c) { return cost_elementwise(c, 10, false); };
  return d;
}

}  // namespace

void register_rng(OpRegistry& r) {
  r.add(threefry2x32_op());
  r.add(rng_bit_generator_op());
  r.add(rng_uniform_op());
}

}  // namespace weft
