// FunctionWriter: the text of one function. Values are named by numbers that run through the
// function and its regions, constants %cst (floats) and %c (others) as MLIR prints them.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <tuple>
#include <utility>

#include "emit/writer.h"
#include "kernels/list.h"
#include "ops/def/axes.h"
#include "ops/def/function.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "weft/ffi.h"
#include "weft/format.h"

namespace weft {
namespace {

constexpr int kFunctionIndent = 4;
constexpr int kRegionIndent = 4;

std::string numbered(std::string_view prefix, uint32_t n) {
  char text[24];
  std::copy(prefix.begin(), prefix.end(), text);
  return {text, std::to_chars(text + prefix.size(), std::end(text), n).ptr};
}

// Whether XLA runs a line as a kernel of its own, which it fuses with nothing that comes later: a
// call of a function, or a product. A product that sums up one term or none becomes element-wise.
bool is_kernel(std::string_view text, std::span<const TypeRef> operands) {
  if (text.starts_with("\"stablehlo.custom_call\"")) return true;
  if (text.starts_with("func.call ")) return text.find(kNoInline) != text.npos;
  constexpr std::string_view kSummed = "contracting_dims = [";
  size_t i = text.find(kSummed);
  if (!text.starts_with("stablehlo.dot_general ") || i == std::string_view::npos) return false;
  // Lines that users write may be about other types.
  const Dims shape = operands.empty() ? Dims() : operands[0]->shape();
  int64_t terms = 1;
  size_t axis = 0;
  for (i += kSummed.size(); i + 1 < text.size() && text[i] != ']'; ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    axis = 10 * axis + static_cast<size_t>(text[i] - '0');
    if (text[i + 1] >= '0' && text[i + 1] <= '9') continue;
    if (axis >= shape.size()) return false;
    terms *= shape[axis];
    axis = 0;
  }
  return terms > 1;
}

}  // namespace

std::string FunctionWriter::write(const Graph& graph, std::string_view header, bool is_main,
                                  const SeenList& seen) {
  is_main_ = is_main;
  args_seen_ = seen;
  if (is_main) find_sums(graph);
  Block body{.text = {}, .indent = kFunctionIndent, .constants = {}};
  body.text.reserve(header.size() + 80 * graph.ops().size());
  body.text << "  " << header << " {\n";
  block_ = &body;
  std::vector<std::string> args;
  args.reserve(graph.num_inputs());
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) args.push_back(fresh_argument());
  bool is_ordered = graph.effects() & kOrdered;
  if (is_ordered)
    token_ = is_main ? line(cat("stablehlo.create_token : ", kTokenType)) : fresh_argument();
  std::vector<std::string> outputs = write_ops(graph, args);
  if (sums_) place_sums(graph, outputs);
  for (const std::string& output : outputs) {
    HloName name(output);
    result_chain_ = std::max(result_chain_, chain_of(name));
    result_seen_ |= seen_of(name);
  }
  write_terminator("return", graph, outputs, is_ordered && !is_main);
  module_.surveyor().add(survey_);
  body.text << "  }\n";
  block_ = nullptr;
  return body.text.take();
}

std::vector<std::string> FunctionWriter::write_ops(const Graph& graph,
                                                   std::span<const std::string> args) {
  Frame frame{
      .graph = &graph, .names = std::vector<std::string>(graph.num_values()), .broadcasts = {}};
  for (size_t i = 0; i < args.size(); ++i) {
    frame.names[i] = args[i];
    module_.surveyor().note(graph.type(graph.input(static_cast<uint32_t>(i))));
  }
  Frame* outer_frame = std::exchange(frame_, &frame);
  auto outer_op = std::tuple(in_types, out_types, attrs, loc_);
  uint32_t outer_weight = line_weight_;
  uint16_t outer_seen = graph_seen_;

  TypeRefs operand_types;
  for (const Op& op : graph.ops()) {
    operand_types.clear();
    for (Value v : graph.operands(op)) operand_types.push_back(graph.type(v));
    in_types = operand_types;
    out_types = graph.result_types(op);
    for (TypeRef type : out_types) module_.surveyor().note(type);
    attrs = op.attrs.get();
    // Ops without a location of their own (decompositions) take that of the op they stand for.
    if (op.loc != kNoLoc) loc_ = op.loc;
    write_op(op);
    loc_ = std::get<Loc>(outer_op);
  }

  std::vector<std::string> outputs;
  outputs.reserve(graph.outputs().size());
  for (Value v : graph.outputs())
    outputs.push_back(v.is_literal() ? typed_constant(graph.literal(v), graph.type(v))
                                     : frame.names[v.id]);
  frame_ = outer_frame;
  std::tie(in_types, out_types, attrs, loc_) = outer_op;
  line_weight_ = outer_weight;
  graph_seen_ = outer_seen;
  return outputs;
}

