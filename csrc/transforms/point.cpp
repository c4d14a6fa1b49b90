// The function is called with tracers in the places of leaves; what it returns is taken apart.

#include "transforms/point.h"

#include <algorithm>

#include "binding/bind.h"
#include "conversions/dtypes.h"
#include "references/hooks.h"
#include "tracing/cell.h"

namespace weft::py {
namespace {

// Calls the function with tracers in the places of the inputs.
Ref call(const Function& f, const CallArguments& arguments, const Point& point, PyObject* tracers) {
  std::span inputs(PySequence_Fast_ITEMS(tracers), point.inputs.size());
  Ref selected = assemble(point.trees, point.chosen, inputs,
                          [&](size_t i) { return point.leaves.objects[i]; });
  std::vector<PyObject*> args(
      PySequence_Fast_ITEMS(arguments.args),
      PySequence_Fast_ITEMS(arguments.args) + PyTuple_GET_SIZE(arguments.args));
  for (size_t i = 0; i < arguments.positions.size(); ++i)
    args[static_cast<size_t>(arguments.positions[i])] =
        PyTuple_GET_ITEM(selected.get(), static_cast<Py_ssize_t>(i));
  // Mapped keyword arguments come last.
  Ref mapped;
  PyObject* kwargs = arguments.kwargs;
  if (point.trees.size() > arguments.positions.size()) {
    mapped = Ref::borrow(PyTuple_GET_ITEM(selected.get(), PyTuple_GET_SIZE(selected.get()) - 1));
    kwargs = mapped.get();
  }
  return Ref::checked(PyObject_VectorcallDict(f.object, args.data(), args.size(), kwargs));
}

// The leaves of a function's result; fills in their trees.
Leaves take_apart(const Function& f, const Ref& result, Point& point) {
  Leaves leaves;
  if (f.has_aux) {
    bool is_pair = (PyTuple_Check(result.get()) || PyList_Check(result.get())) &&
                   PySequence_Fast_GET_SIZE(result.get()) == 2;
    if (!is_pair) reject(hooks.reject_aux, {result.get(), f.name});
    Ref value = Ref::borrow(PySequence_Fast_GET_ITEM(result.get(), 0));
    Ref aux = Ref::borrow(PySequence_Fast_GET_ITEM(result.get(), 1));
    point.value = flatten_tree(value.get(), leaves);
    point.aux = flatten_tree(aux.get(), leaves);
  } else {
    point.value = flatten_tree(result.get(), leaves);
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    OperandKind kind = leaves.operands[i].kind;
    bool is_array = kind == OperandKind::kArray || kind == OperandKind::kTracer;
    point.returned.push_back(is_array ? Ref() : leaves.objects[i]);
    if (is_array || i < point.value.num_leaves) continue;
    leaves.objects[i] = Ref::borrow(Py_False);
    leaves.operands[i] = classify(Py_False);
  }
  for (size_t i = 0; i < point.value.num_leaves; ++i) {
    if (leaves.operands[i].kind != OperandKind::kInvalid) continue;
    Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), result.get()));
    Ref number = Ref::checked(PyLong_FromSize_t(i));
    Ref where = Ref::checked(PyObject_CallFunctionObjArgs(hooks.describe_output.get(), f.object,
                                                          PyTuple_GET_ITEM(flat.get(), 1),
                                                          number.get(), nullptr));
    reject(hooks.reject_leaf, {leaves.objects[i].get(), where.get()});
  }
  return leaves;
}

std::vector<PyObject*> borrowed(std::span<const Ref> objects) {
  std::vector<PyObject*> out;
  for (const Ref& o : objects) out.push_back(o.get());
  return out;
}

// What was recorded of the trail of a cell that stood for another is of the trail of that one.
void replace_trail(Point& point, CellObject* trail, CellObject* cell) {
  PyObject* own[] = {reinterpret_cast<PyObject*>(cell)};
  trail->leaf = 0;
  CellObject* outer = cell_at_call(trail, own);
  for (Ref& capture : point.recorded.captures)
    if (capture.get() == trail->value.get()) capture = cell_value(outer);
  for (Ref& written : point.recorded.written)
    if (as_cell(written.get()) == trail) written = Ref::borrow(reinterpret_cast<PyObject*>(outer));
}

}  // namespace

