// Which runs of isomorphic slices become loops. Where an operand comes from outside of its copy,
// the values that it is in all copies say what it is in the loop: see roll.cpp.
#include "passes/roll_plan.h"

#include <algorithm>
#include <cmath>

#include "passes/machine.h"
#include "weft/op_def.h"

namespace weft::rolling {
namespace {

// How many copies back a carry may reach, and how many periods one iteration may have at least.
constexpr uint32_t kMaxDistance = 4, kMaxPeriods = 3;

bool is_slice(const Op& op) { return op.info == &op_named<"slice">(); }
// Whether an op gives the elements of its operand as they follow each other.
bool is_reshape(const Op& op) {
  return op.info == &op_named<"reshape">() || op.info == &op_named<"squeeze">();
}

}  // namespace

Plan::Plan(const GraphRef& program, const RollOptions& options)
    : options_(options),
      repeats_(program, Repeats::Literals::kMayDiffer,
               [](const Op& op) { return is_slice(op) || is_reshape(op); }),
      graph_(repeats_.graph()),
      loop_of_(repeats_.num_ops(), kNoLoop) {}

std::optional<Place> Plan::place(uint32_t value) const {
  const Op* op = graph_.producer(Value{value});
  if (!op) return std::nullopt;
  uint32_t at = repeats_.index_of(*op), number = loop_of_[at];
  if (number == kNoLoop) return std::nullopt;
  const Loop& loop = loops_[number];
  uint32_t offset = at - loop.begin;
  return Place{number, offset % loop.length, value - op->results_begin, offset / loop.length};
}

std::optional<Part> Plan::part(uint32_t value) const {
  const Op* op = graph_.producer(Value{value});
  while (op && is_reshape(*op)) op = graph_.producer(graph_.operand(*op, 0));
  if (!op || !is_slice(*op)) return std::nullopt;
  const AttrRecord& attrs = *op->attrs;
  Part found{graph_.operand(*op, 0), attrs.ints("start_indices"),
             graph_.result_types(*op)[0]->shape()};
  const Dims& limit = attrs.ints("limit_indices");
  for (size_t i = 0; i < limit.size(); ++i)
    if (limit[i] - found.start[i] != found.sizes[i]) return std::nullopt;  // by steps
  return found;
}

bool Plan::is_made_in(const Loop& loop, uint32_t value) const {
  const Op* op = graph_.producer(Value{value});
  return op && repeats_.index_of(*op) >= loop.begin && repeats_.index_of(*op) < loop.end;
}

// From two copies that follow each other, the first of which is `copy`.
Input Plan::slices(const Part& a, const Part& b, size_t copy) const {
  if (a.of != b.of || a.sizes != b.sizes || a.of.is_literal()) return {};
  std::optional<size_t> axis;
  for (size_t i = 0; i < a.start.size(); ++i) {
    if (a.start[i] == b.start[i]) continue;
    if (axis) return {};
    axis = i;
  }
  if (!axis) return {};
  int64_t step = b.start[*axis] - a.start[*axis], size = a.sizes[*axis];
  if (size != 1 && size != std::abs(step)) return {};
  return {.kind = Input::kSlices,
          .axis = *axis,
          .first = a.start[*axis] - static_cast<int64_t>(copy) * step,
          .step = step};
}

bool Plan::is_slice_at(const Input& input, const Part& like, uint32_t value, size_t copy) const {
  auto found = part(value);
  if (!found || found->of != like.of || found->sizes != like.sizes) return false;
  for (size_t i = 0; i < like.start.size(); ++i) {
    int64_t wanted =
        i == input.axis ? input.first + static_cast<int64_t>(copy) * input.step : like.start[i];
    if (found->start[i] != wanted) return false;
  }
  return true;
}

// What an input is, and of the copies in the range those for which it holds.
std::optional<Input> Plan::describe(const Loop& loop, const std::vector<uint32_t>& values,
                                    Range& range) const {
  size_t mid = (range.begin + range.end) / 2 - 1;
  auto narrow = [&](auto&& holds) {
    size_t begin = mid, end = mid + 1;
    while (begin > range.begin && holds(begin - 1)) --begin;
    while (end < range.end && holds(end)) ++end;
    range = {begin, end};
  };
  auto same_literal = [&](uint32_t a, uint32_t b) {
    Value x{a}, y{b};
    return x.is_literal() && y.is_literal() && graph_.literal(x) == graph_.literal(y);
  };
  uint32_t here = values[mid], next = values[mid + 1];
  if (here == next || same_literal(here, next)) {
    narrow([&](size_t c) { return values[c] == here || same_literal(values[c], here); });
    return Input{.kind = Input::kConst};
  }
  // Copies of this run are not in a loop yet.
  auto own = [&](uint32_t value) -> std::optional<Place> {
    if (!is_made_in(loop, value)) return std::nullopt;
    const Op& op = *graph_.producer(Value{value});
    uint32_t offset = repeats_.index_of(op) - loop.begin;
    return Place{kNoLoop, offset % loop.length, value - op.results_begin, offset / loop.length};
  };
  if (auto from = own(next)) {
    size_t distance = mid + 1 - from->copy;
    if (from->copy > mid || distance > kMaxDistance) return std::nullopt;
    auto holds = [&](size_t c) {
      auto other = own(values[c]);
      return other && other->entry == from->entry && other->result == from->result &&
             other->copy + distance == c;
    };
    size_t begin = mid + 1, end = mid + 2;
    while (begin > range.begin && holds(begin - 1)) --begin;
    while (end < range.end && holds(end)) ++end;
    // Copies before them take what the carries start with.
    range = {std::max(range.begin, begin - std::min(begin, distance)), end};
    return Input{.kind = Input::kCarry,
                 .distance = static_cast<uint32_t>(distance),
                 .entry = from->entry,
                 .result = from->result};
  }
  auto a = place(here), b = place(next);
  if (a && b && a->loop == b->loop && a->entry == b->entry && a->result == b->result) {
    int64_t step = int64_t{b->copy} - a->copy;
    int64_t first = a->copy - static_cast<int64_t>(mid) * step;
    narrow([&](size_t c) {
      auto other = place(values[c]);
      return other && other->loop == a->loop && other->entry == a->entry &&
             other->result == a->result && other->copy == first + static_cast<int64_t>(c) * step;
    });
    return Input{.kind = Input::kResults,
                 .entry = a->entry,
                 .result = a->result,
                 .loop = a->loop,
                 .first = first,
                 .step = step};
  }
  if (auto x = part(here), y = part(next); x && y) {
    Input input = slices(*x, *y, mid);
    if (input.kind == Input::kSlices) {
      narrow([&](size_t c) { return is_slice_at(input, *x, values[c], c); });
      return input;
    }
  }
  return Input{.kind = Input::kEach};
}

// Describes all inputs, and leaves out the copies for which something does not fit.
bool Plan::describe(Loop& loop) {
  Range range{0, loop.piece.num_copies()};
  loop.inputs.clear();
  for (const std::vector<uint32_t>& values : loop.piece.inputs) {
    if (range.size() < std::max(options_.min_iterations, 2u)) return false;
    auto input = describe(loop, values, range);
    if (!input) return false;
    loop.inputs.push_back(*input);
  }
  if (range.size() < std::max(options_.min_iterations, 2u)) return false;
  auto cut = [&](std::vector<uint32_t>& copies) {
    copies = std::vector<uint32_t>(copies.begin() + static_cast<std::ptrdiff_t>(range.begin),
                                   copies.begin() + static_cast<std::ptrdiff_t>(range.end));
  };
  for (Piece::Entry& entry : loop.piece.entries) cut(entry.ops);
  for (std::vector<uint32_t>& values : loop.piece.inputs) cut(values);
  for (Input& input : loop.inputs) input.first += static_cast<int64_t>(range.begin) * input.step;
  loop.end = loop.begin + static_cast<uint32_t>(range.end) * loop.length;
  loop.begin += static_cast<uint32_t>(range.begin) * loop.length;
  return true;
}

// Whether all that the loop takes is made before it.
bool Plan::is_ready(const Loop& loop) const {
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    const Input& input = loop.inputs[i];
    const std::vector<uint32_t>& values = loop.piece.inputs[i];
    size_t count = input.kind == Input::kCarry   ? input.distance
                   : input.kind == Input::kConst ? 1
                                                 : values.size();
    for (size_t c = 0; c < count; ++c)
      if (is_made_in(loop, input.kind == Input::kSlices ? part(values[c])->of.id : values[c]))
        return false;
  }
  return true;
}

