// The process-wide tables of meshes and shardings, and what follows from a sharding.
#include "weft/sharding.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <numeric>

#include "ir/sharding_text.h"
#include "support/index_table.h"
#include "weft/checked.h"
#include "weft/error.h"
#include "weft/hash.h"

namespace weft {

namespace {

Text& operator<<(Text& out, const MeshAxis& axis) {
  out.quoted(axis.name, '\'') << ": ";
  if (axis.type == AxisType::kExplicit) out << "explicit ";
  if (axis.type == AxisType::kManual) out << "manual ";
  return out << axis.size;
}

std::string text_of(const std::vector<MeshAxis>& axes) {
  Text out;
  for (const MeshAxis& axis : axes) out << (out.size() ? ", " : "") << axis;
  return out.take();
}

void check_axes(const std::vector<MeshAxis>& axes) {
  Checked size = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size < 1) {
      fail(ErrorKind::kValue, "expected a mesh whose axes have sizes of at least 1; got ",
           text_of(axes));
    }
    for (size_t j = 0; j < i; ++j) {
      if (axes[j].name == axes[i].name) {
        fail(ErrorKind::kValue, "expected a mesh whose axes have distinct names; got ",
             text_of(axes));
      }
    }
    size = size * axes[i].size;
  }
  if (!size.within(1, std::numeric_limits<int32_t>::max())) {
    fail(ErrorKind::kValue, "expected a mesh of fewer than 2**31 positions; got ", text_of(axes));
  }
}

void check_devices(const std::vector<MeshAxis>& axes, std::vector<int32_t> devices) {
  int64_t size = 1;
  for (const MeshAxis& axis : axes) size *= axis.size;
  if (static_cast<int64_t>(devices.size()) != size) {
    fail(ErrorKind::kValue, "expected a device for each of the ", size, " positions of a mesh of ",
         text_of(axes), "; got ", devices.size());
  }
  std::sort(devices.begin(), devices.end());
  auto twice = std::adjacent_find(devices.begin(), devices.end());
  if (twice != devices.end()) {
    fail(ErrorKind::kValue, "expected a mesh of distinct devices; got device ", *twice, " twice");
  }
}

uint64_t hash_mesh(const std::vector<MeshAxis>& axes, std::span<const int32_t> devices) {
  uint64_t h = hash_ints(devices);
  for (const MeshAxis& axis : axes) {
    h = hash_combine(h, hash_bytes(axis.name));
    h = hash_combine(h, static_cast<uint64_t>(axis.size) * 4 + static_cast<uint64_t>(axis.type));
  }
  return h;
}

uint64_t hash_sharding(const ShardingParts& parts) {
  uint64_t h = hash_combine(parts.mesh->hash(), hash_bytes(parts.memory));
  h = hash_combine(h, hash_ints(std::span<const int64_t>(parts.unreduced)));
  h = hash_combine(h, hash_ints(std::span<const int64_t>(parts.reduced)));
  for (const DimSharding& dim : parts.dims) {
    h = hash_combine(h, hash_ints(std::span<const int64_t>(dim.axes)) + dim.open);
  }
  return h;
}

bool same(const ShardingParts& a, const ShardingParts& b) {
  return a.mesh == b.mesh && a.dims == b.dims && a.unreduced == b.unreduced &&
         a.reduced == b.reduced && a.memory == b.memory;
}

void print_axes(Text& out, MeshRef mesh, const DimSharding& dim) {
  out << '[';
  const char* between = "";
  for (int64_t axis : dim.axes) {
    out << between;
    out.quoted(mesh->axis(axis).name, '\'');
    between = ", ";
  }
  if (dim.open) out << between << '?';
  out << ']';
}

// Each axis is there and comes once.
void check_parts(const ShardingParts& parts) {
  std::vector<bool> used(parts.mesh->axes().size());
  auto take = [&](int64_t axis) {
    if (axis < 0 || axis >= static_cast<int64_t>(used.size())) {
      fail(ErrorKind::kValue, "expected axes of ", shown(parts.mesh), "; got axis ", axis);
    }
    if (used[static_cast<size_t>(axis)]) {
      fail(ErrorKind::kValue, "expected a sharding that uses each axis of ", shown(parts.mesh),
           " once; got '", parts.mesh->axis(axis).name, "' twice");
    }
    used[static_cast<size_t>(axis)] = true;
  };
  for (const DimSharding& dim : parts.dims) {
    for (int64_t axis : dim.axes) take(axis);
  }
  for (int64_t axis : parts.unreduced) take(axis);
  for (int64_t axis : parts.reduced) take(axis);
}

}  // namespace

