// ModuleWriter: the module around the functions, and what they share. Callees become private
// functions, one per structure, however many graphs of that structure there are.
#include <algorithm>
#include <cctype>

#include "emit/writer.h"
#include "kernels/list.h"
#include "ops/def/function.h"
#include "ops/def/plain.h"
#include "weft/text.h"
#include "weft/transforms.h"

namespace weft {
namespace {

// How an op that holds graphs is named to the user: as the function that it calls, if it has a
// name.
std::string called_name(const Op& op) {
  const AttrSchema& schema = op.info->attrs;
  for (const AttrSpec& spec : schema.specs())
    if (spec.name == "name" && spec.type == AttrType::kString) return op.attrs->string("name");
  return op.info->name;
}

bool is_bare_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_bare_identifier(std::string_view s) {
  if (s.empty() || is_digit(s[0])) return false;
  for (char c : s)
    if (!is_bare_char(c)) return false;
  return true;
}

// Functions are named for people: "<lambda>" becomes _lambda_.
std::string make_identifier(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (!is_bare_char(c)) c = '_';
  if (out.empty() || is_digit(out[0])) out.insert(0, 1, '_');
  return out;
}

}  // namespace

std::string mlir_string(std::string_view s) {
  Text out;
  out << '"';
  for (char c : s) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out << '\\' << "0123456789ABCDEF"[byte >> 4] << "0123456789ABCDEF"[byte & 15];
    } else {
      out << c;
    }
  }
  out << '"';
  return out.take();
}

const std::string& ModuleWriter::type_text(TypeRef type) {
  auto [it, added] = types_.try_emplace(type);
  if (added) it->second = mlir_type(type);
  return it->second;
}

void ModuleWriter::note_target(std::string_view name, std::string_view op, Loc loc) {
  for (const CallTarget& t : targets_)
    if (t.name == name) return;
  targets_.push_back({std::string(name), op, loc});
}

std::string ModuleWriter::unique_symbol(std::string_view name) {
  std::string base = make_identifier(name);
  std::string symbol = base;
  for (int n = 0; !symbols_.insert(symbol).second; ++n) symbol = cat(base, '_', n);
  return symbol;
}

// Types of axes are not part of it. One device is the first that the program runs on.
const std::string& ModuleWriter::mesh(MeshRef mesh) {
  if (has_plain_ops_only(options_.platform))
    fail(ErrorKind::kNotImplemented, "[emit_stablehlo] expected a program for one device for ",
         "platform ", options_.platform, "; got one that says how arrays are split over ", mesh);
  auto num_devices = static_cast<int64_t>(options_.devices.size());
  bool has_axes = !mesh->axes().empty();
  if (num_devices && mesh->size() != num_devices && has_axes)
    fail(ErrorKind::kValue, "expected a mesh of as many devices as the program runs on, ",
         num_devices, "; got ", mesh);
  Text text;
  text << "<[";
  for (size_t i = 0; i < mesh->axes().size(); ++i) {
    const MeshAxis& axis = mesh->axes()[i];
    text << (i ? ", " : "") << mlir_string(axis.name) << '=' << axis.size;
  }
  text << ']';
  std::vector<int64_t> order = has_axes ? partitions(mesh) : std::vector<int64_t>{0};
  if (has_axes ? !std::is_sorted(order.begin(), order.end()) : !mesh->is_abstract())
    text << ", device_ids=" << bracketed(order);
  text << '>';
  for (const MeshSymbol& known : meshes_)
    if (known.definition == text.view()) return known.symbol;
  return meshes_.emplace_back(MeshSymbol{mesh, cat('@', unique_symbol("mesh")), text.take()})
      .symbol;
}

std::vector<int64_t> ModuleWriter::partitions(MeshRef mesh) const {
  std::vector<int64_t> order;
  if (mesh->is_abstract() || options_.devices.empty()) {
    for (int64_t i = 0; i < mesh->size(); ++i) order.push_back(i);
    return order;
  }
  for (int32_t device : mesh->devices()) {
    auto at = std::find(options_.devices.begin(), options_.devices.end(), device);
    if (at == options_.devices.end())
      fail(ErrorKind::kValue, "expected a mesh of the ", options_.devices.size(),
           " devices that the program runs on; got ", mesh);
    order.push_back(at - options_.devices.begin());
  }
  return order;
}