uint32_t Plan::kernels(const Loop& loop) const {
  uint32_t count = 0;
  for (uint32_t i = loop.begin; i < loop.begin + loop.length; ++i) count += !repeats_.can_move(i);
  return count;
}

double Plan::seconds(const Loop& loop) const {
  return repeats_.seconds_of(loop.begin, loop.end) +
         loop.num_copies() * kernels(loop) * machine::kLargeThunk;
}

// How many iterations follow each other in the body, so that the loop itself takes little.
bool Plan::set_unroll(Loop& loop) const {
  uint32_t all = loop.num_copies(), num_kernels = kernels(loop);
  double work = 0;
  for (uint32_t i = loop.begin; i < loop.begin + loop.length; ++i)
    work += machine::seconds_of_work(repeats_.cost(i), machine::kFunctionOfMany);
  // What kernels of many iterations would hand on in registers, a loop writes and reads.
  double written = 0;
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    TypeRef type = graph_.type(Value{loop.piece.inputs[i][0]});
    auto bytes = static_cast<double>(type->num_bytes());
    if (num_kernels == 0 && loop.inputs[i].kind == Input::kCarry)
      written += 2 * bytes * (bytes < machine::kCacheBytes ? machine::kCachedByte : machine::kByte);
  }
  double wanted = std::max(all * machine::kLargeTrip / (seconds(loop) + machine::kProgram),
                           written / std::max(work, 1e-12)) /
                  options_.max_overhead;
  auto most = static_cast<uint32_t>(all / options_.min_reduction);
  if (wanted > most) return false;
  auto least = static_cast<uint32_t>(std::max(1.0, std::ceil(wanted)));
  loop.unroll = least;
  for (uint32_t more = least; more <= std::min(2 * least, most); ++more)
    if (more + all % more < loop.unroll + all % loop.unroll) loop.unroll = more;
  return true;
}

