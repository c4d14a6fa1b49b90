// Captures come before the arguments; results are unflattened.

#include "jit/call.h"

#include <unordered_set>

#include "arrays/array.h"
#include "conversions/location.h"
#include "conversions/sharding_object.h"
#include "execution/eager.h"
#include "execution/prologue.h"
#include "execution/run.h"
#include "graphs/recording.h"
#include "jit/history.h"
#include "references/hooks.h"
#include "tracing/cell.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

// The graph as a region: captured values are inputs like the others.
const AttrsRef& call_attrs(const Entry& e) {
  if (!e.call_attrs) {
    const OpDef& op = registry().get("jit");
    e.call_attrs =
        AttrRecord::make(op.name, op.attrs, {{"name", e.name}, {"jaxpr", as_region(e.graph)}});
  }
  return e.call_attrs;
}

Ref assemble(const Entry& e, Outputs& outputs) {
  if (!e.out_tree) return outputs.take(0);
  if (e.result_tree.is_known()) return e.result_tree.build(outputs);
  size_t count = e.num_results();
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), outputs.take(i).release());
  return Ref::checked(PyObject_CallMethodOneArg(e.out_tree.get(), name("unflatten"), list.get()));
}

// Per leaf of a tree, of these types, what is written for it. Returns the entries of each.
std::vector<SpecEntries> resolve(const Ref& shardings, const Ref& tree, const char* parameter,
                                 std::vector<ShardingRef>& out, size_t at,
                                 std::span<const TypeRef> types) {
  if (!shardings) return {};
  size_t count = types.size();
  Ref own_tree = tree ? tree : Ref::borrow(Py_None);
  Ref shapes = Ref::checked(PyList_New(0));
  for (TypeRef type : types) check(PyList_Append(shapes.get(), to_tuple(type->shape()).get()));
  Ref resolved = Ref::checked(
      PyObject_CallFunctionObjArgs(hooks.resolve_shardings.get(), shardings.get(), own_tree.get(),
                                   shapes.get(), to_text(parameter).get(), nullptr));
  if (PyList_GET_SIZE(resolved.get()) != static_cast<Py_ssize_t>(count))
    raise_error("ShardingError", "expected ", parameter, " for ", count, " leaves; got ",
                PyList_GET_SIZE(resolved.get()));
  std::vector<SpecEntries> entries;
  for (size_t i = 0; i < count; ++i) {
    PyObject* found = PyList_GET_ITEM(resolved.get(), static_cast<Py_ssize_t>(i));
    out[at + i] = sharding_of(found);
    entries.push_back(entries_of(found));
  }
  return entries;
}

const Entry::Wanted& wanted_of(const JitState& s, const Entry& e) {
  if (e.wanted) return *e.wanted;
  auto made = std::make_unique<Entry::Wanted>();
  made->inputs.resize(e.graph->num_inputs());
  made->outputs.resize(e.graph->outputs().size());
  std::vector<TypeRef> types = e.graph->output_types();
  resolve(s.in_shardings, e.in_tree, "in_shardings", made->inputs, e.captures.size(),
          e.graph->input_types().subspan(e.captures.size()));
  made->entries = resolve(s.out_shardings, e.out_tree, "out_shardings", made->outputs, 0,
                          std::span(types).first(e.num_results()));
  for (size_t i = 0; i < e.splits.size(); ++i)
    if (!made->outputs[i] && !e.splits[i]->mesh()->axes().empty())
      made->outputs[i] = place_of_result(e.splits[i], types[i], e.splits[i]->mesh());
  for (size_t i = 0; i < types.size(); ++i)
    if (made->outputs[i]) check_fit(made->outputs[i], types[i], cat("result ", i, " of ", s.name));
  e.wanted = std::move(made);
  return *e.wanted;
}

std::string describe_input(const JitState& s, const Entry& e, size_t i) {
  size_t captures = e.captures.size();
  return i < captures ? cat("an array that '", s.name, "' closes over")
                      : describe_leaf(s, e.in_tree.get(), i - captures);
}

// The values split as a jit within a trace was told that they are to be; null: not said.
void constrain(const ContextRef& c, Values& values, const std::vector<ShardingRef>& wanted,
               Describe describe) {
  static const OpDef& op = registry().get("sharding_constraint");
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    check_fit(wanted[i], c->builder.type(values[i]), describe(i));
    AttrsRef attrs = AttrRecord::make(op.name, op.attrs, {{"sharding", wanted[i]}});
    values[i] = c->builder.add(op, {&values[i], 1}, attrs)[0];
  }
}

