// SPDX-License-Identifier: Apache-2.0
// OpDef: every rule of an op in one value. One file per op family under src/ops defines them;
// nothing else in the tree names an op, except through build.h.
//
// Rules are written with Val, a value together with the builder that ops on it are appended to:
//   .jvp_args = {[](JvpCtx& c) { return c.t() * cos(c.x(0)); }}
// Drivers (src/transforms) decide which builder that is, and what a rule never sees: a rule is not
// called with all tangents zero, or with nothing batched.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/builder.h"
#include "weft/checks.h"
#include "weft/graph.h"
#include "weft/graph_rules.h"
#include "weft/op.h"

namespace weft {

struct OpDef;

struct Val {
  Builder* builder = nullptr;
  Value value;

  explicit operator bool() const { return static_cast<bool>(value); }
  TypeRef type() const { return builder->type(value); }
  DType dtype() const { return type()->dtype(); }
  const Dims& shape() const { return type()->shape(); }
  int rank() const { return type()->rank(); }
};
using Vals = SmallVector<Val, 4>;

// What all rules know: the op as it stands in the source graph and its operands' values in the
// destination.
struct RuleCtx {
  Builder& b;
  const OpDef& op;
  const AttrsRef& attrs;
  std::span<const Value> operands;     // in the destination; an entry may be none where a rule may
                                       // not look (linear operands in a transpose)
  std::span<const TypeRef> in_types;   // types of the operands in the source graph
  std::span<const TypeRef> out_types;  // types of the results in the source graph
  // For rules that transform a graph of the op; set by the transforms only.
  const Transforms* transforms = nullptr;
  // The platform that the op is written out for; empty but in `decompose`.
  std::string_view platform = {};

  size_t size() const { return operands.size(); }
  Val x(size_t i) const { return {&b, operands[i]}; }
  Val val(Value v) const { return {&b, v}; }
  const AttrRecord& attr() const { return *attrs; }
};

// jvp of one operand: the contribution of its tangent t() to the (single) result's tangent. The
// driver adds up the contributions of the operands that have a tangent.
struct JvpArgCtx : RuleCtx {
  size_t arg;   // which operand
  Val tangent;  // never none
  Val answer;   // the result, y()

  Val t() const { return tangent; }
  Val y() const { return answer; }
};
using JvpArgRule = std::function<Val(const JvpArgCtx&)>;

// jvp of the whole op. Returns one tangent per result, none for a zero one.
struct JvpCtx : RuleCtx {
  std::span<const Value> tangents;  // per operand; none is a zero tangent
  std::span<const Value> results;   // y(i)

  bool has_t(size_t i) const { return static_cast<bool>(tangents[i]); }
  Val t(size_t i) const;  // zeros are made on demand
  Val y(size_t i = 0) const { return {&b, results[i]}; }
};
using JvpRule = std::function<Vals(JvpCtx&)>;

// Differentiation of an op together with its graphs (JvpKind::kGraph): the rule makes the results
// too. In a linearization ops that touch a tangent end up in the linear graph, and so whole calls
// do; the results have to come from ops that touch none.
struct GraphJvpCtx : RuleCtx {
  std::span<const Value>
      tangents;            // per operand; none is a zero tangent. At least one is not none.
  Values results;          // made by the rule, one per result
  Values result_tangents;  // made by the rule, one per result; none is zero

  Mask tangent_mask() const {
    Mask mask;
    for (Value t : tangents) mask.push_back(static_cast<bool>(t));
    return mask;
  }
};
using GraphJvpRule = std::function<void(GraphJvpCtx&)>;

// The cotangent of a block of an array: of its elements from `start` on.
struct Block {
  Dims start;
  Val ct;
};

// Transpose of an op that is linear in the operands for which linear(i) holds, given the others.
// Call add(i, ct) for each linear operand that receives a cotangent (of the operand's type).
struct TransposeCtx : RuleCtx {
  std::span<const bool> linear_mask;
  std::span<const Value> cotangents;  // per result; none is zero. At least one is not none.
  std::span<Value> accumulated;       // per operand: cotangent so far, none if there is none yet
  // Keeps a block of the cotangent of a linear operand until all that add to it are known.
  const std::function<void(size_t operand, Block)>& keep;

