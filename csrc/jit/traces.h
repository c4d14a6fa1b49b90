// What jit functions of one function with equal options have traced: entries by signature. A Python
// object (weft._core.Traces) that stands on the function, so that it lives as long, and that the
// collector of cycles sees into: arguments may hold the function.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "jit/history.h"
#include "jit/jit.h"
#include "jit/layout.h"
#include "jit/signature.h"
#include "references/core.h"
#include "references/lru_table.h"
#include "tracing/in_flight.h"

namespace weft::py {

class Traces {
 public:
  static constexpr size_t kMaxEntries = 4096;
  // Of all functions together, of entries that hold objects of users in their graphs. The collector
  // does not see those, and they may lead back to the function: such a cycle ends when the entry is
  // dropped.
  static constexpr size_t kMaxHoldingObjects = 256;

  Traces();
  ~Traces();
  Traces(const Traces&) = delete;

  // The entry of a signature; null if there is none. A function that leaks tracers has to run again
  // for another jit function, so that those are of a trace of that one: `jit` is the id of the
  // JitFunction.
  EntryRef find(const Signature& signature, uint64_t jit) const;
  // The signature that differs in the fewest places from one that is not there; none if there is
  // no other.
  std::optional<Signature> closest(const Signature& signature) const;
  // Whether there are entries of signatures with this hash, as equal numbers of other types have.
  bool has_hash(uint64_t hash) const;
  void add(Signature signature, EntryRef entry, uint64_t jit);
  // The traces that threads are at.
  InFlightTable<Signature> in_flight;
  LayoutMemo layouts;
  History history;

  size_t size() const { return entries_.size(); }
  void clear();
  void forget(const Entry& entry);
  int traverse(visitproc visit, void* arg) const;

  uint64_t hits = 0, misses = 0;

 private:
  struct Item {
    EntryRef entry;
    uint64_t jit;
  };

  mutable LruTable<Signature, Item> entries_{kMaxEntries};
};

// The object's state; null for another class.
Traces* traces_of(PyObject* o);
// Forgets everything that any function has traced.
void clear_traces();

void init_traces(PyObject* module);

}  // namespace weft::py
