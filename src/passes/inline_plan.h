// Which calls of a program are replaced by the ops of what they call: those of tiny graphs and of
// graphs that are called from one place, and as many more as it takes to keep calls from being
// nested deeper than XLA can follow.
#pragma once

#include <unordered_map>
#include <vector>

#include "ops/def/walk.h"
#include "weft/graph.h"

namespace weft {

// How often the values of a graph are used by its outputs and by ops that something needs.
std::vector<uint32_t> live_uses(const Graph& graph);
// Whether something needs an op, given live_uses().
bool is_live(const Op& op, const std::vector<uint32_t>& uses);

enum class InlineDepth : uint8_t { kAny, kBounded };

class InlinePlan {
 public:
  // kBounded only for programs without equal calls: it may double what is called twice.
  InlinePlan(const GraphRef& graph, InlineDepth depth);

  // Of an op of the program.
  bool inlines(const Op& op) const;
  bool any() const { return any_; }

 private:
  struct Callee {
    uint32_t num_calls = 0;
    bool is_inlined = false;
    uint64_t num_ops = 0;  // when all is done
    uint32_t depth = 0;    // calls and regions in each other, when all is done
  };

  Callee& find(const GraphRef& any_graph) { return callees_.at(distinct_(any_graph).get()); }
  void count_calls(const Graph& graph);
  void measure(const Graph& graph, Callee& out);
  bool is_worth_it(const Callee& callee) const;

  bool bounds_depth_;
  bool any_ = false;
  GraphMemo distinct_{[](const GraphRef& graph) { return graph; }};
  std::unordered_map<const Graph*, Callee> callees_;   // of distinct graphs
  std::unordered_map<const Graph*, bool> is_inlined_;  // of every graph that is called
};

}  // namespace weft
