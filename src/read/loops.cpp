// A while loop runs a known number of times if its condition compares a counter with a number, and
// its body adds a number to that. Arrays of which each iteration reads or writes the slice of its
// number become what `scan` slices and stacks; derivatives then keep slices, and not whole arrays.
#include "read/loops.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ops/def/axes.h"
#include "weft/build.h"
#include "weft/rebuild.h"

namespace weft::reader {

namespace {

// The counter of a loop: where it stands in the carry, its first value and its step.
struct Counter {
  size_t carry;
  int64_t first, step, length;
  DType dtype;
};

class LoopReader {
 public:
  LoopReader(Builder& b, const WhileLoop& loop)
      : b_(b), loop_(loop), num_consts_(loop.body_consts.size()), num_carry_(loop.carry.size()) {}

  std::optional<Counter> counter() const {
    const Graph& g = *loop_.condition;
    const Op* op = g.outputs()[0].is_literal() ? nullptr : g.producer(g.outputs()[0]);
    if (!op || op->num_operands != 2) return std::nullopt;
    std::string_view compare = op->info->name;
    Value x = g.operand(*op, 0), y = g.operand(*op, 1);
    if (std::optional<Counter> c = counter(x, y, compare)) return c;
    static constexpr std::pair<std::string_view, std::string_view> kTurned[] = {
        {"lt", "gt"}, {"gt", "lt"}, {"le", "ge"}, {"ge", "le"}, {"ne", "ne"}};
    for (const auto& [name, turned] : kTurned)
      if (compare == name) return counter(y, x, turned);
    return std::nullopt;
  }

 private:
  bool is_fixed(size_t carry) const {
    return loop_.body->outputs()[carry] ==
           loop_.body->input(static_cast<uint32_t>(num_consts_ + carry));
  }
  std::optional<int64_t> number(const Literal* x) const {
    if (!x || !is_integer(x->dtype)) return std::nullopt;
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (is_unsigned_int(x->dtype) && x->lo > kMost) return std::nullopt;
    return x->as_int();
  }
  // A value of the condition or the body that is a number in every iteration.
  std::optional<int64_t> number_in(const Graph& g, Value v, const Vals& consts) const {
    if (v.is_literal()) return number(&g.literal(v));
    if (v.id >= g.num_inputs()) return std::nullopt;
    if (v.id < consts.size()) return number(b_.as_literal(consts[v.id].value));
    size_t carry = v.id - consts.size();
    return is_fixed(carry) ? number(b_.as_literal(loop_.carry[carry].value)) : std::nullopt;
  }

  std::optional<Counter> counter(Value x, Value bound, std::string_view compare) const {
    size_t conds = loop_.cond_consts.size();
    const Graph &condition = *loop_.condition, &body = *loop_.body;
    if (x.is_literal() || x.id < conds || x.id >= condition.num_inputs()) return std::nullopt;
    size_t carry = x.id - conds;
    std::optional<int64_t> last = number_in(condition, bound, loop_.cond_consts);
    std::optional<int64_t> first = number(b_.as_literal(loop_.carry[carry].value));
    Value next = body.outputs()[carry];
    const Op* op = next.is_literal() ? nullptr : body.producer(next);
    if (!last || !first || !op || op->num_operands != 2) return std::nullopt;
    Value self = body.input(static_cast<uint32_t>(num_consts_ + carry));
    Value one = body.operand(*op, 0), other = body.operand(*op, 1);
    bool adds = op->info->name == "add";
    if (adds && other == self) std::swap(one, other);
    if (one != self || (!adds && op->info->name != "sub")) return std::nullopt;
    std::optional<int64_t> step = number_in(body, other, loop_.body_consts);
    constexpr int64_t kMost = int64_t{1} << 31;  // of all numbers: nothing overflows
    if (!step || *step < -kMost || *step > kMost || *step == 0) return std::nullopt;
    if (std::abs(*first) > kMost || std::abs(*last) > kMost) return std::nullopt;
    int64_t by = adds ? *step : -*step, distance = *last - *first;
    std::optional<int64_t> length = num_steps(compare, distance, by);
    DType dtype = body.type(self)->dtype();
    int64_t end = length ? *first + *length * by : 0;
    if (!length || !(make_literal(dtype, end) == in_range(dtype, end))) return std::nullopt;
    return Counter{carry, *first, by, *length, dtype};
  }
  static Literal in_range(DType dtype, int64_t x) {
    return Literal{dtype, static_cast<uint64_t>(x), 0};
  }
  static std::optional<int64_t> num_steps(std::string_view compare, int64_t distance, int64_t by) {
    if (compare == "ne") {
      if (distance % by != 0 || distance / by < 0) return std::nullopt;
      return distance / by;
    }
    if (compare == "le" || compare == "ge") distance += compare == "le" ? 1 : -1;
    bool up = compare == "lt" || compare == "le";
    if (!up && compare != "gt" && compare != "ge") return std::nullopt;
    if (up ? distance <= 0 : distance >= 0) return 0;
    if (up != (by > 0)) return std::nullopt;
    return divide_up(std::abs(distance), std::abs(by));
  }

