// The user's source line that is being executed.
#pragma once

#include "references/core.h"

namespace weft::py {

// Innermost Python frame outside the framework's own files; kNoLoc if there is none.
Loc current_loc();
// Settings about promotion are about what users write, not about how weft's functions are composed
// (numpy_dtype_promotion, numpy_rank_promotion). An operation is a user's where a user's code
// calls it.
inline bool promotion_is_watched() {
  return settings() & (kStrictPromotion.mask() | kRankPromotion.mask());
}
bool runs_users_code();
// What a public function does with its arguments is its caller's; what further public functions
// that it calls do is not. `callee`: a function that is going to be called, null for none.
bool works_for_user(PyObject* callee = nullptr);
// Marks a public function, or its full name ("weft.numpy.linalg.norm") before it is there.
void mark_public(PyObject* function_or_name);
// Names the part of the program that follows in all locations made by this thread ("" for none);
// returns the name before.
std::string set_scope(std::string scope);
// Takes the directory whose files are the framework's when it is installed.
void init_location();

}  // namespace weft::py
