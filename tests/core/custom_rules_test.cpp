// Derivatives given from outside, held values and checkpoints, as an embedding would use them.
#include "weft/custom_rules.h"
#include "check.h"
#include "weft/held.h"
#include "weft/weft.h"

using namespace weft;

namespace {

TypeRef f32x3() { return parse_type("f32[3]"); }

// sin, with twice its derivative.
struct TwiceCos final : CustomJvp {
  mutable int asked = 0;
  std::shared_ptr<const JvpGraph> jvp(const Mask& in_mask) const override {
    ++asked;
    CHECK_EQ(in_mask, (Mask{true}));
    auto out = std::make_shared<JvpGraph>();
    out->graph = parse(
        "{ lambda ; x:f32[3] t:f32[3]. let y:f32[3] = sin x c:f32[3] = cos x d:f32[3] = mul c t "
        "e:f32[3] = mul d 2.0:f32[] in (y, e) }");
    out->out_mask = {true};
    return out;
  }
};

// x * w, whose cotangents are (ct * w, ct * x * 3).
struct Backward final : CustomBackward {
  GraphRef backward(const Mask& cotangents) const override {
    CHECK_EQ(cotangents, (Mask{true}));
    return parse(
        "{ lambda ; x:f32[3] w:f32[3] ct:f32[3]. let a:f32[3] = mul ct w b:f32[3] = mul ct x "
        "c:f32[3] = mul b 3.0:f32[] in (a, c) }");
  }
  TypeRefs out_types() const override { return {f32x3()}; }
};
struct Product final : CustomVjp {
  std::shared_ptr<const CustomForward> forward(const Mask&) const override {
    auto out = std::make_shared<CustomForward>();
    out->forward = parse("{ lambda ; x:f32[3] w:f32[3]. let y:f32[3] = mul x w in (y, x, w) }");
    out->backward = std::make_shared<Backward>();
    return out;
  }
};

// k * x, where the function closes over k; with twice its derivative.
struct TwiceScale final : CustomJvp {
  std::shared_ptr<const JvpGraph> jvp(const Mask& in_mask) const override {
    CHECK_EQ(in_mask, (Mask{true}));
    auto out = std::make_shared<JvpGraph>();
    out->graph = parse(
        "{ lambda ; k:f32[3] x:f32[3] t:f32[3]. let y:f32[3] = mul k x d:f32[3] = mul k t "
        "e:f32[3] = mul d 2.0:f32[] in (y, e) }");
    out->out_mask = {true};
    return out;
  }
};

GraphRef call_with_rule(std::string_view op_name, std::string_view callee, ObjectRef rule,
                        int64_t num_consts = 0) {
  const OpDef& op = registry().get(op_name);
  GraphRef graph = parse(callee);
  GraphBuilder b;
  std::vector<Value> args;
  for (TypeRef t : graph->input_types()) args.push_back(b.input(t));
  AttrsRef attrs = AttrRecord::make(
      op.name, op.attrs,
      {{"call_jaxpr", graph}, {"name", "f"}, {"num_consts", num_consts}, {"rule", rule}});
  return b.finish(b.add(op, args, attrs));
}

struct HeldNumbers final : HeldValue {
  TypeRef type() const override { return f32x3(); }
  std::string bytes() const override { return std::string(12, '\0'); }
  uint64_t hash() const override { return 7; }
  bool equals(const AttrObject& other) const override { return this == &other; }
  std::string text() const override { return "numbers"; }
};

Value constant(Builder& b, const ObjectRef& value) {
  const OpDef& op = registry().get("constant");
  return b.add(op, {}, AttrRecord::make(op.name, op.attrs, {{"value", value}}))[0];
}

uint32_t count(const Graph& graph, std::string_view name) {
  uint32_t n = 0;
  for (const Op& op : graph.ops()) n += op.info->name == name;
  return n;
}

}  // namespace

TEST(a_jvp_rule_is_asked_for_derivatives_only) {
  auto rule = std::make_shared<TwiceCos>();
  GraphRef g = call_with_rule("custom_jvp_call",
                              "{ lambda ; x:f32[3]. let y:f32[3] = sin x in (y,) }", rule);
  verify(*g);
  optimize(g);
  vmap(g, {.in_dims = {0}, .size = 2});
  CHECK_EQ(rule->asked, 0);
  auto reverse = vjp(g, {.in_mask = {true}});
  verify(*reverse->graph);
  CHECK_EQ(rule->asked, 1);
  CHECK_EQ(count(*reverse->graph, "cos"), 1u);
  auto mapped = vmap(g, {.in_dims = {0}, .size = 2});
  verify(*vjp(mapped->graph, {.in_mask = {true}})->graph);
  CHECK_EQ(count(*optimize(g), "custom_jvp_call"), 0u);
}

