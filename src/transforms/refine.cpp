// refine: a copy of a graph in which sizes take the place of symbolic dimensions.
#include "weft/refine.h"

#include <unordered_map>

#include "weft/error.h"
#include "weft/rebuild.h"

namespace weft {
namespace {

class Refiner {
 public:
  explicit Refiner(const DimValues& values) : values_(values) {}

  GraphRef run(const GraphRef& graph) {
    GraphRef& made = made_[graph.get()];
    if (!made) made = refined(*graph);
    return made;
  }

 private:
  GraphRef refined(const Graph& graph) {
    GraphBuilder b;
    ValueMap map(graph, b);
    std::vector<Value> inputs;
    for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
      inputs.push_back(b.input(type(graph.type(graph.input(i)))));
      map.set(graph.input(i), inputs.back());
    }
    copy_ops(graph, b, map, [&](const Op& op, std::span<const Value> operands) {
      return b.add(*op.info, operands, attrs(*op.info, op.attrs));
    });
    return finish_copy(graph, b, map, inputs);
  }

  int64_t size(int64_t d) const { return is_symbolic(d) ? dim_evaluate(d, values_) : d; }
  Dims sizes(const Dims& dims) const {
    Dims out;
    for (int64_t d : dims) out.push_back(size(d));
    return out;
  }
  TypeRef type(TypeRef t) const {
    return has_symbols(t->shape()) ? with_shape(t, sizes(t->shape())) : t;
  }

  AttrsRef attrs(const OpInfo& op, const AttrsRef& given) {
    if (!given) return given;
    std::vector<NamedAttr> named;
    for (size_t i = 0; i < given->values().size(); ++i) {
      Attr value = given->values()[i];
      if (auto* x = std::get_if<int64_t>(&value)) *x = size(*x);
      if (auto* xs = std::get_if<Dims>(&value)) *xs = sizes(*xs);
      if (auto* lists = std::get_if<std::vector<Dims>>(&value))
        for (Dims& xs : *lists) xs = sizes(xs);
      if (auto* types = std::get_if<std::vector<TypeRef>>(&value))
        for (TypeRef& t : *types) t = type(t);
      if (auto* graph = std::get_if<GraphRef>(&value); graph && *graph) *graph = run(*graph);
      if (auto* graphs = std::get_if<std::vector<GraphRef>>(&value))
        for (GraphRef& graph : *graphs) graph = run(graph);
      named.emplace_back(given->schema().specs()[i].name, std::move(value));
    }
    return AttrRecord::make(op.name, given->schema(), named);
  }

  const DimValues& values_;
  std::unordered_map<const Graph*, GraphRef> made_;
};

}  // namespace

GraphRef refine(const GraphRef& graph, const DimValues& values) {
  return Refiner(values).run(graph);
}

}  // namespace weft
