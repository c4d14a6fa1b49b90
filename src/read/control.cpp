// Calls, branches and loops.
#include "read/loops.h"
#include "read/op_text.h"
#include "read/reader.h"
#include "weft/registry.h"

namespace weft::reader {

namespace {

Vals values_of(const OpText& op, std::span<const Entry> entries) {
  Vals xs;
  for (const Entry& entry : entries) {
    if (entry.is_token()) continue;
    Val v{&op.b, entry.value};
    xs.push_back(broadcast_to(v, entry.type->shape()));
  }
  return xs;
}

void call(OpText& op) {
  std::string_view name = op.document.symbol(op.get({"callee"}));
  const GraphRef& graph = op.reader.function(name, op);
  Vals xs = op.all();
  bool fits = graph->num_inputs() == xs.size();
  for (uint32_t i = 0; fits && i < xs.size(); ++i) fits = xs[i].type() == graph->input_types()[i];
  if (!fits)
    op.fail("expected operands of the types of the ", graph->num_inputs(), " arguments of @", name);
  const OpDef& def = op_named<"jit">();
  Values operands, made;
  for (Val x : xs) operands.push_back(x.value);
  made = op.b.add(
      def, operands,
      AttrRecord::make(def.name, def.attrs, {{"name", std::string(name)}, {"jaxpr", graph}}));
  Vals results;
  for (Value v : made) results.push_back({&op.b, v});
  op.give(results);
}

// Those that stand for an op of CHLO become what that does.
void composite(OpText& op) {
  constexpr std::string_view kChlo = "\"chlo.";
  std::optional<std::string_view> known = op.find("name");
  if (known && known->starts_with(kChlo) && known->ends_with('"')) {
    std::string_view name = known->substr(kChlo.size(), known->size() - kChlo.size() - 1);
    if (Rule rule = find_rule(name)) {
      if (std::optional<std::string_view> given = op.find("composite_attributes"))
        for (const Named& attr : op.document.fields(*given)) op.attrs.push_back(attr);
      return rule(op);
    }
  }
  std::string_view name = op.document.symbol(op.get({"decomposition"}));
  const GraphRef& graph = op.reader.function(name, op);
  std::string attributes;
  if (std::optional<std::string_view> given = op.find("composite_attributes")) {
    std::string_view text = op.document.resolved(*given);
    if (text.size() >= 2) attributes = text.substr(1, text.size() - 2);
  }
  const OpDef& def = op_named<"composite">();
  Values operands;
  for (Val x : op.all()) operands.push_back(x.value);
  Vals results;
  for (Value v : op.b.add(def, operands,
                          AttrRecord::make(def.name, def.attrs,
                                           {{"name", op.document.string(op.get({"name"}))},
                                            {"version", op.integer_or("version", 0)},
                                            {"attributes", attributes},
                                            {"jaxpr", graph}})))
    results.push_back({&op.b, v});
  op.give(results);
}

// The graph of a branch, as one of all values that any branch takes from outside.
GraphRef on_all(const Region& region, const Vals& all) {
  GraphBuilder b;
  std::vector<Value> inputs;
  for (Val v : all) inputs.push_back(b.input(v.type()));
  Values args;
  for (const Entry& entry : region.captured)
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].value == entry.value) {
        args.push_back(inputs[i]);
        break;
      }
  return b.finish(b.inline_graph(*region.graph, args));
}

void branch(OpText& op, Val index) {
  if (op.regions.empty()) op.fail("expected at least one region");
  Vals all;
  for (const Region& region : op.regions) {
    if (region.num_args != 0) op.fail("expected regions without arguments");
    for (const Entry& entry : region.captured) {
      bool known = false;
      for (Val v : all) known |= v.value == entry.value;
      if (!known) all.push_back({&op.b, entry.value});
    }
  }
  std::vector<GraphRef> branches;
  for (const Region& region : op.regions) branches.push_back(on_all(region, all));
  const OpDef& def = op_named<"cond">();
  Vals operands{index};
  operands.append(all);
  op.give(weft::apply(def, operands,
                      AttrRecord::make(def.name, def.attrs, {{"branches", std::move(branches)}})));
}

