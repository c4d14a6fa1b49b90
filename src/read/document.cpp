// Types, locations and values of attributes.
#include "read/document.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "weft/checked.h"
#include "weft/hash.h"
#include "weft/op.h"

namespace weft::reader {

Document::Document(std::string_view text, std::string_view file) : source_(text), file_(file) {
  find_aliases();
  find_resources();
}

// "#loc3 = loc(...)" and "!t = tensor<...>" stand on lines of their own, in front of the module or
// behind it.
void Document::find_aliases() {
  std::string_view text = source_.text();
  if (text.find('#') == text.npos && text.find('!') == text.npos) return;
  for (size_t at = 0; at < text.size();) {
    size_t line_end = std::min(text.find('\n', at), text.size());
    if (text[at] == '#' || text[at] == '!') {
      Cursor in(source_, text.substr(at));
      in.accept(text[at]);
      std::string_view name = in.name();
      if (in.accept('=')) {
        const char* begin = in.position();
        std::string_view value = in.value();
        if (!aliases_.try_emplace({text.data() + at, name.size() + 1}, value).second)
          in.fail_at(text.data() + at, cat("expected a new name; got ", text[at], name, " twice"));
        // A value may go on over several lines.
        line_end = std::max(line_end, static_cast<size_t>(begin - text.data()) + value.size());
      }
    }
    at = line_end + 1;
  }
}

// {-# dialect_resources: { builtin: { name: "0x0400..." } } #-} at the end of the text.
void Document::find_resources() {
  std::string_view text = source_.text();
  text = text.substr(0, text.find_last_not_of(" \n\t\r") + 1);
  size_t begin = text.ends_with("#-}") ? text.rfind("{-#") : text.npos;
  if (begin == text.npos) return;
  Cursor in(source_, text.substr(begin + 3));
  while (!in.at_end() && in.peek() != '#') {
    if (in.accept('{') || in.accept('}') || in.accept(',')) continue;
    std::string_view name = in.peek() == '"' ? in.quoted() : in.word();
    in.expect(":", "after the name of a resource");
    if (in.peek() == '"') {
      if (!resources_.try_emplace(name, in.quoted()).second)
        in.fail_at(name.data(), cat("expected a new name; got ", name, " twice"));
    } else if (in.peek() != '{') {
      in.fail_expected("a resource or a group of them");
    }
  }
}

std::string_view Document::resource(std::string_view name, const char* at) const {
  auto found = resources_.find(name);
  if (found == resources_.end())
    source_.fail(at, ErrorKind::kParse,
                 cat("expected a resource that the text holds; got ", name, ", which it does not"));
  return found->second;
}

std::string_view Document::resolved(std::string_view value) const {
  for (int depth = 0; depth < kMaxAliasDepth; ++depth) {
    if (value.empty() || (value[0] != '#' && value[0] != '!')) return value;
    auto found = aliases_.find(value);
    if (found == aliases_.end()) return value;
    value = found->second;
  }
  source_.fail(value.data(), ErrorKind::kParse, "aliases of one another");
}

// ---- Types

DType Document::element_type(Cursor& in) const {
  static constexpr auto kNames = [] {
    std::array<std::pair<std::string_view, DType>, kNumDTypes> names{};
    size_t i = 0;
#define X(name, short_name, numpy, mlir, ...) names[i++] = {mlir, DType::name};
    WEFT_DTYPES(X)
#undef X
    return names;
  }();
  const char* begin = in.position();
  std::string_view name = in.word();
  if (name == "complex") {
    std::string_view part = in.group();
    if (part == "<f32>") return DType::kC64;
    if (part == "<f64>") return DType::kC128;
  } else {
    for (const auto& [mlir, dtype] : kNames)
      if (mlir == name && dtype != DType::kFloat0) return dtype;
    // Signedness that StableHLO leaves out.
    if (name.starts_with("si")) {
      for (const auto& [mlir, dtype] : kNames)
        if (mlir == name.substr(1) && is_signed_int(dtype)) return dtype;
    }
  }
  in.seek(begin);
  source_.fail(begin, ErrorKind::kNotImplemented,
               cat("expected an element type that arrays have (i1, i32, ui8, f32, bf16, ",
                   "complex<f32>, ...); got ", in.element()));
}

TypeRef Document::tensor(std::string_view text) const {
  Cursor in(source_, text.substr(1, text.size() - 2));  // inside of < and >
  Dims shape;
  for (;;) {
    char c = in.peek();
    if (c == '?' || c == '*')
      source_.fail(in.position(), ErrorKind::kNotImplemented,
                   cat("expected a shape that is known; got tensor", text,
                       "\n  Export or lower the program for arguments of fixed shapes."));
    if (!std::isdigit(static_cast<unsigned char>(c))) break;
    shape.push_back(in.integer());
    if (in.here() != 'x') in.fail_expected("x after a dimension");
    in.seek(in.position() + 1);
    if (shape.size() > kMaxRank)
      in.fail_at(text.data(), cat("expected at most ", kMaxRank, " dimensions"));
  }
  DType dtype = element_type(in);
  if (in.accept(',')) {
    std::string_view encoding = in.element();
    if (encoding.find("bounds") != encoding.npos)
      source_.fail(encoding.data(), ErrorKind::kNotImplemented,
                   cat("expected a shape that is known; got bounds: ", encoding));
  }
  if (!in.at_end()) in.fail_expected("> after the element type");
  try {
    return make_type(dtype, shape);
  } catch (const Error& error) { source_.fail(text.data(), ErrorKind::kParse, error.what()); }
}

TypeRef Document::type(Cursor& in) {
  in.skip_space();
  const char* begin = in.position();
  if (in.here() == '!') {
    std::string_view name = in.value();
    if (name == "!stablehlo.token" || name == "!mhlo.token") return kToken;
    std::string_view known = resolved(name);
    if (known.data() != name.data()) {
      Cursor alias(source_, known);
      return type(alias);
    }
    source_.fail(begin, ErrorKind::kNotImplemented,
                 cat("expected the type of an array or a token; got ", name));
  }
  std::string_view kind = in.word();
  if (kind != "tensor" || in.here() != '<') {
    if (kind == "tuple" || kind == "memref" || kind == "vector" || kind == "index" ||
        kind == "none" || kind.starts_with("f") || kind.starts_with("i"))
      source_.fail(begin, ErrorKind::kNotImplemented,
                   cat("expected the type of an array, tensor<...>; got ", kind));
    in.seek(begin);
    in.fail_expected("a type such as tensor<4x3xf32>");
  }
  std::string_view text = in.group();
  uint64_t hash = hash_bytes(text);
  uint32_t found = type_index_.find(hash, [&](uint32_t i) { return types_[i].first == text; });
  if (found != IndexTable::kAbsent) return types_[found].second;
  TypeRef made = tensor(text);
  type_index_.insert(hash, static_cast<uint32_t>(types_.size()));
  types_.emplace_back(text, made);
  return made;
}

TypeRefs Document::types(Cursor& in) {
  TypeRefs all;
  bool bracketed = in.accept('(');
  if (bracketed && in.accept(')')) return all;
  do {
    all.push_back(type(in));
    // Attributes of a function's result.
    if (bracketed && in.peek() == '{') in.group();
  } while (in.accept(','));
  if (bracketed) in.expect(")", "after types");
  return all;
}

// ---- Locations

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "encoder/layer_1/f" names a function in scopes.
Loc named_loc(std::string_view file, int line, std::string_view quoted) {
  std::string path = unescaped(quoted);
  size_t slash = path.rfind('/');
  if (slash == path.npos) return make_loc(file, line, path);
  return make_loc(file, line, path.substr(slash + 1), path.substr(0, slash));
}

}  // namespace

