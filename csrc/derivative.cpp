// gradient(), jvp(), and record_at(), with which linearize and vjp begin.

#include "derivative.h"

#include <algorithm>

#include "deferred.h"
#include "dtypes.h"
#include "graph_object.h"
#include "hooks.h"
#include "recording.h"
#include "transforms.h"

namespace weft::py {
namespace {

// ---- A function recorded at a point

struct Function {
  PyObject* object;
  PyObject* name;  // str
  bool has_aux;    // returns (value, aux)
};

// The arguments of a call; the function is recorded as one of the leaves of those at `positions`.
struct Arguments {
  PyObject* args;    // tuple
  PyObject* kwargs;  // dict
  std::vector<Py_ssize_t> positions;
};

struct Point {
  Ref leaves, tree;               // of the tuple of arguments at the positions
  std::vector<Operand> operands;  // the leaves
  Mask inexact;                   // per leaf: whether it is an input of the graph
  std::vector<Operand> inputs;    // those leaves
  Recording recorded;             // its outputs are the leaves of the value, then those of aux
  Ref value_tree, aux_tree;       // the latter unset without aux
  size_t num_values = 0;          // leaves of the value

  // A mask over the graph's inputs: the leaves, and not what the function closed over.
  Mask mask() const {
    Mask out(recorded.graph->num_inputs(), true);
    std::fill_n(out.begin(), recorded.captures.size(), false);
    return out;
  }
  std::vector<Operand> graph_operands() const {
    std::vector<Operand> out;
    for (const Ref& capture : recorded.captures) out.push_back(classify(capture.get()));
    out.insert(out.end(), inputs.begin(), inputs.end());
    return out;
  }
};

std::pair<Ref, Ref> flatten(PyObject* tree) {
  Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), tree));
  return {Ref::borrow(PyTuple_GET_ITEM(flat.get(), 0)),
          Ref::borrow(PyTuple_GET_ITEM(flat.get(), 1))};
}

Ref unflatten(const Ref& tree, PyObject* leaves) {
  return Ref::checked(PyObject_CallMethodOneArg(tree.get(), name("unflatten"), leaves));
}

Ref list_of(std::span<const Ref> objects) {
  return Ref::checked(to_list({objects.begin(), objects.end()}));
}

// The second of the pair that the function returned, None without aux.
Ref aux_of(const Point& point, std::span<const Ref> outputs) {
  if (!point.aux_tree) return Ref::borrow(Py_None);
  return unflatten(point.aux_tree, list_of(outputs.subspan(point.num_values)).get());
}

size_t num_leaves(PyObject* tree) {
  Ref count = Ref::checked(PyObject_GetAttr(tree, name("num_leaves")));
  return static_cast<size_t>(to_int(count.get()));
}

// A list over all leaves: the next of `inexact` for each that is, `other(leaf)` for the rest.
template <typename Other>
Ref merge(const Point& point, std::span<PyObject* const> inexact, Other other) {
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(point.operands.size())));
  size_t next = 0;
  for (size_t i = 0; i < point.operands.size(); ++i) {
    PyObject* leaf = point.operands[i].object;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    point.inexact[i] ? Py_NewRef(inexact[next++]) : other(leaf).release());
  }
  return list;
}

// Calls the function with tracers in the places of the inputs.
Ref call(const Function& f, const Arguments& arguments, const Point& point, PyObject* tracers) {
  std::span inputs(PySequence_Fast_ITEMS(tracers), point.inputs.size());
  Ref leaves = merge(point, inputs, [](PyObject* leaf) { return Ref::borrow(leaf); });
  Ref selected = unflatten(point.tree, leaves.get());
  std::vector<PyObject*> args(
      PySequence_Fast_ITEMS(arguments.args),
      PySequence_Fast_ITEMS(arguments.args) + PyTuple_GET_SIZE(arguments.args));
  for (size_t i = 0; i < arguments.positions.size(); ++i)
    args[static_cast<size_t>(arguments.positions[i])] =
        PyTuple_GET_ITEM(selected.get(), static_cast<Py_ssize_t>(i));
  return Ref::checked(
      PyObject_VectorcallDict(f.object, args.data(), args.size(), arguments.kwargs));
}

