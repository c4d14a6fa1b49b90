// Which parts of a program become kernels, by what they take as they are and as one function.
//
// An op may stand in a kernel if it says so (OpDef::in_kernel), or if all ops may that it is
// written as (for_kernel, decompose); one with graphs if all of their ops may as well. Ops outside
// of kernels keep their order; what may stand in one and waits for no other of them is put
// together. Those of these ops that use each other's results are a region. The body of a loop
// outside of all regions may have regions of its own.
#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "ops/def/function.h"
#include "ops/def/walk.h"
#include "passes/machine.h"
#include "passes/pass_list.h"
#include "weft/build.h"
#include "weft/kernel_regions.h"
#include "weft/transforms.h"

namespace weft {
namespace {

// How large a kernel may be: LLVM's time grows faster than the number of loops over arrays in a
// function, and many make it slow. Steps on single numbers weigh less.
constexpr double kMaxSize = 60, kSizeOfNumber = 1.0 / 8;
// XLA hands every argument and result as a pointer of its own, and takes long with many.
constexpr size_t kMaxBorder = 160;
// What a straight line in a loop is to save at least. One outside of loops never does enough: what
// runs once costs less than a call with many arguments.
constexpr double kMinSecondsInLoop = 2e-7;
// Kernels of a program, each of which is compiled by itself; of them, those that are equal.
constexpr size_t kMaxKernels = 24;
constexpr std::ptrdiff_t kMaxEqualKernels = 2;
// Bytes that a step outside of loops reads and writes at most: XLA splits what is larger among
// threads, and refuses it in kernels. In loops larger arrays leave nothing to gain.
constexpr double kMaxBytesOutside = 3 << 12, kMaxBytesInLoop = 3 << 16;
// XLA makes kernels of loops that read and write fewer bytes in an iteration, by itself, if no op
// is a call of a library. A kernel in such a loop would keep it from that.
constexpr int64_t kBytesOfOwnKernel = 1024;
// Emission cuts chains of steps that XLA would follow by recursion (emit/writer.h), by barriers,
// which XLA refuses in kernels. Of this length no chain is cut.
constexpr int kMaxChain = 2500, kChainOfOther = 40;
// XLA makes what is fused again in each step that reads it; what a library gave, at most so often.
constexpr double kMaxCopies = 16;
// Calls and loops in each other of a program with kernels: these add some, and emission refuses
// more than kMaxEmittedDepth.
constexpr uint32_t kMaxDepth = 64;
// How often the regions of a graph may wait for ops outside of them.
constexpr int kMaxPhases = 64;
// Of a while in a program; of one that an op is written as: those converge (Jacobi's sweeps).
constexpr double kTripsOfWhile = 30, kTripsOfForm = 4;
// What a kernel outside of loops is to save at least: about what its arguments take.
constexpr double kMinSeconds = 2e-6;
// Of what a part of a program takes, the part that a kernel is to save at least.
constexpr double kMinGain = 0.05;
// Of what kernels take, the part that unrolled loops are to spare: they take longer to compile. A
// program without kernels has many loops that do not gain.
constexpr double kMinUnrolled = 0.05, kMinUnrolledThunks = 0.2, kMinSecondsUnrolled = 4e-6;
// Elements of arrays over which loops are unrolled anyway, as XLA or a library writes them so.
constexpr double kMostUnrolled = 1 << 14;
// Rows that are put together of parts, of fewer numbers, gain nothing from it.
constexpr int64_t kShortestJoined = 16;

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

// Whether an op puts long rows together of parts.
bool joins_rows(const Graph& graph, const Op& op) {
  if (op.info != &op_named<"concatenate">() || op.num_operands < 2) return false;
  TypeRef type = graph.result_types(op)[0];
  return op.attrs->integer("dimension") == type->rank() - 1 &&
         type->shape().back() >= kShortestJoined;
}

// How values are used, as far as XLA goes by it when it fuses what makes them.
struct Uses {
  explicit Uses(const Graph& graph)
      : count(graph.num_values()),
        copies(graph.num_values()),
        is_output(graph.num_values()),
        beside_join(graph.num_values()) {
    for (Value v : graph.outputs()) {
      if (v.is_literal()) continue;
      is_output[v.id] = true;
      copies[v.id] = 1;
    }
    for (size_t i = graph.ops().size(); i-- > 0;) {
      const Op& op = graph.op(static_cast<uint32_t>(i));
      double of_op = 1;
      if (is_copied(graph, op)) {
        of_op = 0;
        for (uint32_t r = 0; r < op.num_results; ++r) of_op += copies[op.results_begin + r];
      }
      for (Value v : graph.operands(op)) {
        if (v.is_literal()) continue;
        ++count[v.id];
        copies[v.id] += of_op;
      }
    }
    find_joins(graph);
  }
  std::vector<uint32_t> count;
  // How many steps make a value if it is made in each that reads it, by way of what is cheap.
  std::vector<double> copies;
  std::vector<bool> is_output;
  // What is made element by element of rows that are put together of parts, and what is made for
  // that alone: LLVM makes no vectors of it, unless it unrolls the loop.
  std::vector<bool> beside_join;

