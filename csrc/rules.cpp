// Rules in Python behind the interfaces of weft/custom_rules.h. The transforms run under the
// interpreter's lock, like everything that can reach a rule.

#include "rules.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "array.h"
#include "attrs.h"
#include "bound_text.h"
#include "cell.h"
#include "graph_object.h"
#include "named_axes.h"
#include "operand.h"
#include "weft/hash.h"
#include "weft/rebuild.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

thread_local uint64_t asked = 0;

// ---- Held values

struct PyHeld final : HeldValue {
  Ref object;
  TypeRef value_type;

  TypeRef type() const override { return value_type; }
  uint64_t hash() const override { return reinterpret_cast<uintptr_t>(object.get()); }
  bool equals(const AttrObject& other) const override {
    const auto* held = dynamic_cast<const PyHeld*>(&other);
    return held && held->object.get() == object.get();
  }
  std::string text() const override { return cat(value_type); }
  std::string bytes() const override {
    if (is_tracer(object.get()))
      raise_error("UnexpectedTracerError", "a rule closes over ",
                  describe_tracer(as_tracer(object.get())),
                  ", where it becomes part of a loop or branch"
                  "\n  Pass the value as an argument of the function instead.");
    Ref array = Ref::checked(PyObject_CallMethodNoArgs(object.get(), name("__array__")));
    Ref bytes = Ref::checked(PyObject_CallMethodNoArgs(array.get(), name("tobytes")));
    return {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))};
  }
};

// ---- Derivatives

nb::tuple to_tuple(const Mask& mask) {
  nb::list out;
  for (bool m : mask) out.append(m);
  return nb::tuple(out);
}

GraphRef rule_graph(nb::handle o) {
  GraphRef graph = graph_of(o.ptr());
  if (!graph) raise_error("OperandError", "expected a graph from a rule");
  return graph;
}

// What a Python function of a mask gives, remembered per mask.
template <typename T>
class PerMask {
 public:
  PerMask(nb::object function, NamedAxes axes)
      : function_(std::move(function)), axes_(std::move(axes)) {}

  template <typename F>
  std::shared_ptr<const T> get(const Mask& mask, F&& convert) const {
    std::vector<bool> key(mask.begin(), mask.end());
    auto known = made_.find(key);
    if (known != made_.end()) return known->second;
    NamedAxesScope scope(axes_);
    std::shared_ptr<const T> made =
        calling_python([&] { return convert(nb::object(function_(to_tuple(mask)))); });
    made_.emplace(std::move(key), made);
    return made;
  }

 private:
  nb::object function_;
  NamedAxes axes_;  // of the place where the rule was given
  mutable std::map<std::vector<bool>, std::shared_ptr<const T>> made_;
};

// What rules of one token have in common: they are equal.
struct HasToken {
  RuleTokenRef token;  // null: equal to itself only
};

// Stands for the rules of a token where it must not keep them alive.
struct Absent {
  std::weak_ptr<RuleToken> token;

  bool same(const std::weak_ptr<RuleToken>& o) const {
    return !token.owner_before(o) && !o.owner_before(token);
  }
};

// Base is CustomJvp or CustomVjp.
template <typename Base>
struct StandIn : Base, Absent {
  const RuleToken* address;

  explicit StandIn(const RuleTokenRef& t) : Absent{t}, address(t.get()) {}
  uint64_t hash() const override { return hash_pointer(address); }
  bool equals(const AttrObject& other) const override {
    if (const auto* o = dynamic_cast<const Absent*>(&other)) return same(o->token);
    const auto* o = dynamic_cast<const HasToken*>(&other);
    return o && o->token && same(o->token);
  }
  std::string text() const override { return "rule"; }
};
[[noreturn]] void nobody_there() { throw Error(ErrorKind::kInternal, "a rule that is not there"); }
struct JvpStandIn final : StandIn<CustomJvp> {
  using StandIn::StandIn;
  std::shared_ptr<const JvpGraph> jvp(const Mask&) const override { nobody_there(); }
};
struct VjpStandIn final : StandIn<CustomVjp> {
  using StandIn::StandIn;
  std::shared_ptr<const CustomForward> forward(const Mask&) const override { nobody_there(); }
};