int64_t Plan::bytes_put_together(const Loop& loop) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < loop.inputs.size(); ++i)
    if (loop.inputs[i].kind == Input::kEach)
      bytes += graph_.type(Value{loop.piece.inputs[i][0]})->num_bytes() * loop.num_copies();
  return bytes;
}

std::optional<Loop> Plan::loop(const Run& run, uint32_t length) {
  if (run.length() < 2 * length) return std::nullopt;
  Repeat repeat = repeats_.cut(run, length);
  // Those that follow each other.
  std::vector<uint32_t> best, now;
  for (uint32_t start : repeat.starts) {
    if (!now.empty() && start != now.back() + length) now.clear();
    now.push_back(start);
    if (now.size() > best.size()) best = now;
  }
  if (best.size() < std::max(options_.min_iterations, 2u)) return std::nullopt;
  repeat.starts = std::move(best);
  Loop loop{.piece = repeats_.piece_of(repeat),
            .begin = repeat.starts[0],
            .end = repeat.starts.back() + length,
            .length = length};
  if (!describe(loop)) return std::nullopt;
  repeats_.recompute(loop.piece, [&](uint32_t op) {
    const Op& made = graph_.op(op);
    return !is_slice(made) && !is_reshape(made) && (op < loop.begin || op >= loop.end);
  });
  if (!describe(loop) || !is_ready(loop) || !set_unroll(loop)) return std::nullopt;
  double putting = 2 * static_cast<double>(bytes_put_together(loop)) * machine::kByte;
  if (putting > options_.max_overhead * repeats_.seconds_of(loop.begin, loop.end))
    return std::nullopt;
  return loop;
}

void Plan::add(Run run) {
  std::optional<Loop> best;
  // What alternates looks like a run of half its period.
  for (uint32_t periods = 1; periods <= kMaxPeriods; ++periods) {
    auto found = loop(run, periods * run.period);
    if (!found) continue;
    if (!best || bytes_put_together(*found) < bytes_put_together(*best)) best = std::move(found);
    if (bytes_put_together(*best) == 0) break;
  }
  if (!best) return;
  std::fill(loop_of_.begin() + best->begin, loop_of_.begin() + best->end,
            static_cast<uint32_t>(loops_.size()));
  int64_t forwards = 0;
  for (size_t i = 0; i < best->inputs.size(); ++i) {
    const Input& input = best->inputs[i];
    if (input.kind != Input::kSlices && input.kind != Input::kResults) continue;
    int64_t bytes = graph_.type(Value{best->piece.inputs[i][0]})->num_bytes();
    bool is_back = input.kind == Input::kResults && loops_[input.loop].reverse;
    forwards += ((input.step > 0) != is_back) ? bytes : -bytes;
  }
  best->reverse = forwards < 0;
  loops_.push_back(std::move(*best));
}

