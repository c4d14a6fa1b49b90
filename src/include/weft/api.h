// SPDX-License-Identifier: Apache-2.0
// Symbol visibility of libweft.
#pragma once

#if defined(_WIN32)
#define WEFT_API
#else
#define WEFT_API __attribute__((visibility("default")))
#endif
