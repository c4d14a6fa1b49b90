// jvp, linearize, transpose, vjp and vmap of plain ops, on program text.
#include "check.h"
#include "weft/weft.h"

using namespace weft;

namespace {

// A text without line breaks and indentation.
std::string flat(const Graph& graph) {
  std::string out;
  for (char c : print(graph)) {
    bool space = c == ' ' || c == '\n';
    if (!space || (!out.empty() && out.back() != ' ')) out.push_back(space ? ' ' : c);
  }
  return out;
}

std::vector<Residual> residuals_of(std::string_view text) {
  return linearize(parse(text), {.in_mask = {true}})->residuals;
}

GraphRef chain_of_sin(int length) {
  GraphBuilder b;
  Val x{&b, b.input(parse_type("f32[8]"))};
  for (int i = 0; i < length; ++i) x = sin(x);
  return b.finish(Values{x.value});
}

// An op without any rule.
const OpDef& opaque() {
  static const OpDef op = [] {
    OpDef d;
    d.name = "opaque";
    d.infer = [](const InferCtx& c) { return TypeRefs{c.in(0)}; };
    return d;
  }();
  return op;
}

GraphRef opaque_graph(Loc loc) {
  GraphBuilder b;
  b.set_loc(loc);
  Value x = b.input(parse_type("f32[3]"));
  return b.finish(b.add(opaque(), Values{x}, nullptr));
}

}  // namespace

TEST(jvp_skips_zero_tangents) {
  GraphRef g = parse(
      "{ lambda ; a:f32[3] b:f32[3] n:i32[3]. let c:f32[3] = sin a d:f32[3] = mul c b "
      "e:f32[3] = floor d f:f32[3] = exp b m:i32[3] = add n n in (d, e, f, m) }");
  auto r = jvp(g, {.in_mask = {true, false, false}});
  CHECK_EQ(r->out_mask, (Mask{true, false, false, false}));
  CHECK_EQ(flat(*r->graph),
           "{ lambda ; a:f32[3] b:f32[3] c:i32[3] d:f32[3]. let e:f32[3] = sin a f:f32[3] = cos a "
           "g:f32[3] = mul d f h:f32[3] = mul e b i:f32[3] = mul g b j:f32[3] = floor h "
           "k:f32[3] = exp b l:i32[3] = add c c in (h, j, k, l, i) }");
  auto all = jvp(g, {.in_mask = {true, false, false}, .instantiate = {true, true, true, true}});
  CHECK_EQ(all->out_mask, (Mask{true, true, true, false}));
  verify(*all->graph);
}

TEST(results_are_kept_on_the_source) {
  GraphRef g = chain_of_sin(3);
  CHECK(jvp(g, {.in_mask = {true}}) == jvp(g, {.in_mask = {true}}));
  CHECK(jvp(g, {.in_mask = {true}}) != jvp(g, {.in_mask = {false}}));
  CHECK(vmap(g, {.in_dims = {0}, .size = 2}) == vmap(g, {.in_dims = {0}, .size = 2}));
  CHECK(vmap(g, {.in_dims = {0}, .size = 2}) != vmap(g, {.in_dims = {1}, .size = 2}));
}

TEST(tangents_of_integers_are_refused) {
  GraphRef g = parse("{ lambda ; a:i32[3]. let b:i32[3] = add a a in (b,) }");
  CHECK_THROWS(kDtype, "jvp expected inputs with tangents to be float or complex; got input 0",
               jvp(g, {.in_mask = {true}}));
  CHECK_THROWS(kDtype, "linearize expected inputs", linearize(g, {.in_mask = {true}}));
}

TEST(missing_rules_name_op_and_line) {
  GraphRef g = opaque_graph(make_loc("model.py", 12, "layer"));
  CHECK_THROWS(kNotImplemented,
               "[opaque] has no rule for differentiation\n  at model.py:12 (layer)",
               jvp(g, {.in_mask = {true}}));
  CHECK_THROWS(kNotImplemented, "[opaque] has no rule for differentiation",
               linearize(g, {.in_mask = {true}}));
  CHECK_THROWS(kNotImplemented, "[opaque] has no rule for reverse-mode differentiation\n  at model",
               transpose(g, {.linear = {true}, .cotangents = {true}}));
  CHECK_THROWS(kNotImplemented, "[opaque] has no rule for vmap\n  at model.py:12 (layer)",
               vmap(g, {.in_dims = {0}, .size = 2}));
  // Where nothing depends on it, no rule is needed.
  CHECK_EQ(jvp(g, {.in_mask = {false}})->out_mask, Mask{false});
  CHECK_EQ(vmap(g, {.in_dims = {kNotBatched}, .size = 2})->out_dims, BatchDims{kNotBatched});
}

