// How results are split given operands: what the rules share, and the table that they fill.
#include "ops/def/place.h"

#include <algorithm>
#include <utility>

#include "ops/def/axes.h"
#include "ops/def/marks.h"
#include "weft/placements.h"

namespace weft {
namespace {

ShardingRef sharding_of(MeshRef mesh, const Split& split) {
  ShardingParts parts{.mesh = mesh};
  for (const Dims& axes : split) parts.dims.push_back({axes, false});
  return make_sharding(std::move(parts));
}

bool uses_an_axis_twice(const Split& split) {
  Dims seen;
  for (const Dims& axes : split)
    for (int64_t axis : axes) {
      if (has_axis(seen, axis)) return true;
      seen.push_back(axis);
    }
  return false;
}

int64_t num_parts(MeshRef mesh, const Dims& axes) {
  int64_t n = 1;
  for (int64_t axis : axes) n *= mesh->axis(axis).size;
  return n;
}

std::string text_of(MeshRef mesh, const Split& split) {
  Text t;
  t << "P(";
  for (size_t i = 0; i < split.size(); ++i) {
    t << (i ? ", " : "") << (split[i].size() > 1 ? "(" : split[i].empty() ? "None" : "");
    for (size_t j = 0; j < split[i].size(); ++j)
      t << (j ? ", " : "") << '\'' << mesh->axis(split[i][j]).name << '\'';
    t << (split[i].size() > 1 ? ")" : "");
  }
  t << (split.size() == 1 ? ",)" : ")");
  return t.take();
}

std::string operands_text(const PlaceCtx& c) {
  Text t;
  for (size_t i = 0; i < c.in.size(); ++i)
    t << (i ? ", " : "") << split_text(c.in_types[i], c.in[i]);
  return t.take();
}

// The same in a memory; "device" is the default one, "".
ShardingRef in_memory(ShardingRef sharding, std::string_view memory) {
  if (memory == "device") memory = "";
  if (sharding->memory() == memory) return sharding;
  ShardingParts parts = sharding->parts();
  parts.memory = memory;
  return make_sharding(std::move(parts));
}

// The same, reduced along those of the axes over which it is not split.
ShardingRef reduced_where_whole(ShardingRef sharding, const Dims& axes) {
  Dims kept;
  for (int64_t axis : axes)
    if (!uses_axis(sharding, axis)) kept.push_back(axis);
  return with_reduced(sharding, kept);
}

Split unsplit(TypeRef type) { return Split(type->shape().size()); }

void place_by_graph(PlaceCtx& c) {
  GraphRef graph;
  for_each_graph(c.attrs, [&](const GraphRef& g) {
    if (!graph) graph = g;
  });
  for (ShardingRef s : place_graph(c, graph, c.in)) c.out.push_back(s);
}

// Slices of an array, of which it lacks the first dimension.
ShardingRef slice_of(ShardingRef stacked) {
  ShardingParts parts = stacked->parts();
  if (!parts.dims.empty()) parts.dims.erase(parts.dims.begin());
  return make_sharding(std::move(parts));
}

ShardingRef stacked(ShardingRef slice) {
  ShardingParts parts = slice->parts();
  parts.dims.insert(parts.dims.begin(), DimSharding{});
  return make_sharding(std::move(parts));
}

void place_loop(PlaceCtx& c) {
  Loop loop = def(c.op).loop.parts(c.attr());
  std::vector<ShardingRef> inputs;
  size_t fixed = loop.num_consts + loop.num_carry;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (i >= fixed && !c.in[i]->dim(0).axes.empty() && c.strict)
      fail(ErrorKind::kSharding, "[", c.op.name, "] expected arrays that are not split along axis ",
           "0, along which the loop runs; got ", split_text(c.in_types[i], c.in[i]),
           "\n  Bring it into another sharding first with weft.reshard.");
    inputs.push_back(i < fixed ? c.in[i] : slice_of(c.in[i]));
  }
  std::vector<ShardingRef> outputs = place_graph(c, loop.body, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < loop.num_carry) {
      place_carry(c, c.in[loop.num_consts + i], outputs[i], i);
    } else {
      c.out.push_back(stacked(outputs[i]));
    }
  }
}

void place_unsplit(PlaceCtx& c) {
  bool split =
      std::any_of(c.in.begin(), c.in.end(), [](ShardingRef s) { return !s->is_replicated(); });
  for (size_t i = 0; i < c.out_types.size(); ++i) {
    if (split && c.strict)
      place_ambiguous(c, "this operation takes operands that are not split");
    else
      place_result(c, unsplit(c.out_types[i]));
  }
}

