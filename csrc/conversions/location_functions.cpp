// Binds what location.h has for Python.

#include "conversions/location_functions.h"

#include "conversions/location.h"
#include "references/bound_text.h"

namespace nb = nanobind;

namespace weft::py {

void bind_location_functions(nb::module_& m) {
  m.def("set_scope", [](std::string name) { return set_scope(std::move(name)); });
  // "file.py:12 (f)", or "" outside of any user code.
  m.def("user_location", [] {
    Loc loc = current_loc();
    return loc == kNoLoc ? std::string() : loc_text(loc);
  });
}

}  // namespace weft::py
