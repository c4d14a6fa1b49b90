// Ops that call a graph: jit, made by a jitted function called inside another program; fusion, made
// by passes to keep a group of ops together; kernel, made by passes of what XLA is to emit as one
// function; and composite, which a compiler may
// replace by an implementation of its own. Effects are those of the graph. A transform of a call is
// a call of the transformed graph.
#include "ops/control/call.h"

#include <cctype>

#include "ops/control/family.h"
#include "ops/control/recompute.h"
#include "ops/def/hlo_text.h"
#include "ops/def/presets.h"
#include "ops/def/regions.h"
#include "ops/def/walk.h"
#include "weft/held.h"
#include "weft/kernel_call.h"
#include "weft/op_def.h"

namespace weft {
namespace {

TypeRefs infer_call(const InferCtx& c, std::string_view attr) {
  const Graph& callee = *c.attr().graph(attr);
  if (callee.num_inputs() != c.size())
    c.fail(ErrorKind::kType, "expected ", callee.num_inputs(), " operands, one per input of ", attr,
           "; got ", c.size());
  for (size_t i = 0; i < c.size(); ++i)
    if (c.in(i) != callee.input_types()[i])
      c.fail(ErrorKind::kType, "expected operand ", i, " of type ", callee.input_types()[i],
             ", as input ", i, " of ", attr, "; got ", c.in(i));
  TypeRefs out;
  for (TypeRef t : callee.output_types()) out.push_back(t);
  return out;
}

void jvp_call(GraphJvpCtx& c) {
  auto jvp = c.transforms->jvp(callee(c.op, c.attrs), {.in_mask = c.tangent_mask()});
  Values args(c.operands);
  append_present(args, c.tangents);
  Values made = call(c, args, jvp->graph);
  std::span<const Value> results(made);
  size_t n = c.out_types.size();
  c.results = Values(results.first(n));
  c.result_tangents = scattered(jvp->out_mask, results.subspan(n));
}

void linearize_call(GraphJvpCtx& c) {
  const GraphRef& source = callee(c.op, c.attrs);
  auto split = c.transforms->linearize(source, {.in_mask = c.tangent_mask()});
  if (has_too_many_residuals(source, *split)) return linearize_by_recomputation(c, nullptr);
  Values made = call(c, c.operands, split->forward);
  c.results = Values(std::span<const Value>(made).first(c.out_types.size()));
  Values args;
  for (const Residual& r : split->residuals)
    args.push_back(r.is_input ? c.operands[r.index] : made[r.index]);
  append_present(args, c.tangents);
  Values tangents;
  if (!split->linear->outputs().empty()) tangents = call(c, args, split->linear);
  c.result_tangents = scattered(split->out_mask, tangents);
}

// What is called is told over which axes its inputs vary; those need not be the same ones.
void shard_call(ShardCtx& c) {
  ShardOptions options{
      .axes = c.axes, .inputs = SmallVector<AxisSet, 8>(c.varying), .strict = c.strict};
  auto inner = c.transforms->shard(callee(c.op, c.attrs), options);
  c.results = call(c, c.operands, inner->graph);
  c.result_varying = inner->outputs;
}

void check_call(CheckCtx& c) {
  auto inner = c.checked(callee(c.op, c.attrs));
  Vals made = vals_of(c.b, call(c, c.operands, inner->graph));
  Reader read(made);
  c.results = values_of(read.take(inner->num_outputs));
  c.fail_in(read.rest());
}

void transpose_call(TransposeCtx& c) {
  TransposedCall t = transposed_call(c);
  add_cotangents(c, *t.transposed, call(c, t.args, t.transposed->graph));
}

}  // namespace

Values call(const RuleCtx& c, std::span<const Value> args, const GraphRef& graph) {
  return c.b.add_typed(c.op, args, with_callee(c.attrs, graph), graph->output_types());
}

TransposedCall transposed_call(const TransposeCtx& c) {
  TransposeOptions options;
  TransposedCall out;
  append_present(out.args, c.operands);
  append_present(out.args, c.cotangents);
  for (size_t i = 0; i < c.size(); ++i) options.linear.push_back(c.linear(i));
  for (Value ct : c.cotangents) options.cotangents.push_back(static_cast<bool>(ct));
  out.transposed = c.transforms->transpose(callee(c.op, c.attrs), options);
  return out;
}

void add_cotangents(TransposeCtx& c, const TransposedGraph& transposed,
                    std::span<const Value> results) {
  Values cts = scattered(transposed.out_mask, results);
  size_t next = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    if (!c.linear(i)) continue;
    Value ct = cts[next++];
    if (ct) c.add(i, c.val(ct));
  }
}

void batch_call(BatchCtx& c) {
  auto mapped =
      c.transforms->vmap(callee(c.op, c.attrs), {.in_dims = BatchDims(c.dims),
                                                 .size = c.size,
                                                 .axis_name = std::string(c.axis_name),
                                                 .spmd_axis_name = std::string(c.spmd_axis_name)});
  Values results = call(c, c.operands, mapped->graph);
  for (size_t i = 0; i < results.size(); ++i) c.result(c.val(results[i]), mapped->out_dims[i]);
}

