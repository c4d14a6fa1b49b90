// What is rolled into loops, and that the loops, written out, are the program.
#include "weft/roll.h"

#include <algorithm>

#include "check.h"
#include "test_ops.h"
#include "weft/build.h"
#include "weft/op_def.h"
#include "weft/rebuild.h"

using namespace weft;
using namespace weft::test;

namespace {

constexpr int kSteps = 12;

// Each step reads what the `distance` steps before it made, and in front of all stands another op.
GraphRef steps(size_t distance) {
  GraphBuilder b;
  Value w = b.input(f32({8})), start = b.input(f32({8}));
  Val weight{&b, w}, first{&b, start};
  std::vector<Val> made(distance, tanh(first));
  for (int i = 0; i < kSteps; ++i) {
    Val before = made[made.size() - distance];
    made.push_back(cos(sin(made.back()) * weight) + before);
  }
  return b.finish(Values{made.back().value});
}

bool is_scan(const Op& op) { return op.info == &op_named<"scan">(); }

// The same program without loops; of those that read slices or give all their results, none.
GraphRef written_out(const Graph& graph) {
  GraphBuilder b;
  ValueMap map(graph, b);
  std::vector<Value> inputs = copy_inputs(graph, b, map);
  for (const Op& op : graph.ops()) {
    Values operands = map(graph.operands(op));
    if (!is_scan(op)) {
      map.set_results(op, copy_op(graph, b, op, operands));
      continue;
    }
    auto consts = static_cast<size_t>(op.attrs->integer("num_consts"));
    auto carry = static_cast<size_t>(op.attrs->integer("num_carry"));
    CHECK_EQ(operands.size(), consts + carry);
    CHECK_EQ(op.num_results, carry);
    for (int64_t i = 0; i < op.attrs->integer("length"); ++i) {
      Values made = b.inline_graph(*op.attrs->graph("jaxpr"), operands);
      std::copy(made.begin(), made.end(), operands.begin() + static_cast<std::ptrdiff_t>(consts));
    }
    Values results(operands.begin() + static_cast<std::ptrdiff_t>(consts), operands.end());
    map.set_results(op, results);
  }
  return finish_copy(graph, b, map, inputs);
}

}  // namespace

TEST(rolled_steps) {
  for (size_t distance : {1u, 2u, 4u}) {
    GraphRef graph = steps(distance);
    auto rolled = roll(graph);
    CHECK(rolled);
    verify(*rolled->graph);
    CHECK_EQ(rolled->loops.size(), size_t{1});
    CHECK_EQ(rolled->loops[0].length, uint32_t{kSteps});
    CHECK_EQ(rolled->loops[0].num_ops, uint32_t{4 * kSteps});
    CHECK_EQ(rolled->loops[0].num_after, 4u);
    CHECK_EQ(rolled->graph->ops().size(), size_t{2});
    CHECK(equal(*written_out(*rolled->graph), *graph));
  }
}

TEST(derivatives_are_rolled_backwards) {
  GraphBuilder b;
  std::vector<Value> kept;
  Value w = b.input(f32({8})), start = b.input(f32({8}));
  Val weight{&b, w}, x{&b, start};
  for (int i = 0; i < kSteps; ++i) {
    kept.push_back(x.value);
    x = tanh(sin(x) * weight + weight);
  }
  for (int i = kSteps; i-- > 0;) x = cos(x * Val{&b, kept[static_cast<size_t>(i)]}) + x;
  GraphRef graph = b.finish(Values{x.value});
  auto rolled = roll(graph);
  CHECK_EQ(rolled->loops.size(), size_t{2});
  verify(*rolled->graph);
  std::vector<const Op*> scans;
  for (const Op& op : rolled->graph->ops())
    if (is_scan(op)) scans.push_back(&op);
  CHECK_EQ(scans.size(), size_t{2});
  CHECK(!scans[0]->attrs->boolean("reverse"));
  CHECK(scans[1]->attrs->boolean("reverse"));
}

TEST(what_is_not_worth_a_loop_is_not_rolled) {
  GraphRef graph = steps(1);
  CHECK(!roll(graph, RollOptions::for_speed()));
  CHECK(!roll(graph, {.min_ops = 1000}));
  CHECK(!roll(graph, {.min_reduction = kSteps + 1}));
  CHECK(roll(graph, {.min_reduction = kSteps}));
  CHECK(!roll(graph, {.min_iterations = kSteps + 1}));
}

TEST(effects_are_not_rolled) {
  GraphBuilder b;
  Value x = b.input(f32());
  for (int i = 0; i < kSteps; ++i) {
    x = add_op(b, kNeg, {x});
    add_op(b, kLog, {x}, {{"tag", std::string("step")}});
  }
  CHECK(!roll(b.finish(Values{x})));
}
