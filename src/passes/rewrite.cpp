// fold, simplify and cse: one walk that rebuilds a graph op by op, each op being folded, rewritten
// or recognised as one that is there already before it is appended. Rules add their ops through
// the same builder, so what a rewrite makes is simplified in turn.
#include <algorithm>

#include "ops/walk.h"
#include "passes/pass_list.h"

namespace weft {
namespace {

// How deep rewrites may follow from rewrites: stops rules that undo each other.
constexpr int kMaxDepth = 16;

const std::string kFold = "fold";
const std::string kCse = "cse";
const std::string kForwardCallResult = "forward_call_result";

struct RewriteKinds {
  bool fold = false;
  bool simplify = false;
  bool cse = false;
};

// One run of a pass: which rewrites are on, and how often each was used.
class RewriteRun {
 public:
  RewriteRun(RewriteKinds kinds, const PassOptions& options)
      : options_(options),
        filtered_(!options.only_rewrites.empty() || !options.disabled_rewrites.empty()),
        kinds_{.fold = kinds.fold && enabled(kFold),
               .simplify = kinds.simplify,
               .cse = kinds.cse && enabled(kCse)},
        regions_([this](const GraphRef& graph) { return run(graph); }) {}

  GraphRef run(const GraphRef& graph);
  // The attributes with graphs that are rewritten.
  AttrsRef rewritten(const OpInfo& op, const AttrsRef& attrs) {
    return attrs && takes_graphs(op)
               ? map_graphs(attrs, [this](const GraphRef& g) { return regions_(g); })
               : attrs;
  }

  const RewriteKinds& kinds() const { return kinds_; }
  bool enabled(const std::string& name) const {
    if (!filtered_) return true;
    auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return !has(options_.disabled_rewrites) &&
           (options_.only_rewrites.empty() || has(options_.only_rewrites));
  }
  // `name` must outlive the run.
  void hit(const std::string& name) {
    ++total_hits_;
    ++hits_[&name];
  }
  void report(PassStats& stats) const {
    for (const auto& [name, count] : hits_) stats.rewrites.push_back({*name, count});
    std::sort(stats.rewrites.begin(), stats.rewrites.end());
  }

 private:
  const PassOptions& options_;
  bool filtered_;
  RewriteKinds kinds_;
  GraphMemo regions_;
  uint64_t total_hits_ = 0;
  std::unordered_map<const std::string*, uint32_t> hits_;
};

class RewriteBuilder final : public Builder {
 public:
  explicit RewriteBuilder(RewriteRun& run) : run_(run) { dest_.set_hash_consing(run.kinds().cse); }

  Values add(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs) override {
    TypeRefs in_types;
    for (Value v : operands) in_types.push_back(type(v));
    TypeRefs out_types = infer_types(op, in_types, attrs);
    return place(op, operands, run_.rewritten(op, attrs), out_types);
  }
  Value literal(const Literal& x) override { return dest_.literal(x); }
  TypeRef type(Value v) const override { return dest_.type(v); }
  const Literal* as_literal(Value v) const override { return dest_.as_literal(v); }
  const Op* producer(Value v) const override { return dest_.producer(v); }
  std::span<const Value> operands(const Op& op) const override { return dest_.operands(op); }

  // As add(), with result types known and graphs rewritten already.
  Values place(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs,
               std::span<const TypeRef> out_types) {
    const OpDef& op_def = def(op);
    if (run_.kinds().fold && op_def.fold && out_types.size() == 1 && out_types[0]->rank() == 0) {
      Value folded = fold(op_def, operands, attrs, out_types[0]->dtype());
      if (folded) return {folded};
    }
    if (run_.kinds().simplify && !op_def.simplify.empty() && depth_ < kMaxDepth) {
      if (auto replaced = simplify(op_def, operands, attrs, out_types)) return *replaced;
    }
    dest_.set_loc(loc());
    uint32_t num_ops = dest_.num_ops();
    Values results = dest_.add_typed(op, operands, attrs, out_types);
    if (dest_.num_ops() == num_ops) run_.hit(kCse);
    return results;
  }

  GraphBuilder& dest() { return dest_; }

