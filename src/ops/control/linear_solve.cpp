// custom_linear_solve: the solution x of matvec(x) = b as a graph of the user computes it, with
// derivatives that follow from the equation and never look into that graph.
// Operands are the constants of each graph, then b. The graphs are matvec, vecmat (its transpose),
// solve and transpose_solve; those of the transpose are either both there or both absent. Results
// are x, and after it whatever else solve returns, of which there is no derivative.
#include <algorithm>
#include <array>

#include "ops/control/family.h"
#include "ops/control/loop_layout.h"
#include "ops/def/dependence.h"
#include "ops/def/place.h"
#include "weft/checked.h"

namespace weft {
namespace {

// The attributes of a solve, and where its operands stand: the constants of each graph, then b.
struct Solve {
  const std::vector<GraphRef>& graphs;
  const Dims& lengths;  // constants of each graph
  bool symmetric;       // matvec is its own transpose
  LoopLayout in;

  explicit Solve(const AttrRecord& attrs)
      : graphs(attrs.graphs("jaxprs")),
        lengths(attrs.ints("const_lengths")),
        symmetric(attrs.boolean("symmetric")) {
    for (size_t k = 0; k < lengths.size(); ++k)
      in.append(graph_name(k), static_cast<size_t>(lengths[k]));
    in.append("b", matvec().outputs().size());
  }