std::string ModuleWriter::sharding(ShardingRef sharding, int64_t rank, bool of_result) {
  Text out;
  out << '<' << mesh(sharding->mesh()) << ", [";
  auto axes = [&](const DimSharding& dim) {
    const char* between = "";
    for (int64_t axis : dim.axes) {
      out << between << mlir_string(sharding->mesh()->axis(axis).name);
      between = ", ";
    }
    if (dim.open) out << between << '?';
  };
  for (int64_t i = 0; i < rank; ++i) {
    out << (i ? ", {" : "{");
    axes(sharding->dim(static_cast<size_t>(i)));
    out << '}';
  }
  out << ']';
  if (of_result && sharding->is_open()) {
    DimSharding whole;
    for (size_t i = 0; i < sharding->mesh()->axes().size(); ++i) {
      auto axis = static_cast<int64_t>(i);
      bool is_used = std::ranges::any_of(sharding->dims(), [&](const DimSharding& dim) {
        return std::ranges::find(dim.axes, axis) != dim.axes.end();
      });
      if (sharding->mesh()->axis(axis).type == AxisType::kExplicit && !is_used)
        whole.axes.push_back(axis);
    }
    if (!whole.axes.empty()) {
      out << ", replicated={";
      axes(whole);
      out << '}';
    }
  }
  if (!sharding->unreduced().empty()) {
    out << ", unreduced={";
    axes({sharding->unreduced()});
    out << '}';
  }
  out << '>';
  return out.take();
}

// What names no axes means the same on all meshes.
const ModuleWriter::Function& ModuleWriter::function(const GraphRef& graph, std::string_view name,
                                                     MeshRef mesh, const SeenList& seen) {
  if (graph->axis_names().empty()) mesh = nullptr;
  auto [known, known_end] = by_pointer_.equal_range(graph.get());
  auto fits = [&](const Function& f) { return f.mesh == mesh && f.seen == seen; };
  for (; known != known_end; ++known)
    if (fits(functions_[known->second])) return functions_[known->second];
  uint64_t hash = graph->structural_hash();
  auto [begin, end] = by_structure_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Function& f = functions_[it->second];
    if (fits(f) && equal(*f.graph, *graph)) return f;
  }

  size_t index = functions_.size();
  std::string symbol = unique_symbol(name);
  functions_.push_back(
      {.graph = graph, .mesh = mesh, .seen = seen, .name = '@' + symbol, .text = {}});
  by_pointer_.emplace(graph.get(), index);
  by_structure_.emplace(hash, index);

  Text header;
  header << "func.func private @" << symbol << '(';
  for (uint32_t i = 0; i < graph->num_inputs(); ++i) {
    header << (i ? ", " : "") << "%arg" << i << ": " << type_text(graph->type(graph->input(i)));
  }
  bool is_ordered = graph->effects() & kOrdered;
  uint32_t num_inputs = graph->num_inputs();
  if (is_ordered) header << (num_inputs ? ", " : "") << "%arg" << num_inputs << ": " << kTokenType;
  header << ')';
  bool any_result = is_ordered || !graph->outputs().empty();
  if (any_result) header << " -> (";
  for (size_t i = 0; i < graph->outputs().size(); ++i)
    header << (i ? ", " : "") << type_text(graph->type(graph->outputs()[i]));
  if (is_ordered) header << (graph->outputs().empty() ? "" : ", ") << kTokenType;
  if (any_result) header << ')';
  FunctionWriter writer(*this, mesh);
  std::string text = writer.write(*graph, header.view(), false, seen);
  Function& f = functions_[index];
  f.text = std::move(text);
  f.longest_chain = writer.longest_chain();
  f.result_chain = writer.result_chain();
  f.result_seen = writer.result_seen();
  return f;
}

