// What may stand as an operand: arrays, tracers, NumPy arrays and scalars, Python scalars.
#pragma once

#include "arrays/array.h"
#include "references/core.h"

namespace weft::py {

enum class OperandKind : uint8_t {
  kArray,
  kTracer,
  kNumpy,   // a NumPy array with at least one axis
  kScalar,  // a Python scalar (weak), NumPy scalar or 0-d NumPy array: known value
  kInvalid,
};

struct Operand {
  PyObject* object = nullptr;  // borrowed
  TypeRef type = nullptr;      // canonical dtype
  OperandKind kind = OperandKind::kInvalid;
  bool weak = false;
};

// Of an object that is known to be an array.
inline Operand array_operand(PyObject* o) {
  return {o, as_array(o)->type, OperandKind::kArray, as_array(o)->weak};
}
// Never raises for an object of an unsupported class (kInvalid) unless its dtype is unsupported or
// it is a masked array of NumPy's.
Operand classify(PyObject* o);
// Whether a number or NumPy array is of the dtype that it takes part with: not if that has fewer
// bits.
bool has_own_dtype(const Operand& x);
// classify(), and for a ShapeDtypeStruct an operand that has a type but no value (kInvalid).
Operand classify_abstract(PyObject* o);
// Whether that is a ShapeDtypeStruct which stands for a cell.
bool stands_for_cell(const Operand& x);
// The sharding of what classify_abstract() made of a ShapeDtypeStruct; null if it has none, or one
// over a mesh without devices.
ShardingRef abstract_home(const Operand& x);
// As classify_abstract(), but raises OperandError for what has no type.
Operand classify_type(PyObject* o, std::string_view op);
// As classify(), but raises OperandError for an invalid one: "[op] expected an array ...".
Operand classify_operand(PyObject* o, std::string_view op);
// The array that an object of another library gives as its `__jax_array__`; null if it has none.
Ref foreign_array(PyObject* o);
bool is_foreign_array(PyObject* o);
// Whether it is an array or scalar of NumPy's, of any dtype.
bool is_of_numpy(PyObject* o);
// How to make an array of an object that is none, as the end of a message; empty if there is no
// way.
std::string way_to_array(PyObject* o);
bool is_python_int(const Operand& x);
// Where a Python int lies: -1 below the values of an integer dtype, 1 above them, 0 among them.
int side_of(const Operand& x, DType dtype);
// Raises OverflowError for a Python int that does not fit an integer dtype, or the default one.
void check_python_int(const Operand& x, DType dtype);
void check_python_int(const Operand& x);
// The value of a kScalar operand. A Python int raises OverflowError if it does not fit the dtype;
// with kNarrow, as in JAX's arithmetic, only if it does not fit the default integer dtype either.
enum class Wrapping : uint8_t { kNever, kNarrow };
Literal scalar_value(const Operand& x, DType dtype, Wrapping wrapping = Wrapping::kNarrow);
// The NumPy array of a kNumpy operand, or the scalar of a kScalar, in the dtype of its type.
Ref host_value(const Operand& x);
// Where the user guards transfers: logs or raises TransferGuardError for an operand that the device
// does not have yet.
void guard_transfer(const Operand& x);
// A device array with the operand's value (not for tracers): put() where needed. With `dtype`, a
// scalar of that dtype.
Ref to_device(const Operand& x, ShardingRef sharding, std::optional<DType> dtype = std::nullopt);

}  // namespace weft::py
