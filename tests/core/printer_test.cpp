// The layout of printed programs. The expected texts follow JAX's, but for the names in regions.
#include "check.h"
#include "test_ops.h"

using namespace weft;
using namespace weft::test;

namespace {

// Reads a program and checks that it prints as it stands.
void check_text(const std::string& text) {
  GraphRef g = parse_test(text);
  CHECK_EQ(print(*g), text);
}

GraphRef chain(int length) {
  GraphBuilder b;
  Value x = b.input(f32());
  for (int i = 0; i < length; ++i) x = add_op(b, kNeg, {x});
  return b.finish(Values{x});
}

}  // namespace

TEST(one_line) {
  check_text("{ lambda ; . let  in () }");
  check_text("{ lambda ; a:f32[3]. let  in () }");
  check_text("{ lambda ; a:f32[]. let  in (1:i32[], 2.0:f32[], a) }");
  check_text("{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }");
  check_text("{ lambda a:f32[3]; . let  in (a,) }");
  check_text("{ lambda ; a:f32[]. let b:f32[] = neg a; c:f32[] = neg b in (c,) }");
  check_text("{ lambda ; a:bool[]. let b:bool[] = add a True:bool[] in (b,) }");
  check_text("{ lambda ; a:c64[]. let b:c64[] = add a (1+2j):c64[] in (b, 1j:c64[]) }");
}

TEST(lines) {
  check_text(
      "{ lambda ; a:f32[]. let\n"
      "    b:f32[] = neg a\n"
      "    c:f32[] = neg b\n"
      "    d:f32[] = add a 2.0:f32[]\n"
      "  in (c, d) }");
}

TEST(width_of_one_line) {
  GraphRef g =
      parse_test("{ lambda ; a:bf16[1,1,1,1,1,1,1]. let b:bf16[1,1,1,1,1,1,1] = neg a in (b, b) }");
  CHECK_EQ(print(*g).size(), size_t{79});
  PrintOptions narrow;
  narrow.width = 78;
  CHECK(print(*g, narrow).find("let\n    b:bf16") != std::string::npos);
  narrow.width = 79;
  CHECK(print(*g, narrow).find('\n') == std::string::npos);
}

TEST(filled_lists) {
  check_text(
      "{ lambda ; a:f32[3,4,5,6] b:f32[3,4,5,6] c:f32[3,4,5,6] d:f32[3,4,5,6] e:f32[3,4,5,6]\n"
      "    f:f32[3,4,5,6] g:f32[3,4,5,6]. let\n"
      "    h:f32[3,4,5,6] = add a b\n"
      "  in (h, a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h,\n"
      "    a, b, c, d, e, f, g) }");
  check_text(
      "{ lambda ; a:f32[1]. let\n"
      "    b:f32[40] = concatenate[dimension=0] a a a a a a a a a a a a a a a a a a a a\n"
      "      a a a a a a a a a a a a a a a a a a a a\n"
      "  in (b,) }");
}

TEST(unused_results) {
  check_text(
      "{ lambda ; a:f32[3]. let\n"
      "    _:f32[1] b:f32[2] = split[axis=0 sizes=(1, 2)] a\n"
      "    _:f32[3] = neg a\n"
      "  in (b,) }");
}

TEST(ops_without_results) {
  check_text(
      "{ lambda ; a:f32[]. let\n"
      "    log[tag=x] a\n"
      "    tick[]\n"
      "    b:f32[] = neg a\n"
      "    log[tag=\"two words\"] b a\n"
      "    tick[]\n"
      "  in (a,) }");
}

TEST(regions) {
  check_text(
      "{ lambda ; a:f32[8]. let\n"
      "    b:f32[8] = jit[\n"
      "      name=_where\n"
      "      jaxpr={ lambda ; a:f32[8] b:f32[]. let\n"
      "          c:f32[8] = add b a\n"
      "          d:f32[8] = jit[\n"
      "            name=inner\n"
      "            jaxpr={ lambda ; a:f32[8]. let b:f32[8] = neg a in (b,) }\n"
      "          ] c\n"
      "        in (d,) }\n"
      "    ] a 0.0:f32[]\n"
      "  in (b,) }");
  check_text("{ lambda ; a:i32[]. let cond[branches=({ lambda ; . let  in () })] a in () }");
  check_text(
      "{ lambda ; a:i32[] b:f32[]. let\n"
      "    c:f32[] = cond[\n"
      "      branches=(\n"
      "        { lambda ; a:f32[]. let\n"
      "            b:f32[] = neg a\n"
      "            c:f32[] = neg b\n"
      "            d:f32[] = neg c\n"
      "          in (d,) }\n"
      "        { lambda ; a:f32[]. let b:f32[] = neg a in (b,) }\n"
      "      )\n"
      "    ] a b\n"
      "  in (c,) }");
}

