// Sessions: programs on PJRT plugins. WEFT_TEST_PLUGINS has the paths of CPU plugins, with colons
// between them; without it only what a plugin without a compiler can show is tested
// (tests/plugin/fake_plugin.cpp).
#include "weft/session.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "fake_plugin.h"
#include "weft/registry.h"
#include "weft/transforms.h"

// How many allocations are granted before one is refused; -1: all are.
static thread_local int64_t granted_allocations = -1;

void* operator new(std::size_t size) {
  if (granted_allocations >= 0 && granted_allocations-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace weft::test {

namespace {

std::vector<std::string> test_plugins() {
  const char* set = std::getenv("WEFT_TEST_PLUGINS");
  std::vector<std::string> paths;
  std::string path;
  for (char c : std::string(set ? set : "") + ':') {
    if (c != ':') {
      path += c;
    } else if (!path.empty()) {
      paths.push_back(std::exchange(path, ""));
    }
  }
  if (paths.empty()) leave_out("WEFT_TEST_PLUGINS names no plugins to run programs with");
  return paths;
}

FakePlugin& fake(const std::string& path = WEFT_FAKE_PLUGIN) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ErrorKind::kInternal, dlerror());
  return *reinterpret_cast<FakePlugin* (*)()>(dlsym(library, "fake_plugin"))();
}

// A session of a plugin, made once: clients have threads.
const Session& session_of(const std::string& plugin) {
  static auto& sessions = *new std::vector<std::pair<std::string, Session>>;
  for (const auto& [path, session] : sessions)
    if (path == plugin) return session;
  std::vector<PluginOption> options;
  return sessions.emplace_back(plugin, Session(plugin, options)).second;
}

template <typename T>
Buffer put(const Session& s, std::string_view type, const std::vector<T>& x, int device = 0) {
  return s.put(parse_type(type), x.data(), x.size() * sizeof(T), device);
}

template <typename T>
std::vector<T> get(const Buffer& b) {
  std::vector<T> x(static_cast<size_t>(b.type()->num_elements()));
  b.read(x.data(), x.size() * sizeof(T));
  return x;
}

std::vector<float> counted(size_t n) {
  std::vector<float> x(n);
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

}  // namespace

TEST(session_says_what_is_no_plugin) {
  CHECK_THROWS(kValue, "cannot open /nowhere/plugin.so", Session("/nowhere/plugin.so"));
  CHECK_THROWS(kValue, "libm.so.6 has no GetPjrtApi", Session("libm.so.6"));
  unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
  CHECK_THROWS(kValue, "or PJRT_NAMES_AND_LIBRARY_PATHS to be set to \"name:path\"", Session());
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "a:/nowhere/a.so,b:/nowhere/b.so", 1);
  CHECK_THROWS(kValue, "cannot open /nowhere/a.so", Session());
  unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
}

TEST(session_looks_at_the_table_of_a_plugin) {
  // A copy, which no other test has opened: a table is looked at once.
  auto copy = std::filesystem::temp_directory_path() / cat("weft-fake-", getpid(), ".so");
  std::filesystem::copy_file(WEFT_FAKE_PLUGIN, copy);
  std::string path = copy.string();
  FakePlugin& plugin = fake(path);
  const pjrt::Api* whole = plugin.api;
  // No more memory than the table says that it has.
  auto* head = static_cast<pjrt::Head*>(std::calloc(1, sizeof(pjrt::Head)));
  head->size = sizeof(pjrt::Head);
  plugin.api = reinterpret_cast<const pjrt::Api*>(head);
  CHECK_THROWS(kValue, "gives a table of 16 bytes, which has no version", Session(path));
  std::free(head);
  pjrt::Api old = *whole;
  plugin.api = &old;
  old.version.minor = pjrt::kOldestMinor - 1;
  CHECK_THROWS(kValue, "of version 0.81 or later", Session(path));
  old = *whole;
  old.head.size -= sizeof(void*);
  CHECK_THROWS(kValue, "has version 0.81 with a table of ", Session(path));
  plugin.api = whole;
  CHECK(Session(path).num_devices() == kFakeDevices);
  CHECK_EQ(plugin.num_objects, int64_t{0});
  std::filesystem::remove(copy);
}

namespace {

constexpr const char* kTwoSums =
    "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add a b d:f32[3] = add c b in (c, d) }";

}  // namespace

TEST(session_names_what_plugins_lack) {
  Session s(WEFT_FAKE_PLUGIN);
  auto refused = [&](const char* program, const char* words) {
    CHECK_THROWS(kNotImplemented, words, s.compile(parse(program)));
  };
  refused("{ lambda ; a:f32[9,9]. let b:f32[9,9] c:f32[8] = hessenberg a in (b, c) }",
          "[hessenberg]");
  refused(
      "{ lambda ; a:f32[3]. let b:f32[3] = ffi_call[result_avals=(f32[3],) target_name=mine] a "
      "in (b,) }",
      "got one of mine");
}

TEST(session_numbers_devices) {
  Session s(WEFT_FAKE_PLUGIN);
  for (int device = 0; device < kFakeDevices; ++device) {
    Program p = s.compile(parse(kTwoSums), {.device = device, .donated = {1}});
    CHECK_EQ(fake().compiled_for, int64_t{kFakeDeviceId + device});
    Buffer a = put<float>(s, "f32[3]", counted(3), device), b = a.copy_to(device);
    std::vector<Buffer> out = p.run({&a, &b});
    CHECK(out.size() == 2 && out[0].device() == device && out[1].device() == device);
    CHECK(fake().num_kept == 1 && b.is_donated() && !a.is_donated());
    int other = (device + 1) % kFakeDevices;
    Buffer moved = a.copy_to(other);
    CHECK_EQ(moved.device(), other);
    CHECK_THROWS(kValue, cat("argument 1 on device ", device, "; it is on device ", other),
                 p.run({&a, &moved}));
  }
  for (int device : {-1, kFakeDevices}) {
    CHECK_THROWS(kIndex, "number of one of 3 devices", put<float>(s, "f32[3]", counted(3), device));
    CHECK_THROWS(kIndex, "number of one of 3", s.compile(parse(kTwoSums), {.device = device}));
    CHECK_THROWS(kIndex, "number of one of 3", s.device_kind(device));
  }
}

// Whichever call of a plugin fails, and whichever allocation, what was made before is freed.
TEST(session_frees_what_it_has_when_something_fails) {
  bool failed = true;
  for (int64_t call = 1; failed; ++call) {
    fake().fail_in = call;
    failed = false;
    try {
      Session s(WEFT_FAKE_PLUGIN);
      Program p = s.compile(parse(kTwoSums));
      Buffer a = put<float>(s, "f32[3]", counted(3)), b = a.copy_to(1), c = b.copy_to(0);
      std::vector<Buffer> out = p.run({&a, &c});
      out[1].wait();
      get<float>(out[0]);
    } catch (const PluginError& error) {
      failed = error.code() == 13 && std::string_view(error.what()) == "the fake fails";
      CHECK(failed);
    }
    CHECK_EQ(fake().num_objects, int64_t{0});
  }
  fake().fail_in = 0;

  Session s(WEFT_FAKE_PLUGIN);
  Program p = s.compile(parse(kTwoSums));
  std::vector<float> x = counted(3);
  TypeRef type = parse_type("f32[3]");
  int64_t before = fake().num_objects;
  failed = true;
  for (int64_t granted = 0; failed; ++granted) {
    failed = false;
    granted_allocations = granted;
    try {
      Buffer a = s.put(type, x.data(), 12), b = a.copy_to(0);
      std::vector<Buffer> out = p.run({&a, &b});
      out[0].read(x.data(), 12);
    } catch (const std::bad_alloc&) { failed = true; }
    granted_allocations = -1;
    CHECK_EQ(fake().num_objects, before);
  }
}

TEST(session_runs_programs) {
  for (const std::string& plugin : test_plugins()) {
    const Session& s = session_of(plugin);
    CHECK(s.platform() == "cpu" && s.num_devices() > 0);
    CHECK_EQ(s.device_kind(0), std::string("cpu"));
    CHECK(s.api_version().first == 0 && s.api_version().second >= 81);

    Buffer a = put<float>(s, "f32[2,3]", counted(6)), b = put<float>(s, "f32[3,2]", counted(6));
    GraphRef matmul = parse(
        "{ lambda ; a:f32[2,3] b:f32[3,2]. let c:f32[2,2] = dot_general[dimension_numbers=(([1], "
        "[0]), ([], []))] a b in (c, a) }");
    std::vector<Buffer> out = s.compile(matmul).run({&a, &b});
    CHECK(get<float>(out[0]) == (std::vector<float>{22, 28, 49, 64}));
    CHECK(get<float>(out[1]) == counted(6));
    CHECK(get<float>(put<float>(s, "f32[0,3]", {})).empty());

    // Without LAPACK.
    constexpr size_t kSize = 40;
    std::vector<float> square(kSize * kSize, 1);
    for (size_t i = 0; i < kSize; ++i) square[(kSize + 1) * i] = 50;
    Buffer spd = put<float>(s, "f32[40,40]", square);
    GraphRef root = parse("{ lambda ; a:f32[40,40]. let b:f32[40,40] = cholesky a in (b,) }");
    Program cholesky = s.compile(root, {.donated = {0}});
    std::vector<float> lower = get<float>(cholesky.run({&spd})[0]);
    float error = 0;
    for (size_t i = 0; i < kSize; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        float sum = 0;
        for (size_t k = 0; k <= j; ++k) sum += lower[kSize * i + k] * lower[kSize * j + k];
        error = std::max(error, std::abs(sum - square[kSize * i + j]));
      }
    }
    CHECK(error < 1e-4f);
    CHECK(!spd.is_donated());

    GraphRef loss = parse(
        "{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[] = reduce_sum[axes=(0,)] b in (c,) }");
    Buffer x = put<float>(s, "f32[3]", counted(3));
    std::vector<Buffer> pair = s.compile(value_and_grad(loss, {0})).run({&x});
    std::vector<float> gradient = get<float>(pair[1]);
    for (size_t i = 0; i < 3; ++i)
      CHECK(std::abs(gradient[i] - std::cos(static_cast<float>(i + 1))) < 1e-6f);

    GraphRef loop = parse(
        "{ lambda ; a:f32[] b:f32[4]. let c:f32[] d:f32[4] = scan[jaxpr={ lambda ; a:f32[] "
        "b:f32[]. "
        "let c:f32[] = add a b in (c, c) } length=4 num_carry=1 num_consts=0 reverse=False "
        "unroll=1] a b in (c, d) }");
    Buffer zero = put<float>(s, "f32[]", {0}), four = put<float>(s, "f32[4]", counted(4));
    std::vector<Buffer> sums = s.compile(loop).run({&zero, &four});
    CHECK(get<float>(sums[1]) == (std::vector<float>{1, 3, 6, 10}));
  }
}

