// Calls of compiled functions. Arguments nested as in an earlier call are taken apart by its
// layout, as those of jitted functions are.

#include "jit/compiled.h"

#include "arrays/array.h"
#include "conversions/sharding_object.h"
#include "execution/eager.h"
#include "graphs/values.h"
#include "jit/call.h"
#include "jit/layout.h"
#include "references/hooks.h"
#include "references/object_type.h"
#include "tracing/cell.h"

namespace weft::py {
namespace {

PyTypeObject* compiled_type;

struct CompiledState {
  EntryRef entry;
  ProgramRef program;
  Structure structure;  // of the arguments; no object: positional leaves
  LayoutMemo layouts;
};

struct CompiledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  CompiledState* state;

  int visit(visitproc visit, void* arg) const {
    if (!state) return 0;
    Py_VISIT(state->structure.object.get());
    return state->layouts.traverse(visit, arg);
  }
  void clear() {
    if (state) state->layouts.take();
  }
  void release() { delete state; }
};

[[noreturn]] void raise_other_structure(const Entry& e) {
  raise_error("TreeStructureError", "'", e.name, "' was compiled for other arguments");
}

void append_leaf(PyObject* leaf, Flat& out) {
  out.owned.push_back(Ref::borrow(leaf));
  out.leaves.push_back(leaf);
  out.operands.push_back(classify(leaf));
}

// By the registry of trees.
void flatten_new(CompiledState& s, const Arguments& args, Flat& out) {
  Ref all = packed(args, [](Py_ssize_t) { return false; });
  Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), all.get()));
  if (!same_value(PyTuple_GET_ITEM(flat.get(), 1), s.structure.tree()))
    raise_other_structure(*s.entry);
  PyObject* leaves = PyTuple_GET_ITEM(flat.get(), 0);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves); ++i)
    append_leaf(PyList_GET_ITEM(leaves, i), out);
  StaticArguments none{{}, Ref::borrow(s.structure.static_keys())};
  s.layouts.learn(args, none, s.structure, out.leaves.size());
}

void flatten(CompiledState& s, const Arguments& args, Flat& out) {
  if (s.structure.object) {
    if (!s.layouts.flatten(args, out)) flatten_new(s, args, out);
    return;
  }
  if (args.num_named() || args.num_positional != static_cast<Py_ssize_t>(s.entry->in_weak.size()))
    raise_other_structure(*s.entry);
  for (Py_ssize_t i = 0; i < args.num_positional; ++i) append_leaf(args.values[i], out);
}

// Cells are replaced by what they hold, which `flat` owns then.
void read_cells(const Entry& e, Flat& flat) {
  SmallVector<PyObject*, 8> cells;
  for (size_t i = 0; i < flat.leaves.size(); ++i) {
    if (flat.operands[i].kind != OperandKind::kInvalid || !is_cell(flat.leaves[i])) continue;
    cells.push_back(flat.leaves[i]);
    flat.owned.push_back(cell_value(as_cell(flat.leaves[i])));
    flat.operands[i] = classify(flat.owned.back().get());
  }
  check_cells(e, cells, [&](size_t i) { return cat("ref ", i, " of the arguments"); });
}

// Raises for an operand that is not of the type that was compiled for, and for an array committed
// elsewhere. `i` is its number among the inputs.
void check_operand(const Program& program, const Operand& x, TypeRef type, size_t i) {
  if (x.kind == OperandKind::kTracer || x.type != type)
    raise_error("ArgumentTypeError", "expected an array of type ", type,
                " for a compiled program; got ", x.type,
                x.kind == OperandKind::kTracer ? ", traced" : "");
  if (x.kind != OperandKind::kArray) return;
  const ArrayObject* array = as_array(x.object);
  ShardingRef at = program.places.input(i);
  if (array->committed && !are_equivalent(array->sharding, at, type))
    raise_error("DeviceMismatchError", "expected argument ", i, " (", type,
                ") where the program was compiled for it, ", describe(at),
                "; got an array committed to ", describe(array->sharding),
                "\n  Move it with weft.device_put.");
}

Ref call(CompiledState& s, const Arguments& args) {
  EntryRef entry = s.entry;  // code of the user's may run
  ProgramRef program = s.program;
  Flat flat;
  flatten(s, args, flat);
  read_cells(*entry, flat);
  std::vector<Ref> captures = capture_values(entry->captures, flat.leaves);
  SmallVector<Operand, 16> operands;
  for (const Ref& c : captures) operands.push_back(classify(c.get()));
  for (size_t i = 0; i < flat.leaves.size(); ++i) {
    const Operand& x = flat.operands[i];
    operands.push_back(x.type ? x : classify_operand(flat.leaves[i], "compiled program"));
  }
  const Graph& g = *entry->graph;
  for (size_t i = 0; i < operands.size(); ++i)
    check_operand(*program, operands[i], g.type(g.input(static_cast<uint32_t>(i))), i);
  Placement where = placement(operands, [](size_t i) { return cat("argument ", i); });
  bool committed = where.committed || !is_trivial(program->places.at);
  Outputs outputs;
  run_on(*program, operands, program->places, committed, outputs);
  return results_of(*entry, flat.leaves, outputs);
}

PyObject* call_compiled(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guard([&] {
    CompiledState& s = *reinterpret_cast<CompiledObject*>(self)->state;
    return call(s, {args, PyVectorcall_NARGS(nargsf), kwnames}).release();
  });
}

}  // namespace

Ref make_compiled_function(EntryRef entry, ProgramRef program) {
  auto state = std::make_unique<CompiledState>();
  if (entry->in_tree) {
    Ref none = Ref::checked(PyTuple_New(0));
    state->structure.object = Ref::checked(PyTuple_Pack(2, entry->in_tree.get(), none.get()));
  }
  state->entry = std::move(entry);
  state->program = std::move(program);
  Ref self = Ref::checked(compiled_type->tp_alloc(compiled_type, 0));
  auto* object = reinterpret_cast<CompiledObject*>(self.get());
  object->vectorcall = call_compiled;
  object->state = state.release();
  return self;
}

void init_compiled_function() {
  compiled_type = ObjectType<CompiledObject>::make(
      "weft.CompiledFunction", Py_TPFLAGS_DISALLOW_INSTANTIATION,
      {{Py_tp_doc, const_cast<char*>("A compiled program that is called as its function is.")}});
}

}  // namespace weft::py
