// SPDX-License-Identifier: Apache-2.0
// Programs as data for those that draw them.
#pragma once

#include <span>
#include <string>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

// Programs, and the graphs that their ops hold, as one JSON object. Each distinct graph, type,
// location, literal and kind of op stands in it once, and is referred to by its number.
//
//   types      per type [text, dtype, bytes]
//   places     per location [file, line, function, scope, of]; `of` is "", "tangent", "cotangent"
//   literals   texts of numbers in the programs, "2.0:f32[]"
//   kinds      per kind of op [name, attributes, graphs, operands, results, flops,
//              transcendentals, bytes, nanoseconds]: the text of its attributes without graphs, cut
//              where long; pairs of a label and a graph's number; how many operands; numbers of
//              types; what one run takes, with all that it runs, on a core of a CPU
//              (figures_of_ops)
//   graphs     per graph an object:
//     inputs     numbers of types; the first `consts` of them are constvars
//     ops        kind, place and operands of each op, one op after the other. Values are numbered:
//                inputs, then results in order. An operand x > 0 is the value with the number of
//                the op's first result less x, an operand x < 0 is literal -x - 1.
//     outputs    numbers of values; x < 0 is literal -x - 1
//     live       per op, how many more bytes are live while it runs than during the op before
//     peak       number of the op while which most is live
//     held       numbers of the values that are live then
//     critical   numbers of the ops on the chain that takes longest, each less the one before
//     chain      nanoseconds of that chain
//   programs   numbers of the programs' graphs
WEFT_API std::string view_json(std::span<const GraphRef> programs);

}  // namespace weft