  Builder& b_;
  const WhileLoop& loop_;
  size_t num_consts_, num_carry_;
};

// ---- Slices

// How an iteration uses an array: the slice of its number, counted from the front or the back.
enum class Use : uint8_t { kUnused, kForward, kBackward, kOther };

class Slicer {
 public:
  Slicer(Builder& b, const WhileLoop& loop, const Counter& counter)
      : b_(b), loop_(loop), counter_(counter), num_consts_(loop.body_consts.size()) {}

  Vals scan() {
    body_ = loop_.body;
    inline_calls();
    if (counter_.first == 0 && counter_.step == 1 && counter_.length > 0) find_slices();
    return make();
  }

 private:
  // What becomes of an input of the body.
  enum class Role : uint8_t { kConst, kCarry, kSliced, kStacked };

  size_t num_inputs() const { return num_consts_ + loop_.carry.size(); }
  bool is_carry(size_t input) const { return input >= num_consts_; }
  bool is_fixed(size_t input) const {
    return !is_carry(input) ||
           body_->outputs()[input - num_consts_] == body_->input(static_cast<uint32_t>(input));
  }
  Val outer(size_t input) const {
    return is_carry(input) ? loop_.carry[input - num_consts_] : loop_.body_consts[input];
  }
  bool may_be_sliced(TypeRef type) const {
    return type->rank() > 0 && type->dim(0) == counter_.length;
  }

  // Functions that take slices or write them, as JAX has them.
  void inline_calls() {
    constexpr int kMostLevels = 4;
    constexpr size_t kMostOps = 100'000;
    const OpDef& call = op_named<"jit">();
    for (int level = 0; level < kMostLevels; ++level) {
      auto is_called = [&](const Op& op) {
        if (op.info != &call || op.attrs->graph("jaxpr")->ops().size() > kMostOps) return false;
        return std::ranges::any_of(body_->operands(op), [&](Value v) {
          return !v.is_literal() && v.id < body_->num_inputs() && may_be_sliced(body_->type(v));
        });
      };
      if (body_->ops().size() > kMostOps || std::ranges::none_of(body_->ops(), is_called)) return;
      GraphBuilder to;
      body_ = rebuild(*body_, to, [&](const Op& op, const Values& operands) {
        return is_called(op) ? to.inline_graph(*op.attrs->graph("jaxpr"), operands)
                             : copy_op(*body_, to, op, operands);
      });
    }
  }

