// fft: discrete Fourier transforms over the last one to three axes. FFT and IFFT take complex
// numbers to complex numbers. A spectrum of real numbers is hermitian, so RFFT gives, and IRFFT
// takes, only its first n / 2 + 1 elements along the last axis.
#include <cmath>
#include <numbers>

#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/dense.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/def/symbols.h"
#include "ops/products/family.h"
#include "weft/held.h"

namespace weft {
namespace {

enum FftKind : int64_t { kFft, kIfft, kRfft, kIrfft };
constexpr std::string_view kKindNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};

const Dims& lengths_of(const AttrRecord& attrs) { return attrs.ints("fft_lengths"); }

// The shape of an operand (or a result) with the halved spectrum or with all of the last axis.
Dims with_last(Dims lead, const Dims& lengths, bool halved) {
  for (int64_t n : lengths) lead.push_back(n);
  if (halved && lead.back() != 0) lead.back() = dim_add(dim_floordiv(lead.back(), 2), 1);
  return lead;
}

TypeRefs infer_fft(const InferCtx& c) {
  TypeRef x = c.in(0);
  int64_t kind = c.attr().integer("fft_type");
  const Dims& lengths = lengths_of(c.attr());
  auto got = [&] {
    return cat("; got fft_type=", kind, ", fft_lengths=", lengths, " (operand: ", x, ")");
  };
  if (kind < kFft || kind > kIrfft)
    c.fail(ErrorKind::kValue, "expected fft_type between 0 and 3: FFT, IFFT, RFFT, IRFFT", got());
  if (lengths.empty() || lengths.size() > 3)
    c.fail(ErrorKind::kValue, "expected between 1 and 3 fft_lengths (fft C1)", got());
  bool real = kind == kRfft;
  if (real ? x->dtype() != DType::kF32 && x->dtype() != DType::kF64 : !is_complex(x->dtype()))
    c.fail(ErrorKind::kDtype, "expected ", real ? "float32 or float64" : "a complex operand",
           " for ", kKindNames[kind], " (fft C2)", got());
  if (x->rank() < static_cast<int>(lengths.size()))
    c.fail(ErrorKind::kShape, "expected an operand with an axis for each of fft_lengths (fft C1)",
           got());
  if (real && lengths.back() == 0)
    c.fail(ErrorKind::kShape, "expected at least one element to transform", got());
  for (int64_t n : lengths)
    if (is_negative(n)) c.fail(ErrorKind::kValue, "expected fft_lengths of at least 0", got());
  Dims lead(x->shape().begin(), x->shape().end() - static_cast<ptrdiff_t>(lengths.size()));
  Dims expected = with_last(lead, lengths, kind == kIrfft);
  if (x->shape() != expected)
    c.fail(ErrorKind::kShape, "expected an operand of shape ", expected, " for ", kKindNames[kind],
           " (fft C3)", got());
  DType out = kind == kRfft    ? complex_dtype(x->dtype())
              : kind == kIrfft ? real_dtype(x->dtype())
                               : x->dtype();
  return {make_type(out, with_last(lead, lengths, kind == kRfft))};
}

Val transform(const OpDef& op, Val x, FftKind kind, const Dims& lengths) {
  NamedAttr attrs[] = {{"fft_type", int64_t{kind}}, {"fft_lengths", lengths}};
  return apply(op, Vals{x}, AttrRecord::make(op.name, op.attrs, attrs))[0];
}

// A halved spectrum of n elements, scaled by `factor` where an element stands for two of the whole
// one: all but the constant term and, for even n, the highest frequency.
Val scale_twins(Val spectrum, int64_t n, double factor) {
  need_numbers(op_named<"fft">(), {&n, 1});
  DType index = index_dtype(DType::kI32, spectrum.shape());
  Val k = iota(*spectrum.builder, with_dtype(spectrum.type(), index), spectrum.rank() - 1);
  auto is = [&](int64_t i) { return eq(k, scalar_like(k, static_cast<double>(i))); };
  Val single = n % 2 ? is(0) : logical_or(is(0), is(n / 2));
  return select(single, spectrum, spectrum * factor);
}

void transpose_fft(TransposeCtx& c) {
  const Dims& lengths = lengths_of(c.attr());
  double size = static_cast<double>(product(lengths));
  Val ct = c.ct();
  switch (c.attr().integer("fft_type")) {
    case kRfft: {
      Val half = scale_twins(conj(ct), lengths.back(), 0.5);
      return c.add(0, transform(c.op, half, kIrfft, lengths) * size);
    }
    case kIrfft: {
      if (size == 0) return c.add(0, zeros(c.b, c.in_types[0]));
      Val half = scale_twins(transform(c.op, ct, kRfft, lengths), lengths.back(), 2);
      return c.add(0, conj(half) / size);
    }
    default:  // their matrices are symmetric
      c.add(0, apply(c.op, Vals{ct}, c.attrs)[0]);
  }
}

void batch_fft(BatchCtx& c) {
  int lead = c.in_types[0]->rank() - static_cast<int>(lengths_of(c.attr()).size());
  int at = c.dim(0) <= lead ? c.dim(0) : 0;
  Val x = c.at(0, at);
  c.apply({&x, 1}, c.attrs, at);
}

std::string emit_fft_line(EmitCtx& c, std::string_view x, FftKind kind, const Dims& lengths,
                          TypeRef in, TypeRef out) {
  return c.line(cat("stablehlo.fft ", x, ", type = ", kKindNames[kind], ", length = ",
                    bracketed(lengths), " : (", mlir_type(in), ") -> ", mlir_type(out)));
}

// The value, with its elements in the order of its axes.
std::string emit_in_order(EmitCtx& c, std::string_view x, TypeRef type) {
  Text axes;
  for (int i = type->rank() - 1; i >= 0; --i) axes << i << (i ? ", " : "");
  std::string layouts = cat("[dense<[", axes.view(), "]> : tensor<", type->rank(), "xindex>]");
  return c.line(cat("stablehlo.custom_call @LayoutConstraint(", x, ") {operand_layouts = ", layouts,
                    ", result_layouts = ", layouts, "} : (", mlir_type(type), ") -> ",
                    mlir_type(type)));
}

// cuFFT takes the spectrum to be hermitian along all axes: there the others go first.
void emit_fft(EmitCtx& c) {
  FftKind kind = static_cast<FftKind>(c.attr().integer("fft_type"));
  const Dims& lengths = lengths_of(c.attr());
  if (kind != kIrfft || lengths.size() == 1 || c.platform() == "cpu") {
    // Collectives and LAPACK choose an order of the axes that XLA's transform for CPUs refuses.
    bool ordered = c.platform() == "cpu" && c.out_type()->rank() > 1;
    std::string x = ordered ? emit_in_order(c, c.in(0), c.in_type(0)) : c.in(0);
    x = emit_fft_line(c, x, kind, lengths, c.in_type(0), c.out_type());
    return c.set_out(0, ordered ? emit_in_order(c, x, c.out_type()) : x);
  }
  const OpDef& op = op_named<"fft">();
  emit_as(c, [&](const Vals& xs) {
    int last = xs[0].rank() - 1, first = xs[0].rank() - static_cast<int>(lengths.size());
    Dims outer(lengths.begin(), lengths.end() - 1);
    Val x = transform(op, move_axis(xs[0], last, first), kIfft, outer);
    return transform(op, move_axis(x, first, last), kIrfft, {lengths.back()});
  });
}

// ---- In kernels: products with matrices of roots of unity

// XLA's transforms are calls of a library. Of few points a product with all roots takes less.
constexpr int64_t kMostPointsInKernel = 16;

// The cosine and the sine of m / n of a turn; exact where they are 0 or 1.
std::pair<double, double> root_of_unity(int64_t m, int64_t n) {
  m %= n;
  constexpr std::pair<double, double> kQuarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  if (4 * m % n == 0) return kQuarters[4 * m / n];
  double angle = 2 * std::numbers::pi * static_cast<double>(m) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// The matrix of entry(row, column), in the dtype of x.
template <typename Entry>
Val matrix_like(Val x, int64_t rows, int64_t columns, Entry&& entry) {
  std::vector<Literal> entries;
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t k = 0; k < columns; ++k) entries.push_back(make_literal(x.dtype(), entry(j, k)));
  return reshape(dense(*x.builder, make_constant(x.dtype(), entries)), {rows, columns});
}

// Sums along the last axis of x.
Val times(Val x, Val matrix) {
  return dot_general(x, matrix, {.lhs_contract = {x.rank() - 1}, .rhs_contract = {0}});
}

struct Parts {
  Val re, im;
};

Parts transformed(const Parts& z, int axis, bool inverse) {
  int last = z.re.rank() - 1;
  Val re = move_axis(z.re, axis, last), im = move_axis(z.im, axis, last);
  int64_t n = re.shape().back();
  double scale = inverse ? 1.0 / static_cast<double>(n) : 1;
  auto cosine = [&](int64_t j, int64_t k) { return scale * root_of_unity(j * k, n).first; };
  auto sine = [&](int64_t j, int64_t k) {
    return (inverse ? scale : -scale) * root_of_unity(j * k, n).second;
  };
  Val c = matrix_like(re, n, n, cosine), s = matrix_like(re, n, n, sine);
  return {move_axis(times(re, c) - times(im, s), last, axis),
          move_axis(times(re, s) + times(im, c), last, axis)};
}

// Of real numbers, along the last axis.
Parts halved_spectrum(Val x) {
  int64_t n = x.shape().back(), half = n / 2 + 1;
  auto cosine = [&](int64_t j, int64_t k) { return root_of_unity(j * k, n).first; };
  auto sine = [&](int64_t j, int64_t k) { return -root_of_unity(j * k, n).second; };
  return {times(x, matrix_like(x, n, half, cosine)), times(x, matrix_like(x, n, half, sine))};
}

// n real numbers of their halved spectrum along the last axis, in which most elements stand for
// two.
Val of_halved_spectrum(const Parts& z, int64_t n) {
  int64_t half = n / 2 + 1;
  auto weight = [&](int64_t k) {
    return (k == 0 || 2 * k == n ? 1.0 : 2.0) / static_cast<double>(n);
  };
  auto cosine = [&](int64_t k, int64_t j) { return weight(k) * root_of_unity(j * k, n).first; };
  auto sine = [&](int64_t k, int64_t j) { return -weight(k) * root_of_unity(j * k, n).second; };
  return times(z.re, matrix_like(z.re, half, n, cosine)) +
         times(z.im, matrix_like(z.im, half, n, sine));
}

Vals fft_for_kernel(RuleCtx& c) {
  const Dims& lengths = lengths_of(c.attr());
  if (std::ranges::any_of(lengths, [](int64_t n) { return n == 0 || n > kMostPointsInKernel; }))
    return {};
  auto kind = static_cast<FftKind>(c.attr().integer("fft_type"));
  Val x = c.x(0);
  int last = x.rank() - 1, first = x.rank() - static_cast<int>(lengths.size());
  Parts z = kind == kRfft ? halved_spectrum(x) : Parts{real(x), imag(x)};
  bool is_inverse = kind == kIfft || kind == kIrfft;
  int end = kind == kFft || kind == kIfft ? last + 1 : last;
  for (int axis = first; axis < end; ++axis) z = transformed(z, axis, is_inverse);
  if (kind == kIrfft) return {of_halved_spectrum(z, lengths.back())};
  return {complex(z.re, z.im)};
}

OpDef fft_op() {
  OpDef d;
  d.name = "fft";
  d.doc = "Discrete Fourier transforms over the last axes.";
  d.attrs = {{"fft_type", AttrType::kInt}, {"fft_lengths", AttrType::kInts}};
  d.num_operands = 1;
  d.infer = infer_fft;
  d.place = [](PlaceCtx& c) { place_alike(c); };
  linear(d, transpose_fft);
  d.batch = batch_fft;
  d.emit = emit_fft;
  d.for_kernel = fft_for_kernel;
  d.cost = [](const CostCtx& c) {
    double n = static_cast<double>(product(lengths_of(*c.attrs)));
    bool real = c.attrs->integer("fft_type") >= kRfft;
    double elements = static_cast<double>(
        std::max(c.in_types[0]->num_elements(), c.out_types[0]->num_elements()));
    Cost cost = cost_bytes(c);
    cost.flops = (real ? 2.5 : 5) * elements * std::log2(std::fmax(n, 2));
    return cost;
  };
  return d;
}

}  // namespace

void register_fft(OpRegistry& r) { r.add(fft_op()); }

}  // namespace weft
