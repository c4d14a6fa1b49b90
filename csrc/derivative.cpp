// gradient() and jvp(): one graph that gives value and derivative, called at once.

#include "derivative.h"

#include "deferred.h"
#include "dtypes.h"
#include "hooks.h"
#include "point.h"
#include "transforms.h"

namespace weft::py {
namespace {

// ---- grad

CallArguments arguments_of(PyObject* args, PyObject* kwargs, PyObject* positions) {
  CallArguments out{args, kwargs, {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); ++i) {
    int64_t n = to_int(PyTuple_GET_ITEM(positions, i));
    if (n < 0 || n >= PyTuple_GET_SIZE(args))
      raise_error("OperandError", "expected positions of arguments; got ", n);
    out.positions.push_back(n);
  }
  return out;
}

void check_inputs(const Point& point, const Function& f, bool holomorphic, bool allow_int) {
  for (size_t i = 0; i < point.leaves.size(); ++i) {
    DType dtype = point.leaves.operands[i].type->dtype();
    bool fits = holomorphic ? is_complex(dtype) : is_inexact(dtype) || allow_int;
    if (fits) continue;
    reject(hooks.reject_gradient_input, {point.leaves.objects[i].get(), describe_leaf(f, i).get(),
                                         holomorphic ? Py_True : Py_False});
  }
}

void check_loss(const Point& point, const Function& f, bool holomorphic) {
  if (point.value.num_leaves != 1) {
    PyErr_Format(PyExc_TypeError,
                 "grad expected one scalar from '%U'; got a tree of %zu arrays\n"
                 "  Return the loss alone, or (loss, anything) with has_aux=True.",
                 f.name, point.value.num_leaves);
    throw PythonError{};
  }
  TypeRef type = point.recorded.graph->output_types()[0];
  bool fits = holomorphic ? is_complex(type->dtype()) : is_float(type->dtype());
  if (type->rank() == 0 && fits) return;
  Ref shape = to_tuple(type->shape());
  reject(hooks.reject_loss,
         {shape.get(), numpy_dtype(type->dtype()), f.name, holomorphic ? Py_True : Py_False});
}

// The cotangent of a scalar loss: a number, which programs that are being traced hold as a literal.
Ref one(DType dtype) {
  Ref type = Ref::checked(PyObject_GetAttr(numpy_dtype(dtype), name("type")));
  Ref number = Ref::checked(PyLong_FromLong(1));
  return Ref::checked(PyObject_CallOneArg(type.get(), number.get()));
}

// gradient(function, name, args, kwargs, positions, describe, has_aux, holomorphic, allow_int) ->
// (value, gradients of the arguments at the positions, aux); aux is None without has_aux.
PyObject* gradient(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    PyObject *args, *kwargs, *positions;
    int has_aux, holomorphic, allow_int;
    if (!PyArg_ParseTuple(tuple, "OUO!O!O!Oppp", &f.object, &f.name, &PyTuple_Type, &args,
                          &PyDict_Type, &kwargs, &PyTuple_Type, &positions, &f.describe, &has_aux,
                          &holomorphic, &allow_int))
      throw PythonError{};
    f.has_aux = has_aux;
    CallArguments arguments = arguments_of(args, kwargs, positions);
    Point point = differentiable_point(arguments, f);
    check_inputs(point, f, holomorphic, allow_int);
    record_at(point, f, arguments);
    check_loss(point, f, holomorphic);
    const Recording& recorded = point.recorded;
    size_t num_outputs = recorded.graph->outputs().size();
    Mask cotangents(num_outputs, false);
    cotangents[0] = true;
    auto made = vjp_at_once(recorded.graph, point.mask(), cotangents);

    std::vector<Operand> operands = point.graph_operands();
    Ref seed;
    if (made.mask[0]) {
      seed = one(recorded.graph->output_types()[0]->dtype());
      operands.push_back(classify(seed.get()));
    }
    std::vector<bool> weak = recorded.weak;
    for (const Operand& x : point.inputs) weak.push_back(x.weak);
    Objects results = call_graph(made.graph, operands, weak);

    std::vector<PyObject*> found;
    for (size_t i = num_outputs; i < results.size(); ++i) found.push_back(results[i].get());
    Ref gradients = assemble(point.trees, point.chosen, found,
                             [&](size_t i) { return zero_tangent(point.leaves.operands[i].type); });
    Ref aux = point.aux_of(results);
    return PyTuple_Pack(3, results[0].get(), gradients.get(), aux.get());
  });
}

// ---- jvp

// jvp(function, name, primals, tangents, describe, has_aux) -> (value, tangent, aux); aux is None
// without has_aux.
PyObject* jvp_function(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    PyObject *primals, *tangents;
    int has_aux;
    if (!PyArg_ParseTuple(tuple, "OUO!O!Op", &f.object, &f.name, &PyTuple_Type, &primals,
                          &PyTuple_Type, &tangents, &f.describe, &has_aux))
      throw PythonError{};
    f.has_aux = has_aux;
    CallArguments arguments = all_arguments(primals);
    Point point = differentiable_point(arguments, f);
    Directions dots = tangents_of(
        point.trees, point.leaf_slots(), tangents, [&](size_t i) { return describe_leaf(f, i); },
        "jvp");
    record_at(point, f, arguments);

    const Recording& recorded = point.recorded;
    std::vector<Slot> values = point.value_slots();
    Mask wanted(recorded.weak.size(), false);
    for (size_t i = 0; i < values.size(); ++i) wanted[i] = values[i].is_inexact();
    auto made = jvp_at_once(recorded.graph, point.mask(), wanted);
    std::vector<Operand> operands = point.graph_operands();
    operands.insert(operands.end(), dots.operands.begin(), dots.operands.end());
    Objects results = call_graph(made.graph, operands, recorded.weak);

    Objects found;
    size_t next = wanted.size();
    for (size_t i = 0; i < values.size(); ++i)
      found.push_back(wanted[i] ? results[next++] : zero_tangent(values[i].type));
    Ref value = point.value_of(results), tangent = point.value_of(found),
        aux = point.aux_of(results);
    return PyTuple_Pack(3, value.get(), tangent.get(), aux.get());
  });
}

PyMethodDef functions[] = {
    {"gradient", gradient, METH_VARARGS,
     "gradient(function, name, args, kwargs, positions, describe, has_aux, holomorphic, "
     "allow_int) -> (value, gradients, aux)."},
    {"jvp", jvp_function, METH_VARARGS,
     "jvp(function, name, primals, tangents, describe, has_aux) -> (value, tangent, aux)."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_derivative(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
