// The ops that derivatives of maxima of windows consist of, select_and_gather_add and
// select_and_scatter_add; and select_and_scatter by graphs.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/presets.h"
#include "ops/reduce/family.h"
#include "ops/reduce/windows.h"
#include "weft/registry.h"

namespace weft {

const Extreme kGreatest = {"ge", ge, lowest};
const Extreme kLeast = {"le", le, highest};

Val gathered(Val t, Val x, const Windows& w, const Dims& places, const Extreme& extreme) {
  if (!w.is_dilated()) {
    const OpDef& op = registry().get("select_and_gather_add");
    return apply(op, Vals{t, x},
                 AttrRecord::make(op.name, op.attrs,
                                  {{"select_prim", std::string(extreme.select)},
                                   {"window_dimensions", w.size},
                                   {"window_strides", w.strides},
                                   {"padding", w.padding},
                                   {"base_dilation", w.base_dilation},
                                   {"window_dilation", w.dilation}}))[0];
  }
  // The reverse of select_and_gather_add has no dilations.
  Vals inits = {{x.builder, x.builder->literal(extreme.identity(x.dtype()))}, scalar_like(t, 0)};
  return reduce_by_shifts({x, t}, inits, w, places, [&](const Vals& a, const Vals& b) {
    Val first = extreme.compare(a[0], b[0]);
    return Vals{select(first, a[0], b[0]), select(first, a[1], b[1])};
  })[1];
}

namespace {

const Extreme& extreme_of(const AttrRecord& attrs) {
  return attrs.string("select_prim") == kGreatest.select ? kGreatest : kLeast;
}

// Operands: values to gather or scatter, of shape `expected`, and the array that windows select in.
void check_selection(const InferCtx& c, const Dims& expected) {
  const std::string& select = c.attr().string("select_prim");
  if (select != kGreatest.select && select != kLeast.select)
    c.fail(ErrorKind::kValue, "expected select_prim ge or le; got ", select);
  for (TypeRef t : c.operands)
    if (!contains(kReals, t->dtype()) || t->dtype() != c.in(1)->dtype())
      c.fail(ErrorKind::kDtype, "expected operands of one dtype, ", describe(kReals), "; got ",
             operand_types(c));
  if (c.in(0)->shape() != expected)
    c.fail(ErrorKind::kShape, "expected operand 0 of shape ", expected, "; got ", operand_types(c));
}

OpDef selection_op(std::string name, std::string doc, bool dilations) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  std::vector<AttrSpec> attrs = window_attrs(dilations);
  attrs.push_back({"select_prim", AttrType::kString});
  d.attrs = AttrSchema(attrs);
  d.num_operands = 2;
  d.batch = [](BatchCtx& c) { batch_windows(c); };
  return d;
}

void emit_zeros(EmitCtx& c) {
  c.set_out(0, c.constant(zero(c.out_type()->dtype()), c.out_type()->shape()));
}

bool is_empty(EmitCtx& c) {
  return c.in_type(0)->num_elements() == 0 || c.in_type(1)->num_elements() == 0;
}

void emit_gather_add(EmitCtx& c) {
  if (is_empty(c) || c.out_type()->num_elements() == 0) return emit_zeros(c);
  if (c.out_type()->rank() == 0) return c.set_out(0, c.in(0));
  const Extreme& extreme = extreme_of(c.attr());
  DType dtype = c.in_type(1)->dtype();
  GraphRef body = scalar_graph(dtype, 4, [&](const Vals& xs) {
    Val first = extreme.compare(xs[0], xs[2]);
    return Vals{select(first, xs[0], xs[2]), select(first, xs[1], xs[3])};
  });
  TypeRef scalar = scalar_type(dtype);
  TypeRef in[] = {c.in_type(1), c.in_type(0), scalar, scalar};
  TypeRef out[] = {c.out_type(), c.out_type()};
  std::string inits[] = {c.constant(extreme.identity(dtype), {}), c.constant(zero(dtype), {})};
  std::string both =
      c.line(cat("\"stablehlo.reduce_window\"(", c.in(1), ", ", c.in(0), ", ", inits[0], ", ",
                 inits[1], ") <{", window_text(Windows(c.attr()), true), "}> (",
                 c.region(*body, "stablehlo.return"), ") : ", signature(in, out)),
             2);
  c.set_out(0, both + "#1");
}

OpDef gather_add_op() {
  OpDef d = selection_op(
      "select_and_gather_add",
      "Of each window, the value that stands where another array has its extreme element.",
      /*dilations=*/true);
  d.infer = [](const InferCtx& c) -> TypeRefs {
    check_selection(c, c.in(1)->shape());
    return {with_shape(c.in(0), infer_places(c, c.in(1)))};
  };
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {[](const JvpArgCtx& c) {
                  return gathered(c.t(), c.x(1), Windows(c.attr()), c.out_types[0]->shape(),
                                  extreme_of(c.attr()));
                },
                nullptr};
  d.transpose = [](TransposeCtx& c) {
    Windows w(c.attr());
    if (w.is_dilated())
      fail(ErrorKind::kNotImplemented,
           "[select_and_gather_add] expected dilations of 1 in reverse ",
           "mode; got base_dilation=", w.base_dilation, " and window_dilation=", w.dilation);
    c.add(0, apply1("select_and_scatter_add", {c.ct(), c.x(1)},
                    {{"select_prim", c.attr().at("select_prim")},
                     {"window_dimensions", w.size},
                     {"window_strides", w.strides},
                     {"padding", w.padding}}));
  };
  d.emit = emit_gather_add;
  d.in_kernel = is_same_in_kernel;
  d.cost = [](const CostCtx& c) { return cost_windows(c, c.out_types[0]); };
  return d;
}

// "({ select region }, { scatter region })"
std::string scatter_regions(EmitCtx& c, const Graph& select, const Graph& scatter) {
  std::string first = c.region(select, "stablehlo.return");
  return cat('(', first, ", ", c.region(scatter, "stablehlo.return"), ')');
}

// XLA's windows of this op should not reach beyond the array.
void emit_padded_scatter_add(EmitCtx& c, Windows w) {
  GraphBuilder b;
  Val source{&b, b.input(c.in_type(0))}, x{&b, b.input(c.in_type(1))};
  Val worst{&b, b.literal(extreme_of(c.attr()).identity(x.dtype()))};
  // What negative padding cuts off, and what comes out for it.
  std::vector<Dims> config, reverse;
  for (const Dims& p : w.padding) {
    config.push_back({p[0], p[1], 0});
    reverse.push_back({-p[0], -p[1], 0});
  }
  w.padding.assign(w.rank(), Dims{0, 0});
  Val made = apply(op_named<"select_and_scatter_add">(), Vals{source, pad(x, worst, config)},
                   w.attrs(c.attr()))[0];
  Value result = pad(made, scalar_like(made, 0), reverse).value;
  std::string args[] = {c.in(0), c.in(1)};
  c.set_out(0, c.inline_graph(*b.finish({&result, 1}), args)[0]);
}

// The loop that XLA for CPU makes of this op takes ten times as long as reading which element of
// each window is chosen, and then adding up what each element of the windows gets. Elements are
// read as often as windows overlap, for each element of a window.
bool gains_from_choices(const Windows& w) {
  constexpr int64_t kMostElements = 16, kMostReads = 81;
  int64_t size = product(w.size);
  return size <= kMostElements && size * size <= kMostReads * product(w.strides);
}

void emit_choices(EmitCtx& c, const Windows& w) {
  GraphBuilder b;
  Val source{&b, b.input(c.in_type(0))}, x{&b, b.input(c.in_type(1))};
  const Extreme& extreme = extreme_of(c.attr());
  Vals parts = elements(x, w, source.shape());
  Val best = parts[0];
  Val choice = zeros(b, with_dtype(source.type(), DType::kI32));
  for (size_t i = 1; i < parts.size(); ++i) {
    Val stays = extreme.compare(best, parts[i]);
    choice = select(stays, choice, broadcast_to(scalar_like(choice, double(i)), choice.shape()));
    best = select(stays, best, parts[i]);
  }
  Val zero = scalar_like(source, 0), sum;
  Dims at(w.rank());
  for (size_t i = 0; i < w.rank(); ++i) at[i] = w.size[i] - 1;
  // From the last element on: an element of x gets what comes from windows in their order.
  for (size_t left = parts.size(); left > 0; --left) {
    std::vector<Dims> config;
    for (size_t i = 0; i < w.rank(); ++i) {
      int64_t behind = x.shape()[i] - at[i] - (source.shape()[i] - 1) * w.strides[i] - 1;
      config.push_back({at[i], behind, w.strides[i] - 1});
    }
    Val is_chosen = eq(choice, broadcast_to(scalar_like(choice, double(left - 1)), choice.shape()));
    Val part = pad(select(is_chosen, source, zeros_like(source)), zero, config);
    sum = sum ? sum + part : part;
    for (size_t i = w.rank(); i-- > 0 && at[i]-- == 0;) at[i] = w.size[i] - 1;
  }
  std::string args[] = {c.in(0), c.in(1)};
  c.set_out(0, c.inline_graph(*b.finish({&sum.value, 1}), args)[0]);
}

void emit_scatter_add(EmitCtx& c) {
  if (is_empty(c)) return emit_zeros(c);
  if (c.out_type()->rank() == 0) return c.set_out(0, c.in(0));
  Windows w(c.attr());
  if (w.is_padded()) return emit_padded_scatter_add(c, w);
  if (c.platform() == "cpu" && gains_from_choices(w)) return emit_choices(c, w);
  DType dtype = c.in_type(0)->dtype();
  const Extreme& extreme = extreme_of(c.attr());
  GraphRef select =
      scalar_graph(dtype, 2, [&](const Vals& xs) { return Vals{extreme.compare(xs[0], xs[1])}; });
  GraphRef sum = scalar_graph(dtype, 2, [](const Vals& xs) { return Vals{xs[0] + xs[1]}; });
  TypeRef in[] = {c.in_type(1), c.in_type(0), scalar_type(dtype)};
  emit_results(c, cat("\"stablehlo.select_and_scatter\"(", c.in(1), ", ", c.in(0), ", ",
                      c.constant(zero(dtype), {}), ") <{", window_text(w, false), "}> ",
                      scatter_regions(c, *select, *sum), " : ", signature(in, c.out_types)));
}

OpDef scatter_add_op() {
  OpDef d =
      selection_op("select_and_scatter_add",
                   "Values of the places of a window, added up where it has its extreme element.",
                   /*dilations=*/false);
  d.infer = [](const InferCtx& c) -> TypeRefs {
    check_selection(c, infer_places(c, c.in(1)));
    return {c.in(1)};
  };
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {[](const JvpArgCtx& c) { return apply(c.op, Vals{c.t(), c.x(1)}, c.attrs)[0]; },
                nullptr};
  d.transpose = [](TransposeCtx& c) {
    c.add(0, gathered(c.ct(), c.x(1), Windows(c.attr()), c.in_types[0]->shape(),
                      extreme_of(c.attr())));
  };
  d.emit = emit_scatter_add;
  // Kernels do not take the op that XLA has for it.
  d.in_kernel = [](const CostCtx& c) {
    return is_same_in_kernel(c) && gains_from_choices(Windows(*c.attrs));
  };
  d.cost = [](const CostCtx& c) { return cost_windows(c, c.in_types[0]); };
  return d;
}

// --- select_and_scatter by graphs ---

TypeRefs infer_select_and_scatter(const InferCtx& c) {
  TypeRef x = c.in(0), source = c.in(1), scalar = scalar_type(x->dtype());
  Dims places = infer_places(c, x);
  if (source != with_shape(x, places) || c.in(2) != scalar)
    c.fail(ErrorKind::kType, "expected operand 1 to be ", with_shape(x, places),
           " and operand 2 to be ", scalar, "; got ", operand_types(c));
  auto check = [&](const char* name, TypeRef result) {
    const Graph& graph = *c.attr().graph(name);
    std::vector<TypeRef> outputs = graph.output_types();
    bool takes_two = graph.num_inputs() == 2 && graph.input_types()[0] == scalar &&
                     graph.input_types()[1] == scalar;
    if (!takes_two || outputs.size() != 1 || outputs[0] != result)
      c.fail(ErrorKind::kType, "expected ", name, " to take two ", scalar, " and to return one ",
             result, "; got one of ", graph.num_inputs(), " inputs and ", outputs.size(),
             " outputs (", operand_types(c), ")");
  };
  check("select_jaxpr", scalar_type(DType::kBool));
  check("scatter_jaxpr", scalar);
  return {x};
}

OpDef select_and_scatter_op() {
  OpDef d;
  d.name = "select_and_scatter";
  d.doc = "Values of the places of a window, scattered to the element that it selects.";
  std::vector<AttrSpec> attrs = window_attrs(false);
  attrs.push_back({"select_jaxpr", AttrType::kGraph});
  attrs.push_back({"scatter_jaxpr", AttrType::kGraph});
  d.attrs = AttrSchema(attrs);
  d.num_operands = 3;
  d.infer = infer_select_and_scatter;
  d.batch = [](BatchCtx& c) {
    if (c.batched(2))
      fail(ErrorKind::kNotImplemented,
           "[select_and_scatter] expected an initial value that is the ",
           "same in all lanes of vmap; got a mapped one\n  Use lax.map.");
    batch_windows(c, 1);
  };
  d.emit = [](EmitCtx& c) {
    emit_results(c, cat("\"stablehlo.select_and_scatter\"(", operand_list(c), ") <{",
                        window_text(Windows(c.attr()), false), "}> ",
                        scatter_regions(c, *c.attr().graph("select_jaxpr"),
                                        *c.attr().graph("scatter_jaxpr")),
                        " : ", signature(c)));
  };
  d.cost = [](const CostCtx& c) { return cost_windows(c, c.in_types[1]); };
  return d;
}

}  // namespace

void register_select_window(OpRegistry& r) {
  r.add(gather_add_op());
  r.add(scatter_add_op());
  r.add(select_and_scatter_op());
}

}  // namespace weft
