#include "emit/exact.h"

#include <utility>

#include "weft/text.h"

namespace weft {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_'; }

// "tensor<4x8xf32>" -> "f32"
std::string_view element_of(std::string_view type) {
  size_t begin = type.find('<') + 1;
  while (begin < type.size() && is_digit(type[begin])) {
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

constexpr std::pair<std::string_view, HloKind> kKinds[] = {
    {"add", HloKind::kSum},
    {"multiply", HloKind::kMultiply},
    {"abs", HloKind::kMagnitude},
    {"dot_general", HloKind::kDot},
    {"subtract", HloKind::kSum},
    {"divide", HloKind::kDivide},
    {"constant", HloKind::kConstant},
    {"broadcast_in_dim", HloKind::kBroadcast},
    {"iota", HloKind::kIota},
    {"reshape", HloKind::kMove},
    {"transpose", HloKind::kMove},
    {"slice", HloKind::kMove},
    {"dynamic_slice", HloKind::kMove},
    {"concatenate", HloKind::kMove},
    {"pad", HloKind::kMove},
    {"reverse", HloKind::kMove},
    {"select", HloKind::kMove},
    {"convert", HloKind::kMove},
    {"negate", HloKind::kMove},
    {"reduce", HloKind::kMove},
    {"gather", HloKind::kMove},
    {"dynamic_update_slice", HloKind::kMove},
    {"logistic", HloKind::kQuotient},
    {"tan", HloKind::kQuotient},
    {"exponential", HloKind::kExponential},
    {"log", HloKind::kLog},
    {"sqrt", HloKind::kSquareRoot},
    {"rsqrt", HloKind::kSquareRoot},
    {"cbrt", HloKind::kCubeRoot},
    {"power", HloKind::kPower},
};

// Every line of a program comes here: sizes and first letters reject nearly all names, and the most
// frequent ones stand first.
HloKind kind_of(std::string_view text) {
  constexpr std::string_view kStableHlo = "stablehlo.", kChlo = "chlo.";
  text.remove_prefix(text.starts_with('"'));
  if (!text.starts_with(kStableHlo)) {
    // erf is an op of XLA's own.
    bool is_expanded = text.starts_with(kChlo) && !text.starts_with("chlo.erf ");
    return is_expanded ? HloKind::kExpanded : HloKind::kOther;
  }
  text.remove_prefix(kStableHlo.size());
  size_t size = 0;
  while (size < text.size() && is_word(text[size])) ++size;
  for (const auto& [name, kind] : kKinds)
    if (name.size() == size && name[0] == text[0] && text.starts_with(name)) return kind;
  return HloKind::kOther;
}

}  // namespace

HloName::HloName(std::string_view text_) : text(text_), of(Of::kLine) {
  size_t i = 1;
  if (text.substr(i).starts_with("arg")) {
    of = Of::kArgument;
    i += 3;
  }
  size_t begin = i;
  for (; i < text.size() && is_digit(text[i]); ++i)
    number = 10 * number + static_cast<uint32_t>(text[i] - '0');
  if (i == begin) of = Of::kConstant;
  while (i < text.size() && (is_word(text[i]) || text[i] == '#')) ++i;
  text = text.substr(0, i);
}

HloLine::HloLine(std::string_view text_) : text(text_), kind(kind_of(text_)) {
  std::string_view before = text.substr(0, text.find('{'));
  for (size_t i = before.find('%'); i != std::string_view::npos;
       i = before.find('%', i + operands.back().name.text.size()))
    operands.push_back({HloName(before.substr(i))});
}

static std::string_view first_type(std::string_view types) {
  types.remove_prefix(types.starts_with('('));
  return types.substr(0, types.find_first_of(",) "));
}

std::string_view HloLine::type() const {
  size_t colon = text.rfind(" : ");
  return colon == std::string_view::npos ? "" : first_type(text.substr(colon + 3));
}

std::string_view HloLine::result_type() const {
  size_t arrow = text.rfind("-> ");
  return arrow == std::string_view::npos ? type() : first_type(text.substr(arrow + 3));
}

bool is_exact_float(std::string_view type) {
  std::string_view element = element_of(type);
  return element == "f32" || element == "f64" || element == "f16" || element == "bf16";
}

bool is_complex_type(std::string_view type) { return element_of(type).starts_with("complex<"); }

uint16_t seen_of_result(const HloLine& line) {
  uint16_t any = 0, all = line.operands.empty() ? 0 : 0xFFFF;
  for (const HloLine::Operand& operand : line.operands) {
    any |= operand.seen;
    all &= operand.seen;
  }
  uint16_t seen = all & (kConstant | kUniform);
  switch (line.kind) {
    case HloKind::kConstant:
      return kConstant | kUniform;
    case HloKind::kIota:
      return kConstant;
    case HloKind::kBroadcast:
      if (num_elements(line.result_type()) > num_elements(line.type())) seen |= kUniform;
      return seen | (any & kJoined);
    case HloKind::kMove:
      return seen | (any & kJoined);
    case HloKind::kSum:
      return seen | (any & kConstant ? kSum : 0);
    case HloKind::kMultiply:
      return seen | kProduct | (any & kConstant ? kScaled : 0);
    case HloKind::kDivide:
    case HloKind::kQuotient:
      return seen | kQuotient;
    case HloKind::kExponential:
      return seen | kExponential;
    case HloKind::kSquareRoot:
    case HloKind::kCubeRoot:
      return seen | kRoot;
    case HloKind::kPower:
      return seen | kPower;
    case HloKind::kExpanded:
      return seen | kJoined;
    case HloKind::kLog:
    case HloKind::kMagnitude:
    case HloKind::kDot:
    case HloKind::kOther:
      return seen;
  }
  return seen;
}

bool hides_overflow(const HloLine& line) {
  const auto& xs = line.operands;
  switch (line.kind) {
    case HloKind::kMagnitude:
    case HloKind::kDot:
      break;
    case HloKind::kMultiply:
      if (xs.size() == 2 && ((xs[0].seen | xs[1].seen) & kConstant)) return false;
      break;
    case HloKind::kMove:
      if (!line.text.starts_with("stablehlo.reduce(") ||
          line.text.find(" applies stablehlo.multiply ") == std::string_view::npos)
        return false;
      break;
    default:
      return false;
  }
  std::string_view element = element_of(line.result_type());
  return element.starts_with("i") && element != "i1";
}

Guards guards_of(const HloLine& line) {
  Guards guards;
  const auto& xs = line.operands;
  auto guard = [&](size_t i, int what) {
    if (i < xs.size() && (xs[i].seen & what)) guards.joined.push_back(i);
  };
  bool is_binary = xs.size() == 2;
  switch (line.kind) {
    case HloKind::kExpanded:
      for (size_t i = 0; i < xs.size(); ++i) guard(i, kJoined);
      break;
    case HloKind::kDivide:
      if (!is_binary) break;
      guard(0, kQuotient);
      guards.divisor = xs[1].seen & kUniform;
      if (!guards.divisor) guard(1, kQuotient | kExponential | kRoot | kPower);
      break;
    case HloKind::kMultiply:
      if (!is_binary) break;
      if (xs[0].seen & kUniform) guard(1, kScaled);
      if (xs[1].seen & kUniform) guard(0, kScaled);
      if (guards.joined.empty() && (xs[0].seen & kExponential)) guard(1, kExponential);
      break;
    case HloKind::kSum:
      if (!is_binary) break;
      if (xs[0].seen & kConstant) guard(1, kSum);
      if (xs[1].seen & kConstant) guard(0, kSum);
      break;
    case HloKind::kLog:
      guard(0, kExponential | kRoot | kPower);
      break;
    case HloKind::kSquareRoot:
      guard(0, kProduct | kPower);
      break;
    case HloKind::kPower:
      guard(0, kExponential | kProduct | kRoot | kPower);
      break;
    default:
      break;
  }
  return guards;
}

}  // namespace weft
