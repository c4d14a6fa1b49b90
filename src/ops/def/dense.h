// Constants that the core holds, as values of a program.
#pragma once

#include <memory>

#include "weft/build.h"
#include "weft/held.h"

namespace weft {

Val dense(Builder& b, const std::shared_ptr<const DenseConstant>& constant);

}  // namespace weft