// Within a trace: a `jit` op, or the callee's ops for an inline function.
void record_call(const JitState& s, const Entry& e, const ContextRef& c,
                 std::span<const Operand> operands, Outputs& outputs) {
  if (s.how.xla_options || s.how.cut == Cut::kBlocks)
    raise_error("AttributeValueError",
                s.how.xla_options ? "compiler_options or optimize=" : "compile=",
                " expected to be that of the outermost jit; got one for '", s.name,
                "', which is called while another function is traced");
  Values args;
  for (const Operand& x : operands) args.push_back(value_in(*c, x, x.type->dtype()));
  c->builder.set_loc(c->locations ? current_loc() : kNoLoc);
  bool is_placed = s.in_shardings || s.out_shardings;
  if (is_placed)
    constrain(c, args, wanted_of(s, e).inputs, [&](size_t i) { return describe_input(s, e, i); });
  static const OpDef& jit_op = registry().get("jit");
  Values results = s.is_inline ? c->builder.inline_graph(*e.graph, args)
                               : c->builder.add(jit_op, args, call_attrs(e));
  if (is_placed)
    constrain(c, results, wanted_of(s, e).outputs,
              [&](size_t i) { return cat("result ", i, " of ", s.name); });
  for (size_t i = 0; i < results.size(); ++i) {
    bool follows = !e.splits.empty() && !s.out_shardings && !results[i].is_literal();
    if (follows) set_split(*c, results[i], e.splits[i]);
    outputs.push_back(Ref::steal(make_tracer(c, results[i], e.weak[i])));
  }
}

void execute(const JitState& s, const Entry& e, std::span<const Operand> operands,
             Outputs& outputs) {
  Placement where = placement_of(s, e, operands);
  ProgramRef program = program_for(e, where.places, s.keep_unused, s.how);
  run_on(*program, operands, where.places, where.committed, outputs);
}

}  // namespace

void run_on(const Program& program, std::span<const Operand> operands, const Places& places,
            bool committed, Outputs& outputs) {
  std::vector<Ref> held;
  SmallVector<PyObject*, 16> inputs;
  inputs.reserve(operands.size());
  for (const Operand& x : operands) {
    ShardingRef at = places.input(inputs.size());
    if (x.kind == OperandKind::kArray && as_array(x.object)->sharding == at) {
      inputs.push_back(x.object);
    } else {
      guard_transfer(x);
      held.push_back(for_call(x, at));
      inputs.push_back(held.back().get());
    }
  }
  size_t first = outputs.size();
  run(program, {inputs.data(), inputs.size()}, committed, outputs);
  // What was moved to be donated is the caller's no more either.
  for (uint32_t d : program.donated)
    if (const Operand& x = operands[d]; x.kind == OperandKind::kArray && inputs[d] != x.object)
      if (!as_array(x.object)->shared) give_up(as_array(x.object));
  // As of derivatives that are not jitted: arrays of NumPy.
  for (size_t i = first; i < outputs.size(); ++i)
    if (program.outputs[i - first]->dtype() == DType::kFloat0)
      outputs.replace(i, to_numpy(as_array(outputs[i])));
}

void check_cells(const Entry& e, std::span<PyObject* const> cells, Describe describe) {
  if (cells.empty()) return;
  std::unordered_set<PyObject*> closed_over;
  for (const Ref& w : e.written) closed_over.insert(w.get());
  for (const Ref& c : e.captures)
    if (is_cell(c.get())) closed_over.insert(c.get());
  std::vector<PyObject*> all(cells.begin(), cells.end());
  all.insert(all.end(), closed_over.begin(), closed_over.end());
  check_aliases(all, [&](size_t i) {
    return i < cells.size() ? describe(i) : cat("one that '", e.name, "' closes over");
  });
}

Ref results_of(const Entry& e, std::span<PyObject* const> leaves, Outputs& outputs) {
  size_t next = e.num_results();
  for (const Ref& cell : e.written)
    set_cell(cell_at_call(as_cell(cell.get()), leaves), outputs.take(next++));
  for (size_t i : e.written_arguments) set_cell(as_cell(leaves[i]), outputs.take(next++));
  return assemble(e, outputs);
}

Placement placement_of(const JitState& s, const Entry& e, std::span<const Operand> operands) {
  auto describe = [&](size_t i) { return describe_input(s, e, i); };
  if (s.at) return {{s.at}, true};
  if (!e.mesh) e.mesh = mesh_named_in(*e.graph);
  MeshRef mesh = *e.mesh;
  bool has_axes = !e.splits.empty() && !e.splits[0]->mesh()->axes().empty();
  if (!mesh && has_axes) mesh = e.splits[0]->mesh();
  if (!s.in_shardings && !s.out_shardings && e.splits.empty())
    return placement(operands, describe, mesh);
  const Entry::Wanted& wanted = wanted_of(s, e);
  Placement p = placement(operands, describe, mesh, wanted.inputs, wanted.outputs);
  p.places.entries = wanted.entries;
  if (e.splits.empty() || has_axes) return p;
  std::vector<TypeRef> types = e.graph->output_types();
  for (size_t i = 0; i < e.splits.size(); ++i)
    if (!p.places.outputs[i])
      p.places.outputs[i] = place_of_result(e.splits[i], types[i], p.places.at->mesh());
  return p;
}

