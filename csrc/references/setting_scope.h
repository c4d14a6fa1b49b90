// A setting that is another within a scope.
#pragma once

#include "references/core.h"

namespace weft::py {

// Turns settings of this thread off while it lives.
class Without {
 public:
  explicit Without(uint64_t mask)
      : mask_(mask), set_(thread_config().set & mask), word_(thread_config().word & mask) {
    change(mask, 0);
  }
  ~Without() { change(set_, word_); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  void change(uint64_t set, uint64_t word) const {
    ThreadConfig& own = thread_config();
    own.set = (own.set & ~mask_) | set;
    own.word = (own.word & ~mask_) | word;
  }

  uint64_t mask_, set_, word_;
};

}  // namespace weft::py
