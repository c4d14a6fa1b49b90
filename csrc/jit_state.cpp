// Looking entries up.

#include "jit_state.h"

namespace weft::py {

EntryRef find_entry(const JitState& s, const Signature& signature) {
  auto [first, last] = s.entries.equal_range(signature.hash);
  if (first == last) return nullptr;
  CacheItemRef only = first->second;
  if (std::next(first) == last) return only->signature == signature ? only->entry : nullptr;
  std::vector<CacheItemRef> candidates;
  for (auto it = first; it != last; ++it) candidates.push_back(it->second);
  for (const CacheItemRef& c : candidates)
    if (c->signature == signature) return c->entry;
  return nullptr;
}

void add_entry(JitState& s, Signature signature, EntryRef entry) {
  if (s.entries.size() >= kMaxEntries) s.entries.clear();
  uint64_t hash = signature.hash;
  s.entries.emplace(hash,
                    std::make_shared<CacheItem>(CacheItem{std::move(signature), std::move(entry)}));
}

}  // namespace weft::py
