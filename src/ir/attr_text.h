// The text form of attribute values, graphs excepted: those the printer and parser see to.
#pragma once

#include "ir/scanner.h"
#include "weft/attr.h"

namespace weft {

// Whether an attribute's value says more than its default and the types of results do.
bool is_printed(const AttrSpec& spec, const Attr& value);
void print_value(Text& out, AttrType type, const Attr& value);
// Reads a type such as f32[3,4].
TypeRef parse_type_at(Scanner& in);
// Reads what print_value() writes, None excepted.
Attr parse_value(Scanner& in, AttrType type);

}  // namespace weft
