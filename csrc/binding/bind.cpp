// bind(), element-wise functions, promotion and broadcasting.

#include "binding/bind.h"

#include "arrays/array.h"
#include "conversions/location.h"
#include "graphs/attrs.h"
#include "references/hooks.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

const OpDef& op_convert() {
  static const OpDef& op = registry().get("convert_element_type");
  return op;
}
const OpDef& op_broadcast() {
  static const OpDef& op = registry().get("broadcast_in_dim");
  return op;
}
const OpDef& op_ne() {
  static const OpDef& op = registry().get("ne");
  return op;
}

AttrsRef convert_attrs(DType dtype, bool weak) {
  return AttrRecord::make("convert_element_type", op_convert().attrs,
                          {{"new_dtype", dtype}, {"weak_type", weak}});
}

// "f32[3], i32[4]"
std::string types_text(std::span<const Operand> xs) {
  Text t;
  for (size_t i = 0; i < xs.size(); ++i) t << (i ? ", " : "") << xs[i].type;
  return t.take();
}

// Whether strict promotion lets two dtypes meet: a Python number goes with arrays of its kind, or
// of a kind that holds it, and keeps their dtype.
bool promotes_strictly(PromotionType a, PromotionType b) {
  auto rank = [](DType d) { return is_bool(d) ? 0 : is_integer(d) ? 1 : is_float(d) ? 2 : 3; };
  if (is_bool(a.dtype) || is_bool(b.dtype)) return false;
  if (a.weak && b.weak) return true;
  if (a.weak == b.weak) return false;
  if (b.weak) std::swap(a, b);
  return rank(a.dtype) <= rank(b.dtype);
}

// The value converted to `dtype` (kBool: by comparison with zero).
Value converted(TraceContext& c, const Operand& x, DType dtype, Promotion promotion) {
  if (promotion == Promotion::kBool && x.type->dtype() != DType::kBool && !is_python_int(x)) {
    DType own = x.type->dtype();
    Value v = value_in(c, x, own);
    Value args[] = {v, c.builder.literal(make_literal(own, int64_t{0}))};
    return record(c, op_ne(), args, nullptr)[0];
  }
  Value v = value_in(c, x, dtype);
  if (c.builder.type(v)->dtype() == dtype) return v;
  return record(c, op_convert(), {&v, 1}, convert_attrs(dtype, false))[0];
}

Value broadcasted(TraceContext& c, Value v, const Dims& shape) {
  const Dims& own = c.builder.type(v)->shape();
  if (own == shape) return v;
  Dims dims;
  for (size_t i = 0; i < own.size(); ++i)
    dims.push_back(static_cast<int64_t>(shape.size() - own.size() + i));
  AttrsRef attrs = AttrRecord::make("broadcast_in_dim", op_broadcast().attrs,
                                    {{"shape", shape}, {"broadcast_dimensions", dims}});
  return record(c, op_broadcast(), {&v, 1}, attrs)[0];
}

bool has_bools(const Operand& x) { return is_bool(x.type->dtype()); }

// Whether an op gives weakly typed results: if all its operands are weak (bools beside numbers,
// such as the predicate of a select, do not count) and no attribute names the result's dtype. A
// preferred accumulation dtype is a preference only.
bool gives_weak(std::span<const Operand> xs, const AttrsRef& attrs) {
  for (size_t i = 0; attrs && i < attrs->values().size(); ++i) {
    if (!std::holds_alternative<DType>(attrs->values()[i])) continue;
    if (attrs->schema().specs()[i].name == "preferred_element_type") continue;
    return attrs->schema().find("weak_type") >= 0 && attrs->boolean("weak_type");
  }
  bool only_bools = std::all_of(xs.begin(), xs.end(), has_bools);
  return !xs.empty() && std::all_of(xs.begin(), xs.end(), [&](const Operand& x) {
    return x.weak || (has_bools(x) && !only_bools);
  });
}

Objects wrap(const ContextRef& c, const Values& values, bool weak) {
  Objects out;
  out.reserve(values.size());
  for (Value v : values) out.push_back(Ref::steal(make_tracer(c, v, weak)));
  return out;
}

// dtype that a Python scalar among `xs` takes when an op is bound as it stands.
DType adapt(const Operand& x, std::span<const Operand> xs) {
  if (x.kind != OperandKind::kScalar || !x.weak) return x.type->dtype();
  PromotionType own{x.type->dtype(), true};
  for (const Operand& y : xs) {
    if (y.weak && y.kind == OperandKind::kScalar) continue;
    std::optional<PromotionType> p = promote(own, {y.type->dtype(), false});
    if (p && p->dtype == y.type->dtype()) return p->dtype;
  }
  return own.dtype;
}

}  // namespace

