// roll: repeats of isomorphic slices of a program become scans.
//
// Copies of a repeat that follow each other are the iterations of a loop. Where an operand comes
// from outside of its copy, the values that it is in all copies say what it is in the loop:
//   - the same value: a constant of the loop;
//   - what a copy before made: a carry, or a queue of carries if the copy is not the last one;
//   - slices of one array, a fixed step apart: slices that the loop reads;
//   - what the copies of another loop made, in order or backwards: slices of what that loop stacks;
//   - literals: slices of a constant array;
//   - anything else: slices of the values put together, as long as these are small.
// The rule is that of two copies in the midst. Copies at the ends for which it does not hold stay
// outside of the loop.
#include "weft/roll.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ops/def/dense.h"
#include "passes/machine.h"
#include "passes/pass_list.h"
#include "passes/repeats.h"
#include "weft/build.h"
#include "weft/held.h"
#include "weft/op_def.h"
#include "weft/rebuild.h"

namespace weft {
namespace {

// How many copies back a carry may reach, and how many periods one iteration may have at least.
constexpr uint32_t kMaxDistance = 4, kMaxPeriods = 3;
constexpr uint32_t kNoLoop = 0xffffffffu;

bool is_slice(const Op& op) { return op.info == &op_named<"slice">(); }
// Whether an op gives the elements of its operand as they follow each other.
bool is_reshape(const Op& op) {
  return op.info == &op_named<"reshape">() || op.info == &op_named<"squeeze">();
}

// Which result of which op of its loop a value is, and in which copy.
struct Place {
  uint32_t loop, entry, result, copy;
};

// A slice of an array, up to its shape.
struct Part {
  Value of;
  Dims start, sizes;
};

// An input of a loop's body.
struct Input {
  enum Kind { kConst, kCarry, kSlices, kResults, kEach };
  Kind kind = kEach;
  uint32_t distance = 0;           // of a carry
  uint32_t entry = 0, result = 0;  // that is carried, or of the other loop
  uint32_t loop = kNoLoop;
  size_t axis = 0;              // of slices
  int64_t first = 0, step = 0;  // where they start, or copies of the other loop
  bool is_stacked() const { return kind != kConst && kind != kCarry; }
};

// Copies [begin, end) of those of a run.
struct Range {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

struct Loop {
  Piece piece;
  uint32_t begin = 0, end = 0, length = 0;  // of its ops, and of those in an iteration
  std::vector<Input> inputs;
  uint32_t unroll = 1;
  bool reverse = false;
  // What is read of its results: all, or those of the last iteration. By entry and result, and then
  // where they are among the results of the scan.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> stacked, last;
  Values results = {};

  uint32_t num_copies() const { return static_cast<uint32_t>(piece.num_copies()); }
  // Where a copy is in what is stacked.
  int64_t index(int64_t copy) const { return reverse ? num_copies() - 1 - copy : copy; }
};

class Roller {
 public:
  Roller(const GraphRef& program, const RollOptions& options)
      : options_(options),
        repeats_(program, Repeats::Literals::kMayDiffer,
                 [](const Op& op) { return is_slice(op) || is_reshape(op); }),
        graph_(repeats_.graph()),
        loop_of_(repeats_.num_ops(), kNoLoop),
        map_(graph_, b_) {}

  std::shared_ptr<const Rolled> run();

 private:
  // ---- Which loops
  void plan(Run run);
  std::optional<Loop> plan(const Run& run, uint32_t length);
  bool describe(Loop& loop);
  std::optional<Input> describe(const Loop& loop, const std::vector<uint32_t>& values,
                                Range& range) const;
  bool is_ready(const Loop& loop) const;
  bool set_unroll(Loop& loop) const;
  uint32_t kernels(const Loop& loop) const;  // of an iteration, at least
  double seconds(const Loop& loop) const;    // without the loop itself
  // Of single values that become one array.
  int64_t bytes_put_together(const Loop& loop) const;

