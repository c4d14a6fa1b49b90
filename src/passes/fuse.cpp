// fuse: groups element-wise ops of one shape into `fusion` ops, whose bodies say what a backend
// could compute in one loop. An op joins the group of its users when they all are in one group, so
// a value inside a group is used only there or as an output of the graph; nothing outside the
// group can stand between two of its ops, and the whole group can stand where its last op was.
#include <unordered_map>

#include "ops/def/walk.h"
#include "passes/machine.h"
#include "passes/pass_list.h"
#include "weft/registry.h"

namespace weft {
namespace {

constexpr uint32_t kNoGroup = 0xffffffffu;
const std::string kFusion = "fusion";  // the op, and the rewrite that makes it

const OpDef& fusion_op() { return op_named<"fusion">(); }

// Ops whose result element i depends on element i of operands that are of the result's shape or
// scalar. The broadcast of a scalar is one of them.
bool is_fusible(const Graph& graph, const Op& op) {
  if (op.num_results != 1 || op.info->effects != kPure || def(*op.info).call != CallKind::kNone) {
    return false;
  }
  if (def(*op.info).elementwise) return true;
  return op.info == &op_named<"broadcast_in_dim">() &&
         graph.type(graph.operand(op, 0))->rank() == 0;
}

// A group of ops while it becomes the body of a fusion.
class FusionBody {
 public:
  explicit FusionBody(const Graph& graph) : graph_(graph) {}

  void append(const Op& op) {
    Values operands;
    for (Value v : graph_.operands(op)) operands.push_back(inner(v));
    body_.set_loc(op.loc);
    values_[op.results_begin] =
        body_.add_typed(*op.info, operands, op.attrs, graph_.result_types(op))[0];
  }
  void add_output(Value v) {
    results_.push_back(v);
    outputs_.push_back(values_.at(v.id));
  }
  GraphRef finish() { return body_.finish(outputs_); }

  // In the graph that is fused: what the body's inputs and outputs stand for.
  const Values& args() const { return args_; }
  const Values& results() const { return results_; }

 private:
  Value inner(Value v) {
    if (v.is_literal()) return body_.literal(graph_.literal(v));
    auto [known, added] = values_.try_emplace(v.id);
    if (added) {
      known->second = body_.input(graph_.type(v));
      args_.push_back(v);
    }
    return known->second;
  }

  const Graph& graph_;
  GraphBuilder body_;
  std::unordered_map<uint32_t, Value> values_;
  Values args_, results_, outputs_;
};

// The group of each op: the index of the group's last op, kNoGroup for ops that stay alone.
std::vector<uint32_t> find_groups(const Graph& graph) {
  constexpr uint32_t kSeveral = kNoGroup - 1;
  size_t num_ops = graph.ops().size();
  // Per value: the group that all its uses so far belong to, kNoGroup if there are none.
  std::vector<uint32_t> users(graph.num_values(), kNoGroup);
  std::vector<uint32_t> groups(num_ops, kNoGroup);
  std::vector<uint32_t> sizes(num_ops, 0);
  auto shape = [&](uint32_t index) -> const Dims& {
    return graph.result_types(graph.op(index))[0]->shape();
  };
  for (uint32_t index = static_cast<uint32_t>(num_ops); index-- > 0;) {
    const Op& op = graph.op(index);
    uint32_t mine = kSeveral;
    if (is_fusible(graph, op)) {
      uint32_t user = users[op.results_begin];
      mine = user < kSeveral && shape(user) == shape(index) ? user : index;
      groups[index] = mine;
      ++sizes[mine];
    }
    for (Value v : graph.operands(op)) {
      if (v.is_literal()) continue;
      users[v.id] = users[v.id] == kNoGroup || users[v.id] == mine ? mine : kSeveral;
    }
  }
  for (uint32_t& group : groups) {
    if (group != kNoGroup && sizes[group] < 2) group = kNoGroup;
  }
  return groups;
}

class FuseRun {
 public:
  GraphRef run(const GraphRef& graph);
  uint32_t num_fusions() const { return num_fusions_; }

 private:
  GraphMemo regions_{[this](const GraphRef& graph) { return run(graph); }};
  GraphMemo bodies_{[](const GraphRef& graph) { return graph; }};
  uint32_t num_fusions_ = 0;
};

GraphRef FuseRun::run(const GraphRef& graph) {
  std::vector<uint32_t> groups = find_groups(*graph);
  std::vector<bool> is_output(graph->num_values());
  for (Value v : graph->outputs())
    if (!v.is_literal()) is_output[v.id] = true;

  const OpDef& fusion = fusion_op();
  std::unordered_map<uint32_t, FusionBody> bodies;  // of groups whose last op is still to come
  GraphBuilder b;
  ValueMap map(*graph, b);
  bool changed = false;
  std::vector<Value> inputs = copy_inputs(*graph, b, map);
  uint32_t next = 0;
  copy_ops(*graph, b, map, [&](const Op& op, std::span<const Value> operands) -> Values {
    uint32_t index = next++;
    if (groups[index] == kNoGroup) {
      AttrsRef attrs = op.attrs;
      if (attrs && takes_graphs(*op.info) && op.info != &fusion) {
        attrs = map_graphs(attrs, [this](const GraphRef& g) { return regions_(g); });
        changed |= attrs != op.attrs;
      }
      return b.add_typed(*op.info, operands, attrs, graph->result_types(op));
    }
    FusionBody& body = bodies.try_emplace(groups[index], *graph).first->second;
    body.append(op);
    bool last = groups[index] == index;
    if (last || is_output[op.results_begin]) body.add_output(graph->result(op));
    if (!last) return {};
    changed = true;
    ++num_fusions_;
    AttrsRef attrs = AttrRecord::make(
        kFusion, fusion.attrs, {{"body", bodies_(body.finish())}, {"name", std::string(kFusion)}});
    Values results = b.add(fusion, map(body.args()), attrs);
    for (size_t i = 0; i < results.size(); ++i) map.set(body.results()[i], results[i]);
    bodies.erase(index);
    return {};
  });
  return changed ? finish_copy(*graph, b, map, inputs) : graph;
}

GraphRef fuse(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  RewriteFilter filter(options);
  if (!filter.allows(kFusion)) return graph;
  FuseRun run;
  GraphRef result = run.run(graph);
  filter.applied(kFusion, run.num_fusions(), stats);
  return result;
}

}  // namespace

Pass fuse_pass() {
  return {"fuse",
          "Groups element-wise ops into fusion ops.",
          fuse,
          {{kFusion, "element-wise ops of one shape -> a fusion of them"}}};
}

bool is_fusion(const Op& op) { return op.info == &fusion_op(); }

std::vector<FusionReport> fusion_report(const Graph& graph) {
  std::vector<FusionReport> reports;
  for (const Op& op : graph.ops()) {
    if (!is_fusion(op)) continue;
    const GraphRef& body = callee(op);
    FusionReport report{.name = op.attrs->string("name"),
                        .num_ops = static_cast<uint32_t>(body->ops().size()),
                        .cost = graph_cost(*body),
                        .loc = op.loc};
    for (Value v : graph.operands(op)) report.fused_bytes += bytes_of(graph.type(v));
    for (TypeRef type : graph.result_types(op)) report.fused_bytes += bytes_of(type);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace weft