// The leaves of a function's result; fills in their trees.
Ref take_apart(const Function& f, const Ref& result, Point& point) {
  bool is_pair = (PyTuple_Check(result.get()) || PyList_Check(result.get())) &&
                 PySequence_Fast_GET_SIZE(result.get()) == 2;
  if (f.has_aux && !is_pair) reject(hooks.reject_aux, {result.get(), f.name});
  auto [leaves, tree] = flatten(result.get());
  classify_leaves(leaves.get(), [&](size_t i) {
    Ref number = Ref::checked(PyLong_FromSize_t(i));
    return Ref::checked(PyObject_CallFunctionObjArgs(hooks.describe_output.get(), f.object,
                                                     tree.get(), number.get(), nullptr));
  });
  point.value_tree = tree;
  if (f.has_aux) {
    Ref children = Ref::checked(PyObject_CallMethodNoArgs(tree.get(), name("children")));
    point.value_tree = Ref::borrow(PyList_GET_ITEM(children.get(), 0));
    point.aux_tree = Ref::borrow(PyList_GET_ITEM(children.get(), 1));
  }
  point.num_values = num_leaves(point.value_tree.get());
  return leaves;
}

Ref select(const Arguments& arguments) {
  Ref selected = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.positions.size())));
  for (size_t i = 0; i < arguments.positions.size(); ++i)
    PyTuple_SET_ITEM(selected.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(PyTuple_GET_ITEM(arguments.args, arguments.positions[i])));
  return selected;
}

Ref describe_leaf(PyObject* describe, size_t i) {
  Ref number = Ref::checked(PyLong_FromSize_t(i));
  return Ref::checked(PyObject_CallOneArg(describe, number.get()));
}

// Records the function at the arguments. `describe` is a function from the number of a leaf to its
// name; `accept(operand, leaf number)` may refuse a leaf before.
template <typename Accept>
Point record_at(const Function& f, const Arguments& arguments, PyObject* describe, Accept accept) {
  Point point;
  std::tie(point.leaves, point.tree) = flatten(select(arguments).get());
  point.operands =
      classify_leaves(point.leaves.get(), [&](size_t i) { return describe_leaf(describe, i); });
  for (size_t i = 0; i < point.operands.size(); ++i) {
    const Operand& x = point.operands[i];
    accept(x, i);
    point.inexact.push_back(is_inexact(x.type->dtype()));
    if (point.inexact.back()) point.inputs.push_back(x);
  }
  point.recorded = record(
      [&](PyObject* tracers) { return take_apart(f, call(f, arguments, point, tracers), point); },
      point.inputs, {}, readable(f.name), describe);
  return point;
}

Arguments arguments_of(PyObject* args, PyObject* kwargs, PyObject* positions) {
  Arguments out{args, kwargs, {}};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(positions); ++i) {
    int64_t n = to_int(PyList_GET_ITEM(positions, i));
    if (n < 0 || n >= PyTuple_GET_SIZE(args))
      raise_error("OperandError", "expected positions of arguments; got ", n);
    out.positions.push_back(n);
  }
  return out;
}

// ---- grad

