// call_graph(), the second half of an un-jitted transform (record() is the first), and values on
// demand.

#include "transforms/deferred.h"

#include <algorithm>
#include <unordered_map>

#include "arrays/array.h"
#include "binding/bind.h"
#include "conversions/location.h"
#include "graphs/graph_object.h"
#include "references/lru_table.h"
#include "references/setting_scope.h"
#include "transforms/rules.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

// ---- Whole or op by op

// Compiling costs 15-20 ms a kernel; a place in the user's program that keeps coming with new
// structures (a loop whose length depends on data) is run op by op, from the cache of compiled ops;
// not where operands are split over explicit axes, nor where NaN is looked for: what the program
// itself discards is no error, however often it was called.
constexpr size_t kMaxStructures = 3;
// Whether this is one more than that many at a place; remembers the first ones.
bool too_many_structures_at(Loc place, const Graph& graph) {
  constexpr size_t kMaxPlaces = 4096;
  static auto* places =
      new LruTable<Loc, SmallVector<uint64_t, kMaxStructures>>("structures_by_place", kMaxPlaces);
  uint64_t hash = mix(place);
  auto known = places->find(hash, [&](Loc p) { return p == place; });
  if (!known) known = places->insert(hash, place, {});
  uint64_t structure = graph.structural_hash();
  if (std::find(known->begin(), known->end(), structure) != known->end()) return false;
  if (known->size() == kMaxStructures) return true;
  known->push_back(structure);
  return false;
}

const AttrSchema& graph_schema() {
  static const AttrSchema schema{{"graph", AttrType::kGraph}};
  return schema;
}

Objects run_op_by_op(const Graph& graph, std::span<const Operand> inputs,
                     const std::vector<bool>& weak) {
  std::vector<Ref> values(graph.num_values());
  for (size_t i = 0; i < inputs.size(); ++i)
    values[i] = to_device(inputs[i], current_placement(), graph.input_types()[i]->dtype());
  auto value = [&](Value v) {
    return v.is_literal() ? cached_scalar(graph.literal(v), current_placement()) : values[v.id];
  };
  // The last use of each value, to free it there.
  std::vector<uint32_t> last_use(graph.num_values(), UINT32_MAX);
  for (uint32_t i = 0; i < graph.ops().size(); ++i)
    for (Value v : graph.operands(graph.op(i)))
      if (!v.is_literal()) last_use[v.id] = i;
  for (Value v : graph.outputs())
    if (!v.is_literal()) last_use[v.id] = UINT32_MAX;
  for (uint32_t i = 0; i < graph.ops().size(); ++i) {
    const Op& op = graph.op(i);
    std::vector<Ref> held;
    std::vector<Operand> xs;
    for (Value v : graph.operands(op)) {
      held.push_back(value(v));
      xs.push_back(classify(held.back().get()));
    }
    Objects results = bind_op(def(*op.info), xs, op.attrs);
    for (uint32_t r = 0; r < op.num_results; ++r) values[op.results_begin + r] = results[r];
    for (Value v : graph.operands(op))
      if (!v.is_literal() && last_use[v.id] == i) values[v.id] = Ref();
  }
  Objects out;
  for (Value v : graph.outputs()) {
    Ref r = value(v);
    bool is_weak = out.size() < weak.size() && weak[out.size()];
    // A result is the caller's own.
    ArrayObject* a = as_array(r.get());
    if (a->shared && v.is_literal()) {
      r = fresh_scalar(graph.literal(v), current_placement(), false);
    } else if (a->shared && v.id < inputs.size() && inputs[v.id].kind == OperandKind::kScalar) {
      r = fresh_scalar(scalar_value(inputs[v.id], a->type->dtype()), current_placement(), false);
    } else if (a->shared) {
      r = copy_buffer(a, a->weak, a->committed);
    }
    out.push_back(astype(classify(r.get()), as_array(r.get())->type->dtype(), is_weak));
  }
  return out;
}

// One op at once. A call that has derivatives of its own is one of its graph, since programs are
// looked up by attributes and every such call has a rule object of its own.
Objects run_op(const Op& op, std::span<const Operand> xs) {
  const OpDef& d = def(*op.info);
  if (d.call != CallKind::kWhole) return bind_op(d, xs, op.attrs);
  GraphRef graph;
  for_each_graph(op.attrs, [&](const GraphRef& g) { graph = g; });
  return call_graph(graph, xs, {});
}

// A graph in the form in which it is called, kept on the graph.
struct Callable {
  GraphRef lifted;    // without held values, which come first among its operands
  GraphRef stripped;  // for running at once: also without derivative rules
  std::vector<ObjectRef> held;
};

