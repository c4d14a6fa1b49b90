// find_blocks: which repeats become blocks, and the steps that run them.
//
// A run is cut into copies at the phase at which the fewest bytes cross from one copy to the next;
// copies whose operands do not come from the same places stay out, and copies that stand elsewhere
// are added. Pieces are intervals of a topological order, so running them in order is right
// whatever they are.
#include "weft/blocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "passes/machine.h"
#include "passes/pass_list.h"
#include "passes/repeats.h"
#include "weft/builder.h"

namespace weft {
namespace {

// How much more memory steps may take than one module, with arguments and results, besides what is
// no matter in any process.
constexpr double kMaxGrowth = 1.03, kFewBytes = 1 << 20;

// Makes steps of pieces.
class Planner {
 public:
  explicit Planner(const Repeats& repeats) : graph_(repeats.graph()), repeats_(repeats) {}

  // Pieces that are alike. Those of which a step would read and write too many arrays for what it
  // takes are left out. `taken`: the ops of other steps, which make and are handed arrays anyway.
  bool add(const Repeat& repeat, double max_seconds, const std::vector<bool>& taken);
  size_t num_pieces() const { return pieces_.size(); }
  void drop_last(size_t count) { pieces_.resize(pieces_.size() - count); }
  std::shared_ptr<const BlockPlan> finish(const std::vector<bool>& donated);

 private:
  void drop_unused();
  std::vector<bool> crossing_values() const;
  GraphRef build(const Piece& piece,
                 const std::vector<std::pair<uint32_t, uint32_t>>& outputs) const;

  const Graph& graph_;
  const Repeats& repeats_;
  std::vector<Piece> pieces_;
};

class Finder {
 public:
  Finder(const GraphRef& program, const BlockOptions& options)
      : options_(options),
        repeats_(program, Repeats::Literals::kCount, [](const Op&) { return false; }) {}

  std::shared_ptr<const BlockPlan> find(const std::vector<bool>& donated);

 private:
  double products() const;
  Repeat cut(const Run& run) const;
  uint32_t middle(const Repeat& repeat) const;
  static void take(const Repeat& repeat, std::vector<bool>& taken);
  void add_elsewhere(Repeat& repeat, std::vector<bool>& taken) const;
  bool add(const Run& run, Planner& planner, std::vector<bool>& taken) const;

