// Reading programs: what the printer writes, other layouts, and errors with their place.
#include <cmath>
#include <random>

#include "check.h"
#include "test_ops.h"

using namespace weft;
using namespace weft::test;

namespace {

void check_round_trip(const GraphRef& g) {
  verify(*g);
  for (int width : {1, 40, 80, 1000}) {
    PrintOptions options;
    options.width = width;
    std::string text = print(*g, options);
    GraphRef back = parse_test(text);
    if (!equal(*back, *g)) {
      report_failure(__FILE__, __LINE__, cat("not read back as it was:\n", text));
    }
    verify(*back);
  }
}

void check_fails(const char* text, const char* message) {
  CHECK_THROWS(kParse, message, parse_test(text));
}

// Some random program over f32 values of rank 1, with regions.
GraphRef random_graph(std::mt19937& random, int depth, std::vector<GraphRef>& pool) {
  GraphBuilder b;
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<Value> values;
  std::vector<Value> consts;
  for (size_t i = below(4) + 1; i > 0; --i) {
    values.push_back(b.input(f32({4})));
    if (below(4) == 0) consts.push_back(values.back());
  }
  for (size_t i = below(12); i > 0; --i) {
    Value x = values[below(values.size())];
    Value y = values[below(values.size())];
    switch (below(6)) {
      case 0:
        values.push_back(add_op(b, kNeg, {x}));
        break;
      case 1:
        values.push_back(add_op(b, kAdd, {x, y}));
        break;
      case 2: {
        const double kNumbers[] = {0.1, -0.0, 1e30, INFINITY, NAN, 2};
        Value c = b.literal(make_literal(DType::kF32, kNumbers[below(6)]));
        values.push_back(add_op(b, kAdd, {c, x}));
        break;
      }
      case 3:
        add_op(b, kLog, {x, y}, {{"tag", std::string("t")}});
        break;
      case 4: {
        Values parts = b.add(
            kSplit, Values{x},
            AttrRecord::make("split", kSplit.attrs, {{"axis", int64_t{0}}, {"sizes", Dims{1, 3}}}));
        values.push_back(
            add_op(b, kConcatenate, {parts[1], parts[0]}, {{"dimension", int64_t{0}}}));
        break;
      }
      default: {
        if (depth == 0) break;
        if (pool.empty() || below(2) == 0) pool.push_back(random_graph(random, depth - 1, pool));
        GraphRef region = pool[below(pool.size())];
        Values args;
        for (uint32_t k = 0; k < region->num_inputs(); ++k) {
          args.push_back(values[below(values.size())]);
        }
        AttrsRef attrs =
            AttrRecord::make("jit", kJit.attrs, {{"jaxpr", region}, {"name", std::string("f g")}});
        for (Value v : b.add(kJit, args, attrs)) values.push_back(v);
      }
    }
  }
  Values outputs;
  for (size_t i = below(4); i > 0; --i) outputs.push_back(values[below(values.size())]);
  return b.finish(outputs, consts);
}

}  // namespace

TEST(layout_does_not_matter) {
  GraphRef a =
      parse_test("{ lambda ; a:f32[3]. let b:f32[3] = add a a; c:f32[3] = neg b in (c,) }");
  GraphRef b = parse_test(
      "  {lambda;x:f32[ 3 ].let # a comment\n\n y:f32[3]=add x\n x z:f32[3] = neg\n\ty;; in "
      "(z)}\n");
  CHECK(equal(*a, *b));
  CHECK(equal(*a, *parse_test("{ lambda ; a:float32[3]. let b:float32[3] = add a a c:float32[3] = "
                              "neg b in (c,) }")));
}

TEST(every_kind_of_attribute) {
  for (const char* attrs :
       {"bool=True bools=(False, True) dtype=float32 float=0.5 int=-3 ints=(1, 2) "
        "list=((0, 1, 0), (2,)) pairs=(([1], [0]), ([], [2, 3])) string=abc",
        "bool=False bools=(True,) dtype=bool float=-inf int=0 ints=() list=() pairs=() "
        "string=\"a b\"",
        "bool=False bools=() dtype=int4 float=nan int=9223372036854775807 ints=(5,) list=((),) "
        "pairs=(([], []),) string=\"\"",
        "bool=False bools=() dtype=int4 float=1e-30 graph={ lambda ; . let  in () } "
        "graphs=({ lambda ; . let  in () } { lambda ; a:f32[]. let  in (a,) }) int=1 ints=() "
        "list=() pairs=() string=<lambda>",
        "bool=False bools=() dtype=int4 float=3.0 graphs=() int=1 ints=() list=() pairs=() "
        "string=\"None\" types=()",
        "bool=False bools=() dtype=int4 float=3.0 int=1 ints=() list=() pairs=() string=x "
        "types=(f32[3,4], i32[])"}) {
    GraphRef g = parse_test(cat("{ lambda ; . let a:f32[] = everything[", attrs, "] in (a,) }"));
    check_round_trip(g);
  }
  for (const char* string :
       {"", "None", "a\"b", "a\\b", "a\nb", "x]", "{", "#", "tab\there", "\xc3\xa9"}) {
    GraphBuilder b;
    add_op(b, kLog, {}, {{"tag", std::string(string)}});
    check_round_trip(b.finish({}));
  }
}

