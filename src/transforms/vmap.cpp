// vmap: each op is applied to all elements of a mapped axis at once, by its batch rule; an op
// without mapped operands is copied, unless it refers to the axis by its name.
#include <algorithm>

#include "transforms/driver.h"
#include "weft/build.h"

namespace weft {
namespace {

class Mapper {
 public:
  Mapper(Builder& b, const Graph& graph, const VmapOptions& options)
      : b_(b),
        graph_(graph),
        options_(options),
        values_(graph, b),
        dims_(graph.num_values(), kNotBatched) {}

  MappedValues run(std::span<const Value> args) {
    for (uint32_t i = 0; i < graph_.num_inputs(); ++i) {
      values_.set(graph_.input(i), args[i]);
      dims_[i] = options_.in_dims[i];
    }
    Loc outer = b_.loc();
    for (const Op& op : graph_.ops()) {
      b_.set_loc(op.loc != kNoLoc ? op.loc : outer);
      at_op(op, [&] { visit(op); });
    }
    b_.set_loc(outer);
    MappedValues out;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value v = graph_.outputs()[i];
      int wanted = options_.out_dims.empty() ? kAnyDim : options_.out_dims[i];
      int dim = wanted == kAnyDim ? dim_of(v) : wanted;
      out.outputs.push_back(dim == dim_of(v) ? values_(v) : moved(v, dim, i));
      out.dims.push_back(dim);
    }
    return out;
  }

 private:
  int dim_of(Value v) const { return v.is_literal() ? kNotBatched : dims_[v.id]; }

  // The value with its mapped axis at `dim`.
  Value moved(Value v, int dim, size_t output) {
    if (dim == kNotBatched) {
      fail(ErrorKind::kValue, "vmap out_axes: expected output ", output,
           ", for which it has None, not to depend on the mapped axis; got one mapped at axis ",
           dim_of(v));
    }
    Val x{&b_, values_(v)};
    if (dim_of(v) != kNotBatched) return move_axis(x, dim_of(v), dim).value;
    Dims shape = x.shape(), kept;
    shape.insert(static_cast<size_t>(dim), options_.size);
    for (int i = 0; i < x.rank(); ++i) kept.push_back(i < dim ? i : i + 1);
    return as_lanes(broadcast_in_dim(x, shape, kept), dim).value;
  }

  // The value, whose mapped axis is at `dim`, split along it as lanes are.
  Val as_lanes(Val x, int dim) const {
    if (!options_.lanes) return x;
    ShardingParts parts = options_.lanes->parts();
    DimSharding as_it_is{.axes = {}, .open = true};
    parts.dims.insert(parts.dims.begin(), static_cast<size_t>(dim), as_it_is);
    parts.dims.resize(x.shape().size(), as_it_is);
    return sharded(x, make_sharding(std::move(parts)));
  }

  void visit(const Op& op) {
    const OpDef& d = def(*op.info);
    Values operands = values_(graph_.operands(op));
    BatchDims dims;
    for (Value v : graph_.operands(op)) dims.push_back(dim_of(v));
    bool mapped = std::any_of(dims.begin(), dims.end(), [](int dim) { return dim != kNotBatched; });
    if (!mapped && !uses_axis(op)) {
      values_.set_results(op, b_.add_typed(d, operands, op.attrs, graph_.result_types(op)));
      return;
    }
    if (!d.batch) missing_rule(d, "vmap");
    TypeRefs in_types = operand_types(graph_, op);
    BatchCtx c{rule_ctx(b_, graph_, op, operands, in_types),
               options_.size,
               dims,
               {},
               {},
               options_.axis_name,
               options_.spmd_axis_name};
    d.batch(c);
    if (c.out.size() != op.num_results) {
      fail(ErrorKind::kInternal, "[", d.name, "] batch made ", c.out.size(), " results; expected ",
           op.num_results);
    }
    for (uint32_t i = 0; i < op.num_results; ++i) {
      values_.set(graph_.result(op, i), c.out[i].value);
      dims_[op.results_begin + i] = c.out_dims[i];
    }
  }

  // Whether the op, or one in its graphs, refers to the mapped axis by its name.
  bool uses_axis(const Op& op) const {
    if (options_.axis_name.empty()) return false;
    std::vector<std::string> names = axis_names_of(op.attrs);
    return std::binary_search(names.begin(), names.end(), options_.axis_name);
  }

  Builder& b_;
  const Graph& graph_;
  const VmapOptions& options_;
  ValueMap values_;
  std::vector<int> dims_;
};

void check_options(const Graph& graph, const VmapOptions& options) {
  check_mask("vmap", "input", options.in_dims.size(), graph.num_inputs());
  if (!options.out_dims.empty())
    check_mask("vmap", "output", options.out_dims.size(), graph.outputs().size());
  auto check_dim = [](std::string_view what, size_t i, int dim, int lowest, TypeRef type) {
    if (dim < lowest || dim > type->rank()) {
      fail(ErrorKind::kValue, "vmap expected an axis for ", what, " ", i, " between 0 and ",
           type->rank(), "; got ", dim, " (without that axis: ", type, ")");
    }
  };
  for (uint32_t i = 0; i < graph.num_inputs(); ++i)
    check_dim("input", i, options.in_dims[i], kNotBatched, graph.input_types()[i]);
  for (size_t i = 0; i < options.out_dims.size(); ++i)
    check_dim("output", i, options.out_dims[i], kAnyDim, graph.type(graph.outputs()[i]));
}

TypeRef with_mapped_axis(TypeRef type, int dim, int64_t size) {
  if (dim == kNotBatched) return type;
  Dims shape = type->shape();
  shape.insert(static_cast<size_t>(dim), size);
  return with_shape(type, shape);
}

std::shared_ptr<const VmapGraph> make_vmapped(const Graph& graph, const VmapOptions& options) {
  GraphBuilder b;
  b.set_hash_consing(true);
  std::vector<Value> args;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i)
    args.push_back(
        b.input(with_mapped_axis(graph.input_types()[i], options.in_dims[i], options.size)));
  MappedValues mapped = vmap_into(b, graph, args, options);
  auto result = std::make_shared<VmapGraph>();
  result->graph = b.finish_ordered(mapped.outputs, args, graph.num_consts());
  result->out_dims = std::move(mapped.dims);
  return result;
}

}  // namespace

MappedValues vmap_into(Builder& b, const Graph& graph, std::span<const Value> args,
                       const VmapOptions& options) {
  check_options(graph, options);
  check_mask("vmap", "input", args.size(), graph.num_inputs());
  return Mapper(b, graph, options).run(args);
}

std::shared_ptr<const VmapGraph> vmap(const GraphRef& graph, const VmapOptions& options) {
  check_options(*graph, options);
  std::string key = cat("vmap:", options.size);
  append_key(key, options.in_dims);
  append_key(key, options.out_dims);
  // With its length, since a name may hold any character.
  key += cat(':', options.axis_name.size(), ':', options.axis_name, ':', options.spmd_axis_name);
  if (options.lanes) key += cat(':', options.lanes);
  return graph->cached<VmapGraph>(key, [&] { return make_vmapped(*graph, options); });
}

}  // namespace weft
