// Numbers as text, and hashing.
#include "check.h"
#include "weft/hash.h"
#include "weft/small_vector.h"

using namespace weft;

TEST(integers) {
  CHECK_EQ(cat(0, " ", -7, " ", uint64_t{18446744073709551615ull}, " ", int64_t{INT64_MIN}),
           "0 -7 18446744073709551615 -9223372036854775808");
  CHECK_EQ(cat(int8_t{-3}, uint8_t{200}, 'c', true), "-3200cTrue");
}

TEST(doubles_as_python_writes_them) {
  CHECK_EQ(cat(2.0), "2.0");
  CHECK_EQ(cat(-0.0), "-0.0");
  CHECK_EQ(cat(0.1), "0.1");
  CHECK_EQ(cat(1e-4), "0.0001");
  CHECK_EQ(cat(1e-5), "1e-05");
  CHECK_EQ(cat(1.5e-10), "1.5e-10");
  CHECK_EQ(cat(1e15), "1000000000000000.0");
  CHECK_EQ(cat(1e16), "1e+16");
  CHECK_EQ(cat(9007199254740993.0), "9007199254740992.0");
  CHECK_EQ(cat(1.7976931348623157e308), "1.7976931348623157e+308");
  CHECK_EQ(cat(5e-324), "5e-324");
  CHECK_EQ(cat(1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0), "inf-infnan");
}

TEST(tuples) { CHECK_EQ(cat(Dims{}, Dims{3}, Dims{3, 4}), "()(3,)(3, 4)"); }

TEST(small_vector_moves_between_storage) {
  Dims xs;
  for (int64_t i = 0; i < 100; ++i) xs.push_back(i);
  Dims moved = std::move(xs);
  CHECK_EQ(moved.size(), size_t{100});
  CHECK(xs.empty());
  xs.push_back(1);
  moved.insert(0, -1);
  moved.erase(1);
  CHECK_EQ(moved[0], int64_t{-1});
  CHECK_EQ(moved[1], int64_t{1});
  CHECK_EQ(moved.back(), int64_t{99});
  moved = xs;
  CHECK(moved == xs);
}

TEST(hashes_spread) {
  Dims a{1, 2}, b{2, 1};
  CHECK(hash_ints(std::span<const int64_t>(a)) != hash_ints(std::span<const int64_t>(b)));
  CHECK(hash_bytes("") != hash_bytes("a"));
}