void check_loss(const Point& point, const Function& f, bool holomorphic) {
  if (point.num_values != 1) {
    PyErr_Format(PyExc_TypeError,
                 "grad expected one scalar from '%U'; got a tree of %zu arrays\n"
                 "  Return the loss alone, or (loss, anything) with has_aux=True.",
                 f.name, point.num_values);
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
    PyObject *args, *kwargs, *positions, *describe;
    int has_aux, holomorphic, allow_int;
    if (!PyArg_ParseTuple(tuple, "OUO!O!O!Oppp", &f.object, &f.name, &PyTuple_Type, &args,
                          &PyDict_Type, &kwargs, &PyList_Type, &positions, &describe, &has_aux,
                          &holomorphic, &allow_int))
      throw PythonError{};
    f.has_aux = has_aux;
    Arguments arguments = arguments_of(args, kwargs, positions);
    Point point = record_at(f, arguments, describe, [&](const Operand& x, size_t i) {
      DType dtype = x.type->dtype();
      bool fits =
          holomorphic ? is_complex(dtype) : is_float(dtype) || (allow_int && !is_complex(dtype));
      if (!fits)
        reject(hooks.reject_gradient_input,
               {x.object, describe_leaf(describe, i).get(), holomorphic ? Py_True : Py_False});
    });
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
    Ref leaves = merge(point, found, [](PyObject* leaf) {
      return Ref::checked(PyObject_CallOneArg(hooks.zero_tangent.get(), leaf));
    });
    Ref gradients = unflatten(point.tree, leaves.get());
    Ref aux = aux_of(point, {results.data(), num_outputs});
    return PyTuple_Pack(3, results[0].get(), gradients.get(), aux.get());
  });
}

// ---- jvp, and what others begin with

struct Directions {
  std::vector<Ref> owned;
  std::vector<Operand> operands;
};

// Tangents (or cotangents) of those of `primals` that are inexact, in their dtypes. `describe`
// names a primal, `what` the transform, in the errors that one which does not fit raises.
Directions directions(std::span<const Operand> primals, PyObject* given, PyObject* describe,
                      PyObject* what) {
  Directions out;
  for (size_t i = 0; i < primals.size(); ++i) {
    const Operand& x = primals[i];
    PyObject* object = PyList_GET_ITEM(given, static_cast<Py_ssize_t>(i));
    DType dtype = x.type->dtype();
    bool inexact = is_inexact(dtype);
    Operand t = inexact ? classify(object) : Operand{};
    bool fits = t.kind != OperandKind::kInvalid && t.type->shape() == x.type->shape() &&
                (t.type->dtype() == dtype || t.weak);
    if (!fits) {
      Ref number = Ref::checked(PyLong_FromSize_t(i));
      Ref::checked(PyObject_CallFunctionObjArgs(hooks.check_tangent.get(), x.object, object,
                                                describe, number.get(), what, nullptr));
    }
    if (!inexact) continue;
    out.owned.push_back(astype(classify_operand(object, "astype"), dtype, false));
    out.operands.push_back(classify(out.owned.back().get()));
  }
  return out;
}

