// vmap(): axes to leaves, one size for all, and the mapped graph.

#include "transforms/batching.h"

#include "references/hooks.h"
#include "tracing/named_axes.h"
#include "transforms/deferred.h"
#include "transforms/point.h"
#include "transforms/transforms.h"
#include "weft/build.h"

namespace weft::py {
namespace {

using Axis = std::optional<int64_t>;

Ref tuple_of(std::span<const Axis> axes) {
  Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(axes.size())));
  for (size_t i = 0; i < axes.size(); ++i)
    PyTuple_SET_ITEM(
        out.get(), static_cast<Py_ssize_t>(i),
        axes[i] ? Ref::checked(PyLong_FromLongLong(*axes[i])).release() : Py_NewRef(Py_None));
  return out;
}

bool is_axis(PyObject* o) { return o == Py_None || PyLong_CheckExact(o); }
Axis to_axis(PyObject* o, const char* option) {
  if (o == Py_None) return {};
  int overflow;
  int64_t axis = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) {
    Ref text = Ref::checked(PyObject_Str(o));
    raise_error("ShapeError", option, ": axis ", utf8(text.get()), " is out of bounds");
  }
  return axis;
}

// Appends one axis per leaf of a tree; `axes` is an int or None for all, or a prefix of the tree.
// tree() makes the tree if it is needed.
void spread(PyObject* axes, size_t num_leaves, FunctionRef<Ref()> tree, const char* option,
            std::vector<Axis>& out) {
  if (is_axis(axes)) {
    out.insert(out.end(), num_leaves, to_axis(axes, option));
    return;
  }
  Ref name = Ref::checked(PyUnicode_FromString(option));
  Ref list = Ref::checked(PyObject_CallFunctionObjArgs(hooks.spread_axes.get(), axes, tree().get(),
                                                       name.get(), nullptr));
  list_argument(list.get(), option, "a list of axes");
  if (static_cast<size_t>(PyList_GET_SIZE(list.get())) != num_leaves)
    raise_error("InternalError", option, ": expected an axis per leaf");
  for (size_t i = 0; i < num_leaves; ++i)
    out.push_back(to_axis(PyList_GET_ITEM(list.get(), static_cast<Py_ssize_t>(i)), option));
}

// An axis of `rank` as one that is not negative.
Axis normal(Axis axis, int64_t rank, FunctionRef<Ref()> of, const char* option) {
  if (!axis) return axis;
  if (*axis >= -rank && *axis < rank) return *axis < 0 ? *axis + rank : *axis;
  Ref given = Ref::checked(PyLong_FromLongLong(*axis));
  Ref axes = Ref::checked(PyLong_FromLongLong(rank));
  Ref name = Ref::checked(PyUnicode_FromString(option));
  reject(hooks.reject_axis, {given.get(), axes.get(), of().get(), name.get()});
}

// The axes of the leaves of all arguments. Leaves without one may be any objects.
std::vector<Axis> argument_axes(const Point& point, const Function& f, PyObject* in_axes,
                                const CallArguments& arguments) {
  constexpr const char* kOption = "vmap in_axes";
  std::vector<Axis> out;
  size_t num_positional = arguments.positions.size();
  bool one_each = PyTuple_CheckExact(in_axes) &&
                  static_cast<size_t>(PyTuple_GET_SIZE(in_axes)) == num_positional;
  for (size_t i = 0; one_each && i < num_positional; ++i)
    one_each = is_axis(PyTuple_GET_ITEM(in_axes, static_cast<Py_ssize_t>(i)));
  if (one_each) {
    for (size_t i = 0; i < num_positional; ++i)
      out.insert(out.end(), point.trees[i].num_leaves,
                 to_axis(PyTuple_GET_ITEM(in_axes, static_cast<Py_ssize_t>(i)), kOption));
  } else {
    size_t count = 0;
    for (size_t i = 0; i < num_positional; ++i) count += point.trees[i].num_leaves;
    spread(in_axes, count, [&] { return Ref::borrow(arguments.args); }, kOption, out);
  }
  out.resize(point.leaves.size(), 0);  // keyword arguments
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i]) continue;
    check_leaf(point, f, i);
    out[i] = normal(
        out[i], point.leaves.operands[i].type->rank(), [&] { return describe_leaf(f, i); },
        kOption);
  }
  return out;
}