void FunctionWriter::note_target(std::string_view name) {
  module_.note_target(name, frame_->op->info->name, loc_);
}

void FunctionWriter::write_op(const Op& op) {
  frame_->op = &op;
  const OpDef& op_def = def(*op.info);
  line_weight_ = op_def.elementwise ? kElementwiseWeight : kOtherWeight;
  frame_->guarded = !op_def.decompose && module_.split_mesh();
  graph_seen_ = 0;
  if (op.attrs) {
    bool has_graphs = false;
    for_each_graph(op.attrs, [&](const GraphRef&) { has_graphs = true; });
    if (has_graphs) guard_operands();
  }
  std::optional<KernelCall> kernel;
  if (module_.options().own_kernels && op_def.kernel)
    kernel = op_def.kernel({in_types, out_types, attrs, {}});
  if (kernel && (module_.is_one_kernel() || is_long_kernel(kernel->name))) {
    emit_ffi_call(
        *this, {.target = std::string(kernel->name), .attributes = std::move(kernel->attributes)});
  } else if (op_def.emit) {
    op_def.emit(*this);
  } else if (op_def.decompose) {
    write_decomposed(op_def);
  } else {
    fail(ErrorKind::kNotImplemented, "[", op.info->name,
         "] expected an op with a StableHLO emission rule; got ", print_op(*frame_->graph, op),
         "\n  at ", loc_text(op.loc));
  }
  for (uint32_t i = 0; i < op.num_results; ++i) {
    if (frame_->names[op.results_begin + i].empty()) {
      fail(ErrorKind::kInternal, "[", op.info->name, "] emission did not name result ", i);
    }
    Value result = frame_->graph->result(op, i);
    if (frame_->guarded) frame_->names[result.id] = made_whole(result, -1);
    if (chain_of(HloName(frame_->names[result.id])) >= kMaxChain) cut_chain(result);
    frame_->names[result.id] = with_pending_sums(frame_->names[result.id], i);
  }
}

// The chain that ends in a value. Arguments and constants end none.
uint32_t FunctionWriter::chain_of(const HloName& name) const {
  return name.of == HloName::Of::kLine && name.number < made_.size() ? made_[name.number].chain : 0;
}

// Loops may call the other functions.
void FunctionWriter::note_barrier() {
  bool is_outside = is_main_ && block_->indent == kFunctionIndent;
  module_.note_barrier(is_outside ? Barriers::kOutsideOfLoops : Barriers::kAnywhere);
}

// Later lines use the value through a barrier.
void FunctionWriter::cut_chain(Value v) {
  note_barrier();
  std::string& name = frame_->names[v.id];
  name = line(cat("stablehlo.optimization_barrier ", name, " : ",
                  module_.type_text(frame_->graph->type(v))));
  made_.back().chain = 0;
}

// There are no guards where a user asks for fast arithmetic, and for other platforms: they are for
// the simplifier as it is on CPU.
bool FunctionWriter::is_exact() const {
  return !module_.options().fast_arithmetic && module_.options().platform == "cpu";
}

