// The type Linear, and the functions that make one.

#include "transforms/linear.h"

#include <memory>

#include "binding/bind.h"
#include "references/hooks.h"
#include "references/object_type.h"
#include "tracing/cell.h"
#include "tracing/named_axes.h"
#include "transforms/deferred.h"
#include "transforms/point.h"
#include "transforms/rules.h"
#include "transforms/transforms.h"

namespace weft::py {
namespace {

PyTypeObject* linear_type;

// A linear function of the inexact leaves of some trees. Of the point it was taken at it holds
// what the graph needs, and no more.
struct Linear {
  Ref function;           // for messages
  const char* transform;  // likewise
  std::vector<Tree> trees;
  std::vector<Slot> leaves;  // of the trees
  Tree value;
  std::vector<Slot> values;  // its leaves
  std::vector<Ref> residuals;
  Mask has_tangent;  // per value
  std::vector<BackwardCell> cells;
  Mask out_mask;  // per output, where there are such cells
  // residuals, tangents of the inexact leaves -> tangents of those values that have one, then of
  // other outputs; and back.
  std::optional<Linearized> linearized;
  GraphRef given;                   // of a function that is linear itself
  std::vector<ShardingRef> splits;  // over explicit axes, of the inexact leaves; for vjp
  Ref again;  // what linearize() got, where backward rules of users may ask for values

  GraphRef push() const { return linearized->push(); }
  GraphRef pull() const {
    return linearized ? linearized->pull()
                      : py::transposed(given, residuals.size(), Mask(has_tangent.size(), true));
  }
  std::vector<Operand> operands(const Directions& directions) const {
    std::vector<Operand> out;
    for (const Ref& residual : residuals) out.push_back(classify(residual.get()));
    out.insert(out.end(), directions.operands.begin(), directions.operands.end());
    return out;
  }
};

struct LinearObject {
  PyObject_HEAD Linear* linear;

