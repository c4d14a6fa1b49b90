// Functions to graphs.

#include "graphs/recording.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <variant>

#include "graphs/graph_object.h"
#include "references/hooks.h"
#include "references/lru_table.h"
#include "tracing/cell.h"
#include "tracing/named_axes.h"
#include "tracing/operand.h"

namespace weft::py {
namespace {

// ---- One graph object per structure

// `seen` holds the pairs of graphs that were compared already.
bool same_places_in(const Graph& a, const Graph& b,
                    std::set<std::pair<const Graph*, const Graph*>>& seen) {
  if (&a == &b || !seen.emplace(&a, &b).second) return true;
  for (uint32_t i = 0; i < a.ops().size(); ++i) {
    const Op &x = a.op(i), &y = b.op(i);
    if (x.loc != y.loc) return false;
    std::vector<GraphRef> inner;
    for_each_graph(x.attrs, [&](const GraphRef& g) { inner.push_back(g); });
    size_t next = 0;
    bool same = true;
    for_each_graph(y.attrs, [&](const GraphRef& g) {
      same = same && same_places_in(*inner[next++], *g, seen);
    });
    if (!same) return false;
  }
  return true;
}

// Whether the ops of equal graphs come from the same lines, which errors of transforms name.
bool same_places(const Graph& a, const Graph& b) {
  std::set<std::pair<const Graph*, const Graph*>> seen;
  return same_places_in(a, b, seen);
}

// Functions are recorded anew at every call. Handing out the first graph of each structure (and
// place) lets the transforms, which keep their results on graphs, and the programs be found again.
GraphRef canonical(const GraphRef& graph) {
  constexpr size_t kMaxGraphs = 512;
  static auto* recent = new LruTable<GraphRef, std::monostate>("recorded_graphs", kMaxGraphs);
  GraphRef found;
  auto same = [&](const GraphRef& known) {
    if (!equal(*known, *graph) || !same_places(*known, *graph)) return false;
    found = known;
    return true;
  };
  if (recent->find(graph->structural_hash(), same)) return found;
  recent->insert(graph->structural_hash(), graph, {});
  return graph;
}

// ---- Running the function

std::shared_ptr<TraceContext> new_context(ContextKind kind, std::string_view name,
                                          PyObject* describe, size_t num_args) {
  auto context = std::make_shared<TraceContext>();
  context->kind = kind;
  context->name = std::string(name);
  if (describe != Py_None) context->describe = Ref::borrow(describe);
  context->num_args = static_cast<uint32_t>(num_args);
  begin_placements(*context);
  context->varies_unknown = are_varying_known();
  return context;
}

constexpr std::string_view kMapped =
    "a function under vmap, whose lanes would all write it (pass the ref as an argument, mapped)";

// Whether a result is one of the tracers, those of the first values, itself.
bool is_one_of(PyObject* tracers, PyObject* result) {
  if (!is_tracer(result) || as_tracer(result)->value.is_literal()) return false;
  auto i = static_cast<Py_ssize_t>(as_tracer(result)->value.id);
  return i < PyList_GET_SIZE(tracers) && PyList_GET_ITEM(tracers, i) == result;
}

// Calls the function inside the context and freezes the graph.
Recording run(const ContextRef& context, Recorded function, Ref tracers) {
  Recording out;
  std::vector<Value> outputs;
  {
    ContextScope scope(context);
    for (const Ref& result : function(tracers.get())) {
      Operand x = classify_operand(result.get(), context->name);
      context_for({&x, 1});  // raises for a tracer of a finished trace
      outputs.push_back(value_in(*context, x, x.type->dtype()));
      out.weak.push_back(x.weak);
      out.as_came.push_back(is_one_of(tracers.get(), result.get()));
    }
    for (const OuterCell& o : context->cells) {
      if (!o.written) continue;
      Operand x = classify(o.value.get());
      outputs.push_back(value_in(*context, x, x.type->dtype()));
      out.weak.push_back(x.weak);
      out.as_came.push_back(true);
      out.written.push_back(o.cell);
    }
  }
  out.graph = context->builder.finish(outputs, context->capture_values);
  out.captures = std::move(context->captures);
  tracers = Ref();
  check_leaks(context);
  retire(context);
  return out;
}

// A function of Python's as one that is recorded.
auto calling(PyObject* function, std::string_view name) {
  return [=](PyObject* tracers) {
    Ref results = Ref::checked(PyObject_CallOneArg(function, tracers));
    list_argument(results.get(), std::string(name).c_str(), "its results");
    std::vector<Ref> out;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results.get()); ++i)
      out.push_back(Ref::borrow(PyList_GET_ITEM(results.get(), i)));
    return out;
  };
}

