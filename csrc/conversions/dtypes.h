// Between NumPy dtypes and weft's.
#pragma once

#include "references/core.h"

namespace weft::py {

// Takes the NumPy dtype objects when they are installed.
void init_dtypes();
// Borrowed.
PyObject* numpy_dtype(DType d);
// The dtype of random keys of this name and size; `dtype`, an object of Python's, stands for it.
DType register_key(std::string_view name, int words, PyObject* dtype);
// The scalar type object (numpy.float32), borrowed.
PyObject* numpy_scalar_type(DType d);
// nullopt for dtypes weft does not have (object, strings, dates).
std::optional<DType> from_numpy_dtype(PyObject* dtype);
// Anything that names a dtype: numpy dtypes and scalar types, Python's bool/int/float/complex,
// strings, objects with a .dtype. Raises DTypeError. Canonicalised to 32 bits unless x64, but for
// numpy dtypes, such as arrays have: arrays that were made with x64 keep theirs without it.
DType to_dtype(PyObject* o);

}  // namespace weft::py