TEST(linearize_splits) {
  GraphRef g = parse(
      "{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[3] = mul b a d:f32[] = "
      "reduce_sum[axes=(0,)] c in (d,) }");
  auto r = linearize(g, {.in_mask = {true}});
  CHECK_EQ(flat(*r->forward),
           "{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[3] = cos a d:f32[3] = mul b a "
           "e:f32[] = reduce_sum[axes=(0,)] d in (e, c, b) }");
  CHECK_EQ(flat(*r->linear),
           "{ lambda ; a:f32[3] b:f32[3] c:f32[3] d:f32[3]. let e:f32[3] = mul d a "
           "f:f32[3] = mul e b g:f32[3] = mul d c h:f32[3] = add_any f g "
           "i:f32[] = reduce_sum[axes=(0,)] h in (i,) }");
  CHECK(r->residuals == (std::vector<Residual>{{false, 1}, {true, 0}, {false, 2}}));
}

TEST(residuals_that_are_outputs_are_no_extra_outputs) {
  CHECK(residuals_of("{ lambda ; a:f32[3]. let b:f32[3] = exp a in (b,) }") ==
        (std::vector<Residual>{{false, 0}}));
}

TEST(constants_are_no_residuals) {
  CHECK(residuals_of("{ lambda ; a:f32[3]. let b:f32[3] = broadcast_in_dim 2.0:f32[] "
                     "c:f32[3] = mul a b d:f32[3] = mul c 3.0:f32[] in (d,) }")
            .empty());
}

TEST(unused_residuals_are_pruned) {
  // The tangent of exp is not asked for in the end, so neither is its slope.
  GraphRef g = parse(
      "{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[3] = floor b d:f32[3] = add c a "
      "in (d,) }");
  auto r = linearize(g, {.in_mask = {true}});
  CHECK(r->residuals.empty());
  CHECK_EQ(flat(*r->forward),
           "{ lambda ; a:f32[3]. let b:f32[3] = sin a c:f32[3] = floor b d:f32[3] = add c a "
           "in (d,) }");
}

TEST(transpose_sums_repeated_operands) {
  GraphRef g = parse(
      "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b d:f32[3] = add c c e:f32[3] = neg b "
      "f:f32[3] = add d e in (f, b) }");
  auto r = transpose(g, {.linear = {false, true}, .cotangents = {true, true}});
  CHECK_EQ(flat(*r->graph),
           "{ lambda ; a:f32[3] b:f32[3] c:f32[3]. let d:f32[3] = neg b e:f32[3] = add_any c d "
           "f:f32[3] = add_any b b g:f32[3] = mul f a h:f32[3] = add_any e g in (h,) }");
}

TEST(transpose_of_zero) {
  GraphRef g =
      parse("{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = neg a d:f32[3] = neg b in (c, d) }");
  TransposeOptions options{.linear = {true, true}, .cotangents = {true, false}};
  auto r = transpose(g, options);
  CHECK_EQ(r->out_mask, (Mask{true, false}));
  CHECK_EQ(r->graph->outputs().size(), size_t{1});
  options.instantiate = true;
  r = transpose(g, options);
  CHECK_EQ(r->out_mask, (Mask{true, true}));
  CHECK_EQ(r->graph->outputs().size(), size_t{2});
}

TEST(slices_share_one_cotangent) {
  GraphBuilder b;
  constexpr int kSlices = 50;
  Val x{&b, b.input(parse_type("f32[5000]"))};
  Values outputs;
  for (int64_t i = 0; i < kSlices; ++i)
    outputs.push_back(slice(x, {100 * i}, {100 * i + 100}).value);
  GraphRef g = b.finish(outputs);
  auto r = transpose(g, {.linear = {true}, .cotangents = Mask(kSlices, true)});
  // The blocks are put together once.
  int full = 0;
  for (const Op& op : r->graph->ops())
    full += r->graph->type(r->graph->result(op)) == parse_type("f32[5000]");
  CHECK_EQ(full, 1);
}

TEST(vjp_joins_forward_and_backward) {
  GraphRef g = parse("{ lambda ; a:f32[3] b:i32[]. let c:f32[3] = exp a in (c, b) }");
  auto r = vjp(g, {.in_mask = {true, false}});
  CHECK_EQ(r->ct_mask, (Mask{true, false}));
  CHECK_EQ(flat(*r->graph),
           "{ lambda ; a:f32[3] b:i32[] c:f32[3]. let d:f32[3] = exp a e:f32[3] = mul c d "
           "in (d, b, e) }");
  // Without a cotangent the gradient is zero, and made.
  r = vjp(g, {.in_mask = {true, false}, .cotangents = {false, false}});
  CHECK_EQ(r->ct_mask, (Mask{false, false}));
  CHECK_EQ(r->graph->outputs().size(), size_t{3});
}

