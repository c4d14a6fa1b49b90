// Calls of functions whose derivatives users wrote: custom_jvp_call, custom_vjp_call, and
// custom_lin, what differentiating the latter leaves in a linear graph until it is transposed.
#include "weft/custom_rules.h"

#include <algorithm>

#include "ops/control/call.h"
#include "ops/control/family.h"
#include "ops/def/axes.h"
#include "ops/def/dependence.h"
#include "ops/def/hlo_text.h"
#include "ops/def/regions.h"
#include "ops/def/walk.h"
#include "weft/build.h"
#include "weft/hash.h"

namespace weft {
namespace {

template <typename T>
std::shared_ptr<const T> rule_of(const OpInfo& op, const AttrRecord& attrs) {
  const ObjectRef* object = std::get_if<ObjectRef>(&attrs.at("rule"));
  auto rule = object ? std::dynamic_pointer_cast<const T>(*object) : nullptr;
  if (!rule)
    fail(ErrorKind::kType, "[", op.name, "] expected '", attrs.string("name"),
         "' to have a rule; got a program whose rules were lost as it was written as text");
  return rule;
}
template <typename T>
std::shared_ptr<const T> rule_of(const RuleCtx& c) {
  return rule_of<T>(c.op, c.attr());
}

bool is_differentiable(TypeRef type) { return is_inexact(type->dtype()); }

size_t num_consts(const AttrRecord& attrs) {
  return static_cast<size_t>(attrs.integer("num_consts"));
}

// The mask of inputs with a tangent. What the function closed over must not have one: the rule says
// nothing about that.
Mask input_mask(const GraphJvpCtx& c) {
  size_t first = num_consts(c.attr());
  for (size_t i = 0; i < first; ++i) {
    if (!c.tangents[i]) continue;
    throw ClosedOverError(
        cat("[", c.op.name, "] expected '", c.attr().string("name"),
            "' to be differentiated with respect to its arguments only; got a derivative with "
            "respect to a value of type ",
            c.in_types[i],
            " that it closes over\n  Pass that value as an argument, or use closure_convert."));
  }
  Mask mask;
  for (Value t : c.tangents.subspan(first)) mask.push_back(static_cast<bool>(t));
  return mask;
}

// ---- custom_jvp_call

// The same for a linearization, whose builder keeps what depends on tangents apart.
void jvp_custom(GraphJvpCtx& c) {
  auto jvp = rule_of<CustomJvp>(c)->jvp(input_mask(c));
  Values args(c.operands);
  append_present(args, c.tangents);
  Values made = c.b.inline_graph(*jvp->graph, args);
  std::span<const Value> results(made);
  size_t n = c.out_types.size();
  c.results = Values(results.first(n));
  c.result_tangents = scattered(jvp->out_mask, results.subspan(n));
}

// What depends on what, the graph tells; all results are mapped if any operand is, and all operands
// are needed.
void flow_through_call(FlowCtx& c) {
  if (c.flow != Flow::kDepends) return c.all();
  c.through(callee(c.op, c.attrs), c.operands, c.results);
}
// The rule says which results have a tangent.
void flow_through_jvp(FlowCtx& c) {
  if (c.flow != Flow::kTangents) return flow_through_call(c);
  Mask inputs(std::span<const bool>(c.operands).subspan(num_consts(*c.attrs)));
  if (std::find(inputs.begin(), inputs.end(), true) == inputs.end()) return;
  c.results = rule_of<CustomJvp>(c.op, *c.attrs)->jvp(inputs)->out_mask;
}

uint64_t hash_of(const VmapOptions& options) { return static_cast<uint64_t>(options.size); }
uint64_t hash_of(const ShardOptions& options) { return options.inputs.size(); }
bool same_options(const VmapOptions& a, const VmapOptions& b) { return a == b; }
bool same_options(const ShardOptions& a, const ShardOptions& b) {
  return a.axes == b.axes && a.inputs == b.inputs && a.at_least == b.at_least &&
         a.strict == b.strict;
}

// Of what there is per const and input, the entries of the masked inputs.
template <typename T, uint32_t N>
SmallVector<T, N> of_inputs(const SmallVector<T, N>& all, const Mask& mask) {
  return picked(SmallVector<T, N>(std::span<const T>(all).last(mask.size())), mask);
}

// A rule made of another by a transform with options, whose inputs are the consts and inputs: by
// vmap (whose out_dims are those of the function's outputs) or shard. Derived is the class itself,
// Base the kind of the rule.
template <typename Derived, typename Base, typename Options>
struct Transformed : Base {
  std::shared_ptr<const Base> single;
  Options options;
  const Transforms* transforms;

