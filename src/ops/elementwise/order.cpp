#include "ops/elementwise/order.h"

#include "ops/def/limits.h"

namespace weft {

// The bits of a float, without its sign, are in its order.
Val ordered_bits(Val x, bool nan_last) {
  bool wide = info(x.dtype()).bits > 32;
  DType dtype = wide ? DType::kI64 : DType::kI32;
  if (!wide) x = convert(x, DType::kF32);
  auto constant = [&](Literal value) {
    return broadcast_to({x.builder, x.builder->literal(value)}, x.shape());
  };
  Val bits = apply1("bitcast_convert_type", {x}, {{"new_dtype", dtype}});
  Val size = logical_and(bits, constant(highest(dtype)));
  Val key = select(lt(bits, zeros_like(bits)), neg(size), size);
  return select(ne(x, x), constant(nan_last ? highest(dtype) : lowest(dtype)), key);
}

Val in_total_order(Val x) {
  if (!is_float(x.dtype())) return x;
  if (info(x.dtype()).bits < 32) x = convert(x, DType::kF32);
  DType dtype = info(x.dtype()).bits == 64 ? DType::kI64 : DType::kI32;
  Val bits = apply1("bitcast_convert_type", {x}, {{"new_dtype", dtype}});
  Val most{x.builder, x.builder->literal(highest(dtype))};
  return select(lt(bits, zeros_like(bits)), apply1("xor", {bits, most}), bits);
}

}  // namespace weft
