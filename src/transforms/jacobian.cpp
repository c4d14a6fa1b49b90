// A graph's derivative, forward or backward, is mapped over a basis; the parts of what comes out
// are the blocks of the Jacobian. Forward, values and tangents come from one graph, as in jvp(): a
// loop stays one loop, which keeps nothing of its steps.

#include <algorithm>

#include "weft/build.h"
#include "weft/dims.h"
#include "weft/transforms.h"

namespace weft {
namespace {

Dims joined(const Dims& a, const Dims& b) {
  Dims out = a;
  for (int64_t d : b) out.push_back(d);
  return out;
}

int64_t num_elements(std::span<const TypeRef> types) {
  int64_t total = 0;
  for (TypeRef t : types) {
    if (has_symbols(t->shape()))
      fail(ErrorKind::kNotImplemented, "expected sizes that are numbers for a Jacobian; got ", t,
           ", which has symbolic dimensions");
    total += t->num_elements();
  }
  return total;
}

// The part of a standard basis of `total` elements that belongs to a value: one row per element.
// The value's own elements begin at `start`.
Val basis(Builder& b, int64_t total, int64_t start, TypeRef type) {
  TypeRef matrix = make_type(DType::kI32, {total, type->num_elements()});
  Val own = iota(b, matrix, 1);
  if (start > 0) own = own + static_cast<double>(start);
  Val rows = convert(eq(iota(b, matrix, 0), own), type->dtype());
  return reshape(rows, joined({total}, type->shape()));
}

// Maps a graph over a basis of the values that `types` are of, which come last among its inputs;
// the others are the same for all. `out_dims` as of VmapOptions.
MappedValues map_over_basis(Builder& b, const Graph& graph, std::span<const Value> fixed,
                            std::span<const TypeRef> types, BatchDims out_dims) {
  VmapOptions options{.in_dims = BatchDims(fixed.size(), kNotBatched),
                      .size = num_elements(types),
                      .out_dims = std::move(out_dims)};
  Values args(fixed);
  int64_t start = 0;
  for (TypeRef t : types) {
    options.in_dims.push_back(0);
    args.push_back(basis(b, options.size, start, t).value);
    start += t->num_elements();
  }
  return vmap_into(b, graph, args, options);
}

// Of a value that is the same all along an axis, that value.
Val without(Val mapped, int axis) {
  if (axis == kNotBatched) return mapped;
  Dims start(mapped.shape().size()), limit = mapped.shape();
  limit[static_cast<size_t>(axis)] = 1;
  return squeeze(slice(mapped, start, limit), {axis});
}

class JacobianBuilder {
 public:
  JacobianBuilder(const Graph& graph, const JacobianOptions& options)
      : graph_(graph), options_(options) {
    b_.set_hash_consing(true);
    for (TypeRef t : graph.input_types()) inputs_.push_back(b_.input(t));
    for (size_t i = 0; i < graph.num_inputs(); ++i)
      if (options.in_mask[i]) by_.push_back(graph.input_types()[i]);
    auto types = graph.output_types();
    values_.assign(types.begin(), types.begin() + static_cast<ptrdiff_t>(options.num_values));
  }

  GraphRef by_columns(const JvpGraph& dual) {
    Values outputs, columns;
    bool any = num_elements(by_) > 0;
    if (any) {
      size_t count = graph_.outputs().size();
      BatchDims out_dims(count, kAnyDim);
      auto types = dual.graph->output_types();
      for (size_t i = count; i < types.size(); ++i) out_dims.push_back(types[i]->rank());
      MappedValues made = map_over_basis(b_, *dual.graph, inputs_, by_, std::move(out_dims));
      for (size_t i = 0; i < count; ++i)
        outputs.push_back(without({&b_, made.outputs[i]}, made.dims[i]).value);
      columns = Values(std::span(made.outputs).subspan(count));
    } else {
      outputs = b_.inline_graph(graph_, inputs_);
    }
    size_t next = 0;
    begin(outputs);
    for (size_t i = 0; i < values_.size(); ++i) {
      int64_t start = 0;
      Val mapped{&b_, any && dual.out_mask[i] ? columns[next++] : Value{}};
      for (TypeRef input : by_) {
        int64_t stop = start + input->num_elements();
        add(mapped, values_[i]->rank(), start, stop, values_[i]->dtype(), values_[i], input);
        start = stop;
      }
    }
    return finish();
  }

