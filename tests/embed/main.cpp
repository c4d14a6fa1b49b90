// A compiler of its own on top of libweft: defines an op, builds a program with it, takes its
// gradient, reads another from text, optimises them and prints StableHLO. Also shows what an error
// looks like.
#include <cstdio>
#include <string>

#include "weft/weft.h"

namespace {

// softsign(x) = x / (1 + |x|): types, derivative, batching and lowering in one value.
weft::OpDef softsign() {
  weft::OpDef op;
  op.name = "softsign";
  op.doc = "x / (1 + |x|), elementwise.";
  op.num_operands = 1;
  op.elementwise = true;
  op.infer = [](const weft::InferCtx& c) -> weft::TypeRefs {
    if (!weft::is_float(c.in(0)->dtype()))
      c.fail(weft::ErrorKind::kDtype, "expected a float; got ", c.in(0));
    return {c.in(0)};
  };
  op.jvp_kind = weft::JvpKind::kArgs;
  op.jvp_args = {
      [](const weft::JvpArgCtx& c) { return c.t() / weft::square(1.0 + weft::abs(c.x(0))); }};
  op.batch = [](weft::BatchCtx& c) {
    weft::Val x = c.at(0, 0);
    c.apply({&x, 1}, c.attrs, 0);
  };
  op.decompose = [](weft::RuleCtx& c) -> weft::Vals {
    return {c.x(0) / (1.0 + weft::abs(c.x(0)))};
  };
  op.cost = [](const weft::CostCtx& c) {
    double n = static_cast<double>(c.out_types[0]->num_elements());
    double bytes = static_cast<double>(c.out_types[0]->num_bytes());
    return weft::Cost{.flops = 3 * n, .transcendentals = 0, .bytes = 2 * bytes};
  };
  return op;
}

// The sums of softsign over rows, with an op that nothing needs.
weft::GraphRef row_sums() {
  weft::GraphBuilder b;
  weft::Val x{&b, b.input(weft::make_type(weft::DType::kF32, weft::Dims{2, 3}))};
  weft::Val y = weft::apply1("softsign", {x * 1.0});
  weft::Val unused = weft::exp(y);
  (void)unused;
  weft::Value out = weft::reduce_sum(y, {1}).value;
  return b.finish({&out, 1});
}

// sum(softsign(w * x)): a loss of two arrays.
weft::GraphRef loss() {
  weft::GraphBuilder b;
  weft::TypeRef vector = weft::make_type(weft::DType::kF32, weft::Dims{3});
  weft::Val w{&b, b.input(vector)}, x{&b, b.input(vector)};
  weft::Value out = weft::reduce_sum(weft::apply1("softsign", {w * x}), {0}).value;
  return b.finish({&out, 1});
}

template <typename F>
void expect_error(F&& f) {
  try {
    f();
  } catch (const weft::Error& e) { std::printf("error: %s\n", e.what()); }
}

}  // namespace

int main() {
  weft::registry().add(softsign());

  weft::GraphRef graph = row_sums();
  std::printf("traced\n%s\n", weft::print(*graph).c_str());

  weft::GraphRef optimized = weft::optimize(graph);
  weft::verify(*optimized);
  std::printf("optimized\n%s\n", weft::print(*optimized).c_str());

  weft::GraphRef gradient = weft::optimize(weft::value_and_grad(loss(), {0, 1}));
  weft::verify(*gradient);
  std::printf("gradient\n%s\n", weft::print(*gradient).c_str());
  weft::GraphRef many = weft::vmap(weft::grad(loss()), {.in_dims = {0, 0}, .size = 8})->graph;
  std::printf("gradients\n%s\n", weft::print(*weft::optimize(many)).c_str());
  std::printf("report\n%s\n", weft::to_text(weft::analyze(*gradient)).c_str());

  weft::EmitOptions options;
  options.module_name = "embedded";
  std::printf("%s\n", weft::emit_stablehlo(*optimized, options).text.c_str());

  weft::GraphRef read = weft::parse(weft::print(*optimized));
  std::printf("round trip: %s\n", weft::equal(*read, *optimized) ? "equal" : "different");
  expect_error([] { weft::parse("{ lambda ; a:i32[]. let b:i32[] = softsign a in (b,) }"); });
  expect_error([&] { weft::grad(graph); });
}
