// The log of programs that several processes start.

#include "execution/shared_runs.h"

#include <algorithm>
#include <utility>

#include "arrays/array.h"
#include "references/hooks.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

std::deque<SharedRuns>& table() {
  static auto* all = new std::deque<SharedRuns>;
  return *all;
}
bool ended = false;

}  // namespace

SharedRuns* SharedRuns::on(const DeviceSet& devices) {
  if (devices.is_local) return nullptr;
  for (SharedRuns& known : table())
    if (&known.devices_ == &devices) return &known;
  return &table().emplace_back(devices);
}

const std::deque<SharedRuns>& SharedRuns::all() { return table(); }
void SharedRuns::end() { ended = true; }

void SharedRuns::begin(uint64_t fingerprint, FunctionRef<std::string()> describe) {
  // First, so that others can see what this process is at.
  uint64_t before = std::exchange(order_, hash_combine(order_, fingerprint));
  log_[++count_ % kLog] = order_;
  if (!ended && started_.contains(fingerprint)) return;
  try {
    Ref numbers = to_tuple(Dims(devices_.numbers.begin(), devices_.numbers.end()));
    Ref what = to_text(cat(describe(), " (", fingerprint, ")"));
    Ref number = Ref::checked(PyLong_FromUnsignedLongLong(count_ - 1));
    Ref::checked(PyObject_CallFunctionObjArgs(hooks.first_start.get(), numbers.get(), number.get(),
                                              what.get(), nullptr));
    started_.insert(fingerprint);
  } catch (...) {
    order_ = before;
    --count_;
    throw;
  }
}

uint64_t SharedRuns::order(uint64_t count) const {
  return count && count <= count_ && count + kLog > count_ ? log_[count % kLog] : 0;
}

}  // namespace weft::py
