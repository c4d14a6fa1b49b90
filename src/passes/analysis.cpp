// What running a graph takes, from the cost rules of its ops: flops and bytes, how many ops and how
// long their chains, and the memory that values take. docs/cli.md says what each figure counts.
//
// The graphs that ops run are looked at once each. How the figures of such an op follow from those
// of its graphs is what its cost rule says of costs (a scan's are its length times its body's, a
// cond's those of the branch that has most), so nothing here knows loops or branches by name.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ops/def/walk.h"
#include "passes/machine.h"
#include "passes/pass_list.h"
#include "weft/passes.h"

namespace weft {
namespace {

void add_to(Cost& sum, const Cost& x) {
  sum.flops += x.flops;
  sum.transcendentals += x.transcendentals;
  sum.bytes += x.bytes;
}
void add_to(Tally& sum, const Tally& x) {
  sum.ops += x.ops;
  add_to(sum.cost, x.cost);
}

double bytes_of(std::span<const TypeRef> types) {
  double bytes = 0;
  for (TypeRef type : types) bytes += bytes_of(type);
  return bytes;
}

}  // namespace

Cost op_cost(const Graph& graph, const Op& op, const GraphCost& of_graph) {
  const OpDef& op_def = def(*op.info);
  Cost sum;
  if (op_def.cost) {
    TypeRefs in_types;
    Mask literals;
    for (Value v : graph.operands(op)) {
      in_types.push_back(graph.type(v));
      literals.push_back(v.is_literal());
    }
    return op_def.cost({in_types, graph.result_types(op), op.attrs.get(), of_graph, literals});
  }
  if (op.attrs && takes_graphs(*op.info)) {
    for_each_graph(op.attrs, [&](const GraphRef& g) { add_to(sum, of_graph(*g)); });
    return sum;
  }
  for (Value v : graph.operands(op))
    if (!v.is_literal()) sum.bytes += bytes_of(graph.type(v));
  sum.bytes += bytes_of(graph.result_types(op));
  return sum;
}

std::vector<const Graph*> graphs_run(const Graph& graph, const Op& op) {
  std::vector<const Graph*> graphs;
  if (op.attrs && takes_graphs(*op.info) && !is_fusion(op)) {
    op_cost(graph, op, [&](const Graph& g) {
      graphs.push_back(&g);
      return Cost{};
    });
  }
  return graphs;
}

namespace {

// Of one graph.
struct Figures {
  Tally total;
  double path = 0, levels = 0, width = 0;
  std::map<const OpInfo*, Tally> by_op;
  std::map<Loc, Tally> by_loc;
};

class Analyzer {
 public:
  const Figures& figures(const Graph& graph);
  // The most bytes that values take at once. Inputs that are `held` live to the end, the others to
  // their last use.
  double peak(const Graph& graph, const Mask& held);
  // Of its ops one by one; memory as of the whole program, or of a graph in it (GraphFigures).
  GraphFigures of_ops(const Graph& graph, bool is_program);

 private:
  struct Span {
    double path = 1, levels = 1, width = 1;
  };
  Span add_op(Figures& to, const Graph& graph, const Op& op);
  template <typename Key>
  void add_inner(std::map<Key, Tally>& to, std::map<Key, Tally> Figures::* part, const Graph& graph,
                 const Op& op, std::span<const Graph* const> inner);
  // `live`: receives per op the bytes that values take while it runs.
  double peak_of(const Graph& graph, const Mask& held, bool only_inner,
                 std::vector<double>* live = nullptr);
  double inner_peak(const Graph& graph);
  double beside_operands(const Graph& graph, const Op& op, uint32_t index,
                         std::span<const uint32_t> last_use);

