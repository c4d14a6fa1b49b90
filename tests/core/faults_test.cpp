// shrink() and bisect(): what they find where the failure is known, and that nothing can be taken
// away from what is left.
#include "weft/faults.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "check.h"
#include "weft/format.h"
#include "weft/registry.h"

namespace weft::test {

namespace {

bool has_op(const Graph& graph, std::string_view name) {
  return print(graph).find(cat("= ", name, ' ')) != std::string::npos ||
         print(graph).find(cat("= ", name, '[')) != std::string::npos;
}

ProgramTest shows(std::string name) {
  return [name](const Graph& g) { return has_op(g, name); };
}

// An op of a result of another.
ProgramTest has_pair(std::string first, std::string second) {
  return [first, second](const Graph& g) {
    return std::ranges::any_of(g.ops(), [&](const Op& op) {
      const Op* before = op.info->name == second ? g.producer(g.operand(op, 0)) : nullptr;
      return before && before->info->name == first;
    });
  };
}

std::string shrunk(const char* program, const ProgramTest& test) {
  GraphRef graph = shrink(parse(program), test).graph;
  verify(*graph);
  return print(*graph);
}

constexpr const char* kChain =
    "{ lambda ; a:f32[3] b:f32[]. let c:f32[3] = sin a d:f32[3] = exp c e:f32[3] = tanh d "
    "f:f32[3] = cos e g:f32[] = neg b in (f, d, g) }";

}  // namespace

TEST(shrinks_to_the_op_that_matters) {
  CHECK_EQ(shrunk(kChain, shows("exp")), "{ lambda ; a:f32[3]. let b:f32[3] = exp a in (b,) }");
  CHECK_EQ(shrunk(kChain, shows("neg")), "{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }");
  CHECK_EQ(shrunk(kChain, [](const Graph&) { return true; }), "{ lambda ; . let  in () }");
}

TEST(shrinks_to_two_ops_that_follow_each_other) {
  CHECK_EQ(shrunk("{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[3] = neg b d:f32[3] = neg c "
                  "e:f32[3] = cos b f:f32[3] = add d e in (f,) }",
                  has_pair("sin", "cos")),
           "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = cos b in (c,) }");
}

TEST(shrinks_in_loops_and_opens_calls) {
  CHECK_EQ(shrunk("{ lambda ; a:f32[3]. let b:f32[3] = jit[jaxpr={ lambda ; c:f32[3]. let "
                  "d:f32[3] = sin c e:f32[3] = exp d in (e,) } name=f] a in (b,) }",
                  shows("sin")),
           "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }");
  std::string loop = shrunk(
      "{ lambda ; a:f32[3]. let b:f32[3] = while[body_jaxpr={ lambda ; c:f32[3]. let d:f32[3] = "
      "sin c e:f32[3] = exp d f:f32[3] = neg e in (f,) } body_nconsts=0 cond_jaxpr={ lambda ; "
      "g:f32[3]. let h:f32[] = reduce_sum[axes=(0,)] g i:bool[] = lt h 2.0:f32[] in (i,) } "
      "cond_nconsts=0] a in (b,) }",
      [](const Graph& g) { return has_op(g, "while") && has_op(g, "exp"); });
  CHECK(loop.find("sin") == std::string::npos && loop.find("neg") == std::string::npos);
  CHECK(loop.find("reduce_sum") == std::string::npos);
}

// A failure may lie in what nothing needs.
TEST(shrinks_what_nothing_needs) {
  auto dead = [](const Graph& g) {
    return std::ranges::any_of(
        g.ops(), [&](const Op& op) { return op.info->name == "exp" && g.outputs().empty(); });
  };
  CHECK_EQ(shrunk("{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[3] = exp b in () }", dead),
           "{ lambda ; a:f32[3] b:f32[3]. let _:f32[3] = exp b in () }");
}

TEST(shrink_says_where_there_is_nothing_to_find) {
  CHECK_THROWS(kValue, "it does not hold of the one given", shrink(parse(kChain), shows("erf")));
  int calls = 0;
  auto count = [&](const Graph& g) { return ++calls, has_op(g, "tanh"); };
  uint32_t num_tests = shrink(parse(kChain), count).num_tests;
  CHECK_EQ(num_tests, static_cast<uint32_t>(calls));
}

namespace {

constexpr const char* kRewritten =
    "{ lambda ; a:f32[3]. let b:f32[3] = mul a 1.0:f32[] c:f32[3] = neg b d:f32[3] = neg c "
    "e:f32[3] = sin d f:f32[3] = sin a g:f32[3] = add e f in (g,) }";

Bisection bisected(const char* program, std::vector<std::string> passes, const ProgramTest& test,
                   const PassOptions& options = {}) {
  Bisection found = bisect(parse(program), passes, options, test);
  CHECK(test(*found.before) != test(*found.after));
  return found;
}

}  // namespace

TEST(bisects_to_the_rewrite) {
  Bisection found = bisected(kRewritten, {"dce", "canonicalize", "dce"}, shows("mul"));
  CHECK_EQ(found.pass, "canonicalize");
  CHECK_EQ(found.rewrites.size(), size_t{1});
  CHECK_EQ(found.rewrites[0].name, "mul_one");
  CHECK_EQ(found.application, size_t{1});
  CHECK_EQ(found.num_applications, size_t{3});
  CHECK_EQ(bisected(kRewritten, {"simplify"}, has_pair("neg", "sin")).rewrites[0].name, "neg_neg");
  auto two_sines = [](const Graph& g) {
    return std::ranges::count_if(g.ops(), [](const Op& op) { return op.info->name == "sin"; }) > 1;
  };
  CHECK_EQ(bisected(kRewritten, {"canonicalize"}, two_sines).rewrites[0].name, "cse");
}

TEST(bisects_to_rewrites_in_loops_and_calls) {
  const char* program =
      "{ lambda ; a:f32[3]. let b:f32[3] = while[body_jaxpr={ lambda ; c:f32[3]. let d:f32[3] = "
      "mul c 1.0:f32[] e:f32[3] = sin d in (e,) } body_nconsts=0 cond_jaxpr={ lambda ; g:f32[3]. "
      "let h:f32[] = reduce_sum[axes=(0,)] g i:bool[] = lt h 2.0:f32[] in (i,) } cond_nconsts=0] "
      "a j:f32[3] = jit[jaxpr={ lambda ; k:f32[3]. let l:f32[3] = neg k in (l,) } name=f] b in "
      "(j,) }";
  CHECK_EQ(bisected(program, {"canonicalize"}, shows("mul")).rewrites[0].name, "mul_one");
  CHECK_EQ(bisected(program, {"canonicalize"}, shows("jit")).rewrites[0].name, "inline_call");
}

TEST(bisects_to_passes_without_rewrites) {
  Bisection found = bisected(kChain, {"canonicalize", "fuse"}, shows("fusion"));
  CHECK_EQ(found.rewrites[0].name, "fusion");
  found = bisected("{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[3] = exp a in (b,) }",
                   {"canonicalize", "dce"}, shows("exp"));
  CHECK_EQ(found.pass, "dce");
  CHECK_EQ(found.application, size_t{0});
  CHECK(found.rewrites.empty());
}

TEST(bisect_keeps_options_and_says_where_nothing_changes) {
  CHECK_THROWS(kValue, "it says yes before and after", bisected(kRewritten, {"dce"}, shows("sin")));
  CHECK_THROWS(kValue, "it says no before and after",
               bisected(kRewritten, {"canonicalize"}, shows("erf")));
  PassOptions options;
  options.disabled_rewrites = {"mul_one"};
  CHECK_THROWS(kValue, "it says yes before and after",
               bisected(kRewritten, {"canonicalize"}, shows("mul"), options));
}

namespace {

std::vector<GraphRef> programs_with_ops() {
  std::vector<GraphRef> programs;
  std::ifstream in(WEFT_TEST_PROGRAMS);
  for (std::string line; std::getline(in, line);) {
    GraphRef graph = parse(line);
    if (!graph->ops().empty()) programs.push_back(std::move(graph));
  }
  CHECK(programs.size() > 100);
  return programs;
}

}  // namespace

TEST(every_program_shrinks) {
  for (const GraphRef& graph : programs_with_ops()) {
    const OpInfo* kept = graph->op(static_cast<uint32_t>(graph->ops().size()) / 2).info;
    auto has_it = [&](const Graph& g) {
      return std::ranges::any_of(g.ops(), [&](const Op& op) { return op.info == kept; });
    };
    GraphRef small = shrink(graph, has_it).graph;
    verify(*small);
    CHECK(has_it(*small));
    CHECK_EQ(small->ops().size(), size_t{1});
  }
}

// The program of the first application is the first that differs, and each limit gives a program.
TEST(every_program_is_bisected) {
  std::vector<std::string> passes = default_pipeline();
  for (const GraphRef& graph : programs_with_ops()) {
    RewriteLog log;
    GraphRef before = run_passes(graph, std::vector<std::string>{"strip_rules", "lower_keys"});
    PassOptions options;
    options.log = &log;
    std::vector<std::string> pass = {"canonicalize"};
    run_passes(before, pass, options);
    size_t count = log.applied.size();
    for (size_t most = 0; most <= count; ++most) {
      log = {.most = most};
      verify(*run_passes(before, pass, options));
      CHECK(log.applied.size() >= most);
    }
    if (count == 0) continue;
    auto is_first = [&](const Graph& g) { return equal(g, *before); };
    Bisection found = bisect(before, pass, {}, is_first);
    CHECK_EQ(found.num_applications, count);
    CHECK(equal(*found.before, *before) && !equal(*found.after, *before));
  }
}

// Each limit gives a program in which exactly so many rewrites were applied.
TEST(rewrites_stop_at_the_limit) {
  GraphRef graph = parse(kRewritten);
  std::vector<std::string> passes = {"canonicalize"};
  for (size_t most = 0; most <= 4; ++most) {
    RewriteLog log{.most = most};
    PassOptions options;
    options.log = &log;
    GraphRef result = run_passes(graph, passes, options);
    verify(*result);
    CHECK_EQ(log.applied.size(), std::min<size_t>(most, 3));
    CHECK_EQ(equal(*result, *graph), most == 0);
  }
}

}  // namespace weft::test
