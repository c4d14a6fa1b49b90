// The functions of weft._core that take operands: bind(), the type of element-wise functions, and
// the promotion helpers. Written against the C API, since Python calls them once per op.

#include "binding/bind.h"

#include <memory>

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "conversions/location.h"
#include "conversions/public_function.h"
#include "conversions/sharding_object.h"
#include "graphs/attrs.h"
#include "references/object_type.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

struct ElementwiseObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* parameters;  // a tuple of the names of operands; null: x, or x1 and x2
  bool by_keyword;       // whether operands may be given by these names
  const Elementwise* f;

  int visit(visitproc visit, void* arg) const {
    Py_VISIT(parameters);
    return 0;
  }
  void clear() {}
  void release() { Py_CLEAR(parameters); }
};

// One per distinct function, never freed: eager programs are cached under its address.
const Elementwise* intern(const Elementwise& f) {
  static auto* all = new std::vector<std::unique_ptr<Elementwise>>;
  for (const auto& known : *all)
    if (known->op == f.op && known->promotion == f.promotion && known->bool_op == f.bool_op)
      return known.get();
  all->push_back(std::make_unique<Elementwise>(f));
  return all->back().get();
}

std::vector<Operand> classify_all(PyObject* const* args, Py_ssize_t n, std::string_view op) {
  std::vector<Operand> xs;
  xs.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) xs.push_back(classify_operand(args[i], op));
  return xs;
}

// The operands, the last of which may be given by keyword.
SmallVector<PyObject*, 4> operands_of(const ElementwiseObject& function, PyObject* const* args,
                                      Py_ssize_t n, PyObject* kwnames) {
  Py_ssize_t count = function.f->op->num_operands;
  Py_ssize_t num_keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  SmallVector<PyObject*, 4> operands(std::span(args, static_cast<size_t>(n)));
  if (n == count && num_keywords == 0) return operands;
  for (Py_ssize_t i = n; i < count && function.by_keyword; ++i)
    for (Py_ssize_t k = 0; k < num_keywords; ++k)
      if (PyUnicode_Compare(PyTuple_GET_ITEM(function.parameters, i),
                            PyTuple_GET_ITEM(kwnames, k)) == 0)
        operands.push_back(args[n + k]);
  bool has_attributes = !function.by_keyword && function.f->op->attrs.size() > 0;
  bool takes_all = has_attributes || n + num_keywords == count;
  if (static_cast<Py_ssize_t>(operands.size()) == count && takes_all) return operands;
  auto* self = reinterpret_cast<PyObject*>(const_cast<ElementwiseObject*>(&function));
  Ref shown = Ref::checked(PyObject_GetAttr(self, name("__name__")));
  if (n == count)
    raise_error("OperandError", "[", readable(shown.get()), "] expected no keyword arguments; got ",
                readable(PyTuple_GET_ITEM(kwnames, 0)));
  std::string by_keyword;
  for (Py_ssize_t k = 0; k < num_keywords; ++k)
    by_keyword += cat(k ? ", " : ", and by keyword ", utf8(PyTuple_GET_ITEM(kwnames, k)));
  raise_error("OperandError", "[", readable(shown.get()), "] expected ", count,
              " positional arguments; got ", n, by_keyword);
}

PyObject* call_elementwise(PyObject* self, PyObject* const* args, size_t nargsf,
                           PyObject* kwnames) {
  PyObject* result = guard([&]() -> PyObject* {
    const auto& function = *reinterpret_cast<ElementwiseObject*>(self);
    const Elementwise& f = *function.f;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    SmallVector<Operand, 4> xs;
    for (PyObject* x : operands_of(function, args, n, kwnames))
      xs.push_back(classify_operand(x, f.op->name));
    return elementwise(f, xs, make_attrs(*f.op, function.by_keyword ? nullptr : kwnames, args + n))
        .release();
  });
  return result ? result : call_failed(self, self, args, nargsf, kwnames);
}

// Made when it is asked for: `inspect` is slow to import.
PyObject* signature(PyObject* self, void*) {
  return guard([&]() -> PyObject* {
    const auto& function = *reinterpret_cast<ElementwiseObject*>(self);
    Ref inspect = Ref::checked(PyImport_ImportModule("inspect"));
    Ref parameter = Ref::checked(PyObject_GetAttrString(inspect.get(), "Parameter"));
    Ref kind = Ref::checked(PyObject_GetAttrString(
        parameter.get(), function.by_keyword ? "POSITIONAL_OR_KEYWORD" : "POSITIONAL_ONLY"));
    int count = function.f->op->num_operands;
    Ref all = Ref::checked(PyList_New(0));
    for (int i = 0; i < count; ++i) {
      Ref shown = function.parameters
                      ? Ref::borrow(PyTuple_GET_ITEM(function.parameters, i))
                      : Ref::checked(count == 1 ? PyUnicode_FromString("x")
                                                : PyUnicode_FromFormat("x%d", i + 1));
      Ref one = Ref::checked(
          PyObject_CallFunctionObjArgs(parameter.get(), shown.get(), kind.get(), nullptr));
      check(PyList_Append(all.get(), one.get()));
    }
    return PyObject_CallMethod(inspect.get(), "Signature", "O", all.get());
  });
}

