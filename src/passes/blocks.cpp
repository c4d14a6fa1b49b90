// find_blocks: repeats in the order of a program's ops.
//
// Each op gets a label: what it is and the types of its operands, but not where these come from.
// Programs that a loop in the user's language wrote are periodic in their labels, and so are their
// derivatives, backwards. A run is a stretch in which each label is the one that stands a period
// before. It is cut into copies at the phase at which the fewest bytes cross from one copy to the
// next; copies whose operands do not come from the same places stay out, and copies that stand
// elsewhere are added. Pieces are intervals of a topological order, so running them in order is
// right whatever they are.
#include "weft/blocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "passes/min_cut.h"
#include "passes/pass_list.h"
#include "weft/hash.h"
#include "weft/op_def.h"
#include "weft/rebuild.h"

namespace weft {
namespace {

constexpr size_t kMaxPeriods = 64;  // tried
constexpr size_t kMaxOuter = 512;   // values in front of a piece of which it may make its inputs

// What a machine does in a second, in order of magnitude.
constexpr double kFlops = 2e10, kBytes = 8e9;
// What it takes to start a program, and to hand it an array or take one from it.
constexpr double kStepSeconds = 2e-5, kArraySeconds = 4e-6;
// How much more memory steps may take than one module, with arguments and results, besides what is
// no matter in any process.
constexpr double kMaxGrowth = 1.03, kFewBytes = 1 << 20;
double seconds_of_work(const Cost& cost) {
  return (cost.flops + 10 * cost.transcendentals) / kFlops;
}
double seconds(const Cost& cost) { return seconds_of_work(cost) + cost.bytes / kBytes; }

struct Run {
  uint32_t begin, end, period;
  uint32_t length() const { return end - begin; }
};

// Ops [begin, begin + length) for each of `starts`, alike.
struct Repeat {
  std::vector<uint32_t> starts;
  uint32_t length = 0;
};

class Finder {
 public:
  Finder(const Graph& graph, const BlockOptions& options)
      : graph_(graph), options_(options), num_ops_(static_cast<uint32_t>(graph.ops().size())) {}

  std::shared_ptr<const BlockPlan> find(const std::vector<bool>& donated);

 private:
  void label();
  bool same(const Op& a, const Op& b) const;
  std::vector<Run> runs() const;
  Repeat cut(const Run& run) const;
  uint32_t middle(const Repeat& repeat) const;
  void add_elsewhere(Repeat& repeat, std::vector<bool>& taken) const;
  bool alike(uint32_t a, uint32_t b, uint32_t length) const;
  double crossing(uint32_t at, uint32_t period) const;

  // Where in [begin, end) a value is made, counted from the first result; -1 if it is not.
  int64_t inside(Value v, uint32_t begin, uint32_t end) const {
    uint32_t first = graph_.op(begin).results_begin;
    uint32_t past = end < num_ops_ ? graph_.op(end).results_begin : graph_.num_values();
    return !v.is_literal() && v.id >= first && v.id < past ? int64_t{v.id} - first : -1;
  }