PyObject* to_list(Objects results) {
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), results[i].release());
  return list.release();
}

// Strict promotion refuses some dtypes, where `is_users` holds.
static PromotionType promoted(std::span<const Operand> xs, Promotion policy, std::string_view op,
                              bool (*is_users)()) {
  if (policy == Promotion::kBool) {
    // As in jax: of bools, only one alone keeps its mark; of numbers, only those without axes, and
    // beside them Python's bools count as weak.
    if (std::all_of(xs.begin(), xs.end(), has_bools))
      return {DType::kBool, xs.size() == 1 && xs[0].weak};
    return {DType::kBool, std::all_of(xs.begin(), xs.end(), [](const Operand& x) {
              bool is_python_bool = x.kind == OperandKind::kScalar && has_bools(x);
              return is_python_bool || (x.weak && x.type->shape().empty());
            })};
  }
  std::optional<PromotionType> common;
  for (const Operand& x : xs) {
    PromotionType p{x.type->dtype(), x.weak};
    if (!common) {
      common = p;
      continue;
    }
    if (policy == Promotion::kLax) {
      if (common->dtype != p.dtype)
        raise_error("DTypeError", "[", op, "] expected operands of one dtype; got ", types_text(xs),
                    "\n  weft.numpy promotes dtypes, also of Python numbers.");
      common->weak = common->weak && p.weak;
      continue;
    }
    std::optional<PromotionType> both = promote(*common, p);
    if (common->dtype != p.dtype && is_on(kStrictPromotion) && !promotes_strictly(*common, p) &&
        is_users())
      raise_error("TypePromotionError", "[", op,
                  "] expected operands of one dtype, as promotion is strict "
                  "(weft_numpy_dtype_promotion); got ",
                  types_text(xs), "\n  Convert one of them explicitly with .astype(...).");
    if (!both) {
      raise_error("TypePromotionError", "[", op,
                  "] expected dtypes with an implicit promotion; got ", types_text(xs),
                  "\n  Convert one of them explicitly with .astype(...).");
    }
    common = both;
  }
  // Arrays made with x64 keep their dtype without it, until they meet others.
  bool alike = std::all_of(xs.begin(), xs.end(), [&](const Operand& x) {
    return x.type->dtype() == xs[0].type->dtype();
  });
  bool x64 = alike || x64_enabled();
  if (policy == Promotion::kInexact) common = to_inexact(*common, x64);
  common->dtype = canonicalize(common->dtype, x64);
  return *common;
}

PromotionType common_dtype(std::span<const Operand> xs, Promotion policy, std::string_view op) {
  return promoted(xs, policy, op, [] { return works_for_user(); });
}

void check_ranks(std::span<const Operand> xs, std::string_view op, bool (*is_users)(),
                 std::span<const int64_t> cores) {
  uint64_t mode = kRankPromotion.of(settings());
  if (mode == 0) return;
  std::optional<int64_t> rank;
  bool alike = true;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].type->rank() == 0) continue;
    int64_t own = static_cast<int64_t>(xs[i].type->rank()) - (cores.empty() ? 0 : cores[i]);
    alike &= own == rank.value_or(own);
    rank = own;
  }
  if (alike || !is_users()) return;
  constexpr uint64_t kWarn = 1;
  std::string what = cat("[", op, "] ", mode == kWarn ? "aligns" : "expected",
                         mode == kWarn ? " operands of different ranks: "
                                       : " operands of one rank, or without axes; got ",
                         types_text(xs), " (weft_numpy_rank_promotion)");
  if (mode == kWarn) {
    notice("warn", {to_text(what)});
  } else {
    raise_error("ShapeError", what, "\n  Reshape one of them, as with x[None, :].");
  }
}

Dims common_shape(std::span<const Operand> xs, std::string_view op) {
  size_t rank = 0;
  for (const Operand& x : xs) rank = std::max(rank, x.type->shape().size());
  Dims out(rank, 1);
  for (const Operand& x : xs) {
    const Dims& own = x.type->shape();
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t& d = out[rank - own.size() + i];
      if (own[i] == d || own[i] == 1) continue;
      if (d != 1)
        fail(ErrorKind::kShape, "[", op, "] expected shapes that broadcast together; got ",
             types_text(xs));
      d = own[i];
    }
  }
  return out;
}