// Base is CustomJvp or CustomVjp.
template <typename Base>
struct Tokened : Base, HasToken {
  uint64_t hash() const override { return token ? hash_pointer(token.get()) : Base::hash(); }
  bool equals(const AttrObject& other) const override {
    if (this == &other) return true;
    if (!token) return false;
    if (const auto* o = dynamic_cast<const Absent*>(&other)) return o->same(token);
    const auto* o = dynamic_cast<const HasToken*>(&other);
    return o && o->token == token;
  }
};

NamedAxes axes_of(const RuleTokenRef& token) { return token ? token->axes : named_axes(); }

struct PyJvp final : Tokened<CustomJvp> {
  // mask of inputs -> (graph, mask of outputs)
  PyJvp(nb::object f, RuleTokenRef t) : graphs(std::move(f), axes_of(t)) { token = std::move(t); }
  PerMask<JvpGraph> graphs;

  std::shared_ptr<const JvpGraph> jvp(const Mask& in_mask) const override {
    return graphs.get(in_mask, [](nb::object made) {
      auto out = std::make_shared<JvpGraph>();
      out->graph = rule_graph(made[0]);
      for (nb::handle m : made[1]) out->out_mask.push_back(nb::cast<bool>(m));
      return out;
    });
  }
};

struct PyBackward final : CustomBackward {
  // mask of cotangents -> graph
  explicit PyBackward(nb::object f) : graphs(std::move(f), named_axes()) {}
  PerMask<Graph> graphs;
  TypeRefs types;

  GraphRef backward(const Mask& cotangents) const override {
    return graphs.get(cotangents, [](nb::object made) { return rule_graph(made); });
  }
  TypeRefs out_types() const override { return types; }
};

struct PyVjp final : Tokened<CustomVjp> {
  // mask of inputs -> (forward graph, function of a mask of cotangents, types of the results that
  // have cotangents)
  PyVjp(nb::object f, RuleTokenRef t) : graphs(std::move(f), axes_of(t)) { token = std::move(t); }
  PerMask<CustomForward> graphs;

  std::shared_ptr<const CustomForward> forward(const Mask& in_mask) const override {
    return graphs.get(in_mask, [](nb::object made) {
      auto out = std::make_shared<CustomForward>();
      out->forward = rule_graph(made[0]);
      auto backward = std::make_shared<PyBackward>(nb::object(made[1]));
      for (nb::handle t : made[2])
        backward->types.push_back(classify_type(t.ptr(), "custom_vjp").type);
      out->backward = std::move(backward);
      return out;
    });
  }
};

// ---- Policies

struct PyPolicy final : SavePolicy {
  // (op name, attributes as a dict) -> bool
  nb::object function;

  bool saves(const OpInfo& op, const AttrsRef& attrs) const override {
    nb::dict params;
    for (size_t i = 0; attrs && i < attrs->values().size(); ++i) {
      const AttrSpec& spec = attrs->schema().specs()[i];
      params[spec.name.c_str()] = take(from_attr(spec, attrs->values()[i]));
    }
    int truth = calling_python(
        [&] { return PyObject_IsTrue(nb::object(function(op.name, params)).ptr()); });
    check(truth);
    return truth == 1;
  }
};

// ---- Tokens

struct TokenHolder {
  explicit TokenHolder(nb::object known) { token->known = Ref::borrow(known.ptr()); }
  RuleTokenRef token = std::make_shared<RuleToken>();
};

ObjectRef rule_of(const Op& op) {
  int at = op.attrs ? op.attrs->schema().find("rule") : -1;
  if (at < 0) return nullptr;
  const auto* object = std::get_if<ObjectRef>(&op.attrs->values()[static_cast<size_t>(at)]);
  return object ? *object : nullptr;
}

// The rule that this one is derived from in the end, which may be itself.
ObjectRef innermost(ObjectRef rule) {
  while (const auto* derived = dynamic_cast<const CustomRule*>(rule.get())) {
    ObjectRef base = derived->base();
    if (!base) break;
    rule = std::move(base);
  }
  return rule;
}

// Null if it has none.
RuleTokenRef token_of(const ObjectRef& rule) {
  ObjectRef written = innermost(rule);
  const auto* has = dynamic_cast<const HasToken*>(written.get());
  return has ? has->token : nullptr;
}

