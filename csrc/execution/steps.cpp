// Cutting a graph, running its blocks.

#include "execution/steps.h"

#include <algorithm>

#include "references/unlocked.h"

namespace weft::py {

std::shared_ptr<const BlockPlan> plan_of(const GraphRef& graph, Cut cut,
                                         const std::vector<bool>& donated) {
  if (cut == Cut::kWhole || cut == Cut::kUnrolled) return nullptr;
  std::shared_ptr<const BlockPlan> plan = unlocked(*graph, [&] {
    return find_blocks(graph, cut == Cut::kAuto ? BlockOptions::for_speed() : BlockOptions(),
                       donated);
  });
  if (!plan || (cut == Cut::kAuto && !plan->is_worth_it())) return nullptr;
  return plan;
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
