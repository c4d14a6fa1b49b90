// What a builder throws that is given a value that is none.
#pragma once

#include "weft/error.h"

namespace weft {

struct MissingValue final : Error {
  MissingValue() : Error(ErrorKind::kInternal, "expected a value of this builder; got none") {}
};

}  // namespace weft
