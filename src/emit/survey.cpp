// A line is one operation, or begins with one: those in its regions are lines of their own.
#include "emit/survey.h"

#include <algorithm>
#include <array>

#include "weft/hash.h"
#include "weft/text.h"

namespace weft {
namespace {

// How far back operands are compared. XLA's kernels are of about as many operations that follow
// from each other.
constexpr int kDepth = 4;

constexpr std::array<std::string_view, 7> kFree{
    "broadcast_in_dim", "concatenate", "constant", "iota", "reshape", "slice", "transpose"};
// What XLA computes once, in a kernel of its own, if several operations use it.
constexpr std::array<std::string_view, 17> kFunctions{
    "atan2", "cbrt",  "cosine",   "divide", "erf",       "exponential",  "exponential_minus_one",
    "log",   "power", "logistic", "rsqrt",  "remainder", "log_plus_one", "sine",
    "sqrt",  "tan",   "tanh"};
// Whose results are in memory: of libraries, and of kernels with loops of their own.
constexpr std::array<std::string_view, 15> kStored{
    "case",        "concatenate",   "convolution",
    "custom_call", "dot_general",   "fft",
    "gather",      "dynamic_slice", "dynamic_update_slice",
    "pad",         "reduce",        "reduce_window",
    "scatter",     "sort",          "while"};
// Of those what takes no kernel of XLA's emitters, or the same one from both.
constexpr std::array<std::string_view, 7> kLibrary{
    "case", "convolution", "custom_call", "dot_general", "fft", "sort", "while"};

template <size_t N>
bool is_among(std::string_view x, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), x) != names.end();
}

bool is_of_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// The name that stands at a place; empty if there is none.
std::string_view name_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_of_name(text[end])) ++end;
  return text.substr(at, end - at);
}

// "add" of "stablehlo.add %0, ..." and of "\"chlo.add\"(...)"; empty for other dialects.
std::string_view operation_of(std::string_view line) {
  size_t quoted = line.starts_with('"');
  for (std::string_view dialect : {"stablehlo.", "chlo."})
    if (line.substr(quoted).starts_with(dialect)) return name_at(line, quoted + dialect.size());
  return {};
}

// How many elements the largest array has of those that a line has types of. Dimensions may have a
// product beyond 64 bits where another one is 0.
double most_elements(std::string_view line) {
  constexpr std::string_view kTensor = "tensor<";
  double most = 0;
  for (size_t at = 0; (at = line.find(kTensor, at)) != line.npos;) {
    at += kTensor.size();
    double product = 1;
    while (at < line.size() && is_digit(line[at])) {
      int64_t dim = 0;
      for (; at < line.size() && is_digit(line[at]); ++at) dim = dim * 10 + (line[at] - '0');
      product *= static_cast<double>(dim);
      at += at < line.size() && line[at] == 'x';
    }
    most = std::max(most, product);
  }
  return most;
}

}  // namespace

void FunctionSurvey::add(std::string_view name, std::string_view line) {
  line = line.substr(0, line.find('\n'));
  std::string_view operation = operation_of(line);
  size_t arrow = line.rfind("->");
  Row row{.elements = most_elements(line),
          .computes = !is_among(operation, kFree),
          .is_function = is_among(operation, kFunctions),
          .is_stored = is_among(operation, kStored),
          .joins = operation == "concatenate" || operation == "gather"};
  row.size = arrow == line.npos ? row.elements : most_elements(line.substr(arrow));
  counts_.operations += row.computes;
  counts_.moves += !row.computes && operation != "constant";
  counts_.kernels += row.is_stored && !is_among(operation, kLibrary);
  counts_.shifts += operation.starts_with("shift_");
  counts_.reductions += operation == "reduce";
  uint64_t hash = 0xcbf29ce484222325ull;
  for (size_t at = 0; at < line.size(); ++at) {
    hash = (hash ^ static_cast<unsigned char>(line[at])) * 0x100000001b3ull;
    if (line[at] != '%') continue;
    std::string_view operand = name_at(line, at + 1);
    auto found = numbers_.find(hash_bytes(operand));
    row.operands.push_back(found == numbers_.end() ? kArgument : found->second);
    at += operand.size();
    if (row.operands.back() != kArgument) ++rows_[row.operands.back()].uses;
  }
  row.own = mix(hash);
  numbers_[hash_bytes(name.substr(1))] = static_cast<uint32_t>(rows_.size());
  rows_.push_back(std::move(row));
}

void FunctionSurvey::count_scalar_work() {
  for (Row& row : rows_) {
    bool is_fused = row.computes && !row.is_stored;
    if (row.is_function && row.uses > 1) {
      row.is_stored = true;
      ++counts_.kernels;
    }
    for (uint32_t x : row.operands) {
      if (x == kArgument) continue;
      const Row& read = rows_[x];
      row.reads_stored |= read.reads_stored || (read.is_stored && read.size == row.size);
    }
    if (row.joins || (is_fused && row.reads_stored))
      counts_.scalar_work += row.elements * (row.is_function ? 3 : 1);
  }
}

void Surveyor::add(FunctionSurvey& function) {
  function.count_scalar_work();
  const std::vector<FunctionSurvey::Row>& rows = function.rows_;
  std::vector<uint64_t> labels, before;
  for (const FunctionSurvey::Row& row : rows) labels.push_back(row.own);
  for (int i = 0; i < kDepth; ++i) {
    before = labels;
    for (size_t r = 0; r < rows.size(); ++r) {
      labels[r] = rows[r].own;
      for (uint32_t x : rows[r].operands)
        labels[r] = hash_combine(labels[r], x == FunctionSurvey::kArgument ? 0 : before[x]);
    }
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    if (!rows[r].computes) continue;
    distinct_.insert(rows[r].own);
    unlike_.insert(labels[r]);
  }
  counts_.operations += function.counts_.operations;
  counts_.shifts += function.counts_.shifts;
  counts_.reductions += function.counts_.reductions;
  counts_.moves += function.counts_.moves;
  counts_.kernels += function.counts_.kernels;
  counts_.scalar_work += function.counts_.scalar_work;
}

void Surveyor::note(TypeRef type) {
  DType dtype = type->dtype();
  int bits = info(dtype).bits;
  counts_.has_rare_types |=
      is_complex(dtype) || (is_float(dtype) && bits <= 8) || (is_integer(dtype) && bits < 8);
}

ModuleSurvey Surveyor::survey() const {
  ModuleSurvey made = counts_;
  made.distinct = distinct_.size();
  made.unlike = unlike_.size();
  return made;
}

}  // namespace weft
