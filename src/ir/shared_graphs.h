// Which region graphs a printed program defines once and refers to by name: those with two or more
// uses. The text so stays linear in the program, however often a function is called.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "weft/graph.h"

namespace weft {

class SharedGraphs {
 public:
  struct Definition {
    std::string name;
    const Graph* graph;
  };

  explicit SharedGraphs(const Graph& program);
  // Defines nothing: every region is printed in place.
  SharedGraphs() = default;

  // In order of first use, a definition before those that it uses itself.
  const std::vector<Definition>& definitions() const { return definitions_; }
  // The name of the definition of a region graph; null when it is printed in place.
  const std::string* name(const Graph* graph) const;

 private:
  struct Entry {
    const Graph* graph;
    std::string label;  // what the user calls it; equal graphs are one entry if they share that
    uint32_t uses = 0;
    std::vector<size_t> regions;
  };

  void visit(const Graph& graph, size_t entry);
  size_t entry_of(const GraphRef& graph, const std::string& label);
  void define(size_t entry);

  std::vector<Entry> entries_;  // entries_[0] is the program
  std::unordered_map<const Graph*, size_t> by_pointer_;
  std::unordered_multimap<uint64_t, size_t> by_structure_;
  std::vector<bool> defined_;
  std::vector<std::string> names_;  // per entry; empty when not defined
  std::vector<Definition> definitions_;
};

}  // namespace weft