TEST(attributes_that_are_left_out) {
  check_text("{ lambda ; . let a:i32[2,3] = iota[dimension=1 sharding=None] in (a,) }");
  check_text(
      "{ lambda ; a:f32[]. let\n"
      "    b:f32[] = jit[\n"
      "      name=a_name\n"
      "      inline=True\n"
      "      jaxpr={ lambda ; a:f32[]. let  in (a,) }\n"
      "    ] a\n"
      "  in (b,) }");
}

TEST(shared_graphs) {
  check_text(
      "let lambda = { lambda ; a:f32[]. let b:f32[] = jit[name=g jaxpr=g] a in (b,) } in\n"
      "let g = { lambda ; a:f32[]. let b:f32[] = neg a in (b,) } in\n"
      "{ lambda ; a:f32[]. let\n"
      "    b:f32[] = jit[name=<lambda> jaxpr=lambda] a\n"
      "    c:f32[] = jit[name=<lambda> jaxpr=lambda] b\n"
      "  in (c,) }");
}

TEST(equal_graphs_of_one_name_are_shared) {
  auto call = [](GraphBuilder& b, Value x, const char* name) {
    GraphRef f = parse_test("{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }");
    return add_op(b, kJit, {x}, {{"jaxpr", f}, {"name", std::string(name)}});
  };
  GraphBuilder b;
  Value x = b.input(f32());
  Value y = call(b, call(b, x, "f"), "f");
  Value z = call(b, call(b, y, "f"), "None");
  z = call(b, call(b, z, "None"), "g");
  GraphRef g = b.finish(Values{z});
  std::string text = print(*g);
  CHECK(
      text.starts_with("let f = { lambda ; a:f32[]. let b:f32[] = neg a in (b,) } in\n"
                       "let None1 = "));
  CHECK(text.find("let g") == std::string::npos);
  CHECK(equal(*parse_test(text), *g));
}

TEST(variable_names) {
  std::string text = print(*chain(18300));
  CHECK(text.find("    z:f32[] = neg y\n    ba:f32[] = neg z\n") != std::string::npos);
  CHECK(text.find("    zz:f32[] = neg zy\n    baa:f32[] = neg zz\n") != std::string::npos);
  // "in" and the like are keywords or numbers.
  CHECK(text.find("    io:f32[] = neg im\n") != std::string::npos);
  CHECK(text.find("    nao:f32[] = neg nam\n") != std::string::npos);
  CHECK(text.find(" nan:") == std::string::npos && text.find(" inf:") == std::string::npos);
  CHECK(equal(*parse_test(text), *chain(18300)));
}

TEST(locations_in_text) {
  GraphBuilder b;
  Value x = b.input(f32());
  b.set_loc(make_loc("f.py", 3, "loss"));
  Value y = add_op(b, kNeg, {x});
  b.set_loc(kNoLoc);
  GraphRef g = b.finish(Values{add_op(b, kNeg, {y})});
  PrintOptions options;
  options.locations = true;
  std::string text = print(*g, options);
  CHECK_EQ(text,
           "{ lambda ; a:f32[]. let\n"
           "    b:f32[] = neg a  # f.py:3 (loss)\n"
           "    c:f32[] = neg b\n"
           "  in (c,) }");
  CHECK(equal(*parse_test(text), *g));
}

TEST(one_op) {
  GraphRef g = parse_test(
      "{ lambda ; a:f32[3]. let b:f32[3] = neg a; c:f32[3] = jit[jaxpr={ lambda ; x:f32[3]. let in "
      "(x,) }] b in (c,) }");
  CHECK_EQ(print_op(*g, g->op(0)), "b:f32[3] = neg a");
  CHECK_EQ(print_op(*g, g->op(1)), "c:f32[3] = jit[name=f jaxpr={ ... }] b");
}
