// dtype objects are looked up by identity first: NumPy hands out one object per native dtype.

#include "conversions/dtypes.h"

#include <unordered_map>

#include "references/hooks.h"

namespace weft::py {
namespace {

PyObject* dtype_objects[kMaxDTypes];
PyObject* scalar_types[kMaxDTypes];
std::unordered_map<PyObject*, DType> by_identity;  // dtypes and scalar types, kept alive above
PyObject* numpy_dtype_class;                       // numpy.dtype

void set_numpy_dtypes(PyObject* dtypes) {
  if (PySequence_Size(dtypes) != kNumDTypes) {
    PyErr_SetString(PyExc_ValueError, "one NumPy dtype per weft dtype expected");
    throw PythonError{};
  }
  Ref numpy = Ref::checked(PyImport_ImportModule("numpy"));
  numpy_dtype_class = Ref::checked(PyObject_GetAttrString(numpy.get(), "dtype")).release();
  for (int i = 0; i < kNumDTypes; ++i) {
    Ref dtype = Ref::checked(PySequence_GetItem(dtypes, i));
    Ref scalar = Ref::checked(PyObject_GetAttrString(dtype.get(), "type"));
    // float0 shares the layout of bool but is its own structured dtype: identity tells them apart.
    by_identity.emplace(dtype.get(), static_cast<DType>(i));
    if (static_cast<DType>(i) != DType::kFloat0)
      by_identity.emplace(scalar.get(), static_cast<DType>(i));
    dtype_objects[i] = dtype.release();
    scalar_types[i] = scalar.release();
  }
  auto python_type = [](PyTypeObject& t, DType d) {
    by_identity.emplace(reinterpret_cast<PyObject*>(&t), d);
  };
  python_type(PyBool_Type, DType::kBool);
  python_type(PyLong_Type, DType::kI64);
  python_type(PyFloat_Type, DType::kF64);
  python_type(PyComplex_Type, DType::kC128);
}

}  // namespace

void init_dtypes() { hooks.numpy_dtypes.on_install(set_numpy_dtypes); }

DType register_key(std::string_view name, int words, PyObject* dtype) {
  DType d = register_key_dtype(name, words);
  PyObject*& known = dtype_objects[static_cast<int>(d)];
  if (known) raise_error("AttributeValueError", "expected a new dtype; got ", name, " again");
  known = Py_NewRef(dtype);
  scalar_types[static_cast<int>(d)] = Ref::checked(PyObject_GetAttrString(dtype, "type")).release();
  by_identity.emplace(dtype, d);
  return d;
}

PyObject* numpy_dtype(DType d) { return dtype_objects[static_cast<int>(d)]; }
PyObject* numpy_scalar_type(DType d) { return scalar_types[static_cast<int>(d)]; }

std::optional<DType> from_numpy_dtype(PyObject* dtype) {
  auto it = by_identity.find(dtype);
  if (it != by_identity.end()) return it->second;
  for (int i = 0; i < kNumDTypes; ++i) {
    int same = PyObject_RichCompareBool(dtype, dtype_objects[i], Py_EQ);
    check(same);
    if (same) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType to_dtype(PyObject* o) {
  int is_dtype = PyObject_IsInstance(o, numpy_dtype_class);
  check(is_dtype);
  auto it = by_identity.find(o);
  if (it != by_identity.end())
    return is_dtype ? it->second : canonicalize(it->second, x64_enabled());
  std::optional<DType> found;
  Ref attribute;
  if (is_dtype) {
    found = from_numpy_dtype(o);
  } else if (PyUnicode_Check(o)) {
    found = parse_dtype(readable(o));
  } else if ((attribute = Ref::steal(PyObject_GetAttr(o, name("dtype"))))) {
    found = from_numpy_dtype(attribute.get());
  }
  PyErr_Clear();
  if (!found && !is_dtype && !attribute) {  // NumPy's other spellings: "f4", "<i8", long
    Ref made = Ref::steal(PyObject_CallOneArg(numpy_dtype_class, o));
    PyErr_Clear();
    if (made) found = from_numpy_dtype(made.get());
  }
  if (!found) {
    Ref text = Ref::checked(PyObject_Repr(o));
    raise_error("DTypeError", "expected a dtype; got ", readable(text.get()));
  }
  return is_dtype ? *found : canonicalize(*found, x64_enabled());
}

}  // namespace weft::py