 private:
  Value fold(const OpDef& op, std::span<const Value> operands, const AttrsRef& attrs, DType out) {
    SmallVector<Literal, 4> xs;
    for (Value v : operands) {
      if (!v.is_literal()) return {};
      xs.push_back(*dest_.as_literal(v));
    }
    std::optional<Literal> x = op.fold(FoldCtx{xs, attrs.get(), out});
    if (!x) return {};
    run_.hit(kFold);
    return dest_.literal(*x);
  }

  std::optional<Values> simplify(const OpDef& op, std::span<const Value> operands,
                                 const AttrsRef& attrs, std::span<const TypeRef> out_types) {
    TypeRefs in_types;
    for (Value v : operands) in_types.push_back(dest_.type(v));
    SimplifyCtx ctx{{*this, op, attrs, operands, in_types, out_types}};
    for (const Rewrite& rewrite : op.simplify) {
      if (!run_.enabled(rewrite.name)) continue;
      ++depth_;
      uint32_t num_ops = dest_.num_ops();
      Vals vals = rewrite.apply(ctx);
      --depth_;
      // An op without results is there for its effects: what replaces it is ops, not values.
      if (out_types.empty() ? dest_.num_ops() == num_ops : vals.empty()) continue;
      Values results;
      for (Val v : vals) results.push_back(v.value);
      check_types(rewrite, op, results, out_types);
      run_.hit(rewrite.name);
      return results;
    }
    return std::nullopt;
  }

  void check_types(const Rewrite& rewrite, const OpDef& op, std::span<const Value> results,
                   std::span<const TypeRef> out_types) const {
    bool same = results.size() == out_types.size();
    for (size_t i = 0; same && i < results.size(); ++i) same = type(results[i]) == out_types[i];
    if (!same) {
      fail(ErrorKind::kInternal, "[", op.name, "] rewrite ", rewrite.name, " (", rewrite.rule,
           ") changed the type of a result; expected ", out_types[0], ", got ", type(results[0]));
    }
  }

  RewriteRun& run_;
  GraphBuilder dest_;
  int depth_ = 0;
};

// What a call returns of its own arguments, or returns twice, is known without the call. Returns
// the number of results replaced.
uint32_t forward_call_results(const Graph& body, std::span<const Value> args, Builder& b,
                              Values& results) {
  uint32_t forwarded = 0;
  std::span<const Value> outputs = body.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value out = outputs[i];
    if (out.is_literal()) {
      results[i] = b.literal(body.literal(out));
    } else if (out.id < body.num_inputs()) {
      results[i] = args[out.id];
    } else {
      size_t first = static_cast<size_t>(
          std::find(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(i), out) -
          outputs.begin());
      if (first == i) continue;
      results[i] = results[first];
    }
    ++forwarded;
  }
  return forwarded;
}

GraphRef RewriteRun::run(const GraphRef& graph) {
  uint64_t hits_before = total_hits_;
  bool changed = false;
  bool forwards = kinds_.simplify && enabled(kForwardCallResult);
  RewriteBuilder b(*this);
  ValueMap map(*graph, b);
  std::vector<Value> inputs = copy_inputs(*graph, b.dest(), map);
  for (const Op& op : graph->ops()) {
    Values operands = map(graph->operands(op));
    b.set_loc(op.loc);
    AttrsRef attrs = rewritten(*op.info, op.attrs);
    changed |= attrs != op.attrs;
    Values results = b.place(*op.info, operands, attrs, graph->result_types(op));
    if (forwards && is_call(op)) {
      uint32_t forwarded = forward_call_results(*callee(*op.info, attrs), operands, b, results);
      for (uint32_t i = 0; i < forwarded; ++i) hit(kForwardCallResult);
    }
    map.set_results(op, results);
  }
  if (!changed && total_hits_ == hits_before) return graph;
  return finish_copy(*graph, b.dest(), map, inputs);
}

GraphRef rewrite(const GraphRef& graph, RewriteKinds kinds, const PassOptions& options,
                 PassStats& stats) {
  RewriteRun run(kinds, options);
  GraphRef result = run.run(graph);
  run.report(stats);
  return result;
}

}  // namespace

GraphRef fold_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  return rewrite(graph, {.fold = true}, options, stats);
}

GraphRef simplify_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  return rewrite(graph, {.simplify = true}, options, stats);
}

GraphRef cse_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  return rewrite(graph, {.cse = true}, options, stats);
}

GraphRef canonicalize_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  return rewrite(graph, {.fold = true, .simplify = true, .cse = true}, options, stats);
}

}  // namespace weft
