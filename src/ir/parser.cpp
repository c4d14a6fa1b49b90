// The parser: recursive descent over regions, loops over everything else. Lines carry no meaning;
// an op ends where something follows that cannot be one of its operands.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "ir/attr_text.h"
#include "ir/jax_text.h"
#include "ir/scanner.h"
#include "weft/builder.h"
#include "weft/dims.h"
#include "weft/format.h"

namespace weft {

namespace {

// The word of a number that is no digit: "nan:f32[]".
bool is_number_word(std::string_view word) {
  return word == "True" || word == "False" || word == "nan" || word == "inf" || word == "nanj" ||
         word == "infj";
}

// "3", "-inf", "nan": the whole text, or nothing.
template <typename T>
std::optional<T> to_number(std::string_view text) {
  T x{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return x;
}

// "(1+2j)", "-3j", "(nan-infj)".
std::optional<std::complex<double>> to_complex(std::string_view text) {
  bool both = text.starts_with('(') && text.ends_with(')');
  if (both) text = text.substr(1, text.size() - 2);
  if (!text.ends_with('j')) return std::nullopt;
  text.remove_suffix(1);
  double real = 0;
  if (both) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with('+')) text.remove_prefix(1);
  }
  std::optional<double> imag = to_number<double>(text);
  if (!imag) return std::nullopt;
  return std::complex<double>(real, *imag);
}

// The value that `text` names if it can be one of the dtype.
std::optional<Literal> to_literal(DType dtype, std::string_view text) {
  switch (kind(dtype)) {
    case DTypeKind::kBool:
    case DTypeKind::kFloat0:
    case DTypeKind::kKey:
      if (text != "True" && text != "False") return std::nullopt;
      return make_literal(dtype, int64_t{text == "True"});
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned: {
      Literal x{dtype};
      if (is_signed_int(dtype)) {
        std::optional<int64_t> value = to_number<int64_t>(text);
        if (!value) return std::nullopt;
        x.lo = static_cast<uint64_t>(*value);
      } else {
        std::optional<uint64_t> value = to_number<uint64_t>(text);
        if (!value) return std::nullopt;
        x.lo = *value;
      }
      // A value out of range would wrap.
      bool fits = make_literal(dtype, x.as_int()) == x;
      return fits ? std::optional(x) : std::nullopt;
    }
    case DTypeKind::kFloat: {
      std::optional<double> value = to_number<double>(text);
      return value ? std::optional(make_literal(dtype, *value)) : std::nullopt;
    }
    case DTypeKind::kComplex: {
      std::optional<std::complex<double>> value = to_complex(text);
      return value ? std::optional(make_literal(dtype, *value)) : std::nullopt;
    }
  }
  return std::nullopt;
}

// The names of one graph and the graph as far as it has been read.
struct Scope {
  GraphBuilder builder;
  std::unordered_map<std::string_view, Value> values;
  bool has_unnamed = false;  // more than one value is called "_"
};

struct ResultText {
  std::string_view name;
  size_t position;
  TypeRef type;
};

// What was read last of some kind, with its text: programs repeat themselves. For what ends with
// its text, whatever comes next.
template <typename T>
class Reread {
 public:
  // Takes the text that comes next, if it was read lately.
  const T* take(Scanner& in) const {
    for (const auto& [text, value] : known_)
      if (!text.empty() && in.accept_here(text)) return &value;
    return nullptr;
  }
  void add(std::string_view text, const T& value) {
    if (text.empty()) return;
    known_[next_] = {text, value};
    next_ = (next_ + 1) % known_.size();
  }

 private:
  std::array<std::pair<std::string_view, T>, 4> known_ = {};
  size_t next_ = 0;
};

class Parser {
 public:
  Parser(std::string_view text, const OpLookup& lookup) : in_(text), lookup_(lookup) {}

  GraphRef program() {
    GraphRef graph = parse_with_definitions();
    if (!in_.at_end()) in_.fail_expected("the end of the text after the program");
    return graph;
  }

  AttrsRef attrs(const OpInfo& op) {
    std::vector<NamedAttr> attrs;
    while (!in_.at_end()) parse_attr(op, attrs);
    if (op.attrs.size() == 0) return nullptr;
    return AttrRecord::make(op.name, op.attrs, attrs);
  }

