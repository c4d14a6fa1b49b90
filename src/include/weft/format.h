// SPDX-License-Identifier: Apache-2.0
// The text form of programs: the jaxpr notation.
//   { lambda ; a:i32[] b:i32[]. let c:i32[] = add a b in (c,) }
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"
#include "weft/op.h"

namespace weft {

struct PrintOptions {
  int width = 80;          // a program that fits is printed on one line
  bool locations = false;  // "  # file.py:3 (f)" after each op
};

WEFT_API std::string print(const Graph& graph, const PrintOptions& options = {});
// One op as it stands in a printed program, on one line and without its regions, for messages.
WEFT_API std::string print_op(const Graph& graph, const Op& op);
// The same laid out over lines as in a program, regions in place.
WEFT_API std::string print_op(const Graph& graph, const Op& op, const PrintOptions& options);
// The name of every value in the printed program; "_" for a result without a use.
WEFT_API std::vector<std::string> value_names(const Graph& graph);

using OpLookup = std::function<const OpInfo*(std::string_view name)>;
// Reads what print() writes: equal(*parse(print(g), lookup), *g). Result types are taken from the
// text and checked against inference; "# ..." is a comment. Throws kParse with line, column and
// what was expected.
WEFT_API GraphRef parse(std::string_view text, const OpLookup& lookup);
// Reads what stands between the brackets of an op, such as "axes=(0,)"; what is left out has its
// default. Throws kParse for text that is malformed, kType for an attribute that is missing.
WEFT_API AttrsRef parse_attrs(std::string_view text, const OpInfo& op, const OpLookup& lookup);

}  // namespace weft
