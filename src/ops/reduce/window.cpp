// Reductions of windows that slide over an array: reduce_window_{sum,max,min}, and reduce_window by
// a graph of scalars; the ops that derivatives of maxima consist of, select_and_gather_add and
// select_and_scatter_add; and select_and_scatter by graphs.
#include "ops/reduce/window.h"

#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/reduce/family.h"
#include "ops/reduce/reduce_graph.h"
#include "weft/registry.h"

namespace weft {
namespace {

// A window with a dimension for each axis of the operand.
struct Windows {
  Dims size, strides;
  std::vector<Dims> padding;
  Dims base_dilation, dilation;

  explicit Windows(const AttrRecord& attrs)
      : size(attrs.ints("window_dimensions")),
        strides(attrs.ints("window_strides")),
        padding(attrs.ints_list("padding")),
        base_dilation(size.size(), 1),
        dilation(size.size(), 1) {
    if (!has_dilations(attrs)) return;
    base_dilation = attrs.ints("base_dilation");
    dilation = attrs.ints("window_dilation");
  }
  static bool has_dilations(const AttrRecord& attrs) {
    return attrs.schema().find("base_dilation") >= 0;
  }

  size_t rank() const { return size.size(); }
  Window along(size_t i) const {
    return {size[i], strides[i], padding[i][0], padding[i][1], base_dilation[i], dilation[i]};
  }
  bool is_dilated() const {
    Dims ones(rank(), 1);
    return !(base_dilation == ones && dilation == ones);
  }
  bool is_padded() const { return padding != std::vector<Dims>(rank(), Dims{0, 0}); }

