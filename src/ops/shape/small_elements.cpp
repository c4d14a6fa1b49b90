// The op itself is emitted a second time, on what its operands were converted to.
#include "ops/shape/small_elements.h"

#include <algorithm>

#include "weft/build.h"
#include "weft/registry.h"

namespace weft {

namespace {

bool is_small(TypeRef t) { return info(t->dtype()).bits < 8 && !is_bool(t->dtype()); }

DType of_a_byte(DType d) {
  return is_float(d) ? DType::kF32 : is_signed_int(d) ? DType::kI8 : DType::kU8;
}

Val in_bytes(Val x) { return is_small(x.type()) ? convert(x, of_a_byte(x.dtype())) : x; }

}  // namespace

EmitRule emit_in_bytes(std::string op, EmitRule rule) {
  return [op = std::move(op), rule = std::move(rule)](EmitCtx& c) {
    if (std::none_of(c.in_types.begin(), c.in_types.end(), is_small)) return rule(c);
    GraphBuilder b;
    Vals xs;
    std::vector<std::string> names;
    for (size_t i = 0; i < c.size(); ++i) {
      xs.push_back(in_bytes(Val{&b, b.input(c.in_type(i))}));
      names.push_back(c.in(i));
    }
    Values results;
    Vals wide = apply(registry().get(op), xs, c.attr().with({}));
    for (size_t i = 0; i < wide.size(); ++i)
      results.push_back(convert(wide[i], c.out_types[i]->dtype()).value);
    std::vector<std::string> emitted = c.inline_graph(*b.finish(results), names);
    for (size_t i = 0; i < emitted.size(); ++i) c.set_out(i, std::move(emitted[i]));
  };
}

}  // namespace weft
