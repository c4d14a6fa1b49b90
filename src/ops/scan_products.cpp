// Matrix products in the body of a scan that no iteration has to wait for. A product for each
// iteration reads a whole weight every time, and often for a few rows only; one product for all
// iterations reads it once. Three cases:
//   - slices of xs times a constant: made before the loop, the body reads slices of the result;
//   - products that are only returned in ys: the loop returns the factor instead, and they are made
//     after it;
//   - products that are only added to a carry, as the gradient of a weight is: the loop returns the
//     factors, and a product that sums over the iterations too is made after it.
// Sums over axes that are added to a carry (gradients of biases) move in the same way if their
// operand is returned anyway.
#include <algorithm>
#include <unordered_map>

#include "ops/dependence.h"
#include "ops/scan.h"

namespace weft::scan {
namespace {

// New arrays take at most this many times the bytes of xs and ys, so that a loop which sums up what
// it never stores does not begin to store it.
constexpr int64_t kMaxGrowth = 4;

bool is(const Op* op, std::string_view name) { return op && op->info->name == name; }

class ProductMover {
 public:
  explicit ProductMover(SimplifyCtx& c)
      : c_(c), s_(c.attr()), body_(*s_.body), x_(c, s_), uses_(body_.num_values()) {
    for (const Op& op : body_.ops())
      for (Value v : body_.operands(op)) count_use(v);
    for (Value v : body_.outputs()) count_use(v);
    Mask changes(body_.num_inputs(), true);
    for (size_t i = 0; i < s_.num_consts; ++i) changes[i] = false;
    varies_ = dependent_values(body_, changes);
    for (size_t i = 0; i < s_.num_xs; ++i) budget_ += bytes(body_.input(input_of_xs(i)));
    for (Value v : body_.outputs().subspan(s_.num_carry)) budget_ += bytes(v);
    budget_ *= kMaxGrowth;
  }

  Vals run() {
    for (const Op& op : body_.ops()) find_early(op);
    for (size_t i = 0; i < s_.num_ys; ++i) find_late(i);
    for (bool products : {true, false})
      for (size_t i = 0; i < s_.num_carry; ++i) find_sum(i, products);
    if (early_.empty() && late_.empty() && sums_.empty()) return {};
    return rebuilt();
  }

 private:
  struct Early {  // a product of a slice of xs with a constant
    const Op* op;
    size_t stacked;  // which operand is the slice
  };
  struct Late {  // a product of something with a constant, returned as y
    size_t y;
    const Op* op;
    size_t stacked;
  };
  struct Sum {  // what is added to a carry in every iteration
    size_t carry;
    const Op* op;                  // dot_general or reduce_sum
    std::vector<const Op*> after;  // transposes, the first one first
  };

  void count_use(Value v) {
    if (!v.is_literal()) ++uses_[v.id];
  }
  int64_t bytes(Value v) const { return body_.type(v)->num_bytes(); }
  bool varies(Value v) const { return !v.is_literal() && varies_[v.id]; }
  bool is_xs(Value v) const {
    return !v.is_literal() && v.id >= s_.first_xs() && v.id < body_.num_inputs();
  }
  uint32_t input_of_xs(size_t i) const { return static_cast<uint32_t>(s_.first_xs() + i); }
  bool is_const(Value v) const { return !v.is_literal() && v.id < s_.num_consts; }
  // Whether slices of v are stacked: as xs, as ys, or for another product.
  bool is_stacked(Value v) const {
    std::span<const Value> ys = body_.outputs().subspan(s_.num_carry);
    return is_xs(v) || std::find(extra_.begin(), extra_.end(), v) != extra_.end() ||
           std::find(ys.begin(), ys.end(), v) != ys.end();
  }
  void stack(Value v) {
    if (!is_stacked(v)) extra_.push_back(v);
  }
  // Takes the bytes of a slice from what may be written.
  bool afford(int64_t slice) {
    if (slice > budget_) return false;
    budget_ -= slice;
    return true;
  }

  // Which operand of a product changes while the other is a constant; -1 if it is no such product.
  int changing_operand(const Op& op) const {
    if (!is(&op, "dot_general") || !op.attrs->ints_list("dimension_numbers")[2].empty()) return -1;
    Value lhs = body_.operand(op, 0), rhs = body_.operand(op, 1);
    if (varies(lhs) && is_const(rhs)) return 0;
    return varies(rhs) && is_const(lhs) ? 1 : -1;
  }

  void find_early(const Op& op) {
    int stacked = changing_operand(op);
    if (stacked < 0) return;
    Value slice = body_.operand(op, static_cast<uint32_t>(stacked));
    Value constant = body_.operand(op, static_cast<uint32_t>(1 - stacked));
    int64_t made = bytes(body_.result(op));
    if (!is_xs(slice) || made > bytes(constant) || !afford(made)) return;
    early_.push_back({&op, static_cast<size_t>(stacked)});
  }

  void find_late(size_t y) {
    Value v = body_.outputs()[s_.num_carry + y];
    const Op* op = body_.producer(v);
    if (!op || uses_[v.id] != 1) return;
    int stacked = changing_operand(*op);
    if (stacked < 0) return;
    Value factor = body_.operand(*op, static_cast<uint32_t>(stacked));
    Value constant = body_.operand(*op, static_cast<uint32_t>(1 - stacked));
    if (is_xs(factor) || bytes(factor) > bytes(constant)) return;
    if (!is_stacked(factor) && !afford(bytes(factor))) return;
    stack(factor);
    late_.push_back({y, op, static_cast<size_t>(stacked)});
  }