 private:
  void find_joins(const Graph& graph) {
    for (const Op& op : graph.ops()) {
      bool reads = joins_rows(graph, op);
      for (Value v : graph.operands(op))
        reads |= def(*op.info).elementwise && !v.is_literal() && beside_join[v.id];
      for (uint32_t r = 0; r < op.num_results; ++r) beside_join[op.results_begin + r] = reads;
    }
    std::vector<bool> other_use = is_output;
    for (size_t i = graph.ops().size(); i-- > 0;) {
      const Op& op = graph.op(static_cast<uint32_t>(i));
      uint32_t result = op.results_begin;
      bool is_line = def(*op.info).elementwise;
      if (is_line && count[result] > 0 && !other_use[result]) beside_join[result] = true;
      for (Value v : graph.operands(op))
        if (!v.is_literal() && !(is_line && beside_join[result])) other_use[v.id] = true;
    }
  }
  static bool is_copied(const Graph& graph, const Op& op) {
    if (op.attrs && takes_graphs(*op.info)) return false;
    Cost cost = op_cost(graph, op);
    return cost.transcendentals == 0 && (def(*op.info).elementwise || cost.flops == 0);
  }
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

// Of what a graph takes and gives.
int64_t border_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (TypeRef type : graph.input_types()) bytes += type->num_bytes();
  for (TypeRef type : graph.output_types()) bytes += type->num_bytes();
  return bytes;
}

bool is_loop(const Op& op) { return def(*op.info).loop.parts || op.info == &op_named<"while">(); }

// How often an op runs a graph. The trips of a while are not known.
double times_run(const Graph& graph, const Op& op, const Graph& inner,
                 double trips_of_while = kTripsOfWhile) {
  auto flops = [&](double of_inner) {
    return op_cost(graph, op,
                   [&](const Graph& g) { return Cost{.flops = &g == &inner ? of_inner : 0}; })
        .flops;
  };
  return (flops(1) - flops(0)) * (op.info == &op_named<"while">() ? trips_of_while : 1);
}

class Tolls {
 public:
  struct OfGraph {
    Toll all;
    std::vector<Toll> ops;
  };
  const Toll& of(const Graph& graph) { return op_by_op(graph).all; }
  const OfGraph& op_by_op(const Graph& graph) {
    auto known = graphs_.find(&graph);
    if (known != graphs_.end()) return known->second;
    OfGraph made;
    Uses uses(graph);
    Chains chains(graph);
    bool is_large = false;
    double thunks = 0;
    for (const Op& op : graph.ops()) {
      made.ops.push_back(of(graph, op, uses));
      thunks += made.ops.back().thunks;
      for (TypeRef type : graph.result_types(op))
        is_large |= type->num_bytes() > machine::kMaxBytesInOrder;
    }
    bool is_shared = is_large && thunks > machine::kMaxInOrder;
    for (size_t i = 0; i < made.ops.size(); ++i) {
      Toll& toll = made.ops[i];
      if (is_shared) toll.apart += toll.thunks * (machine::kSharedThunk - machine::kThunk);
      made.all.add(toll);
      made.all.chain =
          std::max(made.all.chain, chains.add(graph.op(static_cast<uint32_t>(i)), toll.chain));
    }
    return graphs_.emplace(&graph, std::move(made)).first->second;
  }

