// What is cut into blocks, and that the steps put together are the program.
#include "weft/blocks.h"

#include <algorithm>

#include "check.h"
#include "test_ops.h"
#include "weft/build.h"
#include "weft/op_def.h"

using namespace weft;
using namespace weft::test;

namespace {

constexpr int kLayers = 6, kOps = 9;

// Layers that each have a weight; an op that depends on no input stands in the first one.
GraphRef layers(bool each_is_output) {
  GraphBuilder b;
  std::vector<Value> inputs, outputs;
  for (int i = 0; i <= kLayers; ++i) inputs.push_back(b.input(f32({8})));
  Val x{&b, inputs[0]};
  for (int i = 0; i < kLayers; ++i) {
    Val w{&b, inputs[static_cast<size_t>(i) + 1]};
    for (int k = 0; k < kOps; ++k) x = k == 4 ? cos(sin(x) + w) : sin(x) * w;
    if (each_is_output) outputs.push_back(x.value);
  }
  if (!each_is_output) outputs.push_back(x.value);
  return b.finish(outputs);
}

// Layers of two halves, each of which begins with a product, which stays in its step; in the first
// half of layer `edited` there is an op more.
GraphRef layers_of_halves(int edited) {
  GraphBuilder b;
  Value input = b.input(f32({8, 8})), weight = b.input(f32({8, 8}));
  Val x{&b, input}, w{&b, weight};
  const DotDims dims{{1}, {0}, {}, {}};
  for (int i = 0; i < kLayers; ++i) {
    Val y = dot_general(x, w, dims);
    for (int k = 0; k < 12; ++k) y = k == 4 && i == edited ? cos(cos(y)) * y : cos(y) * y;
    x = x + tanh(y);
    Val z = dot_general(x, w, dims);
    for (int k = 0; k < 12; ++k) z = sin(z) * z;
    x = x + z;
  }
  return b.finish(Values{x.value});
}

bool has_block(const BlockPlan& plan, const Graph& graph) {
  return std::any_of(plan.blocks.begin(), plan.blocks.end(),
                     [&](const BlockPlan::Block& block) { return equal(*block.graph, graph); });
}

GraphRef put_together(const BlockPlan& plan, const Graph& graph) {
  GraphBuilder b;
  std::vector<Value> slots(plan.num_slots);
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) slots[i] = b.input(graph.type(graph.input(i)));
  for (const BlockStep& step : plan.steps) {
    Values args;
    for (uint32_t slot : step.inputs) {
      CHECK(slots[slot]);
      args.push_back(slots[slot]);
    }
    Values results = b.inline_graph(*plan.blocks[step.block].graph, args);
    CHECK_EQ(results.size(), step.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) slots[step.outputs[i]] = results[i];
    for (uint32_t slot : step.done) slots[slot] = Value();
  }
  std::vector<Value> outputs;
  for (uint32_t slot : plan.outputs) outputs.push_back(slots[slot]);
  return b.finish(outputs);
}

}  // namespace

TEST(blocks_of_layers) {
  for (bool each_is_output : {false, true}) {
    GraphRef graph = layers(each_is_output);
    auto plan = find_blocks(graph);
    CHECK(plan);
    CHECK_EQ(plan->steps.size(), size_t{kLayers});
    CHECK_EQ(plan->blocks.size(), size_t{1});
    CHECK_EQ(plan->blocks[0].graph->num_inputs(), 2u);
    CHECK_EQ(plan->blocks[0].graph->outputs().size(), size_t{1});
    CHECK(equal(*put_together(*plan, *graph), *graph));
    CHECK(plan->is_worth_it());
    CHECK(plan->blocks[0].aliases.empty());  // the first step reads an input of the program's
    auto donating = find_blocks(graph, {}, {true});
    if (each_is_output)
      CHECK(donating->blocks[0].aliases.empty());
    else
      CHECK(donating->blocks[0].aliases == (std::vector<int>{0, -1}));
  }
}

TEST(no_blocks_where_a_step_would_cost_more_than_it_does) {
  CHECK(!find_blocks(layers(false), BlockOptions::for_speed()));
  CHECK(!find_blocks(layers(false), {.min_ops = 1000}));
  CHECK(!find_blocks(layers(false), {.min_products = 0.5}));
}

