// Tables of JAX 0.10 to 0.12.
#include "ir/jax_text.h"

#include <algorithm>
#include <span>
#include <utility>

namespace weft {

namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr Pair kOps[] = {
    {"closed_call", "jit"},
    {"core_call", "jit"},
    {"pjit", "jit"},
    {"remat2", "checkpoint"},
};

constexpr Pair kValues[] = {
    {"GatherScatterMode.CLIP", "clip"},
    {"GatherScatterMode.FILL_OR_DROP", "fill"},
    {"GatherScatterMode.PROMISE_IN_BOUNDS", "promise_in_bounds"},
    {"Precision.DEFAULT", "DEFAULT"},
    {"Precision.HIGH", "HIGH"},
    {"Precision.HIGHEST", "HIGHEST"},
};

// The rules of functions, and of a scatter the function that its name says.
constexpr std::string_view kWithoutEffect[] = {
    "bwd",         "computation",    "differentiated", "fwd",          "jvp",
    "prevent_cse", "symbolic_zeros", "update_consts",  "update_jaxpr",
};

std::string_view find(std::span<const Pair> pairs, std::string_view name) {
  for (auto [from, to] : pairs)
    if (from == name) return to;
  return name;
}

}  // namespace

std::string_view own_op_name(std::string_view name) { return find(kOps, name); }

std::string_view own_attr_name(std::string_view op, std::string_view attr) {
  return op == "jit" && attr == "call_jaxpr" ? "jaxpr" : attr;
}

bool is_without_effect(std::string_view attr) {
  return std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), attr) !=
         std::end(kWithoutEffect);
}

std::string_view own_value_name(std::string_view word) { return find(kValues, word); }

}  // namespace weft
