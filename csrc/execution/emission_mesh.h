// Over which mesh the arrays are split of a program that is being emitted: rules of users ask.
#pragma once

#include "weft/emit.h"
#include "weft/sharding.h"

namespace weft::py {

// The mesh of the program that this thread emits. Null: its arrays are not split, or this thread
// emits no program.
MeshRef emission_mesh();

// Sets it, as the options of an emission say, as long as it lives.
class EmissionMesh {
 public:
  explicit EmissionMesh(const EmitOptions& options);
  ~EmissionMesh();
  EmissionMesh(const EmissionMesh&) = delete;

 private:
  MeshRef earlier_;
};

}  // namespace weft::py
