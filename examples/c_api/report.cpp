// Reads a program, `report FILE`, and prints what one run of it takes; a mistake in it with its
// place.
//
//   c++ -std=c++17 report.cpp -I$(python -m weft --include-dir) -L$(python -m weft --lib-dir) -lweft
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "weft/c_api.h"

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  std::string program{std::istreambuf_iterator<char>(file), {}};
  weft_graph* graph = nullptr;
  weft_string* text = nullptr;
  weft_error* error = weft_graph_parse({program.data(), program.size()}, &graph);
  if (!error) error = weft_report(graph, &text);
  std::unique_ptr<weft_error, decltype(&weft_error_free)> failed(error, weft_error_free);
  std::unique_ptr<weft_graph, decltype(&weft_graph_free)> read(graph, weft_graph_free);
  std::unique_ptr<weft_string, decltype(&weft_string_free)> report(text, weft_string_free);
  if (failed) {
    std::cerr << (argc > 1 ? argv[1] : "") << ": " << weft_error_message(error) << '\n';
    return 1;
  }
  weft_text t = weft_string_text(text);
  std::cout << std::string_view(t.data, t.size);
}