// ---- For Python

PyObject* to_python(const Recording& r) {
  Ref graph = graph_object(r.graph);
  Ref captures = Ref::checked(PyList_New(0));
  for (const Ref& c : r.captures) check(PyList_Append(captures.get(), c.get()));
  Ref weak = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(r.weak.size())));
  for (size_t i = 0; i < r.weak.size(); ++i)
    PyTuple_SET_ITEM(weak.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(r.weak[i] ? Py_True : Py_False));
  Ref written = Ref::checked(PyList_New(0));
  for (const Ref& cell : r.written) check(PyList_Append(written.get(), cell.get()));
  return PyTuple_Pack(4, graph.get(), captures.get(), weak.get(), written.get());
}

// check_leaves(leaves, describe): raises ArgumentTypeError for a leaf that is no array or number;
// describe(i) names it.
PyObject* check_leaves(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("check_leaves", n, 2);
    classify_leaves(list_argument(args[0], "check_leaves", "the leaves"), [&](size_t i) {
      return Ref::checked(PyObject_CallFunction(args[1], "n", static_cast<Py_ssize_t>(i)));
    });
    return Py_NewRef(Py_None);
  });
}

// trace_body(function, types, name, describe, fixed) -> (graph, captures, weak, written): `types`
// holds per input anything that has a type (ShapeDtypeStruct, array, number).
PyObject* trace_body_for_python(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("trace_body", n, 5);
    PyObject* inputs = list_argument(args[1], "trace_body", "the types");
    TypeRefs types;
    std::vector<bool> weak;
    std::vector<ShardingRef> splits;
    std::vector<Ref> varies_as;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i) {
      Operand x = classify_type(PyList_GET_ITEM(inputs, i), "trace_body");
      types.push_back(x.type);
      weak.push_back(x.weak);
      splits.push_back(split_of(x));
      varies_as.push_back(Ref::borrow(PyList_GET_ITEM(inputs, i)));
    }
    return to_python(trace_body(args[0], types, weak, readable(args[2]), args[3], readable(args[4]),
                                splits, {}, std::move(varies_as)));
  });
}

// What regions() gets of a traced function.
struct Body {
  GraphRef graph;
  std::span<PyObject* const> captures;
  // Cells whose values are the last outputs; unset: the region gives no values of cells.
  std::optional<std::span<PyObject* const>> written;
};

std::span<PyObject* const> items(PyObject* list, const char* argument) {
  list_argument(list, "regions", argument);
  return {PySequence_Fast_ITEMS(list), static_cast<size_t>(PyList_GET_SIZE(list))};
}

Body body_argument(PyObject* o) {
  tuple_argument(o, "regions", "a graph");
  check_count("regions", PyTuple_GET_SIZE(o), 3);
  Body body{graph_of(PyTuple_GET_ITEM(o, 0)), items(PyTuple_GET_ITEM(o, 1), "the captures"), {}};
  if (!body.graph) raise_error("OperandError", "regions expected graphs");
  if (body.captures.size() > body.graph->num_inputs())
    raise_error("OperandError", "regions expected captures that are inputs of the graph");
  PyObject* written = PyTuple_GET_ITEM(o, 2);
  if (written != Py_None) body.written = items(written, "the refs written");
  if (body.written && body.written->size() > body.graph->outputs().size())
    raise_error("OperandError", "regions expected refs whose values are outputs of the graph");
  return body;
}

// The inputs that all regions begin with: what is captured, then a value per cell.
struct SharedInputs {
  std::unordered_map<PyObject*, size_t> places;
  TypeRefs types;
  std::vector<Ref> values;

  size_t place(PyObject* o) const {
    auto it = places.find(o);
    if (it == places.end()) raise_error("OperandError", "regions expected all refs written");
    return it->second;
  }
  void add(PyObject* o, TypeRef type) {
    if (!places.try_emplace(o, types.size()).second) return;
    types.push_back(type);
    values.push_back(capture_value(Ref::borrow(o)));
  }
};

