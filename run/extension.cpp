// Opens extensions.
#include "weft/extension.h"

#include <dlfcn.h>

#include <mutex>
#include <set>

#include "weft/error.h"

namespace weft {

void load_extension(const std::string& path) {
  static std::mutex mutex;
  static auto& loaded = *new std::set<void*>;
  std::lock_guard lock(mutex);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ErrorKind::kValue, "expected an extension; cannot open ", dlerror());
  if (loaded.contains(library)) return;
  void* abi = dlsym(library, "weft_extension_abi");
  void* entry = dlsym(library, "weft_extension");
  if (!abi || !entry)
    fail(ErrorKind::kValue, "expected an extension; ", path, " has no WEFT_EXTENSION()");
  if (*static_cast<const ExtensionAbi*>(abi) != kExtensionAbi) {
    fail(ErrorKind::kValue, "expected an extension that was compiled with the headers of this ",
         "version of weft, and with the same ABI of C++; ", path, " was compiled with others");
  }
  loaded.insert(library);
  reinterpret_cast<void (*)()>(entry)();
}

}  // namespace weft
