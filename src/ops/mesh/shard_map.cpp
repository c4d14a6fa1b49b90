// shard_map: a graph that every device of a mesh runs on its parts of the operands, and that gives
// its parts of the results. The axes of the mesh that are manual have names within the graph, for
// collectives; over the others XLA decides.
//
// With check_vma it is known over which axes each value of the graph varies (OpDef::shard), and so
// that a result whose spec does not name an axis is the same along it. The rules go by the graph in
// which `pvary` makes that explicit: the cotangent of an operand that is the same for all devices
// is then the sum over them, since a pvary is where it came to be used by each of them. Without
// check_vma nothing is known: a cotangent of such a result is split among the devices, and that of
// such an operand summed up over them.
#include <algorithm>
#include <limits>

#include "ops/control/call.h"
#include "ops/def/axes.h"
#include "ops/def/dependence.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/regions.h"
#include "ops/mesh/family.h"
#include "ops/mesh/lanes.h"
#include "weft/placements.h"

namespace weft {
namespace {

using Specs = std::vector<ShardingRef>;
using Sets = SmallVector<AxisSet, 8>;

// The attributes.
struct Map {
  AttrsRef attrs;
  GraphRef body;
  MeshRef mesh;
  const std::vector<std::string>& axes;  // the manual ones
  Specs in, out;
  bool checked;

  explicit Map(const AttrsRef& a)
      : attrs(a),
        body(a->graph("jaxpr")),
        mesh(a->mesh("mesh")),
        axes(a->names("manual_axes")),
        in(a->shardings("in_specs")),
        out(a->shardings("out_specs")),
        checked(a->boolean("check_vma")) {}

  AttrsRef with(const GraphRef& graph, Specs in_specs, Specs out_specs) const {
    return attrs->with(
        {{"jaxpr", graph}, {"in_specs", std::move(in_specs)}, {"out_specs", std::move(out_specs)}});
  }

  // The manual axes, by bits, over which what a spec is for varies; and what they are called.
  AxisSet set_of(ShardingRef spec) const {
    AxisSet set = as_unreduced(set_of(spec->unreduced())) | as_reduced(set_of(spec->reduced()));
    for (const DimSharding& dim : spec->dims()) set |= set_of(dim.axes);
    return set;
  }
  AxisSet set_of(const Dims& numbers) const {
    AxisSet set = 0;
    for (int64_t axis : numbers) {
      auto at = std::find(axes.begin(), axes.end(), mesh->axis(axis).name);
      set |= AxisSet{1} << (at - axes.begin());
    }
    return set;
  }
  Sets sets_of(const Specs& specs) const {
    Sets sets;
    for (ShardingRef spec : specs) sets.push_back(set_of(spec));
    return sets;
  }
  AxisSet all() const { return static_cast<AxisSet>((uint64_t{1} << axes.size()) - 1); }
  std::vector<std::string> names_of(AxisSet set) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < axes.size(); ++i)
      if (set >> i & 1) names.push_back(axes[i]);
    return names;
  }
  int64_t num_parts(AxisSet set) const {
    int64_t n = 1;
    for (const std::string& name : names_of(set)) n *= mesh->axis(mesh->find(name)).size;
    return n;
  }
  // A spec that loses nothing of a value which varies over these axes: along its first dimension.
  ShardingRef stacked(AxisSet set) const {
    DimSharding first;
    for (const std::string& name : names_of(set)) first.axes.push_back(mesh->find(name));
    return make_sharding({.mesh = mesh, .dims = {first}});
  }
};

// Of the cotangents of what specs are for.
Specs of_cotangents(Specs specs) {
  for (ShardingRef& spec : specs) spec = of_cotangents(spec);
  return specs;
}

Specs picked(const Specs& specs, const Mask& mask) {
  Specs out;
  for (size_t i = 0; i < specs.size(); ++i)
    if (mask[i]) out.push_back(specs[i]);
  return out;
}
void append(Specs& to, const Specs& from) { to.insert(to.end(), from.begin(), from.end()); }

// ---- Inference

void check_mesh(const InferCtx& c, const Map& m) {
  if (m.axes.size() > kMaxManualAxes)
    c.fail(ErrorKind::kValue, "expected at most ", kMaxManualAxes, " manual axes; got ",
           m.axes.size());
  for (const std::string& name : m.axes)
    if (m.mesh->find(name) < 0)
      c.fail(ErrorKind::kValue, "expected manual axes of ", m.mesh, "; got '", name, "'");
}