GraphRef region(const Body& body, const SharedInputs& inputs, std::span<PyObject* const> cells) {
  GraphBuilder b;
  Values shared, args;
  for (TypeRef t : inputs.types) shared.push_back(b.input(t));
  for (PyObject* capture : body.captures) args.push_back(shared[inputs.place(capture)]);
  for (TypeRef t : body.graph->input_types().subspan(args.size())) args.push_back(b.input(t));
  Values outputs = b.inline_graph(*body.graph, args);
  if (!body.written) return b.finish(outputs);
  size_t own = outputs.size() - body.written->size();
  for (size_t i = 0; i < body.written->size(); ++i)
    shared[inputs.place((*body.written)[i])] = outputs[own + i];
  Values all;
  for (PyObject* cell : cells) all.push_back(shared[inputs.place(cell)]);
  for (size_t i = 0; i < own; ++i) all.push_back(outputs[i]);
  return b.finish(all);
}

// regions([(graph, captures, written), ...], refs) -> (graphs, captures): the graphs with one list
// of captures, as values, which are inputs like the others; those of `refs` come last. `written`
// lists the refs whose values are the last outputs of a graph. Its region gives the values of all
// `refs`, before its own results; with None it gives none.
PyObject* regions_for_python(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("regions", n, 2);
    std::vector<Body> bodies;
    for (PyObject* traced : items(args[0], "the graphs")) bodies.push_back(body_argument(traced));
    std::span<PyObject* const> cells = items(args[1], "the refs");
    SharedInputs inputs;
    for (const Body& body : bodies)
      for (size_t i = 0; i < body.captures.size(); ++i)
        if (std::find(cells.begin(), cells.end(), body.captures[i]) == cells.end())
          inputs.add(body.captures[i], body.graph->input_types()[i]);
    for (PyObject* cell : cells) inputs.add(cell, cell_argument(cell, "regions")->type);
    Ref graphs = Ref::checked(PyList_New(0)), values = Ref::checked(PyList_New(0));
    for (const Body& body : bodies)
      check(PyList_Append(graphs.get(), graph_object(region(body, inputs, cells)).get()));
    for (const Ref& value : inputs.values) check(PyList_Append(values.get(), value.get()));
    return PyTuple_Pack(2, graphs.get(), values.get());
  });
}

PyMethodDef functions[] = {
    {"trace_body",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(trace_body_for_python)),
     METH_FASTCALL,
     "trace_body(function, types, name, describe, fixed) -> (graph, captures, weak, written)."},
    {"check_leaves", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(check_leaves)),
     METH_FASTCALL,
     "check_leaves(leaves, describe): raises for a leaf that is no array or number."},
    {"regions", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(regions_for_python)),
     METH_FASTCALL, "regions([(graph, captures, written), ...], refs) -> (graphs, captures)."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Recording trace_body(PyObject* function, std::span<const TypeRef> types,
                     const std::vector<bool>& weak, std::string_view name, PyObject* describe,
                     std::string_view fixed, std::span<const ShardingRef> splits,
                     std::span<const Ref> values, std::vector<Ref> varies_as,
                     std::span<const TypeRef> consts, std::vector<StandIn> stand_ins) {
  ContextKind kind = values.empty() ? ContextKind::kStaged : ContextKind::kDeferred;
  ContextRef context = new_context(kind, name, describe, consts.size() + types.size());
  context->fixed_cells = std::string(fixed);
  context->one_value = !values.empty();
  if (!values.empty()) context->inputs.resize(consts.size());
  context->inputs.insert(context->inputs.end(), values.begin(), values.end());
  for (TypeRef t : consts) context->builder.input(t);
  context->stand_ins = std::move(stand_ins);
  Ref tracers = Ref::checked(PyList_New(static_cast<Py_ssize_t>(types.size())));
  for (size_t i = 0; i < types.size(); ++i) {
    Value v = context->builder.input(types[i]);
    if (!splits.empty()) set_split(*context, v, splits[i]);
    PyList_SET_ITEM(tracers.get(), static_cast<Py_ssize_t>(i), make_tracer(context, v, weak[i]));
  }
  if (varies_as.size() == types.size()) begin_varying(*context, std::move(varies_as));
  return run(context, calling(function, name), std::move(tracers));
}

