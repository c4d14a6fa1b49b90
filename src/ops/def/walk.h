// What transforms and passes share: the types of operands; the graphs that ops hold, visited once
// each.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/builder.h"
#include "weft/graph.h"
#include "weft/op_def.h"
#include "weft/rebuild.h"

namespace weft {

inline TypeRefs operand_types(const Graph& graph, const Op& op) {
  TypeRefs types;
  for (Value v : graph.operands(op)) types.push_back(graph.type(v));
  return types;
}

inline bool takes_graphs(const OpInfo& op) {
  for (const AttrSpec& spec : op.attrs.specs())
    if (spec.type == AttrType::kGraph || spec.type == AttrType::kGraphs) return true;
  return false;
}

// The graph that an op with CallKind other than kNone calls.
inline const GraphRef& callee(const OpInfo& op, const AttrsRef& attrs) {
  for (const Attr& attr : attrs->values())
    if (const GraphRef* graph = std::get_if<GraphRef>(&attr)) return *graph;
  fail(ErrorKind::kInternal, "[", op.name, "] is declared to be a call but has no graph");
}
inline const GraphRef& callee(const Op& op) { return callee(*op.info, op.attrs); }

inline bool is_call(const Op& op) { return def(*op.info).call != CallKind::kNone; }

// The record of a call with another callee.
inline AttrsRef with_callee(const AttrsRef& attrs, const GraphRef& graph) {
  return map_graphs(attrs, [&](const GraphRef&) { return graph; });
}

// A function of graphs that is computed once per distinct structure: a layer that is called 48
// times, or traced 48 times, is optimised once. What it returns it leaves alone.
class GraphMemo {
 public:
  explicit GraphMemo(std::function<GraphRef(const GraphRef&)> f) : f_(std::move(f)) {}

  GraphRef operator()(const GraphRef& graph) {
    auto known = by_pointer_.find(graph.get());
    if (known != by_pointer_.end()) return known->second.result;
    uint64_t hash = graph->structural_hash();
    auto [begin, end] = by_structure_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (equal(*it->second, *graph)) {
        GraphRef result = by_pointer_.at(it->second.get()).result;
        by_pointer_.emplace(graph.get(), Entry{graph, result});
        return result;
      }
    }
    GraphRef result = f_(graph);
    by_pointer_.emplace(graph.get(), Entry{graph, result});
    by_pointer_.emplace(result.get(), Entry{result, result});
    by_structure_.emplace(hash, graph);
    return result;
  }

 private:
  struct Entry {
    GraphRef source;  // kept, so that its address stays unique
    GraphRef result;
  };
  std::function<GraphRef(const GraphRef&)> f_;
  std::unordered_map<const Graph*, Entry> by_pointer_;
  std::unordered_multimap<uint64_t, GraphRef> by_structure_;
};

}  // namespace weft
