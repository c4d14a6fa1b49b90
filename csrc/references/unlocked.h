// Work on graphs without the interpreter's lock, so that other threads get on meanwhile.
#pragma once

#include <unordered_set>

#include "references/core.h"

namespace weft::py {

// Graphs so small are done before another thread would have the lock.
constexpr size_t kUnlockedOps = 200;

// Whether a graph and those it holds have more ops than `left`, which is lowered by those it meets.
inline bool has_more_ops(const Graph& graph, size_t& left, std::unordered_set<const Graph*>& seen) {
  if (!seen.insert(&graph).second) return false;
  if (graph.ops().size() > left) return true;
  left -= graph.ops().size();
  bool more = false;
  for (const Op& op : graph.ops())
    for_each_graph(op.attrs,
                   [&](const GraphRef& inner) { more = more || has_more_ops(*inner, left, seen); });
  return more;
}

// Whether work on a graph takes long, and no op in it can come to Python: ops of users, callbacks,
// rules, captured values.
inline bool runs_unlocked(const Graph& graph) {
  std::unordered_set<const Graph*> seen;
  size_t left = kUnlockedOps;
  return has_more_ops(graph, left, seen) && is_portable(graph);
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
  Release release(runs_unlocked(graph));
  return f();
}

}  // namespace weft::py