using MapRule = FunctionRef<ObjectRef(const ObjectRef&)>;

// A rule with what `f` gives for the rule that it is derived from in the end; null if that is null.
ObjectRef map_rule(const ObjectRef& rule, MapRule f) {
  const auto* derived = dynamic_cast<const CustomRule*>(rule.get());
  ObjectRef base = derived ? derived->base() : nullptr;
  if (!base) return f(rule);
  ObjectRef mapped = map_rule(base, f);
  return mapped ? derived->derived_from(mapped) : nullptr;
}

// One copy per distinct graph; null for a graph with a rule for which there is null.
using Copies = std::unordered_map<const Graph*, GraphRef>;

GraphRef map_rules(const GraphRef& graph, MapRule f, Copies& copies) {
  if (auto known = copies.find(graph.get()); known != copies.end()) return known->second;
  bool complete = true;
  GraphBuilder b;
  GraphRef made = rebuild(*graph, b, [&](const Op& op, std::span<const Value> operands) {
    AttrsRef attrs = map_graphs(op.attrs, [&](const GraphRef& g) {
      GraphRef inner = map_rules(g, f, copies);
      complete &= inner != nullptr;
      return inner ? inner : g;
    });
    if (ObjectRef rule = rule_of(op)) {
      ObjectRef mapped = map_rule(rule, f);
      complete &= mapped != nullptr;
      if (mapped) attrs = attrs->with({{"rule", mapped}});
    }
    return b.add_typed(*op.info, operands, attrs, graph->result_types(op));
  });
  return copies[graph.get()] = complete ? made : nullptr;
}

// Whether `f` holds for all ops of a graph, and of those that it holds.
template <typename F>
bool all_ops(const Graph& graph, F&& f, std::unordered_set<const Graph*>& seen) {
  if (!seen.insert(&graph).second) return true;
  for (const Op& op : graph.ops()) {
    if (!op.attrs) continue;
    if (!f(op)) return false;
    bool all = true;
    for_each_graph(op.attrs, [&](const GraphRef& g) { all = all && all_ops(*g, f, seen); });
    if (!all) return false;
  }
  return true;
}
template <typename F>
bool all_ops(const Graph& graph, F&& f) {
  std::unordered_set<const Graph*> seen;
  return all_ops(graph, f, seen);
}

}  // namespace

uint64_t asked_values() { return asked; }

bool has_rule_objects(const Graph& graph) {
  return !all_ops(graph, [](const Op& op) { return !rule_of(op); });
}

bool is_self_contained(const Graph& graph) {
  return all_ops(graph, [](const Op& op) {
    for (const Attr& attr : op.attrs->values()) {
      const auto* object = std::get_if<ObjectRef>(&attr);
      if (!object || !*object || (*object)->is_portable()) continue;
      if (dynamic_cast<const Absent*>(innermost(*object).get())) continue;
      const auto* held = dynamic_cast<const PyHeld*>(object->get());
      if (!held || !is_array(held->object.get())) return false;
    }
    return true;
  });
}

Ref RuleToken::rules() const { return Ref::checked(PyObject_CallNoArgs(known.get())); }

bool RuleToken::is_current() const {
  Ref found = rules();
  if (found.get() == Py_None) return false;
  Ref same = Ref::checked(PyObject_CallMethodNoArgs(found.get(), name("is_same")));
  return same.get() == Py_True;
}

std::vector<RuleTokenRef> rule_tokens(const Graph& graph) {
  std::vector<RuleTokenRef> tokens;
  if (graph.depth() == 1) return tokens;
  all_ops(graph, [&](const Op& op) {
    ObjectRef rule = rule_of(op);
    RuleTokenRef token = rule ? token_of(rule) : nullptr;
    if (token && std::find(tokens.begin(), tokens.end(), token) == tokens.end())
      tokens.push_back(std::move(token));
    return true;
  });
  return tokens;
}

GraphRef without_rule_objects(const GraphRef& graph) {
  Copies copies;
  auto absent = [](const ObjectRef& rule) -> ObjectRef {
    RuleTokenRef token = token_of(rule);
    if (!token) return nullptr;
    if (dynamic_cast<const CustomJvp*>(rule.get())) return std::make_shared<JvpStandIn>(token);
    return std::make_shared<VjpStandIn>(token);
  };
  return map_rules(graph, absent, copies);
}

