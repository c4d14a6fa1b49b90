// The table of ops, and the list of the families that it starts with.
#include "weft/registry.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "ops/def/families.h"
#include "ops/def/symbols.h"
#include "weft/error.h"

namespace weft {

namespace {

// Edits (insert, delete, replace) that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

struct OpRegistry::Impl {
  mutable std::shared_mutex mutex;
  // Keys view the names inside the OpDefs.
  std::unordered_map<std::string_view, std::unique_ptr<OpDef>> ops;
  bool is_complete = false;  // what is added from then on is not built in
};

OpRegistry::OpRegistry() : impl_(std::make_unique<Impl>()) {}
OpRegistry::~OpRegistry() = default;

const OpDef& OpRegistry::add(OpDef def) {
  guard_symbols(def);
  auto owned = std::make_unique<OpDef>(std::move(def));
  const OpDef& added = *owned;
  std::unique_lock lock(impl_->mutex);
  owned->built_in = !impl_->is_complete;
  if (!impl_->ops.try_emplace(added.name, std::move(owned)).second)
    fail(ErrorKind::kValue, "expected a new op name; got ", added.name, ", which is taken");
  return added;
}

const OpDef* OpRegistry::find(std::string_view name) const {
  std::shared_lock lock(impl_->mutex);
  auto it = impl_->ops.find(name);
  return it == impl_->ops.end() ? nullptr : it->second.get();
}

const OpDef& OpRegistry::get(std::string_view name) const {
  if (const OpDef* op = find(name)) return *op;
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const OpDef* op : all()) {
    size_t distance = edit_distance(name, op->name);
    if (distance <= std::max<size_t>(2, name.size() / 3)) near.push_back({distance, op->name});
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (near.size() > 3) near.resize(3);
  Text hint;
  for (const auto& [distance, candidate] : near)
    hint << (hint.size() == 0 ? "; did you mean " : " or ") << candidate;
  fail(ErrorKind::kValue, "expected the name of an op; got ", name, hint.take());
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::shared_lock lock(impl_->mutex);
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : impl_->ops) ops.push_back(op.get());
  std::sort(ops.begin(), ops.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return ops;
}

OpRegistry& registry() {
  // Never destroyed: graphs that outlive main's statics still point to their OpDefs.
  static OpRegistry& built_in = *[] {
    auto* r = new OpRegistry;
    families::host(*r);
    families::control(*r);
    families::elementwise(*r);
    families::reduce(*r);
    families::products(*r);
    families::shape(*r);
    families::mesh(*r);
    r->impl_->is_complete = true;
    return r;
  }();
  return built_in;
}

const OpDef& registered_op(std::string_view name) { return registry().get(name); }

namespace {

const OpInfo* find_op(std::string_view name) { return registry().find(name); }

}  // namespace

GraphRef parse(std::string_view text) { return parse(text, find_op); }

AttrsRef parse_attrs(std::string_view text, const OpInfo& op) {
  return parse_attrs(text, op, find_op);
}

}  // namespace weft
