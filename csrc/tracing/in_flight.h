// Work that one thread does while others that need it wait: traces and compilations.
#pragma once

#include <memory>
#include <vector>

#include "references/core.h"
#include "tracing/trace.h"

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

// Work in progress, by the key of what it makes.
template <typename Key>
class InFlightTable {
  struct Work {
    Key key;
    InFlight state;
  };
  using WorkRef = std::shared_ptr<Work>;

 public:
  // Waits for work on a key that `equals` accepts. False if there is none, or if it has to be done
  // here too; else the result is to be looked for again.
  template <typename Equals>
  bool wait(Equals&& equals) const {
    auto candidates = all_;  // comparing may run Python code
    for (const WorkRef& work : candidates)
      if (equals(std::as_const(work->key))) return work->state.wait();
    return false;
  }

  // Work of this thread for as long as the object lives.
  class Begun {
   public:
    Begun(InFlightTable& table, Key key, bool runs_user_code)
        : table_(table), work_(new Work{std::move(key), InFlight(runs_user_code)}) {
      table_.all_.push_back(work_);
    }
    Begun(const Begun&) = delete;
    ~Begun() {
      std::erase(table_.all_, work_);
      work_->state.finish();
    }

   private:
    InFlightTable& table_;
    WorkRef work_;  // destroyed when the table is whole again
  };

 private:
  std::vector<WorkRef> all_;
};

}  // namespace weft::py
