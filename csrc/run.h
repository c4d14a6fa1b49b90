// Running compiled programs.
#pragma once

#include "compile.h"

namespace weft::py {

// Runs; appends one owned Array per output to `out`. `inputs` are live Arrays of the right types.
void run(const Program& program, std::span<PyObject* const> inputs, bool committed,
         std::vector<PyObject*>& out);

// What to wait for before the process ends. Runs of one thread end in order.
struct LastRun {
  bool any = false;
  Ref buffer;  // a small result of the last run; unset if all were large
};
LastRun& last_run();

}  // namespace weft::py