  const Graph& graph_;
  const BlockOptions& options_;
  const uint32_t num_ops_;
  std::vector<uint32_t> labels_;
  std::vector<uint32_t> last_use_;  // per value, the op; num_ops_ for outputs
  std::vector<double> seconds_;     // summed up over the ops before
};

bool Finder::same(const Op& a, const Op& b) const {
  if (a.info != b.info || a.num_operands != b.num_operands || a.num_results != b.num_results)
    return false;
  if (!equal(a.attrs, b.attrs)) return false;
  for (uint32_t i = 0; i < a.num_operands; ++i) {
    Value x = graph_.operand(a, i), y = graph_.operand(b, i);
    if (x.is_literal() != y.is_literal() || graph_.type(x) != graph_.type(y)) return false;
    if (x.is_literal() && !(graph_.literal(x) == graph_.literal(y))) return false;
  }
  for (uint32_t i = 0; i < a.num_results; ++i)
    if (graph_.result_types(a)[i] != graph_.result_types(b)[i]) return false;
  return true;
}

void Finder::label() {
  std::unordered_multimap<uint64_t, uint32_t> known;  // to the first op with the label
  labels_.resize(num_ops_);
  for (uint32_t i = 0; i < num_ops_; ++i) {
    const Op& op = graph_.op(i);
    uint64_t h = hash_combine(hash_pointer(op.info), hash(op.attrs));
    for (Value v : graph_.operands(op)) {
      h = hash_combine(h, hash_pointer(graph_.type(v)));
      if (v.is_literal()) h = hash_combine(h, graph_.literal(v).lo);
    }
    auto [at, end] = known.equal_range(h);
    while (at != end && !same(graph_.op(at->second), op)) ++at;
    labels_[i] = at == end ? i : at->second;
    if (at == end) known.emplace(h, i);
  }
}

std::vector<Run> Finder::runs() const {
  // Periods are found among the distances from an op to the next one like it.
  std::unordered_map<uint32_t, uint32_t> distances;
  std::vector<uint32_t> previous(num_ops_, num_ops_);  // by label
  for (uint32_t i = 0; i < num_ops_; ++i) {
    uint32_t& before = previous[labels_[i]];
    if (before != num_ops_) ++distances[i - before];
    before = i;
  }
  std::vector<std::pair<uint32_t, uint32_t>> periods;  // count, period
  for (auto [distance, count] : distances) periods.emplace_back(count, distance);
  std::sort(periods.begin(), periods.end(), std::greater<>());
  if (periods.size() > kMaxPeriods) periods.resize(kMaxPeriods);

  std::vector<Run> found;
  for (auto [count, period] : periods) {
    for (uint32_t i = 0; i + period < num_ops_; ++i) {
      if (labels_[i] != labels_[i + period]) continue;
      uint32_t begin = i;
      while (i + period < num_ops_ && labels_[i] == labels_[i + period]) ++i;
      if (i - begin >= period) found.push_back({begin, i + period, period});
    }
  }
  // The longest first; of those that cover the same, the one of the shortest period.
  std::sort(found.begin(), found.end(), [](const Run& a, const Run& b) {
    return std::tuple(b.length(), a.period, a.begin) < std::tuple(a.length(), b.period, b.begin);
  });
  return found;
}

// Bytes that are made within a period before a cut and read within one after it.
double Finder::crossing(uint32_t at, uint32_t period) const {
  double bytes = 0;
  for (uint32_t i = at - std::min(at, period); i < at; ++i) {
    const Op& op = graph_.op(i);
    for (uint32_t r = 0; r < op.num_results; ++r) {
      uint32_t last = last_use_[op.results_begin + r];
      if (last >= at && last < at + period)
        bytes += static_cast<double>(graph_.result_types(op)[r]->num_bytes());
    }
  }
  return bytes;
}

bool Finder::alike(uint32_t a, uint32_t b, uint32_t length) const {
  for (uint32_t i = 0; i < length; ++i) {
    const Op &x = graph_.op(a + i), &y = graph_.op(b + i);
    for (uint32_t k = 0; k < x.num_operands; ++k)
      if (inside(graph_.operand(x, k), a, a + length) !=
          inside(graph_.operand(y, k), b, b + length))
        return false;
  }
  return true;
}

Repeat Finder::cut(const Run& run) const {
  double period_seconds = (seconds_[run.end] - seconds_[run.begin]) * run.period / run.length();
  double wanted = std::max(options_.min_seconds / std::max(period_seconds, 1e-12),
                           static_cast<double>(options_.min_ops) / run.period);
  if (wanted > run.length() / run.period / 2) return {};
  auto periods = static_cast<uint32_t>(std::max(1.0, std::ceil(wanted)));
  // As many as leave least to be compiled: a piece, and the periods that no piece has.
  uint32_t all = run.length() / run.period;
  for (uint32_t more = periods; more <= all / 2; ++more)
    if (more + all % more < periods + all % periods) periods = more;
  Repeat repeat{.length = periods * run.period};
  uint32_t slack = run.length() % repeat.length, best = run.begin;
  double least = -1;
  for (uint32_t at = run.begin; at <= run.begin + std::min(slack, run.period - 1); ++at) {
    double bytes = crossing(at + run.period, run.period);
    if (least < 0 || bytes < least) best = at, least = bytes;
  }
  uint32_t copies = (run.end - best) / repeat.length;
  uint32_t model = best + copies / 2 * repeat.length;
  for (uint32_t i = 0; i < copies; ++i)
    if (uint32_t start = best + i * repeat.length; alike(model, start, repeat.length))
      repeat.starts.push_back(start);
  if (repeat.starts.size() < 2) return {};
  return repeat;
}

// Where a piece is cut in two, both of which take long enough; its length: nowhere. What a step
// reads is kept until it ends, and its own intermediate values beside that: shorter steps need
// less memory.
uint32_t Finder::middle(const Repeat& repeat) const {
  uint32_t start = repeat.starts[0];
  double whole = seconds_[start + repeat.length] - seconds_[start], least = -1;
  uint32_t best = repeat.length;
  if (options_.min_seconds <= 0) return best;
  for (uint32_t at = options_.min_ops; at + options_.min_ops <= repeat.length; ++at) {
    double first = seconds_[start + at] - seconds_[start];
    if (std::min(first, whole - first) < std::max(options_.min_seconds, whole / 4)) continue;
    double bytes = crossing(start + at, repeat.length);
    if (least < 0 || bytes < least) best = at, least = bytes;
  }
  return best;
}

// Adds copies that stand outside of the run, with other things between them; takes all ops.
void Finder::add_elsewhere(Repeat& repeat, std::vector<bool>& taken) const {
  auto take = [&](uint32_t start) { std::fill_n(taken.begin() + start, repeat.length, true); };
  std::for_each(repeat.starts.begin(), repeat.starts.end(), take);
  uint32_t model = repeat.starts[0];
  for (uint32_t at = 0; at + repeat.length <= num_ops_; ++at) {
    if (taken[at] || !std::equal(labels_.begin() + at, labels_.begin() + at + repeat.length,
                                 labels_.begin() + model))
      continue;
    auto end = taken.begin() + at + repeat.length;
    if (std::find(taken.begin() + at, end, true) != end || !alike(model, at, repeat.length))
      continue;
    repeat.starts.push_back(at);
    take(at);
  }
  std::sort(repeat.starts.begin(), repeat.starts.end());
}

// The ops that depend on no input in front of the others: of several layers that share what such
// ops make, the first one has them in its midst, and would be like no other.
GraphRef constants_first(const GraphRef& graph) {
  std::vector<bool> varies(graph->num_values());
  std::fill_n(varies.begin(), graph->num_inputs(), true);
  std::vector<bool> op_varies;
  bool in_order = true;
  for (const Op& op : graph->ops()) {
    auto operands = graph->operands(op);
    bool any = std::any_of(operands.begin(), operands.end(),
                           [&](Value v) { return !v.is_literal() && varies[v.id]; });
    std::fill_n(varies.begin() + op.results_begin, op.num_results, any);
    in_order = in_order && (any || op_varies.empty() || !op_varies.back());
    op_varies.push_back(any);
  }
  if (in_order) return graph;
  GraphBuilder b;
  ValueMap map(*graph, b);
  std::vector<Value> inputs = copy_inputs(*graph, b, map);
  for (bool second : {false, true}) {
    for (size_t i = 0; i < op_varies.size(); ++i) {
      if (op_varies[i] != second) continue;
      const Op& op = graph->ops()[i];
      b.set_loc(op.loc);
      map.set_results(op, copy_op(*graph, b, op, map(graph->operands(op))));
    }
  }
  return finish_copy(*graph, b, map, inputs);
}

// Whether an op may be made where its result is read: it is part of the kernels there.
bool can_move(const Graph& graph, const Op& op) {
  const OpDef& d = def(*op.info);
  if (op.num_results != 1 || d.effects != kPure || (op.attrs && op.attrs->holds_graphs()))
    return false;
  return d.elementwise || op_cost(graph, op).flops == 0;
}

// The most bytes of intermediate values that are alive at once in one module, by estimate. XLA
// makes what is cheap, or read by one kernel, within the kernels that read it, which then keep
// alive what that is made of.
int64_t peak_of(const Graph& graph) {
  auto num_ops = static_cast<uint32_t>(graph.ops().size());
  std::vector<uint32_t> readers(graph.num_values()), last(graph.num_values());
  std::vector<bool> is_stored(graph.num_values()), is_output(graph.num_values());
  for (Value v : graph.outputs())
    if (!v.is_literal()) is_stored[v.id] = is_output[v.id] = true;
  auto elements = [&](Value v) { return graph.type(v)->num_elements(); };
  for (uint32_t i = num_ops; i-- > 0;) {
    const Op& op = graph.op(i);
    uint32_t end = i;  // until which its operands are needed
    bool is_fused = can_move(graph, op);
    for (uint32_t r = 0; r < op.num_results; ++r) {
      uint32_t v = op.results_begin + r;
      bool is_dear = readers[v] > 1 && op_cost(graph, op).transcendentals > 0;
      is_stored[v] = is_stored[v] || !is_fused || is_dear;
      if (!is_stored[v]) end = std::max(end, last[v]);
    }
    bool is_reduction = op.num_operands == 1 && op.num_results == 1 &&
                        elements(graph.operand(op, 0)) > elements(graph.result(op));
    for (Value v : graph.operands(op)) {
      if (v.is_literal()) continue;
      ++readers[v.id];
      last[v.id] = std::max(last[v.id], end);
      if (!is_fused && !is_reduction) is_stored[v.id] = true;
    }
  }
  std::vector<int64_t> freed(num_ops);
  int64_t now = 0, peak = 0;
  for (uint32_t i = 0; i < num_ops; ++i) {
    const Op& op = graph.op(i);
    for (uint32_t r = 0; r < op.num_results; ++r) {
      uint32_t v = op.results_begin + r;
      if (!is_stored[v] || is_output[v]) continue;
      now += graph.result_types(op)[r]->num_bytes();
      freed[std::max(last[v], i)] += graph.result_types(op)[r]->num_bytes();
    }
    // An element-wise result takes the place of what it is made of.
    if (def(*op.info).elementwise) now -= std::exchange(freed[i], 0);
    peak = std::max(peak, now);
    now -= freed[i];
  }
  return peak;
}

// Pieces that are alike, while they become a block and its steps.
struct Piece {
  // Where an operand of an entry comes from, in every copy.
  struct Source {
    Value literal;                    // if it is one
    bool is_input = false;            // else: the input of this number,
    uint32_t number = 0, result = 0;  // or the result of the entry of this number
  };
  struct Entry {
    std::vector<uint32_t> ops;  // per copy
    std::vector<Source> operands;
    bool is_made = true;
  };
  std::vector<Entry> entries;  // first the piece's own
  uint32_t num_own = 0;
  std::vector<std::vector<uint32_t>> inputs;  // of each, the value in each copy

