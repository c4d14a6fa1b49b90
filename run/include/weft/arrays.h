// SPDX-License-Identifier: Apache-2.0
// Arrays in files, by name: weights to start from, and those that were learnt. The files are those
// of safetensors (https://github.com/huggingface/safetensors).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/type.h"

namespace weft {

struct NamedArray {
  std::string name;
  TypeRef type;
  std::vector<char> bytes;  // as Session::put takes them
};

// In the order in which the file has them. Throws kValue where the file cannot be read, and kParse
// for one that is malformed or has a dtype that weft does not.
WEFT_API std::vector<NamedArray> read_arrays(const std::string& path);
// Replaces the file. Throws kValue where it cannot be written, a name is there twice or bytes do
// not match a type, and kDtype for dtypes that such files do not have.
WEFT_API void write_arrays(const std::string& path, std::span<const NamedArray> arrays);
// Throws kValue, with the names that there are, where none is called that.
WEFT_API const NamedArray& find_array(std::span<const NamedArray> arrays, std::string_view name);

}  // namespace weft
