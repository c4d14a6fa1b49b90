#include "test_ops.h"

namespace weft::test {

namespace {

TypeRefs infer_same(const InferCtx& c) { return {c.in(0)}; }

TypeRefs infer_add(const InferCtx& c) {
  if (c.in(0)->dtype() != c.in(1)->dtype()) {
    c.fail(ErrorKind::kDtype, "expected equal dtypes; got ", c.in(0), " and ", c.in(1));
  }
  if (c.in(0)->rank() == 0) return {c.in(1)};
  if (c.in(1)->rank() != 0 && c.in(0) != c.in(1)) {
    c.fail(ErrorKind::kShape, "expected equal shapes; got ", c.in(0), " and ", c.in(1));
  }
  return {c.in(0)};
}

TypeRefs infer_split(const InferCtx& c) {
  TypeRefs results;
  for (int64_t size : c.attr().ints("sizes")) {
    Dims shape = c.in(0)->shape();
    shape[static_cast<size_t>(c.attr().integer("axis"))] = size;
    results.push_back(with_shape(c.in(0), shape));
  }
  return results;
}

TypeRefs infer_concatenate(const InferCtx& c) {
  if (c.size() == 0) c.fail(ErrorKind::kType, "expected operands; got none");
  Dims shape = c.in(0)->shape();
  size_t axis = static_cast<size_t>(c.attr().integer("dimension"));
  shape[axis] = 0;
  for (TypeRef type : c.operands) shape[axis] += type->dim(static_cast<int>(axis));
  return {with_shape(c.in(0), shape)};
}

TypeRefs outputs_of(const Graph& graph) {
  std::vector<TypeRef> types = graph.output_types();
  return TypeRefs(types.begin(), types.end());
}

}  // namespace

const OpInfo kNeg{.name = "neg", .doc = "", .attrs = {}, .num_operands = 1, .infer = infer_same};
const OpInfo kAdd{.name = "add", .doc = "", .attrs = {}, .num_operands = 2, .infer = infer_add};
const OpInfo kIota{.name = "iota",
                   .doc = "",
                   .attrs = {{"dimension", AttrType::kInt},
                             {"dtype", AttrType::kDType, AttrSpec::kFromResult},
                             {"shape", AttrType::kInts, AttrSpec::kFromResult},
                             {"sharding", AttrType::kString, AttrSpec::kOptional}},
                   .num_operands = 0,
                   .infer = [](const InferCtx& c) -> TypeRefs {
                     return {make_type(c.attr().dtype("dtype"), c.attr().ints("shape"))};
                   }};
const OpInfo kSplit{.name = "split",
                    .doc = "",
                    .attrs = {{"axis", AttrType::kInt}, {"sizes", AttrType::kInts}},
                    .num_operands = 1,
                    .infer = infer_split};
const OpInfo kConcatenate{.name = "concatenate",
                          .doc = "",
                          .attrs = {{"dimension", AttrType::kInt}},
                          .infer = infer_concatenate};
const OpInfo kJit{.name = "jit",
                  .doc = "",
                  .attrs = {{"name", AttrType::kString, AttrSpec::kCosmetic, std::string("f")},
                            {"jaxpr", AttrType::kGraph},
                            {"inline", AttrType::kBool, AttrSpec::kHideDefault, false}},
                  .infer = [](const InferCtx& c) { return outputs_of(*c.attr().graph("jaxpr")); }};
const OpInfo kCond{
    .name = "cond",
    .doc = "",
    .attrs = {{"branches", AttrType::kGraphs}},
    .infer = [](const InferCtx& c) { return outputs_of(*c.attr().graphs("branches").at(0)); }};
const OpInfo kLog{.name = "log",
                  .doc = "",
                  .attrs = {{"tag", AttrType::kString}},
                  .effects = kOrdered,
                  .infer = [](const InferCtx&) { return TypeRefs(); }};
const OpInfo kTick{
    .name = "tick", .doc = "", .attrs = {}, .effects = kUnordered, .infer = [](const InferCtx&) {
      return TypeRefs();
    }};
const OpInfo kEverything{
    .name = "everything",
    .doc = "",
    .attrs = {{"bool", AttrType::kBool},
              {"int", AttrType::kInt},
              {"float", AttrType::kFloat},
              {"string", AttrType::kString},
              {"dtype", AttrType::kDType},
              {"ints", AttrType::kInts},
              {"bools", AttrType::kBools},
              {"list", AttrType::kIntsList},
              {"pairs", AttrType::kIntsPairs},
              {"graph", AttrType::kGraph, AttrSpec::kOptional},
              {"graphs", AttrType::kGraphs, AttrSpec::kOptional},
              {"types", AttrType::kTypes, AttrSpec::kHideDefault},
              {"object", AttrType::kObject, AttrSpec::kHideDefault}},
    .num_operands = 0,
    .infer = [](const InferCtx&) -> TypeRefs { return {scalar_type(DType::kF32)}; }};

const OpInfo* find_test_op(std::string_view name) {
  static const OpInfo* const kOps[] = {&kNeg, &kAdd,  &kIota, &kSplit, &kConcatenate,
                                       &kJit, &kCond, &kLog,  &kTick,  &kEverything};
  for (const OpInfo* op : kOps) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace weft::test
