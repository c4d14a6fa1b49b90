// shrink: delta debugging (Zeller and Hildebrandt, 2002) over the ops and outputs of a program, and
// of the graphs in it: half of what there is, then smaller pieces, until nothing can go alone.
#include <algorithm>
#include <unordered_set>

#include "ops/def/walk.h"
#include "passes/pass_list.h"
#include "transforms/prune.h"
#include "weft/build.h"
#include "weft/error.h"
#include "weft/faults.h"

namespace weft {
namespace {

// What takes the place of ops.
enum class StandIn : uint8_t {
  kOutputs,   // their operands become outputs, in place of their results
  kOperands,  // for a result an operand of its type, where there is one; else as below
  kFresh,     // for a result an input; zeros in graphs of ops, which keep their inputs
};

// A part of the ops of a graph, or of its outputs.
struct Range {
  uint32_t begin, end;
  bool has(uint32_t i) const { return i >= begin && i < end; }
};

bool is_cut(const Graph& graph, const Range& cut, const Op* op) {
  return op && cut.has(static_cast<uint32_t>(op - graph.ops().data()));
}

// Which values something reads that is not cut.
std::vector<bool> read_elsewhere(const Graph& graph, const Range& cut, bool by_outputs) {
  std::vector<bool> read(graph.num_values());
  auto note = [&](Value v) {
    if (!v.is_literal()) read[v.id] = true;
  };
  for (uint32_t i = 0; i < graph.ops().size(); ++i) {
    if (cut.has(i)) continue;
    for (Value v : graph.operands(graph.op(i))) note(v);
  }
  if (by_outputs)
    for (Value v : graph.outputs()) note(v);
  return read;
}

// Outputs of a graph whose outputs may change, if the ops of a part are cut.
std::vector<Value> outputs_around(const Graph& graph, const Range& cut) {
  std::vector<Value> outputs;
  for (Value v : graph.outputs())
    if (!is_cut(graph, cut, graph.producer(v))) outputs.push_back(v);
  for (uint32_t i = cut.begin; i < cut.end; ++i) {
    for (Value v : graph.operands(graph.op(i))) {
      const Op* op = graph.producer(v);
      bool is_new = std::find(outputs.begin(), outputs.end(), v) == outputs.end();
      if (op && !is_cut(graph, cut, op) && is_new) outputs.push_back(v);
    }
  }
  return outputs;
}

GraphRef without_ops(const Graph& graph, const Range& cut, StandIn stand_in, bool is_whole) {
  GraphBuilder b;
  ValueMap map(graph, b);
  std::vector<Value> inputs = copy_inputs(graph, b, map);
  std::vector<bool> read = read_elsewhere(graph, cut, stand_in != StandIn::kOutputs);
  copy_ops(graph, b, map, [&](const Op& op, const Values& operands) -> Values {
    if (!is_cut(graph, cut, &op)) return copy_op(graph, b, op, operands);
    Values results;
    for (uint32_t i = 0; i < op.num_results; ++i) {
      Value result = graph.result(op, i);
      TypeRef type = graph.type(result);
      auto same = std::find_if(operands.begin(), operands.end(), [&](Value v) {
        return stand_in == StandIn::kOperands && b.type(v) == type;
      });
      results.push_back(!read[result.id]         ? Value{}
                        : same != operands.end() ? *same
                        : is_whole               ? b.input(type)
                                                 : zeros(b, type).value);
    }
    return results;
  });
  if (stand_in != StandIn::kOutputs) return finish_copy(graph, b, map, inputs);
  std::vector<Value> outputs;
  for (Value v : outputs_around(graph, cut)) outputs.push_back(map(v));
  return b.finish(outputs, std::span(inputs).first(graph.num_consts()));
}

GraphRef without_outputs(const Graph& graph, const Range& cut) {
  GraphBuilder b;
  ValueMap map(graph, b);
  std::vector<Value> inputs = copy_inputs(graph, b, map);
  copy_ops(graph, b, map,
           [&](const Op& op, const Values& operands) { return copy_op(graph, b, op, operands); });
  std::vector<Value> outputs;
  for (uint32_t i = 0; i < graph.outputs().size(); ++i)
    if (!cut.has(i)) outputs.push_back(map(graph.outputs()[i]));
  return b.finish(outputs, std::span(inputs).first(graph.num_consts()));
}

// An op's graph that computes the op's results of its last operands; null if there is none.
GraphRef graph_in_place(const Graph& graph, const Op& op) {
  if (!op.attrs || !takes_graphs(*op.info)) return nullptr;
  TypeRefs in = operand_types(graph, op);
  GraphRef found;
  for_each_graph(op.attrs, [&](const GraphRef& g) {
    std::span<const TypeRef> types = g->input_types();
    if (types.size() <= in.size() && std::ranges::equal(types, std::span(in).last(types.size())) &&
        std::ranges::equal(g->output_types(), graph.result_types(op)))
      found = g;
  });
  return found;
}

GraphRef with_inlined(const Graph& graph, const Op& inlined, const Graph& body) {
  GraphBuilder b;
  return rebuild(graph, b, [&](const Op& op, const Values& operands) {
    if (&op != &inlined) return copy_op(graph, b, op, operands);
    return b.inline_graph(body, std::span(operands).last(body.num_inputs()));
  });
}

// With another graph in place of one that ops have.
GraphRef with_graph(const Graph& graph, const GraphRef& from, const GraphRef& to) {
  GraphBuilder b;
  return rebuild(graph, b, [&](const Op& op, const Values& operands) {
    AttrsRef attrs = op.attrs;
    if (attrs) attrs = map_graphs(attrs, [&](const GraphRef& g) { return g == from ? to : g; });
    return b.add(*op.info, operands, attrs);
  });
}

std::vector<GraphRef> graphs_in(const Graph& graph) {
  std::vector<GraphRef> graphs;
  for (const Op& op : graph.ops()) {
    if (!op.attrs || !takes_graphs(*op.info)) continue;
    for_each_graph(op.attrs, [&](const GraphRef& g) {
      if (std::find(graphs.begin(), graphs.end(), g) == graphs.end()) graphs.push_back(g);
    });
  }
  return graphs;
}

// A graph that is being shrunk: the program, or one that ops hold, which keeps its signature.
class Shrinking {
 public:
  using Accept = std::function<bool(const GraphRef&)>;
  // `prunes`: what nothing needs is taken away with the rest. `accept`: whether a graph may stand
  // in place of this one.
  Shrinking(GraphRef graph, bool is_whole, bool prunes, Accept accept)
      : graph_(std::move(graph)),
        is_whole_(is_whole),
        prunes_(prunes),
        accept_(std::move(accept)) {}

