// pack: superword-level parallelism (Larsen and Amarasinghe, "Exploiting superword level
// parallelism with multimedia instruction sets", PLDI 2000) for what loops carry. A loop over 60
// scalars has 60 times the operations of a loop over an array of 60 numbers: each has to be
// compiled, and outside of kernels each is called.
//
// A pack is a list of values that one operation on arrays can make. The values are its lanes.
// Carries are lanes of one pack if an iteration does the same to each. The next values of these
// carries are a pack, too. The pass goes on from a pack to the operands of its lanes, while the
// lanes are results of ops of one kind.
#include "weft/pack.h"

#include <unordered_map>

#include "ops/def/axes.h"
#include "ops/def/dense.h"
#include "ops/def/walk.h"
#include "passes/pack_plan.h"
#include "passes/pass_list.h"
#include "weft/build.h"
#include "weft/rebuild.h"
#include "weft/transforms.h"

namespace weft {
namespace packing {
namespace {

// ---- Arrays of lanes, and lanes of arrays

Val part_of(Val array, int axis, int64_t first, int64_t size) {
  Dims start(static_cast<size_t>(array.rank()), 0), limit = array.shape();
  if (first == 0 && size == limit[axis]) return array;
  start[axis] = first;
  limit[axis] = first + size;
  return slice(array, start, limit);
}
Val lane_of(Val array, int axis, uint32_t lane) {
  return squeeze(part_of(array, axis, lane, 1), Dims{axis});
}
Val along(Val lane, int axis) { return reshape(lane, inserted(lane.shape(), axis, 1)); }

// An array of literals alone; none if its dtype has no dense constants.
std::optional<Val> constant_of(Builder& b, const Vals& lanes) {
  std::vector<Literal> literals;
  for (const Val& x : lanes)
    if (const Literal* literal = b.as_literal(x.value)) literals.push_back(*literal);
  if (literals.size() != lanes.size()) return std::nullopt;
  if (std::ranges::all_of(literals, [&](const Literal& x) { return x == literals[0]; }))
    return broadcast_to(lanes[0], Dims{static_cast<int64_t>(lanes.size())});
  auto constant = make_constant(lanes[0].dtype(), literals);
  return constant ? std::optional(dense(b, constant)) : std::nullopt;
}

Val array_of(Builder& b, const Vals& lanes, int axis) {
  if (auto constant = constant_of(b, lanes)) return *constant;
  Vals parts;
  for (const Val& x : lanes) parts.push_back(along(x, axis));
  return concatenate(parts, axis);
}

// The lanes that the parts say: array(n) is the array of that number, lane(v) a value.
template <typename ArrayOf, typename LaneOf>
Val assembled(const std::vector<Part>& parts, int axis, ArrayOf&& array, LaneOf&& lane) {
  Vals made;
  for (const Part& part : parts)
    made.push_back(part.array == kNone ? along(lane(part.lane), axis)
                                       : part_of(array(part.array), axis, part.first, part.size));
  return concatenate(made, axis);
}

// ---- The new body

// The body with arrays; what it takes and gives outside is in the order of the loop's segments.
struct NewBody {
  GraphRef body;
  // Numbers among the old operands: of single ones, or of lanes of an array.
  std::vector<Numbers> consts, carry, xs;
  std::vector<Numbers> results;  // the same among the old results
};
class BodyWriter {
 public:
  explicit BodyWriter(const Plan& plan)
      : plan_(plan), body_(*plan.loop().body), map_(body_, b_), arrays_(plan.packs().size()) {}

  NewBody write();

 private:
  Val made(Value v);
  void write(const Pack& p, uint32_t number);