TEST(session_has_every_dtype_of_plugins) {
  for (const std::string& plugin : test_plugins()) {
    const Session& s = session_of(plugin);
    for (int d = 0; d < kNumDTypes; ++d) {
      auto dtype = static_cast<DType>(d);
      TypeRef type = make_type(dtype, Dims{4});
      std::vector<char> bytes(static_cast<size_t>(host_bytes(type)), 1), again(bytes.size());
      if (dtype == DType::kFloat0) {
        CHECK_THROWS(kDtype, "expected a dtype that plugins have; got float0[4]",
                     s.put(type, bytes.data(), bytes.size()));
        continue;
      }
      Buffer b = s.put(type, bytes.data(), bytes.size());
      b.read(again.data(), again.size());
      CHECK(bytes == again);
    }
  }
}

TEST(session_donates_and_copies) {
  for (const std::string& plugin : test_plugins()) {
    const Session& s = session_of(plugin);
    GraphRef add = parse("{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add a b in (c,) }");
    Program step = s.compile(add, {.donated = {0}});
    Buffer a = put<float>(s, "f32[3]", counted(3)), b = put<float>(s, "f32[3]", counted(3));
    std::vector<Buffer> out = step.run({&a, &b});
    CHECK(a.is_donated() && !b.is_donated());
    CHECK(get<float>(out[0]) == (std::vector<float>{2, 4, 6}));
    CHECK_THROWS(kValue, "argument 0; a program took it over", step.run({&a, &b}));
    CHECK_THROWS(kValue, "donated argument 0 to be given once", step.run({&b, &b}));
    CHECK_THROWS(kValue, "", get<float>(a));
    CHECK_THROWS(kIndex, "numbers of 2 inputs to be donated; got 2",
                 s.compile(add, {.donated = {2}}));

    int last = s.num_devices() - 1;
    Buffer moved = b.copy_to(last);
    CHECK_EQ(moved.device(), last);
    CHECK(get<float>(moved) == counted(3));
    Program there = s.compile(add, {.device = last});
    std::vector<Buffer> sum = there.run({&moved, &moved});
    CHECK(get<float>(sum[0]) == (std::vector<float>{2, 4, 6}) && sum[0].device() == last);
    if (last > 0)
      CHECK_THROWS(kValue, cat("argument 0 on device ", last, "; it is on device 0"),
                   there.run({&b, &moved}));
    CHECK_THROWS(kIndex, cat("one of ", last + 1, " devices; got ", last + 1), b.copy_to(last + 1));
  }
}

