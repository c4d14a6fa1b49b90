// Whether functions are traced, and stretches in which ops run at once.

#include "tracing/contexts.h"

#include "tracing/trace.h"

namespace nb = nanobind;

namespace weft::py {

void bind_contexts(nb::module_& m) {
  // begin_eager() -> depth; end_eager(depth): in between, ops without tracers run.
  m.def("begin_eager", [] {
    auto context = std::make_shared<TraceContext>();
    context->kind = ContextKind::kEager;
    context_stack().push_back(std::move(context));
    return context_stack().size();
  });
  m.def("end_eager", [](size_t depth) {
    std::vector<ContextRef>& stack = context_stack();
    bool is_ours = depth > 0 && stack.size() == depth;
    if (is_ours && stack.back()->kind == ContextKind::kEager) stack.pop_back();
  });
  m.def("in_trace", [] { return static_cast<bool>(innermost_staged()); });
  // Whether any function is being traced, or recorded for an un-jitted transform.
  m.def("in_context", [] { return !context_stack().empty(); });
  // A tuple that tells the traces that are going on from others that do.
  m.def("trace_state", [] {
    nb::list out;
    for (const ContextRef& c : context_stack()) out.append(reinterpret_cast<uintptr_t>(c.get()));
    return nb::tuple(out);
  });
}

}  // namespace weft::py
