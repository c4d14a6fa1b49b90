// GraphBuilder: appends ops to a graph under construction. While it is being built, inputs and
// results share one numbering in order of creation, and producers_ has an entry for inputs too;
// finish() brings both to the form that Graph promises.
#include "weft/builder.h"

#include <algorithm>
#include <numeric>

#include "ir/missing_value.h"
#include "support/index_table.h"
#include "weft/error.h"
#include "weft/hash.h"

namespace weft {

namespace {

constexpr uint32_t kNoProducer = 0xffffffffu;
constexpr size_t kMaxValues = Value::kLiteralBit;

}  // namespace

// Pure ops by structure: what hash-consing looks up.
struct GraphBuilder::Cons {
  IndexTable ops;

  static uint64_t key(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs) {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;
    uint64_t h = reinterpret_cast<uintptr_t>(&op) + hash(attrs);
    if (op.commutative && operands.size() == 2) {  // the same for both orders
      auto [low, high] = std::minmax(operands[0].id, operands[1].id);
      return mix((((h ^ low) * kOdd) ^ high) * kOdd);
    }
    for (Value v : operands) h = (h ^ v.id) * kOdd;
    return mix(h);
  }
};

GraphBuilder::GraphBuilder() : graph_(std::make_shared<Graph>()) {}
GraphBuilder::~GraphBuilder() = default;

Value GraphBuilder::input(TypeRef type) {
  Graph& g = *graph_;
  if (g.types_.size() >= kMaxValues) fail(ErrorKind::kValue, "a graph holds at most 2**31 values");
  Value v{static_cast<uint32_t>(g.types_.size())};
  g.types_.push_back(type);
  g.producers_.push_back(kNoProducer);
  inputs_.push_back(v);
  return v;
}

Value GraphBuilder::literal(const Literal& x) {
  Graph& g = *graph_;
  uint64_t key = hash_combine(hash_combine(static_cast<uint64_t>(x.dtype), x.lo), x.hi);
  for (;; ++key) {  // past keys taken by other literals
    auto [it, fresh] = literals_.try_emplace(key);
    if (fresh) {
      it->second.id = Value::kLiteralBit | static_cast<uint32_t>(g.literals_.size());
      g.literals_.push_back(x);
      g.literal_types_.push_back(scalar_type(x.dtype));
      return it->second;
    }
    if (g.literals_[it->second.literal_index()] == x) return it->second;
  }
}

TypeRef GraphBuilder::type(Value v) const {
  const Graph& g = *graph_;
  if (v.is_none()) throw MissingValue();
  bool known = v.is_literal() ? v.literal_index() < g.literals_.size() : v.id < g.types_.size();
  if (!known) fail(ErrorKind::kInternal, "expected a value of this builder; got value ", v.id);
  return g.type(v);
}

const Literal* GraphBuilder::as_literal(Value v) const {
  return v.is_literal() ? &graph_->literals_[v.literal_index()] : nullptr;
}

const Op* GraphBuilder::producer(Value v) const {
  if (v.is_literal() || v.id >= graph_->producers_.size()) return nullptr;
  uint32_t op = graph_->producers_[v.id];
  return op == kNoProducer ? nullptr : &graph_->ops_[op];
}

std::span<const Value> GraphBuilder::operands(const Op& op) const { return graph_->operands(op); }

uint32_t GraphBuilder::num_ops() const { return static_cast<uint32_t>(graph_->ops_.size()); }

void GraphBuilder::set_hash_consing(bool on) { cons_.reset(on ? new Cons : nullptr); }

bool GraphBuilder::find_equal(uint64_t key, const OpInfo& op, std::span<const Value> operands,
                              const AttrsRef& attrs, Values* results) const {
  const Graph& g = *graph_;
  uint32_t found = cons_->ops.find(key, [&](uint32_t i) {
    const Op& other = g.ops_[i];
    std::span<const Value> xs = g.operands(other);
    return other.info == &op &&
           (std::equal(xs.begin(), xs.end(), operands.begin(), operands.end()) ||
            (op.commutative && xs.size() == 2 && operands.size() == 2 && xs[0] == operands[1] &&
             xs[1] == operands[0])) &&
           equal(other.attrs, attrs);
  });
  if (found == IndexTable::kAbsent) return false;
  const Op& other = g.ops_[found];
  for (uint32_t i = 0; i < other.num_results; ++i) results->push_back(g.result(other, i));
  return true;
}

Values GraphBuilder::append(uint64_t key, const OpInfo& op, std::span<const Value> operands,
                            const AttrsRef& attrs, std::span<const TypeRef> result_types) {
  Graph& g = *graph_;
  if (g.types_.size() + result_types.size() > kMaxValues || g.operands_.size() >= kMaxValues) {
    fail(ErrorKind::kValue, "a graph holds at most 2**31 values");
  }
  uint32_t effects = attrs ? effects_of(op, attrs) : op.effects;
  uint32_t depth = attrs && attrs->holds_graphs() ? 1 + depth_of(attrs) : 1;
  if (depth > kMaxGraphDepth) {
    fail(ErrorKind::kDepth, "[", op.name, "] expected at most ", kMaxGraphDepth,
         " graphs in each other");
  }
  uint32_t index = num_ops();
  uint32_t first_operand = static_cast<uint32_t>(g.operands_.size());
  uint32_t first_result = static_cast<uint32_t>(g.types_.size());
  if (cons_ && effects == kPure) cons_->ops.insert(key, index);
  Values copy(operands);  // `operands` may point into the pool that grows here
  g.operands_.insert(g.operands_.end(), copy.begin(), copy.end());
  Values results;
  for (TypeRef type : result_types) {
    results.push_back({static_cast<uint32_t>(g.types_.size())});
    g.types_.push_back(type);
    g.producers_.push_back(index);
  }
  g.ops_.push_back({&op, attrs, first_operand, static_cast<uint32_t>(operands.size()), first_result,
                    static_cast<uint32_t>(result_types.size()), loc_});
  g.effects_ |= effects;
  g.depth_ = std::max(g.depth_, depth);
  if (attrs && attrs->may_name_axes()) merge_names(g.axis_names_, axis_names_of(attrs));
  return results;
}

Values GraphBuilder::add(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs) {
  TypeRefs in_types;
  for (Value v : operands) in_types.push_back(type(v));
  Values results;
  uint64_t key = cons_ ? Cons::key(op, operands, attrs) : 0;
  if (cons_ && find_equal(key, op, operands, attrs, &results)) return results;
  return append(key, op, operands, attrs, infer_types(op, in_types, attrs));
}

Values GraphBuilder::add_typed(const OpInfo& op, std::span<const Value> operands,
                               const AttrsRef& attrs, std::span<const TypeRef> result_types) {
  for (Value v : operands) type(v);  // checks that it is ours
  Values results;
  uint64_t key = cons_ ? Cons::key(op, operands, attrs) : 0;
  if (cons_ && find_equal(key, op, operands, attrs, &results)) return results;
  return append(key, op, operands, attrs, result_types);
}

Values Builder::inline_graph(const Graph& graph, std::span<const Value> args) {
  if (args.size() != graph.num_inputs()) {
    fail(ErrorKind::kType, "inline_graph expected ", graph.num_inputs(), " arguments; got ",
         args.size());
  }
  std::vector<Value> map(graph.num_values());
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (args[i].is_none()) continue;
    if (type(args[i]) != graph.type(graph.input(i))) {
      fail(ErrorKind::kType, "inline_graph expected argument ", i, " to be ",
           graph.type(graph.input(i)), "; got ", type(args[i]));
    }
    map[i] = args[i];
  }
  auto mapped = [&](Value v) { return v.is_literal() ? literal(graph.literal(v)) : map[v.id]; };
  Loc outer = loc_;
  Values operands;
  for (const Op& op : graph.ops()) {
    operands.clear();
    for (Value v : graph.operands(op)) operands.push_back(mapped(v));
    loc_ = op.loc != kNoLoc ? op.loc : outer;
    Values results = add_typed(*op.info, operands, op.attrs, graph.result_types(op));
    std::copy(results.begin(), results.end(), map.begin() + op.results_begin);
  }
  loc_ = outer;
  Values outputs;
  for (Value v : graph.outputs()) outputs.push_back(mapped(v));
  return outputs;
}

