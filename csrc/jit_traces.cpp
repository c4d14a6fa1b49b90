// Tables by signature, and the type Traces.

#include "jit_traces.h"

#include <unordered_set>

#include "object_type.h"

namespace weft::py {
namespace {

PyTypeObject* traces_type;

struct TracesObject {
  PyObject_HEAD PyObject* weakrefs;
  Traces* traces;

  int visit(visitproc visit, void* arg) const { return traces ? traces->traverse(visit, arg) : 0; }
  void clear() { traces->clear(); }
  void release() { delete traces; }
};
TracesObject* as_object(PyObject* o) { return reinterpret_cast<TracesObject*>(o); }

std::unordered_set<Traces*>& all_traces() {
  static auto* all = new std::unordered_set<Traces*>;
  return *all;
}

}  // namespace

Traces::Traces() { all_traces().insert(this); }

Traces::~Traces() { all_traces().erase(this); }

EntryRef Traces::find(const Signature& signature, uint64_t jit) const {
  auto item = entries_.find(signature.hash, [&](const Signature& k) { return k == signature; });
  return item && (item->jit == jit || !item->entry->leaked) ? item->entry : nullptr;
}

void Traces::add(Signature signature, EntryRef entry, uint64_t jit) {
  auto known = entries_.find(signature.hash, [&](const Signature& k) { return k == signature; });
  if (known) {
    *known = {std::move(entry), jit};
  } else {
    uint64_t hash = signature.hash;
    entries_.insert(hash, std::move(signature), {std::move(entry), jit});
  }
}

void Traces::clear() {
  auto remembered = layouts.take();
  entries_.clear();
}

int Traces::traverse(visitproc visit, void* arg) const {
  if (int stop = layouts.traverse(visit, arg)) return stop;
  int stop = 0;
  auto visited = [&](PyObject* o) {
    if (o && !stop) stop = visit(o, arg);
  };
  // What a call or a Traced holds as well is not the table's alone.
  entries_.for_each_owned([&](const Signature& signature, const Item& item) {
    visited(signature.structure.get());
    for (const Ref& value : signature.statics) visited(value.get());
    const Entry& e = *item.entry;
    if (item.entry.use_count() != 1) return;
    for (const Ref& capture : e.captures) visited(capture.get());
    visited(e.in_tree.get());
    visited(e.out_tree.get());
  });
  return stop;
}

// ---- The type

namespace {

PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  return guard([&]() -> PyObject* {
    auto traces = std::make_unique<Traces>();
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) throw PythonError{};
    as_object(self)->traces = traces.release();
    return self;
  });
}

// Copies and pickles of a function do not take along what it traced.
PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("(O())", reinterpret_cast<PyObject*>(Py_TYPE(self)));
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

Traces* traces_of(PyObject* o) {
  return Py_TYPE(o) == traces_type ? as_object(o)->traces : nullptr;
}

void clear_traces() {
  // Destructors may make and drop functions, so the set itself is not walked.
  std::vector<Traces*> all(all_traces().begin(), all_traces().end());
  for (Traces* traces : all)
    if (all_traces().contains(traces)) traces->clear();
}

void init_traces(PyObject* module) {
  traces_type = ObjectType<TracesObject>::make(
      "weft.Traces", 0,
      {{Py_tp_new, reinterpret_cast<void*>(create)},
       {Py_tp_methods, methods},
       {Py_tp_doc, const_cast<char*>("What jit functions of one function have traced.")}});
  check(PyModule_AddObjectRef(module, "Traces", reinterpret_cast<PyObject*>(traces_type)));
}

}  // namespace weft::py
