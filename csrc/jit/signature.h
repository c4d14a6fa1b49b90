// The signature of a call: what its arguments have in common with those of calls that run the same
// program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jit/layout.h"
#include "references/core.h"
#include "tracing/named_axes.h"

namespace weft::py {

struct JitState;

// Key of the per-function cache.
struct Signature {
  SmallVector<uint64_t, 16> leaves;  // type pointer with the weak bit, and one for cells
  Ref structure;                     // Structure::object; null: positional leaves only
  std::vector<Ref> statics;          // static values, in the order of the structure's keys
  uint64_t settings = 0;             // those that change what is traced
  NamedAxes axes;                    // that the function may refer to
  std::vector<ShardingRef> splits;   // of the leaves over explicit axes; empty: there are none
  // Over which axes of a shard_map the leaves vary; nothing where nobody will ask.
  std::optional<SmallVector<AxisSet, 8>> varying;
  uint64_t hash = 0;

  // May run Python code (static values compare by their own equality).
  bool operator==(const Signature& o) const;
  // Of (args, kwargs) without static arguments; null if there is no structure.
  PyObject* tree() const { return structure ? PyTuple_GET_ITEM(structure.get(), 0) : nullptr; }
  PyObject* static_keys() const { return PyTuple_GET_ITEM(structure.get(), 1); }
};

// A call's arguments, taken apart.
struct Call {
  Arguments args;
  SmallVector<PyObject*, 16> leaves;
  std::vector<Operand> operands;
  std::vector<Ref> owned;     // what keeps `leaves` alive
  std::vector<size_t> cells;  // which leaves are cells; their operands are what they hold
  Signature signature;
};

// Splits the arguments and computes the signature. Raises for arguments that are no data, and for
// static ones without a hash, and for a cell that is passed twice.
Call prepare(const JitState& s, const Arguments& args, bool allow_abstract);
// (args, kwargs) without static arguments, as the user passed them.
Ref dynamic_arguments(const JitState& s, const Arguments& args);

// "~f32[3]": a leaf of a signature.
std::string leaf_text(uint64_t leaf);
bool is_static_position(const JitState& s, int64_t i, int64_t n);
bool contains_name(const std::vector<Ref>& names, PyObject* key);
// "argument x['w'] of f": the argument that a leaf is, or is part of. `tree` may be null.
std::string describe_leaf(const JitState& s, PyObject* tree, size_t i);

}  // namespace weft::py