// Of weft.lax: scalars go with any shape; the other operands have one rank, and along each axis one
// size or 1.
static Dims common_lax_shape(std::span<const Operand> xs, std::string_view op) {
  const Dims* full = nullptr;
  for (const Operand& x : xs) {
    const Dims& own = x.type->shape();
    if (own.empty()) continue;
    if (full && full->size() != own.size())
      fail(ErrorKind::kShape, "[", op, "] expected operands of one rank, or scalars; got ",
           types_text(xs), "\n  weft.numpy aligns axes of operands of different ranks.");
    full = &own;
  }
  return common_shape(xs, op);
}

static bool is_ordering(const OpDef& op) {
  static const OpDef* const ops[] = {&registry().get("lt"), &registry().get("le"),
                                     &registry().get("gt"), &registry().get("ge")};
  return std::find(std::begin(ops), std::end(ops), &op) != std::end(ops);
}

// weft.numpy orders complex numbers by real, then by imaginary part.
static Value compare_by_parts(TraceContext& c, const OpDef& op, const Values& xs) {
  static const OpDef& real = registry().get("real");
  static const OpDef& imag = registry().get("imag");
  static const OpDef& select = registry().get("select_n");
  auto part = [&](const OpDef& part_of) {
    return Values{record(c, part_of, {&xs[0], 1}, nullptr)[0],
                  record(c, part_of, {&xs[1], 1}, nullptr)[0]};
  };
  Values reals = part(real), imags = part(imag);
  Value cases[] = {record(c, op_ne(), reals, nullptr)[0], record(c, op, imags, nullptr)[0],
                   record(c, op, reals, nullptr)[0]};
  return record(c, select, cases, nullptr)[0];
}

// Records the function, given the dtype that its operands promote to.
static Ref record_elementwise(const ContextRef& c, const Elementwise& f,
                              std::span<const Operand> xs, const AttrsRef& attrs,
                              PromotionType common) {
  Values values;
  for (const Operand& x : xs) values.push_back(converted(*c, x, common.dtype, f.promotion));
  if (xs.size() > 1) {
    Dims shape = f.promotion == Promotion::kLax ? common_lax_shape(xs, f.op->name)
                                                : common_shape(xs, f.op->name);
    for (Value& v : values)
      if (c->builder.type(v)->rank() > 0) v = broadcasted(*c, v, shape);
  }
  bool use_bool_op = f.bool_op && common.dtype == DType::kBool;
  bool by_parts =
      f.promotion == Promotion::kNumpy && is_complex(common.dtype) && is_ordering(*f.op);
  Value result = by_parts ? compare_by_parts(*c, *f.op, values)
                          : record(*c, use_bool_op ? *f.bool_op : *f.op, values, attrs)[0];
  return Ref::steal(make_tracer(c, result, common.weak));
}

// The limit of an integer dtype, above or below, as a Python int.
static Ref limit_of(DType dtype, int side) {
  int digits = info(dtype).bits - is_signed_int(dtype);
  uint64_t highest = ~uint64_t{0} >> (64 - digits);
  if (side > 0) return Ref::checked(PyLong_FromUnsignedLongLong(highest));
  return Ref::checked(
      PyLong_FromLongLong(is_signed_int(dtype) ? -static_cast<int64_t>(highest) - 1 : 0));
}

// A comparison of integers with a Python int that their dtype does not hold has one answer for all
// of them, as in NumPy. So has a comparison with the limit of the dtype on that side. Null if no
// operand, or both, are such an int.
static Ref compare_beyond(const OpDef& op, std::span<const Operand> xs, DType dtype) {
  static const OpDef* const ops[] = {&registry().get("lt"), &registry().get("le"),
                                     &registry().get("gt"), &registry().get("ge"),
                                     &registry().get("eq"), &registry().get("ne")};
  auto found = std::find(std::begin(ops), std::end(ops), &op);
  if (found == std::end(ops)) return Ref();
  int sides[] = {0, 0};
  for (size_t i : {0, 1})
    if (is_python_int(xs[i])) sides[i] = side_of(xs[i], dtype);
  if ((sides[0] != 0) == (sides[1] != 0)) return Ref();
  size_t beyond = sides[0] ? 0 : 1;
  bool is_first_less = sides[0] < 0 || sides[1] > 0;
  auto which = found - std::begin(ops);
  bool answer = which < 2 ? is_first_less : which < 4 ? !is_first_less : which == 5;
  // The address of each is part of the key under which eager programs are cached.
  static const Elementwise certain[] = {{ops[0], Promotion::kNumpy},
                                        {ops[1], Promotion::kNumpy},
                                        {ops[2], Promotion::kNumpy},
                                        {ops[3], Promotion::kNumpy}};
  Ref limit = limit_of(dtype, sides[beyond]);
  Operand operands[] = {xs[0], xs[1]};
  operands[beyond].object = limit.get();
  return elementwise(certain[answer ? (is_first_less ? 1 : 3) : (is_first_less ? 2 : 0)], operands,
                     nullptr);
}

