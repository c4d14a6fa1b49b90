// ffi_call: functions of other libraries, which the runtime knows by name, as ops of a program.
#include "weft/ffi.h"

#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/host_batch.h"
#include "ops/def/partition.h"
#include "ops/def/plain.h"
#include "ops/def/presets.h"
#include "ops/host/family.h"

namespace weft {

namespace {

std::string joined(std::span<const std::string> names) {
  Text t;
  for (size_t i = 0; i < names.size(); ++i) t << (i ? ", " : "") << names[i];
  return t.take();
}

// "[dense<[1, 0]> : tensor<2xindex>, ...]"; the layout of a token comes last.
std::string layout_list(std::span<const Dims> layouts, bool token) {
  Text t;
  t << '[';
  for (size_t i = 0; i < layouts.size(); ++i) {
    t << (i ? ", " : "") << "dense<";
    if (!layouts[i].empty()) t << bracketed(layouts[i]);
    t << "> : tensor<" << layouts[i].size() << "xindex>";
  }
  if (token) t << (layouts.empty() ? "" : ", ") << "dense<> : tensor<0xindex>";
  t << ']';
  return t.take();
}

// XLA's partitioner has to be told where a call with effects runs: on the first device; within a
// shard_map, on each. "": there is no choice.
std::string place_of_effect(EmitCtx& c, bool token) {
  if (!may_be_split(c)) return {};
  MeshRef mesh = c.manual_mesh() ? make_mesh({}) : device_mesh(0);
  std::string place = c.sharding(make_sharding({.mesh = mesh}), 0);
  Text t;
  for (size_t i = 0; i < std::max<size_t>(c.out_types.size() + token, 1); ++i)
    t << (i ? ", " : "") << place;
  return cat(" {sdy.sharding = #sdy.sharding_per_value<[", t.view(), "]>}");
}

}  // namespace

std::string ffi_call_text(EmitCtx& c, const FfiCall& call) {
  if (has_plain_ops_only(c.platform()))
    fail(ErrorKind::kNotImplemented, "[ffi_call] expected no call of a function outside of the ",
         "program for platform ", c.platform(), "; got one of ", call.target);
  c.note_target(call.target);
  bool token = !c.token().empty();
  Text t;
  t << "\"stablehlo.custom_call\"("
    << (call.operands.empty() ? operand_list(c) : joined(call.operands))
    << ") <{api_version = " << call.api_version << " : i32, backend_config = ";
  if (call.api_version == FfiCall::kTyped) {
    t << '{' << call.attributes << '}';
  } else {
    t << mlir_string(call.attributes);
  }
  t << ", call_target_name = " << mlir_string(call.target)
    << ", has_side_effect = " << (call.has_side_effect ? "true" : "false");
  if (!call.operand_layouts.empty() || !call.result_layouts.empty())
    t << ", operand_layouts = " << layout_list(call.operand_layouts, token)
      << ", result_layouts = " << layout_list(call.result_layouts, token);
  if (!call.aliases.empty()) {
    t << ", output_operand_aliases = [";
    for (size_t i = 0; i < call.aliases.size(); ++i) {
      auto [operand, result] = call.aliases[i];
      t << (i ? ", " : "") << "#stablehlo.output_operand_alias<output_tuple_indices = [";
      if (c.out_types.size() + token > 1) t << result;
      t << "], operand_index = " << operand << ", operand_tuple_indices = []>";
    }
    t << ']';
  }
  t << "}>";
  if (call.has_side_effect) t << place_of_effect(c, token);
  t << " : " << signature(c);
  return t.take();
}

void emit_ffi_call(EmitCtx& c, const FfiCall& call) { emit_results(c, ffi_call_text(c, call)); }

namespace {

constexpr std::string_view kAliases = "input_output_aliases";

void check_layouts(const InferCtx& c, std::string_view what, const std::vector<Dims>& layouts,
                   std::span<const TypeRef> types) {
  if (layouts.size() != types.size())
    c.fail(ErrorKind::kValue, "expected as many ", what, " as arrays (", types.size(), "); got ",
           layouts.size());
  for (size_t i = 0; i < layouts.size(); ++i) {
    Dims sorted = layouts[i];
    std::sort(sorted.begin(), sorted.end());
    if (!(sorted == count_up(types[i]->rank())))
      c.fail(ErrorKind::kValue, "expected ", what, "[", i, "] to order the ", types[i]->rank(),
             " axes of ", types[i], "; got ", layouts[i]);
  }
}

void check_aliases(const InferCtx& c, std::span<const TypeRef> results) {
  for (const Dims& pair : c.attr().ints_list(kAliases)) {
    auto in_range = [](int64_t i, size_t n) { return i >= 0 && i < static_cast<int64_t>(n); };
    if (pair.size() != 2 || !in_range(pair[0], c.size()) || !in_range(pair[1], results.size()))
      c.fail(ErrorKind::kValue, "expected ", kAliases, " from one of ", c.size(),
             " operands to one of ", results.size(), " results; got ", pair);
    TypeRef from = c.in(static_cast<size_t>(pair[0]));
    TypeRef to = results[static_cast<size_t>(pair[1])];
    if (from != to)
      c.fail(ErrorKind::kShape, "expected ", kAliases, " between arrays of one type; got operand ",
             pair[0], ": ", from, " and result ", pair[1], ": ", to);
  }
}

TypeRefs infer_ffi_call(const InferCtx& c) {
  const std::vector<TypeRef>& results = c.attr().types("result_avals");
  if (c.attr().string("target_name").empty())
    c.fail(ErrorKind::kValue, "expected the name of a target; got ''");
  if (int64_t version = c.attr().integer("custom_call_api_version");
      version < 1 || version > FfiCall::kTyped)
    c.fail(ErrorKind::kValue, "expected custom_call_api_version 1, 2, 3 or 4; got ", version);
  if (c.attr().integer("custom_call_api_version") == FfiCall::kTyped &&
      !c.attr().is_none("legacy_backend_config"))
    c.fail(ErrorKind::kValue, "expected custom_call_api_version below ", FfiCall::kTyped,
           " with legacy_backend_config; got ", FfiCall::kTyped);
  if (!c.attr().is_none("input_layouts"))
    check_layouts(c, "input_layouts", c.attr().ints_list("input_layouts"), c.operands);
  if (!c.attr().is_none("output_layouts"))
    check_layouts(c, "output_layouts", c.attr().ints_list("output_layouts"), results);
  check_aliases(c, results);
  return TypeRefs(results.begin(), results.end());
}

// Row-major, or as given (major to minor), from minor to major.
std::vector<Dims> layouts_of(const AttrRecord& attrs, std::string_view name,
                             std::span<const TypeRef> types) {
  std::vector<Dims> out;
  for (size_t i = 0; i < types.size(); ++i) {
    Dims axes = attrs.is_none(name) ? count_up(types[i]->rank()) : attrs.ints_list(name)[i];
    std::reverse(axes.begin(), axes.end());
    out.push_back(axes);
  }
  return out;
}

void emit_call(EmitCtx& c) {
  FfiCall call{.target = c.attr().string("target_name")};
  call.api_version = c.attr().integer("custom_call_api_version");
  call.attributes = c.attr().string("attributes");
  if (!c.attr().is_none("legacy_backend_config"))
    call.attributes = c.attr().string("legacy_backend_config");
  call.operand_layouts = layouts_of(c.attr(), "input_layouts", c.in_types);
  call.result_layouts = layouts_of(c.attr(), "output_layouts", c.out_types);
  for (const Dims& pair : c.attr().ints_list(kAliases))
    call.aliases.emplace_back(static_cast<size_t>(pair[0]), static_cast<size_t>(pair[1]));
  call.has_side_effect = c.attr().boolean("has_side_effect");
  if (call.has_side_effect) check_place_of_effect(c, "ffi_call");
  emit_ffi_call(c, call);
}

// A new leading axis is the most major one. Memory is lent only between arrays of one type.
AttrsRef widened(const AttrsRef& attrs, const Mask& grown, const Mask& whole) {
  auto with_axis = [&](std::string_view name, auto&& gains) -> Attr {
    if (attrs->is_none(name)) return std::monostate{};
    std::vector<Dims> layouts = attrs->ints_list(name);
    for (size_t i = 0; i < layouts.size(); ++i)
      if (gains(i)) layouts[i] = inserted(shifted(layouts[i], 0), 0, 0);
    return layouts;
  };
  std::vector<Dims> aliases;
  for (const Dims& pair : attrs->ints_list(kAliases))
    if (whole[static_cast<size_t>(pair[0])]) aliases.push_back(pair);
  return attrs->with(
      {{"input_layouts", with_axis("input_layouts", [&](size_t i) { return grown[i]; })},
       {"output_layouts", with_axis("output_layouts", [](size_t) { return true; })},
       {kAliases, aliases}});
}

OpDef ffi_call_op() {
  OpDef d;
  d.name = "ffi_call";
  d.doc = "The results of a function of another library, which the runtime knows by name.";
  d.attrs = {{"target_name", AttrType::kString},
             {"result_avals", AttrType::kTypes},
             {"attributes", AttrType::kString, AttrSpec::kHideDefault, std::string()},
             {"has_side_effect", AttrType::kBool, AttrSpec::kHideDefault, false},
             {"vmap_method", AttrType::kString, AttrSpec::kHideDefault},
             {"input_layouts", AttrType::kIntsList, AttrSpec::kHideDefault},
             {"output_layouts", AttrType::kIntsList, AttrSpec::kHideDefault},
             {kAliases.data(), AttrType::kIntsList, AttrSpec::kHideDefault, std::vector<Dims>()},
             {"custom_call_api_version", AttrType::kInt, AttrSpec::kHideDefault, FfiCall::kTyped},
             {"legacy_backend_config", AttrType::kString, AttrSpec::kHideDefault}};
  d.multiple_results = true;
  d.effects = kUnordered | kActs;
  d.effects_if = "has_side_effect";
  d.infer = infer_ffi_call;
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = [](JvpCtx& c) -> Vals {
    fail(ErrorKind::kNotImplemented, "[ffi_call] expected no derivative to be asked of the target ",
         c.attr().string("target_name"),
         "; give the function that calls it one with custom_jvp or custom_vjp");
  };
  d.batch = [](BatchCtx& c) { batch_by_method(c, widened); };
  d.emit = emit_call;
  d.cost = [](const CostCtx& c) { return cost_bytes(c); };
  return d;
}

}  // namespace

void register_ffi(OpRegistry& r) { r.add(ffi_call_op()); }

}  // namespace weft
