// Captures come before the arguments; results are unflattened.

#include "jit_call.h"

#include "array.h"
#include "eager.h"
#include "location.h"
#include "recording.h"
#include "run.h"
#include "trace.h"

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
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; i < outputs.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), outputs.take(i).release());
  return Ref::checked(PyObject_CallMethodOneArg(e.out_tree.get(), name("unflatten"), list.get()));
}

// Within a trace: a `jit` op, or the callee's ops for an inline function.
Ref record_call(const JitState& s, const Entry& e, const ContextRef& c,
                std::span<const Operand> operands) {
  Values args;
  for (const Operand& x : operands) args.push_back(value_in(*c, x, x.type->dtype()));
  c->builder.set_loc(c->locations ? current_loc() : kNoLoc);
  static const OpDef& jit_op = registry().get("jit");
  Values results = s.is_inline ? c->builder.inline_graph(*e.graph, args)
                               : c->builder.add(jit_op, args, call_attrs(e));
  Outputs outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back(Ref::steal(make_tracer(c, results[i], e.weak[i])));
  return assemble(e, outputs);
}

Ref execute(const JitState& s, const Entry& e, std::span<const Operand> operands) {
  Placement where = placement(operands, [&](size_t i) {
    size_t captures = e.captures.size();
    return i < captures ? cat("an array that '", s.name, "' closes over")
                        : describe_leaf(s, e.in_tree.get(), i - captures);
  });
  ProgramRef program = program_for(e, where.device, s.keep_unused);
  std::vector<Ref> held;
  SmallVector<PyObject*, 16> inputs;
  for (const Operand& x : operands) {
    if (x.kind == OperandKind::kArray && as_array(x.object)->device == where.device) {
      inputs.push_back(x.object);
    } else {
      held.push_back(on_device(to_device(x, where.device), where.device));
      inputs.push_back(held.back().get());
    }
  }
  Outputs outputs;
  run(*program, {inputs.data(), inputs.size()}, where.committed, outputs);
  return assemble(e, outputs);
}

}  // namespace

ProgramRef program_for(const Entry& e, int device, bool keep_unused) {
  do {
    for (const auto& [d, program] : e.programs)
      if (d == device) return program;
  } while (e.compiling.wait([&](int d) { return d == device; }));
  InFlightTable<int>::Begun begun(e.compiling, device, false);
  CompileOptions options;
  options.device = device;
  options.name = e.name;
  options.donated = e.donated;
  options.keep_unused = keep_unused;
  ProgramRef program = compile(e.graph, options, e.weak);
  e.programs.emplace_back(device, program);
  return program;
}

Ref call_entry(const JitState& s, const Entry& entry, std::span<const Operand> arguments) {
  std::span<const Operand> operands = arguments;
  std::vector<Operand> with_captures;
  if (!entry.captures.empty()) {
    for (const Ref& c : entry.captures) with_captures.push_back(classify(c.get()));
    with_captures.insert(with_captures.end(), arguments.begin(), arguments.end());
    operands = with_captures;
  }
  ContextRef c = context_for(operands, stays_innermost(*entry.graph));
  return c ? record_call(s, entry, c, operands) : execute(s, entry, operands);
}

}  // namespace weft::py