  uint64_t hash() const override { return hash_combine(single->hash(), hash_of(options)); }
  bool equals(const AttrObject& other) const override {
    const auto* o = dynamic_cast<const Derived*>(&other);
    return o && same_options(options, o->options) && single->equals(*o->single);
  }
};

struct BatchedJvp final : Transformed<BatchedJvp, CustomJvp, VmapOptions> {
  std::shared_ptr<const JvpGraph> jvp(const Mask& in_mask) const override {
    auto of_one = single->jvp(in_mask);
    VmapOptions both = options;
    both.in_dims.append(of_inputs(options.in_dims, in_mask));
    both.out_dims.append(picked(options.out_dims, of_one->out_mask));
    auto mapped = std::make_shared<JvpGraph>();
    mapped->graph = transforms->vmap(of_one->graph, both)->graph;
    mapped->out_mask = of_one->out_mask;
    return mapped;
  }
};

VmapOptions batch_options(const BatchCtx& c, std::span<const int> in_dims, BatchDims out_dims) {
  return {.in_dims = BatchDims(in_dims),
          .size = c.size,
          .out_dims = std::move(out_dims),
          .axis_name = std::string(c.axis_name),
          .spmd_axis_name = std::string(c.spmd_axis_name)};
}

bool are_shared(std::span<const int> dims) {
  return std::all_of(dims.begin(), dims.end(), [](int dim) { return dim == kNotBatched; });
}

// The vectorised call with the vectorised rule. All results are mapped at axis 0, so that values
// and derivatives agree whatever each of them depends on; none is where the lanes share all
// operands and results.
template <typename Batched, typename Base>
void batch_custom(BatchCtx& c) {
  GraphRef single = callee(c.op, c.attrs);
  bool shared = are_shared(c.dims) &&
                are_shared(c.transforms->vmap(single, batch_options(c, c.dims, {}))->out_dims);
  int dim = shared ? kNotBatched : 0;
  auto batched = std::make_shared<Batched>();
  batched->single = rule_of<Base>(c);
  batched->options = batch_options(c, c.dims, BatchDims(c.out_types.size(), dim));
  batched->transforms = c.transforms;
  GraphRef mapped = c.transforms->vmap(single, batched->options)->graph;
  AttrsRef attrs = c.attrs->with({{"call_jaxpr", mapped}, {"rule", ObjectRef(batched)}});
  for (Value v : c.b.add_typed(c.op, c.operands, attrs, mapped->output_types()))
    c.result(c.val(v), dim);
}

// ---- What varies over a mesh

// A graph of a user's rule, explicit about what varies over a mesh; what it gives must vary over no
// other axes than it has to.
GraphRef sharded_rule(const Transforms& transforms, const GraphRef& graph,
                      const ShardOptions& options, std::string_view what) {
  auto made = transforms.shard(graph, options);
  for (size_t i = 0; i < options.at_least.size(); ++i) {
    AxisSet extra = without_marks(made->outputs[i] & ~options.at_least[i]);
    if (!extra) continue;
    fail(ErrorKind::kValue, "expected ", what, " to give, as number ", i, ", a ",
         graph->output_types()[i], " that is the same along the axes of the mesh along which what ",
         "it belongs to is; got one that varies over ", axes_text(options.axes, extra),
         "\n  Take lax.psum or pmean over the axis in the rule.");
  }
  return made->graph;
}

using Sets = SmallVector<AxisSet, 8>;

// The options' at_least are those of the function's outputs.
struct ShardedJvp final : Transformed<ShardedJvp, CustomJvp, ShardOptions> {
  std::shared_ptr<const JvpGraph> jvp(const Mask& in_mask) const override {
    auto made = single->jvp(in_mask);
    ShardOptions own = options;
    own.inputs.append(of_inputs(options.inputs, in_mask));
    for (size_t i = 0; i < made->out_mask.size(); ++i)
      if (made->out_mask[i]) own.at_least.push_back(options.at_least[i]);
    return std::make_shared<JvpGraph>(
        JvpGraph{sharded_rule(*transforms, made->graph, own, "a jvp rule"), made->out_mask});
  }
};

// Its options' inputs are those of the residuals, at_least the inputs' with a tangent.
struct ShardedBackward final : CustomBackward {
  std::shared_ptr<const CustomBackward> base;
  ShardOptions options;
  Sets outputs;  // float or complex ones
  const Transforms* transforms;

