// The linear part of a linearized graph, or its transpose, is mapped over a basis; the parts of
// what comes out are the blocks of the Jacobian.

#include "jacobian.h"

#include <algorithm>

#include "transforms.h"
#include "weft/build.h"

namespace weft::py {
namespace {

Dims joined(const Dims& a, const Dims& b) {
  Dims out = a;
  for (int64_t d : b) out.push_back(d);
  return out;
}

int64_t num_elements(std::span<const TypeRef> types) {
  int64_t total = 0;
  for (TypeRef t : types) total += t->num_elements();
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

// Maps a linear graph over a basis of the values that `types` are of, which come last among its
// inputs; the mapped axis is the last one of its outputs, or the first one.
Values map_over_basis(Builder& b, const Graph& linear, std::span<const Value> residuals,
                      std::span<const TypeRef> types, bool last) {
  VmapOptions options{.in_dims = BatchDims(residuals.size(), kNotBatched),
                      .size = num_elements(types)};
  Values args(residuals);
  int64_t start = 0;
  for (TypeRef t : types) {
    options.in_dims.push_back(0);
    args.push_back(basis(b, options.size, start, t).value);
    start += t->num_elements();
  }
  for (TypeRef t : linear.output_types()) options.out_dims.push_back(last ? t->rank() : 0);
  return Values(vmap_into(b, linear, args, options).outputs);
}

class JacobianBuilder {
 public:
  JacobianBuilder(const Graph& graph, const JacobianOptions& options, Linearize linearize)
      : options_(options) {
    b_.set_hash_consing(true);
    std::vector<Value> inputs;
    for (TypeRef t : graph.input_types()) inputs.push_back(b_.input(t));
    split_ = linearize(b_, inputs);
    for (size_t i = 0; i < graph.num_inputs(); ++i)
      if (options.in_mask[i]) inputs_.push_back(graph.input_types()[i]);
    auto types = graph.output_types();
    values_.assign(types.begin(), types.begin() + static_cast<ptrdiff_t>(options.num_values));
    for (size_t i = 0; i < values_.size(); ++i) moves_.push_back(split_.out_mask[i]);
    outputs_.assign(split_.outputs.begin() + static_cast<ptrdiff_t>(options.num_values),
                    split_.outputs.end());
    options.forward ? by_columns() : by_rows();
    result = b_.finish_ordered(outputs_, inputs, graph.num_consts());
  }

  GraphRef result;

 private:
  void by_columns() {
    bool any = num_elements(inputs_) > 0;
    Values columns;
    if (any) columns = map_over_basis(b_, *split_.push, split_.residuals, inputs_, true);
    size_t next = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      int64_t start = 0;
      Val mapped{&b_, any && moves_[i] ? columns[next] : Value{}};
      next += moves_[i];
      for (TypeRef input : inputs_) {
        int64_t stop = start + input->num_elements();
        add(mapped, values_[i]->rank(), start, stop, values_[i]->dtype(), values_[i], input);
        start = stop;
      }
    }
  }

  void by_rows() {
    std::vector<TypeRef> moving;
    for (size_t i = 0; i < values_.size(); ++i)
      if (moves_[i]) moving.push_back(values_[i]);
    bool any = num_elements(moving) > 0;
    Values rows;
    if (any) rows = map_over_basis(b_, *split_.pull, split_.residuals, moving, false);
    int64_t start = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      int64_t stop = start + (moves_[i] ? values_[i]->num_elements() : 0);
      for (size_t k = 0; k < inputs_.size(); ++k) {
        Val mapped{&b_, any && moves_[i] ? rows[k] : Value{}};
        add(mapped, 0, start, stop, inputs_[k]->dtype(), values_[i], inputs_[k]);
      }
      start = stop;
    }
  }

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

  const JacobianOptions& options_;
  GraphBuilder b_;
  LinearParts split_;
  std::vector<TypeRef> inputs_, values_;  // that are differentiated by, and that are
  Mask moves_;                            // per value: whether it depends on them
  std::vector<Value> outputs_;
};

}  // namespace

std::shared_ptr<const JacobianGraph> jacobian(const GraphRef& graph,
                                              const JacobianOptions& options) {
  std::string key =
      cat("jacobian", options.forward ? " forward " : " reverse ", options.num_values, ' ');
  for (bool m : options.in_mask) key += m ? '1' : '0';
  return graph->cached<JacobianGraph>(key, [&] {
    return std::make_shared<const JacobianGraph>(
        jacobian_of(*graph, options, [&](Builder& b, std::span<const Value> inputs) {
          Linearization made = linearize_into(b, *graph, inputs, {.in_mask = options.in_mask});
          LinearParts parts{Values(made.outputs), Values(made.residuals), made.out_mask,
                            made.linear, nullptr};
          if (options.forward) return parts;
          auto first = made.out_mask.begin();
          auto count = std::count(first, first + static_cast<ptrdiff_t>(options.num_values), true);
          // This may run without the interpreter's lock already, so not transposed().
          parts.pull = transpose(made.linear, from_first(*made.linear, made.residuals.size(),
                                                         static_cast<size_t>(count)))
                           ->graph;
          return parts;
        }));
  });
}

GraphRef jacobian_of(const Graph& graph, const JacobianOptions& options, Linearize linearize) {
  return JacobianBuilder(graph, options, linearize).result;
}

}  // namespace weft::py
