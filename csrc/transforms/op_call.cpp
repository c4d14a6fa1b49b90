// The function is recorded at the leaves of its arguments, as for a transform; what comes of it is
// the graph of an op.

#include "transforms/op_call.h"

#include "binding/bind.h"
#include "conversions/dtypes.h"
#include "graphs/attrs.h"
#include "graphs/graph_object.h"
#include "tracing/cell.h"
#include "transforms/point.h"
#include "transforms/rules.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// What is known of a call without its values.
struct CallTypes {
  std::vector<Tree> trees;
  std::vector<Slot> leaves;
  Tree value;
  std::vector<Slot> results;
  Consts consts;
  // Leaves that are cells; those of them that the function wrote, and that have trails. Values of
  // the trails come after the leaves, and after the results of the written ones.
  std::vector<size_t> cells, written, trails;
};

nb::list list_of(const std::vector<Slot>& slots) {
  nb::list out;
  for (const Slot& s : slots)
    out.append(nb::make_tuple(take(to_tuple(s.type->shape())),
                              nb::borrow(numpy_dtype(s.type->dtype())), s.weak));
  return out;
}

nb::list numbers_of(const std::vector<size_t>& numbers) {
  nb::list out;
  for (size_t n : numbers) out.append(n);
  return out;
}

std::vector<size_t> cells_of(const Point& point) {
  std::vector<size_t> out;
  for (size_t i = 0; i < point.leaves.size(); ++i)
    if (is_cell(point.leaves.objects[i].get())) out.push_back(i);
  return out;
}

// The trails of the cells among the leaves, and which leaves these are.
struct Trails {
  std::vector<CellObject*> cells;
  std::vector<size_t> leaves;
  std::vector<Ref> values;
};

Trails trails_of(const Point& point) {
  Trails out;
  for (size_t i = 0; i < point.leaves.size(); ++i) {
    PyObject* leaf = point.leaves.objects[i].get();
    CellObject* trail = is_cell(leaf) ? trail_of(as_cell(leaf)) : nullptr;
    if (!trail) continue;
    out.cells.push_back(trail);
    out.leaves.push_back(i);
    out.values.push_back(cell_value(trail));
  }
  return out;
}

// A graph that takes trails after its other inputs and gives them after its other outputs.
GraphRef with_trails(const GraphRef& graph, const Trails& trails) {
  if (trails.cells.empty()) return graph;
  GraphBuilder b;
  std::vector<Value> args;
  for (TypeRef type : graph->input_types()) args.push_back(b.input(type));
  Values outputs = b.inline_graph(*graph, args);
  for (CellObject* trail : trails.cells) outputs.push_back(b.input(trail->type));
  return b.finish(outputs);
}

// The call as an op with the attributes that `attributes` gives once it is recorded; where the
// function has a rule (`fixed` says what it is) that of the function itself if nothing can be
// traced. Without a rule it may read and write cells of outside, and gets those that it is called
// with as they are.
Ref call_as(const OpDef& op, const Function& f, CallArguments arguments, std::string_view fixed,
            bool has_backward,
            FunctionRef<std::vector<NamedAttr>(const Point&, const Trails&)> attributes) {
  Point point = point_at(arguments);
  if (arguments.kwargs) point.trees.push_back(flatten_tree(arguments.kwargs, point.leaves));
  // Also without a traced argument: the function may close over traced values, and a derivative by
  // them is not that of its code.
  const std::vector<ContextRef>& stack = context_stack();
  bool traced = fixed.empty() || (!stack.empty() && stack.back()->kind != ContextKind::kEager);
  for (const Operand& x : point.leaves.operands) traced |= x.kind == OperandKind::kTracer;
  bool has_cells = std::any_of(point.leaves.objects.begin(), point.leaves.objects.end(),
                               [](const Ref& leaf) { return is_cell(leaf.get()); });
  if (!traced && !has_cells)
    return Ref::checked(PyObject_Call(f.object, arguments.args, arguments.kwargs));
  if (has_cells) read_cells(point, f);
  check_leaves(point, f);
  for (const Ref& leaf : point.leaves.objects)
    point.chosen.push_back(!fixed.empty() || !is_cell(leaf.get()));
  record_at(point, f, arguments, {}, fixed);
  Trails trails = has_backward ? trails_of(point) : Trails();
  AttrsRef attrs = AttrRecord::make(op.name, op.attrs, attributes(point, trails));
  std::vector<Operand> operands = point.graph_operands();
  for (const Ref& value : trails.values) operands.push_back(classify(value.get()));
  std::vector<bool> weak = point.recorded.weak;
  weak.resize(weak.size() + trails.cells.size(), false);
  Objects results = bind_graphs(op, operands, attrs, weak);
  if (!fixed.empty())  // of which the rule says nothing
    for (size_t i = 0; i < point.written.size(); ++i)
      results[point.value.num_leaves + i] = without_derivative(results[point.value.num_leaves + i]);
  point.write_cells(results);
  for (size_t i = 0; i < trails.cells.size(); ++i)
    set_cell(trails.cells[i], results[results.size() - trails.cells.size() + i]);
  return point.value_of(results);
}

