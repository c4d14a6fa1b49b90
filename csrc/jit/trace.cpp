// The function runs on tracers; what it returns are the outputs of the graph.

#include "jit/trace.h"

#include <algorithm>

#include "arrays/array.h"
#include "references/hooks.h"
#include "tracing/cell.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

// Calls the user's function on tracers.
Ref call_function(const JitState& s, const Call& call, std::vector<Ref>& tracers) {
  if (!call.signature.structure) {
    std::vector<PyObject*> args;
    for (Ref& t : tracers) args.push_back(t.get());
    return Ref::checked(PyObject_Vectorcall(s.function.get(), args.data(), args.size(), nullptr));
  }
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(tracers.size())));
  for (size_t i = 0; i < tracers.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(tracers[i].get()));
  Ref dynamic =
      Ref::checked(PyObject_CallMethodOneArg(call.signature.tree(), name("unflatten"), list.get()));
  PyObject* positional = PyTuple_GET_ITEM(dynamic.get(), 0);
  Ref kwargs = Ref::checked(PyDict_Copy(PyTuple_GET_ITEM(dynamic.get(), 1)));
  std::vector<std::pair<Py_ssize_t, PyObject*>> static_args;
  for (size_t i = 0; i < call.signature.statics.size(); ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.signature.static_keys(), static_cast<Py_ssize_t>(i));
    PyObject* value = call.signature.statics[i].get();
    if (PyUnicode_Check(key)) {
      check(PyDict_SetItem(kwargs.get(), key, value));
    } else {
      static_args.emplace_back(PyLong_AsSsize_t(key), value);
    }
  }
  Py_ssize_t n = PyTuple_GET_SIZE(positional) + static_cast<Py_ssize_t>(static_args.size());
  Ref args = Ref::checked(PyTuple_New(n));
  Py_ssize_t next = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* value = nullptr;
    for (auto& [at, v] : static_args)
      if (at == i) value = v;
    if (!value) value = PyTuple_GET_ITEM(positional, next++);
    PyTuple_SET_ITEM(args.get(), i, Py_NewRef(value));
  }
  return Ref::checked(PyObject_Call(s.function.get(), args.get(), kwargs.get()));
}

}  // namespace

std::vector<bool> donated_inputs(const JitState& s, const Call& call, size_t num_captures) {
  std::vector<bool> donated(num_captures + call.leaves.size(), false);
  if (s.donate_argnums.empty() && s.donate_argnames.empty()) return {};
  Py_ssize_t num_positional = call.args.num_positional;
  size_t leaf = num_captures;
  auto mark = [&](size_t count, bool on) {
    for (size_t i = 0; i < count; ++i) donated[leaf++] = on;
  };
  auto leaves_of = [&](PyObject* tree) -> size_t {
    Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), tree));
    return static_cast<size_t>(PyList_GET_SIZE(PyTuple_GET_ITEM(flat.get(), 0)));
  };
  auto donates = [&](int64_t i) {
    for (int64_t d : s.donate_argnums)
      if (d == i || d + num_positional == i) return true;
    return false;
  };
  if (!call.signature.structure) {
    for (size_t i = 0; i < call.leaves.size(); ++i) mark(1, donates(static_cast<int64_t>(i)));
    return donated;
  }
  Ref dynamic = dynamic_arguments(s, call.args);
  PyObject* positional = PyTuple_GET_ITEM(dynamic.get(), 0);
  int64_t at = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); ++i, ++at) {
    while (is_static_position(s, at, num_positional)) ++at;
    mark(leaves_of(PyTuple_GET_ITEM(positional, i)), donates(at));
  }
  // Keyword arguments flatten in sorted order of their names.
  Ref keys = Ref::checked(PyDict_Keys(PyTuple_GET_ITEM(dynamic.get(), 1)));
  check(PyList_Sort(keys.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    PyObject* value = PyDict_GetItem(PyTuple_GET_ITEM(dynamic.get(), 1), key);
    mark(leaves_of(value), contains_name(s.donate_argnames, key));
  }
  return donated;
}

[[noreturn]] static void raise_returned(const JitState& s, CellObject* cell) {
  raise_error("RefError", "expected arrays and numbers from '", s.name, "'; got ",
              describe_cell(cell), "\n  Refs cannot be returned: return its value, ref[...].");
}

