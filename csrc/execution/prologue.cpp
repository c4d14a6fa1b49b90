// Results of prologues: kept, given up for newer ones, released when what they were made of dies.

#include "execution/prologue.h"

#include <algorithm>

#include "arrays/array.h"

namespace weft::py {
namespace {

struct Kept {
  std::vector<Prologue*> all;  // that keep something
  int64_t bytes = 0, max_bytes = int64_t{1} << 28;
};
Kept& kept() {
  static auto* k = new Kept;
  return *k;
}

// The callback of weak references to buffers; `self` is a capsule with the prologue.
PyObject* buffer_died(PyObject* self, PyObject*) {
  static_cast<Prologue*>(PyCapsule_GetPointer(self, nullptr))->release();
  Py_RETURN_NONE;
}
PyMethodDef buffer_died_method{"buffer_died", buffer_died, METH_O, nullptr};

}  // namespace

Prologue::Prologue(ExecutableRef program, std::vector<uint32_t> inputs, const ConstantSplit& plan)
    : executable(std::move(program)),
      reads(std::move(inputs)),
      bytes(plan.bytes),
      seconds(plan.seconds) {}

PyObject* Prologue::buffer_of(PyObject* array) { return as_array(array)->buffer; }

void Prologue::keep(std::span<PyObject* const> inputs, const Ref& results) {
  release();
  if (bytes > kept().max_bytes) return;
  Ref self = Ref::checked(PyCapsule_New(this, nullptr, nullptr));
  Ref callback = Ref::checked(PyCFunction_New(&buffer_died_method, self.get()));
  std::vector<PyObject*> made_of;
  std::vector<Ref> watches;
  for (uint32_t i : reads) {
    made_of.push_back(buffer_of(inputs[i]));
    watches.push_back(Ref::checked(PyWeakref_NewRef(made_of.back(), callback.get())));
  }
  release();  // another thread may have been first
  made_of_ = std::move(made_of);
  watches_ = std::move(watches);
  kept_ = results;
  last_use_ = ++clock_;
  Kept& k = kept();
  k.all.push_back(this);
  k.bytes += bytes;
  while (k.bytes > k.max_bytes)
    (*std::min_element(k.all.begin(), k.all.end(), [](Prologue* a, Prologue* b) {
      return a->last_use_ < b->last_use_;
    }))->release();
}

void Prologue::release() {
  if (!kept_) return;
  Kept& k = kept();
  k.all.erase(std::find(k.all.begin(), k.all.end(), this));
  k.bytes -= bytes;
  // Destroying what was kept may run Python code: by then nothing here is in between.
  Ref results = std::move(kept_);
  std::vector<Ref> watches = std::move(watches_);
  made_of_.clear();
}

int64_t max_constants_kept() { return kept().max_bytes; }
void set_max_constants_kept(int64_t bytes) {
  kept().max_bytes = bytes;
  if (constants_kept() > bytes) release_constants();
}
int64_t constants_kept() { return kept().bytes; }
void release_constants() {
  while (!kept().all.empty()) kept().all.back()->release();
}

}  // namespace weft::py
