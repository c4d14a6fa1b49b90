// A chain of a million ops goes through everything without recursion.
#include "check.h"
#include "test_ops.h"

using namespace weft;
using namespace weft::test;

namespace {

constexpr int kLength = 1'000'000;

GraphRef chain(bool hash_consing) {
  GraphBuilder b;
  b.set_hash_consing(hash_consing);
  Value x = b.input(f32({8}));
  for (int i = 0; i < kLength; ++i) x = b.add(kNeg, Values{x}, nullptr)[0];
  return b.finish(Values{x});
}

}  // namespace

TEST(million_ops) {
  GraphRef g = chain(false);
  CHECK_EQ(g->ops().size(), size_t{kLength});
  GraphRef other = chain(true);
  CHECK_EQ(g->structural_hash(), other->structural_hash());
  CHECK(equal(*g, *other));
  verify(*g);
  std::string text = print(*g);
  GraphRef back = parse_test(text);
  CHECK(equal(*back, *g));
  CHECK(print(*back) == text);
  GraphBuilder b;
  Values outputs = b.inline_graph(*g, Values{b.input(f32({8}))});
  CHECK(equal(*b.finish(outputs), *g));
}

TEST(shared_calls_print_in_linear_size) {
  // Each level calls the one below twice: 2**60 ops when written out.
  GraphRef g = parse_test("{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }");
  for (int level = 0; level < 60; ++level) {
    GraphBuilder b;
    Value x = b.input(f32());
    for (int i = 0; i < 2; ++i) x = add_op(b, kJit, {x}, {{"jaxpr", g}});
    g = b.finish(Values{x});
  }
  std::string text = print(*g);
  CHECK(text.size() < 20'000);
  GraphRef back = parse_test(text);
  CHECK(equal(*back, *g));
  verify(*back);
}
