// The table of hooks by name.

#include "references/hooks.h"

#include <vector>

namespace weft::py {
namespace {

std::vector<Hook*>& table() {
  static auto* all = new std::vector<Hook*>;
  return *all;
}

}  // namespace

Hooks& hooks = *new Hooks;

Hook::Hook(const char* name, Kind kind) : name_(name), kind_(kind) { table().push_back(this); }

void Hook::install(PyObject* object) {
  bool fits =
      kind_ == kObject || (kind_ == kClass ? PyType_Check(object) : PyCallable_Check(object));
  if (!fits) {
    PyErr_Format(PyExc_TypeError, "install expected a %s as '%s'; got %R",
                 kind_ == kClass ? "class" : "callable", name_, object);
    throw PythonError{};
  }
  if (listener_) listener_(object);
  object_ = Ref::borrow(object);
}

void Hook::raise_missing() const {
  raise_error("InternalError", "'", name_,
              "' was not installed in weft._core; import weft and weft.numpy first");
}

void reject(const Hook& hook, std::initializer_list<PyObject*> details) {
  std::vector<PyObject*> args(details);
  Ref::checked(PyObject_Vectorcall(hook.get(), args.data(), args.size(), nullptr));
  raise_error("InternalError", "'", hook.name(), "' raised no error");
}

void notice(const char* kind, std::initializer_list<Ref> details) {
  std::vector<PyObject*> args{name(kind)};
  for (const Ref& d : details) args.push_back(d.get());
  Ref::checked(PyObject_Vectorcall(hooks.notice.get(), args.data(), args.size(), nullptr));
}

void install(std::string_view name, PyObject* object) {
  Text known;
  for (Hook* hook : table()) {
    if (hook->name() == name) return hook->install(object);
    known << (known.size() ? ", " : "") << hook->name();
  }
  raise_error("AttributeValueError", "install expected one of ", known.take(), "; got '", name,
              "'");
}

}  // namespace weft::py
