// What a program makes of constants, arrays that are the same at every call: made by a program of
// its own and kept for as long as the arrays live.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "execution/executable.h"
#include "weft/constants.h"

namespace weft::py {

class Prologue {
 public:
  // `reads`: the inputs of the whole program that it takes.
  Prologue(ExecutableRef program, std::vector<uint32_t> inputs, const ConstantSplit& plan);
  ~Prologue() { release(); }
  Prologue(const Prologue&) = delete;

  // What was kept for these inputs of the program, a list of buffers; null if nothing is.
  PyObject* find(std::span<PyObject* const> inputs) {
    if (!kept_) return nullptr;
    for (size_t i = 0; i < reads.size(); ++i)
      if (buffer_of(inputs[reads[i]]) != made_of_[i]) return nullptr;
    last_use_ = ++clock_;
    return kept_.get();
  }
  // Keeps results for these inputs until one of them is deleted, and as long as there is room.
  void keep(std::span<PyObject* const> inputs, const Ref& results);
  void release();
  bool is_kept() const { return static_cast<bool>(kept_); }

  const ExecutableRef executable;
  const std::vector<uint32_t> reads;
  const int64_t bytes;   // of the results
  const double seconds;  // that each call is spared, by estimate

 private:
  static PyObject* buffer_of(PyObject* array);

  static inline uint64_t clock_ = 0;
  Ref kept_;
  std::vector<PyObject*> made_of_;  // buffers: addresses alone, so that deleting frees them
  std::vector<Ref> watches_;        // weak references to them; when one dies, all goes
  uint64_t last_use_ = 0;
};

// How many bytes all programs together may keep; 0: none does, and none is made to.
int64_t max_constants_kept();
void set_max_constants_kept(int64_t bytes);
int64_t constants_kept();
void release_constants();

}  // namespace weft::py