 private:
  Toll of(const Graph& graph, const Op& op, const Uses& uses) {
    Toll toll;
    if (effects_of(*op.info, op.attrs) != kPure) return outside(graph, op);
    // A kernel gives a number of each of its arguments (kernel_of).
    for (Value v : graph.operands(op))
      if (graph.type(v)->num_elements() == 0) return outside(graph, op);
    if (may_stay(graph, op)) {
      toll = of_steps(graph, op, uses);
    } else if (const Form* form = form_of(graph, op)) {
      ++forms_around_;
      toll = of(*form->graph);
      if (def(*op.info).for_kernel) {
        for (uint32_t i = 0; i < op.num_results; ++i)
          toll.may_stand &= uses.copies[op.results_begin + i] <= kMaxCopies;
        toll.apart = form->outside;
        toll.together += toll.compute;
        toll.compute = toll.moves = 0;
        toll.thunks = 1;
      }
      --forms_around_;
      toll.has_graphs = toll.stays = false;  // its loops are not the program's
    } else {
      return outside(graph, op);
    }
    std::vector<const Graph*> run = graphs_run(graph, op);
    bool is_line = def(*op.info).elementwise || (toll.steps == 0 && toll.stays);
    toll.chain = std::max(toll.chain, is_line ? 1 : kChainOfOther);
    if (op.attrs)
      for_each_graph(op.attrs, [&](const GraphRef& inner) {
        toll.chain = std::max(toll.chain, of(*inner).chain + kChainOfOther);
        if (std::ranges::find(run, inner.get()) == run.end()) {
          toll.may_stand &= of(*inner).may_stand;
          toll.stays &= of(*inner).stays;
          return;
        }
        double times = times_run(graph, op, *inner, forms_around_ ? kTripsOfForm : kTripsOfWhile);
        toll.add(of(*inner), times);
        if (is_call(op)) return;
        toll.thunks = 1;
        toll.has_graphs = true;
        toll.is_open |= op.info == &op_named<"while">() && !forms_around_;
        toll.apart += times * (is_loop(op) ? machine::kTrip : machine::kBranch);
        toll.together += times * (is_loop(op) ? machine::kStepOfTrip : machine::kStepOfBranch);
      });
    return toll;
  }

  // Of an op that stays outside of kernels.
  static Toll outside(const Graph& graph, const Op& op) {
    Toll toll{.may_stand = false, .stays = false};
    Cost cost = op_cost(graph, op);
    toll.thunks = 1;
    toll.apart = machine::kLibraryCall;
    toll.compute = cost.flops * machine::kLibraryFlop + cost.transcendentals * machine::kFunction;
    toll.moves = cost.bytes * machine::kCachedByte;
    return toll;
  }

 public:
  // What an op is in a kernel that may not stand there as it is.
  struct Form {
    const OpDef* op;
    AttrsRef attrs;
    TypeRefs in_types;
    GraphRef graph;      // null: there is no form
    GraphRef plain;      // what it is written as outside of kernels; null: nothing
    double outside = 0;  // seconds that it takes there
  };

  const Form* form_of(const Graph& graph, const Op& op) {
    const OpDef& d = def(*op.info);
    if (may_stay(graph, op) || !(d.for_kernel || d.decompose)) return nullptr;
    TypeRefs in_types = operand_types(graph, op);
    uint64_t key = hash_use(d, op.attrs, in_types);
    auto [begin, end] = forms_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      const Form& f = it->second;
      if (f.op == &d && f.in_types == in_types && equal(f.attrs, op.attrs))
        return f.graph ? &f : nullptr;
    }
    Form form{.op = &d, .attrs = op.attrs, .in_types = in_types, .graph = {}, .plain = {}};
    auto out_types = graph.result_types(op);
    if (d.decompose) form.plain = decomposed(d, op.attrs, in_types, out_types, transforms(), "cpu");
    if (d.for_kernel)
      form.graph = written_for_kernel(d, op.attrs, in_types, out_types, transforms());
    if (!form.graph) form.graph = form.plain;
    form.outside = seconds_outside(form, op_cost(graph, op).flops);
    const Form& made = forms_.emplace(key, std::move(form))->second;
    return made.graph ? &made : nullptr;
  }

