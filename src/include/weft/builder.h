// SPDX-License-Identifier: Apache-2.0
// Builders append ops. Rules and transforms write against the Builder interface, so the same rule
// can extend a graph, feed a simplifying pass, or be split by linearize into two graphs.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "weft/api.h"
#include "weft/graph.h"
#include "weft/op.h"

namespace weft {

class WEFT_API Builder {
 public:
  virtual ~Builder() = default;
  // Infers result types (throwing what inference throws) and appends the op at loc().
  virtual Values add(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs) = 0;
  // As add(), with result types known to be right (copied from another graph): may skip inference.
  virtual Values add_typed(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs,
                           std::span<const TypeRef>) {
    return add(op, operands, attrs);
  }
  // As add(), of an op that computes values again beside what it makes of tangents. A linearization
  // keeps it whole, where it takes other ops of values and tangents apart.
  virtual Values add_whole(const OpInfo& op, std::span<const Value> operands,
                           const AttrsRef& attrs) {
    return add(op, operands, attrs);
  }
  virtual Value literal(const Literal& x) = 0;
  virtual TypeRef type(Value v) const = 0;
  // Null unless v is a literal.
  virtual const Literal* as_literal(Value v) const = 0;
  // The op that made v, as far as this builder knows; null otherwise. Valid until the next add().
  virtual const Op* producer(Value v) const = 0;
  virtual std::span<const Value> operands(const Op& op) const = 0;
  // How often v is used in all, at most: by ops made already and by those still to come. Builders
  // that cannot know say "often".
  virtual uint32_t num_uses(Value) const { return 0xffffffffu; }

  // Inlines a graph: its inputs become `args`, returns its outputs. The ops are copied as they
  // stand (but for hash-consing, where it is on). An argument may be none if the graph does not use
  // that input. Ops without a location get this builder's loc().
  Values inline_graph(const Graph& graph, std::span<const Value> args);

  Loc loc() const { return loc_; }
  void set_loc(Loc loc) { loc_ = loc; }

 protected:
  Loc loc_ = kNoLoc;
};

class WEFT_API GraphBuilder final : public Builder {
 public:
  GraphBuilder();
  ~GraphBuilder() override;

  // Inputs may be added at any time before finish(); see finish() for their order.
  Value input(TypeRef type);
  Values add(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs) override;
  Values add_typed(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs,
                   std::span<const TypeRef> result_types) override;
  Value literal(const Literal& x) override;
  TypeRef type(Value v) const override;
  const Op* producer(Value v) const override;
  const Literal* as_literal(Value v) const override;
  std::span<const Value> operands(const Op& op) const override;
  uint32_t num_ops() const;
  uint32_t num_inputs() const { return static_cast<uint32_t>(inputs_.size()); }

  // With hash-consing on, add() of a pure op equal to an earlier one returns the earlier results.
  // So does one that is equal after exchanging the operands, if it is commutative.
  void set_hash_consing(bool on);

  // A graph without the ops that are not kept, whose results nothing kept uses.
  static GraphRef without_ops(const Graph& graph, const std::vector<bool>& kept);

  // Freezes. `consts` (values made by input()) become the constvars, in that order, followed by
  // the other inputs in the order in which they were made. The builder is empty afterwards.
  GraphRef finish(std::span<const Value> outputs, std::span<const Value> consts = {}) {
    return finish_ordered(outputs, consts, static_cast<uint32_t>(consts.size()));
  }
  // Freezes with the inputs in `first` before the others; the first `num_consts` inputs are
  // constvars.
  GraphRef finish_ordered(std::span<const Value> outputs, std::span<const Value> first,
                          uint32_t num_consts = 0);

 private:
  struct Cons;
  // `key`: of the op, for hash-consing.
  Values append(uint64_t key, const OpInfo& op, std::span<const Value> operands,
                const AttrsRef& attrs, std::span<const TypeRef> result_types);
  bool find_equal(uint64_t key, const OpInfo& op, std::span<const Value> operands,
                  const AttrsRef& attrs, Values* results) const;
  std::shared_ptr<Graph> graph_;
  std::vector<Value> inputs_;
  std::unique_ptr<Cons> cons_;
  std::unordered_map<uint64_t, Value> literals_;
};

}  // namespace weft
