// Reductions of windows that slide over an array: reduce_window_{sum,max,min}, and reduce_window by
// a graph of scalars.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/def/symbols.h"
#include "ops/reduce/family.h"
#include "ops/reduce/windows.h"
#include "weft/registry.h"

namespace weft {
namespace {

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
  need_numbers(c.op, xs[0].shape());
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

JvpArgRule jvp_extreme(const Extreme& extreme) {
  return [&extreme](const JvpArgCtx& c) {
    return gathered(c.t(), c.x(0), Windows(c.attr()), c.out_types[0]->shape(), extreme);
  };
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
}

}  // namespace weft
