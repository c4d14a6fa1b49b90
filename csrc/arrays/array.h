// Array: a concrete array, a PJRT buffer with its type and where it lies.
#pragma once

#include <string>

#include "conversions/placement.h"
#include "conversions/sharding_object.h"
#include "references/core.h"
#include "references/type_slots.h"

namespace weft::py {

struct ArrayObject {
  PyObject_HEAD PyObject* buffer;  // jaxlib's array; None once it was deleted
  TypeRef type;
  size_t* twins;  // how many arrays have this buffer, a number that they share; null: this one only
  PyObject* weakrefs;
  ArrayObject* prev;  // all live arrays, for live_arrays()
  ArrayObject* next;
  ShardingRef sharding;
  SpecEntries entries;  // of the spec of the sharding, as users see it
  bool weak;            // weakly typed: made from a Python scalar
  bool committed;       // put there by name, or computed from such an array
  bool shared;          // a ref or the cache of scalars holds it: not for the caller to donate
  bool deleted;         // donated or deleted; the buffer is gone
  Loc deleted_at;
};

// A buffer that the last run on several CPU devices made, until someone has waited for it.
Ref& unfinished_run();

extern PyTypeObject* array_type;
void init_array(PyObject* module, const TypeSlots& shared);

inline bool is_array(PyObject* o) { return Py_TYPE(o) == array_type; }
// Of an object that is known to be one.
inline ArrayObject* as_array(PyObject* o) { return reinterpret_cast<ArrayObject*>(o); }

// Of anything that Python passed to a function; raises OperandError.
ArrayObject* array_argument(PyObject* o, const char* function);

// Transfers that the thread makes while this lives are those that the user asked for by name.
class ExplicitTransfers {
 public:
  ExplicitTransfers();
  ~ExplicitTransfers();
  ExplicitTransfers(const ExplicitTransfers&) = delete;

 private:
  bool outer_;
};
// Logs or raises TransferGuardError for a transfer of such an array, as the user's setting says.
void guard_transfer(const Setting& guard, TypeRef type);

// Takes over the reference to `buffer`.
PyObject* make_array(PyObject* buffer, TypeRef type, bool weak, ShardingRef sharding,
                     bool committed);
// Copies host data (a NumPy array or scalar of the type's dtype and shape) to devices. The type has
// to fit the sharding.
PyObject* put(PyObject* host, TypeRef type, bool weak, ShardingRef sharding, bool committed);
// Where other processes share the devices, raises unless all of them give the same NumPy array.
void check_same(PyObject* host, ShardingRef sharding);
// A literal as a NumPy scalar of its dtype.
Ref numpy_scalar(const Literal& x);
// A 0-d array that holds a literal: from a cache per (literal, sharding), or one of its own. Only
// the latter may reach a user or be donated, since deleting it must not delete it for others.
Ref cached_scalar(const Literal& x, ShardingRef sharding);
Ref fresh_scalar(const Literal& x, ShardingRef sharding, bool weak);
// Where debug_nans or debug_infs is on: raises for an array that no program gave, if it holds such
// a value. `what` says how it came about.
void look_at_made(const Ref& array, const char* what);
// A copy where it is; of another type, if one is given, whose buffers are the same.
Ref copy_buffer(ArrayObject* a, bool weak, bool committed, TypeRef type = nullptr);
// A copy elsewhere, with values that are on the host in between where devices cannot exchange them.
Ref copy_to(ArrayObject* a, ShardingRef sharding, bool weak, bool committed);
// The type of the buffer: random keys are kept as their words.
TypeRef buffer_type(TypeRef type);
// What jaxlib returned where it runs a program or waits for one. Raises, in place of its own error,
// that of the function on the host in which the program failed.
Ref of_run(PyObject* result);
// Raises NotAddressableError if this process does not have all of the value.
void check_readable(ArrayObject* a);
// The value as a read-only NumPy array; waits for it.
Ref to_numpy(ArrayObject* a);
// That of the buffer: the words of random keys, bools that are all false for float0.
Ref stored_value(ArrayObject* a);
// Raises DeletedArrayError if the array is gone; `what` says which array it is.
void check_live(ArrayObject* a, std::string_view what = "a live array");
// Another array with the same buffer. Each is deleted by itself; before one is donated its buffer
// has to be copied, as long as `has_twin`.
Ref twin_of(ArrayObject* a, TypeRef type, bool weak, bool committed);
inline bool has_twin(const ArrayObject* a) { return a->twins && *a->twins > 1; }
// The buffer is gone as of the user's current line.
void mark_deleted(ArrayObject* a);
// The same, of a buffer that others may go on to use.
void give_up(ArrayObject* a);

// A list of the arrays whose buffers are held; a new reference.
PyObject* live_arrays();

// jaxlib's handler that wraps results of a type; from a cache.
Ref result_handler(TypeRef type, ShardingRef sharding);

}  // namespace weft::py