void place(PlaceCtx& c) {
  const OpDef& op = c.op;
  if (op.place) return op.place(c);
  if (op.call != CallKind::kNone) return place_by_graph(c);
  if (op.loop.parts) return place_loop(c);
  if (op.elementwise) return place_alike(c);
  place_unsplit(c);
}

}  // namespace

Split split_of(const PlaceCtx& c, size_t operand) {
  Split split;
  for (size_t i = 0; i < c.in_types[operand]->shape().size(); ++i)
    split.push_back(c.in[operand]->dim(i).axes);
  return split;
}

void place_ambiguous(PlaceCtx& c, std::string_view why, std::span<const Split> choices) {
  TypeRef type = c.out_types[c.out.size()];
  if (!c.strict) {
    c.out.push_back(sharding_of(c.mesh, unsplit(type)));
    return;
  }
  std::vector<std::string> texts;
  auto add = [&](const Split& split) {
    std::string text = text_of(c.mesh, split);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  };
  for (const Split& s : choices) add(s);
  add(unsplit(type));
  Text t;
  for (const std::string& text : texts) t << (&text == texts.data() ? "" : " or ") << text;
  fail(ErrorKind::kSharding, "[", c.op.name,
       "] expected operands from which it follows how the result ", type, " is split; got ",
       operands_text(c), ", and ", why, "\n  It could be ", t.view(),
       ": say so with out_sharding= if the function takes it, or bring an operand into another "
       "sharding first with weft.reshard.");
}

void place_result(PlaceCtx& c, Split split) {
  TypeRef type = c.out_types[c.out.size()];
  split.resize(type->shape().size());
  if (uses_an_axis_twice(split))
    return place_ambiguous(c, "two dimensions of it would be split over one axis");
  for (size_t i = 0; i < split.size(); ++i) {
    int64_t n = num_parts(c.mesh, split[i]);
    if (type->shape()[i] % n != 0)
      return place_ambiguous(
          c, cat("its dimension ", i, " is not divisible by the ", n, " parts of the operand's"));
  }
  c.out.push_back(sharding_of(c.mesh, split));
}

void place_all(PlaceCtx& c, const Split& split) {
  for (size_t i = 0; i < c.out_types.size(); ++i) place_result(c, split);
}

void place_dims(PlaceCtx& c, std::span<const Dims> to) {
  int rank = 0;
  for (TypeRef t : c.out_types) rank = std::max(rank, t->rank());
  Split joined(static_cast<size_t>(rank));
  std::string problem;
  std::vector<Split> choices;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (c.in[i]->is_replicated()) continue;
    Split own(static_cast<size_t>(rank));
    for (size_t d = 0; d < c.in_types[i]->shape().size(); ++d) {
      const Dims& axes = c.in[i]->dim(d).axes;
      int64_t at = i < to.size() && d < to[i].size() ? to[i][d] : kWhole;
      if (axes.empty() || at == kGone) continue;
      if (at == kWhole) {
        problem = cat("operand ", i, " must not be split along dimension ", d);
        continue;
      }
      own[static_cast<size_t>(at)] = axes;
      Dims& known = joined[static_cast<size_t>(at)];
      if (known.empty()) {
        known = axes;
      } else if (known != axes) {
        problem = cat("they are split in different ways along dimension ", at);
      }
    }
    if (std::find(choices.begin(), choices.end(), own) == choices.end()) choices.push_back(own);
  }
  if (problem.empty() && uses_an_axis_twice(joined))
    problem = "two dimensions of it would be split over one axis";
  std::erase_if(choices, [](const Split& s) {
    return std::all_of(s.begin(), s.end(), [](const Dims& axes) { return axes.empty(); });
  });
  for (size_t i = 0; i < c.out_types.size(); ++i) {
    if (!problem.empty())
      place_ambiguous(c, problem, choices);
    else
      place_result(c, joined);
  }
}

void place_dims(PlaceCtx& c, const Dims& to) { place_dims(c, {&to, 1}); }

void place_dropped(PlaceCtx& c, const Dims& dropped) {
  Dims to;
  for (int i = 0, next = 0; i < c.in_types[0]->rank(); ++i)
    to.push_back(has_axis(dropped, i) ? kGone : next++);
  place_dims(c, std::vector<Dims>(c.in.size(), to));
}

