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

#include "ops/def/dense.h"
#include "passes/pass_list.h"
#include "passes/roll_plan.h"
#include "weft/build.h"
#include "weft/held.h"
#include "weft/op_def.h"
#include "weft/rebuild.h"

namespace weft {
namespace rolling {
namespace {

// The program with a scan in place of each loop of a plan.
class Writer {
 public:
  explicit Writer(Plan& plan)
      : plan_(plan), graph_(plan.graph()), loops_(plan.loops()), map_(graph_, b_) {}

  GraphRef write();

 private:
  Val val(Value v) { return {&b_, v}; }
  Val read(uint32_t value);
  Val stack(const Loop& loop, const Input& input, const std::vector<uint32_t>& values);
  // Elements first, first + step, ... of the leading axis.
  static Val spread(Val x, int64_t first, int64_t step, int64_t count);
  void emit(Loop& loop);

  const Plan& plan_;
  const Graph& graph_;
  std::vector<Loop>& loops_;
  GraphBuilder b_;
  ValueMap map_;
};

Val Writer::spread(Val x, int64_t first, int64_t step, int64_t count) {
  int64_t last = first + (count - 1) * step, low = std::min(first, last);
  Dims start(x.shape().size(), 0), limit = x.shape(), strides(x.shape().size(), 1);
  start[0] = low;
  limit[0] = std::max(first, last) + 1;
  strides[0] = std::abs(step);
  Val taken =
      strides[0] == 1 && limit[0] - low == x.shape()[0] ? x : slice(x, start, limit, strides);
  return step < 0 ? rev(taken, {0}) : taken;
}

Val Writer::read(uint32_t value) {
  if (Value known = map_(Value{value})) return val(known);
  auto at = plan_.place(value);
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
Val Writer::stack(const Loop& loop, const Input& input, const std::vector<uint32_t>& values) {
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
    Part one = *plan_.part(values[0]);
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

void Writer::emit(Loop& loop) {
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
  std::vector<Values> made = plan_.repeats().build(loop.piece, body, inputs);
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

GraphRef Writer::write() {
  std::vector<Value> inputs = copy_inputs(graph_, b_, map_);
  for (uint32_t i = 0; i < plan_.repeats().num_ops(); ++i) {
    const Op& op = graph_.op(i);
    if (uint32_t number = plan_.loop_of(i); number != kNoLoop) {
      if (Loop& loop = loops_[number]; i == loop.begin) emit(loop);
      continue;
    }
    if (!plan_.is_live(i)) continue;
    Values operands;
    for (Value v : graph_.operands(op))
      operands.push_back(v.is_literal() ? map_(v) : read(v.id).value);
    b_.set_loc(op.loc);
    map_.set_results(op, copy_op(graph_, b_, op, operands));
  }
  for (Value v : graph_.outputs())
    if (!v.is_literal()) read(v.id);
  return finish_copy(graph_, b_, map_, inputs);
}

}  // namespace
}  // namespace rolling

std::shared_ptr<const Rolled> roll(const GraphRef& graph, const RollOptions& options) {
  if (graph->effects() != kPure || graph->ops().size() < options.min_ops) return nullptr;
  rolling::Plan plan(graph, options);
  if (!plan.find()) return nullptr;
  return std::make_shared<Rolled>(Rolled{rolling::Writer(plan).write(), plan.summary()});
}

Pass roll_pass() {
  auto run = [](const GraphRef& graph, const PassOptions&, PassStats&) {
    auto rolled = roll(graph);
    return rolled ? rolled->graph : graph;
  };
  return {"roll", "Makes loops of all that repeats.", run, {}, Phase::kFinal};
}

}  // namespace weft
