// conv_general_dilated: a window of weights slides over an array, and the products under it are
// summed up. All of its derivatives are convolutions too.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/products/family.h"
#include "ops/products/products.h"
#include "ops/reduce/window.h"

namespace weft {
namespace {

// Axes of an array: of lhs and the result batch, features, then the window's; of rhs output
// features, input features, then the window's.
using ConvAxes = Dims;

struct Conv {
  ConvAxes lhs, rhs, out;
  Dims strides, lhs_dilation, rhs_dilation;
  std::vector<Dims> padding;
  int64_t feature_groups, batch_groups;

  explicit Conv(const AttrRecord& attrs)
      : strides(attrs.ints("window_strides")),
        lhs_dilation(attrs.ints("lhs_dilation")),
        rhs_dilation(attrs.ints("rhs_dilation")),
        padding(attrs.ints_list("padding")),
        feature_groups(attrs.integer("feature_group_count")),
        batch_groups(attrs.integer("batch_group_count")) {
    const std::vector<Dims>& axes = attrs.ints_list("dimension_numbers");
    lhs = axes[0];
    rhs = axes[1];
    out = axes[2];
  }

  size_t num_spatial() const { return strides.size(); }
  int64_t groups() const { return feature_groups * batch_groups; }  // one of them is 1
  int axis(const ConvAxes& axes, size_t i) const { return static_cast<int>(axes[i]); }
  Window window(TypeRef rhs_type, size_t i) const {
    return {rhs_type->dim(axis(rhs, i + 2)),
            strides[i],
            padding[i][0],
            padding[i][1],
            lhs_dilation[i],
            rhs_dilation[i]};
  }
  AttrsRef attrs(const AttrRecord& from) const {
    return from.with({{"dimension_numbers", std::vector<Dims>{lhs, rhs, out}},
                      {"window_strides", strides},
                      {"padding", padding},
                      {"lhs_dilation", lhs_dilation},
                      {"rhs_dilation", rhs_dilation},
                      {"feature_group_count", feature_groups},
                      {"batch_group_count", batch_groups}});
  }
};

void check_conv_axes(const InferCtx& c) {
  TypeRef lhs = c.in(0), rhs = c.in(1);
  if (lhs->rank() != rhs->rank() || lhs->rank() < 2)
    c.fail(ErrorKind::kShape,
           "expected operands of one rank, at least 2: batch and features or output and input ",
           "features, and the axes of the window; got ", operand_types(c));
  const std::vector<Dims>& axes = c.attr().ints_list("dimension_numbers");
  auto is_order = [&](const Dims& xs) {
    Dims sorted = xs;
    std::sort(sorted.begin(), sorted.end());
    return sorted == count_up(lhs->rank());
  };
  if (axes.size() != 3 || !std::all_of(axes.begin(), axes.end(), is_order))
    c.fail(ErrorKind::kValue, "expected dimension_numbers of 3 lists, for lhs, rhs and the result,",
           " each of the axes 0 to ", lhs->rank() - 1,
           " in some order; got dimension_numbers=", listed(axes), " (", operand_types(c), ")");
}

void check_groups(const InferCtx& c, const Conv& v) {
  if (v.feature_groups < 1 || v.batch_groups < 1 || (v.feature_groups > 1 && v.batch_groups > 1))
    c.fail(ErrorKind::kValue, "expected positive feature_group_count and batch_group_count, one ",
           "of them 1; got ", v.feature_groups, " and ", v.batch_groups);
  auto size = [&](size_t operand, const ConvAxes& axes, size_t i) {
    return c.in(operand)->dim(v.axis(axes, i));
  };
  int64_t batch = size(0, v.lhs, 0), features = size(0, v.lhs, 1);
  int64_t outputs = size(1, v.rhs, 0), inputs = size(1, v.rhs, 1);
  if (features % v.feature_groups != 0 || features / v.feature_groups != inputs)
    c.fail(ErrorKind::kShape, "expected lhs to have as many features as rhs has input features",
           v.feature_groups == 1 ? "" : " in each group", "; got ", features, " and ", inputs,
           ", feature_group_count=", v.feature_groups, " (", operand_types(c), ")");
  if (outputs % v.groups() != 0)
    c.fail(ErrorKind::kShape, "expected output features of rhs that are a multiple of ",
           v.feature_groups > 1 ? "feature_group_count=" : "batch_group_count=", v.groups(),
           "; got ", outputs, " (", operand_types(c), ")");
  if (dim_mod(batch, v.batch_groups) != 0)
    c.fail(ErrorKind::kShape, "expected a batch size of lhs that is a multiple of ",
           "batch_group_count=", v.batch_groups, "; got ", batch, " (", operand_types(c), ")");
}

TypeRefs infer_conv(const InferCtx& c) {
  check_conv_axes(c);
  if (c.in(0)->dtype() != c.in(1)->dtype())
    c.fail(ErrorKind::kDtype, "expected operands of one dtype; got ", operand_types(c));
  DType dtype = infer_product_dtype(c);
  size_t n = static_cast<size_t>(c.in(0)->rank() - 2);
  for (const char* name : {"window_strides", "lhs_dilation", "rhs_dilation"})
    check_window_list(c, name, c.attr().ints(name), n);
  check_window_padding(c, c.attr().ints_list("padding"), n);
  Conv v(c.attr());
  check_groups(c, v);
  Dims shape(c.in(0)->shape().size());
  auto set = [&](size_t i, int64_t size) { shape[static_cast<size_t>(v.out[i])] = size; };
  set(0, dim_floordiv(c.in(0)->dim(v.axis(v.lhs, 0)), v.batch_groups));
  set(1, c.in(1)->dim(v.axis(v.rhs, 0)));
  for (size_t i = 0; i < n; ++i)
    set(i + 2, window_places(c, c.in(0)->dim(v.axis(v.lhs, i + 2)), v.window(c.in(1), i), i));
  return {make_type(dtype, shape)};
}

Val conv(Val lhs, Val rhs, const Conv& v, const RuleCtx& c) {
  return apply(c.op, Vals{lhs, rhs}, v.attrs(c.attr()))[0];
}

// Splits an axis into groups and the rest.
Val split_axis(Val x, int axis, int64_t groups) {
  size_t i = static_cast<size_t>(axis);
  Dims shape = x.shape();
  shape[i] = dim_floordiv(shape[i], groups);
  return reshape(x, inserted(shape, axis, groups));
}
// Makes `n` neighbouring axes one.
Val merge_axes(Val x, int axis, int n) {
  Dims shape = x.shape();
  for (int i = 1; i < n; ++i) {
    int64_t& size = shape[static_cast<size_t>(axis)];
    size = dim_mul(size, shape[static_cast<size_t>(axis) + 1]);
    shape.erase(static_cast<size_t>(axis) + 1);
  }
  return reshape(x, shape);
}

// Makes an axis `from` part of axis `to` (numbered without it), within each of `groups`:
// (groups, rest) becomes (groups, from, rest).
Val join_axis(Val x, int from, int to, int64_t groups = 1) {
  x = move_axis(x, from, to);
  if (groups == 1) return merge_axes(x, to, 2);
  return merge_axes(move_axis(split_axis(x, to + 1, groups), to, to + 1), to, 3);
}
// The reverse: the axis that comes out stands at `axis`, before the rest.
Val part_axis(Val x, int axis, int64_t size, int64_t groups = 1) {
  if (groups == 1) return split_axis(x, axis, size);
  x = split_axis(split_axis(x, axis, groups), axis + 1, size);
  return merge_axes(move_axis(x, axis + 1, axis), axis + 1, 2);
}

// rhs with input and output features of each group exchanged: (inputs, groups x outputs) becomes
// (outputs, groups x inputs), on the same axes.
Val exchanged_features(Val rhs, const Conv& v) {
  int64_t groups = v.groups();
  if (groups == 1) return rhs;
  int out = v.axis(v.rhs, 0), in = v.axis(v.rhs, 1);
  rhs = split_axis(rhs, out, groups);
  return join_axis(rhs, out, in);  // in is numbered without the axis of groups
}

// The cotangent of lhs: that of the result, its elements as far apart as the strides, under the
// reversed window.
Val transpose_lhs(const TransposeCtx& c, const Conv& v) {
  TypeRef lhs = c.in_types[0], rhs = c.in_types[1], out = c.out_types[0];
  int64_t groups = v.groups();
  Conv back = v;
  back.lhs = v.out;
  back.rhs = v.rhs;
  std::swap(back.rhs[0], back.rhs[1]);
  back.out = v.lhs;
  back.feature_groups = groups;
  back.batch_groups = 1;
  back.strides = v.lhs_dilation;
  back.lhs_dilation = v.strides;
  Dims reversed;
  for (size_t i = 0; i < v.num_spatial(); ++i) {
    back.padding[i] = padding_back(v.window(rhs, i), lhs->dim(v.axis(v.lhs, i + 2)),
                                   out->dim(v.axis(v.out, i + 2)));
    reversed.push_back(v.rhs[i + 2]);
  }
  DType dtype = out->dtype();
  Val window = rev(exchanged_features(convert(c.x(1), dtype), v), reversed);
  Val ct = conv(c.ct(), window, back, c);
  if (v.batch_groups == 1) return ct;
  // The groups came out among the features; of lhs they are part of the batch.
  int batch = v.axis(v.lhs, 0), features = v.axis(v.lhs, 1);
  return join_axis(split_axis(ct, features, groups), features, batch);
}

// The cotangent of rhs: lhs under a window of the result's cotangent. Batch and features change
// places.
Val transpose_rhs(const TransposeCtx& c, const Conv& v) {
  TypeRef lhs = c.in_types[0], rhs = c.in_types[1], out = c.out_types[0];
  Conv back = v;
  back.lhs = v.lhs;
  std::swap(back.lhs[0], back.lhs[1]);
  back.rhs = v.out;
  std::swap(back.rhs[0], back.rhs[1]);
  back.out = v.rhs;
  std::swap(back.out[0], back.out[1]);
  std::swap(back.feature_groups, back.batch_groups);
  back.strides = v.rhs_dilation;
  back.rhs_dilation = v.strides;
  for (size_t i = 0; i < v.num_spatial(); ++i) {
    Checked size = dilated(lhs->dim(v.axis(v.lhs, i + 2)), v.lhs_dilation[i]);
    Checked extent = dilated(out->dim(v.axis(v.out, i + 2)), v.strides[i]);
    Checked to = dilated(rhs->dim(v.axis(v.rhs, i + 2)), v.rhs_dilation[i]);
    int64_t low = v.padding[i][0];
    back.padding[i] = {low, (to - 1 + extent - size - low).value()};
  }
  return conv(convert(c.x(0), out->dtype()), c.ct(), back, c);
}

void transpose_conv(TransposeCtx& c) {
  Conv v(c.attr());
  size_t side = c.linear(0) ? 0 : 1;
  TypeRef mine = c.in_types[side], other = c.in_types[1 - side];
  if (mine->num_elements() == 0 || other->num_elements() == 0 ||
      c.out_types[0]->num_elements() == 0)
    return c.add(side, zeros(c.b, mine));
  Val ct = side == 0 ? transpose_lhs(c, v) : transpose_rhs(c, v);
  c.add(side, convert(ct, mine->dtype()));
}

// A mapped lhs is more batch, a mapped rhs more output features, and where both are mapped there
// are more groups.
void batch_conv(BatchCtx& c) {
  Conv v(c.attr());
  int batch = v.axis(v.lhs, 0), features = v.axis(v.lhs, 1), outputs = v.axis(v.rhs, 0);
  int out_batch = v.axis(v.out, 0), out_features = v.axis(v.out, 1);
  if (c.size == 0)
    return c.result(zeros(c.b, with_shape(c.out_types[0], inserted(c.out_types[0]->shape(), 0, 0))),
                    0);
  if (!c.batched(1)) {
    Val y = conv(join_axis(c.x(0), c.dim(0), batch, v.batch_groups), c.x(1), v, c);
    return c.result(part_axis(y, out_batch, c.size), out_batch);
  }
  if (!c.batched(0)) {
    Val y = conv(c.x(0), join_axis(c.x(1), c.dim(1), outputs, v.groups()), v, c);
    return c.result(part_axis(y, out_features, c.size, v.groups()), out_features);
  }
  Val rhs = join_axis(c.x(1), c.dim(1), outputs);
  Val lhs = join_axis(c.x(0), c.dim(0), v.batch_groups > 1 ? batch : features);
  (v.batch_groups > 1 ? v.batch_groups : v.feature_groups) *= c.size;
  c.result(part_axis(conv(lhs, rhs, v, c), out_features, c.size), out_features);
}

// "[b, 0, 1, f]"
std::string axis_labels(const ConvAxes& axes, const char* first, const char* second) {
  std::vector<std::string> labels(axes.size());
  labels[static_cast<size_t>(axes[0])] = first;
  labels[static_cast<size_t>(axes[1])] = second;
  for (size_t i = 2; i < axes.size(); ++i) labels[static_cast<size_t>(axes[i])] = cat(i - 2);
  Text t;
  t << '[';
  for (size_t i = 0; i < labels.size(); ++i) t << (i ? ", " : "") << labels[i];
  t << ']';
  return t.take();
}

Val conv(Val lhs, Val rhs, const AttrsRef& attrs) {
  return apply(op_named<"conv_general_dilated">(), Vals{lhs, rhs}, attrs)[0];
}

// XLA has no complex convolutions, or slow ones: three real ones, as
// (a + bi)(c + di) = (a(c + d) - (a + b)d) + (a(c + d) + (b - a)c)i.
Val complex_conv(Val lhs, Val rhs, const AttrsRef& attrs) {
  Val a = real(lhs), b = imag(lhs), c = real(rhs), d = imag(rhs);
  Val common = conv(a, c + d, attrs);
  return complex(common - conv(a + b, d, attrs), common + conv(b - a, c, attrs));
}

// The kernels of XLA for CPU take images and results with batch first and features last, windows
// with input and output features last. It puts axes in this order only where a convolution stands
// outside of loops; elsewhere it falls back on a loop nest.
ConvAxes features_last(int rank) {
  ConvAxes axes{0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) axes.push_back(i);
  return axes;
}
ConvAxes output_features_last(int rank) {
  ConvAxes axes{rank - 1, rank - 2};
  for (int i = 0; i < rank - 2; ++i) axes.push_back(i);
  return axes;
}

// The axes `from` become `to`, one by one.
Val reordered(Val x, const ConvAxes& from, const ConvAxes& to) {
  return transpose(x, pick(from, inverse(to)));
}

Val conv_in_order(Val lhs, Val rhs, const Conv& v, const AttrRecord& attrs) {
  Conv w = v;
  w.lhs = w.out = features_last(lhs.rank());
  w.rhs = output_features_last(rhs.rank());
  Val y = conv(reordered(lhs, v.lhs, w.lhs), reordered(rhs, v.rhs, w.rhs), w.attrs(attrs));
  return reordered(y, w.out, v.out);
}

// Whether the window stands in one place, over elements only.
bool has_one_place(const Conv& v, TypeRef lhs, TypeRef rhs, TypeRef out) {
  for (size_t i = 0; i < v.num_spatial(); ++i) {
    Window w = v.window(rhs, i);
    bool is_inside =
        w.low <= 0 && dilated(w.size, w.dilation).value() - w.low <= lhs->dim(v.axis(v.lhs, i + 2));
    if (out->dim(v.axis(v.out, i + 2)) != 1 || w.base_dilation != 1 || !is_inside) return false;
  }
  return v.groups() == 1;
}

Val conv_as_dot(Val lhs, Val rhs, const Conv& v, const AttrRecord& attrs, TypeRef out) {
  Dims from(lhs.shape().size()), to = lhs.shape(), steps(lhs.shape().size(), 1);
  DotDims dims{{v.lhs[1]}, {v.rhs[1]}, {}, {}};
  for (size_t i = 0; i < v.num_spatial(); ++i) {
    size_t axis = static_cast<size_t>(v.lhs[i + 2]);
    Window w = v.window(rhs.type(), i);
    from[axis] = -w.low;
    to[axis] = dilated(w.size, w.dilation).value() - w.low;
    steps[axis] = w.dilation;
    dims.lhs_contract.push_back(v.lhs[i + 2]);
    dims.rhs_contract.push_back(v.rhs[i + 2]);
  }
  Val y = dot_general(slice(lhs, from, to, steps), rhs, dims, out->dtype(), attrs.at("precision"));
  if (v.out[0] > v.out[1]) y = transpose(y, {1, 0});
  return reshape(y, out->shape());
}

// In how many pieces to sum over the input features. XLA's kernel for images goes through both
// operands once for each few results. Where these are few and the operands do not fit in caches, as
// in the transpose by the window, it waits for memory most of the time.
int64_t num_pieces(const Conv& v, TypeRef lhs, TypeRef rhs, TypeRef out) {
  constexpr int64_t kCached = 2 << 20, kPiece = 1 << 20, kMost = 64;  // bytes; pieces
  if (v.num_spatial() != 2 || v.groups() > 1 || out->dtype() != DType::kF32) return 1;
  int64_t bytes = lhs->num_bytes() + rhs->num_bytes();
  if (bytes <= kCached || 4 * out->num_bytes() > bytes) return 1;
  int64_t features = lhs->dim(v.axis(v.lhs, 1)), pieces = 1;
  while (pieces < features && (features % pieces != 0 || bytes / pieces > kPiece)) ++pieces;
  return pieces <= kMost ? pieces : 1;
}

// `size` elements along an axis from `start` on.
Val piece(Val x, int axis, Val start, int64_t size) {
  Vals starts(static_cast<size_t>(x.rank()), scalar_like(start, 0));
  Dims sizes = x.shape();
  starts[static_cast<size_t>(axis)] = start;
  sizes[static_cast<size_t>(axis)] = size;
  return dynamic_slice(x, starts, sizes);
}

// A loop over pieces of the input features.
Val conv_in_pieces(Val lhs, Val rhs, const Conv& v, const AttrRecord& attrs, TypeRef out,
                   int64_t pieces) {
  int lhs_axis = v.axis(v.lhs, 1), rhs_axis = v.axis(v.rhs, 1);
  int64_t size = lhs.type()->dim(lhs_axis) / pieces;
  GraphBuilder body;
  Val x{&body, body.input(lhs.type())}, w{&body, body.input(rhs.type())};
  Val sum{&body, body.input(out)}, i{&body, body.input(scalar_type(DType::kI32))};
  Val start = i * static_cast<double>(size);
  Val next =
      sum + conv(piece(x, lhs_axis, start, size), piece(w, rhs_axis, start, size), v.attrs(attrs));
  Builder& b = *lhs.builder;
  Val xs[] = {lhs, rhs, zeros(b, out), iota(b, make_type(DType::kI32, {pieces}), 0)};
  return scan_over(b, xs, body.finish({&next.value, 1}),
                   {.length = pieces, .num_consts = 2, .num_carry = 1})[0];
}

void emit_conv(EmitCtx& c) {
  TypeRef lhs = c.in_type(0), rhs = c.in_type(1), out = c.out_type();
  if (lhs->num_elements() == 0 || rhs->num_elements() == 0 || out->num_elements() == 0)
    return c.set_out(0, c.constant(zero(out->dtype()), out->shape()));
  if (is_complex(out->dtype()))
    return emit_as(c, [&](const Vals& xs) {
      return complex_conv(convert(xs[0], out->dtype()), convert(xs[1], out->dtype()),
                          c.attr().with({{"preferred_element_type", std::monostate{}}}));
    });
  Conv v(c.attr());
  if (c.platform() == "cpu") {
    if (v.num_spatial() > 0 && has_one_place(v, lhs, rhs, out))
      return emit_as(c,
                     [&](const Vals& xs) { return conv_as_dot(xs[0], xs[1], v, c.attr(), out); });
    if (int64_t pieces = num_pieces(v, lhs, rhs, out); pieces > 1)
      return emit_as(c, [&](const Vals& xs) {
        return conv_in_pieces(xs[0], xs[1], v, c.attr(), out, pieces);
      });
    ConvAxes last = features_last(lhs->rank());
    if (v.lhs != last || v.out != last || v.rhs != output_features_last(lhs->rank()))
      return emit_as(c, [&](const Vals& xs) { return conv_in_order(xs[0], xs[1], v, c.attr()); });
  }
  emit_product(c, [&](std::string_view x, std::string_view y) {
    std::string_view precision = precision_name(c.attr());
    Text t;
    t << "stablehlo.convolution(" << x << ", " << y
      << ") dim_numbers = " << axis_labels(v.lhs, "b", "f") << 'x' << axis_labels(v.rhs, "o", "i")
      << "->" << axis_labels(v.out, "b", "f") << ", window = {";
    if (v.num_spatial() > 0)
      t << "stride = " << bracketed(v.strides) << ", pad = " << bracketed_pairs(v.padding)
        << ", lhs_dilate = " << bracketed(v.lhs_dilation)
        << ", rhs_dilate = " << bracketed(v.rhs_dilation);
    t << "} {batch_group_count = " << v.batch_groups
      << " : i64, feature_group_count = " << v.feature_groups
      << " : i64, precision_config = [#stablehlo<precision " << precision
      << ">, #stablehlo<precision " << precision << ">]}";
    return t.take();
  });
}

Cost cost_conv(const CostCtx& c) {
  Cost cost = cost_bytes(c);
  Conv v(*c.attrs);
  double outputs = static_cast<double>(c.in_types[1]->dim(v.axis(v.rhs, 0)));
  double weights = static_cast<double>(c.in_types[1]->num_elements());
  if (outputs > 0)
    cost.flops = 2.0 * static_cast<double>(c.out_types[0]->num_elements()) * weights / outputs;
  return cost;
}

// Batches and places are independent of each other; features are summed up.
void place_conv(PlaceCtx& c) {
  Conv v(c.attr());
  std::vector<Dims> to(2, Dims(c.in_types[0]->shape().size(), kWhole));
  auto put = [&](size_t operand, const ConvAxes& axes, size_t i, size_t out) {
    to[operand][static_cast<size_t>(axes[i])] = v.out[out];
  };
  if (v.batch_groups == 1) put(0, v.lhs, 0, 0);
  if (v.groups() == 1) put(1, v.rhs, 0, 1);
  for (size_t i = 0; i < v.num_spatial(); ++i) put(0, v.lhs, i + 2, i + 2);
  place_dims(c, to);
}

// XLA makes products, which may go to a library that kernels do without, of windows that stand in
// one place and of those of one element. Of larger convolutions the kernel's loop is slower.
bool conv_in_kernel(const CostCtx& c) {
  constexpr double kMostFlops = 100'000;
  Conv v(*c.attrs);
  TypeRef lhs = c.in_types[0], rhs = c.in_types[1];
  if (!is_same_in_kernel(c) || v.groups() != 1 || cost_conv(c).flops > kMostFlops) return false;
  int64_t window = 1;
  for (size_t i = 0; i < v.num_spatial(); ++i) window *= v.window(rhs, i).size;
  return window > 1 && !has_one_place(v, lhs, rhs, c.out_types[0]);
}

OpDef conv_op() {
  OpDef d;
  d.name = "conv_general_dilated";
  d.doc = "Products of an array and a window of weights that slides over it, summed up.";
  d.attrs = {{"window_strides", AttrType::kInts},
             {"padding", AttrType::kIntsList},
             {"lhs_dilation", AttrType::kInts},
             {"rhs_dilation", AttrType::kInts},
             {"dimension_numbers", AttrType::kIntsList},
             {"feature_group_count", AttrType::kInt},
             {"batch_group_count", AttrType::kInt},
             precision_attr(),
             preferred_element_type_attr()};
  d.num_operands = 2;
  d.infer = infer_conv;
  d.place = place_conv;
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = bilinear_jvp();
  d.transpose = transpose_conv;
  d.batch = batch_conv;
  d.emit = emit_conv;
  d.in_kernel = conv_in_kernel;
  d.cost = cost_conv;
  return d;
}

}  // namespace

void register_conv(OpRegistry& r) { r.add(conv_op()); }

}  // namespace weft