  int visit(visitproc visit, void* arg) const {
    if (!linear) return 0;
    Py_VISIT(linear->function.get());
    for (const Ref& residual : linear->residuals) Py_VISIT(residual.get());
    for (const BackwardCell& c : linear->cells) Py_VISIT(c.cell.get());
    Py_VISIT(linear->again.get());
    return 0;
  }
  void clear() { delete std::exchange(linear, nullptr); }
  void release() { clear(); }
};
// Raises for one that the collector has cleared.
const Linear& linear_of(PyObject* self) {
  const Linear* linear = reinterpret_cast<LinearObject*>(self)->linear;
  if (!linear) raise_error("InternalError", "a linear function that was collected");
  return *linear;
}

Ref make_object(std::unique_ptr<Linear> linear) {
  Ref self = Ref::checked(linear_type->tp_alloc(linear_type, 0));
  reinterpret_cast<LinearObject*>(self.get())->linear = linear.release();
  return self;
}

// push(tangents of the trees, a tuple) -> the tangent of the value.
PyObject* push(PyObject* self, PyObject* tangents) {
  return guard([&]() -> PyObject* {
    Ref held = Ref::borrow(self);
    const Linear& f = linear_of(self);
    tuple_argument(tangents, f.transform, "tangents");
    auto describe = [&](size_t i) {
      Ref number = Ref::checked(PyLong_FromSize_t(i));
      Ref statics = Ref::checked(PyTuple_New(0));
      return Ref::checked(PyObject_CallFunctionObjArgs(hooks.describe.get(), f.function.get(),
                                                       definition_of_call(f.trees).get(),
                                                       statics.get(), number.get(), nullptr));
    };
    Directions given = tangents_of(f.trees, f.leaves, tangents, describe, f.transform);
    std::vector<bool> weak, as_came;
    for (size_t i = 0; i < f.values.size(); ++i) {
      if (!f.has_tangent[i]) continue;
      weak.push_back(f.values[i].weak && given.are_weak());
      as_came.push_back(f.values[i].is_argument);
    }
    GraphRef graph = f.push();
    std::vector<Operand> operands = f.operands(given);
    Objects results = call_graph(graph, operands, weak);
    keep_inputs(*graph, operands, results, as_came);
    std::vector<Ref> owned;
    std::vector<PyObject*> leaves;
    size_t next = 0;
    for (size_t i = 0; i < f.values.size(); ++i) {
      owned.push_back(f.has_tangent[i] ? results[next++] : zero_tangent(f.values[i].type));
      leaves.push_back(owned.back().get());
    }
    return unflatten(f.value, leaves).release();
  });
}

PyObject* linearize_function(PyObject*, PyObject* tuple);

// The same function, with values for the backward rules that were found to ask for them.
Ref linearized_again(const Linear& f) {
  Ref made = Ref::checked(linearize_function(nullptr, f.again.get()));
  return Ref::borrow(PyTuple_GET_ITEM(made.get(), 1));
}

// pull(cotangent of the value) -> the cotangents of the trees, a tuple.
PyObject* pull(PyObject* self, PyObject* cotangent) {
  Ref held = Ref::borrow(self);
  uint64_t asked = asked_values();
  return guard_with_rules([&]() -> PyObject* {
    if (asked_values() != asked && linear_of(self).again) {
      held = linearized_again(linear_of(self));
      asked = asked_values();
    }
    const Linear& f = linear_of(held.get());
    Leaves given;
    Tree tree = flatten_tree(cotangent, given);
    if (!same_tree(f.value, tree))
      reject_structure(definition_of(f.value), definition_of(tree), f.transform, "a cotangent");
    Directions cotangents = directions(
        f.values, given,
        [&](size_t i) {
          Ref number = Ref::checked(PyLong_FromSize_t(i));
          return Ref::checked(
              PyObject_CallFunctionObjArgs(hooks.describe_output.get(), f.function.get(),
                                           definition_of(f.value).get(), number.get(), nullptr));
        },
        f.transform);
    Directions used;
    size_t next = 0;
    // A strong value of a weak leaf was converted to on the way, and so is its cotangent on the way
    // back; the cotangent of a weak value stays what it is.
    bool are_weak = true;
    std::vector<bool> is_argument;  // per cotangent that is used
    for (size_t i = 0; i < f.values.size(); ++i) {
      if (!f.values[i].has_tangent()) continue;
      if (f.has_tangent[i]) {
        const Operand& x = used.operands.emplace_back(cotangents.operands[next]);
        is_argument.push_back(f.values[i].is_argument);
        are_weak = are_weak && (x.weak || !f.values[i].weak);
      }
      ++next;
    }
    append_cells(f.cells, f.out_mask, used.owned, used.operands);
    is_argument.resize(used.operands.size(), false);
    std::vector<bool> weak(f.cells.size(), false);
    Mask inexact;
    for (const Slot& leaf : f.leaves) {
      inexact.push_back(leaf.has_tangent());
      if (inexact.back()) weak.push_back(leaf.weak && are_weak);
    }
    GraphRef graph = f.pull();
    std::vector<Operand> operands = f.operands(used);
    Objects results = call_graph(graph, operands, weak);
    // The cotangent of an argument that is a value, and nothing else, is that of the value.
    std::vector<bool> as_came;
    for (Value v : graph->outputs()) {
      bool is_given = !v.is_literal() && v.id >= f.residuals.size() && v.id < operands.size();
      as_came.push_back(is_given && is_argument[v.id - f.residuals.size()]);
    }
    keep_inputs(*graph, operands, results, as_came);
    write_back(f.cells, f.out_mask, results);
    for (size_t i = 0; i < f.splits.size(); ++i) results[i] = split_like(results[i], f.splits[i]);
    std::vector<PyObject*> found;
    for (const Ref& r : results) found.push_back(r.get());
    return assemble(f.trees, inexact, found,
                    [&](size_t i) { return zero_tangent(f.leaves[i].type); })
        .release();
  });
}

std::unique_ptr<Linear> linear_at(const Point& point, const Function& f, const char* transform) {
  auto out = std::make_unique<Linear>();
  out->function = Ref::borrow(f.object);
  out->transform = transform;
  out->trees = point.trees;
  out->leaves = point.leaf_slots();
  out->value = point.value;
  out->values = point.value_slots();
  return out;
}

// linearize(function, name, primals, describe, has_aux, is_vjp) -> (value, Linear, aux); aux is
// None without has_aux.
PyObject* linearize_function(PyObject*, PyObject* tuple) {
  return guard_with_rules([&]() -> PyObject* {
    Function f{};
    PyObject* primals;
    int has_aux, is_vjp;
    if (!PyArg_ParseTuple(tuple, "OUO!Opp", &f.object, &f.name, &PyTuple_Type, &primals,
                          &f.describe, &has_aux, &is_vjp))
      throw PythonError{};
    f.has_aux = has_aux;
    CallArguments arguments = all_arguments(primals);
    Point point = differentiable_point(arguments, f);
    record_at(point, f, arguments);

    std::unique_ptr<Linear> linear = linear_at(point, f, is_vjp ? "vjp" : "linearize");
    Mask mask = point.mask(), values(linear->values.size(), true);
    if (is_vjp) linear->cells = backward_cells(point, mask);
    values.resize(point.recorded.graph->outputs().size(), false);
    for (const BackwardCell& c : linear->cells) values[c.output] = true;
    linear->linearized.emplace(point.recorded.graph, mask, values);
    const Linearized& made = *linear->linearized;
    linear->out_mask = made.out_mask();
    check_cells(point, f, made.out_mask());
    if (is_vjp) {
      for (const Operand& x : point.inputs) linear->splits.push_back(split_of_cotangents(x));
      if (has_rules(point.recorded.graph)) linear->again = Ref::borrow(tuple);
    }
    std::vector<Operand> operands = point.graph_operands();
    Objects results = call_graph(made.forward(), operands, point.recorded.weak);
    point.write_cells(results);
    linear->residuals = made.kept(operands, results);
    const Mask& has_tangent = made.out_mask();
    linear->has_tangent = Mask(std::span(has_tangent).first(linear->values.size()));
    point.keep_given(*made.forward(), operands, std::span(results).first(point.returned.size()),
                     !is_vjp);
    Ref value = point.value_of(results), aux = point.aux_of(results);
    return PyTuple_Pack(3, value.get(), make_object(std::move(linear)).get(), aux.get());
  });
}

// linear_transpose(function, name, primals, describe) -> Linear: of the function, which is linear
// itself; of the primals only the types matter, and over which axes of a mesh they vary.
PyObject* linear_transpose(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    PyObject* primals;
    if (!PyArg_ParseTuple(tuple, "OUO!O", &f.object, &f.name, &PyTuple_Type, &primals, &f.describe))
      throw PythonError{};
    CallArguments arguments = all_arguments(primals);
    Point point = differentiable_point(arguments, f);
    bool has_floats = true;
    for (size_t i = 0; i < point.leaves.size(); ++i) {
      TypeRef type = point.leaves.operands[i].type;
      if (is_bool(type->dtype()))
        raise_error("DTypeError", "linear_transpose expected numbers as arguments; got ", type,
                    " for ", readable(describe_leaf(f, i).get()));
      if (i && is_inexact(type->dtype()) != has_floats)
        raise_error("DTypeError", "linear_transpose expected ", has_floats ? "floats" : "integers",
                    ", as the first argument has them; got ", type, " for ",
                    readable(describe_leaf(f, i).get()));
      has_floats = is_inexact(type->dtype());
      point.chosen[i] = true;
    }
    record_at(point, f, arguments);
    if (!point.recorded.written.empty())
      raise_error("RefError", "linear_transpose expected '", readable(f.name),
                  "' to write to no ref of outside; got one to ",
                  describe_cell(as_cell(point.recorded.written[0].get())));
    std::unique_ptr<Linear> linear = linear_at(point, f, "linear_transpose");
    linear->given = point.recorded.graph;
    linear->residuals = point.recorded.captures;
    for (Slot& leaf : linear->leaves) leaf.is_linear = true;
    for (Slot& value : linear->values) {
      if (is_bool(value.type->dtype()))
        raise_error("DTypeError", "linear_transpose expected numbers as results of '",
                    readable(f.name), "'; got ", value.type);
      if (is_inexact(value.type->dtype()) != has_floats)
        raise_error("DTypeError", "linear_transpose expected '", readable(f.name), "' to map ",
                    has_floats ? "floats to floats" : "integers to integers", "; got ", value.type);
      value.is_linear = true;
      linear->has_tangent.push_back(true);
    }
    linear->pull();             // what is not linear is found here, and not at the first call
    if (are_varying_known()) {  // the transpose is the derivative backwards, at any point
      linear->linearized.emplace(linear->given, point.mask(), Mask(linear->values.size(), true));
      linear->has_tangent = linear->linearized->out_mask();
      linear->residuals.clear();
      for (const Operand& x : point.graph_operands())
        linear->residuals.push_back(Ref::borrow(x.object));
    }
    return make_object(std::move(linear)).release();
  });
}