 private:
  // A call of a library, or what the op is written as outside of kernels too.
  double seconds_outside(const Form& form, double flops) {
    if (!form.plain) return machine::kLibraryCall + machine::kLibraryFlop * flops;
    bool calls = std::ranges::any_of(form.plain->ops(),
                                     [](const Op& x) { return x.info == &op_named<"ffi_call">(); });
    if (calls) return machine::kSolverCall + machine::kSolverFlop * flops;
    const Toll& toll = of(*form.plain);
    return toll.apart + toll.compute;
  }

  bool may_stay(const Graph& graph, const Op& op) {
    const OpDef& d = def(*op.info);
    if (!d.in_kernel) return false;
    TypeRefs in_types = operand_types(graph, op);
    return d.in_kernel({in_types, graph.result_types(op), op.attrs.get(), {}});
  }

  // What unrolled loops spare of an op of a kernel: they take several vectors at once, and compute
  // what is left of a row number by number. Pieces that are put together have a branch for each.
  static double unrolled(const Graph& graph, const Op& op, const Cost& cost, bool beside_join) {
    TypeRef type = graph.result_types(op)[0];
    int64_t row = type->rank() ? type->shape().back() : 1;
    auto elements = static_cast<double>(type->num_elements());
    if (elements > kMostUnrolled) return 0;
    if (!def(*op.info).elementwise) {
      if (cost.flops > 0) return unrolled_sum(graph, op, cost, machine::kVector / 2, 1);
      double pieces = 0;
      for (TypeRef t : operand_types(graph, op)) {
        if (static_cast<double>(t->num_elements()) > kMostUnrolled) return 0;
        pieces += t->rank() > 0;
      }
      if (pieces <= 1) return 0;
      if (row <= machine::kVector) return elements * (pieces - 1) * machine::kUnrolledPiece;
      if (beside_join) return elements * machine::kUnrolledJoin;
      bool is_across = op.info == &op_named<"concatenate">() &&
                       op.attrs->integer("dimension") < type->rank() - 1;
      return is_across ? elements * machine::kUnrolledJoinAcross : 0;
    }
    if (elements <= 1) return 0;
    int64_t vector = 4 * machine::kVector * type->num_elements() / type->num_bytes();
    int64_t left = row % (vector * machine::kUnrolledVectors);
    auto part = [&](int64_t numbers) {
      return static_cast<double>(numbers) / static_cast<double>(row);
    };
    double spared = part(row - left) * cost.flops * machine::kUnrolledFlop;
    if (beside_join) return spared;
    return spared - part(left - row % vector) * (cost.flops * machine::kFlopAlone +
                                                 cost.transcendentals * machine::kFunctionAlone);
  }

  // The same of a reduction: running ones have an inner loop, and those across rows of at least
  // `least` numbers, and along rows of at most `most`. Products with a vector have loops of their
  // own, those of small matrices none.
  static double unrolled_sum(const Graph& graph, const Op& op, const Cost& cost, int64_t most,
                             int64_t least) {
    if (op.num_operands == 0) return 0;
    TypeRef x = graph.type(graph.operand(op, 0));
    int64_t elements = graph.result_types(op)[0]->num_elements(), all = x->num_elements();
    double seconds = cost.flops * machine::kUnrolledSum;
    if (x->rank() == 0 || static_cast<double>(all) > kMostUnrolled || cost.flops > all) return 0;
    int64_t row = x->shape().back();
    if (elements == all) return seconds * static_cast<double>(row);
    return (sums_rows(op, *x) ? row <= most : row >= least) ? seconds : 0;
  }

  // Whether a reduction goes along the last axis of its operand.
  static bool sums_rows(const Op& op, const Type& x) {
    for (const char* name : {"axes", "dimensions"}) {
      if (op.attrs->schema().find(name) < 0) continue;
      const Dims& axes = op.attrs->ints(name);
      return std::ranges::find(axes, x.rank() - 1) != axes.end();
    }
    return false;
  }

