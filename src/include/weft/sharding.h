// SPDX-License-Identifier: Apache-2.0
// Where the elements of an array are: meshes and shardings, interned for the life of the process
// like types, so that equal ones are the same pointer and keys compare pointers.
//
// A mesh is a grid of devices whose axes have names and sizes. A sharding says, for each dimension
// of an array, over which axes of a mesh it is split; along the others the array is repeated. An
// array on one device is the trivial instance: a mesh without axes. Devices are numbers that the
// embedding program gives them; a mesh without devices is abstract, and stands in graphs that do
// not care which they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/small_vector.h"
#include "weft/text.h"
#include "weft/type.h"

namespace weft {

// Who decides how values are split over an axis: XLA; the rules of ops, as part of what is known of
// each value; or the program itself, which is written for one part (shard_map).
enum class AxisType : uint8_t { kAuto, kExplicit, kManual };

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  AxisType type = AxisType::kAuto;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

class Mesh;
using MeshRef = const Mesh*;

class Mesh {
 public:
  const std::vector<MeshAxis>& axes() const { return axes_; }
  const MeshAxis& axis(int64_t i) const { return axes_[static_cast<size_t>(i)]; }
  // The number of an axis, -1 if there is none of this name.
  WEFT_API int64_t find(std::string_view name) const;
  bool has(AxisType type) const { return types_ & (1u << static_cast<unsigned>(type)); }
  // Positions in the grid, the product of the sizes.
  int64_t size() const { return size_; }
  // In the order of positions, the last axis fastest; empty if the mesh is abstract.
  std::span<const int32_t> devices() const { return devices_; }
  bool is_abstract() const { return devices_.empty(); }
  // The same axes without devices.
  MeshRef abstract() const { return abstract_ ? abstract_ : this; }
  uint64_t hash() const { return hash_; }

 private:
  friend class MeshTable;
  Mesh() = default;
  std::vector<MeshAxis> axes_;
  std::vector<int32_t> devices_;
  MeshRef abstract_ = nullptr;  // null: it is abstract itself
  int64_t size_ = 1;
  uint64_t hash_ = 0;
  unsigned types_ = 0;
};

// Throws kValue for axes of one name or of no elements, and unless there are no devices or a
// distinct one for each position.
WEFT_API MeshRef make_mesh(std::vector<MeshAxis> axes, std::vector<int32_t> devices = {});
// The mesh without axes on one device.
WEFT_API MeshRef device_mesh(int32_t device);
// The mesh with another type of the axes with these numbers.
WEFT_API MeshRef with_axis_type(MeshRef mesh, std::span<const int64_t> axes, AxisType type);

// Axes of a mesh, by number, over which one dimension is split, the outermost first.
struct DimSharding {
  Dims axes;
  bool open = false;  // XLA may split it further
  friend bool operator==(const DimSharding&, const DimSharding&) = default;
};

// The kind of memory that is part of what is known of each value, as explicit axes are: values in
// it do not meet those in others.
inline constexpr std::string_view kHostMemory = "pinned_host";

struct ShardingParts {
  MeshRef mesh = nullptr;
  std::vector<DimSharding> dims = {};  // of the first dimensions; the others are not split
  Dims unreduced = {};      // axes along which the parts are yet to be added; in any order
  Dims reduced = {};        // axes along which those of cotangents are; in any order
  std::string memory = {};  // kind of memory; "": the default one
};

class Sharding;
using ShardingRef = const Sharding*;

class Sharding {
 public:
  MeshRef mesh() const { return parts_.mesh; }
  // Without closed dimensions that are not split at the end; see dim().
  std::span<const DimSharding> dims() const { return parts_.dims; }
  WEFT_API const DimSharding& dim(size_t i) const;
  const Dims& unreduced() const { return parts_.unreduced; }  // ascending
  const Dims& reduced() const { return parts_.reduced; }      // ascending
  const std::string& memory() const { return parts_.memory; }
  // Whether every device has the whole array.
  bool is_replicated() const { return parts_.dims.empty() && parts_.unreduced.empty(); }
  bool is_open() const { return open_; }  // whether a dimension is
  const ShardingParts& parts() const { return parts_; }
  uint64_t hash() const { return hash_; }
  // A number of its own, counted from 0: embedders keep what they make of shardings in tables.
  uint32_t number() const { return number_; }

 private:
  friend class ShardingTable;
  Sharding() = default;
  ShardingParts parts_;
  uint64_t hash_ = 0;
  uint32_t number_ = 0;
  bool open_ = false;
};

// Throws kValue for an axis that the mesh does not have, or that is used twice.
WEFT_API ShardingRef make_sharding(ShardingParts parts);
WEFT_API ShardingRef device_sharding(int32_t device, std::string memory = {});
// The same, where the parts are yet to be added along these axes.
WEFT_API ShardingRef with_unreduced(ShardingRef sharding, const Dims& axes);
WEFT_API ShardingRef with_reduced(ShardingRef sharding, const Dims& axes);
// That of the cotangents of a value: what is unreduced is reduced, and the other way round.
WEFT_API ShardingRef of_cotangents(ShardingRef sharding);

// In how many blocks dimension i is split.
WEFT_API int64_t num_blocks(ShardingRef sharding, size_t i);

// Whether a dimension is split over the axis.
WEFT_API bool uses_axis(ShardingRef sharding, int64_t axis);
// What stands between an array of this type and the sharding: "" if it can be so split; else what
// was expected and what came, to be part of a message.
WEFT_API std::string misfit(ShardingRef sharding, TypeRef type);
WEFT_API std::string misfit(ShardingRef sharding, const Dims& shape);
// The type of the part that a device holds. The array has to fit.
WEFT_API TypeRef shard_type(ShardingRef sharding, TypeRef type);
// Per dimension of an array of `rank`, the number of the block that a position of the mesh holds.
WEFT_API Dims block_of(ShardingRef sharding, int rank, int64_t position);

// mesh<'x': 2, 'y': explicit 4; 0, 1, 2, 3, 4, 5, 6, 7>; without the numbers of an abstract one.
WEFT_API Text& operator<<(Text& out, MeshRef mesh);
// sharding<['x'], [], ['y', ?]; mesh<...>>, where ? marks an open dimension; before the mesh may
// stand "unreduced ['x']; ", "reduced ['x']; " and "memory 'pinned_host'; ".
WEFT_API Text& operator<<(Text& out, ShardingRef sharding);
// The same as users write them, for messages: Mesh('x': 2, 'y': explicit 4; devices 0 to 7), and
// P('x', None, UNCONSTRAINED) on Mesh(...). No parsing finds these again.
WEFT_API std::string shown(MeshRef mesh);
WEFT_API std::string shown(ShardingRef sharding);

}  // namespace weft