  std::optional<int64_t> literal_of(Value v) const {
    if (!v.is_literal() || !is_integer(body_->literal(v).dtype)) return std::nullopt;
    return body_->literal(v).as_int();
  }
  // Whether v is the number of the iteration, or what is left of them, in forms that programs write
  // for the sake of numbers that are out of range.
  Use index_use(Value v) const {
    Value counter = body_->input(static_cast<uint32_t>(num_consts_ + counter_.carry));
    for (int depth = 0; depth < 8; ++depth) {
      if (v == counter) return Use::kForward;
      const Op* op = v.is_literal() ? nullptr : body_->producer(v);
      if (!op) return Use::kOther;
      const std::string& name = op->info->name;
      auto x = [&](uint32_t i) { return body_->operand(*op, i); };
      if (name == "convert_element_type" && is_integer(body_->type(x(0))->dtype()) &&
          info(body_->type(v)->dtype()).bits >= 32) {
        v = x(0);
      } else if (name == "clamp" && literal_of(x(0)) == 0 &&
                 literal_of(x(2)) == counter_.length - 1) {
        v = x(1);
      } else if (name == "select_n" && op->num_operands == 3) {
        const Op* test = x(0).is_literal() ? nullptr : body_->producer(x(0));
        bool is_negative = test && test->info->name == "lt" && body_->operand(*test, 0) == x(1) &&
                           literal_of(body_->operand(*test, 1)) == 0;
        if (!is_negative) return Use::kOther;
        v = x(1);
      } else if (name == "sub" && literal_of(x(0)) == counter_.length - 1) {
        return index_use(x(1), depth) == Use::kForward ? Use::kBackward : Use::kOther;
      } else {
        return Use::kOther;
      }
    }
    return Use::kOther;
  }
  Use index_use(Value v, int depth) const {
    Value counter = body_->input(static_cast<uint32_t>(num_consts_ + counter_.carry));
    return depth < 8 && v == counter ? Use::kForward : Use::kOther;
  }
  // The slice of a block along axis 0 that starts at operand `first` of an op, if it is whole along
  // the others.
  Use block_use(const Op& op, TypeRef array, TypeRef block, uint32_t first) const {
    if (block->rank() != array->rank() || block->dim(0) != 1) return Use::kOther;
    for (int i = 1; i < array->rank(); ++i) {
      if (block->dim(i) != array->dim(i)) return Use::kOther;
    }
    return index_use(body_->operand(op, first));
  }

  void find_slices() {
    roles_.assign(num_inputs(), Role::kCarry);
    for (size_t i = 0; i < num_inputs(); ++i)
      if (is_fixed(i)) roles_[i] = Role::kConst;
    std::vector<Use> uses(num_inputs(), Use::kUnused);
    // Per input the op that writes its slice, for carries.
    std::vector<const Op*> writers(num_inputs(), nullptr);
    std::vector<uint32_t> num_uses(body_->num_values(), 0);
    for (const Op& op : body_->ops()) {
      bool reads = op.info == &op_named<"dynamic_slice">();
      bool writes = op.info == &op_named<"dynamic_update_slice">();
      std::span<const Value> operands = body_->operands(op);
      for (uint32_t i = 0; i < operands.size(); ++i) {
        Value v = operands[i];
        if (v.is_literal()) continue;
        ++num_uses[v.id];
        if (v.id >= num_inputs() || !may_be_sliced(body_->type(v))) continue;
        Use use = Use::kOther;
        if (reads && i == 0 && roles_[v.id] == Role::kConst) {
          use = block_use(op, body_->type(v), body_->type(body_->result(op)), 1);
        } else if (writes && i == 0 && roles_[v.id] == Role::kCarry) {
          use = block_use(op, body_->type(v), body_->type(operands[1]), 2);
          writers[v.id] = &op;
        }
        bool first = uses[v.id] == Use::kUnused;
        uses[v.id] = first || uses[v.id] == use ? use : Use::kOther;
      }
    }
    for (Value v : body_->outputs())
      if (!v.is_literal()) ++num_uses[v.id];
    for (size_t i = 0; i < num_inputs(); ++i) {
      if (uses[i] != Use::kForward && uses[i] != Use::kBackward) continue;
      if (roles_[i] == Role::kConst) {
        roles_[i] = Role::kSliced;
      } else if (const Op* op = writers[i]; op && num_uses[i] == 1) {
        Value written = body_->result(*op);
        if (body_->outputs()[i - num_consts_] == written && num_uses[written.id] == 1)
          roles_[i] = Role::kStacked;
      }
    }
    uses_ = std::move(uses);
  }