Dims kept_dims(int rank, const Dims& whole) {
  Dims to = count_up(rank);
  for (int64_t d : whole) to[static_cast<size_t>(d)] = kWhole;
  return to;
}

void place_alike(PlaceCtx& c, const Dims& whole) {
  std::vector<Dims> to;
  for (TypeRef t : c.in_types) to.push_back(kept_dims(t->rank(), t->rank() ? whole : Dims()));
  place_dims(c, to);
}

void place_equal(PlaceCtx& c, const Dims& whole) {
  std::vector<Split> choices;
  for (size_t i = 0; i < c.in.size(); ++i) {
    Split own = split_of(c, i);
    bool counts = c.strict && c.in_types[i]->rank() > 0;
    if (counts && std::find(choices.begin(), choices.end(), own) == choices.end())
      choices.push_back(own);
  }
  for (size_t i = 0; i < c.out_types.size(); ++i)
    if (choices.size() > 1) place_ambiguous(c, "they have to be split alike", choices);
  if (choices.size() <= 1) place_alike(c, whole);
}

std::vector<ShardingRef> place_graph(const PlaceCtx& c, const GraphRef& graph,
                                     std::span<const ShardingRef> inputs) {
  return Placements::of_outputs(*graph, c.mesh, inputs);
}

void place_carry(PlaceCtx& c, ShardingRef in, ShardingRef out, size_t i) {
  TypeRef type = c.out_types[c.out.size()];
  if (in == out || (type->num_elements() == 1 && in == in_memory(out, in->memory())))
    return c.out.push_back(in);
  if (c.strict)
    fail(ErrorKind::kSharding, "[", c.op.name, "] expected a body that returns what it carries ",
         "split as it came in; got ", split_text(type, in), " in and ", split_text(type, out),
         " out for carry ", i, "\n  Bring either into another sharding with weft.reshard.");
  place_result(c, unsplit(type));
}

// ---- The table

ShardingRef on_explicit_axes(ShardingRef sharding, MeshRef mesh) {
  MeshRef own = sharding->mesh();
  std::string memory(sharding->memory() == kHostMemory ? kHostMemory : "");
  if (own->axes().empty() || mesh->axes().empty())
    return in_memory(make_sharding({.mesh = mesh}), memory);
  if (own != mesh && !same_grid(own, mesh))
    fail(ErrorKind::kSharding, "expected arrays and shardings on one mesh, ", shown(mesh), "; got ",
         sharding);
  auto explicit_ones = [&](const Dims& axes) {
    Dims kept;
    for (int64_t axis : axes)
      if (mesh->axis(axis).type == AxisType::kExplicit) kept.push_back(axis);
    return kept;
  };
  ShardingParts parts{.mesh = mesh,
                      .unreduced = explicit_ones(sharding->unreduced()),
                      .reduced = explicit_ones(sharding->reduced()),
                      .memory = memory};
  for (const DimSharding& dim : sharding->dims())
    parts.dims.push_back({explicit_ones(dim.axes), false});
  return make_sharding(std::move(parts));
}

std::string split_text(TypeRef type, ShardingRef sharding) {
  std::string text = cat(type);
  auto names = [&](const Dims& axes) {
    Text t;
    for (size_t i = 0; i < axes.size(); ++i)
      t << (i ? "," : "") << sharding->mesh()->axis(axes[i]).name;
    return axes.size() > 1 ? cat('(', t.view(), ')') : t.take();
  };
  Text t;
  t << std::string_view(text).substr(0, text.find('['));
  t << (sharding->memory() == kHostMemory ? "<host>[" : "[");
  for (size_t i = 0; i < type->shape().size(); ++i) {
    t << (i ? "," : "") << type->shape()[i];
    const Dims& axes = sharding->dim(i).axes;
    if (axes.empty()) continue;
    t << '@' << names(axes);
  }
  t << ']';
  const Dims &unreduced = sharding->unreduced(), &reduced = sharding->reduced();
  if (unreduced.empty() && reduced.empty()) return t.take();
  t << '{';
  if (!unreduced.empty()) t << "U:" << names(unreduced);
  if (!reduced.empty()) t << (unreduced.empty() ? "R:" : ", R:") << names(reduced);
  t << '}';
  return t.take();
}

Placements::Placements(MeshRef mesh) : mesh_(mesh), whole_(make_sharding({.mesh = mesh})) {}

ShardingRef Placements::of(Value v) const {
  if (v.is_literal() || v.id >= of_.size() || !of_[v.id]) return whole_;
  return of_[v.id];
}