  bool linear(size_t i) const { return linear_mask[i]; }
  bool has_ct(size_t r) const { return static_cast<bool>(cotangents[r]); }
  Val ct(size_t r = 0) const;  // zeros are made on demand
  void add(size_t i, Val ct);  // accumulated[i] += ct
  // For ops that touch a block of an operand: adds to it, so that n slices of one array cost O(n).
  void add_block(size_t i, const Dims& start, Val ct) { keep(i, {start, ct}); }
  // The same where it is computed which block: rewrites the cotangent in place. update() gets the
  // cotangent so far; `fresh` gives the contribution when there is none yet.
  void accumulate(size_t i, const std::function<Val(Val)>& update,
                  const std::function<Val()>& fresh);
};
using TransposeRule = std::function<void(TransposeCtx&)>;

// Vectorisation. dims[i] is the axis of operand i that is mapped, kNotBatched if it is not. At
// least one is mapped, or the op or one of its graphs refers to the axis by its name.
struct BatchCtx : RuleCtx {
  int64_t size;  // of the mapped axis
  std::span<const int> dims;
  BatchDims out_dims;
  Vals out;
  std::string_view axis_name = {};  // as in VmapOptions
  std::string_view spmd_axis_name = {};

  bool batched(size_t i) const { return dims[i] != kNotBatched; }
  Mask mapped() const {
    Mask mask;
    for (int dim : dims) mask.push_back(dim != kNotBatched);
    return mask;
  }
  int dim(size_t i) const { return dims[i]; }
  // Operand i with its mapped axis at `dim`; broadcast along a new axis there if it is not mapped.
  Val at(size_t i, int dim) const;
  // As at(), but an unmapped operand is returned as it is.
  Val moved(size_t i, int dim) const;
  void result(Val v, int dim) {
    out.push_back(v);
    out_dims.push_back(dim);
  }
  // Appends the same op with other operands or attributes, all results mapped at `dim`.
  void apply(std::span<const Val> xs, const AttrsRef& attrs, int dim);
};
using BatchRule = std::function<void(BatchCtx&)>;

// Emission of StableHLO text for one op; the module writer (src/emit) implements it.
class WEFT_API EmitCtx {
 public:
  virtual ~EmitCtx() = default;
  std::span<const TypeRef> in_types;
  std::span<const TypeRef> out_types;
  const AttrRecord* attrs = nullptr;

  size_t size() const { return in_types.size(); }
  const AttrRecord& attr() const { return *attrs; }
  TypeRef in_type(size_t i) const { return in_types[i]; }
  TypeRef out_type(size_t i = 0) const { return out_types[i]; }

  // SSA names: "%3", "%arg0", "%3#1".
  virtual std::string in(size_t i) = 0;
  // Operand i if it is a literal, else null.
  virtual const Literal* literal(size_t i) const = 0;
  // Operand i as a value of shape `shape`: a scalar operand is broadcast (a literal becomes a
  // splat constant); one that has the shape already is in(i).
  virtual std::string in_as(size_t i, const Dims& shape) = 0;
  virtual std::string constant(const Literal& x, const Dims& shape) = 0;
  // Appends "%N = <text> <loc>" and returns "%N"; `text` holds everything right of the "=".
  virtual std::string line(std::string_view text, int num_results = 1) = 0;
  // Declares that SSA value `name` is result i of the op.
  virtual void set_out(size_t i, std::string name) = 0;
  // The private function that holds a graph, emitted once per structure.
  virtual std::string function(const GraphRef& graph, std::string_view name) = 0;
  // Emits the ops of a graph in place; returns the names of its outputs.
  virtual std::vector<std::string> inline_graph(const Graph& graph,
                                                std::span<const std::string> args) = 0;
  // A region "{ ^bb0(%a: tensor<f32>, ...): ... <terminator> }" holding a graph.
  virtual std::string region(const Graph& graph, std::string_view terminator) = 0;
  // The op as a call of a function on the host, on all operands; names the results. Where a program
  // runs in parts on several devices, a partitioned one is called for each part.
  virtual void host_callback(const ObjectRef& function, bool partitioned = false) = 0;
  // The op as one that tells a function, while the program is compiled, how its operand is split.
  virtual void inspect_sharding(const ObjectRef& function) = 0;
  // Declares that the module calls a function that the runtime knows by this name.
  virtual void note_target(std::string_view name) = 0;
  // A region without arguments of its own: `args` are values that are in scope where it stands.
  // If a token is given, ordered effects in the region start from it, and the region returns the
  // last token after its outputs.
  virtual std::string region_on(const Graph& graph, std::span<const std::string> args,
                                std::string_view terminator, std::string_view token = {}) = 0;
  // Ordered effects form a chain: each takes a token and gives the next. The token that this op
  // takes, "" if it has no ordered effects; and the one that it gives.
  virtual std::string token() = 0;
  virtual void set_token(std::string name) = 0;
  // A name for an argument of regions, "%arg7", that is used nowhere else in the function.
  virtual std::string fresh_argument() = 0;
  // Declares that the op is a barrier that the compiler must keep.
  virtual void note_barrier() = 0;
  virtual std::string_view platform() const = 0;  // "cpu", "cuda", "tpu"
  // For a value that becomes result i after further lines. Where the result stands for sums that
  // are yet to be made, the compiler has to know it of this value as well. Returns the value's new
  // name.
  virtual std::string with_pending_sums(const std::string& name, size_t i = 0) = 0;
  // Whether the compiler is told of such sums here, as it is in the main function only.
  virtual bool tells_sums() const = 0;
  virtual bool has_several_devices() const = 0;  // arrays may be split over them

