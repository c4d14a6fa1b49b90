// What a JitFunction is made of: its options and the entries that it has traced.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core.h"
#include "jit.h"
#include "jit_signature.h"
#include "lru_table.h"
#include "tree_memo.h"

namespace weft::py {

constexpr size_t kMaxEntries = 4096;

struct JitState {
  Ref function;
  std::string name;
  SmallVector<int64_t, 4> static_argnums;
  Ref static_argnums_object;  // the same as a tuple, for messages
  std::vector<Ref> static_argnames;
  SmallVector<int64_t, 4> donate_argnums;
  std::vector<Ref> donate_argnames;
  bool is_inline = false;
  bool library = false;  // composite(): ops carry the caller's location
  bool keep_unused = false;
  LruTable<Signature, EntryRef> entries{kMaxEntries};
  TreeMemo memo;
  uint64_t hits = 0, misses = 0;
};

// The entry traced for a signature; null if there is none.
EntryRef find_entry(JitState& s, const Signature& signature);
void add_entry(JitState& s, Signature signature, EntryRef entry);

}  // namespace weft::py
