// Finds the user's line: walks Python frames outwards past the framework's files. What a frame is
// and where an instruction stands is cached per (code object, instruction), so a traced op pays a
// few hash lookups.

#include "location.h"

#include <unordered_map>
#include <utility>

#include "hooks.h"

namespace weft::py {
namespace {

std::string package_directory;
thread_local std::string scope;

struct CodeEntry {
  bool framework;
  std::unordered_map<int, Loc> lines;  // by instruction offset
};

// Keys are owned references, so that an address cannot come to mean another code object. Dropped
// as a whole when programs that create code objects on the fly have filled it.
constexpr size_t kMaxEntries = 8192;
std::unordered_map<PyCodeObject*, CodeEntry> code_cache;

CodeEntry& entry_for(PyCodeObject* code) {
  auto it = code_cache.find(code);
  if (it != code_cache.end()) return it->second;
  if (code_cache.size() >= kMaxEntries) {
    auto old = std::move(code_cache);
    code_cache.clear();
    for (auto& item : old) Py_DECREF(item.first);
  }
  Py_INCREF(code);
  std::string_view file = utf8(code->co_filename);
  bool framework = (!package_directory.empty() && file.starts_with(package_directory)) ||
                   file.starts_with("<frozen");
  return code_cache.emplace(code, CodeEntry{framework, {}}).first->second;
}

void set_package_directory(PyObject* directory) {
  package_directory = std::string(utf8(directory));
  for (auto& item : code_cache) Py_DECREF(item.first);
  code_cache.clear();
}

}  // namespace

void init_location() { hooks.package_directory.on_install(set_package_directory); }

std::string set_scope(std::string name) { return std::exchange(scope, std::move(name)); }

static Loc line_loc() {
  PyFrameObject* top = PyEval_GetFrame();
  if (!top) return kNoLoc;
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(top));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    PyCodeObject* code = PyFrame_GetCode(f);
    CodeEntry& entry = entry_for(code);
    Py_DECREF(code);  // the cache owns one
    if (!entry.framework) {
      int at = PyFrame_GetLasti(f);
      auto it = entry.lines.find(at);
      if (it == entry.lines.end()) {
        Loc loc = make_loc(utf8(code->co_filename), PyFrame_GetLineNumber(f), utf8(code->co_name));
        it = entry.lines.emplace(at, loc).first;
      }
      return it->second;
    }
    frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return kNoLoc;
}

Loc current_loc() {
  Loc loc = line_loc();
  if (scope.empty()) return loc;
  const LocInfo& info = loc_info(loc);
  return make_loc(info.file, info.line, info.function, scope);
}

}  // namespace weft::py
