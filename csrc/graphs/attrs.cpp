// One conversion per AttrType, each way.

#include "graphs/attrs.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "conversions/dtypes.h"
#include "conversions/sharding_object.h"
#include "graphs/graph_object.h"
#include "graphs/jaxpr_view.h"
#include "graphs/values.h"
#include "tracing/operand.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

[[noreturn]] void mismatch(std::string_view op, const AttrSpec& spec, const char* expected,
                           PyObject* value) {
  PyErr_Clear();
  Ref text = Ref::checked(PyObject_Repr(value));
  raise_error("OperandError", "[", op, "] expected ", expected, " for '", spec.name, "'; got ",
              readable(text.get()));
}

Dims to_dims(std::string_view op, const AttrSpec& spec, PyObject* value) {
  Ref items = Ref::steal(PySequence_Fast(value, ""));
  if (!items || PyUnicode_Check(value)) mismatch(op, spec, "a sequence of ints", value);
  Dims out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_index(item)) mismatch(op, spec, "a sequence of ints", value);
    out.push_back(to_int(item));
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

// What convert(item) gives for each item, null for one that is not as expected.
template <typename T, typename F>
std::vector<T> to_items(std::string_view op, const AttrSpec& spec, PyObject* value,
                        const char* expected, F&& convert) {
  Ref items = Ref::steal(PySequence_Fast(value, ""));
  if (!items) mismatch(op, spec, expected, value);
  std::vector<T> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    out.push_back(convert(PySequence_Fast_GET_ITEM(items.get(), i)));
    if (!out.back()) mismatch(op, spec, expected, value);
  }
  return out;
}

// A tuple of what convert(x) gives for each.
template <typename Items, typename F>
Ref from_items(const Items& items, F&& convert) {
  Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), convert(items[i]).release());
  return out;
}

Ref from_list(std::span<const Dims> list) {
  return from_items(list, [](const Dims& dims) { return to_tuple(dims); });
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
      if (!is_index(value)) mismatch(op, spec, "an int", value);
      return to_int(value);
    }
    case AttrType::kFloat: {
      double x = PyFloat_AsDouble(value);
      if (x == -1.0 && PyErr_Occurred()) mismatch(op, spec, "a number", value);
      return x;
    }
    case AttrType::kString:
      if (!PyUnicode_Check(value)) mismatch(op, spec, "a string", value);
      return readable(value);
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
    case AttrType::kGraphs:
      return to_items<GraphRef>(op, spec, value, "a sequence of graphs",
                                [](PyObject* o) { return graph_of(o); });
    case AttrType::kTypes:
      return to_items<TypeRef>(op, spec, value, "a sequence of ShapeDtypeStructs",
                               [](PyObject* o) { return classify_abstract(o).type; });
    case AttrType::kAxisNames: {
      const char* expected = "a sequence of strings";
      std::vector<std::string> out;
      Ref items = PyUnicode_Check(value) ? Ref() : Ref::steal(PySequence_Fast(value, ""));
      if (!items) mismatch(op, spec, expected, value);
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
        if (!PyUnicode_Check(item)) mismatch(op, spec, expected, value);
        out.push_back(readable(item));
      }
      return out;
    }
    case AttrType::kMesh:
      if (MeshRef mesh = mesh_of(value)) return mesh;
      mismatch(op, spec, "a mesh", value);
    case AttrType::kSharding:
      if (ShardingRef sharding = sharding_of(value)) return sharding;
      mismatch(op, spec, "a sharding", value);
    case AttrType::kShardings:
      return to_items<ShardingRef>(op, spec, value, "a sequence of shardings", sharding_of);
    case AttrType::kConstant:
    case AttrType::kObject: {
      if (ObjectRef object = object_of(value)) return object;
      return std::make_shared<PythonObject>(Ref::borrow(value), op, spec.name);
    }
  }
  mismatch(op, spec, "a supported value", value);
}

