// checked: copies a graph op by op, with what the check rules of the ops add. In straight-line code
// checks are numbered in order, so the first that failed is the one with the smallest number; loops
// keep what they found first in their carry (their rules do).
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ops/def/axes.h"
#include "ops/host/check.h"
#include "transforms/driver.h"
#include "weft/build.h"
#include "weft/checkify.h"

namespace weft {
namespace {

Val number(Builder& b, int32_t n) { return {&b, b.literal(make_literal(DType::kI32, int64_t{n}))}; }

Val any_of(Val flags) {
  return flags.rank() == 0 ? flags : reduce_or(flags, count_up(flags.rank()));
}

// Which elements are NaN, or infinite.
Val flags_of(Val x, CheckKind kind) {
  if (kind == CheckKind::kNan) return ne(x, x);
  if (is_complex(x.dtype())) return logical_or(flags_of(real(x), kind), flags_of(imag(x), kind));
  return logical_and(logical_not(apply1("is_finite", {x})), eq(x, x));
}

bool is_special_dtype(TypeRef type) { return is_inexact(type->dtype()); }

std::shared_ptr<const CheckedGraph> checked(const GraphRef& graph, const CheckOptions& options,
                                            bool passed_nans);

class Checker {
 public:
  Checker(const Graph& graph, const CheckOptions& options, bool passed_nans)
      : graph_(graph), options_(options), passed_nans_(passed_nans), map_(graph, b_) {
    b_.set_hash_consing(true);
  }

  std::shared_ptr<const CheckedGraph> run() {
    std::vector<Value> inputs = copy_inputs(graph_, b_, map_);
    for (const Op& op : graph_.ops()) {
      b_.set_loc(op.loc);
      at_op(op, [&] { visit(op); });
    }
    b_.set_loc(kNoLoc);
    std::vector<Value> outputs;
    for (Value v : graph_.outputs()) outputs.push_back(map_(v));
    outputs.push_back((failed_ ? failed_ : number(b_, kNothingFailed)).value);
    for (const Val& v : values_) outputs.push_back(v.value);
    made_->num_outputs = graph_.outputs().size();
    made_->graph = b_.finish(outputs, std::span(inputs).first(graph_.num_consts()));
    return made_;
  }

 private:
  class Ctx final : public CheckCtx {
   public:
    Ctx(Checker& checker, const Op& of, const RuleCtx& rule)
        : CheckCtx(rule, checker.options_), checker_(checker), of_(of) {}
    using CheckCtx::fail_if;
    void fail_if(CheckSite site, Val failed, const Vals& values) override {
      site.op = &op;
      site.loc = of_.loc;
      site.num_operands = of_.num_operands;
      checker_.append(*this, std::move(site), failed, values);
    }
    std::shared_ptr<const CheckedGraph> checked(const GraphRef& graph) override {
      return checker_.inner(graph);
    }
    void fail_in(std::span<const Val> made) override { checker_.append_inner(made); }

   private:
    Checker& checker_;
    const Op& of_;
  };

  void visit(const Op& op) {
    const OpDef& d = def(*op.info);
    Values operands = map_(graph_.operands(op));
    TypeRefs in_types = operand_types(graph_, op);
    Ctx c(*this, op, rule_ctx(b_, graph_, op, operands, in_types));
    bool makes_results = d.check && (takes_graphs(d) || op.num_results == 0);
    if (!makes_results) c.results = copy_op(graph_, b_, op, operands);
    if (d.check) d.check(c);
    map_.set_results(op, c.results);
    if (makes_results) return;
    if (options_.nans) check_results(c, CheckKind::kNan);
    if (options_.infs) check_results(c, CheckKind::kInf);
  }

  // Fails where a result has what no operand has. Element by element if the op is elementwise.
  void check_results(Ctx& c, CheckKind kind) {
    auto matters = [](Val x) { return is_special_dtype(x.type()); };
    Vals results, operands;
    for (Value v : c.results)
      if (matters(c.val(v))) results.push_back(c.val(v));
    for (Value v : c.operands)
      if (matters(c.val(v)) && (!b_.as_literal(v) || std::isnan(b_.as_literal(v)->as_double())))
        operands.push_back(c.val(v));
    if (results.empty() || c.operands.empty()) return;
    if (kind == CheckKind::kNan && passed_nans_ && reports_nans(c.op)) operands.clear();
    if (std::all_of(c.operands.begin(), c.operands.end(),
                    [&](Value v) { return b_.as_literal(v); }) &&
        !c.op.elementwise)
      return;  // a constant
    Val failed;
    if (c.op.elementwise) {
      failed = flags_of(results[0], kind);
      for (const Val& x : operands) {
        Val of_x = flags_of(x, kind);
        if (of_x.rank() != failed.rank()) of_x = broadcast_to(of_x, failed.shape());
        failed = logical_and(failed, logical_not(of_x));
      }
      failed = any_of(failed);
    } else {
      for (const Val& y : results) {
        Val of_y = any_of(flags_of(y, kind));
        failed = failed ? logical_or(failed, of_y) : of_y;
      }
      for (const Val& x : operands)
        failed = logical_and(failed, logical_not(any_of(flags_of(x, kind))));
    }
    c.fail_if(kind, failed);
  }

