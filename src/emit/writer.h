// The writers behind emit_stablehlo(). A ModuleWriter owns what the functions of a module share;
// a FunctionWriter writes one function and is the EmitCtx that the ops' emission rules see.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emit/exact.h"
#include "emit/survey.h"
#include "ops/def/hlo_text.h"
#include "ops/def/partition.h"
#include "weft/emit.h"
#include "weft/hash.h"
#include "weft/op_def.h"
#include "weft/placements.h"

namespace weft {

// XLA fuses what is element-wise or only moves elements without end, and then follows the operands
// within a fusion by recursion, on threads with stacks of 2 MB: about 330 steps that move elements,
// or 21,000 that are element-wise, end the process. So a chain of lines is cut by a barrier when
// the weights of its lines come to kMaxChain. It ends by itself in what XLA does not fuse, such as
// products. More barriers than that cost: they end fusions, kernels that would be equal become
// different ones, and compiling takes up to twice as long.
inline constexpr uint32_t kMaxChain = 5000;
inline constexpr uint32_t kElementwiseWeight = 1;
inline constexpr uint32_t kOtherWeight = 40;

// Locations as aliases at the end of the module: each is written out once.
class LocationTable {
 public:
  // Appends " loc(#loc3)".
  void append_reference(Text& out, Loc loc);
  void append_definitions(Text& out) const;

 private:
  std::unordered_map<Loc, uint32_t> numbers_;
  std::vector<Loc> locs_;
};

class ModuleWriter {
 public:
  explicit ModuleWriter(const EmitOptions& options) : options_(options) {}

  std::string write(const Graph& graph);

  const EmitOptions& options() const { return options_; }
  bool is_one_kernel() const { return is_one_kernel_; }  // see is_kernel_call
  LocationTable& locations() { return locations_; }
  std::vector<HostCallback>& host_callbacks() { return host_callbacks_; }
  std::vector<Inspection>& inspections() { return inspections_; }
  std::vector<CallTarget>& targets() { return targets_; }
  void note_target(std::string_view name, std::string_view op, Loc loc);
  void note_barrier(Barriers where) { barriers_ = std::max(barriers_, where); }
  Barriers barriers() const { return barriers_; }
  Surveyor& surveyor() { return surveyor_; }
  const std::string& type_text(TypeRef type);
  // The symbol of a mesh, "@mesh", declared when it is first asked for.
  const std::string& mesh(MeshRef mesh);
  std::vector<int64_t> partitions(MeshRef mesh) const;
  // "<@mesh, [{"x"}, {?}]>", of an array of a rank.
  // `of_result`: over axes of type kExplicit that it does not name it is not split, though open.
  std::string sharding(ShardingRef sharding, int64_t rank, bool of_result = false);
  int64_t channel() { return ++num_channels_; }
  // A mesh over which the program's values are split; null where there is one device.
  MeshRef split_mesh() const { return split_mesh_; }
  // Sizes of dimensions that may come to be split into unequal parts over it.
  const Sizes& resized() const { return resized_; }
  struct Function {
    GraphRef graph;          // keeps the key of by_pointer_ alive
    MeshRef mesh = nullptr;  // whose axes its ops refer to
    SeenList seen;           // of its arguments, where it is called
    std::string name;
    std::string text;
    uint32_t longest_chain = 0;
    uint32_t result_chain = 0;
    uint16_t result_seen = 0;
  };
  // The private function that holds `graph`, "@f_0", for arguments of which this is seen (exact.h);
  // written on first use. Good until the next one.
  const Function& function(const GraphRef& graph, std::string_view name, MeshRef mesh,
                           const SeenList& seen);
  // The graph that stands for an op with a decompose rule.
  GraphRef decomposition(const OpDef& op, const AttrsRef& attrs, std::span<const TypeRef> in_types,
                         std::span<const TypeRef> out_types);

