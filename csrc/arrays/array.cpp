// The Array type. What is not needed at speed (repr, pickling, conversions)
// is written in Python (python/weft/_array.py) and set on the type.

#include "arrays/array.h"

#include <structmember.h>

#include <string_view>

#include "conversions/dtypes.h"
#include "conversions/location.h"
#include "conversions/sharding_object.h"
#include "references/cache_key.h"
#include "references/hooks.h"
#include "references/lru_table.h"
#include "weft/hash.h"

namespace weft::py {

PyTypeObject* array_type;

Ref& unfinished_run() {
  static auto* result = new Ref;
  return *result;
}

namespace {

ArrayObject* live_head = nullptr;
size_t live_count = 0;

void link(ArrayObject* a) {
  a->prev = nullptr;
  a->next = live_head;
  if (live_head) live_head->prev = a;
  live_head = a;
  ++live_count;
}

void unlink(ArrayObject* a) {
  (a->prev ? a->prev->next : live_head) = a->next;
  if (a->next) a->next->prev = a->prev;
  --live_count;
}

void leave_twins(ArrayObject* a) {
  if (a->twins && --*a->twins == 0) delete a->twins;
  a->twins = nullptr;
}

void dealloc(PyObject* self) {
  ArrayObject* a = as_array(self);
  leave_twins(a);
  unlink(a);  // before the rest: what weak references call may ask for all live arrays
  if (a->weakrefs) PyObject_ClearWeakRefs(self);
  Py_XDECREF(a->buffer);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* get_committed(PyObject* self, void*) {
  return PyBool_FromLong(as_array(self)->committed);
}
PyObject* get_device(PyObject* self, void*) {
  return guard([&] {
    ShardingRef s = as_array(self)->sharding;
    if (s->mesh()->size() == 1)
      return Py_NewRef(device_table()[static_cast<size_t>(first_device(s))].device.get());
    return Ref::checked(PyObject_GetAttr(self, name("sharding"))).release();
  });
}
PyObject* get_placement(PyObject* self, void*) {
  return guard(
      [&] { return sharding_object(as_array(self)->sharding, as_array(self)->entries).release(); });
}
// jaxlib dies of some uses of one that was deleted.
PyObject* get_buffer_object(PyObject* self, void*) {
  return guard([&] {
    check_live(as_array(self));
    return Py_NewRef(as_array(self)->buffer);
  });
}

PyObject* block_until_ready(PyObject* self, PyObject*) {
  return guard([&] {
    check_live(as_array(self));
    Ref buffer = Ref::borrow(as_array(self)->buffer);
    of_run(PyObject_CallMethodNoArgs(buffer.get(), name("block_until_ready")));
    if (unfinished_run().get() == buffer.get()) unfinished_run() = Ref();
    return Py_NewRef(self);
  });
}

PyObject* delete_buffer(PyObject* self, PyObject*) {
  return guard([&] {
    ArrayObject* a = as_array(self);
    // Not jaxlib's own deletion, which ends the process if a DLPack capsule shares the memory.
    if (!a->deleted) give_up(a);
    return Py_NewRef(Py_None);
  });
}

PyObject* is_deleted(PyObject* self, PyObject*) { return PyBool_FromLong(as_array(self)->deleted); }

PyObject* value(PyObject* self, PyObject*) {
  return guard([&] {
    ArrayObject* a = as_array(self);
    // The host shares the memory of a CPU.
    if (kGuardToHost.of(settings()) &&
        device_table()[static_cast<size_t>(first_device(a->sharding))].platform != "cpu")
      guard_transfer(kGuardToHost, a->type);
    return to_numpy(a).release();
  });
}

// A format of jaxlib's with native codes, which memoryview can index; the sizes are the same as the
// standard ones. Of the two codes for 64 bits NumPy's int64 has the first, which other extension
// modules insist on.
const char* native_format(const char* format) {
  if (*format == '=') ++format;
  std::string_view code = format;
  if (sizeof(long) == sizeof(long long) && code == "q") return "l";
  if (sizeof(long) == sizeof(long long) && code == "Q") return "L";
  return format;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guard_int([&] {
    ArrayObject* a = as_array(self);
    check_live(a);
    check_readable(a);
    // Dtypes that the buffer protocol cannot express raise BufferError here; NumPy then falls back
    // to __array__.
    DType dtype = a->type->dtype();
    if (dtype == DType::kFloat0 || is_key(dtype)) {
      PyErr_Format(PyExc_BufferError, "%s has no memory to share",
                   std::string(numpy_name(dtype)).c_str());
      throw PythonError{};
    }
    check(PyObject_GetBuffer(a->buffer, view, flags));
    if (view->format) view->format = const_cast<char*>(native_format(view->format));
    return 0;
  });
}

bool is_readable(ArrayObject* a) {
  const DeviceSet& devices = *place_of(a->sharding).devices;
  if (!a->sharding->unreduced().empty()) return false;
  return devices.is_local ||
         (a->sharding->is_replicated() && PyList_GET_SIZE(devices.addressable.get()) > 0);
}
PyObject* get_is_readable(PyObject* self, void*) {
  return guard([&] { return PyBool_FromLong(is_readable(as_array(self))); });
}

const PyGetSetDef own_getset[] = {
    {"committed", get_committed, nullptr, "Whether the array was put on its device by name.",
     nullptr},
    {"device", get_device, nullptr,
     "The device that holds the array, or its sharding over several.", nullptr},
    {"_placement", get_placement, nullptr, nullptr, nullptr},
    {"_is_readable", get_is_readable, nullptr, nullptr, nullptr},
    {"_buffer", get_buffer_object, nullptr, nullptr, nullptr}};

PyMethodDef methods[] = {
    {"block_until_ready", block_until_ready, METH_NOARGS,
     "Waits until the value is there (or raises what computing it raised); returns the array."},
    {"delete", delete_buffer, METH_NOARGS,
     "Gives the buffer up, which frees it unless its memory is shared; later uses raise."},
    {"is_deleted", is_deleted, METH_NOARGS, "Whether the buffer was deleted or donated."},
    {"_value", value, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// float0 has no elements to keep: its buffers are of bools, all false.
Ref float0_values(TypeRef type, PyObject* dtype) {
  static PyObject* zeros = [] {
    Ref numpy = Ref::checked(PyImport_ImportModule("numpy"));
    return Ref::checked(PyObject_GetAttrString(numpy.get(), "zeros")).release();
  }();
  Ref shape = to_tuple(type->shape());
  return Ref::checked(PyObject_CallFunctionObjArgs(zeros, shape.get(), dtype, nullptr));
}

// Tables of what is made from types, for jaxlib.
constexpr size_t kMaxTypes = 1024;

// What the addressable devices hold, in the order of jaxlib's list of them: None where that is all;
// else per device a tuple of slices.
Ref blocks_of(ShardingRef sharding, TypeRef type) {
  return sharding->is_replicated() ? Ref::borrow(Py_None) : shard_indices(sharding, type, true);
}

// The object that jaxlib reads shape and dtype from.
Ref aval_for(TypeRef type) {
  static auto* avals = new LruTable<TypeRef, Ref>("avals", kMaxTypes);
  auto same = [&](TypeRef known) { return known == type; };
  uint64_t hash = hash_pointer(type);
  if (auto known = avals->find(hash, same)) return *known;
  Ref shape = to_tuple(type->shape());
  Ref aval = Ref::checked(PyObject_CallFunctionObjArgs(hooks.make_aval.get(), shape.get(),
                                                       numpy_dtype(type->dtype()), nullptr));
  return *avals->insert(hash, type, std::move(aval));
}

}  // namespace

ArrayObject* array_argument(PyObject* o, const char* function) {
  if (!is_array(o))
    raise_error("OperandError", "[", function, "] expected an Array; got ", Py_TYPE(o)->tp_name);
  return as_array(o);
}

PyObject* make_array(PyObject* buffer, TypeRef type, bool weak, ShardingRef sharding,
                     bool committed) {
  ArrayObject* a = PyObject_New(ArrayObject, array_type);
  if (!a) {
    Py_DECREF(buffer);
    throw PythonError{};
  }
  a->buffer = buffer;
  a->type = type;
  a->twins = nullptr;
  a->weakrefs = nullptr;
  a->sharding = sharding;
  a->entries = kAsNeeded;
  a->weak = weak;
  a->committed = committed;
  a->shared = false;
  a->deleted = false;
  a->deleted_at = kNoLoc;
  link(a);
  return reinterpret_cast<PyObject*>(a);
}

TypeRef buffer_type(TypeRef type) {
  DType dtype = type->dtype();
  if (dtype == DType::kFloat0) return with_dtype(type, DType::kBool);
  if (!is_key(dtype)) return type;
  Dims shape = type->shape();
  shape.push_back(key_words(dtype));
  return make_type(DType::kU32, shape);
}

namespace {

// What each addressable device holds of a value of the host, a list.
Ref shards_of(PyObject* data, TypeRef type, const Place& place) {
  Py_ssize_t count = PyList_GET_SIZE(place.devices->addressable.get());
  Ref xs = Ref::checked(PyList_New(count));
  Ref indices = blocks_of(place.sharding, type);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref part = indices.get() == Py_None
                   ? Ref::borrow(data)
                   : Ref::checked(PyObject_GetItem(data, PyList_GET_ITEM(indices.get(), i)));
    // jaxlib fails on parts that share memory, unless each is all.
    if (part.get() != data)
      part = Ref::checked(PyObject_CallMethodNoArgs(part.get(), name("copy")));
    PyList_SET_ITEM(xs.get(), i, part.release());
  }
  return xs;
}

// `data` is of the buffer's type.
PyObject* put_buffer(PyObject* data, TypeRef type, ShardingRef sharding) {
  Place& place = place_of(sharding);
  Ref xs;
  if (place.on_one_device() && place.devices->is_local) {
    xs = Ref::checked(PyList_New(1));
    PyList_SET_ITEM(xs.get(), 0, Py_NewRef(data));
  } else {
    xs = shards_of(data, type, place);
  }
  Ref aval = aval_for(type);
  PyObject* args[] = {aval.get(),
                      jaxlib_sharding(place, type->shape().size()),
                      xs.get(),
                      place.devices->addressable.get(),
                      Py_True,
                      Py_False,
                      hooks.put_semantics.get(),
                      Py_True};
  return Ref::checked(PyObject_Vectorcall(hooks.put.get(), args, 8, nullptr)).release();
}

}  // namespace

PyObject* put(PyObject* host, TypeRef type, bool weak, ShardingRef sharding, bool committed) {
  Ref data = Ref::borrow(host);
  TypeRef stored = type;
  if (type->dtype() == DType::kFloat0) {
    stored = buffer_type(type);
    data = float0_values(type, numpy_dtype(DType::kBool));
  }
  return make_array(put_buffer(data.get(), stored, sharding), type, weak, sharding, committed);
}

void check_same(PyObject* host, ShardingRef sharding) {
  const DeviceSet& devices = *place_of(sharding).devices;
  if (devices.is_local) return;
  Ref numbers = to_tuple(Dims(devices.numbers.begin(), devices.numbers.end()));
  Ref::checked(PyObject_CallFunctionObjArgs(hooks.check_same.get(), host, numbers.get(), nullptr));
}

static bool& transfers_are_explicit() {
  thread_local bool are_explicit = false;
  return are_explicit;
}
ExplicitTransfers::ExplicitTransfers() : outer_(std::exchange(transfers_are_explicit(), true)) {}
ExplicitTransfers::~ExplicitTransfers() { transfers_are_explicit() = outer_; }

void guard_transfer(const Setting& guard, TypeRef type) {
  Guard level{static_cast<uint8_t>(guard.of(settings()))};
  if (level == Guard::kAllow) return;
  bool is_explicit = transfers_are_explicit();
  const char* direction = guard.name == kGuardToDevice.name ? "host-to-device"
                          : guard.name == kGuardToHost.name ? "device-to-host"
                                                            : "device-to-device";
  if (level == Guard::kDisallowExplicit || (level == Guard::kDisallow && !is_explicit))
    raise_error("TransferGuardError", "Disallowed ", direction, " transfer of ", type,
                is_explicit ? "" : "\n  Ask for it by name, with weft.device_put or device_get.");
  if (level == Guard::kLogExplicit || (level == Guard::kLog && !is_explicit))
    notice("transferred", {to_text(direction), to_text(cat(type))});
}

Ref cached_scalar(const Literal& x, ShardingRef sharding) {
  constexpr size_t kMaxScalars = 4096;
  static auto* scalars = new LruTable<CacheKey, Ref>("scalars", kMaxScalars);
  CacheKey key;
  key.add({static_cast<int64_t>(x.lo), static_cast<int64_t>(x.hi), static_cast<int64_t>(x.dtype),
           word(sharding)});
  uint64_t hash = key.hash();
  if (auto known = scalars->find(hash, [&](const CacheKey& k) { return k == key; })) return *known;
  Ref array = fresh_scalar(x, sharding, false);
  as_array(array.get())->shared = true;
  return *scalars->insert(hash, std::move(key), std::move(array));
}

Ref numpy_scalar(const Literal& x) {
  DTypeKind k = kind(x.dtype);
  Ref number;
  if (k == DTypeKind::kComplex) {
    number = Ref::checked(PyComplex_FromDoubles(x.as_double(), x.imag()));
  } else if (k == DTypeKind::kFloat) {
    number = Ref::checked(PyFloat_FromDouble(x.as_double()));
  } else if (k == DTypeKind::kUnsigned) {
    number = Ref::checked(PyLong_FromUnsignedLongLong(x.lo));
  } else if (k == DTypeKind::kSigned) {
    number = Ref::checked(PyLong_FromLongLong(x.as_int()));
  } else {
    number = Ref::borrow(x.as_bool() ? Py_True : Py_False);
  }
  return Ref::checked(PyObject_CallOneArg(numpy_scalar_type(x.dtype), number.get()));
}

Ref fresh_scalar(const Literal& x, ShardingRef sharding, bool weak) {
  return Ref::steal(put(numpy_scalar(x).get(), scalar_type(x.dtype), weak, sharding, false));
}

namespace {

// On as many devices, each of which holds the same as one here.
Ref copied(ArrayObject* a, ShardingRef sharding) {
  Place& place = place_of(sharding);
  PyObject* there = jaxlib_sharding(place, buffer_type(a->type)->shape().size());
  return of_run(PyObject_CallFunctionObjArgs(hooks.copy_to_device.get(), a->buffer,
                                             place.devices->list.get(), there, nullptr));
}

}  // namespace

void look_at_made(const Ref& array, const char* what) {
  Ref::checked(PyObject_CallFunction(hooks.look_at_made.get(), "Os", array.get(), what));
}

Ref copy_buffer(ArrayObject* a, bool weak, bool committed, TypeRef type) {
  check_live(a);
  Ref buffer = copied(a, a->sharding);
  Ref copy =
      Ref::steal(make_array(buffer.release(), type ? type : a->type, weak, a->sharding, committed));
  as_array(copy.get())->entries = a->entries;
  return copy;
}

Ref copy_to(ArrayObject* a, ShardingRef sharding, bool weak, bool committed) {
  check_live(a);
  Ref buffer;
  if (place_of(a->sharding).on_one_device() && place_of(sharding).on_one_device()) {
    buffer = copied(a, sharding);
  } else {
    buffer = Ref::steal(put_buffer(stored_value(a).get(), buffer_type(a->type), sharding));
  }
  return Ref::steal(make_array(buffer.release(), a->type, weak, sharding, committed));
}

void check_live(ArrayObject* a, std::string_view what) {
  if (!a->deleted) return;
  raise_error("DeletedArrayError", "expected ", what, "; got a ", a->type,
              " whose buffer was deleted or donated at ", loc_text(a->deleted_at));
}

Ref twin_of(ArrayObject* a, TypeRef type, bool weak, bool committed) {
  Ref twin = Ref::steal(make_array(Py_NewRef(a->buffer), type, weak, a->sharding, committed));
  if (!a->twins) a->twins = new size_t(1);
  ++*a->twins;
  as_array(twin.get())->twins = a->twins;
  as_array(twin.get())->entries = a->entries;
  return twin;
}

void mark_deleted(ArrayObject* a) {
  leave_twins(a);
  a->deleted = true;
  a->deleted_at = current_loc();
}

void give_up(ArrayObject* a) {
  mark_deleted(a);
  Ref buffer = Ref::steal(std::exchange(a->buffer, Py_NewRef(Py_None)));
}

Ref of_run(PyObject* result) {
  if (result || !PyErr_ExceptionMatches(PyExc_RuntimeError)) return Ref::checked(result);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref own_type = Ref::steal(type), own = Ref::steal(value), own_traceback = Ref::steal(traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Ref error = Ref::checked(PyObject_CallOneArg(hooks.call_error.get(), value));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  throw PythonError{};
}

void check_readable(ArrayObject* a) {
  if (is_readable(a)) return;
  if (!a->sharding->unreduced().empty())
    raise_error("NotImplementedRuleError", "expected an array whose parts are added up; got a ",
                a->type, " of ", shown(a->sharding), "\n  weft.reshard adds them up.");
  raise_error("NotAddressableError", "expected an array whose value this process has; got a ",
              a->type, " of which other processes have parts, ", shown(a->sharding),
              "\n  See its addressable_shards, or give it to multihost_utils.process_allgather.");
}

Ref to_numpy(ArrayObject* a) {
  check_live(a);
  if (a->type->dtype() == DType::kFloat0)
    return float0_values(a->type, numpy_dtype(DType::kFloat0));
  if (is_key(a->type->dtype()))
    raise_error("DTypeError", "expected numbers to convert to a NumPy array; got random keys, ",
                a->type, "\n  weft.random.key_data gives their words.");
  return stored_value(a);
}

Ref stored_value(ArrayObject* a) {
  check_live(a);
  check_readable(a);
  TypeRef type = buffer_type(a->type);
  PyObject* dtype = numpy_dtype(type->dtype());
  Ref shape = to_tuple(type->shape());
  if (place_of(a->sharding).on_one_device())
    return of_run(
        PyObject_CallFunctionObjArgs(hooks.to_numpy.get(), a->buffer, dtype, shape.get(), nullptr));
  return of_run(PyObject_CallFunctionObjArgs(hooks.to_numpy.get(), a->buffer, dtype, shape.get(),
                                             blocks_of(a->sharding, type).get(), nullptr));
}

Ref result_handler(TypeRef type, ShardingRef sharding) {
  static auto* handlers = new LruTable<CacheKey, Ref>("result_handlers", kMaxTypes);
  // jaxlib copies the shape into the memory of each array that it makes, and asks for it only where
  // an array is in parts.
  if (place_of(sharding).on_one_device()) type = scalar_type(type->dtype());
  CacheKey key;
  key.add({word(type), word(sharding)});
  uint64_t hash = key.hash();
  if (auto known = handlers->find(hash, [&](const CacheKey& k) { return k == key; })) return *known;
  Ref aval = aval_for(type);
  PyObject* of_jaxlib = jaxlib_sharding(place_of(sharding), type->shape().size());
  Ref handler = Ref::checked(
      PyObject_CallFunctionObjArgs(hooks.make_handler.get(), aval.get(), of_jaxlib, nullptr));
  return *handlers->insert(hash, std::move(key), std::move(handler));
}

PyObject* live_arrays() {
  return guard([&] {
    // Making a list may run a collection, which destroys arrays.
    std::vector<Ref> found;
    found.reserve(live_count);
    for (ArrayObject* a = live_head; a; a = a->next)
      if (!a->deleted) found.push_back(Ref::borrow(reinterpret_cast<PyObject*>(a)));
    Ref out = Ref::checked(PyList_New(static_cast<Py_ssize_t>(found.size())));
    for (size_t i = 0; i < found.size(); ++i)
      PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), found[i].release());
    return out.release();
  });
}

void init_array(PyObject* module, const TypeSlots& shared) {
  std::vector<PyType_Slot> slots = shared.slots;
  auto add = [&](int slot, void* f) { slots.push_back({slot, f}); };
  add(Py_tp_dealloc, reinterpret_cast<void*>(dealloc));
  add(Py_tp_getset, with_getters(shared, own_getset));
  add(Py_tp_methods, methods);
  add(Py_tp_members, members);
  add(Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented));
  add(Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer));
  add(Py_tp_doc, const_cast<char*>("A concrete array: values of one dtype on devices. Immutable."));
  add(0, nullptr);
  PyType_Spec spec = {"weft.Array", sizeof(ArrayObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw PythonError{};
  array_type = reinterpret_cast<PyTypeObject*>(type);
  check(PyModule_AddObjectRef(module, "Array", type));
}

}  // namespace weft::py