// The first file with a line, and the first name in front of it.
Loc Document::find_location(std::string_view text, int depth) {
  std::string_view name;
  for (Cursor in(source_, text); !in.at_end();) {
    char c = in.here();
    if (c == '"') {
      std::string_view string = in.quoted();
      if (in.here() == ':' && is_digit(in.here(1))) {
        in.accept(':');
        int64_t line = in.integer();
        if (line < 0 || line > std::numeric_limits<int>::max()) return kNoLoc;
        return named_loc(unescaped(string), static_cast<int>(line), name);
      }
      if (name.empty()) name = string;
    } else if (c == '#' && depth < kMaxAliasDepth) {
      const char* begin = in.position();
      in.accept('#');
      in.name();
      std::string_view alias = in.since(begin), value = resolved(alias);
      if (value.data() == alias.data()) continue;
      if (Loc loc = find_location(value, depth + 1); loc != kNoLoc) {
        if (name.empty()) return loc;
        const LocInfo& info = loc_info(loc);
        return named_loc(info.file, info.line, name);
      }
    } else {
      in.seek(in.position() + 1);
    }
  }
  return kNoLoc;
}

Loc Document::location(Cursor& in, const char* op) {
  Loc loc = kNoLoc;
  if (in.peek() == 'l' && in.accept("loc(")) {
    in.seek(in.position() - 1);
    std::string_view text = in.group();
    auto [known, added] = locations_.try_emplace(text, kNoLoc);
    if (added) known->second = find_location(text, 0);
    loc = known->second;
  }
  if (loc == kNoLoc && !file_.empty()) loc = make_loc(file_, source_.line(op), {});
  return loc;
}

// ---- Values of attributes

bool Document::boolean(std::string_view value) const {
  Cursor in(source_, resolved(value));
  if (in.accept_word("true") || in.accept_word("unit")) return true;
  if (!in.accept_word("false")) in.fail_expected("true or false");
  return false;
}