class MeshTable {
 public:
  MeshRef intern(std::vector<MeshAxis> axes, std::vector<int32_t> devices) {
    check_axes(axes);
    std::lock_guard lock(mutex_);
    if (devices.empty()) return find_or_add(std::move(axes), {}, nullptr);
    check_devices(axes, devices);
    MeshRef abstract = find_or_add(axes, {}, nullptr);
    return find_or_add(std::move(axes), std::move(devices), abstract);
  }

 private:
  MeshRef find_or_add(std::vector<MeshAxis> axes, std::vector<int32_t> devices, MeshRef abstract) {
    uint64_t hash = hash_mesh(axes, devices);
    uint32_t found = index_.find(hash, [&](uint32_t i) {
      return meshes_[i].axes_ == axes && meshes_[i].devices_ == devices;
    });
    if (found != IndexTable::kAbsent) return &meshes_[found];
    Mesh mesh;
    mesh.abstract_ = abstract;
    mesh.hash_ = hash;
    for (const MeshAxis& axis : axes) {
      mesh.size_ *= axis.size;
      mesh.types_ |= 1u << static_cast<unsigned>(axis.type);
    }
    mesh.axes_ = std::move(axes);
    mesh.devices_ = std::move(devices);
    index_.insert(hash, static_cast<uint32_t>(meshes_.size()));
    meshes_.push_back(std::move(mesh));
    return &meshes_.back();
  }

  std::mutex mutex_;
  std::deque<Mesh> meshes_;
  IndexTable index_;
};

class ShardingTable {
 public:
  ShardingRef intern(ShardingParts parts) {
    uint64_t hash = hash_sharding(parts);
    std::lock_guard lock(mutex_);
    uint32_t found =
        index_.find(hash, [&](uint32_t i) { return same(shardings_[i].parts_, parts); });
    if (found != IndexTable::kAbsent) return &shardings_[found];
    Sharding sharding;
    for (const DimSharding& dim : parts.dims) sharding.open_ |= dim.open;
    sharding.parts_ = std::move(parts);
    sharding.hash_ = hash;
    sharding.number_ = static_cast<uint32_t>(shardings_.size());
    index_.insert(hash, sharding.number_);
    shardings_.push_back(std::move(sharding));
    return &shardings_.back();
  }

 private:
  std::mutex mutex_;
  std::deque<Sharding> shardings_;
  IndexTable index_;
};

int64_t Mesh::find(std::string_view name) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

MeshRef make_mesh(std::vector<MeshAxis> axes, std::vector<int32_t> devices) {
  static MeshTable& table = *new MeshTable;  // never destroyed, like types
  return table.intern(std::move(axes), std::move(devices));
}

MeshRef device_mesh(int32_t device) { return make_mesh({}, {device}); }

MeshRef with_axis_type(MeshRef mesh, std::span<const int64_t> axes, AxisType type) {
  std::vector<MeshAxis> changed = mesh->axes();
  for (int64_t axis : axes) changed[static_cast<size_t>(axis)].type = type;
  return make_mesh(std::move(changed), {mesh->devices().begin(), mesh->devices().end()});
}

const DimSharding& Sharding::dim(size_t i) const {
  static const DimSharding& kWhole = *new DimSharding;
  return i < parts_.dims.size() ? parts_.dims[i] : kWhole;
}

ShardingRef make_sharding(ShardingParts parts) {
  static ShardingTable& table = *new ShardingTable;
  check_parts(parts);
  while (!parts.dims.empty() && parts.dims.back() == DimSharding{}) parts.dims.pop_back();
  std::sort(parts.unreduced.begin(), parts.unreduced.end());
  std::sort(parts.reduced.begin(), parts.reduced.end());
  return table.intern(std::move(parts));
}

ShardingRef with_unreduced(ShardingRef sharding, const Dims& axes) {
  if (sharding->unreduced() == axes) return sharding;
  ShardingParts parts = sharding->parts();
  parts.unreduced = axes;
  return make_sharding(std::move(parts));
}

ShardingRef with_reduced(ShardingRef sharding, const Dims& axes) {
  if (sharding->reduced() == axes) return sharding;
  ShardingParts parts = sharding->parts();
  parts.reduced = axes;
  return make_sharding(std::move(parts));
}

ShardingRef of_cotangents(ShardingRef sharding) {
  if (sharding->unreduced() == sharding->reduced()) return sharding;
  ShardingParts parts = sharding->parts();
  std::swap(parts.unreduced, parts.reduced);
  return make_sharding(std::move(parts));
}

ShardingRef device_sharding(int32_t device, std::string memory) {
  return make_sharding({.mesh = device_mesh(device), .memory = std::move(memory)});
}

