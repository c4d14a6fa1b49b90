// Finds the user's line: walks Python frames outwards past the framework's files. What a frame is
// and where an instruction stands is cached per (code object, instruction), so a traced op pays a
// few hash lookups.

#include "conversions/location.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "references/hooks.h"
#include "references/lru_table.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

std::string package_directory;
thread_local std::string scope;

struct CodeEntry {
  bool framework;
  std::unordered_map<int, Loc> lines;  // by instruction offset
};

// Keys are owned references, so that an address cannot come to mean another code object.
constexpr size_t kMaxCodes = 8192;
using Table = LruTable<Ref, CodeEntry>;

Table& table() {
  static auto* t = new Table("code_objects", kMaxCodes);
  return *t;
}

Table::Handle entry_for(const Ref& code) {
  uint64_t hash = hash_pointer(code.get());
  auto same = [&](const Ref& known) { return known.get() == code.get(); };
  if (auto known = table().find(hash, same)) return known;
  std::string file = readable(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
  // The framework's context managers stand behind frames of contextlib.
  bool framework = (!package_directory.empty() && file.starts_with(package_directory)) ||
                   file.starts_with("<frozen") || file.ends_with("/contextlib.py");
  return table().insert(hash, code, CodeEntry{framework, {}});
}

// The public functions of the framework: the codes of those that are there, never released, and
// names of those in modules that are loaded when a user asks for one. As many as the sources have.
struct PublicFunctions {
  std::unordered_set<PyObject*> codes;
  std::unordered_set<std::string> names;

  bool has(PyObject* code, PyObject* module) const {
    if (codes.contains(code)) return true;
    if (!module || !PyUnicode_Check(module)) return false;
    PyObject* own = reinterpret_cast<PyCodeObject*>(code)->co_qualname;
    return names.contains(cat(readable(module), ".", readable(own)));
  }
};
PublicFunctions& public_functions() {
  static auto* all = new PublicFunctions;
  return *all;
}

void set_package_directory(PyObject* directory) {
  package_directory = readable(directory);
  table().clear();
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
    Ref object = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    Table::Handle entry = entry_for(object);
    if (!entry->framework) {
      auto* code = reinterpret_cast<PyCodeObject*>(object.get());
      int at = PyFrame_GetLasti(f);
      auto it = entry->lines.find(at);
      if (it == entry->lines.end()) {
        Loc loc = make_loc(readable(code->co_filename), PyFrame_GetLineNumber(f),
                           readable(code->co_name));
        it = entry->lines.emplace(at, loc).first;
      }
      return it->second;
    }
    frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return kNoLoc;
}

// Calls visit(frame, code object) for the frames of the framework around here, from the innermost
// one on, until it returns false.
template <typename Visit>
static void for_own_frames(Visit&& visit) {
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    if (!entry_for(code)->framework || !visit(f, code.get())) return;
    frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
}

bool runs_users_code() {
  bool is_own = false;
  for_own_frames([&](PyFrameObject*, PyObject*) {
    is_own = true;
    return false;
  });
  return !is_own;
}

bool works_for_user(PyObject* callee) {
  int calls = 0;
  if (callee && PyFunction_Check(callee))
    calls = public_functions().has(PyFunction_GET_CODE(callee), PyFunction_GetModule(callee));
  for_own_frames([&](PyFrameObject* frame, PyObject* code) {
    Ref globals = Ref::steal(PyFrame_GetGlobals(frame));
    calls += public_functions().has(code, PyDict_GetItemString(globals.get(), "__name__"));
    return calls <= 1;
  });
  return calls <= 1;
}

void mark_public(PyObject* function_or_name) {
  if (PyUnicode_Check(function_or_name)) {
    public_functions().names.insert(readable(function_or_name));
  } else if (PyFunction_Check(function_or_name)) {
    PyObject* code = PyFunction_GET_CODE(function_or_name);
    if (public_functions().codes.insert(code).second) Py_INCREF(code);
  }
}

Loc current_loc() {
  Loc loc = line_loc();
  if (scope.empty()) return loc;
  const LocInfo& info = loc_info(loc);
  return make_loc(info.file, info.line, info.function, scope);
}

}  // namespace weft::py