GraphRef GraphBuilder::without_ops(const Graph& from, const std::vector<bool>& kept) {
  auto made = std::make_shared<Graph>();
  Graph& g = *made;
  g.num_inputs_ = from.num_inputs_;
  g.num_consts_ = from.num_consts_;
  g.types_.assign(from.types_.begin(), from.types_.begin() + from.num_inputs_);
  g.literals_ = from.literals_;
  g.literal_types_ = from.literal_types_;
  std::vector<Value> renumbered(from.types_.size());
  for (uint32_t i = 0; i < from.num_inputs_; ++i) renumbered[i] = {i};
  auto mapped = [&](Value v) { return v.is_literal() ? v : renumbered[v.id]; };
  for (uint32_t index = 0; index < from.ops_.size(); ++index) {
    if (!kept[index]) continue;
    const Op& op = from.ops_[index];
    uint32_t operands_begin = static_cast<uint32_t>(g.operands_.size());
    uint32_t results_begin = static_cast<uint32_t>(g.types_.size());
    for (Value v : from.operands(op)) g.operands_.push_back(mapped(v));
    for (uint32_t i = 0; i < op.num_results; ++i) {
      renumbered[op.results_begin + i] = {results_begin + i};
      g.types_.push_back(from.types_[op.results_begin + i]);
      g.producers_.push_back(static_cast<uint32_t>(g.ops_.size()));
    }
    g.ops_.push_back({op.info, op.attrs, operands_begin, op.num_operands, results_begin,
                      op.num_results, op.loc});
    g.effects_ |= op.attrs ? effects_of(*op.info, op.attrs) : op.info->effects;
    if (op.attrs && op.attrs->holds_graphs()) g.depth_ = std::max(g.depth_, 1 + depth_of(op.attrs));
    if (op.attrs && op.attrs->may_name_axes()) merge_names(g.axis_names_, axis_names_of(op.attrs));
  }
  for (Value v : from.outputs_) g.outputs_.push_back(mapped(v));
  return made;
}

