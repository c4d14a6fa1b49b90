// Running reductions along an axis: cumsum, cumprod, cummax, cummin, cumlogsumexp.
//
// As reductions of windows that reach from one end to each place they are one op, of which XLA
// makes passes along windows of 16: each combines an element 16 times, and none of it in vectors.
// On CPU a loop combines each element once and is compiled faster, but goes from one end to the
// other; where that takes long or rounding adds up, blocks come in between.
#include <cmath>

#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/def/symbols.h"
#include "ops/reduce/family.h"

namespace weft {
namespace {

struct Cumulative {
  std::string name;
  std::string doc;
  DTypeSet dtypes;
  Val (*combine)(Val, Val);
  Literal (*identity)(DType);
  bool is_dear = false;  // combining two elements takes far longer than reading them
  bool rounds = true;    // combining two elements rounds
};

// What is run through in float32, so that rounding does not add up; and the difference of two such
// numbers may be beyond their range.
bool is_narrow_float(DType d) { return is_float(d) && info(d).bits < 32; }

int axis_of(const AttrRecord& attrs) { return static_cast<int>(attrs.integer("axis")); }

TypeRefs infer_cumulative(const InferCtx& c, DTypeSet dtypes) {
  TypeRef x = c.in(0);
  int64_t axis = c.attr().integer("axis");
  if (!contains(dtypes, x->dtype()))
    c.fail(ErrorKind::kDtype, "expected ", describe(dtypes), "; got ", operand_types(c));
  if (axis < 0 || axis >= x->rank())
    c.fail(ErrorKind::kValue, "expected axis between 0 and ", x->rank() - 1, "; got axis=", axis,
           " (", operand_types(c), ")");
  return {x};
}

// Part of an axis: every `step`-th element from `start` on, `size` in all.
Val part(Val x, int axis, int64_t start, int64_t size, int64_t step = 1) {
  Dims from(x.shape().size()), to = x.shape(), steps(x.shape().size(), 1);
  size_t i = static_cast<size_t>(axis);
  from[i] = start;
  to[i] = size == 0 ? start : start + (size - 1) * step + 1;
  steps[i] = step;
  return slice(x, from, to, steps);
}

// Elements `low` later, with `gap` places between them, on an axis of length n; zeros elsewhere.
Val spread(Val x, int axis, int64_t low, int64_t gap, int64_t n) {
  std::vector<Dims> config(x.shape().size(), Dims{0, 0, 0});
  int64_t size = x.type()->dim(axis);
  config[static_cast<size_t>(axis)] = {low, n - low - size - std::max<int64_t>(size - 1, 0) * gap,
                                       gap};
  return pad(x, scalar_like(x, 0), config);
}

// The element before each along an axis; `first` before the first.
Val previous(Val x, int axis, Val first) {
  std::vector<Dims> config(x.shape().size(), Dims{0, 0, 0});
  config[static_cast<size_t>(axis)] = {1, -1, 0};
  return pad(x, first, config);
}

// s[i] = a[i] s[i-1] + b[i] along an axis, s[-1] = 0; linear in b. Solves the recurrence of pairs
// of steps, of half the length, then fills in the steps between.
Val recurrence(Val a, Val b, int axis) {
  int64_t n = b.type()->dim(axis);
  if (n <= 1) return b;
  int64_t half = n / 2, evens = n - half;
  Val a_even = part(a, axis, 0, evens, 2), b_even = part(b, axis, 0, evens, 2);
  Val a_odd = part(a, axis, 1, half, 2), b_odd = part(b, axis, 1, half, 2);
  Val odd = recurrence(a_odd * part(a_even, axis, 0, half),
                       add_any(a_odd * part(b_even, axis, 0, half), b_odd), axis);
  Val before = spread(part(odd, axis, 0, evens - 1), axis, 1, 0, evens);
  Val even = add_any(a_even * before, b_even);
  return add_any(spread(even, axis, 0, 1, n), spread(odd, axis, 1, 1, n));
}

// Tangents of the form s[i] = a[i] s[i-1] + slope[i] t[i]. `step` gives a and slope from x, y and
// the y before, all in the direction of the accumulation.
struct Step {
  Val a, slope;
};
JvpArgRule jvp_by_recurrence(Step (*step)(Val x, Val y, Val before), Literal (*identity)(DType)) {
  return [step, identity](const JvpArgCtx& c) {
    int axis = axis_of(c.attr());
    need_numbers(c.op, {&c.in_types[0]->shape()[static_cast<size_t>(axis)], 1});
    Dims reversed = c.attr().boolean("reverse") ? Dims{axis} : Dims{};
    DType dtype = c.out_types[0]->dtype();
    auto in_order = [&](Val v) {
      return rev(is_narrow_float(dtype) ? convert(v, DType::kF32) : v, reversed);
    };
    Val x = in_order(c.x(0)), y = in_order(c.y());
    Val first = c.val(c.b.literal(identity(x.dtype())));
    auto [a, slope] = step(x, y, previous(y, axis, first));
    Val t = recurrence(a, slope * in_order(c.t()), axis);
    return rev(convert(t, dtype), reversed);
  };
}

Step step_of_product(Val x, Val, Val before) { return {x, before}; }

// Of equals each gets half; beside a NaN neither gets anything.
Step step_of_extreme(Val x, Val y, Val before) {
  Val half = broadcast_to(scalar_like(x, 0.5), x.shape());
  Val share = select(eq(x, before), half, convert(eq(x, y), x.dtype()));
  return {select(eq(y, y), 1.0 - share, zeros_like(y)), share};
}

Step step_of_logsumexp(Val x, Val y, Val before) {
  // -inf - -inf: nothing has been added up yet.
  auto ratio = [&](Val part) { return select(eq(part, y), zeros_like(y), part - y); };
  return {exp(ratio(before)), exp(ratio(x))};
}

// The same number but for whole turns, with its angle between -pi and pi.
Val principal(Val log) {
  Val angle = imag(log);
  Val turns = floor(angle * (0.5 / M_PI) + 0.5);
  return complex(real(log), angle - turns * (2 * M_PI));
}

Val log_add_exp(Val x, Val y) {
  Val first = is_complex(x.dtype()) ? gt(real(x), real(y)) : gt(x, y);
  Val d = select(first, y - x, x - y);
  Val sum = select(first, x, y) + log1p(exp(d));
  sum = select(ne(d, d), x + y, sum);  // equal infinities, nan
  return is_complex(x.dtype()) ? principal(sum) : sum;
}

Literal log_of_zero(DType d) { return is_complex(d) ? make_literal(d, -kInfinity) : lowest(d); }

std::string emit_windows(EmitCtx& c, const std::string& x, TypeRef type, const Cumulative& op,
                         size_t axis, bool reverse) {
  int64_t n = type->shape()[axis];
  Dims window(type->shape().size(), 1);
  window[axis] = n;
  Text padding;
  for (size_t i = 0; i < type->shape().size(); ++i) {
    Dims edges{0, 0};
    if (i == axis) edges[reverse ? 1 : 0] = n - 1;
    padding << (i ? ", " : "") << bracketed(edges);
  }
  GraphBuilder b;
  Val left{&b, b.input(scalar_type(type->dtype()))}, right{&b, b.input(scalar_type(type->dtype()))};
  Value combined = op.combine(left, right).value;
  std::string region = c.region(*b.finish({&combined, 1}), "stablehlo.return");
  std::string init = c.constant(op.identity(type->dtype()), {});
  TypeRef in[] = {type, scalar_type(type->dtype())}, out[] = {type};
  return c.line(cat("\"stablehlo.reduce_window\"(", x, ", ", init, ") <{window_dimensions = ",
                    mlir_ints(window), ", padding = dense<[", padding.view(), "]> : tensor<",
                    type->rank(), "x2xi64>}> (", region, ") : ", signature(in, out)));
}

std::string emit_loop(EmitCtx& c, const std::string& x, TypeRef type, const Cumulative& op,
                      size_t axis, bool reverse) {
  GraphBuilder b, body;
  int at = static_cast<int>(axis);
  Val rows = move_axis({&b, b.input(type)}, at, 0);
  TypeRef row = with_shape(type, drop_axes(type->shape(), {at}));
  Val before{&body, body.input(row)}, next{&body, body.input(row)};
  Value combined = op.combine(before, next).value, outputs[] = {combined, combined};
  Val first = broadcast_to({&b, b.literal(op.identity(type->dtype()))}, row->shape());
  Val operands[] = {first, rows};
  Vals made = scan_over(b, operands, body.finish(outputs),
                        {.length = type->dim(at), .num_carry = 1, .reverse = reverse});
  Value y = move_axis(made[1], 0, at).value;
  std::string arg[] = {x};
  return c.inline_graph(*b.finish({&y, 1}), arg)[0];
}

std::string emit_running(EmitCtx& c, const std::string& x, TypeRef type, const Cumulative& op,
                         size_t axis, bool reverse);

// Running sums inside of blocks, each place of all blocks at once; those of the sums of whole
// blocks; and these added to the blocks behind.
constexpr int64_t kBlock = 8;

std::string emit_blocks(EmitCtx& c, const std::string& operand, TypeRef type, const Cumulative& op,
                        size_t along, bool reverse) {
  int axis = static_cast<int>(along);
  int64_t n = type->dim(axis), blocks = (n + kBlock - 1) / kBlock;
  size_t k = static_cast<size_t>(kBlock), last = reverse ? 0 : k - 1;
  auto at_edge = [&](Val x, int64_t low, int64_t high) {
    std::vector<Dims> config(x.shape().size(), Dims{0, 0, 0});
    config[static_cast<size_t>(axis)] = {low, high, 0};
    return pad(x, {x.builder, x.builder->literal(op.identity(x.dtype()))}, config);
  };

  GraphBuilder first;
  Val x{&first, first.input(type)};
  if (n % kBlock != 0) x = at_edge(x, 0, blocks * kBlock - n);
  Values sums(k);  // by place in a block
  Val sum;
  for (size_t i = 0; i < k; ++i) {
    size_t place = reverse ? k - 1 - i : i;
    Val next = part(x, axis, static_cast<int64_t>(place), blocks, kBlock);
    sum = sum ? op.combine(sum, next) : next;
    sums[place] = sum.value;
  }
  TypeRef whole = sum.type();
  std::string arg[] = {operand};
  std::vector<std::string> args = c.inline_graph(*first.finish(sums), arg);
  args.push_back(emit_running(c, args[last], whole, op, along, reverse));

  GraphBuilder second;
  Vals parts;
  for (size_t i = 0; i <= k; ++i) parts.push_back({&second, second.input(whole)});
  Val before = reverse ? at_edge(parts[k], -1, 1) : at_edge(parts[k], 1, -1);
  parts.pop_back();
  for (Val& p : parts) p = expand_dim(op.combine(before, p), axis + 1);
  Dims shape = type->shape();
  shape[along] = blocks * kBlock;
  Val y = part(reshape(concatenate(parts, axis + 1), shape), axis, 0, n);
  return c.inline_graph(*second.finish({&y.value, 1}), args)[0];
}

// What is best on CPU, measured: windows of up to 16 are one kernel, and loops lose to blocks where
// there are more than about a thousand steps. Blocks are three times as much to compile.
constexpr int64_t kOneWindow = 16, kLongestLoop = 1024, kManyElements = 1 << 16;

std::string emit_running(EmitCtx& c, const std::string& x, TypeRef type, const Cumulative& op,
                         size_t axis, bool reverse) {
  int64_t n = type->shape()[axis];
  bool is_short = n <= kOneWindow;
  // What is split along the axis would be gathered for a loop.
  bool in_loop = n <= kLongestLoop && (!is_short || op.is_dear) && !c.has_several_devices();
  bool in_blocks = !is_short && (op.is_dear || type->num_elements() >= kManyElements);
  if (c.platform() == "cpu" && in_loop) return emit_loop(c, x, type, op, axis, reverse);
  if (c.platform() == "cpu" && in_blocks) return emit_blocks(c, x, type, op, axis, reverse);
  return emit_windows(c, x, type, op, axis, reverse);
}

void emit_cumulative(EmitCtx& c, const Cumulative& op) {
  TypeRef x = c.in_type(0);
  if (x->num_elements() == 0) return c.set_out(0, c.in(0));
  if (op.rounds && is_narrow_float(x->dtype())) {
    return emit_as(c, [&](const Vals& xs) {
      Val wide = apply1(op.name, {convert(xs[0], DType::kF32)},
                        {{"axis", c.attr().at("axis")}, {"reverse", c.attr().at("reverse")}});
      return convert(wide, x->dtype());
    });
  }
  c.set_out(0, emit_running(c, c.in(0), x, op, static_cast<size_t>(axis_of(c.attr())),
                            c.attr().boolean("reverse")));
}

OpDef cumulative_op(Cumulative op) {
  OpDef d;
  d.name = op.name;
  d.doc = op.doc;
  d.attrs = {{"axis", AttrType::kInt}, {"reverse", AttrType::kBool}};
  d.num_operands = 1;
  d.infer = [dtypes = op.dtypes](const InferCtx& c) { return infer_cumulative(c, dtypes); };
  d.place = [](PlaceCtx& c) { place_alike(c, {axis_of(c.attr())}); };
  d.batch = [](BatchCtx& c) {
    Val xs[] = {c.x(0)};
    int64_t axis = shifted(c.attr().integer("axis"), c.dim(0));
    c.apply(xs, c.attrs->with({{"axis", axis}}), c.dim(0));
  };
  d.simplify = {{op.name + "_one", "along an axis of size 1 -> x", [](SimplifyCtx& c) {
                   return c.in_types[0]->dim(axis_of(c.attr())) == 1 ? Vals{c.x(0)} : Vals{};
                 }}};
  d.cost = [](const CostCtx& c) { return cost_elementwise(c, 2, false); };
  d.emit = [op](EmitCtx& c) { emit_cumulative(c, op); };
  d.in_kernel = is_same_in_kernel;
  return d;
}

OpDef with_jvp(OpDef d, JvpArgRule rule) {
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {std::move(rule)};
  return d;
}

void transpose_cumsum(TransposeCtx& c) {
  bool reverse = !c.attr().boolean("reverse");
  c.add(0, apply(c.op, Vals{c.ct()}, c.attrs->with({{"reverse", reverse}}))[0]);
}

}  // namespace

void register_cumulative(OpRegistry& r) {
  OpDef sum = cumulative_op({"cumsum", "Running sum along an axis.", kNumbers, add, zero});
  r.add(linear(sum, transpose_cumsum));
  r.add(with_jvp(cumulative_op({"cumprod", "Running product along an axis.", kNumbers, mul, one}),
                 jvp_by_recurrence(step_of_product, one)));
  r.add(with_jvp(cumulative_op({"cummax", "Running maximum along an axis.", kAnyDType, max, lowest,
                                false, false}),
                 jvp_by_recurrence(step_of_extreme, lowest)));
  r.add(with_jvp(cumulative_op({"cummin", "Running minimum along an axis.", kAnyDType, min, highest,
                                false, false}),
                 jvp_by_recurrence(step_of_extreme, highest)));
  OpDef logsumexp = cumulative_op({"cumlogsumexp", "Running log of the sum of exponentials.",
                                   kInexact, log_add_exp, log_of_zero, true});
  logsumexp.simplify.clear();  // of -0 alone it is 0
  r.add(with_jvp(std::move(logsumexp), jvp_by_recurrence(step_of_logsumexp, log_of_zero)));
}

}  // namespace weft
