// fold, simplify, scan_products, cse and inline: one walk that rebuilds a graph op by op, each op
// being folded, rewritten, recognised as one that is there already or replaced by the ops of what
// it calls before it is appended. Rules add their ops through the same builder, so what a rewrite
// makes is simplified in turn.
#include <algorithm>
#include <unordered_set>

#include "ops/def/walk.h"
#include "passes/inline_plan.h"
#include "passes/pass_list.h"

namespace weft {
namespace {

// Rewrites that follow from each other are few; more of them undo each other.
constexpr int kMaxChained = 128;

const std::string kFold = "fold";
const std::string kCse = "cse";
const std::string kForwardCallResult = "forward_call_result";
const std::string kInlineCall = "inline_call";

struct RewriteKinds {
  bool fold = false;
  bool simplify = false;
  bool products = false;
  bool cse = false;
};

// One walk over a program: which rewrites are on, and how often each was used.
class RewriteRun {
 public:
  RewriteRun(RewriteKinds kinds, const RewriteFilter& filter, const InlinePlan* plan)
      : filter_(filter),
        kinds_(kinds),
        plan_(plan),
        regions_([this](const GraphRef& graph) { return run(graph); }) {}

  GraphRef run(const GraphRef& graph);
  // The attributes with graphs that are rewritten.
  AttrsRef rewritten(const AttrsRef& attrs) {
    return map_graphs(attrs, [this](const GraphRef& g) { return regions_(g); });
  }

  const RewriteKinds& kinds() const { return kinds_; }
  const RewriteFilter& filter() const { return filter_; }
  // `name` must outlive the run; `loc`: of the op that is replaced.
  void hit(const std::string& name, Loc loc) {
    ++total_hits_;
    ++hits_[&name];
    filter_.applied(name, loc);
  }
  // A rewrite was held back by a use that turned out to be none.
  void ask_for_another_walk() { again_ = true; }
  bool wants_another_walk() const { return again_; }
  void report(PassStats& stats) const {
    for (const auto& [name, count] : hits_) stats.count(*name, count);
  }

 private:
  bool is_inlined(const Op& op) const {
    return plan_ && plan_->inlines(op) && filter_.allows(kInlineCall);
  }

  const RewriteFilter& filter_;
  RewriteKinds kinds_;
  const InlinePlan* plan_;  // null: nothing is inlined
  GraphMemo regions_;
  bool again_ = false;
  uint64_t total_hits_ = 0;
  std::unordered_map<const std::string*, uint32_t> hits_;
};

class RewriteBuilder final : public Builder {
 public:
  // `uses`: of the graph that is rewritten, whose inputs come first in both.
  RewriteBuilder(RewriteRun& run, uint32_t num_inputs, const std::vector<uint32_t>& uses)
      : run_(run), uses_(uses.begin(), uses.begin() + num_inputs) {
    set_consing();
  }

  Values add(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs) override {
    TypeRefs in_types;
    for (Value v : operands) in_types.push_back(type(v));
    return add_typed(op, operands, attrs, infer_types(op, in_types, attrs));
  }
  Values add_typed(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs,
                   std::span<const TypeRef> out_types) override {
    for (Value v : operands) take(v, 1);
    return place(op, operands, run_.rewritten(attrs), out_types);
  }
  Value literal(const Literal& x) override { return dest_.literal(x); }
  TypeRef type(Value v) const override { return dest_.type(v); }
  const Literal* as_literal(Value v) const override { return dest_.as_literal(v); }
  const Op* producer(Value v) const override { return dest_.producer(v); }
  std::span<const Value> operands(const Op& op) const override { return dest_.operands(op); }
  uint32_t num_uses(Value v) const override {
    if (v.is_literal()) return kDead;
    if (uses_[v.id] != 1) watched_.insert(v.id);
    return uses_[v.id];
  }

