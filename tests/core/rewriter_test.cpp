// The rewriter on made-up ops: rules without an end, and loops that it knows by what their ops
// declare.
#include "check.h"
#include "test_ops.h"
#include "weft/passes.h"
#include "weft/weft.h"

using namespace weft;
using namespace weft::test;

namespace {

OpDef made_up(std::string name, int num_operands, std::vector<Rewrite> rules = {}) {
  OpDef d;
  d.name = std::move(name);
  d.num_operands = num_operands;
  d.infer = [](const InferCtx& c) -> TypeRefs { return {c.in(0)}; };
  d.simplify = std::move(rules);
  return d;
}
Rewrite rule(std::string name, std::function<Vals(SimplifyCtx&)> apply) {
  return {.name = std::move(name), .rule = "of the test", .apply = std::move(apply)};
}
Vals one(const OpDef& op, Val x) { return apply(op, Vals{x}, nullptr); }

// ping(x) -> pong(x) and pong(x) -> ping(x).
extern const OpDef kPing, kPong;
const OpDef kPing =
    made_up("ping", 1, {rule("ping_pong", [](SimplifyCtx& c) { return one(kPong, c.x(0)); })});
const OpDef kPong =
    made_up("pong", 1, {rule("pong_ping", [](SimplifyCtx& c) { return one(kPing, c.x(0)); })});
// grow(x) -> grow(grow(x)): each step makes more for the next one to match.
extern const OpDef kGrow;
const OpDef kGrow =
    made_up("grow", 1,
            {rule("grow_more", [](SimplifyCtx& c) { return one(kGrow, one(kGrow, c.x(0))[0]); })});
// down[n](x) -> down[n-1](x), down[0](x) -> x.
OpDef down_op() {
  OpDef d = made_up("down", 1, {rule("down_one", [](SimplifyCtx& c) -> Vals {
                      int64_t n = c.attr().integer("n");
                      if (n == 0) return {c.x(0)};
                      return apply(c.op, Vals{c.x(0)}, c.attrs->with({{"n", n - 1}}));
                    })});
  d.attrs = {{"n", AttrType::kInt}};
  return d;
}
const OpDef kDown = down_op();

// A loop, and ops in it that are known by what they declare alone.
OpDef loop_op() {
  OpDef d = registry().get("scan");
  d.name = "each_slice";
  d.simplify = {};
  return d;
}
OpDef product_op() {
  OpDef d = made_up("weighed", 2);
  d.shares_unmapped = true;
  d.batch = [](BatchCtx& c) {
    CHECK(c.batched(0) && !c.batched(1));
    c.result(apply(c.op, Vals{c.moved(0, 0), c.x(1)}, nullptr)[0], 0);
  };
  return d;
}
OpDef summed_op() {
  OpDef d = made_up("squashed", 1);
  d.mapped_sum = [](RuleCtx& c) { return reduce_sum(c.x(0), {0}); };
  return d;
}
OpDef plus_op() {
  OpDef d = made_up("plus", 2);
  d.adds = true;
  return d;
}
const OpDef kProductOp = product_op(), kSummed = summed_op(), kPlus = plus_op();

// One constant, one carry, one array: carry + f(slice), and the slice times the constant.
GraphRef loop_with(const OpDef& loop, const OpDef& product, const OpDef& summed) {
  GraphBuilder b;
  Value w = b.input(f32({2})), carry = b.input(f32({2})), x = b.input(f32({2}));
  Value term = b.add(summed, Values{x}, nullptr)[0];
  Value next = b.add(kPlus, Values{term, carry}, nullptr)[0];
  Value y = b.add(product, Values{x, w}, nullptr)[0];
  GraphRef body = b.finish(Values{next, y});
  AttrsRef attrs = AttrRecord::make(loop.name, loop.attrs,
                                    {{"jaxpr", body},
                                     {"length", int64_t{5}},
                                     {"num_consts", int64_t{1}},
                                     {"num_carry", int64_t{1}},
                                     {"reverse", false},
                                     {"unroll", int64_t{1}}});
  GraphBuilder outer;
  Values inputs{outer.input(f32({2})), outer.input(f32({2})), outer.input(f32({5, 2}))};
  return outer.finish(outer.add(loop, inputs, attrs));
}
std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> out;
  for (const Op& op : graph.ops()) out.push_back(op.info->name);
  return out;
}

