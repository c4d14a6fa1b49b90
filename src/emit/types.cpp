// MLIR text of types and integer lists.
#include "weft/dims.h"
#include "weft/error.h"
#include "weft/op_def.h"

namespace weft {

std::string mlir_type(TypeRef type) {
  if (is_key(type->dtype()))
    fail(ErrorKind::kNotImplemented, "expected random keys to be lowered to their words (by the ",
         "pass lower_keys) before a program is written out; got ", type);
  if (has_symbols(type->shape()))
    fail(ErrorKind::kNotImplemented,
         "expected sizes that are numbers before a program is lowered; ", "got ", type,
         "\n  weft.export.export keeps symbolic dimensions until the call.");
  Text out;
  out.reserve(32);
  out << "tensor<";
  for (int64_t d : type->shape()) out << d << 'x';
  out << info(type->dtype()).mlir << '>';
  return out.take();
}

std::string mlir_ints(std::span<const int64_t> xs) {
  Text out;
  out << "array<i64";
  for (size_t i = 0; i < xs.size(); ++i) out << (i ? ", " : ": ") << xs[i];
  out << '>';
  return out.take();
}

}  // namespace weft
