// split_constants: which values a program keeps from one call to the next.
//
// A value is constant if it depends on constant inputs, or on none. Of those that the rest of the
// program reads, one is kept if that costs less than to make it again: XLA makes cheap ones again
// in each kernel that reads them, and what is larger than what it is made of takes longer to read.
// Where a value is made again, the same is asked of its operands. Before that, what called
// functions make of constants is moved in front of the calls (of loops, the rewrite scan_hoist has
// done so).
#include "weft/constants.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/def/walk.h"
#include "passes/machine.h"
#include "passes/pass_list.h"
#include "weft/op_def.h"
#include "weft/rebuild.h"

namespace weft {
namespace {

// So many calls have to make up for what it takes to compile the prologue, unless each is spared a
// part as large as this.
constexpr double kCalls = 1000, kLargePart = 0.05;
// Arrays of this size are no matter of memory. Larger ones are kept if that spares more than it
// takes to read them once more, and if they are computed: moving elements is often free.
constexpr int64_t kSmallBytes = 1 << 16, kLargeBytes = 1 << 20;
constexpr size_t kMaxCone = 256;  // ops that are looked at to say what a value takes
// Of an element that is broadcast: XLA makes what is dear once if it is read more often than that.
constexpr double kMaxRepeats = 16;

double elements(TypeRef type) { return std::max(1.0, static_cast<double>(type->num_elements())); }

// The values of a graph that are constant, and those that are kept.
class Selection {
 public:
  Selection(const Graph& graph, const std::vector<bool>& constants)
      : graph_(graph), constant_(graph.num_values()) {
    std::copy(constants.begin(), constants.end(), constant_.begin());
    for (const Op& op : graph.ops()) {
      bool all = op.num_results > 0 && effects_of(*op.info, op.attrs) == kPure;
      for (Value v : graph.operands(op)) all = all && is_constant(v);
      std::fill_n(constant_.begin() + op.results_begin, op.num_results, all);
    }
  }

  bool is_constant(Value v) const { return v.is_literal() || constant_[v.id]; }
  bool is_constant(const Op& op) const { return op.num_results > 0 && constant_[op.results_begin]; }

  // Chooses what is kept. A byte costs `price`, besides the time to read it.
  void choose(int64_t max_bytes, double price);

  const std::vector<Value>& kept() const { return kept_; }
  bool is_kept(Value v) const { return is_kept_[v.id]; }
  // Whether the program itself has to run the op.
  bool is_made(const Op& op) const { return !is_constant(op) || made_[index_of(op)]; }
  int64_t bytes() const { return bytes_; }
  double spared() const { return spared_; }
  double seconds_left() const;

 private:
  // What an op takes, and whether kernels that read its result make it again for themselves.
  struct Work {
    double seconds, bytes;
    bool is_view;
    bool is_fused;
  };
  Work work(const Op& op) const;
  double seconds_to_make(const Op& op, double times, bool& computes) const;
  uint32_t index_of(const Op& op) const { return static_cast<uint32_t>(&op - graph_.ops().data()); }
  // How often an element of an operand is made where each of a result is.
  double repeats(Value operand, const Op& op, bool is_fused) const {
    double have = elements(graph_.type(operand));
    if (!is_fused || have == 1) return 1;
    return std::clamp(elements(graph_.result_types(op)[0]) / have, 1.0, kMaxRepeats);
  }

