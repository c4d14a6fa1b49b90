// Jaxpr objects are made when they are asked for and hold nothing but a graph and a position in it;
// so a view of a graph costs the same whatever its size.

#include "graphs/jaxpr_view.h"

#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "graphs/attrs.h"
#include "graphs/graph_object.h"
#include "graphs/primitive_object.h"
#include "references/bound_text.h"
#include "references/hooks.h"
#include "references/lru_table.h"
#include "weft/format.h"
#include "weft/hash.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// What the objects of one graph share. There is one View per graph while any of them lives, and one
// Var per value, so that variables can be told apart by identity, as dictionaries do.
struct View {
  GraphRef graph;
  std::vector<PyObject*> vars;     // per value: its Var while that lives, borrowed
  std::vector<std::string> names;  // made when something is printed

  explicit View(GraphRef g) : graph(std::move(g)) {}
  ~View() { all().erase(graph.get()); }

  static std::unordered_map<const Graph*, std::weak_ptr<View>>& all() {
    static auto* views = new std::unordered_map<const Graph*, std::weak_ptr<View>>;
    return *views;
  }
  const std::string& name(Value v) {
    if (names.empty()) names = value_names(*graph);
    return names[v.id];
  }
};
using ViewRef = std::shared_ptr<View>;

ViewRef view_of(const GraphRef& graph) {
  std::weak_ptr<View>& known = View::all()[graph.get()];
  if (ViewRef view = known.lock()) return view;
  auto view = std::make_shared<View>(graph);
  known = view;
  return view;
}

struct Var {
  ViewRef view;
  Value value;

  PyObject* self = nullptr;

  Var(ViewRef view_, Value value_) : view(std::move(view_)), value(value_) {}
  Var(Var&&) = default;
  Var(const Var&) = delete;
  ~Var() {
    if (view && view->vars[value.id] == self) view->vars[value.id] = nullptr;
  }
};

struct LiteralAtom {
  ViewRef view;
  Value value;
};

struct Eqn {
  ViewRef view;
  uint32_t index;
  nb::object params;  // made when asked for

  const Op& op() const { return view->graph->op(index); }
};

struct Jaxpr {
  ViewRef view;
  nb::object eqns;  // a list, made when asked for
};

struct ClosedJaxpr {
  nb::object jaxpr;
  nb::list consts;
  std::vector<bool> weak, in_weak;  // per output and input; empty: none is

  const GraphRef& graph() const { return nb::cast<const Jaxpr&>(jaxpr).view->graph; }
};

nb::object new_shaped_array(TypeRef type, bool weak) {
  return nb::handle(hooks.shaped_array.get())(take(to_tuple(type->shape())),
                                              nb::borrow(numpy_dtype(type->dtype())),
                                              nb::arg("weak_type") = weak);
}

nb::object atom(const ViewRef& view, Value v) {
  if (v.is_literal()) return nb::cast(LiteralAtom{view, v});
  if (view->vars.empty()) view->vars.resize(view->graph->num_values());
  PyObject* known = view->vars[v.id];
  // One that is being destroyed is still listed while its weak references are called.
  if (known && Py_REFCNT(known) > 0) return nb::borrow(known);
  nb::object var = nb::cast(Var(view, v));
  nb::cast<Var&>(var).self = var.ptr();
  view->vars[v.id] = var.ptr();
  return var;
}

nb::list atoms(const ViewRef& view, std::span<const Value> values) {
  nb::list out;
  for (Value v : values) out.append(atom(view, v));
  return out;
}

nb::list inputs(const ViewRef& view, uint32_t begin, uint32_t end) {
  nb::list out;
  for (uint32_t i = begin; i < end; ++i) out.append(atom(view, view->graph->input(i)));
  return out;
}

nb::object effect_names(uint32_t effects) {
  nb::set out;
  if (effects & kUnordered) out.add("unordered");
  if (effects & kOrdered) out.add("ordered");
  return out;
}

nb::list eqns_of(Jaxpr& j) {
  if (!j.eqns.is_valid()) {
    nb::list out;
    for (uint32_t i = 0; i < j.view->graph->ops().size(); ++i)
      out.append(nb::cast(Eqn{j.view, i, {}}));
    j.eqns = out;
  }
  return nb::borrow<nb::list>(j.eqns);
}

