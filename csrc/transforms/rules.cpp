// Rules in Python behind the interfaces of weft/custom_rules.h. The transforms run under the
// interpreter's lock, like everything that can reach a rule.

#include "transforms/rules.h"

#include <nanobind/stl/vector.h>

#include <map>

#include "arrays/array.h"
#include "graphs/attrs.h"
#include "graphs/graph_object.h"
#include "references/bound_text.h"
#include "tracing/cell.h"
#include "tracing/named_axes.h"
#include "tracing/operand.h"
#include "transforms/deferred.h"

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
  explicit PerMask(nb::object function) : function_(std::move(function)) {}

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
  NamedAxes axes_ = named_axes();  // of the place where the rule was given
  mutable std::map<std::vector<bool>, std::shared_ptr<const T>> made_;
};

struct PyJvp final : CustomJvp {
  // mask of inputs -> (graph, mask of outputs)
  explicit PyJvp(nb::object f) : graphs(std::move(f)) {}
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

// Asked at each transposition: what vjp() gives may be called again when the rule has changed.
struct PyBackward final : CustomBackward {
  explicit PyBackward(nb::object f) : function(std::move(f)) {}
  nb::object function;            // mask of cotangents -> graph
  NamedAxes axes = named_axes();  // of the place where the rule was given
  TypeRefs types;

  GraphRef backward(const Mask& cotangents) const override {
    NamedAxesScope scope(axes);
    return calling_python([&] { return rule_graph(function(to_tuple(cotangents))); });
  }
  TypeRefs out_types() const override { return types; }
};

struct PyVjp final : CustomVjp {
  // mask of inputs -> (forward graph, function of a mask of cotangents, types of the results that
  // have cotangents)
  explicit PyVjp(nb::object f) : graphs(std::move(f)) {}
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
    return calling_python([&] { return is_true(nb::object(function(op.name, params)).ptr()); });
  }
};

}  // namespace

uint64_t asked_values() { return asked; }

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

Consts consts_of(std::span<const Ref> captures) {
  Consts consts;
  for (const Ref& object : captures) {
    auto input = Value{static_cast<uint32_t>(consts.types.size())};
    consts.types.push_back(classify(object.get()).type);
    bool traced = is_tracer(object.get());
    consts.arrays.push_back(traced ? Ref() : object);
    if (!traced) continue;
    const TracerObject* t = as_tracer(object.get());
    consts.stand_ins.push_back({t->owner, t->value, input});
  }
  return consts;
}

PyObject* held_object(const AttrObject& held) {
  return static_cast<const PyHeld&>(held).object.get();
}

void bind_rules(nb::module_& m) {
  nb::class_<Consts>(m, "Consts", "What a function with a rule closed over.")
      .def(
          "values",
          [](const Consts& consts) {
            std::vector<Ref> values = consts.arrays;
            for (const StandIn& s : consts.stand_ins) {
              ContextRef context = s.context.lock();
              if (!context) continue;
              Ref tracer = Ref::steal(make_tracer(context, s.value, false));
              values[s.input.id] = concrete_value(as_tracer(tracer.get()));
            }
            nb::list out;
            for (const Ref& v : values) out.append(v ? nb::borrow(v.get()) : nb::none());
            return out;
          },
          "What can be told of the values now; None for those that have none.");
  m.def(
      "jvp_rule", [](nb::object f) { return ObjectHolder{std::make_shared<PyJvp>(std::move(f))}; },
      nb::arg("function"));
  m.def(
      "vjp_rule", [](nb::object f) { return ObjectHolder{std::make_shared<PyVjp>(std::move(f))}; },
      nb::arg("function"));
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
      [](nb::handle function, nb::list types, const std::string& name, nb::list values,
         const Consts* consts) {
        TypeRefs inputs;
        std::vector<bool> weak;
        for (nb::handle t : types) {
          Operand x = classify_type(t.ptr(), name);
          inputs.push_back(x.type);
          weak.push_back(x.weak);
        }
        std::vector<Ref> known;
        for (nb::handle v : values) known.push_back(v.is_none() ? Ref() : Ref::borrow(v.ptr()));
        Consts closed = consts ? *consts : Consts();
        Recording r = trace_body(function.ptr(), inputs, weak, name, Py_None, name, {}, known, {},
                                 closed.types, std::move(closed.stand_ins));
        return take(graph_object(hold_captures(r)));
      },
      nb::arg("function"), nb::arg("types"), nb::arg("name"), nb::arg("values"),
      nb::arg("consts").none());
  m.def("note_asked_values", [] { ++asked; });
}

}  // namespace weft::py
