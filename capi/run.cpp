// The part of the C API that runs programs (weft/run.h), over weft/session.h and weft/arrays.h.
#include "weft/run.h"

#include <limits>
#include <vector>

#include "handles.h"
#include "weft/arrays.h"

struct weft_session {
  weft::Session session;
};

struct weft_buffer {
  weft::Buffer buffer;
};

struct weft_program {
  weft::Program program;
};

struct weft_arrays {
  std::vector<weft::NamedArray> arrays;
};

namespace {

using namespace weft::capi;
using weft::cat;

weft::PluginOption option_of(const weft_session_option& given) {
  std::string name(view(given.name));
  switch (given.kind) {
    case WEFT_OPTION_TEXT:
      return {name, std::string(view(given.text))};
    case WEFT_OPTION_INT:
      return {name, given.integer};
    case WEFT_OPTION_INTS: {
      std::span<const int64_t> all = list(given.integers, given.num_integers, "integers");
      return {name, std::vector<int64_t>(all.begin(), all.end())};
    }
    case WEFT_OPTION_FLOAT:
      return {name, given.real};
    case WEFT_OPTION_BOOL:
      return {name, given.integer != 0};
  }
  throw BadArgument{cat("expected the kind of an option; got ", int{given.kind})};
}

// Sessions check it against the devices that they have.
int device_of(size_t device) {
  constexpr auto kMost = static_cast<size_t>(std::numeric_limits<int>::max());
  return static_cast<int>(std::min(device, kMost));
}

}  // namespace