  // As add_typed(), with operands whose use is counted and graphs that are rewritten already.
  Values place(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs,
               std::span<const TypeRef> out_types) {
    const OpDef& op_def = def(op);
    if (run_.kinds().fold && op_def.fold && out_types.size() == 1 && out_types[0]->rank() == 0) {
      Value folded = fold(op_def, operands, attrs, out_types[0]->dtype());
      if (folded) return {folded};
    }
    bool has_algebra = run_.kinds().simplify && !op_def.simplify.empty();
    bool is_loop = run_.kinds().products && op_def.loop.parts;
    if (has_algebra || is_loop) {
      TypeRefs in_types;
      for (Value v : operands) in_types.push_back(dest_.type(v));
      SimplifyCtx ctx{{*this, op_def, attrs, operands, in_types, out_types}};
      if (has_algebra) {
        for (const Rewrite& rewrite : op_def.simplify)
          if (auto replaced = apply(rewrite, ctx)) return *replaced;
      }
      if (is_loop) {
        if (auto replaced = apply(scan_products(), ctx)) return *replaced;
      }
    }
    dest_.set_loc(loc());
    set_consing();
    uint32_t num_ops = dest_.num_ops();
    Values results = dest_.add_typed(op, operands, attrs, out_types);
    if (dest_.num_ops() == num_ops) {
      run_.hit(kCse, loc());
      give_back(operands);
    }
    return results;
  }

  // Counts uses of a value by ops to come.
  void take(Value v, uint32_t count) {
    if (v.is_literal()) return;
    if (v.id >= uses_.size()) uses_.resize(v.id + 1);
    if (count == 0) return;
    if (uses_[v.id] == kDead) revive(*dest_.producer(v));
    uses_[v.id] += count;
  }
  // The op that was to have these operands is not there. Until settle(), so that what takes its
  // place can use them first.
  void give_back(std::span<const Value> operands) {
    for (Value v : operands)
      if (!v.is_literal()) given_back_.push_back(v);
  }
  void settle() {
    while (!given_back_.empty()) {
      Value v = given_back_.back();
      given_back_.pop_back();
      uint32_t left = --uses_[v.id];
      if (left == 1 && watched_.contains(v.id)) run_.ask_for_another_walk();
      if (left == 0) bury(v);
    }
  }

  GraphBuilder& dest() { return dest_; }

 private:
  // Number of uses of the results of an op that nothing needs, and that uses nothing itself.
  static constexpr uint32_t kDead = 0xffffffffu;

  // Once cse is off it stays off.
  void set_consing() {
    bool on = run_.kinds().cse && run_.filter().allows(kCse);
    if (on != consing_) dest_.set_hash_consing(consing_ = on);
  }

  void bury(Value v) {
    const Op* op = dest_.producer(v);
    if (!op || effects_of(*op->info, op->attrs) != kPure) return;
    for (uint32_t i = 0; i < op->num_results; ++i)
      if (uses_of_result(*op, i) != 0) return;
    for (uint32_t i = 0; i < op->num_results; ++i) uses_[op->results_begin + i] = kDead;
    give_back(dest_.operands(*op));
  }
  void revive(const Op& op) {
    for (uint32_t i = 0; i < op.num_results; ++i) uses_[op.results_begin + i] = 0;
    for (Value v : dest_.operands(op)) take(v, 1);
  }
  uint32_t uses_of_result(const Op& op, uint32_t i) const {
    uint32_t id = op.results_begin + i;
    return id < uses_.size() ? uses_[id] : 0;
  }

  Value fold(const OpDef& op, std::span<const Value> operands, const AttrsRef& attrs, DType out) {
    SmallVector<Literal, 4> xs;
    for (Value v : operands) {
      if (!v.is_literal()) return {};
      xs.push_back(*dest_.as_literal(v));
    }
    if (!run_.filter().allows(kFold)) return {};
    std::optional<Literal> x = op.fold(FoldCtx{xs, attrs.get(), out});
    if (!x) return {};
    run_.hit(kFold, loc());
    return dest_.literal(*x);
  }

