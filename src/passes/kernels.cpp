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

#include "ops/def/walk.h"
#include "passes/kernel_tolls.h"
#include "passes/machine.h"
#include "passes/pass_list.h"
#include "weft/build.h"
#include "weft/kernel_regions.h"

namespace weft {
namespace {

// How large a kernel may be: LLVM's time grows faster than the number of loops over arrays in a
// function, and many make it slow.
constexpr double kMaxSize = 60;
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
// Emission cuts chains of steps that XLA would follow by recursion (emit/writer.h), by barriers,
// which XLA refuses in kernels. Of this length no chain is cut.
constexpr int kMaxChain = 2500;
// Calls and loops in each other of a program with kernels: these add some, and emission refuses
// more than kMaxEmittedDepth.
constexpr uint32_t kMaxNesting = 64;
// How often the regions of a graph may wait for ops outside of them.
constexpr int kMaxPhases = 64;
// What a kernel outside of loops is to save at least: about what its arguments take.
constexpr double kMinSeconds = 2e-6;
// Of what kernels take, the part that unrolled loops are to spare: they take longer to compile. A
// program without kernels has many loops that do not gain.
constexpr double kMinUnrolled = 0.05, kMinUnrolledThunks = 0.2, kMinSecondsUnrolled = 4e-6;

// Of what a graph takes and gives.
int64_t border_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (TypeRef type : graph.input_types()) bytes += type->num_bytes();
  for (TypeRef type : graph.output_types()) bytes += type->num_bytes();
  return bytes;
}

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
    return stays && border_bytes(body) < machine::kBytesOfOwnKernel;
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
  if (graph->depth() > kMaxNesting) return {.graph = graph};
  return KernelChooser(choice).run(graph);
}

Pass kernels_pass() {
  auto run = [](const GraphRef& graph, const PassOptions&, PassStats&) {
    return choose_kernels(graph, KernelChoice::kAlways).graph;
  };
  return {"kernels", "Makes kernels of whatever may be part of one.", run, {}, Phase::kFinal};
}

}  // namespace weft
