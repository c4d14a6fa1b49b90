// What a kernel reads of XLA's typed FFI: the layout of a call, as jaxlib's xla/ffi/api/c_api.h has
// it (API 0.3; 0.4 and 0.5 are the same in what stands here). Sizes of structs are for whoever
// knows several layouts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::ffi {

struct Version {
  size_t struct_size;
  void* extensions;
  int32_t major, minor;
};

struct Metadata {
  size_t struct_size;
  Version version;
  uint32_t traits;
  int64_t state_type;
};

struct Extension {
  static constexpr int32_t kMetadata = 1;
  size_t struct_size;
  int32_t type;
  Extension* next;
};

// When a handler is registered it is called with this, to say which API it was made for.
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Buffer {
  static constexpr int32_t kS32 = 4, kF32 = 11, kF64 = 12;
  size_t struct_size;
  Extension* extensions;
  int32_t dtype;
  void* data;
  int64_t rank;
  const int64_t* dims;
};

// Arguments and results.
struct Buffers {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  const int32_t* types;
  Buffer* const* items;
};

struct Scalar {
  int32_t dtype;
  const void* value;
};

// In the order of their names.
struct Attributes {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  const int32_t* types;
  const void* const* names;
  const Scalar* const* items;
};

struct Call {
  size_t struct_size;
  Extension* extensions;
  const void* api;
  void* context;
  int32_t stage;
  Buffers arguments, results;
  Attributes attributes;
  void* future;
};

// Null: success.
using Handler = void*(Call*);

// Whether a call asks, when the handler is registered, for the API that it was made for; answers.
inline bool answers_metadata(const Call* call) {
  if (!call->extensions || call->extensions->type != Extension::kMetadata) return false;
  auto* asked = reinterpret_cast<MetadataExtension*>(call->extensions);
  asked->metadata->version.major = 0;
  asked->metadata->version.minor = 3;
  asked->metadata->traits = 0;
  return true;
}

}  // namespace weft::ffi