PyObject* represent(PyObject* self) {
  return guard([&] {
    Ref shown = Ref::checked(PyObject_GetAttr(self, name("__name__")));
    return PyUnicode_FromFormat("<elementwise function %U>", shown.get());
  });
}

PyTypeObject* elementwise_type;

Promotion promotion_named(std::string_view policy) {
  if (policy == "lax") return Promotion::kLax;
  if (policy == "numpy") return Promotion::kNumpy;
  if (policy == "inexact") return Promotion::kInexact;
  if (policy == "bool") return Promotion::kBool;
  raise_error("AttributeValueError", "expected 'lax', 'numpy', 'inexact' or 'bool'; got '", policy,
              "'");
}

// elementwise(op, policy, name, doc, module, bool_op=None, parameters=None, by_keyword=True)
PyObject* make_elementwise(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    const char *op, *policy, *shown, *doc, *module, *bool_op = nullptr;
    PyObject* parameters = nullptr;
    int by_keyword = 1;
    if (!PyArg_ParseTuple(args, "sssss|zO!p", &op, &policy, &shown, &doc, &module, &bool_op,
                          &PyTuple_Type, &parameters, &by_keyword))
      throw PythonError{};
    Elementwise f{&registry().get(op), promotion_named(policy),
                  bool_op ? &registry().get(bool_op) : nullptr};
    if (!f.op->elementwise)
      raise_error("AttributeValueError", "expected an element-wise op; got '", op, "'");
    if (parameters && PyTuple_GET_SIZE(parameters) != f.op->num_operands)
      raise_error("AttributeValueError", "expected a name for each of ", f.op->num_operands,
                  " operands of ", op);
    PyObject* self = elementwise_type->tp_alloc(elementwise_type, 0);
    if (!self) throw PythonError{};
    Ref owned = Ref::steal(self);
    auto* e = reinterpret_cast<ElementwiseObject*>(self);
    e->vectorcall = call_elementwise;
    e->parameters = Py_XNewRef(parameters);
    e->by_keyword = parameters && by_keyword;
    e->f = intern(f);
    auto set = [&](const char* key, const char* value) {
      Ref text = Ref::checked(PyUnicode_FromString(value));
      check(PyObject_SetAttrString(self, key, text.get()));
    };
    set("__name__", shown);
    set("__qualname__", shown);
    set("__doc__", doc);
    set("__module__", module);
    return owned.release();
  });
}

// bind(op, *operands, **attrs)
PyObject* bind_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    if (n < 1 || !PyUnicode_Check(args[0]))
      raise_error("OperandError", "bind expected the name of an op first");
    const OpDef& op = registry().get(utf8(args[0]));
    std::vector<Operand> xs = classify_all(args + 1, n - 1, op.name);
    Objects results = bind_op(op, xs, make_attrs(op, kwnames, args + n));
    if (!op.multiple_results) return results[0].release();
    return to_list(std::move(results));
  });
}

// bind_graphs(name, operands, weak, **attrs) -> list of results: for ops that hold graphs or
// functions. `weak` says which results are weakly typed.
PyObject* bind_graphs_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    check_count("bind_graphs", n, 3);
    const OpDef& op = registry().get(utf8(args[0]));
    list_argument(args[1], "bind_graphs", "the operands");
    std::vector<Operand> xs;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); ++i)
      xs.push_back(classify_operand(PyList_GET_ITEM(args[1], i), op.name));
    std::vector<bool> weak = flags_argument(args[2], "bind_graphs", "the weak results");
    return to_list(bind_graphs(op, xs, make_attrs(op, kwnames, args + n), weak));
  });
}

PyObject* typeof_function(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    Operand x = classify_operand(o, "typeof");
    Ref shape = to_tuple(x.type->shape());
    return PyTuple_Pack(3, shape.get(), numpy_dtype(x.type->dtype()), x.weak ? Py_True : Py_False);
  });
}

