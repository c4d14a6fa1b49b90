// grad and value_and_grad of graphs, and what they refuse; what a run of a graph takes.
#include "check.h"
#include "weft/weft.h"

using namespace weft;

namespace {

const char* const kProduct = "{ lambda ; a:f32[] b:f32[] c:i32[]. let d:f32[] = mul a b in (d,) }";

std::string optimized(const GraphRef& graph) { return print(*optimize(graph)); }

}  // namespace

TEST(grad_of_one_input_and_of_several) {
  GraphRef graph = parse(kProduct);
  CHECK_EQ(optimized(grad(graph)), "{ lambda ; a:f32[] b:f32[] c:i32[]. let  in (b,) }");
  CHECK_EQ(optimized(grad(graph, {1, 0})), "{ lambda ; a:f32[] b:f32[] c:i32[]. let  in (a, b) }");
  CHECK_EQ(grad(graph, {})->outputs().size(), 0u);
}

TEST(value_and_grad_keeps_the_value) {
  CHECK_EQ(optimized(value_and_grad(parse(kProduct), {1})),
           "{ lambda ; a:f32[] b:f32[] c:i32[]. let d:f32[] = mul a b in (d, a) }");
}

TEST(grad_of_grad_and_of_constants) {
  GraphRef cube = parse("{ lambda ; a:f32[]. let b:f32[] = mul a a c:f32[] = mul a b in (c,) }");
  GraphRef third = optimize(grad(grad(grad(cube))));
  verify(*third);
  CHECK(third->outputs()[0].is_literal());
  CHECK_EQ(third->literal(third->outputs()[0]).as_double(), 6.0);
  GraphRef constant = grad(parse("{ lambda ; a:f32[3] b:f32[]. let  in (b,) }"));
  CHECK_EQ(constant->output_types()[0], parse_type("f32[3]"));
  GraphRef closed = grad(parse("{ lambda a:f32[] ; b:f32[]. let c:f32[] = mul a b in (c,) }"), {1});
  CHECK_EQ(closed->num_consts(), 1u);
}

TEST(grad_refuses) {
  CHECK_THROWS(kType, "[grad] expected one output, a float scalar; got f32[2]",
               grad(parse("{ lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }")));
  CHECK_THROWS(kType, "[value_and_grad] expected one output, a float scalar; got f32[], f32[]",
               value_and_grad(parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (a, b) }")));
  CHECK_THROWS(kType, "got i32[]", grad(parse("{ lambda ; a:i32[]. let  in (a,) }")));
  CHECK_THROWS(kType, "got none", grad(parse("{ lambda ; a:f32[]. let  in () }")));
  GraphRef graph = parse(kProduct);
  CHECK_THROWS(kDtype, "[grad] expected inputs of a float dtype; got input 2 of type i32[]",
               grad(graph, {2}));
  CHECK_THROWS(kValue, "[grad] expected numbers of the graph's 3 inputs; got 3", grad(graph, {3}));
  CHECK_THROWS(kValue, "[grad] got input 1 twice", grad(graph, {1, 1}));
}

TEST(analysis_of_a_call_is_that_of_its_ops) {
  std::string body =
      "{ lambda ; a:f32[6]. let b:f32[6] = sin a c:f32[6] = cos a d:f32[6] = mul b c in (d,) }";
  Analysis plain = analyze(*parse(body));
  CHECK_EQ(plain.total.ops, 3.0);
  CHECK_EQ(plain.critical_path, 2.0);
  CHECK_EQ(plain.width, 2.0);
  CHECK_EQ(plain.peak_bytes, 72.0);
  CHECK_EQ(plain.total.cost.flops, 6.0);
  CHECK_EQ(plain.total.cost.bytes, 168.0);
  Analysis called = analyze(
      *parse("{ lambda ; a:f32[6]. let b:f32[6] = jit[name=f jaxpr=" + body + "] a in (b,) }"));
  CHECK_EQ(to_text(called), to_text(plain));
}