int64_t num_blocks(ShardingRef sharding, size_t i) {
  int64_t n = 1;
  for (int64_t axis : sharding->dim(i).axes) n *= sharding->mesh()->axis(axis).size;
  return n;
}

bool uses_axis(ShardingRef sharding, int64_t axis) {
  return std::ranges::any_of(sharding->dims(), [&](const DimSharding& dim) {
    return std::ranges::find(dim.axes, axis) != dim.axes.end();
  });
}

namespace {

template <typename What>
std::string misfit(ShardingRef sharding, const Dims& shape, const What& what) {
  if (sharding->dims().size() > shape.size()) {
    return cat("expected an array of at least ", sharding->dims().size(), " dimensions for ",
               shown(sharding), "; got ", what);
  }
  for (size_t i = 0; i < sharding->dims().size(); ++i) {
    int64_t blocks = num_blocks(sharding, i);
    if (shape[i] % blocks) {
      return cat("expected dimension ", i, " to be divisible by the ", blocks, " parts of ",
                 shown(sharding), "; got ", what);
    }
  }
  return "";
}

}  // namespace

std::string misfit(ShardingRef sharding, TypeRef type) {
  return misfit(sharding, type->shape(), type);
}

std::string misfit(ShardingRef sharding, const Dims& shape) {
  return misfit(sharding, shape, cat("an array of shape ", shape));
}

TypeRef shard_type(ShardingRef sharding, TypeRef type) {
  Dims shape = type->shape();
  for (size_t i = 0; i < sharding->dims().size(); ++i) shape[i] /= num_blocks(sharding, i);
  return with_shape(type, shape);
}

Dims block_of(ShardingRef sharding, int rank, int64_t position) {
  const std::vector<MeshAxis>& axes = sharding->mesh()->axes();
  Dims at(axes.size(), 0);
  for (size_t i = axes.size(); i-- > 0;) {
    at[i] = position % axes[i].size;
    position /= axes[i].size;
  }
  Dims block;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    int64_t number = 0;
    for (int64_t axis : sharding->dim(i).axes) {
      auto a = static_cast<size_t>(axis);
      number = number * axes[a].size + at[a];
    }
    block.push_back(number);
  }
  return block;
}

Text& operator<<(Text& out, MeshRef mesh) {
  if (!mesh) return out << "<no mesh>";
  out << "mesh<" << text_of(mesh->axes());
  const char* between = "; ";
  for (int32_t device : mesh->devices()) {
    out << between << device;
    between = ", ";
  }
  return out << '>';
}

Text& operator<<(Text& out, ShardingRef sharding) {
  if (!sharding) return out << "<no sharding>";
  out << "sharding<";
  for (size_t i = 0; i < sharding->dims().size(); ++i) {
    if (i) out << ", ";
    print_axes(out, sharding->mesh(), sharding->dim(i));
  }
  out << "; ";
  auto marked = [&](const char* how, const Dims& axes) {
    if (axes.empty()) return;
    out << how << ' ';
    print_axes(out, sharding->mesh(), {axes});
    out << "; ";
  };
  marked("unreduced", sharding->unreduced());
  marked("reduced", sharding->reduced());
  if (!sharding->memory().empty()) {
    out << "memory ";
    out.quoted(sharding->memory(), '\'') << "; ";
  }
  return out << sharding->mesh() << '>';
}

std::string shown(MeshRef mesh) {
  if (!mesh) return "no mesh";
  std::span<const int32_t> devices = mesh->devices();
  Text out;
  out << (devices.empty() ? "AbstractMesh(" : "Mesh(") << text_of(mesh->axes());
  if (devices.empty()) return cat(out.take(), ')');
  if (!mesh->axes().empty()) out << "; ";
  bool in_a_row = devices.size() > 2;
  for (size_t i = 1; i < devices.size(); ++i) in_a_row &= devices[i] == devices[i - 1] + 1;
  if (in_a_row) return cat(out.take(), "devices ", devices.front(), " to ", devices.back(), ')');
  const char* between = devices.size() == 1 ? "device " : "devices ";
  for (int32_t device : devices) {
    out << between << device;
    between = ", ";
  }
  return cat(out.take(), ')');
}