AttrsRef make_attrs(const OpDef& op, PyObject* names, PyObject* const* values) {
  Py_ssize_t n = names ? PyTuple_GET_SIZE(names) : 0;
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

namespace {
Ref to_str(const std::string& s) {
  return Ref::checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
}  // namespace

Ref from_attr(const AttrSpec& spec, const Attr& attr) {
  if (std::holds_alternative<std::monostate>(attr)) return Ref::borrow(Py_None);
  switch (spec.type) {
    case AttrType::kBool:
      return Ref::borrow(std::get<bool>(attr) ? Py_True : Py_False);
    case AttrType::kInt:
      return from_size(std::get<int64_t>(attr));
    case AttrType::kFloat:
      return Ref::checked(PyFloat_FromDouble(std::get<double>(attr)));
    case AttrType::kString:
      return to_str(std::get<std::string>(attr));
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
    case AttrType::kTypes:
      return from_items(std::get<std::vector<TypeRef>>(attr),
                        [](TypeRef type) { return shaped_array(type); });
    case AttrType::kGraph:
      return spec.flags & AttrSpec::kOpen ? jaxpr(std::get<GraphRef>(attr))
                                          : closed_jaxpr(std::get<GraphRef>(attr));
    case AttrType::kGraphs:
      return from_items(std::get<std::vector<GraphRef>>(attr),
                        [](const GraphRef& graph) { return closed_jaxpr(graph); });
    case AttrType::kAxisNames:
      return to_tuple(std::get<std::vector<std::string>>(attr));
    case AttrType::kMesh:
      return mesh_object(std::get<MeshRef>(attr));
    case AttrType::kSharding:
      return sharding_object(std::get<ShardingRef>(attr));
    case AttrType::kShardings:
      return from_items(std::get<std::vector<ShardingRef>>(attr),
                        [](ShardingRef s) { return sharding_object(s); });
    case AttrType::kConstant:
    case AttrType::kObject: {
      const ObjectRef& object = std::get<ObjectRef>(attr);
      if (auto own = std::dynamic_pointer_cast<const PythonObject>(object))
        return Ref::borrow(own->get());
      return object_handle(object);
    }
  }
  return Ref::borrow(Py_None);
}

// ---- Python values

namespace {

// The items of a dict, which hashing and showing them may change.
std::vector<std::pair<Ref, Ref>> items_of(PyObject* dict) {
  std::vector<std::pair<Ref, Ref>> out;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);)
    out.emplace_back(Ref::borrow(key), Ref::borrow(value));
  return out;
}

// The same in every process: Python salts its hashes of strings, and takes others from addresses.
uint64_t hash_content(PyObject* o) {
  if (o == Py_None) return 1;
  if (PyLong_Check(o) && (PyLong_CheckExact(o) || PyBool_Check(o)))
    return static_cast<uint64_t>(PyObject_Hash(o));
  if (PyFloat_CheckExact(o)) return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(o));
  if (PyUnicode_CheckExact(o)) {
    // Read as bytes of its kind: text that is no UTF-8 has contents too.
    std::string_view data(static_cast<const char*>(PyUnicode_DATA(o)),
                          static_cast<size_t>(PyUnicode_GET_LENGTH(o) * PyUnicode_KIND(o)));
    return hash_bytes(data);
  }
  if (PyBytes_CheckExact(o))
    return hash_bytes({PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o))});
  if (PyTuple_CheckExact(o)) {
    uint64_t h = static_cast<uint64_t>(PyTuple_GET_SIZE(o));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      h = hash_combine(h, hash_content(PyTuple_GET_ITEM(o, i)));
    return h;
  }
  GraphRef graph = graph_of(o);
  return graph ? graph->structural_hash() : 0;
}

// Functions go by their names: their repr has an address, which differs from run to run.
std::string value_text(PyObject* o) {
  Ref shown = PyCallable_Check(o) ? Ref::steal(PyObject_GetAttr(o, name("__name__"))) : Ref();
  PyErr_Clear();
  if (!shown || !PyUnicode_Check(shown.get())) shown = Ref::checked(PyObject_Repr(o));
  return readable(shown.get());
}

}  // namespace

PythonObject::PythonObject(Ref object, std::string_view op, std::string_view name)
    : object_(std::move(object)), hash_(0) {
  auto hash_item = [&](std::string_view item, PyObject* value) {
    try {
      return hash_value(value);
    } catch (const PythonError&) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;
      PyErr_Clear();
      raise_error("OperandError", "[", op, "] expected a hashable value for parameter ", item,
                  "; got ", Py_TYPE(value)->tp_name, ": ", value_text(value).substr(0, 60));
    }
  };
  if (!PyDict_CheckExact(object_.get())) {
    hash_ = hash_item(name, object_.get());
    return;
  }
  for (auto& [key, value] : items_of(object_.get()))
    hash_ += hash_combine(hash_value(key.get()),
                          hash_item(readable(key.get()), value.get()));  // whatever the order
}

uint64_t PythonObject::content_hash() const {
  if (!PyDict_CheckExact(get())) return hash_content(get());
  uint64_t h = 0;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(get(), &at, &key, &value);)
    h += hash_combine(hash_content(key), hash_content(value));  // whatever the order
  return h;
}

bool PythonObject::equals(const AttrObject& other) const {
  auto* object = dynamic_cast<const PythonObject*>(&other);
  if (!object || hash_ != object->hash_ || Py_TYPE(get()) != Py_TYPE(object->get())) return false;
  return same_value(get(), object->get());
}

std::string PythonObject::text() const {
  if (!PyDict_CheckExact(get())) return value_text(get());
  Text out;
  for (auto& [key, value] : items_of(get()))
    out << (out.size() ? " " : "") << readable(key.get()) << '=' << value_text(value.get());
  return out.take();
}

}  // namespace weft::py
