// Meshes and shardings: interning, what they refuse, which block is where, and their text.
#include "weft/sharding.h"

#include "check.h"
#include "weft/graph_rules.h"

using namespace weft;

namespace {

MeshRef grid() { return make_mesh({{"x", 2}, {"y", 4}}, {0, 1, 2, 3, 4, 5, 6, 7}); }

}  // namespace

TEST(meshes_are_interned) {
  CHECK(grid() == grid());
  CHECK(grid() != make_mesh({{"x", 2}, {"y", 4}}, {1, 0, 2, 3, 4, 5, 6, 7}));
  CHECK(grid()->abstract() == make_mesh({{"x", 2}, {"y", 4}}));
  CHECK(grid()->abstract()->is_abstract() && grid()->abstract()->abstract() == grid()->abstract());
  CHECK_EQ(grid()->size(), int64_t{8});
  CHECK_EQ(grid()->find("y"), int64_t{1});
  CHECK_EQ(grid()->find("z"), int64_t{-1});
  MeshRef manual = with_axis_type(grid(), Dims{1}, AxisType::kManual);
  CHECK(manual != grid() && manual->has(AxisType::kManual) && manual->has(AxisType::kAuto));
  CHECK(!manual->has(AxisType::kExplicit));
  CHECK(device_mesh(3)->axes().empty() && device_mesh(3)->size() == 1);
}

TEST(bad_meshes) {
  CHECK_THROWS(kValue, "distinct names; got 'x': 2, 'x': 2", make_mesh({{"x", 2}, {"x", 2}}));
  CHECK_THROWS(kValue, "at least 1; got 'x': 0", make_mesh({{"x", 0}}));
  CHECK_THROWS(kValue, "fewer than 2**31", make_mesh({{"x", 1 << 20}, {"y", 1 << 20}}));
  CHECK_THROWS(kValue, "for each of the 2 positions", make_mesh({{"x", 2}}, {0}));
  CHECK_THROWS(kValue, "device 3 twice", make_mesh({{"x", 2}}, {3, 3}));
}

TEST(shardings_are_interned) {
  ShardingRef rows = make_sharding({.mesh = grid(), .dims = {{{0}}}});
  CHECK(rows == make_sharding({.mesh = grid(), .dims = {{{0}}, {}, {}}}));
  CHECK(rows != make_sharding({.mesh = grid(), .dims = {{}, {{0}}}}));
  CHECK(rows != make_sharding({.mesh = grid(), .dims = {{{0}, true}}}));
  CHECK(rows != make_sharding({.mesh = grid(), .dims = {{{0}}}, .memory = "pinned_host"}));
  CHECK(make_sharding({.mesh = grid(), .unreduced = {1, 0}}) ==
        make_sharding({.mesh = grid(), .unreduced = {0, 1}}));
  CHECK(make_sharding({.mesh = grid()})->is_replicated() && !rows->is_replicated());
  ShardingRef marked = make_sharding({.mesh = grid(), .unreduced = {0}, .reduced = {1}});
  CHECK(of_cotangents(marked) == make_sharding({.mesh = grid(), .unreduced = {1}, .reduced = {0}}));
  CHECK(with_reduced(with_unreduced(marked, {}), {}) == make_sharding({.mesh = grid()}));
  CHECK(of_cotangents(rows) == rows);
  CHECK(make_sharding({.mesh = grid(), .dims = {{{}, true}}})->is_open() && !rows->is_open());
  CHECK(rows->number() != device_sharding(0)->number());
  CHECK(device_sharding(1) == device_sharding(1) && device_sharding(1) != device_sharding(2));
}

TEST(bad_shardings) {
  CHECK_THROWS(kValue, "got 'x' twice", make_sharding({.mesh = grid(), .dims = {{{0}}, {{0}}}}));
  CHECK_THROWS(kValue, "'y' twice",
               make_sharding({.mesh = grid(), .dims = {{{1}}}, .unreduced = {1}}));
  CHECK_THROWS(kValue, "'y' twice",
               make_sharding({.mesh = grid(), .unreduced = {1}, .reduced = {1}}));
  CHECK_THROWS(kValue, "got axis 2", make_sharding({.mesh = grid(), .dims = {{{2}}}}));
}

TEST(parts_of_arrays) {
  ShardingRef s = make_sharding({.mesh = grid(), .dims = {{{1, 0}}, {}}});
  TypeRef type = make_type(DType::kF32, Dims{16, 3});
  CHECK_EQ(num_blocks(s, 0), int64_t{8});
  CHECK_EQ(num_blocks(s, 5), int64_t{1});
  CHECK_EQ(misfit(s, type), std::string());
  CHECK(shard_type(s, type) == make_type(DType::kF32, Dims{2, 3}));
  // Position (1, 2): y splits outermost.
  CHECK(block_of(s, 2, 6) == (Dims{5, 0}));
  std::string problem = misfit(s, make_type(DType::kF32, Dims{12, 3}));
  CHECK(problem.find("dimension 0 to be divisible by the 8 parts") != problem.npos);
  CHECK(problem.find("got f32[12,3]") != problem.npos);
  problem =
      misfit(make_sharding({.mesh = grid(), .dims = {{}, {{0}}}}), make_type(DType::kF32, Dims{4}));
  CHECK(problem.find("at least 2 dimensions") != problem.npos);
}

TEST(text_of_shardings) {
  ShardingRef s = make_sharding({.mesh = make_mesh({{"x", 2}, {"a'b", 4, AxisType::kExplicit}}),
                                 .dims = {{{0}}, {}, {{}, true}},
                                 .unreduced = {1},
                                 .memory = "pinned_host"});
  CHECK_EQ(cat(s), std::string("sharding<['x'], [], [?]; unreduced ['a\\'b']; memory "
                               "'pinned_host'; mesh<'x': 2, 'a\\'b': explicit 4>>"));
  CHECK_EQ(cat(device_sharding(3)), std::string("sharding<; mesh<; 3>>"));
  ShardingRef marked = make_sharding({.mesh = s->mesh(), .unreduced = {1}, .reduced = {0}});
  CHECK_EQ(cat(marked), std::string("sharding<; unreduced ['a\\'b']; reduced ['x']; "
                                    "mesh<'x': 2, 'a\\'b': explicit 4>>"));
  CHECK(shown(marked).starts_with("P(unreduced={'a\\'b'}, reduced={'x'}) on "));
}

TEST(marks_of_axes) {
  AxisSet x = 1, y = 2;
  CHECK_EQ(unreduced_of(as_unreduced(x) | y), x);
  CHECK_EQ(reduced_of(as_unreduced(x) | as_reduced(y)), y);
  CHECK_EQ(without(as_unreduced(x) | as_reduced(y), x), as_reduced(y));
  CHECK_EQ(joined(as_reduced(x), y), as_reduced(x) | y);
  CHECK_EQ(joined(as_reduced(x), x), x);
  CHECK_EQ(joined(as_reduced(x), as_unreduced(x)), x);
  CHECK_EQ(joined(as_unreduced(x), as_unreduced(x)), as_unreduced(x));
}
