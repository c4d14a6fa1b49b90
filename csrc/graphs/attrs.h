// Attribute values between Python and the core; generic over schemas.
#pragma once

#include "references/core.h"

namespace weft::py {

// Converts to what the spec asks for; raises OperandError naming op and attribute.
Attr to_attr(std::string_view op, const AttrSpec& spec, PyObject* value);
// Attributes of an op from keyword arguments: `names` is a tuple of str (or null), `values` runs
// parallel to it.
AttrsRef make_attrs(const OpDef& op, PyObject* names, PyObject* const* values);
// The attribute as Python sees it: eqn.params[...].
Ref from_attr(const AttrSpec& spec, const Attr& attr);

// A Python value as an attribute. Equal are values of one type that Python finds equal: 1, 1.0 and
// True make different programs. Tuples and graphs are looked into; anything else has to be
// hashable. A dict stands for the named parameters of an op: it is compared and hashed by its
// items, and prints as name=value.
class PythonObject final : public AttrObject {
 public:
  // `op` and `name` are for the message about a value that cannot be hashed.
  PythonObject(Ref object, std::string_view op, std::string_view name);
  PyObject* get() const { return object_.get(); }
  uint64_t hash() const override { return hash_; }
  // Of None, numbers, strings, tuples and graphs; other values have none.
  uint64_t content_hash() const override;
  bool equals(const AttrObject& other) const override;
  std::string text() const override;

 private:
  Ref object_;
  uint64_t hash_;
};

}  // namespace weft::py