// Arguments of the program, and those of regions, may be anything.
uint16_t FunctionWriter::seen_of(const HloName& name) const {
  uint32_t i = name.number;
  switch (name.of) {
    case HloName::Of::kConstant:
      return kConstant | kUniform;
    case HloName::Of::kArgument:
      return i < args_seen_.size() ? args_seen_[i] : 0;
    case HloName::Of::kLine:
      return i < made_.size() ? made_[i].seen : 0;
  }
  return 0;
}

// The value, of which nothing is seen.
std::string FunctionWriter::guarded(std::string_view name, std::string_view type) {
  return line(cat("stablehlo.clamp ", name, ", ", name, ", ", name, " : ", type));
}

// The divisor, of which is not seen that it is a broadcast. It may be another where the dividend is
// nan, and the quotient then is, too.
std::string FunctionWriter::guarded_divisor(const HloLine& division) {
  std::string_view x = division.operands[0].name.text, y = division.operands[1].name.text;
  std::string_view type = division.type();
  if (!is_complex_type(type))
    return line(cat("stablehlo.clamp ", y, ", ", x, ", ", y, " : ", type));
  std::string mask = cat(type.substr(0, type.find("complex")), "i1>");
  std::string is_number = line(
      cat("stablehlo.compare EQ, ", x, ", ", x, ", FLOAT : (", type, ", ", type, ") -> ", mask));
  return line(cat("stablehlo.select ", is_number, ", ", y, ", ", x, " : ", mask, ", ", type));
}

// A line with guards in place of those operands that XLA would join with the operation; empty if it
// needs none.
std::string FunctionWriter::with_guards(const HloLine& hlo) {
  Guards guards = guards_of(hlo);
  if (!guards.divisor && guards.joined.empty()) return {};
  std::string_view type = hlo.type();
  bool is_float = is_exact_float(type);
  if (!is_float && !is_complex_type(type)) return {};
  std::string result(hlo.text);
  auto replace = [&](size_t i, const std::string& name) {
    std::string_view operand = hlo.operands[i].name.text;
    result.replace(static_cast<size_t>(operand.data() - hlo.text.data()), operand.size(), name);
  };
  // From the last on, so that the places of the others stay.
  if (guards.divisor) replace(1, guarded_divisor(hlo));
  if (!is_float) return result;
  std::sort(guards.joined.begin(), guards.joined.end(), std::greater<>());
  for (size_t i : guards.joined) replace(i, guarded(hlo.operands[i].name.text, type));
  return result;
}

// What the graphs of the op, or the function that it calls, get is none of what XLA would join.
void FunctionWriter::guard_operands() {
  if (!is_exact()) return;
  for (Value v : frame_->graph->operands(*frame_->op)) {
    if (v.is_literal() || !(seen_of(HloName(frame_->names[v.id])) & kJoined & ~kPassed)) continue;
    const std::string& type = module_.type_text(frame_->graph->type(v));
    if (is_exact_float(type)) frame_->names[v.id] = guarded(frame_->names[v.id], type);
  }
}

void FunctionWriter::write_decomposed(const OpDef& op_def) {
  GraphRef graph = module_.decomposition(op_def, frame_->op->attrs, in_types, out_types);
  if (is_function(op_def)) {
    guard_operands();
    return emit_results(*this, cat("func.call ", function(graph, op_def.name), "(",
                                   operand_list(*this), ") : ", signature(*this)));
  }
  std::vector<std::string> args;
  for (size_t i = 0; i < size(); ++i) args.push_back(in(i));
  std::vector<std::string> results = inline_graph(*graph, args);
  for (size_t i = 0; i < results.size(); ++i) set_out(i, std::move(results[i]));
}

std::string FunctionWriter::in(size_t i) {
  Value v = frame_->graph->operand(*frame_->op, static_cast<uint32_t>(i));
  const Op& op = *frame_->op;
  if (def(*op.info).sums == Sums::kOfSpecs && tells_sums())
    return as_spec(v, op.attrs->shardings("in_specs")[i]);
  if (v.is_literal()) return typed_constant(frame_->graph->literal(v), in_types[i]);
  if (def(*op.info).sums == Sums::kPlaced)
    return with_sums(frame_->names[v.id], v, op.attrs->sharding("sharding"));
  if (needs_sums(op, v))
    return emit_constraint(*this, frame_->names[v.id], in_types[i],
                           with_unreduced(sums_->of(v), {}));
  if (frame_->graph == main_graph_ && kept_apart_.contains(op.results_begin))
    return emit_constraint(*this, frame_->names[v.id], in_types[i], sums_->of(v));
  return frame_->guarded ? made_whole(v, static_cast<int64_t>(i)) : frame_->names[v.id];
}