 private:
  struct Definition {
    size_t position;  // of its graph
    GraphRef graph;   // null until it is needed
    bool in_progress = false;
  };

  GraphRef parse_with_definitions() {
    while (accept_let()) find_definition();
    GraphRef graph = parse_graph();
    for (const auto& [name, definition] : definitions_) parse_definition(name, definition.position);
    return graph;
  }

  bool accept_let() {
    size_t begin = in_.position();
    if (in_.peek() == 'l' && in_.identifier() == "let") return true;
    in_.seek(begin);
    return false;
  }

  // "let f = { ... } in": definitions may refer to later ones, so they are read when first used.
  void find_definition() {
    in_.skip_space();
    size_t name_position = in_.position();
    std::string_view name = in_.identifier();
    if (name.empty()) in_.fail_expected("the name of a graph after let");
    in_.expect("=", "after the name of a graph");
    if (in_.peek() != '{') in_.fail_expected("\"{\" to begin a graph");
    if (!definitions_.try_emplace(name, Definition{in_.position(), nullptr}).second) {
      in_.fail_at(name_position, cat("expected a new name; got ", name, " twice"));
    }
    in_.skip_braces();
    in_.expect("in", "after the definition of a graph");
  }

  GraphRef parse_definition(std::string_view name, size_t use) {
    auto it = definitions_.find(name);
    if (it == definitions_.end()) {
      in_.fail_at(use, cat("expected a graph or the name of one; got \"", name, '"'));
    }
    Definition& definition = it->second;
    if (definition.graph) return definition.graph;
    if (definition.in_progress) in_.fail_at(use, cat("graph ", name, " uses itself"));
    definition.in_progress = true;
    size_t resume = in_.position();
    in_.seek(definition.position);
    definition.graph = parse_graph();
    in_.seek(resume);
    return definition.graph;
  }

  GraphRef parse_region() {
    if (in_.peek() == '{') return parse_graph();
    size_t begin = in_.position();
    std::string_view name = in_.identifier();
    if (name.empty()) in_.fail_expected("a graph or the name of one");
    if (name == "let") {  // definitions of its own
      in_.seek(begin);
      auto outer = std::exchange(definitions_, {});
      GraphRef graph = parse_with_definitions();
      definitions_ = std::move(outer);
      return graph;
    }
    return parse_definition(name, begin);
  }

  GraphRef parse_graph() {
    in_.expect("{", "to begin a graph");
    if (++depth_ > kMaxGraphDepth) {
      in_.fail_at(in_.position(),
                  cat("expected at most ", kMaxGraphDepth, " graphs in each other"));
    }
    in_.expect("lambda", "at the beginning of a graph");
    Scope scope;
    std::vector<Value> consts;
    while (!in_.accept(";")) consts.push_back(parse_input(scope));
    while (!in_.accept(".")) parse_input(scope);
    in_.expect("let", "after the inputs of a graph");
    while (!accept_in()) parse_op(scope);
    std::vector<Value> outputs;
    in_.expect("(", "to begin the outputs of a graph");
    while (!in_.accept(")")) {
      std::optional<Value> v = parse_operand(scope);
      if (!v) in_.fail_expected("an output");
      outputs.push_back(*v);
      in_.accept(",");
    }
    in_.expect("}", "to end a graph");
    --depth_;
    return scope.builder.finish(outputs, consts);
  }

  // "in (": the end of the ops. No variable is called "in".
  bool accept_in() {
    while (in_.accept(";")) continue;
    if (in_.peek() != 'i') return false;
    size_t begin = in_.position();
    if (in_.identifier() == "in" && in_.peek() == '(') return true;
    in_.seek(begin);
    return false;
  }

  Value parse_input(Scope& scope) {
    in_.skip_space();
    size_t begin = in_.position();
    std::string_view name = in_.identifier();
    if (name.empty()) in_.fail_expected("an input such as a:f32[3]");
    in_.expect(":", "after the name of an input");
    Value v = scope.builder.input(parse_type());
    bind(scope, name, begin, v);
    return v;
  }