// The split of what vmap gives to a function; all mapped axes are split alike.
static ShardingRef lane_of(ShardingRef split, size_t axis, ShardingRef& mapped) {
  ShardingParts parts = split->parts(), of_axis{.mesh = split->mesh()};
  of_axis.dims.push_back(split->dim(axis));
  ShardingRef own = make_sharding(std::move(of_axis));
  if (mapped && mapped != own)
    raise_error("ShardingError", "vmap expected mapped axes that are split alike; got ", mapped,
                " and ", own, "\n  Bring an argument into another sharding with weft.reshard.");
  mapped = own;
  if (axis < parts.dims.size()) parts.dims.erase(parts.dims.begin() + static_cast<int64_t>(axis));
  return make_sharding(std::move(parts));
}

Recording record(Recorded function, std::span<const Operand> inputs,
                 std::span<const std::optional<int64_t>> axes, std::string_view name,
                 PyObject* describe, std::span<const uint32_t> numbers, std::string_view fixed,
                 bool is_differentiated) {
  auto context = new_context(ContextKind::kDeferred, name, describe, inputs.size());
  context->arg_numbers.assign(numbers.begin(), numbers.end());
  context->one_value = axes.empty();
  context->is_differentiated = is_differentiated;
  context->fixed_cells = std::string(axes.empty() ? fixed : kMapped);
  Ref tracers = Ref::checked(PyList_New(static_cast<Py_ssize_t>(inputs.size())));
  ShardingRef mapped = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TypeRef type = inputs[i].type;
    ShardingRef split = split_of(inputs[i]);
    if (!axes.empty() && axes[i]) {
      int64_t axis = *axes[i];
      if (axis < 0 || axis >= type->rank())
        raise_error("OperandError", "record expected an axis of ", type, "; got ", axis);
      Dims shape = type->shape();
      shape.erase(static_cast<size_t>(axis));
      type = with_shape(type, shape);
      if (split) split = lane_of(split, static_cast<size_t>(axis), mapped);
    }
    Value v = context->builder.input(type);
    set_split(*context, v, split);
    context->inputs.push_back(Ref::borrow(inputs[i].object));
    PyList_SET_ITEM(tracers.get(), static_cast<Py_ssize_t>(i),
                    make_tracer(context, v, inputs[i].weak));
  }
  begin_varying(*context, context->inputs);
  bool eager = true;
  for (const ContextRef& c : context_stack()) eager &= c->kind == ContextKind::kDeferred;
  Recording out = run(context, function, std::move(tracers));
  if (mapped && !mapped->is_replicated()) out.lanes = mapped;
  // Rules are new objects at each call, so that graphs with rules are never the same.
  if (eager && !has_rules(out.graph)) out.graph = canonical(out.graph);
  return out;
}

void Recording::write(std::span<const Ref> results) const {
  std::span<const Ref> values = results.last(written.size());
  for (size_t i = 0; i < written.size(); ++i) set_cell(as_cell(written[i].get()), values[i]);
}

Operand classify_leaf(PyObject* leaf) {
  if (is_cell(leaf)) return {leaf, as_cell(leaf)->type, OperandKind::kInvalid, as_cell(leaf)->weak};
  try {
    return classify(leaf);
  } catch (...) {
    translate_exception();
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
    PyErr_Clear();
    return {leaf};
  }
}

std::vector<Operand> classify_leaves(PyObject* leaves, FunctionRef<Ref(size_t)> describe) {
  std::vector<Operand> out;
  auto count = static_cast<size_t>(PyList_GET_SIZE(leaves));
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* leaf = PyList_GET_ITEM(leaves, static_cast<Py_ssize_t>(i));
    out.push_back(classify_leaf(leaf));
    if (out.back().kind == OperandKind::kInvalid)
      reject(hooks.reject_leaf, {leaf, describe(i).get()});
  }
  return out;
}

GraphRef as_region(const GraphRef& graph) {
  if (graph->num_consts() == 0) return graph;
  GraphBuilder b;
  std::vector<Value> args;
  for (TypeRef t : graph->input_types()) args.push_back(b.input(t));
  Values outputs = b.inline_graph(*graph, args);
  return b.finish(outputs);
}

void init_recording(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
