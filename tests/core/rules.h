// Runs the rules of one op outside of any transform, as the drivers would.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace weft::test {

// An op with operand types and attributes, type-checked.
struct OpCase {
  const OpDef& op;
  AttrsRef attrs;
  TypeRefs in_types;
  TypeRefs out_types;

  OpCase(std::string_view name, std::initializer_list<std::string_view> operands,
         std::initializer_list<NamedAttr> attributes = {})
      : op(registry().get(name)), attrs(AttrRecord::make(name, op.attrs, attributes)) {
    for (std::string_view t : operands) in_types.push_back(parse_type(t));
    out_types = infer_types(op, in_types, attrs);
  }
  RuleCtx rule(Builder& b, std::span<const Value> operands) const {
    return {b, op, attrs, operands, in_types, out_types};
  }
};

// A program after the passes that simplify it.
inline std::string simplified(std::string_view text) {
  std::string passes[] = {"simplify", "dce"};
  return print(*run_passes(parse(text), passes));
}

inline std::vector<Value> inputs(GraphBuilder& b, std::span<const TypeRef> types) {
  std::vector<Value> values;
  for (TypeRef t : types) values.push_back(b.input(t));
  return values;
}

// operands -> results.
inline GraphRef plain_graph(const OpCase& c) {
  GraphBuilder b;
  return b.finish(b.add(c.op, inputs(b, c.in_types), c.attrs));
}

struct Batched {
  GraphRef graph;  // operands, mapped where `dims` says -> results
  SmallVector<int, 4> out_dims;
};

inline TypeRef with_mapped_axis(TypeRef type, int dim, int64_t size) {
  if (dim == kNotBatched) return type;
  Dims shape = type->shape();
  shape.insert(static_cast<size_t>(dim), size);
  return with_shape(type, shape);
}

inline Batched run_batch(const OpCase& c, std::span<const int> dims, int64_t size) {
  GraphBuilder b;
  std::vector<TypeRef> types;
  for (size_t i = 0; i < c.in_types.size(); ++i)
    types.push_back(with_mapped_axis(c.in_types[i], dims[i], size));
  std::vector<Value> operands = inputs(b, types);
  BatchCtx ctx{c.rule(b, operands), size, dims, {}, {}};
  c.op.batch(ctx);
  Values outputs;
  for (Val v : ctx.out) outputs.push_back(v.value);
  return {b.finish(outputs), ctx.out_dims};
}

// Every choice of mapped axes with at least one operand mapped.
inline std::vector<std::vector<int>> all_batch_dims(const OpCase& c) {
  std::vector<std::vector<int>> all = {{}};
  for (TypeRef t : c.in_types) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& dims : all) {
      for (int d = kNotBatched; d <= t->rank(); ++d) {
        longer.push_back(dims);
        longer.back().push_back(d);
      }
    }
    all = std::move(longer);
  }
  all.erase(all.begin());  // nothing mapped
  return all;
}

// Operands and tangents of those in `active` -> results and their tangents (results without one
// get zeros).
inline GraphRef run_jvp(const OpCase& c, const std::vector<size_t>& active) {
  GraphBuilder b;
  std::vector<Value> operands = inputs(b, c.in_types);
  std::vector<Value> tangents(operands.size());
  for (size_t i : active) tangents[i] = b.input(c.in_types[i]);
  Values results = b.add(c.op, operands, c.attrs);
  Values outputs = results;
  if (c.op.jvp_kind == JvpKind::kLinear) {
    std::vector<Value> xs = operands;
    for (size_t i = 0; i < xs.size(); ++i) {
      const std::vector<size_t>& args = c.op.linear_args;
      bool is_linear = args.empty() || std::find(args.begin(), args.end(), i) != args.end();
      if (is_linear) xs[i] = tangents[i] ? tangents[i] : zeros(b, c.in_types[i]).value;
    }
    for (Value t : b.add(c.op, xs, c.attrs)) outputs.push_back(t);
  } else if (c.op.jvp_kind == JvpKind::kArgs) {
    Val sum;
    for (size_t i : active) {
      Val t =
          c.op.jvp_args[i](JvpArgCtx{c.rule(b, operands), i, {&b, tangents[i]}, {&b, results[0]}});
      sum = sum ? add(sum, t) : t;
    }
    outputs.push_back(sum.value);
  } else {
    for (TypeRef t : c.out_types) outputs.push_back(zeros(b, t).value);
  }
  return b.finish(outputs);
}

// What a transpose rule is given for blocks of cotangents: adds them to `sums`.
inline std::function<void(size_t, Block)> keep_in(Builder& b, const TypeRefs& types,
                                                  std::vector<Value>& sums) {
  return [&](size_t i, const Block& block) {
    std::vector<Dims> around;
    const Dims &shape = block.ct.shape(), &whole = types[i]->shape();
    for (size_t d = 0; d < whole.size(); ++d)
      around.push_back({block.start[d], whole[d] - block.start[d] - shape[d], 0});
    Val padded = pad(block.ct, scalar_like(block.ct, 0), around);
    sums[i] = (sums[i] ? add_any(Val{&b, sums[i]}, padded) : padded).value;
  };
}

// Operands that are not linear, cotangents of the results and, with `accumulate`, cotangents so far
// of the linear operands -> cotangents of the linear operands.
inline GraphRef run_transpose(const OpCase& c, const std::vector<size_t>& linear, bool accumulate) {
  GraphBuilder b;
  size_t n = c.in_types.size();
  auto mask = std::make_unique<bool[]>(n);
  for (size_t i : linear) mask[i] = true;
  std::vector<Value> operands(n), accumulated(n);
  for (size_t i = 0; i < n; ++i)
    if (!mask[i]) operands[i] = b.input(c.in_types[i]);
  std::vector<Value> cotangents = inputs(b, c.out_types);
  for (size_t i : linear)
    if (accumulate) accumulated[i] = b.input(c.in_types[i]);
  auto keep = keep_in(b, c.in_types, accumulated);
  TransposeCtx ctx{c.rule(b, operands), {mask.get(), n}, cotangents, accumulated, keep};
  c.op.transpose(ctx);
  Values outputs;
  for (size_t i : linear) {
    if (!accumulated[i]) accumulated[i] = zeros(b, c.in_types[i]).value;
    outputs.push_back(accumulated[i]);
  }
  return b.finish(outputs);
}

}  // namespace weft::test