std::shared_ptr<const Callable> callable(const GraphRef& graph) {
  return graph->cached<Callable>("callable", [&] {
    auto out = std::make_shared<Callable>();
    auto lifted = lift_constants(graph);
    out->held = lifted->constants;
    GraphRef current = lifted->graph;
    // The cache of a graph must not own that graph: null stands for it.
    if (!out->held.empty()) out->lifted = current;
    if (has_rules(current)) {
      const std::string pass = "strip_rules";
      out->stripped = run_passes(current, {&pass, 1});
    }
    return out;
  });
}

Objects call_plain(const GraphRef& graph, const Callable& form, std::span<const Operand> xs,
                   const std::vector<bool>& weak) {
  if (xs.size() != graph->num_inputs())
    fail(ErrorKind::kInternal, "call_graph expected ", graph->num_inputs(), " operands; got ",
         xs.size());
  auto is_weak = [&](size_t i) { return i < weak.size() && weak[i]; };
  if (ContextRef c = context_for(xs, stays_innermost(*graph))) {
    Values args;
    for (size_t i = 0; i < xs.size(); ++i)
      args.push_back(value_in(*c, xs[i], graph->input_types()[i]->dtype()));
    c->builder.set_loc(c->locations ? current_loc() : kNoLoc);
    Objects out;
    size_t i = 0;
    for (Value v : c->builder.inline_graph(*graph, args))
      out.push_back(Ref::steal(make_tracer(c, v, is_weak(i++))));
    return out;
  }
  if (form.stripped) return call_graph(form.stripped, xs, weak);
  static const char what = 0;
  EagerCall call{
      &what, AttrRecord::make("call_graph", graph_schema(), {{"graph", graph}}), {}, xs, {}};
  call.extra.add(Dims(weak.begin(), weak.end()));
  for (TypeRef t : graph->input_types()) call.scalar_dtypes.push_back(t->dtype());
  // Ops that a transform made need not say how their results are split, as those that a user wrote
  // must. Which is which is known within a program only.
  bool split = std::any_of(xs.begin(), xs.end(), [](const Operand& x) { return split_of(x); });
  if (!split && !debug_flags() && !is_cached(call) && too_many_structures_at(current_loc(), *graph))
    return run_op_by_op(*graph, xs, weak);
  return run_eagerly(
      call, [&](std::span<const Operand> abstract) { return call_graph(graph, abstract, weak); });
}

// ---- Values on demand

// The array that an object stands for, if it is one value.
Ref concrete_object(PyObject* o) {
  Operand x = classify(o);
  if (x.kind == OperandKind::kTracer) return concrete_value(as_tracer(o));
  if (x.kind == OperandKind::kInvalid) return Ref();
  return to_device(x, current_placement());
}

// Runs the ops that `v` needs and that have not been run, one by one, and remembers every value:
// a loop that asks for a value in each round costs what it adds in that round.
bool evaluate(TraceContext& c, Value v) {
  std::vector<Ref>& known = c.known;
  GraphBuilder& b = c.builder;
  auto ready = [&](Value x) { return x.is_literal() || (x.id < known.size() && known[x.id]); };
  std::vector<Value> pending{v};
  // Operands have smaller ids than results, so needed ops run in order of their first result.
  std::vector<Value> needed;
  std::unordered_map<uint32_t, bool> seen;
  while (!pending.empty()) {
    Value x = pending.back();
    pending.pop_back();
    if (ready(x)) continue;
    const Op* op = b.producer(x);
    if (!op) return false;  // an input without a value
    Value first{op->results_begin};
    if (seen[first.id]) continue;
    seen[first.id] = true;
    needed.push_back(first);
    for (Value operand : b.operands(*op)) pending.push_back(operand);
  }
  std::sort(needed.begin(), needed.end(), [](Value x, Value y) { return x.id < y.id; });
  // A NaN is an error if it is in a result of the recorded graph, which is run later.
  Without watching(kDebugNans.mask() | kDebugInfs.mask());
  for (Value first : needed) {
    Op op = *b.producer(first);
    // The effects come when the recorded graph is run.
    op.attrs = without_effects(op.attrs);
    if (effects_of(*op.info, op.attrs) != kPure || stays_innermost(*op.info, op.attrs))
      return false;
    std::vector<Ref> held;
    std::vector<Operand> xs;
    for (Value operand : b.operands(op)) {
      held.push_back(operand.is_literal()
                         ? cached_scalar(*b.as_literal(operand), current_placement())
                         : known[operand.id]);
      xs.push_back(classify(held.back().get()));
    }
    Objects results = run_op(op, xs);
    known.resize(std::max<size_t>(known.size(), op.results_begin + op.num_results));
    for (uint32_t r = 0; r < op.num_results; ++r) known[op.results_begin + r] = results[r];
  }
  return true;
}