// Of an index out of range StableHLO takes the last branch, and weft the nearest one.
void case_rule(OpText& op) {
  op.expect_operands(1);
  if (op.in_type(0) != scalar_type(DType::kI32))
    op.fail("expected an index of type tensor<i32>; got ", op.in_type(0));
  Val index = op.x(0);
  auto last = static_cast<int64_t>(op.regions.size()) - 1;
  auto is_literal = [&](Val v, int64_t x) {
    const Literal* known = op.b.as_literal(v.value);
    return known && known->as_int() == x;
  };
  auto number = [&](int64_t x) { return Val{&op.b, op.b.literal(make_literal(DType::kI32, x))}; };
  if (const Op* clamp = made_by<"clamp">(index)) {
    std::span<const Value> xs = op.b.operands(*clamp);
    if (is_literal({&op.b, xs[0]}, 0) && is_literal({&op.b, xs[2]}, last))
      return branch(op, {&op.b, xs[1]});
  }
  const Op* converted = made_by<"convert_element_type">(index);
  bool is_bool_index =
      converted && is_bool(op.b.type(op.b.operands(*converted)[0])->dtype()) && last >= 1;
  if (last > 0 && !is_bool_index && !op.b.as_literal(index.value))
    index = select(lt(index, number(0)), number(last), index);
  branch(op, index);
}

void if_rule(OpText& op) {
  op.expect_operands(1);
  op.expect_regions(2);
  if (op.in_type(0) != scalar_type(DType::kBool))
    op.fail("expected a predicate of type tensor<i1>; got ", op.in_type(0));
  std::swap(op.regions[0], op.regions[1]);
  branch(op, convert(op.x(0), DType::kI32));
}

void while_rule(OpText& op) {
  op.expect_regions(2);
  if (op.types.empty() && op.size() > 0)
    for (const Entry& entry : op.operands) op.types.push_back(entry.type);
  WhileLoop loop{op.regions[0].graph, op.regions[1].graph, values_of(op, op.regions[0].captured),
                 values_of(op, op.regions[1].captured), op.all()};
  std::vector<TypeRef> outputs = loop.body->output_types();
  bool fits = outputs.size() == loop.carry.size() &&
              loop.body->num_inputs() == loop.body_consts.size() + outputs.size() &&
              loop.condition->num_inputs() == loop.cond_consts.size() + outputs.size();
  if (!fits)
    op.fail("expected regions that take the ", loop.carry.size(),
            " values that it carries, and a body that returns as many");
  if (Vals made = as_scan(op.b, loop); !made.empty()) return op.give(made);
  const OpDef& def = op_named<"while">();
  Values operands;
  for (const Vals& part : {loop.cond_consts, loop.body_consts, loop.carry})
    for (Val v : part) operands.push_back(v.value);
  Vals results;
  for (Value v : op.b.add(
           def, operands,
           AttrRecord::make(def.name, def.attrs,
                            {{"cond_jaxpr", loop.condition},
                             {"cond_nconsts", static_cast<int64_t>(loop.cond_consts.size())},
                             {"body_jaxpr", loop.body},
                             {"body_nconsts", static_cast<int64_t>(loop.body_consts.size())}})))
    results.push_back({&op.b, v});
  op.give(results);
}

void barrier(OpText& op) {
  Vals xs = op.all();
  op.give(xs.empty() ? Vals() : optimization_barrier(xs));
}

constexpr NamedRule kControlRules[] = {
    {"call", call},
    {"case", case_rule},
    {"composite", composite},
    {"if", if_rule},
    {"optimization_barrier", barrier},
    {"while", while_rule},
};

}  // namespace

std::span<const NamedRule> control_rules() { return kControlRules; }

}  // namespace weft::reader
