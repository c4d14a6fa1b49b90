// FunctionWriter on meshes: sums over axes that are yet to be made of values of the main function,
// and values that are not to be split along some of their dimensions.
#include <algorithm>

#include "emit/writer.h"
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"

namespace weft {

// The compiler takes values for sums that are yet to be made only where it is told so of each.
void FunctionWriter::find_sums(const Graph& graph) {
  MeshRef mesh = nullptr;
  auto look_at = [&](ShardingRef sharding) {
    if (sharding && !sharding->unreduced().empty()) mesh = sharding->mesh();
  };
  const EmitOptions& options = module_.options();
  for (ShardingRef s : options.inputs) look_at(s);
  for (ShardingRef s : options.outputs) look_at(s);
  for (const Op& op : graph.ops()) {
    Sums sums = def(*op.info).sums;
    if (sums == Sums::kPlaced) look_at(op.attrs->sharding("sharding"));
    if (sums != Sums::kOfSpecs) continue;
    for (ShardingRef s : op.attrs->shardings("in_specs")) look_at(s);
    for (ShardingRef s : op.attrs->shardings("out_specs")) look_at(s);
  }
  if (!mesh) return;
  std::vector<ShardingRef> inputs;
  for (size_t i = 0; i < graph.num_inputs(); ++i) {
    ShardingRef given = options.inputs.empty() ? nullptr : options.inputs[i];
    bool is_known = given && same_grid(given->mesh(), mesh);
    inputs.push_back(is_known ? on_explicit_axes(given, mesh) : make_sharding({.mesh = mesh}));
  }
  main_graph_ = &graph;
  sums_ = Placements::of_graph(graph, mesh, inputs);
  std::vector<uint32_t> uses(graph.num_values());
  auto count = [&](Value v) {
    if (!v.is_literal()) ++uses[v.id];
  };
  for (const Op& op : graph.ops()) std::ranges::for_each(graph.operands(op), count);
  std::ranges::for_each(graph.outputs(), count);
  for (const Op& op : graph.ops()) {
    if (def(*op.info).sums != Sums::kPlaced) continue;
    Value v = graph.operand(op, 0);
    const Op* maker = graph.producer(v);
    const Dims& wanted = op.attrs->sharding("sharding")->unreduced();
    if (!maker || wanted.empty() || uses[v.id] > 1 || !sums_->of(v)->unreduced().empty()) continue;
    Dims summed = summed_axes(graph, *maker, *sums_);
    // Of sums over some of the axes alone XLA makes others.
    if (summed.size() == wanted.size() &&
        std::ranges::all_of(wanted, [&](int64_t axis) { return has_axis(summed, axis); }))
      kept_apart_.insert(v.id);
  }
}

// Brings the outputs of the main function into the shardings that are asked for.
void FunctionWriter::place_sums(const Graph& graph, std::vector<std::string>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value v = graph.outputs()[i];
    const std::vector<ShardingRef>& all = module_.options().outputs;
    ShardingRef wanted = all.empty() ? nullptr : all[i], has = sums_->of(v);
    if (wanted && !(wanted->unreduced().empty() && has->unreduced().empty()))
      outputs[i] = emit_constraint(*this, with_sums(std::move(outputs[i]), v, wanted),
                                   graph.type(v), wanted);
    // Of what XLA is free to split it tells how, but not which sums are yet to be made.
    if (!wanted && !has->unreduced().empty())
      outputs[i] = emit_constraint(*this, outputs[i], graph.type(v), with_unreduced(has, {}));
  }
}

// Whether the sums of an operand have to be made before an op of the main graph: they are yet to be
// made, and those of the results are not. Later versions of XLA refuse such an op.
bool FunctionWriter::needs_sums(const Op& op, Value operand) const {
  if (frame_->graph != main_graph_ || sums_->of(operand)->unreduced().empty()) return false;
  for (uint32_t i = 0; i < op.num_results; ++i)
    if (!sums_->of(frame_->graph->result(op, i))->unreduced().empty()) return false;
  return true;
}

std::string FunctionWriter::with_pending_sums(const std::string& name, size_t i) {
  const Op& op = *frame_->op;
  if (frame_->graph != main_graph_ || def(*op.info).places_sums()) return name;
  Value result = frame_->graph->result(op, static_cast<uint32_t>(i));
  ShardingRef sums = sums_->of(result);
  if (sums->unreduced().empty()) return name;
  return emit_constraint(*this, name, frame_->graph->type(result), sums);
}

// The name of a value that is about to be split otherwise. XLA takes an op for one whose parts hold
// summands if its result is to be such, and turns no sums over some axes into sums over others. So
// what does not stand for sums over the wanted axes is first a value that is added up.
std::string FunctionWriter::with_sums(std::string name, Value v, ShardingRef wanted) {
  Dims has, kept;
  if (frame_ ? frame_->graph == main_graph_ : sums_.has_value()) {
    if (!v.is_literal() && kept_apart_.contains(v.id)) return name;
    has = sums_->of(v)->unreduced();
  }
  for (int64_t axis : wanted->unreduced())
    if (has_axis(has, axis)) kept.push_back(axis);
  TypeRef type = (frame_ ? frame_->graph : main_graph_)->type(v);
  // XLA adds sums that stay once more where the value is split otherwise: all are made before.
  if (!kept.empty() && !std::ranges::equal(sums_->of(v)->dims(), wanted->dims())) {
    name = emit_constraint(*this, name, type, with_unreduced(sums_->of(v), {}));
    kept.clear();
  }
  if (kept == wanted->unreduced()) return name;
  return emit_constraint(*this, name, type, with_unreduced(wanted, kept));
}

// The name of a value as an operand of a shard_map: its sums are made, or yet to be made, as the
// spec says.
std::string FunctionWriter::as_spec(Value v, ShardingRef spec) {
  TypeRef type = frame_->graph->type(v);
  bool is_literal = v.is_literal();
  std::string name =
      is_literal ? typed_constant(frame_->graph->literal(v), type) : frame_->names[v.id];
  ShardingRef has = sums_->of(v);
  if (has->unreduced() == spec->unreduced() || spec->mesh()->size() == 1) return name;
  if (!is_literal) name = with_sums(std::move(name), v, spec);
  return emit_constraint(*this, name, type, spec);
}

// The name of an operand of the op, by its number, or of a result (-1), which is whole along the
// dimensions that XLA's partitioner would get wrong, and split as ever along the others.
std::string FunctionWriter::made_whole(Value v, int64_t operand) {
  const std::string& name = frame_->names[v.id];
  MeshRef mesh = manual_mesh_ ? manual_mesh_ : module_.split_mesh();
  Dims sizes;
  for (const MeshAxis& axis : mesh->axes())
    if (axis.type != AxisType::kManual && axis.size > 1) sizes.push_back(axis.size);
  TypeRef type = frame_->graph->type(v);
  if (sizes.empty() || type->rank() == 0) return name;
  Mask whole = whole_dims(*frame_->graph, *frame_->op, type, operand, module_.resized(), sizes);
  if (whole.empty()) return name;
  if (frame_->graph == main_graph_ && !sums_->of(v)->unreduced().empty()) return name;
  ShardingParts wanted{.mesh = mesh};
  for (bool w : whole) wanted.dims.push_back({.axes = {}, .open = !w});
  return emit_constraint(*this, name, type, make_sharding(std::move(wanted)));
}

}  // namespace weft