GraphRef with_rule_objects(const GraphRef& graph) {
  if (!has_rule_objects(*graph)) return graph;
  Copies copies;
  std::unordered_map<RuleToken*, ObjectRef> rules;
  auto present = [&](const ObjectRef& rule) -> ObjectRef {
    const auto* absent = dynamic_cast<const Absent*>(rule.get());
    RuleTokenRef token = absent ? absent->token.lock() : nullptr;
    if (!token) return nullptr;
    ObjectRef& known = rules[token.get()];
    if (known) return known;
    Ref found = token->rules();
    if (found.get() == Py_None) return nullptr;
    Ref made = Ref::checked(PyObject_CallMethodNoArgs(found.get(), name("make")));
    return known = object_of(made.get());
  };
  return map_rules(graph, present, copies);
}

GraphRef hold_captures(const Recording& r) {
  if (r.captures.empty()) return r.graph;
  static const OpDef& constant = registry().get("constant");
  GraphBuilder b;
  Values args;
  for (const Ref& object : capture_values(r.captures)) {
    auto held = std::make_shared<PyHeld>();
    held->object = object;
    held->value_type = classify(object.get()).type;
    AttrsRef attrs =
        AttrRecord::make(constant.name, constant.attrs, {{"value", ObjectRef(std::move(held))}});
    args.push_back(b.add(constant, {}, attrs)[0]);
  }
  for (size_t i = r.captures.size(); i < r.graph->num_inputs(); ++i)
    args.push_back(b.input(r.graph->input_types()[i]));
  Values outputs = b.inline_graph(*r.graph, args);
  return b.finish(outputs);
}

PyObject* held_object(const AttrObject& held) {
  return static_cast<const PyHeld&>(held).object.get();
}

void bind_rules(nb::module_& m) {
  nb::class_<TokenHolder>(m, "RuleToken", "What rules that stay the same have in common.")
      .def(nb::init<nb::object>(), nb::arg("known"));
  m.def(
      "jvp_rule",
      [](nb::object f, const TokenHolder* t) {
        return ObjectHolder{std::make_shared<PyJvp>(std::move(f), t ? t->token : nullptr)};
      },
      nb::arg("function"), nb::arg("token").none());
  m.def(
      "vjp_rule",
      [](nb::object f, const TokenHolder* t) {
        return ObjectHolder{std::make_shared<PyVjp>(std::move(f), t ? t->token : nullptr)};
      },
      nb::arg("function"), nb::arg("token").none());
  m.def("save_policy", [](nb::object f) {
    auto policy = std::make_shared<PyPolicy>();
    policy->function = std::move(f);
    return ObjectHolder{policy};
  });
  m.def("builtin_policy", [](const std::string& kind, std::vector<std::string> names) {
    return ObjectHolder{save_policy(kind, std::move(names))};
  });
  m.def("policy_saves", [](const ObjectHolder& policy, const std::string& op, nb::dict params) {
    const OpDef& info = registry().get(op);
    nb::list values;
    nb::list names;
    for (auto [key, value] : params) {
      names.append(key);
      values.append(value);
    }
    std::vector<PyObject*> items;
    for (nb::handle v : values) items.push_back(v.ptr());
    AttrsRef attrs = make_attrs(info, nb::tuple(names).ptr(), items.data());
    return dynamic_cast<const SavePolicy&>(*policy.object).saves(info, attrs);
  });
  m.def(
      "trace_rule",
      [](nb::handle function, nb::list types, const std::string& name, nb::list values) {
        TypeRefs inputs;
        std::vector<bool> weak;
        for (nb::handle t : types) {
          Operand x = classify_type(t.ptr(), name);
          inputs.push_back(x.type);
          weak.push_back(x.weak);
        }
        std::vector<Ref> known;
        for (nb::handle v : values) known.push_back(v.is_none() ? Ref() : Ref::borrow(v.ptr()));
        Recording r = trace_body(function.ptr(), inputs, weak, name, Py_None, name, {}, known);
        return take(graph_object(hold_captures(r)));
      },
      nb::arg("function"), nb::arg("types"), nb::arg("name"), nb::arg("values"));
  m.def("note_asked_values", [] { ++asked; });
}

}  // namespace weft::py
