// One conversion per AttrType, each way.

#include "attrs.h"

#include "dtypes.h"
#include "rules.h"

namespace weft::py {
namespace {

[[noreturn]] void mismatch(std::string_view op, const AttrSpec& spec, const char* expected,
                           PyObject* value) {
  PyErr_Clear();
  Ref text = Ref::checked(PyObject_Repr(value));
  raise_error("OperandError", "[", op, "] expected ", expected, " for '", spec.name, "'; got ",
              utf8(text.get()));
}

Dims to_dims(std::string_view op, const AttrSpec& spec, PyObject* value) {
  Ref items = Ref::steal(PySequence_Fast(value, ""));
  if (!items || PyUnicode_Check(value)) mismatch(op, spec, "a sequence of ints", value);
  Dims out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    Ref index = Ref::steal(PyNumber_Index(item));
    if (!index) mismatch(op, spec, "a sequence of ints", value);
    out.push_back(to_int(index.get()));
  }
  return out;
}

void append_dims(std::string_view op, const AttrSpec& spec, PyObject* value, const char* expected,
                 std::vector<Dims>& out) {
  Ref items = Ref::steal(PySequence_Fast(value, ""));
  if (!items) mismatch(op, spec, expected, value);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    out.push_back(to_dims(op, spec, PySequence_Fast_GET_ITEM(items.get(), i)));
}

Ref from_list(std::span<const Dims> list) {
  Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), to_tuple(list[i]).release());
  return out;
}

}  // namespace

Attr to_attr(std::string_view op, const AttrSpec& spec, PyObject* value) {
  if (value == Py_None) return std::monostate{};
  switch (spec.type) {
    case AttrType::kBool: {
      int truth = PyObject_IsTrue(value);
      if (truth < 0) mismatch(op, spec, "a bool", value);
      return truth != 0;
    }
    case AttrType::kInt: {
      Ref index = Ref::steal(PyNumber_Index(value));
      if (!index) mismatch(op, spec, "an int", value);
      return to_int(index.get());
    }
    case AttrType::kFloat: {
      double x = PyFloat_AsDouble(value);
      if (x == -1.0 && PyErr_Occurred()) mismatch(op, spec, "a number", value);
      return x;
    }
    case AttrType::kString:
      if (!PyUnicode_Check(value)) mismatch(op, spec, "a string", value);
      return std::string(utf8(value));
    case AttrType::kDType:
      return to_dtype(value);
    case AttrType::kInts:
      return to_dims(op, spec, value);
    case AttrType::kBools: {
      Dims out = to_dims(op, spec, value);
      for (int64_t& x : out) x = x != 0;
      return out;
    }
    case AttrType::kIntsList: {
      std::vector<Dims> out;
      append_dims(op, spec, value, "a sequence of sequences of ints", out);
      return out;
    }
    case AttrType::kIntsPairs: {
      const char* expected = "pairs of sequences of ints";
      Ref pairs = Ref::steal(PySequence_Fast(value, ""));
      if (!pairs) mismatch(op, spec, expected, value);
      std::vector<Dims> out;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(pairs.get()); ++i) {
        append_dims(op, spec, PySequence_Fast_GET_ITEM(pairs.get(), i), expected, out);
        if (out.size() != static_cast<size_t>(2 * (i + 1))) mismatch(op, spec, expected, value);
      }
      return out;
    }
    case AttrType::kGraph: {
      GraphRef graph = graph_of(value);
      if (!graph) mismatch(op, spec, "a graph", value);
      return graph;
    }
    case AttrType::kGraphs: {
      std::vector<GraphRef> out;
      Ref items = Ref::steal(PySequence_Fast(value, ""));
      if (!items) mismatch(op, spec, "a sequence of graphs", value);
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        out.push_back(graph_of(PySequence_Fast_GET_ITEM(items.get(), i)));
        if (!out.back()) mismatch(op, spec, "a sequence of graphs", value);
      }
      return out;
    }
    case AttrType::kObject: {
      ObjectRef object = object_of(value);
      if (!object) mismatch(op, spec, "an object of the core", value);
      return object;
    }
  }
  mismatch(op, spec, "a supported value", value);
}

AttrsRef make_attrs(const OpDef& op, PyObject* names, PyObject* const* values) {
  Py_ssize_t n = names ? PyTuple_GET_SIZE(names) : 0;
  if (n == 0 && op.attrs.size() == 0) return nullptr;
  std::vector<NamedAttr> attrs;
  attrs.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    std::string_view key = utf8(PyTuple_GET_ITEM(names, i));
    int at = op.attrs.find(key);
    // An unknown name is reported by AttrRecord::make, which lists the known ones.
    attrs.emplace_back(key, at < 0 ? Attr() : to_attr(op.name, op.attrs.specs()[at], values[i]));
  }
  return AttrRecord::make(op.name, op.attrs, attrs);
}

Ref from_attr(const AttrSpec& spec, const Attr& attr) {
  if (std::holds_alternative<std::monostate>(attr)) return Ref::borrow(Py_None);
  switch (spec.type) {
    case AttrType::kBool:
      return Ref::borrow(std::get<bool>(attr) ? Py_True : Py_False);
    case AttrType::kInt:
      return Ref::checked(PyLong_FromLongLong(std::get<int64_t>(attr)));
    case AttrType::kFloat:
      return Ref::checked(PyFloat_FromDouble(std::get<double>(attr)));
    case AttrType::kString: {
      const std::string& s = std::get<std::string>(attr);
      return Ref::checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
    }
    case AttrType::kDType:
      return Ref::borrow(numpy_dtype(std::get<DType>(attr)));
    case AttrType::kInts:
      return to_tuple(std::get<Dims>(attr));
    case AttrType::kBools: {
      const Dims& xs = std::get<Dims>(attr);
      Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(xs.size())));
      for (size_t i = 0; i < xs.size(); ++i)
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                         Py_NewRef(xs[i] ? Py_True : Py_False));
      return out;
    }
    case AttrType::kIntsList:
      return from_list(std::get<std::vector<Dims>>(attr));
    case AttrType::kIntsPairs: {
      std::span<const Dims> list = std::get<std::vector<Dims>>(attr);
      Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(list.size() / 2)));
      for (size_t i = 0; i < list.size() / 2; ++i)
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                         from_list(list.subspan(2 * i, 2)).release());
      return out;
    }
    case AttrType::kGraph:
      return graph_object(std::get<GraphRef>(attr));
    case AttrType::kGraphs: {
      const auto& graphs = std::get<std::vector<GraphRef>>(attr);
      Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(graphs.size())));
      for (size_t i = 0; i < graphs.size(); ++i)
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), graph_object(graphs[i]).release());
      return out;
    }
    case AttrType::kObject:
      return object_handle(std::get<ObjectRef>(attr));
  }
  return Ref::borrow(Py_None);
}

}  // namespace weft::py
