// For python/weft's conversions: what is called once per array, not once per op.

#include "array_functions.h"

#include "array.h"
#include "bound_text.h"
#include "dtypes.h"
#include "operand.h"

namespace nb = nanobind;

namespace weft::py {

void bind_array_functions(nb::module_& m) {
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
      [](nb::handle host, bool weak, int device, bool committed) {
        Operand x = classify_operand(host.ptr(), "put");
        if (x.kind != OperandKind::kNumpy && x.kind != OperandKind::kScalar)
          raise_error("OperandError", "[put] expected data of the host; got ",
                      Py_TYPE(host.ptr())->tp_name);
        check_device(device);
        guard_transfer(x);
        return nb::steal(put(host_value(x).get(), x.type, weak, device, committed));
      },
      nb::arg("host"), nb::arg("weak"), nb::arg("device"), nb::arg("committed"));
  m.def("wrap_buffer", [](nb::object buffer, nb::tuple shape, nb::object dtype, bool weak,
                          int device, bool committed) {
    Dims dims;
    for (nb::handle d : shape) dims.push_back(nb::cast<int64_t>(d));
    std::optional<DType> d = from_numpy_dtype(dtype.ptr());
    if (!d) fail(ErrorKind::kDtype, "[wrap_buffer] expected a supported dtype");
    check_device(device);
    if (!nb::object(buffer.attr("aval").attr("shape")).equal(shape))
      raise_error("OperandError", "[wrap_buffer] expected a buffer of shape ",
                  std::span<const int64_t>(dims));
    return nb::steal(
        make_array(buffer.release().ptr(), make_type(*d, dims), weak, device, committed));
  });
  // The array on a device, committed to it.
  m.def("commit", [](nb::handle array, int device) {
    ArrayObject* a = array_argument(array.ptr(), "device_put");
    check_device(device);
    if (a->device == device && a->committed) return nb::borrow(array);
    if (a->device != device) {
      ExplicitTransfers by_name;
      guard_transfer(kGuardBetweenDevices, a->type);
    }
    return take(copy_buffer(a, device, a->weak, true));
  });
  m.def("explicit_value", [](nb::handle array) {
    ExplicitTransfers by_name;
    array_argument(array.ptr(), "device_get");
    return nb::steal(PyObject_CallMethod(array.ptr(), "_value", nullptr));
  });
  m.def("copy_array", [](nb::handle array) {
    ArrayObject* a = array_argument(array.ptr(), "copy");
    return take(copy_buffer(a, a->device, a->weak, a->committed));
  });
  m.def("live_arrays", [] { return nb::steal(live_arrays()); });
}

}  // namespace weft::py