  std::optional<Place> place(uint32_t value) const;
  std::optional<Part> part(uint32_t value) const;
  Input slices(const Part& a, const Part& b, size_t copy) const;
  bool is_slice_at(const Input& input, const Part& first, uint32_t value, size_t copy) const;
  bool is_made_in(const Loop& loop, uint32_t value) const {
    const Op* op = graph_.producer(Value{value});
    return op && repeats_.index_of(*op) >= loop.begin && repeats_.index_of(*op) < loop.end;
  }

  // ---- What is read of them
  void note_reads();
  void note_read(uint32_t value);
  bool fits() const;

  // ---- The new program
  Val val(Value v) { return {&b_, v}; }
  Val read(uint32_t value);
  Val stack(const Loop& loop, const Input& input, const std::vector<uint32_t>& values);
  // Elements first, first + step, ... of the leading axis.
  static Val spread(Val x, int64_t first, int64_t step, int64_t count);
  void emit(Loop& loop);

  const RollOptions& options_;
  const Repeats repeats_;
  const Graph& graph_;
  std::vector<uint32_t> loop_of_;  // per op
  std::vector<Loop> loops_;
  std::vector<bool> is_live_;  // ops outside of loops
  GraphBuilder b_;
  ValueMap map_;
};

std::optional<Place> Roller::place(uint32_t value) const {
  const Op* op = graph_.producer(Value{value});
  if (!op) return std::nullopt;
  uint32_t at = repeats_.index_of(*op), number = loop_of_[at];
  if (number == kNoLoop) return std::nullopt;
  const Loop& loop = loops_[number];
  uint32_t offset = at - loop.begin;
  return Place{number, offset % loop.length, value - op->results_begin, offset / loop.length};
}

std::optional<Part> Roller::part(uint32_t value) const {
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

// From two copies that follow each other, the first of which is `copy`.
Input Roller::slices(const Part& a, const Part& b, size_t copy) const {
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

bool Roller::is_slice_at(const Input& input, const Part& like, uint32_t value, size_t copy) const {
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
std::optional<Input> Roller::describe(const Loop& loop, const std::vector<uint32_t>& values,
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
bool Roller::describe(Loop& loop) {
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
bool Roller::is_ready(const Loop& loop) const {
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

uint32_t Roller::kernels(const Loop& loop) const {
  uint32_t count = 0;
  for (uint32_t i = loop.begin; i < loop.begin + loop.length; ++i) count += !repeats_.can_move(i);
  return count;
}

double Roller::seconds(const Loop& loop) const {
  return repeats_.seconds_of(loop.begin, loop.end) +
         loop.num_copies() * kernels(loop) * machine::kLargeThunk;
}

// How many iterations follow each other in the body, so that the loop itself takes little.
bool Roller::set_unroll(Loop& loop) const {
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

int64_t Roller::bytes_put_together(const Loop& loop) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < loop.inputs.size(); ++i)
    if (loop.inputs[i].kind == Input::kEach)
      bytes += graph_.type(Value{loop.piece.inputs[i][0]})->num_bytes() * loop.num_copies();
  return bytes;
}

std::optional<Loop> Roller::plan(const Run& run, uint32_t length) {
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

void Roller::plan(Run run) {
  std::optional<Loop> best;
  // What alternates looks like a run of half its period.
  for (uint32_t periods = 1; periods <= kMaxPeriods; ++periods) {
    auto found = plan(run, periods * run.period);
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

void Roller::note_read(uint32_t value) {
  auto at = place(value);
  if (!at) {
    if (const Op* op = graph_.producer(Value{value})) is_live_[repeats_.index_of(*op)] = true;
    return;
  }
  Loop& loop = loops_[at->loop];
  auto& kind = at->copy + 1 == loop.num_copies() ? loop.last : loop.stacked;
  kind.try_emplace({at->entry, at->result}, 0);
}

void Roller::note_reads() {
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
bool Roller::fits() const {
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

// ---- The new program

Val Roller::spread(Val x, int64_t first, int64_t step, int64_t count) {
  int64_t last = first + (count - 1) * step, low = std::min(first, last);
  Dims start(x.shape().size(), 0), limit = x.shape(), strides(x.shape().size(), 1);
  start[0] = low;
  limit[0] = std::max(first, last) + 1;
  strides[0] = std::abs(step);
  Val taken =
      strides[0] == 1 && limit[0] - low == x.shape()[0] ? x : slice(x, start, limit, strides);
  return step < 0 ? rev(taken, {0}) : taken;
}

Val Roller::read(uint32_t value) {
  if (Value known = map_(Value{value})) return val(known);
  auto at = place(value);
  const Loop& loop = loops_[at->loop];
  std::pair which{at->entry, at->result};
  auto last = loop.last.find(which);
  Val found;
  if (at->copy + 1 == loop.num_copies() && last != loop.last.end()) {
    found = val(loop.results[last->second]);
  } else {
    Val all = val(loop.results[loop.stacked.at(which)]);
    found = squeeze(spread(all, loop.index(at->copy), 1, 1), {0});
  }
  map_.set(Value{value}, found.value);
  return found;
}

// What a loop reads slice by slice, in the order of its slices.
Val Roller::stack(const Loop& loop, const Input& input, const std::vector<uint32_t>& values) {
  auto count = static_cast<int64_t>(values.size());
  int64_t first = input.first, step = input.step;
  if (loop.reverse) first += (count - 1) * step, step = -step;
  TypeRef type = graph_.type(Value{values[0]});
  Dims shape = type->shape();
  shape.insert(0, count);
  if (input.kind == Input::kResults) {
    const Loop& other = loops_[input.loop];
    Val all = val(other.results[other.stacked.at({input.entry, input.result})]);
    return spread(all, other.index(first), other.reverse ? -step : step, count);
  }
  if (input.kind == Input::kSlices) {
    Part one = *part(values[0]);
    int64_t size = one.sizes[input.axis], last = first + (count - 1) * step;
    Dims limit, strides(one.start.size(), 1);
    one.start[input.axis] = std::min(first, last);
    for (size_t i = 0; i < one.start.size(); ++i) limit.push_back(one.start[i] + one.sizes[i]);
    limit[input.axis] = std::max(first, last) + size;
    if (size == 1) strides[input.axis] = std::abs(step);
    Val all = read(one.of.id);
    if (one.start != Dims(one.start.size(), 0) || limit != all.shape() || strides[input.axis] != 1)
      all = slice(all, one.start, limit, strides);
    // The axis in two, the outer one of which counts slices.
    Dims apart = all.shape();
    apart[input.axis] = size;
    apart.insert(input.axis, count);
    all = move_axis(reshape(all, apart), static_cast<int>(input.axis), 0);
    if (step < 0) all = rev(all, {0});
    return reshape(all, shape);
  }
  std::vector<uint32_t> in_order = values;
  if (loop.reverse) std::reverse(in_order.begin(), in_order.end());
  if (Value{values[0]}.is_literal()) {
    std::vector<Literal> elements;
    for (uint32_t v : in_order) elements.push_back(graph_.literal(Value{v}));
    if (auto constant = make_constant(type->dtype(), elements)) return dense(b_, constant);
  }
  Dims one = shape;
  one[0] = 1;
  Vals each;
  for (uint32_t v : in_order)
    each.push_back(reshape(Value{v}.is_literal() ? val(map_(Value{v})) : read(v), one));
  return concatenate(each, 0);
}

void Roller::emit(Loop& loop) {
  // In the order of a scan's operands; per input of the piece, where it is among the body's.
  Values operands[3], inner[3];
  GraphBuilder body;
  std::vector<Values> queues(loop.inputs.size());
  Values inputs(loop.inputs.size());
  enum { kConsts, kCarries, kXs };
  auto take = [&](int segment, Value operand, TypeRef type) {
    operands[segment].push_back(operand);
    inner[segment].push_back(body.input(type));
    return inner[segment].back();
  };
  for (size_t k = 0; k < loop.inputs.size(); ++k) {
    const Input& input = loop.inputs[k];
    const std::vector<uint32_t>& values = loop.piece.inputs[k];
    TypeRef type = graph_.type(Value{values[0]});
    if (input.kind == Input::kConst && Value{values[0]}.is_literal()) {
      inputs[k] = body.literal(graph_.literal(Value{values[0]}));
    } else if (input.kind == Input::kConst) {
      inputs[k] = take(kConsts, read(values[0]).value, type);
    } else if (input.kind == Input::kCarry) {
      for (uint32_t d = 0; d < input.distance; ++d)
        queues[k].push_back(take(kCarries, read(values[d]).value, type));
      inputs[k] = queues[k][0];
    } else {
      inputs[k] = take(kXs, stack(loop, input, values).value, type);
    }
  }
  std::vector<Values> made = repeats_.build(loop.piece, body, inputs);
  Values next, ys;
  for (size_t k = 0; k < loop.inputs.size(); ++k) {
    const Input& input = loop.inputs[k];
    if (input.kind != Input::kCarry) continue;
    for (uint32_t d = 1; d < input.distance; ++d) next.push_back(queues[k][d]);
    next.push_back(made[input.entry][input.result]);
    auto last = loop.last.find({input.entry, input.result});
    if (last != loop.last.end()) last->second = static_cast<uint32_t>(next.size());
  }
  for (auto& [which, number] : loop.last) {
    if (number-- > 0) continue;
    Value value = made[which.first][which.second];
    take(kCarries, zeros(b_, body.type(value)).value, body.type(value));
    number = static_cast<uint32_t>(next.size());
    next.push_back(value);
  }
  auto num_carry = static_cast<int64_t>(next.size());
  for (auto& [which, number] : loop.stacked) {
    number = static_cast<uint32_t>(next.size() + ys.size());
    ys.push_back(made[which.first][which.second]);
  }
  next.append(ys);
  Values order;
  Vals all;
  for (int segment : {kConsts, kCarries, kXs}) {
    order.append(inner[segment]);
    for (Value v : operands[segment]) all.push_back(val(v));
  }
  GraphRef graph = body.finish_ordered(next, order);
  b_.set_loc(graph_.op(loop.begin).loc);
  for (Val v : scan_over(b_, all, graph,
                         {.length = loop.num_copies(),
                          .num_consts = static_cast<int64_t>(operands[kConsts].size()),
                          .num_carry = num_carry,
                          .reverse = loop.reverse,
                          .unroll = loop.unroll}))
    loop.results.push_back(v.value);
}

std::shared_ptr<const Rolled> Roller::run() {
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
  for (const Run& run : runs) plan(run);
  uint32_t before = 0, after = 0;
  auto rolled = std::make_shared<Rolled>();
  for (const Loop& loop : loops_) {
    auto entries = static_cast<uint32_t>(loop.piece.entries.size());
    uint32_t copies = loop.unroll + loop.num_copies() % loop.unroll;
    rolled->loops.push_back({loop.num_copies(), loop.unroll, loop.end - loop.begin, entries});
    before += loop.end - loop.begin;
    after += entries * copies;
  }
  if (loops_.empty() || before < options_.min_ops || before < after * options_.min_reduction)
    return nullptr;
  note_reads();
  if (!fits()) return nullptr;

  std::vector<Value> inputs = copy_inputs(graph_, b_, map_);
  for (uint32_t i = 0; i < repeats_.num_ops(); ++i) {
    const Op& op = graph_.op(i);
    if (loop_of_[i] != kNoLoop) {
      if (Loop& loop = loops_[loop_of_[i]]; i == loop.begin) emit(loop);
      continue;
    }
    if (!is_live_[i]) continue;
    Values operands;
    for (Value v : graph_.operands(op))
      operands.push_back(v.is_literal() ? map_(v) : read(v.id).value);
    b_.set_loc(op.loc);
    map_.set_results(op, copy_op(graph_, b_, op, operands));
  }
  for (Value v : graph_.outputs())
    if (!v.is_literal()) read(v.id);
  rolled->graph = finish_copy(graph_, b_, map_, inputs);
  return rolled;
}

}  // namespace

std::shared_ptr<const Rolled> roll(const GraphRef& graph, const RollOptions& options) {
  if (graph->effects() != kPure || graph->ops().size() < options.min_ops) return nullptr;
  return Roller(graph, options).run();
}

Pass roll_pass() {
  auto run = [](const GraphRef& graph, const PassOptions&, PassStats&) {
    auto rolled = roll(graph);
    return rolled ? rolled->graph : graph;
  };
  return {"roll", "Makes loops of all that repeats.", run, {}, Phase::kFinal};
}

}  // namespace weft
