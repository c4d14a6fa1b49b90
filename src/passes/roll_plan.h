// Which loops a program is rolled into, and what is read of them (roll.cpp writes them).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "passes/repeats.h"
#include "weft/roll.h"

namespace weft::rolling {

inline constexpr uint32_t kNoLoop = 0xffffffffu;

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

class Plan {
 public:
  Plan(const GraphRef& program, const RollOptions& options);

  // Whether there are loops that are worth it.
  bool find();

  // The program in the order in which it repeats.
  const Graph& graph() const { return graph_; }
  const Repeats& repeats() const { return repeats_; }
  std::vector<Loop>& loops() { return loops_; }
  // The loop that an op is part of, or kNoLoop.
  uint32_t loop_of(uint32_t op) const { return loop_of_[op]; }
  // Whether an op outside of loops is needed.
  bool is_live(uint32_t op) const { return is_live_[op]; }
  // Where a value is made, if it is in a loop.
  std::optional<Place> place(uint32_t value) const;
  // What a value is a slice of, if it is one.
  std::optional<Part> part(uint32_t value) const;
  // What becomes of each loop.
  std::vector<Rolled::Loop> summary() const;

 private:
  // Copies [begin, end) of those of a run.
  struct Range {
    size_t begin, end;
    size_t size() const { return end - begin; }
  };

  void add(Run run);
  std::optional<Loop> loop(const Run& run, uint32_t length);
  bool describe(Loop& loop);
  std::optional<Input> describe(const Loop& loop, const std::vector<uint32_t>& values,
                                Range& range) const;
  bool is_ready(const Loop& loop) const;
  bool set_unroll(Loop& loop) const;
  uint32_t kernels(const Loop& loop) const;  // of an iteration, at least
  double seconds(const Loop& loop) const;    // without the loop itself
  // Of single values that become one array.
  int64_t bytes_put_together(const Loop& loop) const;
  Input slices(const Part& a, const Part& b, size_t copy) const;
  bool is_slice_at(const Input& input, const Part& first, uint32_t value, size_t copy) const;
  bool is_made_in(const Loop& loop, uint32_t value) const;
  bool reduces() const;
  void note_reads();
  void note_read(uint32_t value);
  bool fits() const;

  const RollOptions& options_;
  const Repeats repeats_;
  const Graph& graph_;
  std::vector<uint32_t> loop_of_;  // per op
  std::vector<Loop> loops_;
  std::vector<bool> is_live_;  // ops outside of loops
};

}  // namespace weft::rolling
