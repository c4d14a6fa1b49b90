// Named axes: what a graph knows of them, how they print, and that vmap reaches ops that use them.
#include "check.h"
#include "weft/build.h"
#include "weft/graph.h"
#include "weft/registry.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

// A stand-in for collective ops. index[axes=('i',)]: the index along an axis, 7 where there is
// none. bind[axis=('i',) jaxpr=...] x...: a call that is an axis of its own.
void register_ops() {
  static bool done = [] {
    OpDef index;
    index.name = "test_index";
    index.attrs = {{"axes", AttrType::kAxisNames}};
    index.num_operands = 0;
    index.infer = [](const InferCtx&) -> TypeRefs { return {scalar_type(DType::kI32)}; };
    index.batch = [](BatchCtx& c) {
      c.result(iota(c.b, make_type(DType::kI32, Dims{c.size}), 0), 0);
    };
    registry().add(std::move(index));
    OpDef bind;
    bind.name = "test_bind";
    bind.attrs = {{"axis", AttrType::kAxisNames, AttrSpec::kBinds}, {"jaxpr", AttrType::kGraph}};
    bind.infer = [](const InferCtx& c) -> TypeRefs {
      std::vector<TypeRef> types = c.attr().graph("jaxpr")->output_types();
      return TypeRefs(std::span<const TypeRef>(types));
    };
    registry().add(std::move(bind));
    return true;
  }();
  (void)done;
}

using Names = std::vector<std::string>;

constexpr const char* kIndex = "{ lambda ; . let a:i32[] = test_index[axes=('i',)] in (a,) }";

}  // namespace

TEST(graphs_know_their_axis_names) {
  register_ops();
  CHECK(parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")->axis_names().empty());
  GraphRef graph = parse(
      "{ lambda ; . let a:i32[] = test_index[axes=('j', 'i')]; b:i32[] = test_index[axes=('h',)] "
      "in (a, b) }");
  CHECK(graph->axis_names() == Names({"h", "i", "j"}));
  verify(*graph);
  GraphRef called = parse(cat("{ lambda ; . let a:i32[] = jit[name=f jaxpr=", kIndex,
                              "]; b:i32[] = test_index[axes=('k',)] in (a, b) }"));
  CHECK(called->axis_names() == Names({"i", "k"}));
  verify(*called);
}

TEST(bound_names_do_not_escape) {
  register_ops();
  auto bound = [](std::string_view axis) {
    return parse(cat("{ lambda ; . let a:i32[] = test_bind[axis=(", axis, ") jaxpr=", kIndex,
                     "] in (a,) }"))
        ->axis_names();
  };
  CHECK(bound("'i',").empty());
  CHECK(bound("'j', 'i'").empty());
  CHECK(bound("'j',") == Names({"i"}));
}

TEST(axis_names_round_trip) {
  register_ops();
  for (Names names : {Names{}, Names{"i"}, Names{"a b", "it's", "x\"y", "back\\slash", "n\nl", "{"},
                      Names{"", "é"}}) {
    GraphBuilder b;
    const OpDef& op = registry().get("test_index");
    Values v = b.add(op, {}, AttrRecord::make(op.name, op.attrs, {{"axes", names}}));
    GraphRef graph = b.finish(v);
    GraphRef read = parse(print(*graph));
    CHECK(equal(*read, *graph));
    CHECK_EQ(read->structural_hash(), graph->structural_hash());
    CHECK(read->ops()[0].attrs->names("axes") == names);
    // In the definition of a function, which is skipped at first, too.
    GraphRef twice = parse(cat("let f = ", print(*graph),
                               " in { lambda ; . let a:i32[] = jit[jaxpr=f name=f]; b:i32[] = "
                               "jit[jaxpr=f name=f] in (a, b) }"));
    CHECK(equal(*parse(print(*twice)), *twice));
  }
  CHECK_THROWS(kParse, "to begin a string",
               parse("{ lambda ; . let a:i32[] = test_index[axes=(i,)] in (a,) }"));
  CHECK_THROWS(kParse, "expected a closing '",
               parse("{ lambda ; . let a:i32[] = test_index[axes=('i,)] in (a,) }"));
}

// Nothing that the op takes is mapped, and still it is one per element of the axis.
TEST(vmap_reaches_ops_that_name_its_axis) {
  register_ops();
  auto mapped = [](const std::string& text, std::string name) {
    GraphRef graph = parse(text);
    auto result = vmap(
        graph,
        {.in_dims = BatchDims(graph->num_inputs(), 0), .size = 3, .axis_name = std::move(name)});
    verify(*result->graph);
    return result;
  };
  CHECK_EQ(mapped(kIndex, "i")->out_dims[0], 0);
  CHECK(mapped(kIndex, "i")->graph->axis_names().empty());
  CHECK_EQ(mapped(kIndex, "j")->out_dims[0], kNotBatched);
  CHECK(mapped(kIndex, "j")->graph->axis_names() == Names({"i"}));
  CHECK_EQ(mapped(kIndex, "")->out_dims[0], kNotBatched);

  std::string index = kIndex;
  std::string in_call = cat("{ lambda ; . let a:i32[] = jit[name=f jaxpr=", index, "] in (a,) }");
  std::string in_branch =
      cat("{ lambda ; . let a:i32[] = cond[branches=(", index, " ", index, ")] 1:i32[] in (a,) }");
  std::string in_loop =
      "{ lambda ; . let a:i32[] = scan[jaxpr={ lambda ; x:i32[]. let y:i32[] = "
      "test_index[axes=('i',)]; z:i32[] = add x y in (z,) } length=4 num_carry=1 num_consts=0 "
      "reverse=False unroll=1] 0:i32[] in (a,) }";
  std::string in_while =
      "{ lambda ; . let a:i32[] = while[body_jaxpr={ lambda ; x:i32[]. let y:i32[] = "
      "test_index[axes=('i',)]; z:i32[] = add x y in (z,) } body_nconsts=0 cond_jaxpr={ lambda ; "
      "x:i32[]. let b:bool[] = lt x 9:i32[] in (b,) } cond_nconsts=0] 0:i32[] in (a,) }";
  for (const std::string& text : {in_call, in_branch, in_loop, in_while}) {
    CHECK_EQ(mapped(text, "i")->out_dims[0], 0);
    CHECK(mapped(text, "i")->graph->axis_names().empty());
    CHECK_EQ(mapped(text, "j")->out_dims[0], kNotBatched);
  }
}

// Names with the characters that keys are joined with.
TEST(vmaps_of_different_names_are_kept_apart) {
  register_ops();
  GraphRef graph = parse(kIndex);
  VmapOptions one{.in_dims = {}, .size = 3, .axis_name = "a:", .spmd_axis_name = "b"};
  VmapOptions two{.in_dims = {}, .size = 3, .axis_name = "a", .spmd_axis_name = ":b"};
  CHECK(vmap(graph, one) != vmap(graph, two));
  CHECK(vmap(graph, one) == vmap(graph, one));
}
