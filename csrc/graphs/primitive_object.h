// Every op as the Python object `Primitive`.
#pragma once

#include "references/core.h"

namespace weft::py {

// An op as a capsule and back; raises for anything else.
Ref op_capsule(const OpDef& op);
const OpDef& op_of(PyObject* capsule);

// The Primitive of an op, one per op.
Ref primitive_object(const OpDef& op);
// Makes known an op that a user defined; its only attribute is the dict of its parameters.
void add_user_op(const OpDef& op, PyObject* primitive);
bool is_user_op(const OpInfo& op);

}  // namespace weft::py
