// Classification of operands and their way to a device.

#include "tracing/operand.h"

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "conversions/sharding_object.h"
#include "references/hooks.h"
#include "tracing/cell.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

// numpy.ndarray and numpy.generic, found at first use.
struct NumpyClasses {
  PyTypeObject* ndarray;
  PyTypeObject* generic;
};
const NumpyClasses& numpy_classes() {
  static NumpyClasses classes = [] {
    Ref module = Ref::checked(PyImport_ImportModule("numpy"));
    return NumpyClasses{
        reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), "ndarray")),
        reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), "generic"))};
  }();
  return classes;
}

// numpy.ma.MaskedArray, which no operation would see the mask of. NumPy loads the module when it is
// first used; before that there is none.
bool is_masked(PyObject* o) {
  if (Py_TYPE(o) == numpy_classes().ndarray || !PyObject_TypeCheck(o, numpy_classes().ndarray))
    return false;
  Ref module = Ref::steal(PyImport_GetModule(name("numpy.ma")));
  if (!module) {
    if (PyErr_Occurred()) throw PythonError{};
    return false;
  }
  Ref masked = Ref::checked(PyObject_GetAttrString(module.get(), "MaskedArray"));
  int is = PyObject_IsInstance(o, masked.get());
  if (is < 0) throw PythonError{};
  return is == 1;
}

Operand python_scalar(PyObject* o, DType wide, bool weak) {
  return {o, scalar_type(canonicalize(wide, x64_enabled())), OperandKind::kScalar, weak};
}

Operand numpy_operand(PyObject* o) {
  if (is_masked(o))
    raise_error("AttributeValueError",
                "expected an array without a mask; got a numpy.ma.MaskedArray, whose mask would be "
                "lost\n  Pass x.filled(value), or x.data and numpy.ma.getmaskarray(x).");
  Ref dtype = Ref::checked(PyObject_GetAttr(o, name("dtype")));
  std::optional<DType> d = from_numpy_dtype(dtype.get());
  if (!d) return {o, nullptr, OperandKind::kInvalid, false};
  Ref shape = Ref::checked(PyObject_GetAttr(o, name("shape")));
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.get()); ++i)
    dims.push_back(to_int(PyTuple_GET_ITEM(shape.get(), i)));
  TypeRef type = make_type(canonicalize(*d, x64_enabled()), dims);
  // Elements of float0 have no value that a literal could hold.
  bool scalar = dims.empty() && *d != DType::kFloat0;
  return {o, type, scalar ? OperandKind::kScalar : OperandKind::kNumpy, false};
}

}  // namespace

bool has_own_dtype(const Operand& x) {
  Ref dtype = Ref::steal(PyObject_GetAttr(x.object, name("dtype")));
  if (!dtype) PyErr_Clear();  // a number of Python's, which has none
  return !dtype || from_numpy_dtype(dtype.get()) == x.type->dtype();
}

Operand classify(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == array_type) return array_operand(o);
  if (type == tracer_type) return {o, as_tracer(o)->type, OperandKind::kTracer, as_tracer(o)->weak};
  // bool never takes part in weak promotion: it is the bottom of the lattice either way.
  if (type == &PyFloat_Type) return python_scalar(o, DType::kF64, true);
  if (type == &PyLong_Type) return python_scalar(o, DType::kI64, true);
  if (type == &PyBool_Type) return python_scalar(o, DType::kBool, false);
  if (type == &PyComplex_Type) return python_scalar(o, DType::kC128, true);
  const NumpyClasses& numpy = numpy_classes();
  if (PyType_IsSubtype(type, numpy.ndarray) || PyType_IsSubtype(type, numpy.generic))
    return numpy_operand(o);
  // Subclasses of Python's numbers (enums and the like).
  if (PyLong_Check(o)) return python_scalar(o, DType::kI64, true);
  if (PyFloat_Check(o)) return python_scalar(o, DType::kF64, true);
  if (PyComplex_Check(o)) return python_scalar(o, DType::kC128, true);
  if (is_symbolic_dim(o)) return python_scalar(o, DType::kI64, true);
  return {o, nullptr, OperandKind::kInvalid, false};
}

Operand classify_abstract(PyObject* o) {
  Operand x = classify(o);
  if (x.kind != OperandKind::kInvalid || !PyObject_TypeCheck(o, hooks.abstract_type.type()))
    return x;
  Ref shape = Ref::checked(PyObject_GetAttr(o, name("shape")));
  Ref dtype = Ref::checked(PyObject_GetAttr(o, name("dtype")));
  Ref weak = Ref::checked(PyObject_GetAttr(o, name("weak_type")));
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.get()); ++i)
    dims.push_back(to_int(PyTuple_GET_ITEM(shape.get(), i)));
  x.type = make_type(to_dtype(dtype.get()), dims);
  x.weak = is_true(weak.get());
  x.kind = OperandKind::kInvalid;  // has a type, but no value
  return x;
}