static Entry::Target target_of(Places places, const CompileChoice& how) {
  return {std::move(places), static_cast<int>(debug_flags()), max_constants_kept() > 0, how};
}

bool is_compiled(const Entry& e, Places places, const CompileChoice& how) {
  Entry::Target target = target_of(std::move(places), how);
  return std::any_of(e.programs.begin(), e.programs.end(),
                     [&](const auto& known) { return known.first == target; });
}

// Why an entry that was compiled is compiled again.
static std::string why_again(const Entry& e, const Entry::Target& target) {
  if (e.programs.empty()) return "";
  const Entry::Target& before = e.programs.back().first;
  if (target.debug_flags != before.debug_flags) return "debug_nans or debug_infs is another";
  if (target.keeps_constants != before.keeps_constants)
    return "weft_constants_kept was turned on or off";
  if (target.how.xla_options != before.how.xla_options)
    return "compiler_options or optimize= are others";
  if (target.how.cut != before.how.cut) return "compile= is another";
  if (target.how.kernels != before.how.kernels) return "kernels= is another";
  if (target.places.at != before.places.at)
    return cat("the arguments are on ", describe(target.places.at), ", before on ",
               describe(before.places.at));
  for (size_t i = 0; i < e.graph->num_inputs(); ++i) {
    ShardingRef now = target.places.input(i), then = before.places.input(i);
    if (now == then) continue;
    size_t captures = e.captures.size();
    return cat(i < captures ? "an array that is closed over" : cat("leaf ", i - captures),
               " is on ", describe(now), ", before on ", describe(then));
  }
  return "the results are to be elsewhere";
}

// Which inputs are arrays that the function closes over.
static std::vector<bool> constants_of(const Entry& e) {
  std::vector<bool> constants(e.graph->num_inputs());
  for (size_t i = 0; i < e.captures.size(); ++i) constants[i] = is_array(e.captures[i].get());
  return constants;
}

ProgramRef program_for(const Entry& e, Places places, bool keep_unused, const CompileChoice& how,
                       PyObject* executable) {
  Entry::Target target = target_of(std::move(places), how);
  do {
    for (const auto& [known, program] : e.programs)
      if (known == target) return program;
  } while (e.compiling.wait([&](const Entry::Target& other) { return other == target; }));
  InFlightTable<Entry::Target>::Begun begun(e.compiling, target, false);
  CompileOptions options;
  options.places = target.places;
  options.name = e.name;
  options.donated = e.donated;
  if (!e.is_library) options.constants = constants_of(e);
  options.keep_unused = keep_unused;
  options.how = how;
  options.executable = Ref::borrow(executable);
  ProgramRef program = compile(e.graph, options, e.weak);
  if (MissRef miss = e.miss.lock()) {
    Compilation made{why_again(e, target), program->cost};
    if (is_on(kExplainMisses)) notice("made", {to_text(e.name), compilation_object(made)});
    if (miss->compilations.size() < Miss::kMaxCompilations)
      miss->compilations.push_back(std::move(made));
  }
  e.programs.emplace_back(target, program);
  return program;
}

Ref call_entry(const JitState& s, const Entry& entry, const Call& call) {
  if (!call.cells.empty()) {
    SmallVector<PyObject*, 8> cells;
    for (size_t i : call.cells) cells.push_back(call.leaves[i]);
    check_cells(entry, cells,
                [&](size_t i) { return describe_leaf(s, entry.in_tree.get(), call.cells[i]); });
  }
  std::span<const Operand> operands = call.operands;
  std::vector<Ref> captures;
  std::vector<Operand> with_captures;
  if (!entry.captures.empty()) {
    captures = capture_values(entry.captures, call.leaves);
    for (const Ref& c : captures) with_captures.push_back(classify(c.get()));
    with_captures.insert(with_captures.end(), operands.begin(), operands.end());
    operands = with_captures;
  }
  Outputs outputs;
  if (ContextRef c = context_for(operands, stays_innermost(*entry.graph))) {
    record_call(s, entry, c, operands, outputs);
  } else {
    execute(s, entry, operands, outputs);
  }
  return results_of(entry, call.leaves, outputs);
}

}  // namespace weft::py