std::string shown(ShardingRef sharding) {
  if (!sharding) return "no sharding";
  Text out;
  auto name = [&](int64_t axis) { out.quoted(sharding->mesh()->axis(axis).name, '\''); };
  auto names = [&](const Dims& axes, const char* begin, const char* end) {
    const char* between = begin;
    for (int64_t axis : axes) {
      out << between;
      name(axis);
      between = ", ";
    }
    out << end;
  };
  out << "P(";
  const char* between = "";
  for (const DimSharding& dim : sharding->dims()) {
    out << between;
    between = ", ";
    if (dim.axes.empty())
      out << (dim.open ? "UNCONSTRAINED" : "None");
    else if (dim.axes.size() == 1)
      name(dim.axes[0]);
    else
      names(dim.axes, "(", ")");
  }
  auto marked = [&](const char* how, const Dims& axes) {
    if (axes.empty()) return;
    out << between << how;
    names(axes, "{", "}");
    between = ", ";
  };
  marked("unreduced=", sharding->unreduced());
  marked("reduced=", sharding->reduced());
  bool is_marked = !sharding->unreduced().empty() || !sharding->reduced().empty();
  if (!is_marked && sharding->dims().size() == 1) out << ',';
  out << ')';
  if (!sharding->memory().empty()) out << " in the memory " << sharding->memory();
  return cat(out.take(), " on ", shown(sharding->mesh()));
}

// ---- Reading

namespace {

template <typename T, typename F>
T placed(Scanner& in, size_t begin, F&& make) {
  try {
    return make();
  } catch (const Error& error) { in.fail_at(begin, error.what()); }
}

// A dimension or a set of axes, by name: the mesh comes later.
struct NamedDim {
  std::vector<std::string> axes;
  bool open = false;
};

NamedDim parse_dim(Scanner& in) {
  NamedDim dim;
  in.expect("[", "to begin the axes of a dimension");
  while (!in.accept("]")) {
    if (in.accept("?")) {
      dim.open = true;
      in.expect("]", "after the ?");
      return dim;
    }
    dim.axes.push_back(in.quoted('\''));
    if (in.accept("]")) break;
    in.expect(",", "between axes");
  }
  return dim;
}

Dims numbers(Scanner& in, size_t begin, MeshRef mesh, const std::vector<std::string>& names) {
  Dims out;
  for (const std::string& name : names) {
    out.push_back(mesh->find(name));
    if (out.back() < 0) in.fail_at(begin, cat("expected axes of ", mesh, "; got '", name, "'"));
  }
  return out;
}

}  // namespace

MeshRef parse_mesh(Scanner& in) {
  in.skip_space();
  size_t begin = in.position();
  in.expect("mesh<", "to begin a mesh");
  std::vector<MeshAxis> axes;
  std::vector<int32_t> devices;
  while (in.peek() == '\'') {
    MeshAxis axis{.name = in.quoted('\'')};
    in.expect(":", "and the size of an axis");
    if (in.accept("explicit")) axis.type = AxisType::kExplicit;
    if (in.accept("manual")) axis.type = AxisType::kManual;
    axis.size = in.integer();
    axes.push_back(std::move(axis));
    if (!in.accept(",")) break;
  }
  if (in.accept(";")) {
    do {
      int64_t device = in.integer();
      if (device < 0 || device > std::numeric_limits<int32_t>::max())
        in.fail_at(begin, cat("expected numbers of devices; got ", device));
      devices.push_back(static_cast<int32_t>(device));
    } while (in.accept(","));
  }
  in.expect(">", "to end a mesh");
  return placed<MeshRef>(in, begin, [&] { return make_mesh(axes, devices); });
}

ShardingRef parse_sharding(Scanner& in) {
  in.skip_space();
  size_t begin = in.position();
  in.expect("sharding<", "to begin a sharding");
  std::vector<NamedDim> dims;
  NamedDim unreduced, reduced;
  ShardingParts parts;
  while (!in.accept(";")) {
    dims.push_back(parse_dim(in));
    if (in.accept(";")) break;
    in.expect(",", "between dimensions");
  }
  if (in.accept("unreduced")) {
    unreduced = parse_dim(in);
    in.expect(";", "after the unreduced axes");
  }
  if (in.accept("reduced")) {
    reduced = parse_dim(in);
    in.expect(";", "after the reduced axes");
  }
  if (in.accept("memory")) {
    parts.memory = in.quoted('\'');
    in.expect(";", "after the kind of memory");
  }
  parts.mesh = parse_mesh(in);
  in.expect(">", "to end a sharding");
  for (const NamedDim& dim : dims)
    parts.dims.push_back({numbers(in, begin, parts.mesh, dim.axes), dim.open});
  parts.unreduced = numbers(in, begin, parts.mesh, unreduced.axes);
  parts.reduced = numbers(in, begin, parts.mesh, reduced.axes);
  return placed<ShardingRef>(in, begin, [&] { return make_sharding(parts); });
}

}  // namespace weft