bool stands_for_cell(const Operand& x) {
  if (!x.type || !PyObject_TypeCheck(x.object, hooks.abstract_type.type())) return false;
  Ref is_ref = Ref::checked(PyObject_GetAttr(x.object, name("is_ref")));
  return is_ref.get() == Py_True;
}

ShardingRef abstract_home(const Operand& x) {
  if (!x.type || !PyObject_TypeCheck(x.object, hooks.abstract_type.type())) return nullptr;
  Ref sharding = Ref::checked(PyObject_GetAttr(x.object, name("_place")));
  if (sharding.get() == Py_None) return nullptr;
  Ref shapes = Ref::checked(PyList_New(0));
  check(PyList_Append(shapes.get(), to_tuple(x.type->shape()).get()));
  Ref resolved = Ref::checked(PyObject_CallFunctionObjArgs(hooks.resolve_shardings.get(),
                                                           sharding.get(), Py_None, shapes.get(),
                                                           name("ShapeDtypeStruct"), nullptr));
  ShardingRef found = sharding_of(PyList_GetItem(resolved.get(), 0));
  return found && !found->mesh()->is_abstract() ? found : nullptr;
}

Operand classify_type(PyObject* o, std::string_view op) {
  Operand x = classify_abstract(o);
  if (!x.type)
    raise_error("OperandError", "[", op,
                "] expected a type (ShapeDtypeStruct, array or number); got ", Py_TYPE(o)->tp_name);
  return x;
}

// An attribute that is None says that there is no such protocol, as it does for tracers of jax.
static bool has_protocol(PyObject* o, const char* method) {
  if (PyType_Check(o)) return false;
  Ref found = Ref::steal(PyObject_GetAttrString(o, method));
  if (!found) PyErr_Clear();
  return found && found.get() != Py_None;
}

// A value that jax traces has a type and no value, which weft can do nothing with.
static bool is_tracer_of_jax(PyObject* o) {
  Ref module =
      Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__module__"));
  if (!module) PyErr_Clear();
  return module && PyUnicode_Check(module.get()) && readable(module.get()).starts_with("jax.") &&
         std::string_view(Py_TYPE(o)->tp_name).ends_with("Tracer");
}

bool is_foreign_array(PyObject* o) { return has_protocol(o, "__jax_array__"); }

Ref foreign_array(PyObject* o) {
  if (!is_foreign_array(o)) return Ref();
  Ref array = Ref::checked(PyObject_CallMethodNoArgs(o, name("__jax_array__")));
  if (classify(array.get()).kind == OperandKind::kInvalid)
    raise_error("OperandError", "expected an array from __jax_array__ of ", Py_TYPE(o)->tp_name,
                "; got ", Py_TYPE(array.get())->tp_name);
  return array;
}

bool is_of_numpy(PyObject* o) {
  return PyObject_TypeCheck(o, numpy_classes().ndarray) ||
         PyObject_TypeCheck(o, numpy_classes().generic);
}

std::string way_to_array(PyObject* o) {
  if (is_cell(o)) return "\n  Read its value with ref[...].";
  if (PyList_Check(o) || PyTuple_Check(o)) return "\n  Convert it with weft.numpy.array.";
  if (is_tracer_of_jax(o))
    return "\n  jax traces it: call weft.jit, weft.grad and weft.vmap where weft.numpy is used.";
  if (!is_of_numpy(o))  // those of NumPy are of a dtype that weft lacks
    for (const char* protocol : {"__jax_array__", "__array__", "__dlpack__"})
      if (has_protocol(o, protocol)) return "\n  Convert it with weft.numpy.asarray.";
  return "";
}

Operand classify_operand(PyObject* o, std::string_view op) {
  Operand x = classify(o);
  if (x.kind != OperandKind::kInvalid) return x;
  Ref text = Ref::checked(PyObject_Repr(o));
  std::string shown = readable(text.get());
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  raise_error(is_foreign_array(o) ? "ForeignArrayError" : "OperandError", "[", op,
              "] expected an array or a number; got ", Py_TYPE(o)->tp_name, ": ", shown,
              way_to_array(o));
}

[[noreturn]] static void out_of_range(PyObject* o, DType dtype) {
  Ref text = Ref::checked(PyObject_Str(o));
  PyErr_Format(PyExc_OverflowError, "Python int %U is out of range for %s", text.get(),
               std::string(numpy_name(dtype)).c_str());
  throw PythonError{};
}

int side_of(const Operand& x, DType dtype) {
  int overflow = 0;
  long long i = PyLong_AsLongLongAndOverflow(x.object, &overflow);
  int bits = info(dtype).bits;
  if (overflow > 0 && dtype == DType::kU64) {
    PyLong_AsUnsignedLongLong(x.object);
    bool is_wider = PyErr_Occurred();
    PyErr_Clear();
    return is_wider;
  }
  if (overflow) return overflow;
  if (is_unsigned_int(dtype)) return i < 0 ? -1 : bits < 64 && i >> bits != 0;
  // What is left of a value of the dtype without its digits is its sign.
  long long sign = i >> (bits - 1);
  return sign == 0 || sign == -1 ? 0 : i < 0 ? -1 : 1;
}

