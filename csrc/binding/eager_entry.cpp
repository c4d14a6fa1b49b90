#include "binding/eager_entry.h"

#include "conversions/location.h"
#include "execution/eager.h"
#include "tracing/named_axes.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

using Record = SmallVector<int64_t, 16>;

// Appends an argument to a key: which parameter it is for, and its value. Not for values that are
// neither None, bools, ints, tuples of ints nor text: numbers may be data, and data is no key. Nor
// for text where axes have names: of which axis it may be the name is more than the key says.
bool add_argument(const EagerEntry& entry, Py_ssize_t parameter, PyObject* value, CacheKey& key) {
  enum { kNone, kBool, kInt, kInts, kText };
  if (value == Py_None) {
    key.add({parameter, kNone});
    return true;
  }
  if (!entry.is_static(parameter)) return false;
  if (PyBool_Check(value)) {
    key.add({parameter, kBool, value == Py_True});
    return true;
  }
  if (PyUnicode_CheckExact(value)) {
    if (!named_axes().empty()) return false;
    Record record{parameter, kText};
    for (char c : readable(value)) record.push_back(c);
    key.add(record);
    return true;
  }
  auto add_int = [](PyObject* o, Record& to) {
    if (!PyLong_CheckExact(o)) return false;
    int overflow;
    to.push_back(PyLong_AsLongLongAndOverflow(o, &overflow));
    return overflow == 0;
  };
  Record record{parameter};
  if (!PyTuple_CheckExact(value)) {
    record.push_back(kInt);
    if (!add_int(value, record)) return false;
  } else {
    record.push_back(kInts);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      if (!add_int(PyTuple_GET_ITEM(value, i), record)) return false;
  }
  key.add(record);
  return true;
}

// The parameter of that name; -1 if there is none, or its name is another object.
Py_ssize_t parameter_named(const EagerEntry& entry, PyObject* keyword) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entry.parameters.get()); ++i)
    if (PyTuple_GET_ITEM(entry.parameters.get(), i) == keyword) return i;
  return -1;
}

Ref call_on(const EagerEntry& entry, std::span<const Operand> operands, PyObject* const* args,
            Py_ssize_t n, PyObject* kwnames) {
  SmallVector<PyObject*, 8> all;
  for (const Operand& x : operands) all.push_back(x.object);
  Py_ssize_t num_keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = entry.operands; i < n + num_keywords; ++i) all.push_back(args[i]);
  return Ref::checked(
      PyObject_Vectorcall(entry.function, all.data(), static_cast<size_t>(n), kwnames));
}

}  // namespace

bool run_entry(const EagerEntry& entry, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
               PyObject*& result) {
  if (n < entry.operands || n > PyTuple_GET_SIZE(entry.parameters.get()) || jit_disabled() ||
      innermost_staged() || promotion_is_watched())
    return false;
  bool ran = true;
  result = guard([&]() -> PyObject* {
    SmallVector<Operand, 2> operands;
    for (Py_ssize_t i = 0; ran && i < entry.operands; ++i) {
      operands.push_back(classify(args[i]));
      OperandKind kind = operands.back().kind;
      ran = kind == OperandKind::kArray || kind == OperandKind::kNumpy;
    }
    EagerCall call{entry.function, nullptr, {}, operands, {}};
    for (Py_ssize_t i = entry.operands; ran && i < n; ++i)
      ran = add_argument(entry, i, args[i], call.extra);
    for (Py_ssize_t k = 0; ran && kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
      Py_ssize_t parameter = parameter_named(entry, PyTuple_GET_ITEM(kwnames, k));
      ran = parameter >= n && add_argument(entry, parameter, args[n + k], call.extra);
    }
    if (!ran) return nullptr;
    return run_for_one(call,
                       [&](std::span<const Operand> abstract) {
                         return Objects{call_on(entry, abstract, args, n, kwnames)};
                       })
        .release();
  });
  return ran;
}

}  // namespace weft::py