void check_specs(const InferCtx& c, const Map& m, std::string_view what, const Specs& specs,
                 size_t expected) {
  if (specs.size() != expected)
    c.fail(ErrorKind::kValue, "expected ", expected, " ", what, "; got ", specs.size());
  for (ShardingRef spec : specs) {
    if (spec->mesh() != m.mesh)
      c.fail(ErrorKind::kValue, "expected ", what, " on ", m.mesh, "; got ", spec);
    auto check = [&](const Dims& axes) {
      for (int64_t axis : axes)
        if (const std::string& name = m.mesh->axis(axis).name;
            std::find(m.axes.begin(), m.axes.end(), name) == m.axes.end())
          c.fail(ErrorKind::kValue, "expected ", what, " over manual axes; got '", name, "' in ",
                 spec);
    };
    check(spec->unreduced());
    check(spec->reduced());
    for (const DimSharding& dim : spec->dims()) check(dim.axes);
  }
}

// The type of the whole array that has parts of this type.
TypeRef whole_type(const InferCtx& c, size_t i, ShardingRef spec, TypeRef part) {
  if (spec->dims().size() > part->shape().size())
    c.fail(ErrorKind::kValue, "expected output ", i, " to have at least ", spec->dims().size(),
           " dimensions for ", spec, "; got ", part);
  Dims shape = part->shape();
  for (size_t d = 0; d < spec->dims().size(); ++d) {
    Checked size = Checked(shape[d]) * num_blocks(spec, d);
    if (!size.fits())
      c.fail(ErrorKind::kShape, "expected sizes that fit for output ", i, " of ", spec, "; got ",
             part);
    shape[d] = size.value();
  }
  return with_shape(part, shape);
}

TypeRefs infer_shard_map(const InferCtx& c) {
  // The record outlives the call; the null deleter keeps it as it is.
  Map m(AttrsRef(AttrsRef(), c.attrs));
  check_mesh(c, m);
  check_specs(c, m, "in_specs", m.in, c.size());
  check_specs(c, m, "out_specs", m.out, m.body->outputs().size());
  if (m.body->num_inputs() != c.size())
    c.fail(ErrorKind::kType, "expected ", m.body->num_inputs(),
           " operands, one per input of jaxpr; got ", c.size());
  for (size_t i = 0; i < c.size(); ++i) {
    if (std::string why = misfit(m.in[i], c.in(i)); !why.empty())
      c.fail(ErrorKind::kValue, "operand ", i, ": ", why);
    check_region_type(c, "jaxpr", "input", i, shard_type(m.in[i], c.in(i)),
                      m.body->input_types()[i]);
  }
  TypeRefs out;
  for (size_t i = 0; i < m.out.size(); ++i)
    out.push_back(whole_type(c, i, m.out[i], m.body->type(m.body->outputs()[i])));
  return out;
}

// ---- What varies

// The body as `shard` makes it; outputs vary over the axes of their specs.
GraphRef body_of(const RuleCtx& c, const Map& m) {
  if (!m.checked) return m.body;
  Sets wanted = m.sets_of(m.out);
  auto made =
      c.transforms->shard(m.body, {.axes = m.axes, .inputs = m.sets_of(m.in), .at_least = wanted});
  for (size_t i = 0; i < wanted.size(); ++i) {
    AxisSet missing = without_marks(made->outputs[i] & ~wanted[i]);
    if (!missing) continue;
    fail(ErrorKind::kValue, "[shard_map] expected output ", i,
         " to be the same along the axes that ",
         "its spec does not name; got one that varies over ", axes_text(m.axes, missing), " and ",
         m.out[i],
         "\n  Name the axis in out_specs, take psum, pmax or pmin over it, or, if all devices give "
         "the same nevertheless, set check_vma=False.");
  }
  return made->graph;
}

// In a graph of another shard_map around this one.
void shard_shard_map(ShardCtx& c) {
  Map m(c.attrs);
  ShardOptions options{
      .axes = c.axes, .inputs = Sets(c.varying), .at_least = {}, .strict = c.strict};
  for (const std::string& name : m.axes)
    if (c.set_of(std::vector{name}))
      fail(ErrorKind::kValue, "[shard_map] expected manual axes that no shard_map around it has; ",
           "got '", name, "'");
  auto inner = c.transforms->shard(m.body, options);
  c.results = c.b.add(c.op, c.operands, m.with(inner->graph, m.in, m.out));
  c.result_varying = inner->outputs;
}

