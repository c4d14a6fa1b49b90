# What a build needs: a C++20 compiler, and memory for each compilation that runs. What is missing is
# told in one sentence, before anything is compiled. Enables the language CXX.

string(CONCAT weft_way_out "install one (Debian, Ubuntu: apt install g++, Fedora: dnf install gcc-c++, "
  "conda: conda install -c conda-forge cxx-compiler) and name it in the environment variable CXX if it "
  "is not the default, or install a wheel of weft, which needs no compiler.")

include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
  message(FATAL_ERROR "weft needs a C++20 compiler such as GCC 11, and there is no C++ compiler "
    "here that works: ${weft_way_out}")
endif()
enable_language(CXX)

# A compiler may be known to take C++20, and be without the parts of the library that weft uses.
if(NOT weft_has_cxx20 AND cxx_std_20 IN_LIST CMAKE_CXX_COMPILE_FEATURES)
  file(WRITE ${CMAKE_BINARY_DIR}/cxx20.cpp [[
#include <bit>
#include <charconv>
#include <numbers>
#include <span>
struct Options {
  double number = 0;
  bool operator==(const Options&) const = default;
};
template <typename T>
concept Number = requires(T x) { std::from_chars(nullptr, nullptr, x); };
template <Number T>
char* print(std::span<char> text, T x) {
  return std::to_chars(text.data(), text.data() + text.size(), x).ptr;
}
int main() {
  char text[32];
  return print(text, std::numbers::pi) == text || Options{.number = 1} == Options{} || std::popcount(0u);
}
]])
  try_compile(weft_has_cxx20 ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/cxx20.cpp
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
endif()
if(NOT weft_has_cxx20)
  message(FATAL_ERROR "weft needs a C++20 compiler such as GCC 11, and ${CMAKE_CXX_COMPILER} "
    "(${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}) does not compile a program in C++20: "
    "${weft_way_out}")
endif()

# Memory: what is free now, or what the container may take.
set(WEFT_JOB_MEMORY 600 CACHE STRING "Megabytes that one compilation may take")
cmake_host_system_information(RESULT weft_memory QUERY AVAILABLE_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT weft_swap QUERY AVAILABLE_VIRTUAL_MEMORY)
math(EXPR weft_memory "${weft_memory} + ${weft_swap}")
foreach(weft_limit /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes)
  if(EXISTS ${weft_limit})
    file(STRINGS ${weft_limit} weft_limit LIMIT_COUNT 1)
    if(weft_limit MATCHES "^[0-9]+$")
      math(EXPR weft_limit "${weft_limit} >> 20")
      if(weft_limit LESS weft_memory)
        set(weft_memory ${weft_limit})
      endif()
    endif()
  endif()
endforeach()
math(EXPR weft_jobs "${weft_memory} / ${WEFT_JOB_MEMORY}")
if(weft_jobs EQUAL 0)
  message(FATAL_ERROR "weft needs ${WEFT_JOB_MEMORY} MB of free memory to be compiled, and there are "
    "${weft_memory} MB: free some or add swap space, or install a wheel of weft, which is not compiled.")
endif()
# Ninja runs as many compilations as there are processors, if memory is there for all of them.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS weft_compilations=${weft_jobs})
set(CMAKE_JOB_POOL_COMPILE weft_compilations)
