// gradient(), jvp() and jacobian(): one graph that gives value and derivative, called at once.

#include "transforms/derivative.h"

#include "conversions/dtypes.h"
#include "references/hooks.h"
#include "transforms/deferred.h"
#include "transforms/point.h"
#include "transforms/rules.h"
#include "transforms/transforms.h"

namespace weft::py {
namespace {

// ---- grad

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
  if (point.value.definition) {
    if (point.value.num_leaves == 0) {  // None, or an empty tuple
      Ref none = Ref::checked(PyTuple_New(0));
      Ref value = Ref::checked(
          PyObject_CallMethodOneArg(point.value.definition.get(), name("unflatten"), none.get()));
      if (value.get() == Py_None) {
        PyErr_Format(PyExc_TypeError,
                     "grad expected one scalar from '%U'; got None\n"
                     "  Return the loss: a function without `return` gives None.",
                     f.name);
        throw PythonError{};
      }
    }
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

// The values of a function with a scalar loss, then the gradients by its inputs; writes cells.
Objects at_once(const Point& point, const Mask& mask, const Mask& cotangents) {
  const Recording& recorded = point.recorded;
  auto made = vjp_here(recorded.graph, {mask, cotangents});
  std::vector<Operand> operands = point.graph_operands();
  Ref seed;
  if (made->ct_mask[0]) {
    seed = one(recorded.graph->output_types()[0]->dtype());
    operands.push_back(classify(seed.get()));
  }
  std::vector<bool> weak = recorded.weak;
  for (const Operand& x : point.inputs) weak.push_back(x.weak);
  Objects results = call_graph(made->graph, operands, weak);
  point.write_cells(results);
  point.keep_given(*made->graph, operands, std::span(results).first(cotangents.size()), false);
  return results;
}

// The same where backward rules get cells: these have the values that the function left there.
Objects in_turn(const Point& point, const Mask& mask, const Mask& cotangents,
                std::span<const BackwardCell> cells) {
  const Recording& recorded = point.recorded;
  Linearized made(recorded.graph, mask, cotangents);
  std::vector<Operand> operands = point.graph_operands();
  Objects results = call_graph(made.forward(), operands, recorded.weak);
  std::vector<Ref> owned = made.kept(operands, results);
  results.resize(cotangents.size());
  point.write_cells(results);
  point.keep_given(*made.forward(), operands, results, false);

  std::vector<Operand> given;
  for (const Ref& residual : owned) given.push_back(classify(residual.get()));
  Ref seed = one(recorded.graph->output_types()[0]->dtype());
  if (made.out_mask()[0]) given.push_back(classify(seed.get()));
  append_cells(cells, made.out_mask(), owned, given);
  std::vector<bool> weak(cells.size(), false);
  for (const Operand& x : point.inputs) weak.push_back(x.weak);
  Objects gradients = call_graph(made.pull(), given, weak);
  write_back(cells, made.out_mask(), gradients);
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

// gradient(function, name, args, kwargs, positions, describe, has_aux, holomorphic, allow_int) ->
// (value, gradients of the arguments at the positions, aux); aux is None without has_aux.
PyObject* gradient(PyObject*, PyObject* tuple) {
  return guard_with_rules([&]() -> PyObject* {
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
    Mask mask = point.mask(), cotangents(num_outputs, false);
    cotangents[0] = true;
    std::vector<BackwardCell> cells = backward_cells(point, mask);
    for (const BackwardCell& c : cells) cotangents[c.output] = true;
    if (!recorded.written.empty())
      check_cells(point, f, Linearized(recorded.graph, mask, cotangents).out_mask());
    Objects results =
        cells.empty() ? at_once(point, mask, cotangents) : in_turn(point, mask, cotangents, cells);
    for (size_t i = num_outputs; i < results.size(); ++i)
      results[i] = split_like(results[i], split_of_cotangents(point.inputs[i - num_outputs]));

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
  return guard_with_rules([&]() -> PyObject* {
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
    for (size_t i = 0; i < values.size(); ++i) wanted[i] = values[i].has_tangent();
    auto made = jvp_here(recorded.graph, {point.mask(), wanted});
    check_cells(point, f, made->out_mask);
    std::vector<Operand> operands = point.graph_operands();
    operands.insert(operands.end(), dots.operands.begin(), dots.operands.end());
    std::vector<bool> weak = recorded.weak;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!wanted[i]) continue;
      weak.push_back(values[i].weak);
      point.recorded.as_came.push_back(recorded.as_came[i]);  // a tangent is as its value
    }
    Objects results = call_graph(made->graph, operands, weak);
    point.write_cells(results);
    point.keep_given(*made->graph, operands, results, true);

    Objects found;
    size_t next = wanted.size();
    for (size_t i = 0; i < values.size(); ++i)
      found.push_back(wanted[i] ? results[next++] : zero_tangent(values[i].type));
    Ref value = point.value_of(results), tangent = point.value_of(found),
        aux = point.aux_of(results);
    return PyTuple_Pack(3, value.get(), tangent.get(), aux.get());
  });
}

// ---- Jacobians

struct JacobianOf {
  const Function& f;
  bool forward, holomorphic, allow_int;

  // `of_one_kind`: real, or with holomorphic=True complex; else inexact.
  void check(TypeRef type, bool of_one_kind, FunctionRef<Ref()> what) const {
    DType dtype = type->dtype();
    if (holomorphic ? is_complex(dtype) : of_one_kind ? is_float(dtype) : is_inexact(dtype)) return;
    const char* expected = holomorphic   ? " with holomorphic=True expected complex "
                           : of_one_kind ? " expected real floating-point "
                                         : " expected floating-point or complex ";
    raise_error("DTypeError", forward ? "jacfwd" : "jacrev", expected, readable(what().get()),
                "; got ", type);
  }
  void check_inputs(const Point& point) const {
    for (size_t i = 0; i < point.leaves.size(); ++i)
      if (point.chosen[i] || !allow_int)
        check(point.leaves.operands[i].type, forward, [&] { return describe_leaf(f, i); });
  }
  // Backwards a complex result that is not holomorphic has two rows per element; forwards the
  // derivative of an integer is zero.
  void check_values(const Point& point) const {
    if (forward && !holomorphic) return;
    for (const Slot& value : point.value_slots())
      check(value.type, true,
            [&] { return Ref::checked(PyUnicode_FromFormat("results of '%U'", f.name)); });
  }
};

// By an integer: zeros of its own dtype.
Ref zero_block(TypeRef value, const Operand& by) {
  Dims shape = value->shape();
  for (int64_t d : by.type->shape()) shape.push_back(d);
  return Ref::checked(PyObject_CallFunctionObjArgs(hooks.zeros.get(), to_tuple(shape).get(),
                                                   numpy_dtype(by.type->dtype()),
                                                   by.weak ? Py_True : Py_False, nullptr));
}

// jacobian(function, name, args, kwargs, positions, describe, has_aux, holomorphic, forward,
// single, allow_int)
// -> (the value with, in the place of each array, a tuple of its derivatives by the arguments at
// the positions, or with `single` those by the one argument; aux).
PyObject* jacobian_function(PyObject*, PyObject* tuple) {
  return guard_with_rules([&]() -> PyObject* {
    Function f{};
    PyObject *args, *kwargs, *positions;
    int has_aux, holomorphic, forward, single, allow_int;
    if (!PyArg_ParseTuple(tuple, "OUO!O!O!Oppppp", &f.object, &f.name, &PyTuple_Type, &args,
                          &PyDict_Type, &kwargs, &PyTuple_Type, &positions, &f.describe, &has_aux,
                          &holomorphic, &forward, &single, &allow_int))
      throw PythonError{};
    f.has_aux = has_aux;
    JacobianOf wanted{f, forward != 0, holomorphic != 0, allow_int != 0};
    CallArguments arguments = arguments_of(args, kwargs, positions);
    Point point = differentiable_point(arguments, f);
    wanted.check_inputs(point);
    record_at(point, f, arguments);
    wanted.check_values(point);

    const Recording& recorded = point.recorded;
    size_t num_values = point.value.num_leaves;
    if (!recorded.written.empty())
      check_cells(point, f, Linearized(recorded.graph, point.mask(), {}).out_mask());
    Mask trails = point.mask();
    if (!forward && !backward_cells(point, trails).empty())
      raise_error("RefError", "jacrev expected no refs for backward rules in '", readable(f.name),
                  "', whose rows would all write them\n  Use vjp, once per row.");
    auto made = jacobian_here(recorded.graph, {point.mask(), num_values, wanted.forward});
    std::vector<bool> weak(recorded.weak.begin() + static_cast<ptrdiff_t>(num_values),
                           recorded.weak.end());
    for (size_t i = 0; i < num_values; ++i)
      for (const Operand& x : point.inputs) weak.push_back(forward ? recorded.weak[i] : x.weak);
    std::vector<Operand> operands = point.graph_operands();
    Objects results = call_graph(made->graph, operands, weak);

    size_t num_aux = point.aux ? point.aux->num_leaves : 0;
    size_t num_others = recorded.weak.size() - num_values;
    recorded.write(std::span(results).first(num_others));
    std::vector<PyObject*> blocks;
    for (size_t i = num_others; i < results.size(); ++i) blocks.push_back(results[i].get());
    std::span<PyObject* const> rest = blocks;
    std::vector<Ref> owned;
    std::vector<PyObject*> rows;
    for (size_t i = 0; i < num_values; ++i) {
      Ref row =
          assemble(point.trees, point.chosen, rest.first(point.inputs.size()), [&](size_t leaf) {
            return zero_block(recorded.graph->output_types()[i], point.leaves.operands[leaf]);
          });
      rest = rest.subspan(point.inputs.size());
      owned.push_back(single ? Ref::borrow(PyTuple_GET_ITEM(row.get(), 0)) : row);
      rows.push_back(owned.back().get());
    }
    std::vector<Ref> all(num_values);
    all.insert(all.end(), results.begin(), results.begin() + static_cast<ptrdiff_t>(num_aux));
    point.keep_given(*recorded.graph, operands, all, wanted.forward);
    Ref value = unflatten(point.value, rows), aux = point.aux_of(all);
    return PyTuple_Pack(2, value.get(), aux.get());
  });
}

PyMethodDef functions[] = {
    {"gradient", gradient, METH_VARARGS,
     "gradient(function, name, args, kwargs, positions, describe, has_aux, holomorphic, "
     "allow_int) -> (value, gradients, aux)."},
    {"jvp", jvp_function, METH_VARARGS,
     "jvp(function, name, primals, tangents, describe, has_aux) -> (value, tangent, aux)."},
    {"jacobian", jacobian_function, METH_VARARGS,
     "jacobian(function, name, args, kwargs, positions, describe, has_aux, holomorphic, forward, "
     "single, allow_int) -> (value with derivatives in the place of arrays, aux)."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_derivative(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
