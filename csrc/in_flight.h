// Work that one thread does while others that need it wait: traces and compilations.
#pragma once

#include <memory>
#include <vector>

#include "core.h"
#include "trace.h"

namespace weft::py {

class InFlight {
 public:
  // Work of this thread. With `runs_user_code`, it may itself wait for a thread that waits for it,
  // in ways that cannot be seen (a lock, a join), so that waiting has an end.
  explicit InFlight(bool runs_user_code);
  ~InFlight() { finish(); }
  InFlight(const InFlight&) = delete;

  // Wakes those who wait. They look whether the result is there; after an error it is not.
  void finish();
  // Waits, without the interpreter's lock. False, and the work has to be done here too, if it is
  // this thread's own, if its thread waits for this one, or if nothing has moved for a while.
  bool wait();

 private:
  bool waits_for_this_thread() const;
  size_t steps() const;

  const void* thread_;
  std::vector<ContextRef>* stack_;  // of that thread: what it traces
  bool runs_user_code_;
  bool done_ = false;
};
using InFlightRef = std::shared_ptr<InFlight>;

}  // namespace weft::py
