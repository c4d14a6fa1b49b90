// SPDX-License-Identifier: Apache-2.0
// Graphs made from graphs: the same inputs, and for each op something that stands for it.
#pragma once

#include <vector>

#include "weft/builder.h"
#include "weft/graph.h"

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

}  // namespace weft