  size_t num_copies() const { return entries[0].ops.size(); }
};

// Makes steps of pieces.
class Planner {
 public:
  Planner(const Graph& graph, const std::vector<uint32_t>& labels,
          const std::vector<uint32_t>& last_use)
      : graph_(graph), labels_(labels), last_use_(last_use), users_(graph.num_values()) {
    for (uint32_t i = 0; i < graph.ops().size(); ++i)
      for (Value v : graph.operands(graph.op(i)))
        if (!v.is_literal() && (users_[v.id].empty() || users_[v.id].back() != i))
          users_[v.id].push_back(i);
  }

  // Pieces that are alike. Those of which a step would read and write too many arrays for what it
  // takes are left out.
  bool add(const Repeat& repeat, double max_seconds = 1e9);
  void drop_last() { pieces_.pop_back(); }
  std::shared_ptr<const BlockPlan> finish(const std::vector<bool>& donated);

 private:
  using Source = Piece::Source;

  Piece piece_of(const Repeat& repeat) const;
  void recompute(Piece& piece) const;
  std::vector<uint32_t> made_by(const std::vector<uint32_t>& values) const;
  void drop_unused();
  std::vector<bool> crossing_values() const;
  GraphRef build(const Piece& piece,
                 const std::vector<std::pair<uint32_t, uint32_t>>& outputs) const;