  std::unordered_map<const Graph*, Figures> figures_;
  std::map<std::pair<const Graph*, std::vector<bool>>, double> peaks_;
  std::unordered_map<const Graph*, double> inner_peaks_;
};

// Adds the entries of an op's graphs to those of the graph that the op is in.
template <typename Key>
void Analyzer::add_inner(std::map<Key, Tally>& to, std::map<Key, Tally> Figures::* part,
                         const Graph& graph, const Op& op, std::span<const Graph* const> inner) {
  std::map<Key, Tally> merged;
  for (const Graph* g : inner)
    for (const auto& entry : figures_.at(g).*part) merged.try_emplace(entry.first);
  Cost own = op_cost(graph, op, [](const Graph&) { return Cost{}; });
  for (auto& [key, tally] : merged) {
    auto of = [&](const Graph& g) {
      auto found = (figures_.at(&g).*part).find(key);
      return found == (figures_.at(&g).*part).end() ? Tally{} : found->second;
    };
    tally.ops = op_cost(graph, op, [&](const Graph& g) { return Cost{.flops = of(g).ops}; }).flops -
                own.flops;
    Cost cost = op_cost(graph, op, [&](const Graph& g) { return of(g).cost; });
    tally.cost = {cost.flops - own.flops, cost.transcendentals - own.transcendentals,
                  cost.bytes - own.bytes};
    add_to(to[key], tally);
  }
}

Analyzer::Span Analyzer::add_op(Figures& to, const Graph& graph, const Op& op) {
  std::vector<const Graph*> inner = graphs_run(graph, op);
  Tally tally{1, op_cost(graph, op, [&](const Graph& g) { return figures(g).total.cost; })};
  Span span;
  if (inner.empty()) {
    add_to(to.by_op[op.info], tally);
    add_to(to.by_loc[op.loc], tally);
  } else {
    Cost counts = op_cost(graph, op, [&](const Graph& g) {
      const Figures& f = figures(g);
      return Cost{.flops = f.total.ops, .bytes = f.path};
    });
    Cost own = op_cost(graph, op, [](const Graph&) { return Cost{}; });
    tally.ops = counts.flops - own.flops;
    span = {counts.bytes - own.bytes, 0, 0};
    for (const Graph* g : inner) {
      span.levels = std::max(span.levels, figures(*g).levels);
      span.width = std::max(span.width, figures(*g).width);
    }
    add_inner(to.by_op, &Figures::by_op, graph, op, inner);
    add_inner(to.by_loc, &Figures::by_loc, graph, op, inner);
  }
  add_to(to.total, tally);
  return span;
}

const Figures& Analyzer::figures(const Graph& graph) {
  auto known = figures_.find(&graph);
  if (known != figures_.end()) return known->second;
  Figures f;
  struct Depth {
    double path = 0, level = 0;
  };
  std::vector<Depth> depths(graph.num_values());
  std::map<double, double> steps;  // where the width changes, by level
  for (const Op& op : graph.ops()) {
    Depth depth;
    for (Value v : graph.operands(op)) {
      if (v.is_literal()) continue;
      depth.path = std::max(depth.path, depths[v.id].path);
      depth.level = std::max(depth.level, depths[v.id].level);
    }
    Span span = add_op(f, graph, op);
    steps[depth.level] += span.width;
    depth.path += span.path;
    depth.level += span.levels;
    steps[depth.level] -= span.width;
    for (uint32_t i = 0; i < op.num_results; ++i) depths[op.results_begin + i] = depth;
    f.path = std::max(f.path, depth.path);
    f.levels = std::max(f.levels, depth.level);
  }
  double width = 0;
  for (const auto& step : steps) f.width = std::max(f.width, width += step.second);
  return figures_.emplace(&graph, std::move(f)).first->second;
}

double Analyzer::peak(const Graph& graph, const Mask& held) {
  auto key = std::pair(&graph, std::vector<bool>(held.begin(), held.end()));
  auto known = peaks_.find(key);
  if (known != peaks_.end()) return known->second;
  return peaks_[key] = peak_of(graph, held, false);
}

// Of the values that are neither inputs nor outputs.
double Analyzer::inner_peak(const Graph& graph) {
  auto known = inner_peaks_.find(&graph);
  if (known != inner_peaks_.end()) return known->second;
  return inner_peaks_[&graph] = peak_of(graph, Mask(graph.num_inputs(), true), true);
}

// The most bytes that an op needs besides its operands and results while it runs. A call is looked
// at as if its ops stood in its place, so this may be less than nothing: an operand can be gone
// before the results are there.
double Analyzer::beside_operands(const Graph& graph, const Op& op, uint32_t index,
                                 std::span<const uint32_t> last_use) {
  std::vector<const Graph*> inner = graphs_run(graph, op);
  if (inner.empty()) return 0;
  if (!is_call(op)) {
    double most = 0;
    for (const Graph* g : inner) most = std::max(most, inner_peak(*g));
    return most;
  }
  Mask held;
  for (Value v : graph.operands(op)) held.push_back(!v.is_literal() && last_use[v.id] > index);
  double beside = peak(*inner[0], held) - bytes_of(graph.result_types(op));
  for (Value v : graph.operands(op)) beside -= bytes_of(graph.type(v));
  return beside;
}

double Analyzer::peak_of(const Graph& graph, const Mask& held, bool only_inner,
                         std::vector<double>* live_by_op) {
  constexpr uint32_t kNever = 0xffffffffu;
  uint32_t num_ops = static_cast<uint32_t>(graph.ops().size());
  std::vector<uint32_t> last_use(graph.num_values(), kNever);
  std::vector<bool> counted(graph.num_values(), true);
  for (uint32_t index = 0; index < num_ops; ++index)
    for (Value v : graph.operands(graph.op(index)))
      if (!v.is_literal()) last_use[v.id] = index;
  for (Value v : graph.outputs()) {
    if (v.is_literal()) continue;
    last_use[v.id] = num_ops;
    if (only_inner) counted[v.id] = false;
  }
  double live = 0;
  auto bytes = [&](uint32_t id) { return counted[id] ? bytes_of(graph.type(Value{id})) : 0; };
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (only_inner) counted[i] = false;
    if (held[i]) last_use[i] = num_ops;
    if (last_use[i] != kNever) live += bytes(i);
  }
  double most = live;
  for (uint32_t index = 0; index < num_ops; ++index) {
    const Op& op = graph.op(index);
    for (uint32_t i = 0; i < op.num_results; ++i) live += bytes(op.results_begin + i);
    double now = live + beside_operands(graph, op, index, last_use);
    if (live_by_op) live_by_op->push_back(now);
    most = std::max(most, now);
    for (uint32_t i = 0; i < op.num_results; ++i)
      if (last_use[op.results_begin + i] == kNever) live -= bytes(op.results_begin + i);
    for (Value v : graph.operands(op)) {
      if (v.is_literal() || last_use[v.id] != index) continue;
      live -= bytes(v.id);
      last_use[v.id] = kNever;  // may be an operand twice
    }
  }
  return most;
}

// Marks the ops on the chain that takes longest; returns its seconds.
double mark_longest_chain(const Graph& graph, std::vector<OpFigures>& ops) {
  constexpr uint32_t kNone = 0xffffffffu;
  std::vector<double> ends(ops.size());
  std::vector<uint32_t> before(ops.size(), kNone);
  uint32_t last = kNone;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    for (Value v : graph.operands(graph.op(i))) {
      const Op* producer = graph.producer(v);
      if (!producer) continue;
      uint32_t p = static_cast<uint32_t>(producer - graph.ops().data());
      if (before[i] == kNone || ends[p] > ends[before[i]]) before[i] = p;
    }
    ends[i] = ops[i].seconds + (before[i] == kNone ? 0 : ends[before[i]]);
    if (last == kNone || ends[i] > ends[last]) last = i;
  }
  double seconds = last == kNone ? 0 : ends[last];
  for (; last != kNone; last = before[last]) ops[last].critical = true;
  return seconds;
}

