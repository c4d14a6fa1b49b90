// What repeats in a program: stretches of its ops that are alike, and pieces made of them. Programs
// that a loop in the user's language wrote are periodic, and so are their derivatives, backwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/graph.h"
#include "weft/op_def.h"

namespace weft {

struct Run {
  uint32_t begin, end, period;
  uint32_t length() const { return end - begin; }
};

// Ops [begin, begin + length) for each of `starts`, alike.
struct Repeat {
  std::vector<uint32_t> starts;
  uint32_t length = 0;
};

// Pieces that are alike, as one.
struct Piece {
  // Where an operand of an entry comes from, in every copy.
  struct Source {
    Value literal;                    // if it is one, the same in every copy
    bool is_input = false;            // else: the input of this number,
    uint32_t number = 0, result = 0;  // or the result of the entry of this number
  };
  struct Entry {
    std::vector<uint32_t> ops;  // per copy
    std::vector<Source> operands;
    bool is_made = true;
  };
  std::vector<Entry> entries;  // first the piece's own
  uint32_t num_own = 0;
  std::vector<std::vector<uint32_t>> inputs;  // of each, the value in each copy

  size_t num_copies() const { return entries[0].ops.size(); }
};

// What each op of a graph is, with the types of its operands, but not where these come from: the
// number of the first op that is the same.
struct OpLabels {
  std::vector<uint32_t> kinds;  // where scalar literals may differ
  std::vector<uint32_t> exact;  // where they count
  std::vector<Cost> costs;      // those of one kind have one cost
};

// The order of a graph's ops, which repeats. A run is a stretch in which the label of each op is
// that of the op a period before.
class Repeats {
 public:
  // Whether ops that differ in scalar literals are alike.
  enum class Literals : bool { kCount, kMayDiffer };

  // Ops that depend on no input come in front of the others: of several layers that share what such
  // ops make, the first one has them in its midst, and would be like no other. Ops for which
  // follows_operand holds come behind the one that makes their only operand, or in front.
  Repeats(const GraphRef& program, Literals literals,
          const std::function<bool(const Op&)>& follows_operand);

  // The program in that order.
  const Graph& graph() const { return graph_; }

  // The longest first; of those that cover the same, the one of the shortest period.
  std::vector<Run> runs() const;
  bool same_label(uint32_t a, uint32_t b) const { return labels_[a] == labels_[b]; }
  bool same_labels(uint32_t a, uint32_t b, uint32_t length) const;
  // Whether two stretches of the same labels take their operands from the same places, counted from
  // their starts.
  bool alike(uint32_t a, uint32_t b, uint32_t length) const;
  // Bytes that steps write and read at each of the cuts [begin, end), of what is made within a
  // period before a cut and read within one after it. What is needed later too is only read: it is
  // written wherever the cut is.
  std::vector<int64_t> crossing(uint32_t begin, uint32_t end, uint32_t period) const;
  // The copies of `length` ops, a multiple of the period, from where the fewest bytes cross from
  // one to the next, though it be one copy less; of several such places, from the one whose period
  // stands first in the program. Copies that are not alike stay out. Where the run ends does not
  // matter: what repeats before and after an edit is cut as it was without the edit.
  Repeat cut(const Run& run, uint32_t length) const;

  double seconds_of(uint32_t begin, uint32_t end) const { return seconds_[end] - seconds_[begin]; }
  uint32_t num_ops() const { return num_ops_; }
  uint32_t index_of(const Op& op) const { return static_cast<uint32_t>(&op - graph_.ops().data()); }

  // The ops that read a value, in order.
  std::span<const uint32_t> users(uint32_t value) const {
    return {users_.data() + users_begin_[value], users_.data() + users_begin_[value + 1]};
  }
  const Cost& cost(uint32_t op) const { return known_->costs[order_[op]]; }
  // Whether an op may be made where its result is read: it is part of the kernels there.
  bool can_move(uint32_t op) const;
  int64_t peak() const;  // of the program: peak_of

  Piece piece_of(const Repeat& repeat) const;
  // Makes inputs of a piece anew in place of reading them, where that takes less. What a step
  // leaves behind for others is written, read and kept at every call; within one module XLA makes
  // values where they are read, and those again that are cheap. may_make(op): whether it may be
  // made in the piece; of the copy in the midst. What others read too is not made anew if it is
  // compared with other values, bit by bit.
  void recompute(Piece& piece, const std::function<bool(uint32_t)>& may_make) const;
  // The ops of a piece, which must take `inputs`; per entry its results, none where it is not made.
  std::vector<Values> build(const Piece& piece, Builder& b, const Values& inputs) const;

 private:
  // Where in [begin, end) a value is made, counted from the first result; -1 if it is not.
  int64_t inside(Value v, uint32_t begin, uint32_t end) const;
  void note_compared();
  bool is_exact(uint32_t op) const;
  bool is_one_literal(const std::vector<uint32_t>& ops, uint32_t operand) const;
  std::vector<uint32_t> made_by(const std::vector<uint32_t>& values) const;

  const std::shared_ptr<const OpLabels> known_;  // of the program
  const std::vector<uint32_t> order_;            // of each op, where it is in the program
  const GraphRef ordered_;
  const Graph& graph_;
  const uint32_t num_ops_;
  std::vector<uint32_t> labels_;
  std::vector<uint32_t> last_use_;             // per value; num_ops_ for outputs
  std::vector<uint32_t> users_begin_, users_;  // those of value v from users_begin_[v] on
  std::vector<double> seconds_;                // summed up over the ops before
  // Values whose bits are compared with those of others, as the gradient of a maximum does. Made
  // twice, in kernels that round otherwise, they would not be equal to what comes of them.
  std::vector<bool> is_compared_;
};

// The most bytes of intermediate values that are alive at once in one module, by estimate. XLA
// makes what is cheap, or read by one kernel, within the kernels that read it, which then keep
// alive what that is made of.
int64_t peak_of(const Graph& graph);
// Bytes of a program's inputs and outputs.
int64_t outer_bytes(const Graph& graph);

}  // namespace weft
