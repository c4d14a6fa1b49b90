// Windows with a dimension for each axis: their attributes, elements and reductions.
#include "ops/reduce/windows.h"

#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/presets.h"

namespace weft {

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

Dims infer_places(const InferCtx& c, TypeRef operand) {
  size_t rank = operand->shape().size();
  for (const AttrSpec& spec : c.op.attrs.specs())
    if (spec.type == AttrType::kInts)
      check_window_list(c, spec.name, c.attr().ints(spec.name), rank);
  check_window_padding(c, c.attr().ints_list("padding"), rank);
  Windows w(c.attr());
  Dims shape;
  for (size_t i = 0; i < rank; ++i) {
    if (w.size[i] < 1 && !is_symbolic(w.size[i]))
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

std::string window_text(const Windows& w, bool dilations) {
  Text t;
  if (dilations) t << "base_dilations = " << mlir_ints(w.base_dilation) << ", ";
  t << "padding = dense<" << (w.rank() ? bracketed_pairs(w.padding) : "") << "> : tensor<"
    << w.rank() << "x2xi64>, ";
  if (dilations) t << "window_dilations = " << mlir_ints(w.dilation) << ", ";
  t << "window_dimensions = " << mlir_ints(w.size) << ", window_strides = " << mlir_ints(w.strides);
  return t.take();
}

void batch_windows(BatchCtx& c, size_t apart) {
  size_t n = c.operands.size() - apart;
  int at = 0;
  for (size_t i = n; i-- > 0;)
    if (c.batched(i)) at = c.dim(i);
  Vals xs;
  for (size_t i = 0; i < n; ++i) xs.push_back(c.at(i, at));
  for (size_t i = n; i < c.operands.size(); ++i) xs.push_back(c.x(i));
  c.apply(xs, Windows(c.attr()).with_mapped(at).attrs(c.attr()), at);
}

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

namespace {

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

}  // namespace

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

GraphRef scalar_graph(DType dtype, size_t num_inputs,
                      const std::function<Vals(const Vals&)>& body) {
  GraphBuilder b;
  Vals inputs;
  for (size_t i = 0; i < num_inputs; ++i) inputs.push_back({&b, b.input(scalar_type(dtype))});
  Values outputs;
  for (Val v : body(inputs)) outputs.push_back(v.value);
  return b.finish(outputs);
}

}  // namespace weft
