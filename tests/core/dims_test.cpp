// Expressions of sizes, what is decided of them, and programs with them.
#include "check.h"
#include "weft/weft.h"

namespace weft {
namespace {

int64_t size(const char* text, DimScope scope) { return parse_dim(text, scope); }

TEST(dims_are_interned_and_numbers_stay_numbers) {
  DimScope scope = make_dim_scope({});
  int64_t b = size("b", scope), n = size("n", scope);
  CHECK(is_symbolic(b) && is_known_symbol(b) && !is_known_symbol(b + 1));
  CHECK(dim_add(b, n) == dim_add(n, b));
  CHECK(dim_sub(dim_add(b, 3), b) == 3);
  CHECK(dim_text(size("2*n + floordiv(b, 3)", scope)) == "floordiv(b, 3) + 2*n");
  CHECK(dim_evaluate(size("b*n - mod(b, 4)", scope), {{"b", 7}, {"n", 2}}) == 11);
}

TEST(dims_are_compared_by_bounds_and_constraints) {
  std::string constraint = "n >= b";
  DimScope scope = make_dim_scope({&constraint, 1});
  int64_t b = size("b", scope), n = size("n", scope);
  CHECK(dim_at_least(b, 1) && dim_at_least(n, b) && dim_at_least(dim_mul(b, n), n));
  CHECK(!decide_at_least(b, 2) && *decide_at_least(0, b) == false);
}

TEST(symbolic_types_have_a_text_and_are_refined) {
  DimScope scope = make_dim_scope({});
  ReadingScope reading(scope);
  GraphRef graph =
      parse("{ lambda ; a:f32[b,2*n]. let c:f32[2*b*n] = reshape[new_sizes=(2*b*n,)] a in (c,) }");
  CHECK(equal(*parse(print(*graph)), *graph));
  GraphRef refined = refine(graph, {{"b", 3}, {"n", 2}});
  CHECK(refined->output_types()[0] == parse_type("f32[12]"));
}

}  // namespace
}  // namespace weft