// Python ints wrap around beside integers of fewer bits only where that is what arithmetic modulo
// a power of two makes of the result. The greater or smaller of two numbers is not.
static void check_python_ints(const Elementwise& f, std::span<const Operand> xs, DType common) {
  static const OpDef* const extrema[] = {&registry().get("max"), &registry().get("min")};
  bool is_extremum = std::find(std::begin(extrema), std::end(extrema), f.op) != std::end(extrema);
  for (const Operand& x : xs) {
    if (is_inexact(common) || f.promotion == Promotion::kLax) check_python_int(x);
    if (is_integer(common) && is_extremum) check_python_int(x, common);
  }
}

Ref elementwise(const Elementwise& f, std::span<const Operand> xs, const AttrsRef& attrs) {
  PromotionType common = promoted(xs, f.promotion, f.op->name, runs_users_code);
  if (f.promotion != Promotion::kLax && xs.size() > 1) check_ranks(xs, f.op->name, runs_users_code);
  if (f.promotion == Promotion::kNumpy && xs.size() == 2 && is_integer(common.dtype))
    if (Ref answer = compare_beyond(*f.op, xs, common.dtype)) return answer;
  check_python_ints(f, xs, common.dtype);
  ContextRef c = context_for(xs);
  if (c) return record_elementwise(c, f, xs, attrs, common);
  EagerCall call{&f, attrs, {}, xs, {}};
  call.extra.add({static_cast<int64_t>(common.dtype), common.weak});
  for (const Operand& x : xs) {
    bool is_own = f.promotion == Promotion::kBool && !is_python_int(x);
    call.scalar_dtypes.push_back(is_own ? x.type->dtype() : common.dtype);
  }
  return run_for_one(call, [&](std::span<const Operand> abstract) {
    return Objects{record_elementwise(innermost_staged(), f, abstract, attrs, common)};
  });
}

Objects bind_op(const OpDef& op, std::span<const Operand> xs, const AttrsRef& attrs) {
  ContextRef c = context_for(xs, stays_innermost(op, attrs));
  if (!c) {
    EagerCall call{&op, attrs, {}, xs, {}};
    for (const Operand& x : xs) call.scalar_dtypes.push_back(adapt(x, xs));
    return run_eagerly(
        call, [&](std::span<const Operand> abstract) { return bind_op(op, abstract, attrs); });
  }
  Values values;
  for (const Operand& x : xs) values.push_back(value_in(*c, x, adapt(x, xs)));
  return wrap(c, record(*c, op, values, attrs), gives_weak(xs, attrs));
}

Objects bind_graphs(const OpDef& op, std::span<const Operand> xs, const AttrsRef& attrs,
                    const std::vector<bool>& weak) {
  ContextRef c = context_for(xs, stays_innermost(op, attrs));
  if (!c) {
    EagerCall call{&op, attrs, {}, xs, {}};
    for (const Operand& x : xs) call.scalar_dtypes.push_back(x.type->dtype());
    call.extra.add(Dims(weak.begin(), weak.end()));
    return run_eagerly(call, [&](std::span<const Operand> abstract) {
      return bind_graphs(op, abstract, attrs, weak);
    });
  }
  Values values;
  for (const Operand& x : xs) values.push_back(value_in(*c, x, x.type->dtype()));
  Values results = record(*c, op, values, attrs);
  if (weak.size() != results.size())
    fail(ErrorKind::kType, "[", op.name, "] expected weak or not for each of ", results.size(),
         " results; got ", weak.size());
  Objects out;
  for (size_t i = 0; i < results.size(); ++i)
    out.push_back(Ref::steal(make_tracer(c, results[i], weak[i])));
  return out;
}

