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
// `has_algorithms`: whether the precision may name one.
DType infer_product_dtype(const InferCtx& c, bool has_algorithms = false);

// "DEFAULT", as StableHLO names it, also where an algorithm is asked for.
std::string_view precision_name(const AttrRecord& attrs);
// The algorithm that the precision names, as dot_general has it among its attributes: "" or
// ", algorithm = <...>". Fails where the platform lacks it.
std::string algorithm_text(const EmitCtx& c);

// Appends an op whose text up to its types `text` gives from the names of its operands; operands
// and result are converted where XLA does not take the dtypes as they are.
void emit_product(
    EmitCtx& c, const std::function<std::string(std::string_view lhs, std::string_view rhs)>& text);

// The jvp of an op that is linear in each of its two operands.
std::vector<JvpArgRule> bilinear_jvp();

// Of a transpose that only orders the batch axes of a product of which nothing is summed up, or
// that takes the free axes of its right side before those of the left: that product.
Vals transpose_of_product(SimplifyCtx& c);

}  // namespace weft
