// What a CPU takes for a program, by XLA's runtime, in seconds: the constants of the passes' cost
// models. tools/bench/kernels.py measures those of small programs; those of large ones are orders
// of magnitude.
#pragma once

#include "weft/op_def.h"

namespace weft {

inline double bytes_of(TypeRef type) { return static_cast<double>(type->num_bytes()); }

}  // namespace weft

namespace weft::machine {

// An operation on two numbers in a loop over arrays; a function such as exp of many numbers, of as
// many as are in small arrays, and of those a dear one such as cos; a byte of memory, one in the
// caches, and what fits there.
inline constexpr double kFlop = 5e-11;
inline constexpr double kFunctionOfMany = 5e-10, kFunction = 1e-9, kDearFunction = 2e-9;
inline constexpr double kByte = 1.25e-10, kCachedByte = 2.5e-11, kCacheBytes = 1 << 15;
// A byte of what ops move one element after the other: gathers, scatters and sorts.
inline constexpr double kMovedByte = 1e-9;

// A call of a program by the user; a program that is a step of another, and an array that it is
// handed or gives.
inline constexpr double kCall = 5e-6, kProgram = 2e-5, kProgramArray = 4e-6;

// A small program is run as a sequence of thunks, most of which run a kernel. What one takes
// besides its work; a branch, and an iteration of a loop, besides what is in them.
inline constexpr double kThunk = 2.8e-8, kBranch = 8e-8, kTrip = 2.9e-8;
// Of more thunks than these, of which one reads or writes a buffer of more bytes, XLA's runtime
// keeps account of what may run at once. Then each takes longer.
inline constexpr double kMaxInOrder = 8, kSharedThunk = 1.3e-7;
inline constexpr int64_t kMaxBytesInOrder = 512;
// The same of the pieces of a kernel that XLA emits as one function, which itself is a thunk; an
// array that such a kernel is handed or gives.
inline constexpr double kBorderArray = 1.5e-8;
inline constexpr double kStep = 4e-9, kStepOfBranch = 5e-9, kStepOfTrip = 6e-9;
// A call of a library for a product or a factorisation, and an operation on two numbers in it.
inline constexpr double kLibraryCall = 6e-7, kLibraryFlop = 1.5e-11;
// The same of LAPACK, for matrices of up to 8 rows.
inline constexpr double kSolverCall = 1e-6, kSolverFlop = 2e-9;
// How many numbers of 32 bits are computed at once, and how many times as many in loops that LLVM
// unrolls; what an operation and a function such as exp take of a number that is left over.
inline constexpr int kVector = 8, kUnrolledVectors = 8;
inline constexpr double kFlopAlone = 1e-10, kFunctionAlone = 4e-9;
// What unrolled loops spare of an operation in a sum, of others, and of an element for each array
// that may hold it; of an element of a long row that is put together of parts along its axis, and
// across rows, where they lose.
inline constexpr double kUnrolledSum = 1e-9, kUnrolledFlop = 2e-11, kUnrolledPiece = 5e-10;
inline constexpr double kUnrolledJoin = 2.5e-10, kUnrolledJoinAcross = -1.2e-10;

// A thunk of a large program, which threads share, and an iteration of a loop of such; an array
// that a program reads besides; a slice that an iteration reads or writes of a stacked array, in
// place of an array of its own.
inline constexpr double kLargeThunk = 2e-7, kLargeTrip = 2e-7, kArray = 1e-7, kSlice = 3e-8;

// XLA makes kernels of loops that read and write fewer bytes in an iteration, by itself, if no op
// is a call of a library. A kernel in such a loop would keep it from that.
inline constexpr int64_t kBytesOfOwnKernel = 1024;
// Elements of arrays over which loops are unrolled anyway, as XLA or a library writes them so.
inline constexpr double kMostUnrolled = 1 << 14;
// Rows that are put together of parts, of fewer numbers, gain nothing from unrolled loops.
inline constexpr int64_t kShortestJoined = 16;
// To compile a program, and each op of it.
inline constexpr double kCompile = 1e-2, kCompileOp = 2e-3;

// Of operations alone, and with the bytes that they read and write, of large arrays.
inline double seconds_of_work(const Cost& cost, double function) {
  return cost.flops * kFlop + cost.transcendentals * function;
}
inline double seconds(const Cost& cost) {
  return seconds_of_work(cost, kFunctionOfMany) + cost.bytes * kByte;
}

}  // namespace weft::machine