  uint32_t index_of(const Op& op) const { return static_cast<uint32_t>(&op - graph_.ops().data()); }

  const Graph& graph_;
  const std::vector<uint32_t>& labels_;
  const std::vector<uint32_t>& last_use_;
  std::vector<std::vector<uint32_t>> users_;  // per value, ops in order
  std::vector<Piece> pieces_;
};

Piece Planner::piece_of(const Repeat& repeat) const {
  Piece piece;
  piece.num_own = repeat.length;
  uint32_t model = repeat.starts[0];
  for (uint32_t i = 0; i < repeat.length; ++i) {
    Piece::Entry& entry = piece.entries.emplace_back();
    for (uint32_t start : repeat.starts) entry.ops.push_back(start + i);
    for (Value v : graph_.operands(graph_.op(model + i))) {
      Source& source = entry.operands.emplace_back();
      const Op* maker = graph_.producer(v);
      if (v.is_literal())
        source.literal = v;
      else if (maker && index_of(*maker) >= model)
        source = {.number = index_of(*maker) - model, .result = v.id - maker->results_begin};
      else
        source.is_input = true;
    }
  }
  // Operands from outside are one input if they are one value in every copy.
  auto each_outer = [&](size_t copy, auto&& f) {
    for (Piece::Entry& entry : piece.entries) {
      std::span<const Value> operands = graph_.operands(graph_.op(entry.ops[copy]));
      for (size_t k = 0; k < operands.size(); ++k)
        if (entry.operands[k].is_input) f(entry.operands[k], operands[k].id);
    }
  };
  for (size_t copy = 0; copy < repeat.starts.size(); ++copy) {
    std::unordered_map<uint64_t, uint32_t> numbers;
    each_outer(copy, [&](Source& source, uint32_t value) {
      uint64_t key = uint64_t{source.number} << 32 | value;
      source.number = numbers.try_emplace(key, static_cast<uint32_t>(numbers.size())).first->second;
    });
    piece.inputs.resize(numbers.size());
  }
  for (size_t copy = 0; copy < repeat.starts.size(); ++copy)
    each_outer(copy, [&](Source& source, uint32_t value) {
      std::vector<uint32_t>& values = piece.inputs[source.number];
      values.resize(repeat.starts.size());
      values[copy] = value;
    });
  return piece;
}

// The ops that make a value in each copy, if they are alike and can be moved; else none.
std::vector<uint32_t> Planner::made_by(const std::vector<uint32_t>& values) const {
  std::vector<uint32_t> ops;
  for (uint32_t value : values) {
    const Op* op = graph_.producer(Value{value});
    if (!op || labels_[index_of(*op)] != labels_[ops.empty() ? index_of(*op) : ops[0]]) return {};
    ops.push_back(index_of(*op));
  }
  if (!can_move(graph_, graph_.op(ops[0]))) return {};
  return ops;
}

// Makes inputs of a piece anew in place of reading them, where that takes less. What a step leaves
// behind for others is written, read and kept at every call; within one module XLA makes values
// where they are read, and those again that are cheap.
//
// A minimum cut decides. Each value in front of the piece is two nodes, "needed" and "made here":
// to read it costs its bytes, to make it the work, and that its operands are needed.
void Planner::recompute(Piece& piece) const {
  struct Outer {
    std::vector<uint32_t> values, ops;  // per copy; no ops: it can only be read
    std::vector<Source> operands = {};  // is_input: the Outer of this number
    bool is_exclusive = false;          // nothing but the piece needs it
  };
  std::vector<Outer> outer;
  std::unordered_multimap<uint32_t, uint32_t> known;  // by the value in the first copy
  auto number_of = [&](std::vector<uint32_t> values) {
    auto [at, end] = known.equal_range(values[0]);
    for (; at != end; ++at)
      if (outer[at->second].values == values) return at->second;
    auto number = static_cast<uint32_t>(outer.size());
    known.emplace(values[0], number);
    std::vector<uint32_t> ops = made_by(values);
    outer.push_back({std::move(values), std::move(ops)});
    return number;
  };
  size_t num_inputs = piece.inputs.size();
  for (const std::vector<uint32_t>& values : piece.inputs) number_of(values);
  for (uint32_t k = 0; k < outer.size(); ++k) {
    if (outer.size() > kMaxOuter + num_inputs) outer[k].ops.clear();
    std::vector<uint32_t> ops = outer[k].ops;
    if (ops.empty()) continue;
    std::vector<Source> operands;
    for (uint32_t i = 0; i < graph_.op(ops[0]).num_operands; ++i) {
      Value v = graph_.operand(graph_.op(ops[0]), i);
      if (v.is_literal()) {
        operands.push_back({.literal = v});
        continue;
      }
      std::vector<uint32_t> values;
      for (uint32_t op : ops) values.push_back(graph_.operand(graph_.op(op), i).id);
      operands.push_back({.is_input = true, .number = number_of(std::move(values))});
    }
    outer[k].operands = std::move(operands);
  }

  // Of one copy in the midst: who reads what.
  size_t model = piece.num_copies() / 2;
  uint32_t begin = piece.entries[0].ops[model], end = begin + piece.num_own;
  std::vector<uint32_t> order(outer.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    return outer[x].values[model] > outer[y].values[model];
  });
  std::unordered_map<uint32_t, uint32_t> exclusive;  // ops
  MinCut cut(static_cast<uint32_t>(2 + 2 * outer.size()));
  constexpr uint32_t kSource = 0, kSink = 1;
  auto needed = [](uint32_t k) { return 2 + 2 * k; };
  auto made = [](uint32_t k) { return 3 + 2 * k; };
  for (uint32_t k : order) {
    Outer& o = outer[k];
    uint32_t value = o.values[model];
    bool is_input = value < graph_.num_inputs();
    uint32_t maker = is_input ? 0 : index_of(*graph_.producer(Value{value}));
    bool is_written = last_use_[value] == graph_.ops().size(), is_exclusive = !is_written;
    for (uint32_t user : users_[value]) {
      if ((user >= begin && user < end) || exclusive.count(user)) continue;
      is_exclusive = false;
      is_written = is_written || user >= maker + piece.num_own;
    }
    double bytes = static_cast<double>(graph_.type(Value{value})->num_bytes());
    if (is_input) bytes = 0;  // the caller keeps it anyway
    double reading = is_written ? bytes : 2 * bytes;
    if (k < num_inputs) cut.add(kSource, needed(k), MinCut::kInfinite);
    if (o.ops.empty()) {
      cut.add(needed(k), kSink, reading);
      continue;
    }
    if (is_exclusive) exclusive.emplace(o.ops[model], k);
    double work = is_exclusive ? 0 : seconds_of_work(op_cost(graph_, graph_.op(o.ops[0])));
    cut.add(needed(k), made(k), reading);
    cut.add(made(k), kSink, work * kBytes + 1);
    for (const Source& source : o.operands)
      if (source.is_input) cut.add(made(k), needed(source.number), MinCut::kInfinite);
  }
  std::vector<bool> side = cut.source_side(kSource, kSink);