std::shared_ptr<Entry> trace(const JitState& s, const Call& call) {
  auto context = std::make_shared<TraceContext>();
  context->name = s.name;
  context->locations = !s.library;
  context->num_args = static_cast<uint32_t>(call.operands.size());
  begin_placements(*context);
  PyObject* tree = call.signature.tree();
  context->describe = Ref::checked(
      PyTuple_Pack(3, s.function.get(), tree ? tree : Py_None, s.static_argnums_object.get()));
  auto entry = std::make_shared<Entry>();
  entry->name = s.name;
  entry->is_library = s.library;
  entry->in_tree = Ref::borrow(tree);
  for (const Operand& x : call.operands) entry->in_weak.push_back(x.weak);
  std::vector<Value> outputs;
  auto add_output = [&](const Operand& x) {
    outputs.push_back(value_in(*context, x, x.type->dtype()));
    entry->weak.push_back(x.weak);
  };
  {
    ContextScope scope(context);
    std::vector<Ref> tracers;
    tracers.reserve(call.operands.size());
    for (const Operand& x : call.operands) {
      Value v = context->builder.input(x.type);
      if (!call.signature.splits.empty()) set_split(*context, v, call.signature.splits[v.id]);
      tracers.push_back(Ref::steal(make_tracer(context, v, x.weak)));
    }
    context->varies_unknown = are_varying_known();
    if (const auto& sets = call.signature.varying) begin_varying(*context, std::span(*sets));
    for (size_t i : call.cells) {
      PyObject* given = call.leaves[i];
      bool no_grad = is_cell(given) && as_cell(given)->no_grad;
      tracers[i] = make_cell(tracers[i], true, no_grad);
    }
    Ref result = call_function(s, call, tracers);
    std::vector<Ref> leaves;
    if (is_tracer(result.get()) || is_array(result.get())) {
      leaves.push_back(std::move(result));
    } else {
      Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), result.get()));
      PyObject* list = PyTuple_GET_ITEM(flat.get(), 0);
      entry->out_tree = Ref::borrow(PyTuple_GET_ITEM(flat.get(), 1));
      entry->result_tree = ResultTree(result.get());
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
        leaves.push_back(Ref::borrow(PyList_GET_ITEM(list, i)));
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      Operand x = classify(leaves[i].get());
      if (is_cell(leaves[i].get())) raise_returned(s, as_cell(leaves[i].get()));
      if (x.kind == OperandKind::kInvalid) {
        Ref number = Ref::checked(PyLong_FromSize_t(i));
        Ref out_tree = entry->out_tree ? entry->out_tree : Ref::borrow(Py_None);
        Ref path = Ref::checked(PyObject_CallFunctionObjArgs(
            hooks.describe_output.get(), s.function.get(), out_tree.get(), number.get(), nullptr));
        reject(hooks.reject_leaf, {leaves[i].get(), path.get()});
      }
      context_for({&x, 1});  // raises for a tracer of a finished trace
      add_output(x);
    }
    for (const OuterCell& o : context->cells) {
      if (!o.written) continue;
      add_output(classify(o.value.get()));
      entry->written.push_back(o.cell);
    }
    for (size_t i : call.cells) {
      CellObject* cell = as_cell(tracers[i].get());
      if (cell->trail) {
        CellObject* trail = as_cell(cell->trail.get());
        trail->leaf = static_cast<int64_t>(i);
        trail->home = nullptr;  // the entry holds it, which may not keep the traces around
      }
      if (!cell->written) continue;
      add_output(classify(cell->value.get()));
      entry->written_arguments.push_back(i);
    }
  }
  entry->leaked = context.use_count() > 1;
  check_leaks(context);
  entry->captures = context->captures;
  auto of_trace = [](const Ref& o) {
    return is_tracer(o.get()) || (is_cell(o.get()) && as_cell(o.get())->home);
  };
  entry->of_outer_trace = std::any_of(entry->captures.begin(), entry->captures.end(), of_trace) ||
                          std::any_of(entry->written.begin(), entry->written.end(), of_trace);
  entry->splits = splits_of(*context, outputs);
  entry->graph = context->builder.finish(outputs, context->capture_values);
  entry->holds_objects = !is_portable(*entry->graph);
  entry->donated = donated_inputs(s, call, entry->captures.size());
  if (!entry->donated.empty())
    for (size_t i : call.cells) entry->donated[entry->captures.size() + i] = false;
  retire(context);
  return entry;
}

}  // namespace weft::py
