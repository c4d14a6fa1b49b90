// Attribute records: checking against the schema, equality and hashing.
#include "weft/attr.h"

#include <algorithm>
#include <bit>

#include "weft/error.h"
#include "weft/graph.h"
#include "weft/hash.h"

namespace weft {

namespace {

std::string_view describe(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "a bool";
    case AttrType::kInt:
      return "an integer";
    case AttrType::kFloat:
      return "a number";
    case AttrType::kString:
      return "a string";
    case AttrType::kDType:
      return "a dtype";
    case AttrType::kInts:
      return "a tuple of integers";
    case AttrType::kBools:
      return "a tuple of bools";
    case AttrType::kIntsList:
      return "a tuple of tuples of integers";
    case AttrType::kIntsPairs:
      return "pairs of tuples of integers";
    case AttrType::kTypes:
      return "a tuple of types";
    case AttrType::kGraph:
      return "a graph";
    case AttrType::kGraphs:
      return "a tuple of graphs";
    case AttrType::kAxisNames:
      return "a tuple of axis names";
    case AttrType::kMesh:
      return "a mesh";
    case AttrType::kSharding:
      return "a sharding";
    case AttrType::kShardings:
      return "a tuple of shardings";
    case AttrType::kConstant:
      return "an array";
    case AttrType::kObject:
      return "an object";
  }
  return "a value";
}

std::string_view describe(const Attr& value) {
  static constexpr std::string_view kNames[] = {"None",
                                                "a bool",
                                                "an integer",
                                                "a float",
                                                "a string",
                                                "a dtype",
                                                "a tuple of integers",
                                                "a tuple of tuples of integers",
                                                "a tuple of types",
                                                "a graph",
                                                "a tuple of graphs",
                                                "an object",
                                                "a tuple of strings",
                                                "a mesh",
                                                "a sharding",
                                                "a tuple of shardings"};
  static_assert(std::size(kNames) == std::variant_size_v<Attr>);
  return kNames[value.index()];
}

bool is_none(const Attr& value) { return std::holds_alternative<std::monostate>(value); }

bool is_bools(const Attr& value) {
  const Dims* dims = std::get_if<Dims>(&value);
  return dims &&
         std::all_of(dims->begin(), dims->end(), [](int64_t x) { return x == 0 || x == 1; });
}

bool is_pairs(const Attr& value) {
  const auto* lists = std::get_if<std::vector<Dims>>(&value);
  return lists && lists->size() % 2 == 0;
}

bool is_graphs(const Attr& value) {
  const auto* graphs = std::get_if<std::vector<GraphRef>>(&value);
  return graphs &&
         std::all_of(graphs->begin(), graphs->end(), [](auto& g) { return g != nullptr; });
}

bool has_type(AttrType type, const Attr& value) {
  switch (type) {
    case AttrType::kBool:
      return std::holds_alternative<bool>(value);
    case AttrType::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrType::kFloat:
      return std::holds_alternative<double>(value);
    case AttrType::kString:
      return std::holds_alternative<std::string>(value);
    case AttrType::kDType:
      return std::holds_alternative<DType>(value);
    case AttrType::kInts:
      return std::holds_alternative<Dims>(value);
    case AttrType::kBools:
      return is_bools(value);
    case AttrType::kIntsList:
      return std::holds_alternative<std::vector<Dims>>(value);
    case AttrType::kIntsPairs:
      return is_pairs(value);
    case AttrType::kTypes:
      return std::holds_alternative<std::vector<TypeRef>>(value);
    case AttrType::kGraph: {
      const GraphRef* graph = std::get_if<GraphRef>(&value);
      return graph && *graph;
    }
    case AttrType::kGraphs:
      return is_graphs(value);
    case AttrType::kAxisNames:
      return std::holds_alternative<std::vector<std::string>>(value);
    case AttrType::kMesh: {
      const MeshRef* mesh = std::get_if<MeshRef>(&value);
      return mesh && *mesh;
    }
    case AttrType::kSharding: {
      const ShardingRef* sharding = std::get_if<ShardingRef>(&value);
      return sharding && *sharding;
    }
    case AttrType::kShardings: {
      const auto* shardings = std::get_if<std::vector<ShardingRef>>(&value);
      return shardings &&
             std::all_of(shardings->begin(), shardings->end(), [](auto s) { return s != nullptr; });
    }
    case AttrType::kConstant:
    case AttrType::kObject: {
      const ObjectRef* object = std::get_if<ObjectRef>(&value);
      return object && *object;
    }
  }
  return false;
}

bool may_be_none(const AttrSpec& spec) {
  return (spec.flags & AttrSpec::kOptional) || (spec.has_default() && is_none(spec.default_value));
}

// "[op] ", where the op is known.
std::string prefix(std::string_view op) { return op.empty() ? "" : cat('[', op, "] "); }

// The value as it is stored.
Attr checked(std::string_view op, const AttrSpec& spec, Attr value) {
  if (spec.type == AttrType::kFloat && std::holds_alternative<int64_t>(value)) {
    value = static_cast<double>(std::get<int64_t>(value));
  }
  if (has_type(spec.type, value) || (is_none(value) && may_be_none(spec))) return value;
  fail(ErrorKind::kType, prefix(op), "expected ", describe(spec.type), " for attribute ", spec.name,
       may_be_none(spec) ? " or None" : "", "; got ", describe(value));
}

std::string describe(const AttrSchema& schema) {
  if (schema.size() == 0) return "no attributes";
  Text out;
  for (const AttrSpec& spec : schema.specs()) {
    if (out.size()) out << ", ";
    out << spec.name;
    if (spec.has_default()) out << " (optional)";
  }
  return out.take();
}

// Of contents alone.
struct HashAttr {
  uint64_t operator()(std::monostate) const { return 0; }
  uint64_t operator()(bool x) const { return x; }
  uint64_t operator()(int64_t x) const { return static_cast<uint64_t>(x); }
  uint64_t operator()(double x) const { return std::bit_cast<uint64_t>(x); }
  uint64_t operator()(const std::string& x) const { return hash_bytes(x); }
  uint64_t operator()(DType x) const { return static_cast<uint64_t>(x); }
  uint64_t operator()(const Dims& x) const { return hash_ints(std::span<const int64_t>(x)); }
  uint64_t operator()(TypeRef x) const { return x->hash(); }
  uint64_t operator()(MeshRef x) const { return x->hash(); }
  uint64_t operator()(ShardingRef x) const { return x->hash(); }
  uint64_t operator()(const GraphRef& x) const { return x->structural_hash(); }
  uint64_t operator()(const ObjectRef& x) const { return x->content_hash(); }
  template <typename T>
  uint64_t operator()(const std::vector<T>& xs) const {
    uint64_t h = xs.size();
    for (const T& x : xs) h = hash_combine(h, (*this)(x));
    return h;
  }
};

bool equal_graphs(const GraphRef& a, const GraphRef& b) { return a == b || equal(*a, *b); }

bool equal_values(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a)) {
    // By bits: nan equals itself, and the zeros differ.
    return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(std::get<double>(b));
  }
  if (const GraphRef* x = std::get_if<GraphRef>(&a)) return equal_graphs(*x, std::get<GraphRef>(b));
  if (const auto* xs = std::get_if<std::vector<GraphRef>>(&a)) {
    const auto& ys = std::get<std::vector<GraphRef>>(b);
    return std::equal(xs->begin(), xs->end(), ys.begin(), ys.end(), equal_graphs);
  }
  if (const ObjectRef* x = std::get_if<ObjectRef>(&a)) {
    return *x == std::get<ObjectRef>(b) || (*x)->equals(*std::get<ObjectRef>(b));
  }
  return a == b;
}

