// Interning of types and locations, from several threads too.
#include <thread>
#include <vector>

#include "check.h"
#include "weft/location.h"
#include "weft/type.h"

using namespace weft;

TEST(types_are_interned) {
  TypeRef a = make_type(DType::kF32, Dims{8, 128});
  CHECK(a == make_type(DType::kF32, Dims{8, 128}));
  CHECK(a != make_type(DType::kF32, Dims{128, 8}));
  CHECK(a != make_type(DType::kF32, Dims{1024}));
  CHECK(a != with_dtype(a, DType::kI32));
  CHECK_EQ(a->num_elements(), int64_t{1024});
  CHECK_EQ(a->num_bytes(), int64_t{4096});
  CHECK_EQ(make_type(DType::kI4, Dims{3})->num_bytes(), int64_t{2});
  CHECK_EQ(make_type(DType::kF32, Dims{3, 0})->num_elements(), int64_t{0});
  CHECK_EQ(scalar_type(DType::kF32)->num_elements(), int64_t{1});
  CHECK_EQ(make_type(DType::kF32, Dims{1, 2, 3, 4, 5, 6, 7, 8})->rank(), 8);
}

TEST(bad_types) {
  CHECK_THROWS(kShape, "at least 0; got a f32 array of shape (2, -1)",
               make_type(DType::kF32, Dims{2, -1}));
  CHECK_THROWS(kShape, "(0, -1)", make_type(DType::kF32, Dims{0, -1}));
  CHECK_THROWS(kShape, "fewer than", make_type(DType::kF32, Dims{int64_t{1} << 40, 1 << 30}));
  // Bytes and bits of the largest types fit; what is larger is refused, dimensions of 0 or not.
  CHECK_EQ(make_type(DType::kU8, Dims{(int64_t{1} << 60) - 1})->num_bytes(),
           (int64_t{1} << 60) - 1);
  CHECK_EQ(make_type(DType::kI2, Dims{(int64_t{1} << 62) - 4})->num_bytes(),
           (int64_t{1} << 60) - 1);
  CHECK_EQ(make_type(DType::kC128, Dims{(int64_t{1} << 56) - 1})->num_bytes(),
           (int64_t{1} << 60) - 16);
  CHECK_THROWS(kShape, "fewer than 2**60 bytes", make_type(DType::kU8, Dims{int64_t{1} << 60}));
  CHECK_THROWS(kShape, "fewer than 2**60 bytes", make_type(DType::kC128, Dims{int64_t{1} << 56}));
  CHECK_THROWS(kShape, "fewer than", make_type(DType::kF32, Dims{0, INT64_MAX}));
  CHECK_THROWS(kShape, "fewer than", make_type(DType::kF32, Dims{INT64_MAX, 0, INT64_MAX}));
  CHECK_EQ(make_type(DType::kU8, Dims{0, (int64_t{1} << 60) - 1})->num_bytes(), int64_t{0});
}

TEST(type_text) {
  for (const char* text : {"f32[8,128]", "bool[]", "f8_e4m3b11fnuz[0]", "c128[1,2,3,4,5,6,7]"}) {
    CHECK_EQ(cat(parse_type(text)), text);
  }
  CHECK(parse_type("float32[3]") == make_type(DType::kF32, Dims{3}));
  CHECK(parse_type("f32[3, 4]") == make_type(DType::kF32, Dims{3, 4}));
  for (const char* text : {"", "f32", "f32[", "f32]", "[3]", "g32[3]", "f32[3,]", "f32[,3]",
                           "f32[a]", "f32[-1]", "f32[3]x", "f32[99999999999999999999]"}) {
    CHECK_THROWS(kParse, "expected", parse_type(text));
  }
}

TEST(locations) {
  Loc a = make_loc("f.py", 3, "g");
  CHECK(a != kNoLoc);
  CHECK_EQ(a, make_loc("f.py", 3, "g"));
  CHECK(a != make_loc("f.py", 4, "g"));
  CHECK(a != make_loc("f.py", 3, "h"));
  CHECK_EQ(loc_text(a), "f.py:3 (g)");
  CHECK_EQ(loc_text(kNoLoc), "<unknown>");
  CHECK_EQ(loc_info(a).line, 3);
}

TEST(interning_from_threads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  std::vector<std::vector<TypeRef>> types(kThreads);
  std::vector<std::vector<Loc>> locs(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        types[t].push_back(make_type(DType::kBF16, Dims{i, 7}));
        locs[t].push_back(make_loc("threads.py", i, "f"));
        CHECK_EQ(loc_info(locs[t].back()).line, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) {
    CHECK(types[t] == types[0]);
    CHECK(locs[t] == locs[0]);
  }
}

// Last of the tests on locations: the table is full afterwards.
TEST(locations_are_bounded) {
  Loc known = make_loc("known.py", 1, "f");
  Loc scoped = make_loc("known.py", 1, "f", "scope");
  for (size_t i = 0; i < kMaxScopedLocs; ++i) make_loc("steps.py", 1, "f", cat("step_", i));
  CHECK_EQ(loc_info(make_loc("steps.py", 1, "f", "one more")).scope, "");
  CHECK_EQ(loc_text(make_loc("steps.py", 1, "f", "one more")), "steps.py:1 (f)");
  for (size_t i = 0; i < kMaxLocs; ++i) make_loc(cat("<made ", i, ">"), 1, "f");
  CHECK_EQ(make_loc("new.py", 1, "f"), kNoLoc);
  CHECK_EQ(make_loc("known.py", 1, "f"), known);
  CHECK_EQ(make_loc("known.py", 1, "f", "scope"), scoped);
}
