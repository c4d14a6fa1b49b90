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
};

nb::list list_of(const std::vector<Slot>& slots) {
  nb::list out;
  for (const Slot& s : slots)
    out.append(nb::make_tuple(take(to_tuple(s.type->shape())),
                              nb::borrow(numpy_dtype(s.type->dtype())), s.weak));
  return out;
}

// The call as an op with the attributes that `attributes` gives once it is recorded; where the
// function has a rule (`fixed` says what it is) that of the function itself if nothing can be
// traced. Without a rule it may read and write cells, and gets those that it is called with as they
// are.
Ref call_as(const OpDef& op, const Function& f, CallArguments arguments, std::string_view fixed,
            FunctionRef<std::vector<NamedAttr>(const Point&)> attributes) {
  Point point = point_at(arguments);
  if (arguments.kwargs) point.trees.push_back(flatten_tree(arguments.kwargs, point.leaves));
  // Also without a traced argument: the function may close over traced values, and a derivative by
  // them is not that of its code.
  const std::vector<ContextRef>& stack = context_stack();
  bool traced = fixed.empty() || (!stack.empty() && stack.back()->kind != ContextKind::kEager);
  for (const Operand& x : point.leaves.operands) traced |= x.kind == OperandKind::kTracer;
  if (!traced) return Ref::checked(PyObject_Call(f.object, arguments.args, arguments.kwargs));
  if (fixed.empty()) read_cells(point, f);
  check_leaves(point, f);
  for (const Ref& leaf : point.leaves.objects) point.chosen.push_back(!is_cell(leaf.get()));
  record_at(point, f, arguments, {}, fixed);
  AttrsRef attrs = AttrRecord::make(op.name, op.attrs, attributes(point));
  Objects results = bind_graphs(op, point.graph_operands(), attrs, point.recorded.weak);
  point.write_cells(results);
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
    return call_as(op, f, arguments_of(args, kwargs, positions), {},
                   [&](const Point& point) {
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
    return call_as(op, f, arguments_of(args, nullptr, positions), fixed,
                   [&](const Point& point) {
                     CallTypes types{point.trees, point.leaf_slots(), point.value,
                                     point.value_slots(),
                                     consts_of(capture_values(point.recorded.captures))};
                     Ref made = calling_python([&] {
                       nb::object o = nb::borrow(rule)(std::move(types));
                       return Ref::steal(o.release().ptr());
                     });
                     ObjectRef object = object_of(made.get());
                     if (!object) raise_error("OperandError", "call_with_rule expected a rule");
                     const Recording& recorded = point.recorded;
                     return std::vector<NamedAttr>{
                         {"call_jaxpr", as_region(recorded.graph)},
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
      .def_prop_ro("consts", [](const CallTypes& t) { return t.consts; });
  check(PyModule_AddFunctions(m.ptr(), functions));
}

}  // namespace weft::py