GraphRef GraphBuilder::finish_ordered(std::span<const Value> outputs, std::span<const Value> first,
                                      uint32_t num_consts) {
  Graph& g = *graph_;
  for (Value v : outputs) type(v);  // checks that it is ours

  std::vector<Value> order(first.begin(), first.end());
  std::vector<bool> is_first(g.types_.size());
  for (Value v : first) {
    if (v.id >= g.types_.size() || g.producers_[v.id] != kNoProducer || is_first[v.id]) {
      fail(ErrorKind::kInternal, "finish expected distinct inputs; got value ", v.id);
    }
    is_first[v.id] = true;
  }
  for (Value v : inputs_) {
    if (!is_first[v.id]) order.push_back(v);
  }

  uint32_t num_inputs = static_cast<uint32_t>(order.size());
  bool in_place = true;
  for (uint32_t i = 0; i < num_inputs; ++i) in_place &= order[i].id == i;
  g.outputs_.assign(outputs.begin(), outputs.end());
  if (!in_place) {
    std::vector<uint32_t> renumbered(g.types_.size());
    for (uint32_t i = 0; i < num_inputs; ++i) renumbered[order[i].id] = i;
    uint32_t next = num_inputs;
    std::vector<TypeRef> types(g.types_.size());
    std::vector<uint32_t> producers(g.types_.size());
    for (uint32_t id = 0; id < g.types_.size(); ++id) {
      if (g.producers_[id] != kNoProducer) renumbered[id] = next++;
      types[renumbered[id]] = g.types_[id];
      producers[renumbered[id]] = g.producers_[id];
    }
    g.types_ = std::move(types);
    g.producers_ = std::move(producers);
    auto renumber = [&](std::vector<Value>& values) {
      for (Value& v : values) {
        if (!v.is_literal()) v.id = renumbered[v.id];
      }
    };
    renumber(g.operands_);
    renumber(g.outputs_);
  }
  uint32_t begin = num_inputs;  // of ops without results, too
  for (Op& op : g.ops_) {
    op.results_begin = begin;
    begin += op.num_results;
  }
  g.producers_.erase(g.producers_.begin(), g.producers_.begin() + num_inputs);
  g.num_inputs_ = num_inputs;
  g.num_consts_ = num_consts;

  GraphRef done = std::move(graph_);
  graph_ = std::make_shared<Graph>();
  inputs_.clear();
  literals_.clear();
  if (cons_) cons_->ops.clear();
  return done;
}

}  // namespace weft