int64_t mapped_size(const Point& point, const Function& f, std::span<const Axis> axes,
                    PyObject* axis_size) {
  Axis size = axis_size == Py_None ? Axis() : Axis(to_int(axis_size));
  std::vector<Axis> sizes;
  bool equal = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    sizes.push_back(axes[i] ? Axis(point.leaves.operands[i].type->dim(static_cast<int>(*axes[i])))
                            : Axis());
    if (!sizes.back()) continue;
    if (!size) size = sizes.back();
    equal = equal && *size == *sizes.back();
  }
  if (!size || !equal)
    reject(hooks.reject_sizes,
           {tuple_of(axes).get(), tuple_of(sizes).get(), axis_size, f.describe});
  return *size;
}

// Where the values of a recorded function are to have the mapped axis.
BatchDims result_axes(const Point& point, PyObject* out_axes) {
  constexpr const char* kOption = "vmap out_axes";
  std::vector<Slot> slots = point.value_slots();
  std::vector<Axis> axes;
  auto tree = [&] {
    std::vector<Ref> types;
    std::vector<PyObject*> leaves;
    for (const Slot& slot : slots) {
      types.push_back(Ref::checked(PyUnicode_FromString(cat(slot.type).c_str())));
      leaves.push_back(types.back().get());
    }
    return unflatten(point.value, leaves);
  };
  spread(out_axes, slots.size(), tree, kOption, axes);
  BatchDims out;
  for (size_t i = 0; i < axes.size(); ++i) {
    auto of = [&] {
      std::string text = cat("a result ", slots[i].type, " with the mapped axis");
      return Ref::checked(PyUnicode_FromString(text.c_str()));
    };
    Axis axis = normal(axes[i], slots[i].type->rank() + 1, of, kOption);
    out.push_back(axis ? static_cast<int>(*axis) : kNotBatched);
  }
  return out;
}

// Whether checks need to know of which lane they are. Arrays that are split over explicit axes go
// the other way, on which it follows from the single ops how results are.
bool keeps_lanes(bool wanted, const Graph& graph, std::span<const Operand> operands, int64_t size) {
  if (size == 0 || !(wanted || (graph.effects() & kChecks))) return false;
  return std::none_of(operands.begin(), operands.end(), [](const Operand& x) {
    ShardingRef split = split_of(x);
    return split && !split->is_replicated();
  });
}

// The names of the axes of its first dimension, in lines.
std::string axes_of_lanes(ShardingRef lanes) {
  std::string names;
  for (int64_t axis : lanes->dim(0).axes)
    names += cat(names.empty() ? "" : "\n", lanes->mesh()->axis(axis).name);
  return names;
}

// The mapped graph as one call for every lane. `mapped` is what vmap makes for these options.
GraphRef with_lanes_kept(const GraphRef& graph, const VmapOptions& options, const Graph& mapped) {
  const OpDef& op = registry().get("mapped_call");
  std::vector<std::string> names;
  if (!options.axis_name.empty()) names.push_back(options.axis_name);
  AttrsRef attrs =
      AttrRecord::make(op.name, op.attrs,
                       {{"jaxpr", graph},
                        {"in_dims", Dims(options.in_dims.begin(), options.in_dims.end())},
                        {"axis_size", options.size},
                        {"axis_name", std::move(names)},
                        {"spmd_axis_name", options.spmd_axis_name}});
  GraphBuilder b;
  std::vector<Value> args;
  for (TypeRef type : mapped.input_types()) args.push_back(b.input(type));
  Values results = b.add(op, args, attrs);
  for (size_t i = 0; i < results.size(); ++i) {
    Val lanes{&b, results[i]};
    if (options.out_dims[i] != kNotBatched) {
      results[i] = move_axis(lanes, 0, options.out_dims[i]).value;
      continue;
    }
    Dims limit = lanes.shape();  // all lanes have it alike
    limit[0] = 1;
    results[i] = squeeze(slice(lanes, Dims(limit.size(), 0), limit), {0}).value;
  }
  return b.finish_ordered(results, args, mapped.num_consts());
}

