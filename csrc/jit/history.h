// Why calls of a jit function were traced and compiled, and what that took: what `f.explain()` and
// the setting explain_cache_misses tell. Nothing here is part of the way of a call that finds its
// program; texts are made when they are asked for.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "execution/compile.h"
#include "jit/signature.h"
#include "references/core.h"

namespace weft::py {

// (operations, seconds that it saves, seconds without it, the user's line or None).
Ref kernel_object(const Kernels::Kernel& kernel);

// A program made of a trace.
struct Compilation {
  std::string why;  // it was compiled again; empty for the first program of the trace
  CompileCost cost;
};

// A call that had to be traced, and what became of the trace.
struct Miss {
  enum Cause : uint8_t {
    kFirst,      // nothing was traced of the function
    kFresh,      // nor this; but of others with the same code
    kCleared,    // the caches were cleared
    kForgotten,  // there was a trace, which made room for others
    kOuter,      // there was one, good for the trace only in which it was made
    kLeaked,     // there was one, whose tracers outlived it
    kFailed,     // there was one, which raised an error
    kDiffers,    // from the closest signature
    kStored,     // another process had traced it
    kRunsOnly,   // it was found so, without rules of derivatives, which it needs within a trace
  };
  struct Leaf {
    size_t number;
    uint64_t now, before;
  };
  struct Static {
    Ref key, now, before;
  };
  struct Texts {
    std::string what, now, before;
  };
  static constexpr size_t kMaxDifferences = 8;
  static constexpr size_t kMaxCompilations = 16;

  Cause cause = kFirst;
  Loc loc = kNoLoc;     // the user's line
  uint64_t hash = 0;    // of the signature
  uint64_t others = 0;  // kFresh: how many
  size_t num_leaves = 0;
  // Of kDiffers.
  size_t leaves_before = 0, num_different = 0;
  std::vector<Leaf> leaves;  // the first that differ
  bool other_structure = false;
  Ref structure, structure_before;
  std::vector<Static> statics;
  std::vector<Texts> texts;  // what else differs
  std::string note;          // of the store, why it did not help or will not
  // Of the trace.
  double seconds = -1;  // negative: it raised an error, or is not at its end
  size_t ops = 0;
  bool is_nested = false;  // made within another trace
  bool is_kept = true;     // for later calls of the signature
  bool has_leaked = false;
  std::vector<Compilation> compilations;

  int traverse(visitproc visit, void* arg) const;
};
using MissRef = std::shared_ptr<Miss>;

// The last misses of one function, oldest first.
class History {
 public:
  static constexpr size_t kMax = 64;

  void add(MissRef miss);
  void clear();
  size_t size() const { return misses_.size(); }
  // Whether calls of a signature with this hash were traced before; null if they were not.
  const Miss* last(uint64_t hash) const;
  bool was_cleared() const { return was_cleared_; }
  size_t dropped() const { return dropped_; }
  std::vector<MissRef> all() const { return {misses_.begin(), misses_.end()}; }
  int traverse(visitproc visit, void* arg) const;

 private:
  std::deque<MissRef> misses_;
  size_t dropped_ = 0;
  bool was_cleared_ = false;
};

// What makes `now` another signature than `before`.
void compare(Miss& miss, const Signature& now, const Signature& before);
// How many functions with the code of this one were traced before. With `add`, this one counts too.
uint64_t functions_of_same_code(PyObject* function, bool add);

// As Python sees it, a dict; see python/weft/_explain.py.
Ref miss_object(const Miss& miss);
Ref compilation_object(const Compilation& compilation);

}  // namespace weft::py
