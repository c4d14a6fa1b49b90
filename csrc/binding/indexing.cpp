// Basic indexing. An index is parsed into a plan, one entry per axis of x or new axis. While
// tracing, static parts become a `slice`; eagerly, positions and starts of contiguous slices are
// operands of the compiled program, so that x[0], x[1], ... share one.

#include "binding/indexing.h"

#include <algorithm>

#include "arrays/array.h"
#include "binding/bind.h"
#include "references/hooks.h"
#include "tracing/trace.h"
#include "weft/checked.h"

namespace weft::py {
namespace {

enum class Part : int64_t { kFull, kPosition, kTraced, kSlice, kNewAxis };

struct Entry {
  Part part;
  int64_t start = 0;  // kPosition: the position; kSlice: first element taken, in order of the axis
  int64_t size = 1;   // kSlice: number of elements
  int64_t step = 1;   // kSlice: distance, at least 1
  bool reversed = false;
};

struct Plan {
  SmallVector<Entry, 6> entries;
  std::vector<Operand> traced;  // index operands, in order of the kTraced entries
};

// The op names used below.
Values op(TraceContext& c, const char* name, std::span<const Value> xs,
          std::initializer_list<NamedAttr> attrs) {
  const OpDef& def = registry().get(name);
  return record(c, def, xs, AttrRecord::make(def.name, def.attrs, attrs));
}

bool is_basic(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis || PySlice_Check(item)) return true;
  if (PyBool_Check(item)) return false;
  if (PyLong_Check(item) || is_symbolic_dim(item)) return true;
  if (PyList_Check(item) || PyTuple_Check(item)) return false;
  Operand x = classify(item);
  return x.kind != OperandKind::kInvalid && x.type->rank() == 0 && is_integer(x.type->dtype());
}

bool has_symbolic_part(PyObject* slice) {
  auto* s = reinterpret_cast<PySliceObject*>(slice);
  return is_symbolic_dim(s->start) || is_symbolic_dim(s->stop);
}

// A part of a slice as a position from `low` to `high`; negative ones count from the end.
int64_t bounded(PyObject* part, int64_t otherwise, int64_t dim, int64_t low, int64_t high) {
  if (part == Py_None) return otherwise;
  if (!is_index(part)) {
    PyErr_SetString(PyExc_TypeError,
                    "slice indices must be integers or None or have an __index__ method");
    throw PythonError{};
  }
  int64_t i = to_int(part);
  if (!dim_at_least(i, 0)) i = dim_add(i, dim);
  return dim_max(low, dim_min(i, high));
}

// Where the axis or a part of the slice is a symbolic dimension.
Entry symbolic_slice(PyObject* slice, int64_t dim) {
  auto* s = reinterpret_cast<PySliceObject*>(slice);
  int64_t step = s->step == Py_None ? 1 : to_int(s->step);
  if (step == 0) {
    PyErr_SetString(PyExc_ValueError, "slice step cannot be zero");
    throw PythonError{};
  }
  bool reversed = !dim_at_least(step, 0);
  int64_t first = reversed ? -1 : 0, last = reversed ? dim_sub(dim, 1) : dim;
  int64_t start = bounded(s->start, reversed ? last : first, dim, first, last);
  int64_t stop = bounded(s->stop, reversed ? first : last, dim, first, last);
  if (reversed) step = dim_sub(0, step);
  int64_t length = dim_max(0, reversed ? dim_sub(start, stop) : dim_sub(stop, start));
  int64_t n = divide_up(length, step);
  if (!reversed && step == 1 && n == dim) return {Part::kFull, 0, dim, 1, false};
  if (n == 0) return {Part::kSlice, 0, 0, 1, false};
  if (reversed) start = dim_sub(start, dim_mul(dim_sub(n, 1), step));
  // An empty slice may stand behind the end, or before the beginning.
  start = reversed ? dim_max(start, 0) : dim_min(start, dim_sub(dim, length));
  return {Part::kSlice, start, n, n == 1 ? 1 : step, reversed && n != 1};
}

Entry slice_entry(PyObject* slice, int64_t dim) {
  if (is_symbolic(dim) || has_symbolic_part(slice)) return symbolic_slice(slice, dim);
  Py_ssize_t start, stop, step;
  check(PySlice_Unpack(slice, &start, &stop, &step));
  Py_ssize_t n = PySlice_AdjustIndices(dim, &start, &stop, step);
  if (n == dim && step == 1) return {Part::kFull, 0, dim, 1, false};
  if (n == 0) return {Part::kSlice, 0, 0, 1, false};
  if (step > 0) return {Part::kSlice, start, n, n == 1 ? 1 : step, false};
  return {Part::kSlice, start + (n - 1) * step, n, n == 1 ? 1 : -step, n > 1};
}

int64_t position(int64_t i, int64_t dim, TypeRef type, size_t axis) {
  if (dim == 0)
    fail(ErrorKind::kIndex, "[getitem] expected an axis with elements; got index ", i,
         " into axis ", axis, " of ", type);
  if (is_symbolic(i) || is_symbolic(dim)) {
    if (!dim_at_least(i, 0)) i = dim_add(i, dim);
    return dim_max(0, dim_min(i, dim_sub(dim, 1)));
  }
  if (i < 0) i += dim;
  return std::clamp<int64_t>(i, 0, dim - 1);  // out-of-bounds positions clamp, as documented
}

// Whether a position is an int32 out of bounds.
bool is_outside(int64_t i, int64_t dim) {
  if (is_symbolic(dim)) return false;
  return (i < -dim || i >= dim) && i >= INT32_MIN && i <= INT32_MAX;
}

// False: not a basic index.
bool make_plan(TypeRef type, PyObject* index, Plan& plan) {
  bool tuple = PyTuple_Check(index);
  Py_ssize_t n = tuple ? PyTuple_GET_SIZE(index) : 1;
  auto at = [&](Py_ssize_t i) { return tuple ? PyTuple_GET_ITEM(index, i) : index; };
  int64_t consumed = 0;
  int ellipses = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is_basic(at(i))) return false;
    ellipses += at(i) == Py_Ellipsis;
    consumed += at(i) != Py_None && at(i) != Py_Ellipsis;
  }
  if (ellipses > 1) fail(ErrorKind::kIndex, "[getitem] expected at most one '...'; got ", ellipses);
  if (consumed > type->rank())
    fail(ErrorKind::kIndex, "[getitem] expected at most ", type->rank(), " indices into ", type,
         "; got ", consumed);
  size_t axis = 0;
  auto full = [&](int64_t count) {
    for (; count > 0; --count)
      plan.entries.push_back({Part::kFull, 0, type->shape()[axis++], 1, false});
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = at(i);
    if (item == Py_None) {
      plan.entries.push_back({Part::kNewAxis});
    } else if (item == Py_Ellipsis) {
      full(type->rank() - consumed);
    } else if (PySlice_Check(item)) {
      plan.entries.push_back(slice_entry(item, type->shape()[axis++]));
    } else {
      int64_t dim = type->shape()[axis];
      if (is_symbolic_dim(item)) {
        plan.entries.push_back({Part::kPosition, position(to_int(item), dim, type, axis)});
        ++axis;
        continue;
      }
      Operand x = classify(item);
      check_python_int(x);
      // One out of bounds is computed with, so that checkify finds it.
      if (x.kind == OperandKind::kScalar && (dim == 0 || !is_outside(to_int(item), dim))) {
        plan.entries.push_back({Part::kPosition, position(to_int(item), dim, type, axis)});
      } else {
        position(0, dim, type, axis);
        plan.entries.push_back({Part::kTraced});
        plan.traced.push_back(x);
      }
      ++axis;
    }
  }
  full(type->rank() - static_cast<int64_t>(axis));
  return true;
}

