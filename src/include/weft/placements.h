// SPDX-License-Identifier: Apache-2.0
// How the values of a program are split over the axes of type kExplicit of a mesh, and which are in
// the memory of the host: a table beside the program, filled by the rules of its ops
// (OpDef::place). Where no mesh has such axes, the table's has none at all.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/builder.h"
#include "weft/sharding.h"

namespace weft {

// Whether the meshes have axes of the same names and sizes, in order, of whatever types.
WEFT_API bool same_grid(MeshRef a, MeshRef b);
// A sharding as far as the explicit axes of a mesh of the same axes are concerned, on that mesh:
// closed, in the memory of the host if it is there, else in the default one. A mesh without axes
// goes with any. Throws kSharding if the axes are others.
WEFT_API ShardingRef on_explicit_axes(ShardingRef sharding, MeshRef mesh);
// "f32[8@x,16@(y,z)]", "f32<host>[8]", "f32[8]{U:x}"
WEFT_API std::string split_text(TypeRef type, ShardingRef sharding);

// Sets the axes of meshes over which values of programs that this thread traces must stay split, as
// their sums must stay unmade; the names that were set before are returned. An op that a user wrote
// and that would communicate over one throws kSharding.
WEFT_API std::vector<std::string> forbid_collectives(std::vector<std::string> names);

struct PlaceCtx;

class WEFT_API Placements {
 public:
  explicit Placements(MeshRef mesh);
  MeshRef mesh() const { return mesh_; }
  // Of an input, or of a value that was followed. What nothing is known of is not split.
  ShardingRef of(Value v) const;
  void set(Value v, ShardingRef sharding);
  // Moves from a mesh without axes to another one.
  void adopt(MeshRef mesh);
  // Whether any value is split, or in the memory of the host.
  bool any() const { return any_; }
  // Applies the rules to the ops that a builder or graph has got since, as far as those whose
  // results come before `end`. Throws kSharding if `strict` and a rule finds no answer.
  void follow(const GraphBuilder& builder, uint32_t end, bool strict);
  // The same for a whole graph whose inputs are split so.
  static Placements of_graph(const Graph& graph, MeshRef mesh, std::span<const ShardingRef> inputs);
  static std::vector<ShardingRef> of_outputs(const Graph& graph, MeshRef mesh,
                                             std::span<const ShardingRef> inputs);

 private:
  bool goes_with_any(const PlaceCtx& c, size_t operand, Value v) const;
  Dims joint_sums(const PlaceCtx& c) const;
  Dims joint_reduced(const PlaceCtx& c, std::span<const Value> operands, const Dims& sums) const;
  std::string joint_memory(const PlaceCtx& c, std::span<const Value> operands) const;
  template <typename Ops>
  void apply(const Ops& ops, const Op& op, bool strict);

  MeshRef mesh_;
  ShardingRef whole_;
  std::vector<ShardingRef> of_;  // null: not split
  // Whether a value comes from what goes with any memory alone.
  std::vector<bool> constant_;
  uint32_t next_ = 0;
  bool any_ = false;
};

}  // namespace weft
