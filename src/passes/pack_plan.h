// Which values of a loop's body become arrays, and in which order the new body is written (pack.cpp
// writes it).
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ops/control/loop_layout.h"
#include "weft/hash.h"
#include "weft/op_def.h"
#include "weft/pack.h"

namespace weft::packing {

using Lanes = std::vector<Value>;
using Numbers = std::vector<uint32_t>;
inline constexpr uint32_t kNone = 0xffffffffu;

// What lanes of an array are made of, one after the other: neighbours in another array, or a value.
struct Part {
  uint32_t array = kNone;  // none: `lane`
  uint32_t first = 0, size = 1;
  Value lane = {};
};
void add_lane(std::vector<Part>& parts, const Part& one);
Lanes picked(std::span<const Value> values, const Numbers& which);

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

class Plan {
 public:
  struct Output {
    Numbers numbers;  // among the ys
    uint32_t pack;
  };
  // What stands in the order in which the new body is written.
  struct Item {
    bool is_pack;
    uint32_t number;  // of a pack, or of an op
  };

  // are_stacked: whether operands of the loop, by number, are lanes of one array already.
  Plan(const LoopSegments& loop, const PackOptions& options,
       std::function<bool(const Numbers&)> are_stacked)
      : s_(loop), body_(*loop.body), options_(options), are_stacked_(std::move(are_stacked)) {}

  // Whether a loop with packs is better.
  bool find();
  uint32_t num_saved() const { return num_before_ - num_after_; }

  const LoopSegments& loop() const { return s_; }
  const std::vector<Pack>& packs() const { return packs_; }
  // Carries that become arrays, and the pack of what of each is carried on.
  const std::vector<Lanes>& groups() const { return groups_; }
  const Numbers& next() const { return next_; }
  const std::vector<Output>& ys() const { return ys_; }
  const std::vector<Item>& items() const { return items_; }
  // Whether a value is needed one by one.
  bool is_needed(Value v) const { return is_needed_[v.id]; }
  // The pack and lane where a value is made; kNone if it is made by itself.
  std::pair<uint32_t, uint32_t> place(Value v) const {
    return v.is_literal() ? std::pair(kNone, 0u) : place_[v.id];
  }
  // Of the body's outputs, those that are lanes of arrays.
  std::vector<bool> packed_outputs() const;

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

 private:
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
  void find_colors();
  // By what an iteration makes of it, too.
  uint64_t color_of_carry(uint32_t i) const {
    return hash_combine(colors_[i], color(body_.outputs()[i - first_carry()]));
  }
  // Which of the values are of one color, where enough are.
  std::vector<Numbers> alike_of(const Lanes& values,
                                const std::function<uint64_t(Value)>& color_of) const;
  void start(const std::vector<Lanes>& groups);
  uint32_t add(Pack made);
  uint32_t pack(const Lanes& lanes, int depth);
  uint32_t add_parts(const Lanes& lanes);
  Numbers inverse(const Pack& p) const;
  void add_output(const Numbers& numbers, uint32_t p);
  bool are_of_one_kind(const Lanes& lanes) const;
  uint32_t pack_ops(const Lanes& lanes, int depth);
  bool order();
  bool is_worth_it();
  uint32_t cost(const Pack& p) const;

  struct ByIds {
    bool operator()(const Lanes& a, const Lanes& b) const {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                          [](Value x, Value y) { return x.id < y.id; });
    }
  };

  const LoopSegments& s_;
  const Graph& body_;
  const PackOptions& options_;
  std::function<bool(const Numbers&)> are_stacked_;
  std::vector<uint64_t> colors_;
  std::vector<Lanes> groups_;
  std::vector<Pack> packs_;
  std::map<Lanes, uint32_t, ByIds> known_;
  std::vector<std::pair<uint32_t, uint32_t>> place_;  // per value
  Numbers next_;                                      // per group
  std::vector<Output> ys_;
  std::vector<Item> items_;
  std::vector<bool> is_needed_;  // per value: one by one
  uint32_t num_before_ = 0, num_after_ = 0;
};

}  // namespace weft::packing