  // Of an op but for its graphs. What is element-wise, or only moves elements, is part of the step
  // that reads it; functions of many readers are computed once, and the cheap in half of the cases.
  Toll of_steps(const Graph& graph, const Op& op, const Uses& uses) {
    Toll toll;
    if (!graphs_run(graph, op).empty()) return toll;
    Cost cost = op_cost(graph, op);
    const OpDef& d = def(*op.info);
    bool is_fused = d.elementwise || cost.flops == 0;
    for (uint32_t i = 0; i < op.num_results; ++i) {
      Value result = graph.result(op, i);
      TypeRef type = graph.type(result);
      double steps = 0;
      if (uses.is_output[result.id] || !is_fused)
        steps = 1;
      else if (uses.count[result.id] > 1 && cost.flops > 0)
        steps = cost.transcendentals > 0 ? 1 : 0.5;
      toll.steps += steps;
      toll.size += steps * (type->num_elements() == 1 ? kSizeOfNumber : 1);
    }
    toll.largest = cost.bytes;
    toll.thunks = toll.steps;
    toll.apart = toll.steps * machine::kThunk;
    toll.together = toll.steps * machine::kStep;
    int64_t elements = graph.result_types(op)[0]->num_elements();
    if (cost.transcendentals > 0 && elements > 1)
      toll.together += machine::kFunctionAlone * static_cast<double>(elements % machine::kVector);
    toll.unrolled = unrolled(graph, op, cost, uses.beside_join[op.results_begin]);
    if (cost.flops > 0 && !d.elementwise)
      toll.unrolled_apart = unrolled_sum(graph, op, cost, 0, machine::kVector);
    toll.compute = machine::seconds_of_work(cost, machine::kFunction);
    if (toll.steps > 0) toll.moves = cost.bytes * machine::kCachedByte;
    return toll;
  }

  int forms_around_ = 0;
  std::unordered_map<const Graph*, OfGraph> graphs_;
  std::unordered_multimap<uint64_t, Form> forms_;
};

class KernelChooser {
 public:
  explicit KernelChooser(KernelChoice choice) : choice_(choice) {}

  Kernels run(const GraphRef& graph) {
    GraphRef made = choice_ == KernelChoice::kNever ? graph : rewritten(graph, 1, false);
    bool unroll = kernels_.empty() ? unrolls_thunks(*graph) : unrolls(in_kernels_);
    return {.graph = std::move(made), .kernels = std::move(kernels_), .unroll = unroll};
  }

 private:
  bool is_always() const { return choice_ == KernelChoice::kAlways; }  // a region need not gain
  static bool unrolls(const Toll& kernels) {
    double all = kernels.together + kernels.compute;
    double least = kernels.is_open ? 0 : kMinSecondsUnrolled;
    return kernels.unrolled > std::max(least, kMinUnrolled * all);
  }
  // What is outside of loops runs once, which is soon less than what it takes to compile.
  bool unrolls_thunks(const Graph& graph) {
    const Tolls::OfGraph& tolls = tolls_.op_by_op(graph);
    double unrolled = 0;
    for (const Toll& toll : tolls.ops)
      if (toll.has_graphs) unrolled += toll.unrolled_apart;
    return unrolled > std::max(kMinSeconds, kMinUnrolledThunks * tolls.all.all());
  }

  // Ops of a graph, and the values that they take from the others and hand to them.
  struct Region {
    explicit Region(const Graph& graph_) : graph(graph_), chains(graph_) {}

    const Graph& graph;
    std::vector<uint32_t> ops;
    Toll toll;
    Chains chains;
    bool in_loop = false, is_kernel = false;
    Values inputs, outputs;
    Loc loc = kNoLoc;  // of the op that takes `most` seconds
    double most = 0;

    void add(uint32_t op, const Toll& x) {
      if (Loc at = graph.op(op).loc; at != kNoLoc && x.all() >= most) {
        loc = at;
        most = x.all();
      }
      ops.push_back(op);
      toll.add(x);
      toll.chain = std::max(toll.chain, chains.add(graph.op(op), x.chain));
    }
    size_t border() const { return inputs.size() + outputs.size(); }
  };
  // `all`: what the graph takes that the region is part of.
  bool is_worth_it(const Region& region, double all) const {
    Toll toll = region.toll;
    if (!toll.may_stand || toll.size > kMaxSize || toll.chain > kMaxChain) return false;
    if (is_always()) return true;
    toll.together += machine::kThunk + machine::kBorderArray * static_cast<double>(region.border());
    bool is_enough = region.in_loop ? toll.has_graphs || toll.saved() > kMinSecondsInLoop
                                    : toll.has_graphs && toll.saved() > kMinSeconds;
    // In a loop what is beside the region tells whether the gain is felt.
    bool is_felt = toll.saved() > kMinGain * (region.in_loop ? all : toll.all());
    return is_enough && is_felt && region.border() <= kMaxBorder;
  }

