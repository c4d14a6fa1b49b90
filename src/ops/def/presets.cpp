// The rules that element-wise ops and reductions share, and the presets made of them.
#include "ops/def/presets.h"

#include <algorithm>
#include <cmath>

#include "ops/def/axes.h"
#include "ops/def/chlo.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/plain.h"

namespace weft {

namespace {

uint8_t bit_of(DType d) {
  switch (kind(d)) {
    case DTypeKind::kBool:
      return kBools;
    case DTypeKind::kSigned:
      return kSignedInts;
    case DTypeKind::kUnsigned:
      return kUnsignedInts;
    case DTypeKind::kFloat:
      return kFloats;
    case DTypeKind::kComplex:
      return kComplexes;
    case DTypeKind::kKey:
      return kKeys;
    case DTypeKind::kFloat0:
      return 0;
  }
  return 0;
}

std::string join(const std::vector<std::string_view>& words) {
  Text out;
  for (size_t i = 0; i < words.size(); ++i)
    out << (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") << words[i];
  return out.take();
}

OpDef elementwise(Elementwise e, int num_operands) {
  OpDef def;
  def.name = std::move(e.name);
  def.doc = std::move(e.doc);
  def.attrs = std::move(e.attrs);
  def.num_operands = num_operands;
  def.infer = [dtypes = e.dtypes, result = std::move(e.result_dtype)](const InferCtx& c) {
    return infer_elementwise(c, dtypes, result);
  };
  def.jvp_kind = e.jvp_kind;
  for (JvpArgRule& rule : e.jvp)
    def.jvp_args.push_back(num_operands > 1 ? broadcast_tangent(std::move(rule)) : std::move(rule));
  def.transpose = std::move(e.transpose);
  def.batch = batch_elementwise;
  if (!e.hlo.empty()) def.emit = [hlo = std::move(e.hlo)](EmitCtx& c) { emit_elementwise(c, hlo); };
  def.fold = std::move(e.fold);
  def.simplify = std::move(e.simplify);
  def.cost = [flops = e.flops, transcendental = e.transcendental](const CostCtx& c) {
    return cost_elementwise(c, flops, transcendental);
  };
  def.in_kernel = is_same_in_kernel;
  def.elementwise = true;
  def.commutative = e.commutative;
  return def;
}

}  // namespace

bool contains(DTypeSet set, DType d) { return set & bit_of(d); }

bool is_same_in_kernel(const CostCtx& c) {
  auto fits = [](TypeRef type) {
    DType d = type->dtype();
    bool is_wide_int = is_integer(d) && info(d).bits >= 8;
    return type->num_elements() > 0 &&
           (d == DType::kF32 || d == DType::kF64 || is_complex(d) || is_bool(d) || is_wide_int);
  };
  return std::ranges::all_of(c.in_types, fits) && std::ranges::all_of(c.out_types, fits);
}

std::string describe(DTypeSet set) {
  std::vector<std::string_view> words;
  if (set & kBools) words.push_back("bool");
  if ((set & kInts) == kInts) {
    words.push_back("integer");
  } else if (set & kSignedInts) {
    words.push_back("signed integer");
  } else if (set & kUnsignedInts) {
    words.push_back("unsigned integer");
  }
  if (set & kFloats) words.push_back("float");
  if (set & kComplexes) words.push_back("complex");
  return join(words);
}

const Dims& common_shape(const InferCtx& c) {
  TypeRef full = c.in(0);
  for (TypeRef t : c.operands) {
    if (t->rank() == 0) continue;
    if (full->rank() == 0) full = t;
    if (!(t->shape() == full->shape())) {
      c.fail(ErrorKind::kShape, "expected operands of one shape, or scalars; got ",
             operand_types(c));
    }
  }
  return full->shape();
}

TypeRefs infer_elementwise(const InferCtx& c, DTypeSet dtypes,
                           const std::function<DType(DType)>& result) {
  DType dtype = c.in(0)->dtype();
  for (TypeRef t : c.operands) {
    if (!contains(dtypes, t->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(dtypes), "; got ", operand_types(c));
    if (t->dtype() != dtype)
      c.fail(ErrorKind::kDtype, "expected operands of one dtype; got ", operand_types(c));
  }
  DType out = result ? result(dtype) : dtype;
  const Dims& shape = common_shape(c);
  for (TypeRef t : c.operands)  // mostly: no need to look the type up
    if (out == dtype && t->rank() == static_cast<int>(shape.size())) return {t};
  return {make_type(out, shape)};
}

Val batched_operand(const BatchCtx& c, size_t i, const Dims& full, int dim) {
  bool is_scalar = c.in_types[i]->rank() == 0;
  if (is_scalar && !c.batched(i)) return c.x(i);
  if (is_scalar && full.size() > 1) return broadcast_in_dim(c.x(i), full, {dim});
  return c.at(i, dim);
}

void batch_elementwise(BatchCtx& c) {
  int rank = c.out_types[0]->rank();
  // The mapped axis stays where the first full operand has it.
  int dim = 0;
  for (size_t i = c.operands.size(); i-- > 0;)
    if (c.batched(i) && c.in_types[i]->rank() == rank) dim = c.dim(i);
  Dims full = c.out_types[0]->shape();
  full.insert(static_cast<size_t>(dim), c.size);
  Vals xs;
  for (size_t i = 0; i < c.operands.size(); ++i) xs.push_back(batched_operand(c, i, full, dim));
  c.apply(xs, c.attrs, dim);
}

std::string emit_op(EmitCtx& c, std::string_view hlo, std::span<const std::string> operands,
                    std::span<const TypeRef> in_types, TypeRef out_type) {
  bool same =
      std::all_of(in_types.begin(), in_types.end(), [&](TypeRef t) { return t == out_type; });
  bool chlo = hlo.starts_with("chlo.");
  if (chlo && has_plain_ops_only(c.platform())) {
    GraphBuilder b;
    Vals xs;
    for (TypeRef type : in_types) xs.push_back({&b, b.input(type)});
    Value y = in_plain_ops(hlo, xs).value;
    return c.inline_graph(*b.finish({&y, 1}), operands)[0];
  }
  Text line;
  line.reserve(96);  // most lines in one piece of memory
  line << hlo;
  for (size_t i = 0; i < operands.size(); ++i) line << (i ? ", " : " ") << operands[i];
  line << " : ";
  if (same && !chlo) {
    line << mlir_type(out_type);
    return c.line(line.view());
  }
  if (!chlo) line << "(";
  for (size_t i = 0; i < in_types.size(); ++i) line << (i ? ", " : "") << mlir_type(in_types[i]);
  line << (chlo ? " -> " : ") -> ") << mlir_type(out_type);
  return c.line(line.view());
}

void emit_all_as(EmitCtx& c, const std::function<Vals(const Vals& operands)>& write) {
  GraphBuilder b;
  Vals operands;
  for (TypeRef type : c.in_types) operands.push_back({&b, b.input(type)});
  Values results;
  for (Val v : write(operands)) results.push_back(v.value);
  std::vector<std::string> args;
  for (size_t i = 0; i < c.size(); ++i) args.push_back(c.in(i));
  std::vector<std::string> names = c.inline_graph(*b.finish(results), args);
  for (size_t i = 0; i < names.size(); ++i) c.set_out(i, names[i]);
}

void emit_as(EmitCtx& c, const std::function<Val(const Vals& operands)>& write) {
  emit_all_as(c, [&](const Vals& operands) { return Vals{write(operands)}; });
}

void emit_elementwise(EmitCtx& c, std::string_view hlo) {
  const Dims& shape = c.out_type()->shape();
  std::vector<std::string> operands;
  operands.reserve(c.size());
  TypeRefs types;
  for (size_t i = 0; i < c.size(); ++i) {
    operands.push_back(c.in_as(i, shape));
    TypeRef type = c.in_type(i);
    types.push_back(type->shape() == shape ? type : with_shape(type, shape));
  }
  c.set_out(0, emit_op(c, hlo, operands, types, c.out_type()));
}

std::string emit_compare(EmitCtx& c, std::string_view direction, std::string_view lhs,
                         std::string_view rhs, TypeRef type, bool total_order) {
  std::string_view order = is_float(type->dtype())        ? (total_order ? "TOTALORDER" : "FLOAT")
                           : is_complex(type->dtype())    ? "FLOAT"
                           : is_signed_int(type->dtype()) ? "SIGNED"
                                                          : "UNSIGNED";
  std::string operand = mlir_type(type);
  return c.line(cat("stablehlo.compare ", direction, ", ", lhs, ", ", rhs, ", ", order, " : (",
                    operand, ", ", operand, ") -> ", mlir_type(with_dtype(type, DType::kBool))));
}

std::string emit_select(EmitCtx& c, std::string_view pred, TypeRef pred_type,
                        std::string_view on_true, std::string_view on_false, TypeRef type) {
  return c.line(cat("stablehlo.select ", pred, ", ", on_true, ", ", on_false, " : ",
                    mlir_type(pred_type), ", ", mlir_type(type)));
}

Cost cost_bytes(const CostCtx& c) {
  Cost cost;
  for (size_t i = 0; i < c.in_types.size(); ++i)
    if (c.literals.empty() || !c.literals[i])
      cost.bytes += static_cast<double>(c.in_types[i]->num_bytes());
  for (TypeRef t : c.out_types) cost.bytes += static_cast<double>(t->num_bytes());
  return cost;
}

Cost cost_elementwise(const CostCtx& c, double flops, bool transcendental) {
  Cost cost = cost_bytes(c);
  double elements = static_cast<double>(c.out_types[0]->num_elements());
  (transcendental ? cost.transcendentals : cost.flops) = elements * flops;
  return cost;
}

JvpArgRule broadcast_tangent(JvpArgRule rule) {
  if (!rule) return nullptr;
  return [rule = std::move(rule)](const JvpArgCtx& c) {
    return broadcast_to(rule(c), c.out_types[0]->shape());
  };
}

JvpArgRule no_derivative(std::string op, std::string argument) {
  return [op, argument](const JvpArgCtx&) -> Val {
    fail(ErrorKind::kNotImplemented, "[", op, "] has no derivative with respect to ", argument);
  };
}

Vals replacement(const SimplifyCtx& c, Val v) { return {broadcast_to(v, c.out_types[0]->shape())}; }

FoldRule fold_real(double (*f)(double, double), int64_t (*i)(int64_t, int64_t)) {
  return [f, i](const FoldCtx& c) -> std::optional<Literal> {
    const Literal& x = c.xs[0];
    const Literal y = c.xs.size() > 1 ? c.xs[1] : Literal{.dtype = x.dtype};
    if (x.dtype != c.out) return std::nullopt;
    if (is_float(c.out) && f) return make_literal(c.out, f(x.as_double(), y.as_double()));
    if (is_integer(c.out) && i) return make_literal(c.out, i(x.as_int(), y.as_int()));
    return std::nullopt;
  };
}

bool less_than(const Literal& x, const Literal& y) {
  if (is_float(x.dtype)) return x.as_double() < y.as_double();
  if (is_signed_int(x.dtype)) return x.as_int() < y.as_int();
  return x.lo < y.lo;
}

Literal extremum(const Literal& x, const Literal& y, bool largest) {
  if (is_float(x.dtype)) {
    if (std::isnan(x.as_double())) return x;
    if (std::isnan(y.as_double())) return y;
    if (x.as_double() == 0 && y.as_double() == 0)
      return std::signbit(x.as_double()) == largest ? y : x;
  }
  return less_than(x, y) == largest ? y : x;
}

OpDef unary(Elementwise e) { return elementwise(std::move(e), 1); }
OpDef binary(Elementwise e) { return elementwise(std::move(e), 2); }

OpDef compare(Elementwise e) {
  std::string direction = std::move(e.hlo);
  e.hlo.clear();
  e.result_dtype = [](DType) { return DType::kBool; };
  e.jvp_kind = JvpKind::kZero;
  OpDef def = elementwise(std::move(e), 2);
  def.emit = [direction](EmitCtx& c) {
    const Dims& shape = c.out_type()->shape();
    std::string lhs = c.in_as(0, shape);
    std::string rhs = c.in_as(1, shape);
    c.set_out(0, emit_compare(c, direction, lhs, rhs, with_shape(c.in_type(0), shape)));
  };
  return def;
}

OpDef& zero_tangent(OpDef& def) {
  def.jvp_kind = JvpKind::kZero;
  return def;
}

OpDef& linear(OpDef& def, TransposeRule transpose, std::vector<size_t> linear_args) {
  def.jvp_kind = JvpKind::kLinear;
  def.transpose = std::move(transpose);
  def.linear_args = std::move(linear_args);
  return def;
}

OpDef& hands_on(OpDef& def, Vals (*again)(const RuleCtx& c, std::span<const Value> values)) {
  def.multiple_results = true;
  def.place = [](PlaceCtx& c) {
    for (ShardingRef s : c.in) c.out.push_back(s);
  };
  def.jvp_kind = JvpKind::kCustom;
  def.jvp = [again](JvpCtx& c) { return again(c, c.tangents); };
  def.transpose = [again](TransposeCtx& c) {
    Vals cts = again(c, c.cotangents);
    for (size_t i = 0; i < cts.size(); ++i)
      if (cts[i] && c.linear(i)) c.add(i, cts[i]);
  };
  // Each result is its operand, but the op is kept whole.
  def.flow = [](FlowCtx& c) {
    if (c.flow == Flow::kNeeds) return c.all();
    c.results = c.operands;
  };
  // Of known values and of linear ones, where it has both.
  def.graph_linearize = [again](GraphJvpCtx& c) {
    for (const Val& y : again(c, c.operands)) c.results.push_back(y.value);
    for (const Val& t : again(c, c.tangents)) c.result_tangents.push_back(t.value);
  };
  return def;
}

OpDef reducer(Reducer r) {
  OpDef def;
  def.name = std::move(r.name);
  def.doc = std::move(r.doc);
  def.attrs = {{"axes", AttrType::kInts}};
  def.num_operands = 1;
  def.infer = [dtypes = r.dtypes](const InferCtx& c) -> TypeRefs {
    TypeRef x = c.in(0);
    if (!contains(dtypes, x->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(dtypes), "; got ", x);
    const Dims& axes = c.attr().ints("axes");
    check_axes(c, "axes", axes, x);
    return {with_shape(x, drop_axes(x->shape(), axes))};
  };
  def.place = [](PlaceCtx& c) { place_dropped(c, c.attr().ints("axes")); };
  def.batch = [](BatchCtx& c) {
    const Dims& axes = c.attr().ints("axes");
    Val x = c.x(0);
    c.apply({&x, 1}, c.attr().with({{"axes", shifted(axes, c.dim(0))}}),
            dim_after_drop(c.dim(0), axes));
  };
  def.in_kernel = is_same_in_kernel;
  def.emit = [name = def.name, hlo = std::move(r.hlo),
              identity = std::move(r.identity)](EmitCtx& c) {
    TypeRef x = c.in_type(0);
    if (x->rank() > kMostReducedAxes)
      return emit_as(c, [&](const Vals& xs) {
        auto [shape, axes] = without_ones(x->shape(), c.attr().ints("axes"));
        Val y = reshape(xs[0], shape);
        return reshape(axes.empty() ? y : apply1(name, {y}, {{"axes", axes}}),
                       c.out_type()->shape());
      });
    TypeRef types[] = {x, scalar_type(x->dtype())};
    std::string init = c.constant(identity(x->dtype()), {});
    emit_results(c, cat("stablehlo.reduce(", c.in(0), " init: ", init, ") applies ", hlo,
                        " across dimensions = ", bracketed(c.attr().ints("axes")), " : ",
                        signature(types, c.out_types)));
  };
  def.cost = [](const CostCtx& c) {
    Cost cost = cost_bytes(c);
    cost.flops = static_cast<double>(c.in_types[0]->num_elements());
    return cost;
  };
  return def;
}

}  // namespace weft
