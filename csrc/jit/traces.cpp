// Tables by signature, and the type Traces.

#include "jit/traces.h"

#include <bit>
#include <memory>
#include <unordered_set>
#include <utility>

#include "references/object_type.h"
#include "weft/hash.h"

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

// The place of an entry that holds objects of users; the entry is dropped with it.
class EntryPlace {
 public:
  EntryPlace(Traces* traces, const EntryRef& entry) : traces_(traces), entry_(entry) {}
  EntryPlace(EntryPlace&& o) noexcept
      : traces_(std::exchange(o.traces_, nullptr)), entry_(o.entry_) {}
  ~EntryPlace() {
    EntryRef entry = entry_.lock();
    if (traces_ && entry && all_traces().contains(traces_)) traces_->forget(*entry);
  }

 private:
  Traces* traces_;
  std::weak_ptr<const Entry> entry_;
};
using EntryPlaces = LruTable<const Entry*, EntryPlace>;

EntryPlaces& places() {
  static auto* all = new EntryPlaces("entries_holding_objects", Traces::kMaxHoldingObjects);
  return *all;
}
EntryPlaces::Handle find_place(const Entry* entry) {
  return places().find(hash_pointer(entry), [&](const Entry* e) { return e == entry; });
}

}  // namespace

Traces::Traces() { all_traces().insert(this); }

Traces::~Traces() { all_traces().erase(this); }

EntryRef Traces::find(const Signature& signature, uint64_t jit) const {
  auto item = entries_.find(signature.hash, [&](const Signature& k) { return k == signature; });
  if (!item || (item->entry->leaked && item->jit != jit)) return nullptr;
  if (item->entry->holds_objects) find_place(item->entry.get());  // it was used
  return item->entry;
}

std::optional<Signature> Traces::closest(const Signature& signature) const {
  std::optional<Signature> best;
  size_t fewest = 0;
  entries_.for_each_owned([&](const Signature& known, const Item&) {
    size_t common = std::min(known.leaves.size(), signature.leaves.size());
    size_t different = std::max(known.leaves.size(), signature.leaves.size()) - common;
    for (size_t i = 0; i < common; ++i) different += known.leaves[i] != signature.leaves[i];
    different += static_cast<size_t>(std::popcount(known.settings ^ signature.settings));
    different += known.structure.get() != signature.structure.get();
    for (size_t i = 0; i < std::min(known.statics.size(), signature.statics.size()); ++i)
      different += known.statics[i].get() != signature.statics[i].get();
    if (best && different >= fewest) return;
    best = known;
    fewest = different;
  });
  return best;
}

bool Traces::has_hash(uint64_t hash) const {
  return static_cast<bool>(entries_.find(hash, [](const Signature&) { return true; }));
}

void Traces::add(Signature signature, EntryRef entry, uint64_t jit) {
  if (entry->holds_objects && !find_place(entry.get()))
    places().insert(hash_pointer(entry.get()), entry.get(), EntryPlace(this, entry));
  auto known = entries_.find(signature.hash, [&](const Signature& k) { return k == signature; });
  if (known) {
    *known = {std::move(entry), jit};
  } else {
    uint64_t hash = signature.hash;
    entries_.insert(hash, std::move(signature), {std::move(entry), jit});
  }
}

void Traces::forget(const Entry& entry) {
  entries_.erase_if([&](const Item& item) { return item.entry.get() == &entry; });
}

void Traces::clear() {
  auto remembered = layouts.take();
  entries_.clear();
  history.clear();
}

int Traces::traverse(visitproc visit, void* arg) const {
  if (int stop = layouts.traverse(visit, arg)) return stop;
  if (int stop = history.traverse(visit, arg)) return stop;
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
    for (const Ref& cell : e.written) visited(cell.get());
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
