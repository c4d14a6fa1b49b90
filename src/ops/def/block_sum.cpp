// Blocks that do not overlap are put side by side: one concatenate, in place of an array for each
// or of an update after the other, which XLA makes a kernel each.
#include "ops/def/block_sum.h"

#include <algorithm>
#include <map>

#include "ops/def/addressing.h"
#include "weft/build.h"
#include "weft/dims.h"

namespace weft {
namespace {

// Arrays of so many elements are added as a whole rather than in part.
constexpr int64_t kSmall = 16384;

// The block with zeros around it.
Block padded(const Block& block, const Dims& start, const Dims& limit) {
  std::vector<Dims> config;
  for (size_t i = 0; i < start.size(); ++i)
    config.push_back({dim_sub(block.start[i], start[i]),
                      dim_sub(dim_sub(limit[i], block.start[i]), block.ct.shape()[i]), 0});
  return {start, pad(block.ct, scalar_like(block.ct, 0), config)};
}

int64_t end(const Block& block, size_t axis) {
  return dim_add(block.start[axis], block.ct.shape()[axis]);
}

// Start and shape of a block, in an order.
std::vector<int64_t> place(const Dims& start, const Dims& shape) {
  std::vector<int64_t> key(start.begin(), start.end());
  key.insert(key.end(), shape.begin(), shape.end());
  return key;
}

// Blocks in order along an axis, none of which overlaps the next, as one.
Block side_by_side(std::span<const Block> blocks, size_t axis) {
  if (blocks.size() == 1) return blocks[0];
  Vals parts;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    Dims limit = block.start;
    for (size_t d = 0; d < limit.size(); ++d) limit[d] = end(block, d);
    if (i + 1 < blocks.size()) limit[axis] = blocks[i + 1].start[axis];
    parts.push_back(padded(block, block.start, limit).ct);
  }
  return {blocks[0].start, concatenate(parts, static_cast<int>(axis))};
}

// Joins blocks that lie between the same limits along the other axes: those that touch or, with
// `gaps`, those that do not overlap.
std::vector<Block> joined(std::vector<Block> blocks, size_t axis, bool gaps) {
  std::map<std::vector<int64_t>, std::vector<Block>> rows;
  for (Block& block : blocks) {
    Dims start = block.start, shape = block.ct.shape();
    start[axis] = shape[axis] = 0;
    rows[place(start, shape)].push_back(std::move(block));
  }
  blocks.clear();
  for (auto& [limits, row] : rows) {
    std::stable_sort(row.begin(), row.end(),
                     [&](const Block& x, const Block& y) { return x.start[axis] < y.start[axis]; });
    std::vector<std::vector<Block>> runs;
    for (Block& block : row) {
      auto fits = [&](const std::vector<Block>& run) {
        int64_t gap = block.start[axis] - end(run.back(), axis);
        return gap == 0 || (gaps && gap > 0);
      };
      auto run = std::find_if(runs.begin(), runs.end(), fits);
      if (run == runs.end()) run = runs.emplace(runs.end());
      run->push_back(std::move(block));
    }
    for (const std::vector<Block>& run : runs) blocks.push_back(side_by_side(run, axis));
  }
  return blocks;
}

// The blocks with those of the same place added up.
std::vector<Block> without_repeats(std::vector<Block> blocks) {
  std::map<std::vector<int64_t>, size_t> places;
  std::vector<Block> result;
  for (Block& block : blocks) {
    auto [found, is_new] = places.try_emplace(place(block.start, block.ct.shape()), result.size());
    if (is_new) {
      result.push_back(std::move(block));
    } else {
      Val& sum = result[found->second].ct;
      sum = add_any(sum, block.ct);
    }
  }
  return result;
}

Val with_block(Val sum, const Block& block) {
  const Dims& shape = sum.shape();
  bool symbolic = is_symbolic(sum.type()->num_elements());
  if (symbolic ||
      sum.type()->num_elements() <= std::max(kSmall, 4 * block.ct.type()->num_elements()))
    return add_any(sum, padded(block, Dims(shape.size(), 0), shape).ct);
  Dims limit;
  Vals starts;
  DType dtype = fits(shape, DType::kI32) ? DType::kI32 : DType::kI64;
  for (size_t i = 0; i < shape.size(); ++i) {
    limit.push_back(end(block, i));
    starts.push_back(size_value(*sum.builder, block.start[i], dtype));
  }
  Val before = slice(sum, block.start, limit);
  return dynamic_update_slice(sum, add_any(before, block.ct), starts);
}

}  // namespace

Val with_blocks(Val sum, TypeRef type, std::vector<Block> blocks) {
  blocks = without_repeats(std::move(blocks));
  if (blocks.size() > 1 && !is_symbolic(type->num_elements())) {
    int64_t covered = 0;
    for (const Block& block : blocks) covered += block.ct.type()->num_elements();
    bool gaps = !sum || type->num_elements() <= std::max(kSmall, 4 * covered);
    for (size_t axis = type->shape().size(); axis-- > 0;)
      blocks = joined(std::move(blocks), axis, gaps);
    std::stable_sort(blocks.begin(), blocks.end(), [](const Block& x, const Block& y) {
      return x.ct.type()->num_elements() > y.ct.type()->num_elements();
    });
  }
  for (const Block& block : blocks)
    sum = sum ? with_block(sum, block)
              : padded(block, Dims(type->shape().size(), 0), type->shape()).ct;
  return sum;
}

}  // namespace weft