  std::vector<Source> sources(outer.size());
  piece.inputs.clear();
  uint32_t num_entries = static_cast<uint32_t>(piece.entries.size());
  for (uint32_t k = 0; k < outer.size(); ++k) {
    if (!side[needed(k)]) continue;
    if (side[made(k)]) {
      sources[k] = {.number = num_entries++};
    } else {
      sources[k] = {.is_input = true, .number = static_cast<uint32_t>(piece.inputs.size())};
      piece.inputs.push_back(outer[k].values);
    }
  }
  for (uint32_t k = 0; k < outer.size(); ++k)
    if (side[needed(k)] && side[made(k)])
      piece.entries.push_back({std::move(outer[k].ops), std::move(outer[k].operands)});
  for (Piece::Entry& entry : piece.entries)
    for (Source& source : entry.operands)
      if (source.is_input) source = sources[source.number];
}

bool Planner::add(const Repeat& repeat, double max_seconds) {
  Piece piece = piece_of(repeat);
  recompute(piece);
  // Arrays that go from one step to another: one module is given its own inputs and outputs, too.
  uint32_t start = repeat.starts[0], end = start + repeat.length;
  auto is_read_elsewhere = [&](uint32_t value) {
    return std::any_of(users_[value].begin(), users_[value].end(),
                       [&](uint32_t user) { return user < start || user >= end; });
  };
  size_t arrays = 0;
  for (const std::vector<uint32_t>& values : piece.inputs)
    arrays += values[0] >= graph_.num_inputs() || is_read_elsewhere(values[0]);
  for (uint32_t i = start; i < end; ++i)
    for (uint32_t r = 0; r < graph_.op(i).num_results; ++r)
      arrays += is_read_elsewhere(graph_.op(i).results_begin + r);
  if (kStepSeconds + kArraySeconds * static_cast<double>(arrays) > max_seconds) return false;
  pieces_.push_back(std::move(piece));
  return true;
}

// `outputs`: entry and result.
GraphRef Planner::build(const Piece& piece,
                        const std::vector<std::pair<uint32_t, uint32_t>>& outputs) const {
  GraphBuilder b;
  std::vector<Value> inputs(piece.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k)
    inputs[k] = b.input(graph_.type(Value{piece.inputs[k][0]}));
  // What was added depends on what the program computes before.
  std::vector<uint32_t> order(piece.entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    return piece.entries[x].ops[0] < piece.entries[y].ops[0];
  });
  std::vector<Values> results(piece.entries.size());
  for (uint32_t i : order) {
    if (!piece.entries[i].is_made) continue;
    const Op& op = graph_.op(piece.entries[i].ops[0]);
    Values operands;
    for (const Source& source : piece.entries[i].operands) {
      if (source.literal)
        operands.push_back(b.literal(graph_.literal(source.literal)));
      else
        operands.push_back(source.is_input ? inputs[source.number]
                                           : results[source.number][source.result]);
    }
    b.set_loc(op.loc);
    results[i] = b.add_typed(*op.info, operands, op.attrs, graph_.result_types(op));
  }
  std::vector<Value> values;
  for (auto [entry, result] : outputs) values.push_back(results[entry][result]);
  return b.finish(values);
}

