// What ops take as steps of a program and as part of a kernel, by estimate.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "weft/op_def.h"

namespace weft {

// Of what a part of a program takes, the part that a kernel is to save at least.
inline constexpr double kMinGain = 0.05;
// Iterations of a while in a program.
inline constexpr double kTripsOfWhile = 30;

// What a run of ops takes, as steps of a program and as part of a kernel.
struct Toll {
  bool may_stand = true;
  bool stays = true;               // as it is: nothing is another op in a kernel
  double apart = 0, together = 0;  // seconds besides the work
  double compute = 0, moves = 0;   // seconds that both take: for operations, and for bytes
  double steps = 0, size = 0;      // of the text, where a loop stands once
  double thunks = 0;               // of the sequence that the ops are part of
  double unrolled = 0;             // seconds that a kernel takes less if LLVM unrolls its loops
  double unrolled_apart = 0;       // the same of steps of a program
  bool has_graphs = false;         // of a loop or a branch
  bool is_open = false;            // has a loop of which it is not known how long it is
  double largest = 0;              // bytes that a step reads and writes
  int chain = 0;                   // of steps that use each other's results: see kMaxChain

  void add(const Toll& x, double times = 1) {
    may_stand &= x.may_stand;
    stays &= x.stays;
    apart += times * x.apart;
    together += times * x.together;
    compute += times * x.compute;
    moves += times * x.moves;
    unrolled += times * x.unrolled;
    unrolled_apart += times * x.unrolled_apart;
    steps += x.steps;
    size += x.size;
    thunks += x.thunks;
    has_graphs |= x.has_graphs;
    is_open |= x.is_open;
    largest = std::max(largest, x.largest);
  }
  double saved() const { return apart - together; }
  double all() const { return apart + compute + moves; }  // as steps of a program
  bool gains() const { return saved() > kMinGain * all(); }
};

// How values are used, as far as XLA goes by it when it fuses what makes them.
struct Uses {
  explicit Uses(const Graph& graph);
  std::vector<uint32_t> count;
  // How many steps make a value if it is made in each that reads it, by way of what is cheap.
  std::vector<double> copies;
  std::vector<bool> is_output;
  // What is made element by element of rows that are put together of parts, and what is made for
  // that alone: LLVM makes no vectors of it, unless it unrolls the loop.
  std::vector<bool> beside_join;

 private:
  void find_joins(const Graph& graph);
};

// The longest chain of ops up to each value, by the lengths of the ops.
class Chains {
 public:
  explicit Chains(const Graph& graph) : graph_(graph) {}
  // Of ops in their order; the length up to the results.
  int add(const Op& op, int length) {
    int longest = 0;
    for (Value v : graph_.operands(op))
      if (!v.is_literal()) longest = std::max(longest, lengths_[v.id]);
    for (uint32_t i = 0; i < op.num_results; ++i) lengths_[op.results_begin + i] = longest + length;
    return longest + length;
  }

 private:
  const Graph& graph_;
  std::unordered_map<uint32_t, int> lengths_;
};

bool is_loop(const Op& op);
// How often an op runs a graph. The trips of a while are not known.
double times_run(const Graph& graph, const Op& op, const Graph& inner,
                 double trips_of_while = kTripsOfWhile);

class Tolls {
 public:
  struct OfGraph {
    Toll all;
    std::vector<Toll> ops;
  };
  const Toll& of(const Graph& graph) { return op_by_op(graph).all; }
  const OfGraph& op_by_op(const Graph& graph);

  // What an op is in a kernel that may not stand there as it is.
  struct Form {
    const OpDef* op;
    AttrsRef attrs;
    TypeRefs in_types;
    GraphRef graph;      // null: there is no form
    GraphRef plain;      // what it is written as outside of kernels; null: nothing
    double outside = 0;  // seconds that it takes there
  };

  const Form* form_of(const Graph& graph, const Op& op);

 private:
  Toll of(const Graph& graph, const Op& op, const Uses& uses);
  double seconds_outside(const Form& form, double flops);

  int forms_around_ = 0;
  std::unordered_map<const Graph*, OfGraph> graphs_;
  std::unordered_multimap<uint64_t, Form> forms_;
};

}  // namespace weft