  const Graph& graph_;
  std::vector<bool> constant_, is_kept_;
  std::vector<bool> made_;  // per op
  std::vector<Value> kept_;
  int64_t bytes_ = 0;
  double spared_ = 0;
};

Selection::Work Selection::work(const Op& op) const {
  Cost cost = op_cost(graph_, op);
  Work w{machine::seconds_of_work(cost, machine::kDearFunction), cost.bytes, false, false};
  double in = 0, out = 0;
  size_t operands = 0;
  for (Value v : graph_.operands(op)) {
    if (v.is_literal()) continue;
    ++operands;
    in += bytes_of(graph_.type(v));
  }
  for (TypeRef type : graph_.result_types(op)) out += bytes_of(type);
  bool only_moves = w.seconds == 0 && !(op.attrs && op.attrs->holds_graphs());
  w.is_view = only_moves && (cost.bytes == 0 || (operands <= 1 && out >= in));
  w.is_fused = w.is_view || def(*op.info).elementwise;
  return w;
}

// Seconds that the program spends on making an op's results, each element `times` times if kernels
// do it for themselves, and all that it is made of.
double Selection::seconds_to_make(const Op& first, double times, bool& computes) const {
  struct Item {
    const Op* op;
    double times;
  };
  std::vector<Item> pending{{&first, times}};
  std::unordered_set<uint32_t> seen;  // values
  double sum = 0;
  for (size_t n = 0; !pending.empty() && n < kMaxCone; ++n) {
    Item item = pending.back();
    pending.pop_back();
    const Op& op = *item.op;
    Work w = work(op);
    computes = computes || w.seconds > 0 || !w.is_fused;
    sum += w.is_fused ? w.seconds * item.times
                      : w.seconds + w.bytes * machine::kMovedByte + machine::kLargeThunk;
    for (Value v : graph_.operands(op)) {
      if (v.is_literal() || !seen.insert(v.id).second) continue;
      const Op* maker = graph_.producer(v);
      if (maker)
        pending.push_back({maker, w.is_fused ? item.times * repeats(v, op, true) : 1});
      else if (w.is_fused)
        sum += bytes_of(graph_.type(v)) * machine::kByte;
    }
  }
  return sum;
}

void Selection::choose(int64_t max_bytes, double price) {
  kept_.clear();
  is_kept_.assign(graph_.num_values(), false);
  made_.assign(graph_.ops().size(), false);
  bytes_ = 0;
  spared_ = 0;
  // How often, at least, the program reads the elements of a value.
  std::vector<double> times(graph_.num_values());
  std::vector<bool> is_output(graph_.num_values());
  for (Value v : graph_.outputs())
    if (!v.is_literal()) is_output[v.id] = true;
  for (size_t i = graph_.ops().size(); i-- > 0;) {
    const Op& op = graph_.op(static_cast<uint32_t>(i));
    if (!is_constant(op)) {
      for (Value v : graph_.operands(op))
        if (!v.is_literal()) times[v.id] += 1;
      continue;
    }
    double most = 0, read = 0;
    int64_t bytes = 0;
    bool is_result = false;
    for (uint32_t r = 0; r < op.num_results; ++r) {
      Value v = graph_.result(op, r);
      is_result = is_result || is_output[v.id];
      if (times[v.id] == 0) continue;
      most = std::max(most, times[v.id]);
      bytes += graph_.type(v)->num_bytes();
      read += bytes_of(graph_.type(v)) * machine::kByte + machine::kArray;
    }
    if (most == 0 && !is_result) continue;
    Work w = work(op);
    if (!w.is_view && !is_result && bytes <= max_bytes) {
      bool computes = false;
      double make = seconds_to_make(op, most, computes);
      double margin = bytes > kSmallBytes ? 2 : 1;
      if (make > margin * read + price * static_cast<double>(bytes) &&
          (computes || bytes <= kLargeBytes)) {
        for (uint32_t r = 0; r < op.num_results; ++r) {
          Value v = graph_.result(op, r);
          if (times[v.id] == 0) continue;
          kept_.push_back(v);
          is_kept_[v.id] = true;
        }
        bytes_ += bytes;
        spared_ += make - read;
        continue;
      }
    }
    made_[i] = true;
    for (Value v : graph_.operands(op))
      if (!v.is_literal())
        times[v.id] += w.is_fused ? std::max(most, 1.0) * repeats(v, op, true) : 1;
  }
  std::reverse(kept_.begin(), kept_.end());
}

double Selection::seconds_left() const {
  double sum = machine::kCall;
  for (const Op& op : graph_.ops()) {
    if (!is_made(op)) continue;
    Work w = work(op);
    sum += w.seconds + w.bytes * machine::kByte / (w.is_fused ? 4 : 1);
  }
  return sum;
}

// The graph of what is kept and the graph of the rest.
std::shared_ptr<ConstantSplit> take_apart(const Graph& graph, const std::vector<bool>& constants,
                                          const Selection& chosen) {
  auto result = std::make_shared<ConstantSplit>();
  size_t num_ops = graph.ops().size();
  std::vector<bool> in_prologue(num_ops), wanted(graph.num_values()), read(graph.num_values());
  for (Value v : chosen.kept()) wanted[v.id] = true;
  for (size_t i = num_ops; i-- > 0;) {
    const Op& op = graph.op(static_cast<uint32_t>(i));
    for (uint32_t r = 0; r < op.num_results; ++r)
      if (wanted[op.results_begin + r]) in_prologue[i] = true;
    if (in_prologue[i])
      for (Value v : graph.operands(op))
        if (!v.is_literal()) wanted[v.id] = true;
    if (chosen.is_made(op))
      for (Value v : graph.operands(op))
        if (!v.is_literal()) read[v.id] = true;
  }
  for (Value v : graph.outputs())
    if (!v.is_literal()) read[v.id] = true;

  GraphBuilder first, rest;
  first.set_hash_consing(true);
  ValueMap in_first(graph, first), in_rest(graph, rest);
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    TypeRef type = graph.type(Value{i});
    if (wanted[i]) {
      result->reads.push_back(i);
      in_first.set(Value{i}, first.input(type));
    }
    // One that nothing uses is there because it was wanted.
    if (read[i] || !wanted[i] || !constants[i]) {
      result->inputs.push_back(i);
      in_rest.set(Value{i}, rest.input(type));
    }
  }
  for (size_t i = 0; i < num_ops; ++i) {
    const Op& op = graph.op(static_cast<uint32_t>(i));
    if (!in_prologue[i]) continue;
    first.set_loc(op.loc);
    in_first.set_results(op, copy_op(graph, first, op, in_first(graph.operands(op))));
  }
  // Of values that turn out to be one, one is kept.
  std::vector<Value> outputs;
  std::unordered_map<uint32_t, Value> known;
  for (Value v : chosen.kept()) {
    Value made = in_first(v);
    auto [at, is_new] = known.try_emplace(made.id);
    if (is_new) {
      outputs.push_back(made);
      at->second = rest.input(graph.type(v));
      result->bytes += graph.type(v)->num_bytes();
    }
    in_rest.set(v, at->second);
  }
  result->prologue = first.finish(outputs);
  for (const Op& op : graph.ops()) {
    if (!chosen.is_made(op)) continue;
    rest.set_loc(op.loc);
    Values results = copy_op(graph, rest, op, in_rest(graph.operands(op)));
    for (uint32_t r = 0; r < op.num_results; ++r)
      if (Value v = graph.result(op, r); !chosen.is_kept(v)) in_rest.set(v, results[r]);
  }
  outputs.clear();
  for (Value v : graph.outputs()) outputs.push_back(in_rest(v));
  result->main = rest.finish(outputs);
  return result;
}

// Whatever it is worth, of a graph that is called.
std::shared_ptr<ConstantSplit> split(const GraphRef& graph, const std::vector<bool>& constants,
                                     const ConstantOptions& options, bool is_whole = false);

// The graph with what functions that it calls make of constants in front of the calls.
class Hoist {
 public:
  Hoist(const Graph& graph, const std::vector<bool>& constants, const ConstantOptions& options)
      : graph_(graph), values_(graph, constants), options_(options) {}