  const BlockOptions& options_;
  const Repeats repeats_;
};

// The part of the work that matrix products do.
double Finder::products() const {
  double all = 0, products = 0;
  for (uint32_t i = 0; i < repeats_.num_ops(); ++i) {
    double work = machine::seconds_of_work(repeats_.cost(i), machine::kFunctionOfMany);
    all += work;
    if (repeats_.graph().op(i).info == &op_named<"dot_general">()) products += work;
  }
  return all > 0 ? products / all : 0;
}

Repeat Finder::cut(const Run& run) const {
  double period_seconds = repeats_.seconds_of(run.begin, run.end) * run.period / run.length();
  double wanted = std::max(options_.min_seconds / std::max(period_seconds, 1e-12),
                           static_cast<double>(options_.min_ops) / run.period);
  if (wanted > run.length() / run.period / 2) return {};
  auto periods = static_cast<uint32_t>(std::max(1.0, std::ceil(wanted)));
  // As many as leave least to be compiled: a piece, and the periods that no piece has.
  uint32_t all = run.length() / run.period;
  for (uint32_t more = periods; more <= all / 2; ++more)
    if (more + all % more < periods + all % periods) periods = more;
  Repeat repeat = repeats_.cut(run, periods * run.period);
  if (repeat.starts.size() < 2) return {};
  return repeat;
}

// Where a piece is cut in two, both of which take long enough; its length: nowhere. What a step
// reads is kept until it ends, and its own intermediate values beside that: shorter steps need
// less memory.
uint32_t Finder::middle(const Repeat& repeat) const {
  // Of a copy in the midst: what the first one reads is the program's, and crosses no cut.
  uint32_t start = repeat.starts[repeat.starts.size() / 2];
  double whole = repeats_.seconds_of(start, start + repeat.length);
  int64_t least = -1;
  uint32_t best = repeat.length;
  if (options_.min_seconds <= 0) return best;
  std::vector<int64_t> crossing = repeats_.crossing(start, start + repeat.length, repeat.length);
  for (uint32_t at = options_.min_ops; at + options_.min_ops <= repeat.length; ++at) {
    double first = repeats_.seconds_of(start, start + at);
    if (std::min(first, whole - first) < std::max(options_.min_seconds, whole / 4)) continue;
    if (least < 0 || crossing[at] < least) best = at, least = crossing[at];
  }
  return best;
}

void Finder::take(const Repeat& repeat, std::vector<bool>& taken) {
  for (uint32_t start : repeat.starts) std::fill_n(taken.begin() + start, repeat.length, true);
}

// Adds copies that stand outside of the run, with other things between them, and takes their ops.
void Finder::add_elsewhere(Repeat& repeat, std::vector<bool>& taken) const {
  uint32_t model = repeat.starts[0];
  for (uint32_t at = 0; at + repeat.length <= repeats_.num_ops(); ++at) {
    if (taken[at] || !repeats_.same_labels(model, at, repeat.length)) continue;
    auto end = taken.begin() + at + repeat.length;
    if (std::find(taken.begin() + at, end, true) != end ||
        !repeats_.alike(model, at, repeat.length))
      continue;
    repeat.starts.push_back(at);
    std::fill_n(taken.begin() + at, repeat.length, true);
  }
  std::sort(repeat.starts.begin(), repeat.starts.end());
}

bool Planner::add(const Repeat& repeat, double max_seconds, const std::vector<bool>& taken) {
  Piece piece = repeats_.piece_of(repeat);
  repeats_.recompute(piece, [](uint32_t) { return true; });
  // Arrays that go from one step to another because of this one: one module is given its own inputs
  // and outputs, too.
  uint32_t start = repeat.starts[0], end = start + repeat.length;
  auto is_read_elsewhere = [&](uint32_t value) {
    std::span<const uint32_t> users = repeats_.users(value);
    return std::any_of(users.begin(), users.end(), [&](uint32_t user) {
      return (user < start || user >= end) && !taken[user];
    });
  };
  size_t arrays = 0;
  for (const std::vector<uint32_t>& values : piece.inputs) {
    const Op* maker = graph_.producer(Value{values[0]});
    arrays += (maker && !taken[repeats_.index_of(*maker)]) || is_read_elsewhere(values[0]);
  }
  for (uint32_t i = start; i < end; ++i)
    for (uint32_t r = 0; r < graph_.op(i).num_results; ++r)
      arrays += is_read_elsewhere(graph_.op(i).results_begin + r);
  if (machine::kProgram + machine::kProgramArray * static_cast<double>(arrays) > max_seconds)
    return false;
  pieces_.push_back(std::move(piece));
  return true;
}

// `outputs`: entry and result.
GraphRef Planner::build(const Piece& piece,
                        const std::vector<std::pair<uint32_t, uint32_t>>& outputs) const {
  GraphBuilder b;
  Values inputs(piece.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k)
    inputs[k] = b.input(graph_.type(Value{piece.inputs[k][0]}));
  std::vector<Values> results = repeats_.build(piece, b, inputs);
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
        for (const Piece::Source& source : piece.entries[i].operands) {
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
        for (Piece::Source& source : entry.operands)
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

void set_peaks(BlockPlan& plan, const Repeats& repeats) {
  std::vector<int64_t> held = plan.held_bytes(), within;
  for (const BlockPlan::Block& block : plan.blocks) within.push_back(peak_of(*block.graph));
  for (size_t i = 0; i < held.size(); ++i)
    plan.peak = std::max(plan.peak, held[i] + within[plan.steps[i].block]);
  plan.whole_peak = repeats.peak();
  plan.outer = outer_bytes(repeats.graph());
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
  set_peaks(*plan, repeats_);
  return plan;
}

// Makes steps of a run, or of what is left if others have a part of it; false if it is refused as
// costing too much.
bool Finder::add(const Run& run, Planner& planner, std::vector<bool>& taken) const {
  Run left = run;  // if it is in one piece
  while (left.begin < left.end && taken[left.begin]) ++left.begin;
  uint32_t end = left.begin;
  while (end < left.end && !taken[end]) ++end;
  left.end = end;
  if (left.length() < 2 * left.period) return true;
  Repeat repeat = cut(left);
  if (repeat.starts.empty()) return true;
  // Halves stand elsewhere on their own, too: of a layer that was edited one may be as it was.
  auto add_parts = [&](std::vector<Repeat> parts) {
    std::vector<bool> now = taken;
    for (const Repeat& part : parts) take(part, now);
    for (Repeat& part : parts) {
      add_elsewhere(part, now);
      double step = repeats_.seconds_of(part.starts[0], part.starts[0] + part.length);
      if (planner.add(part, step * options_.max_overhead, taken)) continue;
      planner.drop_last(static_cast<size_t>(&part - parts.data()));
      return false;
    }
    taken = std::move(now);
    return true;
  };
  Repeat first = repeat, second = repeat;
  first.length = middle(repeat);
  second.length -= first.length;
  for (uint32_t& start : second.starts) start += first.length;
  return (second.length > 0 && add_parts({first, second})) || add_parts({repeat});
}

std::shared_ptr<const BlockPlan> Finder::find(const std::vector<bool>& donated) {
  std::vector<Run> all = repeats_.runs();
  if (all.empty() || products() < options_.min_products) return nullptr;

  Planner planner(repeats_);
  const uint32_t num_ops = repeats_.num_ops();
  std::vector<bool> taken(num_ops);
  // What was refused is asked again when there are more steps, to which arrays go anyway.
  for (size_t before = 1; before != planner.num_pieces();) {
    before = planner.num_pieces();
    std::erase_if(all, [&](const Run& run) { return add(run, planner, taken); });
  }
  if (planner.num_pieces() == 0) return nullptr;
  for (uint32_t i = 0; i < num_ops;) {
    uint32_t begin = i;
    while (i < num_ops && !taken[i]) ++i;
    if (i > begin) planner.add({{begin}, i - begin}, 1e9, taken);
    while (i < num_ops && taken[i]) ++i;
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
  return Finder(graph, options).find(donated);
}

}  // namespace weft