  // The symbol of a mesh in the module, "@mesh".
  virtual std::string mesh(MeshRef mesh) = 0;
  // "<@mesh, [{"x"}, {?}]>": how an array of a rank is split.
  virtual std::string sharding(ShardingRef sharding, int64_t rank) = 0;
  // Where a device of a mesh comes in the order in which the program's devices are counted.
  virtual std::vector<int64_t> partitions(MeshRef mesh) = 0;
  // The mesh for whose parts the program is written where the op stands: those along the axes of
  // type kManual. Null: there is none.
  virtual MeshRef manual_mesh() const = 0;
  // As region(), of a graph that is written for the parts of a mesh; its arguments are in
  // parentheses in front, after them the token that ordered effects in it start from.
  virtual std::string manual_region(const Graph& graph, MeshRef mesh,
                                    std::string_view terminator) = 0;
  // As inline_graph(), of such a graph: for a mesh of one device, whose parts are the whole.
  virtual std::vector<std::string> inline_manual(const Graph& graph,
                                                 std::span<const std::string> args,
                                                 MeshRef mesh) = 0;
  // A number for the channel of a collective, each time another.
  virtual int64_t channel() = 0;
};
using EmitRule = std::function<void(EmitCtx&)>;
// "tensor<8x128xf32>"
WEFT_API std::string mlir_type(TypeRef type);
// "array<i64: 0, 1>"
WEFT_API std::string mlir_ints(std::span<const int64_t> xs);
// "abc" with quotes and escapes, as MLIR strings are written.
WEFT_API std::string mlir_string(std::string_view s);
// The element text of a literal: "2.000000e+00", "0x7FC00000", "true", "(1.0,2.0)".
WEFT_API std::string mlir_literal(const Literal& x);

// Evaluation on scalars: operands are all literals. nullopt when the op cannot be folded exactly.
struct FoldCtx {
  std::span<const Literal> xs;
  const AttrRecord* attrs;
  DType out;
};
using FoldRule = std::function<std::optional<Literal>(const FoldCtx&)>;

// The name of an op as a template argument.
template <size_t N>
struct OpName {
  char text[N];
  consteval OpName(const char (&name)[N]) { std::copy_n(name, N, text); }
};
// The op of a name known at compile time, looked up once. Ops are compared by address.
WEFT_API const OpDef& registered_op(std::string_view name);
template <OpName name>
const OpDef& op_named() {
  static const OpDef& op = registered_op(name.text);
  return op;
}

// The op that made a value, if the value's builder knows it and it is this one.
WEFT_API const Op* producer(Val v, const OpDef& op);
template <OpName name>
const Op* made_by(Val v) {
  return producer(v, op_named<name>());
}

// What the patterns of rewrites are made of.
struct SimplifyCtx : RuleCtx {
  const Op* producer(Val v, const OpDef& op) const { return weft::producer(v, op); }
  template <OpName name>
  const Op* made_by(Val v) const {
    return weft::made_by<name>(v);
  }
  Val operand(const Op& op, size_t i) const { return {&b, b.operands(op)[i]}; }
  // Operand i of the op that made v, if it is this one; else none.
  template <OpName name>
  Val operand_of(Val v, size_t i = 0) const {
    const Op* op = made_by<name>(v);
    return op ? operand(*op, i) : Val{};
  }
  // Of two operands, in either order, the one beside the one for which `holds`; else none.
  template <typename Holds>
  Val beside(Holds&& holds) const {
    return holds(x(1)) ? x(0) : holds(x(0)) ? x(1) : Val{};
  }
  // Whether nothing else needs v, as far as is known: a rewrite may then make v's op over.
  bool is_only_use(Val v) const { return b.num_uses(v.value) == 1; }
  // Whether v is a literal, or a broadcast of one, equal to x. Zeros of different sign differ; the
  // imaginary part of a complex one is zero and has the sign of x.
  bool is_splat(Val v, double x) const;
  std::optional<Literal> splat(Val v) const;
};
// When a rewrite or pass may run.
enum class Phase : uint8_t {
  kAny,
  kFinal,  // only after all derivatives have been taken, since it may change them
};
// One algebraic rewrite, tried on each op of its kind. apply() returns replacements for the
// results, or an empty list when it does not match.
struct Rewrite {
  std::string name;  // unique: "add_zero"
  std::string rule;  // the identity: "x + 0 -> x"
  std::function<Vals(SimplifyCtx&)> apply;
  Phase phase = Phase::kAny;
};

struct Cost {
  double flops = 0;
  double transcendentals = 0;
  double bytes = 0;
};
struct CostCtx {
  std::span<const TypeRef> in_types;
  std::span<const TypeRef> out_types;
  const AttrRecord* attrs;
  std::function<Cost(const Graph&)> graph_cost;  // of a graph that the op holds
  Mask literals = {};  // operands that are part of the program: nothing is read; empty: none
};
using CostRule = std::function<Cost(const CostCtx&)>;

// A call of a function of weft/kernels.h that computes all results of an op from its operands.
struct KernelCall {
  std::string_view name;
  std::string attributes;  // as of FfiCall
};
// nullopt: there is none for operands of these types.
using KernelRule = std::function<std::optional<KernelCall>(const CostCtx&)>;

// Whether an op of these types and attributes may stand in a kernel: a function of the program that
// XLA's compiler for CPUs emits as a whole (weft/kernel_regions.h). Ops with graphs are asked
// without them; their graphs' ops are asked on their own.
using InKernelRule = std::function<bool(const CostCtx&)>;

// The graph that an op stands for on every platform; null where it has none. It calls no such op.
using ExpandRule = std::function<GraphRef(const CostCtx&)>;

// What gets through an op that holds graphs, found on masks before any of its graphs is
// transformed.
enum class Flow : uint8_t {
  kTangents,  // from operands to results: which have one that may be other than zero
  kLanes,     // from operands to results: which have a mapped axis
  kNeeds,     // from results to operands: which have to stay, and which get a cotangent
  kDepends,   // from operands to results: which cannot be known without them
};
// Outputs of a loop's body that come in again, in order, as the inputs from first_input on.
struct Carries {
  size_t first_input = 0, num = 0;
};
// The rule is given one of the masks and adds what follows to both: a result may be needed, too,
// because another depends on it in a later iteration.
struct FlowCtx {
  Flow flow;
  const OpInfo& op;
  const AttrsRef& attrs;
  Mask operands, results;