  void append(const CheckCtx& c, CheckSite site, Val failed, Vals values) {
    int32_t here = made_->count++;
    if (!options_.all()) {
      if (here != options_.only) return add_part({here, 1, 0, std::move(site), nullptr});
      values.clear();
      for (Value v : c.operands) values.push_back(c.val(v));
      for (Value v : c.results) values.push_back(c.val(v));
    }
    site.num_values = static_cast<uint32_t>(values.size());
    add_part({here, 1, static_cast<uint32_t>(values_.size()), std::move(site), nullptr});
    values_.append(values);
    add_failed(select(failed, number(b_, here), number(b_, kNothingFailed)));
  }

  std::shared_ptr<const CheckedGraph> inner(const GraphRef& graph) {
    CheckOptions every = options_;
    every.only = -1;
    std::shared_ptr<const CheckedGraph> result = checked(graph, every, passed_nans_);
    int32_t first = made_->count, n = result->count;
    if (n >= kNothingFailed - first)
      fail(ErrorKind::kValue, "checkify expected fewer than 2**31 checks in a program");
    made_->count += n;
    if (!options_.all()) {
      // Without a check of its own: one that has no number.
      bool holds = first <= options_.only && options_.only < first + n;
      every.only = holds ? options_.only - first : kNothingFailed;
      result = checked(graph, every, passed_nans_);
    }
    pending_.push_back({first, n, 0, {}, result});
    return result;
  }

  void append_inner(std::span<const Val> made) {
    for (CheckedGraph::Part& part : pending_) {
      part.first_value = static_cast<uint32_t>(values_.size());
      size_t n = part.graph->num_values();
      if (part.count > 0) {
        Val none = number(b_, kNothingFailed);
        add_failed(select(eq(made[0], none), none, made[0] + number(b_, part.first)));
      }
      values_.append(made.subspan(1, n));
      made = made.subspan(1 + n);
      add_part(std::move(part));
    }
    pending_.clear();
  }

  void add_part(CheckedGraph::Part part) {
    if (part.count > 0) made_->parts.push_back(std::move(part));
  }
  void add_failed(Val failed) { failed_ = failed_ ? min(failed_, failed) : failed; }

  GraphBuilder b_;
  const Graph& graph_;
  const CheckOptions& options_;
  const bool passed_nans_;
  ValueMap map_;
  Val failed_;
  Vals values_;
  std::vector<CheckedGraph::Part> pending_;  // asked for, and not yet called
  std::shared_ptr<CheckedGraph> made_ = std::make_shared<CheckedGraph>();
};

std::shared_ptr<const CheckedGraph> checked(const GraphRef& graph, const CheckOptions& options,
                                            bool passed_nans) {
  auto make = [&] { return Checker(*graph, options, passed_nans).run(); };
  if (!options.all()) return make();
  std::string key = "checked";
  append_key(key, Mask{options.user, options.nans, options.infs, options.indices, options.divisions,
                       passed_nans});
  return graph->cached<CheckedGraph>(key, make);
}

}  // namespace

CheckSite CheckedGraph::site(int32_t of) const {
  auto after = std::upper_bound(parts.begin(), parts.end(), of,
                                [](int32_t n, const Part& part) { return n < part.first; });
  if (after == parts.begin() || of >= std::prev(after)->first + std::prev(after)->count)
    fail(ErrorKind::kInternal, "no check has the number ", of);
  const Part& part = *std::prev(after);
  CheckSite found = part.graph ? part.graph->site(of - part.first) : part.site;
  found.first_value += part.first_value;
  return found;
}

std::shared_ptr<const CheckedGraph> checked(const GraphRef& graph, const CheckOptions& options) {
  return checked(graph, options, /*passed_nans=*/false);
}

std::shared_ptr<const CheckedGraph> checkified(const GraphRef& graph, const CheckOptions& options) {
  return checked(graph, options, /*passed_nans=*/true);
}

GraphRef watched(const GraphRef& graph, const WatchOptions& options) {
  std::vector<Value> outputs(graph->outputs().begin(), graph->outputs().end());
  std::vector<Value> observed = outputs;
  if (options.unused) {
    std::vector<bool> used(graph->num_values());
    auto use = [&](Value v) {
      if (!v.is_literal()) used[v.id] = true;
    };
    for (const Op& op : graph->ops())
      for (Value v : graph->operands(op)) use(v);
    for (Value v : outputs) use(v);
    for (uint32_t id = graph->num_inputs(); id < graph->num_values(); ++id)
      if (!used[id]) observed.push_back({id});
  }
  GraphBuilder b;
  b.set_hash_consing(true);
  ValueMap map(*graph, b);
  std::vector<Value> inputs = copy_inputs(*graph, b, map);
  copy_ops(*graph, b, map, [&](const Op& op, std::span<const Value> operands) {
    return copy_op(*graph, b, op, operands);
  });
  b.set_loc(kNoLoc);
  Val none = number(b, kNothingFailed), first = none;
  for (size_t i = 0; i < observed.size(); ++i) {
    Val x{&b, map(observed[i])};
    if (!is_special_dtype(x.type())) continue;
    for (auto [wanted, kind] :
         {std::pair(options.nans, CheckKind::kNan), std::pair(options.infs, CheckKind::kInf)})
      if (wanted)
        first =
            min(first, select(any_of(flags_of(x, kind)), number(b, static_cast<int32_t>(i)), none));
  }
  std::vector<Value> all;
  for (Value v : outputs) all.push_back(map(v));
  all.push_back(first.value);
  return b.finish(all, std::span(inputs).first(graph->num_consts()));
}

}  // namespace weft
