// Frozen graphs: structural identity, verification, the cache of derived values.
#include <algorithm>
#include <thread>

#include "check.h"
#include "test_ops.h"

using namespace weft;
using namespace weft::test;

namespace {

// Whether two programs are equal; their hashes must agree with that.
bool same(const char* a, const char* b) {
  GraphRef x = parse_test(a), y = parse_test(b);
  bool is_equal = equal(*x, *y);
  CHECK_EQ(is_equal, x->structural_hash() == y->structural_hash());
  return is_equal;
}

}  // namespace

TEST(structure_ignores_names) {
  CHECK(same("{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }",
             "{ lambda ; x:f32[]. let y:f32[] = neg x in (y,) }"));
  CHECK(
      same("{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr={ lambda ; a:f32[]. let in (a,) } name=f]"
           " a in (b,) }",
           "{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr={ lambda ; c:f32[]. let in (c,) } name=g]"
           " a in (b,) }"));
}

TEST(structure_sees_the_rest) {
  const char* base = "{ lambda ; a:f32[] b:f32[]. let c:f32[] = add a b in (c,) }";
  CHECK(same(base, base));
  for (const char* other : {"{ lambda ; a:f32[] b:f32[]. let c:f32[] = add b a in (c,) }",
                            "{ lambda a:f32[]; b:f32[]. let c:f32[] = add a b in (c,) }",
                            "{ lambda ; a:f16[] b:f16[]. let c:f16[] = add a b in (c,) }",
                            "{ lambda ; a:f32[] b:f32[]. let c:f32[] = add a b in (c, c) }",
                            "{ lambda ; a:f32[] b:f32[]. let c:f32[] = add a b in (b,) }",
                            "{ lambda ; a:f32[] b:f32[]. let c:f32[] = add a 1.0:f32[] in (c,) }",
                            "{ lambda ; a:f32[] b:f32[]. let c:f32[] = neg a in (c,) }",
                            "{ lambda ; a:f32[] b:f32[]. let in (a,) }"}) {
    CHECK(!same(base, other));
  }
  CHECK(!same("{ lambda ; . let in (1.0:f32[],) }", "{ lambda ; . let in (2.0:f32[],) }"));
  CHECK(!same("{ lambda ; . let in (1:i32[],) }", "{ lambda ; . let in (1:i64[],) }"));
  CHECK(!same("{ lambda ; a:f32[4]. let b:f32[1] c:f32[3] = split[axis=0 sizes=(1, 3)] a in (b,) }",
              "{ lambda ; a:f32[4]. let b:f32[1] c:f32[3] = split[axis=0 sizes=(1, 3)] a in (a,) "
              "}"));
  CHECK(
      !same("{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr={ lambda ; a:f32[]. let in (a,) }] a in "
            "(b,) }",
            "{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr={ lambda ; a:f32[]. let in (1.0:f32[],) "
            "}] a in (b,) }"));
}

TEST(literals_compare_by_content) {
  auto build = [](std::initializer_list<double> unused) {
    GraphBuilder b;
    for (double x : unused) b.literal(make_literal(DType::kF32, x));
    Value x = b.input(f32());
    return b.finish(Values{add_op(b, kAdd, {x, b.literal(make_literal(DType::kF32, 5.0))})});
  };
  GraphRef a = build({}), b = build({1, 2, 3});
  CHECK(equal(*a, *b));
  CHECK_EQ(a->structural_hash(), b->structural_hash());
}

TEST(locations_do_not_count) {
  auto build = [](int line) {
    GraphBuilder b;
    b.set_loc(make_loc("f.py", line, "f"));
    return b.finish(Values{add_op(b, kNeg, {b.input(f32())})});
  };
  CHECK(equal(*build(1), *build(2)));
}

TEST(structural_hash_is_the_same_in_every_process) {
  // A key of caches on disk: a change of this value throws those away.
  GraphRef g = parse_test("{ lambda ; a:f32[3]. let b:f32[3] = add a 1.0:f32[] in (b,) }");
  CHECK_EQ(g->structural_hash(), uint64_t{6696431754919531016u});
}

TEST(verification) {
  verify(
      *parse_test("{ lambda a:f32[]; b:f32[2]. let c:f32[2] = add a b; log[tag=x] c in (c, "
                  "1.0:f32[]) }"));
  GraphBuilder b;
  Value x = b.input(f32({2}));
  Value y = b.add_typed(kNeg, Values{x}, nullptr, TypeRefs{f32({3})})[0];
  GraphRef wrong = b.finish(Values{y});
  CHECK_THROWS(kInternal, "op 0 (neg) expected result types f32[2]; got b:f32[3] = neg a",
               verify(*wrong));
  x = b.input(f32({2}));
  y = b.add_typed(kAdd, Values{x, b.input(f32({3}))}, nullptr, TypeRefs{f32({2})})[0];
  CHECK_THROWS(kInternal, "fails inference: [add] expected equal shapes",
               verify(*b.finish(Values{y})));
  Value z = b.input(f32({2}));
  z = add_op(b, kJit, {z}, {{"jaxpr", wrong}});
  CHECK_THROWS(kInternal, "op 0 (neg)", verify(*b.finish(Values{z})));
}

TEST(cached_values) {
  GraphRef g = parse_test("{ lambda ; a:f32[]. let in (a,) }");
  int made = 0;
  auto get = [&](const std::string& key) {
    return g->cached<int>(key, [&] { return std::make_shared<const int>(++made); });
  };
  CHECK_EQ(*get("a"), 1);
  CHECK_EQ(*get("b"), 2);
  CHECK_EQ(*get("a"), 1);
  auto nested = g->cached<int>("c", [&] { return get("d"); });
  CHECK(nested == get("d"));
  CHECK_THROWS(kValue, "no", g->cached<int>("e", [&]() -> std::shared_ptr<const int> {
    fail(ErrorKind::kValue, "no");
  }));
  CHECK_EQ(*get("e"), 4);
}

TEST(cached_values_are_bounded) {
  GraphRef g = parse_test("{ lambda ; a:f32[]. let in (a,) }");
  std::vector<std::weak_ptr<const int>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(
        g->cached<int>(std::to_string(i), [&] { return std::make_shared<const int>(i); }));
    g->cached<int>("0", [] { return std::make_shared<const int>(-1); });  // used all the time
  }
  auto alive = [](const std::weak_ptr<const int>& p) { return !p.expired(); };
  CHECK_EQ(static_cast<size_t>(std::count_if(all.begin(), all.end(), alive)), Graph::kMaxCached);
  CHECK(alive(all[0]) && !alive(all[1]) && alive(all[199]));
}

TEST(cache_from_threads) {
  GraphRef g = parse_test("{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }");
  std::vector<std::shared_ptr<const int>> values(4);
  std::vector<uint64_t> hashes(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < values.size(); ++i) {
    threads.emplace_back([&, i] {
      values[i] = g->cached<int>("k", [] { return std::make_shared<const int>(1); });
      hashes[i] = g->structural_hash();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 1; i < values.size(); ++i) CHECK(values[i] == values[0]);
  for (size_t i = 1; i < values.size(); ++i) CHECK_EQ(hashes[i], hashes[0]);
}