TEST(blocks_of_layers_with_other_things_between_them) {
  GraphBuilder b;
  Value input = b.input(f32({8}));
  Val x{&b, input};
  for (int i = 0; i < kLayers; ++i) {
    if (i == 4) x = reshape(cos(reshape(x, {2, 4})), {8});
    for (int k = 0; k < kOps; ++k) x = k == 4 ? cos(sin(x) + x) : sin(x) * x;
  }
  GraphRef graph = b.finish(Values{x.value});
  auto plan = find_blocks(graph);
  CHECK(plan);
  CHECK_EQ(plan->blocks.size(), size_t{2});
  CHECK_EQ(plan->blocks[0].num_steps, uint32_t{kLayers});
  CHECK(equal(*put_together(*plan, *graph), *graph));
}

TEST(blocks_of_layers_are_the_same_when_one_was_edited) {
  auto base = find_blocks(layers_of_halves(-1));
  CHECK(base);
  CHECK_EQ(base->blocks.size(), size_t{1});
  for (int edited : {1, 3, kLayers - 1}) {
    GraphRef graph = layers_of_halves(edited);
    auto plan = find_blocks(graph);
    CHECK_EQ(plan->blocks.size(), size_t{2});
    CHECK(has_block(*base, *plan->blocks[0].graph));
    CHECK_EQ(plan->blocks[0].num_steps, uint32_t{kLayers - 1});
    CHECK_EQ(plan->blocks[1].num_steps, 1u);
    CHECK(equal(*put_together(*plan, *graph), *graph));
  }
}

TEST(of_an_edited_layer_the_half_is_new_that_was_edited) {
  BlockOptions in_two{.min_seconds = 1e-12};
  auto base = find_blocks(layers_of_halves(-1), in_two);
  CHECK(base);
  CHECK_EQ(base->blocks.size(), size_t{2});
  CHECK_EQ(base->steps.size(), size_t{2 * kLayers});
  for (int edited : {0, 3, kLayers - 1}) {
    GraphRef graph = layers_of_halves(edited);
    auto plan = find_blocks(graph, in_two);
    CHECK_EQ(plan->steps.size(), size_t{2 * kLayers});
    CHECK_EQ(plan->blocks.size(), size_t{3});
    auto is_known = [&](const BlockPlan::Block& block) { return has_block(*base, *block.graph); };
    CHECK_EQ(std::count_if(plan->blocks.begin(), plan->blocks.end(), is_known), 2);
    CHECK_EQ(plan->blocks[2].num_steps, 1u);
    CHECK(equal(*put_together(*plan, *graph), *graph));
  }
}

TEST(what_is_compared_with_what_came_of_it_is_made_once) {
  // Forwards a maximum, backwards where it was. To make what it is of again is next to nothing.
  for (bool is_compared : {false, true}) {
    GraphBuilder b;
    std::vector<Value> inputs, outputs;
    for (int i = 0; i <= kLayers; ++i) inputs.push_back(b.input(f32({8})));
    Val x{&b, inputs[0]};
    std::vector<std::pair<Val, Val>> kept;
    for (int i = 0; i < kLayers; ++i) {
      Val y = x * Val{&b, inputs[static_cast<size_t>(i) + 1]}, most = reduce_max(y, {0});
      kept.emplace_back(y, broadcast_in_dim(most, {8}, {}));
      x = sin(x) + kept.back().second;
      for (int k = 0; k < 16; ++k) x = cos(x);
      outputs.push_back(x.value);
    }
    for (int i = kLayers; i-- > 0;) {
      auto [y, most] = kept[static_cast<size_t>(i)];
      x = is_compared ? select(eq(y, most), x, cos(x)) : select(gt(y, full(b, f32({}), 0.5)), x, y);
      for (int k = 0; k < 16; ++k) x = sin(x);
    }
    outputs.push_back(x.value);
    GraphRef graph = b.finish(outputs);
    auto plan = find_blocks(graph);
    CHECK(plan);
    GraphRef all = put_together(*plan, *graph);
    auto num_products = std::count_if(all->ops().begin(), all->ops().end(),
                                      [](const Op& op) { return op.info == &op_named<"mul">(); });
    CHECK_EQ(num_products > kLayers, !is_compared);
  }
}

TEST(no_blocks_without_repetition) {
  GraphBuilder b;
  Value input = b.input(f32({8}));
  Val x{&b, input};
  for (int i = 0; i < 6; ++i) x = i % 2 ? sin(x) : reshape(x, i % 4 ? Dims{8} : Dims{2, 4});
  CHECK(!find_blocks(b.finish(Values{x.value})));
}
