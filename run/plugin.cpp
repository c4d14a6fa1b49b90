// Opens libraries, and turns what they refuse into errors.
#include "plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "weft/text.h"

namespace weft::detail {

namespace {

constexpr const char* kPathsVariable = "PJRT_NAMES_AND_LIBRARY_PATHS";

// Of "name:path,name:path" the first path.
std::string path_from_environment() {
  const char* set = std::getenv(kPathsVariable);
  std::string_view paths = set ? set : "";
  std::string_view first = paths.substr(0, paths.find(','));
  size_t colon = first.find(':');
  if (colon == std::string_view::npos || colon + 1 == first.size()) {
    throw PluginError(cat("expected the path of a PJRT plugin, or ", kPathsVariable,
                          " to be set to \"name:path\"; got \"", paths, '"'));
  }
  return std::string(first.substr(colon + 1));
}

const pjrt::Api* checked_api(void* library, const std::string& path) {
  void* found = dlsym(library, "GetPjrtApi");
  if (!found) throw PluginError(cat("expected a PJRT plugin; ", path, " has no GetPjrtApi"));
  const pjrt::Api* api = reinterpret_cast<const pjrt::Api* (*)()>(found)();
  if (!api) throw PluginError(cat("expected a PJRT plugin; GetPjrtApi of ", path, " gives NULL"));
  if (api->head.size < offsetof(pjrt::Api, error_destroy)) {
    throw PluginError(cat("expected a PJRT plugin; GetPjrtApi of ", path, " gives a table of ",
                          api->head.size, " bytes, which has no version"));
  }
  auto [major, minor] = std::pair(api->version.major, api->version.minor);
  if (major != pjrt::kMajor || minor < pjrt::kOldestMinor || api->head.size < sizeof(pjrt::Api)) {
    throw PluginError(cat("expected a PJRT plugin of version ", pjrt::kMajor, '.',
                          pjrt::kOldestMinor, " or later (tested to ", pjrt::kMajor, '.',
                          pjrt::kNewestMinor, "); ", path, " has version ", major, '.', minor,
                          " with a table of ", api->head.size, " bytes"));
  }
  return api;
}

}  // namespace

const Plugin& Plugin::open(std::string_view given) {
  std::string path = given.empty() ? path_from_environment() : std::string(given);
  static std::mutex mutex;
  static auto& open = *new std::map<void*, std::unique_ptr<const Plugin>>;
  std::lock_guard lock(mutex);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw PluginError(cat("expected a PJRT plugin; cannot open ", dlerror()));
  std::unique_ptr<const Plugin>& plugin = open[library];
  if (plugin) return *plugin;
  std::unique_ptr<const Plugin> opened(new Plugin(checked_api(library, path)));
  struct {
    pjrt::Head head;
  } nothing;
  opened->call(pjrt::kPluginInitialize, nothing);
  plugin = std::move(opened);
  return *plugin;
}

void Plugin::free_error(pjrt::Error* error) const noexcept {
  pjrt::Use<pjrt::Error> use{{sizeof use, nullptr}, error};
  api_->error_destroy(&use);
}

void Plugin::fail(pjrt::Error* error) const {
  pjrt::GetList<const pjrt::Error, char> message{{sizeof message, nullptr}, error, nullptr, 0};
  api_->error_message(&message);
  std::string text(message.items, message.size);
  pjrt::Get<const pjrt::Error, int> code{{sizeof code, nullptr}, error, 0};
  if (pjrt::Error* again = api_->function(pjrt::kErrorCode)(&code)) free_error(again);
  free_error(error);
  throw PluginError(text, code.result);
}

void Plugin::wait(pjrt::Event* event) const {
  if (!event) return;
  struct Freed {
    const Plugin& plugin;
    pjrt::Event* event;
    ~Freed() { plugin.free(pjrt::kEventDestroy, event); }
  } freed{*this, event};
  pjrt::Use<pjrt::Event> use{{}, event};
  call(pjrt::kEventAwait, use);
}

}  // namespace weft::detail