GraphRef ModuleWriter::decomposition(const OpDef& op, const AttrsRef& attrs,
                                     std::span<const TypeRef> in_types,
                                     std::span<const TypeRef> out_types) {
  uint64_t key = hash_use(op, attrs, in_types);
  auto [begin, end] = decompositions_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    const Decomposition& d = it->second;
    if (d.op == &op && d.in_types == TypeRefs(in_types) && equal(d.attrs, attrs)) return d.graph;
  }
  GraphRef graph = decomposed(op, attrs, in_types, out_types, transforms(), options_.platform);
  if (split_mesh_) add_resized(*graph, resized_);
  decompositions_.emplace(key, Decomposition{&op, attrs, TypeRefs(in_types), graph});
  return graph;
}

std::string ModuleWriter::main_signature(const Graph& graph) {
  Text header;
  auto place = [&](Text& attrs, const std::vector<ShardingRef>& places, size_t i, TypeRef type,
                   bool of_result) {
    if (places.empty() || !places[i]) return;
    if (!places[i]->memory().empty())
      attrs << (attrs.size() ? ", " : "")
            << "mhlo.memory_kind = " << mlir_string(places[i]->memory());
    if (places[i]->mesh()->size() > 1)
      attrs << (attrs.size() ? ", " : "") << "sdy.sharding = #sdy.sharding"
            << sharding(places[i], type->rank(), of_result);
  };
  header << "func.func public @main(";
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    header << (i ? ", " : "") << "%arg" << i << ": " << type_text(graph.type(graph.input(i)));
    int alias = options_.aliases.empty() ? -1 : options_.aliases[i];
    Text attrs;
    if (alias == EmitOptions::kDonor) attrs << "jax.buffer_donor = true";
    if (alias >= 0) attrs << "tf.aliasing_output = " << alias << " : i32";
    place(attrs, options_.inputs, i, graph.type(graph.input(i)), false);
    if (attrs.size()) header << " {" << attrs.view() << '}';
  }
  header << ')';
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    header << (i ? ", " : " -> (") << type_text(graph.type(graph.outputs()[i]));
    Text attrs;
    if (!options_.result_info.empty())
      attrs << "jax.result_info = " << mlir_string(options_.result_info[i]);
    place(attrs, options_.outputs, i, graph.type(graph.outputs()[i]), true);
    if (attrs.size()) header << " {" << attrs.view() << '}';
  }
  if (!graph.outputs().empty()) header << ')';
  return header.take();
}

// That of an input or output; else the first in the program.
MeshRef ModuleWriter::find_mesh(const Graph& graph) const {
  for (const std::vector<ShardingRef>* places : {&options_.inputs, &options_.outputs})
    for (ShardingRef place : *places)
      if (place && place->mesh()->size() > 1) return place->mesh();
  for (const Op& op : graph.ops()) {
    if (!op.attrs) continue;
    for (const Attr& attr : op.attrs->values()) {
      if (const ShardingRef* place = std::get_if<ShardingRef>(&attr)) return (*place)->mesh();
      if (const MeshRef* mesh = std::get_if<MeshRef>(&attr)) return *mesh;
    }
  }
  return nullptr;
}

std::string ModuleWriter::write(const Graph& graph) {
  is_one_kernel_ = is_kernel_call(graph);
  if (!options_.aliases.empty() && options_.aliases.size() != graph.num_inputs()) {
    fail(ErrorKind::kValue, "[emit_stablehlo] expected one alias per input (", graph.num_inputs(),
         "); got ", options_.aliases.size());
  }
  for (int alias : options_.aliases) {
    if (alias >= static_cast<int>(graph.outputs().size())) {
      fail(ErrorKind::kValue, "[emit_stablehlo] expected aliases among the ",
           graph.outputs().size(), " outputs; got ", alias);
    }
  }
  if (!options_.result_info.empty() && options_.result_info.size() != graph.outputs().size()) {
    fail(ErrorKind::kValue, "[emit_stablehlo] expected one result_info per output (",
         graph.outputs().size(), "); got ", options_.result_info.size());
  }
  if (options_.devices.size() > 1) split_mesh_ = find_mesh(graph);
  if (split_mesh_) add_resized(graph, resized_);
  std::string main = FunctionWriter(*this).write(graph, main_signature(graph), true);
  size_t size = main.size() + 200;
  for (const Function& f : functions_) size += f.text.size();

  Text out;
  out.reserve(size);
  auto num_partitions = static_cast<int64_t>(std::max<size_t>(1, options_.devices.size()));
  for (const MeshSymbol& m : meshes_) num_partitions = std::max(num_partitions, m.mesh->size());
  const std::string& name = options_.module_name;
  out << "module @" << (is_bare_identifier(name) ? name : mlir_string(name));
  if (!has_plain_ops_only(options_.platform))
    out << " attributes {mhlo.num_partitions = " << num_partitions
        << " : i32, mhlo.num_replicas = 1 : i32}";
  out << " {\n";
  for (const MeshSymbol& m : meshes_)
    out << "  sdy.mesh " << m.symbol << " = " << m.definition << '\n';
  out << main;
  for (const Function& f : functions_) out << f.text;
  out << "}\n";
  locations_.append_definitions(out);
  return out.take();
}

