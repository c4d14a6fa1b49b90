// What the body of a loop makes in each iteration, and no iteration has to wait for, is made once
// for all of them. A product for each iteration reads a whole weight every time, and often for a
// few rows only; one product for all iterations reads it once. Three cases:
//   - products of slices of xs with constants: made before the loop, the body reads slices of them;
//   - products with constants that are only returned in ys: the loop returns the other factors, and
//     they are made after it;
//   - what is only added to a carry, as the gradient of a weight is: the loop returns what it is
//     made of, and the sum over all iterations is made after it.
// The first two are for ops that read constants once for all iterations
// (OpDef::shares_unmapped), the third is for those that know a better sum than that of their
// results (OpDef::mapped_sum).
#include <algorithm>
#include <unordered_map>

#include "ops/control/loop_layout.h"
#include "ops/def/dependence.h"
#include "passes/inline_plan.h"
#include "passes/pass_list.h"
#include "weft/transforms.h"

namespace weft {
namespace {

// New arrays take at most this many times the bytes of xs and ys, so that a loop which sums up what
// it never stores does not begin to store it.
constexpr int64_t kMaxProductGrowth = 4;

// Whether the sum of its results is its result for the sum of its operands.
bool is_linear_map(const Op& op) {
  const OpDef& d = def(*op.info);
  return d.jvp_kind == JvpKind::kLinear && op.num_operands == 1 && op.num_results == 1;
}

class ProductMover {
 public:
  explicit ProductMover(const SimplifyCtx& c)
      : c_(c), s_(c.op.loop.parts(c.attr())), body_(*s_.body), x_(c, s_), uses_(live_uses(body_)) {
    Mask changes(body_.num_inputs(), true);
    std::fill_n(changes.begin(), s_.num_consts, false);
    varies_ = dependent_values(body_, changes);
    is_stacked_.resize(body_.num_values());
    auto note_stacked = [&](Value v) {
      budget_ += kMaxProductGrowth * bytes(v);
      if (!v.is_literal()) is_stacked_[v.id] = true;
    };
    for (uint32_t i = first_xs(); i < body_.num_inputs(); ++i) note_stacked(body_.input(i));
    for (Value v : body_.outputs().subspan(s_.num_carry)) note_stacked(v);
  }

  Vals run() {
    for (const Op& op : body_.ops()) find_early(op);
    for (size_t i = 0; i < s_.num_ys; ++i) find_late(i);
    // Twice, since sums take what is stacked for sums that were found after them.
    Mask found(s_.num_carry, false);
    for (int round = 0; round < 2; ++round)
      for (size_t i = 0; i < s_.num_carry; ++i) found[i] = found[i] || find_sum(i);
    if (early_.empty() && late_.empty() && sums_.empty()) return {};
    return rebuilt();
  }

 private:
  struct Late {
    size_t y;
    const Op* op;
  };
  struct Sum {  // what is added to a carry in every iteration
    size_t carry = 0;
    const Op* add = nullptr;
    const Op* op = nullptr;
    std::vector<const Op*> after = {};  // linear maps of the op's result, the last one first
  };
  // An op on constants and on what changes, in bytes.
  struct Product {
    int64_t constant = 0, changing = 0, made = 0;
    bool of_xs = true;  // all that changes
  };

  int64_t bytes(Value v) const { return body_.type(v)->num_bytes(); }
  bool varies(Value v) const { return !v.is_literal() && varies_[v.id]; }
  bool is_const(Value v) const { return !v.is_literal() && v.id < s_.num_consts; }
  uint32_t first_xs() const { return static_cast<uint32_t>(s_.num_consts + s_.num_carry); }
  bool is_xs(Value v) const {
    return !v.is_literal() && v.id >= first_xs() && v.id < body_.num_inputs();
  }
  bool is_only_use(Value v) const { return !v.is_literal() && uses_[v.id] == 1; }

  // Takes the bytes of a slice from what may be written.
  bool afford(int64_t slice) {
    if (slice > budget_) return false;
    budget_ -= slice;
    return true;
  }
  // The operands of an op that are not stacked yet, each once.
  Values not_stacked(const Op& op) const {
    Values out;
    for (Value v : body_.operands(op))
      if (varies(v) && !is_stacked_[v.id] && std::find(out.begin(), out.end(), v) == out.end())
        out.push_back(v);
    return out;
  }
  // Has them stacked, unless their bytes are more than `most` or than may be written.
  bool stack(const Values& slices, int64_t most) {
    int64_t written = 0;
    for (Value v : slices) written += bytes(v);
    if (written > most || !afford(written)) return false;
    for (Value v : slices) is_stacked_[v.id] = true;
    extra_.append(slices);
    return true;
  }

  std::optional<Product> product(const Op& op) const {
    if (!def(*op.info).shares_unmapped || op.num_results != 1) return std::nullopt;
    Product p{.made = bytes(body_.result(op))};
    for (Value v : body_.operands(op)) {
      if (!is_const(v) && !varies(v)) return std::nullopt;
      (is_const(v) ? p.constant : p.changing) += bytes(v);
      p.of_xs = p.of_xs && (is_const(v) || is_xs(v));
    }
    return p;
  }

  void find_early(const Op& op) {
    auto p = product(op);
    if (p && p->of_xs && p->made <= p->constant && afford(p->made)) early_.push_back(&op);
  }

  void find_late(size_t y) {
    Value v = body_.outputs()[s_.num_carry + y];
    const Op* op = is_only_use(v) ? body_.producer(v) : nullptr;
    auto p = op ? product(*op) : std::nullopt;
    if (p && !p->of_xs && p->changing <= p->constant && stack(not_stacked(*op), p->changing))
      late_.push_back({y, op});
  }

