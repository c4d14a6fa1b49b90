// What transforms and passes share: copying values between graphs, and visiting region graphs once
// each.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/builder.h"
#include "weft/graph.h"
#include "weft/op_def.h"

namespace weft {

// Where the values of a source graph are in the graph that is built from it.
class ValueMap {
 public:
  ValueMap(const Graph& from, Builder& to)
      : from_(from), to_(to), values_(from.num_values()), literals_(from.num_literals()) {}

  Value operator()(Value v) {
    if (!v.is_literal()) return values_[v.id];
    Value& mapped = literals_[v.literal_index()];
    if (mapped.is_none()) mapped = to_.literal(from_.literal(v));
    return mapped;
  }
  Values operator()(std::span<const Value> vs) {
    Values out;
    out.reserve(vs.size());
    for (Value v : vs) out.push_back((*this)(v));
    return out;
  }
  void set(Value from, Value to) { values_[from.id] = to; }
  // No results at all: of an op that is left out.
  void set_results(const Op& op, std::span<const Value> results) {
    for (uint32_t i = 0; i < results.size(); ++i) values_[op.results_begin + i] = results[i];
  }

 private:
  const Graph& from_;
  Builder& to_;
  std::vector<Value> values_;
  std::vector<Value> literals_;
};

// Adds the graph's inputs to a builder; returns them.
inline std::vector<Value> copy_inputs(const Graph& graph, GraphBuilder& to, ValueMap& map) {
  std::vector<Value> inputs;
  inputs.reserve(graph.num_inputs());
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    inputs.push_back(to.input(graph.type(graph.input(i))));
    map.set(graph.input(i), inputs.back());
  }
  return inputs;
}

// Freezes a copy that kept all inputs of `graph`.
inline GraphRef finish_copy(const Graph& graph, GraphBuilder& to, ValueMap& map,
                            std::span<const Value> inputs) {
  std::vector<Value> outputs;
  outputs.reserve(graph.outputs().size());
  for (Value v : graph.outputs()) outputs.push_back(map(v));
  return to.finish(outputs, inputs.first(graph.num_consts()));
}

// Copies the ops of a graph in order: make(op, operands) appends what stands for one, at its
// location, and returns its results, or nothing for an op that is left out.
template <typename Make>
void copy_ops(const Graph& graph, Builder& to, ValueMap& map, Make&& make) {
  for (const Op& op : graph.ops()) {
    to.set_loc(op.loc);
    map.set_results(op, make(op, map(graph.operands(op))));
  }
}
// An op as it stands.
inline Values copy_op(const Graph& graph, Builder& to, const Op& op,
                      std::span<const Value> operands) {
  return to.add_typed(*op.info, operands, op.attrs, graph.result_types(op));
}
// A graph with the same inputs and other ops; `to`, which appends to `dest`, is what make() uses.
template <typename Make>
GraphRef rebuild(const Graph& graph, GraphBuilder& dest, Builder& to, Make&& make) {
  ValueMap map(graph, to);
  std::vector<Value> inputs = copy_inputs(graph, dest, map);
  copy_ops(graph, to, map, make);
  return finish_copy(graph, dest, map, inputs);
}
template <typename Make>
GraphRef rebuild(const Graph& graph, GraphBuilder& dest, Make&& make) {
  return rebuild(graph, dest, dest, make);
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
