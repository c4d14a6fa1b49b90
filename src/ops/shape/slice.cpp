// Ops that read or write a block of an array: slice, dynamic_slice, dynamic_update_slice. Start
// indices of the dynamic ones clamp, so that the block lies inside the array.
#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/partition.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/shape/family.h"

namespace weft {
namespace {

Dims given_strides(const AttrRecord& attrs) {
  if (!attrs.is_none("strides")) return attrs.ints("strides");
  return Dims(attrs.ints("start_indices").size(), 1);
}

// Strides as short as they can be: one past the limit takes the first element, however long it is.
Dims strides_of(const AttrRecord& attrs) {
  const Dims& start = attrs.ints("start_indices");
  const Dims& limit = attrs.ints("limit_indices");
  Dims strides = given_strides(attrs);
  for (size_t i = 0; i < strides.size(); ++i)
    if (!is_symbolic(start[i]) && !is_symbolic(limit[i]))
      strides[i] = std::min(strides[i], std::max<int64_t>(limit[i] - start[i], 1));
  return strides;
}

TypeRefs infer_slice(const InferCtx& c) {
  TypeRef x = c.in(0);
  const Dims& start = c.attr().ints("start_indices");
  const Dims& limit = c.attr().ints("limit_indices");
  Dims strides = given_strides(c.attr());
  size_t rank = x->shape().size();
  auto got = [&] {
    return cat("; got start_indices=", start, ", limit_indices=", limit, ", strides=", strides,
               " (operand: ", x, ")");
  };
  if (start.size() != rank || limit.size() != rank || strides.size() != rank)
    c.fail(ErrorKind::kValue, "expected one start, limit and stride per operand axis (slice C2)",
           got());
  Dims shape;
  for (size_t i = 0; i < rank; ++i) {
    Checked begin = start[i], end = limit[i];
    if (!(begin >= 0 && begin <= end && end <= x->shape()[i]))
      c.fail(ErrorKind::kValue, "expected 0 <= start <= limit <= ", x->shape()[i], " for axis ", i,
             " (slice C3)", got());
    if (!(Checked(strides[i]) >= 1))
      c.fail(ErrorKind::kValue, "expected strides > 0 for axis ", i, " (slice C4)", got());
    shape.push_back(divide_up((end - begin).value(), strides[i]));
  }
  return {with_shape(x, shape)};
}

// The cotangent is added to the block it came from, with zeros between elements that the strides
// left out.
void transpose_slice(TransposeCtx& c) {
  const Dims& start = c.attr().ints("start_indices");
  Val ct = c.ct();
  std::vector<Dims> gaps;
  for (int64_t stride : strides_of(c.attr())) gaps.push_back({0, 0, stride - 1});
  c.add_block(0, start, pad(ct, scalar_like(ct, 0), gaps));
}

void batch_slice(BatchCtx& c) {
  int at = c.dim(0);
  Dims strides = strides_of(c.attr());
  c.result(slice(c.x(0), inserted(c.attr().ints("start_indices"), at, 0),
                 inserted(c.attr().ints("limit_indices"), at, c.size),
                 c.attr().is_none("strides") ? Dims() : inserted(strides, at, 1)),
           at);
}

Vals slice_of_slice(SimplifyCtx& c) {
  const Op* op = c.made_by<"slice">(c.x(0));
  if (!op) return {};
  Val source = c.operand(*op, 0);
  Dims inner_strides = strides_of(*op->attrs), strides = strides_of(c.attr());
  Dims start, limit;
  for (size_t i = 0; i < strides.size(); ++i) {
    start.push_back(op->attrs->ints("start_indices")[i] +
                    c.attr().ints("start_indices")[i] * inner_strides[i]);
    strides[i] *= inner_strides[i];
    int64_t n = c.out_types[0]->shape()[i];
    if (n == 0) start.back() = 0;  // may stand past the end
    limit.push_back(n == 0 ? 0 : start.back() + (n - 1) * strides[i] + 1);
  }
  return {slice(source, start, limit, strides)};
}

// A slice that falls inside one operand of a concatenate.
Vals slice_of_concatenate(SimplifyCtx& c) {
  const Op* op = c.made_by<"concatenate">(c.x(0));
  if (!op) return {};
  size_t axis = static_cast<size_t>(op->attrs->integer("dimension"));
  Dims start = c.attr().ints("start_indices"), limit = c.attr().ints("limit_indices");
  int64_t begin = 0;
  for (size_t i = 0; i < op->num_operands; ++i) {
    Val part = c.operand(*op, i);
    int64_t end = begin + part.shape()[axis];
    if (begin <= start[axis] && limit[axis] <= end) {
      start[axis] -= begin;
      limit[axis] -= begin;
      return {slice(part, start, limit, strides_of(c.attr()))};
    }
    begin = end;
  }
  return {};
}

Vals slice_of_splat(SimplifyCtx& c) {
  std::optional<Literal> x = c.splat(c.x(0));
  if (!x) return {};
  return {broadcast_to(c.val(c.b.literal(*x)), c.out_types[0]->shape())};
}

void emit_slice(EmitCtx& c) {
  if (c.out_type()->rank() == 0) return c.set_out(0, c.in(0));
  const Dims& start = c.attr().ints("start_indices");
  const Dims& limit = c.attr().ints("limit_indices");
  Dims strides = strides_of(c.attr());
  Text t;
  t << "stablehlo.slice " << c.in(0) << " [";
  for (size_t i = 0; i < start.size(); ++i) {
    t << (i ? ", " : "") << start[i] << ':' << limit[i];
    if (strides[i] != 1) t << ':' << strides[i];
  }
  t << "] : " << signature(c);
  std::string made = c.line(t.view());
  bool is_first = std::ranges::all_of(start, [](int64_t i) { return i == 0; });
  c.set_out(0, is_first && may_be_split(c) ? emit_apart(c, made, c.out_type()) : made);
}

// Reads and writes the block only.
Cost cost_of_block(TypeRef block) {
  return {.bytes = 2.0 * static_cast<double>(block->num_bytes())};
}

OpDef slice_op() {
  OpDef d;
  d.name = "slice";
  d.doc = "A block of an array between fixed start and limit indices, by steps.";
  d.attrs = {{"start_indices", AttrType::kInts},
             {"limit_indices", AttrType::kInts},
             {"strides", AttrType::kInts, AttrSpec::kOptional}};
  d.num_operands = 1;
  d.infer = infer_slice;
  d.place = [](PlaceCtx& c) { place_alike(c); };
  linear(d, transpose_slice);
  d.batch = batch_slice;
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_slice;
  d.simplify = {
      {"slice_all", "slice(x) of every element -> x",
       [](SimplifyCtx& c) { return c.out_types[0] == c.in_types[0] ? Vals{c.x(0)} : Vals{}; }},
      {"slice_splat", "slice(broadcast(s)) -> broadcast(s)", slice_of_splat},
      {"slice_of_slice", "slice(slice(x)) -> slice(x)", slice_of_slice},
      {"slice_of_concatenate", "slice(concatenate(.., x, ..)) within x -> slice(x)",
       slice_of_concatenate},
  };
  d.cost = [](const CostCtx& c) { return cost_of_block(c.out_types[0]); };
  return d;
}

// Start indices: `first` is the position of the first among the operands.
void check_start_indices(const InferCtx& c, size_t first) {
  TypeRef x = c.in(0);
  if (c.size() != first + static_cast<size_t>(x->rank()))
    c.fail(ErrorKind::kType, "expected one start index per axis of the operand (", c.op.name, " C",
           first == 1 ? 2 : 4, "); got ", c.size() < first ? 0 : c.size() - first, " (",
           operand_types(c), ")");
  for (size_t i = first; i < c.size(); ++i) {
    if (c.in(i)->rank() != 0)
      c.fail(ErrorKind::kShape, "expected scalar start indices; got ", operand_types(c));
    if (!is_integer(c.in(i)->dtype()) || c.in(i)->dtype() != c.in(first)->dtype())
      c.fail(ErrorKind::kDtype, "expected start indices of one integer dtype (", c.op.name, " C",
             first == 1 ? 3 : 5, "); got ", operand_types(c));
  }
}

// The operands from `first` on.
Vals operands_from(const RuleCtx& c, size_t first) {
  Vals r;
  for (size_t i = first; i < c.size(); ++i) r.push_back(c.x(i));
  return r;
}

// Constant start indices, clamped; nullopt unless all are constant.
std::optional<Dims> constant_starts(const SimplifyCtx& c, const Vals& given, const Dims& array,
                                    const Dims& block) {
  Dims starts;
  for (size_t i = 0; i < block.size(); ++i) {
    std::optional<Literal> s = c.splat(given[i]);
    if (!s) return std::nullopt;
    int64_t room = array[i] - block[i];
    bool huge = is_unsigned_int(s->dtype) && s->lo > static_cast<uint64_t>(room);
    starts.push_back(huge ? room : std::clamp<int64_t>(s->as_int(), 0, room));
  }
  return starts;
}

// A block as a window that one index vector addresses, and the index vectors of all lanes, stacked.
// Axes that the block spans are left out, since their start can only be 0.
struct LaneBlocks {
  Addressing addressing;
  Val indices;
};
LaneBlocks lane_blocks(const BatchCtx& c, size_t first, const Dims& block) {
  Addressing a{.window_axes = count_up(static_cast<int>(block.size())), .unique = true};
  Vals starts;
  for (size_t i = 0; i < block.size(); ++i) {
    bool only_choice = starts.empty() && i + 1 == block.size();
    if (block[i] == c.in_types[0]->shape()[i] && !only_choice) continue;
    a.index_map.push_back(static_cast<int64_t>(i));
    starts.push_back(expand_dim(c.at(first + i, 0), 1));
  }
  return {a, concatenate(starts, 1)};
}

// Start indices of the batched op for the axes whose index is the same for all lanes, 0 elsewhere.
Vals shared_starts(const BatchCtx& c, size_t first, int at) {
  Vals r;
  DType dtype = c.in_types.size() > first ? c.in_types[first]->dtype() : DType::kI32;
  Val zero = c.val(c.b.literal(make_literal(dtype, int64_t{0})));
  for (size_t i = first; i < c.operands.size(); ++i) r.push_back(c.batched(i) ? zero : c.x(i));
  r.insert(static_cast<size_t>(at), zero);
  return r;
}

bool has_lane_starts(const BatchCtx& c, size_t first) {
  return std::any_of(c.dims.begin() + static_cast<std::ptrdiff_t>(first), c.dims.end(),
                     [](int d) { return d != kNotBatched; });
}

TypeRefs infer_dynamic_slice(const InferCtx& c) {
  if (c.size() == 0) c.fail(ErrorKind::kType, "expected an operand to slice; got none");
  TypeRef x = c.in(0);
  const Dims& sizes = c.attr().ints("slice_sizes");
  check_start_indices(c, 1);
  bool fits_inside = sizes.size() == x->shape().size();
  for (size_t i = 0; fits_inside && i < sizes.size(); ++i)
    fits_inside = Checked(sizes[i]) >= 0 && Checked(sizes[i]) <= x->shape()[i];
  if (!fits_inside)
    c.fail(ErrorKind::kShape, "expected slice_sizes between 0 and the operand's shape ", x->shape(),
           " (dynamic_slice C4); got slice_sizes=", sizes, " (operand: ", x, ")");
  return {with_shape(x, sizes)};
}

// Start indices from operand `first` on, of a block of `sizes`.
void check_starts(CheckCtx& c, size_t first, const Dims& sizes) {
  if (sizes.empty()) return;
  Vals starts;
  for (const Val& start : operands_from(c, first)) starts.push_back(reshape(start, {1}));
  Addressing a{.index_map = count_up(static_cast<int>(sizes.size()))};
  check_within(c, concatenate(starts, 0), a, sizes);
}

void transpose_dynamic_slice(TransposeCtx& c) {
  Vals starts = operands_from(c, 1);
  c.accumulate(
      0,
      [&](Val sum) {
        Val block = dynamic_slice(sum, starts, c.attr().ints("slice_sizes"));
        return dynamic_update_slice(sum, apply1("add_any", {block, c.ct()}), starts);
      },
      [&] { return dynamic_update_slice(zeros(c.b, c.in_types[0]), c.ct(), starts); });
}

void batch_dynamic_slice(BatchCtx& c) {
  const Dims& sizes = c.attr().ints("slice_sizes");
  if (!has_lane_starts(c, 1)) {
    int at = c.dim(0);
    c.result(dynamic_slice(c.x(0), shared_starts(c, 1, at), inserted(sizes, at, c.size)), at);
    return;
  }
  LaneBlocks blocks = lane_blocks(c, 1, sizes);
  c.result(gather_lanes(c.x(0), c.dim(0), blocks.indices, blocks.addressing, sizes), 0);
}

Vals dynamic_slice_constant(SimplifyCtx& c) {
  const Dims& sizes = c.attr().ints("slice_sizes");
  std::optional<Dims> starts =
      constant_starts(c, operands_from(c, 1), c.in_types[0]->shape(), sizes);
  if (!starts) return {};
  Dims limit = *starts;
  for (size_t i = 0; i < limit.size(); ++i) limit[i] += sizes[i];
  return {slice(c.x(0), *starts, limit)};
}

AttrSpec in_bounds_attr() { return {"in_bounds", AttrType::kBool, AttrSpec::kHideDefault, false}; }

// "stablehlo.dynamic_slice %0, %1": an op whose operands from `first` on are start indices, in a
// dtype that holds the sizes of the array. They are clamped here unless they are known to be in
// range: XLA's partitioner does not clamp along split axes, nor does XLA where it makes one slice
// of two (openxla/xla issue 49121).
void emit_block_op(EmitCtx& c, std::string_view op, size_t first, std::string_view attrs = {}) {
  Text text;
  text << op;
  TypeRefs types(c.in_types.begin(), c.in_types.end());
  const Dims &shape = types[0]->shape(), &block = (first == 1 ? c.out_types[0] : types[1])->shape();
  auto is_within = [&](size_t i, int64_t largest) {
    const Literal* known = c.literal(i);
    return c.attr().boolean("in_bounds") ||
           (known && known->as_int() >= 0 && known->as_int() <= largest);
  };
  for (size_t i = 0; i < c.size(); ++i) {
    std::string operand = c.in(i);
    if (i >= first) {
      types[i] = scalar_type(index_dtype(types[i]->dtype(), types[0]->shape()));
      if (types[i] != c.in_type(i))
        operand = c.line(cat("stablehlo.convert ", operand, " : (", mlir_type(c.in_type(i)),
                             ") -> ", mlir_type(types[i])));
      int64_t largest = shape[i - first] - block[i - first];
      if (!is_within(i, largest)) {
        auto number = [&](int64_t n) { return c.constant(make_literal(types[i]->dtype(), n), {}); };
        std::string least = number(0), most = number(largest);
        operand = c.line(
            cat("stablehlo.clamp ", least, ", ", operand, ", ", most, " : ", mlir_type(types[i])));
      }
    }
    text << (i ? ", " : " ") << operand;
  }
  text << attrs << " : " << signature(types, c.out_types);
  c.set_out(0, c.line(text.view()));
}

OpDef dynamic_slice_op() {
  OpDef d;
  d.name = "dynamic_slice";
  d.doc = "A block of fixed size at start indices that are computed; they clamp.";
  d.attrs = {{"slice_sizes", AttrType::kInts}, in_bounds_attr()};
  d.infer = infer_dynamic_slice;
  d.place = [](PlaceCtx& c) { place_alike(c); };
  d.check = [](CheckCtx& c) { check_starts(c, 1, c.attr().ints("slice_sizes")); };
  linear(d, transpose_dynamic_slice, {0});
  d.batch = batch_dynamic_slice;
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    if (c.out_type()->rank() == 0) return c.set_out(0, c.in(0));
    emit_block_op(c, "stablehlo.dynamic_slice", 1,
                  cat(", sizes = ", bracketed(c.attr().ints("slice_sizes"))));
  };
  d.simplify = {
      {"dynamic_slice_all", "dynamic_slice(x) of every element -> x",
       [](SimplifyCtx& c) { return c.out_types[0] == c.in_types[0] ? Vals{c.x(0)} : Vals{}; }},
      {"dynamic_slice_splat", "dynamic_slice(broadcast(s)) -> broadcast(s)", slice_of_splat},
      {"dynamic_slice_constant", "dynamic_slice(x, constants) -> slice(x)", dynamic_slice_constant},
  };
  d.cost = [](const CostCtx& c) { return cost_of_block(c.out_types[0]); };
  return d;
}

TypeRefs infer_dynamic_update_slice(const InferCtx& c) {
  if (c.size() < 2)
    c.fail(ErrorKind::kType, "expected an operand and an update; got ", operand_types(c));
  TypeRef x = c.in(0), update = c.in(1);
  if (x->dtype() != update->dtype())
    c.fail(ErrorKind::kDtype,
           "expected an update of the operand's dtype (dynamic_update_slice C2); got ",
           operand_types(c));
  bool fits_inside = x->rank() == update->rank();
  for (int i = 0; fits_inside && i < x->rank(); ++i)
    fits_inside = Checked(update->dim(i)) <= x->dim(i);
  if (!fits_inside)
    c.fail(ErrorKind::kShape, "expected an update of the operand's rank and no larger ",
           "(dynamic_update_slice C3, C6); got ", operand_types(c));
  check_start_indices(c, 2);
  return {x};
}

void transpose_dynamic_update_slice(TransposeCtx& c) {
  Vals starts = operands_from(c, 2);
  if (c.linear(0)) c.add(0, dynamic_update_slice(c.ct(), zeros(c.b, c.in_types[1]), starts));
  if (c.linear(1)) c.add(1, dynamic_slice(c.ct(), starts, c.in_types[1]->shape()));
}

void batch_dynamic_update_slice(BatchCtx& c) {
  if (!has_lane_starts(c, 2)) {
    int at = c.batched(0) ? c.dim(0) : c.dim(1);
    c.result(dynamic_update_slice(c.at(0, at), c.at(1, at), shared_starts(c, 2, at)), at);
    return;
  }
  LaneBlocks blocks = lane_blocks(c, 2, c.in_types[1]->shape());
  int at = c.batched(0) ? c.dim(0) : 0;
  c.result(scatter("scatter", c.at(0, at), blocks.indices, c.at(1, 0),
                   mapped_indices(blocks.addressing, at)),
           at);
}

// Blocks that are written side by side, at constant indices, are written as one.
Vals update_of_update(SimplifyCtx& c) {
  const Op* op = c.made_by<"dynamic_update_slice">(c.x(0));
  if (!op || !c.is_only_use(c.x(0))) return {};
  const Dims &array = c.in_types[0]->shape(), &later_shape = c.in_types[1]->shape();
  Val target = c.operand(*op, 0), earlier = c.operand(*op, 1), later = c.x(1);
  Vals given;
  for (size_t i = 2; i < op->num_operands; ++i) given.push_back(c.operand(*op, i));
  std::optional<Dims> from = constant_starts(c, given, array, earlier.shape());
  std::optional<Dims> to = constant_starts(c, operands_from(c, 2), array, later_shape);
  if (!from || !to) return {};
  std::optional<size_t> axis;
  for (size_t i = 0; i < array.size(); ++i) {
    if ((*from)[i] == (*to)[i] && earlier.shape()[i] == later_shape[i]) continue;
    if (axis) return {};
    axis = i;
  }
  if (!axis) return {};
  bool after = (*to)[*axis] == (*from)[*axis] + earlier.shape()[*axis];
  bool before = (*from)[*axis] == (*to)[*axis] + later_shape[*axis];
  if (!after && !before) return {};
  Val parts[] = {after ? earlier : later, after ? later : earlier};
  Val joined = concatenate(parts, static_cast<int>(*axis));
  return {dynamic_update_slice(target, joined, after ? given : operands_from(c, 2))};
}

OpDef dynamic_update_slice_op() {
  OpDef d;
  d.name = "dynamic_update_slice";
  d.doc = "The array with a block at computed start indices replaced; they clamp.";
  d.attrs = {in_bounds_attr()};
  d.infer = infer_dynamic_update_slice;
  d.place = [](PlaceCtx& c) {
    Split choices[] = {split_of(c, 0), split_of(c, 1)};
    for (size_t i = 0; i < choices[0].size(); ++i) {
      bool spans = choices[1][i].empty() && c.in_types[0]->shape()[i] == c.in_types[1]->shape()[i];
      if (choices[0][i] != choices[1][i] && !spans)
        return place_ambiguous(c, "array and block have to be split alike", choices);
    }
    place_result(c, choices[0]);
  };
  d.check = [](CheckCtx& c) { check_starts(c, 2, c.in_types[1]->shape()); };
  linear(d, transpose_dynamic_update_slice, {0, 1});
  d.batch = batch_dynamic_update_slice;
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    if (c.out_type()->rank() == 0) return c.set_out(0, c.in(1));
    emit_block_op(c, "stablehlo.dynamic_update_slice", 2);
  };
  d.simplify = {
      {"update_slice_all", "dynamic_update_slice(x, y) of every element -> y",
       [](SimplifyCtx& c) { return c.in_types[0] == c.in_types[1] ? Vals{c.x(1)} : Vals{}; }},
      {"update_slice_none", "dynamic_update_slice(x, y) with an empty y -> x",
       [](SimplifyCtx& c) { return c.in_types[1]->num_elements() == 0 ? Vals{c.x(0)} : Vals{}; }},
      {"update_slice_beside", "two updates of blocks side by side -> one update", update_of_update},
  };
  d.cost = [](const CostCtx& c) { return cost_of_block(c.in_types[1]); };
  return d;
}

}  // namespace

void register_slice(OpRegistry& r) {
  for (OpDef d : {slice_op(), dynamic_slice_op(), dynamic_update_slice_op()}) r.add(std::move(d));
}

}  // namespace weft