  // Null if there is nothing.
  GraphRef run() {
    for (const Op& op : graph_.ops()) note(op);
    bool any = false;
    for (auto& [graph, function] : functions_) {
      function.part = split(function.graph, function.constants, options_);
      any = any || function.part;
    }
    if (!any) return nullptr;
    GraphBuilder b;
    return rebuild(graph_, b, [&](const Op& op, const Values& operands) {
      const ConstantSplit* part =
          is_looked_into(op) ? functions_.at(callee(op).get()).part.get() : nullptr;
      if (!part) return copy_op(graph_, b, op, operands);
      spared_ += part->seconds;
      std::vector<Value> read;
      Values all;
      for (uint32_t i : part->reads) read.push_back(operands[i]);
      for (uint32_t i : part->inputs) all.push_back(operands[i]);
      all.append(b.inline_graph(*part->prologue, read));
      return b.add(*op.info, all, with_callee(op.attrs, part->main));
    });
  }
  double spared() const { return spared_; }

 private:
  struct Function {
    GraphRef graph;
    std::vector<bool> constants;  // inputs that are constant in every call
    std::shared_ptr<ConstantSplit> part = nullptr;
  };

  bool is_looked_into(const Op& op) const {
    CallKind call = def(*op.info).call;
    return (call == CallKind::kInline || call == CallKind::kKeep) && !values_.is_constant(op);
  }
  void note(const Op& op) {
    if (!is_looked_into(op)) return;
    const GraphRef& graph = callee(op);
    Function& function = functions_.try_emplace(graph.get(), Function{graph, {}}).first->second;
    if (function.constants.empty()) function.constants.assign(graph->num_inputs(), true);
    std::span<const Value> operands = graph_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i)
      if (!values_.is_constant(operands[i])) function.constants[i] = false;
  }

  const Graph& graph_;
  const Selection values_;
  const ConstantOptions& options_;
  std::unordered_map<const Graph*, Function> functions_;
  double spared_ = 0;
};

std::shared_ptr<ConstantSplit> split(const GraphRef& graph, const std::vector<bool>& constants,
                                     const ConstantOptions& options, bool is_whole) {
  if (!graph->axis_names().empty()) return nullptr;
  Hoist hoist(*graph, constants, options);
  GraphRef hoisted = hoist.run();
  const Graph& source = hoisted ? *hoisted : *graph;
  Selection chosen(source, constants);
  // The dearer a byte, the less is kept.
  double price = 0;
  do {
    chosen.choose(options.max_bytes, price);
    price = price == 0 ? machine::kByte : 4 * price;
  } while (chosen.bytes() > options.max_bytes && price < 1);
  if (chosen.kept().empty() || chosen.bytes() > options.max_bytes) return nullptr;
  std::shared_ptr<ConstantSplit> result = take_apart(source, constants, chosen);
  result->seconds = chosen.spared() + hoist.spared();
  if (!is_whole) return result;
  double left = chosen.seconds_left();
  double compile =
      machine::kCompile + machine::kCompileOp * static_cast<double>(result->prologue->ops().size());
  double least = std::max({options.min_seconds, options.min_part * left,
                           std::min(kLargePart * left, compile / kCalls)});
  return result->seconds < least ? nullptr : result;
}

}  // namespace

std::shared_ptr<const ConstantSplit> split_constants(const GraphRef& graph,
                                                     const std::vector<bool>& constants,
                                                     const ConstantOptions& options) {
  // A program of constants alone is one that runs once.
  if (std::find(constants.begin(), constants.end(), false) == constants.end()) return nullptr;
  if (!is_portable(*graph)) return nullptr;
  return split(graph, constants, options, true);
}

}  // namespace weft