  GraphRef backward(const Mask& cotangents) const override {
    ShardOptions own = options;
    for (size_t i = 0; i < cotangents.size(); ++i)
      if (cotangents[i]) own.inputs.push_back(outputs[i]);
    return sharded_rule(*transforms, base->backward(cotangents), own, "the backward rule");
  }
  TypeRefs out_types() const override { return base->out_types(); }
  const Sets* varying(const std::vector<std::string>& axes) const override {
    return options.axes == axes ? &outputs : nullptr;
  }
};

struct ShardedVjp final : Transformed<ShardedVjp, CustomVjp, ShardOptions> {
  std::shared_ptr<const CustomForward> forward(const Mask& in_mask) const override {
    auto of_one = single->forward(in_mask);
    ShardOptions own = options;
    size_t num_outputs = options.at_least.size();
    own.at_least.resize(of_one->forward->outputs().size(), 0);
    auto made = transforms->shard(of_one->forward, own);
    auto backward = std::make_shared<ShardedBackward>();
    backward->base = of_one->backward;
    backward->options = {
        .axes = options.axes,
        .inputs = Sets(std::span<const AxisSet>(made->outputs).subspan(num_outputs)),
        .at_least = of_inputs(options.inputs, in_mask)};
    for (size_t i = 0; i < num_outputs; ++i)
      if (is_differentiable(of_one->forward->output_types()[i]))
        backward->outputs.push_back(made->outputs[i]);
    backward->transforms = transforms;
    return std::make_shared<CustomForward>(CustomForward{made->graph, backward});
  }
};

// The call and its rule, which is asked for derivatives later.
template <typename Sharded, typename Base>
void shard_custom(ShardCtx& c) {
  ShardOptions options{
      .axes = c.axes, .inputs = Sets(c.varying), .at_least = {}, .strict = c.strict};
  auto inner = c.transforms->shard(callee(c.op, c.attrs), options);
  AttrsRef attrs = c.attrs->with({{"call_jaxpr", inner->graph}});
  if (!c.attr().is_none("rule")) {
    auto rule = std::make_shared<Sharded>();
    rule->single = rule_of<Base>(c);
    rule->options = {.axes = c.axes, .inputs = Sets(c.varying), .at_least = inner->outputs};
    rule->transforms = c.transforms;
    const auto* known = dynamic_cast<const Sharded*>(rule->single.get());
    if (!known || !same_options(known->options, rule->options))
      attrs = attrs->with({{"rule", ObjectRef(rule)}});
  }
  c.results = c.b.add_typed(c.op, c.operands, attrs, c.out_types);
  c.result_varying = inner->outputs;
}

// The call stays, for its derivatives; its checks are made beside it.
void check_custom(CheckCtx& c) {
  c.results = c.b.add_typed(c.op, c.operands, without_effects(c.attrs), c.out_types);
  auto inner = c.checked(callee(c.op, c.attrs));
  const OpDef& jit = op_named<"jit">();
  AttrsRef attrs = AttrRecord::make(jit.name, jit.attrs,
                                    {{"name", c.attr().string("name")}, {"jaxpr", inner->graph}});
  Vals made = vals_of(c.b, c.b.add(jit, c.operands, attrs));
  c.fail_in(std::span<const Val>(made).subspan(inner->num_outputs));
}

// A call that is itself linear needs no rule.
void transpose_custom(TransposeCtx& c) {
  TransposedCall t = transposed_call(c);
  add_cotangents(c, *t.transposed, c.b.inline_graph(*t.transposed->graph, t.args));
}

// ---- custom_vjp_call

[[noreturn]] void no_forward_mode(const std::string& name) {
  fail(ErrorKind::kType, "[custom_vjp] expected reverse mode for '", name,
       "', whose derivative custom_vjp gives; got forward mode (jvp, jacfwd, linearize)\n"
       "  Use grad, vjp or jacrev, or give the derivative with custom_jvp, which serves both.");
}

void jvp_custom_lin(GraphJvpCtx& c) { no_forward_mode(c.attr().string("name")); }

const OpDef& custom_lin() {
  static const OpDef& op = registry().get("custom_lin");
  return op;
}

void linearize_custom_vjp(GraphJvpCtx& c) {
  auto rule = rule_of<CustomVjp>(c)->forward(input_mask(c));
  Values made = c.b.inline_graph(*rule->forward, c.operands);
  std::span<const Value> results(made);
  size_t n = c.out_types.size();
  c.results = Values(results.first(n));
  Values operands(results.subspan(n));
  auto num_residuals = static_cast<int64_t>(operands.size());
  append_present(operands, c.tangents);
  TypeRefs types;
  Mask differentiable;
  for (TypeRef t : c.out_types) {
    differentiable.push_back(is_differentiable(t));
    if (is_differentiable(t)) types.push_back(t);
  }
  AttrsRef attrs = AttrRecord::make(custom_lin().name, custom_lin().attrs,
                                    {{"name", c.attr().string("name")},
                                     {"num_residuals", num_residuals},
                                     {"rule", ObjectRef(rule->backward)}});
  c.result_tangents =
      scattered(differentiable, c.b.add_typed(custom_lin(), operands, attrs, types));
}

struct BatchedBackward final : CustomBackward {
  std::shared_ptr<const CustomBackward> base;
  VmapOptions options;     // in_dims: of the residuals
  BatchDims tangent_dims;  // of the tangents, and so of the cotangents that come out
  int result_dim;          // of the function's results, and so of the cotangents that go in
  const Transforms* transforms;