int64_t Document::integer(std::string_view value) const {
  Cursor in(source_, resolved(value));
  return in.integer();
}

std::string_view Document::inside(std::string_view value) const {
  value = resolved(value);
  size_t open = value.find_first_of("<[{(");
  if (open == value.npos || open + 1 >= value.size())
    source_.fail(value.data(), ErrorKind::kParse, cat("expected brackets; got ", value));
  Cursor in(source_, value.substr(open));
  std::string_view group = in.group();
  return group.substr(1, group.size() - 2);
}

// All integers that stand in brackets, whatever their depth.
void Document::append_ints(Cursor& in, Dims& to) const {
  while (!in.at_end()) {
    char c = in.here();
    if (c == '[' || c == ']' || c == ',' || c == '(' || c == ')') {
      in.seek(in.position() + 1);
    } else if (in.accept_word("true")) {
      to.push_back(1);
    } else if (in.accept_word("false")) {
      to.push_back(0);
    } else {
      to.push_back(in.integer());
      if (in.accept(':')) in.word();  // the type of an element
    }
  }
}

namespace {

// Of "[1, 2]" and the like, dense values of attributes, at most this many from one number.
constexpr int64_t kMostRepeated = 1 << 12;

}  // namespace

Dims Document::ints(std::string_view value) const {
  value = resolved(value);
  Dims all;
  if (value.starts_with('[')) {
    Cursor in(source_, inside(value));
    append_ints(in, all);
    return all;
  }
  if (value.starts_with("array")) {
    Cursor in(source_, inside(value));
    in.word();
    if (!in.accept(':')) return all;
    append_ints(in, all);
    return all;
  }
  if (!value.starts_with("dense"))
    source_.fail(value.data(), ErrorKind::kParse, cat("expected integers; got ", value));
  std::string_view body = inside(value);
  Cursor in(source_, body);
  append_ints(in, all);
  // "dense<0> : tensor<2x2xi64>" is one number for all.
  size_t type = value.find("tensor<");
  if (all.size() == 1 && body.find('[') == body.npos && type != value.npos) {
    Cursor shape(source_, value.substr(type + 7));
    Checked count = 1;
    while (is_digit(shape.peek())) {
      count = count * shape.integer();
      if (shape.here() != 'x') break;
      shape.seek(shape.position() + 1);
    }
    if (!count.within(0, kMostRepeated))
      source_.fail(value.data(), ErrorKind::kParse, "expected fewer numbers");
    all = Dims(static_cast<size_t>(count.value()), all[0]);
  }
  return all;
}

// Of as many numbers each: pairs, as padding has them, unless brackets say otherwise.
std::vector<Dims> Document::rows(std::string_view value) const {
  value = resolved(value);
  std::vector<Dims> all;
  std::string_view body = inside(value);
  if (body.find('[') != body.npos) {
    if (value.starts_with("dense")) body = inside(body);
    Cursor in(source_, body);
    while (!in.at_end()) {
      if (in.accept(',')) continue;
      all.push_back(ints(in.group()));
    }
    return all;
  }
  Dims flat = ints(value);
  for (size_t i = 0; i + 1 < flat.size(); i += 2) all.push_back({flat[i], flat[i + 1]});
  return all;
}

std::string_view Document::keyword(std::string_view value) const {
  value = resolved(value);
  if (value.starts_with('#')) value = inside(value);
  size_t space = value.find_last_of(" \t");
  return space == value.npos ? value : value.substr(space + 1);
}

std::string Document::string(std::string_view value) const {
  Cursor in(source_, resolved(value));
  if (in.peek() != '"') in.fail_expected("a string");
  return unescaped(in.quoted());
}

std::string_view Document::symbol(std::string_view value) const {
  Cursor in(source_, resolved(value));
  if (in.peek() == '"') return in.quoted();
  in.expect("@", "to begin the name of a function");
  return in.name();
}

std::vector<std::string_view> Document::list(std::string_view value) const {
  std::vector<std::string_view> all;
  for (Cursor in(source_, inside(value)); !in.at_end();) {
    if (in.accept(',')) continue;
    std::string_view element = in.element();
    if (element.empty()) in.fail_expected("an element");
    all.push_back(element);
  }
  return all;
}

NamedList Document::fields(std::string_view value) const {
  NamedList all;
  std::string_view body = inside(value);
  if (body.starts_with('{')) body = inside(body);  // <{...}>
  for (Cursor in(source_, body); !in.at_end();) {
    if (in.accept(',')) continue;
    std::string_view name = in.peek() == '"' ? in.quoted() : in.word();
    if (name.empty()) in.fail_expected("the name of an attribute");
    all.push_back({name, in.accept('=') ? in.element() : std::string_view("unit")});
  }
  return all;
}

}  // namespace weft::reader
