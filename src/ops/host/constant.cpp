// constant: an array, dense or held by the embedding language (weft/held.h), and lifting the held
// ones out of a graph.
#include <algorithm>
#include <unordered_map>

#include "ops/def/dense.h"
#include "ops/def/presets.h"
#include "ops/def/walk.h"
#include "ops/host/family.h"
#include "weft/build.h"
#include "weft/held.h"
#include "weft/op_def.h"

namespace weft {
namespace {

const HeldValue& held(const AttrRecord& attrs) {
  const ObjectRef* object = std::get_if<ObjectRef>(&attrs.at("value"));
  const auto* value = object ? dynamic_cast<const HeldValue*>(object->get()) : nullptr;
  if (!value) fail(ErrorKind::kType, "[constant] expected a held value");
  return *value;
}

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string text = "\"0x";
  for (unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text + '"';
}

void emit_constant(EmitCtx& c) {
  TypeRef type = c.out_type();
  std::string bytes = held(c.attr()).bytes();
  // How MLIR packs bools is its own affair.
  bool is_bool = type->dtype() == DType::kBool;
  TypeRef stored = is_bool ? with_dtype(type, DType::kU8) : type;
  std::string elements = type->num_elements() == 0 ? std::string() : hex(bytes);
  std::string name = c.line(cat("stablehlo.constant dense<", elements, "> : ", mlir_type(stored)));
  if (is_bool)
    name = c.line(
        cat("stablehlo.convert ", name, " : (", mlir_type(stored), ") -> ", mlir_type(type)));
  c.set_out(0, name);
}

bool is_held(const Op& op) {
  return op.info == &op_named<"constant">() &&
         !dynamic_cast<const DenseConstant*>(&held(*op.attrs));
}
bool has_constants(const Graph& graph);

// Whether graphs of the op hold constants that can become operands of it.
bool holds_constants(const Op& op) {
  bool found = false;
  if (def(*op.info).lift)
    for_each_graph(op.attrs,
                   [&](const GraphRef& graph) { found = found || has_constants(*graph); });
  return found;
}

// Kept on a graph that holds others, since it may be called from many places.
bool has_constants(const Graph& graph) {
  auto found = [&] {
    return std::any_of(graph.ops().begin(), graph.ops().end(),
                       [](const Op& op) { return is_held(op) || holds_constants(op); });
  };
  bool holds_graphs = std::any_of(graph.ops().begin(), graph.ops().end(),
                                  [](const Op& op) { return takes_graphs(*op.info); });
  if (!holds_graphs) return found();
  return *graph.cached<bool>("has_constants", [&] { return std::make_shared<bool>(found()); });
}

std::shared_ptr<const LiftedGraph> make_lifted(const Graph& graph) {
  auto result = std::make_shared<LiftedGraph>();
  GraphBuilder b;
  ValueMap map(graph, b);
  std::vector<Value> inputs = copy_inputs(graph, b, map), lifted;
  std::unordered_map<const AttrObject*, Value> known;
  auto input_for = [&](const ObjectRef& object) {
    auto [it, fresh] = known.try_emplace(object.get());
    if (fresh) {
      it->second = b.input(static_cast<const HeldValue&>(*object).type());
      lifted.push_back(it->second);
      result->constants.push_back(object);
    }
    return it->second;
  };
  copy_ops(graph, b, map, [&](const Op& op, std::span<const Value> operands) -> Values {
    if (is_held(op)) return {input_for(std::get<ObjectRef>(op.attrs->at("value")))};
    if (!holds_constants(op)) return copy_op(graph, b, op, operands);
    LiftedOp inner = def(*op.info).lift(op.attrs);
    Values all;
    size_t next = 0;
    for (const auto& [before, object] : inner.operands) {
      for (; next < before; ++next) all.push_back(operands[next]);
      all.push_back(input_for(object));
    }
    for (; next < operands.size(); ++next) all.push_back(operands[next]);
    return b.add_typed(*op.info, all, inner.attrs, graph.result_types(op));
  });
  std::vector<Value> outputs;
  for (Value v : graph.outputs()) outputs.push_back(map(v));
  for (Value v : inputs) lifted.push_back(v);
  result->graph = b.finish_ordered(outputs, lifted);
  return result;
}

}  // namespace

std::shared_ptr<const LiftedGraph> lift_constants(const GraphRef& graph) {
  // Most graphs have none; only for others is a result kept on the graph, which must not own
  // itself.
  if (!has_constants(*graph)) {
    auto same = std::make_shared<LiftedGraph>();
    same->graph = graph;
    return same;
  }
  return graph->cached<LiftedGraph>("lift_constants", [&] { return make_lifted(*graph); });
}

Val dense(Builder& b, const std::shared_ptr<const DenseConstant>& constant) {
  const OpDef& op = op_named<"constant">();
  auto attrs = AttrRecord::make(op.name, op.attrs, {{"value", ObjectRef(constant)}});
  return {&b, b.add(op, {}, attrs)[0]};
}

void register_constant(OpRegistry& r) {
  OpDef d;
  d.name = "constant";
  d.doc = "An array, known or held outside the program.";
  d.num_operands = 0;
  d.attrs = {{"value", AttrType::kConstant}};
  d.jvp_kind = JvpKind::kZero;
  d.infer = [](const InferCtx& c) -> TypeRefs { return {held(c.attr()).type()}; };
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_constant;
  d.simplify = {{"constant_splat", "a constant of equal elements -> broadcast(literal)",
                 [](SimplifyCtx& c) -> Vals {
                   const auto* dense = dynamic_cast<const DenseConstant*>(&held(c.attr()));
                   std::optional<Literal> x = dense ? dense->splat() : std::nullopt;
                   if (!x) return {};
                   return {broadcast_to(c.val(c.b.literal(*x)), c.out_types[0]->shape())};
                 }}};
  d.cost = [](const CostCtx&) { return Cost{}; };
  r.add(std::move(d));
}

}  // namespace weft
