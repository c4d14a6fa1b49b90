// One op of the text, as rules see it: operands, attributes and regions, whichever way they were
// written; and the table of rules by the op's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/document.h"
#include "weft/build.h"
#include "weft/graph.h"
#include "weft/op_def.h"

namespace weft::reader {

class Reader;

// A value of the text. A literal with the type of an array is a constant with this one element,
// which ops that take scalars beside arrays take as it is.
struct Entry {
  Value value;
  TypeRef type = kToken;

  bool is_token() const { return type == kToken; }
};
using Entries = SmallVector<Entry, 4>;

// A region as a graph. What it uses from outside are inputs in front of its arguments.
struct Region {
  GraphRef graph;
  Entries captured;  // in the region around it
  size_t num_args = 0;
  bool takes_token = false, gives_token = false;
};

struct OpText {
  Reader& reader;
  const Document& document;
  Builder& b;
  const char* at;                   // where it begins
  std::string_view full_name = {};  // "stablehlo.add"
  std::string_view name = {};       // "add"
  Entries operands = {};
  NamedList attrs = {};
  SmallVector<std::string_view, 4> words = {};  // "LT" of "stablehlo.compare LT, ..."
  std::vector<Region> regions = {};
  TypeRefs types = {};  // of the results
  Values results = {};  // made by the rule, one per result; none for tokens

  size_t size() const { return operands.size(); }
  TypeRef in_type(size_t i) const { return operands[i].type; }
  TypeRef out_type(size_t i = 0) const;

  // Operand i; as an array, also if all its elements are one.
  Val x(size_t i) const;
  // Operand i as it is kept: maybe a scalar literal where an array is meant.
  Val raw(size_t i) const { return {&b, operands[i].value}; }
  bool is_splat(size_t i) const {
    return operands[i].value.is_literal() && operands[i].type->rank() > 0;
  }
  Vals all() const;  // without tokens
  void result(Val v) { results.push_back(v.value); }
  // All results in order; between them stand those that are tokens.
  void give(std::span<const Val> made);

  // The value of the first of these attributes that is there; nullopt if none is.
  std::optional<std::string_view> find(std::string_view attr) const;
  std::optional<std::string_view> find(std::initializer_list<std::string_view> attrs) const;
  std::string_view get(std::initializer_list<std::string_view> attrs) const;
  Dims ints(std::initializer_list<std::string_view> attrs) const {
    return document.ints(get(attrs));
  }
  Dims ints_or(std::string_view attr, size_t n, int64_t value) const;
  int64_t integer(std::initializer_list<std::string_view> attrs) const {
    return document.integer(get(attrs));
  }
  int64_t integer_or(std::string_view attr, int64_t value) const;
  bool boolean_or(std::string_view attr, bool value) const;
  // A keyword: one of the words, or the value of an attribute; empty if neither is there.
  std::string_view keyword(std::initializer_list<std::string_view> attrs, size_t word = 0) const;

  void expect_operands(size_t n) const;
  void expect_regions(size_t n) const;
  // The graph of a region that uses nothing from outside.
  const GraphRef& closed_region(size_t i) const;

  // "line 3, column 7: [stablehlo.add] expected ...".
  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    fail_as(ErrorKind::kParse, cat(parts...));
  }
  // Of what is right, and has no counterpart.
  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail_as(ErrorKind::kNotImplemented, cat(parts...));
  }
  [[noreturn]] void fail_as(ErrorKind kind, std::string_view message) const;
};

using Rule = void (*)(OpText&);
struct NamedRule {
  std::string_view name;
  Rule rule;
};
// By the name without its dialect; null if there is none.
Rule find_rule(std::string_view name);

// The rules of a family; each stands in the file of its name.
std::span<const NamedRule> elementwise_rules();
std::span<const NamedRule> shape_rules();
std::span<const NamedRule> reduce_rules();
std::span<const NamedRule> product_rules();
std::span<const NamedRule> control_rules();
std::span<const NamedRule> host_rules();

// The op of weft that a graph of scalars stands for, if it is one on its two inputs, in order or
// commutative: a sum, say. Empty if it is none.
std::string_view combining_op(const Graph& graph);

// A graph of scalars on all elements of arrays of one shape.
Vals mapped(const GraphRef& graph, const Vals& xs);

}  // namespace weft::reader
