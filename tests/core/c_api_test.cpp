// The C API: results and errors of each kind of function, and random sequences of calls with good
// and bad arguments, after which whatever was made passes verify() and is printed and read back.
// Programs are run by a plugin that fails at random (tests/plugin). WEFT_API_CALLS says how many
// sequences there are, WEFT_SEED which.
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "fake_plugin.h"
#include "weft/c_api.h"
#include "weft/run.h"

// Of its own, for names that others of weft have.
namespace c_api_test {

namespace {

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* x) const { kFree(x); }
};
using Graph = std::unique_ptr<weft_graph, Freed<weft_graph, weft_graph_free>>;
using String = std::unique_ptr<weft_string, Freed<weft_string, weft_string_free>>;
using Builder = std::unique_ptr<weft_builder, Freed<weft_builder, weft_builder_free>>;
using SessionHandle = std::unique_ptr<weft_session, Freed<weft_session, weft_session_free>>;
using ProgramHandle = std::unique_ptr<weft_program, Freed<weft_program, weft_program_free>>;
using BufferHandle = std::unique_ptr<weft_buffer, Freed<weft_buffer, weft_buffer_free>>;
using Failure = std::unique_ptr<weft_error, Freed<weft_error, weft_error_free>>;

[[noreturn]] void give_up(const std::string& what) {
  std::cerr << what << '\n';
  std::abort();
}

// Whether a call succeeded. Errors of weft itself are its faults, whatever the input.
bool succeeded(weft_error* error) {
  Failure failure(error);
  if (!failure) return true;
  std::string message = weft_error_message(error);
  if (message.empty() || weft_error_get_kind(error) == WEFT_ERROR_INTERNAL)
    give_up("an error without a cause of the caller's: " + message);
  return false;
}

weft_text text_of(std::string_view s) { return {s.data(), s.size()}; }
std::string string_of(weft_text t) { return {t.data, t.size}; }
std::string string_of(weft_string* s) {
  String owner(s);
  return string_of(weft_string_text(s));
}

