// bisect: runs less and less of a pipeline, first by passes, then by applications of rewrites.
#include "passes/pass_list.h"
#include "weft/error.h"
#include "weft/faults.h"

namespace weft {
namespace {

// The least number in [low, high] that changes the verdict, given that `high` does.
template <typename Changes>
size_t first_change(size_t low, size_t high, Changes&& changes) {
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (changes(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

struct Limited {
  GraphRef graph;
  std::vector<AppliedRewrite> applied;
};

Limited run_limited(const GraphRef& graph, const std::string& pass, PassOptions options,
                    size_t most) {
  RewriteLog log{.most = most};
  options.log = &log;
  GraphRef result = run_passes(graph, {&pass, 1}, options);
  return {std::move(result), std::move(log.applied)};
}

}  // namespace

Bisection bisect(const GraphRef& graph, std::span<const std::string> passes,
                 const PassOptions& options, const ProgramTest& test) {
  Bisection found;
  auto says = [&](const Graph& g) {
    ++found.num_tests;
    return test(g);
  };
  std::vector<GraphRef> after = {graph};  // after so many passes
  for (const std::string& pass : passes)
    after.push_back(run_passes(after.back(), {&pass, 1}, options));
  bool at_first = says(*graph);
  if (after.back() == graph || says(*after.back()) == at_first) {
    fail(ErrorKind::kValue, "[bisect] expected passes that change what the test says; it says ",
         at_first ? "yes" : "no", " before and after them");
  }
  auto changed = [&](const GraphRef& g) { return says(*g) != at_first; };
  size_t pass = first_change(1, passes.size(), [&](size_t n) { return changed(after[n]); }) - 1;
  found.pass = passes[pass];
  auto limited = [&](size_t most) { return run_limited(after[pass], found.pass, options, most); };
  found.num_applications = limited(SIZE_MAX).applied.size();
  found.before = after[pass];
  Limited none = limited(0);
  if (found.num_applications == 0 || changed(none.graph)) {
    found.after = std::move(none.graph);
    return found;
  }
  found.application =
      first_change(1, found.num_applications, [&](size_t n) { return changed(limited(n).graph); });
  Limited without = limited(found.application - 1), with = limited(found.application);
  found.before = std::move(without.graph);
  found.after = std::move(with.graph);
  found.rewrites.assign(with.applied.begin() + static_cast<ptrdiff_t>(without.applied.size()),
                        with.applied.end());
  return found;
}

}  // namespace weft
