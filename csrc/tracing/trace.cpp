// Tracers, the per-thread stack of contexts, capture of outer values.

#include "tracing/trace.h"

#include <structmember.h>

#include <algorithm>
#include <new>
#include <tuple>

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "conversions/location.h"
#include "conversions/sharding_object.h"
#include "references/hooks.h"
#include "tracing/cell.h"
#include "tracing/named_axes.h"

namespace weft::py {

PyTypeObject* tracer_type;

namespace {

void dealloc(PyObject* self) {
  TracerObject* t = as_tracer(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  t->owner.~ContextRef();
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* get_origin(PyObject* self, void*) {
  return guard([&] {
    std::string text = describe_tracer(as_tracer(self));
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

const PyGetSetDef own_getset[] = {
    {"_origin", get_origin, nullptr, "Where the value comes from, for messages.", nullptr}};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TracerObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

[[noreturn]] void raise_leaked(TracerObject* t) {
  raise_error("UnexpectedTracerError", "expected a value of the function being traced; got ",
              describe_tracer(t), ", which was kept after that trace ended",
              "\n  Return it from the traced function instead of storing it outside.");
}

}  // namespace

PyObject* make_tracer(const ContextRef& context, Value value, bool weak) {
  TracerObject* t = PyObject_New(TracerObject, tracer_type);
  if (!t) throw PythonError{};
  new (&t->owner) ContextRef(context);
  t->context = context.get();
  t->value = value;
  t->weak = weak;
  t->loc = context->builder.loc();
  t->type = context->builder.type(value);
  t->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(t);
}

Value own_value(const TraceContext& context, const TracerObject* t) {
  if (t->context == &context) return t->value;
  if (!t->context->finished) return {};
  for (const StandIn& s : context.stand_ins)
    if (s.value == t->value && !s.context.owner_before(t->owner) &&
        !t->owner.owner_before(s.context))
      return s.input;
  return {};
}

std::vector<ContextRef>& context_stack() {
  thread_local std::vector<ContextRef> stack;
  return stack;
}

ContextRef context_for(std::span<const Operand> operands, bool innermost) {
  std::vector<ContextRef>& stack = context_stack();
  for (const Operand& x : operands) {
    if (x.kind != OperandKind::kTracer) continue;
    TracerObject* t = as_tracer(x.object);
    if (!stack.empty() && t->context == stack.back().get()) continue;
    bool open = false;
    for (const ContextRef& c : stack) open |= static_cast<bool>(own_value(*c, t));
    if (!open) raise_leaked(t);
  }
  if (innermost && !stack.empty() && stack.back()->kind != ContextKind::kEager) return stack.back();
  auto is_traced = [](const Operand& x) { return x.kind == OperandKind::kTracer; };
  for (size_t i = stack.size(); i-- > 0;) {
    const ContextRef& c = stack[i];
    if (c->kind == ContextKind::kEager && std::none_of(operands.begin(), operands.end(), is_traced))
      return nullptr;
    if (c->kind == ContextKind::kStaged) return c;
    for (const Operand& x : operands)
      if (is_traced(x) && own_value(*c, as_tracer(x.object))) return c;
  }
  return nullptr;
}

bool stays_innermost(const OpInfo& op, const AttrsRef& attrs) {
  if (effects_of(op, attrs) & kOrdered) return true;
  if (!attrs) return false;
  auto is_names = [](const Attr& a) { return std::holds_alternative<std::vector<std::string>>(a); };
  const std::vector<Attr>& values = attrs->values();
  return (attrs->holds_graphs() || std::any_of(values.begin(), values.end(), is_names)) &&
         !axis_names_of(attrs).empty();
}

bool stays_innermost(const Graph& graph) {
  return (graph.effects() & kOrdered) || !graph.axis_names().empty();
}

ContextRef innermost_staged() { return context_for({}); }

Value capture(TraceContext& context, PyObject* key, const Ref& object, TypeRef type) {
  auto it = context.captured.find(key);
  if (it != context.captured.end()) return it->second;
  Value v = context.builder.input(type);
  context.captured.emplace(key, v);
  context.captures.push_back(object);
  context.capture_values.push_back(v);
  return v;
}

Value value_in(TraceContext& context, const Operand& x, DType dtype) {
  switch (x.kind) {
    case OperandKind::kTracer: {
      TracerObject* t = as_tracer(x.object);
      if (Value own = own_value(context, t)) return own;
      Value v = capture(context, x.object, Ref::borrow(x.object), t->type);
      set_split(context, v, split_of(x));
      return v;
    }
    case OperandKind::kArray: {
      check_live(as_array(x.object));
      Value v = capture(context, x.object, Ref::borrow(x.object), x.type);
      set_split(context, v, split_of(x));
      return v;
    }
    case OperandKind::kNumpy: {
      auto it = context.captured.find(x.object);
      if (it != context.captured.end()) return it->second;
      Ref array = to_device(x, current_placement());
      Value v = capture(context, array.get(), array, x.type);
      // The NumPy array stands for the same input; holding it keeps its address taken.
      context.captured.emplace(x.object, v);
      context.held.push_back(Ref::borrow(x.object));
      return v;
    }
    case OperandKind::kScalar:
      if (!PyLong_Check(x.object) && is_symbolic_dim(x.object)) {
        Val size = size_value(context.builder, to_int(x.object), x.type->dtype());
        return convert(size, dtype).value;
      }
      return context.builder.literal(scalar_value(x, dtype));
    case OperandKind::kInvalid:
      break;
  }
  throw Error(ErrorKind::kInternal, "operand of an invalid kind");
}

// Tells the table of a context what is known of its inputs by now; false: it has none.
static bool told_inputs(TraceContext& context) {
  if (!context.varying) return false;
  std::vector<Ref> objects = std::move(context.varies_as);
  context.varies_as.clear();
  auto tell = [&](Value input, const Ref& object) {
    std::optional<AxisSet> set = varying_of(classify_abstract(object.get()));
    if (set) context.varying->set(input, *set);
    return set.has_value();
  };
  bool known = true;
  for (uint32_t i = 0; known && i < objects.size(); ++i) known = tell(Value{i}, objects[i]);
  for (; known && context.captures_told < context.captures.size(); ++context.captures_told) {
    Ref value = capture_value(context.captures[context.captures_told]);
    known = tell(context.capture_values[context.captures_told], value);
  }
  if (known) return true;
  context.varying.reset();
  context.varies_unknown = true;
  return false;
}

// By the rules; ops that a user wrote have to follow them, where the axes are explicit.
static void place_results(TraceContext& context, const AttrsRef& attrs, const Values& results) {
  if (!context.placements && attrs)
    for (const Attr& a : attrs->values())
      if (auto* s = std::get_if<ShardingRef>(&a); s && *s && shown_split(*s))
        context.placements = std::make_unique<Placements>(shown_split(*s)->mesh());
  if (!context.placements) return;
  MeshRef set = mesh_that_is_set();
  bool strict =
      !set || set->axes().empty() || set->abstract() == context.placements->mesh()->abstract();
  uint32_t first = results[0].id;
  context.placements->follow(context.builder, first, false);
  context.placements->follow(context.builder, first + static_cast<uint32_t>(results.size()),
                             strict);
}

// What a loop carries, what branches give and the cotangents of rules is found wrong where it is
// made. What is called was traced, and looked at, before.
static void check_varying(TraceContext& context, const OpInfo& op, Value result) {
  if (def(op).call == CallKind::kNone && told_inputs(context)) context.varying->of(result);
}

Values record(TraceContext& context, const OpInfo& op, std::span<const Value> operands,
              const AttrsRef& attrs) {
  context.builder.set_loc(context.locations ? current_loc() : kNoLoc);
  Values results = context.builder.add(op, operands, attrs);
  if (types_tell_places && !results.empty()) place_results(context, attrs, results);
  if (context.varying && attrs && attrs->holds_graphs() && !results.empty())
    check_varying(context, op, results[0]);
  return results;
}

// ---- Explicit axes

namespace {

PyObject* set_current_mesh(PyObject*, PyObject* mesh) {
  return guard([&] {
    mesh_that_is_set() = mesh == Py_None ? nullptr : mesh_of(mesh);
    return Py_NewRef(Py_None);
  });
}

PyObject* split_for_python(PyObject*, PyObject* o) {
  return guard([&] {
    ShardingRef split = split_of(classify_abstract(o));
    bool has_axes = split && !split->mesh()->axes().empty();
    return has_axes ? sharding_object(split).release() : Py_NewRef(Py_None);
  });
}

// varying_of(x) -> the names of the axes over which it varies, over which it is unreduced and over
// which it is reduced; None where that is not known, and within no shard_map.
PyObject* varying_for_python(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    std::vector<std::string> axes = axes_known_to_vary();
    if (axes.empty()) return Py_NewRef(Py_None);
    std::optional<AxisSet> set = varying_of(classify_abstract(o));
    if (!set) return Py_NewRef(Py_None);
    return names_of_axes(axes, *set).release();
  });
}

PyObject* is_on_host(PyObject*, PyObject* o) {
  return guard([&] {
    ShardingRef split = split_of(classify_abstract(o));
    return PyBool_FromLong(split && !split->memory().empty());
  });
}

PyObject* watch_host_memory(PyObject*, PyObject*) {
  return guard([&] {
    types_tell_places = host_memory_is_used = true;
    for (const ContextRef& c : context_stack())
      if (!c->placements) begin_placements(*c);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"watch_host_memory", watch_host_memory, METH_NOARGS,
     "Programs that are traced, now and later, note which values are in the memory of the host."},
    {"set_current_mesh", set_current_mesh, METH_O, "The mesh of the code that runs, or None."},
    {"split_of", split_for_python, METH_O,
     "How a value is split over explicit axes, a Sharding; None if there are none."},
    {"varying_of", varying_for_python, METH_O,
     "The axes of a shard_map over which a value varies, a tuple of names; None if not known."},
    {"is_on_host", is_on_host, METH_O, "Whether a value is in the memory of the host."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

ShardingRef shown_split(ShardingRef sharding) {
  MeshRef mesh = sharding->mesh(), set = mesh_that_is_set();
  // What is split over explicit axes of another mesh stays so, until it meets values of this one.
  bool has_own = mesh->has(AxisType::kExplicit) && set && !same_grid(mesh, set);
  if (set && !set->axes().empty() && !mesh->axes().empty() && !has_own) mesh = set;
  if (mesh->has(AxisType::kExplicit)) return on_explicit_axes(sharding, mesh);
  static MeshRef none = make_mesh({});
  return sharding->memory() == kHostMemory ? on_explicit_axes(sharding, none) : nullptr;
}

ShardingRef split_of(const Operand& x) {
  if (!types_tell_places || !x.object) return nullptr;
  if (is_cell(x.object)) {
    const Ref& value = as_cell(x.object)->value;
    return value ? split_of(classify_abstract(value.get())) : nullptr;
  }
  if (x.kind == OperandKind::kArray) return shown_split(as_array(x.object)->sharding);
  if (x.kind == OperandKind::kTracer) {
    TracerObject* t = as_tracer(x.object);
    Placements* table = t->context->placements.get();
    if (!table) return nullptr;
    if (!t->value.is_literal()) table->follow(t->context->builder, t->value.id + 1, false);
    return shown_split(table->of(t->value));
  }
  if (x.kind != OperandKind::kInvalid || !x.type) return nullptr;
  Ref sharding = Ref::steal(PyObject_GetAttrString(x.object, "_place"));
  Ref core = sharding && sharding.get() != Py_None
                 ? Ref::steal(PyObject_GetAttrString(sharding.get(), "_placement"))
                 : Ref();
  PyErr_Clear();
  ShardingRef found = core ? sharding_of(core.get()) : nullptr;
  if (found) found = shown_split(found);
  Ref space = Ref::steal(PyObject_GetAttrString(x.object, "memory_space"));
  Ref name = space ? Ref::steal(PyObject_GetAttrString(space.get(), "name")) : Ref();
  PyErr_Clear();
  if (!name || !PyUnicode_Check(name.get()) || utf8(name.get()) != "Host") return found;
  ShardingParts parts = found ? found->parts() : ShardingParts{.mesh = make_mesh({})};
  parts.memory = kHostMemory;
  return make_sharding(std::move(parts));
}

void set_split(TraceContext& context, Value v, ShardingRef split) {
  if (!split) return;
  if (!context.placements) context.placements = std::make_unique<Placements>(split->mesh());
  Placements& table = *context.placements;
  table.adopt(split->mesh());
  table.follow(context.builder, v.id + 1, false);
  table.set(v, on_explicit_axes(split, table.mesh()));
}

void begin_placements(TraceContext& context) {
  MeshRef mesh = mesh_that_is_set();
  if (mesh && mesh->has(AxisType::kExplicit))
    context.placements = std::make_unique<Placements>(mesh);
  else if (host_memory_is_used)
    context.placements = std::make_unique<Placements>(make_mesh({}));
}

std::vector<ShardingRef> splits_of(TraceContext& context, std::span<const Value> values) {
  std::vector<ShardingRef> out;
  Placements* table = context.placements.get();
  MeshRef set = mesh_that_is_set();
  bool hidden = set && !set->axes().empty() && !set->has(AxisType::kExplicit);
  bool has_axes = table && !table->mesh()->axes().empty();
  if (!table || (has_axes && (hidden || table->mesh()->is_abstract()))) return out;
  for (Value v : values) {
    if (!v.is_literal()) table->follow(context.builder, v.id + 1, false);
    out.push_back(table->of(v));
  }
  if (!table->any()) out.clear();
  return out;
}

ShardingRef place_of_result(ShardingRef split, TypeRef type, MeshRef mesh) {
  ShardingParts parts = split->parts();
  if (parts.mesh->axes().empty()) {
    if (parts.memory.empty()) return nullptr;
    parts.mesh = mesh;
  } else if (!parts.mesh->has(AxisType::kAuto)) {
    return split;
  }
  if (parts.mesh->size() > 1) parts.dims.resize(type->shape().size());
  for (DimSharding& dim : parts.dims) dim.open = true;
  return make_sharding(std::move(parts));
}

// ---- Axes of a shard_map

AxisSet set_of_axes(const std::vector<std::string>& axes, PyObject* names) {
  AxisSet sets[3] = {};
  for (Py_ssize_t k = 0; k < 3; ++k) {
    Ref own = Ref::checked(PySequence_Tuple(PyTuple_GET_ITEM(names, k)));
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(own.get()); ++j)
      for (size_t i = 0; i < axes.size(); ++i)
        if (utf8(PyTuple_GET_ITEM(own.get(), j)) == axes[i]) sets[k] |= AxisSet{1} << i;
  }
  return sets[0] | as_unreduced(sets[1]) | as_reduced(sets[2]);
}

Ref names_of_axes(const std::vector<std::string>& axes, AxisSet set) {
  AxisSet unreduced = unreduced_of(set), reduced = reduced_of(set);
  Ref out = Ref::checked(PyTuple_New(3));
  Py_ssize_t next = 0;
  for (AxisSet own : {without_marks(set) & ~unreduced & ~reduced, unreduced, reduced}) {
    std::vector<std::string> names;
    for (size_t i = 0; i < axes.size(); ++i)
      if (own >> i & 1) names.push_back(axes[i]);
    PyTuple_SET_ITEM(out.get(), next++, to_tuple(names).release());
  }
  return out;
}

// Of a type, the names that typeof() found.
static std::optional<AxisSet> varying_of_type(PyObject* type) {
  Ref names = Ref::steal(PyObject_GetAttrString(type, "_varying"));
  PyErr_Clear();
  if (!names || !PyTuple_Check(names.get())) return std::nullopt;
  return set_of_axes(axes_known_to_vary(), names.get());
}

std::optional<AxisSet> varying_of(const Operand& x) {
  if (x.kind == OperandKind::kTracer) {
    TracerObject* t = as_tracer(x.object);
    TraceContext& context = *t->context;
    if (!context.varying && !context.varies_unknown) return 0;
    if (context.finished || !told_inputs(context)) return std::nullopt;
    return context.varying->of(t->value);
  }
  if (x.kind != OperandKind::kInvalid) return 0;
  return varying_of_type(x.object);
}

void begin_varying(TraceContext& context, std::vector<Ref> varies_as) {
  begin_varying(context, std::span<const AxisSet>());
  if (context.varying) context.varies_as = std::move(varies_as);
}

void begin_varying(TraceContext& context, std::span<const AxisSet> inputs) {
  std::vector<std::string> axes = axes_known_to_vary();
  if (axes.empty() || axes.size() > kMaxManualAxes) return;
  context.varying = std::make_unique<Varying>(context.builder, std::move(axes));
  context.varies_unknown = false;
  for (uint32_t i = 0; i < inputs.size(); ++i) context.varying->set(Value{i}, inputs[i]);
}

ContextScope::ContextScope(ContextRef context) : depth_(context_stack().size()) {
  context_stack().push_back(std::move(context));
}

ContextScope::~ContextScope() {
  std::vector<ContextRef>& stack = context_stack();
  while (stack.size() > depth_) {
    ContextRef ended = std::move(stack.back());
    stack.pop_back();
    ended->finished = true;  // destroying it may run Python code, which may start other traces
    std::vector<OuterCell> cells = std::move(ended->cells);  // whose tracers would keep the context
  }
}

// "argument x of f": an input that is an argument of the traced function.
static std::string argument_name(const TraceContext& c, uint32_t i) {
  Ref number = Ref::checked(PyLong_FromUnsignedLong(c.arg_numbers.empty() ? i : c.arg_numbers[i]));
  PyObject* described = c.describe.get();
  Ref path = Ref::checked(
      PyTuple_Check(described)
          ? PyObject_CallFunctionObjArgs(hooks.describe.get(), PyTuple_GET_ITEM(described, 0),
                                         PyTuple_GET_ITEM(described, 1),
                                         PyTuple_GET_ITEM(described, 2), number.get(), nullptr)
          : PyObject_CallOneArg(described, number.get()));
  return readable(path.get());
}

void retire(const ContextRef& context) {
  TraceContext& c = *context;
  if (context.use_count() > 1 && c.describe) {
    try {
      for (uint32_t i = 0; i < c.num_args; ++i) c.arg_names.push_back(argument_name(c, i));
    } catch (const PythonError&) {
      PyErr_Clear();  // messages do without
      c.arg_names.clear();
    }
  }
  // Moved out first: what is destroyed may be Python's.
  auto held = std::tuple(std::move(c.describe), std::move(c.captures), std::move(c.inputs),
                         std::move(c.known), std::move(c.held));
  c.captures.clear();
  c.inputs.clear();
  c.known.clear();
  c.held.clear();
  c.varies_as.clear();
  c.captured.clear();
}

void check_leaks(const ContextRef& context) {
  if (context.use_count() == 1 || !is_on(kCheckLeaks)) return;
  PyGC_Collect();  // what only cycles hold is not kept
  if (context.use_count() > 1)
    raise_error("UnexpectedTracerError", "Leaked trace of '", context->name,
                "': expected no value of it to outlive it; got ", context.use_count() - 1,
                " that something still holds",
                "\n  Return it from the traced function instead of storing it outside.");
}

void check_may_trace(std::string_view name) {
  if (!is_on(kNoTracing)) return;
  PyErr_Format(PyExc_RuntimeError, "re-tracing function %s for `jit`, but 'no_tracing' is set",
               std::string(name).c_str());
  throw PythonError{};
}

std::string describe_tracer(TracerObject* t) {
  const TraceContext& c = *t->owner;
  std::string text = cat("a traced ", t->type, " of '", c.name, "'");
  uint32_t i = t->value.id;
  bool is_argument = !t->value.is_literal() && i < c.num_args;
  if (is_argument && (c.describe || i < c.arg_names.size())) {
    text += cat(" (", c.describe ? argument_name(c, i) : c.arg_names[i], ")");
  } else if (t->loc != kNoLoc) {
    text += cat(" (made at ", loc_text(t->loc), ")");
  }
  return text;
}

void init_tracer(PyObject* module, const TypeSlots& shared) {
  std::vector<PyType_Slot> slots = shared.slots;
  auto add = [&](int slot, void* f) { slots.push_back({slot, f}); };
  add(Py_tp_dealloc, reinterpret_cast<void*>(dealloc));
  add(Py_tp_getset, with_getters(shared, own_getset));
  add(Py_tp_members, members);
  add(Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented));
  add(Py_tp_doc, const_cast<char*>("A value of a program that is being traced."));
  add(0, nullptr);
  PyType_Spec spec = {"weft.Tracer", sizeof(TracerObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_BASETYPE,
                      slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw PythonError{};
  tracer_type = reinterpret_cast<PyTypeObject*>(type);
  check(PyModule_AddObjectRef(module, "Tracer", type));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace weft::py