  void bind(Scope& scope, std::string_view name, size_t position, Value v) {
    if (name == "_") {
      // JAX also prints results so that nothing but the outputs take; of two nobody knows which.
      bool is_first = scope.values.try_emplace(name, v).second;
      if (!is_first) scope.has_unnamed = true;
      return;
    }
    if (is_number_word(name)) in_.fail_at(position, cat("expected a name; got ", name));
    if (!scope.values.try_emplace(name, v).second) {
      in_.fail_at(position, cat("expected a new name; got ", name, " twice"));
    }
  }

  void parse_op(Scope& scope) {
    SmallVector<ResultText, 4> results;
    in_.skip_space();
    size_t begin = in_.position();
    while (std::optional<ResultText> result = parse_result()) results.push_back(*result);
    if (!results.empty()) in_.expect("=", "after the results of an op");
    in_.skip_space();
    size_t name_position = in_.position();
    std::string_view name = in_.word("[](){}=:;,");
    if (name.empty()) in_.fail_expected(results.empty() ? "an op or \"in\"" : "the name of an op");
    const OpInfo* op = lookup_(own_op_name(name));
    if (!op && (name == "stack" || name == "tile")) {
      try {
        return name == "stack" ? parse_stack(scope, results, begin)
                               : parse_tile(scope, results, begin);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kParse) throw;
        in_.fail_at(begin, error.what());
      }
    }
    if (!op) in_.fail_at(name_position, cat("expected the name of an op; got \"", name, '"'));
    TypeRef result_type = results.empty() ? nullptr : results[0].type;
    AttrsRef attrs = parse_attrs(*op, result_type);
    Values operands = parse_operands(scope, op->num_operands);
    if (op->elementwise && result_type) stretch(scope, operands, result_type->shape());
    append(scope, *op, attrs, operands, results, begin);
  }

  Values parse_operands(Scope& scope, int most) {
    Values operands;
    while (most < 0 || operands.size() < static_cast<size_t>(most)) {
      std::optional<Value> v = parse_operand(scope);
      if (!v) break;
      operands.push_back(*v);
    }
    return operands;
  }

  // JAX's element-wise ops repeat operands along axes of size 1; weft's take those of one shape.
  void stretch(Scope& scope, Values& operands, const Dims& shape) {
    for (Value& v : operands) {
      const Dims& own = scope.builder.type(v)->shape();
      if (own.size() != shape.size() || own == shape) continue;
      Dims axes;
      for (size_t i = 0; i < own.size() && (own[i] == shape[i] || own[i] == 1); ++i)
        axes.push_back(static_cast<int64_t>(i));
      if (axes.size() == own.size()) v = broadcast(scope, v, shape, axes);
    }
  }

  Value broadcast(Scope& scope, Value v, const Dims& shape, const Dims& axes) {
    const OpInfo& op = *lookup_("broadcast_in_dim");
    NamedAttr attrs[] = {{"shape", shape}, {"broadcast_dimensions", axes}};
    AttrsRef record = AttrRecord::make(op.name, op.attrs, attrs);
    return scope.builder.add(op, Values{v}, record)[0];
  }

  // Of JAX alone: an array several times along each axis.
  void parse_tile(Scope& scope, const SmallVector<ResultText, 4>& results, size_t position) {
    in_.expect("[reps=", "after tile");
    const OpInfo& op = *lookup_("reshape");
    Dims reps = std::get<Dims>(parse_value(in_, AttrType::kInts));
    in_.expect("]", "after how often tile repeats axes");
    Values parts = parse_operands(scope, 1);
    if (parts.empty()) in_.fail_expected("the operand of tile");
    Dims own = scope.builder.type(parts[0])->shape(), shape, axes, joined;
    if (own.size() != reps.size())
      in_.fail_at(position, cat("expected one number for each axis of ",
                                scope.builder.type(parts[0]), "; got ", reps));
    for (size_t i = 0; i < own.size(); ++i) {
      shape.push_back(reps[i]), shape.push_back(own[i]);
      axes.push_back(static_cast<int64_t>(2 * i + 1));
      joined.push_back(dim_mul(reps[i], own[i]));
    }
    parts[0] = broadcast(scope, parts[0], shape, axes);
    NamedAttr attrs[] = {{"new_sizes", joined}};
    append(scope, op, AttrRecord::make(op.name, op.attrs, attrs), parts, results, position);
  }