  // The results that a rewrite gives in place of the op's, if it matches.
  std::optional<Values> apply(const Rewrite& rewrite, SimplifyCtx& ctx) {
    if (!run_.filter().allows(rewrite)) return std::nullopt;
    if (++depth_ > kMaxChained) {
      fail(ErrorKind::kInternal, "[", ctx.op.name, "] rewrite ", rewrite.name, " (", rewrite.rule,
           ") is the last of ", kMaxChained, " that follow from each other: some undo others");
    }
    uint32_t num_ops = dest_.num_ops();
    Vals vals = rewrite.apply(ctx);
    --depth_;
    // An op without results is there for its effects: what replaces it is ops, not values.
    if (ctx.out_types.empty() ? dest_.num_ops() == num_ops : vals.empty()) return std::nullopt;
    Values results;
    for (Val v : vals) results.push_back(v.value);
    check_types(rewrite, ctx.op, results, ctx.out_types);
    run_.hit(rewrite.name, loc());
    give_back(ctx.operands);
    return results;
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
  std::vector<uint32_t> uses_;  // of the values of dest_
  GraphBuilder dest_;
  bool consing_ = false;
  int depth_ = 0;
  std::vector<Value> given_back_;
  mutable std::unordered_set<uint32_t> watched_;  // values that were asked for, with other uses
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
  std::vector<uint32_t> uses = live_uses(*graph);
  RewriteBuilder b(*this, graph->num_inputs(), uses);
  auto rewrite_op = [&](const Op& op, std::span<const Value> operands) -> Values {
    if (!is_live(op, uses)) return {};
    AttrsRef attrs = rewritten(op.attrs);
    changed |= attrs != op.attrs;
    bool inlined = is_inlined(op);
    Values results = inlined ? b.inline_graph(*callee(*op.info, attrs), operands)
                             : b.place(*op.info, operands, attrs, graph->result_types(op));
    if (inlined) {
      hit(kInlineCall, op.loc);
      b.give_back(operands);
    } else if (kinds_.simplify && is_call(op) && filter_.allows(kForwardCallResult)) {
      uint32_t forwarded = forward_call_results(*callee(*op.info, attrs), operands, b, results);
      for (uint32_t i = 0; i < forwarded; ++i) hit(kForwardCallResult, op.loc);
    }
    for (uint32_t i = 0; i < op.num_results; ++i) b.take(results[i], uses[op.results_begin + i]);
    b.settle();
    return results;
  };
  GraphRef copy = rebuild(*graph, b.dest(), b, rewrite_op);
  return changed || total_hits_ != hits_before ? copy : graph;
}

GraphRef rewrite(GraphRef graph, RewriteKinds kinds, bool inlines, const PassOptions& options,
                 PassStats& stats) {
  RewriteFilter filter(options);
  // Calls that were found equal, or whose graphs became smaller, may be inlined after all.
  for (bool first = true;; first = false) {
    std::optional<InlinePlan> plan;
    if (inlines && filter.allows(kInlineCall))
      plan.emplace(graph, first ? InlineDepth::kAny : InlineDepth::kBounded);
    if (!first && !(plan && plan->any())) return graph;
    for (bool again = true; again;) {
      RewriteRun run(kinds, filter, plan ? &*plan : nullptr);
      graph = run.run(graph);
      run.report(stats);
      again = run.wants_another_walk();
      plan.reset();
    }
  }
}

using PassRun = decltype(Pass::run);

PassRun rewriting(RewriteKinds kinds, bool inlines = false) {
  return [=](const GraphRef& graph, const PassOptions& options, PassStats& stats) {
    return rewrite(graph, kinds, inlines, options, stats);
  };
}

}  // namespace

Pass inline_pass() {
  return {"inline",
          "Replaces calls of tiny functions, and only calls, by the function's ops.",
          rewriting({}, /*inlines=*/true),
          {{kInlineCall, "a call of a tiny or only once called graph -> its ops"}}};
}

Pass fold_pass() {
  return {"fold",
          "Evaluates ops on scalar constants.",
          rewriting({.fold = true}),
          {{kFold, "f(literals) -> literal"}}};
}

Pass scan_products_pass() {
  return {"scan_products",
          "Makes products that no iteration of a loop waits for once for all of them.",
          rewriting({.products = true}),
          {{scan_products().name, scan_products().rule}}};
}

Pass simplify_pass() {
  return {"simplify",
          "Applies the ops' algebraic rewrites, and scan_products.",
          rewriting({.simplify = true, .products = true}),
          {{kForwardCallResult,
            "a call's result that is its argument, a literal or an earlier result -> that"}}};
}

Pass cse_pass() {
  return {"cse",
          "Merges equal ops.",
          rewriting({.cse = true}),
          {{kCse, "equal pure ops -> the first of them"}}};
}

Pass canonicalize_pass() {
  return {"canonicalize", "fold, simplify, cse and inline in one walk.",
          rewriting({.fold = true, .simplify = true, .products = true, .cse = true},
                    /*inlines=*/true)};
}

}  // namespace weft