const Literal* FunctionWriter::literal(size_t i) const {
  Value v = frame_->graph->operand(*frame_->op, static_cast<uint32_t>(i));
  if (v.is_literal()) return &frame_->graph->literal(v);
  auto known = scalars_.find(frame_->names[v.id]);
  return known == scalars_.end() ? nullptr : &known->second;
}

std::string FunctionWriter::in_as(size_t i, const Dims& shape) {
  TypeRef from = in_types[i];
  if (from->shape() == shape) return in(i);
  if (from->rank() != 0) {
    fail(ErrorKind::kInternal, "[", frame_->op->info->name, "] expected operand ", i,
         " of the result's shape or a scalar; got ", from);
  }
  TypeRef to = shaped(from->dtype(), shape);
  Value v = frame_->graph->operand(*frame_->op, static_cast<uint32_t>(i));
  if (v.is_literal()) return typed_constant(frame_->graph->literal(v), to);
  auto [it, added] = frame_->broadcasts.try_emplace({v.id, to});
  if (added) {
    it->second = line(cat("stablehlo.broadcast_in_dim ", frame_->names[v.id], ", dims = [] : (",
                          module_.type_text(from), ") -> ", module_.type_text(to)));
  }
  return it->second;
}

std::string FunctionWriter::constant(const Literal& x, const Dims& shape) {
  return typed_constant(x, shaped(x.dtype, shape));
}

TypeRef FunctionWriter::shaped(DType dtype, const Dims& shape) const {
  // Nearly always the type asked for is the result's; this spares a look-up in the type table.
  if (!out_types.empty() && out_types[0]->dtype() == dtype && out_types[0]->shape() == shape) {
    return out_types[0];
  }
  return make_type(dtype, shape);
}

std::string FunctionWriter::typed_constant(const Literal& x, TypeRef type) {
  auto [it, added] = block_->constants.try_emplace({x, type});
  if (added) {
    it->second = is_inexact(x.dtype) ? "%cst" : "%c";
    if (next_constant_ > 0) it->second += cat('_', next_constant_ - 1);
    ++next_constant_;
    if (type->rank() == 0) scalars_.emplace(it->second, x);
    // A splat of no elements is written without its value.
    std::string text =
        cat("stablehlo.constant dense<", type->num_elements() > 0 ? mlir_literal(x) : std::string(),
            "> : ", module_.type_text(type));
    survey_.add(it->second, text);
    Text& out = block_->text;
    out.spaces(block_->indent) << it->second << " = " << text;
    if (module_.options().locations) module_.locations().append_reference(out, loc_);
    out << '\n';
  }
  return it->second;
}

std::string FunctionWriter::line(std::string_view text, int num_results) {
  std::string name, exact;
  std::string guarded_type;  // of a result that needs a guard
  if (num_results > 0) {
    HloLine hlo(text);
    uint32_t chain = 0;
    for (HloLine::Operand& operand : hlo.operands) {
      chain = std::max(chain, chain_of(operand.name));
      operand.seen = seen_of(operand.name);
    }
    uint16_t seen = graph_seen_;
    if (is_exact()) {
      seen |= seen_of_result(hlo);
      if (hides_overflow(hlo)) guarded_type = hlo.result_type();
      exact = with_guards(hlo);
      if (!exact.empty()) {
        text = exact;
        chain += line_weight_;  // of the guards
      }
    }
    // What stands in regions counts in the weight.
    chain = is_kernel(text, in_types) ? 0 : chain + line_weight_;
    longest_chain_ = std::max(longest_chain_, chain);
    name = numbered("%", next_value_++);
    made_.push_back({chain, seen});
    survey_.add(name, text);
  }
  Text& out = block_->text;
  out.spaces(block_->indent);
  if (num_results > 0) {
    out << name;
    if (num_results > 1) out << ':' << num_results;
    out << " = ";
  }
  out << text;
  if (module_.options().locations) module_.locations().append_reference(out, loc_);
  out << '\n';
  return guarded_type.empty() ? name : guarded(name, guarded_type);
}

