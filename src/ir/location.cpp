// The process-wide table of source locations.
#include "weft/location.h"

#include <deque>
#include <mutex>

#include "support/index_table.h"
#include "weft/hash.h"
#include "weft/text.h"

namespace weft {

namespace {

struct LocTable {
  std::mutex mutex;
  std::deque<LocInfo> infos{LocInfo{}};  // infos[0] is the unknown location
  IndexTable index;

  static LocTable& get() {
    static LocTable& table = *new LocTable;  // never destroyed: see loc_info()
    return table;
  }
};

}  // namespace

Loc make_loc(std::string_view file, int line, std::string_view function, std::string_view scope) {
  uint64_t hash = hash_combine(hash_combine(hash_bytes(file), hash_bytes(function)),
                               static_cast<uint64_t>(line));
  if (!scope.empty()) hash = hash_combine(hash, hash_bytes(scope));
  LocTable& table = LocTable::get();
  std::unique_lock lock(table.mutex);
  Loc found = table.index.find(hash, [&](uint32_t i) {
    const LocInfo& info = table.infos[i];
    return info.line == line && info.file == file && info.function == function &&
           info.scope == scope;
  });
  if (found != IndexTable::kAbsent) return found;
  size_t count = table.infos.size();
  if (count >= kMaxScopedLocs && !scope.empty()) {
    lock.unlock();
    return make_loc(file, line, function);
  }
  if (count >= kMaxLocs) return kNoLoc;
  Loc loc = static_cast<Loc>(table.infos.size());
  table.infos.push_back({std::string(file), line, std::string(function), std::string(scope)});
  table.index.insert(hash, loc);
  return loc;
}

const LocInfo& loc_info(Loc loc) {
  LocTable& table = LocTable::get();
  std::lock_guard lock(table.mutex);
  loc = place_of(loc);
  return table.infos[loc < table.infos.size() ? loc : kNoLoc];
}

std::string loc_text(Loc loc) {
  if (loc == kNoLoc) return "<unknown>";
  const LocInfo& info = loc_info(loc);
  if (info.function.empty()) return cat(info.file, ":", info.line);
  return cat(info.file, ":", info.line, " (", info.function, ")");
}

}  // namespace weft