  // Adds to the masks of a graph's inputs and outputs. Of a carry both hold as soon as one does.
  void through(const GraphRef& graph, Mask& inputs, Mask& outputs, Carries carries = {});
  // Everything follows.
  void all() {
    Mask& to = flow == Flow::kNeeds ? operands : results;
    to = Mask(to.size(), true);
  }
};
using FlowRule = std::function<void(FlowCtx&)>;

// Pruning of an op that holds graphs: the rule returns its attributes once it has these operands
// and results only, as its flow rule found from the results that are needed.
class PruneCtx {
 public:
  const AttrsRef& attrs;
  const Mask& operands;
  const Mask& results;

  virtual ~PruneCtx() = default;
  // The graph with these outputs and inputs only; the inputs include the needed ones.
  virtual GraphRef narrowed(const GraphRef& graph, const Mask& outputs, const Mask& inputs) = 0;

 protected:
  PruneCtx(const AttrsRef& op_attrs, const Mask& kept_operands, const Mask& kept_results)
      : attrs(op_attrs), operands(kept_operands), results(kept_results) {}
};
using PruneRule = std::function<AttrsRef(PruneCtx&)>;

// Of an op in a program that is written for parts of its arrays: over which axes of the mesh its
// results vary, given those over which its operands do. The rule makes the results, of operands
// that vary over the same axes; without a rule they are the op's, which vary over all axes over
// which an operand does.
struct ShardCtx : RuleCtx {
  const std::vector<std::string>& axes;
  std::span<const AxisSet> varying;  // per operand
  bool strict;                       // as in ShardOptions
  Values results;
  SmallVector<AxisSet, 8> result_varying;

