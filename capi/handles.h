// What the parts of the C API share: its handles, errors, and checks of arguments.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "weft/c_api.h"
#include "weft/session.h"
#include "weft/weft.h"

struct weft_error {
  weft_error_kind kind;
  std::string message;
  weft::TextPlace place;
};

struct weft_graph {
  weft::GraphRef graph;
};

namespace weft::capi {

// An argument that a function does not take.
struct BadArgument {
  std::string message;
};

inline weft_error_kind kind_of(weft::ErrorKind kind) {
  switch (kind) {
    case weft::ErrorKind::kType:
      return WEFT_ERROR_TYPE;
    case weft::ErrorKind::kDtype:
      return WEFT_ERROR_DTYPE;
    case weft::ErrorKind::kShape:
      return WEFT_ERROR_SHAPE;
    case weft::ErrorKind::kInconclusive:
      return WEFT_ERROR_INCONCLUSIVE;
    case weft::ErrorKind::kValue:
      return WEFT_ERROR_VALUE;
    case weft::ErrorKind::kIndex:
      return WEFT_ERROR_INDEX;
    case weft::ErrorKind::kParse:
      return WEFT_ERROR_PARSE;
    case weft::ErrorKind::kDepth:
      return WEFT_ERROR_DEPTH;
    case weft::ErrorKind::kSharding:
      return WEFT_ERROR_SHARDING;
    case weft::ErrorKind::kNotImplemented:
      return WEFT_ERROR_NOT_IMPLEMENTED;
    case weft::ErrorKind::kInternal:
      return WEFT_ERROR_INTERNAL;
  }
  return WEFT_ERROR_INTERNAL;
}

// What is given where there is no memory for an error; it is not freed.
inline weft_error& out_of_memory() {
  static weft_error error{WEFT_ERROR_MEMORY, "expected memory to be left", {}};
  return error;
}

// Runs f and gives what it throws as an error.
template <typename F>
weft_error* guarded(F&& f) noexcept {
  try {
    try {
      f();
      return nullptr;
    } catch (const weft::PluginError& error) {
      return new weft_error{WEFT_ERROR_PLUGIN, error.what(), {}};
    } catch (const weft::Error& error) {
      return new weft_error{kind_of(error.kind()), error.what(), error.place()};
    } catch (const BadArgument& bad) {
      return new weft_error{WEFT_ERROR_ARGUMENT, bad.message, {}};
    } catch (const std::bad_alloc&) {
      return &out_of_memory();
    } catch (const std::exception& error) {
      return new weft_error{WEFT_ERROR_INTERNAL, error.what(), {}};
    }
  } catch (const std::bad_alloc&) { return &out_of_memory(); }
}

template <typename T>
T& required(T* pointer, const char* name) {
  if (!pointer) throw BadArgument{cat("expected ", name, "; got NULL")};
  return *pointer;
}

inline std::string_view view(weft_text text) {
  if (!text.data && text.size) throw BadArgument{"expected the characters of a text; got NULL"};
  return text.data ? std::string_view(text.data, text.size) : std::string_view();
}

template <typename T>
std::span<const T> list(const T* items, size_t size, const char* name) {
  if (size) required(items, name);
  return {items, size};
}

inline weft::TypeRef type_of(weft_type type) { return reinterpret_cast<weft::TypeRef>(type); }
inline weft_type handle(weft::TypeRef type) { return reinterpret_cast<weft_type>(type); }

inline const weft::GraphRef& graph_of(const weft_graph* graph) {
  return required(graph, "a graph").graph;
}

// A struct of the caller's, which may be shorter or longer than ours, as far as both have it.
template <typename T>
T read_struct(const T& given) {
  T own{};
  if (given.struct_size < sizeof(size_t))
    throw BadArgument{cat("expected a struct with its size in front; got ", given.struct_size)};
  std::memcpy(&own, &given, std::min(given.struct_size, sizeof(T)));
  return own;
}

}  // namespace weft::capi