  const Plan& plan_;
  const Graph& body_;
  GraphBuilder b_;
  ValueMap map_;
  std::vector<Val> arrays_;  // per pack
};

Val BodyWriter::made(Value v) {
  auto [p, lane] = plan_.place(v);
  if (p != kNone && map_(v).is_none()) map_.set(v, lane_of(arrays_[p], 0, lane).value);
  return {&b_, map_(v)};
}

void BodyWriter::write(const Pack& p, uint32_t number) {
  const std::vector<Pack>& packs = plan_.packs();
  if (p.kind == Pack::kShared) arrays_[number] = made(p.lanes[0]);
  if (p.kind == Pack::kLiterals) {
    Vals lanes;
    for (Value v : p.lanes) lanes.push_back({&b_, map_(v)});
    arrays_[number] = array_of(b_, lanes, 0);
  }
  if (p.kind == Pack::kParts) {
    arrays_[number] = assembled(
        p.parts, 0, [&](uint32_t array) { return arrays_[array]; },
        [&](Value v) { return made(v); });
  }
  if (p.kind != Pack::kOp) return;
  const Op& op = *body_.producer(p.lanes[0]);
  const OpDef& d = def(*op.info);
  b_.set_loc(op.loc);
  Values operands;
  BatchDims dims;
  TypeRefs in_types;
  for (uint32_t operand : p.operands) {
    in_types.push_back(body_.type(packs[operand].lanes[0]));
    operands.push_back(arrays_[operand].value);
    dims.push_back(packs[operand].kind == Pack::kShared ? kNotBatched : 0);
  }
  BatchCtx c{{b_, d, op.attrs, operands, in_types, body_.result_types(op), &transforms()},
             static_cast<int64_t>(p.lanes.size()),
             dims,
             {},
             {}};
  d.batch(c);
  arrays_[number] = move_axis(c.out[0], c.out_dims[0], 0);
}

NewBody BodyWriter::write() {
  NewBody out;
  const LoopSegments& s = plan_.loop();
  const std::vector<Pack>& packs = plan_.packs();
  b_.set_hash_consing(true);
  Numbers inputs_made[3];  // packs, by segment
  for (uint32_t p = 0; p < packs.size(); ++p) {
    const Pack& pack = packs[p];
    if (pack.kind == Pack::kCarry) inputs_made[1].push_back(p);
    if (pack.kind == Pack::kInputs) inputs_made[plan_.is_const(pack.lanes[0]) ? 0 : 2].push_back(p);
  }
  auto add_segment = [&](uint32_t begin, size_t size, const Numbers& made,
                         std::vector<Numbers>& numbers) {
    for (uint32_t i = begin; i < begin + size; ++i) {
      Value v = body_.input(i);
      if (plan_.is_carry(v) ? plan_.place(v).first != kNone : !plan_.is_needed(v)) continue;
      map_.set(v, b_.input(body_.type(v)));
      numbers.push_back({i});
    }
    for (uint32_t p : made) {
      TypeRef type = body_.type(packs[p].lanes[0]);
      Dims shape = type->shape();
      shape.insert(0, static_cast<int64_t>(packs[p].lanes.size()));
      arrays_[p] = {&b_, b_.input(make_type(type->dtype(), shape))};
      numbers.push_back(Plan::numbers_of(packs[p].lanes));
    }
  };
  add_segment(0, s.num_consts, inputs_made[0], out.consts);
  add_segment(plan_.first_carry(), s.num_carry, inputs_made[1], out.carry);
  add_segment(plan_.first_xs(), s.num_xs, inputs_made[2], out.xs);

  for (const Plan::Item& item : plan_.items()) {
    if (item.is_pack) {
      write(packs[item.number], item.number);
      continue;
    }
    const Op& op = body_.op(item.number);
    Values operands;
    for (Value v : body_.operands(op)) operands.push_back(made(v).value);
    b_.set_loc(op.loc);
    map_.set_results(op, copy_op(body_, b_, op, operands));
  }

  Values outputs;
  auto add_array = [&](uint32_t p) {
    Val array = arrays_[p];
    if (packs[p].kind == Pack::kShared) array = array_of(b_, Vals(packs[p].lanes.size(), array), 0);
    outputs.push_back(array.value);
  };
  auto add_single = [&](uint32_t i) {
    outputs.push_back(made(body_.outputs()[i]).value);
    out.results.push_back({i});
  };
  for (const Numbers& numbers : out.carry)
    if (numbers.size() == 1) add_single(numbers[0] - plan_.first_carry());
  for (size_t k = 0; k < plan_.groups().size(); ++k) {
    add_array(plan_.next()[k]);
    out.results.emplace_back();
    for (Value v : plan_.groups()[k]) out.results.back().push_back(v.id - plan_.first_carry());
  }
  auto num_carry = static_cast<uint32_t>(s.num_carry);
  std::vector<bool> is_packed = plan_.packed_outputs();
  for (uint32_t i = num_carry; i < is_packed.size(); ++i)
    if (!is_packed[i]) add_single(i);
  for (const Plan::Output& y : plan_.ys()) {
    add_array(y.pack);
    out.results.emplace_back();
    for (uint32_t i : y.numbers) out.results.back().push_back(num_carry + i);
  }
  out.body = b_.finish(outputs);
  return out;
}

// ---- Programs

class PackRun {
 public:
  explicit PackRun(const PackOptions& options) : options_(options) {}

