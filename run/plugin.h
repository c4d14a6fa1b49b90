// An open plugin, and calls of its functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pjrt.h"
#include "weft/session.h"

namespace weft::detail {

class Plugin {
 public:
  // Opens a library; one that is open already is the same plugin. Throws PluginError.
  static const Plugin& open(std::string_view path);

  pjrt::Version version() const { return api_->version; }

  // Calls a function; what it refuses is thrown.
  template <typename Arguments>
  void call(pjrt::Function function, Arguments& arguments) const {
    arguments.head = {sizeof arguments, nullptr};
    if (pjrt::Error* error = api_->function(function)(&arguments)) fail(error);
  }
  // One that frees something: what goes wrong is not told.
  template <typename Object>
  void free(pjrt::Function function, Object* object) const noexcept {
    if (!object) return;
    pjrt::Use<Object> use{{sizeof use, nullptr}, object};
    if (pjrt::Error* error = api_->function(function)(&use)) free_error(error);
  }
  // Waits for an event, and frees it.
  void wait(pjrt::Event* event) const;

 private:
  explicit Plugin(const pjrt::Api* api) : api_(api) {}
  [[noreturn]] void fail(pjrt::Error* error) const;
  void free_error(pjrt::Error* error) const noexcept;

  const pjrt::Api* api_;
};

}  // namespace weft::detail
