// Labels, runs, pieces; which values a piece makes itself.
#include "passes/repeats.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "passes/machine.h"
#include "passes/min_cut.h"
#include "passes/pass_list.h"
#include "weft/hash.h"
#include "weft/rebuild.h"

namespace weft {
namespace {

constexpr size_t kMaxPeriods = 64;  // tried
constexpr size_t kMaxOuter = 512;   // values in front of a piece of which it may make its inputs

bool are_of_one_kind(const Graph& graph, const Op& a, const Op& b) {
  if (a.info != b.info || a.num_operands != b.num_operands || a.num_results != b.num_results)
    return false;
  if (!equal(a.attrs, b.attrs)) return false;
  for (uint32_t i = 0; i < a.num_operands; ++i) {
    Value x = graph.operand(a, i), y = graph.operand(b, i);
    if (x.is_literal() != y.is_literal() || graph.type(x) != graph.type(y)) return false;
  }
  for (uint32_t i = 0; i < a.num_results; ++i)
    if (graph.result_types(a)[i] != graph.result_types(b)[i]) return false;
  return true;
}

// Of two ops of one kind.
bool have_same_literals(const Graph& graph, const Op& a, const Op& b) {
  for (uint32_t i = 0; i < a.num_operands; ++i)
    if (Value x = graph.operand(a, i);
        x.is_literal() && !(graph.literal(x) == graph.literal(graph.operand(b, i))))
      return false;
  return true;
}

// Both ways to cut a program ask for them, one after the other.
std::shared_ptr<const OpLabels> labels_of(const Graph& graph) {
  return graph.cached<OpLabels>("op_labels", [&] {
    auto labels = std::make_shared<OpLabels>();
    // The first op of each label by hash, which of those that literals tell apart has these in it.
    std::unordered_multimap<uint64_t, uint32_t> kinds, exact;
    auto find = [](auto& known, uint64_t hash, uint32_t op, auto&& is_same) {
      auto [at, end] = known.equal_range(hash);
      while (at != end && !is_same(at->second)) ++at;
      if (at != end) return at->second;
      known.emplace(hash, op);
      return op;
    };
    for (uint32_t i = 0; i < graph.ops().size(); ++i) {
      const Op& op = graph.op(i);
      uint64_t h = hash_combine(hash_pointer(op.info), hash(op.attrs)), of_literals = 0;
      bool has_literals = false;
      for (Value v : graph.operands(op)) {
        h = hash_combine(h, hash_pointer(graph.type(v)));
        if (!v.is_literal()) continue;
        has_literals = true;
        of_literals = hash_combine(of_literals, graph.literal(v).lo);
      }
      uint32_t kind = find(
          kinds, h, i, [&](uint32_t other) { return are_of_one_kind(graph, graph.op(other), op); });
      labels->kinds.push_back(kind);
      labels->costs.push_back(kind == i ? op_cost(graph, op) : Cost(labels->costs[kind]));
      auto is_same = [&](uint32_t other) {
        return labels->kinds[other] == kind && have_same_literals(graph, graph.op(other), op);
      };
      labels->exact.push_back(
          has_literals ? find(exact, hash_combine(of_literals, kind), i, is_same) : kind);
    }
    return labels;
  });
}

// Where the op that comes at each place is in the graph.
std::vector<uint32_t> order_of(const Graph& graph,
                               const std::function<bool(const Op&)>& follows_operand) {
  std::vector<bool> varies(graph.num_values());
  std::fill_n(varies.begin(), graph.num_inputs(), true);
  // Behind which op each stands, counted from 1; itself if it stays.
  std::vector<uint32_t> place;
  for (const Op& op : graph.ops()) {
    auto number = static_cast<uint32_t>(place.size());
    auto operands = graph.operands(op);
    bool any = std::any_of(operands.begin(), operands.end(),
                           [&](Value v) { return !v.is_literal() && varies[v.id]; });
    std::fill_n(varies.begin() + op.results_begin, op.num_results, any);
    bool follows = any && follows_operand(op);
    const Op* maker = follows ? graph.producer(operands[0]) : nullptr;
    if (maker)
      place.push_back(place[static_cast<size_t>(maker - graph.ops().data())]);
    else
      place.push_back(any && !follows ? number + 1 : 0);
  }
  std::vector<uint32_t> order(place.size());
  std::iota(order.begin(), order.end(), 0u);
  if (!std::is_sorted(place.begin(), place.end()))
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return place[a] < place[b]; });
  return order;
}

