#include "read/reader.h"

#include <algorithm>

#include "weft/hash.h"

namespace weft::reader {

// ---- Frames

uint32_t Frame::index_of(std::string_view name, uint64_t hash) const {
  return index_.find(hash, [&](uint32_t i) { return definitions_[i].name == name; });
}

std::optional<Entry> Frame::find(std::string_view name) {
  size_t sharp = name.find('#');
  if (uint32_t i = index_of(name.substr(0, sharp), hash_bytes(name.substr(0, sharp)));
      i != IndexTable::kAbsent) {
    uint32_t number = 0;
    if (sharp != name.npos)
      for (char c : name.substr(sharp + 1))
        number = std::min(number * 10 + uint32_t(c - '0'), 1u << 24);
    if (number >= definitions_[i].count) return std::nullopt;
    return values_[definitions_[i].first + number];
  }
  if (sharp != name.npos)
    if (uint32_t i = index_of(name, hash_bytes(name)); i != IndexTable::kAbsent)
      return values_[definitions_[i].first];
  std::optional<Entry> outside = outer_ ? outer_->find(name) : std::nullopt;
  if (!outside) return std::nullopt;
  Entry here = *outside;
  if (const Literal* literal = here.is_token() ? nullptr : outer_->b.as_literal(here.value)) {
    here.value = b.literal(*literal);
  } else if (!here.is_token()) {
    here.value = b.input(here.type);
    captured_.push_back(*outside);
    inputs_.push_back(here.value);
  }
  define(name, {&here, 1});
  return here;
}

bool Frame::define(std::string_view name, std::span<const Entry> values) {
  uint64_t hash = hash_bytes(name);
  if (index_of(name, hash) != IndexTable::kAbsent) return false;
  index_.insert(hash, static_cast<uint32_t>(definitions_.size()));
  definitions_.push_back(
      {name, static_cast<uint32_t>(values_.size()), static_cast<uint32_t>(values.size())});
  values_.insert(values_.end(), values.begin(), values.end());
  return true;
}

// ---- Functions

class Reader::Level {
 public:
  Level(Reader& reader, const Cursor& in) : reader_(reader) {
    if (++reader_.depth_ > static_cast<int>(kMaxGraphDepth)) {
      --reader_.depth_;
      reader_.document_.source().fail(
          in.position(), ErrorKind::kDepth,
          cat("expected at most ", kMaxGraphDepth, " regions and calls in each other"));
    }
  }
  ~Level() { --reader_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Reader& reader_;
};

GraphRef Reader::read() {
  find_functions();
  return read_function(main_function());
}

void Reader::find_functions() {
  Cursor in = document_.cursor(document_.source().text());
  while (!in.at_end() && !in.rest().starts_with("{-#")) {
    const char* at = in.position();
    if (in.here() == '}' || in.here() == ')') {  // the end of a module
      in.seek(at + 1);
    } else if (in.accept_word("module")) {
      if (in.accept('@')) in.name();
      if (in.accept_word("attributes")) in.group();
      in.expect("{", "to begin a module");
    } else if (in.accept("\"builtin.module\"")) {
      in.expect("(", "before the operands of a module");
      in.expect(")", "after the operands of a module");
      if (in.peek() == '<') in.group();
      in.expect("(", "before the region of a module");
      in.expect("{", "to begin a module");
      if (in.accept('^')) {
        in.name();
        in.expect(":", "after the name of a block");
      }
    } else if (in.accept_word("func.func") || in.accept_word("func")) {
      find_function(in, at, /*generic=*/false);
    } else if (in.accept("\"func.func\"")) {
      find_function(in, at, /*generic=*/true);
    } else {
      skip_op(in);
    }
  }
}

// An op of a module that is no function, such as sdy.mesh: up to the end of its line.
void Reader::skip_op(Cursor& in) {
  std::string_view rest = in.rest();
  size_t newline = rest.find('\n');
  while (!in.at_end() && (newline == rest.npos || in.position() < rest.data() + newline)) {
    char c = in.here();
    if (c == '(' || c == '[' || c == '{' || c == '<' || c == '"') {
      c == '"' ? in.quoted() : in.group();
    } else if (c == '}' && newline == rest.npos) {
      return;
    } else {
      in.seek(in.position() + 1);
    }
  }
}

void Reader::find_function(Cursor& in, const char* at, bool generic) {
  Function f{at, {}};
  std::string_view name;
  const char* begin = in.position();
  if (generic) {
    in.group();
    NamedList attrs;
    auto add = [&] {
      for (const Named& attr : document_.fields(in.group())) attrs.push_back(attr);
    };
    if (in.peek() == '<') add();
    if (in.peek() == '(') in.group();
    if (in.peek() == '{') add();
    for (const Named& attr : attrs) {
      if (attr.name == "sym_name") {
        Cursor value = document_.cursor(attr.value);
        name = value.quoted();
      }
      if (attr.name == "sym_visibility") f.is_public = attr.value != "\"private\"";
    }
    if (in.accept(':')) {
      in.group();
      in.expect("->", "in the type of an op");
      in.group();
    }
  } else {
    if (in.accept_word("private") || in.accept_word("nested")) f.is_public = false;
    in.accept_word("public");
    in.expect("@", "to begin the name of a function");
    name = in.name();
    in.skip_space();
    begin = in.position();
    in.group();
    if (in.accept("->")) in.peek() == '(' ? in.group() : in.value();
    if (in.accept_word("attributes")) in.group();
    if (in.peek() == '{' && !in.rest().starts_with("{-#")) in.group();
  }
  f.text = in.since(begin);
  if (name.empty()) in.fail_at(at, "expected a function with a name");
  if (in.peek() == 'l' && in.accept("loc(")) {
    in.seek(in.position() - 1);
    in.group();
  }
  if (!functions_.try_emplace(name, f).second)
    in.fail_at(at, cat("expected a new name; got the function @", name, " twice"));
}

const Reader::Function& Reader::main_function() const {
  const char* begin = document_.source().text().data();
  auto fail = [&](std::string_view message) {
    document_.source().fail(begin, ErrorKind::kParse, message);
  };
  std::string_view name = options_.function.empty() ? "main" : std::string_view(options_.function);
  if (auto found = functions_.find(name); found != functions_.end()) return found->second;
  const Function* only = nullptr;
  std::vector<std::string_view> known;
  for (const auto& [other, f] : functions_) known.push_back(other);
  std::sort(known.begin(), known.end());
  Text names;
  for (size_t i = 0; i < known.size(); ++i) names << (i ? ", @" : "@") << known[i];
  if (options_.function.empty()) {
    int count = 0;
    for (const auto& [other, f] : functions_) {
      if (!f.is_public) continue;
      only = &f;
      ++count;
    }
    if (count == 1) return *only;
  }
  fail(known.empty() ? std::string("expected a module with a function (func.func @main)")
                     : cat("expected the function @", name, "; the module has ", names.view()));
  return *only;
}

const GraphRef& Reader::function(std::string_view name, const OpText& user) {
  auto found = functions_.find(name);
  if (found == functions_.end()) user.fail("expected a function of the module; got @", name);
  Function& f = found->second;
  if (f.graph) return f.graph;
  if (f.in_progress) user.fail("function @", name, " calls itself");
  f.in_progress = true;
  f.graph = read_function(f);
  return f.graph;
}

void Reader::read_block_arguments(Cursor& in, std::vector<std::string_view>& names,
                                  TypeRefs& types) {
  in.expect("(", "before arguments");
  while (!in.accept(')')) {
    if (!names.empty()) in.expect(",", "between arguments");
    if (in.peek() != '%') {  // a function without a body
      types.push_back(document_.type(in));
      names.push_back({});
    } else {
      in.accept('%');
      names.push_back(in.name());
      in.expect(":", "after the name of an argument");
      types.push_back(document_.type(in));
    }
    if (in.peek() == '{') in.group();
    if (in.peek() == 'l' && in.accept("loc(")) {
      in.seek(in.position() - 1);
      in.group();
    }
  }
}

GraphRef Reader::read_function(const Function& f) {
  Cursor in = document_.cursor(f.text);
  Level level(*this, in);
  std::vector<std::string_view> names;
  TypeRefs arguments, results;
  bool generic = *f.at == '"';
  if (generic) {
    in.group();
    const char* before = in.position();
    std::string_view type;
    for (int part = 0; part < 3; ++part) {
      char c = in.peek();
      if (c == '(') {
        in.group();
      } else if (c == '<' || c == '{') {
        for (const Named& attr : document_.fields(in.group()))
          if (attr.name == "function_type") type = attr.value;
      }
    }
    if (type.empty()) in.fail_at(f.at, "expected a function with a function_type");
    Cursor signature = document_.cursor(type);
    arguments = document_.types(signature);
    signature.expect("->", "in the type of a function");
    results = document_.types(signature);
    in.seek(before);
    if (in.peek() == '<') in.group();
    in.expect("(", "before the body of a function");
  } else {
    read_block_arguments(in, names, arguments);
    if (in.accept("->")) results = document_.types(in);
    if (in.accept_word("attributes")) in.group();
  }
  if (in.peek() != '{') in.fail_at(f.at, "expected a function with a body");
  Region region = read_region(in, nullptr, names, arguments);
  const Graph& graph = *region.graph;
  TypeRefs given;
  for (TypeRef type : results)
    if (type != kToken) given.push_back(type);
  std::vector<TypeRef> outputs = graph.output_types();
  if (!std::ranges::equal(outputs, given))
    in.fail_at(f.at, cat("expected the function to return what its type says, ", given.size(),
                         " results; got ", outputs.size(), " or other types"));
  return region.graph;
}

// ---- Regions

Region Reader::read_region(Cursor& in, Frame* outer, std::span<const std::string_view> names,
                           std::span<const TypeRef> types) {
  Level level(*this, in);
  const char* begin = in.position();
  in.expect("{", "to begin a region");
  std::vector<std::string_view> own_names(names.begin(), names.end());
  TypeRefs own_types(types);
  if (in.accept('^')) {
    in.name();
    own_names.clear();
    own_types.clear();
    if (in.peek() == '(') read_block_arguments(in, own_names, own_types);
    in.expect(":", "after the arguments of a block");
    if (!types.empty() && !std::ranges::equal(own_types, types))
      in.fail_at(begin, "expected the arguments of the block to be those that its op says");
  }
  if (own_names.size() != own_types.size())
    in.fail_at(begin, cat("expected ", own_types.size(), " arguments; got ", own_names.size()));
  Frame frame(outer);
  Region region;
  for (size_t i = 0; i < own_names.size(); ++i) {
    Entry entry{{}, own_types[i]};
    if (entry.is_token()) {
      region.takes_token = true;
    } else {
      entry.value = frame.b.input(entry.type);
      ++region.num_args;
    }
    if (!frame.define(own_names[i], {&entry, 1}))
      in.fail_at(begin, cat("expected a new name; got %", own_names[i], " twice"));
  }
  region.graph = read_block(in, frame, region);
  region.captured = frame.captured();
  return region;
}

GraphRef Reader::read_block(Cursor& in, Frame& frame, Region& region) {
  Entries returned;
  for (bool done = false; !done;) {
    if (in.at_end() || in.here() == '}')
      in.fail_expected("an op, or a return at the end of a block");
    read_op(in, frame, returned, done);
  }
  if (in.peek() == '^')
    document_.source().fail(in.position(), ErrorKind::kNotImplemented,
                            "expected one block in a region; got another one\n  Branches and "
                            "loops are ops such as stablehlo.case and stablehlo.while.");
  in.expect("}", "after the return of a region");
  Values outputs;
  for (const Entry& entry : returned) {
    region.gives_token |= entry.is_token();
    if (entry.is_token()) continue;
    Val v{&frame.b, entry.value};
    outputs.push_back(broadcast_to(v, entry.type->shape()).value);
  }
  return frame.b.finish_ordered(outputs, frame.captured_inputs());
}

// ---- Ops

namespace {

constexpr std::string_view kDialects[] = {"func", "stablehlo", "chlo", "mhlo", "sdy"};

}  // namespace

Entry Reader::read_operand(Cursor& in, Frame& frame) {
  in.expect("%", "to begin the name of a value");
  const char* begin = in.position();
  in.name();
  if (in.here() == '#') {
    in.seek(in.position() + 1);
    in.name();
  }
  std::string_view name = in.since(begin);
  std::optional<Entry> found = frame.find(name);
  if (!found) in.fail_at(begin - 1, cat("expected a value made before; got %", name));
  return *found;
}

void Reader::read_op(Cursor& in, Frame& frame, Entries& returned, bool& done) {
  in.skip_space();
  const char* at = in.position();
  struct Group {
    std::string_view name;
    size_t count;
  };
  SmallVector<Group, 4> groups;
  size_t num_results = 0;
  constexpr int64_t kMostResults = 1 << 16;
  if (in.here() == '%') {
    do {
      in.expect("%", "to begin the name of a result");
      Group group{in.name(), 1};
      if (in.accept(':')) {
        int64_t count = in.integer();
        if (count < 1 || count > kMostResults) in.fail_at(at, "expected a number of results");
        group.count = static_cast<size_t>(count);
      }
      num_results += group.count;
      groups.push_back(group);
    } while (in.accept(','));
    in.expect("=", "after the results of an op");
    in.skip_space();
  }
  OpText op{*this, document_, frame.b, in.position()};
  bool generic = in.here() == '"';
  op.full_name = generic ? in.quoted() : in.word();
  if (op.full_name.empty()) in.fail_expected("an op");
  size_t point = op.full_name.find('.');
  op.name = point == op.full_name.npos ? op.full_name : op.full_name.substr(point + 1);
  std::string_view dialect =
      point == op.full_name.npos ? std::string_view("func") : op.full_name.substr(0, point);
  if (std::ranges::find(kDialects, dialect) == std::end(kDialects))
    op.refuse("expected an op of the dialects func, stablehlo or chlo");
  generic ? read_generic(in, frame, op) : read_pretty(in, frame, op);
  if (in.accept(':')) {
    read_signature(in, op, num_results);
  } else if (num_results > 0 && op.types.empty()) {
    in.fail_expected(cat("\":\" and the types of ", op.full_name));
  }
  frame.b.set_loc(document_.location(in, op.at));
  if (op.name == "return") {
    returned = op.operands;
    done = true;
    return;
  }
  if (num_results != op.types.size() && num_results > 0)
    op.fail("expected names for its ", op.types.size(), " results; got ", num_results);
  apply(op, frame);
  size_t next = 0;
  for (const Group& group : groups) {
    Entries made;
    for (size_t i = 0; i < group.count; ++i, ++next)
      made.push_back({op.results[next], op.types[next]});
    if (!frame.define(group.name, made))
      in.fail_at(at, cat("expected a new name; got %", group.name, " twice"));
  }
}

void Reader::apply(OpText& op, Frame& frame) {
  Rule rule = find_rule(op.name);
  if (!rule) op.refuse("there is nothing in weft that this op could become");
  try {
    rule(op);
  } catch (const Located&) { throw; } catch (const Error& error) {
    op.fail_as(error.kind() == ErrorKind::kNotImplemented ? error.kind() : ErrorKind::kParse,
               error.what());
  }
  if (op.results.size() != op.types.size())
    op.fail("expected ", op.results.size(), " results; got the types of ", op.types.size());
  for (size_t i = 0; i < op.types.size(); ++i) {
    Value made = op.results[i];
    if (made.is_none() || op.types[i] == kToken) {
      if (!made.is_none() || op.types[i] != kToken) op.fail("expected a token as result ", i);
      continue;
    }
    TypeRef type = frame.b.type(made);
    bool is_splat = made.is_literal() && type->dtype() == op.types[i]->dtype();
    if (type != op.types[i] && !is_splat)
      op.fail("expected result ", i, " to be ", type, "; got the type ", op.types[i]);
  }
}

}  // namespace weft::reader

namespace weft {

GraphRef read_stablehlo(std::string_view text, const ReadOptions& options) {
  return reader::Reader(text, options).read();
}

bool is_mlir(std::string_view text) {
  reader::Source source(text);
  reader::Cursor in(source, text);
  // A line that begins with # is an alias, or a comment of a program as print() writes it.
  while (in.peek() == '#') {
    size_t end = in.rest().find('\n');
    if (end == std::string_view::npos) return true;
    in.seek(in.position() + end);
  }
  if (in.at_end() || in.accept_word("let")) return false;
  return !in.accept('{') || in.here() == '-';
}

}  // namespace weft