extern "C" {

weft_error* weft_session_create(const char* plugin, const weft_session_option* options,
                                size_t num_options, weft_session** session) {
  return guarded([&] {
    weft_session*& place = required(session, "a place for the session");
    std::vector<weft::PluginOption> own;
    for (const weft_session_option& option : list(options, num_options, "options"))
      own.push_back(option_of(option));
    place = new weft_session{weft::Session(plugin ? plugin : "", own)};
  });
}
void weft_session_free(weft_session* session) { delete session; }

void weft_session_api_version(const weft_session* session, int* major, int* minor) {
  std::pair<int, int> version;
  if (session) version = session->session.api_version();
  if (major) *major = version.first;
  if (minor) *minor = version.second;
}
weft_text weft_session_platform(const weft_session* session) {
  if (!session) return {};
  return {session->session.platform().data(), session->session.platform().size()};
}
size_t weft_session_num_devices(const weft_session* session) {
  return session ? static_cast<size_t>(session->session.num_devices()) : 0;
}
weft_text weft_session_device_kind(const weft_session* session, size_t device) {
  if (device >= weft_session_num_devices(session)) return {};
  const std::string& kind = session->session.device_kind(static_cast<int>(device));
  return {kind.data(), kind.size()};
}

size_t weft_type_host_bytes(weft_type type) {
  return type ? static_cast<size_t>(weft::host_bytes(type_of(type))) : 0;
}

weft_error* weft_buffer_create(const weft_session* session, weft_type type, const void* bytes,
                               size_t num_bytes, size_t device, weft_buffer** buffer) {
  return guarded([&] {
    const weft::Session& own = required(session, "a session").session;
    required(type, "a type");
    required(buffer, "a place for the buffer") =
        new weft_buffer{own.put(type_of(type), bytes, num_bytes, device_of(device))};
  });
}
void weft_buffer_free(weft_buffer* buffer) { delete buffer; }

weft_type weft_buffer_type(const weft_buffer* buffer) {
  return buffer ? handle(buffer->buffer.type()) : nullptr;
}
size_t weft_buffer_device(const weft_buffer* buffer) {
  return buffer ? static_cast<size_t>(buffer->buffer.device()) : 0;
}
weft_error* weft_buffer_read(const weft_buffer* buffer, void* bytes, size_t num_bytes) {
  return guarded([&] { required(buffer, "a buffer").buffer.read(bytes, num_bytes); });
}
weft_error* weft_buffer_copy(const weft_buffer* buffer, size_t device, weft_buffer** copy) {
  return guarded([&] {
    const weft::Buffer& own = required(buffer, "a buffer").buffer;
    required(copy, "a place for the copy") = new weft_buffer{own.copy_to(device_of(device))};
  });
}

weft_error* weft_session_compile(const weft_session* session, const weft_graph* graph,
                                 const weft_compile_options* options, weft_program** program) {
  return guarded([&] {
    const weft::Session& own = required(session, "a session").session;
    weft_program*& place = required(program, "a place for the program");
    weft::CompileOptions how;
    if (options) {
      weft_compile_options given = read_struct(*options);
      if (given.name.size) how.name = view(given.name);
      how.device = device_of(given.device);
      std::span<const uint32_t> donated = list(given.donated, given.num_donated, "numbers");
      how.donated.assign(donated.begin(), donated.end());
    }
    place = new weft_program{own.compile(graph_of(graph), how)};
  });
}
void weft_program_free(weft_program* program) { delete program; }

weft_error* weft_run(const weft_program* program, const weft_buffer* const* arguments,
                     size_t num_arguments, weft_buffer** outputs, size_t num_outputs) {
  return guarded([&] {
    const weft::Program& own = required(program, "a program").program;
    size_t n = own.output_types().size();
    if (num_outputs < n)
      throw BadArgument{cat("expected room for ", n, " outputs; got ", num_outputs)};
    if (n) required(outputs, "a place for the outputs");
    std::vector<const weft::Buffer*> given;
    for (const weft_buffer* b : list(arguments, num_arguments, "arguments"))
      given.push_back(&required(b, "a buffer").buffer);
    std::vector<std::unique_ptr<weft_buffer>> made;
    for (weft::Buffer& b : own.run(given))
      made.push_back(std::unique_ptr<weft_buffer>(new weft_buffer{std::move(b)}));
    for (size_t i = 0; i < n; ++i) outputs[i] = made[i].release();
  });
}

weft_error* weft_arrays_read(const char* path, weft_arrays** arrays) {
  return guarded([&] {
    required(arrays, "a place for the arrays") =
        new weft_arrays{weft::read_arrays(&required(path, "a path"))};
  });
}
void weft_arrays_free(weft_arrays* arrays) { delete arrays; }

size_t weft_arrays_count(const weft_arrays* arrays) { return arrays ? arrays->arrays.size() : 0; }
weft_text weft_arrays_name(const weft_arrays* arrays, size_t array) {
  if (array >= weft_arrays_count(arrays)) return {};
  const std::string& name = arrays->arrays[array].name;
  return {name.data(), name.size()};
}
weft_type weft_arrays_type(const weft_arrays* arrays, size_t array) {
  return array < weft_arrays_count(arrays) ? handle(arrays->arrays[array].type) : nullptr;
}
const void* weft_arrays_bytes(const weft_arrays* arrays, size_t array) {
  return array < weft_arrays_count(arrays) ? arrays->arrays[array].bytes.data() : nullptr;
}
weft_error* weft_arrays_find(const weft_arrays* arrays, weft_text name, size_t* array) {
  return guarded([&] {
    const std::vector<weft::NamedArray>& all = required(arrays, "arrays").arrays;
    size_t& place = required(array, "a place for the number");
    place = static_cast<size_t>(&weft::find_array(all, view(name)) - all.data());
  });
}
weft_error* weft_arrays_write(const char* path, const weft_text* names, const weft_type* types,
                              const void* const* bytes, size_t num_arrays) {
  return guarded([&] {
    std::vector<weft::NamedArray> arrays;
    std::span<const weft_text> all = list(names, num_arrays, "names");
    list(types, num_arrays, "types");
    list(bytes, num_arrays, "pointers to bytes");
    for (size_t i = 0; i < num_arrays; ++i) {
      required(types[i], "a type");
      size_t size = weft_type_host_bytes(types[i]);
      auto begin = static_cast<const char*>(bytes[i]);
      if (size) required(begin, "the bytes of an array");
      arrays.push_back({std::string(view(all[i])), type_of(types[i]), {begin, begin + size}});
    }
    weft::write_arrays(&required(path, "a path"), arrays);
  });
}

}  // extern "C"
