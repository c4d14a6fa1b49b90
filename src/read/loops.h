// Loops of known length among while loops, which is how other compilers' front ends write them.
#pragma once

#include "weft/op_def.h"

namespace weft::reader {

// The parts of a `while`: what condition and body take from outside, and what goes around.
struct WhileLoop {
  GraphRef condition, body;
  Vals cond_consts, body_consts, carry;
};

// The results of the loop, made by a `scan`, which has derivatives in reverse; empty if it is not
// known how often the loop runs.
Vals as_scan(Builder& b, const WhileLoop& loop);

}  // namespace weft::reader
