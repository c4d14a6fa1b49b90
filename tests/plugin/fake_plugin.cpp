// A PJRT plugin without a compiler, for what tests cannot make real ones do: fail at a call of the
// test's choice, count what was not freed, have a table of another size. It has three devices.
// Every program gives zeros, but the first output is the first argument.
#include "fake_plugin.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace weft::pjrt {

// Objects are made by malloc, which tests leave alone when they let memory run out.
struct Error {};
struct Event {};
struct Client {};
struct Description {
  int id;
};
struct Device {
  Description description;
};
struct Loaded {
  size_t num_outputs;
};
struct Buffer {
  void* bytes;
  size_t size;
  bool is_deleted;
};

namespace {

test::FakePlugin fake;
std::array<Device, test::kFakeDevices> devices;

template <typename T>
T* make() {
  ++fake.num_objects;
  return static_cast<T*>(std::calloc(1, sizeof(T)));
}
template <typename T>
Error* destroy(void* arguments) {
  --fake.num_objects;
  std::free(static_cast<Use<T>*>(arguments)->object);
  return nullptr;
}

// Wraps functions that can fail.
template <Error* (*kFunction)(void*)>
Error* failing(void* arguments) {
  if (fake.fail_in > 0 && --fake.fail_in == 0) return make<Error>();
  return kFunction(arguments);
}

Buffer* copy_of(const void* bytes, size_t size) {
  auto* buffer = make<Buffer>();
  buffer->bytes = std::calloc(1, size + 1);
  buffer->size = size;
  if (size) std::memcpy(buffer->bytes, bytes, size);
  return buffer;
}

void error_destroy(void* arguments) { destroy<Error>(arguments); }
void error_message(void* arguments) {
  auto* get = static_cast<GetList<const Error, char>*>(arguments);
  get->items = "the fake fails";
  get->size = std::strlen(get->items);
}
Error* error_code(void* arguments) {
  static_cast<Get<const Error, int>*>(arguments)->result = 13;
  return nullptr;
}
Error* nothing(void*) { return nullptr; }
Error* client_create(void* arguments) {
  static_cast<ClientCreate*>(arguments)->client = make<Client>();
  return nullptr;
}
Error* platform_name(void* arguments) {
  auto* get = static_cast<GetList<Client, char>*>(arguments);
  get->items = "cpu";
  get->size = 3;
  return nullptr;
}
Error* addressable_devices(void* arguments) {
  static std::array<Device*, test::kFakeDevices> list;
  for (size_t i = 0; i < list.size(); ++i) {
    devices[i].description.id = test::kFakeDeviceId + static_cast<int>(i);
    list[i] = &devices[i];
  }
  auto* get = static_cast<GetList<Client, Device*>*>(arguments);
  get->items = list.data();
  get->size = list.size();
  return nullptr;
}
Error* device_description(void* arguments) {
  auto* get = static_cast<Get<Device, Description*>*>(arguments);
  get->result = &get->object->description;
  return nullptr;
}
Error* description_id(void* arguments) {
  auto* get = static_cast<Get<Description, int>*>(arguments);
  get->result = get->object->id;
  return nullptr;
}
Error* description_kind(void* arguments) {
  auto* get = static_cast<GetList<Description, char>*>(arguments);
  get->items = "fake";
  get->size = 4;
  return nullptr;
}

// As many as types stand behind the arrow of main.
size_t count_outputs(std::string_view module) {
  std::string_view line = module.substr(module.find("@main("));
  line = line.substr(0, line.find(" {\n"));
  line = line.substr(line.find(" -> "));
  size_t count = 0;
  for (size_t at = 0; (at = line.find("tensor<", at)) != line.npos; ++at) ++count;
  return count;
}

Error* compile(void* arguments) {
  auto* given = static_cast<Compile*>(arguments);
  std::string_view options(given->options, given->options_size);
  fake.compiled_for = static_cast<unsigned char>(options.back());
  given->loaded = make<Loaded>();
  given->loaded->num_outputs = count_outputs({given->code->text, given->code->size});
  return nullptr;
}

Error* buffer_from_host(void* arguments) {
  auto* given = static_cast<BufferFromHost*>(arguments);
  int64_t num_elements = 1;
  for (size_t i = 0; i < given->num_dims; ++i) num_elements *= given->dims[i];
  // Of all dtypes at least one byte; the rest of larger ones does not matter here.
  given->buffer = copy_of(given->bytes, static_cast<size_t>(num_elements));
  given->done = make<Event>();
  return nullptr;
}

Error* execute(void* arguments) {
  auto* given = static_cast<Execute*>(arguments);
  fake.num_kept = static_cast<int64_t>(given->options->num_kept);
  for (size_t i = 0; i < given->loaded->num_outputs; ++i) {
    const Buffer* first = i == 0 && given->num_arguments ? given->arguments[0][0] : nullptr;
    given->outputs[0][i] = first ? copy_of(first->bytes, first->size) : copy_of(nullptr, 0);
  }
  for (size_t i = 0; i < given->num_arguments; ++i) {
    bool is_kept = false;
    for (size_t k = 0; k < given->options->num_kept; ++k)
      is_kept |= given->options->kept[k] == static_cast<int64_t>(i);
    given->arguments[0][i]->is_deleted |= !is_kept;
  }
  return nullptr;
}

Error* buffer_destroy(void* arguments) {
  std::free(static_cast<Use<Buffer>*>(arguments)->object->bytes);
  return destroy<Buffer>(arguments);
}
Error* buffer_is_deleted(void* arguments) {
  auto* get = static_cast<Get<Buffer, bool>*>(arguments);
  get->result = get->object->is_deleted;
  return nullptr;
}
Error* copy_to_device(void* arguments) {
  auto* given = static_cast<CopyToDevice*>(arguments);
  given->copy = copy_of(given->buffer->bytes, given->buffer->size);
  return nullptr;
}
Error* buffer_to_host(void* arguments) {
  auto* given = static_cast<BufferToHost*>(arguments);
  std::memset(given->bytes, 0, given->size);
  std::memcpy(given->bytes, given->buffer->bytes, std::min(given->size, given->buffer->size));
  given->event = make<Event>();
  return nullptr;
}
Error* ready_event(void* arguments) {
  static_cast<Get<Buffer, Event*>*>(arguments)->result = make<Event>();
  return nullptr;
}

Api make_api() {
  Api api{};
  api.head.size = sizeof api;
  api.version = {{sizeof api.version, nullptr}, kMajor, kOldestMinor};
  api.error_destroy = error_destroy;
  api.error_message = error_message;
  auto set = [&](Function f, Error* (*function)(void*)) { api.others[f - kErrorCode] = function; };
  set(kErrorCode, error_code);
  set(kPluginInitialize, nothing);
  set(kEventDestroy, destroy<Event>);
  set(kEventAwait, failing<nothing>);
  set(kClientCreate, failing<client_create>);
  set(kClientDestroy, destroy<Client>);
  set(kClientPlatformName, failing<platform_name>);
  set(kClientAddressableDevices, failing<addressable_devices>);
  set(kClientCompile, failing<compile>);
  set(kClientBufferFromHost, failing<buffer_from_host>);
  set(kDescriptionId, failing<description_id>);
  set(kDescriptionKind, failing<description_kind>);
  set(kDeviceDescription, failing<device_description>);
  set(kLoadedDestroy, destroy<Loaded>);
  set(kLoadedExecute, failing<execute>);
  set(kBufferDestroy, buffer_destroy);
  set(kBufferIsDeleted, failing<buffer_is_deleted>);
  set(kBufferCopyToDevice, failing<copy_to_device>);
  set(kBufferToHost, failing<buffer_to_host>);
  set(kBufferReadyEvent, failing<ready_event>);
  return api;
}
const Api whole_api = make_api();

}  // namespace
}  // namespace weft::pjrt

extern "C" {
__attribute__((visibility("default"))) weft::test::FakePlugin* fake_plugin() {
  if (!weft::pjrt::fake.api) weft::pjrt::fake.api = &weft::pjrt::whole_api;
  return &weft::pjrt::fake;
}
__attribute__((visibility("default"))) const weft::pjrt::Api* GetPjrtApi() {
  return fake_plugin()->api;
}
}
