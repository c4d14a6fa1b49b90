// Frozen graphs: structural identity, verification and the cache of derived values.
#include "weft/graph.h"

#include <algorithm>
#include <unordered_set>

#include "weft/error.h"
#include "weft/format.h"
#include "weft/hash.h"
#include "weft/op.h"

namespace weft {

std::vector<TypeRef> Graph::output_types() const {
  std::vector<TypeRef> types;
  types.reserve(outputs_.size());
  for (Value v : outputs_) types.push_back(type(v));
  return types;
}

uint64_t Graph::structural_hash() const {
  uint64_t known = hash_.load(std::memory_order_relaxed);
  if (known) return known;
  auto hash_value = [&](Value v) -> uint64_t {
    if (!v.is_literal()) return v.id;
    const Literal& x = literal(v);
    return hash_combine(hash_combine(static_cast<uint64_t>(x.dtype) + 1, x.lo), x.hi);
  };
  uint64_t h = hash_combine(num_inputs_, num_consts_);
  for (TypeRef type : input_types()) h = hash_combine(h, type->hash());
  for (const Op& op : ops_) {
    // Names and contents, never addresses: the hash is a key of caches on disk.
    h = hash_combine(h, hash_bytes(op.info->name));
    if (op.attrs) h = hash_combine(h, op.attrs->content_hash());
    for (Value v : operands(op)) h = hash_combine(h, hash_value(v));
    for (TypeRef type : result_types(op)) h = hash_combine(h, type->hash());
  }
  for (Value v : outputs_) h = hash_combine(h, hash_value(v));
  if (h == 0) h = 1;  // 0 stands for not yet computed
  hash_.store(h, std::memory_order_relaxed);
  return h;
}

std::shared_ptr<const void> Graph::cached_any(
    const std::string& key, const std::function<std::shared_ptr<const void>()>& make) const {
  // The entry used last stands last.
  auto find = [&]() -> std::shared_ptr<const void>* {
    auto found = std::find_if(cache_.rbegin(), cache_.rend(),
                              [&](const auto& entry) { return entry.first == key; });
    if (found == cache_.rend()) return nullptr;
    std::rotate(found.base() - 1, found.base(), cache_.end());
    return &cache_.back().second;
  };
  {
    std::lock_guard lock(cache_mutex_);
    if (auto* found = find()) return *found;
  }
  // Unlocked, since make() may use the cache. Of two threads that get here the first one wins.
  std::shared_ptr<const void> made = make(), dropped;
  std::lock_guard lock(cache_mutex_);
  if (auto* found = find()) return *found;
  if (cache_.size() == kMaxCached) {
    dropped = std::move(cache_.front().second);  // destroyed when the lock is released
    cache_.erase(cache_.begin());
  }
  cache_.emplace_back(key, made);
  return made;
}

namespace {

// Pairs of region graphs found equal during one outermost call of equal(): without it, graphs that
// call each other's copies twice per level would be compared 2**levels times.
class EqualPairs {
 public:
  EqualPairs() { ++depth_; }
  ~EqualPairs() {
    if (--depth_ == 0) pairs_.clear();
  }
  bool contains(const Graph& a, const Graph& b) const { return pairs_.contains(key(a, b)); }
  void insert(const Graph& a, const Graph& b) {
    if (depth_ > 1) pairs_.insert(key(a, b));
  }

 private:
  using Key = std::pair<const Graph*, const Graph*>;
  struct Hash {
    size_t operator()(const Key& k) const {
      return hash_combine(hash_pointer(k.first), hash_pointer(k.second));
    }
  };
  static Key key(const Graph& a, const Graph& b) { return {&a, &b}; }

