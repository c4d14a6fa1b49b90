// GraphBuilder: numbering, literals, hash-consing, inlining, errors.
#include "check.h"
#include "test_ops.h"
#include "weft/registry.h"

using namespace weft;
using namespace weft::test;

TEST(builds_in_order) {
  GraphBuilder b;
  Value x = b.input(f32({3}));
  Value two = b.literal(make_literal(DType::kF32, 2.0));
  b.set_loc(make_loc("f.py", 1, "f"));
  Value y = add_op(b, kAdd, {x, two});
  CHECK(two.is_literal() && !y.is_literal() && !y.is_none());
  CHECK(b.type(y) == f32({3}));
  CHECK(b.type(two) == f32());
  CHECK(b.as_literal(y) == nullptr);
  CHECK(*b.as_literal(two) == make_literal(DType::kF32, 2.0));
  CHECK(b.producer(x) == nullptr && b.producer(two) == nullptr);
  CHECK(b.producer(y)->info == &kAdd);
  CHECK(b.operands(*b.producer(y))[1] == two);
  GraphRef g = b.finish(Values{y});
  CHECK_EQ(g->num_inputs(), 1u);
  CHECK_EQ(g->num_values(), 2u);
  CHECK_EQ(loc_text(g->op(0).loc), "f.py:1 (f)");
  CHECK(g->output_types() == std::vector<TypeRef>{f32({3})});
  verify(*g);
  CHECK_EQ(b.num_ops(), 0u);
  CHECK_EQ(b.num_inputs(), 0u);
  CHECK(b.input(f32()) == Value{0});
}

TEST(literals_are_shared) {
  GraphBuilder b;
  auto literal = [&](double x) { return b.literal(make_literal(DType::kF32, x)); };
  CHECK(literal(1) == literal(1));
  CHECK(literal(1) != literal(2));
  CHECK(literal(0.0) != literal(-0.0));
  CHECK(literal(0.0 / 0.0) == literal(0.0 / 0.0));
  CHECK(literal(1) != b.literal(make_literal(DType::kF64, 1.0)));
}

TEST(inputs_made_late_are_renumbered) {
  GraphBuilder b;
  Value x = b.input(f32());
  Value y = add_op(b, kNeg, {x});
  Value c = b.input(f32({2}));
  Value d = b.input(f32({3}));
  Value z = add_op(b, kAdd, {y, d});
  CHECK(b.producer(z)->info == &kAdd);
  CHECK(b.producer(d) == nullptr);
  GraphRef g = b.finish(Values{z, c, x}, Values{d});
  verify(*g);
  CHECK_EQ(print(*g),
           "{ lambda a:f32[3]; b:f32[] c:f32[2]. let\n"
           "    d:f32[] = neg b\n"
           "    e:f32[3] = add d a\n"
           "  in (e, c, b) }");
  CHECK(g->producer(g->outputs()[0])->info == &kAdd);
  CHECK(g->producer(g->input(0)) == nullptr);
}

TEST(inputs_made_late_come_before_ops_without_results) {
  GraphBuilder b;
  Value x = b.input(f32());
  const OpDef& barrier = registry().get("optimization_barrier");
  b.add(barrier, Values{}, parse_attrs("", barrier));
  Value y = b.input(f32());
  verify(*b.finish(Values{x, y}));
}

TEST(consts_come_first_in_the_order_given) {
  GraphBuilder b;
  Value x = b.input(f32({1})), y = b.input(f32({2})), z = b.input(f32({3}));
  GraphRef g = b.finish(Values{x, y, z}, Values{z, x});
  CHECK_EQ(print(*g), "{ lambda a:f32[3] b:f32[1]; c:f32[2]. let  in (b, c, a) }");
}