// Which outputs of a block can be written where an input was: those of its type that are made when
// nothing reads the input any more, or element by element by its last reader.
std::vector<int> aliases_of(const Graph& block, const std::vector<bool>& is_free) {
  std::vector<uint32_t> last(block.num_values());
  for (uint32_t i = 0; i < block.ops().size(); ++i)
    for (Value v : block.operands(block.op(i)))
      if (!v.is_literal()) last[v.id] = i;
  std::vector<Value> outputs(block.outputs().begin(), block.outputs().end());
  std::vector<bool> taken(outputs.size());
  for (size_t r = 0; r < outputs.size(); ++r)  // a value has one buffer for each of its outputs
    taken[r] = outputs[r].is_literal() || !block.producer(outputs[r]) ||
               std::count(outputs.begin(), outputs.end(), outputs[r]) > 1;
  std::vector<int> aliases(block.num_inputs(), -1);
  bool any = false;
  for (uint32_t k = 0; k < aliases.size(); ++k) {
    if (!is_free[k]) continue;
    uint32_t read = last[block.input(k).id];
    for (size_t r = 0; r < outputs.size() && aliases[k] < 0; ++r) {
      if (taken[r] || block.type(outputs[r]) != block.type(block.input(k))) continue;
      const Op& op = *block.producer(outputs[r]);
      auto made = static_cast<uint32_t>(&op - block.ops().data());
      if (made < read || (made == read && !def(*op.info).elementwise)) continue;
      aliases[k] = static_cast<int>(r);
      taken[r] = any = true;
    }
  }
  return any ? aliases : std::vector<int>();
}

// Gives steps the buffers that nothing needs after them.
void give_away(BlockPlan& plan, uint32_t num_inputs, const std::vector<bool>& donated) {
  std::vector<std::vector<bool>> is_free(plan.blocks.size());
  for (const BlockStep& step : plan.steps) {
    std::vector<bool>& all = is_free[step.block];
    if (all.empty()) all.assign(step.inputs.size(), true);
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      uint32_t slot = step.inputs[k];
      bool is_owned = slot >= num_inputs || (slot < donated.size() && donated[slot]);
      all[k] = all[k] && is_owned &&
               std::count(step.inputs.begin(), step.inputs.end(), slot) == 1 &&
               std::find(step.done.begin(), step.done.end(), slot) != step.done.end();
    }
  }
  for (size_t i = 0; i < plan.blocks.size(); ++i)
    plan.blocks[i].aliases = aliases_of(*plan.blocks[i].graph, is_free[i]);
}

