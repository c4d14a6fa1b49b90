// What a test can ask of the fake plugin, through the function `fake_plugin` of the library.
#pragma once

#include <cstdint>

#include "pjrt.h"

namespace weft::test {

struct FakePlugin {
  // What GetPjrtApi gives.
  const pjrt::Api* api;
  // Objects that were made and are not freed yet: clients, programs, buffers, events, errors.
  int64_t num_objects;
  // The call that fails, counted down to 0 by each that can; never below that.
  int64_t fail_in;
  // Of the last program: the device that its options name, and the inputs that it leaves alone.
  int64_t compiled_for;
  int64_t num_kept;
};

constexpr int kFakeDevices = 3;
constexpr int kFakeDeviceId = 40;  // of the first device; those of the others follow

}  // namespace weft::test
