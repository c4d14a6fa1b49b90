#include "emit/exact.h"

#include <algorithm>
#include <array>
#include <span>

namespace weft {
namespace {

bool is_one_of(std::string_view op, std::span<const std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '#';
}

// "tensor<4x8xf32>" -> "f32"
std::string_view element_of(std::string_view type) {
  size_t begin = type.find('<') + 1;
  while (begin < type.size() && type[begin] >= '0' && type[begin] <= '9') {
    size_t x = type.find('x', begin);
    if (x == std::string_view::npos) break;
    begin = x + 1;
  }
  return type.substr(begin, type.rfind('>') - begin);
}

// "tensor<4x8xf32>" -> 32
int64_t num_elements(std::string_view type) {
  int64_t count = 1;
  size_t i = type.find('<') + 1;
  while (i < type.size() && type[i] >= '0' && type[i] <= '9') {
    int64_t size = 0;
    for (; type[i] >= '0' && type[i] <= '9'; ++i) size = 10 * size + (type[i] - '0');
    count *= size;
    ++i;
  }
  return count;
}

// Ops whose results XLA may find to be their operands, or that it moves others across.
constexpr std::array<std::string_view, 14> kMoves = {"stablehlo.broadcast_in_dim",
                                                     "stablehlo.reshape",
                                                     "stablehlo.transpose",
                                                     "stablehlo.slice",
                                                     "stablehlo.dynamic_slice",
                                                     "stablehlo.concatenate",
                                                     "stablehlo.pad",
                                                     "stablehlo.reverse",
                                                     "stablehlo.select",
                                                     "stablehlo.convert",
                                                     "stablehlo.negate",
                                                     "stablehlo.reduce",
                                                     "stablehlo.gather",
                                                     "stablehlo.dynamic_update_slice"};

constexpr std::array<std::string_view, 3> kRoots = {"stablehlo.sqrt", "stablehlo.rsqrt",
                                                    "stablehlo.cbrt"};
// XLA writes these as quotients.
constexpr std::array<std::string_view, 3> kQuotients = {"stablehlo.divide", "stablehlo.logistic",
                                                        "stablehlo.tan"};

bool is_sum(std::string_view op) { return op == "stablehlo.add" || op == "stablehlo.subtract"; }

}  // namespace

HloLine::HloLine(std::string_view text) : op(text.substr(0, text.find_first_of(" (\""))) {
  std::string_view before = text.substr(0, text.find('{'));
  for (size_t i = before.find('%'); i != std::string_view::npos; i = before.find('%', i)) {
    size_t begin = i++;
    while (i < before.size() && is_name(before[i])) ++i;
    operands.push_back(before.substr(begin, i - begin));
  }
  size_t colon = text.rfind(" : ");
  if (colon == std::string_view::npos) return;
  type = text.substr(colon + 3);
  if (type.starts_with('(')) type.remove_prefix(1);
  type = type.substr(0, type.find_first_of(",) "));
}

bool is_exact_float(std::string_view type) {
  std::string_view element = element_of(type);
  return element == "f32" || element == "f64" || element == "f16" || element == "bf16";
}

bool is_complex_type(std::string_view type) { return element_of(type).starts_with("complex<"); }

uint16_t seen_of_result(const HloLine& line, std::string_view text, const uint16_t* operands) {
  if (line.op == "stablehlo.constant") return kConstant | kUniform;
  if (line.op == "stablehlo.iota") return kConstant;
  uint16_t any = 0, all = line.operands.size() ? 0xFFFF : 0;
  for (size_t i = 0; i < line.operands.size(); ++i) {
    any |= operands[i];
    all &= operands[i];
  }
  uint16_t seen = all & (kConstant | kUniform);
  if (is_one_of(line.op, kMoves)) seen |= any & kJoined;
  if (line.op == "stablehlo.broadcast_in_dim") {
    size_t arrow = text.rfind("-> ");
    if (arrow != std::string_view::npos &&
        num_elements(text.substr(arrow + 3)) > num_elements(line.type))
      seen |= kUniform;
  }
  if (is_sum(line.op) && (any & kConstant)) seen |= kSum;
  if (line.op == "stablehlo.multiply") seen |= kProduct | (any & kConstant ? kScaled : 0);
  if (is_one_of(line.op, kQuotients)) seen |= kQuotient;
  if (line.op == "stablehlo.exponential") seen |= kExponential;
  if (is_one_of(line.op, kRoots)) seen |= kRoot;
  if (line.op == "stablehlo.power") seen |= kPower;
  // XLA writes these in terms of others; erf is an op of its own.
  if (line.op.starts_with("chlo.") && line.op != "chlo.erf") seen |= kJoined;
  return seen;
}

Guards guards_of(const HloLine& line, const uint16_t* operands) {
  Guards guards;
  auto guard = [&](size_t i, int what) {
    if (operands[i] & what) guards.joined.push_back(i);
  };
  size_t n = line.operands.size();
  if (line.op.starts_with("chlo.")) {
    for (size_t i = 0; i < n; ++i) guard(i, kJoined);
  } else if (line.op == "stablehlo.divide" && n == 2) {
    guard(0, kQuotient);
    guards.divisor = operands[1] & kUniform;
    if (!guards.divisor) guard(1, kQuotient | kExponential | kRoot | kPower);
  } else if (line.op == "stablehlo.multiply" && n == 2) {
    if (operands[0] & kUniform) guard(1, kScaled);
    if (operands[1] & kUniform) guard(0, kScaled);
    if (guards.joined.empty() && (operands[0] & kExponential)) guard(1, kExponential);
  } else if (is_sum(line.op) && n == 2) {
    if (operands[0] & kConstant) guard(1, kSum);
    if (operands[1] & kConstant) guard(0, kSum);
  } else if (line.op == "stablehlo.log" && n == 1) {
    guard(0, kExponential | kRoot | kPower);
  } else if ((line.op == "stablehlo.sqrt" || line.op == "stablehlo.rsqrt") && n == 1) {
    guard(0, kProduct | kPower);
  } else if (line.op == "stablehlo.power" && n == 2) {
    guard(0, kExponential | kProduct | kRoot | kPower);
  }
  return guards;
}

}  // namespace weft
