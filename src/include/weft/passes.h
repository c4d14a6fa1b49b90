// SPDX-License-Identifier: Apache-2.0
// Passes: named functions from graph to graph, and the pipeline that runs before emission.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"
#include "weft/op_def.h"

namespace weft {

struct PassStats {
  std::string pass;
  // Of the program, the graphs in it included, each distinct one once.
  uint32_t ops_before = 0;
  uint32_t ops_after = 0;
  double seconds = 0;
  // Hits per rewrite name, by name; those in graphs of ops are counted like any others.
  std::vector<std::pair<std::string, uint32_t>> rewrites;

  // Adds hits of a rewrite.
  WEFT_API void count(const std::string& rewrite, uint32_t hits);
};

// One application of a rewrite. Of a pass that makes all of its changes at once, they are one.
struct AppliedRewrite {
  std::string name;
  Loc loc = kNoLoc;  // of the op that it replaced, where it is one
};
// Which rewrites were applied, in order. There are `most` of them at most: none begins after that,
// while those that have begun end, so what follows from the last one may stand behind it.
struct RewriteLog {
  size_t most = SIZE_MAX;
  std::vector<AppliedRewrite> applied;
};

struct PassOptions {
  std::vector<std::string> disabled_rewrites;
  std::vector<std::string> only_rewrites;  // non-empty: no other rewrite runs
  bool verify = false;                     // verify() after every pass
  // Derivatives are still to be taken of the result: what could change them does not run.
  bool keep_derivatives = false;
  RewriteLog* log = nullptr;  // what is applied is added to it
  // Called with pass name and the graph before and after it.
  std::function<void(std::string_view, const Graph& before, const Graph& after)> dump;
};

// What a pass itself does to ops, besides the rewrites that ops bring along.
struct PassRewrite {
  std::string name;  // as in PassStats and PassOptions
  std::string rule;
};

struct Pass {
  std::string name;
  std::string doc;
  std::function<GraphRef(const GraphRef&, const PassOptions&, PassStats&)> run;
  std::vector<PassRewrite> rewrites = {};  // a pass made of others repeats none of theirs
  Phase phase = Phase::kAny;               // of its rewrites too
};

// All passes, in the order in which a pipeline would run them; those of users follow.
WEFT_API const std::vector<Pass>& all_passes();
// A pass of the user's, which runs where it is named. Not while other threads use passes. Throws
// kValue if the name is taken.
WEFT_API void add_pass(Pass pass);
// Names of the passes that optimize() runs by default; those of them that keep derivatives.
WEFT_API const std::vector<std::string>& default_pipeline(bool keep_derivatives = false);
// Runs passes in the order given. Throws kValue for an unknown name (listing the known ones), and
// where something is asked for by name that does not keep derivatives, though the options do.
WEFT_API GraphRef run_passes(const GraphRef& graph, std::span<const std::string> passes,
                             const PassOptions& options = {},
                             std::vector<PassStats>* stats = nullptr);
// The default pipeline.
WEFT_API GraphRef optimize(const GraphRef& graph);

// Whether it calls functions that have derivatives of their own, which the pass strip_rules drops.
WEFT_API bool has_rules(const GraphRef& graph);

struct RewriteInfo {
  std::string op;    // empty: of a pass
  std::string name;  // as in PassStats and PassOptions
  std::string rule;
  Phase phase = Phase::kAny;
};
// Every rewrite there is: those of the registry's ops, then those of the passes.
WEFT_API std::vector<RewriteInfo> all_rewrites();

// Flops, transcendentals and bytes of the whole graph, regions included.
WEFT_API Cost graph_cost(const Graph& graph);

struct Tally {
  double ops = 0;
  Cost cost;
};
// What one run of a graph takes. Literals and inputs are no ops; an op that runs graphs (a call, a
// loop, a branch) counts as what they count: a scan as its body as often as it is long, a while as
// its condition and its body once, a cond as the branch that has most of what is counted. A fusion
// is one op. Counts are doubles, since calls of calls multiply beyond any integer.
struct Analysis {
  Tally total;
  double critical_path = 0;  // ops on the longest chain in which each needs a result of the last
  // An op's level is one more than the highest level of the ops whose results it takes. An op that
  // runs graphs spans as many levels as the deepest of them, and is as wide as the widest.
  double levels = 0;
  double width = 0;  // ops on the level that has most
  // The most bytes live at once when ops run in order. An input lives to its last use, a result
  // from the op that makes it (which still has its operands) to its last use, an output to the end.
  // Calls are seen as if their ops stood in their place. Loops and branches take, besides operands
  // and results, what values inside one of their graphs, neither inputs nor outputs, take at most.
  double peak_bytes = 0;
  double input_bytes = 0, output_bytes = 0;
  // Most ops first. Lines are "file.py:12", or "<unknown>".
  std::vector<std::pair<std::string, Tally>> by_op, by_line;
};
WEFT_API Analysis analyze(const Graph& graph);
WEFT_API std::string to_text(const Analysis& analysis);

// What analyze() sums up, of one op of a graph.
struct OpFigures {
  Cost cost;           // of one run of it, with all that it runs
  double seconds = 0;  // of a core of a CPU for that, by estimate
  double live = 0;     // bytes that values take at once while it runs
  bool critical = false;
};
struct GraphFigures {
  const Graph* graph = nullptr;
  std::vector<OpFigures> ops;
  // As Analysis::peak_bytes. Of a graph that an op holds, values that are neither its inputs nor
  // its outputs count.
  double peak_bytes = 0;
  uint32_t peak = 0;           // the op while which that is so
  std::vector<Value> at_peak;  // the values that are there then; an op's graphs may have more
  // Of the chain of ops, each of which needs a result of the last, that takes longest: its ops are
  // the critical ones.
  double chain_seconds = 0;
};
// Of a graph, and of those that its ops hold, each distinct one once; the graph itself is first.
WEFT_API std::vector<GraphFigures> figures_of_ops(const Graph& graph);

// One `fusion` op, as made by the pass `fuse`.
struct FusionReport {
  std::string name;
  uint32_t num_ops = 0;
  Cost cost;               // graph_cost of the body: what its ops cost one by one
  double fused_bytes = 0;  // operands read and results written once
  Loc loc = kNoLoc;        // of the last op fused
};
// The fusions of a graph in program order, without those of its regions.
WEFT_API std::vector<FusionReport> fusion_report(const Graph& graph);

}  // namespace weft