// Negative positions count from the end, in a dtype that holds the size of the axis.
Value wrapped(TraceContext& c, const Operand& index, int64_t dim) {
  DType d = index.type->dtype();
  Value v = value_in(c, index, d);
  if (info(d).bits < 32) {
    d = dim > INT32_MAX ? DType::kI64 : DType::kI32;
    v = op(c, "convert_element_type", {&v, 1}, {{"new_dtype", d}, {"weak_type", false}})[0];
  }
  if (!is_signed_int(index.type->dtype())) return v;
  Value zero = c.builder.literal(make_literal(d, int64_t{0}));
  Value size = size_value(c.builder, dim, d).value;
  Value negative = op(c, "lt", std::initializer_list<Value>{v, zero}, {})[0];
  Value shifted = op(c, "add", std::initializer_list<Value>{v, size}, {})[0];
  return op(c, "select_n", std::initializer_list<Value>{negative, v, shifted}, {})[0];
}

// Drops indexed axes, reverses, and adds new ones.
Value reshape_result(TraceContext& c, Value v, const Plan& plan) {
  Dims drop, reverse, shape, kept;
  int64_t axis = 0, out_axis = 0;
  for (const Entry& e : plan.entries) {
    if (e.part == Part::kNewAxis) {
      shape.push_back(1);
      ++out_axis;
      continue;
    }
    if (e.part == Part::kPosition || e.part == Part::kTraced) {
      drop.push_back(axis++);
      continue;
    }
    if (e.reversed) reverse.push_back(axis);
    shape.push_back(e.size);
    kept.push_back(out_axis++);
    ++axis;
  }
  if (!reverse.empty()) v = op(c, "rev", {&v, 1}, {{"dimensions", reverse}})[0];
  if (!drop.empty()) v = op(c, "squeeze", {&v, 1}, {{"dimensions", drop}})[0];
  if (shape.size() > kept.size())
    v = op(c, "broadcast_in_dim", {&v, 1}, {{"shape", shape}, {"broadcast_dimensions", kept}})[0];
  return v;
}

