// Reading StableHLO: forms of text, constants, errors with their place, loops; what the emitter
// writes of every op (programs.txt) reads back; and mutants of that end in a graph or an error.
// WEFT_MUTATIONS says how many mutants there are, WEFT_SEED which.
#include "weft/read.h"

#include <cstdlib>
#include <fstream>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "check.h"
#include "weft/emit.h"
#include "weft/format.h"
#include "weft/registry.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

std::string function(std::string_view arguments, std::string_view results, std::string_view body) {
  return cat("module {\n  func.func public @main(", arguments, ") -> ", results, " {\n", body,
             "\n  }\n}\n");
}

void check_reads(std::string_view text, std::string_view program) {
  GraphRef graph = read_stablehlo(text);
  verify(*graph);
  CHECK_EQ(print(*graph), print(*parse(program)));
}

void check_fails(ErrorKind kind, std::string_view text, std::string_view message) {
  test::check_throws(__FILE__, __LINE__, "read_stablehlo", kind, message,
                     [&] { read_stablehlo(text); });
}

// The value of a constant of a type, as its bytes, or its literal.
std::string constant(std::string_view value, std::string_view type) {
  GraphRef g = read_stablehlo(function(
      "", type, cat("%c = stablehlo.constant ", value, " : ", type, "\n return %c : ", type)));
  return print(*g);
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

const std::vector<std::string>& emitted() {
  static const std::vector<std::string> all = [] {
    std::ifstream in(WEFT_TEST_PROGRAMS);
    std::vector<std::string> texts;
    for (std::string line; std::getline(in, line);) {
      try {
        texts.push_back(emit_stablehlo(*parse(line)).text);
      } catch (const Error&) { continue; }  // not for this platform, or only for parts of one
    }
    return texts;
  }();
  return all;
}

// Deletes, doubles, swaps or replaces tokens, or changes numbers.
std::string mutated(const std::string& text, std::mt19937& random) {
  static const std::vector<std::string> kPieces = {"(",
                                                   ")",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   "<",
                                                   ">",
                                                   ",",
                                                   ":",
                                                   "=",
                                                   "->",
                                                   "%0",
                                                   "%arg0",
                                                   "\"",
                                                   "#",
                                                   "@",
                                                   "!",
                                                   "0",
                                                   "-1",
                                                   "9223372036854775807",
                                                   "99999999999999999999",
                                                   "0x7FC00000",
                                                   "x",
                                                   "tensor<4xf32>",
                                                   "tensor<?xf32>",
                                                   "tensor<1000000x1000000x1000000xf32>",
                                                   "dense<1>",
                                                   "loc(",
                                                   "^bb0",
                                                   "true",
                                                   "stablehlo.add",
                                                   "i1",
                                                   "complex<f32>",
                                                   "\n"};
  auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  auto token = [&](size_t at) {
    size_t end = at;
    auto is_word = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (end < text.size() && is_word(text[end])) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else {
      ++end;
    }
    return std::min(end, text.size());
  };
  std::string out = text;
  for (size_t count = 1 + below(3); count > 0; --count) {
    size_t at = below(out.size()), end = std::min(token(at), out.size());
    if (end < at) end = at;
    std::string piece = out.substr(at, end - at);
    switch (below(5)) {
      case 0:
        out.erase(at, end - at);
        break;
      case 1:
        out.insert(at, piece);
        break;
      case 2:
        out.replace(at, end - at, kPieces[below(kPieces.size())]);
        break;
      case 3:
        out.insert(at, kPieces[below(kPieces.size())]);
        break;
      default: {
        size_t digit = out.find_first_of("0123456789", at);
        if (digit != out.npos) out[digit] = static_cast<char>('0' + below(10));
      }
    }
  }
  return out;
}

}  // namespace

