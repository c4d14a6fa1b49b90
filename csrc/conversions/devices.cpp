// Devices that the runtime registers, and which of them new arrays are on.

#include "conversions/devices.h"

#include "conversions/placement.h"
#include "conversions/sharding_object.h"
#include "references/bound_text.h"
#include "references/core.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

Ref ref(nb::handle h) { return Ref::borrow(h.ptr()); }

// Position of a jaxlib device in the device table.
int device_index(nb::handle device) {
  current_placement();  // starts the runtime
  std::deque<Device>& table = device_table();
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].device.get() == device.ptr()) return static_cast<int>(i);
  Ref text = Ref::checked(PyObject_Repr(device.ptr()));
  raise_error("AttributeValueError", "expected a device of weft.devices(); got ",
              readable(text.get()));
}

}  // namespace

void bind_devices(nb::module_& m) {
  m.def(
      "register_device",
      [](nb::object device, std::string platform, bool addressable) {
        auto number = static_cast<int32_t>(device_table().size());
        device_table().push_back(
            {ref(device), device_sharding(number), std::move(platform), addressable});
      },
      nb::arg("device"), nb::arg("platform"), nb::arg("addressable"));
  m.def("current_device", [] { return first_device(current_placement()); });
  m.def("current_placement", [] { return take(sharding_object(current_placement())); });
  // The jaxlib device of new arrays; None if that is the first one.
  m.def("get_default_device", [] {
    int d = default_device();
    return d < 0 ? nb::none() : nb::borrow(device_table()[d].device.get());
  });
  m.def(
      "set_default_device",
      [](nb::handle device) {
        thread_config().default_device =
            device.is_none() ? std::nullopt : std::optional(device_index(device));
      },
      nb::arg("device").none());
  m.def(
      "set_global_default_device",
      [](nb::handle device) {
        process_config().default_device = device.is_none() ? -1 : device_index(device);
      },
      nb::arg("device").none());
  m.def("device_index", [](nb::handle device) { return device_index(device); });
}

}  // namespace weft::py