// What moved into other pieces is no longer made where it was, and what only that read is not read.
void Planner::drop_unused() {
  bool changed = true;
  while (std::exchange(changed, false)) {
    std::vector<bool> crosses = crossing_values();
    for (Piece& piece : pieces_) {
      std::vector<bool> is_read(piece.inputs.size());
      std::vector<uint32_t> reach;
      for (uint32_t i = 0; i < piece.entries.size(); ++i) {
        Piece::Entry& entry = piece.entries[i];
        entry.is_made = false;
        if (i >= piece.num_own) continue;
        for (uint32_t op : entry.ops)
          for (uint32_t r = 0; r < graph_.op(op).num_results; ++r)
            entry.is_made = entry.is_made || crosses[graph_.op(op).results_begin + r];
        if (entry.is_made) reach.push_back(i);
      }
      while (!reach.empty()) {
        uint32_t i = reach.back();
        reach.pop_back();
        for (const Source& source : piece.entries[i].operands) {
          if (source.literal) continue;
          if (source.is_input) {
            is_read[source.number] = true;
          } else if (!std::exchange(piece.entries[source.number].is_made, true)) {
            reach.push_back(source.number);
          }
        }
      }
      if (std::find(is_read.begin(), is_read.end(), false) == is_read.end()) continue;
      changed = true;
      std::vector<uint32_t> numbers(is_read.size());
      std::vector<std::vector<uint32_t>> inputs;
      for (uint32_t k = 0; k < is_read.size(); ++k) {
        numbers[k] = static_cast<uint32_t>(inputs.size());
        if (is_read[k]) inputs.push_back(std::move(piece.inputs[k]));
      }
      piece.inputs = std::move(inputs);
      for (Piece::Entry& entry : piece.entries)
        for (Source& source : entry.operands)
          if (source.is_input && entry.is_made) source.number = numbers[source.number];
    }
  }
}

std::vector<bool> Planner::crossing_values() const {
  std::vector<bool> crosses(graph_.num_values());
  for (const Piece& piece : pieces_)
    for (const std::vector<uint32_t>& values : piece.inputs)
      for (uint32_t v : values) crosses[v] = true;
  for (Value v : graph_.outputs()) crosses[v.id] = true;
  return crosses;
}

void set_peaks(BlockPlan& plan, const Graph& graph) {
  std::vector<int64_t> held = plan.held_bytes(), within;
  for (const BlockPlan::Block& block : plan.blocks) within.push_back(peak_of(*block.graph));
  for (size_t i = 0; i < held.size(); ++i)
    plan.peak = std::max(plan.peak, held[i] + within[plan.steps[i].block]);
  plan.whole_peak = peak_of(graph);
  for (uint32_t i = 0; i < graph.num_inputs(); ++i)
    plan.outer += graph.type(graph.input(i))->num_bytes();
  for (Value v : graph.outputs()) plan.outer += graph.type(v)->num_bytes();
}

std::shared_ptr<const BlockPlan> Planner::finish(const std::vector<bool>& donated) {
  drop_unused();
  auto plan = std::make_shared<BlockPlan>();
  plan->num_ops = static_cast<uint32_t>(graph_.ops().size());
  plan->num_inputs = graph_.num_inputs();
  std::vector<bool> crosses = crossing_values();

  struct Step {
    uint32_t start, block;
    std::vector<uint32_t> inputs, outputs;  // values
  };
  std::vector<Step> steps;
  for (const Piece& piece : pieces_) {
    std::vector<std::pair<uint32_t, uint32_t>> outputs;
    for (uint32_t i = 0; i < piece.num_own; ++i) {
      const std::vector<uint32_t>& ops = piece.entries[i].ops;
      for (uint32_t r = 0; r < graph_.op(ops[0]).num_results; ++r)
        if (std::any_of(ops.begin(), ops.end(),
                        [&](uint32_t op) { return crosses[graph_.op(op).results_begin + r]; }))
          outputs.emplace_back(i, r);
    }
    if (outputs.empty()) continue;  // all of it moved
    auto block = static_cast<uint32_t>(plan->blocks.size());
    plan->blocks.push_back({build(piece, outputs), static_cast<uint32_t>(piece.num_copies())});
    for (size_t c = 0; c < piece.num_copies(); ++c) {
      Step& step = steps.emplace_back(Step{piece.entries[0].ops[c], block, {}, {}});
      for (const std::vector<uint32_t>& values : piece.inputs) step.inputs.push_back(values[c]);
      for (auto [entry, result] : outputs)
        step.outputs.push_back(graph_.op(piece.entries[entry].ops[c]).results_begin + result);
    }
  }
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.start < b.start; });

  constexpr uint32_t kNever = 0xffffffffu;
  std::vector<uint32_t> slots(graph_.num_values()), last(graph_.num_values());
  for (uint32_t i = 0; i < steps.size(); ++i) {
    for (uint32_t v : steps[i].outputs) last[v] = i;
    for (uint32_t v : steps[i].inputs) last[v] = i;
  }
  for (Value v : graph_.outputs()) last[v.id] = kNever;
  for (uint32_t i = 0; i < graph_.num_inputs(); ++i) slots[i] = i;
  plan->num_slots = graph_.num_inputs();
  for (uint32_t i = 0; i < steps.size(); ++i) {
    BlockStep step{steps[i].block, {}, {}, {}};
    for (uint32_t v : steps[i].outputs) slots[v] = plan->num_slots++;
    for (uint32_t v : steps[i].inputs) step.inputs.push_back(slots[v]);
    for (uint32_t v : steps[i].outputs) step.outputs.push_back(slots[v]);
    for (const std::vector<uint32_t>* values : {&steps[i].inputs, &steps[i].outputs})
      for (uint32_t v : *values)
        if (last[v] == i) step.done.push_back(slots[v]);
    plan->steps.push_back(std::move(step));
  }
  for (Value v : graph_.outputs()) plan->outputs.push_back(slots[v.id]);
  give_away(*plan, graph_.num_inputs(), donated);
  set_peaks(*plan, graph_);
  return plan;
}