  GraphRef backward(const Mask& cotangents) const override {
    GraphRef single = base->backward(cotangents);
    VmapOptions mapping = options;
    mapping.in_dims.resize(single->num_inputs(), result_dim);
    int shared = result_dim == kNotBatched ? kAnyDim : 0;
    for (int dim : tangent_dims) mapping.out_dims.push_back(dim == kNotBatched ? shared : dim);
    auto mapped = transforms->vmap(single, mapping);
    GraphBuilder b;
    std::vector<Value> args;
    for (TypeRef t : mapped->graph->input_types()) args.push_back(b.input(t));
    Values outputs = b.inline_graph(*mapped->graph, args);
    for (size_t i = 0; i < outputs.size(); ++i) {
      // All lanes contribute to the cotangent of an input that they share.
      int dim = mapped->out_dims[i];
      if (tangent_dims[i] == kNotBatched && dim != kNotBatched)
        outputs[i] = reduce_sum({&b, outputs[i]}, {dim}).value;
    }
    return b.finish(outputs);
  }
  TypeRefs out_types() const override {
    TypeRefs types = base->out_types();
    if (result_dim == kNotBatched) return types;
    for (TypeRef& t : types) t = with_shape(t, inserted(t->shape(), 0, options.size));
    return types;
  }
  const Sets* varying(const std::vector<std::string>& axes) const override {
    return base->varying(axes);
  }
};

std::shared_ptr<const CustomBackward> batched_backward(std::shared_ptr<const CustomBackward> base,
                                                       VmapOptions options, BatchDims tangent_dims,
                                                       int result_dim,
                                                       const Transforms* transforms) {
  auto batched = std::make_shared<BatchedBackward>();
  batched->base = std::move(base);
  options.out_dims = {};
  batched->options = std::move(options);
  batched->tangent_dims = std::move(tangent_dims);
  batched->result_dim = result_dim;
  batched->transforms = transforms;
  return batched;
}

struct BatchedVjp final : Transformed<BatchedVjp, CustomVjp, VmapOptions> {
  std::shared_ptr<const CustomForward> forward(const Mask& in_mask) const override {
    auto of_one = single->forward(in_mask);
    VmapOptions mapping = options;
    size_t num_outputs = options.out_dims.size();
    int result_dim = num_outputs ? options.out_dims[0] : 0;
    mapping.out_dims.resize(of_one->forward->outputs().size(), kAnyDim);
    auto mapped = transforms->vmap(of_one->forward, mapping);
    BatchDims tangent_dims = of_inputs(options.in_dims, in_mask);
    std::span<const int> dims(mapped->out_dims);
    mapping.in_dims = BatchDims(dims.subspan(num_outputs));
    auto result = std::make_shared<CustomForward>();
    result->forward = mapped->graph;
    result->backward = batched_backward(of_one->backward, mapping, std::move(tangent_dims),
                                        result_dim, transforms);
    return result;
  }
};

// ---- custom_lin: residuals, tangents -> tangents

void transpose_custom_lin(TransposeCtx& c) {
  auto num_residuals = static_cast<size_t>(c.attr().integer("num_residuals"));
  Mask mask;
  for (Value ct : c.cotangents) mask.push_back(static_cast<bool>(ct));
  GraphRef backward = rule_of<CustomBackward>(c)->backward(mask);
  Values args(c.operands.first(num_residuals));
  append_present(args, c.cotangents);
  Values cts = c.b.inline_graph(*backward, args);
  for (size_t i = num_residuals; i < c.size(); ++i)
    if (c.linear(i)) c.add(i, c.val(cts[i - num_residuals]));
}

void batch_custom_lin(BatchCtx& c) {
  auto num_residuals = static_cast<size_t>(c.attr().integer("num_residuals"));
  auto rule = batched_backward(rule_of<CustomBackward>(c),
                               batch_options(c, c.dims.first(num_residuals), {}),
                               BatchDims(c.dims.subspan(num_residuals)), 0, c.transforms);
  AttrsRef attrs = c.attrs->with({{"rule", ObjectRef(rule)}});
  for (Value v : c.b.add_typed(c.op, c.operands, attrs, rule->out_types())) c.result(c.val(v), 0);
}

// What it gives varies as what it is the tangent of does, where that is known.
void shard_custom_lin(ShardCtx& c) {
  const auto* sets = rule_of<CustomBackward>(c)->varying(c.axes);
  if (!sets) return c.apply(c.all());
  c.results = c.b.add_typed(c.op, c.operands, c.attrs, c.out_types);
  c.result_varying = *sets;
}

OpDef custom_call(std::string name, std::string doc) {
  OpDef d = call_op(std::move(name), std::move(doc), "call_jaxpr", CallKind::kWhole);
  std::vector<AttrSpec> attrs = d.attrs.specs();
  attrs.push_back({"num_consts", AttrType::kInt, AttrSpec::kHideDefault, int64_t{0}});
  attrs.push_back({"rule", AttrType::kObject, AttrSpec::kOptional});
  d.attrs = AttrSchema(std::move(attrs));
  d.transpose = transpose_custom;
  d.check = check_custom;
  d.flow = nullptr;
  d.prune = nullptr;
  d.lift = nullptr;
  return d;
}

}  // namespace

void register_custom_rules(OpRegistry& r) {
  OpDef jvp = custom_call("custom_jvp_call", "Calls a graph whose jvp rule is given.");
  jvp.graph_jvp = jvp.graph_linearize = jvp_custom;
  jvp.batch = batch_custom<BatchedJvp, CustomJvp>;
  jvp.flow = flow_through_jvp;
  jvp.shard = shard_custom<ShardedJvp, CustomJvp>;
  r.add(std::move(jvp));

  OpDef vjp = custom_call("custom_vjp_call", "Calls a graph whose vjp rule is given.");
  vjp.graph_jvp = vjp.graph_linearize = linearize_custom_vjp;
  vjp.batch = batch_custom<BatchedVjp, CustomVjp>;
  vjp.flow = flow_through_call;
  vjp.shard = shard_custom<ShardedVjp, CustomVjp>;
  r.add(std::move(vjp));

  OpDef lin;
  lin.name = "custom_lin";
  lin.doc = "The linear map whose transpose a vjp rule gives.";
  lin.attrs = {{"name", AttrType::kString, AttrSpec::kCosmetic, std::string("f")},
               {"num_residuals", AttrType::kInt},
               {"rule", AttrType::kObject}};
  lin.multiple_results = true;
  lin.jvp_kind = JvpKind::kGraph;
  lin.graph_jvp = lin.graph_linearize = jvp_custom_lin;
  lin.transpose = transpose_custom_lin;
  lin.batch = batch_custom_lin;
  lin.shard = shard_custom_lin;
  lin.infer = [](const InferCtx& c) {
    return rule_of<CustomBackward>(c.op, c.attr())->out_types();
  };
  lin.emit = [](EmitCtx& c) { no_forward_mode(c.attr().string("name")); };
  lin.cost = [](const CostCtx&) { return Cost{}; };
  r.add(std::move(lin));
}

}  // namespace weft
