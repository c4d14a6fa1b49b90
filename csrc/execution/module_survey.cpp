// Counting what a module's text is made of, a line at a time: emission writes an operation per
// line, or in its first one.

#include "execution/module_survey.h"

#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "execution/module_text.h"
#include "weft/hash.h"
#include "weft/kernel_call.h"

namespace nb = nanobind;

namespace weft::py {
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
// What takes no kernel of XLA's emitters, or the same one from both.
constexpr std::array<std::string_view, 7> kLibrary{
    "case", "convolution", "custom_call", "dot_general", "fft", "sort", "while"};

template <size_t N>
bool is_among(std::string_view x, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), x) != names.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_of_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// The name that stands at a place; what is no name is empty.
std::string_view name_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_of_name(text[end])) ++end;
  return text.substr(at, end - at);
}

// How many elements the largest array has of those that a line has types of.
int64_t most_elements(std::string_view line) {
  constexpr std::string_view kTensor = "tensor<";
  int64_t most = 0;
  for (size_t at = 0; (at = line.find(kTensor, at)) != line.npos;) {
    at += kTensor.size();
    int64_t product = 1;
    while (at < line.size() && is_digit(line[at])) {
      int64_t dim = 0;
      for (; at < line.size() && is_digit(line[at]); ++at) dim = dim * 10 + (line[at] - '0');
      product *= dim;
      at += at < line.size() && line[at] == 'x';
    }
    most = std::max(most, product);
  }
  return most;
}

// Of complex numbers, and of types of 4 to 8 bits, as far as they stand in a text.
bool names_rare_types(std::string_view text) {
  for (std::string_view type : {"complex<", "xf4E", "xf6E", "xf8E", "<f4E", "<f6E", "<f8E", "xi2>",
                                "xi4>", "xui2>", "xui4>", "<i2>", "<i4>", "<ui2>", "<ui4>"})
    if (text.find(type) != text.npos) return true;
  return false;
}

// The operations of a function, whose values have names of their own.
class Function {
 public:
  // An operation of a line, "%2 = stablehlo.add %0, %1 : ...", and its name, "add".
  void add(std::string_view results, std::string_view operation, std::string_view name) {
    size_t arrow = operation.rfind("->");
    Row row{.name = name, .elements = most_elements(operation)};
    row.size = arrow == operation.npos ? row.elements : most_elements(operation.substr(arrow));
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t at = 0; at < operation.size(); ++at) {
      hash = (hash ^ static_cast<unsigned char>(operation[at])) * 0x100000001b3ull;
      if (operation[at] != '%') continue;
      std::string_view name = name_at(operation, at + 1);
      auto found = numbers_.find(name);
      row.operands.push_back(found == numbers_.end() ? kArgument : found->second);
      at += name.size();
    }
    row.own = mix(hash);
    numbers_[name_at(results, 1)] = static_cast<uint32_t>(rows_.size());
    rows_.push_back(std::move(row));
  }

  void end(ModuleSurvey& out, std::unordered_set<uint64_t>& distinct,
           std::unordered_set<uint64_t>& unlike) {
    add_scalar_work(out);
    std::vector<uint64_t> labels, before;
    for (const Row& row : rows_) labels.push_back(row.own);
    for (int i = 0; i < kDepth; ++i) {
      before = labels;
      for (size_t r = 0; r < rows_.size(); ++r) {
        labels[r] = rows_[r].own;
        for (uint32_t x : rows_[r].operands)
          labels[r] = hash_combine(labels[r], x == kArgument ? 0 : before[x]);
      }
    }
    for (size_t r = 0; r < rows_.size(); ++r) {
      if (is_among(rows_[r].name, kFree)) continue;
      distinct.insert(rows_[r].own);
      unlike.insert(labels[r]);
    }
    numbers_.clear();
    rows_.clear();
  }

 private:
  static constexpr uint32_t kArgument = UINT32_MAX;
  struct Row {
    std::string_view name;
    int64_t elements = 0;  // of the largest array
    int64_t size = 0;      // of the largest result
    uint64_t own = 0;      // a hash of all but the names of operands
    std::vector<uint32_t> operands;
    size_t uses = 0;
    bool reads_stored = false;  // directly or not, an array that the program itself has stored
  };

  // The old emitters' kernels that read such arrays write results of the same size into them. LLVM
  // does not vectorise those.
  void add_scalar_work(ModuleSurvey& out) {
    for (Row& row : rows_)
      for (uint32_t x : row.operands)
        if (x != kArgument) ++rows_[x].uses;
    for (Row& row : rows_) {
      for (uint32_t x : row.operands)
        if (x != kArgument)
          row.reads_stored |=
              rows_[x].reads_stored || (is_stored(rows_[x]) && rows_[x].size == row.size);
      bool joins = row.name == "concatenate" || row.name == "gather";
      bool computes = !is_among(row.name, kFree) && !is_among(row.name, kStored);
      if (joins || (computes && row.reads_stored))
        out.scalar_work += row.elements * (is_among(row.name, kFunctions) ? 3 : 1);
      out.kernels += is_stored(row) && !is_among(row.name, kLibrary);
      out.moves += is_among(row.name, kFree) && row.name != "constant";
    }
  }

  static bool is_stored(const Row& row) {
    return is_among(row.name, kStored) || (row.uses > 1 && is_among(row.name, kFunctions));
  }

  std::unordered_map<std::string_view, uint32_t> numbers_;
  std::vector<Row> rows_;
};

}  // namespace

ModuleSurvey survey(std::string_view module) {
  ModuleSurvey out{.has_rare_types = names_rare_types(module)};
  std::unordered_set<uint64_t> distinct, unlike;
  Function function;
  while (!module.empty()) {
    std::string_view line = without_loc(take_line(module));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    if (line.starts_with("func.func")) function.end(out, distinct, unlike);
    size_t equals = line.find(" = ");
    if (!line.starts_with('%') || equals == line.npos) continue;
    std::string_view operation = line.substr(equals + 3), name;
    size_t quoted = operation.starts_with('"');
    for (std::string_view dialect : {"stablehlo.", "chlo."})
      if (operation.substr(quoted).starts_with(dialect))
        name = name_at(operation, quoted + dialect.size());
    function.add(line.substr(0, equals), operation, name);
    if (is_among(name, kFree)) continue;
    ++out.operations;
    out.shifts += name.starts_with("shift_");
    out.reductions += name == "reduce";
  }
  function.end(out, distinct, unlike);
  out.distinct = distinct.size();
  out.unlike = unlike.size();
  return out;
}

void bind_module_survey(nb::module_& m) {
  nb::class_<ModuleSurvey>(m, "ModuleSurvey", "Counts of a module's operations.")
      .def_ro("operations", &ModuleSurvey::operations)
      .def_ro("distinct", &ModuleSurvey::distinct)
      .def_ro("unlike", &ModuleSurvey::unlike)
      .def_ro("shifts", &ModuleSurvey::shifts)
      .def_ro("reductions", &ModuleSurvey::reductions)
      .def_ro("kernels", &ModuleSurvey::kernels)
      .def_ro("moves", &ModuleSurvey::moves)
      .def_ro("scalar_work", &ModuleSurvey::scalar_work)
      .def_ro("has_rare_types", &ModuleSurvey::has_rare_types);
  m.def("survey_module", &survey);
  m.attr("KERNEL_CALL") = nb::str(kKernelCall.data(), kKernelCall.size());
}

}  // namespace weft::py