void Placements::set(Value v, ShardingRef sharding) {
  if (v.id >= of_.size()) of_.resize(v.id + 1, nullptr);
  of_[v.id] = sharding;
  any_ |= sharding != whole_;
}

void Placements::adopt(MeshRef mesh) {
  if (!mesh_->axes().empty() || mesh->axes().empty()) return;
  mesh_ = mesh;
  whole_ = make_sharding({.mesh = mesh});
  for (ShardingRef& s : of_)
    if (s) s = on_explicit_axes(s, mesh);
}

namespace {

thread_local std::vector<std::string> forbidden_axes;

bool is_over(ShardingRef s, int64_t axis) {
  auto has = [axis](const Dims& axes) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  return has(s->unreduced()) || std::any_of(s->dims().begin(), s->dims().end(),
                                            [&](const DimSharding& d) { return has(d.axes); });
}

// The dimension that is split over an axis, -1 if none is.
int64_t dim_over(ShardingRef s, int64_t axis) {
  for (size_t i = 0; i < s->dims().size(); ++i) {
    const Dims& axes = s->dims()[i].axes;
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return static_cast<int64_t>(i);
  }
  return -1;
}

// An op whose sharding a user gave may also move an axis from one dimension to another.
bool moves(ShardingRef in, ShardingRef out, int64_t axis) {
  int64_t from = dim_over(in, axis), to = dim_over(out, axis);
  return from >= 0 && to >= 0 && from != to;
}

void check_collectives(const PlaceCtx& c, std::span<const ShardingRef> out) {
  for (const std::string& name : forbidden_axes) {
    int64_t axis = c.mesh->find(name);
    if (axis < 0) continue;
    auto over = [axis](ShardingRef s) { return is_over(s, axis); };
    bool lost =
        std::any_of(c.in.begin(), c.in.end(), over) && std::none_of(out.begin(), out.end(), over);
    bool moved = c.op.sums == Sums::kPlaced && c.in.size() == 1 && moves(c.in[0], out[0], axis);
    if (lost || moved)
      fail(ErrorKind::kSharding, "[", c.op.name, "] expected to communicate nothing over axis '",
           name, "', which no_collectives forbids; got ", operands_text(c), " and a result ",
           lost ? "that is not split over it" : "of which another dimension is split over it");
  }
}

}  // namespace

std::vector<std::string> forbid_collectives(std::vector<std::string> names) {
  return std::exchange(forbidden_axes, std::move(names));
}

template <typename Ops>
void Placements::apply(const Ops& ops, const Op& op, bool strict) {
  SmallVector<ShardingRef, 4> in;
  TypeRefs in_types, out_types;
  for (Value v : ops.operands(op)) {
    in.push_back(of(v));
    in_types.push_back(ops.type(v));
  }
  for (uint32_t i = 0; i < op.num_results; ++i)
    out_types.push_back(ops.type(Value{op.results_begin + i}));
  const OpDef& d = def(*op.info);
  PlaceCtx c{d, op.attrs, in_types, out_types, mesh_, in, strict, {}};
  place(c);
  bool constant = true;
  for (size_t i = 0; i < in.size(); ++i) constant &= goes_with_any(c, i, ops.operands(op)[i]);
  bool by_graphs = d.call != CallKind::kNone || d.loop.parts ||
                   (d.jvp_kind == JvpKind::kGraph && op.attrs && op.attrs->holds_graphs());
  std::string memory = by_graphs ? "" : joint_memory(c, ops.operands(op));
  bool hands_on = !by_graphs && !d.places_sums();
  Dims sums = hands_on ? joint_sums(c) : Dims();
  Dims reduced = hands_on ? joint_reduced(c, ops.operands(op), sums) : Dims();
  std::vector<ShardingRef> out;
  for (uint32_t i = 0; i < op.num_results; ++i) {
    Value v{op.results_begin + i};
    ShardingRef made = c.out[i];
    if (hands_on) made = reduced_where_whole(with_unreduced(made, sums), reduced);
    out.push_back(in_memory(made, made->memory().empty() ? memory : made->memory()));
    set(v, out.back());
    if (!constant) continue;
    if (v.id >= constant_.size()) constant_.resize(v.id + 1);
    constant_[v.id] = true;
  }
  if (strict && !by_graphs && !out.empty()) check_collectives(c, out);
}

