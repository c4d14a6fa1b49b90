// Minimum cuts of directed graphs with capacities.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

class MinCut {
 public:
  static constexpr double kInfinite = 1e300;

  explicit MinCut(uint32_t num_nodes) : first_(num_nodes, kNone) {}
  void add(uint32_t from, uint32_t to, double capacity);
  // Separates the two nodes; of the cheapest cuts, the one with the fewest nodes on the side of the
  // source. Per node whether it is there. Dinic, "Algorithm for solution of a problem of maximum
  // flow in a network with power estimation", 1970.
  std::vector<bool> source_side(uint32_t source, uint32_t sink);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Edge {
    uint32_t to, next;
    double left;
  };
  std::vector<Edge> edges_;  // each followed by the one back
  std::vector<uint32_t> first_;
};

}  // namespace weft