bool is_python_int(const Operand& x) {
  return x.kind == OperandKind::kScalar && x.weak && PyLong_Check(x.object);
}

void check_python_int(const Operand& x, DType dtype) {
  if (is_python_int(x) && side_of(x, dtype) != 0) out_of_range(x.object, dtype);
}
void check_python_int(const Operand& x) {
  check_python_int(x, canonicalize(DType::kI64, x64_enabled()));
}

Literal scalar_value(const Operand& x, DType dtype, Wrapping wrapping) {
  PyObject* o = x.object;
  if (is_symbolic_dim(o))
    fail(ErrorKind::kInconclusive, "expected a number; got the symbolic dimension ", to_int(o),
         ", which has no value outside of functions that are traced");
  Ref held;
  if (!PyLong_Check(o) && !PyFloat_CheckExact(o) && !PyComplex_CheckExact(o)) {
    DType own = x.type->dtype();
    // Exact for every dtype; ml_dtypes scalars have no C accessors.
    if (is_complex(own)) {
      Py_complex c = PyComplex_AsCComplex(o);
      if (PyErr_Occurred()) throw PythonError{};
      held = Ref::checked(PyComplex_FromCComplex(c));
    } else if (is_float(own)) {
      held = Ref::checked(PyNumber_Float(o));
    } else {
      held = Ref::checked(PyObject_CallMethodNoArgs(o, name("item")));
      if (!PyLong_Check(held.get())) held = Ref::checked(PyNumber_Long(o));
    }
    o = held.get();
  }
  if (PyComplex_Check(o)) {
    Py_complex c = PyComplex_AsCComplex(o);
    return convert(make_literal(is_complex(dtype) ? dtype : DType::kC128,
                                std::complex<double>(c.real, c.imag)),
                   dtype);
  }
  if (PyFloat_Check(o)) {
    double d = PyFloat_AS_DOUBLE(o);
    return is_float(dtype) ? make_literal(dtype, d) : convert(make_literal(DType::kF64, d), dtype);
  }
  int overflow = 0;
  long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (is_bool(dtype)) return make_literal(dtype, static_cast<int64_t>(overflow != 0 || i != 0));
  if (overflow > 0) {
    unsigned long long u = PyLong_AsUnsignedLongLong(o);
    bool known = !PyErr_Occurred();
    PyErr_Clear();
    if (known && is_inexact(dtype))
      return convert(make_literal(DType::kF64, static_cast<double>(u)), dtype);
    // A number of NumPy's wraps around, as its arrays do.
    if (known && (dtype == DType::kU64 || !x.weak))
      return convert(make_literal(DType::kU64, static_cast<int64_t>(u)), dtype);
  }
  if (overflow && is_inexact(dtype)) {
    double d = PyLong_AsDouble(o);
    if (d == -1.0 && PyErr_Occurred()) throw PythonError{};
    return convert(make_literal(DType::kF64, d), dtype);
  }
  bool fits = !overflow;
  if (fits && x.weak && is_integer(dtype))
    fits = side_of(x, dtype) == 0 || (wrapping == Wrapping::kNarrow &&
                                      side_of(x, canonicalize(DType::kI64, x64_enabled())) == 0);
  if (!fits) out_of_range(o, dtype);
  if (is_inexact(dtype)) {
    // A long has more digits than a double; round once, as NumPy does.
    return convert(make_literal(DType::kF64, static_cast<double>(i)), dtype);
  }
  return make_literal(dtype, static_cast<int64_t>(i));
}

Ref host_value(const Operand& x) {
  if (x.kind == OperandKind::kScalar) return numpy_scalar(scalar_value(x, x.type->dtype()));
  Ref own = Ref::checked(PyObject_GetAttr(x.object, name("dtype")));
  PyObject* dtype = numpy_dtype(x.type->dtype());
  if (own.get() == dtype) return Ref::borrow(x.object);
  return Ref::checked(PyObject_CallMethodOneArg(x.object, name("astype"), dtype));
}

void guard_transfer(const Operand& x) {
  guard_transfer(x.kind == OperandKind::kArray ? kGuardBetweenDevices : kGuardToDevice, x.type);
}

Ref to_device(const Operand& x, ShardingRef sharding, std::optional<DType> dtype) {
  switch (x.kind) {
    case OperandKind::kArray: {
      check_live(as_array(x.object));
      return Ref::borrow(x.object);
    }
    case OperandKind::kScalar:
      return cached_scalar(scalar_value(x, dtype.value_or(x.type->dtype())), sharding);
    case OperandKind::kNumpy: {
      return Ref::steal(put(host_value(x).get(), x.type, false, sharding, false));
    }
    default:
      throw Error(ErrorKind::kInternal, "operand without a value");
  }
}

}  // namespace weft::py
