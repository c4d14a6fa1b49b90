// Splitting graphs, matching donated inputs with outputs.

#include "execution/split.h"

#include <algorithm>

#include "references/hooks.h"

namespace weft::py {

Split split(const GraphRef& graph, bool keep_unused, const std::vector<bool>& donated,
            FunctionRef<bool(size_t, size_t)> stays) {
  Split s;
  std::vector<bool> used(graph->num_inputs(), keep_unused);
  std::vector<Value> outputs;
  for (Value v : graph->outputs()) {
    bool input = !v.is_literal() && v.id < graph->num_inputs();
    // A donated input is gone after the call, so it cannot be its own result.
    bool through =
        input && !(v.id < donated.size() && donated[v.id]) && stays(s.from_input.size(), v.id);
    s.from_input.push_back(through ? static_cast<int>(v.id) : -1);
    if (!through) outputs.push_back(v);
    if (input && !through) used[v.id] = true;
  }
  for (const Op& op : graph->ops())
    for (Value v : graph->operands(op))
      if (!v.is_literal() && v.id < graph->num_inputs()) used[v.id] = true;
  for (uint32_t i = 0; i < graph->num_inputs(); ++i)
    if (used[i]) s.kept.push_back(i);
  if (outputs.empty() && graph->effects() == kPure) {
    s.kept.clear();
    return s;
  }
  if (outputs.size() == graph->outputs().size() && s.kept.size() == graph->num_inputs() &&
      graph->num_consts() == 0) {
    s.graph = graph;
    return s;
  }
  GraphBuilder b;
  std::vector<Value> args(graph->num_inputs());
  for (uint32_t i : s.kept) args[i] = b.input(graph->type(graph->input(i)));
  Values all = b.inline_graph(*graph, args);
  outputs.clear();
  for (size_t i = 0; i < all.size(); ++i)
    if (s.from_input[i] < 0) outputs.push_back(all[i]);
  s.graph = b.finish(outputs);
  return s;
}

std::vector<int> match_donations(const Split& s, const std::vector<bool>& donated,
                                 std::vector<uint32_t>& consumed) {
  std::vector<int> aliases;
  if (!s.graph || std::find(donated.begin(), donated.end(), true) == donated.end()) return aliases;
  aliases.assign(s.graph->num_inputs(), -1);
  std::vector<bool> taken(s.graph->outputs().size(), false);
  std::string unusable;
  for (size_t i = 0; i < s.kept.size(); ++i) {
    if (s.kept[i] >= donated.size() || !donated[s.kept[i]]) continue;
    TypeRef type = s.graph->type(s.graph->input(static_cast<uint32_t>(i)));
    for (size_t r = 0; r < taken.size() && aliases[i] < 0; ++r)
      if (!taken[r] && s.graph->type(s.graph->outputs()[r]) == type)
        aliases[i] = static_cast<int>(r);
    if (aliases[i] >= 0) {
      taken[static_cast<size_t>(aliases[i])] = true;
      consumed.push_back(s.kept[i]);
    } else {
      unusable += cat(unusable.empty() ? "" : ", ", type);
    }
  }
  if (!unusable.empty()) {
    notice("warn", {to_text(cat("donated buffers that no output can reuse: ", unusable))});
  }
  return aliases;
}

}  // namespace weft::py