std::vector<std::string> test_programs() {
  std::ifstream in(WEFT_TEST_PROGRAMS);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t below(size_t n) { return n ? engine_() % n : 0; }
  bool one_in(size_t n) { return below(n) == 0; }
  template <typename T>
  const T& of(const std::vector<T>& items) {
    return items[below(items.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// What must hold for every graph.
void check(const weft_graph* graph) {
  if (!succeeded(weft_graph_verify(graph))) give_up("a graph that verify() refuses");
  weft_string* text = nullptr;
  weft_graph* again = nullptr;
  if (!succeeded(weft_graph_print(graph, &text))) give_up("a graph that is not printed");
  std::string printed = string_of(text);
  if (!succeeded(weft_graph_parse(text_of(printed), &again)))
    give_up("a program that is not read back:\n" + printed);
  Graph owner(again);
  if (!weft_graph_equal(graph, again))
    give_up("a program that is read back as another:\n" + printed);
}

// A transform, pass or emission of the graph with random arguments, some of them wrong.
Graph derived(Random& random, const weft_graph* graph) {
  size_t n = weft_graph_num_inputs(graph);
  if (random.one_in(20)) n += random.below(3);
  std::vector<uint8_t> mask(n + 3);
  std::vector<int32_t> axes(n + 3);
  std::vector<uint32_t> numbers(random.below(3));
  for (uint8_t& m : mask) m = random.one_in(40) ? 7 : static_cast<uint8_t>(random.below(2));
  for (int32_t& a : axes) a = static_cast<int32_t>(random.below(4)) - (random.one_in(9) ? 3 : 1);
  for (uint32_t& i : numbers) i = static_cast<uint32_t>(random.below(n + 1));
  weft_graph* out = nullptr;
  weft_string* text = nullptr;
  bool done = false;
  switch (random.below(11)) {
    case 0:
      done = succeeded(weft_grad(graph, numbers.data(), numbers.size(), &out));
      break;
    case 1:
      done = succeeded(weft_value_and_grad(graph, numbers.data(), numbers.size(), &out));
      break;
    case 2:
      done = succeeded(weft_jvp(graph, mask.data(), n, &out));
      break;
    case 3:
      done = succeeded(weft_vjp(graph, mask.data(), n, nullptr, &out));
      break;
    case 4:
      done = succeeded(weft_transpose(graph, mask.data(), n, &out));
      break;
    case 5:
      done = succeeded(weft_jacobian(graph, mask.data(), n, random.one_in(2), &out));
      break;
    case 6:
      done = succeeded(
          weft_vmap(graph, axes.data(), n, static_cast<int64_t>(random.below(6)) - 1, &out));
      break;
    case 7:
      done = succeeded(weft_optimize(graph, &out));
      break;
    case 8:
      done = succeeded(
          weft_run_passes(graph, text_of(random.one_in(5) ? "dce,no" : "dce,simplify"), &out));
      break;
    case 9:
      if (succeeded(weft_emit_stablehlo(graph, nullptr, &text))) string_of(text);
      break;
    default:
      if (succeeded(weft_report(graph, &text))) string_of(text);
  }
  if (!done && out) give_up("a result of a call that failed");
  return Graph(out);
}

// Names of ops, and attributes as they stand in programs.
struct Vocabulary {
  std::vector<std::string> programs, ops, attributes, types;

  Vocabulary() : programs(test_programs()) {
    weft_string* text = nullptr;
    if (!succeeded(weft_list_ops(&text))) give_up("no list of ops");
    std::string list = string_of(text);
    for (size_t i = 0; i < list.size(); i = list.find('\n', i) + 1)
      ops.push_back(list.substr(i, list.find(' ', i) - i));
    attributes = {"", "axes=(0,)", "axes=(0, 1)", "new_dtype=float32", "dimension=0"};
    types = {"f32[]", "f32[3]", "f32[3,4]", "i32[]", "i32[3]", "bool[3]", "c64[3]", "f64[0,2]"};
    for (const std::string& program : programs) {
      for (size_t at = 0; (at = program.find('[', at)) != std::string::npos; ++at) {
        size_t end = program.find(']', at);
        if (end != std::string::npos && program.substr(at, end - at).find('=') != std::string::npos)
          attributes.push_back(program.substr(at + 1, end - at - 1));
      }
    }
  }
};

void fuzz_calls(Random& random, const Vocabulary& words) {
  weft_builder* made = nullptr;
  if (!succeeded(weft_builder_new(&made))) give_up("no builder");
  Builder builder(made);
  std::vector<weft_value> values;
  auto some_value = [&]() -> weft_value {
    if (values.empty() || random.one_in(50)) return {static_cast<uint32_t>(random.below(1 << 20))};
    return random.of(values);
  };
  for (size_t steps = random.below(30) + 2; steps > 0; --steps) {
    weft_value results[4];
    size_t num_results = 0;
    weft_type type = nullptr;
    bool done = false;
    switch (random.below(6)) {
      case 0:
        if (succeeded(weft_type_parse(text_of(random.of(words.types)), &type)))
          done = succeeded(weft_builder_input(builder.get(), type, results));
        num_results = 1;
        break;
      case 1:
        done =
            succeeded(weft_builder_scalar(builder.get(), text_of(random.one_in(2) ? "f32" : "i32"),
                                          static_cast<double>(random.below(5)), results));
        num_results = 1;
        break;
      case 2: {
        std::vector<char> bytes(random.below(64), 1);
        if (succeeded(weft_type_parse(text_of(random.of(words.types)), &type)))
          done = succeeded(
              weft_builder_constant(builder.get(), type, bytes.data(), bytes.size(), results));
        num_results = 1;
        break;
      }
      default: {
        weft_value operands[] = {some_value(), some_value(), some_value()};
        done = succeeded(weft_builder_op(builder.get(), text_of(random.of(words.ops)), operands,
                                         random.below(4), text_of(random.of(words.attributes)),
                                         results, 4, &num_results));
      }
    }
    for (size_t i = 0; done && i < num_results; ++i) values.push_back(results[i]);
  }
  weft_value outputs[] = {some_value(), some_value()};
  weft_graph* built = nullptr;
  if (!succeeded(weft_builder_finish(builder.get(), outputs, random.below(3), &built))) return;
  Graph graph(built);
  check(graph.get());
  for (size_t depth = random.below(3); depth > 0 && graph; --depth) {
    graph = derived(random, graph.get());
    if (graph) check(graph.get());
  }
}

weft::test::FakePlugin& fake_plugin() {
  void* library = dlopen(WEFT_FAKE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!library) give_up(dlerror());
  return *reinterpret_cast<weft::test::FakePlugin* (*)()>(dlsym(library, "fake_plugin"))();
}

// Sessions, programs and buffers, freed in a random order.
struct Running {
  SessionHandle session;
  std::vector<ProgramHandle> programs;
  std::vector<BufferHandle> buffers;

  void fill_buffers(Random& random, const weft_graph* graph) {
    for (size_t i = 0; i < weft_graph_num_inputs(graph) + random.below(2); ++i) {
      weft_type type = weft_graph_input_type(graph, i);
      size_t size = random.one_in(20) ? random.below(9) : weft_type_host_bytes(type);
      if (size > 1 << 16) continue;
      std::vector<char> bytes(size);
      weft_buffer* made = nullptr;
      size_t device = random.one_in(9) ? random.below(5) : 0;
      if (succeeded(weft_buffer_create(session.get(), type, bytes.data(), size, device, &made)))
        buffers.emplace_back(made);
    }
  }

  void compile(Random& random, const weft_graph* graph) {
    weft_compile_options options{};
    options.struct_size = random.one_in(20) ? random.below(64) : sizeof options;
    options.device = random.one_in(9) ? random.below(5) : 0;
    uint32_t donated[] = {static_cast<uint32_t>(random.below(3))};
    options.donated = random.one_in(30) ? nullptr : donated;
    options.num_donated = random.below(2);
    weft_program* made = nullptr;
    bool plain = random.one_in(2);
    if (succeeded(weft_session_compile(session.get(), graph, plain ? nullptr : &options, &made)))
      programs.emplace_back(made);
  }

  void run(Random& random, const weft_graph* graph) {
    if (programs.empty()) return;
    std::vector<const weft_buffer*> arguments;
    for (size_t i = 0; i < weft_graph_num_inputs(graph) + random.one_in(20); ++i) {
      bool none = buffers.empty() || random.one_in(50);
      size_t next = buffers.size() - std::min(buffers.size(), weft_graph_num_inputs(graph)) + i;
      if (random.one_in(5)) next = random.below(buffers.size());
      arguments.push_back(none ? nullptr : buffers[next % buffers.size()].get());
    }
    std::vector<weft_buffer*> out(weft_graph_num_outputs(graph) + 1);
    size_t room = random.one_in(20) ? random.below(out.size()) : out.size();
    const weft_program* program = programs[random.below(programs.size())].get();
    bool done = succeeded(weft_run(program, arguments.data(), arguments.size(), out.data(), room));
    for (weft_buffer* b : out) {
      if (b && !done) give_up("an output of a run that failed");
      if (b) buffers.emplace_back(b);
    }
  }

  void use_buffer(Random& random) {
    if (buffers.empty()) return;
    const weft_buffer* buffer = buffers[random.below(buffers.size())].get();
    weft_buffer* copy = nullptr;
    if (random.one_in(2)) {
      if (succeeded(weft_buffer_copy(buffer, random.below(4), &copy))) buffers.emplace_back(copy);
      return;
    }
    size_t size =
        random.one_in(20) ? random.below(9) : weft_type_host_bytes(weft_buffer_type(buffer));
    if (size > 1 << 20) return;
    std::vector<char> bytes(size);
    succeeded(weft_buffer_read(buffer, bytes.data(), size));
  }
};

void fuzz_runs(Random& random, const Vocabulary& words) {
  weft::test::FakePlugin& fake = fake_plugin();
  fake.fail_in = random.one_in(3) ? static_cast<int64_t>(random.below(60)) : 0;
  weft_graph* parsed = nullptr;
  if (!succeeded(weft_graph_parse(text_of(random.of(words.programs)), &parsed)))
    give_up("a program of the tests that is not read");
  Graph graph(parsed);
  {
    Running running;
    weft_session* made = nullptr;
    weft_session_option option{text_of("a"),
                               static_cast<weft_option_kind>(random.below(6)),
                               text_of("b"),
                               1,
                               nullptr,
                               random.below(2),
                               1};
    if (succeeded(weft_session_create(WEFT_FAKE_PLUGIN, &option, random.below(2), &made)))
      running.session.reset(made);
    for (size_t steps = random.below(12); steps > 0; --steps) {
      switch (random.below(8)) {
        case 0:
          running.compile(random, graph.get());
          break;
        case 1:
        case 2:
          running.fill_buffers(random, graph.get());
          break;
        case 3:
        case 4:
          running.run(random, graph.get());
          break;
        case 5:
          if (!running.buffers.empty())
            running.buffers.erase(running.buffers.begin() +
                                  static_cast<ptrdiff_t>(random.below(running.buffers.size())));
          break;
        case 6:
          if (random.one_in(10)) running.session.reset();
          break;
        default:
          running.use_buffer(random);
      }
    }
  }
  fake.fail_in = 0;
  if (fake.num_objects != 0) give_up("objects of a plugin that are not freed");
}

}  // namespace

TEST(c_api_builds_differentiates_and_emits) {
  weft_builder* made = nullptr;
  CHECK(succeeded(weft_builder_new(&made)));
  Builder b(made);
  weft_type vector = nullptr, same = nullptr;
  const int64_t dims[] = {3};
  CHECK(succeeded(weft_type_parse(text_of("f32[3]"), &vector)));
  CHECK(succeeded(weft_type_make(text_of("float32"), dims, 1, &same)));
  CHECK(vector == same && weft_type_rank(vector) == 1 && weft_type_dims(vector)[0] == 3);
  CHECK(weft_type_num_bytes(vector) == 12 && string_of(weft_type_dtype(vector)) == "f32");
  weft_value x[2], product, sum;
  size_t results = 0;
  CHECK(succeeded(weft_builder_input(b.get(), vector, &x[0])));
  CHECK(succeeded(weft_builder_scalar(b.get(), text_of("f32"), 2, &x[1])));
  CHECK(succeeded(weft_builder_set_location(b.get(), text_of("a.c"), 7, text_of("main"))));
  CHECK(succeeded(weft_builder_op(b.get(), text_of("mul"), x, 2, {}, &product, 1, &results)));
  CHECK(results == 1 && weft_builder_type(b.get(), product) == vector);
  CHECK(succeeded(weft_builder_op(b.get(), text_of("reduce_sum"), &product, 1, text_of("axes=(0,)"),
                                  &sum, 1, nullptr)));
  weft_graph* built = nullptr;
  CHECK(succeeded(weft_builder_finish(b.get(), &sum, 1, &built)));
  Graph graph(built);
  CHECK(weft_graph_num_inputs(built) == 1 && weft_graph_num_ops(built) == 2);
  CHECK(string_of(weft_op_name(built, 0)) == "mul" && weft_op_operand(built, 0, 0).id == 0);
  weft_string* text = nullptr;
  CHECK(succeeded(weft_graph_literal(built, weft_op_operand(built, 0, 1), &text)));
  CHECK(string_of(text) == "2.0");
  CHECK(succeeded(weft_op_location(built, 0, &text)) && string_of(text) == "a.c:7 (main)");

  weft_graph* made_graph = nullptr;
  uint32_t by_x = 0;
  CHECK(succeeded(weft_grad(built, &by_x, 1, &made_graph)));
  Graph gradient(made_graph);
  CHECK(weft_graph_output_type(gradient.get(), 0) == vector);
  int32_t axis = 0;
  CHECK(succeeded(weft_vmap(built, &axis, 1, 5, &made_graph)));
  Graph mapped(made_graph);
  CHECK(weft_type_dims(weft_graph_output_type(mapped.get(), 0))[0] == 5);
  CHECK(succeeded(weft_emit_stablehlo(gradient.get(), nullptr, &text)));
  std::string module = string_of(text);
  CHECK(module.find("func.func public @main") != std::string::npos);
  CHECK(succeeded(weft_graph_read_stablehlo(text_of(module), &made_graph)));
  Graph read(made_graph);
  CHECK(weft_graph_output_type(read.get(), 0) == vector);
  weft_analysis analysis{};
  analysis.struct_size = offsetof(weft_analysis, transcendentals);  // of an older header
  CHECK(succeeded(weft_analyze(built, &analysis)));
  CHECK(analysis.ops == 2 && analysis.flops > 0 && analysis.peak_bytes == 0);
}

TEST(c_api_errors_say_what_and_where) {
  weft_graph* graph = nullptr;
  Failure parse(
      weft_graph_parse(text_of("{ lambda ; a:f32[3]. let\n  b:f32[3] = sinn a in (b,) }"), &graph));
  CHECK(parse && weft_error_get_kind(parse.get()) == WEFT_ERROR_PARSE);
  CHECK(weft_error_line(parse.get()) == 2 && weft_error_column(parse.get()) == 14);
  Failure module(weft_graph_read_stablehlo(text_of("module {\n  func.func @main() {"), &graph));
  CHECK(module && weft_error_line(module.get()) == 2);
  CHECK(!graph);
  Failure null(weft_graph_print(nullptr, nullptr));
  CHECK(null && weft_error_get_kind(null.get()) == WEFT_ERROR_ARGUMENT);
  CHECK(std::string(weft_error_message(null.get())) == "expected a graph; got NULL");
  weft_type type = nullptr;
  Failure dtype(weft_type_make(text_of("f31"), nullptr, 0, &type));
  CHECK(dtype && weft_error_get_kind(dtype.get()) == WEFT_ERROR_DTYPE);
  CHECK(weft_error_line(dtype.get()) == 0);
}

TEST(c_api_reads_and_writes_arrays) {
  std::string path = weft::cat("/tmp/weft-c-api-", getpid());
  weft_type type = nullptr;
  CHECK(succeeded(weft_type_parse(text_of("i32[2]"), &type)));
  const weft_text names[] = {text_of("a"), text_of("b")};
  const weft_type types[] = {type, type};
  const int32_t elements[] = {1, 2};
  const void* const bytes[] = {elements, elements};
  CHECK(succeeded(weft_arrays_write(path.c_str(), names, types, bytes, 2)));
  weft_arrays* made = nullptr;
  CHECK(succeeded(weft_arrays_read(path.c_str(), &made)));
  std::unique_ptr<weft_arrays, Freed<weft_arrays, weft_arrays_free>> arrays(made);
  size_t found = 7;
  CHECK(weft_arrays_count(made) == 2 && succeeded(weft_arrays_find(made, text_of("b"), &found)));
  CHECK(found == 1 && string_of(weft_arrays_name(made, 1)) == "b");
  CHECK(weft_arrays_type(made, 1) == type && !weft_arrays_type(made, 2));
  CHECK(std::memcmp(weft_arrays_bytes(made, 0), elements, sizeof elements) == 0);
  CHECK(!weft_arrays_bytes(made, 2) && weft_arrays_name(made, 2).size == 0);
  Failure missing(weft_arrays_find(made, text_of("c"), &found));
  CHECK(missing && std::string(weft_error_message(missing.get())) == "expected one of a, b; got c");
  const void* const no_bytes[] = {elements, nullptr};
  CHECK(!succeeded(weft_arrays_write(path.c_str(), names, types, no_bytes, 2)));
  CHECK(!succeeded(weft_arrays_write(path.c_str(), names, types, nullptr, 2)));
  CHECK(!succeeded(weft_arrays_write(nullptr, names, types, bytes, 2)));
  CHECK(!succeeded(weft_arrays_read(nullptr, &made)) && made == arrays.get());
  std::remove(path.c_str());
}

TEST(c_api_survives_random_calls) {
  int64_t count = weft::test::number_from_environment("WEFT_API_CALLS", 3000);
  int64_t seed = weft::test::number_from_environment("WEFT_SEED", 0);
  Vocabulary words;
  for (int64_t i = 0; i < count; ++i) {
    Random random(static_cast<uint64_t>(seed * 1'000'003 + i));
    fuzz_calls(random, words);
    fuzz_runs(random, words);
  }
}

}  // namespace c_api_test
