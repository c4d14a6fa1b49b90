// What gather and scatter refuse, named by the constraint of StableHLO; their vectorised forms.
#include "check.h"
#include "rules.h"

using namespace weft;
using namespace weft::test;

namespace {

struct Numbers {
  Dims window, dropped, map, batching, indices_batching;
};

OpCase gather(std::string_view x, std::string_view indices, const Numbers& n, const Dims& sizes,
              std::string mode = "clip") {
  return OpCase("gather", {x, indices},
                {{"offset_dims", n.window},
                 {"collapsed_slice_dims", n.dropped},
                 {"start_index_map", n.map},
                 {"operand_batching_dims", n.batching},
                 {"start_indices_batching_dims", n.indices_batching},
                 {"slice_sizes", sizes},
                 {"mode", mode}});
}

OpCase scatter(std::string_view op, std::string_view x, std::string_view indices,
               std::string_view updates, const Numbers& n) {
  return OpCase(op, {x, indices, updates},
                {{"update_window_dims", n.window},
                 {"inserted_window_dims", n.dropped},
                 {"scatter_dims_to_operand_dims", n.map},
                 {"operand_batching_dims", n.batching},
                 {"scatter_indices_batching_dims", n.indices_batching},
                 {"mode", std::string("clip")}});
}

const Numbers kRows = {{1}, {0}, {0}};

}  // namespace

TEST(gather_types) {
  CHECK_EQ(cat(gather("f32[5,3]", "i32[2,1]", kRows, {1, 3}).out_types[0]), "f32[2,3]");
  CHECK_EQ(cat(gather("bool[5,3]", "u8[2,4,2]", {{0, 3}, {}, {1, 0}}, {2, 1}).out_types[0]),
           "bool[2,2,4,1]");
  CHECK_EQ(
      cat(gather("f32[7,5,3]", "i32[2,7,1]", {{2}, {1}, {1}, {0}, {1}}, {1, 1, 3}).out_types[0]),
      "f32[2,7,3]");
}

TEST(gather_errors) {
  auto rows = [](const Numbers& n, const Dims& sizes = {1, 3}) {
    return gather("f32[5,3]", "i32[2,1]", n, sizes);
  };
  CHECK_THROWS(kDtype, "[gather] expected integer indices",
               gather("f32[5,3]", "f32[2,1]", kRows, {1, 3}));
  CHECK_THROWS(kShape, "an axis for the index vectors", gather("f32[5,3]", "i32[]", kRows, {1, 3}));
  CHECK_THROWS(kValue, "(gather C1)", rows({{1}, {0, 1}, {0}}));
  CHECK_THROWS(kValue, "for each of the 1 components of the index vectors (gather C3)",
               rows({{1}, {0}, {0, 1}}));
  CHECK_THROWS(kValue, "expected increasing offset_dims (gather C4)",
               gather("f32[5,3]", "i32[2,1]", {{2, 0}, {}, {0}}, {1, 3}));
  CHECK_THROWS(kValue, "expected distinct offset_dims (gather C4)",
               gather("f32[5,3]", "i32[2,1]", {{1, 1}, {}, {0}}, {1, 3}));
  CHECK_THROWS(kValue,
               "expected offset_dims between 0 and 1 (gather C5); got offset_dims=(2,) "
               "(operand 0: f32[5,3], operand 1: i32[2,1])",
               rows({{2}, {0}, {0}}));
  CHECK_THROWS(kValue, "none in operand_batching_dims (gather C6)",
               gather("f32[2,3]", "i32[2,1]", {{1}, {0}, {1}, {0}, {0}}, {1, 1}));
  CHECK_THROWS(kValue, "(gather C7)", rows({{}, {1, 0}, {0}}));
  CHECK_THROWS(kValue, "(gather C8)", rows({{1}, {2}, {0}}));
  CHECK_THROWS(kValue, "slices of size 1 along axis 0, which they lack (gather C9)",
               rows(kRows, {2, 3}));
  CHECK_THROWS(kValue, "(gather C10)",
               gather("f32[2,2,3]", "i32[2,2,1]", {{2}, {}, {2}, {1, 0}, {0, 1}}, {1, 1, 1}));
  CHECK_THROWS(kValue, "(gather C11)", rows({{1}, {}, {0}, {2}, {0}}));
  CHECK_THROWS(kValue, "(gather C12)",
               gather("f32[2,3]", "i32[2,1]", {{}, {1}, {1}, {0}, {0}}, {2, 1}));
  CHECK_THROWS(kValue, "(gather C13)",
               gather("f32[2,2,3]", "i32[2,1]", {{}, {2}, {2}, {0, 1}, {0, 0}}, {1, 1, 1}));
  CHECK_THROWS(kValue, "(gather C14)",
               gather("f32[2,3]", "i32[2,1]", {{}, {1}, {1}, {0}, {1}}, {1, 1}));
  CHECK_THROWS(kValue, "(gather C16)",
               gather("f32[2,3]", "i32[2,1]", {{}, {1}, {1}, {0}, {}}, {1, 1}));
  CHECK_THROWS(kValue, "(gather C17)",
               gather("f32[4,3]", "i32[2,1]", {{}, {1}, {1}, {0}, {0}}, {1, 1}));
  CHECK_THROWS(kValue, "(gather C18)",
               gather("f32[2,3]", "i32[2,1]", {{1}, {}, {0}, {0}, {0}}, {1, 1}));
  CHECK_THROWS(kValue, "(gather C19)", rows({{1}, {0}, {-1}}));
  CHECK_THROWS(kValue, "(gather C20)", rows(kRows, {1}));
  CHECK_THROWS(kShape, "(gather C21); got slice_sizes=(1, 4)", rows(kRows, {1, 4}));
  CHECK_THROWS(kValue, "expected mode clip, fill or promise_in_bounds; got wrap",
               gather("f32[5,3]", "i32[2,1]", kRows, {1, 3}, "wrap"));
}