  // Until nothing more can be taken away.
  GraphRef run() {
    while (round()) {}
    return graph_;
  }

 private:
  bool round() {
    bool any = false;
    if (is_whole_) {
      any |= in_parts(&num_ops, [&](Range r) { return cut(r, StandIn::kOutputs); });
      any |= in_parts(&num_outputs, [&](Range r) { return without_outputs(*graph_, r); });
    }
    for (StandIn stand_in : {StandIn::kFresh, StandIn::kOperands})
      any |= in_parts(&num_ops, [&](Range r) { return cut(r, stand_in); });
    any |= inline_graphs();
    return shrink_graphs() || any;
  }

  static uint32_t num_ops(const Graph& g) { return static_cast<uint32_t>(g.ops().size()); }
  static uint32_t num_outputs(const Graph& g) { return static_cast<uint32_t>(g.outputs().size()); }

  GraphRef cut(Range ops, StandIn stand_in) const {
    return without_ops(*graph_, ops, stand_in, is_whole_);
  }

  // Replaces the graph by what make() gives, if that is a program and is accepted.
  template <typename Make>
  bool attempt(Make&& make) {
    GraphRef made;
    try {
      made = make();
      if (prunes_) made = prune(made, is_whole_ ? made->num_inputs() : 0).graph;
    } catch (const Error&) { return false; }
    if (!accept_(made)) return false;
    graph_ = std::move(made);
    return true;
  }

  // Takes away as large parts as go, from the end on.
  template <typename Make>
  bool in_parts(uint32_t (*count)(const Graph&), Make&& make) {
    bool any = false;
    for (uint32_t size = count(*graph_); size > 0; size /= 2) {
      for (uint32_t end = count(*graph_); end > 0;) {
        uint32_t begin = end - std::min(size, end);
        any |= attempt([&] { return make(Range{begin, end}); });
        end = std::min(begin, count(*graph_));
      }
    }
    return any;
  }

  bool inline_graphs() {
    bool any = false;
    for (uint32_t i = num_ops(*graph_); i-- > 0;) {
      if (i >= num_ops(*graph_)) continue;
      const Op& op = graph_->op(i);
      if (GraphRef body = graph_in_place(*graph_, op))
        any |= attempt([&] { return with_inlined(*graph_, op, *body); });
    }
    return any;
  }

  bool shrink_graphs() {
    bool any = false;
    for (GraphRef inner : graphs_in(*graph_)) {
      auto accept = [&](const GraphRef& candidate) {
        GraphRef with;
        try {
          with = with_graph(*graph_, inner, candidate);
        } catch (const Error&) { return false; }
        if (!accept_(with)) return false;
        graph_ = with;
        inner = candidate;
        return any = true;
      };
      Shrinking(inner, false, prunes_, accept).run();
    }
    return any;
  }

  GraphRef graph_;
  bool is_whole_;
  bool prunes_;
  Accept accept_;
};

// Ops in all, then what else there is.
std::pair<uint32_t, size_t> size_of(const Graph& graph) {
  return {count_ops(graph), graph.num_inputs() + graph.outputs().size()};
}

}  // namespace

Shrunk shrink(const GraphRef& graph, const ProgramTest& test) {
  Shrunk shrunk;
  auto holds = [&](const Graph& g) {
    ++shrunk.num_tests;
    return test(g);
  };
  if (!holds(*graph)) {
    fail(ErrorKind::kValue,
         "[shrink] expected a program of which the test holds; it does not hold of the one given");
  }
  auto size = size_of(*graph);
  std::unordered_set<uint64_t> seen = {graph->structural_hash()};
  auto accept = [&](const GraphRef& candidate) {
    auto smaller = size_of(*candidate);
    if (smaller >= size || !seen.insert(candidate->structural_hash()).second) return false;
    if (!holds(*candidate)) return false;
    size = smaller;
    return true;
  };
  // A failure may lie in what nothing needs.
  GraphRef pruned = prune(graph, graph->num_inputs()).graph;
  bool prunes = pruned == graph || accept(pruned);
  shrunk.graph = Shrinking(prunes ? pruned : graph, true, prunes, accept).run();
  return shrunk;
}

}  // namespace weft