  static std::vector<Region> put_together(std::span<const Region> regions,
                                          std::span<const Toll> tolls);
  static void find_border(const Uses& uses, Region& region);
  void decide(Region& region, const Uses& uses, double all) const {
    find_border(uses, region);
    region.is_kernel = is_worth_it(region, all);
  }
  std::vector<Region> regions_of(const Graph& graph, const Uses& uses, bool in_loop);
  GraphRef rewritten(const GraphRef& graph, double times, bool in_loop);
  AttrsRef with_kernels_inside(const Graph& graph, const Op& op, double times, bool in_loop);
  GraphRef kernel_of(const Region& region);
  bool is_taken(const GraphRef& kernel);
  bool is_own_kernel(const Op& loop, const Graph& body) {
    bool stays = true;
    for_each_graph(loop.attrs, [&](const GraphRef& g) { stays &= tolls_.of(*g).stays; });
    return stays && border_bytes(body) < kBytesOfOwnKernel;
  }
  Values copied_for_kernel(const Graph& graph, const Op& op, Builder& b,
                           std::span<const Value> operands);

  const KernelChoice choice_;
  Tolls tolls_;
  GraphMemo bodies_{[this](const GraphRef& graph) {
    GraphBuilder b;
    return rebuild(*graph, b, [&](const Op& op, std::span<const Value> operands) {
      return copied_for_kernel(*graph, op, b, operands);
    });
  }};
  std::vector<Kernels::Kernel> kernels_;
  Toll in_kernels_;  // of all of them
  std::vector<GraphRef> taken_;
};

// The root of an element's set; paths are halved on the way.
uint32_t root_of(std::vector<uint32_t>& parents, uint32_t x) {
  for (; parents[x] != x; x = parents[x]) parents[x] = parents[parents[x]];
  return x;
}

// Regions of which none waits for another, as few that are not too large: each kernel takes a
// thunk. What is too large by itself is cut.
std::vector<KernelChooser::Region> KernelChooser::put_together(std::span<const Region> regions,
                                                               std::span<const Toll> tolls) {
  std::vector<Region> out;
  auto begin = [&](const Toll& next, int chain) {
    if (out.empty() || out.back().toll.size + next.size > kMaxSize ||
        out.back().toll.chain + chain > kMaxChain)
      out.emplace_back(regions.front().graph);
  };
  for (const Region& r : regions) {
    bool is_whole = r.toll.size <= kMaxSize && r.toll.chain <= kMaxChain;
    if (is_whole) begin(r.toll, 0);
    for (uint32_t i : r.ops) {
      if (!is_whole) begin(tolls[i], tolls[i].chain);
      out.back().add(i, tolls[i]);
    }
  }
  return out;
}

// Finds what a region takes from the other ops and hands to them.
void KernelChooser::find_border(const Uses& uses, Region& region) {
  const Graph& graph = region.graph;
  std::unordered_map<uint32_t, uint32_t> uses_inside;  // of values that are not inputs
  for (uint32_t i : region.ops)
    for (uint32_t r = 0; r < graph.op(i).num_results; ++r)
      uses_inside[graph.result(graph.op(i), r).id] = 0;
  std::unordered_set<uint32_t> is_input;
  for (uint32_t i : region.ops)
    for (Value v : graph.operands(graph.op(i))) {
      if (v.is_literal()) continue;
      if (auto made = uses_inside.find(v.id); made != uses_inside.end())
        ++made->second;
      else if (is_input.insert(v.id).second)
        region.inputs.push_back(v);
    }
  for (uint32_t i : region.ops)
    for (uint32_t r = 0; r < graph.op(i).num_results; ++r) {
      Value v = graph.result(graph.op(i), r);
      if (uses.is_output[v.id] || uses.count[v.id] > uses_inside[v.id]) region.outputs.push_back(v);
    }
}

// The ops of a graph in an order in which each region is one piece. What is in none is a region of
// one op that is not worth it.
std::vector<KernelChooser::Region> KernelChooser::regions_of(const Graph& graph, const Uses& uses,
                                                             bool in_loop) {
  auto num_ops = static_cast<uint32_t>(graph.ops().size());
  const auto& [all, tolls] = tolls_.op_by_op(graph);
  std::vector<bool> may(num_ops);
  for (uint32_t i = 0; i < num_ops; ++i) {
    const Toll& toll = tolls[i];
    double most = toll.has_graphs || in_loop ? kMaxBytesInLoop : kMaxBytesOutside;
    may[i] = toll.may_stand && toll.size <= kMaxSize && toll.largest <= most &&
             (!toll.has_graphs || is_always() || toll.gains());
  }

  std::vector<uint32_t> maker(graph.num_values(), num_ops);  // num_ops: an input
  for (uint32_t i = 0; i < num_ops; ++i)
    for (uint32_t r = 0; r < graph.op(i).num_results; ++r) maker[graph.op(i).results_begin + r] = i;
  std::vector<uint32_t> region(num_ops);
  std::iota(region.begin(), region.end(), 0u);
  std::vector<bool> done(num_ops + 1);
  done[num_ops] = true;

  std::vector<Region> out;
  std::vector<uint32_t> waiting(num_ops);
  std::iota(waiting.begin(), waiting.end(), 0u);
  for (int phase = 0; !waiting.empty(); ++phase) {
    bool together = phase % 2, is_last = phase >= kMaxPhases;
    std::vector<uint32_t> taken, left;
    bool holds_effects = false;  // effects keep their order
    for (uint32_t i : waiting) {
      const Op& op = graph.op(i);
      bool is_ready = std::ranges::all_of(
          graph.operands(op), [&](Value v) { return v.is_literal() || done[maker[v.id]]; });
      bool has_effects = effects_of(*op.info, op.attrs) != kPure;
      if (has_effects && holds_effects) is_ready = false;
      if (is_last || (is_ready && may[i] == together)) {
        taken.push_back(i);
        done[i] = true;
      } else {
        left.push_back(i);
        holds_effects |= has_effects;
      }
    }
    waiting = std::move(left);
    if (!together || is_last) {
      for (uint32_t i : taken) out.emplace_back(graph).add(i, tolls[i]);
      continue;
    }
    // Those that hand values to one another.
    std::vector<bool> is_taken(num_ops + 1);
    for (uint32_t i : taken) is_taken[i] = true;
    for (uint32_t i : taken)
      for (Value v : graph.operands(graph.op(i)))
        if (!v.is_literal() && is_taken[maker[v.id]])
          region[root_of(region, maker[v.id])] = root_of(region, i);
    std::map<uint32_t, size_t> number;  // by root
    std::vector<Region> found;
    for (uint32_t i : taken) {
      auto [at, fresh] = number.try_emplace(root_of(region, i), found.size());
      if (fresh) found.emplace_back(graph);
      found[at->second].add(i, tolls[i]);
    }
    if (in_loop) found = put_together(found, tolls);
    for (Region& r : found) {
      r.in_loop = in_loop;
      decide(r, uses, all.all());
      if (r.is_kernel) {
        out.push_back(std::move(r));
        continue;
      }
      // Of what is too much, its loops.
      for (uint32_t i : r.ops) {
        Region& one = out.emplace_back(graph);
        one.in_loop = in_loop;
        one.add(i, tolls[i]);
        if (tolls[i].has_graphs) decide(one, uses, all.all());
      }
    }
  }
  return out;
}

// The op in a kernel: as what it is written as there, if it does not stay, with the same for the
// ops of its graphs.
Values KernelChooser::copied_for_kernel(const Graph& graph, const Op& op, Builder& b,
                                        std::span<const Value> operands) {
  if (const Tolls::Form* form = tolls_.form_of(graph, op))
    return b.inline_graph(*bodies_(form->graph), operands);
  AttrsRef attrs = op.attrs;
  if (attrs && takes_graphs(*op.info))
    attrs = map_graphs(attrs, [this](const GraphRef& g) { return bodies_(g); });
  return b.add_typed(*op.info, operands, attrs, graph.result_types(op));
}

// One number of an array, as an array of its own.
Val one_number(Val x) {
  Dims start(x.shape().size(), 0), limit(x.shape().size(), 1);
  return reshape(x.rank() ? slice(x, start, limit) : x, {1});
}

// XLA must read every argument of a kernel: one that is not read, or only as far as its simplifier
// does not see through it, ends the process. So a number of each is in a further result.
GraphRef KernelChooser::kernel_of(const Region& region) {
  const Graph& graph = region.graph;
  GraphBuilder b;
  ValueMap map(graph, b);
  for (Value v : region.inputs) map.set(v, b.input(graph.type(v)));
  for (uint32_t i : region.ops) {
    const Op& op = graph.op(i);
    b.set_loc(op.loc);
    map.set_results(op, copied_for_kernel(graph, op, b, map(graph.operands(op))));
  }
  b.set_loc(kNoLoc);
  Values results = map(region.outputs);
  std::map<DType, Vals> numbers;
  for (Value v : map(region.inputs)) numbers[b.type(v)->dtype()].push_back(one_number({&b, v}));
  for (const auto& [dtype, all] : numbers)
    results.push_back((all.size() == 1 ? all[0] : concatenate(all, 0)).value);
  return b.finish(results);
}

// XLA compiles a kernel once for each call of it.
bool KernelChooser::is_taken(const GraphRef& kernel) {
  if (is_always()) return true;
  if (taken_.size() >= kMaxKernels) return false;
  auto is_equal = [&](const GraphRef& other) {
    return other->structural_hash() == kernel->structural_hash() && equal(*other, *kernel);
  };
  if (std::ranges::count_if(taken_, is_equal) >= kMaxEqualKernels) return false;
  taken_.push_back(kernel);
  return true;
}

// The attributes of an op outside of kernels, whose loops and branches may have some.
AttrsRef KernelChooser::with_kernels_inside(const Graph& graph, const Op& op, double times,
                                            bool in_loop) {
  if (!op.attrs || is_call(op)) return op.attrs;
  std::vector<const Graph*> run = graphs_run(graph, op);
  return map_graphs(op.attrs, [&](const GraphRef& g) {
    if (std::ranges::find(run, g.get()) == run.end()) return g;
    if (is_loop(op) && !is_always() && is_own_kernel(op, *g)) return g;
    return rewritten(g, times * times_run(graph, op, *g), in_loop || is_loop(op));
  });
}

GraphRef KernelChooser::rewritten(const GraphRef& graph, double times, bool in_loop) {
  GraphBuilder b;
  ValueMap map(*graph, b);
  std::vector<Value> inputs = copy_inputs(*graph, b, map);
  bool changed = false;
  const Uses uses(*graph);
  const OpDef& kernel_op = op_named<"kernel">();
  for (const Region& region : regions_of(*graph, uses, in_loop)) {
    if (region.is_kernel) {
      GraphRef kernel = kernel_of(region);
      if (is_taken(kernel)) {
        AttrsRef attrs = AttrRecord::make(kernel_op.name, kernel_op.attrs,
                                          {{"name", kernel_op.name}, {"body", kernel}});
        b.set_loc(graph->op(region.ops.front()).loc);
        Values made = b.add(kernel_op, map(region.inputs), attrs);
        for (size_t i = 0; i < region.outputs.size(); ++i) map.set(region.outputs[i], made[i]);
        kernels_.push_back({count_ops(*kernel), times * region.toll.all(),
                            times * region.toll.saved(), region.loc});
        in_kernels_.add(region.toll, times);
        changed = true;
        continue;
      }
    }
    for (uint32_t i : region.ops) {
      const Op& op = graph->op(i);
      AttrsRef attrs = with_kernels_inside(*graph, op, times, in_loop);
      changed |= attrs != op.attrs;
      b.set_loc(op.loc);
      map.set_results(
          op, b.add_typed(*op.info, map(graph->operands(op)), attrs, graph->result_types(op)));
    }
  }
  return changed ? finish_copy(*graph, b, map, inputs) : graph;
}

}  // namespace

Kernels choose_kernels(const GraphRef& graph, KernelChoice choice) {
  if (graph->depth() > kMaxDepth) return {.graph = graph};
  return KernelChooser(choice).run(graph);
}

Pass kernels_pass() {
  auto run = [](const GraphRef& graph, const PassOptions&, PassStats&) {
    return choose_kernels(graph, KernelChoice::kAlways).graph;
  };
  return {"kernels", "Makes kernels of whatever may be part of one.", run, {}, Phase::kFinal};
}

}  // namespace weft
