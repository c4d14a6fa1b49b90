// Open-addressing table from a hash to an index into storage that the user of the table owns. The
// building block of interning: the caller says whether the element at an index is the one sought.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

class IndexTable {
 public:
  static constexpr uint32_t kAbsent = 0xffffffffu;

  // The index for which equals(index) holds, among those inserted with this hash.
  template <typename Equals>
  uint32_t find(uint64_t hash, Equals&& equals) const {
    if (slots_.empty()) return kAbsent;
    size_t mask = slots_.size() - 1;
    for (size_t i = tag(hash) & mask; slots_[i].index != kAbsent; i = (i + 1) & mask) {
      if (slots_[i].tag == tag(hash) && equals(slots_[i].index)) return slots_[i].index;
    }
    return kAbsent;
  }

  void insert(uint64_t hash, uint32_t index) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    place({tag(hash), index});
    ++count_;
  }

  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  // Half of the hash is kept: tables of large graphs are bound by memory.
  struct Slot {
    uint32_t tag = 0;
    uint32_t index = kAbsent;
  };
  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash); }

  void place(Slot slot) {
    size_t mask = slots_.size() - 1;
    size_t i = slot.tag & mask;
    while (slots_[i].index != kAbsent) i = (i + 1) & mask;
    slots_[i] = slot;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : 2 * old.size(), Slot{});
    for (const Slot& slot : old) {
      if (slot.index != kAbsent) place(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace weft