std::shared_ptr<const BlockPlan> Finder::find(const std::vector<bool>& donated) {
  label();
  std::vector<Run> all = runs();
  if (all.empty()) return nullptr;

  last_use_.assign(graph_.num_values(), 0);
  for (uint32_t i = 0; i < num_ops_; ++i)
    for (Value v : graph_.operands(graph_.op(i)))
      if (!v.is_literal()) last_use_[v.id] = i;
  for (Value v : graph_.outputs()) last_use_[v.id] = num_ops_;
  seconds_ = {0};
  double work = 0, products = 0;
  for (const Op& op : graph_.ops()) {
    Cost cost = op_cost(graph_, op);
    seconds_.push_back(seconds_.back() + seconds(cost));
    work += seconds_of_work(cost);
    if (op.info == &op_named<"dot_general">()) products += seconds_of_work(cost);
  }
  if (products < options_.min_products * work) return nullptr;

  Planner planner(graph_, labels_, last_use_);
  std::vector<bool> taken(num_ops_);
  bool any = false;
  for (const Run& run : all) {
    // Of a run that others have a part of, what is left if it is in one piece.
    Run left = run;
    while (left.begin < left.end && taken[left.begin]) ++left.begin;
    uint32_t end = left.begin;
    while (end < left.end && !taken[end]) ++end;
    left.end = end;
    if (left.length() < 2 * left.period) continue;
    Repeat repeat = cut(left);
    if (repeat.starts.empty()) continue;
    std::vector<bool> before = taken;
    add_elsewhere(repeat, taken);
    auto add = [&](const Repeat& r) {
      double step = seconds_[r.starts[0] + r.length] - seconds_[r.starts[0]];
      return planner.add(r, step * options_.max_overhead);
    };
    Repeat first = repeat, second = repeat;
    first.length = middle(repeat);
    second.length -= first.length;
    for (uint32_t& start : second.starts) start += first.length;
    bool in_two = second.length > 0 && add(first);
    if (in_two && !add(second)) {
      planner.drop_last();
      in_two = false;
    }
    if (in_two || add(repeat))
      any = true;
    else
      taken = std::move(before);
  }
  if (!any) return nullptr;
  for (uint32_t i = 0; i < num_ops_;) {
    uint32_t begin = i;
    while (i < num_ops_ && !taken[i]) ++i;
    if (i > begin) planner.add({{begin}, i - begin});
    while (i < num_ops_ && taken[i]) ++i;
  }
  return planner.finish(donated);
}

}  // namespace

bool BlockPlan::is_worth_it() const {
  size_t count = 0;
  for (const Block& block : blocks) count += block.graph->ops().size();
  auto all = static_cast<double>(outer + peak), of_whole = static_cast<double>(outer + whole_peak);
  return count <= num_ops / 2 && all <= kMaxGrowth * of_whole + kFewBytes;
}

std::vector<int64_t> BlockPlan::held_bytes() const {
  std::vector<int64_t> bytes(num_slots), held;
  std::vector<bool> is_outer(num_slots);
  std::fill_n(is_outer.begin(), num_inputs, true);
  for (uint32_t slot : outputs) is_outer[slot] = true;
  int64_t now = 0;
  for (const BlockStep& step : steps) {
    const Block& block = blocks[step.block];
    std::vector<TypeRef> types = block.graph->output_types();
    for (size_t i = 0; i < step.outputs.size(); ++i)
      if (uint32_t slot = step.outputs[i]; !is_outer[slot])
        now += bytes[slot] = types[i]->num_bytes();
    int64_t given = 0;
    for (size_t k = 0; k < block.aliases.size(); ++k)
      if (block.aliases[k] >= 0) given += bytes[step.inputs[k]];
    held.push_back(now - given);
    for (uint32_t slot : step.done) now -= bytes[slot];
  }
  return held;
}

std::shared_ptr<const BlockPlan> find_blocks(const GraphRef& graph, const BlockOptions& options,
                                             const std::vector<bool>& donated) {
  size_t least = std::max(2 * options.min_ops, options.min_program_ops);
  if (graph->effects() != kPure || graph->ops().size() < least) return nullptr;
  for (Value v : graph->outputs())
    if (v.is_literal()) return nullptr;
  if (!is_portable(*graph)) return nullptr;
  GraphRef ordered = constants_first(graph);
  return Finder(*ordered, options).find(donated);
}

}  // namespace weft
