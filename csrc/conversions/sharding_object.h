// The classes Mesh and Sharding: what the core knows of where arrays lie, as objects of Python. One
// object per mesh, or sharding and number of entries.
#pragma once

#include <nanobind/nanobind.h>

#include "references/core.h"

namespace weft::py {

// Whether any mesh has axes of type kExplicit or any sharding is in the memory of the host: as long
// as there is none, nobody looks for what types say of places.
extern bool types_tell_places;
// Whether any sharding is in that memory, or a program moved a value there.
extern bool host_memory_is_used;

// The mesh that set_mesh set in this thread; null: none.
MeshRef& mesh_that_is_set();

// How many entries the spec has that a user wrote for a sharding. What users see has as many; it
// plays no part in anything else.
using SpecEntries = uint8_t;
inline constexpr SpecEntries kAsNeeded = 255;  // nobody wrote one

Ref mesh_object(MeshRef mesh);
Ref sharding_object(ShardingRef sharding, SpecEntries entries = kAsNeeded);
// Null if the object is none.
MeshRef mesh_of(PyObject* o);
ShardingRef sharding_of(PyObject* o);
SpecEntries entries_of(PyObject* o);

void bind_shardings(nanobind::module_& m);

}  // namespace weft::py