// checkpoint(function, name, args, kwargs, positions, describe, policy, prevent_cse) -> the value;
// `policy` is a policy of the core, or None.
PyObject* checkpoint(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    PyObject *args, *kwargs, *positions, *policy;
    int prevent_cse;
    if (!PyArg_ParseTuple(tuple, "OUO!O!O!OOp", &f.object, &f.name, &PyTuple_Type, &args,
                          &PyDict_Type, &kwargs, &PyTuple_Type, &positions, &f.describe, &policy,
                          &prevent_cse))
      throw PythonError{};
    ObjectRef saves = object_of(policy);
    if (!saves && policy != Py_None) raise_error("OperandError", "checkpoint expected a policy");
    if (PyDict_GET_SIZE(kwargs) == 0) kwargs = nullptr;
    static const OpDef& op = registry().get("checkpoint");
    return call_as(op, f, arguments_of(args, kwargs, positions), {}, false,
                   [&](const Point& point, const Trails&) {
                     return std::vector<NamedAttr>{{"jaxpr", as_region(point.recorded.graph)},
                                                   {"name", readable(f.name)},
                                                   {"policy", saves ? Attr(saves) : Attr()},
                                                   {"prevent_cse", prevent_cse != 0}};
                   })
        .release();
  });
}

// call_with_rule(op, function, name, args, positions, describe, rule) -> the value: rule(CallTypes)
// gives the rule of the call.
PyObject* call_with_rule(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    const char* op_name;
    PyObject *args, *positions, *rule;
    if (!PyArg_ParseTuple(tuple, "sOUO!O!OO", &op_name, &f.object, &f.name, &PyTuple_Type, &args,
                          &PyTuple_Type, &positions, &f.describe, &rule))
      throw PythonError{};
    const OpDef& op = registry().get(op_name);
    std::string fixed = cat("'", readable(f.name), "', which has a derivative rule");
    bool has_backward = op.name == "custom_vjp_call";
    return call_as(op, f, arguments_of(args, nullptr, positions), fixed, has_backward,
                   [&](const Point& point, const Trails& trails) {
                     CallTypes types{point.trees,
                                     point.leaf_slots(),
                                     point.value,
                                     point.value_slots(),
                                     consts_of(capture_values(point.recorded.captures)),
                                     cells_of(point),
                                     point.written,
                                     trails.leaves};
                     Ref made = calling_python([&] {
                       nb::object o = nb::borrow(rule)(std::move(types));
                       return Ref::steal(o.release().ptr());
                     });
                     ObjectRef object = object_of(made.get());
                     if (!object) raise_error("OperandError", "call_with_rule expected a rule");
                     const Recording& recorded = point.recorded;
                     return std::vector<NamedAttr>{
                         {"call_jaxpr", as_region(with_trails(recorded.graph, trails))},
                         {"name", readable(f.name)},
                         {"num_consts", static_cast<int64_t>(recorded.captures.size())},
                         {"rule", object}};
                   })
        .release();
  });
}

PyMethodDef functions[] = {
    {"checkpoint", checkpoint, METH_VARARGS,
     "checkpoint(function, name, args, kwargs, positions, describe, policy, prevent_cse) -> "
     "value."},
    {"call_with_rule", call_with_rule, METH_VARARGS,
     "call_with_rule(op, function, name, args, positions, describe, rule) -> value."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_op_calls(nb::module_& m) {
  nb::class_<CallTypes>(m, "CallTypes", "What is known of a call without its values.")
      .def_prop_ro("in_tree", [](const CallTypes& t) { return take(definition_of(t.trees)); })
      .def_prop_ro("in_types", [](const CallTypes& t) { return list_of(t.leaves); })
      .def_prop_ro("out_tree", [](const CallTypes& t) { return take(definition_of(t.value)); })
      .def_prop_ro("out_types", [](const CallTypes& t) { return list_of(t.results); })
      .def_prop_ro("cells", [](const CallTypes& t) { return numbers_of(t.cells); })
      .def_prop_ro("written", [](const CallTypes& t) { return numbers_of(t.written); })
      .def_prop_ro("trails", [](const CallTypes& t) { return numbers_of(t.trails); })
      .def_prop_ro("consts", [](const CallTypes& t) { return t.consts; });
  check(PyModule_AddFunctions(m.ptr(), functions));
}

}  // namespace weft::py