TEST(forward_mode_through_a_vjp_rule_is_an_op_that_is_never_emitted) {
  GraphRef g = call_with_rule("custom_vjp_call",
                              "{ lambda ; x:f32[3] w:f32[3]. let y:f32[3] = mul x w in (y,) }",
                              std::make_shared<Product>());
  auto forward = jvp(g, {.in_mask = {true, false}});
  CHECK_EQ(count(*forward->graph, "custom_lin"), 1u);
  CHECK_THROWS(kType, "reverse mode for 'f'", emit_stablehlo(*forward->graph));
  auto reverse = vjp(g, {.in_mask = {true, true}});
  verify(*reverse->graph);
  CHECK_EQ(count(*reverse->graph, "custom_lin"), 0u);
  // A shared argument gets the sum of the lanes' cotangents.
  auto mapped = vmap(g, {.in_dims = {0, kNotBatched}, .size = 4});
  auto both = vjp(mapped->graph, {.in_mask = {true, true}});
  verify(*both->graph);
  CHECK_EQ(count(*both->graph, "reduce_sum"), 1u);
  CHECK_EQ(both->graph->type(both->graph->outputs()[2]), f32x3());
}

TEST(a_rule_gets_what_the_function_closes_over) {
  GraphRef g = call_with_rule("custom_jvp_call",
                              "{ lambda ; k:f32[3] x:f32[3]. let y:f32[3] = mul k x in (y,) }",
                              std::make_shared<TwiceScale>(), 1);
  auto forward = jvp(g, {.in_mask = {false, true}});
  verify(*forward->graph);
  CHECK_EQ(count(*forward->graph, "mul"), 3u);
  bool refused = false;
  try {
    jvp(g, {.in_mask = {true, true}});
  } catch (const ClosedOverError& error) {
    refused = std::string_view(error.what()).find("'f' to be differentiated") != std::string::npos;
  }
  CHECK(refused);
  // The lanes' own values of k; then what lanes share stays one.
  auto mapped = vmap(g, {.in_dims = {0, kNotBatched}, .size = 2});
  verify(*vjp(mapped->graph, {.in_mask = {false, true}})->graph);
  auto shared = vmap(g, {.in_dims = {kNotBatched, kNotBatched}, .size = 2});
  CHECK_EQ(shared->out_dims[0], kNotBatched);
}

TEST(a_rule_that_was_lost_is_named) {
  GraphRef g = parse(
      "{ lambda ; a:f32[3]. let b:f32[3] = custom_jvp_call[name=lost call_jaxpr={ lambda ; "
      "x:f32[3]. let y:f32[3] = sin x in (y,) } num_consts=0 rule=None] a in (b,) }");
  CHECK_THROWS(kType, "'lost' to have a rule", jvp(g, {.in_mask = {true}}));
}

TEST(held_values_become_inputs_through_calls) {
  ObjectRef held = std::make_shared<HeldNumbers>(), other = std::make_shared<HeldNumbers>();
  GraphBuilder inner;
  Value x = inner.input(f32x3());
  Value sum = inner.add(registry().get("add"), Values{x, constant(inner, held)}, nullptr)[0];
  GraphRef callee = inner.finish(Values{sum});
  GraphBuilder b;
  Value a = b.input(f32x3());
  const OpDef& jit = registry().get("jit");
  Value called = b.add(jit, Values{a}, AttrRecord::make("jit", jit.attrs, {{"jaxpr", callee}}))[0];
  Value c = constant(b, other), d = constant(b, held);
  Value product = b.add(registry().get("mul"), Values{c, d}, nullptr)[0];
  GraphRef g = b.finish(Values{called, product});
  auto lifted = lift_constants(g);
  verify(*lifted->graph);
  CHECK_EQ(lifted->constants.size(), size_t{2});
  CHECK_EQ(lifted->graph->num_inputs(), 3u);
  CHECK_EQ(count(*lifted->graph, "constant"), 0u);
  GraphRef plain = parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }");
  CHECK(lift_constants(plain)->graph == plain);
}

TEST(a_checkpoint_keeps_what_its_policy_says) {
  const char* text =
      "{ lambda ; a:f32[3,3]. let b:f32[3,3] = checkpoint[name=f jaxpr={ lambda ; x:f32[3,3]. let "
      "y:f32[3,3] = dot_general[dimension_numbers=(([1], [0]), ([], [])) precision=None "
      "preferred_element_type=float32] x x z:f32[3,3] = sin y in (z,) } policy=None] a in (b,) }";
  GraphRef g = parse(text);
  auto none = linearize(g, {.in_mask = {true}});
  CHECK(none->residuals == (std::vector<Residual>{{.is_input = true, .index = 0}}));
  GraphBuilder b;
  Value a = b.input(parse_type("f32[3,3]"));
  const Op& op = g->op(0);
  AttrsRef attrs = op.attrs->with({{"policy", ObjectRef(save_policy("dots_saveable"))}});
  GraphRef saving = b.finish(b.add(*op.info, Values{a}, attrs));
  CHECK_EQ(linearize(saving, {.in_mask = {true}})->residuals.size(), size_t{2});
  verify(*vjp(saving, {.in_mask = {true}})->graph);
  CHECK_THROWS(kValue, "expected a policy that exists; got dots", save_policy("dots"));
}