PyObject* residuals_of(PyObject* self, PyObject*) {
  return guard([&]() -> PyObject* { return to_list(Objects(linear_of(self).residuals)); });
}

// with_residuals(list) -> the same function, of another point.
PyObject* with_residuals(PyObject* self, PyObject* residuals) {
  return guard([&]() -> PyObject* {
    list_argument(residuals, "with_residuals", "the residuals");
    auto linear = std::make_unique<Linear>(linear_of(self));
    linear->residuals.clear();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(residuals); ++i)
      linear->residuals.push_back(Ref::borrow(PyList_GET_ITEM(residuals, i)));
    return make_object(std::move(linear)).release();
  });
}

PyObject* in_tree_of(PyObject* self, PyObject*) {
  return guard([&] { return definition_of_call(linear_of(self).trees).release(); });
}
PyObject* out_tree_of(PyObject* self, PyObject*) {
  return guard([&] { return definition_of(linear_of(self).value).release(); });
}

PyMethodDef methods[] = {{"residuals", residuals_of, METH_NOARGS, "Arrays of the point."},
                         {"with_residuals", with_residuals, METH_O,
                          "with_residuals(list): the same function, of another point."},
                         {"in_tree", in_tree_of, METH_NOARGS, "Of the arguments."},
                         {"out_tree", out_tree_of, METH_NOARGS, "Of the value."},
                         {"push", push, METH_O, "push(tangents) -> tangent of the value."},
                         {"pull", pull, METH_O, "pull(cotangent) -> cotangents, a tuple."},
                         {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {
    {"linearize", linearize_function, METH_VARARGS,
     "linearize(function, name, primals, describe, has_aux, is_vjp) -> (value, Linear, aux)."},
    {"linear_transpose", linear_transpose, METH_VARARGS,
     "linear_transpose(function, name, primals, describe) -> Linear."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_linear(PyObject* module) {
  linear_type = ObjectType<LinearObject>::make(
      "weft._core.Linear", Py_TPFLAGS_DISALLOW_INSTANTIATION,
      {{Py_tp_methods, methods},
       {Py_tp_doc,
        const_cast<char*>("A linear function, from linearize, vjp or linear_transpose.")}});
  check(PyModule_AddObjectRef(module, "Linear", reinterpret_cast<PyObject*>(linear_type)));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace weft::py