 private:
  struct Decomposition {
    const OpDef* op;
    AttrsRef attrs;
    TypeRefs in_types;
    GraphRef graph;
  };

  std::string unique_symbol(std::string_view name);
  std::string main_signature(const Graph& graph);
  MeshRef find_mesh(const Graph& graph) const;

  const EmitOptions& options_;
  bool is_one_kernel_ = false;
  LocationTable locations_;
  std::vector<HostCallback> host_callbacks_;
  std::vector<Inspection> inspections_;
  std::vector<CallTarget> targets_;
  Barriers barriers_ = Barriers::kNone;
  Surveyor surveyor_;
  std::unordered_map<TypeRef, std::string> types_;
  struct MeshSymbol {
    MeshRef mesh;
    std::string symbol, definition;
  };
  std::deque<MeshSymbol> meshes_;
  int64_t num_channels_ = 0;
  MeshRef split_mesh_ = nullptr;
  Sizes resized_;
  std::vector<Function> functions_;
  std::unordered_multimap<const Graph*, size_t> by_pointer_;
  std::unordered_multimap<uint64_t, size_t> by_structure_;
  std::unordered_set<std::string> symbols_{"main"};
  std::unordered_multimap<uint64_t, Decomposition> decompositions_;
};

class FunctionWriter final : public EmitCtx {
 public:
  explicit FunctionWriter(ModuleWriter& module, MeshRef mesh = nullptr)
      : module_(module), manual_mesh_(mesh) {}

  // The whole function; `header` is everything up to the opening brace. The chain of ordered
  // effects starts in main; other functions are given a token, last, and return one.
  std::string write(const Graph& graph, std::string_view header, bool is_main,
                    const SeenList& seen = {});
  uint32_t longest_chain() const { return longest_chain_; }
  uint32_t result_chain() const { return result_chain_; }
  uint16_t result_seen() const { return result_seen_; }

  std::string in(size_t i) override;
  const Literal* literal(size_t i) const override;
  void note_barrier() override;
  std::string in_as(size_t i, const Dims& shape) override;
  std::string constant(const Literal& x, const Dims& shape) override;
  std::string line(std::string_view text, int num_results = 1) override;
  void set_out(size_t i, std::string name) override;
  std::string function(const GraphRef& graph, std::string_view name) override;
  std::vector<std::string> inline_graph(const Graph& graph,
                                        std::span<const std::string> args) override;
  std::string region(const Graph& graph, std::string_view terminator) override;
  void host_callback(const ObjectRef& function, bool partitioned) override;
  void inspect_sharding(const ObjectRef& function) override;
  void note_target(std::string_view name) override;
  std::string region_on(const Graph& graph, std::span<const std::string> args,
                        std::string_view terminator, std::string_view token) override;
  std::string token() override;
  void set_token(std::string name) override { token_ = std::move(name); }
  std::string fresh_argument() override;
  std::string_view platform() const override { return module_.options().platform; }
  std::string with_pending_sums(const std::string& name, size_t i) override;
  bool tells_sums() const override { return sums_ && frame_->graph == main_graph_; }
  bool has_several_devices() const override { return module_.options().devices.size() > 1; }
  std::string mesh(MeshRef mesh) override { return module_.mesh(mesh); }
  std::vector<int64_t> partitions(MeshRef mesh) override { return module_.partitions(mesh); }
  MeshRef manual_mesh() const override { return manual_mesh_; }
  std::string manual_region(const Graph& graph, MeshRef mesh, std::string_view terminator) override;
  std::vector<std::string> inline_manual(const Graph& graph, std::span<const std::string> args,
                                         MeshRef mesh) override;
  int64_t channel() override { return module_.channel(); }
  std::string sharding(ShardingRef sharding, int64_t rank) override {
    return module_.sharding(sharding, rank);
  }