CallArguments all_arguments(PyObject* args) {
  CallArguments out{args, nullptr, {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) out.positions.push_back(i);
  return out;
}

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

Mask Point::mask() const {
  Mask out(recorded.graph->num_inputs(), true);
  std::fill_n(out.begin(), recorded.captures.size(), false);
  return out;
}

std::vector<Operand> Point::graph_operands() const {
  std::vector<Operand> out;
  for (const Ref& capture : recorded.captures) out.push_back(classify(capture.get()));
  out.insert(out.end(), inputs.begin(), inputs.end());
  return out;
}

std::vector<Slot> Point::leaf_slots() const {
  std::vector<Slot> out;
  for (const Operand& x : leaves.operands) out.push_back({x.type, x.weak});
  return out;
}

std::vector<Slot> Point::value_slots() const {
  std::vector<Slot> out;
  auto types = recorded.graph->output_types();
  for (size_t i = 0; i < value.num_leaves; ++i)
    out.push_back({types[i], recorded.weak[i], false, recorded.as_came[i]});
  return out;
}

void Point::keep_given(const Graph& graph, std::span<const Operand> xs, std::span<Ref> results,
                       bool wide) const {
  keep_inputs(graph, xs, results, recorded.as_came, wide);
  for (size_t i = 0; i < returned.size(); ++i)
    if (returned[i] &&
        (wide || i >= value.num_leaves || has_own_dtype(classify(returned[i].get()))))
      results[i] = returned[i];
}

Ref Point::value_of(std::span<const Ref> results) const {
  return unflatten(value, borrowed(results.first(value.num_leaves)));
}

Ref Point::aux_of(std::span<const Ref> results) const {
  if (!aux) return Ref::borrow(Py_None);
  return unflatten(*aux, borrowed(results.subspan(value.num_leaves, aux->num_leaves)));
}

void Point::write_cells(std::span<const Ref> results) const {
  size_t next = value.num_leaves + (aux ? aux->num_leaves : 0);
  for (size_t leaf : written) set_cell(as_cell(leaves.objects[leaf].get()), results[next++]);
  recorded.write(results.subspan(next, recorded.written.size()));
}

Point point_at(const CallArguments& arguments) {
  Point point;
  for (Py_ssize_t i : arguments.positions)
    point.trees.push_back(flatten_tree(PyTuple_GET_ITEM(arguments.args, i), point.leaves));
  return point;
}

Ref describe_leaf(const Function& f, size_t i) {
  Ref number = Ref::checked(PyLong_FromSize_t(i));
  return Ref::checked(PyObject_CallOneArg(f.describe, number.get()));
}

void read_cells(Point& point, const Function& f) {
  std::vector<PyObject*> cells;
  std::vector<size_t> at;
  for (size_t i = 0; i < point.leaves.size(); ++i) {
    PyObject* leaf = point.leaves.objects[i].get();
    if (!is_cell(leaf)) continue;
    point.cell_values.push_back(cell_value(as_cell(leaf)));
    point.leaves.operands[i] = classify(point.cell_values.back().get());
    cells.push_back(leaf);
    at.push_back(i);
  }
  check_aliases(cells, [&](size_t i) { return readable(describe_leaf(f, at[i]).get()); });
}

void check_cells(const Point& point, const Function& f, const Mask& out_mask) {
  size_t first = point.recorded.num_results();
  for (size_t i = 0; i < point.recorded.written.size(); ++i)
    if (out_mask[first + i] && !as_cell(point.recorded.written[i].get())->is_trail)
      raise_error("RefError", "expected '", readable(f.name),
                  "' to write to refs of outside only what no derivative goes through; got one to ",
                  describe_cell(as_cell(point.recorded.written[i].get())),
                  "\n  Write weft.lax.stop_gradient(value), or return the value.");
}

std::vector<BackwardCell> backward_cells(const Point& point, Mask& mask) {
  std::vector<BackwardCell> out;
  const Recording& r = point.recorded;
  for (size_t i = 0; i < r.written.size(); ++i) {
    CellObject* trail = as_cell(r.written[i].get());
    if (!trail->is_trail || !trail->owner) continue;
    Ref before = cell_value(trail);
    for (size_t k = 0; k < r.captures.size(); ++k)
      if (r.captures[k].get() == before.get())
        out.push_back(
            {Ref::borrow(reinterpret_cast<PyObject*>(trail->owner)), k, r.num_results() + i});
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.input < b.input; });
  for (const BackwardCell& c : out) mask[c.input] = true;
  return out;
}

