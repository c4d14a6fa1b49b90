// What of the C interface of PJRT plugins weft calls: which function stands where in a plugin's
// table, and the arguments of each. The table and the structs only ever grow at their end, and a
// plugin takes structs that are longer than those it knows: so one form serves all versions from
// kOldestMinor on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::pjrt {

inline constexpr int kMajor = 0;
// The oldest version that has this form, and the newest that is taken; tests run 0.81 and 0.115.
inline constexpr int kOldestMinor = 81;
inline constexpr int kNewestMinor = 117;

// Positions of functions in the table.
enum Function : size_t {
  kErrorCode = 2,
  kPluginInitialize = 3,
  kEventDestroy = 5,
  kEventAwait = 8,
  kClientCreate = 10,
  kClientDestroy = 11,
  kClientPlatformName = 12,
  kClientAddressableDevices = 16,
  kClientCompile = 20,
  kClientBufferFromHost = 22,
  kDescriptionId = 23,
  kDescriptionKind = 26,
  kDeviceDescription = 29,
  kLoadedDestroy = 50,
  kLoadedExecute = 55,
  kBufferDestroy = 58,
  kBufferIsDeleted = 68,
  kBufferCopyToDevice = 69,
  kBufferToHost = 70,
  kBufferReadyEvent = 72,
  kNumFunctions = 73,
};

struct Error;
struct Event;
struct Client;
struct Device;
struct Description;
struct Loaded;
struct Buffer;
struct Memory;

// What every struct begins with.
struct Head {
  size_t size;
  void* extensions;
};

struct Version {
  Head head;
  int major, minor;
};

struct Api {
  Head head;
  Version version;
  // The functions of errors return nothing, all others an error.
  void (*error_destroy)(void* arguments);
  void (*error_message)(void* arguments);
  Error* (*others[kNumFunctions - kErrorCode])(void* arguments);

  auto* function(Function f) const { return others[f - kErrorCode]; }
};
static_assert(offsetof(Api, others) == 40 + 2 * sizeof(void*));

enum OptionKind : int { kString, kInt, kInts, kFloat, kBool };

struct NamedValue {
  Head head;
  const char* name;
  size_t name_size;
  OptionKind kind;
  union {
    const char* text;
    int64_t integer;
    const int64_t* integers;
    float real;
    bool truth;
  };
  size_t value_size;  // of texts and lists; else 1
};
static_assert(sizeof(NamedValue) == 56 && offsetof(NamedValue, text) == 40);

// Functions whose arguments are an object, and at most one result.
template <typename Object, typename Result>
struct Get {
  Head head;
  Object* object;
  Result result;  // out
};
template <typename Object>
struct Use {
  Head head;
  Object* object;
};
// Those whose result is a list or a text, which lives as long as the object.
template <typename Object, typename Item>
struct GetList {
  Head head;
  Object* object;
  const Item* items;  // out
  size_t size;        // out
};

struct ClientCreate {
  Head head;
  const NamedValue* options;
  size_t num_options;
  // Stores that processes share.
  void *get, *get_argument, *put, *put_argument;
  Client* client;  // out
  void *try_get, *try_get_argument;
};
static_assert(sizeof(ClientCreate) == 88);

struct Code {
  Head head;
  const char* text;
  size_t size;
  const char* format;
  size_t format_size;
};
static_assert(sizeof(Code) == 48);

struct Compile {
  Head head;
  Client* client;
  const Code* code;
  const char* options;  // a CompileOptionsProto
  size_t options_size;
  Loaded* loaded;  // out
};
static_assert(sizeof(Compile) == 56);

// When the plugin is done with memory of the host.
enum HostUse : int { kOnlyDuringCall = 0 };

struct BufferFromHost {
  Head head;
  Client* client;
  const void* bytes;
  int element;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* strides;
  size_t num_strides;
  HostUse use;
  Device* device;
  Memory* memory;
  void* layout;
  Event* done;     // out
  Buffer* buffer;  // out
};
static_assert(sizeof(BufferFromHost) == 120);

// Dimensions in order, those that vary fastest first; or strides.
struct Layout {
  Head head;
  struct Tiles {
    Head head;
    const int64_t* minor_to_major;
    size_t num_dims;
    const int64_t* tiles;
    const size_t* tile_sizes;
    size_t num_tiles;
  } tiled;
  enum Kind : int { kTiled, kStrides } kind;
};
static_assert(sizeof(Layout) == 80 && offsetof(Layout, kind) == 72);

struct BufferToHost {
  Head head;
  Buffer* buffer;
  Layout* layout;
  void* bytes;
  size_t size;
  Event* event;  // out
};
static_assert(sizeof(BufferToHost) == 56);

struct CopyToDevice {
  Head head;
  Buffer* buffer;
  Device* device;
  Buffer* copy;  // out
};

struct ExecuteOptions {
  Head head;
  void *send, *receive;
  size_t num_send, num_receive;
  int launch;
  const int64_t* kept;  // numbers of inputs whose buffers must not be donated
  size_t num_kept;
  void* context;
  const char* call_location;
  size_t num_tasks;
  int* tasks;
  int64_t* incarnations;
  // From here on of versions after kOldestMinor.
  void* slices;
  bool major_to_minor;
  void* callbacks;
  size_t num_callbacks;
};
static_assert(offsetof(ExecuteOptions, kept) == 56 && sizeof(ExecuteOptions) == 144);

struct Execute {
  Head head;
  Loaded* loaded;
  ExecuteOptions* options;
  Buffer* const* const* arguments;
  size_t num_devices;
  size_t num_arguments;
  Buffer** const* outputs;  // in and out
  Event** complete;         // in and out
  Device* device;
};
static_assert(sizeof(Execute) == 80);

}  // namespace weft::pjrt