  AttrsRef attrs(const AttrRecord& from) const {
    AttrsRef made =
        from.with({{"window_dimensions", size}, {"window_strides", strides}, {"padding", padding}});
    if (!has_dilations(from)) return made;
    return made->with({{"base_dilation", base_dilation}, {"window_dilation", dilation}});
  }
  // For an operand with a mapped axis at `dim`, on which the window has size 1.
  Windows with_mapped(int dim) const {
    Windows w = *this;
    for (Dims* xs : {&w.size, &w.strides, &w.base_dilation, &w.dilation})
      *xs = inserted(*xs, dim, 1);
    w.padding.insert(w.padding.begin() + dim, Dims{0, 0});
    return w;
  }
};

std::vector<AttrSpec> window_attrs(bool dilations) {
  std::vector<AttrSpec> attrs = {{"window_dimensions", AttrType::kInts},
                                 {"window_strides", AttrType::kInts},
                                 {"padding", AttrType::kIntsList}};
  if (dilations) {
    attrs.push_back({"base_dilation", AttrType::kInts});
    attrs.push_back({"window_dilation", AttrType::kInts});
  }
  return attrs;
}

// The shape of the places in which a window stands over an operand.
Dims infer_places(const InferCtx& c, TypeRef operand) {
  size_t rank = operand->shape().size();
  for (const AttrSpec& spec : c.op.attrs.specs())
    if (spec.type == AttrType::kInts)
      check_window_list(c, spec.name, c.attr().ints(spec.name), rank);
  check_window_padding(c, c.attr().ints_list("padding"), rank);
  Windows w(c.attr());
  Dims shape;
  for (size_t i = 0; i < rank; ++i) {
    if (w.size[i] < 1)
      c.fail(ErrorKind::kValue,
             "expected positive window_dimensions; got window_dimensions=", w.size, " (",
             operand_types(c), ")");
    shape.push_back(window_places(c, operand->shape()[i], w.along(i), i));
  }
  return shape;
}

Cost cost_windows(const CostCtx& c, TypeRef places) {
  Cost cost = cost_bytes(c);
  cost.flops = static_cast<double>(places->num_elements());
  for (int64_t n : c.attrs->ints("window_dimensions")) cost.flops *= static_cast<double>(n);
  return cost;
}

// "window_dimensions = array<i64: 2, 2>, ..."
std::string window_text(const Windows& w, bool dilations) {
  Text t;
  if (dilations) t << "base_dilations = " << mlir_ints(w.base_dilation) << ", ";
  t << "padding = dense<" << (w.rank() ? bracketed_pairs(w.padding) : "") << "> : tensor<"
    << w.rank() << "x2xi64>, ";
  if (dilations) t << "window_dilations = " << mlir_ints(w.dilation) << ", ";
  t << "window_dimensions = " << mlir_ints(w.size) << ", window_strides = " << mlir_ints(w.strides);
  return t.take();
}

// The op over operands that are all mapped, or repeated, at the same axis; `apart` of them at the
// end, scalars, as they are.
void batch_windows(BatchCtx& c, size_t apart = 0) {
  size_t n = c.operands.size() - apart;
  int at = 0;
  for (size_t i = n; i-- > 0;)
    if (c.batched(i)) at = c.dim(i);
  Vals xs;
  for (size_t i = 0; i < n; ++i) xs.push_back(c.at(i, at));
  for (size_t i = n; i < c.operands.size(); ++i) xs.push_back(c.x(i));
  c.apply(xs, Windows(c.attr()).with_mapped(at).attrs(c.attr()), at);
}

// `size` elements along an axis, from `start` on, every `step`-th.
Vals pieces(const Vals& xs, int axis, int64_t start, int64_t size, int64_t step = 1) {
  size_t i = static_cast<size_t>(axis);
  Vals out;
  for (Val x : xs) {
    Dims from(x.shape().size()), to = x.shape(), steps(x.shape().size(), 1);
    from[i] = start;
    to[i] = start + (size - 1) * step + 1;
    steps[i] = step;
    out.push_back(
        from == Dims(from.size()) && to == x.shape() && step == 1 ? x : slice(x, from, to, steps));
  }
  return out;
}

// x as the window sees it. `value` is a scalar, or has an entry for each index of axis 0.
Val padded(Val x, Val value, const Windows& w) {
  std::vector<Dims> config;
  for (size_t i = 0; i < w.rank(); ++i)
    config.push_back({w.padding[i][0], w.padding[i][1], w.base_dilation[i] - 1});
  if (value.rank() == 0) return pad(x, value, config);
  Val elements = pad(x, scalar_like(x, 0), config);
  Val all = full(*x.builder, with_dtype(x.type(), DType::kBool), 1);
  Val is_element = pad(all, scalar_like(all, 0), config);
  return select(is_element, elements, broadcast_in_dim(value, elements.shape(), {0}));
}

// The elements that stand at each place of an array of windows, one array for each element of a
// window, in the order of elements. `x` is padded.
Vals elements(Val x, const Windows& w, const Dims& places) {
  Vals out;
  Dims at(w.rank()), from(w.rank()), to(w.rank());
  for (int64_t left = product(w.size); left > 0; --left) {
    for (size_t i = 0; i < w.rank(); ++i) {
      from[i] = at[i] * w.dilation[i];
      to[i] = from[i] + (places[i] - 1) * w.strides[i] + 1;
    }
    out.push_back(slice(x, from, to, w.strides));
    for (size_t i = w.rank(); i-- > 0 && ++at[i] == w.size[i];) at[i] = 0;
  }
  return out;
}

// Reduced windows from shifted arrays that are combined with each other: along each axis as often
// as the window's size has binary digits, or ones among them.
Vals reduce_by_shifts(const Vals& xs, const Vals& inits, const Windows& w, const Dims& places,
                      const Combine& combine) {
  Vals starts;
  for (Val v : inits) starts.push_back(broadcast_in_dim(v, places, v.rank() ? Dims{0} : Dims{}));
  if (product(places) == 0) return starts;
  Vals made;
  for (size_t i = 0; i < xs.size(); ++i) made.push_back(padded(xs[i], inits[i], w));
  for (size_t i = 0; i < w.rank(); ++i) {
    int axis = static_cast<int>(i);
    int64_t size = w.size[i], step = w.dilation[i];
    int64_t n = made[0].shape()[i] - (size - 1) * step;
    Vals power = made, sum;  // power: over windows of `width`
    int64_t summed = 0;
    for (int64_t width = 1; width <= size; width *= 2) {
      if (width > 1) {
        int64_t by = width / 2 * step, rest = power[0].shape()[i] - by;
        power = combine(pieces(power, axis, 0, rest), pieces(power, axis, by, rest));
      }
      if (!(size & width)) continue;
      Vals part = pieces(power, axis, summed * step, n);
      sum = sum.empty() ? part : combine(sum, part);
      summed += width;
    }
    made = pieces(sum, axis, 0, places[i], w.strides[i]);
  }
  return combine(starts, made);
}

// --- reduce_window by a graph ---

TypeRefs infer_reduce_window(const InferCtx& c) {
  size_t n = check_reduction(c);
  Dims places = infer_places(c, c.in(0));
  TypeRefs out;
  for (size_t i = 0; i < n; ++i) out.push_back(with_shape(c.in(i), places));
  return out;
}

void batch_reduce_window(BatchCtx& c) {
  size_t n = c.operands.size() / 2;
  bool inits_differ = false;
  for (size_t i = n; i < 2 * n; ++i) inits_differ |= c.batched(i);
  if (!inits_differ) return batch_windows(c, n);
  Vals xs, inits;
  for (size_t i = 0; i < n; ++i) {
    xs.push_back(c.at(i, 0));
    inits.push_back(c.x(n + i));
  }
  Windows w = Windows(c.attr()).with_mapped(0);
  Dims places = inserted(c.out_types[0]->shape(), 0, c.size);
  for (Val v : reduce_by_shifts(xs, inits, w, places, combine_by(c, c.attr().graph("jaxpr"))))
    c.result(v, 0);
}

void emit_reduce_window(EmitCtx& c, const Graph& body) {
  Windows w(c.attr());
  if (w.rank() == 0) {  // XLA aborts if there are several
    std::vector<std::string> args;
    for (size_t i = 0, n = c.size() / 2; i < 2 * n; ++i) args.push_back(c.in((i + n) % (2 * n)));
    std::vector<std::string> results = c.inline_graph(body, args);
    for (size_t i = 0; i < results.size(); ++i) c.set_out(i, results[i]);
    return;
  }
  emit_results(c, cat("\"stablehlo.reduce_window\"(", operand_list(c), ") <{", window_text(w, true),
                      "}> (", c.region(body, "stablehlo.return"), ") : ", signature(c)));
}

OpDef reduce_window_op() {
  OpDef d;
  d.name = "reduce_window";
  d.doc = "Reduction of windows of several arrays together, combined by a function of scalars.";
  std::vector<AttrSpec> attrs = window_attrs(true);
  attrs.push_back({"jaxpr", AttrType::kGraph});
  d.attrs = AttrSchema(attrs);
  d.multiple_results = true;
  d.infer = infer_reduce_window;
  d.place = [](PlaceCtx& c) { place_alike(c); };
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = [](JvpCtx& c) {
    return jvp_of_reduction(c, [&](const Vals& xs, const Vals& inits, const Combine& combine) {
      return reduce_by_shifts(xs, inits, Windows(c.attr()), c.out_types[0]->shape(), combine);
    });
  };
  d.batch = batch_reduce_window;
  d.emit = [](EmitCtx& c) { emit_reduce_window(c, *c.attr().graph("jaxpr")); };
  d.in_kernel = is_same_in_kernel;
  d.cost = [](const CostCtx& c) {
    Cost cost = cost_windows(c, c.out_types[0]);
    cost.flops *= static_cast<double>(c.out_types.size());
    return cost;
  };
  return d;
}

// --- Sums and extremes of windows ---

struct Extreme {
  const char* select;  // what the element has to another one of its window
  Val (*compare)(Val, Val);
  Literal (*identity)(DType);
};
const Extreme kGreatest = {"ge", ge, lowest};
const Extreme kLeast = {"le", le, highest};

GraphRef scalar_graph(DType dtype, size_t num_inputs,
                      const std::function<Vals(const Vals&)>& body) {
  GraphBuilder b;
  Vals inputs;
  for (size_t i = 0; i < num_inputs; ++i) inputs.push_back({&b, b.input(scalar_type(dtype))});
  Values outputs;
  for (Val v : body(inputs)) outputs.push_back(v.value);
  return b.finish(outputs);
}

// XLA for CPU has a kernel for windows that stand side by side, and a slow loop for others. That of
// a few elements compiles faster, those of many windows are better written out.
bool gains_from_elements(const Windows& w, TypeRef out) {
  constexpr int64_t kMostElements = 9, kFewestWindows = 1 << 14;
  bool overlaps = false;
  for (size_t i = 0; i < w.rank(); ++i) {
    if (w.base_dilation[i] != 1) return false;
    overlaps |= w.size[i] > 1 && (w.strides[i] < w.size[i] || w.dilation[i] != 1);
  }
  return overlaps && product(w.size) <= kMostElements && out->num_elements() >= kFewestWindows &&
         is_float(out->dtype()) && info(out->dtype()).bits >= 32;
}

void emit_by_elements(EmitCtx& c, const Windows& w, Val (*combine)(Val, Val),
                      Literal (*identity)(DType)) {
  GraphBuilder b;
  Val x{&b, b.input(c.in_type(0))};
  Val init{&b, b.literal(identity(x.dtype()))};
  const Dims& places = c.out_type()->shape();
  Val all = broadcast_to(init, places);
  for (Val element : elements(padded(x, init, w), w, places)) all = combine(all, element);
  std::string args[] = {c.in(0)};
  c.set_out(0, c.inline_graph(*b.finish({&all.value, 1}), args)[0]);
}

OpDef named_reduce_window(std::string name, std::string doc, DTypeSet dtypes,
                          Val (*combine)(Val, Val), Literal (*identity)(DType)) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.attrs = AttrSchema(window_attrs(true));
  d.place = [](PlaceCtx& c) { place_alike(c); };
  d.num_operands = 1;
  d.infer = [dtypes](const InferCtx& c) -> TypeRefs {
    if (!contains(dtypes, c.in(0)->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(dtypes), "; got ", operand_types(c));
    return {with_shape(c.in(0), infer_places(c, c.in(0)))};
  };
  d.batch = [](BatchCtx& c) { batch_windows(c); };
  d.emit = [combine, identity](EmitCtx& c) {
    TypeRef x = c.in_type(0);
    if (Windows w(c.attr()); c.platform() == "cpu" && gains_from_elements(w, c.out_type()))
      return emit_by_elements(c, w, combine, identity);
    GraphRef body =
        scalar_graph(x->dtype(), 2, [&](const Vals& xs) { return Vals{combine(xs[0], xs[1])}; });
    std::string init = c.constant(identity(x->dtype()), {});
    TypeRef types[] = {x, scalar_type(x->dtype())};
    emit_results(
        c, cat("\"stablehlo.reduce_window\"(", c.in(0), ", ", init, ") <{",
               window_text(Windows(c.attr()), true), "}> (", c.region(*body, "stablehlo.return"),
               ") : ", signature(types, c.out_types)));
  };
  d.in_kernel = is_same_in_kernel;
  d.cost = [](const CostCtx& c) { return cost_windows(c, c.out_types[0]); };
  return d;
}

// Each element gets the cotangents of the places whose window it is in.
void transpose_sum(TransposeCtx& c) {
  TypeRef x = c.in_types[0], out = c.out_types[0];
  if (x->num_elements() == 0 || out->num_elements() == 0) return c.add(0, zeros(c.b, x));
  Windows w(c.attr()), back = w;
  std::swap(back.strides, back.base_dilation);
  for (size_t i = 0; i < w.rank(); ++i)
    back.padding[i] = padding_back(w.along(i), x->shape()[i], out->shape()[i]);
  c.add(0, apply(c.op, Vals{c.ct()}, back.attrs(c.attr()))[0]);
}

// The element of x that stands first among the extremes of each window; `t` there.
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

JvpArgRule jvp_extreme(const Extreme& extreme) {
  return [&extreme](const JvpArgCtx& c) {
    return gathered(c.t(), c.x(0), Windows(c.attr()), c.out_types[0]->shape(), extreme);
  };
}

// --- select_and_gather_add and select_and_scatter_add ---

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
  OpDef d;
  d.name = "select_and_gather_add";
  d.doc = "Of each window, the value that stands where another array has its extreme element.";
  std::vector<AttrSpec> attrs = window_attrs(true);
  attrs.push_back({"select_prim", AttrType::kString});
  d.attrs = AttrSchema(attrs);
  d.num_operands = 2;
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
  d.batch = [](BatchCtx& c) { batch_windows(c); };
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
  OpDef d;
  d.name = "select_and_scatter_add";
  d.doc = "Values of the places of a window, added up where it has its extreme element.";
  std::vector<AttrSpec> attrs = window_attrs(false);
  attrs.push_back({"select_prim", AttrType::kString});
  d.attrs = AttrSchema(attrs);
  d.num_operands = 2;
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
  d.batch = [](BatchCtx& c) { batch_windows(c); };
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

OpDef extreme_op(std::string name, std::string doc, Val (*combine)(Val, Val),
                 const Extreme& extreme) {
  OpDef d = named_reduce_window(std::move(name), std::move(doc), DTypeSet(kBools | kReals), combine,
                                extreme.identity);
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {jvp_extreme(extreme)};
  return d;
}

}  // namespace

void register_window(OpRegistry& r) {
  r.add(reduce_window_op());
  OpDef sum = named_reduce_window("reduce_window_sum", "Sums of windows.", kNumbers, add, zero);
  r.add(linear(sum, transpose_sum));
  r.add(extreme_op("reduce_window_max", "Maxima of windows.", max, kGreatest));
  r.add(extreme_op("reduce_window_min", "Minima of windows.", min, kLeast));
  r.add(gather_add_op());
  r.add(scatter_add_op());
  r.add(select_and_scatter_op());
}

}  // namespace weft