  GraphRef run(const GraphRef& graph) {
    bool changed = false;
    GraphBuilder b;
    LaneMap lanes;
    GraphRef copy = rebuild(*graph, b, [&](const Op& op, std::span<const Value> operands) {
      AttrsRef attrs = op.attrs;
      if (attrs && takes_graphs(*op.info))
        attrs = map_graphs(attrs, [this](const GraphRef& g) { return regions_(g); });
      changed |= attrs != op.attrs;
      if (def(*op.info).loop.parts) {
        LoopSegments loop(def(*op.info).loop.parts(*attrs));
        auto are_stacked = [&](const Numbers& numbers) {
          return parts_of(picked(operands, numbers), 1, lanes).size() < numbers.size();
        };
        if (Plan plan(loop, options_, are_stacked); plan.find()) {
          changed = true;
          num_saved_ += plan.num_saved();
          return write(b, op, attrs, operands, BodyWriter(plan).write(), lanes);
        }
      }
      return b.add_typed(*op.info, operands, attrs, graph->result_types(op));
    });
    return changed ? copy : graph;
  }
  uint32_t num_saved() const { return num_saved_; }

 private:
  // Where a value of the new program comes from.
  struct Lane {
    Val array;
    int axis;
    uint32_t number;
  };
  using LaneMap = std::unordered_map<uint32_t, Lane>;

  // Results of a loop that were lanes of an array are taken from it.
  static std::vector<Part> parts_of(const Lanes& lanes, int axis, const LaneMap& known) {
    std::vector<Part> parts;
    for (Value v : lanes) {
      auto at = v.is_literal() ? known.end() : known.find(v.id);
      bool is_lane = at != known.end() && at->second.axis == axis;
      add_lane(parts, {.array = is_lane ? at->second.array.value.id : kNone,
                       .first = is_lane ? at->second.number : 0,
                       .lane = v});
    }
    return parts;
  }
  static Val array_of_operands(Builder& b, const Lanes& lanes, int axis, const LaneMap& known) {
    std::vector<Part> parts = parts_of(lanes, axis, known);
    if (parts.size() == lanes.size()) return array_of(b, vals_of(b, lanes), axis);
    return assembled(
        parts, axis, [&](uint32_t array) { return Val{&b, Value{array}}; },
        [&](Value v) { return Val{&b, v}; });
  }

  static Values write(GraphBuilder& b, const Op& op, const AttrsRef& attrs,
                      std::span<const Value> operands, const NewBody& made, LaneMap& known) {
    b.set_loc(op.loc);
    Values taken;
    auto take = [&](const std::vector<Numbers>& lists, int axis) {
      for (const Numbers& numbers : lists) {
        Lanes lanes = picked(operands, numbers);
        taken.push_back(lanes.size() == 1 ? lanes[0]
                                          : array_of_operands(b, lanes, axis, known).value);
      }
    };
    take(made.consts, 0);
    take(made.carry, 0);
    take(made.xs, 1);
    AttrsRef with =
        def(*op.info).loop.with(attrs, {made.body, made.consts.size(), made.carry.size()});
    Values results = b.add(*op.info, taken, with);
    Values out(op.num_results);
    for (size_t k = 0; k < made.results.size(); ++k) {
      const Numbers& numbers = made.results[k];
      if (numbers.size() == 1) {
        out[numbers[0]] = results[k];
        continue;
      }
      int axis = k < made.carry.size() ? 0 : 1;
      Val array{&b, results[k]};
      for (uint32_t i = 0; i < numbers.size(); ++i) {
        Val x = lane_of(array, axis, i);
        known[x.value.id] = {array, axis, i};
        out[numbers[i]] = x.value;
      }
    }
    return out;
  }

  const PackOptions& options_;
  GraphMemo regions_{[this](const GraphRef& graph) { return run(graph); }};
  uint32_t num_saved_ = 0;
};

}  // namespace
}  // namespace packing

Packed pack(const GraphRef& graph, const PackOptions& options) {
  if (graph->depth() == 1) return {graph};
  packing::PackRun run(options);
  GraphRef result = run.run(graph);
  return {std::move(result), run.num_saved()};
}

Pass pack_pass() {
  auto run = [](const GraphRef& graph, const PassOptions&, PassStats&) {
    return pack(graph).graph;
  };
  return {
      "pack", "Makes arrays of small values to which loops do the same.", run, {}, Phase::kFinal};
}

}  // namespace weft