 private:
  struct ConstantKey {
    Literal literal;
    TypeRef type;
    bool operator==(const ConstantKey&) const = default;
  };
  struct ConstantHash {
    size_t operator()(const ConstantKey& k) const {
      return hash_combine(hash_combine(k.literal.lo, k.literal.hi), hash_pointer(k.type));
    }
  };
  // A block of text under construction: the function's body or a region's. Constants are shared
  // within a block only: a region refers to no value that it was not given.
  struct Block {
    Text text;
    int indent;
    std::unordered_map<ConstantKey, std::string, ConstantHash> constants;
  };
  struct BroadcastHash {
    size_t operator()(const std::pair<uint32_t, TypeRef>& k) const {
      return hash_combine(k.first, hash_pointer(k.second));
    }
  };
  // A graph whose ops are being written, with the SSA names of its values.
  struct Frame {
    const Graph* graph;
    std::vector<std::string> names;
    std::unordered_map<std::pair<uint32_t, TypeRef>, std::string, BroadcastHash> broadcasts;
    const Op* op = nullptr;
    // Values along whose dimensions that XLA's partitioner would get wrong they are not split, for
    // the op.
    bool guarded = false;
  };

  std::string write_region(const Graph& graph, std::span<const std::string> args,
                           std::string_view header, std::string_view terminator,
                           std::string_view token);
  std::vector<std::string> write_ops(const Graph& graph, std::span<const std::string> args);
  void write_op(const Op& op);
  void write_decomposed(const OpDef& op);
  void write_terminator(std::string_view terminator, const Graph& graph,
                        std::span<const std::string> outputs, bool with_token);
  std::string typed_constant(const Literal& x, TypeRef type);
  uint32_t chain_of(const HloName& name) const;
  void cut_chain(Value v);
  bool is_exact() const;
  uint16_t seen_of(const HloName& name) const;
  SeenList seen_of_arguments(const Graph& graph) const;
  std::string guarded(std::string_view name, std::string_view type);
  std::string guarded_divisor(const HloLine& division);
  std::string with_guards(const HloLine& hlo);
  void guard_operands();
  // sums.cpp
  void find_sums(const Graph& graph);
  void place_sums(const Graph& graph, std::vector<std::string>& outputs);
  bool needs_sums(const Op& op, Value operand) const;
  std::string made_whole(Value v, int64_t operand);
  std::string with_sums(std::string name, Value v, ShardingRef wanted);
  std::string as_spec(Value v, ShardingRef spec);
  TypeRef shaped(DType dtype, const Dims& shape) const;

  ModuleWriter& module_;
  MeshRef manual_mesh_;
  bool is_main_ = false;
  // Of the main function's graph, where sums over axes of a mesh are yet to be made of some values.
  const Graph* main_graph_ = nullptr;
  std::optional<Placements> sums_;
  // Values of it that are sums whose summands the parts are to keep.
  std::unordered_set<uint32_t> kept_apart_;
  Frame* frame_ = nullptr;
  Block* block_ = nullptr;
  Loc loc_ = kNoLoc;
  std::unordered_map<std::string, Literal> scalars_;  // constants by their names
  FunctionSurvey survey_;
  std::string token_;  // the last of the chain of ordered effects, where there are any
  uint32_t next_value_ = 0;
  struct Made {
    uint32_t chain;  // of lines that use each other's results, since the last barrier or kernel
    uint16_t seen;   // exact.h
  };
  std::vector<Made> made_;    // of the values %0, %1, ...
  uint32_t line_weight_ = 0;  // what a line of the op that is being written adds to a chain
  uint32_t longest_chain_ = 0;
  uint32_t result_chain_ = 0;  // the longest up to a result
  uint16_t graph_seen_ =
      0;  // what is seen of results of the graphs of the op that is being written
  uint16_t result_seen_ = 0;  // and of all results of the function
  SeenList args_seen_;        // and of its arguments
  uint32_t next_arg_ = 0;
  uint32_t next_constant_ = 0;
};

}  // namespace weft