void FunctionWriter::set_out(size_t i, std::string name) {
  frame_->names[frame_->op->results_begin + i] = std::move(name);
}

// XLA inlines calls, so that an argument may be a constant, or the broadcast of one. A function
// that is not given the op's operands may get any constants.
SeenList FunctionWriter::seen_of_arguments(const Graph& graph) const {
  SeenList seen;
  if (!is_exact()) return seen;
  std::span<const Value> operands = frame_->graph->operands(*frame_->op);
  bool takes_operands = operands.size() == graph.num_inputs();
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    uint16_t of_value = kConstant | kUniform;
    if (takes_operands && !operands[i].is_literal())
      of_value &= seen_of(HloName(frame_->names[operands[i].id]));
    seen.push_back(of_value | kPassed);
  }
  return seen;
}

// XLA inlines calls: the chains of a function go on from those of the arguments. To be called
// before operands are named.
std::string FunctionWriter::function(const GraphRef& graph, std::string_view name) {
  const ModuleWriter::Function& f =
      module_.function(graph, name, manual_mesh_, seen_of_arguments(*graph));
  for (Value v : frame_->graph->operands(*frame_->op)) {
    if (v.is_literal()) continue;
    uint32_t chain = chain_of(HloName(frame_->names[v.id]));
    if (chain > 0 && chain + f.longest_chain > kMaxChain) cut_chain(v);
  }
  line_weight_ = f.result_chain;
  graph_seen_ = f.result_seen;
  return f.name;
}

std::vector<std::string> FunctionWriter::inline_graph(const Graph& graph,
                                                      std::span<const std::string> args) {
  return write_ops(graph, args);
}

// Most graphs have no ordered effects, so that the attributes of few ops are looked at.
std::string FunctionWriter::token() {
  const Op& op = *frame_->op;
  bool is_ordered =
      (frame_->graph->effects() & kOrdered) && (effects_of(*op.info, op.attrs) & kOrdered);
  return is_ordered ? token_ : std::string();
}

std::string FunctionWriter::fresh_argument() { return numbered("%arg", next_arg_++); }

// Graphs that XLA may apply as often, and in what order, it likes.
std::string FunctionWriter::region(const Graph& graph, std::string_view terminator) {
  if (graph.effects() != kPure)
    fail(ErrorKind::kNotImplemented, "[", frame_->op->info->name,
         "] expected a graph without effects; got one that calls a function on the host for its "
         "effects");
  Text header;
  std::vector<std::string> args;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    args.push_back(fresh_argument());
    header << (i ? ", " : "^bb0(") << args.back() << ": "
           << module_.type_text(graph.type(graph.input(i)));
  }
  if (!args.empty()) header << "):";
  return write_region(graph, args, header.view(), terminator, {});
}

std::string FunctionWriter::region_on(const Graph& graph, std::span<const std::string> args,
                                      std::string_view terminator, std::string_view token) {
  return write_region(graph, args, "", terminator, token);
}

std::string FunctionWriter::manual_region(const Graph& graph, MeshRef mesh,
                                          std::string_view terminator) {
  Text header;
  std::vector<std::string> args;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    args.push_back(fresh_argument());
    header << (i ? ", " : "(") << args.back() << ": "
           << module_.type_text(graph.type(graph.input(i)));
  }
  std::string token;
  if (graph.effects() & kOrdered) {
    token = fresh_argument();
    header << (args.empty() ? "(" : ", ") << token << ": " << kTokenType;
  }
  header << (args.empty() && token.empty() ? "() " : ") ");
  MeshRef outer = std::exchange(manual_mesh_, mesh);
  header << write_region(graph, args, "", terminator, token);
  manual_mesh_ = outer;
  return header.take();
}