// Arrays, scalars and dtypes.
PyObject* result_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    std::vector<Operand> xs;
    for (Py_ssize_t i = 0; i < n; ++i) {
      Operand x = classify(args[i]);
      if (x.kind == OperandKind::kInvalid)
        x = {args[i], scalar_type(canonicalize(to_dtype(args[i]), x64_enabled())), x.kind, false};
      xs.push_back(x);
    }
    if (xs.empty()) raise_error("OperandError", "result_type expected at least one argument");
    PromotionType p = common_dtype(xs, Promotion::kNumpy, "result_type");
    return PyTuple_Pack(2, numpy_dtype(p.dtype), p.weak ? Py_True : Py_False);
  });
}

PyObject* promote_list(PyObject* const* args, Py_ssize_t n, Promotion policy, const char* op) {
  return guard([&]() -> PyObject* {
    std::vector<Operand> xs = classify_all(args, n, op);
    Ref list = Ref::checked(PyList_New(n));
    if (n == 0) return list.release();
    PromotionType p = common_dtype(xs, policy, op);
    for (Py_ssize_t i = 0; i < n; ++i)
      PyList_SET_ITEM(list.get(), i, astype(xs[static_cast<size_t>(i)], p.dtype, p.weak).release());
    return list.release();
  });
}
PyObject* promote_dtypes(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return promote_list(args, n, Promotion::kNumpy, "promote_dtypes");
}
PyObject* promote_dtypes_inexact(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return promote_list(args, n, Promotion::kInexact, "promote_dtypes_inexact");
}

// check_ranks(function, operands, cores=()), of a public function that aligns their axes but for
// the last ones, as many as `cores` says of each.
PyObject* check_ranks_function(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *function, *operands, *cores = nullptr;
    if (!PyArg_ParseTuple(args, "UO!|O!", &function, &PyTuple_Type, &operands, &PyTuple_Type,
                          &cores))
      throw PythonError{};
    Py_ssize_t n = PyTuple_GET_SIZE(operands);
    if (cores && PyTuple_GET_SIZE(cores) != n)
      raise_error("OperandError", "check_ranks expected a number for each operand");
    std::vector<Operand> xs;
    std::vector<int64_t> numbers;
    for (Py_ssize_t i = 0; i < n; ++i) {
      xs.push_back(classify_operand(PyTuple_GET_ITEM(operands, i), readable(function)));
      if (cores) numbers.push_back(to_int(PyTuple_GET_ITEM(cores, i)));
    }
    check_ranks(xs, readable(function), [] { return works_for_user(); }, numbers);
    return Py_NewRef(Py_None);
  });
}

// How arrays of different shapes that are broadcast to one are split over explicit axes, if it is
// in one way along each dimension; else null.
ShardingRef joint_split(std::span<const Operand> xs, const Dims& shape) {
  if (!types_tell_places ||
      std::all_of(xs.begin(), xs.end(), [&](const Operand& x) { return x.type->shape() == shape; }))
    return nullptr;
  ShardingParts joint;
  for (const Operand& x : xs) {
    ShardingRef own = split_of(x);
    if (!own || own->is_replicated()) continue;
    if (joint.mesh && joint.mesh != own->mesh()) return nullptr;
    joint.mesh = own->mesh();
    joint.dims.resize(shape.size());
    for (size_t i = 0, first = shape.size() - x.type->shape().size(); i + first < shape.size();
         ++i) {
      DimSharding& dim = joint.dims[i + first];
      if (own->dim(i).axes.empty()) continue;
      if (!dim.axes.empty() && dim != own->dim(i)) return nullptr;
      dim = own->dim(i);
    }
  }
  Dims used;
  for (const DimSharding& dim : joint.dims)
    for (int64_t axis : dim.axes) {
      if (std::find(used.begin(), used.end(), axis) != used.end()) return nullptr;
      used.push_back(axis);
    }
  return joint.mesh ? make_sharding(std::move(joint)) : nullptr;
}

PyObject* broadcast_arrays(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    std::vector<Operand> xs = classify_all(args, n, "broadcast_arrays");
    Dims shape = common_shape(xs, "broadcast_arrays");
    ShardingRef split = joint_split(xs, shape);
    Ref list = Ref::checked(PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyList_SET_ITEM(list.get(), i,
                      split_like(broadcast_to(xs[static_cast<size_t>(i)], shape), split).release());
    return list.release();
  });
}

PyObject* broadcast_to_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 2) raise_error("OperandError", "broadcast_to expected (x, shape)");
    Operand x = classify_operand(args[0], "broadcast_to");
    static const AttrSpec spec{"shape", AttrType::kInts};
    return broadcast_to(x, std::get<Dims>(to_attr("broadcast_to", spec, args[1]))).release();
  });
}

bool is_of_host(const Operand& x) {
  return x.kind == OperandKind::kScalar || x.kind == OperandKind::kNumpy;
}