TEST(scatter_errors) {
  auto rows = [](const Numbers& n, std::string_view updates = "f32[2,3]") {
    return scatter("scatter-add", "f32[5,3]", "i32[2,1]", updates, n);
  };
  CHECK_EQ(cat(rows(kRows).out_types[0]), "f32[5,3]");
  CHECK_THROWS(kDtype, "[scatter-add] expected integer, float or complex",
               scatter("scatter-add", "bool[5,3]", "i32[2,1]", "bool[2,3]", kRows));
  auto max = scatter("scatter-max", "c64[5,3]", "i32[2,1]", "c64[2,3]", kRows);
  CHECK_EQ(cat(max.out_types[0]), "c64[5,3]");
  CHECK_THROWS(kValue, "(scatter C2)", rows({{1}, {0, 1}, {0}}));
  CHECK_THROWS(kShape, "updates of the indices' shape (2,)", rows(kRows, "f32[4,3]"));
  CHECK_THROWS(kShape, "windows no larger than the operand (scatter C4)", rows(kRows, "f32[2,4]"));
  CHECK_THROWS(kDtype, "(scatter C6)", rows(kRows, "i32[2,3]"));
  CHECK_THROWS(kValue, "(scatter C7)",
               scatter("scatter", "f32[5,3]", "i32[2,1]", "f32[2,1,3]", {{2, 1}, {}, {0}}));
  CHECK_THROWS(kValue, "(scatter C8)", rows({{2}, {0}, {0}}));
  CHECK_THROWS(kValue, "(scatter C11)", rows({{1}, {5}, {0}}));
  CHECK_THROWS(kValue, "(scatter C19)", rows({{1}, {0}, {0, 1}}));
  CHECK_THROWS(kValue, "(scatter C21)", rows({{1}, {0}, {2}}));
}

TEST(gather_keeps_the_mapped_axis_of_its_operand) {
  OpCase columns = gather("f32[5,3]", "i32[2,1]", {{0}, {1}, {1}}, {5, 1});
  for (int dim = 0; dim <= 2; ++dim) {
    int dims[] = {dim, kNotBatched};
    Batched mapped = run_batch(columns, dims, 7);
    CHECK_EQ(mapped.graph->ops().size(), 1u);  // no transpose
    CHECK_EQ(mapped.out_dims[0], dim == 0 ? 0 : 1);
  }
}

TEST(scatter_of_nothing_is_dropped) {
  std::string passes[] = {"simplify", "dce"};
  GraphRef graph = plain_graph(scatter("scatter", "f32[5,3]", "i32[0,1]", "f32[0,3]", kRows));
  CHECK(run_passes(graph, passes)->ops().empty());
}
