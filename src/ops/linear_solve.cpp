// custom_linear_solve: the solution x of matvec(x) = b as a graph of the user computes it, with
// derivatives that follow from the equation and never look into that graph.
// Operands are the constants of each graph, then b. The graphs are matvec, vecmat (its transpose),
// solve and transpose_solve; those of the transpose are either both there or both absent. Results
// are x, and after it whatever else solve returns, of which there is no derivative.
#include "ops/dependence.h"
#include "ops/families.h"
#include "ops/regions.h"
#include "weft/held.h"

namespace weft {
namespace {

// The attributes of a solve, and where its operands stand.
struct Solve {
  const std::vector<GraphRef>& graphs;
  const Dims& lengths;  // constants of each graph
  bool symmetric;       // matvec is its own transpose

  explicit Solve(const AttrRecord& attrs)
      : graphs(attrs.graphs("jaxprs")),
        lengths(attrs.ints("const_lengths")),
        symmetric(attrs.boolean("symmetric")) {}

  size_t size() const { return graphs.size(); }
  size_t solve() const { return size() / 2; }  // which of the graphs
  const Graph& matvec() const { return *graphs[0]; }
  bool has_transpose() const { return size() == 4; }
  std::string_view graph_name(size_t k) const {
    if (k == 0) return "matvec";
    if (k == solve()) return "solve";
    return k == 1 ? "vecmat" : "transpose_solve";
  }
  size_t num_consts(size_t k) const { return static_cast<size_t>(lengths[k]); }
  size_t first_const(size_t k) const {
    size_t first = 0;
    for (size_t i = 0; i < k; ++i) first += num_consts(i);
    return first;
  }
  size_t first_b() const { return first_const(size()); }
  size_t num_b() const { return matvec().outputs().size(); }
};

TypeRefs infer_solve(const InferCtx& c) {
  Solve s(c.attr());
  if (s.size() != (s.symmetric ? 2 : s.size() < 4 ? 2 : 4) || s.lengths.size() != s.size())
    c.fail(ErrorKind::kValue,
           "expected 2 or, if not symmetric, 4 graphs and a number of constants for each; got ",
           s.size(), " graphs, ", s.lengths.size(), " numbers and symmetric=", s.symmetric);
  int64_t num_b = static_cast<int64_t>(c.size());
  for (int64_t n : s.lengths) num_b -= n < 0 || n > num_b ? num_b + 1 : n;
  if (num_b < 0)
    c.fail(ErrorKind::kValue, "expected the constants of the graphs and b among ", c.size(),
           " operands; got const_lengths=", s.lengths);
  size_t n = static_cast<size_t>(num_b), first_b = c.size() - n;
  for (size_t k = 0, first = 0; k < s.size(); first += s.num_consts(k++)) {
    const Graph& graph = *s.graphs[k];
    bool solves = k >= s.solve();
    size_t consts = s.num_consts(k), outputs = graph.outputs().size();
    if (graph.num_inputs() != consts + n || (solves ? outputs < n : outputs != n))
      c.fail(ErrorKind::kType, "expected ", s.graph_name(k), " to have ", consts + n,
             " inputs and ", n, solves ? " or more" : "", " outputs; got ", graph.num_inputs(),
             " and ", outputs);
    for (size_t i = 0; i < graph.num_inputs(); ++i)
      check_region_type(c, s.graph_name(k), "input", i,
                        c.in(i < consts ? first + i : first_b + i - consts),
                        graph.input_types()[i]);
    std::vector<TypeRef> types = graph.output_types();
    for (size_t i = 0; i < n; ++i)
      check_region_type(c, s.graph_name(k), "output", i, c.in(first_b + i), types[i]);
  }
  std::vector<TypeRef> results = s.graphs[s.solve()]->output_types();
  return TypeRefs(std::span<const TypeRef>(results));
}

// The operands of a rule, by what they are.
struct Operands {
  std::vector<Vals> consts;  // of each graph
  Vals b;
  Operands(const RuleCtx& c, const Solve& s) {
    Vals all = vals_of(c.b, c.operands);
    Reader read(all);
    for (size_t k = 0; k < s.size(); ++k) consts.emplace_back(read.take(s.num_consts(k)));
    b = Vals(read.rest());
  }
};

// The same system, or with other attributes another one, solved for another right-hand side.
Vals apply_solve(const RuleCtx& c, const std::vector<Vals>& consts, std::span<const Val> b,
                 const AttrsRef& attrs) {
  Vals operands;
  for (const Vals& xs : consts) operands.append(xs);
  operands.append(b);
  return vals_of(c.b, c.b.add(c.op, values_of(operands), attrs));
}

// From A x = b follows A dx = db - dA x. matvec_tangents(mask, args, ts) gives dA x: the tangents
// of matvec's outputs where its inputs `args` have the tangents `ts` that `mask` says.
template <typename MatvecTangents>
void differentiate_solve(GraphJvpCtx& c, MatvecTangents&& matvec_tangents) {
  Solve s(c.attr());
  c.results = c.b.add_typed(c.op, c.operands, c.attrs, c.out_types);
  c.result_tangents = Values(c.out_types.size());
  Operands x(c, s);
  Vals ts = vals_of(c.b, c.tangents);
  Vals rhs(std::span<const Val>(ts).subspan(s.first_b()));
  Mask mask = part(c.tangent_mask(), 0, s.num_consts(0));
  if (any(mask)) {
    Vals args = x.consts[0], moving;
    for (size_t i = 0; i < s.num_b(); ++i) args.push_back(c.val(c.results[i]));
    append_present(moving, std::span<const Val>(ts).first(s.num_consts(0)));
    mask.resize(args.size(), false);
    Vals dots = matvec_tangents(mask, args, moving);
    for (size_t i = 0; i < rhs.size(); ++i)
      if (dots[i]) rhs[i] = rhs[i] ? rhs[i] - dots[i] : -dots[i];
  }
  if (std::none_of(rhs.begin(), rhs.end(), [](const Val& t) { return bool(t); })) return;
  for (size_t i = 0; i < rhs.size(); ++i)
    if (!rhs[i]) rhs[i] = zeros_like(x.b[i]);
  Vals solved = apply_solve(c, x.consts, rhs, c.attrs);
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
  size_t n = s.num_b();
  for (size_t i = 0; i < s.first_b(); ++i)
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
  Operands x(c, s);
  AttrsRef attrs = c.attrs;
  if (s.has_transpose()) {
    std::vector<GraphRef> graphs{s.graphs[1], s.graphs[0], s.graphs[3], s.graphs[2]};
    Dims lengths{s.lengths[1], s.lengths[0], s.lengths[3], s.lengths[2]};
    std::swap(x.consts[0], x.consts[1]);
    std::swap(x.consts[2], x.consts[3]);
    attrs = attrs->with({{"jaxprs", std::move(graphs)}, {"const_lengths", lengths}});
  }
  Vals rhs;
  for (size_t r = 0; r < n; ++r) rhs.push_back(c.ct(r));
  Vals cts = apply_solve(c, x.consts, rhs, attrs);
  for (size_t i = 0; i < n; ++i)
    if (c.linear(s.first_b() + i)) c.add(s.first_b() + i, cts[i]);
}

// A leaf of b is mapped if the same leaf of x is, since each graph turns one into the other.
void batch_solve(BatchCtx& c) {
  Solve s(c.attr());
  size_t n = s.num_b();
  Mask mapped;
  for (size_t i = s.first_b(); i < c.operands.size(); ++i) mapped.push_back(c.batched(i));
  auto batched = [&](size_t k, const Mask& leaves, bool instantiate) {
    BatchDims in_dims(c.dims.subspan(s.first_const(k), s.num_consts(k))), out_dims;
    for (bool m : leaves) {
      in_dims.push_back(m ? 0 : kNotBatched);
      out_dims.push_back(!instantiate ? kAnyDim : m ? 0 : kNotBatched);
    }
    out_dims.resize(s.graphs[k]->outputs().size(), kAnyDim);
    return c.transforms->vmap(s.graphs[k], vmap_options(c, in_dims, out_dims));
  };
  for (Mask before; before != mapped;) {
    before = mapped;
    for (size_t k = 0; k < s.size(); ++k) {
      Mask inputs;
      for (int dim : c.dims.subspan(s.first_const(k), s.num_consts(k)))
        inputs.push_back(dim != kNotBatched);
      mapped =
          carries_reached(*s.graphs[k], Flow::kLanes, joined({inputs, mapped}), s.num_consts(k), n);
    }
  }
  carry_fixpoint(
      mapped,
      [&](const Mask& leaves) {
        auto out = std::make_shared<Mask>(leaves);
        for (size_t k = 0; k < s.size(); ++k) {
          auto made = batched(k, leaves, false);
          for (size_t i = 0; i < n; ++i) (*out)[i] = (*out)[i] || made->out_dims[i] != kNotBatched;
        }
        return out;
      },
      [](const Mask& out, size_t i) { return out[i]; });

  std::vector<GraphRef> graphs;
  BatchDims out_dims;
  for (size_t k = 0; k < s.size(); ++k) {
    auto made = batched(k, mapped, true);
    graphs.push_back(made->graph);
    if (k == s.solve()) out_dims = made->out_dims;
  }
  Operands x(c, s);
  for (size_t i = 0; i < n; ++i)
    if (mapped[i]) x.b[i] = c.at(s.first_b() + i, 0);
  Vals results = apply_solve(c, x.consts, x.b, c.attrs->with({{"jaxprs", std::move(graphs)}}));
  for (size_t i = 0; i < results.size(); ++i) c.result(results[i], out_dims[i]);
}

// x and b stay whole, since the equation needs all of them; of what else solve returns only what is
// used stays, and of the constants those that the graphs still need.
PrunedOp prune_solve(PruneCtx& c) {
  Solve s(*c.attrs);
  size_t n = s.num_b();
  PrunedOp out{.attrs = {}, .operands = {}, .results = c.results};
  for (size_t i = 0; i < n; ++i) out.results[i] = true;
  std::vector<GraphRef> graphs;
  Dims lengths;
  for (size_t k = 0; k < s.size(); ++k) {
    Mask outputs(s.graphs[k]->outputs().size(), true);
    if (k == s.solve()) outputs = out.results;
    Mask inputs = part(c.needed_inputs(s.graphs[k], outputs), 0, s.num_consts(k));
    lengths.push_back(static_cast<int64_t>(count(inputs)));
    out.operands.append(inputs);
    inputs.resize(inputs.size() + n, true);
    graphs.push_back(c.narrowed(s.graphs[k], outputs, inputs));
  }
  out.operands.resize(out.operands.size() + n, true);
  out.attrs = c.attrs->with({{"jaxprs", std::move(graphs)}, {"const_lengths", lengths}});
  return out;
}

LiftedOp lift_from_graphs(const AttrsRef& attrs) {
  Solve s(*attrs);
  LiftedOp out;
  std::vector<GraphRef> graphs;
  Dims lengths;
  for (size_t k = 0; k < s.size(); ++k) {
    auto inner = lift_constants(s.graphs[k]);
    graphs.push_back(inner->graph);
    lengths.push_back(s.lengths[k] + static_cast<int64_t>(inner->constants.size()));
    for (const ObjectRef& object : inner->constants)
      out.operands.push_back({s.first_const(k), object});
  }
  out.attrs = attrs->with({{"jaxprs", std::move(graphs)}, {"const_lengths", lengths}});
  return out;
}

// What is left once all derivatives have been taken: a call of solve.
Vals as_call(RuleCtx& c) {
  Solve s(c.attr());
  Operands x(c, s);
  Vals args = x.consts[s.solve()];
  args.append(x.b);
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
  d.batch = batch_solve;
  d.prune = prune_solve;
  d.lift = lift_from_graphs;
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
