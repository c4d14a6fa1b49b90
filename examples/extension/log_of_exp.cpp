// A pass in a shared library: log(exp(x)) -> x, which is not exact, so weft has no such rewrite.
//
//   c++ -std=c++20 -shared -fPIC log_of_exp.cpp -I$(python -m weft --include-dir) -o log_of_exp.so
//   weft-opt --load=./log_of_exp.so --passes=log_of_exp,dce program.ir
#include "weft/extension.h"
#include "weft/weft.h"

namespace {

weft::GraphRef log_of_exp(const weft::GraphRef& graph, const weft::PassOptions&,
                          weft::PassStats& stats) {
  weft::GraphBuilder b;
  uint32_t replaced = 0;
  auto make = [&](const weft::Op& op, const weft::Values& operands) -> weft::Values {
    const weft::Op* before = op.info->name == "log" ? b.producer(operands[0]) : nullptr;
    if (!before || before->info->name != "exp") return weft::copy_op(*graph, b, op, operands);
    ++replaced;
    return {b.operands(*before)[0]};
  };
  weft::GraphRef result = weft::rebuild(*graph, b, make);
  stats.count("log_of_exp", replaced);
  return replaced ? result : graph;
}

}  // namespace

WEFT_EXTENSION() { weft::add_pass({"log_of_exp", "log(exp(x)) -> x.", log_of_exp}); }