  GraphRef by_rows(const LinearizeForRows& linearize) {
    LinearParts split = linearize(b_, inputs_);
    std::vector<TypeRef> moving;
    for (size_t i = 0; i < values_.size(); ++i)
      if (split.out_mask[i]) moving.push_back(values_[i]);
    bool any = num_elements(moving) > 0;
    Values rows;
    if (any)
      rows = Values(map_over_basis(b_, *split.pull, split.residuals, moving,
                                   BatchDims(split.pull->outputs().size(), 0))
                        .outputs);
    int64_t start = 0;
    begin(split.outputs);
    for (size_t i = 0; i < values_.size(); ++i) {
      bool moves = split.out_mask[i];
      int64_t stop = start + (moves ? values_[i]->num_elements() : 0);
      for (size_t k = 0; k < by_.size(); ++k) {
        Val mapped{&b_, any && moves ? rows[k] : Value{}};
        add(mapped, 0, start, stop, by_[k]->dtype(), values_[i], by_[k]);
      }
      start = stop;
    }
    return finish();
  }

 private:
  // The outputs that are not differentiated come first.
  void begin(std::span<const Value> outputs) {
    outputs = outputs.subspan(options_.num_values);
    outputs_.assign(outputs.begin(), outputs.end());
  }

  GraphRef finish() { return b_.finish_ordered(outputs_, inputs_, graph_.num_consts()); }

  // A block from a part of an axis; zeros if there is none.
  void add(Val mapped, int axis, int64_t start, int64_t stop, DType dtype, TypeRef value,
           TypeRef input) {
    Dims shape = joined(value->shape(), input->shape());
    if (!mapped.value) {
      outputs_.push_back(zeros(b_, make_type(dtype, shape)).value);
      return;
    }
    Dims starts(static_cast<size_t>(mapped.type()->rank()), 0), stops = mapped.type()->shape();
    starts[static_cast<size_t>(axis)] = start;
    stops[static_cast<size_t>(axis)] = stop;
    Val part =
        stops == mapped.type()->shape() && start == 0 ? mapped : slice(mapped, starts, stops);
    outputs_.push_back((part.type()->shape() == shape ? part : reshape(part, shape)).value);
  }

  const Graph& graph_;
  const JacobianOptions& options_;
  GraphBuilder b_;
  Values inputs_;
  std::vector<TypeRef> by_, values_;  // what is differentiated by, and what is
  std::vector<Value> outputs_;
};

}  // namespace

TransposeOptions linear_after(const Graph& linear, size_t num_residuals, size_t num_cotangents) {
  TransposeOptions options;
  options.linear.resize(num_residuals, false);
  options.linear.resize(linear.num_inputs(), true);
  options.cotangents.resize(num_cotangents, true);
  options.cotangents.resize(linear.outputs().size(), false);
  options.instantiate = true;
  return options;
}

std::shared_ptr<const JacobianGraph> jacobian(const GraphRef& graph,
                                              const JacobianOptions& options) {
  std::string key =
      cat("jacobian", options.forward ? " forward " : " reverse ", options.num_values, ' ');
  for (bool m : options.in_mask) key += m ? '1' : '0';
  return graph->cached<JacobianGraph>(key, [&] {
    if (options.forward)
      return std::make_shared<const JacobianGraph>(JacobianGraph{
          jacobian_by_columns(*graph, options, *jvp(graph, {.in_mask = options.in_mask}))});
    auto parts = [&](Builder& b, std::span<const Value> inputs) -> LinearParts {
      Linearization made = linearize_into(b, *graph, inputs, {.in_mask = options.in_mask});
      auto first = made.out_mask.begin();
      auto count = std::count(first, first + static_cast<ptrdiff_t>(options.num_values), true);
      auto pull = transpose(made.linear, linear_after(*made.linear, made.residuals.size(),
                                                      static_cast<size_t>(count)));
      return {std::move(made.outputs), std::move(made.residuals), made.out_mask, pull->graph};
    };
    return std::make_shared<const JacobianGraph>(
        JacobianGraph{jacobian_by_rows(*graph, options, parts)});
  });
}

GraphRef jacobian_by_columns(const Graph& graph, const JacobianOptions& options,
                             const JvpGraph& dual) {
  return JacobianBuilder(graph, options).by_columns(dual);
}

GraphRef jacobian_by_rows(const Graph& graph, const JacobianOptions& options,
                          const LinearizeForRows& linearize) {
  return JacobianBuilder(graph, options).by_rows(linearize);
}

}  // namespace weft
