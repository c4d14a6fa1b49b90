// SPDX-License-Identifier: Apache-2.0
// Over which axes of a mesh the values of a program that is being built vary: what the transform
// `shard` finds of a graph, found of a program as far as it goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/builder.h"
#include "weft/graph_rules.h"

namespace weft {

class WEFT_API Varying {
 public:
  // `program` must outlive it. Carries of loops and results of branches are held to what a user has
  // to write (ShardOptions::strict).
  Varying(const GraphBuilder& program, std::vector<std::string> axes);
  ~Varying();
  const std::vector<std::string>& axes() const;
  // Of an input; those that nothing is said of vary over no axis.
  void set(Value input, AxisSet set);
  // Applies the rules to the ops that the program has got since, up to the one that makes `v`.
  // Throws what they do, once per op; the results count as such that vary over no axis then.
  AxisSet of(Value v);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
