// checkpoint: a call whose values are computed again in the backward pass, but for those that its
// policy keeps; and name, which marks a value for a policy.
#include <algorithm>
#include <array>

#include "ops/control/call.h"
#include "ops/control/family.h"
#include "ops/control/recompute.h"
#include "ops/def/presets.h"
#include "weft/build.h"
#include "weft/custom_rules.h"
#include "weft/hash.h"

namespace weft {
namespace {

const SavePolicy* policy_of(const AttrRecord& attrs) {
  const ObjectRef* object = std::get_if<ObjectRef>(&attrs.at("policy"));
  if (!object) return nullptr;
  const auto* policy = dynamic_cast<const SavePolicy*>(object->get());
  if (!policy) fail(ErrorKind::kType, "[checkpoint] expected a policy of another kind");
  return policy;
}

struct NamedPolicy final : SavePolicy {
  std::string kind;
  std::vector<std::string> names;
  bool (*rule)(const NamedPolicy&, const OpInfo&, const AttrsRef&);

  bool saves(const OpInfo& op, const AttrsRef& attrs) const override {
    return rule(*this, op, attrs);
  }
  uint64_t hash() const override {
    uint64_t h = hash_bytes(kind);
    for (const std::string& name : names) h = hash_combine(h, hash_bytes(name));
    return h;
  }
  uint64_t content_hash() const override { return hash(); }
  bool equals(const AttrObject& other) const override {
    const auto* policy = dynamic_cast<const NamedPolicy*>(&other);
    return policy && policy->kind == kind && policy->names == names;
  }
  std::string text() const override {
    Text t;
    t << kind;
    for (size_t i = 0; i < names.size(); ++i) t << (i ? ", " : "(") << names[i];
    if (!names.empty()) t << ')';
    return t.take();
  }
  bool lists(const AttrsRef& attrs) const {
    return std::find(names.begin(), names.end(), attrs->string("name")) != names.end();
  }
};
bool is_name(const OpInfo& op) { return op.name == "name"; }
bool is_dot(const OpInfo& op) { return op.name == "dot_general"; }

const std::pair<std::string_view, decltype(NamedPolicy::rule)> kPolicies[] = {
    {"everything_saveable",
     [](const NamedPolicy&, const OpInfo&, const AttrsRef&) { return true; }},
    {"nothing_saveable", [](const NamedPolicy&, const OpInfo&, const AttrsRef&) { return false; }},
    {"dots_saveable",
     [](const NamedPolicy&, const OpInfo& op, const AttrsRef&) { return is_dot(op); }},
    {"dots_with_no_batch_dims_saveable",
     [](const NamedPolicy&, const OpInfo& op, const AttrsRef& attrs) {
       // (contracting of both, batch of both)
       return is_dot(op) && attrs->ints_list("dimension_numbers")[2].empty();
     }},
    {"save_only_these_names", [](const NamedPolicy& p, const OpInfo& op,
                                 const AttrsRef& attrs) { return is_name(op) && p.lists(attrs); }},
    {"save_any_names_but_these",
     [](const NamedPolicy& p, const OpInfo& op, const AttrsRef& attrs) {
       return is_name(op) && !p.lists(attrs);
     }},
    {"save_anything_except_these_names",
     [](const NamedPolicy& p, const OpInfo& op, const AttrsRef& attrs) {
       return !is_name(op) || !p.lists(attrs);
     }},
};

void linearize_checkpoint(GraphJvpCtx& c) { linearize_by_recomputation(c, policy_of(c.attr())); }

// The barrier makes what is computed again wait for the cotangents; without it the compiler would
// find the values of the forward pass equal, and keep those.
void transpose_checkpoint(TransposeCtx& c) {
  TransposedCall t = transposed_call(c);
  if (c.attr().boolean("prevent_cse")) {
    Vals args;
    for (Value v : t.args) args.push_back(c.val(v));
    args = optimization_barrier(args, true);
    for (size_t i = 0; i < args.size(); ++i) t.args[i] = args[i].value;
  }
  add_cotangents(c, *t.transposed, call(c, t.args, t.transposed->graph));
}

}  // namespace

std::shared_ptr<const SavePolicy> save_policy(std::string_view kind,
                                              std::vector<std::string> names) {
  for (const auto& [name, rule] : kPolicies) {
    if (name != kind) continue;
    auto policy = std::make_shared<NamedPolicy>();
    policy->kind = std::string(kind);
    policy->names = std::move(names);
    policy->rule = rule;
    return policy;
  }
  fail(ErrorKind::kValue, "[checkpoint] expected a policy that exists; got ", kind);
}

void register_checkpoint(OpRegistry& r) {
  OpDef d = call_op("checkpoint", "Calls a graph whose values are computed again when needed.",
                    "jaxpr", CallKind::kKeep);
  std::vector<AttrSpec> attrs = d.attrs.specs();
  for (AttrSpec& spec : attrs)
    if (spec.type == AttrType::kGraph) spec.flags |= AttrSpec::kOpen;
  attrs.push_back({"policy", AttrType::kObject, AttrSpec::kOptional | AttrSpec::kForDerivatives});
  attrs.push_back(
      {"prevent_cse", AttrType::kBool, AttrSpec::kHideDefault | AttrSpec::kForDerivatives, true});
  d.attrs = AttrSchema(std::move(attrs));
  d.graph_linearize = linearize_checkpoint;
  d.transpose = transpose_checkpoint;
  d.in_kernel = is_same_in_kernel;
  r.add(std::move(d));

  OpDef name;
  name.name = "name";
  name.doc = "The operand, under a name that checkpoint policies know it by.";
  name.attrs = {{"name", AttrType::kString}};
  name.num_operands = 1;
  name.elementwise = true;
  name.jvp_kind = JvpKind::kArgs;
  name.jvp_args = {[](const JvpArgCtx& c) { return c.t(); }};
  name.transpose = [](TransposeCtx& c) { c.add(0, c.ct()); };
  name.batch = [](BatchCtx& c) { c.apply(std::array{c.x(0)}, c.attrs, c.dim(0)); };
  name.infer = [](const InferCtx& c) -> TypeRefs { return {c.in(0)}; };
  name.emit = [](EmitCtx& c) { c.set_out(0, c.in(0)); };
  name.cost = [](const CostCtx&) { return Cost{}; };
  name.simplify = {{"drop_name", "name(x) -> x", [](SimplifyCtx& c) -> Vals { return {c.x(0)}; },
                    Phase::kFinal}};
  r.add(std::move(name));
}

}  // namespace weft