TEST(hash_consing) {
  GraphBuilder b;
  b.set_hash_consing(true);
  Value x = b.input(f32());
  Value y = add_op(b, kNeg, {x});
  CHECK(add_op(b, kNeg, {x}) == y);
  CHECK(add_op(b, kNeg, {y}) != y);
  CHECK(add_op(b, kAdd, {x, y}) != add_op(b, kAdd, {y, x}));
  Value v = b.input(f32({4}));
  auto split = [&](Dims sizes) {
    return b.add(kSplit, Values{v},
                 AttrRecord::make("split", kSplit.attrs, {{"axis", int64_t{0}}, {"sizes", sizes}}));
  };
  CHECK(split({1, 3}) == split({1, 3}));
  CHECK(!(split({1, 3}) == split({2, 2})));
  uint32_t before = b.num_ops();
  add_op(b, kTick, {});
  add_op(b, kTick, {});
  CHECK_EQ(b.num_ops(), before + 2);
}

TEST(hash_consing_leaves_effects_of_regions_alone) {
  GraphRef noisy = parse_test("{ lambda ; a:f32[]. let log[tag=t] a in (a,) }");
  CHECK_EQ(noisy->effects(), static_cast<uint32_t>(kOrdered));
  GraphBuilder b;
  b.set_hash_consing(true);
  Value x = b.input(f32());
  Value y = add_op(b, kJit, {x}, {{"jaxpr", noisy}});
  CHECK(add_op(b, kJit, {x}, {{"jaxpr", noisy}}) != y);
  CHECK_EQ(b.finish({})->effects(), static_cast<uint32_t>(kOrdered));
}

TEST(operands_may_stand_in_the_builder_itself) {
  GraphBuilder b;
  Value x = b.input(f32());
  Value y = add_op(b, kAdd, {x, x});
  for (int i = 0; i < 100; ++i) y = b.add(kAdd, b.operands(*b.producer(y)), nullptr)[0];
  GraphRef g = b.finish(Values{y});
  verify(*g);
  CHECK(g->operand(g->op(99), 1) == x);
}

TEST(inlining) {
  GraphRef g = parse_test(
      "{ lambda ; a:f32[2] b:f32[]. let c:f32[2] = add a b; d:f32[2] = add c 1.0:f32[] in (d, a, "
      "3.0:f32[]) }");
  GraphBuilder b;
  Value x = b.input(f32({2}));
  Value one = b.literal(make_literal(DType::kF32, 1.0));
  Values outputs = b.inline_graph(*g, Values{x, one});
  CHECK_EQ(print(*b.finish(outputs)),
           "{ lambda ; a:f32[2]. let\n"
           "    b:f32[2] = add a 1.0:f32[]\n"
           "    c:f32[2] = add b 1.0:f32[]\n"
           "  in (c, a, 3.0:f32[]) }");
  x = b.input(f32({2}));
  CHECK_THROWS(kType, "expected 2 arguments; got 1", b.inline_graph(*g, Values{x}));
  CHECK_THROWS(kType, "argument 1 to be f32[]; got f32[2]", b.inline_graph(*g, Values{x, x}));
}

TEST(bad_operands) {
  GraphBuilder b;
  Value x = b.input(f32({2})), y = b.input(f32({3}));
  CHECK_THROWS(kShape, "[add] expected equal shapes; got f32[2] and f32[3]",
               add_op(b, kAdd, {x, y}));
  CHECK_THROWS(kType, "[add] expected 2 operands; got 1: f32[2]", add_op(b, kAdd, {x}));
  CHECK_THROWS(kType, "[split] expected attributes; got none", b.add(kSplit, Values{x}, nullptr));
  CHECK_THROWS(kInternal, "expected a value of this builder", add_op(b, kNeg, {Value{7}}));
  CHECK_THROWS(kInternal, "expected a value of this builder", add_op(b, kNeg, {Value{}}));
  CHECK_THROWS(kInternal, "expected a value of this builder", b.finish(Values{Value{7}}));
  Value z = add_op(b, kNeg, {x});
  CHECK_THROWS(kInternal, "distinct inputs", b.finish(Values{}, Values{z}));
  CHECK_THROWS(kInternal, "distinct inputs", b.finish(Values{}, Values{x, x}));
  CHECK_EQ(b.num_ops(), 1u);
}
