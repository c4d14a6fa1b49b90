// The table of ops that Python has seen. Ops live as long as the process: graphs point to them.

#include "graphs/primitive_object.h"

#include <unordered_map>
#include <unordered_set>

#include "references/hooks.h"

namespace weft::py {
namespace {

constexpr const char* kCapsule = "weft.op";

std::unordered_map<const OpInfo*, Ref>& primitives() {
  static auto* all = new std::unordered_map<const OpInfo*, Ref>;
  return *all;
}
std::unordered_set<const OpInfo*>& user_ops() {
  static auto* all = new std::unordered_set<const OpInfo*>;
  return *all;
}

}  // namespace

Ref op_capsule(const OpDef& op) {
  return Ref::checked(PyCapsule_New(const_cast<OpDef*>(&op), kCapsule, nullptr));
}

const OpDef& op_of(PyObject* capsule) {
  auto* op = static_cast<const OpDef*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (!op) throw PythonError{};
  return *op;
}

Ref primitive_object(const OpDef& op) {
  auto known = primitives().find(&op);
  if (known != primitives().end()) return known->second;
  Ref capsule = op_capsule(op);
  Ref made =
      Ref::checked(PyObject_CallMethod(hooks.primitive.get(), "_of_op", "s#OO", op.name.data(),
                                       static_cast<Py_ssize_t>(op.name.size()), capsule.get(),
                                       op.multiple_results ? Py_True : Py_False));
  return primitives().try_emplace(&op, std::move(made)).first->second;
}

void add_user_op(const OpDef& op, PyObject* primitive) {
  user_ops().insert(&op);
  primitives()[&op] = Ref::borrow(primitive);
}

bool is_user_op(const OpInfo& op) { return user_ops().contains(&op); }

}  // namespace weft::py
