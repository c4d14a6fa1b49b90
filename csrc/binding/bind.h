// How Python reaches ops: bind() for any op of the registry as it stands, and element-wise
// functions that promote dtypes and broadcast shapes first. Both record into a trace context or
// run eagerly from a cache of compiled ops.
#pragma once

#include <vector>

#include "execution/eager.h"
#include "tracing/operand.h"

namespace weft::py {

// The same as a Python list; a new reference.
PyObject* to_list(Objects results);

// What operands have in common before an op runs.
enum class Promotion : uint8_t {
  kLax,      // equal dtypes (a Python scalar has its default one), equal shapes or scalars
  kNumpy,    // promoted dtype, broadcast shapes
  kInexact,  // as kNumpy, integers and bools to float first
  kBool,     // converted to bool, broadcast
};

// An element-wise function: an op with a promotion policy. Lives as long as the process.
struct Elementwise {
  const OpDef* op;
  Promotion promotion;
  const OpDef* bool_op = nullptr;  // in place of `op` when the common dtype is bool (add: or)
};

// Raises for operands that are no arrays. `attrs` for ops that have any.
Ref elementwise(const Elementwise& f, std::span<const Operand> xs, const AttrsRef& attrs);
// `results` as a list in Python for ops with several.
Objects bind_op(const OpDef& op, std::span<const Operand> xs, const AttrsRef& attrs);
// For ops that hold graphs or functions: operands are taken as they are, and `weak` says which
// results are weak.
Objects bind_graphs(const OpDef& op, std::span<const Operand> xs, const AttrsRef& attrs,
                    const std::vector<bool>& weak);

// A value as one that is split over explicit axes as another is (null: nothing is known of that).
Ref split_like(Ref value, ShardingRef split);
// A number or NumPy array as an Array, where values are that nobody placed: on a device, or,
// committed, on a mesh.
Ref on_default_place(const Operand& x, DType dtype, bool weak, ShardingRef at);
// x converted to a dtype; x itself if it has it already (and the same weakness).
Ref astype(const Operand& x, DType dtype, bool weak);
// What functions give of an argument with which they have nothing to do: a twin of an array, so
// that either may be deleted or donated without the other; another tracer where un-jitted
// transforms tell results from arguments (Recording::as_came); anything else itself.
Ref handed_on(PyObject* x);
// NumPy broadcasting to a shape.
Ref broadcast_to(const Operand& x, const Dims& shape);
// The common dtype of the operands under a policy.
PromotionType common_dtype(std::span<const Operand> xs, Promotion policy, std::string_view op);
// Says so where operands of different ranks are aligned, if the user wants to know and `is_users`
// holds. So many of the last axes of each as `cores` says are not aligned (empty: all are).
void check_ranks(std::span<const Operand> xs, std::string_view op, bool (*is_users)(),
                 std::span<const int64_t> cores = {});
// The common shape under NumPy's rules; throws kShape.
Dims common_shape(std::span<const Operand> xs, std::string_view op);

void init_bind(PyObject* module);

}  // namespace weft::py