  size_t size() const { return graphs.size(); }
  size_t solve() const { return size() / 2; }  // which of the graphs
  const Graph& matvec() const { return *graphs[0]; }
  bool has_transpose() const { return size() == 4; }
  std::string_view graph_name(size_t k) const {
    if (k == 0) return "matvec";
    if (k == solve()) return "solve";
    return k == 1 ? "vecmat" : "transpose_solve";
  }
  const Segment& b() const { return in.back(); }
  LoopLayout of_graph(size_t k) const { return in.select({k, size()}); }
};

TypeRefs infer_solve(const InferCtx& c) {
  size_t num_graphs = c.attr().graphs("jaxprs").size();
  const Dims& lengths = c.attr().ints("const_lengths");
  bool symmetric = c.attr().boolean("symmetric");
  if ((num_graphs != 2 && (symmetric || num_graphs != 4)) || lengths.size() != num_graphs)
    c.fail(ErrorKind::kValue,
           "expected 2 or, if not symmetric, 4 graphs and a number of constants for each; got ",
           num_graphs, " graphs, ", lengths.size(), " numbers and symmetric=", symmetric);
  Checked num_b = Checked(static_cast<int64_t>(c.size())) - checked_sum(lengths);
  if (!num_b.within(0, c.size()) ||
      std::any_of(lengths.begin(), lengths.end(), [](int64_t n) { return n < 0; }))
    c.fail(ErrorKind::kValue, "expected the constants of the graphs and b among ", c.size(),
           " operands; got const_lengths=", lengths);
  Solve s(c.attr());
  size_t n = static_cast<size_t>(num_b.value());
  for (size_t k = 0; k < s.size(); ++k) {
    const Graph& graph = *s.graphs[k];
    bool solves = k >= s.solve();
    size_t inputs = s.in[k].size + n, outputs = graph.outputs().size();
    if (graph.num_inputs() != inputs || (solves ? outputs < n : outputs != n))
      c.fail(ErrorKind::kType, "expected ", s.graph_name(k), " to have ", inputs, " inputs and ", n,
             solves ? " or more" : "", " outputs; got ", graph.num_inputs(), " and ", outputs);
    s.of_graph(k).check_inputs(c, s.graph_name(k), graph);
    std::vector<TypeRef> types = graph.output_types();
    for (size_t i = 0; i < n; ++i)
      check_region_type(c, s.graph_name(k), "output", i, c.in(s.b().begin + i), types[i]);
  }
  std::vector<TypeRef> results = s.graphs[s.solve()]->output_types();
  return TypeRefs(std::span<const TypeRef>(results));
}

// The same system, or with other attributes another one: `parts` has a list per segment.
Vals apply_solve(const RuleCtx& c, const AttrsRef& attrs, std::span<const Vals> parts) {
  Vals operands;
  for (const Vals& xs : parts) operands.append(xs);
  return vals_of(c.b, c.b.add(c.op, values_of(operands), attrs));
}

// What gets into x: anything of the equation, and what the graphs make of it.
void flow_through_solve(FlowCtx& c) {
  Solve s(*c.attrs);
  size_t n = s.b().size;
  Mask x = s.b().of(c.operands);  // of which b and x both hold
  auto add_to_x = [&](const Mask& more) {
    for (size_t i = 0; i < n; ++i) x[i] = x[i] || more[i];
  };
  switch (c.flow) {
    case Flow::kDepends:
      if (any(c.operands)) c.all();
      return;
    case Flow::kTangents:
      if (any(s.of_graph(0).pack(c.operands))) add_to_x(Mask(n, true));
      break;
    case Flow::kLanes:
      // A leaf of b is mapped if the same leaf of x is, since each graph turns one into the other.
      for (Mask before; before != x;) {
        before = x;
        for (size_t k = 0; k < s.size(); ++k) {
          Mask outputs(s.graphs[k]->outputs().size()), inputs = joined({s.in[k].of(c.operands), x});
          c.through(s.graphs[k], inputs, outputs);
          add_to_x(outputs);
          if (k != s.solve()) continue;
          for (size_t i = n; i < outputs.size(); ++i) c.results[i] = outputs[i];
        }
      }
      break;
    case Flow::kNeeds:
      // x and b stay whole, since the equation needs all of them.
      add_to_x(Mask(n, true));
      for (size_t i = 0; i < n; ++i) c.results[i] = true;
      for (size_t k = 0; k < s.size(); ++k) {
        Mask outputs(s.graphs[k]->outputs().size(), true), inputs(s.graphs[k]->num_inputs());
        if (k == s.solve()) outputs = c.results;
        c.through(s.graphs[k], inputs, outputs);
        s.of_graph(k).add_to(c.operands, inputs);
      }
  }
  for (size_t i = 0; i < n; ++i) {
    c.operands[s.b().begin + i] = x[i];
    c.results[i] = c.results[i] || x[i];
  }
}

// From A x = b follows A dx = db - dA x. matvec_tangents(mask, args, ts) gives dA x: the tangents
// of matvec's outputs where its inputs `args` have the tangents `ts` that `mask` says.
template <typename MatvecTangents>
void differentiate_solve(GraphJvpCtx& c, MatvecTangents&& matvec_tangents) {
  Solve s(c.attr());
  c.results = c.b.add_typed(c.op, c.operands, c.attrs, c.out_types);
  c.result_tangents = Values(c.out_types.size());
  std::vector<Vals> parts = s.in.unpack(vals_of(c.b, c.operands));
  std::vector<Vals> tangents = s.in.unpack(vals_of(c.b, c.tangents));
  Vals& rhs = tangents.back();
  Mask mask = s.in[0].of(c.tangent_mask());
  if (any(mask)) {
    Vals args = parts[0], moving;
    for (size_t i = 0; i < rhs.size(); ++i) args.push_back(c.val(c.results[i]));
    append_present(moving, tangents[0]);
    mask.resize(args.size(), false);
    Vals dots = matvec_tangents(mask, args, moving);
    for (size_t i = 0; i < rhs.size(); ++i)
      if (dots[i]) rhs[i] = rhs[i] ? rhs[i] - dots[i] : -dots[i];
  }
  if (std::none_of(rhs.begin(), rhs.end(), [](const Val& t) { return bool(t); })) return;
  for (size_t i = 0; i < rhs.size(); ++i)
    if (!rhs[i]) rhs[i] = zeros_like(parts.back()[i]);
  parts.back() = rhs;
  Vals solved = apply_solve(c, c.attrs, parts);
  for (size_t i = 0; i < rhs.size(); ++i) c.result_tangents[i] = solved[i].value;
}

void jvp_solve(GraphJvpCtx& c) {
  const GraphRef& matvec = Solve(c.attr()).graphs[0];
  differentiate_solve(c, [&](const Mask& mask, Vals args, const Vals& moving) {
    auto jvp = c.transforms->jvp(matvec, {.in_mask = mask});
    args.append(moving);
    Vals made = inlined(c.b, jvp->graph, args);
    Reader read(made);
    read.take(matvec->outputs().size());
    return read.take(jvp->out_mask);
  });
}

void linearize_solve(GraphJvpCtx& c) {
  const GraphRef& matvec = Solve(c.attr()).graphs[0];
  differentiate_solve(c, [&](const Mask& mask, const Vals& args, const Vals& moving) {
    auto split = c.transforms->linearize(matvec, {.in_mask = mask});
    Vals made = inlined(c.b, split->forward, args), known;
    for (const Residual& r : split->residuals)
      known.push_back(r.is_input ? args[r.index] : made[r.index]);
    known.append(moving);
    Vals tangents = inlined(c.b, split->linear, known);
    return Reader(tangents).take(split->out_mask);
  });
}

// x = A^-1 b, so the cotangent of b is the solution of the transposed system.
void transpose_solve(TransposeCtx& c) {
  Solve s(c.attr());
  const std::string& name = c.attr().string("name");
  size_t n = s.b().size;
  for (size_t i = 0; i < s.b().begin; ++i)
    if (c.linear(i))
      fail(ErrorKind::kType, "[", c.op.name,
           "] expected a transpose in b, in which alone the "
           "solution of '",
           name, "' is linear; got one in a value of type ", c.in_types[i],
           " that its functions close over");
  for (size_t r = n; r < c.out_types.size(); ++r)
    if (c.has_ct(r))
      fail(ErrorKind::kType, "[", c.op.name, "] expected a cotangent of the solution of '", name,
           "'; got one of its aux, which is not linear in b");
  if (!s.symmetric && !s.has_transpose())
    fail(ErrorKind::kType, "[", c.op.name, "] expected a transpose_solve beside '", name,
         "', which a derivative in reverse mode needs; got none\n"
         "  Give custom_linear_solve a transpose_solve, or symmetric=True if matvec is its own "
         "transpose.");
  std::vector<Vals> parts(s.size() + 1);  // b, which is linear, has no values
  for (size_t k = 0; k < s.size(); ++k) parts[k] = s.in[k].of(vals_of(c.b, c.operands));
  AttrsRef attrs = c.attrs;
  if (s.has_transpose()) {
    std::vector<GraphRef> graphs{s.graphs[1], s.graphs[0], s.graphs[3], s.graphs[2]};
    Dims lengths{s.lengths[1], s.lengths[0], s.lengths[3], s.lengths[2]};
    std::swap(parts[0], parts[1]);
    std::swap(parts[2], parts[3]);
    attrs = attrs->with({{"jaxprs", std::move(graphs)}, {"const_lengths", lengths}});
  }
  for (size_t r = 0; r < n; ++r) parts.back().push_back(c.ct(r));
  Vals cts = apply_solve(c, attrs, parts);
  for (size_t i = 0; i < n; ++i)
    if (size_t at = s.b().begin + i; c.linear(at)) c.add(at, cts[i]);
}

void batch_solve(BatchCtx& c) {
  Solve s(c.attr());
  size_t n = s.b().size;
  Mask mask = flowed(c, Flow::kLanes, c.mapped()).operands;
  // Graph k, with the mapped leaves of b at axis 0, and those of x, or wherever they come out.
  auto batched = [&](size_t k, bool instantiate) {
    BatchDims in_dims = s.in[k].of(BatchDims(c.dims)), out_dims;
    for (bool mapped : s.b().of(mask)) {
      in_dims.push_back(mapped ? 0 : kNotBatched);
      out_dims.push_back(!instantiate ? kAnyDim : mapped ? 0 : kNotBatched);
    }
    out_dims.resize(s.graphs[k]->outputs().size(), kAnyDim);
    return c.transforms->vmap(s.graphs[k], vmap_options(c, in_dims, out_dims));
  };
  carry_fixpoint(
      mask, s.b(),
      [&](const Mask&) {
        auto out = std::make_shared<Mask>(n);
        for (size_t k = 0; k < s.size(); ++k) {
          auto made = batched(k, false);
          for (size_t i = 0; i < n; ++i) (*out)[i] = (*out)[i] || made->out_dims[i] != kNotBatched;
        }
        return out;
      },
      [](const Mask& out, size_t i) { return out[i]; });

  std::vector<GraphRef> graphs;
  BatchDims out_dims;
  for (size_t k = 0; k < s.size(); ++k) {
    auto made = batched(k, true);
    graphs.push_back(made->graph);
    if (k == s.solve()) out_dims = made->out_dims;
  }
  Vals operands = vals_of(c.b, c.operands);
  for (size_t i = s.b().begin; i < s.b().end(); ++i)
    if (mask[i]) operands[i] = c.at(i, 0);
  AttrsRef attrs = c.attrs->with({{"jaxprs", std::move(graphs)}});
  Vals results = apply_solve(c, attrs, std::array{operands});
  for (size_t i = 0; i < results.size(); ++i) c.result(results[i], out_dims[i]);
}

// The op with other graphs, of which each has so many constants.
AttrsRef with_graphs(const AttrsRef& attrs, std::vector<GraphRef> graphs,
                     std::span<const size_t> num_consts) {
  Dims lengths;
  for (size_t n : num_consts) lengths.push_back(static_cast<int64_t>(n));
  return attrs->with({{"jaxprs", std::move(graphs)}, {"const_lengths", lengths}});
}

// Of what else solve returns only what is used stays, and of the constants those that the graphs
// still need.
AttrsRef prune_solve(PruneCtx& c) {
  Solve s(*c.attrs);
  std::vector<GraphRef> graphs;
  std::vector<size_t> num_consts;
  for (size_t k = 0; k < s.size(); ++k) {
    Mask outputs(s.graphs[k]->outputs().size(), true);
    if (k == s.solve()) outputs = c.results;
    graphs.push_back(c.narrowed(s.graphs[k], outputs, s.of_graph(k).pack(c.operands)));
    num_consts.push_back(count(s.in[k].of(c.operands)));
  }
  return with_graphs(c.attrs, std::move(graphs), num_consts);
}

LiftedOp lift_from_solve(const AttrsRef& attrs) {
  Solve s(*attrs);
  LiftedGraphs inner = lift_graphs(s.in, s.graphs);
  return {with_graphs(attrs, std::move(inner.graphs), inner.num_consts), inner.operands};
}

void place_solve(PlaceCtx& c) {
  Solve s(c.attr());
  std::vector<ShardingRef> inputs;
  for (std::span<const ShardingRef> part : s.of_graph(s.solve()).unpack(c.in))
    inputs.insert(inputs.end(), part.begin(), part.end());
  for (ShardingRef place : place_graph(c, s.graphs[s.solve()], inputs)) c.out.push_back(place);
}

// What is left once all derivatives have been taken: a call of solve.
Vals as_call(RuleCtx& c) {
  Solve s(c.attr());
  Vals args = s.of_graph(s.solve()).pack(vals_of(c.b, c.operands));
  const OpDef& jit = registry().get("jit");
  AttrsRef attrs = AttrRecord::make(
      jit.name, jit.attrs, {{"name", c.attr().string("name")}, {"jaxpr", s.graphs[s.solve()]}});
  return vals_of(c.b, c.b.add_typed(jit, values_of(args), attrs, c.out_types));
}

}  // namespace

void register_linear_solve(OpRegistry& r) {
  OpDef d;
  d.name = "custom_linear_solve";
  d.doc = "The solution of a linear system, by a graph that computes it.";
  d.attrs = {{"const_lengths", AttrType::kInts},
             {"jaxprs", AttrType::kGraphs},
             {"name", AttrType::kString, AttrSpec::kCosmetic, std::string("f")},
             {"symmetric", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.multiple_results = true;
  d.infer = infer_solve;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_solve;
  d.graph_linearize = linearize_solve;
  d.transpose = transpose_solve;
  d.place = place_solve;
  d.batch = batch_solve;
  d.flow = flow_through_solve;
  d.prune = prune_solve;
  d.lift = lift_from_solve;
  d.decompose = as_call;
  d.simplify = {{"solve_call", "custom_linear_solve -> a call of its solve",
                 [](SimplifyCtx& c) { return as_call(c); }, Phase::kFinal}};
  d.cost = [](const CostCtx& c) {
    Solve s(*c.attrs);
    return c.graph_cost(*s.graphs[s.solve()]);
  };
  r.add(std::move(d));
}

}  // namespace weft
