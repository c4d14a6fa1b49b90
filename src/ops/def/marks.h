// Which sums are handed on: what the tables of explicit axes and of those of a shard_map share.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "weft/op_def.h"

namespace weft {

// Of an operand the axes, as bits, along which its parts are summands, and along which those of its
// cotangents are.
struct Marks {
  uint64_t unreduced = 0, reduced = 0;
};

// The axes along which the op's results are unreduced; nothing if it cannot be computed of
// summands.
std::optional<uint64_t> sums_of_results(const OpDef& op, std::span<const Marks> operands);
// Throws what says so; `operands` are their types as text.
[[noreturn]] void fail_sums(const OpDef& op, const std::string& operands);
// Throws that one operand is reduced where another is the same, of which nothing is known.
[[noreturn]] void fail_reduced(const OpDef& op, const std::string& operands);

}  // namespace weft
