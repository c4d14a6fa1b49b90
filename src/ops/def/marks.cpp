#include "ops/def/marks.h"

#include <algorithm>

namespace weft {
namespace {

bool is_linear(const OpDef& op) { return op.jvp_kind == JvpKind::kLinear || op.adds; }

}  // namespace

// Sums stay sums in what is linear in all operands that have any. Of a product with what is the
// same along the axes the parts are summands again; that the other says so (reduced) tells that its
// cotangents are summands, too.
std::optional<uint64_t> sums_of_results(const OpDef& op, std::span<const Marks> operands) {
  uint64_t all = 0;
  for (const Marks& m : operands) all |= m.unreduced;
  if (!all || op.sums == Sums::kHandedOn) return all;
  if (op.sums == Sums::kOfProduct) {
    bool first = operands[0].unreduced != 0;
    const Marks &sum = operands[first ? 0 : 1], &other = operands[first ? 1 : 0];
    if (sum.unreduced == all && !other.unreduced && other.reduced == all) return all;
    return std::nullopt;
  }
  if (!is_linear(op)) return std::nullopt;
  const std::vector<size_t>& args = op.linear_args;
  for (size_t i = 0; i < operands.size(); ++i) {
    bool counts = args.empty() || std::find(args.begin(), args.end(), i) != args.end();
    if (operands[i].unreduced != (counts ? all : 0)) return std::nullopt;
  }
  return all;
}

void fail_sums(const OpDef& op, const std::string& operands) {
  bool of_other_sums = is_linear(op);
  bool never = !of_other_sums && !op.commutative && !op.mapped_sum;
  fail(never ? ErrorKind::kNotImplemented : ErrorKind::kSharding, "[", op.name,
       "] expected operands whose sums over axes of the mesh are made",
       of_other_sums ? ", or are yet to be made over the same axes" : "",
       op.sums == Sums::kOfProduct ? ", or one whose other operand is reduced over the same axes"
                                   : "",
       "; got ", operands,
       "\n  Make them first: with weft.reshard, to a sharding without unreduced=, or, in a "
       "shard_map, with lax.psum.");
}

void fail_reduced(const OpDef& op, const std::string& operands) {
  fail(
      ErrorKind::kSharding, "[", op.name,
      "] expected operands that are reduced over the same axes ", "of the mesh; got ", operands,
      "\n  Make the others so: with weft.reshard, to a sharding with reduced=, or, in a shard_map, "
      "with lax.pcast(x, axes, to='reduced').");
}

}  // namespace weft
