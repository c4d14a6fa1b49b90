// The elements of constants: dense<[1.0, 2.0]>, dense<0.0>, dense<"0x0000803F">, dense_resource<x>.
#pragma once

#include <memory>
#include <optional>

#include "read/document.h"
#include "weft/held.h"
#include "weft/literal.h"

namespace weft::reader {

// One literal that all elements are, or else the elements; a scalar is what all elements are.
struct Elements {
  std::optional<Literal> splat;
  std::shared_ptr<const DenseConstant> dense;
};

// Throws kParse for elements that are not those of the type, in number or kind. Takes memory in
// proportion to the text.
Elements read_elements(const Document& document, std::string_view value, TypeRef type);

}  // namespace weft::reader