  TypeRef slice_type(size_t input) const {
    TypeRef whole = body_->input_types()[input];
    return make_type(whole->dtype(), std::span<const int64_t>(whole->shape()).subspan(1));
  }

  // Whether each op is needed for these values; slices are where the search ends.
  std::vector<bool> needed_ops(std::span<const Value> values, std::vector<bool>& needed) const {
    needed.assign(body_->num_values(), false);
    std::vector<bool> ops(body_->ops().size());
    auto need = [&](Value v) {
      if (!v.is_literal()) needed[v.id] = true;
    };
    for (Value v : values) need(v);
    for (size_t i = ops.size(); i-- > 0;) {
      const Op& op = body_->op(static_cast<uint32_t>(i));
      for (uint32_t r = 0; r < op.num_results; ++r) ops[i] = ops[i] || needed[op.results_begin + r];
      ops[i] = ops[i] || effects_of(*op.info, op.attrs) != kPure;
      if (!ops[i]) continue;
      if (sliced_input(op)) {
        need(body_->operand(op, 0));
      } else {
        for (Value v : body_->operands(op)) need(v);
      }
    }
    return ops;
  }
  std::optional<size_t> sliced_input(const Op& op) const {
    if (op.info != &op_named<"dynamic_slice">()) return std::nullopt;
    Value v = body_->operand(op, 0);
    if (v.is_literal() || v.id >= roles_.size() || roles_[v.id] != Role::kSliced)
      return std::nullopt;
    return v.id;
  }

  Vals make() {
    if (roles_.empty()) {
      roles_.assign(num_inputs(), Role::kCarry);
      for (size_t i = 0; i < num_inputs(); ++i)
        if (is_fixed(i)) roles_[i] = Role::kConst;
    }
    size_t counter = num_consts_ + counter_.carry;
    std::vector<Value> wanted;
    for (size_t i = num_consts_; i < num_inputs(); ++i) {
      Value out = body_->outputs()[i - num_consts_];
      if (roles_[i] == Role::kStacked) {
        wanted.push_back(body_->operand(*body_->producer(out), 1));
      } else if (roles_[i] == Role::kCarry && i != counter) {
        wanted.push_back(out);
      }
    }
    std::vector<bool> needed;
    std::vector<bool> ops = needed_ops(wanted, needed);
    bool counts = needed[counter];
    if (counts) {
      wanted.push_back(body_->outputs()[counter_.carry]);
      ops = needed_ops(wanted, needed);
    }
    return make_scan(ops, needed, counts);
  }

  Vals make_scan(const std::vector<bool>& ops, const std::vector<bool>& needed, bool counts) {
    size_t counter = num_consts_ + counter_.carry;
    bool reverse = true, any = false;
    for (size_t i = 0; i < num_inputs(); ++i) {
      if (roles_[i] != Role::kSliced && roles_[i] != Role::kStacked) continue;
      any = true;
      reverse = reverse && uses_[i] == Use::kBackward;
    }
    reverse = reverse && any;
    auto in_order = [&](size_t i, Val x) {
      return (uses_[i] == Use::kBackward) == reverse ? x : rev(x, {0});
    };
    GraphBuilder to;
    ValueMap map(*body_, to);
    Vals operands;
    ScanParts parts{.length = counter_.length, .reverse = reverse};
    for (Role role : {Role::kConst, Role::kCarry, Role::kSliced}) {
      for (size_t i = 0; i < num_inputs(); ++i) {
        if (roles_[i] != role || (role == Role::kConst && !needed[i])) continue;
        if (i == counter && !counts) continue;
        bool sliced = role == Role::kSliced;
        TypeRef type = sliced ? slice_type(i) : body_->input_types()[i];
        map.set(body_->input(static_cast<uint32_t>(i)), to.input(type));
        operands.push_back(sliced ? in_order(i, outer(i)) : outer(i));
        parts.num_consts += role == Role::kConst;
        parts.num_carry += role == Role::kCarry;
      }
    }
    copy_body(ops, to, map);
    Values outputs;
    for (Role role : {Role::kCarry, Role::kStacked}) {
      for (size_t i = num_consts_; i < num_inputs(); ++i) {
        if (roles_[i] != role || (i == counter && !counts)) continue;
        Value out = body_->outputs()[i - num_consts_];
        outputs.push_back(role == Role::kCarry ? map(out) : stacked(out, i, to, map));
      }
    }
    Vals made = scan_over(b_, operands, to.finish(outputs), parts);
    return results(made, counts, in_order);
  }

