// Sessions: programs on PJRT plugins. WEFT_TEST_PLUGINS has the paths of CPU plugins, with colons
// between them; without it only what fails before a plugin runs is tested.
#include "weft/session.h"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "weft/registry.h"
#include "weft/transforms.h"

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
  return paths;
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
    GraphRef qr = parse("{ lambda ; a:f32[3,3]. let b:f32[3,3] c:f32[3] = geqrf a in (b, c) }");
    CHECK_THROWS(kNotImplemented, "it calls lapack_sgeqrf_ffi", s.compile(qr));
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
