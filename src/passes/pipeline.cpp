// The list of passes, the default pipeline, and the function that runs them.
#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "ops/def/walk.h"
#include "passes/pass_list.h"
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

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {
      {"strip_rules", "Replaces calls that have derivatives of their own by the function's ops.",
       strip_rules_pass, Phase::kFinal},
      {"lower_keys", "Replaces arrays of random keys by arrays of their words.", lower_keys_pass,
       Phase::kFinal},
      {"expand", "Replaces ops that stand for functions by calls of them.", expand_pass,
       Phase::kFinal},
      {"inline", "Replaces calls of tiny functions, and only calls, by the function's ops.",
       inline_pass},
      {"fold", "Evaluates ops on scalar constants.", fold_pass},
      {"scan_products",
       "Makes products that no iteration of a loop waits for once for all of them.",
       scan_products_pass},
      {"simplify", "Applies the ops' algebraic rewrites, and scan_products.", simplify_pass},
      {"cse", "Merges equal ops.", cse_pass},
      {"canonicalize", "fold, simplify, cse and inline in one walk.", canonicalize_pass},
      {"dce", "Drops ops, call results and call inputs that nothing needs.", dce_pass},
      {"roll", "Makes loops of all that repeats.", roll_pass, Phase::kFinal},
      {"pack", "Makes arrays of small values to which loops do the same.", pack_pass,
       Phase::kFinal},
      {"kernels", "Makes kernels of whatever may be part of one.", kernels_pass, Phase::kFinal},
      {"fuse", "Groups element-wise ops into fusion ops.", fuse_pass},
  };
  return passes;
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

GraphRef run_passes(const GraphRef& graph, std::span<const std::string> passes,
                    const PassOptions& options, std::vector<PassStats>* stats) {
  check_rewrite_names(options.only_rewrites, options.keep_derivatives);
  check_rewrite_names(options.disabled_rewrites, false);
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
  rewrites.push_back({"", "fold", "f(literals) -> literal"});
  rewrites.push_back({"", scan_products().name, scan_products().rule});
  rewrites.push_back({"", "cse", "equal pure ops -> the first of them"});
  rewrites.push_back(
      {"", "forward_call_result",
       "a call's result that is its argument, a literal or an earlier result -> that"});
  rewrites.push_back(
      {"", "strip_rule", "a call that has derivatives of its own -> its ops", Phase::kFinal});
  rewrites.push_back(
      {"", "lower_key", "an op on random keys -> ops on their words", Phase::kFinal});
  rewrites.push_back(
      {"", "expand", "an op that stands for a function -> a call of it", Phase::kFinal});
  rewrites.push_back(
      {"", "prune_op", "unused results and operands of an op that holds graphs -> dropped"});
  rewrites.push_back({"", "inline_call", "a call of a tiny or only once called graph -> its ops"});
  rewrites.push_back({"", "fusion", "element-wise ops of one shape -> a fusion of them"});
  return rewrites;
}

}  // namespace weft
