// The C API (weft/c_api.h) over the C++ one. Every function checks its arguments, and no exception
// leaves it.
#include "weft/c_api.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_set>

#include "handles.h"

struct weft_string {
  std::string text;
};

struct weft_builder {
  weft::GraphBuilder builder;
  // The values that it gave: any other number may be of another builder.
  std::unordered_set<uint32_t> values;
};

namespace {

using namespace weft::capi;
using weft::cat;

weft_text text_of(std::string_view text) { return {text.data(), text.size()}; }

void give(weft_graph** out, weft::GraphRef graph) {
  required(out, "a place for the graph") = new weft_graph{std::move(graph)};
}

void give(weft_string** out, std::string text) {
  required(out, "a place for the text") = new weft_string{std::move(text)};
}

void check_number(const weft::Graph& graph, size_t n, const char* what) {
  if (n == graph.num_inputs()) return;
  throw BadArgument{cat("expected ", what, " of ", graph.num_inputs(), " inputs; got ", n)};
}

weft::Mask mask_of(const weft::Graph& graph, const uint8_t* mask, size_t n) {
  check_number(graph, n, "a mask");
  weft::Mask result;
  for (uint8_t m : list(mask, n, "a mask")) {
    if (m > 1) throw BadArgument{cat("expected 0 or 1 in a mask; got ", int{m})};
    result.push_back(m == 1);
  }
  return result;
}

std::vector<uint32_t> numbers_of(const uint32_t* inputs, size_t n) {
  std::span<const uint32_t> numbers = list(inputs, n, "numbers of inputs");
  return {numbers.begin(), numbers.end()};
}

bool is_known(const weft::Graph& graph, weft_value value) {
  weft::Value v{value.id};
  if (v.is_none()) return false;
  return v.is_literal() ? v.literal_index() < graph.num_literals() : v.id < graph.num_values();
}

weft::Value known(const weft_builder& b, weft_value value) {
  if (b.values.contains(value.id)) return weft::Value{value.id};
  throw BadArgument{cat("expected a value of this builder; got number ", value.id)};
}

weft::Values known(const weft_builder& b, const weft_value* values, size_t n) {
  weft::Values result;
  for (weft_value v : list(values, n, "values")) result.push_back(known(b, v));
  return result;
}

weft_value note(weft_builder& b, weft::Value v) {
  b.values.insert(v.id);
  return {v.id};
}

// Values to where the caller wants them; none where there is not room for all.
void give(weft_builder& b, const weft::Values& values, weft_value* out, size_t room) {
  if (values.size() > room)
    throw BadArgument{cat("expected room for ", values.size(), " values; got ", room)};
  if (!values.empty()) required(out, "a place for values");
  for (size_t i = 0; i < values.size(); ++i) out[i] = note(b, values[i]);
}

const weft::Op* op_of(const weft_graph* graph, size_t op) {
  if (!graph || op >= graph->graph->ops().size()) return nullptr;
  return &graph->graph->op(static_cast<uint32_t>(op));
}

const weft::Op& required_op(const weft_graph* graph, size_t op) {
  size_t n = graph_of(graph)->ops().size();
  if (op < n) return graph->graph->op(static_cast<uint32_t>(op));
  throw BadArgument{cat("expected the number of an op below ", n, "; got ", op)};
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    if (comma) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace

extern "C" {

uint32_t weft_abi_version(void) { return WEFT_ABI_VERSION; }
const char* weft_version(void) { return WEFT_VERSION; }

weft_text weft_text_of(const char* string) { return {string, string ? std::strlen(string) : 0}; }

weft_text weft_string_text(const weft_string* string) {
  return string ? text_of(string->text) : weft_text{};
}
void weft_string_free(weft_string* string) { delete string; }

weft_error_kind weft_error_get_kind(const weft_error* error) {
  return error ? error->kind : weft_error_kind{};
}
const char* weft_error_message(const weft_error* error) {
  return error ? error->message.c_str() : "";
}
size_t weft_error_line(const weft_error* error) { return error ? error->place.line : 0; }
size_t weft_error_column(const weft_error* error) { return error ? error->place.column : 0; }
void weft_error_free(weft_error* error) {
  if (error != &out_of_memory()) delete error;
}

weft_error* weft_type_parse(weft_text text, weft_type* type) {
  return guarded(
      [&] { required(type, "a place for the type") = handle(weft::parse_type(view(text))); });
}

weft_error* weft_type_make(weft_text dtype, const int64_t* dims, size_t rank, weft_type* type) {
  return guarded([&] {
    std::optional<weft::DType> known = weft::parse_dtype(view(dtype));
    if (!known) {
      throw weft::Error(weft::ErrorKind::kDtype,
                        cat("expected the name of a dtype; got \"", view(dtype), '"'));
    }
    required(type, "a place for the type") =
        handle(weft::make_type(*known, list(dims, rank, "dimensions")));
  });
}

weft_text weft_type_dtype(weft_type type) {
  return type ? text_of(weft::short_name(type_of(type)->dtype())) : weft_text{};
}
size_t weft_type_rank(weft_type type) { return type ? type_of(type)->shape().size() : 0; }
const int64_t* weft_type_dims(weft_type type) {
  return type ? type_of(type)->shape().data() : nullptr;
}
int64_t weft_type_num_elements(weft_type type) { return type ? type_of(type)->num_elements() : 0; }
int64_t weft_type_num_bytes(weft_type type) { return type ? type_of(type)->num_bytes() : 0; }

weft_error* weft_graph_parse(weft_text text, weft_graph** graph) {
  return guarded([&] { give(graph, weft::parse(view(text))); });
}
weft_error* weft_graph_read_stablehlo(weft_text text, weft_graph** graph) {
  return guarded([&] { give(graph, weft::read_stablehlo(view(text))); });
}
weft_error* weft_graph_print(const weft_graph* graph, weft_string** text) {
  return guarded([&] { give(text, weft::print(*graph_of(graph))); });
}
weft_error* weft_graph_share(const weft_graph* graph, weft_graph** same) {
  return guarded([&] { give(same, graph_of(graph)); });
}
void weft_graph_free(weft_graph* graph) { delete graph; }

weft_error* weft_graph_verify(const weft_graph* graph) {
  return guarded([&] { weft::verify(*graph_of(graph)); });
}
int weft_graph_equal(const weft_graph* a, const weft_graph* b) {
  return a && b ? weft::equal(*a->graph, *b->graph) : a == b;
}
uint64_t weft_graph_hash(const weft_graph* graph) {
  return graph ? graph->graph->structural_hash() : 0;
}

size_t weft_graph_num_inputs(const weft_graph* graph) {
  return graph ? graph->graph->num_inputs() : 0;
}
size_t weft_graph_num_outputs(const weft_graph* graph) {
  return graph ? graph->graph->outputs().size() : 0;
}
size_t weft_graph_num_ops(const weft_graph* graph) {
  return graph ? graph->graph->ops().size() : 0;
}
weft_type weft_graph_input_type(const weft_graph* graph, size_t input) {
  if (input >= weft_graph_num_inputs(graph)) return nullptr;
  return handle(graph->graph->input_types()[input]);
}
weft_type weft_graph_output_type(const weft_graph* graph, size_t output) {
  return weft_graph_value_type(graph, weft_graph_output(graph, output));
}

weft_value weft_graph_output(const weft_graph* graph, size_t output) {
  if (output >= weft_graph_num_outputs(graph)) return {WEFT_NO_VALUE};
  return {graph->graph->outputs()[output].id};
}
weft_type weft_graph_value_type(const weft_graph* graph, weft_value value) {
  if (!graph || !is_known(*graph->graph, value)) return nullptr;
  return handle(graph->graph->type(weft::Value{value.id}));
}
weft_error* weft_graph_literal(const weft_graph* graph, weft_value value, weft_string** text) {
  return guarded([&] {
    weft::Value v{value.id};
    if (!is_known(*graph_of(graph), value) || !v.is_literal())
      throw BadArgument{cat("expected a scalar of the program; got value ", value.id)};
    give(text, cat(graph->graph->literal(v)));
  });
}

weft_text weft_op_name(const weft_graph* graph, size_t op) {
  const weft::Op* found = op_of(graph, op);
  return found ? text_of(found->info->name) : weft_text{};
}
size_t weft_op_num_operands(const weft_graph* graph, size_t op) {
  const weft::Op* found = op_of(graph, op);
  return found ? found->num_operands : 0;
}
weft_value weft_op_operand(const weft_graph* graph, size_t op, size_t operand) {
  if (operand >= weft_op_num_operands(graph, op)) return {WEFT_NO_VALUE};
  return {graph->graph->operands(*op_of(graph, op))[operand].id};
}
size_t weft_op_num_results(const weft_graph* graph, size_t op) {
  const weft::Op* found = op_of(graph, op);
  return found ? found->num_results : 0;
}
weft_value weft_op_result(const weft_graph* graph, size_t op, size_t result) {
  if (result >= weft_op_num_results(graph, op)) return {WEFT_NO_VALUE};
  return {op_of(graph, op)->results_begin + static_cast<uint32_t>(result)};
}
weft_error* weft_op_print(const weft_graph* graph, size_t op, weft_string** text) {
  return guarded([&] { give(text, weft::print_op(*graph_of(graph), required_op(graph, op), {})); });
}
weft_error* weft_op_location(const weft_graph* graph, size_t op, weft_string** text) {
  return guarded([&] { give(text, weft::loc_text(required_op(graph, op).loc)); });
}

weft_error* weft_list_ops(weft_string** text) {
  return guarded([&] {
    weft::Text out;
    for (const weft::OpDef* op : weft::registry().all()) out << op->name << "  " << op->doc << '\n';
    give(text, out.take());
  });
}

weft_error* weft_builder_new(weft_builder** builder) {
  return guarded([&] { required(builder, "a place for the builder") = new weft_builder; });
}
void weft_builder_free(weft_builder* builder) { delete builder; }

weft_error* weft_builder_input(weft_builder* builder, weft_type type, weft_value* value) {
  return guarded([&] {
    weft_builder& b = required(builder, "a builder");
    required(type, "a type");
    required(value, "a place for the value") = note(b, b.builder.input(type_of(type)));
  });
}

weft_error* weft_builder_scalar(weft_builder* builder, weft_text dtype, double x,
                                weft_value* value) {
  return guarded([&] {
    weft_builder& b = required(builder, "a builder");
    required(value, "a place for the value");
    std::optional<weft::DType> known = weft::parse_dtype(view(dtype));
    if (!known || weft::is_key(*known)) {
      throw weft::Error(weft::ErrorKind::kDtype,
                        cat("expected the name of a dtype of numbers; got \"", view(dtype), '"'));
    }
    *value = note(b, b.builder.literal(weft::make_literal(*known, x)));
  });
}

weft_error* weft_builder_constant(weft_builder* builder, weft_type type, const void* bytes,
                                  size_t num_bytes, weft_value* value) {
  return guarded([&] {
    weft_builder& b = required(builder, "a builder");
    required(type, "a type");
    required(value, "a place for the value");
    std::span<const char> given = list(static_cast<const char*>(bytes), num_bytes, "bytes");
    weft::ObjectRef held =
        weft::make_constant(type_of(type), std::string(given.begin(), given.end()));
    const weft::OpDef& op = weft::registry().get("constant");
    weft::AttrsRef attrs = weft::AttrRecord::make(op.name, op.attrs, {{"value", held}});
    *value = note(b, b.builder.add(op, {}, attrs)[0]);
  });
}

weft_error* weft_builder_op(weft_builder* builder, weft_text name, const weft_value* operands,
                            size_t num_operands, weft_text attributes, weft_value* results,
                            size_t max_results, size_t* num_results) {
  return guarded([&] {
    weft_builder& b = required(builder, "a builder");
    const weft::OpDef& op = weft::registry().get(view(name));
    weft::Values args = known(b, operands, num_operands);
    weft::AttrsRef attrs = weft::parse_attrs(view(attributes), op);
    weft::Values made = b.builder.add(op, args, attrs);
    give(b, made, results, max_results);
    if (num_results) *num_results = made.size();
  });
}

weft_error* weft_builder_inline(weft_builder* builder, const weft_graph* graph,
                                const weft_value* arguments, size_t num_arguments,
                                weft_value* outputs, size_t max_outputs) {
  return guarded([&] {
    weft_builder& b = required(builder, "a builder");
    const weft::Graph& inlined = *graph_of(graph);
    check_number(inlined, num_arguments, "arguments");
    weft::Values args = known(b, arguments, num_arguments);
    for (size_t i = 0; i < args.size(); ++i) {
      weft::TypeRef wanted = inlined.input_types()[i], got = b.builder.type(args[i]);
      if (wanted != got)
        throw BadArgument{cat("expected argument ", i, " to be ", wanted, "; got ", got)};
    }
    give(b, b.builder.inline_graph(inlined, args), outputs, max_outputs);
  });
}

weft_error* weft_builder_set_location(weft_builder* builder, weft_text file, int32_t line,
                                      weft_text function) {
  return guarded([&] {
    required(builder, "a builder")
        .builder.set_loc(weft::make_loc(view(file), line, view(function)));
  });
}

weft_type weft_builder_type(const weft_builder* builder, weft_value value) {
  if (!builder || !builder->values.contains(value.id)) return nullptr;
  return handle(builder->builder.type(weft::Value{value.id}));
}

weft_error* weft_builder_finish(weft_builder* builder, const weft_value* outputs,
                                size_t num_outputs, weft_graph** graph) {
  return guarded([&] {
    weft_builder& b = required(builder, "a builder");
    weft::Values values = known(b, outputs, num_outputs);
    required(graph, "a place for the graph");
    give(graph, b.builder.finish(values));
    b.values.clear();
  });
}

weft_error* weft_grad(const weft_graph* graph, const uint32_t* inputs, size_t num_inputs,
                      weft_graph** gradients) {
  return guarded(
      [&] { give(gradients, weft::grad(graph_of(graph), numbers_of(inputs, num_inputs))); });
}

weft_error* weft_value_and_grad(const weft_graph* graph, const uint32_t* inputs, size_t num_inputs,
                                weft_graph** value_and_gradients) {
  return guarded([&] {
    give(value_and_gradients,
         weft::value_and_grad(graph_of(graph), numbers_of(inputs, num_inputs)));
  });
}

weft_error* weft_jvp(const weft_graph* graph, const uint8_t* mask, size_t num_inputs,
                     weft_graph** dual) {
  return guarded([&] {
    const weft::GraphRef& g = graph_of(graph);
    weft::JvpOptions options{.in_mask = mask_of(*g, mask, num_inputs), .instantiate = {}};
    for (weft::TypeRef type : g->output_types())
      options.instantiate.push_back(weft::is_inexact(type->dtype()));
    give(dual, weft::jvp(g, options)->graph);
  });
}

weft_error* weft_vjp(const weft_graph* graph, const uint8_t* mask, size_t num_inputs,
                     uint8_t* has_cotangent, weft_graph** pulled) {
  return guarded([&] {
    const weft::GraphRef& g = graph_of(graph);
    auto result = weft::vjp(g, {.in_mask = mask_of(*g, mask, num_inputs)});
    give(pulled, result->graph);
    for (size_t i = 0; has_cotangent && i < result->ct_mask.size(); ++i)
      has_cotangent[i] = result->ct_mask[i];
  });
}

weft_error* weft_transpose(const weft_graph* graph, const uint8_t* mask, size_t num_inputs,
                           weft_graph** transposed) {
  return guarded([&] {
    const weft::GraphRef& g = graph_of(graph);
    weft::TransposeOptions options{.linear = mask_of(*g, mask, num_inputs),
                                   .cotangents = weft::Mask(g->outputs().size(), true),
                                   .instantiate = true};
    give(transposed, weft::transpose(g, options)->graph);
  });
}

weft_error* weft_jacobian(const weft_graph* graph, const uint8_t* mask, size_t num_inputs,
                          int forward, weft_graph** jacobian) {
  return guarded([&] {
    const weft::GraphRef& g = graph_of(graph);
    weft::JacobianOptions options{mask_of(*g, mask, num_inputs), g->outputs().size(), forward != 0};
    give(jacobian, weft::jacobian(g, options)->graph);
  });
}

weft_error* weft_vmap(const weft_graph* graph, const int32_t* axes, size_t num_inputs, int64_t size,
                      weft_graph** mapped) {
  return guarded([&] {
    const weft::GraphRef& g = graph_of(graph);
    check_number(*g, num_inputs, "axes");
    weft::VmapOptions options{.in_dims = {}, .size = size};
    for (int32_t axis : list(axes, num_inputs, "axes")) options.in_dims.push_back(axis);
    options.out_dims = weft::BatchDims(g->outputs().size(), 0);
    give(mapped, weft::vmap(g, options)->graph);
  });
}

weft_error* weft_optimize(const weft_graph* graph, weft_graph** optimized) {
  return guarded([&] { give(optimized, weft::optimize(graph_of(graph))); });
}

weft_error* weft_run_passes(const weft_graph* graph, weft_text passes, weft_graph** result) {
  return guarded([&] { give(result, weft::run_passes(graph_of(graph), split(view(passes)))); });
}

weft_error* weft_list_passes(weft_string** text) {
  return guarded([&] {
    weft::Text out;
    for (const weft::Pass& pass : weft::all_passes()) out << pass.name << "  " << pass.doc << '\n';
    give(text, out.take());
  });
}

weft_error* weft_analyze(const weft_graph* graph, weft_analysis* analysis) {
  return guarded([&] {
    size_t size = read_struct(required(analysis, "a place for the analysis")).struct_size;
    weft::Analysis a = weft::analyze(*graph_of(graph));
    weft_analysis result{.struct_size = size,
                         .ops = a.total.ops,
                         .flops = a.total.cost.flops,
                         .transcendentals = a.total.cost.transcendentals,
                         .bytes = a.total.cost.bytes,
                         .critical_path = a.critical_path,
                         .peak_bytes = a.peak_bytes,
                         .input_bytes = a.input_bytes,
                         .output_bytes = a.output_bytes};
    std::memcpy(analysis, &result, std::min(size, sizeof result));
  });
}

weft_error* weft_report(const weft_graph* graph, weft_string** text) {
  return guarded([&] { give(text, weft::to_text(weft::analyze(*graph_of(graph)))); });
}

weft_error* weft_emit_stablehlo(const weft_graph* graph, const weft_emit_options* options,
                                weft_string** text) {
  return guarded([&] {
    weft::EmitOptions own;
    if (options) {
      weft_emit_options given = read_struct(*options);
      if (given.module_name.size) own.module_name = view(given.module_name);
      if (given.platform.size) own.platform = view(given.platform);
      own.locations = given.locations != 0;
    }
    give(text, weft::emit_stablehlo(*graph_of(graph), own).text);
  });
}

}  // extern "C"