nb::object params_of(Eqn& e) {
  if (!e.params.is_valid()) {
    nb::dict out;
    const AttrsRef& attrs = e.op().attrs;
    for (size_t i = 0; attrs && i < attrs->values().size(); ++i) {
      const AttrSpec& spec = attrs->schema().specs()[i];
      Ref value = from_attr(spec, attrs->values()[i]);
      if (is_user_op(*e.op().info)) {
        // The only attribute of a user's primitive is the dict of its parameters, None if empty.
        if (value.get() != Py_None) check(PyDict_Update(out.ptr(), value.get()));
      } else {
        out[spec.name.c_str()] = take(std::move(value));
      }
    }
    e.params = out;
  }
  return e.params;
}

std::string var_text(const Var& v) {
  return cat(v.view->name(v.value), ':', v.view->graph->type(v.value));
}

nb::object literal_value(const LiteralAtom& l) {
  return take(numpy_scalar(l.view->graph->literal(l.value)));
}

nb::object source_info(const Eqn& e) {
  nb::handle cls = hooks.source_info.get();
  Loc loc = e.op().loc;
  if (loc == kNoLoc) return cls(nb::none(), 0, nb::none());
  const LocInfo& info = loc_info(loc);
  return cls(info.file, info.line, info.function);
}

nb::object jaxpr_of(nb::handle h) {
  if (nb::isinstance<Jaxpr>(h)) return nb::borrow(h);
  GraphRef graph = graph_of(h.ptr());
  if (!graph) throw nb::type_error("ClosedJaxpr expected a Jaxpr or a graph");
  return nb::cast(Jaxpr{view_of(graph), {}});
}

nb::list avals(std::span<const TypeRef> types, const std::vector<bool>& weak) {
  nb::list out;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i < weak.size() && weak[i]) {
      out.append(new_shaped_array(types[i], true));
    } else {
      out.append(take(shaped_array(types[i])));
    }
  }
  return out;
}

void bind_atoms(nb::module_& m) {
  nb::class_<Var>(m, "Var", "A value of a program: an input, a constant or a result.",
                  nb::is_weak_referenceable())
      .def_prop_ro("aval",
                   [](const Var& v) { return take(shaped_array(v.view->graph->type(v.value))); })
      .def_prop_ro("count", [](const Var& v) { return v.value.id; })
      .def("__str__", [](const Var& v) { return v.view->name(v.value); })
      .def("__repr__", [](const Var& v) { return "Var(" + var_text(v) + ")"; });
  nb::class_<LiteralAtom>(m, "Literal", "A number in a program.")
      .def_prop_ro("val", literal_value)
      .def_prop_ro(
          "aval",
          [](const LiteralAtom& l) { return take(shaped_array(l.view->graph->type(l.value))); })
      .def("__str__",
           [](const LiteralAtom& l) {
             return cat(l.view->graph->literal(l.value), ':', l.view->graph->type(l.value));
           })
      .def("__repr__", [](const LiteralAtom& l) {
        return cat("Literal(", l.view->graph->literal(l.value), ':', l.view->graph->type(l.value),
                   ")");
      });
}

void bind_eqn(nb::module_& m) {
  nb::class_<Eqn>(m, "JaxprEqn", "One operation of a program.")
      .def_prop_ro("primitive",
                   [](const Eqn& e) { return take(primitive_object(def(*e.op().info))); })
      .def_prop_ro("params", params_of)
      .def_prop_ro("invars",
                   [](const Eqn& e) { return atoms(e.view, e.view->graph->operands(e.op())); })
      .def_prop_ro("outvars",
                   [](const Eqn& e) {
                     Values results;
                     for (uint32_t i = 0; i < e.op().num_results; ++i)
                       results.push_back(e.view->graph->result(e.op(), i));
                     return atoms(e.view, results);
                   })
      .def_prop_ro(
          "effects",
          [](const Eqn& e) { return effect_names(effects_of(*e.op().info, e.op().attrs)); })
      .def_prop_ro("source_info", source_info)
      .def("__str__", [](const Eqn& e) { return print_op(*e.view->graph, e.op(), {}); })
      .def("__repr__", [](const Eqn& e) { return print_op(*e.view->graph, e.op(), {}); });
}

