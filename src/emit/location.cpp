// Source locations in emitted text. XLA turns loc("f"("file.py":12:0)) into the metadata op_name,
// source_file and source_line of the instructions it makes.
#include "emit/writer.h"

namespace weft {

void LocationTable::append_reference(Text& out, Loc loc) {
  loc = place_of(loc);
  if (loc == kNoLoc) {
    out << " loc(unknown)";
    return;
  }
  auto [it, added] = numbers_.try_emplace(loc, static_cast<uint32_t>(locs_.size()));
  if (added) locs_.push_back(loc);
  out << " loc(#loc" << it->second << ')';
}

void LocationTable::append_definitions(Text& out) const {
  for (size_t i = 0; i < locs_.size(); ++i) {
    const LocInfo& where = loc_info(locs_[i]);
    std::string name = where.scope.empty() ? where.function : cat(where.scope, "/", where.function);
    out << "#loc" << i << " = loc(" << mlir_string(name) << '(' << mlir_string(where.file) << ':'
        << where.line << ":0))\n";
  }
}

}  // namespace weft
