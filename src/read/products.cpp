// Products of arrays, convolutions, Fourier transforms, factors of matrices, normalisation.
#include <algorithm>
#include <cctype>

#include "ops/def/axes.h"
#include "read/op_text.h"
#include "weft/registry.h"

namespace weft::reader {

namespace {

// Of both operands; weft has one for the two.
Attr precision_of(const OpText& op) {
  std::optional<std::string_view> given = op.find({"precision", "precision_config"});
  if (!given) return std::monostate{};
  std::string_view most = "DEFAULT";
  for (std::string_view one : op.document.list(*given)) {
    std::string_view name = op.document.keyword(one);
    if (name != "DEFAULT" && name != "HIGH" && name != "HIGHEST")
      op.fail("expected the precision DEFAULT, HIGH or HIGHEST; got ", name);
    if (name.size() > most.size() || most == "DEFAULT") most = name == "DEFAULT" ? most : name;
  }
  if (most == "DEFAULT") return std::monostate{};
  return std::string(most);
}

// By the types and counts that an algorithm is made of; weft has names for them.
std::string algorithm_of(const OpText& op, std::string_view value) {
  auto upper = [](std::string_view name) {
    std::string text(name);
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  };
  std::string operand, sum, operations;
  bool fast = false;
  for (const Named& field : op.document.fields(value)) {
    if (field.name == "lhs_precision_type") operand = upper(field.value);
    if (field.name == "accumulation_type") sum = upper(field.value);
    if (field.name == "num_primitive_operations") operations = field.value;
    if (field.name == "allow_imprecise_accumulation") fast = field.value == "true";
  }
  if (operand.starts_with("F8")) return fast ? "ANY_F8_ANY_F8_F32_FAST_ACCUM" : "ANY_F8_ANY_F8_F32";
  std::string name = cat(operand, "_", operand, "_", sum);
  return operations.empty() || operations == "1" ? name : cat(name, "_X", operations);
}

void dot_general_rule(OpText& op) {
  op.expect_operands(2);
  DotDims d;
  auto both = [&](std::string_view name, Dims& lhs, Dims& rhs) {  // [0] x [1]
    std::optional<std::string_view> value = op.find(name);
    if (!value) return;
    Cursor in = op.document.cursor(*value);
    lhs = op.document.ints(in.group());
    in.expect("x", "between the dimensions of both operands");
    in.skip_space();
    rhs = op.document.ints(in.group());
  };
  both("batching_dims", d.lhs_batch, d.rhs_batch);
  both("contracting_dims", d.lhs_contract, d.rhs_contract);
  if (std::optional<std::string_view> numbers = op.find("dot_dimension_numbers"))
    for (const Named& field : op.document.fields(*numbers)) {
      if (field.name == "lhs_batching_dimensions") d.lhs_batch = op.document.ints(field.value);
      if (field.name == "rhs_batching_dimensions") d.rhs_batch = op.document.ints(field.value);
      if (field.name == "lhs_contracting_dimensions")
        d.lhs_contract = op.document.ints(field.value);
      if (field.name == "rhs_contracting_dimensions")
        d.rhs_contract = op.document.ints(field.value);
    }
  Attr precision = precision_of(op);
  if (std::optional<std::string_view> algorithm = op.find("algorithm"))
    precision = algorithm_of(op, *algorithm);
  op.result(dot_general(op.x(0), op.x(1), d, op.out_type()->dtype(), precision));
}

// The last dimension of the first operand with the first of the second.
void dot_rule(OpText& op) {
  op.expect_operands(2);
  DotDims d{.lhs_contract = {op.in_type(0)->rank() - 1}, .rhs_contract = {0}};
  if (op.in_type(0)->rank() == 0 || op.in_type(1)->rank() == 0)
    op.fail("expected vectors or matrices; got ", op.in_type(0), " and ", op.in_type(1));
  op.result(dot_general(op.x(0), op.x(1), d, op.out_type()->dtype(), precision_of(op)));
}

// ---- Convolutions

// "[b, 0, 1, f]": where batch (or output features), features and the spatial axes stand.
Dims axes_of_labels(const OpText& op, std::string_view labels, char first, char second) {
  std::vector<std::string_view> names = op.document.list(labels);
  Dims axes(names.size(), -1);
  for (size_t i = 0; i < names.size(); ++i) {
    std::string_view name = names[i];
    int64_t place = -1;
    if (name.size() == 1 && name[0] == first) {
      place = 0;
    } else if (name.size() == 1 && name[0] == second) {
      place = 1;
    } else {
      place = 2 + op.document.integer(name);
    }
    if (place < 0 || place >= static_cast<int64_t>(axes.size()) ||
        axes[static_cast<size_t>(place)] >= 0)
      op.fail("expected each dimension once; got ", labels);
    axes[static_cast<size_t>(place)] = static_cast<int64_t>(i);
  }
  return axes;
}

std::vector<Dims> conv_axes(const OpText& op) {
  std::string_view text = op.document.resolved(op.get({"dim_numbers", "dimension_numbers"}));
  std::vector<Dims> axes;
  if (text.find('=') == text.npos) {  // [b, f, 0]x[o, i, 0]->[b, f, 0], in #stablehlo.conv<...> too
    size_t begin = text.find('[');
    if (begin == text.npos) op.fail("expected dimension numbers; got ", text);
    Cursor in = op.document.cursor(text.substr(begin));
    axes.push_back(axes_of_labels(op, in.group(), 'b', 'f'));
    in.expect("x", "between dimension numbers");
    in.skip_space();
    axes.push_back(axes_of_labels(op, in.group(), 'o', 'i'));
    in.expect("->", "between dimension numbers");
    in.skip_space();
    axes.push_back(axes_of_labels(op, in.group(), 'b', 'f'));
    return axes;
  }
  NamedList fields = op.document.fields(text);
  auto get = [&](std::string_view name) -> std::string_view {
    for (const Named& field : fields)
      if (field.name == name) return field.value;
    op.fail("expected ", name, " of dimension_numbers");
  };
  for (auto [first, second, spatial] :
       {std::tuple("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
        std::tuple("kernel_output_feature_dimension", "kernel_input_feature_dimension",
                   "kernel_spatial_dimensions"),
        std::tuple("output_batch_dimension", "output_feature_dimension",
                   "output_spatial_dimensions")}) {
    Dims all{op.document.integer(get(first)), op.document.integer(get(second))};
    all.append(op.document.ints(get(spatial)));
    axes.push_back(all);
  }
  return axes;
}

void convolution(OpText& op) {
  op.expect_operands(2);
  std::vector<Dims> axes = conv_axes(op);
  if (axes[0].size() < 2) op.fail("expected dimension numbers of batch and features");
  size_t n = axes[0].size() - 2;
  NamedList window;
  if (std::optional<std::string_view> text = op.find("window")) window = op.document.fields(*text);
  auto find = [&](std::string_view short_name,
                  std::string_view name) -> std::optional<std::string_view> {
    for (const Named& field : window)
      if (field.name == short_name) return field.value;
    return op.find(name);
  };
  auto ints = [&](std::string_view short_name, std::string_view name) {
    std::optional<std::string_view> value = find(short_name, name);
    return value ? op.document.ints(*value) : Dims(n, 1);
  };
  std::vector<Dims> padding(n, Dims{0, 0});
  if (std::optional<std::string_view> value = find("pad", "padding"); value && n > 0)
    padding = op.document.rows(*value);
  Val rhs = op.x(1);
  if (std::optional<std::string_view> value = find("reverse", "window_reversal")) {
    Dims reversed = op.document.ints(*value), turned;
    for (size_t i = 0; i < std::min(n, reversed.size()); ++i)
      if (reversed[i]) turned.push_back(axes[1][i + 2]);
    if (!turned.empty()) rhs = rev(rhs, turned);
  }
  const OpDef& def = op_named<"conv_general_dilated">();
  op.result(weft::apply(
      def, Vals{op.x(0), rhs},
      AttrRecord::make(def.name, def.attrs,
                       {{"dimension_numbers", axes},
                        {"window_strides", ints("stride", "window_strides")},
                        {"padding", padding},
                        {"lhs_dilation", ints("lhs_dilate", "lhs_dilation")},
                        {"rhs_dilation", ints("rhs_dilate", "rhs_dilation")},
                        {"feature_group_count", op.integer_or("feature_group_count", 1)},
                        {"batch_group_count", op.integer_or("batch_group_count", 1)},
                        {"precision", precision_of(op)},
                        {"preferred_element_type", op.out_type()->dtype()}}))[0]);
}

// ---- Transforms and matrices

void fft_rule(OpText& op) {
  op.expect_operands(1);
  std::string_view type = op.keyword({"type", "fft_type"});
  constexpr std::string_view kTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  const auto* found = std::ranges::find(kTypes, type);
  if (found == std::end(kTypes)) op.fail("expected the type FFT, IFFT, RFFT or IRFFT; got ", type);
  op.result(apply1(
      "fft", {op.x(0)},
      {{"fft_type", int64_t{found - kTypes}}, {"fft_lengths", op.ints({"length", "fft_length"})}}));
}

// Of the triangle that the op names; weft's reads the lower one and gives that.
void cholesky_rule(OpText& op) {
  op.expect_operands(1);
  Val x = op.x(0);
  if (x.rank() < 2) op.fail("expected matrices; got ", op.in_type(0));
  auto adjoint = [](Val a) {
    Val turned = move_axis(a, a.rank() - 1, a.rank() - 2);
    return is_complex(a.dtype()) ? conj(turned) : turned;
  };
  if (op.boolean_or("lower", false)) return op.result(apply1("cholesky", {x}));
  op.result(adjoint(apply1("cholesky", {adjoint(x)})));
}

void triangular_solve_rule(OpText& op) {
  op.expect_operands(2);
  std::string_view turned = op.keyword({"transpose_a"});
  op.result(apply1("triangular_solve", {op.x(0), op.x(1)},
                   {{"left_side", op.boolean_or("left_side", false)},
                    {"lower", op.boolean_or("lower", false)},
                    {"transpose_a", turned == "TRANSPOSE" || turned == "ADJOINT"},
                    {"conjugate_a", turned == "ADJOINT"},
                    {"unit_diagonal", op.boolean_or("unit_diagonal", false)}}));
}

// ---- Normalisation over all axes but one

double epsilon_of(const OpText& op) {
  std::string text(op.get({"epsilon"}));
  return std::strtod(text.c_str(), nullptr);
}

class BatchNorm {
 public:
  explicit BatchNorm(const OpText& op) : x(op.x(0)), axis_(op.integer({"feature_index"})) {
    if (axis_ < 0 || axis_ >= x.rank())
      op.fail("expected a feature_index of ", op.in_type(0), "; got ", axis_);
  }
  Val along(Val v) const { return broadcast_in_dim(v, x.shape(), {axis_}); }
  Dims others() const { return other_axes(x.rank(), {axis_}); }
  Val mean(Val v) const {
    double count = 1;
    for (int64_t n : pick(x.shape(), others())) count *= static_cast<double>(n);
    return reduce_sum(v, others()) / count;
  }
  const Val x;

 private:
  int64_t axis_;
};

Val normalized(const BatchNorm& norm, Val mean, Val variance, double epsilon) {
  return (norm.x - norm.along(mean)) * norm.along(rsqrt(variance + epsilon));
}

void batch_norm_inference(OpText& op) {
  op.expect_operands(5);
  BatchNorm norm(op);
  Val y = normalized(norm, op.x(3), op.x(4), epsilon_of(op));
  op.result(y * norm.along(op.x(1)) + norm.along(op.x(2)));
}

void batch_norm_training(OpText& op) {
  op.expect_operands(3);
  BatchNorm norm(op);
  Val mean = norm.mean(norm.x);
  Val centred = norm.x - norm.along(mean);
  Val variance = norm.mean(centred * centred);
  Val y = normalized(norm, mean, variance, epsilon_of(op));
  op.result(y * norm.along(op.x(1)) + norm.along(op.x(2)));
  op.result(mean);
  op.result(variance);
}

void batch_norm_grad(OpText& op) {
  op.expect_operands(5);
  BatchNorm norm(op);
  Val scale = op.x(1), mean = op.x(2), variance = op.x(3), ct = op.x(4);
  Val y = normalized(norm, mean, variance, epsilon_of(op));
  Val inner = ct - norm.along(norm.mean(ct)) - y * norm.along(norm.mean(ct * y));
  op.result(inner * norm.along(scale * rsqrt(variance + epsilon_of(op))));
  op.result(reduce_sum(ct * y, norm.others()));
  op.result(reduce_sum(ct, norm.others()));
}

constexpr NamedRule kProductsRules[] = {
    {"batch_norm_grad", batch_norm_grad},
    {"batch_norm_inference", batch_norm_inference},
    {"batch_norm_training", batch_norm_training},
    {"cholesky", cholesky_rule},
    {"convolution", convolution},
    {"dot", dot_rule},
    {"dot_general", dot_general_rule},
    {"fft", fft_rule},
    {"triangular_solve", triangular_solve_rule},
};

}  // namespace

std::span<const NamedRule> product_rules() { return kProductsRules; }

}  // namespace weft::reader