TEST(literals_of_every_dtype) {
  GraphBuilder b;
  Values outputs;
  for (int i = 0; i < kNumDTypes; ++i) {
    DType d = static_cast<DType>(i);
    for (double x : {0.0, -0.0, 1.0, -1.0, 0.1, 1e-7, 3e38, 1e300, -1e300, 1.0 / 0.0, 0.0 / 0.0}) {
      outputs.push_back(b.literal(make_literal(d, x)));
      outputs.push_back(b.literal(make_literal(d, {x, 0.5})));
      outputs.push_back(b.literal(make_literal(d, {-2.0, -x})));
    }
  }
  check_round_trip(b.finish(outputs));
}

TEST(random_programs) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<GraphRef> pool;
    check_round_trip(random_graph(random, 2, pool));
  }
}

TEST(definitions_in_any_order) {
  GraphRef g = parse_test(
      "let unused = { lambda ; . let in () } in\n"
      "let f = { lambda ; a:f32[]. let b:f32[] = jit[jaxpr=g] a in (b,) } in\n"
      "let g = { lambda ; a:f32[]. let log[tag=\"}{\"] a; b:f32[] = neg a in (b,) } in\n"
      "{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr=f] a; c:f32[] = jit[jaxpr=g] b in (c,) }");
  GraphRef f = g->op(0).attrs->graph("jaxpr");
  CHECK(f->op(0).attrs->graph("jaxpr") == g->op(1).attrs->graph("jaxpr"));
  check_fails(
      "let f = { lambda ; a:f32[]. let b:f32[] = jit[jaxpr=f] a in (b,) } in\n"
      "{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr=f] a in (b,) }",
      "line 1, column 53: graph f uses itself");
  check_fails("let f = { lambda ; . let in () } in let f = { lambda ; . let in () } in",
              "expected a new name; got f twice");
  check_fails("let f = { lambda", "expected a \"}\" for this \"{\"");
  check_fails("{ lambda ; a:f32[]. let b:f32[] = jit[jaxpr=f] a in (b,) }",
              "line 1, column 45: expected a graph or the name of one; got \"f\"");
}

TEST(attributes_read_off_the_result) {
  GraphRef g =
      parse_test("{ lambda ; . let a:i32[2,3] = iota[dimension=1 sharding=None] in (a,) }");
  CHECK(g->op(0).attrs->ints("shape") == (Dims{2, 3}));
  CHECK(g->op(0).attrs->dtype("dtype") == DType::kI32);
  CHECK(equal(*g, *parse_test("{ lambda ; . let a:i32[2,3] = iota[dimension=1 dtype=int32 "
                              "shape=(2, 3)] in (a,) }")));
  check_fails("{ lambda ; . let a:i32[2,3] = iota[dimension=1 shape=(3, 2)] in (a,) }",
              "expected result 0 of iota to be i32[3,2]; got i32[2,3]");
}

TEST(syntax_errors) {
  check_fails("", "line 1, column 1: expected \"{\" to begin a graph; got the end of the text");
  check_fails("x", "line 1, column 1: expected \"{\"");
  check_fails("{ lambda ; a:f32[].\n  let in (a,) } x", "line 2, column 17: expected the end");
  check_fails("{ lambda ; a:f32[]. in (a,) }", "expected \"let\" after the inputs of a graph");
  check_fails("{ lambda ; a f32[]. let in () }", "expected \":\" after the name of an input");
  check_fails("{ lambda ; a:g32[]. let in () }", "line 1, column 14: expected a type that starts");
  check_fails("{ lambda ; a:f32[]. let in (b,) }",
              "line 1, column 29: expected a value made before; got \"b\"");
  check_fails("{ lambda ; a:f32[]. let in (a,)", "expected \"}\" to end a graph");
  check_fails("{ lambda ; a:f32[] a:f32[]. let in () }", "expected a new name; got a twice");
  check_fails("{ lambda ; nan:f32[]. let in () }", "expected a name; got nan");
  check_fails("{ lambda ; a:f32[]. let\n  b:f32[] neg a in () }",
              "line 2, column 11: expected \"=\"");
  check_fails("{ lambda ; a:f32[]. let b:f32[] = nag a in () }",
              "expected the name of an op; got \"nag\"");
  check_fails("{ lambda ; a:f32[]. let b:f32[] = neg _ in () }", "got \"_\"");
  check_fails("{ lambda ; a:f32[]. let ) }", "expected an op or \"in\"; got \")\"");
}