TEST(vmap_copies_what_is_not_mapped) {
  GraphRef g = parse(
      "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = sin a d:f32[3] = mul c b in (c, d, 1.0:f32[]) "
      "}");
  auto r = vmap(g, {.in_dims = {kNotBatched, 1}, .size = 4});
  CHECK_EQ(r->out_dims, (BatchDims{kNotBatched, 1, kNotBatched}));
  CHECK_EQ(r->graph->output_types()[0], parse_type("f32[3]"));
  CHECK_EQ(r->graph->output_types()[1], parse_type("f32[3,4]"));
}

TEST(vmap_moves_outputs_where_asked) {
  GraphRef g = parse(
      "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = sin a d:f32[3] = mul c b in (c, d, 1.0:f32[]) "
      "}");
  VmapOptions options{.in_dims = {kNotBatched, 1}, .size = 4, .out_dims = {1, 0, 0}};
  auto r = vmap(g, options);
  CHECK_EQ(r->out_dims, (BatchDims{1, 0, 0}));
  CHECK_EQ(r->graph->output_types()[0], parse_type("f32[3,4]"));
  CHECK_EQ(r->graph->output_types()[1], parse_type("f32[4,3]"));
  CHECK_EQ(r->graph->output_types()[2], parse_type("f32[4]"));
  options.out_dims = {kNotBatched, kAnyDim, kNotBatched};
  CHECK_EQ(vmap(g, options)->out_dims, (BatchDims{kNotBatched, 1, kNotBatched}));
  options.out_dims = {0, kNotBatched, 0};
  CHECK_THROWS(kValue, "vmap out_axes: expected output 1, for which it has None, not to depend",
               vmap(g, options));
  options.in_dims = {2, 0};
  CHECK_THROWS(kValue, "vmap expected an axis for input 0 between 0 and 1; got 2",
               vmap(g, options));
}

TEST(a_value_being_built_has_a_tangent_where_its_derivative_is_not_zero) {
  GraphRef g = parse(
      "{ lambda ; x:f32[3] y:f32[3]. let c:f32[3] = mul x y d:f32[3] e:f32[3] = jit[ name=f "
      "jaxpr={ "
      "lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a a in (c, b) } ] x y f:f32[3] = floor x "
      "h:f32[3] = mul f y i:i32[3] = convert_element_type[new_dtype=i32] x "
      "j:f32[3] = convert_element_type[new_dtype=f32] i in (x, y, c, d, e, f, h, i, j, 1.0:f32[]) "
      "}");
  GraphBuilder b;
  Values inputs{b.input(g->input_types()[0]), b.input(g->input_types()[1])};
  Values outputs = b.inline_graph(*g, inputs);
  auto has = [&](Value of) {
    Mask mask;
    for (Value v : outputs)
      mask.push_back(has_tangent(b, v, [&](Value input) { return input == of; }));
    return mask;
  };
  CHECK_EQ(has(inputs[0]),
           (Mask{true, false, true, true, false, false, false, false, false, false}));
  CHECK_EQ(has(inputs[0]), jvp(g, {.in_mask = {true, false}})->out_mask);
  CHECK_EQ(has(inputs[1]), jvp(g, {.in_mask = {false, true}})->out_mask);
}

TEST(locations_are_kept) {
  GraphBuilder b;
  Loc loc = make_loc("f.py", 3, "f");
  b.set_loc(loc);
  GraphRef g = b.finish(Values{exp(Val{&b, b.input(parse_type("f32[3]"))}).value});
  auto made_at_loc = [&](const GraphRef& made) {
    for (const Op& op : made->ops()) CHECK_EQ(place_of(op.loc), loc);
  };
  made_at_loc(jvp(g, {.in_mask = {true}})->graph);
  made_at_loc(vjp(g, {.in_mask = {true}})->graph);
  made_at_loc(vmap(g, {.in_dims = {0}, .size = 2})->graph);
}

TEST(long_chains) {
  constexpr int kLength = 20'000;
  GraphRef g = chain_of_sin(kLength);
  GraphRef gradient = vjp(g, {.in_mask = {true}})->graph;
  CHECK_EQ(gradient->ops().size(), size_t{3 * kLength});
  verify(*gradient);
  verify(*jvp(g, {.in_mask = {true}})->graph);
  verify(*vjp(gradient, {.in_mask = {true, true}})->graph);
  verify(*vmap(gradient, {.in_dims = {0, 0}, .size = 3})->graph);
  GraphBuilder b;
  Values last = b.inline_graph(*g, Values{b.input(parse_type("f32[8]"))});
  CHECK(has_tangent(b, last[0], [](Value) { return true; }));
  CHECK(!has_tangent(b, last[0], [](Value) { return false; }));
}
