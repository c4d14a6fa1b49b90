// All state changes under the interpreter's lock; the mutex only makes the condition variable
// right.

#include "tracing/in_flight.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

namespace weft::py {
namespace {

// How long a trace may stand still before those who wait do its work themselves. It costs a trace
// made twice, and spares a deadlock.
constexpr std::chrono::milliseconds kPatience{2000};
constexpr std::chrono::milliseconds kSlice{20};

std::mutex& mutex() {
  static auto* m = new std::mutex;
  return *m;
}
std::condition_variable& changed() {
  static auto* c = new std::condition_variable;
  return *c;
}

// What each waiting thread waits for.
std::unordered_map<const void*, const InFlight*>& waiting() {
  static auto* w = new std::unordered_map<const void*, const InFlight*>;
  return *w;
}

const void* this_thread() { return &context_stack(); }

}  // namespace

InFlight::InFlight(bool runs_user_code)
    : thread_(this_thread()), stack_(&context_stack()), runs_user_code_(runs_user_code) {}

void InFlight::finish() {
  if (done_) return;
  {
    std::lock_guard lock(mutex());
    done_ = true;
  }
  changed().notify_all();
}

bool InFlight::waits_for_this_thread() const {
  const InFlight* work = this;
  while (work->thread_ != this_thread()) {
    auto next = waiting().find(work->thread_);
    if (next == waiting().end()) return false;
    work = next->second;
  }
  return true;
}

// Changes while the thread gets on with its traces.
size_t InFlight::steps() const {
  size_t n = 0;
  for (const ContextRef& c : *stack_) n += 1 + c->builder.num_ops();
  return n;
}

bool InFlight::wait() {
  using Clock = std::chrono::steady_clock;
  if (!done_ && waits_for_this_thread()) return false;
  struct Waiting {
    explicit Waiting(const InFlight* work) { waiting()[this_thread()] = work; }
    ~Waiting() { waiting().erase(this_thread()); }
  } noted(this);
  size_t last_steps = steps();
  Clock::time_point moved = Clock::now();
  while (!done_) {
    PyThreadState* state = PyEval_SaveThread();
    {
      std::unique_lock lock(mutex());
      changed().wait_for(lock, kSlice, [&] { return done_; });
    }
    PyEval_RestoreThread(state);
    check(PyErr_CheckSignals());
    if (done_) break;
    if (size_t now = steps(); now != last_steps) {
      last_steps = now;
      moved = Clock::now();
    } else if (runs_user_code_ && Clock::now() - moved > kPatience) {
      return false;
    }
  }
  return true;
}

}  // namespace weft::py
