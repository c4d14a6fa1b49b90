// What ops over named axes share: names of axes and groups of their lanes, the devices of a mesh as
// lanes, and parts of arrays of lanes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/def/presets.h"
#include "weft/op_def.h"

namespace weft {

using Names = std::vector<std::string>;
using Groups = std::vector<Dims>;

// ---- Names and groups

const Names& names_of(const AttrRecord& attrs);
bool has_groups(const AttrRecord& attrs);
// Whether the mapped axis is one of the op's own.
bool is_own(const BatchCtx& c);
void check_names(const InferCtx& c);
// For ops whose lanes differ, or that have groups.
void check_one_name(const InferCtx& c);
// The sizes of lists within which each number comes once.
void check_groups(const InferCtx& c, bool equal_sizes);
// The groups of an axis of the mapped size: one of all lanes if there are none.
Groups groups_of(const BatchCtx& c);

// An op of one operand over lanes.
OpDef collective(std::string name, std::string doc);

// ---- On a mesh

// What the devices of a mesh, by their numbers in the program, are along the op's axes: groups of
// those that see each other, each in the order of its lanes.
struct MeshLanes {
  MeshRef mesh;
  std::vector<int64_t> partitions;  // by position
  int64_t size = 1;                 // lanes
  std::vector<Dims> groups;

  explicit MeshLanes(EmitCtx& c);
  // With groups of lanes, each group is one.
  std::string replica_groups(const AttrRecord& attrs) const;
  // The number along the op's axes of the device at a position.
  int64_t lane_of(int64_t position, const Dims& own, std::vector<int64_t>* others = nullptr) const;
};

std::string channel(EmitCtx& c);
// A collective of one operand: "stablehlo.all_gather", with attributes of its own.
void emit_collective(EmitCtx& c, std::string_view hlo, std::string_view attributes,
                     std::string_view region = "");
// The region of a reduction of two scalars.
std::string combiner(EmitCtx& c, std::string_view hlo, DType dtype);

// ---- Values

Val int_array(Builder& b, Dims shape, std::span<const int64_t> xs);
// x[table[..., 0], table[..., 1], ...]: parts along the first axes of x, as many as an entry of the
// table has numbers. The result has the table's shape, without its last axis, in front.
Val parts(Val x, const Dims& table_shape, std::span<const int64_t> table);
// The number of the lane along an axis.
Val axis_index(Builder& b, const Names& axis);
// The sum over lanes. `invariant`: it counts as the same along the axes.
Val psum(Val x, const Names& names, bool invariant = false);

}  // namespace weft