Arguments all_positions(PyObject* args) {
  Arguments out{args, nullptr, {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) out.positions.push_back(i);
  return out;
}

constexpr auto accept_all = [](const Operand&, size_t) {};

// jvp(function, name, primals, tangents, describe, has_aux) -> (value, tangent, aux); aux is None
// without has_aux.
PyObject* jvp_function(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    PyObject *primals, *tangents, *describe;
    int has_aux;
    if (!PyArg_ParseTuple(tuple, "OUO!O!Op", &f.object, &f.name, &PyTuple_Type, &primals,
                          &PyTuple_Type, &tangents, &describe, &has_aux))
      throw PythonError{};
    f.has_aux = has_aux;
    Point point = record_at(f, all_positions(primals), describe, accept_all);
    auto [given, given_tree] = flatten(tangents);
    int same = PyObject_RichCompareBool(given_tree.get(), point.tree.get(), Py_EQ);
    check(same);
    Ref what = Ref::checked(PyUnicode_FromString("jvp"));
    Ref kind = Ref::checked(PyUnicode_FromString("tangents"));
    if (!same)
      reject(hooks.reject_structure, {point.tree.get(), given_tree.get(), what.get(), kind.get()});
    Directions dots = directions(point.operands, given.get(), describe, what.get());

    const Recording& recorded = point.recorded;
    Mask wanted;
    for (TypeRef t : recorded.graph->output_types())
      wanted.push_back(wanted.size() < point.num_values && is_inexact(t->dtype()));
    auto made = jvp_at_once(recorded.graph, point.mask(), wanted);
    std::vector<Operand> operands = point.graph_operands();
    operands.insert(operands.end(), dots.operands.begin(), dots.operands.end());
    Objects results = call_graph(made.graph, operands, recorded.weak);

    Objects found;
    size_t next = wanted.size();
    for (size_t i = 0; i < point.num_values; ++i) {
      PyObject* dot = made.mask[i] ? results[next++].get() : nullptr;
      found.push_back(wanted[i] ? Ref::borrow(dot)
                                : Ref::checked(PyObject_CallOneArg(hooks.zero_tangent.get(),
                                                                   results[i].get())));
    }
    std::span outputs(results.data(), wanted.size());
    Ref value = unflatten(point.value_tree, list_of(outputs.first(point.num_values)).get());
    Ref tangent = unflatten(point.value_tree, list_of(found).get());
    Ref aux = aux_of(point, outputs);
    return PyTuple_Pack(3, value.get(), tangent.get(), aux.get());
  });
}

// record_at(function, name, primals, describe, has_aux) -> (graph, captures, weak, leaves, inexact,
// tree, value tree, aux tree): `inexact` says which leaves are inputs of the graph.
PyObject* record_at_function(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    PyObject *primals, *describe;
    int has_aux;
    if (!PyArg_ParseTuple(tuple, "OUO!Op", &f.object, &f.name, &PyTuple_Type, &primals, &describe,
                          &has_aux))
      throw PythonError{};
    f.has_aux = has_aux;
    Point point = record_at(f, all_positions(primals), describe, accept_all);
    const Recording& recorded = point.recorded;
    auto flags = [](const auto& mask) {
      Ref out = Ref::checked(PyList_New(0));
      for (bool flag : mask) check(PyList_Append(out.get(), flag ? Py_True : Py_False));
      return out;
    };
    return PyTuple_Pack(8, graph_object(recorded.graph).get(), list_of(recorded.captures).get(),
                        flags(recorded.weak).get(), point.leaves.get(), flags(point.inexact).get(),
                        point.tree.get(), point.value_tree.get(),
                        point.aux_tree ? point.aux_tree.get() : Py_None);
  });
}

// tangents(primals, given, describe, what) -> the tangents of those primals that are inexact; of a
// primal only its type matters.
PyObject* tangents_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("tangents", n, 4);
    PyObject* primals = list_argument(args[0], "tangents", "the primals");
    PyObject* given = list_argument(args[1], "tangents", "the tangents");
    check_count("tangents", PyList_GET_SIZE(given), PyList_GET_SIZE(primals));
    std::vector<Operand> xs;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(primals); ++i)
      xs.push_back(classify_type(PyList_GET_ITEM(primals, i), "tangents"));
    return list_of(directions(xs, given, args[2], args[3]).owned).release();
  });
}

PyMethodDef functions[] = {
    {"gradient", gradient, METH_VARARGS,
     "gradient(function, name, args, kwargs, positions, describe, has_aux, holomorphic, "
     "allow_int) -> (value, gradients, aux)."},
    {"jvp", jvp_function, METH_VARARGS,
     "jvp(function, name, primals, tangents, describe, has_aux) -> (value, tangent, aux)."},
    {"record_at", record_at_function, METH_VARARGS,
     "record_at(function, name, primals, describe, has_aux) -> (graph, captures, weak, leaves, "
     "inexact, tree, value tree, aux tree)."},
    {"tangents", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tangents_function)),
     METH_FASTCALL, "tangents(primals, given, describe, what) -> those of inexact primals."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_derivative(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