// ---- For Python

// Of a tracer of a finished trace nothing is known any more.
void check_open(PyObject* o) {
  if (!is_tracer(o) || !as_tracer(o)->context->finished) return;
  Operand x = classify(o);
  context_for({&x, 1});  // raises
}

PyObject* carries_derivative_function(PyObject*, PyObject* o) {
  return guard([&] {
    check_open(o);
    return PyBool_FromLong(carries_derivative(o));
  });
}

// call_graph(graph, operands, weak) -> list of results.
PyObject* call_graph_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("call_graph", n, 3);
    list_argument(args[1], "call_graph", "the operands");
    GraphRef graph = graph_of(args[0]);
    if (!graph) raise_error("OperandError", "call_graph expected a graph");
    std::vector<Operand> xs;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); ++i)
      xs.push_back(classify_operand(PyList_GET_ITEM(args[1], i), "call_graph"));
    std::vector<bool> weak = flags_argument(args[2], "call_graph", "the weak results");
    if (xs.size() != graph->num_inputs())
      raise_error("OperandError", "call_graph expected ", graph->num_inputs(), " operands; got ",
                  xs.size());
    for (size_t i = 0; i < xs.size(); ++i)
      if (xs[i].type->shape() != graph->input_types()[i]->shape() ||
          (xs[i].kind != OperandKind::kScalar && xs[i].type != graph->input_types()[i]))
        raise_error("OperandError", "call_graph expected ", graph->input_types()[i],
                    " for operand ", i, "; got ", xs[i].type);
    return to_list(call_graph(graph, xs, weak));
  });
}

// concrete_value(tracer) -> Array or None.
PyObject* concrete_value_function(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    check_open(o);
    Ref r = is_tracer(o) ? concrete_value(as_tracer(o)) : Ref();
    return r ? r.release() : Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"call_graph", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_graph_function)),
     METH_FASTCALL, "call_graph(graph, operands, weak) -> list of results."},
    {"concrete_value", concrete_value_function, METH_O,
     "The value of a tracer of an un-jitted derivative; None if it has no single value."},
    {"carries_derivative", carries_derivative_function, METH_O,
     "Whether an un-jitted derivative goes through an object."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Objects call_graph(const GraphRef& graph, std::span<const Operand> xs,
                   const std::vector<bool>& weak) {
  auto form = callable(graph);
  if (form->held.empty()) return call_plain(graph, *form, xs, weak);
  std::vector<Operand> all;
  for (const ObjectRef& object : form->held) all.push_back(classify(held_object(*object)));
  all.insert(all.end(), xs.begin(), xs.end());
  return call_plain(form->lifted, *form, all, weak);
}

Ref concrete_value(TracerObject* t) {
  TraceContext& c = *t->context;
  if (c.finished || c.kind != ContextKind::kDeferred || !c.one_value) return Ref();
  // Ops that are run now belong to no trace.
  std::vector<ContextRef> suspended;
  suspended.swap(context_stack());
  struct Restore {
    std::vector<ContextRef>& saved;
    ~Restore() { context_stack().swap(saved); }
  } restore{suspended};
  auto remember = [&](Value v, PyObject* object) {
    if (v.id < c.known.size() && c.known[v.id]) return true;
    Ref array = object ? concrete_object(object) : Ref();
    if (!array) return false;
    c.known.resize(std::max<size_t>(c.known.size(), v.id + 1));
    c.known[v.id] = std::move(array);
    return true;
  };
  // Inputs come first; those whose value nobody knows fail only if they are needed.
  for (uint32_t i = 0; i < c.inputs.size(); ++i) remember(Value{i}, c.inputs[i].get());
  for (size_t i = 0; i < c.captures.size(); ++i) remember(c.capture_values[i], c.captures[i].get());
  if (t->value.is_literal())
    return cached_scalar(*c.builder.as_literal(t->value), current_placement());
  if (!evaluate(c, t->value)) return Ref();
  return c.known[t->value.id];
}

bool carries_derivative(PyObject* o) {
  if (!is_tracer(o)) return false;
  TraceContext& c = *as_tracer(o)->context;
  return has_tangent(c.builder, as_tracer(o)->value, [&](Value input) {
    if (input.id < c.inputs.size())
      return c.is_differentiated || carries_derivative(c.inputs[input.id].get());
    auto at = std::find(c.capture_values.begin(), c.capture_values.end(), input);
    if (at == c.capture_values.end()) return false;
    return carries_derivative(c.captures[static_cast<size_t>(at - c.capture_values.begin())].get());
  });
}

void init_deferred(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
