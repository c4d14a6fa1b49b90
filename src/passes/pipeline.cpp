// The list of passes, the default pipeline, and the function that runs them.
#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "ops/def/walk.h"
#include "passes/pass_list.h"
#include "weft/dims.h"
#include "weft/error.h"
#include "weft/registry.h"

namespace weft {
namespace {

const Pass& find_pass(std::string_view name) {
  Text known;
  for (const Pass& pass : all_passes()) {
    if (pass.name == name) return pass;
    known << (known.size() ? ", " : "") << pass.name;
  }
  fail(ErrorKind::kValue, "[optimize] expected one of ", known.view(), "; got ", name);
}

void check_phase(Phase phase, std::string_view what, std::string_view name, bool keep_derivatives) {
  if (keep_derivatives && phase == Phase::kFinal) {
    fail(ErrorKind::kValue, "[optimize] expected only what keeps derivatives; got ", what, " ",
         name, ", which may run when all derivatives have been taken");
  }
}

// A misspelt name would quietly run every rewrite, or none.
void check_rewrite_names(std::span<const std::string> names, bool keep_derivatives) {
  if (names.empty()) return;
  std::vector<RewriteInfo> known = all_rewrites();
  for (const std::string& name : names) {
    auto is_it = [&](const RewriteInfo& rewrite) { return rewrite.name == name; };
    auto found = std::find_if(known.begin(), known.end(), is_it);
    if (found == known.end()) {
      fail(ErrorKind::kValue, "[optimize] expected the name of a rewrite; got ", name);
    }
    check_phase(found->phase, "the rewrite", name, keep_derivatives);
  }
}

uint32_t count_ops(const Graph& graph, std::unordered_set<const Graph*>& seen) {
  uint32_t count = static_cast<uint32_t>(graph.ops().size());
  if (graph.depth() == 1) return count;
  for (const Op& op : graph.ops()) {
    if (!op.attrs || !takes_graphs(*op.info)) continue;
    for_each_graph(op.attrs, [&](const GraphRef& inner) {
      if (seen.insert(inner.get()).second) count += count_ops(*inner, seen);
    });
  }
  return count;
}

}  // namespace

uint32_t count_ops(const Graph& graph) {
  std::unordered_set<const Graph*> seen;
  return count_ops(graph, seen);
}

namespace {

void verify_after(const Pass& pass, const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) { fail(error.kind(), "after pass ", pass.name, ": ", error.what()); }
}

}  // namespace

namespace {

std::vector<Pass>& known_passes() {
  static std::vector<Pass> passes = {
      strip_rules_pass(),   lower_keys_pass(), expand_pass(),  inline_pass(),       fold_pass(),
      scan_products_pass(), simplify_pass(),   cse_pass(),     canonicalize_pass(), dce_pass(),
      roll_pass(),          pack_pass(),       kernels_pass(), fuse_pass()};
  return passes;
}

}  // namespace

const std::vector<Pass>& all_passes() { return known_passes(); }

void add_pass(Pass pass) {
  for (const Pass& known : all_passes())
    if (known.name == pass.name)
      fail(ErrorKind::kValue, "expected a new name of a pass; got ", pass.name, ", which is taken");
  known_passes().push_back(std::move(pass));
}

void PassStats::count(const std::string& rewrite, uint32_t hits) {
  if (hits == 0) return;
  auto at = std::lower_bound(rewrites.begin(), rewrites.end(), std::pair(rewrite, uint32_t{0}));
  if (at == rewrites.end() || at->first != rewrite) at = rewrites.insert(at, {rewrite, 0});
  at->second += hits;
}

const std::vector<std::string>& default_pipeline(bool keep_derivatives) {
  // The first dce spares canonicalize the dead ops that derivatives leave; the second one takes
  // what rewrites made dead.
  static const std::vector<std::string> names = {"strip_rules", "lower_keys",   "dce",
                                                 "expand",      "canonicalize", "dce"};
  static const std::vector<std::string> keeping = [] {
    std::vector<std::string> kept;
    for (const std::string& name : names)
      if (find_pass(name).phase == Phase::kAny) kept.push_back(name);
    return kept;
  }();
  return keep_derivatives ? keeping : names;
}

namespace {

// Passes compute with sizes as numbers, and so does all that comes after them.
void check_sizes(const Graph& graph) {
  for (TypeRef type : graph.input_types())
    if (has_symbols(type->shape()))
      fail(ErrorKind::kNotImplemented,
           "expected sizes that are numbers before a program is optimized or lowered; got ", type,
           "\n  weft.export.export keeps symbolic dimensions until the call.");
}

}  // namespace

GraphRef run_passes(const GraphRef& graph, std::span<const std::string> passes,
                    const PassOptions& options, std::vector<PassStats>* stats) {
  check_rewrite_names(options.only_rewrites, options.keep_derivatives);
  check_rewrite_names(options.disabled_rewrites, false);
  check_sizes(*graph);
  std::vector<const Pass*> found;
  for (const std::string& name : passes) {
    found.push_back(&find_pass(name));
    check_phase(found.back()->phase, "the pass", name, options.keep_derivatives);
  }
  GraphRef current = graph;
  for (const Pass* pass : found) {
    PassStats pass_stats;
    pass_stats.pass = pass->name;
    auto start = std::chrono::steady_clock::now();
    GraphRef next = pass->run(current, options, pass_stats);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    pass_stats.seconds = seconds.count();
    if (stats) {
      pass_stats.ops_before = count_ops(*current);
      pass_stats.ops_after = count_ops(*next);
      stats->push_back(std::move(pass_stats));
    }
    if (options.dump) options.dump(pass->name, *current, *next);
    if (options.verify) verify_after(*pass, *next);
    current = std::move(next);
  }
  return current;
}

GraphRef optimize(const GraphRef& graph) { return run_passes(graph, default_pipeline()); }

std::vector<RewriteInfo> all_rewrites() {
  std::vector<RewriteInfo> rewrites;
  for (const OpDef* op : registry().all()) {
    for (const Rewrite& r : op->simplify) rewrites.push_back({op->name, r.name, r.rule, r.phase});
  }
  for (const Pass& pass : all_passes()) {
    for (const PassRewrite& r : pass.rewrites) rewrites.push_back({"", r.name, r.rule, pass.phase});
  }
  return rewrites;
}

}  // namespace weft
