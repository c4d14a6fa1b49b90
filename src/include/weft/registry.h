// SPDX-License-Identifier: Apache-2.0
// The table of ops. Families are registered explicitly (src/ops/def/registry.cpp lists them); users
// add ops of their own before first use. OpDefs live as long as the process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/format.h"
#include "weft/op_def.h"

namespace weft {

class WEFT_API OpRegistry {
 public:
  // Throws kValue if the name is taken.
  const OpDef& add(OpDef def);
  const OpDef* find(std::string_view name) const;
  // Throws kValue with the nearest names when there is no such op.
  const OpDef& get(std::string_view name) const;
  std::vector<const OpDef*> all() const;  // sorted by name

  OpRegistry();
  ~OpRegistry();

 private:
  friend WEFT_API OpRegistry& registry();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The process-wide registry with all built-in families. Thread-safe.
WEFT_API OpRegistry& registry();

// parse() and parse_attrs() with the registry's ops.
WEFT_API GraphRef parse(std::string_view text);
WEFT_API AttrsRef parse_attrs(std::string_view text, const OpInfo& op);

}  // namespace weft
