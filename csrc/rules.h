// Rules that users write in Python, as the core's transforms ask for them: derivatives of
// functions, policies of checkpoints. A rule is a function on tracers; it is traced when it is
// needed.
#pragma once

#include <nanobind/nanobind.h>

#include "bound.h"
#include "lru_table.h"
#include "named_axes.h"
#include "recording.h"
#include "weft/graph_rules.h"

namespace weft::py {

// The graph of a recording without captures: `constant` ops hold the captured objects, for a rule's
// graph becomes part of a program that knows nothing of them. call_graph() turns them back.
GraphRef hold_captures(const Recording& r);
// The Python object that a `constant` op holds; borrowed.
PyObject* held_object(const AttrObject& held);

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

// Rules that users wrote for a function and that stay the same have one token, through which what
// was transformed with them is found again (transforms.cpp). Python holds it with the function; it
// holds no rule, so that functions can die.
struct RuleToken {
  Ref known;                      // a weak reference of Python's to what knows the rules
  Ref rules() const;              // that; None if it is gone
  bool is_current() const;        // whether the rules are as they were
  NamedAxes axes = named_axes();  // where the rules were given, of which their graphs may speak

  struct Key {
    GraphRef graph;  // with stand-ins for the rules
    std::string options;
  };
  LruTable<Key, std::shared_ptr<void>> transformed{64};
};
using RuleTokenRef = std::shared_ptr<RuleToken>;

// The tokens of the rules that a graph has; those without one are left out.
std::vector<RuleTokenRef> rule_tokens(const Graph& graph);
// The graph with stand-ins for its rules, equal to every graph with rules of the same tokens; null
// if one has none.
GraphRef without_rule_objects(const GraphRef& graph);
// Such a graph with rules again; null if those are gone.
GraphRef with_rule_objects(const GraphRef& graph);
// Whether a graph holds rules: functions of users, and what these close over.
bool has_rule_objects(const Graph& graph);
// Whether a graph means the same in every trace: whether it holds no objects of users but arrays,
// and what stands for rules.
bool is_self_contained(const Graph& graph);

void bind_rules(nanobind::module_& m);

}  // namespace weft::py
