#include "read/op_text.h"

#include <algorithm>
#include <unordered_map>

#include "weft/emit.h"
#include "weft/read.h"
#include "weft/registry.h"
#include "weft/transforms.h"

namespace weft::reader {

TypeRef OpText::out_type(size_t i) const {
  if (i >= types.size()) fail("expected at least ", i + 1, " results; got ", types.size());
  if (types[i] == kToken) fail("expected result ", i, " to be an array; got a token");
  return types[i];
}

Val OpText::x(size_t i) const {
  if (operands[i].is_token()) fail("expected operand ", i, " to be an array; got a token");
  return broadcast_to(raw(i), operands[i].type->shape());
}

Vals OpText::all() const {
  Vals xs;
  for (size_t i = 0; i < size(); ++i)
    if (!operands[i].is_token()) xs.push_back(x(i));
  return xs;
}

void OpText::give(std::span<const Val> made) {
  size_t next = 0;
  for (TypeRef type : types) {
    if (type == kToken) {
      results.push_back({});
    } else if (next < made.size()) {
      results.push_back(made[next++].value);
    }
  }
  if (next != made.size()) fail("expected ", made.size(), " results; got the types of ", next);
}

std::optional<std::string_view> OpText::find(std::string_view attr) const {
  for (const Named& known : attrs)
    if (known.name == attr) return known.value;
  return std::nullopt;
}

std::optional<std::string_view> OpText::find(std::initializer_list<std::string_view> names) const {
  for (std::string_view attr : names)
    if (std::optional<std::string_view> value = find(attr)) return value;
  return std::nullopt;
}

std::string_view OpText::get(std::initializer_list<std::string_view> names) const {
  if (std::optional<std::string_view> value = find(names)) return *value;
  fail("expected the attribute ", *names.begin());
}

Dims OpText::ints_or(std::string_view attr, size_t n, int64_t value) const {
  std::optional<std::string_view> found = find(attr);
  return found ? document.ints(*found) : Dims(n, value);
}

int64_t OpText::integer_or(std::string_view attr, int64_t value) const {
  std::optional<std::string_view> found = find(attr);
  return found ? document.integer(*found) : value;
}

bool OpText::boolean_or(std::string_view attr, bool value) const {
  std::optional<std::string_view> found = find(attr);
  return found ? document.boolean(*found) : value;
}

std::string_view OpText::keyword(std::initializer_list<std::string_view> names, size_t word) const {
  if (std::optional<std::string_view> value = find(names)) return document.keyword(*value);
  return word < words.size() ? words[word] : std::string_view();
}

void OpText::expect_operands(size_t n) const {
  if (size() != n) fail("expected ", n, n == 1 ? " operand; got " : " operands; got ", size());
  for (size_t i = 0; i < n; ++i)
    if (operands[i].is_token()) fail("expected operand ", i, " to be an array; got a token");
}

void OpText::expect_regions(size_t n) const {
  if (regions.size() != n)
    fail("expected ", n, n == 1 ? " region; got " : " regions; got ", regions.size());
}

const GraphRef& OpText::closed_region(size_t i) const {
  const Region& region = regions[i];
  if (!region.captured.empty())
    refuse("expected its region to use nothing but its arguments and constants; it uses ",
           region.captured.size(), " values from outside");
  return region.graph;
}

void OpText::fail_as(ErrorKind kind, std::string_view message) const {
  document.source().fail(at, kind, cat("[", full_name, "] ", message));
}

Rule find_rule(std::string_view name) {
  static const std::unordered_map<std::string_view, Rule>& table = *[] {
    auto* all = new std::unordered_map<std::string_view, Rule>;
    for (auto family :
         {elementwise_rules, shape_rules, reduce_rules, product_rules, control_rules, host_rules})
      for (const NamedRule& rule : family()) all->try_emplace(rule.name, rule.rule);
    return all;
  }();
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

namespace {

// Of complex numbers the larger one is written in terms of other ops: those that the emitter
// writes.
std::string_view combining_op_of_complex(const Graph& graph) {
  for (std::string_view name : {"max", "min"}) {
    GraphBuilder b;
    Val x{&b, b.input(graph.input_types()[0])}, y{&b, b.input(graph.input_types()[1])};
    if (x.type() != y.type() || !is_complex(x.dtype())) return {};
    Value made = weft::apply1(name, {x, y}).value;
    if (equal(graph, *read_stablehlo(emit_stablehlo(*b.finish({&made, 1})).text))) return name;
  }
  return {};
}

}  // namespace

std::string_view combining_op(const Graph& graph) {
  if (graph.num_inputs() != 2 || graph.outputs().size() != 1) return {};
  if (graph.ops().size() != 1) return combining_op_of_complex(graph);
  const Op& op = graph.op(0);
  if (graph.outputs()[0] != graph.result(op) || op.num_operands != 2) return {};
  Value x = graph.operand(op, 0), y = graph.operand(op, 1);
  bool in_order = x == graph.input(0) && y == graph.input(1);
  bool turned = x == graph.input(1) && y == graph.input(0) && op.info->commutative;
  return in_order || turned ? std::string_view(op.info->name) : std::string_view();
}

Vals mapped(const GraphRef& graph, const Vals& xs) {
  const Dims shape = xs[0].shape();
  int64_t n = xs[0].type()->num_elements();
  Values flat;
  for (Val x : xs) flat.push_back(reshape(x, {n}).value);
  auto made = vmap(graph, {.in_dims = BatchDims(xs.size(), 0),
                           .size = n,
                           .out_dims = BatchDims(graph->outputs().size(), 0)});
  Vals results;
  Builder& b = *xs[0].builder;
  for (Value v : b.inline_graph(*made->graph, flat)) results.push_back(reshape(Val{&b, v}, shape));
  return results;
}

}  // namespace weft::reader
