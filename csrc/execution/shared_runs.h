// Programs on devices of several processes: each process starts the same ones, in the same order.
// Where one does not, XLA waits for ever, so what is started is compared: the first start of a
// program by all processes at once, before any of them does; later ones by a thread of
// weft.runtime.processes, from the log that is kept here.
#pragma once

#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "conversions/placement.h"
#include "references/core.h"
#include "references/function_ref.h"

namespace weft::py {

class SharedRuns {
 public:
  // Of a set of devices; null for those of this process alone. It lives as long as the process.
  static SharedRuns* on(const DeviceSet& devices);

  // To be called before a program starts. The same program has the same fingerprint in every
  // process; describe() names it in messages.
  void begin(uint64_t fingerprint, FunctionRef<std::string()> describe);

  // How many programs have started, and a hash of the order of the first `count` of them; 0 if
  // that is not known any more.
  uint64_t count() const { return count_; }
  uint64_t order(uint64_t count) const;
  const DeviceSet& devices() const { return devices_; }

  // Every set there is.
  static const std::deque<SharedRuns>& all();
  // The other processes are gone: from now on the Python side is asked before every start.
  static void end();

  explicit SharedRuns(const DeviceSet& devices) : devices_(devices), log_(kLog) {}

 private:
  static constexpr size_t kLog = 1 << 14;

  const DeviceSet& devices_;
  std::unordered_set<uint64_t> started_;
  std::vector<uint64_t> log_;  // the last ones, at their numbers modulo kLog
  uint64_t count_ = 0, order_ = 0;
};

}  // namespace weft::py
