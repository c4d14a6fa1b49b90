// Writing and reading attribute values, side by side for each type.
#include "ir/attr_text.h"

#include <algorithm>

#include "ir/jax_text.h"
#include "ir/sharding_text.h"
#include "weft/held.h"

namespace weft {

namespace {

// Characters that end a bare word; a string with one of them is quoted.
constexpr std::string_view kStops = "[](){}=:;,";

bool is_bare(std::string_view s) {
  if (s.empty() || s == "None") return false;
  for (char c : s) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'' || c == '#' || c == '\\' ||
        kStops.find(c) != kStops.npos) {
      return false;
    }
  }
  return true;
}

void print_string(Text& out, const std::string& s) {
  if (is_bare(s)) {
    out << s;
  } else {
    out.quoted(s, '"');
  }
}

// f(i) prints item i.
template <typename F>
void print_tuple(Text& out, size_t n, F&& f) {
  out << '(';
  for (size_t i = 0; i < n; ++i) {
    if (i) out << ", ";
    f(i);
  }
  out << (n == 1 ? ",)" : ")");
}

void print_list(Text& out, const Dims& xs) {
  out << '[';
  for (size_t i = 0; i < xs.size(); ++i) out << (i ? ", " : "") << xs[i];
  out << ']';
}

// Items up to `close`, separated by commas.
template <typename F>
void parse_items(Scanner& in, std::string_view close, F&& item) {
  while (!in.accept(close)) {
    in.skip_field();
    item();
    if (in.accept(close)) return;
    if (!in.accept(",")) in.fail_expected(cat("\",\" or \"", close, "\" after an item"));
  }
}

bool parse_bool(Scanner& in) {
  if (in.accept("True")) return true;
  if (in.accept("False")) return false;
  in.fail_expected("True or False");
}

Dims parse_ints(Scanner& in, std::string_view open, std::string_view close) {
  if (open == "(") {
    in.expect_tuple("to begin the integers");
  } else {
    in.expect(open, "to begin the integers");
  }
  Dims xs;
  parse_items(in, close, [&] { xs.push_back(in.integer()); });
  return xs;
}

Attr parse_bools(Scanner& in) {
  in.expect("(", "to begin the bools");
  Dims xs;
  parse_items(in, ")", [&] { xs.push_back(parse_bool(in)); });
  return xs;
}

Attr parse_ints_list(Scanner& in) {
  in.expect_tuple("to begin the tuples");
  std::vector<Dims> lists;
  parse_items(in, ")", [&] { lists.push_back(parse_ints(in, "(", ")")); });
  return lists;
}

Attr parse_pairs(Scanner& in) {
  in.expect("(", "to begin the pairs");
  std::vector<Dims> lists;
  parse_items(in, ")", [&] {
    in.expect("(", "to begin a pair");
    lists.push_back(parse_ints(in, "[", "]"));
    in.expect(",", "between the lists of a pair");
    lists.push_back(parse_ints(in, "[", "]"));
    in.expect(")", "to end a pair");
  });
  return lists;
}

// A word for each of two operands, where weft has one for both; of precisions the higher one.
Attr parse_pair(Scanner& in) {
  in.expect("(", "to begin a pair");
  std::string_view first = own_value_name(in.word(kStops));
  in.expect(",", "between the words of a pair");
  size_t begin = in.position();
  std::string_view second = own_value_name(in.word(kStops));
  in.expect(")", "to end a pair");
  for (std::string_view word : {"HIGHEST", "HIGH", "DEFAULT"})
    if (first == word || second == word) return std::string(word);
  in.fail_at(begin, "expected a pair of precisions");
}

Attr parse_types(Scanner& in) {
  in.expect("(", "to begin the types");
  std::vector<TypeRef> types;
  parse_items(in, ")", [&] { types.push_back(parse_type_at(in)); });
  return types;
}

Attr parse_names(Scanner& in) {
  in.expect("(", "to begin the names");
  std::vector<std::string> names;
  parse_items(in, ")", [&] { names.push_back(in.quoted('\'')); });
  return names;
}

Attr parse_shardings(Scanner& in) {
  in.expect("(", "to begin the shardings");
  std::vector<ShardingRef> shardings;
  parse_items(in, ")", [&] { shardings.push_back(parse_sharding(in)); });
  return shardings;
}

// "f32[2]:0x0000803F00000040"
Attr parse_constant(Scanner& in) {
  in.skip_space();
  size_t begin = in.position();
  TypeRef type = parse_type_at(in);
  in.expect(":", "and the elements of a constant");
  std::string_view digits = in.word(kStops);
  auto value_of = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
  auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  bool is_hex = digits.starts_with("0x") && digits.size() % 2 == 0 &&
                std::all_of(digits.begin() + 2, digits.end(), is_digit);
  if (!is_hex) in.fail_at(begin, "expected the elements of a constant as 0x0123..EF");
  std::string bytes;
  for (size_t i = 2; i < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(value_of(digits[i]) * 16 + value_of(digits[i + 1])));
  try {
    return ObjectRef(make_constant(type, std::move(bytes)));
  } catch (const Error& error) { in.fail_at(begin, error.what()); }
}