  // Of JAX alone: arrays along a new axis.
  void parse_stack(Scope& scope, const SmallVector<ResultText, 4>& results, size_t position) {
    in_.expect("[axis=", "after stack");
    int64_t axis = in_.integer();
    in_.expect("]", "after the axis of stack");
    Values parts = parse_operands(scope, -1);
    for (Value& v : parts) {
      Dims shape = scope.builder.type(v)->shape(), axes;
      if (axis < 0 || axis > static_cast<int64_t>(shape.size()))
        in_.fail_at(position, cat("expected an axis of the result of stack; got ", axis));
      for (size_t i = 0; i < shape.size(); ++i)
        axes.push_back(static_cast<int64_t>(i) + (static_cast<int64_t>(i) >= axis));
      shape.insert(static_cast<size_t>(axis), 1);
      v = broadcast(scope, v, shape, axes);
    }
    const OpInfo& op = *lookup_("concatenate");
    NamedAttr attrs[] = {{"dimension", axis}};
    append(scope, op, AttrRecord::make(op.name, op.attrs, attrs), parts, results, position);
  }

  void append(Scope& scope, const OpInfo& op, const AttrsRef& attrs, const Values& operands,
              const SmallVector<ResultText, 4>& results, size_t position) {
    TypeRefs in_types;
    for (Value v : operands) in_types.push_back(scope.builder.type(v));
    TypeRefs types;
    try {
      types = infer_types(op, in_types, attrs);
    } catch (const Error& error) { in_.fail_at(position, error.what()); }
    if (types.size() != results.size()) {
      in_.fail_at(position, cat("expected ", types.size(), " results of ", op.name, "; got ",
                                results.size()));
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == results[i].type) continue;
      in_.fail_at(results[i].position, cat("expected result ", i, " of ", op.name, " to be ",
                                           types[i], "; got ", results[i].type));
    }
    Values made;
    try {
      made = scope.builder.add_typed(op, operands, attrs, types);
    } catch (const Error& error) { in_.fail_at(position, error.what()); }
    for (size_t i = 0; i < made.size(); ++i) {
      bind(scope, results[i].name, results[i].position, made[i]);
    }
  }

  // "b:f32[3]"; nothing is taken when something else comes next.
  std::optional<ResultText> parse_result() {
    in_.skip_space();
    size_t begin = in_.position();
    std::string_view name = in_.identifier();
    if (name.empty() || !in_.accept(":")) {
      in_.seek(begin);
      return std::nullopt;
    }
    return ResultText{name, begin, parse_type()};
  }

  TypeRef parse_type() {
    in_.skip_space();
    if (const TypeRef* known = types_.take(in_)) return *known;
    size_t begin = in_.position();
    TypeRef type = parse_type_at(in_);
    types_.add(in_.since(begin), type);
    return type;
  }

  AttrsRef parse_attrs(const OpInfo& op, TypeRef result_type) {
    if (in_.peek() != '[' && op.attrs.size() == 0) return nullptr;
    Reread<AttrsRef>& records = records_[&op];
    if (const AttrsRef* known = records.take(in_)) return *known;
    size_t begin = in_.position();
    std::vector<NamedAttr> attrs;
    if (in_.accept("[")) {
      while (!in_.accept("]")) parse_attr(op, attrs);
    }
    std::string_view text = in_.since(begin);
    for (const AttrSpec& spec : op.attrs.specs()) {
      if (!(spec.flags & AttrSpec::kFromResult) || !result_type) continue;
      bool given = std::any_of(attrs.begin(), attrs.end(),
                               [&](const NamedAttr& attr) { return attr.first == spec.name; });
      if (given) continue;
      if (spec.type == AttrType::kDType) {
        attrs.emplace_back(spec.name, result_type->dtype());
      } else if (spec.type == AttrType::kInts) {
        attrs.emplace_back(spec.name, result_type->shape());
      }
      text = {};  // says less than the record
    }
    try {
      AttrsRef record = AttrRecord::make(op.name, op.attrs, attrs);
      if (!record || !record->holds_graphs()) records.add(text, record);
      return record;
    } catch (const Error& error) { in_.fail_at(begin, error.what()); }
  }

  // Adds what comes next. JAX prints many attributes that weft does not have: without effect, None
  // (`out_sharding=None`), or of a class whose fields are attributes here.
  void parse_attr(const OpInfo& op, std::vector<NamedAttr>& attrs) {
    in_.skip_space();
    size_t begin = in_.position();
    std::string_view name = in_.identifier();
    if (name.empty()) in_.fail_expected("an attribute such as axes=(0,), or \"]\"");
    int i = op.attrs.find(own_attr_name(op.name, name));
    if (i < 0) {
      if (!in_.accept("=") || !parse_unknown(op, name, attrs))
        in_.fail_at(begin, cat("[", op.name, "] has no attribute named ", name));
      return;
    }
    const AttrSpec& spec = op.attrs.specs()[static_cast<size_t>(i)];
    in_.expect("=", "after the name of an attribute");
    Attr value = parse_attr_value(spec.type);
    bool is_none = std::holds_alternative<std::monostate>(value);
    if (is_none && (spec.flags & AttrSpec::kHideDefault)) return;
    attrs.push_back({spec.name, std::move(value)});
  }

  // The value of an attribute that weft does not have, if nothing is lost without it.
  bool parse_unknown(const OpInfo& op, std::string_view name, std::vector<NamedAttr>& attrs) {
    if (is_without_effect(name)) {
      in_.skip_value();
      return true;
    }
    std::string_view word = in_.word("[](){}=:;,");
    if (word == "None") return true;
    if (word.empty() || !in_.accept_here("(")) return false;
    while (!in_.accept(")")) {
      parse_attr(op, attrs);
      in_.accept(",");
    }
    return true;
  }

  Attr parse_attr_value(AttrType type) {
    in_.skip_space();
    size_t begin = in_.position();
    if (in_.peek() == 'N' && in_.word("[](){}=:;,") == "None") return std::monostate{};
    in_.seek(begin);
    if (type == AttrType::kGraph) return parse_region();
    if (type != AttrType::kGraphs) return parse_value(in_, type);
    std::vector<GraphRef> graphs;
    in_.expect_tuple("to begin the graphs");
    while (!in_.accept(")")) {
      in_.skip_field();
      graphs.push_back(parse_region());
      in_.accept(",");
    }
    return graphs;
  }

  // A variable or literal; nothing is taken when something else comes next.
  std::optional<Value> parse_operand(Scope& scope) {
    char c = in_.peek();
    size_t begin = in_.position();
    if (c == '(' || c == '-' || (c >= '0' && c <= '9')) return parse_literal(scope);
    std::string_view name = in_.identifier();
    char next = in_.peek();
    bool is_literal = is_number_word(name) && next == ':';
    // "b:f32[]" begins the results of the next op, "print[" is the next op.
    bool is_variable = !name.empty() && name != "in" && next != ':' && next != '[';
    if (is_variable) {
      auto it = scope.values.find(name);
      bool is_known = it != scope.values.end() && !(name == "_" && scope.has_unnamed);
      if (is_known) return it->second;
      if (!lookup_(name)) {
        in_.fail_at(begin, cat("expected a value made before; got \"", name, '"'));
      }
    }
    in_.seek(begin);
    return is_literal ? std::optional(parse_literal(scope)) : std::nullopt;
  }

  Value parse_literal(Scope& scope) {
    size_t begin = in_.position();
    std::string_view text = in_.word(":");
    in_.expect(":", "and a type after a literal");
    TypeRef type = parse_type();
    std::optional<Literal> x;
    if (type->rank() == 0) x = to_literal(type->dtype(), text);
    if (!x) in_.fail_at(begin, cat("expected a literal of type ", type, "; got \"", text, '"'));
    return scope.builder.literal(*x);
  }

  Scanner in_;
  const OpLookup& lookup_;
  std::unordered_map<std::string_view, Definition> definitions_;
  Reread<TypeRef> types_;
  std::unordered_map<const OpInfo*, Reread<AttrsRef>> records_;
  uint32_t depth_ = 0;
};

}  // namespace

GraphRef parse(std::string_view text, const OpLookup& lookup) {
  return Parser(text, lookup).program();
}

AttrsRef parse_attrs(std::string_view text, const OpInfo& op, const OpLookup& lookup) {
  return Parser(text, lookup).attrs(op);
}

}  // namespace weft
