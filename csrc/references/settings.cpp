// Settings by name, of the process and of a thread.

#include "references/settings.h"

#include "references/bound_text.h"
#include "references/core.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

const Setting& setting_named(std::string_view name) {
  for (const Setting& s : kSettings)
    if (s.name == name) return s;
  raise_error("AttributeValueError", "expected the name of a setting; got '", name, "'");
}

uint64_t with_setting(uint64_t word, const Setting& s, uint64_t value) {
  if (value > s.mask() >> s.shift)
    raise_error("AttributeValueError", "expected a value of the setting '", s.name, "'; got ",
                value);
  return (word & ~s.mask()) | (value << s.shift);
}

}  // namespace

void bind_settings(nb::module_& m) {
  m.def("get_setting", [](const std::string& name) { return setting_named(name).of(settings()); });
  // None: the thread follows the process again.
  m.def(
      "set_setting",
      [](const std::string& name, nb::handle value) {
        const Setting& s = setting_named(name);
        ThreadConfig& c = thread_config();
        bool unset = value.is_none();
        c.word = with_setting(c.word, s, unset ? 0 : nb::cast<uint64_t>(value));
        c.set = unset ? c.set & ~s.mask() : c.set | s.mask();
      },
      nb::arg("name"), nb::arg("value").none());
  // What the thread has set for itself, for another thread that works for it.
  nb::class_<ThreadConfig>(m, "ThreadSettings", "What a thread has set for itself.");
  m.def("thread_settings", [] { return thread_config(); });
  m.def("use_thread_settings", [](const ThreadConfig& all) { thread_config() = all; });
  m.def("set_global_setting", [](const std::string& name, uint64_t value) {
    const Setting& s = setting_named(name);
    process_config().word = with_setting(process_config().word, s, value);
  });
}

}  // namespace weft::py
