// SPDX-License-Identifier: Apache-2.0
// Programs run without Python: a session opens a PJRT plugin (a shared library), compiles graphs
// with it, and runs them on its devices.
//
//   weft::Session session("/usr/lib/pjrt_c_api_cpu_plugin.so");
//   weft::Program step = session.compile(weft::value_and_grad(loss, {0}));
//   weft::Buffer w = session.put(type, bytes, num_bytes);
//   std::vector<weft::Buffer> results = step.run({&w, &x});
//   results[0].read(&loss_value, sizeof loss_value);
//
// Sessions, programs and buffers may be freed in any order: each keeps what it needs. Several
// threads may use them at once; what a program takes over (CompileOptions::donated) must not be in
// use by another thread. Libraries stay open until the process ends.
//
// Errors of a plugin throw PluginError, all others Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/error.h"
#include "weft/graph.h"
#include "weft/type.h"

namespace weft {

// The plugin cannot be opened, is not a plugin or is too old; or the plugin refuses what it is
// asked.
class WEFT_API PluginError : public Error {
 public:
  explicit PluginError(const std::string& message, int code = 0)
      : Error(ErrorKind::kValue, message), code_(code) {}
  // The number that the plugin gave, those of absl::StatusCode; 0 where no call failed.
  int code() const { return code_; }

 private:
  int code_;
};

// What a plugin's client is made with; names are the plugin's own.
struct PluginOption {
  std::string name;
  std::variant<std::string, int64_t, std::vector<int64_t>, float, bool> value;
};

namespace detail {
class Client;
struct Compiled;
struct Held;
}  // namespace detail

// What a value of the type takes on the host: row-major, each element in whole bytes, the low ones
// first.
WEFT_API int64_t host_bytes(TypeRef type);

// An array on a device. Its elements may still be computed: read() waits for them.
class WEFT_API Buffer {
 public:
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  TypeRef type() const;
  int device() const;
  // Whether a program took it over.
  bool is_donated() const;
  // Until the elements are there. Throws PluginError if they could not be computed.
  void wait() const;
  // To the host; num_bytes must be host_bytes(type()).
  void read(void* bytes, size_t num_bytes) const;
  Buffer copy_to(int device) const;

 private:
  friend class Session;
  friend class Program;
  explicit Buffer(std::unique_ptr<detail::Held> held);
  std::unique_ptr<detail::Held> held_;
};

struct CompileOptions {
  std::string name = "jit_f";
  int device = 0;
  // Inputs, by number, whose buffers the program takes over: each for an output of the same type,
  // if there is one left.
  std::vector<uint32_t> donated;
};

// A compiled graph.
class WEFT_API Program {
 public:
  const std::vector<TypeRef>& input_types() const;
  const std::vector<TypeRef>& output_types() const;
  // Returns before the outputs are computed. Arguments are on the program's device.
  std::vector<Buffer> run(std::span<const Buffer* const> arguments) const;
  std::vector<Buffer> run(std::initializer_list<const Buffer*> arguments) const {
    return run(std::span<const Buffer* const>(arguments.begin(), arguments.size()));
  }

 private:
  friend class Session;
  explicit Program(std::shared_ptr<const detail::Compiled> compiled);
  std::shared_ptr<const detail::Compiled> compiled_;
};

class WEFT_API Session {
 public:
  // `plugin` is the path of a library. Where it is empty, it is the first that the environment
  // variable PJRT_NAMES_AND_LIBRARY_PATHS names ("cpu:/path/of.so,other:/path").
  explicit Session(std::string_view plugin = {}, std::span<const PluginOption> options = {});

  std::pair<int, int> api_version() const;
  // "cpu", "cuda", "tpu"
  const std::string& platform() const;
  // Of this process. Devices are numbered from 0 on.
  int num_devices() const;
  const std::string& device_kind(int device) const;

  // Optimises and compiles. A program that would call functions which plugins do not have, such as
  // those of LAPACK, is written in StableHLO alone, as for the platform "portable"; it takes over
  // no buffers. Throws kNotImplemented, with the operation's line, where it cannot be.
  Program compile(const GraphRef& graph, const CompileOptions& options = {}) const;
  // Copies an array from the host; num_bytes must be host_bytes(type).
  Buffer put(TypeRef type, const void* bytes, size_t num_bytes, int device = 0) const;

 private:
  std::shared_ptr<const detail::Client> client_;
};

}  // namespace weft