// One `slice` for everything static.
Value static_slice(TraceContext& c, Value v, const Plan& plan) {
  Dims start, limit, strides;
  bool any = false, strided = false;
  for (const Entry& e : plan.entries) {
    if (e.part == Part::kNewAxis) continue;
    int64_t dim = c.builder.type(v)->shape()[start.size()];
    bool taken = e.part == Part::kSlice || e.part == Part::kPosition;
    start.push_back(taken ? e.start : 0);
    int64_t end = e.size ? dim_add(e.start, dim_add(dim_mul(dim_sub(e.size, 1), e.step), 1)) : 0;
    limit.push_back(taken ? (e.size ? end : e.start) : dim);
    strides.push_back(taken ? e.step : 1);
    strided |= taken && e.step != 1;
    any |= taken && !(e.part == Part::kPosition && dim == 1);
  }
  if (!any) return v;
  return op(c, "slice", {&v, 1},
            {{"start_indices", start},
             {"limit_indices", limit},
             {"strides", strided ? Attr(strides) : Attr()}})[0];
}

// `starts` holds one scalar per axis of x (none: 0) for the axes that are positions or slices.
Value dynamic_slice(TraceContext& c, Value v, std::span<const Value> starts, const Dims& sizes) {
  DType d = DType::kI32;
  for (Value s : starts)
    if (s) d = c.builder.type(s)->dtype();
  Values operands{v};
  for (Value s : starts) {
    if (s && c.builder.type(s)->dtype() != d)
      s = op(c, "convert_element_type", {&s, 1}, {{"new_dtype", d}, {"weak_type", false}})[0];
    operands.push_back(s ? s : c.builder.literal(make_literal(d, int64_t{0})));
  }
  return op(c, "dynamic_slice", operands, {{"slice_sizes", sizes}})[0];
}

// Strided and empty slices stay static; other starts and positions may be operands.
bool is_operand(const Entry& e) {
  return e.part == Part::kPosition || (e.part == Part::kSlice && e.step == 1 && e.size > 0);
}

// What the plan takes at computed positions, with its other positions and starts, which `start_of`
// gives as scalars: one `dynamic_slice` of all of the array, so that checkify tells of its shape.
// What is left of the plan is static.
template <class StartOf>
Value take_dynamic(TraceContext& c, Value v, Plan& plan, StartOf&& start_of) {
  Values starts;
  Dims sizes;
  bool any = false;
  for (Entry& e : plan.entries) {
    if (e.part == Part::kNewAxis) continue;
    int64_t dim = c.builder.type(v)->shape()[sizes.size()];
    if (!is_operand(e) && e.part != Part::kTraced) {
      starts.push_back(Value{});
      sizes.push_back(dim);
      continue;
    }
    any = true;
    starts.push_back(start_of(e, dim));
    if (e.part == Part::kSlice) {
      sizes.push_back(e.size);
      e.part = Part::kFull;
      e.start = 0;
    } else {
      sizes.push_back(1);
      e.part = Part::kTraced;
    }
  }
  return any ? dynamic_slice(c, v, starts, sizes) : v;
}

