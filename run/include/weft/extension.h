// SPDX-License-Identifier: Apache-2.0
// Extensions: passes and ops in a shared library of the user's, which a program that embeds weft,
// weft-opt for one, loads.
//
//   #include "weft/extension.h"
//   #include "weft/weft.h"
//
//   WEFT_EXTENSION() {
//     weft::add_pass({"mine", "What it does.", run});
//     weft::registry().add(my_op());
//   }
//
//   c++ -std=c++20 -shared -fPIC mine.cpp -I$(python -m weft --include-dir) -o mine.so
//   weft-opt --load=./mine.so --passes=mine program.ir
//
// An extension is not linked with libweft: what it calls is in the program that loads it, which has
// to export its symbols (CMake: ENABLE_EXPORTS). Both are compiled with the same headers and the
// same ABI of C++, which is checked as far as sizes tell.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/attr.h"
#include "weft/graph.h"
#include "weft/op_def.h"
#include "weft/passes.h"
#include "weft/type.h"

namespace weft {

// What extensions and the programs that load them have in common.
using ExtensionAbi = std::array<uint32_t, 13>;
inline constexpr ExtensionAbi kExtensionAbi = {
    13,  // of these numbers
    1,   // goes up with changes that no size tells
#ifdef __GXX_ABI_VERSION
    __GXX_ABI_VERSION,
#else
    0,
#endif
    sizeof(std::string),
    sizeof(std::vector<bool>),
    sizeof(Attr),
    sizeof(AttrSpec),
    sizeof(Type),
    sizeof(Graph),
    sizeof(Op),
    sizeof(OpDef),
    sizeof(Pass),
    sizeof(PassOptions),
};

// Opens an extension, which stays open, and runs what it registers; one that is open already is
// left alone. Throws kValue where it cannot be opened, is no extension, or was compiled with other
// headers, and what it throws itself.
WEFT_API void load_extension(const std::string& path);

}  // namespace weft

#define WEFT_EXTENSION()                                             \
  extern "C" {                                                       \
  WEFT_API extern const weft::ExtensionAbi weft_extension_abi;       \
  const weft::ExtensionAbi weft_extension_abi = weft::kExtensionAbi; \
  WEFT_API void weft_extension();                                    \
  }                                                                  \
  void weft_extension()
