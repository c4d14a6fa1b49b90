// checked(): the numbers of checks, what they are about, and the one that is looked into.
#include "check.h"
#include "weft/weft.h"

using namespace weft;

namespace {

constexpr const char* kProgram =
    "{ lambda ; a:f32[3]. let b:f32[3] = log a; c:f32[3] = div b a in (c,) }";

}  // namespace

TEST(checks_are_numbered_in_order_and_know_their_op) {
  GraphRef graph = parse(kProgram);
  auto made = checked(graph, {.nans = true, .divisions = true});
  verify(*made->graph);
  CHECK(made->count == 3);
  CHECK(made->site(0).op->name == "log" && made->site(0).kind == CheckKind::kNan);
  CHECK(made->site(1).op->name == "div" && made->site(1).kind == CheckKind::kDivision);
  CHECK(made->site(2).op->name == "div" && made->site(2).kind == CheckKind::kNan);
  CHECK(made->graph->outputs().size() == 2 && made->num_values() == 0);
  CHECK(checked(graph, {.nans = true, .divisions = true}) == made);
}

TEST(a_check_that_is_looked_into_has_operands_and_results) {
  GraphRef graph = parse(kProgram);
  auto made = checked(graph, {.nans = true, .only = 1});
  verify(*made->graph);
  CHECK(made->count == 2);
  CHECK(made->num_values() == 3 && made->site(1).num_values == 3);
}

TEST(what_a_transform_made_has_the_place_of_its_source) {
  Loc place = make_loc("file.py", 3, "f");
  GraphBuilder b;
  b.set_loc(place);
  Val x{&b, b.input(parse_type("f32[]"))};
  GraphRef graph = grad(b.finish(Values{sin(x).value}));
  bool backward = false;
  for (const Op& op : graph->ops()) {
    CHECK(place_of(op.loc) == place);
    CHECK(loc_text(op.loc) == "file.py:3 (f)");
    backward = backward || (op.loc & kCotangentLoc);
  }
  CHECK(backward);
}