GraphRef reordered(const GraphRef& graph, const std::vector<uint32_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return graph;
  GraphBuilder b;
  ValueMap map(*graph, b);
  std::vector<Value> inputs = copy_inputs(*graph, b, map);
  for (uint32_t i : order) {
    const Op& op = graph->op(i);
    b.set_loc(op.loc);
    map.set_results(op, copy_op(*graph, b, op, map(graph->operands(op))));
  }
  return finish_copy(*graph, b, map, inputs);
}

bool can_be_moved(const Op& op, const Cost& cost) {
  const OpDef& d = def(*op.info);
  if (op.num_results != 1 || d.effects != kPure || (op.attrs && op.attrs->holds_graphs()))
    return false;
  return d.elementwise || cost.flops == 0;
}

}  // namespace

Repeats::Repeats(const GraphRef& program, Literals literals,
                 const std::function<bool(const Op&)>& follows_operand)
    : known_(labels_of(*program)),
      order_(order_of(*program, follows_operand)),
      ordered_(reordered(program, order_)),
      graph_(*ordered_),
      num_ops_(static_cast<uint32_t>(graph_.ops().size())),
      last_use_(graph_.num_values()),
      users_begin_(graph_.num_values() + 1),
      seconds_{0} {
  const std::vector<uint32_t>& all = literals == Literals::kCount ? known_->exact : known_->kinds;
  auto each_use = [&](auto&& f) {  // but the second use by one op
    std::vector<uint32_t> before(graph_.num_values(), num_ops_);
    for (uint32_t i = 0; i < num_ops_; ++i)
      for (Value v : graph_.operands(graph_.op(i)))
        if (!v.is_literal() && std::exchange(before[v.id], i) != i) f(v.id, i);
  };
  for (uint32_t i = 0; i < num_ops_; ++i) {
    labels_.push_back(all[order_[i]]);
    seconds_.push_back(seconds_.back() + machine::seconds(cost(i)));
  }
  each_use([&](uint32_t value, uint32_t user) {
    ++users_begin_[value + 1];
    last_use_[value] = user;
  });
  std::partial_sum(users_begin_.begin(), users_begin_.end(), users_begin_.begin());
  users_.resize(users_begin_.back());
  std::vector<uint32_t> next(users_begin_.begin(), users_begin_.end() - 1);
  each_use([&](uint32_t value, uint32_t user) { users_[next[value]++] = user; });
  for (Value v : graph_.outputs())
    if (!v.is_literal()) last_use_[v.id] = num_ops_;
  note_compared();
}

// What an op that only moves elements gives is compared as its operands are. With a literal, a
// value is compared by its size, and no bit more or less counts.
void Repeats::note_compared() {
  is_compared_.resize(graph_.num_values());
  for (uint32_t i = num_ops_; i-- > 0;) {
    const Op& op = graph_.op(i);
    std::span<const Value> operands = graph_.operands(op);
    if (op.num_results != 1) continue;
    bool is_comparison =
        op.num_operands == 2 && !operands[0].is_literal() && !operands[1].is_literal() &&
        graph_.type(graph_.result(op))->dtype() == DType::kBool && def(*op.info).elementwise;
    bool is_moved = is_compared_[graph_.result(op).id] && is_exact(i);
    if (!is_comparison && !is_moved) continue;
    for (Value v : operands)
      if (!v.is_literal()) is_compared_[v.id] = true;
  }
}

// Whether it only moves elements.
bool Repeats::is_exact(uint32_t op) const {
  return cost(op).flops == 0 && cost(op).transcendentals == 0;
}

bool Repeats::can_move(uint32_t op) const { return can_be_moved(graph_.op(op), cost(op)); }

bool Repeats::same_labels(uint32_t a, uint32_t b, uint32_t length) const {
  return std::equal(labels_.begin() + a, labels_.begin() + a + length, labels_.begin() + b);
}

int64_t Repeats::inside(Value v, uint32_t begin, uint32_t end) const {
  uint32_t first = graph_.op(begin).results_begin;
  uint32_t past = end < num_ops_ ? graph_.op(end).results_begin : graph_.num_values();
  return !v.is_literal() && v.id >= first && v.id < past ? int64_t{v.id} - first : -1;
}

std::vector<Run> Repeats::runs() const {
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
  std::sort(found.begin(), found.end(), [](const Run& a, const Run& b) {
    return std::tuple(b.length(), a.period, a.begin) < std::tuple(a.length(), b.period, b.begin);
  });
  return found;
}

