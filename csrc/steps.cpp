// Cutting a graph, running its blocks.

#include "steps.h"

#include <algorithm>

#include "unlocked.h"

namespace weft::py {

std::shared_ptr<const BlockPlan> plan_of(const GraphRef& graph, Cut cut,
                                         const std::vector<bool>& donated) {
  if (cut == Cut::kWhole) return nullptr;
  std::shared_ptr<const BlockPlan> plan = unlocked(*graph, [&] {
    return find_blocks(graph, cut == Cut::kAuto ? BlockOptions::for_speed() : BlockOptions(),
                       donated);
  });
  if (!plan || (cut == Cut::kAuto && !plan->is_worth_it())) return nullptr;
  return plan;
}

std::vector<int64_t> held_bytes(const Program& p) {
  const Steps& s = *p.steps;
  std::vector<int64_t> bytes(s.plan->num_slots), held;
  std::vector<bool> is_outer(s.plan->num_slots);
  std::fill_n(is_outer.begin(), p.kept.size(), true);
  for (uint32_t slot : s.plan->outputs) is_outer[slot] = true;
  int64_t now = 0;
  for (const BlockStep& step : s.plan->steps) {
    const Executable& block = *s.blocks[step.block];
    for (size_t i = 0; i < step.outputs.size(); ++i)
      if (uint32_t slot = step.outputs[i]; !is_outer[slot])
        now += bytes[slot] = block.outputs[i]->num_bytes();
    int64_t given = 0;
    for (size_t k = 0; k < block.aliases.size(); ++k)
      if (block.aliases[k] >= 0) given += bytes[step.inputs[k]];
    held.push_back(now - given);
    for (uint32_t slot : step.done) now -= bytes[slot];
  }
  return held;
}

Ref run_steps(const Steps& s, Ref buffers, FunctionRef<Ref(Executable&, PyObject*)> execute) {
  std::vector<Ref> slots(s.plan->num_slots);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(buffers.get()); ++i)
    slots[static_cast<size_t>(i)] = Ref::borrow(PyList_GET_ITEM(buffers.get(), i));
  buffers = Ref();
  auto read = [&](const std::vector<uint32_t>& which) {
    Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(which.size())));
    for (size_t i = 0; i < which.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(slots[which[i]].get()));
    return list;
  };
  for (const BlockStep& step : s.plan->steps) {
    Ref results = execute(*s.blocks[step.block], read(step.inputs).get());
    for (size_t i = 0; i < step.outputs.size(); ++i)
      slots[step.outputs[i]] =
          Ref::borrow(PyList_GET_ITEM(results.get(), static_cast<Py_ssize_t>(i)));
    for (uint32_t slot : step.done) slots[slot] = Ref();
  }
  return read(s.plan->outputs);
}

}  // namespace weft::py