GraphRef graph_of(const OpDef& op, std::initializer_list<NamedAttr> attrs = {}) {
  GraphBuilder b;
  Value x = b.input(f32({2}));
  return b.finish(b.add(op, Values{x}, AttrRecord::make(op.name, op.attrs, attrs)));
}
PassOptions without(std::string rewrite) {
  PassOptions options;
  options.disabled_rewrites = {std::move(rewrite)};
  return options;
}
PassOptions only(std::string rewrite) {
  PassOptions options;
  options.only_rewrites = {std::move(rewrite)};
  return options;
}
GraphRef simplified(const GraphRef& graph, const PassOptions& options = {}) {
  return run_passes(graph, std::vector<std::string>{"simplify"}, options);
}
GraphRef called(const GraphRef& graph) {
  GraphBuilder b;
  const OpDef& jit = registry().get("jit");
  Value x = b.input(f32({2}));
  return b.finish(b.add(jit, Values{x}, AttrRecord::make("jit", jit.attrs, {{"jaxpr", graph}})));
}

}  // namespace

TEST(rules_that_undo_each_other) {
  const char* text =
      "rewrite ping_pong (of the test) is the last of 128 that follow from each "
      "other: some undo others";
  CHECK_THROWS(kInternal, text, simplified(graph_of(kPing)));
  CHECK_THROWS(kInternal, text, simplified(called(graph_of(kPing))));
  CHECK_THROWS(kInternal, text, optimize(graph_of(kPing)));
  CHECK_THROWS(kInternal, "[grow] rewrite grow_more", simplified(graph_of(kGrow)));
}

TEST(rules_that_are_switched_off_have_no_end_to_reach) {
  CHECK_THROWS(kInternal, "the last of 128", simplified(graph_of(kPing), without("neg_neg")));
  GraphRef graph = graph_of(kPing);
  CHECK(simplified(graph, only("neg_neg")) == graph);
}

TEST(long_chains_that_end) {
  CHECK(simplified(graph_of(kDown, {{"n", int64_t{126}}}))->ops().empty());
  CHECK_THROWS(kInternal, "[down] rewrite down_one",
               simplified(graph_of(kDown, {{"n", int64_t{128}}})));
  // The limit is for what follows from one op, not for a graph.
  GraphBuilder b;
  Value x = b.input(f32({2}));
  for (int i = 0; i < 1000; ++i)
    x = b.add(kDown, Values{x}, AttrRecord::make("down", kDown.attrs, {{"n", int64_t{100}}}))[0];
  CHECK(simplified(b.finish(Values{x}))->ops().empty());
}

TEST(loops_and_products_are_known_by_what_they_declare) {
  const OpDef loop = loop_op();
  std::vector<PassStats> stats;
  std::vector<std::string> pass{"scan_products"};
  GraphRef graph = loop_with(loop, kProductOp, kSummed);
  GraphRef moved = run_passes(graph, pass, {}, &stats);
  verify(*moved);
  CHECK(names(*moved) == (std::vector<std::string>{"weighed", "each_slice", "reduce_sum", "plus"}));
  CHECK(moved->op(1).attrs->graph("jaxpr")->ops().empty());
  CHECK_EQ(stats[0].rewrites.size(), size_t{1});
  CHECK_EQ(stats[0].rewrites[0].first, std::string("scan_products"));
  CHECK(run_passes(moved, pass) == moved);

  CHECK(run_passes(graph, pass, without("scan_products")) == graph);
  CHECK(run_passes(graph, pass, only("fold")) == graph);
  // Of ops that say nothing, nothing is known.
  const OpDef silent = made_up("weighed", 2), quiet = made_up("squashed", 1);
  GraphRef other = loop_with(loop, silent, quiet);
  CHECK(run_passes(other, pass) == other);
  OpDef no_loop = loop;
  no_loop.loop = {};
  GraphRef no_loop_graph = loop_with(no_loop, kProductOp, kSummed);
  CHECK(run_passes(no_loop_graph, pass) == no_loop_graph);
}