std::vector<int64_t> Repeats::crossing(uint32_t begin, uint32_t end, uint32_t period) const {
  std::vector<int64_t> changes(end - begin + 1);                  // from one cut to the next
  auto add = [&](uint32_t after, uint32_t last, int64_t bytes) {  // to cuts (after, last]
    uint32_t from = std::max(after + 1, begin), to = std::min(last + 1, end);
    if (from >= to) return;
    changes[from - begin] += bytes;
    changes[to - begin] -= bytes;
  };
  for (uint32_t i = begin - std::min(begin, period); i + 1 < end; ++i) {
    const Op& op = graph_.op(i);
    for (uint32_t r = 0; r < op.num_results; ++r) {
      uint32_t value = op.results_begin + r, before = i, last = last_use_[value];
      int64_t bytes = graph_.result_types(op)[r]->num_bytes();
      for (uint32_t user : users(value)) {
        // The first user behind cuts (before, user] is this one.
        uint32_t to = std::min(user, i + period);
        add(std::max(before, user - std::min(user, period)), to, bytes);
        add(std::max(before, last - std::min(last, period)), to, bytes);
        before = user;
        if (before >= i + period) break;
      }
    }
  }
  std::partial_sum(changes.begin(), changes.end(), changes.begin());
  changes.pop_back();
  return changes;
}

bool Repeats::alike(uint32_t a, uint32_t b, uint32_t length) const {
  for (uint32_t i = 0; i < length; ++i) {
    const Op &x = graph_.op(a + i), &y = graph_.op(b + i);
    for (uint32_t k = 0; k < x.num_operands; ++k)
      if (inside(graph_.operand(x, k), a, a + length) !=
          inside(graph_.operand(y, k), b, b + length))
        return false;
  }
  return true;
}

Repeat Repeats::cut(const Run& run, uint32_t length) const {
  const uint32_t period = run.period;
  uint32_t middle = run.begin + run.length() / period / 2 * period;
  std::vector<int64_t> bytes = crossing(middle, middle + period, period);
  uint32_t phases = std::min(period, run.length() - length + 1);
  int64_t least = *std::min_element(bytes.begin(), bytes.begin() + phases);
  std::unordered_multimap<uint32_t, uint32_t> equal;  // starts, by the first label
  for (uint32_t i = run.begin; i < run.begin + phases; ++i)
    if (bytes[i - run.begin] == least) equal.emplace(labels_[i], i);
  uint32_t begin = num_ops_;
  for (uint32_t at = 0; begin == num_ops_; ++at)
    for (auto [i, end] = equal.equal_range(labels_[at]); i != end; ++i)
      if (same_labels(at, i->second, period)) begin = std::min(begin, i->second);
  uint32_t copies = (run.end - begin) / length, model = begin + copies / 2 * length;
  Repeat repeat{.length = length};
  for (uint32_t i = 0; i < copies; ++i)
    if (uint32_t start = begin + i * length; alike(model, start, length))
      repeat.starts.push_back(start);
  return repeat;
}

