// Ops that put arrays together and take them apart along axes: concatenate, split, pad. All are
// linear, so a jvp is the op itself.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/partition.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/shape/family.h"
#include "ops/shape/small_elements.h"

namespace weft {
namespace {

TypeRefs infer_concatenate(const InferCtx& c) {
  int64_t axis = c.attr().integer("dimension");
  if (c.size() == 0)
    c.fail(ErrorKind::kType, "expected at least one operand (concatenate C3); got none");
  TypeRef first = c.in(0);
  if (axis < 0 || axis >= first->rank())
    c.fail(ErrorKind::kValue, "expected dimension between 0 and ", first->rank() - 1,
           " (concatenate C4); got dimension=", axis, " (", operand_types(c), ")");
  Dims shape = first->shape();
  Checked total = first->dim(static_cast<int>(axis));
  for (size_t i = 1; i < c.size(); ++i) {
    TypeRef x = c.in(i);
    if (x->dtype() != first->dtype())
      c.fail(ErrorKind::kDtype, "expected operands of one dtype (concatenate C1); got ",
             operand_types(c));
    if (x->rank() != first->rank() ||
        drop_axes(x->shape(), {axis}) != drop_axes(first->shape(), {axis}))
      c.fail(ErrorKind::kShape, "expected operands of equal shape but for axis ", axis,
             " (concatenate C2); got ", operand_types(c));
    total = total + x->dim(static_cast<int>(axis));
  }
  if (!total.fits())
    c.fail(ErrorKind::kShape, "expected a result size below 2**62 for axis ", axis, "; got ",
           operand_types(c));
  shape[static_cast<size_t>(axis)] = total.value();
  return {with_shape(first, shape)};
}

void transpose_concatenate(TransposeCtx& c) {
  size_t axis = static_cast<size_t>(c.attr().integer("dimension"));
  Dims start(c.out_types[0]->shape().size());
  for (size_t i = 0; i < c.size(); ++i) {
    Dims limit = c.out_types[0]->shape();
    limit[axis] = dim_add(start[axis], c.in_types[i]->shape()[axis]);
    if (c.linear(i)) c.add(i, slice(c.ct(), start, limit));
    start[axis] = limit[axis];
  }
}

void batch_concatenate(BatchCtx& c) {
  int at = *std::find_if(c.dims.begin(), c.dims.end(), [](int d) { return d != kNotBatched; });
  Vals xs;
  for (size_t i = 0; i < c.operands.size(); ++i) xs.push_back(c.at(i, at));
  c.result(concatenate(xs, static_cast<int>(shifted(c.attr().integer("dimension"), at))), at);
}

Vals concatenate_of_empty(SimplifyCtx& c) {
  int axis = static_cast<int>(c.attr().integer("dimension"));
  Vals kept;
  for (size_t i = 0; i < c.size(); ++i)
    if (c.in_types[i]->dim(axis) > 0) kept.push_back(c.x(i));
  if (kept.empty()) kept.push_back(c.x(0));
  if (kept.size() == c.size() && c.size() > 1) return {};
  return {kept.size() == 1 ? kept[0] : concatenate(kept, axis)};
}

// The operands of concatenates along the same axis, in place of these.
Vals concatenate_of_concatenate(SimplifyCtx& c) {
  int64_t axis = c.attr().integer("dimension");
  Vals parts;
  for (size_t i = 0; i < c.size(); ++i) {
    const Op* op = c.made_by<"concatenate">(c.x(i));
    if (op && op->attrs->integer("dimension") == axis && c.is_only_use(c.x(i))) {
      for (size_t k = 0; k < op->num_operands; ++k) parts.push_back(c.operand(*op, k));
    } else {
      parts.push_back(c.x(i));
    }
  }
  if (parts.size() == c.size()) return {};
  return {concatenate(parts, static_cast<int>(axis))};
}

// Slices of one array that lie side by side there too are one slice.
Vals concatenate_of_slices(SimplifyCtx& c) {
  size_t axis = static_cast<size_t>(c.attr().integer("dimension"));
  Vals parts;
  bool found = false;
  for (size_t i = 0; i < c.size();) {
    const Op* first = c.made_by<"slice">(c.x(i));
    size_t next = i + 1;
    if (first && first->attrs->is_none("strides")) {
      Dims start = first->attrs->ints("start_indices"), limit = first->attrs->ints("limit_indices");
      for (; next < c.size(); ++next) {
        const Op* op = c.made_by<"slice">(c.x(next));
        if (!op || !op->attrs->is_none("strides") ||
            c.operand(*op, 0).value != c.operand(*first, 0).value)
          break;
        Dims expected = start, end = op->attrs->ints("limit_indices");
        expected[axis] = limit[axis];
        if (op->attrs->ints("start_indices") != expected) break;
        limit[axis] = end[axis];  // concatenated, they are of one shape along the other axes
      }
      if (next > i + 1) {
        parts.push_back(slice(c.operand(*first, 0), start, limit));
        found = true;
      }
    }
    if (next == i + 1) parts.push_back(c.x(i));
    i = next;
  }
  if (!found) return {};
  return {concatenate(parts, static_cast<int>(axis))};
}

// XLA puts what makes an operand into the kernel of a concatenate if that has few operands only: a
// hundred scalars that were computed one by one are otherwise a hundred kernels.
constexpr size_t kFused = 8;
constexpr int64_t kFewElements = 16;

bool gains_from_groups(EmitCtx& c) {
  auto is_small = [](TypeRef type) { return type->num_elements() <= kFewElements; };
  return c.platform() == "cpu" && c.in_types.size() > kFused &&
         std::all_of(c.in_types.begin(), c.in_types.end(), is_small);
}

// Groups of operands first. That they get a leading axis of size 1 hides from XLA that concatenates
// of concatenates could be one.
Val concatenate_groups(const Vals& xs, int axis) {
  if (xs.size() <= kFused) return concatenate(xs, axis);
  Vals groups;
  for (size_t i = 0; i < xs.size(); i += kFused) {
    size_t size = std::min(kFused, xs.size() - i);
    Val group = concatenate({xs.begin() + i, size}, axis);
    groups.push_back(reshape(group, inserted(group.shape(), 0, 1)));
  }
  Val all = concatenate_groups(groups, axis + 1);
  return reshape(all, drop_axes(all.shape(), {0}));
}

void emit_concatenate(EmitCtx& c) {
  int axis = static_cast<int>(c.attr().integer("dimension"));
  if (gains_from_groups(c))
    return emit_as(c, [&](const Vals& xs) { return concatenate_groups(xs, axis); });
  emit_results(
      c, cat("stablehlo.concatenate ", operand_list(c), ", dim = ", axis, " : ", signature(c)));
}

OpDef concatenate_op() {
  OpDef d;
  d.name = "concatenate";
  d.doc = "Joins arrays along an axis that they have.";
  d.attrs = {{"dimension", AttrType::kInt}};
  d.infer = infer_concatenate;
  d.place = [](PlaceCtx& c) { place_equal(c); };
  linear(d, transpose_concatenate);
  d.batch = batch_concatenate;
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_in_bytes("concatenate", emit_concatenate);
  d.simplify = {
      {"concatenate_empty", "operands of size 0 are dropped; one operand x -> x",
       concatenate_of_empty},
      {"concatenate_of_concatenate", "concatenate(concatenate(x, y), z) -> concatenate(x, y, z)",
       concatenate_of_concatenate},
      {"concatenate_of_slices", "concatenate(x[a:b], x[b:c]) -> x[a:c]", concatenate_of_slices},
  };
  d.cost = cost_bytes;
  return d;
}

TypeRefs infer_split(const InferCtx& c) {
  TypeRef x = c.in(0);
  int64_t axis = c.attr().integer("axis");
  const Dims& sizes = c.attr().ints("sizes");
  if (axis < 0 || axis >= x->rank())
    c.fail(ErrorKind::kValue, "expected axis between 0 and ", x->rank() - 1, "; got axis=", axis,
           " (operand: ", x, ")");
  int64_t length = x->dim(static_cast<int>(axis));
  bool negative = std::any_of(sizes.begin(), sizes.end(), is_negative);
  if (negative || !(checked_sum(sizes) == length))
    c.fail(ErrorKind::kValue, "expected sizes >= 0 that add up to ", length, "; got sizes=", sizes,
           " (operand: ", x, ")");
  TypeRefs out;
  for (int64_t n : sizes) {
    Dims shape = x->shape();
    shape[static_cast<size_t>(axis)] = n;
    out.push_back(with_shape(x, shape));
  }
  return out;
}

Vals split_into_slices(RuleCtx& c) {
  size_t axis = static_cast<size_t>(c.attr().integer("axis"));
  Dims start(c.in_types[0]->shape().size()), limit = c.in_types[0]->shape();
  Vals out;
  for (int64_t n : c.attr().ints("sizes")) {
    limit[axis] = dim_add(start[axis], n);
    out.push_back(slice(c.x(0), start, limit));
    start[axis] = limit[axis];
  }
  return out;
}

// split(concatenate(xs)) with the sizes of the xs.
Vals split_of_concatenate(SimplifyCtx& c) {
  const Op* op = c.made_by<"concatenate">(c.x(0));
  int64_t axis = c.attr().integer("axis");
  if (!op || op->attrs->integer("dimension") != axis || op->num_operands != c.out_types.size())
    return {};
  Vals xs;
  for (size_t i = 0; i < c.out_types.size(); ++i) {
    xs.push_back(c.operand(*op, i));
    if (xs.back().type() != c.out_types[i]) return {};
  }
  return xs;
}

OpDef split_op() {
  OpDef d;
  d.name = "split";
  d.doc = "Cuts an array along an axis into parts of given sizes, one result each.";
  d.attrs = {{"axis", AttrType::kInt}, {"sizes", AttrType::kInts}};
  d.num_operands = 1;
  d.multiple_results = true;
  d.infer = infer_split;
  d.place = [](PlaceCtx& c) { place_alike(c); };
  linear(d, [](TransposeCtx& c) {
    Vals cts;
    for (size_t r = 0; r < c.out_types.size(); ++r) cts.push_back(c.ct(r));
    c.add(0, concatenate(cts, static_cast<int>(c.attr().integer("axis"))));
  });
  d.batch = [](BatchCtx& c) {
    int at = c.dim(0);
    Val xs[] = {c.x(0)};
    c.apply(xs, c.attrs->with({{"axis", shifted(c.attr().integer("axis"), at)}}), at);
  };
  d.decompose = split_into_slices;
  d.simplify = {
      {"split_into_one", "split(x, (n,)) -> x",
       [](SimplifyCtx& c) { return c.out_types.size() == 1 ? Vals{c.x(0)} : Vals{}; }},
      {"split_of_concatenate", "split(concatenate(x, y)) -> x, y", split_of_concatenate},
  };
  d.cost = cost_bytes;
  return d;
}

enum { kLow, kHigh, kInterior };  // positions in an entry of padding_config

Checked with_interior(int64_t n, int64_t interior) {
  return Checked(n) + Checked(dim_max((Checked(n) - 1).value(), 0)) * interior;
}

TypeRefs infer_pad(const InferCtx& c) {
  TypeRef x = c.in(0);
  const std::vector<Dims>& config = c.attr().ints_list("padding_config");
  if (c.in(1)->rank() != 0 || c.in(1)->dtype() != x->dtype())
    c.fail(c.in(1)->rank() != 0 ? ErrorKind::kShape : ErrorKind::kDtype,
           "expected a scalar padding value of the operand's dtype (pad C1); got ",
           operand_types(c));
  if (static_cast<int>(config.size()) != x->rank())
    c.fail(ErrorKind::kValue, "expected one (low, high, interior) per axis in padding_config ",
           "(pad C2); got ", config.size(), " entries (operand: ", x, ")");
  Dims shape;
  for (size_t i = 0; i < config.size(); ++i) {
    const Dims& p = config[i];
    if (p.size() != 3)
      c.fail(ErrorKind::kValue, "expected (low, high, interior) for axis ", i, "; got ", p,
             " (operand: ", x, ")");
    if (is_negative(p[kInterior]))
      c.fail(ErrorKind::kValue, "expected interior padding >= 0 (pad C3); got ", p, " for axis ", i,
             " (operand: ", x, ")");
    // Rules turn padding around and step over it.
    if (std::any_of(p.begin(), p.end(), [](int64_t n) { return n <= -kMaxDim || n >= kMaxDim; }))
      c.fail(ErrorKind::kValue, "expected padding between -2**62 and 2**62; got ", p, " for axis ",
             i, " (operand: ", x, ")");
    Checked n = Checked(p[kLow]) + with_interior(x->shape()[i], p[kInterior]) + p[kHigh];
    if (!n.within(0, kMaxDim))
      c.fail(ErrorKind::kShape, "expected a result size of at least 0 and below 2**62 for axis ", i,
             " (pad C4); got (low, high, interior) = ", p, " (operand: ", x, ")");
    shape.push_back(n.value());
  }
  return {with_shape(x, shape)};
}

// True where the result holds an element of the operand, false where it is padding.
Val covered(Builder& b, TypeRef operand, const std::vector<Dims>& config) {
  Val inside = full(b, with_dtype(operand, DType::kBool), 1);
  return pad(inside, {&b, b.literal(make_literal(DType::kBool, int64_t{0}))}, config);
}

void transpose_pad(TransposeCtx& c) {
  const std::vector<Dims>& config = c.attr().ints_list("padding_config");
  if (c.linear(0)) {
    // Take off the edges (negative padding put zeros back), then step over the interior.
    std::vector<Dims> edges;
    Dims start, limit, strides;
    for (size_t i = 0; i < config.size(); ++i) {
      edges.push_back({dim_sub(0, config[i][kLow]), dim_sub(0, config[i][kHigh]), 0});
      start.push_back(0);
      limit.push_back(with_interior(c.in_types[0]->shape()[i], config[i][kInterior]).value());
      strides.push_back(dim_add(config[i][kInterior], 1));
    }
    Val ct = c.ct();
    c.add(0, slice(pad(ct, scalar_like(ct, 0), edges), start, limit, strides));
  }
  // The sum over the padding alone: the difference of two sums would cancel.
  if (c.linear(1)) {
    Val ct = c.ct();
    Val outside = select(covered(c.b, c.in_types[0], config), zeros_like(ct), ct);
    c.add(1, reduce_sum(outside, count_up(outside.rank())));
  }
}

void batch_pad(BatchCtx& c) {
  std::vector<Dims> config = c.attr().ints_list("padding_config");
  int at = c.batched(0) ? c.dim(0) : 0;
  auto axis = config.begin() + at;
  if (!c.batched(1)) {
    config.insert(axis, Dims{0, 0, 0});
    c.result(pad(c.x(0), c.x(1), config), at);
    return;
  }
  // Each lane has its padding value: pad with zeros, then choose.
  Val inside = covered(c.b, c.in_types[0], config);
  config.insert(axis, Dims{0, 0, 0});
  Val x = pad(c.at(0, at), scalar_like(c.x(0), 0), config);
  Dims others = other_axes(x.rank(), {at});
  c.result(select(broadcast_in_dim(inside, x.shape(), others), x,
                  broadcast_in_dim(c.x(1), x.shape(), {at})),
           at);
}

// Padding that only takes away is a slice; no padding is the operand.
Vals pad_that_crops(SimplifyCtx& c) {
  const std::vector<Dims>& config = c.attr().ints_list("padding_config");
  Dims start, limit;
  for (size_t i = 0; i < config.size(); ++i) {
    int64_t n = c.in_types[0]->shape()[i];
    bool gaps = config[i][kInterior] > 0 && n > 1;
    if (config[i][kLow] > 0 || config[i][kHigh] > 0 || gaps) return {};
    start.push_back(-config[i][kLow]);
    limit.push_back(n + config[i][kHigh]);
  }
  return {c.out_types[0] == c.in_types[0] ? c.x(0) : slice(c.x(0), start, limit)};
}

// Padding with one value, then with more of it around.
Vals pad_of_pad(SimplifyCtx& c) {
  const Op* op = c.made_by<"pad">(c.x(0));
  if (!op || c.operand(*op, 1).value != c.x(1).value) return {};
  std::vector<Dims> config = op->attrs->ints_list("padding_config");
  const std::vector<Dims>& outer = c.attr().ints_list("padding_config");
  for (size_t i = 0; i < config.size(); ++i) {
    for (int edge : {kLow, kHigh}) {
      size_t e = static_cast<size_t>(edge);
      if (config[i][e] < 0 || outer[i][e] < 0) return {};
      config[i][e] += outer[i][e];
    }
    if (outer[i][kInterior] != 0) return {};
  }
  return {pad(c.operand(*op, 0), c.x(1), config)};
}

std::string emit_padded(EmitCtx& c, std::string_view x, TypeRef from, const Dims (&part)[3],
                        TypeRef to) {
  TypeRef types[] = {from, c.in_types[1]};
  return c.line(cat("stablehlo.pad ", x, ", ", c.in(1), ", low = ", bracketed(part[kLow]),
                    ", high = ", bracketed(part[kHigh]), ", interior = ",
                    bracketed(part[kInterior]), " : ", signature(types, {&to, 1})));
}

// The operand with as many elements behind each along an axis as go between two; `type` becomes its
// type. Each element gets an axis of its own, which is padded and joined to the first.
std::string emit_spread(EmitCtx& c, const Dims& interior, TypeRef& type) {
  Dims apart, padded, joined, part[3];
  for (size_t i = 0; i < interior.size(); ++i) {
    int64_t n = type->shape()[i], gap = interior[i];
    joined.push_back(n * (gap + 1));
    auto add_axis = [&](int64_t size, int64_t high) {
      apart.push_back(size);
      padded.push_back(size + high);
      part[kHigh].push_back(high);
    };
    add_axis(n, 0);
    if (gap > 0) add_axis(1, gap);
  }
  part[kLow] = part[kInterior] = Dims(apart.size());
  TypeRef of_apart = with_shape(type, apart), of_padded = with_shape(type, padded);
  auto reshaped = [&](std::string x, TypeRef from, TypeRef to) {
    return emit_op(c, "stablehlo.reshape", {&x, 1}, {&from, 1}, to);
  };
  std::string made = reshaped(c.in(0), type, of_apart);
  made = emit_padded(c, made, of_apart, part, of_padded);
  type = with_shape(type, joined);
  return reshaped(made, of_padded, type);
}

void emit_pad(EmitCtx& c) {
  TypeRef type = c.out_type(), from = c.in_types[0];
  if (type->rank() == 0) return c.set_out(0, c.in(0));
  Dims part[3];
  for (const Dims& p : c.attr().ints_list("padding_config"))
    for (int k : {kLow, kHigh, kInterior}) part[k].push_back(p[static_cast<size_t>(k)]);
  if (!may_be_split(c)) return c.set_out(0, emit_padded(c, c.in(0), from, part, type));
  // XLA's partitioner goes wrong along a split axis that is spread out, and leaves out a shift of
  // what is whole on every device to where it is split. So where an axis may be split, other ops
  // spread it out, and the cropping comes after.
  std::string made = c.in(0);
  Dims& gaps = part[kInterior];
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (from->shape()[i] < 2) gaps[i] = 0;
    part[kHigh][i] -= gaps[i];
  }
  if (std::ranges::any_of(gaps, [](int64_t gap) { return gap > 0; }))
    made = emit_spread(c, gaps, from);
  gaps = Dims(gaps.size());
  Dims shape = type->shape();
  Text kept;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t start = std::max<int64_t>(-part[kLow][i], 0);
    kept << (i ? ", " : "") << start << ':' << start + shape[i];
    shape[i] += start + std::max<int64_t>(-part[kHigh][i], 0);
    for (int k : {kLow, kHigh}) part[k][i] = std::max<int64_t>(part[k][i], 0);
  }
  TypeRef padded = with_shape(type, shape);
  if (padded != from) made = emit_padded(c, made, from, part, padded);
  if (padded == type) return c.set_out(0, made);
  made = c.line(cat("stablehlo.slice ", made, " [", kept.view(),
                    "] : ", signature({&padded, 1}, {&type, 1})));
  c.set_out(0, emit_apart(c, made, type));
}

OpDef pad_op() {
  OpDef d;
  d.name = "pad";
  d.doc = "Adds a value at the edges of and between elements; negative edge padding crops.";
  d.attrs = {{"padding_config", AttrType::kIntsList}};
  d.num_operands = 2;
  d.infer = infer_pad;
  d.place = [](PlaceCtx& c) { place_alike(c); };
  linear(d, transpose_pad);
  d.batch = batch_pad;
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_pad;
  d.simplify = {
      {"pad_crop", "pad by nothing -> x; by negative edges only -> slice(x)", pad_that_crops},
      {"pad_of_pad", "pad(pad(x, s), s) -> pad(x, s)", pad_of_pad},
  };
  d.cost = cost_bytes;
  return d;
}

}  // namespace

void register_concat(OpRegistry& r) {
  for (OpDef d : {concatenate_op(), split_op(), pad_op()}) r.add(std::move(d));
}

}  // namespace weft