// Schemas of one op are the same object, but a user may declare an op twice.
bool same_schema(const AttrSchema& a, const AttrSchema& b) {
  if (&a == &b) return true;
  auto same = [](const AttrSpec& x, const AttrSpec& y) {
    return x.name == y.name && x.type == y.type && x.flags == y.flags;
  };
  return std::equal(a.specs().begin(), a.specs().end(), b.specs().begin(), b.specs().end(), same);
}

}  // namespace

AttrSchema::AttrSchema(std::initializer_list<AttrSpec> specs)
    : AttrSchema(std::vector<AttrSpec>(specs)) {}

AttrSchema::AttrSchema(std::vector<AttrSpec> specs) : specs_(std::move(specs)) {
  std::sort(specs_.begin(), specs_.end(),
            [](const AttrSpec& a, const AttrSpec& b) { return a.name < b.name; });
  for (size_t i = 1; i < specs_.size(); ++i) {
    if (specs_[i].name == specs_[i - 1].name) {
      fail(ErrorKind::kValue, "expected distinct attribute names; got ", specs_[i].name, " twice");
    }
  }
}

int AttrSchema::find(std::string_view name) const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

AttrsRef AttrRecord::make(std::string_view op, const AttrSchema& schema,
                          std::span<const NamedAttr> attrs) {
  const std::vector<AttrSpec>& specs = schema.specs();
  if (specs.empty() && attrs.empty()) return nullptr;
  if (attrs.empty())
    if (AttrsRef known = schema.defaults_.record) return known;
  std::vector<Attr> values(specs.size());
  SmallVector<bool, 16> given(specs.size(), false);
  for (const auto& [name, value] : attrs) {
    int found = schema.find(name);
    if (found < 0) {
      fail(ErrorKind::kType, prefix(op), "expected ", describe(schema), "; got an attribute named ",
           name);
    }
    size_t i = static_cast<size_t>(found);
    if (given[i])
      fail(ErrorKind::kType, prefix(op), "expected attribute ", name, " once; got it twice");
    given[i] = true;
    values[i] = checked(op, specs[i], value);
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (given[i]) continue;
    if (!specs[i].has_default()) {
      fail(ErrorKind::kType, prefix(op), "expected ", describe(schema), "; got no ", specs[i].name);
    }
    values[i] = specs[i].default_value;
  }
  if (specs.empty()) return nullptr;
  auto record = std::make_shared<AttrRecord>();
  record->schema_ = &schema;
  record->values_ = std::move(values);
  record->summarize();
  if (attrs.empty()) schema.defaults_.record = record;
  return record;
}

