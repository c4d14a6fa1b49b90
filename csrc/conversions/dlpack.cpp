// DLPack's capsules of version 1.0 and later, made of the older ones that jaxlib gives. The layouts
// are those of DLPack's header, dlpack.h (github.com/dmlc/dlpack), part of its ABI.

#include "conversions/dlpack.h"

#include <memory>

namespace nb = nanobind;

namespace weft::py {
namespace {

struct Device {
  int32_t type;
  int32_t id;
};
struct ElementType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t rank;
  ElementType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct Managed {
  Tensor tensor;
  void* context;
  void (*release)(Managed*);
};
struct Versioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*release)(Versioned*);
  uint64_t flags;
  Tensor tensor;
};

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr uint64_t kIsReadOnly = 1, kIsCopied = 2;

// The owner of the memory is the older tensor, which goes with the new one.
void release(Versioned* v) {
  auto* owner = static_cast<Managed*>(v->context);
  if (owner->release) owner->release(owner);
  delete v;
}

// Whoever consumed the capsule has renamed it, and owns the tensor.
void destroy(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kVersionedName)) return;
  auto* v = static_cast<Versioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
  v->release(v);
}

nb::object versioned(nb::handle capsule, bool copied) {
  auto* owner = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  if (!owner) throw PythonError{};
  auto made = std::make_unique<Versioned>(
      Versioned{1, 0, owner, release, copied ? kIsCopied : kIsReadOnly, owner->tensor});
  Ref result = Ref::checked(PyCapsule_New(made.get(), kVersionedName, destroy));
  // From here on the new capsule owns the tensor.
  made.release();
  check(PyCapsule_SetName(capsule.ptr(), kUsedName));
  return nb::steal(result.release());
}

}  // namespace

void bind_dlpack(nb::module_& m) {
  m.def("versioned_capsule", versioned, nb::arg("capsule"), nb::arg("copied"),
        "A DLPack capsule of version 1.0 of one without a version, which is used up. It is "
        "read-only, unless its memory is a copy that nothing else has.");
}

}  // namespace weft::py
