// What is rolled into loops, and that the loops, written out, are the program.
#include "weft/roll.h"

#include <algorithm>
#include <unordered_map>

#include "check.h"
#include "test_ops.h"
#include "weft/build.h"
#include "weft/op_def.h"
#include "weft/passes.h"
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

// The same program without loops. An array that a loop stacks is its rows, in the order of the
// axis.
class WrittenOut {
 public:
  explicit WrittenOut(const Graph& graph) : graph_(graph), map_(graph, b_) {}

  GraphRef run() {
    std::vector<Value> inputs = copy_inputs(graph_, b_, map_);
    for (const Op& op : graph_.ops()) {
      std::vector<Value>* rows = op.num_operands == 1 ? rows_of(graph_.operand(op, 0)) : nullptr;
      if (is_scan(op))
        write(op);
      else if (!rows)
        map_.set_results(op, copy_op(graph_, b_, op, map_(graph_.operands(op))));
      else if (op.info == &op_named<"slice">())
        rows_[graph_.result(op).id] = {rows->begin() + op.attrs->ints("start_indices")[0],
                                       rows->begin() + op.attrs->ints("limit_indices")[0]};
      else if (op.info == &op_named<"rev">())
        rows_[graph_.result(op).id] = {rows->rbegin(), rows->rend()};
      else if (CHECK_EQ(rows->size(), size_t{1}); op.info == &op_named<"squeeze">())
        map_.set(graph_.result(op), (*rows)[0]);
    }
    return finish_copy(graph_, b_, map_, inputs);
  }

 private:
  std::vector<Value>* rows_of(Value v) {
    auto at = rows_.find(v.id);
    return at == rows_.end() ? nullptr : &at->second;
  }

  Value row(Value v, int64_t i) {
    if (auto* rows = rows_of(v)) return rows->at(static_cast<size_t>(i));
    Dims start(graph_.type(v)->shape().size(), 0), limit = graph_.type(v)->shape();
    start[0] = i, limit[0] = i + 1;
    return squeeze(slice({&b_, map_(v)}, start, limit), {0}).value;
  }

  void write(const Op& op) {
    auto consts = static_cast<size_t>(op.attrs->integer("num_consts"));
    auto carries = static_cast<size_t>(op.attrs->integer("num_carry"));
    int64_t length = op.attrs->integer("length");
    Values state;
    for (size_t k = 0; k < consts + carries; ++k)
      state.push_back(map_(graph_.operand(op, static_cast<uint32_t>(k))));
    for (int64_t n = 0; n < length; ++n) {
      int64_t i = op.attrs->boolean("reverse") ? length - 1 - n : n;
      Values all = state;
      for (auto k = static_cast<uint32_t>(state.size()); k < op.num_operands; ++k)
        all.push_back(row(graph_.operand(op, k), i));
      Values made = b_.inline_graph(*op.attrs->graph("jaxpr"), all);
      for (size_t k = 0; k < made.size(); ++k) {
        if (k < carries) {
          state[consts + k] = made[k];
          continue;
        }
        std::vector<Value>& rows = rows_[op.results_begin + static_cast<uint32_t>(k)];
        rows.resize(static_cast<size_t>(length));
        rows[static_cast<size_t>(i)] = made[k];
      }
    }
    for (size_t k = 0; k < carries; ++k)
      map_.set({op.results_begin + static_cast<uint32_t>(k)}, state[consts + k]);
  }

  const Graph& graph_;
  GraphBuilder b_;
  ValueMap map_;
  std::unordered_map<uint32_t, std::vector<Value>> rows_;
};

GraphRef written_out(const Graph& graph) { return WrittenOut(graph).run(); }

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
  CHECK(equal(*written_out(*rolled->graph), *graph));
}

TEST(slices_are_read_by_loops_and_results_stacked) {
  for (bool backwards : {false, true}) {
    GraphBuilder b;
    Value xs = b.input(f32({kSteps, 8})), start = b.input(f32({8}));
    Val all{&b, xs}, x{&b, start};
    std::vector<Value> each;
    for (int i = 0; i < kSteps; ++i) {
      int row = backwards ? kSteps - 1 - i : i;
      Val read = squeeze(slice(all, {row, 0}, {row + 1, 8}), {0});
      x = cos(sin(x) + read);
      each.push_back(x.value);
    }
    GraphRef graph = b.finish(each);
    auto rolled = roll(graph);
    CHECK_EQ(rolled->loops.size(), size_t{1});
    verify(*rolled->graph);
    // Reshapes of what is read come to nothing.
    CHECK(equal(*optimize(written_out(*rolled->graph)), *optimize(graph)));
  }
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