Ref split_like(Ref value, ShardingRef split) {
  Operand x = classify(value.get());
  if (!split || split_of(x) == split) return value;
  if (split->mesh()->axes().empty()) return value;
  if (x.kind == OperandKind::kArray)
    return split->mesh()->is_abstract() ? value : on_device(value, split);
  ContextRef c = context_for({&x, 1});
  if (!c) return value;
  static const OpDef& op = registry().get("sharding_constraint");
  Value v = value_in(*c, x, x.type->dtype());
  AttrsRef attrs = AttrRecord::make(op.name, op.attrs, {{"sharding", split}});
  return Ref::steal(make_tracer(c, record(*c, op, {&v, 1}, attrs)[0], x.weak));
}

Ref on_default_place(const Operand& x, DType dtype, bool weak, ShardingRef at) {
  guard_transfer(x);
  Ref array;
  if (x.kind == OperandKind::kScalar) {
    // A number that is given a dtype by name has to fit it.
    array = fresh_scalar(scalar_value(x, dtype, Wrapping::kNever), at, weak);
  } else {
    array = to_device(x, at);
  }
  as_array(array.get())->committed = !is_trivial(at);
  return array;
}

Ref handed_on(PyObject* x) {
  if (is_array(x)) {
    ArrayObject* a = as_array(x);
    check_live(a);
    return twin_of(a, a->type, a->weak, a->committed);
  }
  if (!is_tracer(x) || as_tracer(x)->context->kind != ContextKind::kDeferred) return Ref::borrow(x);
  Operand operand = classify(x);
  context_for({&operand, 1});  // raises for a tracer of a finished trace
  return Ref::steal(make_tracer(as_tracer(x)->owner, as_tracer(x)->value, as_tracer(x)->weak));
}

Ref astype(const Operand& x, DType dtype, bool weak) {
  bool is_value = x.kind == OperandKind::kArray || x.kind == OperandKind::kTracer;
  if (is_value && x.type->dtype() == dtype && x.weak == weak) return Ref::borrow(x.object);
  ContextRef c = context_for({&x, 1});
  if (is_key(dtype) && x.type->dtype() != dtype)
    raise_error("DTypeError", "expected a dtype of numbers or bools to convert to; got ",
                numpy_name(dtype), "\n  weft.random.wrap_key_data makes keys of their words.");
  if (x.kind == OperandKind::kScalar && !is_symbolic_dim(x.object)) {
    if (!c) return on_default_place(x, dtype, weak, place_by_default());
    Literal value = scalar_value(x, dtype, Wrapping::kNever);
    return Ref::steal(make_tracer(c, c->builder.literal(value), weak));
  }
  if (!c) {
    if (x.type->dtype() == dtype) {
      Ref array = x.kind == OperandKind::kNumpy
                      ? on_default_place(x, dtype, false, place_by_default())
                      : to_device(x, current_placement());
      ArrayObject* a = as_array(array.get());
      return a->weak == weak ? array : copy_buffer(a, weak, a->committed);
    }
    static const char what = 0;
    EagerCall call{&what, convert_attrs(dtype, weak), {}, {&x, 1}, {x.type->dtype()}};
    return run_for_one(call, [&](std::span<const Operand> abstract) {
      return Objects{astype(abstract[0], dtype, weak)};
    });
  }
  Value v = value_in(*c, x, x.type->dtype());
  if (x.type->dtype() != dtype)
    v = record(*c, op_convert(), {&v, 1}, convert_attrs(dtype, weak))[0];
  return Ref::steal(make_tracer(c, v, weak));
}

Ref broadcast_to(const Operand& x, const Dims& shape) {
  const Dims& own = x.type->shape();
  bool fits = own.size() <= shape.size();
  for (size_t i = 0; fits && i < own.size(); ++i) {
    int64_t d = shape[shape.size() - own.size() + i];
    fits = own[i] == d || own[i] == 1;
  }
  if (!fits)
    fail(ErrorKind::kShape, "[broadcast_to] expected an array that broadcasts to shape ",
         std::span<const int64_t>(shape), "; got ", x.type);
  bool is_value = x.kind == OperandKind::kArray || x.kind == OperandKind::kTracer;
  if (is_value && own == shape) return Ref::borrow(x.object);
  ContextRef c = context_for({&x, 1});
  if (!c) {
    if (own == shape) return astype(x, x.type->dtype(), x.weak);
    static const char what = 0;
    EagerCall call{&what, nullptr, {}, {&x, 1}, {x.type->dtype()}};
    call.extra.add(shape);
    return run_for_one(call, [&](std::span<const Operand> abstract) {
      return Objects{broadcast_to(abstract[0], shape)};
    });
  }
  Value v = broadcasted(*c, value_in(*c, x, x.type->dtype()), shape);
  return Ref::steal(make_tracer(c, v, x.weak));
}

}  // namespace weft::py
