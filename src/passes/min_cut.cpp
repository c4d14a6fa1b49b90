// Minimum cuts, by maximum flows.
#include "passes/min_cut.h"

#include <algorithm>

namespace weft {

void MinCut::add(uint32_t from, uint32_t to, double capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<uint32_t>(edges_.size() - 1);
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<uint32_t>(edges_.size() - 1);
}

std::vector<bool> MinCut::source_side(uint32_t source, uint32_t sink) {
  constexpr double kNothing = 1e-6;
  std::vector<uint32_t> level, next, path, queue;
  for (;;) {
    level.assign(first_.size(), kNone);
    level[source] = 0;
    queue.assign(1, source);
    for (size_t i = 0; i < queue.size(); ++i)
      for (uint32_t e = first_[queue[i]]; e != kNone; e = edges_[e].next)
        if (uint32_t to = edges_[e].to; edges_[e].left > kNothing && level[to] == kNone) {
          level[to] = level[queue[i]] + 1;
          queue.push_back(to);
        }
    if (level[sink] == kNone) break;
    // Paths along the levels, until there is none; `next`: per node the first edge not yet tried.
    next = first_;
    path.clear();
    for (uint32_t at = source;;) {
      if (at == sink) {
        double flow = kInfinite;
        for (uint32_t e : path) flow = std::min(flow, edges_[e].left);
        for (uint32_t e : path) {
          edges_[e].left -= flow;
          edges_[e ^ 1].left += flow;
        }
        path.clear();
        at = source;
        continue;
      }
      uint32_t& e = next[at];
      while (e != kNone && (edges_[e].left <= kNothing || level[edges_[e].to] != level[at] + 1))
        e = edges_[e].next;
      if (e != kNone) {
        path.push_back(e);
        at = edges_[e].to;
      } else if (at == source) {
        break;
      } else {
        level[at] = kNone;  // leads nowhere
        at = edges_[path.back() ^ 1].to;
        path.pop_back();
      }
    }
  }
  std::vector<bool> side(first_.size());
  for (size_t i = 0; i < side.size(); ++i) side[i] = level[i] != kNone;
  return side;
}

}  // namespace weft
