// For python/weft's conversions: what is called once per array, not once per op.

#include "tracing/array_functions.h"

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "conversions/sharding_object.h"
#include "references/bound_text.h"
#include "tracing/operand.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

ShardingRef sharding_argument(nb::handle o, TypeRef type, const char* function) {
  ShardingRef s = sharding_of(o.ptr());
  if (!s)
    raise_error("OperandError", "[", function, "] expected a Sharding of the core; got ",
                Py_TYPE(o.ptr())->tp_name);
  place_of(s);
  check_fit(s, type, function);
  return s;
}

// A new array, which was put where a user wrote.
nb::object placed(PyObject* array, nb::handle sharding) {
  as_array(array)->entries = entries_of(sharding.ptr());
  return nb::steal(array);
}

}  // namespace

void bind_array_functions(nb::module_& m) {
  // Whether an object of another library says that it stands for an array.
  m.def(
      "is_foreign_array", [](nb::handle x) { return is_foreign_array(x.ptr()); },
      nb::arg("x").none());
  // How to make an array of an object, as the end of a message.
  m.def("way_to_array", [](nb::handle x) { return way_to_array(x.ptr()); }, nb::arg("x").none());
  m.def("dtype_names", [] {
    nb::list out;
    for (int i = 0; i < kNumDTypes; ++i) out.append(std::string(kDTypeInfo[i].numpy_name));
    return out;
  });
  m.def(
      "register_key_dtype",
      [](std::string name, int words, nb::handle dtype) { register_key(name, words, dtype.ptr()); },
      nb::arg("name"), nb::arg("words"), nb::arg("dtype"));
  m.def(
      "put",
      [](nb::handle host, bool weak, nb::handle sharding, bool committed) {
        Operand x = classify_operand(host.ptr(), "put");
        if (x.kind != OperandKind::kNumpy && x.kind != OperandKind::kScalar)
          raise_error("OperandError", "[put] expected data of the host; got ",
                      Py_TYPE(host.ptr())->tp_name);
        ShardingRef to = sharding_argument(sharding, x.type, "put");
        guard_transfer(x);
        return placed(put(host_value(x).get(), x.type, weak, to, committed), sharding);
      },
      nb::arg("host"), nb::arg("weak"), nb::arg("sharding"), nb::arg("committed"));
  m.def("wrap_buffer", [](nb::object buffer, nb::tuple shape, nb::object dtype, bool weak,
                          nb::handle sharding, bool committed) {
    Dims dims;
    for (nb::handle d : shape) dims.push_back(to_int(d.ptr()));
    std::optional<DType> d = from_numpy_dtype(dtype.ptr());
    if (!d) fail(ErrorKind::kDtype, "[wrap_buffer] expected a supported dtype");
    TypeRef type = make_type(*d, dims);
    ShardingRef to = sharding_argument(sharding, type, "wrap_buffer");
    Ref stored = to_tuple(buffer_type(type)->shape());
    if (!nb::object(buffer.attr("aval").attr("shape")).equal(nb::borrow(stored.get())))
      raise_error("OperandError", "[wrap_buffer] expected a buffer of shape ",
                  std::span<const int64_t>(buffer_type(type)->shape()));
    return placed(make_array(buffer.release().ptr(), type, weak, to, committed), sharding);
  });
  m.def("explicit_value", [](nb::handle array) {
    ExplicitTransfers by_name;
    array_argument(array.ptr(), "device_get");
    return nb::steal(PyObject_CallMethod(array.ptr(), "_value", nullptr));
  });
  m.def("copy_array", [](nb::handle array) {
    ArrayObject* a = array_argument(array.ptr(), "copy");
    Ref copy = copy_buffer(a, a->weak, a->committed);
    if (debug_flags()) look_at_made(copy, "copy");
    return take(std::move(copy));
  });
  // device_put of a NumPy array.
  m.def("put_explicitly", [](nb::handle host, nb::handle sharding) {
    Operand x = classify_operand(host.ptr(), "device_put");
    ShardingRef to = sharding_argument(sharding, x.type, "device_put");
    ExplicitTransfers by_name;
    guard_transfer(x);
    Ref value = host_value(x);
    check_same(value.get(), to);
    return placed(put(value.get(), x.type, false, to, true), sharding);
  });
  // What a program passes to a function on the host, as an array there, which is no transfer.
  m.def("host_argument", [](nb::handle host, nb::handle sharding) {
    Operand x = classify_operand(host.ptr(), "host_argument");
    ShardingRef to = sharding_argument(sharding, x.type, "host_argument");
    return nb::steal(put(host_value(x).get(), x.type, false, to, true));
  });
  // What each addressable device holds of an array of a shape: a list of (device, index).
  m.def("shards", [](nb::handle sharding, nb::tuple shape, bool addressable_only) {
    Dims dims;
    for (nb::handle d : shape) dims.push_back(to_int(d.ptr()));
    ShardingRef s = sharding_of(sharding.ptr());
    if (!s) raise_error("OperandError", "shards expected a Sharding of the core");
    if (std::string problem = misfit(s, dims); !problem.empty())
      raise_error("ShardingError", problem);
    TypeRef type = make_type(DType::kBool, dims);
    nb::list indices = nb::borrow<nb::list>(shard_indices(s, type, addressable_only).get()), out;
    size_t next = 0;
    for (int32_t number : place_of(s).devices->numbers) {
      const Device& device = device_table()[static_cast<size_t>(number)];
      if (addressable_only && !device.addressable) continue;
      out.append(nb::make_tuple(nb::borrow(device.device.get()), number, indices[next++]));
    }
    return out;
  });
  m.def("jaxlib_sharding", [](nb::handle sharding, size_t rank) {
    ShardingRef s = sharding_of(sharding.ptr());
    if (!s) raise_error("OperandError", "jaxlib_sharding expected a Sharding of the core");
    return nb::borrow(jaxlib_sharding(place_of(s), rank));
  });
  m.def("misfit", [](nb::handle sharding, nb::tuple shape) {
    Dims dims;
    for (nb::handle d : shape) dims.push_back(to_int(d.ptr()));
    ShardingRef s = sharding_of(sharding.ptr());
    if (!s) raise_error("OperandError", "misfit expected a Sharding of the core");
    return misfit(s, dims);
  });
  m.def("live_arrays", [] { return nb::steal(live_arrays()); });
}

}  // namespace weft::py
