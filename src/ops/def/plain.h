// Programs for other compilers than XLA: of StableHLO's ops alone.
#pragma once

#include <string_view>

namespace weft {

// Whether a program for the "platform" has neither custom calls nor ops of CHLO: what has a call or
// such an op on other platforms is written in terms of other ops, or refused.
inline bool has_plain_ops_only(std::string_view platform) {
  return platform == "portable" || platform == "iree";
}

}  // namespace weft