  static thread_local int depth_;
  static thread_local std::unordered_set<Key, Hash> pairs_;
};
thread_local int EqualPairs::depth_ = 0;
thread_local std::unordered_set<EqualPairs::Key, EqualPairs::Hash> EqualPairs::pairs_;

bool equal_contents(const Graph& a, const Graph& b) {
  auto same_value = [&](Value x, Value y) {
    return x.is_literal() ? y.is_literal() && a.literal(x) == b.literal(y) : x == y;
  };
  auto same_values = [&](std::span<const Value> xs, std::span<const Value> ys) {
    return std::equal(xs.begin(), xs.end(), ys.begin(), ys.end(), same_value);
  };
  for (uint32_t i = 0; i < a.num_values(); ++i) {
    if (a.type(Value{i}) != b.type(Value{i})) return false;
  }
  for (size_t i = 0; i < a.ops().size(); ++i) {
    const Op& x = a.ops()[i];
    const Op& y = b.ops()[i];
    if (x.info != y.info || x.num_results != y.num_results || !equal(x.attrs, y.attrs) ||
        !same_values(a.operands(x), b.operands(y))) {
      return false;
    }
  }
  return same_values(a.outputs(), b.outputs());
}

}  // namespace

bool equal(const Graph& a, const Graph& b) {
  if (&a == &b) return true;
  if (a.num_inputs() != b.num_inputs() || a.num_consts() != b.num_consts() ||
      a.num_values() != b.num_values() || a.ops().size() != b.ops().size() ||
      a.outputs().size() != b.outputs().size() || a.structural_hash() != b.structural_hash()) {
    return false;
  }
  EqualPairs known;
  if (known.contains(a, b)) return true;
  if (!equal_contents(a, b)) return false;
  known.insert(a, b);
  return true;
}

namespace {

void verify_op(const Graph& graph, const Op& op, uint32_t index, uint32_t next_value) {
  auto broken = [&](const auto&... parts) {
    fail(ErrorKind::kInternal, "verify: op ", index, " (", op.info->name, ") ", parts...);
  };
  if (op.results_begin != next_value) {
    broken("expected results from value ", next_value, "; got ", op.results_begin);
  }
  TypeRefs in_types;
  for (Value v : graph.operands(op)) {
    if (v.is_literal() ? v.literal_index() >= graph.num_literals() : v.id >= next_value) {
      broken("expected operands made before it; got value ", v.id);
    }
    in_types.push_back(graph.type(v));
  }
  for (uint32_t i = 0; i < op.num_results; ++i) {
    if (graph.producer(graph.result(op, i)) != &op) broken("is not the producer of its results");
  }
  TypeRefs inferred;
  try {
    inferred = infer_types(*op.info, in_types, op.attrs);
  } catch (const Error& error) { broken("fails inference: ", error.what()); }
  std::span<const TypeRef> types = graph.result_types(op);
  if (!std::equal(types.begin(), types.end(), inferred.begin(), inferred.end())) {
    Text expected;
    for (TypeRef type : inferred) expected << ' ' << type;
    broken("expected result types", expected.view(), "; got ", print_op(graph, op));
  }
}

// `seen` holds the region graphs verified already.
void verify_graph(const Graph& graph, std::unordered_set<const Graph*>& seen) {
  if (!seen.insert(&graph).second) return;

  if (graph.num_consts() > graph.num_inputs() || graph.num_inputs() > graph.num_values()) {
    fail(ErrorKind::kInternal, "verify: expected at most ", graph.num_values(), " inputs; got ",
         graph.num_inputs(), " with ", graph.num_consts(), " consts");
  }
  uint32_t next_value = graph.num_inputs();
  uint32_t effects = 0, depth = 1;
  std::vector<std::string> axis_names;
  for (uint32_t i = 0; i < graph.ops().size(); ++i) {
    const Op& op = graph.op(i);
    for_each_graph(op.attrs, [&](const GraphRef& region) { verify_graph(*region, seen); });
    verify_op(graph, op, i, next_value);
    next_value += op.num_results;
    effects |= effects_of(*op.info, op.attrs);
    depth = std::max(depth, 1 + depth_of(op.attrs));
    merge_names(axis_names, axis_names_of(op.attrs));
  }
  if (next_value != graph.num_values()) {
    fail(ErrorKind::kInternal, "verify: expected ", next_value, " values; got ",
         graph.num_values());
  }
  if (effects != graph.effects()) {
    fail(ErrorKind::kInternal, "verify: expected effects ", effects, "; got ", graph.effects());
  }
  if (axis_names != graph.axis_names()) {
    fail(ErrorKind::kInternal, "verify: expected ", axis_names.size(), " axis names; got ",
         graph.axis_names().size());
  }
  if (depth != graph.depth()) {
    fail(ErrorKind::kInternal, "verify: expected depth ", depth, "; got ", graph.depth());
  }
  for (Value v : graph.outputs()) {
    if (v.is_literal() ? v.literal_index() >= graph.num_literals() : v.id >= next_value) {
      fail(ErrorKind::kInternal, "verify: expected outputs that exist; got value ", v.id);
    }
  }
}

}  // namespace

void verify(const Graph& graph) {
  std::unordered_set<const Graph*> seen;
  verify_graph(graph, seen);
}

namespace {

bool is_portable(const Graph& graph, std::unordered_set<const Graph*>& seen) {
  if (!seen.insert(&graph).second) return true;
  for (const Op& op : graph.ops()) {
    if (!op.info->built_in) return false;
    if (!op.attrs) continue;
    for (const Attr& value : op.attrs->values()) {
      const ObjectRef* object = std::get_if<ObjectRef>(&value);
      if (object && !(*object)->is_portable()) return false;
    }
    bool portable = true;
    for_each_graph(op.attrs, [&](const GraphRef& region) {
      portable = portable && is_portable(*region, seen);
    });
    if (!portable) return false;
  }
  return true;
}

}  // namespace

bool is_portable(const Graph& graph) {
  std::unordered_set<const Graph*> seen;
  return is_portable(graph, seen);
}

}  // namespace weft