TEST(session_says_what_is_wrong) {
  for (const std::string& plugin : test_plugins()) {
    const Session& s = session_of(plugin);
    GraphRef sine = parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }");
    Program program = s.compile(sine);
    Buffer four = put<float>(s, "f32[4]", counted(4));
    CHECK_THROWS(kValue, "expected 1 arguments; got 0", program.run({}));
    CHECK_THROWS(kType, "expected f32[3] as argument 0; got f32[4]", program.run({&four}));
    CHECK_THROWS(kValue, "expected a buffer as argument 0; got none", program.run({nullptr}));
    CHECK_THROWS(kValue, "expected 12 bytes for f32[3]; got 8",
                 put<float>(s, "f32[3]", counted(2)));
    float few[2];
    CHECK_THROWS(kValue, "expected 16 bytes for f32[4]; got 8", four.read(few, sizeof few));
    CHECK_THROWS(kValue, "expected 16 bytes for f32[4]; got NULL", four.read(nullptr, 16));
    GraphRef large = parse(
        "{ lambda ; . let a:f32[1000000,1000000,1000] = broadcast_in_dim[shape="
        "(1000000, 1000000, 1000) broadcast_dimensions=()] 1.0:f32[] in (a,) }");
    bool refused = false;
    try {
      s.compile(large).run({})[0].wait();
    } catch (const PluginError& error) { refused = error.code() && *error.what(); }
    CHECK(refused);
  }
}

// Each keeps what it needs: the buffer is freed last. Threads share the rest.
TEST(session_is_freed_in_any_order) {
  for (const std::string& plugin : test_plugins()) {
    std::optional<Session> s(std::in_place, plugin);
    std::optional<Program> twice(
        s->compile(parse("{ lambda ; a:f32[3]. let b:f32[3] = add a a in (b,) }")));
    Buffer x = put<float>(*s, "f32[3]", counted(3));
    s.reset();
    std::vector<std::thread> threads;
    std::vector<int> right(4);
    for (int& mine : right) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i)
          mine += get<float>(twice->run({&x})[0]) == std::vector<float>{2, 4, 6};
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(right == std::vector<int>(4, 50));
    twice.reset();
    CHECK(get<float>(x) == counted(3));
  }
}

}  // namespace weft::test