Attr parse_dtype_name(Scanner& in) {
  size_t begin = in.position();
  std::optional<DType> dtype = parse_dtype(in.word(kStops));
  if (dtype) return *dtype;
  in.seek(begin);
  in.fail_expected("a dtype such as float32");
}

}  // namespace

TypeRef parse_type_at(Scanner& in) {
  in.skip_space();
  size_t begin = in.position();
  std::string_view text = in.type_text();
  try {
    return parse_type(text);
  } catch (const Error& error) { in.fail_at(begin, error.what()); }
}

bool is_printed(const AttrSpec& spec, const Attr& value) {
  if (spec.flags & AttrSpec::kFromResult) return false;
  // Floats by value: a nan default would be printed, which is no harm.
  return !(spec.flags & AttrSpec::kHideDefault) || value != spec.default_value;
}

void print_value(Text& out, AttrType type, const Attr& value) {
  if (std::holds_alternative<std::monostate>(value)) {
    out << "None";
    return;
  }
  switch (type) {
    case AttrType::kBool:
      out << std::get<bool>(value);
      return;
    case AttrType::kInt:
      out << std::get<int64_t>(value);
      return;
    case AttrType::kFloat:
      out << std::get<double>(value);
      return;
    case AttrType::kString:
      print_string(out, std::get<std::string>(value));
      return;
    case AttrType::kDType:
      out << numpy_name(std::get<DType>(value));
      return;
    case AttrType::kInts:
      out << std::get<Dims>(value);
      return;
    case AttrType::kBools: {
      const Dims& xs = std::get<Dims>(value);
      print_tuple(out, xs.size(), [&](size_t i) { out << (xs[i] != 0); });
      return;
    }
    case AttrType::kIntsList: {
      const auto& lists = std::get<std::vector<Dims>>(value);
      print_tuple(out, lists.size(), [&](size_t i) { out << lists[i]; });
      return;
    }
    case AttrType::kIntsPairs: {
      const auto& lists = std::get<std::vector<Dims>>(value);
      print_tuple(out, lists.size() / 2, [&](size_t i) {
        out << '(';
        print_list(out, lists[2 * i]);
        out << ", ";
        print_list(out, lists[2 * i + 1]);
        out << ')';
      });
      return;
    }
    case AttrType::kTypes: {
      const auto& types = std::get<std::vector<TypeRef>>(value);
      print_tuple(out, types.size(), [&](size_t i) { out << types[i]; });
      return;
    }
    case AttrType::kAxisNames: {
      const auto& names = std::get<std::vector<std::string>>(value);
      print_tuple(out, names.size(), [&](size_t i) { out.quoted(names[i], '\''); });
      return;
    }
    case AttrType::kMesh:
      out << std::get<MeshRef>(value);
      return;
    case AttrType::kSharding:
      out << std::get<ShardingRef>(value);
      return;
    case AttrType::kShardings: {
      const auto& shardings = std::get<std::vector<ShardingRef>>(value);
      print_tuple(out, shardings.size(), [&](size_t i) { out << shardings[i]; });
      return;
    }
    case AttrType::kConstant:
    case AttrType::kObject:
      out << std::get<ObjectRef>(value)->text();
      return;
    case AttrType::kGraph:
    case AttrType::kGraphs:
      break;
  }
  fail(ErrorKind::kInternal, "print_value expected a value without graphs");
}

Attr parse_value(Scanner& in, AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return parse_bool(in);
    case AttrType::kInt:
      return in.integer();
    case AttrType::kFloat:
      return in.real();
    case AttrType::kString: {
      if (in.peek() == '"') return in.quoted('"');
      if (in.peek() == '(') return parse_pair(in);
      std::string_view word = in.word(kStops);
      if (word.empty()) in.fail_expected("a string");
      return std::string(own_value_name(word));
    }
    case AttrType::kDType:
      return parse_dtype_name(in);
    case AttrType::kInts:
      return parse_ints(in, "(", ")");
    case AttrType::kBools:
      return parse_bools(in);
    case AttrType::kIntsList:
      return parse_ints_list(in);
    case AttrType::kIntsPairs:
      return parse_pairs(in);
    case AttrType::kTypes:
      return parse_types(in);
    case AttrType::kAxisNames:
      return parse_names(in);
    case AttrType::kMesh:
      return parse_mesh(in);
    case AttrType::kSharding:
      return parse_sharding(in);
    case AttrType::kShardings:
      return parse_shardings(in);
    case AttrType::kConstant:
      return parse_constant(in);
    case AttrType::kObject:
      in.fail_at(in.position(), "expected a value that can be written as text; got an object");
    case AttrType::kGraph:
    case AttrType::kGraphs:
      break;
  }
  fail(ErrorKind::kInternal, "parse_value expected a type without graphs");
}

}  // namespace weft
