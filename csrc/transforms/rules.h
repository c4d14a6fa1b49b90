// Rules that users write in Python, as the core's transforms ask for them: derivatives of
// functions, policies of checkpoints. A rule is a function on tracers; it is traced when it is
// needed.
#pragma once

#include <nanobind/nanobind.h>

#include "graphs/recording.h"
#include "references/bound.h"
#include "weft/graph_rules.h"

namespace weft::py {

// The graph of a recording without captures: `constant` ops hold the captured objects, for a rule's
// graph becomes part of a program that knows nothing of them. call_graph() turns them back.
GraphRef hold_captures(const Recording& r);
// The Python object that a `constant` op holds; borrowed.
PyObject* held_object(const AttrObject& held);

// What a function with a rule closed over: the types, the arrays, and of the traced values where
// they come from, for a rule that closes over them as well. Holds no tracers.
struct Consts {
  TypeRefs types;
  std::vector<Ref> arrays;  // per type; null for a traced value
  std::vector<StandIn> stand_ins;
};
Consts consts_of(std::span<const Ref> captures);

// How often, in this thread, a rule was found to ask for the values of its arguments.
uint64_t asked_values();
// guard() for an un-jitted derivative. Whether a rule asks for values is found when it is traced,
// after its call was recorded without them; from then on its calls keep them, so the function is
// recorded anew.
template <typename F>
PyObject* guard_with_rules(F&& body) {
  constexpr int kMaxAttempts = 8;
  return guard([&] {
    for (int attempt = 1;; ++attempt) {
      uint64_t before = asked_values();
      try {
        return body();
      } catch (const PythonError&) {
        if (asked_values() == before || attempt == kMaxAttempts) throw;
        PyErr_Clear();
      }
    }
  });
}

void bind_rules(nanobind::module_& m);

}  // namespace weft::py
