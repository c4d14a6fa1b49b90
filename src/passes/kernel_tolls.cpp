// The estimates behind kernels.cpp: what XLA's runtime takes for steps, and LLVM's code for the
// same within one function.
#include "passes/kernel_tolls.h"

#include "ops/def/function.h"
#include "ops/def/walk.h"
#include "passes/machine.h"
#include "passes/pass_list.h"
#include "weft/transforms.h"

namespace weft {
namespace {

// Of a step on a single number, against one on an array: in a kernel's size.
constexpr double kSizeOfNumber = 1.0 / 8;
// The length of a step that is not element-wise, in chains that XLA follows by recursion.
constexpr int kChainOfOther = 40;
// XLA makes what is fused again in each step that reads it; what a library gave, at most so often.
constexpr double kMaxCopies = 16;
// Iterations of a while that an op is written as: those converge (Jacobi's sweeps).
constexpr double kTripsOfForm = 4;

// Whether an op puts long rows together of parts.
bool joins_rows(const Graph& graph, const Op& op) {
  if (op.info != &op_named<"concatenate">() || op.num_operands < 2) return false;
  TypeRef type = graph.result_types(op)[0];
  return op.attrs->integer("dimension") == type->rank() - 1 &&
         type->shape().back() >= machine::kShortestJoined;
}

bool is_copied(const Graph& graph, const Op& op) {
  if (op.attrs && takes_graphs(*op.info)) return false;
  Cost cost = op_cost(graph, op);
  return cost.transcendentals == 0 && (def(*op.info).elementwise || cost.flops == 0);
}

bool may_stay(const Graph& graph, const Op& op) {
  const OpDef& d = def(*op.info);
  if (!d.in_kernel) return false;
  TypeRefs in_types = operand_types(graph, op);
  return d.in_kernel({in_types, graph.result_types(op), op.attrs.get(), {}});
}

// Whether a reduction goes along the last axis of its operand.
bool sums_rows(const Op& op, const Type& x) {
  for (const char* name : {"axes", "dimensions"}) {
    if (op.attrs->schema().find(name) < 0) continue;
    const Dims& axes = op.attrs->ints(name);
    return std::ranges::find(axes, x.rank() - 1) != axes.end();
  }
  return false;
}

// What unrolled loops spare of a reduction: running ones have an inner loop, and those across rows
// of at least `least` numbers, and along rows of at most `most`. Products with a vector have loops
// of their own, those of small matrices none.
double unrolled_sum(const Graph& graph, const Op& op, const Cost& cost, int64_t most,
                    int64_t least) {
  if (op.num_operands == 0) return 0;
  TypeRef x = graph.type(graph.operand(op, 0));
  int64_t elements = graph.result_types(op)[0]->num_elements(), all = x->num_elements();
  double seconds = cost.flops * machine::kUnrolledSum;
  if (x->rank() == 0 || static_cast<double>(all) > machine::kMostUnrolled || cost.flops > all)
    return 0;
  int64_t row = x->shape().back();
  if (elements == all) return seconds * static_cast<double>(row);
  return (sums_rows(op, *x) ? row <= most : row >= least) ? seconds : 0;
}

// What unrolled loops spare of an op of a kernel: they take several vectors at once, and compute
// what is left of a row number by number. Pieces that are put together have a branch for each.
double unrolled(const Graph& graph, const Op& op, const Cost& cost, bool beside_join) {
  TypeRef type = graph.result_types(op)[0];
  int64_t row = type->rank() ? type->shape().back() : 1;
  auto elements = static_cast<double>(type->num_elements());
  if (elements > machine::kMostUnrolled) return 0;
  if (!def(*op.info).elementwise) {
    if (cost.flops > 0) return unrolled_sum(graph, op, cost, machine::kVector / 2, 1);
    double pieces = 0;
    for (TypeRef t : operand_types(graph, op)) {
      if (static_cast<double>(t->num_elements()) > machine::kMostUnrolled) return 0;
      pieces += t->rank() > 0;
    }
    if (pieces <= 1) return 0;
    if (row <= machine::kVector) return elements * (pieces - 1) * machine::kUnrolledPiece;
    if (beside_join) return elements * machine::kUnrolledJoin;
    bool is_across =
        op.info == &op_named<"concatenate">() && op.attrs->integer("dimension") < type->rank() - 1;
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

// Of an op that stays outside of kernels.
Toll outside(const Graph& graph, const Op& op) {
  Toll toll{.may_stand = false, .stays = false};
  Cost cost = op_cost(graph, op);
  toll.thunks = 1;
  toll.apart = machine::kLibraryCall;
  toll.compute = cost.flops * machine::kLibraryFlop + cost.transcendentals * machine::kFunction;
  toll.moves = cost.bytes * machine::kCachedByte;
  return toll;
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

}  // namespace

Uses::Uses(const Graph& graph)
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

void Uses::find_joins(const Graph& graph) {
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

bool is_loop(const Op& op) { return def(*op.info).loop.parts || op.info == &op_named<"while">(); }

double times_run(const Graph& graph, const Op& op, const Graph& inner, double trips_of_while) {
  auto flops = [&](double of_inner) {
    return op_cost(graph, op,
                   [&](const Graph& g) { return Cost{.flops = &g == &inner ? of_inner : 0}; })
        .flops;
  };
  return (flops(1) - flops(0)) * (op.info == &op_named<"while">() ? trips_of_while : 1);
}

const Tolls::OfGraph& Tolls::op_by_op(const Graph& graph) {
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

Toll Tolls::of(const Graph& graph, const Op& op, const Uses& uses) {
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

const Tolls::Form* Tolls::form_of(const Graph& graph, const Op& op) {
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
  if (d.for_kernel) form.graph = written_for_kernel(d, op.attrs, in_types, out_types, transforms());
  if (!form.graph) form.graph = form.plain;
  form.outside = seconds_outside(form, op_cost(graph, op).flops);
  const Form& made = forms_.emplace(key, std::move(form))->second;
  return made.graph ? &made : nullptr;
}

// A call of a library, or what the op is written as outside of kernels too.
double Tolls::seconds_outside(const Form& form, double flops) {
  if (!form.plain) return machine::kLibraryCall + machine::kLibraryFlop * flops;
  bool calls = std::ranges::any_of(form.plain->ops(),
                                   [](const Op& x) { return x.info == &op_named<"ffi_call">(); });
  if (calls) return machine::kSolverCall + machine::kSolverFlop * flops;
  const Toll& toll = of(*form.plain);
  return toll.apart + toll.compute;
}

}  // namespace weft
