// SPDX-License-Identifier: Apache-2.0
// Graph: a program as flat arrays. Ops stand in one append-only vector in topological order,
// operands in one pool, and a Value is an index; so a graph of a million ops is built, walked and
// freed by loops, never by recursion. Graphs are built by a GraphBuilder and then frozen: a
// GraphRef never changes, and what is derived from it may be cached on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/attr.h"
#include "weft/literal.h"
#include "weft/location.h"
#include "weft/small_vector.h"
#include "weft/type.h"

namespace weft {

struct OpInfo;

// Graphs in graphs in graphs: what walks them recurses once per level, and so there is a limit. All
// walks survive it on a stack of 8 MiB, with sanitizers (tests/core/depth_test.cpp).
inline constexpr uint32_t kMaxGraphDepth = 256;

// An index into a graph's values (inputs first, then op results in order) or, with the top bit
// set, into its literals.
struct Value {
  static constexpr uint32_t kLiteralBit = 0x80000000u;
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t id = kNone;

  bool is_none() const { return id == kNone; }
  explicit operator bool() const { return id != kNone; }
  bool is_literal() const { return (id & kLiteralBit) && id != kNone; }
  uint32_t literal_index() const { return id & ~kLiteralBit; }
  friend bool operator==(Value, Value) = default;
};
using Values = SmallVector<Value, 4>;

struct Op {
  const OpInfo* info;
  AttrsRef attrs;
  uint32_t operands_begin;
  uint32_t num_operands;
  uint32_t results_begin;  // id of the first result; the others follow
  uint32_t num_results;
  Loc loc;
};

class WEFT_API Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Inputs are values 0 .. num_inputs-1; the first num_consts of them are constvars (arrays that a
  // traced function closed over).
  uint32_t num_inputs() const { return num_inputs_; }
  uint32_t num_consts() const { return num_consts_; }
  Value input(uint32_t i) const { return Value{i}; }
  std::span<const TypeRef> input_types() const { return {types_.data(), num_inputs_}; }

  const std::vector<Op>& ops() const { return ops_; }
  const Op& op(uint32_t i) const { return ops_[i]; }
  std::span<const Value> operands(const Op& op) const {
    return {operands_.data() + op.operands_begin, op.num_operands};
  }
  Value operand(const Op& op, uint32_t i) const { return operands_[op.operands_begin + i]; }
  Value result(const Op& op, uint32_t i = 0) const { return Value{op.results_begin + i}; }
  std::span<const TypeRef> result_types(const Op& op) const {
    return {types_.data() + op.results_begin, op.num_results};
  }
  std::span<const Value> outputs() const { return outputs_; }
  std::vector<TypeRef> output_types() const;

  // Inputs and op results; literals are not counted.
  uint32_t num_values() const { return static_cast<uint32_t>(types_.size()); }
  TypeRef type(Value v) const {
    return v.is_literal() ? literal_types_[v.literal_index()] : types_[v.id];
  }
  const Literal& literal(Value v) const { return literals_[v.literal_index()]; }
  uint32_t num_literals() const { return static_cast<uint32_t>(literals_.size()); }
  // The op that made a value; null for inputs and literals.
  const Op* producer(Value v) const {
    if (v.is_literal() || v.id < num_inputs_) return nullptr;
    return &ops_[producers_[v.id - num_inputs_]];
  }

  // Union of the effects of its ops (bits of weft::Effect).
  uint32_t effects() const { return effects_; }
  // Levels of graphs: 1 for one whose ops hold none. At most kMaxGraphDepth.
  uint32_t depth() const { return depth_; }
  // Names of mapped axes that its ops refer to and do not bind, sorted.
  const std::vector<std::string>& axis_names() const { return axis_names_; }

  // Independent of names, locations and cosmetic attributes; of contents alone, so the same in
  // every process. Values of the embedding language without contents do not count. Computed once.
  uint64_t structural_hash() const;

  // Keeps a graph or other value derived from this one: make() runs if there is none with this key.
  // The kMaxCached used last stay (vmap has a key for each size of its axis). Thread-safe; make()
  // may itself use the cache.
  static constexpr size_t kMaxCached = 64;
  template <typename T>
  std::shared_ptr<const T> cached(const std::string& key,
                                  const std::function<std::shared_ptr<const T>()>& make) const {
    return std::static_pointer_cast<const T>(
        cached_any(key, [&]() -> std::shared_ptr<const void> { return make(); }));
  }

 private:
  friend class GraphBuilder;
  std::shared_ptr<const void> cached_any(
      const std::string& key, const std::function<std::shared_ptr<const void>()>& make) const;

  uint32_t num_inputs_ = 0;
  uint32_t num_consts_ = 0;
  uint32_t effects_ = 0;
  uint32_t depth_ = 1;
  std::vector<std::string> axis_names_;
  std::vector<TypeRef> types_;
  std::vector<uint32_t> producers_;
  std::vector<Op> ops_;
  std::vector<Value> operands_;
  std::vector<Literal> literals_;
  std::vector<TypeRef> literal_types_;
  std::vector<Value> outputs_;

  mutable std::atomic<uint64_t> hash_{0};
  mutable std::mutex cache_mutex_;
  mutable std::vector<std::pair<std::string, std::shared_ptr<const void>>> cache_;
};

// Same program up to names and locations.
WEFT_API bool equal(const Graph& a, const Graph& b);
// Checks every invariant (operands before uses, types as inferred, outputs in range), recursively
// through regions. Throws kInternal that names the first op at fault.
WEFT_API void verify(const Graph& graph);
// Whether its text says all of it, in every process: it holds no values of the embedding language
// (arrays, callbacks, derivatives that users wrote), and no op that a user registered.
WEFT_API bool is_portable(const Graph& graph);

}  // namespace weft