// The values that are there while an op runs, as peak_of() counts them.
std::vector<Value> values_at(const Graph& graph, uint32_t index, bool is_program) {
  std::vector<bool> needed(graph.num_values());
  std::vector<Value> values;
  uint32_t num_ops = static_cast<uint32_t>(graph.ops().size());
  for (uint32_t i = index; i < num_ops; ++i)
    for (Value v : graph.operands(graph.op(i)))
      if (!v.is_literal()) needed[v.id] = true;
  const Op& op = graph.op(index);
  for (uint32_t i = 0; i < op.num_results; ++i) needed[op.results_begin + i] = true;
  for (Value v : graph.outputs())
    if (!v.is_literal()) needed[v.id] = is_program;
  uint32_t end = op.results_begin + op.num_results;
  for (uint32_t id = is_program ? 0 : graph.num_inputs(); id < end; ++id)
    if (needed[id]) values.push_back(Value{id});
  return values;
}

GraphFigures Analyzer::of_ops(const Graph& graph, bool is_program) {
  GraphFigures f{.graph = &graph};
  std::vector<double> live;
  f.peak_bytes = peak_of(graph, Mask(graph.num_inputs(), !is_program), !is_program, &live);
  for (const Op& op : graph.ops()) {
    Cost cost = op_cost(graph, op, [&](const Graph& g) { return figures(g).total.cost; });
    f.ops.push_back({cost, machine::seconds(cost), live[f.ops.size()], false});
  }
  if (!live.empty()) {
    f.peak = static_cast<uint32_t>(std::ranges::max_element(live) - live.begin());
    f.at_peak = values_at(graph, f.peak, is_program);
  }
  f.chain_seconds = mark_longest_chain(graph, f.ops);
  return f;
}

