// Looking entries up.

#include "jit_state.h"

namespace weft::py {

EntryRef find_entry(JitState& s, const Signature& signature) {
  auto known = s.entries.find(signature.hash, [&](const Signature& k) { return k == signature; });
  return known ? *known : nullptr;
}

void add_entry(JitState& s, Signature signature, EntryRef entry) {
  uint64_t hash = signature.hash;
  s.entries.insert(hash, std::move(signature), std::move(entry));
}

}  // namespace weft::py
