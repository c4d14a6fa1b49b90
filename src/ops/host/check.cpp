// check: a condition that a user wants to hold. Its first operand says whether it fails, the others
// are what the message shows. checked() (weft/checks.h) takes it out of programs; what is left of
// one that is there for debugging only does nothing.
#include "ops/host/check.h"

#include <string_view>
#include <unordered_set>

#include "ops/def/axes.h"
#include "ops/def/regions.h"
#include "ops/host/family.h"
#include "weft/build.h"
#include "weft/checkify.h"

namespace weft {
namespace {

// The last lane in which it fails.
void batch_check(BatchCtx& c) {
  Vals xs{c.at(0, 0)};
  Val failed = reduce_or(xs[0], {0});
  Val lanes = iota(c.b, make_type(DType::kI32, Dims{c.size}), 0);
  Val last = reduce_max(select(xs[0], lanes, zeros(c.b, lanes.type())), {0});
  Values args{failed.value};
  for (size_t i = 1; i < c.operands.size(); ++i) {
    Val x = c.x(i);
    if (c.batched(i)) {
      x = c.at(i, 0);
      Dims sizes = x.shape();
      if (c.size == 0) {
        x = zeros(c.b, c.in_types[i]);
      } else {
        sizes[0] = 1;
        Vals starts(sizes.size(), scalar_like(last, 0));
        starts[0] = last;
        x = squeeze(dynamic_slice(x, starts, sizes), {0});
      }
    }
    args.push_back(x.value);
  }
  c.b.add(c.op, args, c.attrs);
}

}  // namespace

bool reports_nans(const OpInfo& op) {
  static const std::unordered_set<std::string_view> names{"acos",
                                                          "acosh",
                                                          "add",
                                                          "asin",
                                                          "asinh",
                                                          "atan",
                                                          "atan2",
                                                          "atanh",
                                                          "bessel_i0e",
                                                          "bessel_i1e",
                                                          "cbrt",
                                                          "conv_general_dilated",
                                                          "cos",
                                                          "cosh",
                                                          "cumlogsumexp",
                                                          "cummax",
                                                          "cummin",
                                                          "cumprod",
                                                          "cumsum",
                                                          "digamma",
                                                          "div",
                                                          "dot_general",
                                                          "erf",
                                                          "erf_inv",
                                                          "exp",
                                                          "expm1",
                                                          "fft",
                                                          "igamma",
                                                          "igammac",
                                                          "integer_pow",
                                                          "lgamma",
                                                          "log",
                                                          "log1p",
                                                          "logistic",
                                                          "mul",
                                                          "pad",
                                                          "pow",
                                                          "reduce",
                                                          "reduce_prod",
                                                          "reduce_sum",
                                                          "reduce_window_sum",
                                                          "regularized_incomplete_beta",
                                                          "rem",
                                                          "rsqrt",
                                                          "sin",
                                                          "sinh",
                                                          "sqrt",
                                                          "sub",
                                                          "tan",
                                                          "tanh"};
  return names.contains(op.name);
}

GraphRef without_debug_checks(const GraphRef& graph) {
  if (!(graph->effects() & kChecks)) return graph;
  return graph->cached<Graph>("without_debug_checks", [&] {
    GraphBuilder b;
    return rebuild(*graph, b, [&](const Op& op, std::span<const Value> operands) -> Values {
      if (op.info == &op_named<"check">() && op.attrs->boolean("debug")) return {};
      AttrsRef attrs = op.attrs ? map_graphs(op.attrs, without_debug_checks) : op.attrs;
      return b.add_typed(*op.info, operands, attrs, graph->result_types(op));
    });
  });
}

void register_check(OpRegistry& r) {
  OpDef d;
  d.name = "check";
  d.doc = "A condition that a user wants to hold.";
  d.attrs = {{"error", AttrType::kObject}, {"debug", AttrType::kBool}};
  d.multiple_results = true;
  d.effects = kChecks;
  d.infer = [](const InferCtx& c) -> TypeRefs {
    if (c.size() == 0 || c.in(0) != scalar_type(DType::kBool))
      c.fail(ErrorKind::kType, "expected a scalar of type bool[] first; got ", operand_types(c));
    return {};
  };
  d.jvp_kind = JvpKind::kZero;
  d.batch = batch_check;
  d.check = [](CheckCtx& c) {
    if (!c.options.user) return;
    Vals values;
    for (size_t i = 1; i < c.size(); ++i) values.push_back(c.x(i));
    const ObjectRef& error = c.attr().object("error");
    c.fail_if(CheckSite{.kind = CheckKind::kUser, .error = error}, c.x(0), values);
  };
  d.emit = [](EmitCtx& c) {
    if (c.attr().boolean("debug")) return;
    fail(ErrorKind::kValue,
         "[check] expected a function with checks to be given to "
         "checkify before it is compiled; got a check that nothing takes the error of\n"
         "  Write jit(checkify(f)) instead of jit(f), or use debug_check.");
  };
  d.cost = [](const CostCtx&) { return Cost{}; };
  r.add(std::move(d));
}

}  // namespace weft
