// Transforms of calls: the callee is transformed, once for all its callers.
#include <set>

#include "check.h"
#include "weft/weft.h"

using namespace weft;

namespace {

const OpDef& jit() { return registry().get("jit"); }

Values call(Builder& b, const GraphRef& graph, std::span<const Value> args) {
  return b.add(jit(), args, AttrRecord::make("jit", jit().attrs, {{"jaxpr", graph}}));
}

// (x, w, n) -> (sin(x) * w, n + 1)
GraphRef layer() {
  return parse(
      "{ lambda ; x:f32[3] w:f32[3] n:i32[]. let s:f32[3] = sin x t:f32[3] = mul s w "
      "m:i32[] = add n 1:i32[] in (t, m) }");
}

GraphRef stack_of_layers(int depth) {
  GraphRef callee = layer();
  GraphBuilder b;
  Value x = b.input(parse_type("f32[3]")), w = b.input(parse_type("f32[3]")),
        n = b.input(parse_type("i32[]"));
  for (int i = 0; i < depth; ++i) {
    Values made = call(b, callee, Values{x, w, n});
    x = made[0];
    n = made[1];
  }
  return b.finish(Values{x, n});
}

std::set<const Graph*> callees(const Graph& graph) {
  std::set<const Graph*> all;
  for (const Op& op : graph.ops()) {
    for_each_graph(op.attrs, [&](const GraphRef& callee) { all.insert(callee.get()); });
  }
  return all;
}

}  // namespace

TEST(a_callee_is_transformed_once) {
  GraphRef g = stack_of_layers(48);
  auto forward = jvp(g, {.in_mask = {true, true, false}});
  CHECK_EQ(forward->out_mask, (Mask{true, false}));
  verify(*forward->graph);
  // The first call has tangents of x and w, and so have the others.
  CHECK_EQ(callees(*forward->graph).size(), size_t{1});
  auto reverse = vjp(g, {.in_mask = {true, true, false}});
  verify(*reverse->graph);
  CHECK_EQ(callees(*reverse->graph).size(), size_t{2});
  auto mapped = vmap(g, {.in_dims = {0, kNotBatched, kNotBatched}, .size = 2});
  verify(*mapped->graph);
  CHECK_EQ(callees(*mapped->graph).size(), size_t{1});
  CHECK_EQ(mapped->out_dims, (BatchDims{0, kNotBatched}));
  verify(*vjp(reverse->graph, {.in_mask = {true, true, false, false}})->graph);
}

TEST(calls_without_tangents_are_copied) {
  GraphRef g = stack_of_layers(2);
  auto r = jvp(g, {.in_mask = {false, false, false}});
  CHECK_EQ(callees(*r->graph), callees(*g));
}

TEST(residuals_of_calls_are_pruned) {
  // The callee's second output, and what its tangent needs, is dropped by the caller.
  GraphRef callee = parse("{ lambda ; x:f32[3]. let a:f32[3] = sin x b:f32[3] = exp x in (a, b) }");
  GraphBuilder b;
  Value x = b.input(parse_type("f32[3]"));
  GraphRef g = b.finish(Values{call(b, callee, Values{x})[0]});
  auto r = linearize(g, {.in_mask = {true}});
  CHECK_EQ(r->residuals.size(), size_t{1});
  for (const Graph* made : callees(*r->forward)) {
    for (const Op& op : made->ops()) CHECK(op.info->name != "exp");
  }
  verify(*r->forward);
  verify(*r->linear);
}

TEST(residuals_of_calls_that_are_operands_stay_operands) {
  GraphRef callee = parse("{ lambda ; x:f32[3] y:f32[3]. let a:f32[3] = mul x y in (a,) }");
  GraphBuilder b;
  Value x = b.input(parse_type("f32[3]")), y = b.input(parse_type("f32[3]"));
  GraphRef g = b.finish(call(b, callee, Values{x, y}));
  auto r = linearize(g, {.in_mask = {true, true}});
  CHECK_EQ(r->forward->outputs().size(), size_t{1});
  CHECK_EQ(r->residuals.size(), size_t{2});
  for (const Residual& residual : r->residuals) CHECK(residual.is_input);
}

TEST(errors_in_callees_name_both_lines) {
  static const OpDef op = [] {
    OpDef d;
    d.name = "opaque_in_callee";
    d.infer = [](const InferCtx& c) { return TypeRefs{c.in(0)}; };
    return d;
  }();
  GraphBuilder inner;
  inner.set_loc(make_loc("layer.py", 7, "layer"));
  GraphRef callee = inner.finish(inner.add(op, Values{inner.input(parse_type("f32[3]"))}, nullptr));
  GraphBuilder b;
  b.set_loc(make_loc("train.py", 3, "loss"));
  GraphRef g = b.finish(call(b, callee, Values{b.input(parse_type("f32[3]"))}));
  CHECK_THROWS(kNotImplemented, "\n  at layer.py:7 (layer)\n  at train.py:3 (loss)",
               jvp(g, {.in_mask = {true}}));
}

// A rule that computes values and tangents in one call, as user-defined rules may.
TEST(calls_that_mix_values_and_tangents_are_split) {
  static const GraphRef both = parse(
      "{ lambda ; x:f32[3] t:f32[3]. let y:f32[3] = sin x c:f32[3] = cos x u:f32[3] = mul t c "
      "in (y, u) }");
  static const OpDef op = [] {
    OpDef d;
    d.name = "mixed";
    d.multiple_results = true;
    d.infer = [](const InferCtx& c) { return TypeRefs{c.in(0)}; };
    d.jvp_kind = JvpKind::kGraph;
    d.graph_linearize = [](GraphJvpCtx& c) {
      Values made = call(c.b, both, Values{c.operands[0], c.tangents[0]});
      c.results = {made[0]};
      c.result_tangents = {made[1]};
    };
    return d;
  }();
  GraphBuilder b;
  GraphRef g = b.finish(b.add(op, Values{b.input(parse_type("f32[3]"))}, nullptr));
  auto r = linearize(g, {.in_mask = {true}});
  // A call of sin and cos, and one of mul, to which the cosine is handed.
  CHECK_EQ(r->forward->ops().size(), size_t{1});
  CHECK_EQ((*callees(*r->forward).begin())->ops().size(), size_t{2});
  CHECK_EQ(r->residuals.size(), size_t{1});
  CHECK_EQ((*callees(*r->linear).begin())->ops().size(), size_t{1});
  verify(*r->forward);
  verify(*r->linear);
}

// Known results of a call with linear ones are computed first, once, and may be used as such.
TEST(transposes_take_calls_apart) {
  GraphRef callee =
      parse("{ lambda ; d:f32[3] s:f32[3]. let e:f32[3] = sin d t:f32[3] = mul s e in (e, t) }");
  GraphBuilder b;
  Value d = b.input(parse_type("f32[3]")), s = b.input(parse_type("f32[3]"));
  Values both = call(b, callee, Values{d, s});
  GraphRef g = b.finish(b.add(registry().get("mul"), both, nullptr));
  auto r = transpose(g, {.linear = {false, true}, .cotangents = {true}});
  verify(*r->graph);
  size_t num_sines = 0;
  for (const Graph* made : callees(*r->graph))
    for (const Op& op : made->ops()) num_sines += op.info->name == "sin";
  CHECK_EQ(num_sines, size_t{1});
  CHECK_THROWS(kNotImplemented, "[mul] is not linear in operands 0, 1 together",
               transpose(g, {.linear = {true, true}, .cotangents = {true}}));
}