TEST(pretty_and_generic_forms) {
  const char* program = "{ lambda ; a:f32[4,3] b:f32[4,3]. let c:f32[4,3] = add a b in (c,) }";
  check_reads(function("%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xf32>", "tensor<4x3xf32>",
                       "%0 = stablehlo.add %arg0, %arg1 : tensor<4x3xf32>\n"
                       "return %0 : tensor<4x3xf32>"),
              program);
  check_reads(R"("builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4x3xf32> loc("x"), %y: tensor<4x3xf32>):
    %0 = "stablehlo.add"(%x, %y) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32> loc(#loc1)
    "func.return"(%0) : (tensor<4x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
#loc1 = loc("f"("a.py":3:4))
)",
              program);
}

TEST(constants) {
  CHECK(has(constant("dense<[1, -2]>", "tensor<2xi4>"), "i4[2]:0x010E"));
  CHECK(has(constant("dense<[true, false]>", "tensor<2xi1>"), "bool[2]:0x0100"));
  CHECK(has(constant("dense<\"0x0000803F00000040\">", "tensor<2xf32>"), "0x0000803F00000040"));
  CHECK(has(constant("dense<0x7F800000>", "tensor<f32>"), "inf:f32[]"));
  CHECK(has(constant("dense<(1.0, -2.5)>", "tensor<complex<f32>>"), "(1-2.5j):c64[]"));
  CHECK(has(constant("dense<[1.5, -0.25]>", "tensor<2xbf16>"), "0xC03F80BE"));
  CHECK(has(constant("dense<[1.5, 448.0]>", "tensor<2xf8E4M3FN>"), "0x3C7E"));
  CHECK(has(constant("dense<0x7C>", "tensor<f8E5M2>"), "inf:f8_e5m2[]"));
  CHECK(has(constant("dense<255>", "tensor<2xui8>"), "255:u8[]"));
  std::string text = function("", "tensor<2xi32>",
                              "%c = stablehlo.constant dense_resource<a> : tensor<2xi32>\n"
                              "return %c : tensor<2xi32>");
  text +=
      "{-#\n dialect_resources: {\n builtin: {\n a: \"0x040000000100000002000000\"\n }\n }\n#-}\n";
  CHECK(has(print(*read_stablehlo(text)), "0x0100000002000000"));
}

TEST(errors_say_where) {
  auto body = [](std::string_view ops) {
    return function("%arg0: tensor<4xf32>", "tensor<4xf32>",
                    cat(ops, "\nreturn %0 : tensor<4xf32>"));
  };
  check_fails(ErrorKind::kParse, body("%0 = stablehlo.add %arg0, %x : tensor<4xf32>"),
              "line 3, column 27: expected a value made before; got %x");
  check_fails(ErrorKind::kParse, body("%0 = stablehlo.sine %arg0 : tensor<5xf32>"),
              "line 3, column 6: [stablehlo.sine] expected result 0 to be f32[4]");
  check_fails(ErrorKind::kNotImplemented, body("%0 = stablehlo.frob %arg0 : tensor<4xf32>"),
              "[stablehlo.frob] there is nothing in weft");
  check_fails(ErrorKind::kNotImplemented, body("%0 = arith.addf %arg0, %arg0 : tensor<4xf32>"),
              "expected an op of the dialects");
  check_fails(ErrorKind::kNotImplemented, body("%0 = stablehlo.sine %arg0 : tensor<?xf32>"),
              "expected a shape that is known");
  check_fails(ErrorKind::kParse,
              body("%0 = stablehlo.sine %arg0 : tensor<4xf32>\n%0 = stablehlo.sine %arg0 : "
                   "tensor<4xf32>"),
              "expected a new name; got %0 twice");
  check_fails(ErrorKind::kParse, body("%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<4xf32>"),
              "expected 4 elements along axis 0");
  check_fails(ErrorKind::kParse, body("%0 = call @f(%arg0) : (tensor<4xf32>) -> tensor<4xf32>"),
              "expected a function of the module; got @f");
  check_fails(ErrorKind::kParse, body("%0 = call @main(%arg0) : (tensor<4xf32>) -> tensor<4xf32>"),
              "calls itself");
  check_fails(ErrorKind::kParse, "module {}", "expected a module with a function");
}