void append_cells(std::span<const BackwardCell> cells, const Mask& out_mask,
                  std::vector<Ref>& owned, std::vector<Operand>& operands) {
  std::vector<BackwardCell> ordered(cells.begin(), cells.end());
  std::sort(ordered.begin(), ordered.end(), [](auto& a, auto& b) { return a.output < b.output; });
  for (const BackwardCell& c : ordered) {
    if (!out_mask[c.output]) continue;
    owned.push_back(cell_value(as_cell(c.cell.get())));
    operands.push_back(classify(owned.back().get()));
  }
}

void write_back(std::span<const BackwardCell> cells, const Mask& out_mask,
                std::vector<Ref>& results) {
  for (size_t i = 0; i < cells.size(); ++i) {
    CellObject* cell = as_cell(cells[i].cell.get());
    if (out_mask[cells[i].output])
      set_cell(cell, astype(classify(results[i].get()), cell->type->dtype(), cell->weak));
  }
  results.erase(results.begin(), results.begin() + static_cast<ptrdiff_t>(cells.size()));
}

void check_leaf(const Point& point, const Function& f, size_t i) {
  if (point.leaves.operands[i].kind == OperandKind::kInvalid)
    reject(hooks.reject_leaf, {point.leaves.objects[i].get(), describe_leaf(f, i).get()});
}

void check_leaves(const Point& point, const Function& f) {
  for (size_t i = 0; i < point.leaves.size(); ++i) check_leaf(point, f, i);
}

Point differentiable_point(const CallArguments& arguments, const Function& f) {
  Point point = point_at(arguments);
  point.is_differentiated = true;
  check_leaves(point, f);
  for (const Operand& x : point.leaves.operands)
    point.chosen.push_back(is_inexact(x.type->dtype()));
  return point;
}

void record_at(Point& point, const Function& f, const CallArguments& arguments,
               std::span<const std::optional<int64_t>> axes, std::string_view fixed) {
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < point.leaves.size(); ++i) {
    if (!point.chosen[i]) continue;
    point.inputs.push_back(point.leaves.operands[i]);
    numbers.push_back(static_cast<uint32_t>(i));
  }
  // Cells take the places of the tracers of what they hold.
  std::vector<std::pair<size_t, Ref>> cells;
  auto recorded = [&](PyObject* tracers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      PyObject* given = point.leaves.objects[numbers[i]].get();
      if (!is_cell(given)) continue;
      auto at = static_cast<Py_ssize_t>(i);
      Ref cell =
          make_cell(Ref::borrow(PyList_GET_ITEM(tracers, at)), true, as_cell(given)->no_grad);
      check(PyList_SetItem(tracers, at, Py_NewRef(cell.get())));
      cells.emplace_back(numbers[i], std::move(cell));
    }
    std::vector<Ref> results = take_apart(f, call(f, arguments, point, tracers), point).objects;
    for (auto& [leaf, cell] : cells) {
      if (!as_cell(cell.get())->written) continue;
      point.written.push_back(leaf);
      results.push_back(as_cell(cell.get())->value);
    }
    return results;
  };
  point.recorded = record(recorded, point.inputs, axes, readable(f.name), f.describe, numbers,
                          fixed, point.is_differentiated);
  for (auto& [leaf, cell] : cells)
    if (const Ref& trail = as_cell(cell.get())->trail)
      replace_trail(point, as_cell(trail.get()), as_cell(point.leaves.objects[leaf].get()));
}

