// Rules that users write in Python, as the core's transforms ask for them: derivatives of
// functions, policies of checkpoints. A rule is a function on tracers; it is traced when it is
// needed.
#pragma once

#include <nanobind/nanobind.h>

#include "bound.h"
#include "lru_table.h"
#include "recording.h"
#include "weft/graph_rules.h"

namespace weft::py {

// The graph of a recording without captures: `constant` ops hold the captured objects, for a rule's
// graph becomes part of a program that knows nothing of them. call_graph() turns them back.
GraphRef hold_captures(const Recording& r);
// The Python object that a `constant` op holds; borrowed.
PyObject* held_object(const AttrObject& held);

// Rules that users wrote for a function and that stay the same have one token, through which what
// was transformed with them is found again (transforms.cpp). Python holds it with the function; it
// holds no rule, so that functions can die.
struct RuleToken {
  struct Key {
    GraphRef graph;  // with stand-ins for the rules
    std::string options;
  };
  struct Transformed {
    GraphRef graph;  // without rules, ready to run
    Mask mask;
  };
  LruTable<Key, Transformed> transformed{64};
};
using RuleTokenRef = std::shared_ptr<RuleToken>;

// The token of the first rule that a graph has; null if there is none.
RuleTokenRef rule_token(const GraphRef& graph);
// The graph with stand-ins for its rules, equal to every graph with rules of the same tokens; null
// if one has none.
GraphRef without_rule_objects(const GraphRef& graph);

void bind_rules(nanobind::module_& m);

}  // namespace weft::py
