// What the ops that sum up products (dot_general, convolutions) share.
#pragma once

#include <functional>
#include <string>

#include "weft/op_def.h"

namespace weft {

// The attributes "precision" and "preferred_element_type", which all of them have.
AttrSpec precision_attr();
AttrSpec preferred_element_type_attr();

// Checks these attributes and the dtypes of the two operands; returns the dtype of the result.
DType infer_product_dtype(const InferCtx& c);

// "DEFAULT", as StableHLO names it.
std::string_view precision_name(const AttrRecord& attrs);

// Appends an op whose text up to its types `text` gives from the names of its operands; operands
// and result are converted where XLA does not take the dtypes as they are.
void emit_product(
    EmitCtx& c, const std::function<std::string(std::string_view lhs, std::string_view rhs)>& text);

// The jvp of an op that is linear in each of its two operands.
std::vector<JvpArgRule> bilinear_jvp();

}  // namespace weft