  void find_sum(size_t carry, bool products) {
    Value in = body_.input(static_cast<uint32_t>(s_.num_consts + carry));
    Value out = body_.outputs()[carry];
    const Op* add = body_.producer(out);
    if (!(is(add, "add_any") || is(add, "add")) || uses_[in.id] != 1 || uses_[out.id] != 1) return;
    Value lhs = body_.operand(*add, 0), rhs = body_.operand(*add, 1);
    if (lhs != in && rhs != in) return;
    Value term = lhs == in ? rhs : lhs;
    if (term.is_literal() || body_.type(term) != body_.type(in)) return;
    Sum sum{carry, body_.producer(term), {}};
    int64_t made = bytes(term);
    for (; is(sum.op, "transpose"); sum.op = body_.producer(term)) {
      if (uses_[term.id] != 1) return;
      sum.after.insert(sum.after.begin(), sum.op);
      term = body_.operand(*sum.op, 0);
      if (term.is_literal()) return;
    }
    if (!is(sum.op, products ? "dot_general" : "reduce_sum") || uses_[term.id] != 1) return;
    int64_t written = 0;
    for (Value v : body_.operands(*sum.op)) {
      if (!varies(v)) return;
      if (!is_stacked(v)) written += bytes(v);
    }
    if (written > made || !afford(written)) return;
    for (Value v : body_.operands(*sum.op)) stack(v);
    sums_.push_back(std::move(sum));
  }

  // ---- The loop without the products, and the products

  // A product of a stack of slices with a constant, the iterations along axis 0.
  Val product(const Op& op, size_t stacked, Val stack, Val constant) {
    std::vector<Dims> numbers = op.attrs->ints_list("dimension_numbers");
    numbers[stacked] = shifted(numbers[stacked], 0);
    Vals operands{stack, constant};
    if (stacked == 1) std::swap(operands[0], operands[1]);
    Val made = apply(def(*op.info), operands, op.attrs->with({{"dimension_numbers", numbers}}))[0];
    if (stacked == 0) return made;
    return move_axis(made, constant.rank() - static_cast<int>(numbers[0].size()), 0);
  }

  Val total(const Sum& sum) {
    AttrsRef attrs;
    Vals operands;
    for (Value v : body_.operands(*sum.op)) operands.push_back(stack_of(v));
    if (is(sum.op, "dot_general")) {
      std::vector<Dims> numbers = sum.op->attrs->ints_list("dimension_numbers");
      for (Dims& axes : numbers) axes = shifted(axes, 0);
      for (size_t side : {0, 1}) numbers[side].insert(0, 0);
      attrs = sum.op->attrs->with({{"dimension_numbers", numbers}});
    } else {
      attrs =
          sum.op->attrs->with({{"axes", inserted(shifted(sum.op->attrs->ints("axes"), 0), 0, 0)}});
    }
    Val made = apply(def(*sum.op->info), operands, attrs)[0];
    for (const Op* op : sum.after) made = apply(def(*op->info), Vals{made}, op->attrs)[0];
    return made;
  }

  Val stack_of(Value v) { return is_xs(v) ? x_.xs[v.id - s_.first_xs()] : stacks_.at(v.id); }

  Vals rebuilt() {
    Mask keeps_carry(s_.num_carry, true), keeps_y(s_.num_ys, true);
    for (const Sum& sum : sums_) keeps_carry[sum.carry] = false;
    for (const Late& late : late_) keeps_y[late.y] = false;
    Operands x = x_;
    Values given;
    for (const Early& early : early_) {
      Value slice = body_.operand(*early.op, static_cast<uint32_t>(early.stacked));
      Value constant = body_.operand(*early.op, static_cast<uint32_t>(1 - early.stacked));
      x.xs.push_back(product(*early.op, early.stacked, stack_of(slice), x_.consts[constant.id]));
      given.push_back(body_.result(*early.op));
    }
    x.carry = picked(x_.carry, keeps_carry);
    Values outputs = picked(Values(body_.outputs()), joined({keeps_carry, keeps_y}));
    outputs.append(extra_);
    GraphRef body = make_graph(body_types(x), [&](Builder& b, std::span<const Val> in) {
      Reader read(in);
      Vals args(read.take(s_.num_consts));
      for (bool kept : keeps_carry) args.push_back(kept ? read.next() : Val{});
      args.append(read.take(s_.num_xs));
      return inlined_with(b, body_, args, outputs, given, read.rest());
    });
    Vals made = apply_scan(c_, body, x);
    Reader read(made);
    Vals carries = read.take(keeps_carry), ys = read.take(keeps_y);
    for (size_t i = 0; i < s_.num_ys; ++i)
      if (Value v = body_.outputs()[s_.num_carry + i]; keeps_y[i] && !v.is_literal())
        stacks_[v.id] = ys[i];
    for (Value v : extra_) stacks_[v.id] = read.next();
    for (const Sum& sum : sums_) carries[sum.carry] = add_any(x_.carry[sum.carry], total(sum));
    for (const Late& late : late_) {
      Value factor = body_.operand(*late.op, static_cast<uint32_t>(late.stacked));
      Value constant = body_.operand(*late.op, static_cast<uint32_t>(1 - late.stacked));
      ys[late.y] = product(*late.op, late.stacked, stack_of(factor), x_.consts[constant.id]);
    }
    carries.append(ys);
    return carries;
  }

  SimplifyCtx& c_;
  Scan s_;
  const Graph& body_;
  Operands x_;
  std::vector<uint32_t> uses_;
  std::vector<bool> varies_;
  std::vector<Early> early_;
  std::vector<Late> late_;
  std::vector<Sum> sums_;
  int64_t budget_ = 0;  // bytes that may be written per iteration
  Values extra_;        // of the body: stacked for the products alone
  std::unordered_map<uint32_t, Val> stacks_;
};

}  // namespace

Vals move_products(SimplifyCtx& c) { return ProductMover(c).run(); }

}  // namespace weft::scan