std::vector<std::string> FunctionWriter::inline_manual(const Graph& graph,
                                                       std::span<const std::string> args,
                                                       MeshRef mesh) {
  MeshRef outer = std::exchange(manual_mesh_, mesh);
  std::vector<std::string> outputs = write_ops(graph, args);
  manual_mesh_ = outer;
  return outputs;
}

std::string FunctionWriter::write_region(const Graph& graph, std::span<const std::string> args,
                                         std::string_view header, std::string_view terminator,
                                         std::string_view token) {
  Block block{.text = {}, .indent = block_->indent + kRegionIndent, .constants = {}};
  Block* outer = std::exchange(block_, &block);
  block.text << "{\n";
  if (!header.empty()) block.text.spaces(block.indent - 2) << header << '\n';
  std::string outer_token = std::exchange(token_, std::string(token));
  std::vector<std::string> outputs = write_ops(graph, args);
  // XLA inlines loops and branches that it knows to run once.
  for (const std::string& output : outputs) {
    HloName name(output);
    line_weight_ = std::max(line_weight_, chain_of(name));
    graph_seen_ |= seen_of(name);
  }
  write_terminator(terminator, graph, outputs, !token.empty());
  token_ = std::move(outer_token);
  block_ = outer;
  block.text.spaces(outer->indent) << '}';
  return block.text.take();
}

void FunctionWriter::host_callback(const ObjectRef& function, bool partitioned) {
  const EmitOptions& options = module_.options();
  const std::string& target =
      partitioned ? options.partitioned_host_call_target : options.host_call_target;
  if (target.empty())
    fail(ErrorKind::kNotImplemented, "[", frame_->op->info->name,
         "] expected platform cpu, or another whose runtime calls functions on the host; got ",
         platform());
  std::vector<HostCallback>& all = module_.host_callbacks();
  FfiCall call{.target = target, .attributes = cat("index = ", all.size(), " : ui64")};
  // XLA's partitioner takes calls for each part with layouts alone, and may turn arrays of others.
  if (partitioned || has_several_devices()) {
    auto rows = [](TypeRef type) {
      Dims axes = count_up(type->rank());
      std::reverse(axes.begin(), axes.end());
      return axes;
    };
    for (TypeRef type : in_types) call.operand_layouts.push_back(rows(type));
    for (TypeRef type : out_types) call.result_layouts.push_back(rows(type));
  }
  call.has_side_effect = effects_of(*frame_->op->info, frame_->op->attrs) != kPure;
  if (call.has_side_effect && !partitioned) check_place_of_effect(*this, frame_->op->info->name);
  all.push_back({function, {out_types.begin(), out_types.end()}, loc_, !token().empty()});
  emit_ffi_call(*this, call);
}

void FunctionWriter::inspect_sharding(const ObjectRef& function) {
  TypeRef type = in_types[0];
  std::vector<Inspection>& all = module_.inspections();
  // XLA's partitioner takes these calls out, and does not run where there is one device. Whoever
  // compiles the module puts the address of a function in place of the number.
  if (has_several_devices())
    line(cat("stablehlo.custom_call @InspectSharding(", in(0), ") {backend_config = \"", all.size(),
             "\", has_side_effect = true} : (", mlir_type(type), ") -> ", mlir_type(type)));
  all.push_back({function, type});
}

void FunctionWriter::write_terminator(std::string_view terminator, const Graph& graph,
                                      std::span<const std::string> outputs, bool with_token) {
  Text text;
  text << terminator;
  for (size_t i = 0; i < outputs.size(); ++i) text << (i ? ", " : " ") << outputs[i];
  if (with_token) text << (outputs.empty() ? " " : ", ") << token_;
  for (size_t i = 0; i < outputs.size(); ++i) {
    text << (i ? ", " : " : ") << module_.type_text(graph.type(graph.outputs()[i]));
  }
  if (with_token) text << (outputs.empty() ? " : " : ", ") << kTokenType;
  line(text.view(), 0);
}

}  // namespace weft