Ref assemble(std::span<const Tree> trees, const Mask& chosen, std::span<PyObject* const> found,
             FunctionRef<Ref(size_t)> other) {
  std::vector<Ref> owned;
  std::vector<PyObject*> leaves;
  auto next = found.begin();
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) owned.push_back(other(i));
    leaves.push_back(chosen[i] ? *next++ : owned.back().get());
  }
  Ref tuple = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(trees.size())));
  std::span<PyObject* const> rest = leaves;
  for (size_t i = 0; i < trees.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     unflatten(trees[i], rest.first(trees[i].num_leaves)).release());
    rest = rest.subspan(trees[i].num_leaves);
  }
  return tuple;
}

Directions directions(std::span<const Slot> slots, const Leaves& given,
                      FunctionRef<Ref(size_t)> describe, const char* transform) {
  Directions out;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    const Operand& t = given.operands[i];
    DType dtype = slot.type->dtype();
    bool fits = slot.has_tangent() && t.kind != OperandKind::kInvalid &&
                t.type->shape() == slot.type->shape() && t.type->dtype() == dtype;
    if (!fits) {
      Ref shape = to_tuple(slot.type->shape());
      Ref what = Ref::checked(PyUnicode_FromString(transform));
      Ref::checked(PyObject_CallFunctionObjArgs(hooks.check_tangent.get(), shape.get(),
                                                numpy_dtype(dtype), given.objects[i].get(),
                                                describe(i).get(), what.get(), nullptr));
    }
    if (!slot.has_tangent()) continue;
    out.owned.push_back(fits ? Ref::borrow(t.object) : astype(t, dtype, false));
    out.operands.push_back(classify(out.owned.back().get()));
  }
  return out;
}

bool Directions::are_weak() const {
  return std::all_of(operands.begin(), operands.end(), [](const Operand& x) { return x.weak; });
}

void keep_inputs(const Graph& graph, std::span<const Operand> xs, std::span<Ref> results,
                 const std::vector<bool>& as_came, bool wide) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!as_came[i]) continue;
    Value v = graph.outputs()[i];
    if (v.is_literal() || v.id >= xs.size()) continue;
    const Operand& x = xs[v.id];
    bool is_host = x.kind == OperandKind::kScalar || x.kind == OperandKind::kNumpy;
    if (is_host && (wide || has_own_dtype(x))) results[i] = Ref::borrow(x.object);
  }
}

Directions tangents_of(std::span<const Tree> trees, std::span<const Slot> slots, PyObject* tuple,
                       FunctionRef<Ref(size_t)> describe, const char* transform) {
  Leaves given;
  bool same = static_cast<size_t>(PyTuple_GET_SIZE(tuple)) == trees.size();
  for (size_t i = 0; same && i < trees.size(); ++i) {
    PyObject* tangent = PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i));
    same = same_tree(trees[i], flatten_tree(tangent, given));
  }
  if (!same) {
    Leaves leaves;
    std::vector<Tree> others;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
      others.push_back(flatten_tree(PyTuple_GET_ITEM(tuple, i), leaves));
    reject_structure(definition_of(trees), definition_of(others), transform, "tangents");
  }
  return directions(slots, given, describe, transform);
}

void reject_structure(const Ref& expected, const Ref& given, const char* transform,
                      const char* what) {
  Ref who = Ref::checked(PyUnicode_FromString(transform));
  Ref names = Ref::checked(PyUnicode_FromString(what));
  reject(hooks.reject_structure, {expected.get(), given.get(), who.get(), names.get()});
}

Ref zero_tangent(TypeRef type) {
  Ref shape = to_tuple(type->shape());
  return Ref::checked(PyObject_CallFunctionObjArgs(hooks.zero_tangent.get(), shape.get(),
                                                   numpy_dtype(type->dtype()), nullptr));
}

}  // namespace weft::py
