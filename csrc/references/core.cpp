// Error translation, configuration and small conversions.

#include "references/core.h"

#include <nanobind/nanobind.h>

#include <cstring>
#include <new>
#include <unordered_map>

#include "references/hooks.h"
#include "weft/custom_rules.h"

namespace weft::py {

namespace {

const char* error_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kType:
      return "OperandError";
    case ErrorKind::kDtype:
      return "DTypeError";
    case ErrorKind::kShape:
      return "ShapeError";
    case ErrorKind::kInconclusive:
      return "InconclusiveDimensionOperation";
    case ErrorKind::kValue:
      return "AttributeValueError";
    case ErrorKind::kIndex:
      return "IndexOutOfBoundsError";
    case ErrorKind::kParse:
      return "ParseError";
    case ErrorKind::kDepth:
      return "NestingError";
    case ErrorKind::kSharding:
      return "ShardingTypeError";
    case ErrorKind::kNotImplemented:
      return "NotImplementedRuleError";
    case ErrorKind::kInternal:
      return "InternalError";
  }
  return "InternalError";
}

// The class adds the user's line to the message.
void set_error(const char* class_name, const std::string& message) {
  PyObject* module = PyImport_ImportModule("weft.errors");
  PyObject* type = module ? PyObject_GetAttrString(module, class_name) : nullptr;
  // Made here and not when the error is caught: the instance notes the current line.
  PyObject* error = type ? PyObject_CallFunction(type, "s#", message.data(),
                                                 static_cast<Py_ssize_t>(message.size()))
                         : nullptr;
  if (error) PyErr_SetObject(type, error);
  Py_XDECREF(error);
  Py_XDECREF(type);
  Py_XDECREF(module);
}

}  // namespace

void translate_exception() {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "weft: error without a Python error");
  } catch (const ClosedOverError& e) {
    set_error("UnexpectedTracerError", e.what());
  } catch (const Error& e) {
    set_error(error_class(e.kind()), e.what());
  } catch (nanobind::python_error& e) { e.restore(); } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    set_error("InternalError", cat("[weft] internal error, please report: ", e.what()));
  }
}

void raise(const char* error_class, const std::string& message) {
  set_error(error_class, message);
  throw PythonError{};
}

ThreadConfig& thread_config() {
  thread_local ThreadConfig config;
  return config;
}
ProcessConfig& process_config() {
  static ProcessConfig config;
  return config;
}

uint64_t settings() {
  const ThreadConfig& own = thread_config();
  return (process_config().word & ~own.set) | own.word;
}
int default_device() {
  return thread_config().default_device.value_or(process_config().default_device);
}

void check_count(const char* function, Py_ssize_t n, Py_ssize_t expected) {
  if (n != expected)
    raise_error("OperandError", function, " expected ", expected, " arguments; got ", n);
}

PyObject* list_argument(PyObject* o, const char* function, const char* argument) {
  if (!PyList_Check(o))
    raise_error("OperandError", function, " expected a list for ", argument, "; got ",
                Py_TYPE(o)->tp_name);
  return o;
}

PyObject* tuple_argument(PyObject* o, const char* function, const char* argument) {
  if (!PyTuple_Check(o))
    raise_error("OperandError", function, " expected a tuple for ", argument, "; got ",
                Py_TYPE(o)->tp_name);
  return o;
}

bool is_true(PyObject* o) {
  int truth = PyObject_IsTrue(o);
  check(truth);
  return truth != 0;
}

std::vector<bool> flags_argument(PyObject* tuple, const char* function, const char* argument) {
  tuple_argument(tuple, function, argument);
  std::vector<bool> out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    out.push_back(is_true(PyTuple_GET_ITEM(tuple, i)));
  return out;
}

PyObject* name(const char* s) {
  static std::unordered_map<const char*, PyObject*> names;
  PyObject*& slot = names[s];
  if (!slot) {
    slot = PyUnicode_InternFromString(s);
    if (!slot) throw PythonError{};
  }
  return slot;
}

std::string_view utf8(PyObject* str) {
  Py_ssize_t size;
  const char* s = PyUnicode_AsUTF8AndSize(str, &size);
  if (!s) throw PythonError{};
  return {s, static_cast<size_t>(size)};
}

std::string readable(PyObject* str) {
  Py_ssize_t size;
  if (const char* s = PyUnicode_AsUTF8AndSize(str, &size)) return {s, static_cast<size_t>(size)};
  PyErr_Clear();
  Ref bytes = Ref::checked(PyUnicode_AsEncodedString(str, "utf-8", "backslashreplace"));
  return {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

Ref to_text(const std::string& s) {
  return Ref::checked(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

Ref to_tuple(std::span<const int64_t> xs) {
  Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(xs.size())));
  for (size_t i = 0; i < xs.size(); ++i) {
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), from_size(xs[i]).release());
  }
  return out;
}

Ref to_tuple(std::span<const std::string> xs) {
  Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(xs.size())));
  for (size_t i = 0; i < xs.size(); ++i) {
    PyObject* item =
        PyUnicode_FromStringAndSize(xs[i].data(), static_cast<Py_ssize_t>(xs[i].size()));
    if (!item) throw PythonError{};
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
  }
  return out;
}

Ref from_size(int64_t size) {
  if (!is_symbolic(size) || !hooks.dim_class) return Ref::checked(PyLong_FromLongLong(size));
  Ref handle = Ref::checked(PyLong_FromLongLong(size));
  return Ref::checked(PyObject_CallOneArg(hooks.dim_class.get(), handle.get()));
}

bool is_symbolic_dim(PyObject* o) {
  return hooks.dim_class && Py_TYPE(o) == hooks.dim_class.type();
}

bool is_index(PyObject* o) { return is_symbolic_dim(o) || PyIndex_Check(o); }

int64_t to_int(PyObject* o) {
  if (!PyLong_Check(o) && is_symbolic_dim(o)) {
    Ref handle = Ref::checked(PyObject_GetAttr(o, name("_handle")));
    return PyLong_AsLongLong(handle.get());
  }
  Ref index = Ref::checked(PyNumber_Index(o));
  int64_t x = PyLong_AsLongLong(index.get());
  if (x == -1 && PyErr_Occurred()) throw PythonError{};
  return x;
}

}  // namespace weft::py