template <typename Map, typename Name>
std::vector<std::pair<std::string, Tally>> named(const Map& tallies, const Name& name) {
  std::map<std::string, Tally> merged;
  for (const auto& [key, tally] : tallies) add_to(merged[name(key)], tally);
  std::vector<std::pair<std::string, Tally>> out(merged.begin(), merged.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second.ops > b.second.ops; });
  return out;
}

std::string line_of(Loc loc) {
  if (loc == kNoLoc) return "<unknown>";
  return cat(loc_info(loc).file, ':', loc_info(loc).line);
}

// Whole numbers with their thousands apart: 1,234,567.
std::string number(double x) {
  if (!(std::abs(x) < 1e15)) return cat(x);
  std::string digits = cat(static_cast<int64_t>(std::llround(x)));
  Text out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) out << ',';
    out << digits[i];
  }
  return out.take();
}

void append_table(Text& out, std::string_view title,
                  const std::vector<std::pair<std::string, Tally>>& rows) {
  size_t width = title.size();
  for (const auto& row : rows) width = std::max(width, row.first.size() + 2);
  auto right = [&](const std::string& cell) {
    out.spaces(std::max(2, 17 - static_cast<int>(cell.size()))) << cell;
  };
  out << '\n' << title;
  out.spaces(static_cast<int>(width - title.size()));
  for (const char* column : {"ops", "flops", "transcendentals", "bytes"}) right(column);
  out << '\n';
  for (const auto& [name, tally] : rows) {
    out << "  " << name;
    out.spaces(static_cast<int>(width - name.size()) - 2);
    for (double x : {tally.ops, tally.cost.flops, tally.cost.transcendentals, tally.cost.bytes})
      right(number(x));
    out << '\n';
  }
}

}  // namespace

Cost op_cost(const Graph& graph, const Op& op) {
  return op_cost(graph, op, [](const Graph& g) { return graph_cost(g); });
}

Cost graph_cost(const Graph& graph) {
  std::unordered_map<const Graph*, Cost> known;
  GraphCost cost = [&](const Graph& g) {
    auto found = known.find(&g);
    if (found != known.end()) return found->second;
    Cost sum;
    for (const Op& op : g.ops()) add_to(sum, op_cost(g, op, cost));
    known.emplace(&g, sum);
    return sum;
  };
  return cost(graph);
}

Analysis analyze(const Graph& graph) {
  Analyzer analyzer;
  const Figures& f = analyzer.figures(graph);
  Analysis a;
  a.total = f.total;
  a.critical_path = f.path;
  a.levels = f.levels;
  a.width = f.width;
  a.peak_bytes = analyzer.peak(graph, Mask(graph.num_inputs(), false));
  a.input_bytes = bytes_of(graph.input_types());
  a.output_bytes = bytes_of(graph.output_types());
  a.by_op = named(f.by_op, [](const OpInfo* op) { return op->name; });
  a.by_line = named(f.by_loc, line_of);
  return a;
}

std::vector<GraphFigures> figures_of_ops(const Graph& graph) {
  Analyzer analyzer;
  std::vector<GraphFigures> all;
  std::unordered_set<const Graph*> seen = {&graph};
  std::vector<const Graph*> found = {&graph};
  for (size_t i = 0; i < found.size(); ++i) {
    all.push_back(analyzer.of_ops(*found[i], i == 0));
    for (const Op& op : found[i]->ops())
      if (op.attrs && op.attrs->holds_graphs())
        for_each_graph(op.attrs, [&](const GraphRef& g) {
          if (seen.insert(g.get()).second) found.push_back(g.get());
        });
  }
  return all;
}

std::string to_text(const Analysis& a) {
  Text out;
  auto line = [&](std::string_view name, double value) -> Text& {
    std::string digits = number(value);
    out << name;
    out.spaces(17 - static_cast<int>(name.size()) + std::max(2, 15 - int(digits.size())));
    return out << digits;
  };
  line("ops", a.total.ops) << '\n';
  line("critical path", a.critical_path) << "  ops that wait for one another\n";
  line("levels", a.levels) << '\n';
  line("width", a.width) << "  ops on one level, at most\n";
  line("flops", a.total.cost.flops) << '\n';
  line("transcendentals", a.total.cost.transcendentals) << '\n';
  line("bytes", a.total.cost.bytes) << "  read and written by ops\n";
  line("peak bytes", a.peak_bytes) << "  live at once; inputs " << number(a.input_bytes)
                                   << ", outputs " << number(a.output_bytes) << '\n';
  if (!a.by_op.empty()) {
    append_table(out, "by op", a.by_op);
    append_table(out, "by line", a.by_line);
  }
  return out.take();
}

}  // namespace weft
