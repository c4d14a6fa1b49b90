// Types of objects that the collector of cycles sees into: the slots that all of them need, made
// from what the object is.
#pragma once

#include <structmember.h>

#include <vector>

#include "references/core.h"

namespace weft::py {

// Makes the type of an Object, a struct that begins with PyObject_HEAD and has the methods
//
//   int visit(visitproc, void*) const   what it holds, for the collector
//   void clear()                        lets go of what may be part of a cycle, but stays usable
//   void release()                      lets go of all
//
// and may have the members `vectorcall` (it can be called), `dict` (it has attributes) and
// `weakrefs` (weak references to it). `flags`, `slots` and `getters` are in addition to those.
template <typename Object>
class ObjectType {
  static constexpr bool kCalls = requires(Object o) { o.vectorcall; };
  static constexpr bool kDict = requires(Object o) { o.dict; };
  static constexpr bool kWeakrefs = requires(Object o) { o.weakrefs; };

  static Object* of(PyObject* o) { return reinterpret_cast<Object*>(o); }

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if constexpr (kDict) Py_VISIT(of(self)->dict);
    return of(self)->visit(visit, arg);
  }
  static int clear(PyObject* self) {
    if constexpr (kDict) Py_CLEAR(of(self)->dict);
    of(self)->clear();
    return 0;
  }
  static void dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    if constexpr (kWeakrefs)
      if (of(self)->weakrefs) PyObject_ClearWeakRefs(self);
    if constexpr (kDict) Py_CLEAR(of(self)->dict);
    of(self)->release();
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
  }

 public:
  static PyTypeObject* make(const char* name, unsigned flags, std::vector<PyType_Slot> slots,
                            std::vector<PyGetSetDef> getters = {}) {
    flags |= Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
    static std::vector<PyMemberDef> members;
    static std::vector<PyGetSetDef> getset;
    getset = std::move(getters);
    auto offset = [&](const char* member, size_t at) {
      members.push_back({member, T_PYSSIZET, static_cast<Py_ssize_t>(at), READONLY, nullptr});
    };
    if constexpr (kCalls) {
      flags |= Py_TPFLAGS_HAVE_VECTORCALL;
      offset("__vectorcalloffset__", offsetof(Object, vectorcall));
      slots.push_back({Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)});
    }
    if constexpr (kDict) {
      getset.push_back(
          {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr});
      offset("__dictoffset__", offsetof(Object, dict));
    }
    if constexpr (kWeakrefs) offset("__weaklistoffset__", offsetof(Object, weakrefs));
    members.push_back({nullptr, 0, 0, 0, nullptr});
    slots.push_back({Py_tp_members, members.data()});
    getset.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
    slots.push_back({Py_tp_getset, getset.data()});
    slots.push_back({Py_tp_traverse, reinterpret_cast<void*>(traverse)});
    slots.push_back({Py_tp_clear, reinterpret_cast<void*>(clear)});
    slots.push_back({Py_tp_dealloc, reinterpret_cast<void*>(dealloc)});
    slots.push_back({0, nullptr});
    PyType_Spec spec = {name, sizeof(Object), 0, flags, slots.data()};
    return reinterpret_cast<PyTypeObject*>(Ref::checked(PyType_FromSpec(&spec)).release());
  }
};

// For Py_tp_descr_get of callables that are methods where they stand in a class.
inline PyObject* bind_method(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

}  // namespace weft::py
