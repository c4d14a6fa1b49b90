#include "transforms/differentiate.h"

#include <algorithm>

#include "ops/def/selected.h"
#include "transforms/driver.h"
#include "weft/build.h"

namespace weft {
namespace {

class Differentiator {
 public:
  Differentiator(Builder& b, const Graph& graph, const DifferentiateOptions& options)
      : b_(b),
        graph_(graph),
        options_(options),
        primals_(graph, b),
        tangents_(graph.num_values()) {}

  DualValues run(std::span<const Value> args, std::span<const Value> tangents) {
    for (uint32_t i = 0; i < graph_.num_inputs(); ++i) {
      primals_.set(graph_.input(i), args[i]);
      tangents_[i] = tangents[i];
    }
    Loc outer = b_.loc();
    for (const Op& op : graph_.ops()) {
      b_.set_loc(op.loc != kNoLoc ? op.loc : outer);
      at_op(op, [&] { visit(op); });
    }
    b_.set_loc(outer);
    DualValues out;
    out.outputs.reserve(graph_.outputs().size());
    out.tangents.reserve(graph_.outputs().size());
    for (Value v : graph_.outputs()) {
      out.outputs.push_back(primals_(v));
      out.tangents.push_back(tangent(v));
    }
    for (size_t i = 0; i < options_.instantiate.size(); ++i) {
      TypeRef type = graph_.type(graph_.outputs()[i]);
      bool missing = options_.instantiate[i] && !out.tangents[i] && is_differentiable(type);
      if (missing) out.tangents[i] = zeros(b_, type).value;
    }
    return out;
  }

 private:
  Value tangent(Value v) const { return v.is_literal() ? Value{} : tangents_[v.id]; }

  void visit(const Op& op) {
    const OpDef& d = def(*op.info);
    std::span<const TypeRef> out_types = graph_.result_types(op);
    Values operands = primals_(graph_.operands(op));
    Values ts;
    bool has_tangent = false;
    for (Value v : graph_.operands(op)) {
      ts.push_back(tangent(v));
      has_tangent |= static_cast<bool>(ts.back());
    }
    if (!has_tangent || d.jvp_kind == JvpKind::kZero ||
        std::none_of(out_types.begin(), out_types.end(), is_differentiable)) {
      primals_.set_results(op, b_.add_typed(d, operands, op.attrs, out_types));
      return;
    }
    TypeRefs in_types = operand_types(graph_, op);
    RuleCtx rule = rule_ctx(b_, graph_, op, operands, in_types);
    if (d.jvp_kind == JvpKind::kGraph) {
      const GraphJvpRule& graph_rule = d.*options_.graph_rule;
      if (!graph_rule) missing_rule(d, "differentiation");
      GraphJvpCtx c{rule, ts, {}, {}};
      graph_rule(c);
      if (options_.is_zero)
        for (uint32_t i = 0; i < op.num_results; ++i) check_result(d, op, i, c.results[i]);
      primals_.set_results(op, c.results);
      set_tangents(op, c.result_tangents);
      return;
    }
    Values results = b_.add_typed(d, operands, op.attrs, out_types);
    primals_.set_results(op, results);
    if (b_.loc() != kNoLoc) b_.set_loc(b_.loc() | kTangentLoc);
    set_tangents(op, result_tangents(d, rule, results, ts));
  }

  // Where one operand has a tangent, the op is linear in it, and goes before a select that made it.
  // Where the rule has one contribution per operand, each of them does.
  Values result_tangents(const OpDef& d, const RuleCtx& rule, const Values& results, Values ts) {
    auto has_one = [](Value t) { return static_cast<bool>(t); };
    if (d.jvp_kind == JvpKind::kArgs || std::count_if(ts.begin(), ts.end(), has_one) > 1)
      return made_tangents(d, rule, results, ts);
    Value& t = *std::find_if(ts.begin(), ts.end(), has_one);
    std::optional<Selected> by = selected_tangent({&b_, t}, d, rule.in_types, rule.out_types);
    if (!by) return made_tangents(d, rule, results, ts);
    t = by->kept.value;
    Values made = made_tangents(d, rule, results, ts);
    if (made[0]) made[0] = select_as(*by, {&b_, made[0]}).value;
    return made;
  }