OpDef call_op(std::string name, std::string doc, std::string attr, CallKind kind) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.attrs = {{"name", AttrType::kString, AttrSpec::kCosmetic, std::string("f")},
             {attr, AttrType::kGraph}};
  d.call = kind;
  d.multiple_results = true;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_call;
  d.graph_linearize = linearize_call;
  d.transpose = transpose_call;
  d.batch = batch_call;
  d.check = check_call;
  d.shard = shard_call;
  d.lift = [attr](const AttrsRef& attrs) {
    auto inner = lift_constants(attrs->graph(attr));
    LiftedOp lifted{attrs->with({{attr, inner->graph}}), {}};
    for (const ObjectRef& object : inner->constants) lifted.operands.push_back({0, object});
    return lifted;
  };
  d.flow = [attr](FlowCtx& c) { c.through(c.attrs->graph(attr), c.operands, c.results); };
  // Results that no caller uses leave the callee, then the inputs that only they needed.
  d.prune = [attr](PruneCtx& c) {
    return c.attrs->with({{attr, c.narrowed(c.attrs->graph(attr), c.results, c.operands)}});
  };
  d.infer = [attr](const InferCtx& c) { return infer_call(c, attr); };
  d.emit = [attr](EmitCtx& c) { emit_call(c, c.attr().graph(attr), c.attr().string("name")); };
  return d;
}

// A composite is known to compilers by its name; what is derived from it is a plain call.
struct PlainCall {
  explicit PlainCall(const AttrRecord& composite)
      : attrs(AttrRecord::make(
            op.name, op.attrs,
            {{"name", composite.string("name")}, {"jaxpr", composite.graph("jaxpr")}})) {}
  RuleCtx in(const RuleCtx& c) const {
    return {c.b, op, attrs, c.operands, c.in_types, c.out_types, c.transforms};
  }
  const OpDef& op = op_named<"jit">();
  AttrsRef attrs;
};

GraphJvpRule of_plain_call(void (*rule)(GraphJvpCtx&)) {
  return [rule](GraphJvpCtx& c) {
    PlainCall plain(c.attr());
    GraphJvpCtx call{plain.in(c), c.tangents, {}, {}};
    rule(call);
    c.results = std::move(call.results);
    c.result_tangents = std::move(call.result_tangents);
  };
}

// Words with points between them: "my_namespace.my_op".
bool is_namespaced(std::string_view name) {
  auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
  };
  bool any_point = false;
  char before = '.';
  for (char c : name) {
    if (c == '.' ? before == '.' : !is_word(c) || (c == '$' && !any_point)) return false;
    any_point |= c == '.';
    before = c;
  }
  return any_point && before != '.' && std::isalpha(static_cast<unsigned char>(name[0]));
}

void emit_composite(EmitCtx& c) {
  const std::string& attributes = c.attr().string("attributes");
  std::string callee = c.function(c.attr().graph("jaxpr"), c.attr().string("name"));
  Text text;
  text << "stablehlo.composite \"" << c.attr().string("name") << "\" " << operand_list(c) << " {";
  if (!attributes.empty()) text << "composite_attributes = {" << attributes << "}, ";
  text << "decomposition = " << callee << ", version = " << c.attr().integer("version")
       << " : i32} : " << signature(c);
  emit_results(c, text.view());
}

OpDef composite_op() {
  OpDef d = call_op("composite", "Calls a graph that compilers may know by a name.", "jaxpr",
                    CallKind::kKeep);
  d.attrs = {{"name", AttrType::kString},
             {"version", AttrType::kInt},
             // As in MLIR: "axis = 1 : i64, exact = true".
             {"attributes", AttrType::kString, AttrSpec::kHideDefault, std::string()},
             {"jaxpr", AttrType::kGraph}};
  d.infer = [](const InferCtx& c) {
    const std::string& name = c.attr().string("name");
    if (!is_namespaced(name))
      c.fail(ErrorKind::kValue, "expected a name such as my_namespace.my_op; got name=", name);
    int64_t version = c.attr().integer("version");
    if (version < 0 || version > std::numeric_limits<int32_t>::max())
      c.fail(ErrorKind::kValue, "expected a version of 31 bits; got version=", version);
    return infer_call(c, "jaxpr");
  };
  d.graph_jvp = of_plain_call(jvp_call);
  d.graph_linearize = of_plain_call(linearize_call);
  d.transpose = [](TransposeCtx& c) {
    PlainCall plain(c.attr());
    TransposeCtx call{plain.in(c), c.linear_mask, c.cotangents, c.accumulated, c.keep};
    transpose_call(call);
  };
  d.batch = [](BatchCtx& c) {
    PlainCall plain(c.attr());
    BatchCtx call{plain.in(c), c.size, c.dims, {}, {}, c.axis_name, c.spmd_axis_name};
    batch_call(call);
    c.out = std::move(call.out);
    c.out_dims = std::move(call.out_dims);
  };
  d.prune = nullptr;  // a compiler goes by operands and results
  d.check = nullptr;
  d.emit = emit_composite;
  return d;
}

namespace {

// All results stay: those that nobody reads are what XLA must have of each argument of a kernel.
OpDef kernel_op() {
  OpDef d = call_op("kernel", "Calls a graph that XLA is to emit as one function.", "body",
                    CallKind::kKeep);
  d.prune = nullptr;
  d.emit = [](EmitCtx& c) {
    emit_call(c, c.attr().graph("body"), c.attr().string("name"), kKernelCall);
  };
  return d;
}

}  // namespace

void register_call(OpRegistry& r) {
  OpDef jit = call_op("jit", "Calls a graph.", "jaxpr", CallKind::kInline);
  jit.in_kernel = is_same_in_kernel;
  r.add(std::move(jit));
  r.add(kernel_op());
  r.add(composite_op());
  OpDef fusion =
      call_op("fusion", "Calls a graph whose ops are to stay together.", "body", CallKind::kKeep);
  // Computes what its body does, but what its ops hand to one another is neither read nor written.
  fusion.cost = [](const CostCtx& c) {
    Cost cost = c.graph_cost(*c.attrs->graph("body"));
    cost.bytes = cost_bytes(c).bytes;
    return cost;
  };
  r.add(std::move(fusion));
}

}  // namespace weft
