// Reductions of axes and of windows. Sums, products, extremes and the like become weft's ops for
// them, whose derivatives are better than those of a reduction by a graph.
#include "ops/def/limits.h"
#include "read/op_text.h"
#include "weft/registry.h"

namespace weft::reader {

namespace {

// A reduction that weft has an op for.
struct Known {
  std::string_view combine;  // the op on two scalars
  std::string_view reduce, window;
  Literal (*identity)(DType);
};

Literal all_bits(DType d) { return make_literal(d, int64_t{is_bool(d) ? 1 : -1}); }

constexpr Known kKnown[] = {
    {"add", "reduce_sum", "reduce_window_sum", zero},
    {"mul", "reduce_prod", "", one},
    {"max", "reduce_max", "reduce_window_max", lowest},
    {"min", "reduce_min", "reduce_window_min", highest},
    {"and", "reduce_and", "", all_bits},
    {"or", "reduce_or", "", zero},
    {"xor", "reduce_xor", "", zero},
};

const Known* find_known(std::string_view combine) {
  for (const Known& known : kKnown)
    if (known.combine == combine) return &known;
  return nullptr;
}

bool is_identity(const OpText& op, size_t i, const Known& known) {
  const Literal* init = op.b.as_literal(op.operands[i].value);
  if (!init) return false;
  DType dtype = init->dtype;
  if (*init == known.identity(dtype)) return true;
  bool is_negative_zero = is_inexact(dtype) && init->as_double() == 0 && known.combine == "add";
  return is_negative_zero && !is_complex(dtype);
}

// "add" of `applies stablehlo.add`, as the graph that a region would be.
GraphRef graph_of(OpText& op, std::string_view applied) {
  Rule rule = find_rule(applied);
  TypeRef scalar = scalar_type(op.in_type(0)->dtype());
  GraphBuilder b;
  OpText inner{op.reader, op.document, b, op.at, op.full_name, applied};
  for (int i = 0; i < 2; ++i) inner.operands.push_back({b.input(scalar), scalar});
  inner.types = {scalar};
  if (!rule) op.refuse("expected an op of two operands to reduce by; got ", applied);
  rule(inner);
  if (inner.results.size() != 1 || b.type(inner.results[0]) != scalar)
    op.fail("expected an op of two operands to reduce by; got ", applied);
  return b.finish(inner.results);
}

void reduce_rule(OpText& op) {
  size_t n = op.size() / 2;
  if (n == 0 || op.size() % 2 != 0)
    op.fail("expected operands and as many initial values; got ", op.size());
  Dims axes = op.ints({"dimensions"});
  GraphRef graph;
  if (std::optional<std::string_view> applied = op.find("applies")) {
    if (n != 1) op.fail("expected one operand to reduce by an op; got ", n);
    graph = graph_of(op, *applied);
  } else {
    op.expect_regions(1);
    graph = op.closed_region(0);
  }
  const Known* known = n == 1 ? find_known(combining_op(*graph)) : nullptr;
  if (!known) {
    for (Val v : weft::apply(op_named<"reduce">(), op.all(),
                             AttrRecord::make("reduce", op_named<"reduce">().attrs,
                                              {{"dimensions", axes}, {"jaxpr", graph}})))
      op.result(v);
    return;
  }
  Val made = apply1(known->reduce, {op.x(0)}, {{"axes", axes}});
  if (!is_identity(op, 1, *known))
    made = weft::apply(registry().get(known->combine), Vals{op.x(1), made}, nullptr)[0];
  op.result(made);
}

// ---- Windows

struct WindowText {
  Dims size, strides, base_dilation, dilation;
  std::vector<Dims> padding;

  explicit WindowText(const OpText& op) : size(op.ints({"window_dimensions"})) {
    size_t n = size.size();
    strides = op.ints_or("window_strides", n, 1);
    base_dilation = op.ints_or("base_dilations", n, 1);
    dilation = op.ints_or("window_dilations", n, 1);
    padding.assign(n, Dims{0, 0});
    if (std::optional<std::string_view> given = op.find("padding"))
      padding = op.document.rows(*given);
    if (n == 0) padding.clear();
    for (const Dims& pair : padding)
      if (pair.size() != 2) op.fail("expected padding of two numbers per axis");
  }
  AttrsRef attrs(const OpDef& def, std::initializer_list<NamedAttr> more = {}) const {
    std::vector<NamedAttr> all = {
        {"window_dimensions", size}, {"window_strides", strides}, {"padding", padding}};
    if (def.attrs.find("base_dilation") >= 0) {
      all.push_back({"base_dilation", base_dilation});
      all.push_back({"window_dilation", dilation});
    }
    all.insert(all.end(), more.begin(), more.end());
    return AttrRecord::make(def.name, def.attrs, all);
  }
};

void reduce_window_rule(OpText& op) {
  size_t n = op.size() / 2;
  if (n == 0 || op.size() % 2 != 0)
    op.fail("expected operands and as many initial values; got ", op.size());
  op.expect_regions(1);
  const GraphRef& graph = op.closed_region(0);
  WindowText w(op);
  const Known* known = n == 1 ? find_known(combining_op(*graph)) : nullptr;
  if (known && !known->window.empty() && is_identity(op, 1, *known)) {
    const OpDef& def = registry().get(known->window);
    return op.result(weft::apply(def, Vals{op.x(0)}, w.attrs(def))[0]);
  }
  const OpDef& def = op_named<"reduce_window">();
  for (Val v : weft::apply(def, op.all(), w.attrs(def, {{"jaxpr", graph}}))) op.result(v);
}

void select_and_scatter_rule(OpText& op) {
  op.expect_operands(3);
  op.expect_regions(2);
  GraphRef select = op.closed_region(0), scatter = op.closed_region(1);
  WindowText w(op);
  std::string_view chosen = combining_op(*select);
  bool sums = combining_op(*scatter) == "add" && is_identity(op, 2, kKnown[0]);
  if (sums && (chosen == "ge" || chosen == "le")) {
    const OpDef& def = op_named<"select_and_scatter_add">();
    AttrsRef attrs = w.attrs(def, {{"select_prim", std::string(chosen)}});
    return op.result(weft::apply(def, Vals{op.x(1), op.x(0)}, attrs)[0]);
  }
  const OpDef& def = op_named<"select_and_scatter">();
  AttrsRef attrs = w.attrs(def, {{"select_jaxpr", select}, {"scatter_jaxpr", scatter}});
  op.result(weft::apply(def, op.all(), attrs)[0]);
}

// A graph of scalars on all elements.
void map_rule(OpText& op) {
  op.expect_regions(1);
  if (op.size() == 0) op.fail("expected an operand");
  const GraphRef& graph = op.closed_region(0);
  if (graph->num_inputs() != op.size() || graph->outputs().size() != 1)
    op.fail("expected a region of ", op.size(), " arguments and one result");
  for (size_t i = 0; i < op.size(); ++i)
    if (op.in_type(i)->shape() != op.in_type(0)->shape() ||
        graph->input_types()[i] != scalar_type(op.in_type(i)->dtype()))
      op.fail("expected operands of one shape, and a region of their elements");
  op.result(mapped(graph, op.all())[0]);
}

constexpr NamedRule kReduceRules[] = {
    {"map", map_rule},
    {"reduce", reduce_rule},
    {"reduce_window", reduce_window_rule},
    {"select_and_scatter", select_and_scatter_rule},
};

}  // namespace

std::span<const NamedRule> reduce_rules() { return kReduceRules; }

}  // namespace weft::reader