TEST(nothing_is_too_deep) {
  std::string text = "%0 = stablehlo.sine %arg0 : tensor<f32>\n";
  for (int i = 0; i < 5000; ++i)
    text = cat("%0 = \"stablehlo.case\"(%arg1) ({\n", text,
               "stablehlo.return %0 : tensor<f32>\n}) : (tensor<i32>) -> tensor<f32>\n");
  check_fails(ErrorKind::kDepth,
              function("%arg0: tensor<f32>, %arg1: tensor<i32>", "tensor<f32>",
                       text + "return %0 : tensor<f32>"),
              "regions and calls in each other");
  std::string aliases;
  for (int i = 0; i < 100; ++i) aliases += cat("#loc", i, " = loc(#loc", (i + 1) % 100, ")\n");
  CHECK(read_stablehlo(aliases + function("", "()", "return loc(#loc1)")) != nullptr);
}

TEST(loops_of_known_length_are_scans) {
  std::string text = function("%x: tensor<3x2xf32>, %c: tensor<2xf32>", "tensor<2xf32>", R"(
    %z = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %0:2 = stablehlo.while(%i = %z, %a = %c) : tensor<i32>, tensor<2xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.dynamic_slice %x, %i, %z, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %2 = stablehlo.reshape %1 : (tensor<1x2xf32>) -> tensor<2xf32>
      %3 = stablehlo.multiply %a, %2 : tensor<2xf32>
      %4 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, tensor<2xf32>
    }
    return %0#1 : tensor<2xf32>)");
  GraphRef graph = read_stablehlo(text);
  verify(*graph);
  CHECK_EQ(graph->ops().size(), 1u);
  CHECK_EQ(graph->op(0).info->name, std::string("scan"));
  CHECK(has(print(*graph), "num_carry=1"));
  CHECK(has(print(*graph), "length=3"));
}

TEST(what_is_mlir) {
  CHECK(is_mlir("module @m {\n}"));
  CHECK(is_mlir("#loc = loc(\"a\")\nmodule {}"));
  CHECK(is_mlir("// text\n\"builtin.module\"() ({}) : () -> ()"));
  CHECK(!is_mlir("# comment\n{ lambda ; . let in () }"));
  CHECK(!is_mlir("let f = { lambda ; . let in () } in { lambda ; . let in () }"));
}

TEST(what_is_emitted_reads_back) {
  size_t same = 0;
  auto without_calls = [](std::string text) {  // functions are named as they are found
    return std::regex_replace(text, std::regex("@[A-Za-z_0-9]+"), "@f");
  };
  for (const std::string& text : emitted()) {
    try {
      GraphRef graph = read_stablehlo(text);
      verify(*graph);
      std::string again = emit_stablehlo(*graph).text;
      same += without_calls(again) == without_calls(text);
      // Reading has come to rest after one round.
      std::string third = emit_stablehlo(*read_stablehlo(again)).text;
      (void)third;
    } catch (const Error& error) {
      bool known = has(text, "callback") || has(text, "sdy.manual_computation");
      if (!known) test::report_failure(__FILE__, __LINE__, cat(error.what(), "\n", text));
    }
  }
  std::printf("%zu of %zu modules come back to the letter\n", same, emitted().size());
}

TEST(mutants_end_in_a_graph_or_an_error) {
  int64_t count = weft::test::number_from_environment("WEFT_MUTATIONS", 3000);
  std::mt19937 random(static_cast<uint32_t>(weft::test::number_from_environment("WEFT_SEED", 0)));
  int64_t read = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::string text = mutated(emitted()[random() % emitted().size()], random);
    try {
      GraphRef graph = read_stablehlo(text);
      verify(*graph);
      ++read;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal)
        test::report_failure(__FILE__, __LINE__, cat(error.what(), "\n", text));
    }
  }
  std::printf("%ld of %ld mutants were programs\n", static_cast<long>(read),
              static_cast<long>(count));
}
