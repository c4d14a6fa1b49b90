// What a CPU takes for a program, by XLA's runtime, in seconds: the constants of the cost model of
// kernels. tools/bench/kernels.py measures such constants.
#pragma once

namespace weft::machine {

// A program is run as a sequence of thunks, most of which run a kernel. What one takes besides its
// work; a branch, and an iteration of a loop, besides what is in them.
inline constexpr double kThunk = 2.8e-8, kBranch = 8e-8, kTrip = 2.9e-8;
// The same of the pieces of a kernel that XLA emits as one function.
inline constexpr double kStep = 4e-9, kStepOfBranch = 5e-9, kStepOfTrip = 6e-9;
// A call of a library for a product or a factorisation, and an operation on two numbers in it.
inline constexpr double kLibraryCall = 6e-7, kLibraryFlop = 1.5e-11;
// An operation on two numbers in a loop over arrays; a function such as exp; a byte in the caches.
inline constexpr double kFlop = 4e-11, kFunction = 1e-9, kCachedByte = 2.5e-11;
// A function such as exp, of a number that is left over when others are computed at once, as
// kernels do with those that fill no vector.
inline constexpr double kFunctionAlone = 4e-9;
inline constexpr int kVector = 16;  // numbers of 32 bits

}  // namespace weft::machine
