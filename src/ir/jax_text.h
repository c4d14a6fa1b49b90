// What `jax.make_jaxpr` prints otherwise than weft, which the parser reads too.
#pragma once

#include <string_view>

namespace weft {

// The op of weft that an op of JAX is; the name itself for all others. Calls of functions with
// rules are plain calls: rules are functions of Python, which the text names at most.
std::string_view own_op_name(std::string_view name);
// What weft calls an attribute of such an op.
std::string_view own_attr_name(std::string_view op, std::string_view attr);
// Whether an attribute says nothing about values.
bool is_without_effect(std::string_view attr);
// The name of a value for what JAX writes as a member of an enumeration: Precision.HIGHEST.
std::string_view own_value_name(std::string_view word);

}  // namespace weft