  // Those of the list that have one of the names; the names of the others are added to `rest`.
  AxisSet set_of(std::span<const std::string> names,
                 std::vector<std::string>* rest = nullptr) const;
  std::vector<std::string> names_of(AxisSet set) const;
  // "f32[4]{V:x}", "f32[4]{V:(x,y), U:z}": the type of a value that varies over these axes.
  std::string text(TypeRef type, AxisSet set) const;
  // The axes over which any operand varies, with the marks that all have.
  AxisSet all() const;
  // Operand i, as one that varies over these axes too.
  Val as(size_t i, AxisSet set) const;
  void result(Value v, AxisSet set) {
    results.push_back(v);
    result_varying.push_back(set);
  }
  // The op on operands that all vary over these axes.
  void apply(AxisSet set);
  // The same where the op may hand on sums that are yet to be made. Throws kSharding or
  // kNotImplemented if a user's op cannot be computed of operands with their marks.
  AxisSet of_results() const;
};
using ShardRule = std::function<void(ShardCtx&)>;
// The value as one that varies over axes over which it does not.
WEFT_API Val pvary(Val x, const std::vector<std::string>& axes);
// A value that varies as one that is unreduced; or, if not `unreduced`, a reduced one as one that
// varies.
WEFT_API Val vary_cast(Val x, const std::vector<std::string>& axes, bool unreduced);

// How an op's results are split over the axes of type kExplicit of a mesh, given how its operands
// are. The rule appends one sharding per result, or fails with kSharding where several are as good.
struct PlaceCtx {
  const OpDef& op;
  const AttrsRef& attrs;
  std::span<const TypeRef> in_types;
  std::span<const TypeRef> out_types;
  MeshRef mesh;
  std::span<const ShardingRef> in;  // per operand, on this mesh
  // Whether a user wrote the op. In what transforms make, dimensions of which it is not clear how
  // they are split are not split.
  bool strict;
  SmallVector<ShardingRef, 4> out;

  const AttrRecord& attr() const { return *attrs; }
};
using PlaceRule = std::function<void(PlaceCtx&)>;

// What can go wrong where an op runs. A rule of an op with graphs makes the results too, of the
// checked graphs.
class CheckCtx : public RuleCtx {
 public:
  const CheckOptions& options;
  Values results;  // of the op; made by the rule if the op holds graphs

  CheckCtx(const RuleCtx& rule, const CheckOptions& which) : RuleCtx(rule), options(which) {}
  virtual ~CheckCtx() = default;

