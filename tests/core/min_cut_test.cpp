// Minimum cuts, against all ways to cut.
#include "passes/min_cut.h"

#include <algorithm>
#include <random>
#include <vector>

#include "check.h"

using namespace weft;

namespace {

struct Edge {
  uint32_t from, to;
  double capacity;
};

MinCut made_of(uint32_t num_nodes, const std::vector<Edge>& edges) {
  MinCut cut(num_nodes);
  for (const Edge& e : edges) cut.add(e.from, e.to, e.capacity);
  return cut;
}

// What crosses from one side to the other.
double cost(const std::vector<Edge>& edges, const std::vector<bool>& side) {
  double sum = 0;
  for (const Edge& e : edges)
    if (side[e.from] && !side[e.to]) sum += e.capacity;
  return sum;
}

}  // namespace

TEST(min_cut_of_small_graphs) {
  // Edges from and to each of 7 nodes, also back, twice, and to themselves; node 0 is the source
  // and node 1 the sink.
  constexpr uint32_t kNodes = 7;
  std::mt19937 random(0);
  for (int round = 0; round < 200; ++round) {
    std::vector<Edge> edges;
    for (int i = 0; i < 4 + round % 20; ++i)
      edges.push_back({static_cast<uint32_t>(random() % kNodes),
                       static_cast<uint32_t>(random() % kNodes),
                       static_cast<double>(random() % 5)});
    double least = 1e9;
    size_t fewest = 0;
    for (uint32_t set = 0; set < 1u << kNodes; ++set) {
      if ((set & 3) != 1) continue;
      std::vector<bool> side(kNodes);
      for (uint32_t i = 0; i < kNodes; ++i) side[i] = set >> i & 1;
      auto size = static_cast<size_t>(std::count(side.begin(), side.end(), true));
      double c = cost(edges, side);
      if (c < least || (c == least && size < fewest)) least = c, fewest = size;
    }
    std::vector<bool> side = made_of(kNodes, edges).source_side(0, 1);
    CHECK(side[0] && !side[1]);
    CHECK_EQ(cost(edges, side), least);
    CHECK_EQ(static_cast<size_t>(std::count(side.begin(), side.end(), true)), fewest);
  }
}

TEST(min_cut_does_not_cut_what_may_not_be_cut) {
  // 0 -> 2 -> 3 -> 1, and 2 must take 3 along: what is dearer is cut.
  std::vector<Edge> edges = {
      {0, 2, MinCut::kInfinite}, {2, 3, MinCut::kInfinite}, {2, 1, 3}, {3, 1, 7}};
  CHECK((made_of(4, edges).source_side(0, 1) == std::vector<bool>{true, false, true, true}));
  // Nothing leads to the sink: nothing is cut, and what the source does not reach stays there.
  edges = {{0, 2, 5}, {3, 1, 5}};
  CHECK((made_of(4, edges).source_side(0, 1) == std::vector<bool>{true, false, true, false}));
}

TEST(min_cut_takes_back_what_flows_on_short_paths) {
  // 0 -> 2 -> 3 -> 1 is the shortest path, but 2 has another way to the sink, 4, and 3 another one
  // from the source, 5 -> 6: two units flow, and all that leaves the source is full.
  std::vector<Edge> edges = {{0, 2, 1}, {2, 3, 1}, {3, 1, 1}, {2, 4, 1}, {4, 7, 1},
                             {7, 1, 1}, {0, 5, 1}, {5, 6, 1}, {6, 3, 1}};
  std::vector<bool> wanted(8);
  wanted[0] = true;
  CHECK(made_of(8, edges).source_side(0, 1) == wanted);
}

TEST(min_cut_of_a_long_chain) {
  // No recursion along paths; one edge is the cheapest.
  constexpr uint32_t kNodes = 100'000, kCheap = 60'000;
  MinCut cut(kNodes);
  for (uint32_t i = 0; i + 1 < kNodes; ++i) cut.add(i, i + 1, i == kCheap ? 1 : 2);
  std::vector<bool> side = cut.source_side(0, kNodes - 1);
  for (uint32_t i = 0; i < kNodes; ++i) CHECK_EQ(bool{side[i]}, i <= kCheap);
}