// ---- What is read of loops

void Plan::note_read(uint32_t value) {
  auto at = place(value);
  if (!at) {
    if (const Op* op = graph_.producer(Value{value})) is_live_[repeats_.index_of(*op)] = true;
    return;
  }
  Loop& loop = loops_[at->loop];
  auto& kind = at->copy + 1 == loop.num_copies() ? loop.last : loop.stacked;
  kind.try_emplace({at->entry, at->result}, 0);
}

void Plan::note_reads() {
  is_live_.assign(repeats_.num_ops(), false);
  for (Value v : graph_.outputs())
    if (!v.is_literal()) note_read(v.id);
  for (uint32_t i = repeats_.num_ops(); i-- > 0;) {
    if (loop_of_[i] == kNoLoop) {
      if (!is_live_[i]) continue;
      for (Value v : graph_.operands(graph_.op(i)))
        if (!v.is_literal()) note_read(v.id);
      continue;
    }
    const Loop& loop = loops_[loop_of_[i]];
    if (i != loop.begin) continue;
    for (size_t k = 0; k < loop.inputs.size(); ++k) {
      const Input& input = loop.inputs[k];
      const std::vector<uint32_t>& values = loop.piece.inputs[k];
      auto note = [&](uint32_t v) {
        if (!Value{v}.is_literal()) note_read(v);
      };
      switch (input.kind) {
        case Input::kConst:
          note(values[0]);
          break;
        case Input::kCarry:
          for (uint32_t d = 0; d < input.distance; ++d) note(values[d]);
          break;
        case Input::kSlices:
          note(part(values[0])->of.id);
          break;
        case Input::kResults:
          loops_[input.loop].stacked.try_emplace({input.entry, input.result}, 0);
          break;
        case Input::kEach:
          for (uint32_t v : values) note(v);
      }
    }
  }
}

// Whether what the loops stack is little beside what the program takes anyway, in memory and in
// time.
bool Plan::fits() const {
  int64_t bytes = 0;
  for (const Loop& loop : loops_) {
    auto slices = static_cast<double>(loop.stacked.size());
    for (const Input& input : loop.inputs) slices += input.is_stacked();
    if (loop.num_copies() * slices * machine::kSlice > options_.max_overhead * seconds(loop))
      return false;
    bytes += bytes_put_together(loop);
    for (const auto& [which, number] : loop.stacked) {
      const Op& op = graph_.op(loop.piece.entries[which.first].ops[0]);
      bytes += graph_.result_types(op)[which.second]->num_bytes() * loop.num_copies();
    }
  }
  return static_cast<double>(bytes) <=
         static_cast<double>(options_.few_bytes) +
             options_.max_growth * static_cast<double>(repeats_.peak());
}

// ---- The plan

std::vector<Rolled::Loop> Plan::summary() const {
  std::vector<Rolled::Loop> all;
  for (const Loop& loop : loops_)
    all.push_back({loop.num_copies(), loop.unroll, loop.end - loop.begin,
                   static_cast<uint32_t>(loop.piece.entries.size())});
  return all;
}

// Whether so many ops become loops, and so much fewer.
bool Plan::reduces() const {
  uint32_t before = 0, after = 0;
  for (const Rolled::Loop& loop : summary()) {
    before += loop.num_ops;
    after += loop.num_after * (loop.unroll + loop.length % loop.unroll);
  }
  return !loops_.empty() && before >= options_.min_ops && before >= after * options_.min_reduction;
}

bool Plan::find() {
  // Of runs that have ops in common, the longer one; loops that others read come first.
  std::vector<Run> runs;
  std::vector<bool> taken(repeats_.num_ops());
  for (Run run : repeats_.runs()) {
    while (run.begin < run.end && taken[run.begin]) ++run.begin;
    uint32_t end = run.begin;
    while (end < run.end && !taken[end]) ++end;
    run.end = end;
    if (run.length() < options_.min_iterations * run.period) continue;
    std::fill(taken.begin() + run.begin, taken.begin() + run.end, true);
    runs.push_back(run);
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  for (const Run& run : runs) add(run);
  if (!reduces()) return false;
  note_reads();
  return fits();
}

}  // namespace weft::rolling
