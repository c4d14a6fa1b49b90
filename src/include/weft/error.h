// SPDX-License-Identifier: Apache-2.0
// Errors of libweft. Kinds map one to one to the classes of python/weft/errors.py.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "weft/api.h"
#include "weft/text.h"

namespace weft {

enum class ErrorKind {
  kType,            // an operand or attribute of the wrong kind
  kDtype,           // dtypes that an op does not take, or that do not match
  kShape,           // shapes that do not fit
  kValue,           // an attribute out of range
  kIndex,           // an index out of bounds
  kParse,           // malformed text
  kDepth,           // graphs nested too deeply in each other
  kSharding,        // splits of arrays that do not go together
  kNotImplemented,  // a rule that an op lacks
  kInternal,        // a broken invariant of weft itself
  kInconclusive,    // what does not follow for all sizes that are symbols
};

// Where in a text something is wrong, from 1 on; 0 where no text is at fault.
struct TextPlace {
  size_t line = 0, column = 0;
};

class WEFT_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, TextPlace place = {})
      : std::runtime_error(message), kind_(kind), place_(place) {}
  ErrorKind kind() const { return kind_; }
  TextPlace place() const { return place_; }

 private:
  ErrorKind kind_;
  TextPlace place_;
};

// fail(kind, "[op] expected ", ..., "; got ", ...): throws Error with the parts joined.
template <typename... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, cat(parts...));
}

}  // namespace weft
