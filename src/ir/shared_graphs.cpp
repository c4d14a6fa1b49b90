// Counting the uses of region graphs, and naming the shared ones.
#include "ir/shared_graphs.h"

#include <unordered_set>

#include "weft/hash.h"

namespace weft {

namespace {

constexpr const char* kUnnamed = "jaxpr";

std::string label_of(const AttrsRef& attrs) {
  int i = attrs->schema().find("name");
  if (i < 0) return kUnnamed;
  const std::string* name = std::get_if<std::string>(&attrs->values()[static_cast<size_t>(i)]);
  return name ? *name : kUnnamed;
}

// "<lambda>" -> "lambda": an identifier.
std::string identifier(const std::string& label) {
  std::string name;
  for (char c : label) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (letter || (!name.empty() && c >= '0' && c <= '9')) name.push_back(c);
  }
  return name.empty() ? kUnnamed : name;
}

}  // namespace

SharedGraphs::SharedGraphs(const Graph& program) {
  entries_.push_back({&program, "", 1, {}});
  visit(program, 0);
  defined_.resize(entries_.size());
  for (size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].uses > 1) define(i);
  }
  names_.resize(entries_.size());
  std::unordered_set<std::string> taken{"None"};
  std::unordered_map<std::string, int> next_suffix;
  for (size_t i = 1; i < entries_.size(); ++i) {
    if (!defined_[i]) continue;
    std::string base = identifier(entries_[i].label);
    std::string name = base;
    while (!taken.insert(name).second) name = base + std::to_string(++next_suffix[base]);
    names_[i] = name;
    definitions_.push_back({name, entries_[i].graph});
  }
}

const std::string* SharedGraphs::name(const Graph* graph) const {
  auto it = by_pointer_.find(graph);
  return it == by_pointer_.end() || names_[it->second].empty() ? nullptr : &names_[it->second];
}

void SharedGraphs::visit(const Graph& graph, size_t entry) {
  for (const Op& op : graph.ops()) {
    if (!op.attrs) continue;
    for_each_graph(op.attrs, [&](const GraphRef& region) {
      size_t found = entry_of(region, label_of(op.attrs));
      ++entries_[found].uses;
      entries_[entry].regions.push_back(found);
    });
  }
}

size_t SharedGraphs::entry_of(const GraphRef& graph, const std::string& label) {
  auto known = by_pointer_.find(graph.get());
  if (known != by_pointer_.end()) return known->second;
  uint64_t key = hash_combine(graph->structural_hash(), hash_bytes(label));
  if (label != kUnnamed) {
    auto [first, last] = by_structure_.equal_range(key);
    for (auto it = first; it != last; ++it) {
      const Entry& entry = entries_[it->second];
      if (entry.label == label && equal(*entry.graph, *graph)) {
        by_pointer_.emplace(graph.get(), it->second);
        return it->second;
      }
    }
  }
  size_t fresh = entries_.size();
  entries_.push_back({graph.get(), label, 0, {}});
  by_pointer_.emplace(graph.get(), fresh);
  by_structure_.emplace(key, fresh);
  visit(*graph, fresh);
  return fresh;
}

// What a shared graph uses is used once per use of that graph, so it is shared as well.
void SharedGraphs::define(size_t entry) {
  if (defined_[entry]) return;
  defined_[entry] = true;
  for (size_t region : entries_[entry].regions) define(region);
}

}  // namespace weft
