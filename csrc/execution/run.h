// Running compiled programs.
#pragma once

#include "execution/compile.h"

namespace weft::py {

// The arrays that a run made, owned; few of them without an allocation.
class Outputs {
 public:
  Outputs() = default;
  Outputs(const Outputs&) = delete;
  ~Outputs() {
    for (PyObject* o : objects_) Py_XDECREF(o);
  }
  void push_back(Ref o) { objects_.push_back(o.release()); }
  void reserve(size_t n) { objects_.reserve(n); }
  size_t size() const { return objects_.size(); }
  PyObject* operator[](size_t i) const { return objects_[i]; }
  void replace(size_t i, Ref o) { Ref::steal(std::exchange(objects_[i], o.release())); }
  // At most once for each.
  Ref take(size_t i) { return Ref::steal(std::exchange(objects_[i], nullptr)); }
  // Those from number n on, which are its no more.
  std::vector<Ref> take_from(size_t n) {
    std::vector<Ref> out;
    for (size_t i = n; i < objects_.size(); ++i) out.push_back(take(i));
    objects_.resize(n);
    return out;
  }

 private:
  SmallVector<PyObject*, 8> objects_;
};

// Runs; appends one Array per output to `out`. `inputs` are live Arrays of the right types. An
// output that is an input is an array of its own: either may be deleted or donated without the
// other.
void run(const Program& program, std::span<PyObject* const> inputs, bool committed, Outputs& out);

// What to wait for before the process ends. Runs of one thread end in order.
struct LastRun {
  bool any = false;
  Ref buffer;  // a small result of the last run; unset if all were large
};
LastRun& last_run();

}  // namespace weft::py
