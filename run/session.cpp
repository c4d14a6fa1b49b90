// Sessions, programs and buffers over a plugin. All that a plugin makes is freed by the object that
// holds it, and keeps the client alive that made it.
#include "weft/session.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "plugin.h"
#include "weft/emit.h"
#include "weft/passes.h"

namespace weft {

namespace detail {

class Client {
 public:
  Client(const Plugin& plugin, std::span<const PluginOption> options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { plugin.free(pjrt::kClientDestroy, client); }

  // Throws kIndex.
  size_t checked(int device) const;

  struct Device {
    pjrt::Device* handle;
    int id;
    std::string kind;
  };
  const Plugin& plugin;
  pjrt::Client* client = nullptr;
  std::string platform;
  std::vector<Device> devices;

 private:
  void describe();
};

using ClientRef = std::shared_ptr<const Client>;

struct Held {
  ClientRef client;
  pjrt::Buffer* buffer = nullptr;
  TypeRef type;
  int device;

  // It is there before the plugin's buffer is, which is not lost if there is no memory for more.
  Held(ClientRef c, TypeRef t, int d) : client(std::move(c)), type(t), device(d) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { client->plugin.free(pjrt::kBufferDestroy, buffer); }
};

struct Compiled {
  ClientRef client;
  pjrt::Loaded* loaded;
  int device;
  std::vector<TypeRef> inputs, outputs;
  // Numbers of the inputs whose buffers stay the caller's, and of the others.
  std::vector<int64_t> kept, donated;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { client->plugin.free(pjrt::kLoadedDestroy, loaded); }
};

namespace {

// Numbers of element types; 0 for what plugins have none of.
int element_number(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kI8:
      return 2;
    case DType::kI16:
      return 3;
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 5;
    case DType::kU8:
      return 6;
    case DType::kU16:
      return 7;
    case DType::kU32:
      return 8;
    case DType::kU64:
      return 9;
    case DType::kF16:
      return 10;
    case DType::kF32:
      return 11;
    case DType::kF64:
      return 12;
    case DType::kBF16:
      return 13;
    case DType::kC64:
      return 14;
    case DType::kC128:
      return 15;
    case DType::kF8E5M2:
      return 16;
    case DType::kF8E4M3FN:
      return 17;
    case DType::kF8E4M3B11FNUZ:
      return 18;
    case DType::kF8E5M2FNUZ:
      return 19;
    case DType::kF8E4M3FNUZ:
      return 20;
    case DType::kI4:
      return 21;
    case DType::kU4:
      return 22;
    case DType::kI2:
      return 24;
    case DType::kU2:
      return 25;
    case DType::kF8E4M3:
      return 26;
    case DType::kF8E3M4:
      return 27;
    case DType::kF8E8M0FNU:
      return 28;
    case DType::kF4E2M1FN:
      return 29;
    default:
      return 0;
  }
}

void check_type(TypeRef type) {
  if (!element_number(type->dtype()))
    fail(ErrorKind::kDtype, "expected a dtype that plugins have; got ", type);
}

void check_bytes(TypeRef type, const void* bytes, size_t num_bytes) {
  auto wanted = static_cast<size_t>(host_bytes(type));
  if (num_bytes != wanted || (wanted && !bytes)) {
    fail(ErrorKind::kValue, "expected ", wanted, " bytes for ", type, "; got ",
         bytes || !num_bytes ? cat(num_bytes) : std::string("NULL"));
  }
}

pjrt::NamedValue named(const PluginOption& option) {
  pjrt::NamedValue out{};
  out.head.size = sizeof out;
  out.name = option.name.data();
  out.name_size = option.name.size();
  out.value_size = 1;
  if (auto* text = std::get_if<std::string>(&option.value)) {
    out.kind = pjrt::kString;
    out.text = text->data();
    out.value_size = text->size();
  } else if (auto* integer = std::get_if<int64_t>(&option.value)) {
    out.kind = pjrt::kInt;
    out.integer = *integer;
  } else if (auto* integers = std::get_if<std::vector<int64_t>>(&option.value)) {
    out.kind = pjrt::kInts;
    out.integers = integers->data();
    out.value_size = integers->size();
  } else if (auto* real = std::get_if<float>(&option.value)) {
    out.kind = pjrt::kFloat;
    out.real = *real;
  } else {
    out.kind = pjrt::kBool;
    out.truth = std::get<bool>(option.value);
  }
  return out;
}

// Protocol buffers: fields of numbers, and of bytes.
std::string varint(uint64_t x) {
  std::string out;
  for (; x >= 0x80; x >>= 7) out += static_cast<char>(x | 0x80);
  return out += static_cast<char>(x);
}
std::string number_field(uint64_t field, int64_t x) {
  return varint(field << 3) + varint(static_cast<uint64_t>(x));
}
std::string bytes_field(uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}

// XLA's CompileOptionsProto for a program on one device.
std::string compile_options(int device_id) {
  std::string ids = bytes_field(3, bytes_field(1, varint(static_cast<uint64_t>(device_id))));
  std::string assignment = number_field(1, 1) + number_field(2, 1) + ids;
  std::string build = number_field(1, -1);  // no ordinal: the assignment says which device
  build += number_field(4, 1) + number_field(5, 1) + bytes_field(9, assignment);
  return bytes_field(3, build);
}

// Gives donated inputs to outputs of their types.
std::vector<int> match_donated(const Graph& graph, const std::vector<uint32_t>& donated) {
  std::vector<int> aliases(graph.num_inputs(), -1);
  std::vector<TypeRef> outputs = graph.output_types();
  for (uint32_t input : donated) {
    if (input >= graph.num_inputs()) {
      fail(ErrorKind::kIndex, "expected numbers of ", graph.num_inputs(),
           " inputs to be donated; got ", input);
    }
    auto found = std::find(outputs.begin(), outputs.end(), graph.input_types()[input]);
    if (found == outputs.end() || aliases[input] >= 0) continue;
    aliases[input] = static_cast<int>(found - outputs.begin());
    *found = nullptr;  // taken
  }
  return aliases;
}

void check_is_complete(const EmittedModule& module) {
  if (!module.callbacks.empty() || !module.inspections.empty()) {
    fail(ErrorKind::kNotImplemented,
         "expected a program without calls of functions on the host; got one");
  }
}

}  // namespace

Client::Client(const Plugin& p, std::span<const PluginOption> options) : plugin(p) {
  std::vector<pjrt::NamedValue> values;
  for (const PluginOption& option : options) values.push_back(named(option));
  pjrt::ClientCreate create{};
  create.options = values.data();
  create.num_options = values.size();
  plugin.call(pjrt::kClientCreate, create);
  client = create.client;
  try {
    describe();
  } catch (...) {
    plugin.free(pjrt::kClientDestroy, client);
    throw;
  }
}

void Client::describe() {
  pjrt::GetList<pjrt::Client, char> name{{}, client};
  plugin.call(pjrt::kClientPlatformName, name);
  platform.assign(name.items, name.size);
  pjrt::GetList<pjrt::Client, pjrt::Device*> list{{}, client};
  plugin.call(pjrt::kClientAddressableDevices, list);
  for (size_t i = 0; i < list.size; ++i) {
    pjrt::Get<pjrt::Device, pjrt::Description*> description{{}, list.items[i]};
    plugin.call(pjrt::kDeviceDescription, description);
    pjrt::Get<pjrt::Description, int> id{{}, description.result};
    plugin.call(pjrt::kDescriptionId, id);
    pjrt::GetList<pjrt::Description, char> kind{{}, description.result};
    plugin.call(pjrt::kDescriptionKind, kind);
    devices.push_back({list.items[i], id.result, std::string(kind.items, kind.size)});
  }
}

size_t Client::checked(int device) const {
  if (device < 0 || static_cast<size_t>(device) >= devices.size())
    fail(ErrorKind::kIndex, "expected the number of one of ", devices.size(), " devices; got ",
         device);
  return static_cast<size_t>(device);
}

}  // namespace detail

using detail::Client;
using detail::ClientRef;
using detail::Compiled;
using detail::Held;

int64_t host_bytes(TypeRef type) {
  return type->num_elements() * std::max(1, info(type->dtype()).bits / 8);
}

Buffer::Buffer(std::unique_ptr<Held> held) : held_(std::move(held)) {}
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer& Buffer::operator=(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;

TypeRef Buffer::type() const { return held_->type; }
int Buffer::device() const { return held_->device; }

bool Buffer::is_donated() const {
  pjrt::Get<pjrt::Buffer, bool> get{{}, held_->buffer};
  held_->client->plugin.call(pjrt::kBufferIsDeleted, get);
  return get.result;
}

void Buffer::wait() const {
  pjrt::Get<pjrt::Buffer, pjrt::Event*> get{{}, held_->buffer};
  held_->client->plugin.call(pjrt::kBufferReadyEvent, get);
  held_->client->plugin.wait(get.result);
}

void Buffer::read(void* bytes, size_t num_bytes) const {
  detail::check_bytes(type(), bytes, num_bytes);
  if (num_bytes == 0)
    return wait();  // a plugin that gets no address says a size, and copies nothing
  auto rank = static_cast<size_t>(type()->rank());
  std::vector<int64_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = static_cast<int64_t>(rank - 1 - i);
  pjrt::Layout layout{};
  layout.head.size = sizeof layout;
  layout.tiled.head.size = sizeof layout.tiled;
  layout.tiled.minor_to_major = order.data();
  layout.tiled.num_dims = rank;
  layout.kind = pjrt::Layout::kTiled;
  pjrt::BufferToHost copy{{}, held_->buffer, &layout, bytes, num_bytes, nullptr};
  held_->client->plugin.call(pjrt::kBufferToHost, copy);
  held_->client->plugin.wait(copy.event);
}

Buffer Buffer::copy_to(int device) const {
  const Client& client = *held_->client;
  pjrt::CopyToDevice copy{{}, held_->buffer, client.devices[client.checked(device)].handle};
  auto held = std::make_unique<Held>(held_->client, type(), device);
  client.plugin.call(pjrt::kBufferCopyToDevice, copy);
  held->buffer = copy.copy;
  return Buffer(std::move(held));
}

Program::Program(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
const std::vector<TypeRef>& Program::input_types() const { return compiled_->inputs; }
const std::vector<TypeRef>& Program::output_types() const { return compiled_->outputs; }

std::vector<Buffer> Program::run(std::span<const Buffer* const> arguments) const {
  const Compiled& program = *compiled_;
  if (arguments.size() != program.inputs.size())
    fail(ErrorKind::kValue, "expected ", program.inputs.size(), " arguments; got ",
         arguments.size());
  std::vector<pjrt::Buffer*> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Held* held = arguments[i] ? arguments[i]->held_.get() : nullptr;
    if (!held) fail(ErrorKind::kValue, "expected a buffer as argument ", i, "; got none");
    if (held->client != program.client)
      fail(ErrorKind::kValue, "expected a buffer of the program's session as argument ", i);
    if (held->type != program.inputs[i])
      fail(ErrorKind::kType, "expected ", program.inputs[i], " as argument ", i, "; got ",
           held->type);
    if (held->device != program.device)
      fail(ErrorKind::kValue, "expected argument ", i, " on device ", program.device,
           "; it is on device ", held->device);
    if (arguments[i]->is_donated())
      fail(ErrorKind::kValue, "expected a buffer as argument ", i, "; a program took it over");
    given.push_back(held->buffer);
  }
  for (int64_t i : program.donated) {
    if (std::count(given.begin(), given.end(), given[static_cast<size_t>(i)]) > 1)
      fail(ErrorKind::kValue, "expected donated argument ", i, " to be given once");
  }
  std::vector<pjrt::Buffer*> made(program.outputs.size());
  std::vector<Buffer> results;
  results.reserve(made.size());
  for (TypeRef type : program.outputs)
    results.push_back(Buffer(std::make_unique<Held>(program.client, type, program.device)));
  pjrt::Buffer* const* argument_list = given.data();
  pjrt::Buffer** output_list = made.data();
  pjrt::ExecuteOptions options{};
  options.head.size = sizeof options;
  options.kept = program.kept.data();
  options.num_kept = program.kept.size();
  pjrt::Execute execute{};
  execute.loaded = program.loaded;
  execute.options = &options;
  execute.arguments = &argument_list;
  execute.num_devices = 1;
  execute.num_arguments = given.size();
  execute.outputs = &output_list;
  program.client->plugin.call(pjrt::kLoadedExecute, execute);
  for (size_t i = 0; i < made.size(); ++i) results[i].held_->buffer = made[i];
  return results;
}

Session::Session(std::string_view plugin, std::span<const PluginOption> options)
    : client_(std::make_shared<Client>(detail::Plugin::open(plugin), options)) {}

std::pair<int, int> Session::api_version() const {
  pjrt::Version version = client_->plugin.version();
  return {version.major, version.minor};
}
const std::string& Session::platform() const { return client_->platform; }
int Session::num_devices() const { return static_cast<int>(client_->devices.size()); }
const std::string& Session::device_kind(int device) const {
  return client_->devices[client_->checked(device)].kind;
}

Program Session::compile(const GraphRef& graph, const CompileOptions& options) const {
  auto program = std::make_shared<Compiled>();
  program->client = client_;
  program->loaded = nullptr;
  program->device = options.device;
  program->inputs.assign(graph->input_types().begin(), graph->input_types().end());
  program->outputs = graph->output_types();
  for (TypeRef type : program->inputs) detail::check_type(type);
  for (TypeRef type : program->outputs) detail::check_type(type);
  int id = client_->devices[client_->checked(options.device)].id;

  EmitOptions emit;
  emit.module_name = options.name;
  emit.platform = client_->platform;
  emit.aliases = detail::match_donated(*graph, options.donated);
  GraphRef optimized = optimize(graph);
  EmittedModule module = emit_stablehlo(*optimized, emit);
  if (!module.targets.empty()) {
    // A program of StableHLO's ops alone, which lets go of no input early.
    emit.platform = "portable";
    std::fill(emit.aliases.begin(), emit.aliases.end(), -1);
    module = emit_stablehlo(*optimized, emit);
  }
  for (size_t i = 0; i < emit.aliases.size(); ++i)
    (emit.aliases[i] < 0 ? program->kept : program->donated).push_back(static_cast<int64_t>(i));
  detail::check_is_complete(module);

  constexpr std::string_view kFormat = "mlir";
  std::string settings = detail::compile_options(id);
  pjrt::Code code{{sizeof code, nullptr},
                  module.text.data(),
                  module.text.size(),
                  kFormat.data(),
                  kFormat.size()};
  pjrt::Compile compile{{}, client_->client, &code, settings.data(), settings.size(), nullptr};
  client_->plugin.call(pjrt::kClientCompile, compile);
  program->loaded = compile.loaded;
  return Program(std::move(program));
}

Buffer Session::put(TypeRef type, const void* bytes, size_t num_bytes, int device) const {
  detail::check_type(type);
  detail::check_bytes(type, bytes, num_bytes);
  pjrt::BufferFromHost copy{};
  copy.client = client_->client;
  copy.bytes = bytes;
  copy.element = detail::element_number(type->dtype());
  copy.dims = type->shape().data();
  copy.num_dims = type->shape().size();
  copy.use = pjrt::kOnlyDuringCall;
  copy.device = client_->devices[client_->checked(device)].handle;
  auto held = std::make_unique<Held>(client_, type, device);
  client_->plugin.call(pjrt::kClientBufferFromHost, copy);
  held->buffer = copy.buffer;
  client_->plugin.wait(copy.done);
  return Buffer(std::move(held));
}

}  // namespace weft