  bool find_sum(size_t carry) {
    Value in = body_.input(static_cast<uint32_t>(s_.num_consts + carry));
    Value out = body_.outputs()[carry];
    if (!is_only_use(in) || !is_only_use(out)) return false;
    Sum sum{.carry = carry, .add = body_.producer(out)};
    if (!sum.add || !def(*sum.add->info).adds) return false;
    Value lhs = body_.operand(*sum.add, 0), rhs = body_.operand(*sum.add, 1);
    Value term = lhs == in ? rhs : lhs;
    if ((lhs != in && rhs != in) || body_.type(term) != body_.type(in)) return false;
    for (;; term = body_.operand(*sum.op, 0)) {
      sum.op = is_only_use(term) ? body_.producer(term) : nullptr;
      if (!sum.op) return false;
      if (has_sum(*sum.op) && stack(not_stacked(*sum.op), bytes(term))) break;
      if (!is_linear_map(*sum.op)) return false;
      sum.after.push_back(sum.op);
    }
    sums_.push_back(std::move(sum));
    return true;
  }
  bool has_sum(const Op& op) const {
    std::span<const Value> xs = body_.operands(op);
    return def(*op.info).mapped_sum &&
           std::all_of(xs.begin(), xs.end(), [&](Value v) { return varies(v); });
  }

  // ---- The loop without the products, and the products

  Val stack_of(Value v) const { return is_xs(v) ? x_.xs[v.id - first_xs()] : stacks_.at(v.id); }

  // Of all iterations, along axis 0.
  Val product_of_stacks(const Op& op) {
    Vals operands;
    TypeRefs types;
    VmapOptions options;
    options.out_dims = {0};
    for (Value v : body_.operands(op)) {
      operands.push_back(is_const(v) ? x_.consts[v.id] : stack_of(v));
      types.push_back(body_.type(v));
      options.in_dims.push_back(is_const(v) ? kNotBatched : 0);
      if (!is_const(v)) options.size = operands.back().shape()[0];
    }
    GraphRef graph = make_graph(types, [&](Builder& b, std::span<const Val> xs) {
      b.set_loc(op.loc);
      return apply(def(*op.info), xs, op.attrs);
    });
    return c_.val(vmap_into(c_.b, *graph, values_of(operands), options).outputs[0]);
  }

  Val total(const Sum& sum) {
    Values operands;
    TypeRefs types;
    for (Value v : body_.operands(*sum.op)) {
      operands.push_back(stack_of(v).value);
      types.push_back(body_.type(v));
    }
    const OpDef& op = def(*sum.op->info);
    RuleCtx rule{c_.b, op, sum.op->attrs, operands, types, body_.result_types(*sum.op)};
    Val made = op.mapped_sum(rule);
    for (auto next = sum.after.rbegin(); next != sum.after.rend(); ++next)
      made = apply(def(*(*next)->info), Vals{made}, (*next)->attrs)[0];
    return apply(def(*sum.add->info), Vals{x_.carry[sum.carry], made}, sum.add->attrs)[0];
  }

  Vals rebuilt() {
    Mask keeps_carry(s_.num_carry, true), keeps_y(s_.num_ys, true);
    for (const Sum& sum : sums_) keeps_carry[sum.carry] = false;
    for (const Late& late : late_) keeps_y[late.y] = false;
    LoopOperands x = x_;
    Values given;
    for (const Op* op : early_) {
      x.xs.push_back(product_of_stacks(*op));
      given.push_back(body_.result(*op));
    }
    x.carry = picked(x_.carry, keeps_carry);
    Values outputs = picked(Values(body_.outputs()), joined({keeps_carry, keeps_y}));
    outputs.append(extra_);
    GraphRef body = make_graph(x.body_types(), [&](Builder& b, std::span<const Val> in) {
      Reader read(in);
      Vals args(read.take(s_.num_consts));
      for (bool kept : keeps_carry) args.push_back(kept ? read.next() : Val{});
      args.append(read.take(s_.num_xs));
      return inlined_with(b, body_, args, outputs, given, read.rest());
    });
    Vals made = apply_loop(c_, body, x);
    Reader read(made);
    Vals results = read.take(joined({keeps_carry, keeps_y}));
    for (size_t i = s_.num_carry; i < results.size(); ++i)
      if (Value v = body_.outputs()[i]; results[i].builder && !v.is_literal())
        stacks_[v.id] = results[i];
    for (Value v : extra_) stacks_[v.id] = read.next();
    for (const Sum& sum : sums_) results[sum.carry] = total(sum);
    for (const Late& late : late_) results[s_.num_carry + late.y] = product_of_stacks(*late.op);
    return results;
  }

  const SimplifyCtx& c_;
  LoopSegments s_;
  const Graph& body_;
  LoopOperands x_;
  std::vector<uint32_t> uses_;
  std::vector<bool> varies_;
  std::vector<bool> is_stacked_;  // slices of xs, ys, and what is stacked for the products
  Values extra_;                  // stacked for the products alone
  int64_t budget_ = 0;            // bytes that may be written per iteration
  std::vector<const Op*> early_;
  std::vector<Late> late_;
  std::vector<Sum> sums_;
  std::unordered_map<uint32_t, Val> stacks_;
};

}  // namespace

const Rewrite& scan_products() {
  static const Rewrite rewrite{
      "scan_products", "products that no iteration of a loop waits for -> one for all of them",
      [](SimplifyCtx& c) { return ProductMover(c).run(); }};
  return rewrite;
}

}  // namespace weft