namespace {

uint64_t bits_of(const Dims& axes) {
  uint64_t bits = 0;
  for (int64_t axis : axes) bits |= uint64_t{1} << axis;
  return bits;
}

Dims axes_of(uint64_t bits) {
  Dims axes;
  for (int64_t axis = 0; bits >> axis; ++axis)
    if (bits >> axis & 1) axes.push_back(axis);
  return axes;
}

bool has_marks(const PlaceCtx& c) {
  return std::ranges::any_of(
      c.in, [](ShardingRef s) { return !s->unreduced().empty() || !s->reduced().empty(); });
}

}  // namespace

// The axes along which the sums that the operands stand for are not made yet.
Dims Placements::joint_sums(const PlaceCtx& c) const {
  if (!has_marks(c)) return {};
  SmallVector<Marks, 4> marks;
  for (ShardingRef s : c.in) marks.push_back({bits_of(s->unreduced()), bits_of(s->reduced())});
  std::optional<uint64_t> sums = sums_of_results(c.op, marks);
  if (!sums && c.strict) fail_sums(c.op, operands_text(c));
  return axes_of(sums.value_or(0));
}

// The axes along which results are reduced: all operands are, but for constants, for scalars and
// for what is split over the axis.
Dims Placements::joint_reduced(const PlaceCtx& c, std::span<const Value> operands,
                               const Dims& sums) const {
  if (!has_marks(c)) return {};
  uint64_t any = 0, missing = 0;
  for (ShardingRef s : c.in) any |= bits_of(s->reduced());
  for (size_t i = 0; i < c.in.size(); ++i) {
    bool counts = c.in_types[i]->rank() > 0;
    if (!counts || (c.op.elementwise && goes_with_any(c, i, operands[i]))) continue;
    uint64_t own = bits_of(c.in[i]->reduced()) | bits_of(c.in[i]->unreduced());
    for (const DimSharding& dim : c.in[i]->dims()) own |= bits_of(dim.axes);
    missing |= any & ~own;
  }
  if (missing && c.strict && c.op.elementwise) fail_reduced(c.op, operands_text(c));
  return axes_of(any & ~missing & ~bits_of(sums));
}

// Constants, and what has one element or is made of such, are as good as in every memory.
bool Placements::goes_with_any(const PlaceCtx& c, size_t operand, Value v) const {
  return v.is_literal() || (v.id < constant_.size() && constant_[v.id]) ||
         (c.in[operand]->memory().empty() && c.in_types[operand]->num_elements() == 1);
}

// Operands are in one memory.
std::string Placements::joint_memory(const PlaceCtx& c, std::span<const Value> operands) const {
  size_t known = operands.size();
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string& own = c.in[i]->memory();
    if (goes_with_any(c, i, operands[i])) continue;
    if (known == operands.size()) known = i;
    if (own == c.in[known]->memory()) continue;
    if (c.strict)
      fail(ErrorKind::kValue, "[", c.op.name, "] expected operands in one memory; got ",
           operands_text(c),
           "\n  Bring one into the other's with weft.device_put(x, "
           "weft.memory.Space.Device) or Space.Host.");
    return "";
  }
  return known == operands.size() ? "" : c.in[known]->memory();
}

void Placements::follow(const GraphBuilder& builder, uint32_t end, bool strict) {
  while (next_ < end) {
    const Op* op = builder.producer(Value{next_});
    if (!op) {
      ++next_;
      continue;
    }
    uint32_t after = op->results_begin + op->num_results;
    apply(builder, *op, strict);
    next_ = after;
  }
}

Placements Placements::of_graph(const Graph& graph, MeshRef mesh,
                                std::span<const ShardingRef> inputs) {
  Placements table(mesh);
  for (size_t i = 0; i < inputs.size(); ++i) table.set(Value{static_cast<uint32_t>(i)}, inputs[i]);
  for (const Op& op : graph.ops())
    if (op.num_results) table.apply(graph, op, false);
  return table;
}

std::vector<ShardingRef> Placements::of_outputs(const Graph& graph, MeshRef mesh,
                                                std::span<const ShardingRef> inputs) {
  Placements table = of_graph(graph, mesh, inputs);
  std::vector<ShardingRef> out;
  for (Value v : graph.outputs()) out.push_back(table.of(v));
  return out;
}

bool same_grid(MeshRef a, MeshRef b) {
  return std::equal(
      a->axes().begin(), a->axes().end(), b->axes().begin(), b->axes().end(),
      [](const MeshAxis& x, const MeshAxis& y) { return x.name == y.name && x.size == y.size; });
}

}  // namespace weft
