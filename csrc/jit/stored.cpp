// Entries to and from objects of Python.

#include "jit/stored.h"

#include "arrays/array.h"
#include "execution/compile.h"
#include "graphs/graph_object.h"
#include "jit/trace.h"
#include "weft/passes.h"

namespace weft::py {
namespace {

// What a call is to its store: (types of the leaves, structure or None, static values, settings).
Ref described(const Call& call) {
  const Signature& sig = call.signature;
  Ref leaves = Ref::checked(PyList_New(0));
  for (uint64_t leaf : sig.leaves)
    check(PyList_Append(leaves.get(), to_text(leaf_text(leaf)).get()));
  Ref statics = Ref::checked(PyList_New(0));
  for (const Ref& value : sig.statics) check(PyList_Append(statics.get(), value.get()));
  return Ref::checked(Py_BuildValue("(OOOK)", leaves.get(),
                                    sig.structure ? sig.structure.get() : Py_None, statics.get(),
                                    static_cast<unsigned long long>(sig.settings)));
}

// What depends on more than the function, its arguments and the settings; null if nothing does.
const char* reason_against(const Call& call) {
  if (!call.cells.empty()) return "refs are passed";
  if (!call.signature.axes.empty()) return "it is called within vmap or shard_map";
  if (!call.signature.splits.empty())
    return "there are meshes with explicit axes, or arrays in the memory of the host";
  if (kUserContext.of(call.signature.settings)) return "a context of the user's is set";
  if (kSeedOffset.of(call.signature.settings)) return "weft_random_seed_offset is set";
  return nullptr;
}
const char* reason_against(const Entry& e) {
  if (e.of_outer_trace) return "it closes over values of another trace";
  if (e.leaked) return "traced values outlive the trace";
  if (!e.written.empty() || !e.written_arguments.empty()) return "it writes refs";
  for (const Ref& c : e.captures)
    if (!is_array(c.get())) return "it closes over refs";
  return nullptr;
}

}  // namespace

std::shared_ptr<Entry> stored_entry(const JitState& s, const Call& call, std::string& why) {
  if (const char* reason = reason_against(call)) {
    why = cat("not looked for: ", reason);
    return nullptr;
  }
  Ref found =
      Ref::checked(PyObject_CallMethodOneArg(s.stored.get(), name("load"), described(call).get()));
  if (PyUnicode_Check(found.get())) {
    why = readable(found.get());
    return nullptr;
  }
  PyObject *graph, *captures, *out_tree, *result, *weak;
  int runs_only;
  if (!PyArg_ParseTuple(found.get(), "OO!OOO!p", &graph, &PyList_Type, &captures, &out_tree,
                        &result, &PyList_Type, &weak, &runs_only))
    throw PythonError{};
  if (runs_only && !context_stack().empty()) {
    why =
        "not used: it has rules of derivatives, which may be wanted here, and no file holds those";
    return nullptr;
  }
  auto entry = std::make_shared<Entry>();
  entry->runs_only = runs_only;
  entry->graph = graph_of(graph);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(captures); ++i)
    entry->captures.push_back(Ref::borrow(PyList_GET_ITEM(captures, i)));
  if (out_tree != Py_None) {
    entry->out_tree = Ref::borrow(out_tree);
    entry->result_tree = ResultTree(result);
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(weak); ++i)
    entry->weak.push_back(PyList_GET_ITEM(weak, i) == Py_True);
  entry->name = s.name;
  entry->in_tree = Ref::borrow(call.signature.tree());
  for (const Operand& x : call.operands) entry->in_weak.push_back(x.weak);
  entry->donated = donated_inputs(s, call, entry->captures.size());
  return entry;
}

void store_entry(const JitState& s, const Call& call, const Entry& entry, std::string& why) {
  const char* reason = reason_against(call);
  if (!reason) reason = reason_against(entry);
  if (reason) {
    why = cat("not stored: ", reason);
    return;
  }
  // Rules of derivatives are functions of Python; what runs has none.
  GraphRef graph = entry.holds_objects ? optimize(entry.graph) : entry.graph;
  if (!is_portable(*graph) || mesh_named_in(*graph)) {
    why = "not stored: the program holds functions or objects of Python, or names a mesh";
    return;
  }
  Ref captures = Ref::checked(PyList_New(0)), weak = Ref::checked(PyList_New(0));
  for (const Ref& c : entry.captures) check(PyList_Append(captures.get(), c.get()));
  for (bool w : entry.weak) check(PyList_Append(weak.get(), w ? Py_True : Py_False));
  Ref told = Ref::checked(PyObject_CallMethod(
      s.stored.get(), "save", "OOOOOO", described(call).get(), graph_object(graph).get(),
      captures.get(), entry.out_tree ? entry.out_tree.get() : Py_None, weak.get(),
      entry.holds_objects ? Py_True : Py_False));
  if (told.get() != Py_None) why = readable(told.get());
}

}  // namespace weft::py
