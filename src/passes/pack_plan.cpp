// Planning packs: from what is carried to the operands of what makes it.
#include "passes/pack_plan.h"

#include "ops/def/walk.h"

namespace weft::packing {
namespace {

constexpr size_t kMinLanes = 8;
constexpr int64_t kMaxElements = 16;  // of a lane; larger values gain little
constexpr int kMaxDepth = 256;        // of operands of operands that are followed
constexpr int kRounds = 2;            // of telling carries apart; the second by what others become

bool is_small(TypeRef type) {
  return type->num_elements() <= kMaxElements && !is_key(type->dtype());
}

// Whether it is better than its lanes.
bool is_one_operation(const Pack& p) {
  return p.kind != Pack::kParts || p.parts.size() * 4 <= p.lanes.size();
}

}  // namespace

void add_lane(std::vector<Part>& parts, const Part& one) {
  Part* last = parts.empty() ? nullptr : &parts.back();
  if (last && one.array != kNone && last->array == one.array &&
      last->first + last->size == one.first) {
    ++last->size;
  } else {
    parts.push_back(one);
  }
}

Lanes picked(std::span<const Value> values, const Numbers& which) {
  Lanes out;
  for (uint32_t i : which) out.push_back(values[i]);
  return out;
}

bool Plan::find() {
  if (body_.effects() != kPure || s_.num_carry < kMinLanes) return false;
  if (body_.ops().size() < options_.min_saved) return false;
  find_colors();
  std::vector<Lanes> groups;
  Lanes carries;
  for (uint32_t i = first_carry(); i < first_xs(); ++i) carries.push_back(body_.input(i));
  auto of_carry = [&](Value v) { return color_of_carry(v.id); };
  for (const Numbers& alike : alike_of(carries, of_carry)) groups.push_back(picked(carries, alike));
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
  for (const Numbers& alike : alike_of(ys, of_value)) add_output(alike, pack(picked(ys, alike), 0));
  return order() && is_worth_it();
}

// ---- Which values are alike

// Values of one color are made in the same way, as far as operands of operands tell.
void Plan::find_colors() {
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

std::vector<Numbers> Plan::alike_of(const Lanes& values,
                                    const std::function<uint64_t(Value)>& color_of) const {
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

// ---- The packs

void Plan::start(const std::vector<Lanes>& groups) {
  packs_.clear();
  known_.clear();
  place_.assign(body_.num_values(), {kNone, 0});
  next_.clear();
  for (const Lanes& lanes : groups) {
    uint32_t p = add({Pack::kCarry, lanes});
    for (uint32_t i = 0; i < lanes.size(); ++i) place_[lanes[i].id] = {p, i};
  }
}

uint32_t Plan::add(Pack made) {
  auto number = static_cast<uint32_t>(packs_.size());
  known_[made.lanes] = number;
  packs_.push_back(std::move(made));
  return number;
}

uint32_t Plan::add_parts(const Lanes& lanes) {
  Pack made{.kind = Pack::kParts, .lanes = lanes, .reads_parts = true};
  for (Value v : lanes) {
    auto [array, lane] = place(v);
    add_lane(made.parts, {.array = array, .first = lane, .lane = v});
  }
  return add(std::move(made));
}

// Per lane of another pack where it is in this one; empty if it is not at one place for each.
Numbers Plan::inverse(const Pack& p) const {
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
void Plan::add_output(const Numbers& numbers, uint32_t p) {
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

bool Plan::are_of_one_kind(const Lanes& lanes) const {
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

uint32_t Plan::pack(const Lanes& lanes, int depth) {
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

uint32_t Plan::pack_ops(const Lanes& lanes, int depth) {
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

std::vector<bool> Plan::packed_outputs() const {
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
bool Plan::order() {
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
uint32_t Plan::cost(const Pack& p) const {
  if (p.kind == Pack::kOp || p.kind == Pack::kLiterals) return 1;
  if (p.kind == Pack::kParts) return static_cast<uint32_t>(p.parts.size()) + 1;
  if (p.kind == Pack::kInputs && is_xs(p.lanes[0]) && !are_stacked_(numbers_of(p.lanes)))
    return static_cast<uint32_t>(p.lanes.size()) + 1;
  return 0;
}

bool Plan::is_worth_it() {
  num_before_ = static_cast<uint32_t>(body_.ops().size());
  num_after_ = 0;
  for (const Item& item : items_) num_after_ += item.is_pack ? cost(packs_[item.number]) : 1;
  for (uint32_t i = 0; i < body_.num_values(); ++i)
    if (is_needed_[i] && place_[i].first != kNone) num_after_ += 2;
  return num_after_ + options_.min_saved <= num_before_ &&
         num_after_ <= num_before_ * options_.max_left;
}

}  // namespace weft::packing
