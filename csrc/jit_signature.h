// The signature of a call: what its arguments have in common with those of calls that run the same
// program.
#pragma once

#include <string>
#include <vector>

#include "core.h"
#include "operand.h"

namespace weft::py {

struct JitState;

// Key of the per-function cache.
struct Signature {
  SmallVector<uint64_t, 16> leaves;  // type pointer with the weak bit
  Ref tree;                          // null: positional leaves only
  Ref statics;                       // tuple of static values and names, or null
  bool x64 = false;
  uint64_t hash = 0;

  // May run Python code.
  bool operator==(const Signature& o) const;
};

// Arguments of one call, split into leaves and static values.
struct Call {
  std::vector<Ref> owned;  // what keeps `leaves` alive
  SmallVector<PyObject*, 16> leaves;
  std::vector<Operand> operands;
  Ref dynamic;  // (args, kwargs) without statics; null when leaves are positional
                // or the memo flattened them
  Signature signature;
};

// Splits the arguments and computes the signature. Raises for arguments that are no data, and for
// static ones without a hash.
void prepare(JitState& s, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Call& call,
             bool allow_abstract);
// Makes call.dynamic for arguments that the memo flattened: tracing needs the tree itself.
void unpack(Call& call, PyObject* const* args, Py_ssize_t n);

bool is_static_position(const JitState& s, int64_t i, int64_t n);
bool contains_name(const std::vector<Ref>& names, PyObject* key);
// "argument x['w'] of f": the argument that a leaf is, or is part of.
std::string describe_leaf(const JitState& s, const Ref& in_tree, size_t i);

}  // namespace weft::py
