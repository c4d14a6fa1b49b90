// The user's source line that is being executed.
#pragma once

#include "core.h"

namespace weft::py {

// Innermost Python frame outside the framework's own files; kNoLoc if there is none.
Loc current_loc();
// Names the part of the program that follows in all locations made by this thread ("" for none);
// returns the name before.
std::string set_scope(std::string scope);
// Takes the directory whose files are the framework's when it is installed.
void init_location();

}  // namespace weft::py