  Values made_tangents(const OpDef& d, const RuleCtx& rule, const Values& results,
                       const Values& ts) {
    switch (d.jvp_kind) {
      case JvpKind::kLinear:
        return linear_tangents(d, rule, ts);
      case JvpKind::kArgs:
        return {sum_of_contributions(d, rule, results, ts)};
      case JvpKind::kCustom: {
        JvpCtx c{rule, ts, results};
        Values out;
        for (const Val& t : d.jvp(c)) out.push_back(t.value);
        return out;
      }
      default:
        missing_rule(d, "differentiation");
    }
  }

  // In a linearization results must be made without tangents, also by rules of users.
  void check_result(const OpDef& d, const Op& op, uint32_t i, Value result) {
    if (options_.is_zero(result)) return;
    std::string name =
        op.info->attrs.find("name") >= 0 ? cat(" of '", op.attrs->string("name"), "'") : "";
    fail(ErrorKind::kNotImplemented, "[", d.name, "] expected the jvp rule", name,
         " to compute its result without the tangents; got result ", i,
         " from an op that needs a tangent for it\n  Compute values from values alone; what "
         "chooses a ",
         "branch or ends a loop is a value, too.");
  }

  // The op itself on the tangents.
  Values linear_tangents(const OpDef& d, const RuleCtx& rule, const Values& ts) {
    Values xs(rule.operands);
    bool has_tangent = false;
    auto replace = [&](size_t i) {
      has_tangent |= static_cast<bool>(ts[i]);
      xs[i] = ts[i] ? ts[i] : zeros(b_, rule.in_types[i]).value;
    };
    if (d.linear_args.empty()) {
      for (size_t i = 0; i < xs.size(); ++i) replace(i);
    } else {
      for (size_t i : d.linear_args) replace(i);
    }
    if (!has_tangent) return Values(rule.out_types.size());
    return b_.add_typed(d, xs, rule.attrs, rule.out_types);
  }

  Value sum_of_contributions(const OpDef& d, const RuleCtx& rule, const Values& results,
                             const Values& ts) {
    Val sum;
    for (size_t i = 0; i < ts.size(); ++i) {
      if (!ts[i] || i >= d.jvp_args.size() || !d.jvp_args[i]) continue;
      Val t = contribution(d, rule, i, results[0], {&b_, ts[i]});
      sum = sum ? sum_selected(sum, t) : t;
    }
    return sum.value;
  }

  Val contribution(const OpDef& d, const RuleCtx& rule, size_t i, Value result, Val t) {
    auto made_of = [&](Val tangent) {
      return d.jvp_args[i](JvpArgCtx{rule, i, tangent, {&b_, result}});
    };
    std::optional<Selected> by = selected_tangent(t, d, rule.in_types, rule.out_types);
    return by ? select_as(*by, made_of(by->kept)) : made_of(t);
  }

  void set_tangents(const Op& op, const Values& ts) {
    for (uint32_t i = 0; i < op.num_results; ++i) {
      TypeRef type = graph_.type(graph_.result(op, i));
      Value t = ts[i];
      if (!t || !is_differentiable(type) || (options_.is_zero && options_.is_zero(t))) continue;
      if (b_.type(t) != type) {
        fail(ErrorKind::kInternal, "[", op.info->name, "] jvp made a tangent of type ", b_.type(t),
             " for a result of type ", type);
      }
      tangents_[op.results_begin + i] = t;
    }
  }

  Builder& b_;
  const Graph& graph_;
  const DifferentiateOptions& options_;
  ValueMap primals_;
  std::vector<Value> tangents_;  // none where zero
};

}  // namespace

DualValues differentiate(Builder& b, const Graph& graph, std::span<const Value> args,
                         std::span<const Value> tangents, const DifferentiateOptions& options) {
  return Differentiator(b, graph, options).run(args, tangents);
}

void check_tangent_mask(std::string_view transform, const Graph& graph, const Mask& in_mask) {
  check_mask(transform, "input", in_mask.size(), graph.num_inputs());
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (in_mask[i] && !is_differentiable(graph.input_types()[i])) {
      fail(ErrorKind::kDtype, transform, " expected inputs with tangents to be float or complex; ",
           "got input ", i, ": ", graph.input_types()[i]);
    }
  }
}

}  // namespace weft