// ---- Differentiation

void jvp_shard_map(GraphJvpCtx& c) {
  Map m(c.attrs);
  Mask mask = c.tangent_mask();
  auto jvp = c.transforms->jvp(body_of(c, m), {.in_mask = mask});
  Specs in = m.in, out = m.out;
  append(in, picked(m.in, mask));
  append(out, picked(m.out, jvp->out_mask));
  Values args(c.operands);
  append_present(args, c.tangents);
  Values made = c.b.add(c.op, args, m.with(jvp->graph, in, out));
  std::span<const Value> results(made);
  c.results = Values(results.first(m.out.size()));
  c.result_tangents = scattered(jvp->out_mask, results.subspan(m.out.size()));
}

// A part that varies leaves the graph along its first dimension, which scalars get for that.
Val with_dimension(Val x) { return x.rank() ? x : reshape(x, {1}); }

// Residuals leave the forward graph so that each device gets its own back.
void linearize_shard_map(GraphJvpCtx& c) {
  Map m(c.attrs);
  auto split = c.transforms->linearize(body_of(c, m), {.in_mask = c.tangent_mask()});
  const Graph& forward = *split->forward;
  size_t num_results = m.out.size();
  Sets varying(forward.outputs().size(), m.all());
  if (m.checked)
    varying =
        c.transforms
            ->shard(split->forward, {.axes = m.axes, .inputs = m.sets_of(m.in), .at_least = {}})
            ->outputs;
  // Per residual: the operand or result that it is, or a result of its own.
  Values outputs;
  Specs out = m.out;
  SmallVector<size_t, 8> places;
  for (Value v : forward.outputs().first(num_results)) outputs.push_back(v);
  for (const Residual& r : split->residuals) {
    bool is_whole =
        r.is_input || (r.index < num_results && m.set_of(m.out[r.index]) == varying[r.index]);
    places.push_back(is_whole ? r.index : outputs.size());
    if (is_whole) continue;
    outputs.push_back(forward.outputs()[r.index]);
    out.push_back(m.stacked(varying[r.index]));
  }
  GraphRef body = make_graph(forward.input_types(), [&](Builder& b, std::span<const Val> xs) {
    Vals made = inlined_with(b, forward, xs, outputs);
    for (size_t i = num_results; i < made.size(); ++i)
      if (!out[i]->is_replicated()) made[i] = with_dimension(made[i]);
    return made;
  });
  Values made = c.b.add(c.op, c.operands, m.with(body, m.in, out));
  c.results = Values(std::span<const Value>(made).first(num_results));
  c.result_tangents = Values(num_results);
  if (split->linear->outputs().empty()) return;

  Values args;
  Specs in;
  TypeRefs types(split->linear->input_types());
  for (size_t i = 0; i < places.size(); ++i) {
    bool is_input = split->residuals[i].is_input;
    args.push_back(is_input ? c.operands[places[i]] : made[places[i]]);
    in.push_back(is_input ? m.in[places[i]] : out[places[i]]);
    if (!is_input && places[i] >= num_results && !in.back()->is_replicated() && !types[i]->rank())
      types[i] = with_shape(types[i], {1});
  }
  append_present(args, c.tangents);
  append(in, picked(m.in, c.tangent_mask()));
  GraphRef linear = make_graph(types, [&](Builder& b, std::span<const Val> xs) {
    Vals inputs(xs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (TypeRef type = split->linear->input_types()[i]; inputs[i].type() != type)
        inputs[i] = reshape(inputs[i], type->shape());
    return inlined(b, split->linear, inputs);
  });
  Values tangents = c.b.add(c.op, args, m.with(linear, in, picked(m.out, split->out_mask)));
  c.result_tangents = scattered(split->out_mask, tangents);
}

// What the graph is given of the cotangent of a result: without check_vma, its share.
Val ct_in(const Map& m, ShardingRef spec, Val ct) {
  int64_t n = m.checked ? 1 : m.num_parts(m.all() & ~m.set_of(spec));
  return n == 1 ? ct : ct / scalar_like(ct, static_cast<double>(n));
}
// What it gives for an operand: without check_vma, the sum of the shares.
Val ct_out(const Map& m, ShardingRef spec, Val ct) {
  AxisSet rest = m.checked ? 0 : m.all() & ~m.set_of(spec);
  if (!rest) return ct;
  const OpDef& psum = op_named<"psum">();
  return apply(psum, {&ct, 1},
               AttrRecord::make(psum.name, psum.attrs, {{"axes", m.names_of(rest)}}))[0];
}

void transpose_shard_map(TransposeCtx& c) {
  Map m(c.attrs);
  TransposeOptions options;
  Values args;
  Specs in, out;
  append_present(args, c.operands);
  append_present(args, c.cotangents);
  for (size_t i = 0; i < c.size(); ++i) {
    options.linear.push_back(c.linear(i));
    if (!c.linear(i)) in.push_back(m.in[i]);
  }
  size_t num_known = in.size();
  for (size_t i = 0; i < m.out.size(); ++i) {
    options.cotangents.push_back(c.has_ct(i));
    if (c.has_ct(i)) in.push_back(of_cotangents(m.out[i]));
  }
  auto transposed = c.transforms->transpose(body_of(c, m), options);
  out = of_cotangents(picked(picked(m.in, options.linear), transposed->out_mask));
  GraphRef body =
      make_graph(transposed->graph->input_types(), [&](Builder& b, std::span<const Val> xs) {
        Vals inputs(xs);
        for (size_t i = num_known; i < inputs.size(); ++i) inputs[i] = ct_in(m, in[i], inputs[i]);
        Vals made = inlined(b, transposed->graph, inputs);
        for (size_t i = 0; i < made.size(); ++i) made[i] = ct_out(m, out[i], made[i]);
        return made;
      });
  add_cotangents(c, *transposed, c.b.add(c.op, args, m.with(body, in, out)));
}

// ---- Vectorisation

// Lanes are a dimension that each device has whole, or, with spmd_axis_name, a part of. They are
// whole as well where a spec splits another dimension over that axis: what a derivative keeps of
// each device is stacked over all axes.
void batch_shard_map(BatchCtx& c) {
  Map m(c.attrs);
  DimSharding lanes;
  int64_t size = c.size;
  auto is_used = [&](const Specs& specs, int64_t axis) {
    return std::any_of(specs.begin(), specs.end(), [&](ShardingRef s) {
      return uses_axis(s, axis) || has_axis(s->unreduced(), axis) || has_axis(s->reduced(), axis);
    });
  };
  for (std::string_view name : lines_of(c.spmd_axis_name)) {
    if (std::find(m.axes.begin(), m.axes.end(), name) == m.axes.end()) continue;
    int64_t axis = m.mesh->find(name);
    if (is_used(m.in, axis) || is_used(m.out, axis)) continue;
    lanes.axes.push_back(axis);
    int64_t parts = m.mesh->axis(lanes.axes.back()).size;
    if (size % parts)
      fail(ErrorKind::kValue, "[shard_map] expected a number of lanes divisible by ", parts,
           ", the size of the axis '", name, "' of spmd_axis_name; got ", size);
    size /= parts;
  }
  auto with_lanes = [&](ShardingRef spec, int dim) {
    if (dim == kNotBatched) return spec;
    ShardingParts parts = spec->parts();
    auto at = static_cast<size_t>(dim);
    if (parts.dims.size() < at) parts.dims.resize(at);
    parts.dims.insert(parts.dims.begin() + dim, lanes);
    return make_sharding(std::move(parts));
  };
  VmapOptions options = vmap_options(c, BatchDims(c.dims), {});
  options.size = size;
  // Within the graph a manual axis is meant by its name.
  if (std::find(m.axes.begin(), m.axes.end(), options.axis_name) != m.axes.end())
    options.axis_name.clear();
  auto mapped = c.transforms->vmap(body_of(c, m), options);
  Specs in, out;
  for (size_t i = 0; i < m.in.size(); ++i) in.push_back(with_lanes(m.in[i], c.dim(i)));
  for (size_t i = 0; i < m.out.size(); ++i)
    out.push_back(with_lanes(m.out[i], mapped->out_dims[i]));
  Values results = c.b.add(c.op, c.operands, m.with(mapped->graph, in, out));
  for (size_t i = 0; i < results.size(); ++i) c.result(c.val(results[i]), mapped->out_dims[i]);
}

// ---- Checks

// Each device has checks of its own: those of the first device whose first failure is the first.
void check_shard_map(CheckCtx& c) {
  Map m(c.attrs);
  auto inner = c.checked(m.body);
  size_t num_results = m.out.size(), num_made = inner->graph->outputs().size();
  GraphRef body = make_graph(m.body->input_types(), [&](Builder& b, std::span<const Val> xs) {
    Vals made = inlined(b, inner->graph, xs);
    for (size_t i = num_results; i < num_made; ++i) {
      Dims shape = made[i].shape();
      shape.insert(0, 1);
      made[i] = reshape(made[i], shape);
    }
    return made;
  });
  Specs out = m.out;
  out.resize(num_made, m.stacked(m.all()));
  Values results = c.b.add(c.op, c.operands, m.with(body, m.in, out));
  c.results = Values(std::span<const Value>(results).first(num_results));
  Val numbers = c.val(results[num_results]);
  Val lanes = iota(c.b, numbers.type(), 0);
  Val failed = eq(numbers, broadcast_to(reduce_min(numbers, {0}), numbers.shape()));
  Val none = broadcast_to(scalar_like(lanes, std::numeric_limits<int32_t>::max()), lanes.shape());
  Val first = reduce_min(select(failed, lanes, none), {0});
  Vals made;
  for (size_t i = num_results; i < num_made; ++i) {
    Val x = c.val(results[i]);
    Dims sizes = x.shape();
    sizes[0] = 1;
    Vals starts(sizes.size(), scalar_like(first, 0));
    starts[0] = first;
    made.push_back(squeeze(dynamic_slice(x, starts, sizes), {0}));
  }
  c.fail_in(made);
}

// ---- Emission

// "[<@mesh, [{"x"}, {}]>, ...]". Dimensions are open if XLA decides over other axes.
std::string specs_text(EmitCtx& c, MeshRef mesh, const Map& m, const Specs& specs,
                       std::span<const TypeRef> types) {
  bool is_open = m.axes.size() < m.mesh->axes().size();
  Text text;
  text << '[';
  for (size_t i = 0; i < specs.size(); ++i) {
    ShardingParts parts = specs[i]->parts();
    parts.mesh = mesh;
    parts.dims.resize(types[i]->shape().size());
    for (DimSharding& dim : parts.dims) dim.open = is_open;
    text << (i ? ", " : "") << c.sharding(make_sharding(std::move(parts)), types[i]->rank());
  }
  // Each device has a token of its own.
  if (!c.token().empty())
    text << (specs.empty() ? "" : ", ") << c.sharding(make_sharding({.mesh = mesh}), 0);
  text << ']';
  return text.take();
}

// The mesh of a shard_map around one that has another, which must be of the same axes.
MeshRef on_grid(MeshRef outer, MeshRef inner) {
  if (!same_grid(outer, inner))
    fail(ErrorKind::kValue, "[shard_map] expected the mesh of the shard_map around this one, ",
         outer, "; got ", inner);
  return outer;
}

// x on the first device along each of these axes, zero on the others.
Val first_alone(Val x, const Names& axes) {
  for (const std::string& axis : axes) {
    Val lane = axis_index(*x.builder, {axis});
    Val is_first = broadcast_to(eq(lane, scalar_like(lane, 0)), x.shape());
    x = select(is_first, x, zeros(*x.builder, x.type()));
  }
  return x;
}

// The same map, where sums over axes are made within: that they are yet to be made XLA is told in
// the main function only.
AttrsRef with_sums_made(const Map& m) {
  auto unreduced = [&](ShardingRef spec) { return m.names_of(m.set_of(spec->unreduced())); };
  auto made = [](Specs specs) {
    for (ShardingRef& spec : specs) spec = with_unreduced(spec, {});
    return specs;
  };
  GraphRef body = make_graph(m.body->input_types(), [&](Builder& b, std::span<const Val> xs) {
    Vals inputs(xs);
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = first_alone(inputs[i], unreduced(m.in[i]));
    Vals outputs = inlined(b, m.body, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (Names axes = unreduced(m.out[i]); !axes.empty()) outputs[i] = psum(outputs[i], axes);
    return outputs;
  });
  return m.with(body, made(m.in), made(m.out));
}

void emit_shard_map(EmitCtx& c) {
  Map whole(AttrsRef(AttrsRef(), c.attrs));
  Map m(c.tells_sums() ? whole.attrs : with_sums_made(whole));
  // Within another shard_map the devices are those of its mesh, of which more axes are manual now.
  MeshRef outer = c.manual_mesh();
  Dims manual;
  for (const std::string& name : m.axes) {
    manual.push_back(m.mesh->find(name));
    if (outer && outer->find(name) >= 0 && outer->axis(outer->find(name)).type == AxisType::kManual)
      fail(ErrorKind::kValue, "[shard_map] expected manual axes that no shard_map around it has; ",
           "got '", name, "'");
  }
  MeshRef mesh = with_axis_type(outer ? on_grid(outer, m.mesh) : m.mesh, manual, AxisType::kManual);
  if (mesh->size() == 1) {
    // XLA does not partition the program then, and would leave calls of the host in the region.
    std::vector<std::string> args;
    for (size_t i = 0; i < c.size(); ++i) args.push_back(c.in(i));
    std::vector<std::string> outputs = c.inline_manual(*m.body, args, mesh);
    for (size_t i = 0; i < outputs.size(); ++i) c.set_out(i, outputs[i]);
    return;
  }
  Text text;
  text << "sdy.manual_computation(" << operand_list(c) << ") in_shardings=";
  text << specs_text(c, mesh, m, m.in, c.in_types)
       << " out_shardings=" << specs_text(c, mesh, m, m.out, c.out_types) << " manual_axes={";
  bool first = true;
  for (const MeshAxis& axis : mesh->axes()) {
    if (std::find(m.axes.begin(), m.axes.end(), axis.name) == m.axes.end()) continue;
    text << (first ? "" : ", ") << mlir_string(axis.name);
    first = false;
  }
  text << "} " << c.manual_region(*m.body, mesh, "sdy.return") << " : " << signature(c);
  emit_results(c, text.view());
}

}  // namespace

void register_shard_map(OpRegistry& r) {
  OpDef d;
  d.name = "shard_map";
  d.doc = "A graph that each device of a mesh runs on its parts of the operands.";
  d.attrs = {{"jaxpr", AttrType::kGraph, AttrSpec::kOpen},
             {"mesh", AttrType::kMesh},
             {"in_specs", AttrType::kShardings},
             {"out_specs", AttrType::kShardings},
             {"manual_axes", AttrType::kAxisNames, AttrSpec::kBinds},
             {"check_vma", AttrType::kBool, AttrSpec::kHideDefault, true}};
  d.multiple_results = true;
  d.infer = infer_shard_map;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_shard_map;
  d.graph_linearize = linearize_shard_map;
  d.transpose = transpose_shard_map;
  d.batch = batch_shard_map;
  d.shard = shard_shard_map;
  d.check = check_shard_map;
  d.place = [](PlaceCtx& c) {
    for (ShardingRef s : c.attr().shardings("out_specs"))
      c.out.push_back(on_explicit_axes(s, c.mesh));
  };
  d.sums = Sums::kOfSpecs;
  d.emit = emit_shard_map;
  d.flow = [](FlowCtx& c) { c.through(c.attrs->graph("jaxpr"), c.operands, c.results); };
  d.prune = [](PruneCtx& c) {
    Map m(c.attrs);
    return m.with(c.narrowed(m.body, c.results, c.operands), picked(m.in, c.operands),
                  picked(m.out, c.results));
  };
  // What the graph held each device has whole.
  d.lift = [](const AttrsRef& attrs) {
    Map m(attrs);
    auto inner = lift_constants(m.body);
    Specs in(inner->constants.size(), make_sharding({.mesh = m.mesh}));
    append(in, m.in);
    LiftedOp lifted{m.with(inner->graph, in, m.out), {}};
    for (const ObjectRef& object : inner->constants) lifted.operands.push_back({0, object});
    return lifted;
  };
  d.cost = [](const CostCtx& c) {
    Map m(AttrsRef(AttrsRef(), c.attrs));
    Cost cost = c.graph_cost(*m.body);
    auto n = static_cast<double>(m.num_parts(m.all()));
    return Cost{cost.flops * n, cost.transcendentals * n, cost.bytes * n};
  };
  r.add(std::move(d));
}

}  // namespace weft