Ref traced_getitem(const ContextRef& c, const Operand& x, Plan plan) {
  Value v = value_in(*c, x, x.type->dtype());
  if (!plan.traced.empty()) {
    size_t next = 0;
    v = take_dynamic(*c, v, plan, [&](const Entry& e, int64_t dim) {
      if (e.part == Part::kTraced) return wrapped(*c, plan.traced[next++], dim);
      return size_value(c->builder, e.start, DType::kI32).value;
    });
  }
  v = static_slice(*c, v, plan);
  v = reshape_result(*c, v, plan);
  return Ref::steal(make_tracer(c, v, x.weak));
}

Ref eager_getitem(const Operand& x, const Plan& plan) {
  static const char what = 0;
  EagerCall call{&what, nullptr, {}, {}, {}};
  std::vector<Operand> operands{x};
  std::vector<Ref> numbers;
  call.scalar_dtypes.push_back(x.type->dtype());
  size_t next = 0;
  for (const Entry& e : plan.entries) {
    auto part = static_cast<int64_t>(e.part);
    if (is_operand(e)) {
      call.extra.add({part, e.size, e.reversed});
      numbers.push_back(Ref::checked(PyLong_FromLongLong(e.start)));
      operands.push_back(classify(numbers.back().get()));
      call.scalar_dtypes.push_back(DType::kI32);
    } else if (e.part == Part::kTraced) {
      call.extra.add({part});
      operands.push_back(plan.traced[next++]);
      call.scalar_dtypes.push_back(operands.back().type->dtype());
    } else {
      call.extra.add({part, e.size, e.start, e.step, e.reversed});
    }
  }
  call.operands = operands;
  return run_for_one(call, [&](std::span<const Operand> abstract) {
    ContextRef c = innermost_staged();
    Plan rest = plan;
    size_t at = 1;
    Value v = value_in(*c, abstract[0], abstract[0].type->dtype());
    v = take_dynamic(*c, v, rest, [&](const Entry& e, int64_t dim) {
      if (e.part == Part::kTraced) return wrapped(*c, abstract[at++], dim);
      return value_in(*c, abstract[at++], DType::kI32);
    });
    v = static_slice(*c, v, rest);
    v = reshape_result(*c, v, rest);
    return Objects{Ref::steal(make_tracer(c, v, abstract[0].weak))};
  });
}

Ref run_plan(const Operand& x, const Plan& plan) {
  std::vector<Operand> all = plan.traced;
  all.push_back(x);
  ContextRef c = context_for(all);
  return c ? traced_getitem(c, x, plan) : eager_getitem(x, plan);
}

}  // namespace

Ref getitem(PyObject* object, PyObject* index) {
  Operand x = classify(object);
  Plan plan;
  if (!make_plan(x.type, index, plan)) {
    return Ref::checked(PyObject_CallFunctionObjArgs(hooks.getitem.get(), object, index, nullptr));
  }
  return run_plan(x, plan);
}

Ref slice_extent(PyObject* slice, PyObject* dim) {
  Entry e = slice_entry(slice, to_int(dim));
  int64_t last = dim_add(e.start, dim_mul(dim_sub(e.size, 1), e.step));
  int64_t extent[] = {e.reversed ? last : e.start, e.size,
                      e.reversed ? dim_sub(0, e.step) : e.step};
  return to_tuple(extent);
}

Ref item(PyObject* object, int64_t i) {
  Operand x = classify(object);
  if (x.type->rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over an array with no axes");
    throw PythonError{};
  }
  if (i < 0 || i >= x.type->dim(0)) {
    PyErr_SetString(PyExc_IndexError, "index past the end of the first axis");
    throw PythonError{};
  }
  Plan plan;
  plan.entries.push_back({Part::kPosition, i});
  for (int axis = 1; axis < x.type->rank(); ++axis)
    plan.entries.push_back({Part::kFull, 0, x.type->dim(axis), 1, false});
  return run_plan(x, plan);
}

}  // namespace weft::py
