// Graphs in each other: the limit, and that everything that walks graphs survives the deepest ones
// on an ordinary stack (which takes a build with sanitizers to be worth something).
#include <functional>
#include <string>

#include "check.h"
#include "weft/emit.h"
#include "weft/error.h"
#include "weft/passes.h"
#include "weft/registry.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

// The op that holds `region` (named "f" in the text), from x to y.
struct Nest {
  const char* name;
  std::string before, after;  // around the region
};

const Nest kNests[] = {
    {"jit", "y:f32[] = jit[name=f jaxpr=", "] x"},
    {"checkpoint", "y:f32[] = checkpoint[name=f jaxpr=", "] x"},
    {"fusion", "y:f32[] = fusion[name=f body=", "] x"},
    {"cond", "i:i32[] = convert_element_type[new_dtype=int32] x; y:f32[] = cond[branches=(",
     ")] i x"},
    {"scan",
     "y:f32[] = scan[jaxpr=", " length=1 num_carry=1 num_consts=0 reverse=False unroll=1] x"},
    {"while", "y:f32[] = while[body_jaxpr=",
     " body_nconsts=0 cond_jaxpr={ lambda ; a:f32[]. let b:bool[] = lt a 1.0:f32[] in (b,) } "
     "cond_nconsts=0] x"},
};

std::string nested(const Nest& nest, uint32_t depth) {
  std::string text, end;
  for (uint32_t i = 1; i < depth; ++i) {
    text += "{ lambda ; x:f32[]. let " + nest.before;
    end += nest.after + " in (y,) }";
  }
  return text + "{ lambda ; x:f32[]. let y:f32[] = sin x in (y,) }" + end;
}

void check_typed(const char* what, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    // A transform may need more levels than there are, or a rule that an op lacks.
    bool typed = error.kind() == ErrorKind::kDepth || error.kind() == ErrorKind::kNotImplemented;
    if (!typed) weft::test::report_failure(__FILE__, __LINE__, cat(what, ": ", error.what()));
  }
}

}  // namespace

TEST(depth_is_counted) {
  CHECK_EQ(parse(nested(kNests[0], 1))->depth(), 1u);
  CHECK_EQ(parse(nested(kNests[0], 7))->depth(), 7u);
}

TEST(deeper_graphs_are_refused) {
  GraphRef deepest = parse(nested(kNests[0], kMaxGraphDepth));
  CHECK_EQ(deepest->depth(), kMaxGraphDepth);
  CHECK_THROWS(kParse, "at most 256 graphs in each other",
               parse(nested(kNests[0], kMaxGraphDepth + 1)));
  const OpDef& jit = registry().get("jit");
  GraphBuilder b;
  Value x = b.input(scalar_type(DType::kF32));
  AttrsRef attrs = AttrRecord::make("jit", jit.attrs, {{"name", "f"}, {"jaxpr", deepest}});
  CHECK_THROWS(kDepth, "[jit] expected at most 256 graphs in each other",
               b.add(jit, {&x, 1}, attrs));
}

// Definitions do not nest in the text.
TEST(definitions_nest_too) {
  std::string text = "let f0 = { lambda ; x:f32[]. let y:f32[] = sin x in (y,) } in\n";
  for (int i = 1; i < 300; ++i)
    text += cat("let f", i, " = { lambda ; x:f32[]. let y:f32[] = jit[name=f jaxpr=f", i - 1,
                "] x in (y,) } in\n");
  CHECK_THROWS(kParse, "at most 256 graphs in each other",
               parse(text + "{ lambda ; x:f32[]. let in (x,) }"));
}

TEST(the_deepest_graphs_are_walked) {
  for (const Nest& nest : kNests) {
    std::string text = nested(nest, kMaxGraphDepth);
    GraphRef graph = parse(text), same = parse(text);
    CHECK(equal(*graph, *same));
    CHECK_EQ(graph->structural_hash(), same->structural_hash());
    verify(*graph);
    CHECK(equal(*parse(print(*graph)), *graph));
    check_typed("graph_cost", [&] { graph_cost(*graph); });
    for (const Pass& pass : all_passes())
      check_typed(pass.name.c_str(), [&] { run_passes(graph, std::span(&pass.name, 1)); });
    check_typed("optimize", [&] { optimize(graph); });
    check_typed("jvp", [&] { jvp(graph, {.in_mask = {true}}); });
    check_typed("vmap", [&] { vmap(graph, {.in_dims = {0}, .size = 2}); });
    check_typed("vjp", [&] { vjp(graph, {.in_mask = {true}}); });
    check_typed("without_effects", [&] { without_effects(graph); });
    check_typed("emit", [&] { emit_stablehlo(*graph); });
  }
}