Piece Repeats::piece_of(const Repeat& repeat) const {
  using Source = Piece::Source;
  Piece piece;
  piece.num_own = repeat.length;
  uint32_t model = repeat.starts[0];
  for (uint32_t i = 0; i < repeat.length; ++i) {
    Piece::Entry& entry = piece.entries.emplace_back();
    entry.ops.reserve(repeat.starts.size());
    for (uint32_t start : repeat.starts) entry.ops.push_back(start + i);
    for (uint32_t k = 0; k < graph_.op(model + i).num_operands; ++k) {
      Value v = graph_.operand(graph_.op(model + i), k);
      Source& source = entry.operands.emplace_back();
      const Op* maker = graph_.producer(v);
      if (is_one_literal(entry.ops, k))
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

// Whether an operand is a literal, the same in all of the ops, whose labels are one.
bool Repeats::is_one_literal(const std::vector<uint32_t>& ops, uint32_t operand) const {
  Value first = graph_.operand(graph_.op(ops[0]), operand);
  return first.is_literal() && std::all_of(ops.begin(), ops.end(), [&](uint32_t op) {
           return graph_.literal(graph_.operand(graph_.op(op), operand)) == graph_.literal(first);
         });
}

// The ops that make a value in each copy, if they are alike and can be moved; else none.
std::vector<uint32_t> Repeats::made_by(const std::vector<uint32_t>& values) const {
  std::vector<uint32_t> ops;
  for (uint32_t value : values) {
    const Op* op = graph_.producer(Value{value});
    if (!op || labels_[index_of(*op)] != labels_[ops.empty() ? index_of(*op) : ops[0]]) return {};
    ops.push_back(index_of(*op));
  }
  if (!can_move(ops[0])) return {};
  return ops;
}

// A minimum cut decides. Each value in front of the piece is two nodes, "needed" and "made here":
// to read it costs its bytes, to make it the work, and that its operands are needed.
void Repeats::recompute(Piece& piece, const std::function<bool(uint32_t)>& may_make) const {
  using Source = Piece::Source;
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
    if (!ops.empty() && !may_make(ops[ops.size() / 2])) ops.clear();
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
      if (is_one_literal(ops, i)) {
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
    if (Value{value}.is_literal()) {
      if (k < num_inputs) cut.add(kSource, needed(k), MinCut::kInfinite);
      cut.add(needed(k), kSink, 0);
      continue;
    }
    bool is_input = value < graph_.num_inputs();
    uint32_t maker = is_input ? 0 : index_of(*graph_.producer(Value{value}));
    bool is_output = last_use_[value] == num_ops_;
    bool is_written = is_output, is_exclusive = !is_output;
    for (uint32_t user : users(value)) {
      if ((user >= begin && user < end) || exclusive.count(user)) continue;
      is_exclusive = false;
      is_written = is_written || user >= maker + piece.num_own;
    }
    double bytes = static_cast<double>(graph_.type(Value{value})->num_bytes());
    if (is_input || is_output) bytes = 0;  // the caller keeps it anyway
    double reading = is_written ? bytes : 2 * bytes;
    if (k < num_inputs) cut.add(kSource, needed(k), MinCut::kInfinite);
    bool is_compared =
        std::any_of(o.values.begin(), o.values.end(), [&](uint32_t v) { return is_compared_[v]; });
    if (o.ops.empty() || (is_compared && !is_exclusive && !is_exact(o.ops[model]))) {
      cut.add(needed(k), kSink, reading);
      continue;
    }
    if (is_exclusive) exclusive.emplace(o.ops[model], k);
    double work =
        is_exclusive ? 0 : machine::seconds_of_work(cost(o.ops[0]), machine::kFunctionOfMany);
    cut.add(needed(k), made(k), reading);
    cut.add(made(k), kSink, work / machine::kByte + 1);
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

std::vector<Values> Repeats::build(const Piece& piece, Builder& b, const Values& inputs) const {
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
    for (const Piece::Source& source : piece.entries[i].operands) {
      if (source.literal)
        operands.push_back(b.literal(graph_.literal(source.literal)));
      else
        operands.push_back(source.is_input ? inputs[source.number]
                                           : results[source.number][source.result]);
    }
    b.set_loc(op.loc);
    results[i] = b.add_typed(*op.info, operands, op.attrs, graph_.result_types(op));
  }
  return results;
}

// `cost_of`: of an op of a number.
static int64_t peak_of(const Graph& graph, auto&& cost_of) {
  auto num_ops = static_cast<uint32_t>(graph.ops().size());
  std::vector<uint32_t> readers(graph.num_values()), last(graph.num_values());
  std::vector<bool> is_stored(graph.num_values()), is_output(graph.num_values());
  for (Value v : graph.outputs())
    if (!v.is_literal()) is_stored[v.id] = is_output[v.id] = true;
  auto elements = [&](Value v) { return graph.type(v)->num_elements(); };
  for (uint32_t i = num_ops; i-- > 0;) {
    const Op& op = graph.op(i);
    uint32_t end = i;  // until which its operands are needed
    const Cost& cost = cost_of(i);
    bool is_fused = can_be_moved(op, cost);
    for (uint32_t r = 0; r < op.num_results; ++r) {
      uint32_t v = op.results_begin + r;
      bool is_dear = readers[v] > 1 && cost.transcendentals > 0;
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

int64_t peak_of(const Graph& graph) {
  return peak_of(graph, [&](uint32_t op) { return op_cost(graph, graph.op(op)); });
}

int64_t Repeats::peak() const {
  return peak_of(graph_, [&](uint32_t op) -> const Cost& { return cost(op); });
}

int64_t outer_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i)
    bytes += graph.type(graph.input(i))->num_bytes();
  for (Value v : graph.outputs()) bytes += graph.type(v)->num_bytes();
  return bytes;
}

}  // namespace weft