void bind_jaxprs(nb::module_& m) {
  nb::class_<Jaxpr>(m, "Jaxpr", "A program; what it closes over are its constvars.")
      .def_prop_ro("eqns", eqns_of)
      .def_prop_ro("constvars",
                   [](const Jaxpr& j) { return inputs(j.view, 0, j.view->graph->num_consts()); })
      .def_prop_ro("invars",
                   [](const Jaxpr& j) {
                     return inputs(j.view, j.view->graph->num_consts(),
                                   j.view->graph->num_inputs());
                   })
      .def_prop_ro("outvars",
                   [](const Jaxpr& j) { return atoms(j.view, j.view->graph->outputs()); })
      .def_prop_ro("effects", [](const Jaxpr& j) { return effect_names(j.view->graph->effects()); })
      .def_prop_ro("graph", [](const Jaxpr& j) { return take(graph_object(j.view->graph)); })
      .def(
          "pretty_print", [](const Jaxpr& j, const nb::kwargs&) { return text_of(*j.view->graph); },
          "The program as text. Options, such as source_info, are accepted and have no effect.")
      .def("__str__", [](const Jaxpr& j) { return text_of(*j.view->graph); })
      .def("__repr__", [](const Jaxpr& j) { return text_of(*j.view->graph); });
  nb::class_<ClosedJaxpr>(m, "ClosedJaxpr",
                          "A program with the arrays that it closes over.\n\n"
                          "`str()` is the program in jaxpr notation. Attributes: jaxpr, consts, "
                          "eqns, in_avals, out_avals, effects, graph.")
      .def(
          "__init__",
          [](ClosedJaxpr* self, nb::handle jaxpr, nb::iterable consts,
             const std::vector<bool>& weak, const std::vector<bool>& in_weak) {
            nb::object view = jaxpr_of(jaxpr);
            nb::list list(consts);
            const GraphRef& graph = nb::cast<const Jaxpr&>(view).view->graph;
            if (list.size() != graph->num_consts())
              raise_error("ArgumentTypeError", "ClosedJaxpr expected ", graph->num_consts(),
                          " constants, one per constvar; got ", list.size());
            new (self) ClosedJaxpr{std::move(view), std::move(list), weak, in_weak};
          },
          nb::arg("jaxpr"), nb::arg("consts"), nb::arg("weak") = std::vector<bool>(),
          nb::arg("in_weak") = std::vector<bool>())
      .def_prop_ro("jaxpr", [](const ClosedJaxpr& c) { return c.jaxpr; })
      .def_prop_ro("consts", [](const ClosedJaxpr& c) { return c.consts; })
      .def_prop_ro("literals", [](const ClosedJaxpr& c) { return c.consts; })
      .def_prop_ro("eqns", [](const ClosedJaxpr& c) { return eqns_of(nb::cast<Jaxpr&>(c.jaxpr)); })
      .def_prop_ro("graph", [](const ClosedJaxpr& c) { return take(graph_object(c.graph())); })
      .def_prop_ro("in_avals",
                   [](const ClosedJaxpr& c) {
                     return avals(c.graph()->input_types().subspan(c.graph()->num_consts()),
                                  c.in_weak);
                   })
      .def_prop_ro("out_avals",
                   [](const ClosedJaxpr& c) { return avals(c.graph()->output_types(), c.weak); })
      .def_prop_ro("effects",
                   [](const ClosedJaxpr& c) { return effect_names(c.graph()->effects()); })
      .def(
          "pretty_print",
          [](const ClosedJaxpr& c, const nb::kwargs&) { return text_of(*c.graph()); },
          "The program as text. Options, such as source_info, are accepted and have no effect.")
      .def("__str__", [](const ClosedJaxpr& c) { return text_of(*c.graph()); })
      .def("__repr__", [](const ClosedJaxpr& c) { return text_of(*c.graph()); });
}

}  // namespace

Ref shaped_array(TypeRef type) {
  constexpr size_t kMaxTypes = 1024;
  static auto* avals = new LruTable<TypeRef, Ref>("shaped_arrays", kMaxTypes);
  uint64_t hash = hash_pointer(type);
  if (auto known = avals->find(hash, [&](TypeRef t) { return t == type; })) return *known;
  Ref made = Ref::steal(new_shaped_array(type, false).release().ptr());
  return *avals->insert(hash, type, std::move(made));
}

GraphRef graph_of_jaxpr(PyObject* o) {
  Jaxpr* jaxpr = nullptr;
  if (nb::try_cast(nb::handle(o), jaxpr) && jaxpr) return jaxpr->view->graph;
  ClosedJaxpr* closed = nullptr;
  if (nb::try_cast(nb::handle(o), closed) && closed && closed->consts.size() == 0)
    return closed->graph();
  return nullptr;
}

Ref jaxpr(const GraphRef& graph) {
  return Ref::steal(nb::cast(Jaxpr{view_of(graph), {}}).release().ptr());
}

Ref closed_jaxpr(const GraphRef& graph) {
  ClosedJaxpr closed{take(jaxpr(graph)), {}, {}, {}};
  return Ref::steal(nb::cast(std::move(closed)).release().ptr());
}

void bind_jaxpr_view(nb::module_& m) {
  bind_atoms(m);
  bind_eqn(m);
  bind_jaxprs(m);
}

}  // namespace weft::py