  void copy_body(const std::vector<bool>& ops, GraphBuilder& to, ValueMap& map) {
    std::vector<bool> is_slice(body_->num_values());
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!ops[i]) continue;
      const Op& op = body_->op(static_cast<uint32_t>(i));
      to.set_loc(op.loc);
      if (sliced_input(op)) {
        Val slice{&to, map(body_->operand(op, 0))};
        is_slice[op.results_begin] = true;
        map.set(body_->result(op), reshape(slice, body_->type(body_->result(op))->shape()).value);
        // Most programs drop the axis at once.
        slices_.emplace_back(body_->result(op), slice.value);
        continue;
      }
      Value from = op.num_operands == 1 ? body_->operand(op, 0) : Value{};
      bool drops = from && !from.is_literal() && is_slice[from.id] &&
                   (op.info == &op_named<"reshape">() || op.info == &op_named<"squeeze">());
      if (drops) {
        Value slice = std::ranges::find(slices_, from, &std::pair<Value, Value>::first)->second;
        if (to.type(slice) == body_->type(body_->result(op))) {
          map.set(body_->result(op), slice);
          continue;
        }
      }
      map.set_results(op, copy_op(*body_, to, op, map(body_->operands(op))));
    }
  }

  // The slice that an iteration writes, without the axis along which it is one of many.
  Value stacked(Value written, size_t input, GraphBuilder& to, ValueMap& map) {
    Value update = body_->operand(*body_->producer(written), 1);
    TypeRef type = slice_type(input);
    const Op* op = update.is_literal() ? nullptr : body_->producer(update);
    if (op && op->num_operands == 1) {
      Value inner = body_->operand(*op, 0);
      bool adds = op->info == &op_named<"reshape">();
      if (op->info == &op_named<"broadcast_in_dim">()) {
        Dims axes = count_up(type->rank() + 1);
        axes.erase(0);
        adds = op->attrs->ints("broadcast_dimensions") == axes;
      }
      if (adds && body_->type(inner) == type && !inner.is_literal()) return map(inner);
    }
    return reshape(Val{&to, map(update)}, type->shape()).value;
  }

  template <typename InOrder>
  Vals results(const Vals& made, bool counts, InOrder&& in_order) {
    size_t counter = num_consts_ + counter_.carry, next = 0;
    Vals all(loop_.carry.size());
    for (Role role : {Role::kCarry, Role::kStacked, Role::kConst, Role::kSliced}) {
      for (size_t i = num_consts_; i < num_inputs(); ++i) {
        if (roles_[i] != role) continue;
        Val& result = all[i - num_consts_];
        if (role == Role::kConst || role == Role::kSliced) {
          result = outer(i);
        } else if (i == counter && !counts) {
          int64_t end = counter_.first + counter_.length * counter_.step;
          result = {&b_, b_.literal(make_literal(counter_.dtype, end))};
        } else {
          result = role == Role::kStacked ? in_order(i, made[next]) : made[next];
          ++next;
        }
      }
    }
    return all;
  }

  Builder& b_;
  const WhileLoop& loop_;
  Counter counter_;
  size_t num_consts_;
  GraphRef body_;
  std::vector<Role> roles_;
  std::vector<Use> uses_;
  std::vector<std::pair<Value, Value>> slices_;
};

}  // namespace

Vals as_scan(Builder& b, const WhileLoop& loop) {
  if (loop.condition->outputs().size() != 1 || loop.carry.empty()) return {};
  if (loop.condition->effects() != kPure) return {};
  std::optional<Counter> counter = LoopReader(b, loop).counter();
  return counter ? Slicer(b, loop, *counter).scan() : Vals();
}

}  // namespace weft::reader
