// Mesh and Sharding for Python.

#include "conversions/sharding_object.h"

#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "references/bound_text.h"
#include "weft/placements.h"

namespace nb = nanobind;

namespace weft::py {

bool types_tell_places = false;
bool host_memory_is_used = false;

MeshRef& mesh_that_is_set() {
  thread_local MeshRef mesh = nullptr;
  return mesh;
}

namespace {

struct MeshObject {
  MeshRef mesh;
};
struct ShardingObject {
  ShardingRef sharding;
  SpecEntries entries;
};

// What is interned lives as long as the process, and so do the objects made of it.
template <typename Object, typename Interned>
Ref object_of(Interned interned, const Object& made) {
  static auto* objects = new std::unordered_map<Interned, Ref>;
  Ref& object = (*objects)[interned];
  if (!object) object = Ref::steal(nb::cast(made).release().ptr());
  return object;
}

nb::tuple to_names(MeshRef mesh, const Dims& axes) {
  nb::list names;
  for (int64_t axis : axes) names.append(mesh->axis(axis).name);
  return nb::tuple(names);
}

Dims to_axes(MeshRef mesh, nb::handle names) {
  Dims axes;
  for (nb::handle name : names) {
    std::string text = nb::cast<std::string>(name);
    axes.push_back(mesh->find(text));
    if (axes.back() < 0)
      raise_error("AttributeValueError", "expected axes of ", shown(mesh), "; got '", text, "'");
  }
  return axes;
}

nb::object new_mesh(const std::vector<std::string>& names, const std::vector<int64_t>& sizes,
                    const std::vector<int>& types, std::vector<int32_t> devices) {
  if (names.size() != sizes.size() || names.size() != types.size())
    raise_error("AttributeValueError", "expected a name, a size and a type per axis; got ",
                names.size(), ", ", sizes.size(), " and ", types.size());
  std::vector<MeshAxis> axes;
  for (size_t i = 0; i < names.size(); ++i)
    axes.push_back({names[i], sizes[i], static_cast<AxisType>(types[i])});
  for (const MeshAxis& axis : axes) types_tell_places |= axis.type == AxisType::kExplicit;
  return take(mesh_object(make_mesh(std::move(axes), std::move(devices))));
}

// `dims`: per dimension (names of axes, whether it is open).
nb::object new_sharding(const MeshObject& mesh, nb::handle dims, nb::handle unreduced,
                        std::string memory, nb::handle reduced) {
  if (memory == kHostMemory) types_tell_places = host_memory_is_used = true;
  ShardingParts parts{.mesh = mesh.mesh, .memory = std::move(memory)};
  for (nb::handle dim : dims)
    parts.dims.push_back({to_axes(mesh.mesh, dim[0]), nb::cast<bool>(dim[1])});
  parts.unreduced = to_axes(mesh.mesh, unreduced);
  parts.reduced = to_axes(mesh.mesh, reduced);
  bool has_spec = !mesh.mesh->axes().empty() && parts.dims.size() < kAsNeeded;
  SpecEntries entries = has_spec ? static_cast<SpecEntries>(parts.dims.size()) : kAsNeeded;
  return take(sharding_object(make_sharding(std::move(parts)), entries));
}

}  // namespace

Ref mesh_object(MeshRef mesh) { return object_of(mesh, MeshObject{mesh}); }
Ref sharding_object(ShardingRef sharding, SpecEntries entries) {
  uint64_t key = uint64_t{sharding->number()} << 8 | entries;
  return object_of(key, ShardingObject{sharding, entries});
}

MeshRef mesh_of(PyObject* o) {
  MeshObject* object = nullptr;
  return nb::try_cast(nb::handle(o), object) && object ? object->mesh : nullptr;
}
ShardingRef sharding_of(PyObject* o) {
  ShardingObject* object = nullptr;
  return nb::try_cast(nb::handle(o), object) && object ? object->sharding : nullptr;
}

SpecEntries entries_of(PyObject* o) {
  ShardingObject* object = nullptr;
  return nb::try_cast(nb::handle(o), object) && object ? object->entries : kAsNeeded;
}

void bind_shardings(nb::module_& m) {
  nb::class_<MeshObject>(m, "Mesh", "A grid of devices with named axes; equal ones are the same.")
      .def_prop_ro("names",
                   [](const MeshObject& m) {
                     nb::list names;
                     for (const MeshAxis& axis : m.mesh->axes()) names.append(axis.name);
                     return nb::tuple(names);
                   })
      .def_prop_ro("sizes",
                   [](const MeshObject& m) {
                     Dims sizes;
                     for (const MeshAxis& axis : m.mesh->axes()) sizes.push_back(axis.size);
                     return take(to_tuple(sizes));
                   })
      .def_prop_ro("types",
                   [](const MeshObject& m) {
                     Dims types;
                     for (const MeshAxis& axis : m.mesh->axes())
                       types.push_back(static_cast<int64_t>(axis.type));
                     return take(to_tuple(types));
                   })
      .def_prop_ro("devices",
                   [](const MeshObject& m) {
                     Dims devices;
                     for (int32_t device : m.mesh->devices()) devices.push_back(device);
                     return take(to_tuple(devices));
                   })
      .def_prop_ro("abstract",
                   [](const MeshObject& m) { return take(mesh_object(m.mesh->abstract())); })
      .def("__repr__", [](const MeshObject& m) { return cat(m.mesh); })
      .def("__str__", [](const MeshObject& m) { return shown(m.mesh); });
  nb::class_<ShardingObject>(m, "Sharding",
                             "Where the parts of an array lie. Equal ones are the same, unless "
                             "they were written with another number of entries.")
      .def("__eq__", [](const ShardingObject& s,
                        nb::handle other) { return sharding_of(other.ptr()) == s.sharding; })
      .def("__hash__", [](const ShardingObject& s) { return s.sharding->number(); })
      .def_prop_ro(
          "entries",
          [](const ShardingObject& s) {
            return s.entries == kAsNeeded ? nb::none() : nb::object(nb::int_(s.entries));
          },
          "How many entries the spec has that a user wrote; None if nobody did.")
      .def_prop_ro(
          "unwritten", [](const ShardingObject& s) { return take(sharding_object(s.sharding)); },
          "The same that nobody wrote.")
      .def_prop_ro("mesh",
                   [](const ShardingObject& s) { return take(mesh_object(s.sharding->mesh())); })
      .def_prop_ro(
          "dims",
          [](const ShardingObject& s) {
            nb::list dims;
            for (const DimSharding& dim : s.sharding->dims())
              dims.append(nb::make_tuple(to_names(s.sharding->mesh(), dim.axes), dim.open));
            return nb::tuple(dims);
          })
      .def_prop_ro("unreduced",
                   [](const ShardingObject& s) {
                     return to_names(s.sharding->mesh(), s.sharding->unreduced());
                   })
      .def_prop_ro("reduced",
                   [](const ShardingObject& s) {
                     return to_names(s.sharding->mesh(), s.sharding->reduced());
                   })
      .def_prop_ro("memory", [](const ShardingObject& s) { return s.sharding->memory(); })
      .def_prop_ro(
          "whole",
          [](const ShardingObject& s) {
            return take(sharding_object(make_sharding({.mesh = s.sharding->mesh()})));
          },
          "All of an array on each device of the mesh.")
      .def_prop_ro("is_replicated",
                   [](const ShardingObject& s) { return s.sharding->is_replicated(); })
      .def("__repr__", [](const ShardingObject& s) { return cat(s.sharding); })
      .def("__str__", [](const ShardingObject& s) { return shown(s.sharding); });
  m.def("forbid_collectives", &forbid_collectives, nb::arg("names"));
  m.def("make_mesh", &new_mesh, nb::arg("names"), nb::arg("sizes"), nb::arg("types"),
        nb::arg("devices"));
  m.def("make_sharding", &new_sharding, nb::arg("mesh"), nb::arg("dims"), nb::arg("unreduced"),
        nb::arg("memory"), nb::arg("reduced") = nb::tuple());
}

}  // namespace weft::py