namespace {

// "f > g > ...": the calls and other ops with graphs down to the deepest graph, the first of them.
std::string deepest_nesting(const Graph& graph) {
  constexpr int kShown = 5;
  Text out;
  const Graph* at = &graph;
  for (int shown = 0; at->depth() > 1 && shown < kShown; ++shown) {
    const Graph* inner = nullptr;
    for (const Op& op : at->ops()) {
      if (inner || !op.attrs) continue;
      for_each_graph(op.attrs, [&](const GraphRef& g) {
        if (!inner && g->depth() + 1 == at->depth()) inner = g.get();
      });
      if (inner) out << (shown ? " > " : "") << called_name(op);
    }
    at = inner;
  }
  return out.take();
}

uint64_t saturating_add(uint64_t x, uint64_t y) { return x + y < x ? UINT64_MAX : x + y; }

uint64_t count_expanded(const Graph& graph, std::unordered_map<const Graph*, uint64_t>& known) {
  uint64_t count = graph.ops().size();
  if (graph.depth() == 1) return count;
  for (const Op& op : graph.ops()) {
    if (!op.attrs) continue;
    for_each_graph(op.attrs, [&](const GraphRef& inner) {
      auto found = known.find(inner.get());
      if (found == known.end()) {
        found = known.emplace(inner.get(), count_expanded(*inner, known)).first;
      }
      count = saturating_add(count, found->second);
    });
  }
  return count;
}

}  // namespace

uint64_t expanded_ops(const Graph& graph) {
  std::unordered_map<const Graph*, uint64_t> known;
  return count_expanded(graph, known);
}

void check_expansion(const Graph& graph) {
  uint64_t count = expanded_ops(graph);
  if (count <= kMaxExpandedOps) return;
  std::string calls = graph.depth() == 1
                          ? ""
                          : cat(": functions that call others several times stand in each other (",
                                deepest_nesting(graph), ")");
  fail(ErrorKind::kDepth, "expected at most ", kMaxExpandedOps,
       " operations once every call is replaced by what it calls, which is how XLA compiles; got ",
       count == UINT64_MAX ? "2**64 or more" : std::to_string(count), calls);
}

bool is_kernel_call(const Graph& graph) {
  if (graph.ops().size() != 1) return false;
  const Op& op = graph.ops()[0];
  const OpDef& op_def = def(*op.info);
  if (!op_def.kernel) return false;
  TypeRefs in_types;
  for (Value v : graph.operands(op)) in_types.push_back(graph.type(v));
  auto kernel = op_def.kernel({in_types, graph.result_types(op), op.attrs.get(), {}});
  return kernel && !is_long_kernel(kernel->name);
}

EmittedModule emit_stablehlo(const Graph& graph, const EmitOptions& options) {
  if (graph.depth() > kMaxEmittedDepth + 1) {
    fail(ErrorKind::kDepth, "expected functions, loops and branches at most ", kMaxEmittedDepth,
         " deep in each other; got ", graph.depth() - 1, " (", deepest_nesting(graph), ")");
  }
  ModuleWriter module(options);
  std::string text = module.write(graph);
  return {std::move(text),
          std::move(module.host_callbacks()),
          std::move(module.inspections()),
          std::move(module.targets()),
          module.barriers(),
          module.surveyor().survey()};
}

}  // namespace weft