TEST(op_errors) {
  check_fails("{ lambda ; a:f32[]. let\n    b:f32[] = neg in (b,) }",
              "line 2, column 5: [neg] expected 1 operand; got 0");
  check_fails("{ lambda ; a:f32[2] b:f32[3]. let c:f32[2] = add a b in (c,) }",
              "[add] expected equal shapes; got f32[2] and f32[3]");
  check_fails("{ lambda ; a:f32[2]. let b:f32[3] = neg a in (b,) }",
              "line 1, column 26: expected result 0 of neg to be f32[2]; got f32[3]");
  check_fails("{ lambda ; a:f32[2]. let b:f32[2] c:f32[2] = neg a in (b,) }",
              "expected 1 results of neg; got 2");
  check_fails("{ lambda ; a:f32[2]. let neg a in () }", "expected 1 results of neg; got 0");
}

TEST(attribute_errors) {
  check_fails("{ lambda ; a:f32[]. let log[tog=x] a in () }",
              "line 1, column 29: [log] has no attribute named tog");
  check_fails("{ lambda ; a:f32[]. let log[] a in () }", "got no tag");
  check_fails("{ lambda ; a:f32[]. let log[tag=x tag=y] a in () }", "got it twice");
  check_fails("{ lambda ; a:f32[]. let log[tag=None] a in () }", "got None");
  check_fails("{ lambda ; a:f32[]. let log[tag=\"x] a in () }", "expected a closing \"");
  check_fails("{ lambda ; . let a:i32[2] = iota[dimension=x] in () }",
              "line 1, column 44: expected an integer; got \"x\"");
  check_fails("{ lambda ; . let a:i32[2] = iota[dimension=0 dtype=f33] in () }",
              "expected a dtype such as float32; got \"f33\"");
  check_fails("{ lambda ; . let a:f32[] = everything[pairs=(([1] [0]))] in () }",
              "expected \",\" between the lists of a pair");
  check_fails("{ lambda ; . let a:f32[] = everything[types=(f33[3],)] in () }", "f33");
  check_fails("{ lambda ; . let a:f32[] = everything[object=<thing>] in () }",
              "line 1, column 46: expected a value that can be written as text; got an object");
}

TEST(literal_errors) {
  auto check_literal = [](const char* literal, const char* message) {
    CHECK_THROWS(kParse, message, parse_test(cat("{ lambda ; . let in (", literal, ",) }")));
  };
  check_literal("1.5:i32[]", "expected a literal of type i32[]; got \"1.5\"");
  check_literal("300:u8[]", "expected a literal of type u8[]; got \"300\"");
  check_literal("-1:u8[]", "u8[]");
  check_literal("1:bool[]", "bool[]");
  check_literal("1.0:f32[3]", "f32[3]");
  check_literal("1+2j:c64[]", "c64[]");
  check_literal("(1+2):c64[]", "c64[]");
  check_literal("1.0", "expected \":\" and a type after a literal");
}

TEST(deep_nesting_is_refused) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "{ lambda ; . let jit[jaxpr=";
  CHECK_THROWS(kParse, "graphs in each other", parse_test(text));
}

TEST(broken_text_never_crashes) {
  std::string text =
      "let f = { lambda ; a:f32[]. let b:f32[] = neg a in (b,) } in\n"
      "{ lambda a:f32[2]; b:i32[]. let c:f32[] = jit[jaxpr=f name=\"q\"] 1.0:f32[]\n"
      "  d:f32[1] _:f32[1] = split[axis=0 sizes=(1, 1)] a in (c, (1+2j):c64[]) }";
  parse_test(text);
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string broken = text;
    for (unsigned k = random() % 3 + 1; k > 0; --k) {
      if (broken.empty()) break;
      size_t at = random() % broken.size();
      switch (random() % 3) {
        case 0:
          broken.erase(at, random() % 4);
          break;
        case 1:
          broken[at] = static_cast<char>(random() % 128);
          break;
        default:
          broken.resize(at + 1);
      }
    }
    try {
      verify(*parse_test(broken));
    } catch (const Error& error) { CHECK(error.kind() == ErrorKind::kParse); }
  }
}