void AttrRecord::summarize() {
  content_hash_ = values_.size();
  uint64_t identities = 0;
  holds_graphs_ = may_name_axes_ = false;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Attr& value = values_[i];
    holds_graphs_ |= std::holds_alternative<GraphRef>(value) ||
                     std::holds_alternative<std::vector<GraphRef>>(value);
    may_name_axes_ |= std::holds_alternative<std::vector<std::string>>(value);
    if (schema_->specs()[i].flags & AttrSpec::kCosmetic) continue;
    content_hash_ =
        hash_combine(content_hash_, hash_combine(value.index(), std::visit(HashAttr{}, value)));
    if (const ObjectRef* object = std::get_if<ObjectRef>(&value))
      identities = hash_combine(identities, (*object)->hash());
  }
  may_name_axes_ |= holds_graphs_;
  hash_ = identities ? hash_combine(content_hash_, identities) : content_hash_;
}

const Attr& AttrRecord::at(std::string_view name) const {
  int i = schema_->find(name);
  if (i < 0) {
    fail(ErrorKind::kInternal, "no attribute ", name, "; the op takes ", describe(*schema_));
  }
  return values_[static_cast<size_t>(i)];
}

AttrsRef AttrRecord::with(std::initializer_list<NamedAttr> changes) const {
  auto record = std::make_shared<AttrRecord>(*this);
  for (const auto& [name, value] : changes) {
    int found = schema_->find(name);
    if (found < 0) {
      fail(ErrorKind::kType, "expected ", describe(*schema_), "; got an attribute named ", name);
    }
    size_t i = static_cast<size_t>(found);
    record->values_[i] = checked("", schema_->specs()[i], value);
  }
  record->summarize();
  return record;
}

bool equal(const AttrsRef& a, const AttrsRef& b) {
  if (a == b) return true;
  if (!a || !b || a->hash_ != b->hash_ || !same_schema(*a->schema_, *b->schema_)) return false;
  for (size_t i = 0; i < a->values_.size(); ++i) {
    if (a->schema_->specs()[i].flags & AttrSpec::kCosmetic) continue;
    if (!equal_values(a->values_[i], b->values_[i])) return false;
  }
  return true;
}

void for_each_graph(const AttrsRef& attrs, const std::function<void(const GraphRef&)>& f) {
  if (!attrs || !attrs->holds_graphs()) return;
  for (const Attr& value : attrs->values()) {
    if (const GraphRef* graph = std::get_if<GraphRef>(&value)) f(*graph);
    if (const auto* graphs = std::get_if<std::vector<GraphRef>>(&value)) {
      for (const GraphRef& graph : *graphs) f(graph);
    }
  }
}

AttrsRef map_graphs(const AttrsRef& attrs, const std::function<GraphRef(const GraphRef&)>& f) {
  if (!attrs || !attrs->holds_graphs()) return attrs;
  std::vector<NamedAttr> named;
  bool changed = false;
  for (size_t i = 0; i < attrs->values().size(); ++i) {
    Attr value = attrs->values()[i];
    auto replace = [&](GraphRef& graph) {
      GraphRef replaced = f(graph);
      changed |= replaced != graph;
      graph = std::move(replaced);
    };
    if (GraphRef* graph = std::get_if<GraphRef>(&value)) replace(*graph);
    if (auto* graphs = std::get_if<std::vector<GraphRef>>(&value)) {
      for (GraphRef& graph : *graphs) replace(graph);
    }
    named.emplace_back(attrs->schema().specs()[i].name, std::move(value));
  }
  return changed ? AttrRecord::make("", attrs->schema(), named) : attrs;
}

AttrsRef after_derivatives(const AttrsRef& attrs) {
  AttrsRef stripped = attrs;
  for (size_t i = 0; attrs && i < attrs->values().size(); ++i) {
    const AttrSpec& spec = attrs->schema().specs()[i];
    bool matters = spec.flags & AttrSpec::kForDerivatives;
    if (matters && !equal_values(attrs->values()[i], spec.default_value))
      stripped = stripped->with({{spec.name, spec.default_value}});
  }
  return stripped;
}

}  // namespace weft