  // Appends a check: it fails where the scalar `failed` is true.
  void fail_if(CheckKind kind, Val failed, const Vals& values = {}) {
    fail_if(CheckSite{.kind = kind}, failed, values);
  }
  virtual void fail_if(CheckSite site, Val failed, const Vals& values) = 0;
  // A graph of the op with its checks, which get the next numbers.
  virtual std::shared_ptr<const CheckedGraph> checked(const GraphRef& graph) = 0;
  // What that graph gave for its checks, in the order in which the graphs were asked for.
  virtual void fail_in(std::span<const Val> made) = 0;
};
using CheckRule = std::function<void(CheckCtx&)>;

// The sum of an op's results over a mapped axis, where all of its operands are mapped at axis 0.
using MappedSumRule = std::function<Val(RuleCtx&)>;

// An op that runs a graph for one slice of some arrays after the other. Operands are constants of
// the graph, what it carries from one run to the next, and the arrays, whose axis 0 the slices do
// not have; the graph takes all of these in order. Results are what it carries in the end, then
// its other outputs, stacked along axis 0.
struct Loop {
  GraphRef body;
  size_t num_consts = 0, num_carry = 0;
};
struct LoopRule {
  std::function<Loop(const AttrRecord&)> parts;
  // The attributes with other parts.
  std::function<AttrsRef(const AttrsRef&, const Loop&)> with;
};

// An op whose graphs take as inputs what they held as constants (lift_constants in weft/held.h).
struct LiftedOp {
  AttrsRef attrs;
  // New operands, in order, each with the number of the old operand in front of which it stands.
  std::vector<std::pair<size_t, ObjectRef>> operands;
};
using LiftRule = std::function<LiftedOp(const AttrsRef&)>;

// How an op differentiates. kNone differentiates to an error that names the op.
enum class JvpKind : uint8_t { kNone, kZero, kLinear, kArgs, kCustom, kGraph };

// Which sums over axes of a mesh are yet to be made of an op's results (ShardingParts::unreduced).
enum class Sums : uint8_t {
  kOfLinear,  // those of the operands, if it is linear in all that have any; else there may be none
  kOfProduct,  // those of the operand that has any, if the other is reduced along the same axes
  kHandedOn,   // those of the operand
  kPlaced,     // as `place` says: those of the attribute `sharding`
  kOfSpecs,    // the same, of in_specs and out_specs
};

// How passes may treat an op whose operands are the inputs of its only graph and whose results are
// that graph's outputs.
enum class CallKind : uint8_t {
  kNone,    // not such an op
  kInline,  // may be replaced by the graph's ops
  kKeep,    // may not
  kWhole,   // has derivatives of its own, which go by inputs and results as they are: is not
            // pruned, and replaced by the graph's ops once all derivatives have been taken
};

struct OpDef : OpInfo {
  JvpKind jvp_kind = JvpKind::kNone;
  // kLinear: the result's tangent is the op itself applied to the tangents of the operands in
  // `linear_args` (empty: all) and the values of the others; kArgs: one rule per operand, null for
  // a zero contribution; kCustom: the whole-op rule; kGraph: the two graph rules.
  std::vector<size_t> linear_args;
  std::vector<JvpArgRule> jvp_args;
  JvpRule jvp;
  GraphJvpRule graph_jvp;
  GraphJvpRule graph_linearize;
  TransposeRule transpose;
  BatchRule batch;
  EmitRule emit;
  // In place of emit, where the runtime has weft's kernels. An op whose time is that of a call
  // gains.
  KernelRule kernel;
  // Null: the op may stand in no kernel, unless it has `decompose` and all ops of that may.
  InKernelRule in_kernel;
  // The op written in terms of others for a kernel, where a program is better off with the op
  // itself. No results: there is no such form for these types.
  std::function<Vals(RuleCtx&)> for_kernel;
  // In place of emit: the op written in terms of others, emitted inline.
  std::function<Vals(RuleCtx&)> decompose;
  // Null: the op stands for itself. The pass `expand` puts the graph in place of the op.
  ExpandRule expand;
  FoldRule fold;
  std::vector<Rewrite> simplify;
  CostRule cost;
  FlowRule flow;    // null: from any operand that matters to any result
  PruneRule prune;  // null: all operands and results of the op stay; needs a flow rule
  LiftRule lift;    // null: constants stay in the graphs of the op
  CallKind call = CallKind::kNone;
  bool adds = false;  // the result is the sum of the two operands
  // Of operands that are not mapped, `batch` makes one op that reads them once.
  bool shares_unmapped = false;
  bool places_sums() const { return sums == Sums::kPlaced || sums == Sums::kOfSpecs; }
  MappedSumRule mapped_sum;  // null: none that is better than to sum up the results
  LoopRule loop;             // null: it is no such loop
  ShardRule shard;           // null: results vary over the axes over which any operand does
  // Null: as an element-wise op, if it is one; else operands must not be split.
  PlaceRule place;
  Sums sums = Sums::kOfLinear;
  CheckRule check;  // null: nothing but results that are NaN or infinite

  // Names of the slots that are empty and could matter: what "the registry lacks" prints.
  std::vector<std::string> missing_rules() const;
};

// Every OpInfo that reaches a Graph is an OpDef of the registry.
inline const OpDef& def(const OpInfo& info) { return static_cast<const OpDef&>(info); }

}  // namespace weft
