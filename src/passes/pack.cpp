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

#include <map>
#include <unordered_map>

#include "ops/control/loop_layout.h"
#include "ops/def/axes.h"
#include "ops/def/dense.h"
#include "ops/def/walk.h"
#include "passes/pass_list.h"
#include "weft/build.h"
#include "weft/hash.h"
#include "weft/rebuild.h"
#include "weft/transforms.h"

namespace weft {
namespace {

constexpr size_t kMinLanes = 8;
constexpr int64_t kMaxElements = 16;  // of a lane; larger values gain little
constexpr int kMaxDepth = 256;        // of operands of operands that are followed
constexpr int kRounds = 2;            // of telling carries apart; the second by what others become

using Lanes = std::vector<Value>;
using Numbers = std::vector<uint32_t>;
constexpr uint32_t kNone = 0xffffffffu;
struct ByIds {
  bool operator()(const Lanes& a, const Lanes& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](Value x, Value y) { return x.id < y.id; });
  }
};

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

// What lanes of an array are made of, one after the other: neighbours in another array, or a value.
struct Part {
  uint32_t array = kNone;  // none: `lane`
  uint32_t first = 0, size = 1;
  Value lane = {};
};
void add_lane(std::vector<Part>& parts, const Part& one) {
  Part* last = parts.empty() ? nullptr : &parts.back();
  if (last && one.array != kNone && last->array == one.array &&
      last->first + last->size == one.first) {
    ++last->size;
  } else {
    parts.push_back(one);
  }
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
Lanes picked(std::span<const Value> values, const Numbers& which) {
  Lanes out;
  for (uint32_t i : which) out.push_back(values[i]);
  return out;
}

// ---- The packs of a loop's body

struct Pack {
  enum Kind : uint8_t {
    kCarry,   // what is carried
    kInputs,  // constants of the loop, or slices of xs: their array is made outside
    kShared,  // one value for all lanes
    kLiterals,
    kOp,     // results of ops of one kind
    kParts,  // lanes of other packs, and values that are made one by one
  };
  Kind kind = kParts;
  Lanes lanes = {};
  Numbers operands = {};         // kOp: packs
  std::vector<Part> parts = {};  // kParts: arrays are packs
  bool reads_parts = false;      // it, or an operand of an operand
};

class Body {
 public:
  // are_stacked: whether operands of the loop, by number, are lanes of one array already.
  Body(const LoopSegments& loop, const PackOptions& options,
       std::function<bool(const Numbers&)> are_stacked)
      : s_(loop), body_(*loop.body), options_(options), are_stacked_(std::move(are_stacked)) {}

  // Whether a loop with packs is better.
  bool plan() {
    if (body_.effects() != kPure || s_.num_carry < kMinLanes) return false;
    if (body_.ops().size() < options_.min_saved) return false;
    find_colors();
    std::vector<Lanes> groups;
    Lanes carries;
    for (uint32_t i = first_carry(); i < first_xs(); ++i) carries.push_back(body_.input(i));
    auto of_carry = [&](Value v) { return color_of_carry(v.id); };
    for (const Numbers& alike : alike_of(carries, of_carry))
      groups.push_back(picked(carries, alike));
    for (size_t before = 0; before != groups.size();) {
      before = groups.size();
      start(groups);
      for (const Lanes& lanes : groups) next_.push_back(pack(next_of(lanes), 0));
      std::vector<Lanes> kept;
      for (size_t k = 0; k < groups.size(); ++k)
        if (is_one_operation(packs_[next_[k]])) kept.push_back(std::move(groups[k]));
      groups = std::move(kept);
    }
    if (groups.empty()) return false;
    groups_ = std::move(groups);
    Lanes ys(body_.outputs().begin() + static_cast<std::ptrdiff_t>(s_.num_carry),
             body_.outputs().end());
    auto of_value = [&](Value v) { return color(v); };
    for (const Numbers& alike : alike_of(ys, of_value))
      add_output(alike, pack(picked(ys, alike), 0));
    return order() && is_worth_it();
  }

  uint32_t num_saved() const { return num_before_ - num_after_; }

  // The body with arrays; what it takes and gives outside is in the order of the loop's segments.
  struct Made {
    GraphRef body;
    // Numbers among the old operands: of single ones, or of lanes of an array.
    std::vector<Numbers> consts, carry, xs;
    std::vector<Numbers> results;  // the same among the old results
  };
  Made make();

 private:
  struct Output {
    Numbers numbers;  // among the ys
    uint32_t pack;
  };
  // What stands in the order in which the new body is written.
  struct Item {
    bool is_pack;
    uint32_t number;  // of a pack, or of an op
  };

  uint32_t first_carry() const { return static_cast<uint32_t>(s_.num_consts); }
  uint32_t first_xs() const { return first_carry() + static_cast<uint32_t>(s_.num_carry); }
  bool is_input(Value v) const { return !v.is_literal() && v.id < body_.num_inputs(); }
  bool is_carry(Value v) const { return is_input(v) && v.id >= first_carry() && v.id < first_xs(); }
  bool is_const(Value v) const { return is_input(v) && v.id < first_carry(); }
  bool is_xs(Value v) const { return is_input(v) && v.id >= first_xs(); }
  // Of inputs, among the operands of the loop.
  static Numbers numbers_of(const Lanes& inputs) {
    Numbers out;
    for (Value v : inputs) out.push_back(v.id);
    return out;
  }
  Lanes next_of(const Lanes& carries) const {
    Lanes out;
    for (Value v : carries) out.push_back(body_.outputs()[v.id - first_carry()]);
    return out;
  }

  uint64_t color(Value v) const {
    return v.is_literal() ? hash_pointer(body_.type(v)) : colors_[v.id];
  }
  // Whether the operands of an op in which their order does not matter have falling colors.
  bool is_turned(const Op& op) const {
    return op.num_operands == 2 && op.info->commutative &&
           color(body_.operand(op, 1)) < color(body_.operand(op, 0));
  }
  // Operand i of a lane that is made as the first one is, by an op with operands in either order.
  Value operand(const Op& op, uint32_t i, const Op& first) const {
    return body_.operand(op, is_turned(op) == is_turned(first) ? i : 1 - i);
  }
  // Values of one color are made in the same way, as far as operands of operands tell.
  void find_colors() {
    colors_.resize(body_.num_values());
    for (uint32_t i = 0; i < body_.num_inputs(); ++i)
      colors_[i] = hash_combine(i < first_carry() ? 1
                                : i < first_xs()  ? 2
                                                  : 3,
                                hash_pointer(body_.type(body_.input(i))));
    for (int round = 1;; ++round) {
      for (const Op& op : body_.ops()) {
        uint64_t h = hash_combine(hash_pointer(op.info), hash(op.attrs));
        bool is_turned = this->is_turned(op);
        for (uint32_t i = 0; i < op.num_operands; ++i)
          h = hash_combine(h, color(body_.operand(op, is_turned ? 1 - i : i)));
        for (uint32_t r = 0; r < op.num_results; ++r)
          colors_[op.results_begin + r] = hash_combine(h, r);
      }
      // After the last round colors stay those by which operands were ordered.
      if (round == kRounds) break;
      for (uint32_t i = first_carry(); i < first_xs(); ++i) colors_[i] = color_of_carry(i);
    }
  }
  // By what an iteration makes of it, too.
  uint64_t color_of_carry(uint32_t i) const {
    return hash_combine(colors_[i], color(body_.outputs()[i - first_carry()]));
  }
  bool is_small(TypeRef type) const {
    return type->num_elements() <= kMaxElements && !is_key(type->dtype());
  }
  // Which of the values are of one color, where enough are.
  template <typename ColorOf>
  std::vector<Numbers> alike_of(const Lanes& values, ColorOf&& color_of) const {
    std::vector<Numbers> lists;
    std::map<std::pair<uint64_t, TypeRef>, size_t> known;
    for (uint32_t i = 0; i < values.size(); ++i) {
      Value v = values[i];
      if (v.is_literal() || !is_small(body_.type(v))) continue;
      auto [at, fresh] = known.try_emplace({color_of(v), body_.type(v)}, lists.size());
      if (fresh) lists.emplace_back();
      lists[at->second].push_back(i);
    }
    std::erase_if(lists, [](const Numbers& list) { return list.size() < kMinLanes; });
    return lists;
  }

  void start(const std::vector<Lanes>& groups) {
    packs_.clear();
    known_.clear();
    place_.assign(body_.num_values(), {kNone, 0});
    next_.clear();
    for (const Lanes& lanes : groups) {
      uint32_t p = add({Pack::kCarry, lanes});
      for (uint32_t i = 0; i < lanes.size(); ++i) place_[lanes[i].id] = {p, i};
    }
  }
  uint32_t add(Pack made) {
    auto number = static_cast<uint32_t>(packs_.size());
    known_[made.lanes] = number;
    packs_.push_back(std::move(made));
    return number;
  }

  // Whether it is better than its lanes.
  static bool is_one_operation(const Pack& p) {
    return p.kind != Pack::kParts || p.parts.size() * 4 <= p.lanes.size();
  }

  uint32_t pack(const Lanes& lanes, int depth);
  uint32_t add_parts(const Lanes& lanes);
  Numbers inverse(const Pack& p) const;
  void add_output(const Numbers& numbers, uint32_t p);
  bool are_of_one_kind(const Lanes& lanes) const;
  uint32_t pack_ops(const Lanes& lanes, int depth);

  std::vector<bool> packed_outputs() const;
  bool order();
  bool is_worth_it();
  uint32_t cost(const Pack& p) const;
  Val made(GraphBuilder& b, ValueMap& map, Value v);
  void write(GraphBuilder& b, ValueMap& map, const Pack& p, uint32_t number);

  const LoopSegments& s_;
  const Graph& body_;
  const PackOptions& options_;
  std::function<bool(const Numbers&)> are_stacked_;
  std::vector<uint64_t> colors_;
  std::vector<Lanes> groups_;
  std::vector<Pack> packs_;
  std::map<Lanes, uint32_t, ByIds> known_;
  std::vector<std::pair<uint32_t, uint32_t>>
      place_;                   // per value: the pack and lane where it is made
  std::vector<uint32_t> next_;  // per group: the pack of what is carried on
  std::vector<Output> ys_;
  std::vector<Item> items_;
  std::vector<bool> is_needed_;  // per value: one by one
  std::vector<Val> arrays_;      // per pack
  uint32_t num_before_ = 0, num_after_ = 0;
};

uint32_t Body::add_parts(const Lanes& lanes) {
  Pack made{.kind = Pack::kParts, .lanes = lanes, .reads_parts = true};
  for (Value v : lanes) {
    auto [array, lane] = v.is_literal() ? std::pair(kNone, 0u) : place_[v.id];
    add_lane(made.parts, {.array = array, .first = lane, .lane = v});
  }
  return add(std::move(made));
}

// Per lane of another pack where it is in this one; empty if it is not at one place for each.
Numbers Body::inverse(const Pack& p) const {
  if (p.kind != Pack::kParts || p.parts[0].array == kNone) return {};
  Numbers from(packs_[p.parts[0].array].lanes.size(), kNone);
  if (p.lanes.size() != from.size()) return {};
  uint32_t i = 0;
  for (const Part& part : p.parts) {
    if (part.array != p.parts[0].array) return {};
    for (uint32_t k = part.first; k < part.first + part.size; ++k, ++i) {
      if (from[k] != kNone) return {};
      from[k] = i;
    }
  }
  return from;
}

// The order of an array that the loop returns is free.
void Body::add_output(const Numbers& numbers, uint32_t p) {
  const Pack& pack = packs_[p];
  if (Numbers from = inverse(pack); !from.empty()) {
    Numbers in_order;
    for (uint32_t i : from) in_order.push_back(numbers[i]);
    ys_.push_back({std::move(in_order), pack.parts[0].array});
  } else if (pack.kind == Pack::kCarry || pack.kind == Pack::kOp ||
             (pack.kind == Pack::kParts && is_one_operation(pack))) {
    ys_.push_back({numbers, p});
  }
}

bool Body::are_of_one_kind(const Lanes& lanes) const {
  const Op* first = body_.producer(lanes[0]);
  if (!first) return false;
  const OpDef& d = def(*first->info);
  if (!d.elementwise || !d.batch || !d.in_kernel || first->num_results != 1) return false;
  TypeRefs in_types = operand_types(body_, *first);
  // What gives the same in a kernel gives it in a vector, too.
  if (!d.in_kernel({in_types, body_.result_types(*first), first->attrs.get(), {}})) return false;
  for (Value v : lanes) {
    const Op* op = body_.producer(v);
    if (!op || op->info != first->info || op->num_operands != first->num_operands ||
        !equal(op->attrs, first->attrs) || body_.type(v) != body_.type(lanes[0]))
      return false;
    for (uint32_t i = 0; i < op->num_operands; ++i)
      if (body_.type(operand(*op, i, *first)) != body_.type(body_.operand(*first, i))) return false;
  }
  return is_small(body_.type(lanes[0]));
}

uint32_t Body::pack(const Lanes& lanes, int depth) {
  if (auto at = known_.find(lanes); at != known_.end()) return at->second;
  auto all = [&](auto&& holds) { return std::ranges::all_of(lanes, holds); };
  if (all([&](Value v) { return v == lanes[0]; })) return add({Pack::kShared, lanes});
  if (all([](Value v) { return v.is_literal(); })) return add({Pack::kLiterals, lanes});
  if (all([&](Value v) { return body_.type(v) == body_.type(lanes[0]); }) &&
      is_small(body_.type(lanes[0])) &&
      (all([&](Value v) { return is_const(v); }) || all([&](Value v) { return is_xs(v); })))
    return add({Pack::kInputs, lanes});
  bool are_new = all([&](Value v) { return !v.is_literal() && place_[v.id].first == kNone; });
  if (are_new && depth < kMaxDepth && are_of_one_kind(lanes)) return pack_ops(lanes, depth);
  return add_parts(lanes);
}

uint32_t Body::pack_ops(const Lanes& lanes, int depth) {
  const Op& first = *body_.producer(lanes[0]);
  Pack made{Pack::kOp, lanes};
  uint32_t array = kNone, num_arrays = 0;
  for (uint32_t i = 0; i < first.num_operands; ++i) {
    Lanes operands;
    for (Value v : lanes) operands.push_back(operand(*body_.producer(v), i, first));
    made.operands.push_back(pack(operands, depth + 1));
    if (packs_[made.operands.back()].kind == Pack::kShared) continue;
    array = made.operands.back();
    ++num_arrays;
  }
  // A function of lanes in another order is made in their own order, and then put in the other one:
  // XLA makes no vectors of what reads a concatenation.
  if (num_arrays == 1) {
    if (Numbers from = inverse(packs_[array]); !from.empty()) {
      pack(picked(lanes, from), depth + 1);
      return add_parts(lanes);
    }
  }
  auto reads_parts = [&](uint32_t p) { return packs_[p].reads_parts; };
  made.reads_parts = std::ranges::any_of(made.operands, reads_parts);
  // Where the order of operands is free, XLA's loop over elements is faster if what reads a
  // concatenation comes last.
  if (first.info->commutative && made.operands.size() == 2 && reads_parts(made.operands[0]) &&
      !reads_parts(made.operands[1]))
    std::swap(made.operands[0], made.operands[1]);
  uint32_t number = add(std::move(made));
  for (uint32_t i = 0; i < lanes.size(); ++i) place_[lanes[i].id] = {number, i};
  return number;
}

// Of the body's outputs, those that are lanes of arrays.
std::vector<bool> Body::packed_outputs() const {
  std::vector<bool> is_packed(body_.outputs().size());
  for (const Lanes& lanes : groups_)
    for (Value v : lanes) is_packed[v.id - first_carry()] = true;
  for (const Output& y : ys_)
    for (uint32_t i : y.numbers) is_packed[s_.num_carry + i] = true;
  return is_packed;
}

// ---- The order in which the new body is written

// Finds what is needed one by one, and an order of it and of the packs; there may be none, where
// lanes wait for each other.
bool Body::order() {
  size_t num_packs = packs_.size(), num_ops = body_.ops().size();
  is_needed_.assign(body_.num_values(), false);
  std::vector<bool> has(num_packs + num_ops);
  std::vector<std::vector<uint32_t>> users(num_packs + num_ops);
  std::vector<uint32_t> waits(num_packs + num_ops), found;
  auto op_number = [&](Value v) {
    return static_cast<uint32_t>(num_packs + static_cast<size_t>(body_.producer(v) - &body_.op(0)));
  };
  auto visit = [&](uint32_t node) {
    if (!has[node]) found.push_back(node);
    has[node] = true;
  };
  auto wait = [&](uint32_t node, uint32_t before) {
    users[before].push_back(node);
    ++waits[node];
    visit(before);
  };
  // The node that makes a value, if any does.
  auto node_of = [&](Value v) {
    if (v.is_literal()) return kNone;
    if (place_[v.id].first != kNone) return place_[v.id].first;
    return is_input(v) ? kNone : op_number(v);
  };
  auto need = [&](Value v) {
    if (v.is_literal()) return;
    is_needed_[v.id] = true;
    if (uint32_t node = node_of(v); node != kNone) visit(node);
  };
  for (uint32_t p : next_) visit(p);
  for (const Output& y : ys_) visit(y.pack);
  std::vector<bool> is_packed = packed_outputs();
  for (size_t i = 0; i < is_packed.size(); ++i)
    if (!is_packed[i]) need(body_.outputs()[i]);
  for (size_t next = 0; next < found.size(); ++next) {
    uint32_t node = found[next];
    auto read = [&](Value v) {
      need(v);
      if (uint32_t before = node_of(v); before != kNone) wait(node, before);
    };
    if (node >= num_packs) {
      for (Value v : body_.operands(body_.op(node - static_cast<uint32_t>(num_packs)))) read(v);
      continue;
    }
    const Pack& p = packs_[node];
    for (uint32_t operand : p.operands) wait(node, operand);
    if (p.kind == Pack::kShared) read(p.lanes[0]);
    for (const Part& part : p.parts) {
      if (part.array != kNone)
        wait(node, part.array);
      else
        read(part.lane);
    }
  }
  std::vector<uint32_t> ready;
  for (uint32_t node : found)
    if (waits[node] == 0) ready.push_back(node);
  items_.clear();
  for (size_t next = 0; next < ready.size(); ++next) {
    uint32_t node = ready[next];
    bool is_pack = node < num_packs;
    items_.push_back({is_pack, is_pack ? node : node - static_cast<uint32_t>(num_packs)});
    for (uint32_t user : users[node])
      if (--waits[user] == 0) ready.push_back(user);
  }
  return items_.size() == found.size();
}

// Operations that make a pack. To stack xs takes as long as to do it slice by slice.
uint32_t Body::cost(const Pack& p) const {
  if (p.kind == Pack::kOp || p.kind == Pack::kLiterals) return 1;
  if (p.kind == Pack::kParts) return static_cast<uint32_t>(p.parts.size()) + 1;
  if (p.kind == Pack::kInputs && is_xs(p.lanes[0]) && !are_stacked_(numbers_of(p.lanes)))
    return static_cast<uint32_t>(p.lanes.size()) + 1;
  return 0;
}

bool Body::is_worth_it() {
  num_before_ = static_cast<uint32_t>(body_.ops().size());
  num_after_ = 0;
  for (const Item& item : items_) num_after_ += item.is_pack ? cost(packs_[item.number]) : 1;
  for (uint32_t i = 0; i < body_.num_values(); ++i)
    if (is_needed_[i] && place_[i].first != kNone) num_after_ += 2;
  return num_after_ + options_.min_saved <= num_before_ &&
         num_after_ <= num_before_ * options_.max_left;
}

// ---- The new body

Val Body::made(GraphBuilder& b, ValueMap& map, Value v) {
  if (!v.is_literal() && place_[v.id].first != kNone && map(v).is_none()) {
    auto [p, lane] = place_[v.id];
    map.set(v, lane_of(arrays_[p], 0, lane).value);
  }
  return {&b, map(v)};
}

void Body::write(GraphBuilder& b, ValueMap& map, const Pack& p, uint32_t number) {
  if (p.kind == Pack::kShared) arrays_[number] = made(b, map, p.lanes[0]);
  if (p.kind == Pack::kLiterals) {
    Vals lanes;
    for (Value v : p.lanes) lanes.push_back({&b, map(v)});
    arrays_[number] = array_of(b, lanes, 0);
  }
  if (p.kind == Pack::kParts) {
    arrays_[number] = assembled(
        p.parts, 0, [&](uint32_t array) { return arrays_[array]; },
        [&](Value v) { return made(b, map, v); });
  }
  if (p.kind != Pack::kOp) return;
  const Op& op = *body_.producer(p.lanes[0]);
  const OpDef& d = def(*op.info);
  b.set_loc(op.loc);
  Values operands;
  BatchDims dims;
  TypeRefs in_types;
  for (uint32_t operand : p.operands) {
    in_types.push_back(body_.type(packs_[operand].lanes[0]));
    operands.push_back(arrays_[operand].value);
    dims.push_back(packs_[operand].kind == Pack::kShared ? kNotBatched : 0);
  }
  BatchCtx c{{b, d, op.attrs, operands, in_types, body_.result_types(op), &transforms()},
             static_cast<int64_t>(p.lanes.size()),
             dims,
             {},
             {}};
  d.batch(c);
  arrays_[number] = move_axis(c.out[0], c.out_dims[0], 0);
}

Body::Made Body::make() {
  Made out;
  GraphBuilder b;
  b.set_hash_consing(true);
  ValueMap map(body_, b);
  arrays_.resize(packs_.size());
  Numbers inputs_made[3];  // packs, by segment
  for (uint32_t p = 0; p < packs_.size(); ++p) {
    const Pack& pack = packs_[p];
    if (pack.kind == Pack::kCarry) inputs_made[1].push_back(p);
    if (pack.kind == Pack::kInputs) inputs_made[is_const(pack.lanes[0]) ? 0 : 2].push_back(p);
  }
  auto add_segment = [&](uint32_t begin, size_t size, const Numbers& made,
                         std::vector<Numbers>& numbers) {
    for (uint32_t i = begin; i < begin + size; ++i) {
      Value v = body_.input(i);
      if (is_carry(v) ? place_[i].first != kNone : !is_needed_[i]) continue;
      map.set(v, b.input(body_.type(v)));
      numbers.push_back({i});
    }
    for (uint32_t p : made) {
      TypeRef type = body_.type(packs_[p].lanes[0]);
      Dims shape = type->shape();
      shape.insert(0, static_cast<int64_t>(packs_[p].lanes.size()));
      arrays_[p] = {&b, b.input(make_type(type->dtype(), shape))};
      numbers.push_back(numbers_of(packs_[p].lanes));
    }
  };
  add_segment(0, s_.num_consts, inputs_made[0], out.consts);
  add_segment(first_carry(), s_.num_carry, inputs_made[1], out.carry);
  add_segment(first_xs(), s_.num_xs, inputs_made[2], out.xs);

  for (const Item& item : items_) {
    if (item.is_pack) {
      write(b, map, packs_[item.number], item.number);
      continue;
    }
    const Op& op = body_.op(item.number);
    Values operands;
    for (Value v : body_.operands(op)) operands.push_back(made(b, map, v).value);
    b.set_loc(op.loc);
    map.set_results(op, copy_op(body_, b, op, operands));
  }

  Values outputs;
  auto add_array = [&](uint32_t p) {
    Val array = arrays_[p];
    if (packs_[p].kind == Pack::kShared)
      array = array_of(b, Vals(packs_[p].lanes.size(), array), 0);
    outputs.push_back(array.value);
  };
  auto add_single = [&](uint32_t i) {
    outputs.push_back(made(b, map, body_.outputs()[i]).value);
    out.results.push_back({i});
  };
  for (const Numbers& numbers : out.carry)
    if (numbers.size() == 1) add_single(numbers[0] - first_carry());
  for (size_t k = 0; k < groups_.size(); ++k) {
    add_array(next_[k]);
    out.results.emplace_back();
    for (Value v : groups_[k]) out.results.back().push_back(v.id - first_carry());
  }
  auto num_carry = static_cast<uint32_t>(s_.num_carry);
  std::vector<bool> is_packed = packed_outputs();
  for (uint32_t i = num_carry; i < is_packed.size(); ++i)
    if (!is_packed[i]) add_single(i);
  for (const Output& y : ys_) {
    add_array(y.pack);
    out.results.emplace_back();
    for (uint32_t i : y.numbers) out.results.back().push_back(num_carry + i);
  }
  out.body = b.finish(outputs);
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
        if (Body body(loop, options_, are_stacked); body.plan()) {
          changed = true;
          num_saved_ += body.num_saved();
          return write(b, op, attrs, operands, body.make(), lanes);
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
                      std::span<const Value> operands, const Body::Made& made, LaneMap& known) {
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

Packed pack(const GraphRef& graph, const PackOptions& options) {
  if (graph->depth() == 1) return {graph};
  PackRun run(options);
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