// vmap(function, name, args, kwargs, in_axes, out_axes, axis_size, axis_name, spmd_axis_name,
//      describe, keep_lanes) -> the value. Several names of axes stand in lines of spmd_axis_name.
PyObject* vmap_function(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    Function f{};
    PyObject *args, *kwargs, *in_axes, *out_axes, *axis_size, *axis_name, *spmd_axis_name;
    int keep_lanes;
    if (!PyArg_ParseTuple(tuple, "OUO!O!OOOUUOp", &f.object, &f.name, &PyTuple_Type, &args,
                          &PyDict_Type, &kwargs, &in_axes, &out_axes, &axis_size, &axis_name,
                          &spmd_axis_name, &f.describe, &keep_lanes))
      throw PythonError{};
    CallArguments arguments = all_arguments(args);
    Point point = point_at(arguments);
    if (PyDict_GET_SIZE(kwargs)) point.trees.push_back(flatten_tree(kwargs, point.leaves));
    read_cells(point, f);
    std::vector<Axis> axes = argument_axes(point, f, in_axes, arguments);
    int64_t size = mapped_size(point, f, axes, axis_size);
    std::vector<Axis> input_axes;
    for (const Axis& axis : axes) {
      point.chosen.push_back(axis.has_value());
      if (axis) input_axes.push_back(axis);
    }
    {
      NamedAxesScope scope(with_named_axis(utf8(axis_name), size));
      record_at(point, f, arguments, input_axes);
    }

    const Recording& recorded = point.recorded;
    std::string spmd_axes(utf8(spmd_axis_name));
    if (recorded.lanes) {
      std::string own = axes_of_lanes(recorded.lanes);
      if (!spmd_axes.empty())
        raise_error("ShardingError",
                    "vmap expected no spmd_axis_name, as the mapped axis is split ",
                    "over an explicit axis; got ", spmd_axes, " and an axis split over ", own);
      spmd_axes = std::move(own);
    }
    VmapOptions options{.in_dims = BatchDims(recorded.captures.size(), kNotBatched),
                        .size = size,
                        .axis_name = std::string(utf8(axis_name)),
                        .spmd_axis_name = spmd_axes,
                        .lanes = recorded.lanes};
    for (const Axis& axis : input_axes) options.in_dims.push_back(static_cast<int>(*axis));
    options.out_dims = result_axes(point, out_axes);
    for (size_t leaf : point.written) options.out_dims.push_back(static_cast<int>(*axes[leaf]));
    GraphRef mapped = vmap_here(recorded.graph, options)->graph;
    std::vector<Operand> operands = point.graph_operands();
    if (keeps_lanes(keep_lanes, *recorded.graph, operands, size))
      mapped = with_lanes_kept(recorded.graph, options, *mapped);
    Objects results = call_graph(mapped, operands, recorded.weak);
    point.write_cells(results);
    keep_inputs(*mapped, operands, results, recorded.as_came);
    for (size_t i = 0; i < point.returned.size(); ++i)
      if (point.returned[i] && options.out_dims[i] == kNotBatched) results[i] = point.returned[i];
    return point.value_of(results).release();
  });
}

PyMethodDef functions[] = {
    {"vmap", vmap_function, METH_VARARGS,
     "vmap(function, name, args, kwargs, in_axes, out_axes, axis_size, axis_name, spmd_axis_name, "
     "describe, keep_lanes) -> value."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_batching(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