// An array that the user makes of an operand, for debug_nans and debug_infs: those of other arrays
// come from programs, which are looked at where they run.
Ref made(const Operand& x, Ref array) {
  if (debug_flags() && is_of_host(x) && is_array(array.get()))
    look_at_made(array, "data of the host that became an array");
  return array;
}

// What was made of an argument, which tracers tell from the argument itself.
Ref as_result(PyObject* o, Ref made) {
  return made.get() == o && is_tracer(o) ? handed_on(o) : std::move(made);
}

// astype(x, dtype, weak=False)
PyObject* astype_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n < 2 || n > 3) raise_error("OperandError", "astype expected (x, dtype, weak=False)");
    Operand x = classify_operand(args[0], "astype");
    bool weak = n == 3 && is_true(args[2]);
    return as_result(args[0], made(x, astype(x, to_dtype(args[1]), weak))).release();
  });
}

PyObject* asarray(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    Operand x = classify_operand(o, "asarray");
    return as_result(o, made(x, astype(x, x.type->dtype(), x.weak))).release();
  });
}

PyObject* apart(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    Operand x = classify_operand(o, "apart");
    Ref same = made(x, astype(x, x.type->dtype(), x.weak));
    return same.get() == o ? handed_on(o).release() : same.release();
  });
}

// asarray(), where the user asked for a transfer by name: not on the mesh that is set, if it is no
// array yet.
PyObject* explicit_asarray(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    ExplicitTransfers by_name;
    Operand x = classify_operand(o, "asarray");
    if (is_of_host(x) && !context_for({&x, 1}))
      return on_default_place(x, x.type->dtype(), x.weak, current_placement()).release();
    return astype(x, x.type->dtype(), x.weak).release();
  });
}

PyObject* mark_public_function(PyObject*, PyObject* function_or_name) {
  mark_public(function_or_name);
  Py_RETURN_NONE;
}

PyObject* canonical_dtype(PyObject*, PyObject* o) {
  return guard([&] { return Py_NewRef(numpy_dtype(canonicalize(to_dtype(o), x64_enabled()))); });
}

PyMethodDef functions[] = {
    {"elementwise", make_elementwise, METH_VARARGS,
     "elementwise(op, policy, name, doc, module, bool_op=None, parameters=None, by_keyword=True): "
     "a function of arrays."},
    {"bind", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(bind_function)),
     METH_FASTCALL | METH_KEYWORDS, "bind(op, *operands, **attrs): runs or records one op."},
    {"bind_graphs",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(bind_graphs_function)),
     METH_FASTCALL | METH_KEYWORDS,
     "bind_graphs(op, operands, weak, **attrs): runs or records an op that holds graphs or "
     "functions."},
    {"typeof", typeof_function, METH_O, "(shape, dtype, weak_type) of anything array-like."},
    {"result_type", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(result_type)),
     METH_FASTCALL, "(dtype, weak) that the arguments promote to."},
    {"promote_dtypes", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(promote_dtypes)),
     METH_FASTCALL, "The arguments converted to their common dtype, a list."},
    {"promote_dtypes_inexact",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(promote_dtypes_inexact)),
     METH_FASTCALL, "The arguments converted to their common float or complex dtype, a list."},
    {"check_ranks", check_ranks_function, METH_VARARGS,
     "check_ranks(function, operands, cores=()): says so where a user does not want the ranks of "
     "the operands to differ."},
    {"broadcast_arrays",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(broadcast_arrays)), METH_FASTCALL,
     "The arguments broadcast to their common shape, a list."},
    {"broadcast_to",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(broadcast_to_function)),
     METH_FASTCALL, "broadcast_to(x, shape)."},
    {"astype", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(astype_function)),
     METH_FASTCALL, "astype(x, dtype, weak=False)."},
    {"asarray", asarray, METH_O, "A number or NumPy array as an Array; arrays as they are."},
    {"apart", apart, METH_O, "As asarray; of an array another one with the same buffer."},
    {"explicit_asarray", explicit_asarray, METH_O, "asarray() that no guard of transfers stops."},
    {"mark_public", mark_public_function, METH_O, "A function that users call, or its full name."},
    {"canonical_dtype", canonical_dtype, METH_O, "The NumPy dtype that a dtype-like names."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_bind(PyObject* module) {
  elementwise_type = ObjectType<ElementwiseObject>::make(
      "weft.ElementwiseFunction", Py_TPFLAGS_DISALLOW_INSTANTIATION,
      {{Py_tp_repr, reinterpret_cast<void*>(represent)}},
      {{"__signature__", signature, nullptr, nullptr, nullptr}});
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace weft::py
