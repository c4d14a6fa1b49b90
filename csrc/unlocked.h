// Work on graphs without the interpreter's lock, so that other threads get on meanwhile.
#pragma once

#include <unordered_set>

#include "core.h"

namespace weft::py {

// Graphs so small are done before another thread would have the lock.
constexpr size_t kUnlockedOps = 200;

// The number of ops of a graph and those it holds; 0 if one of them may hold something of Python's
// (ops of users, callbacks, rules, policies, captured values).
inline size_t ops_without_objects(const Graph& graph, std::unordered_set<const Graph*>& seen) {
  if (!seen.insert(&graph).second) return 1;
  size_t count = 1 + graph.ops().size();
  for (const Op& op : graph.ops()) {
    for (const AttrSpec& spec : op.info->attrs.specs())
      if (spec.type == AttrType::kObject || spec.type == AttrType::kConstant) return 0;
    bool free = true;
    for_each_graph(op.attrs, [&](const GraphRef& inner) {
      size_t ops = free ? ops_without_objects(*inner, seen) : 0;
      free = free && ops > 0;
      count += ops;
    });
    if (!free) return 0;
  }
  return count;
}

// f(), which works on the graph and touches no Python object but through it.
template <typename F>
auto unlocked(const Graph& graph, F&& f) {
  struct Release {
    PyThreadState* state;
    explicit Release(bool on) : state(on ? PyEval_SaveThread() : nullptr) {}
    ~Release() {
      if (state) PyEval_RestoreThread(state);
    }
  };
  std::unordered_set<const Graph*> seen;
  Release release(ops_without_objects(graph, seen) > kUnlockedOps);
  return f();
}

}  // namespace weft::py
