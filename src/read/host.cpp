// Random bits, tokens, what says how values are split over devices, and calls of functions outside
// of the program.
#include <algorithm>

#include "ops/def/limits.h"
#include "read/linalg.h"
#include "read/op_text.h"
#include "weft/registry.h"

namespace weft::reader {

namespace {

// ---- Random numbers

void rng_bit_generator(OpText& op) {
  op.expect_operands(1);
  std::string_view name = op.keyword({"algorithm", "rng_algorithm"});
  constexpr std::string_view kNames[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
  int64_t algorithm = 0;
  while (algorithm < 3 && kNames[algorithm] != name) ++algorithm;
  if (algorithm == 3) op.fail("expected the algorithm DEFAULT, THREE_FRY or PHILOX; got ", name);
  TypeRef bits = op.out_type(1);
  DType drawn = bits->dtype();
  if (is_signed_int(drawn)) {
    for (DType d : {DType::kU8, DType::kU16, DType::kU32, DType::kU64})
      if (info(d).bits == info(drawn).bits) drawn = d;
  }
  Vals made = weft::apply("rng_bit_generator", {op.x(0)},
                          {{"algorithm", algorithm}, {"dtype", drawn}, {"shape", bits->shape()}});
  op.result(made[0]);
  op.result(drawn == bits->dtype()
                ? made[1]
                : apply1("bitcast_convert_type", {made[1]}, {{"new_dtype", bits->dtype()}}));
}

void rng(OpText& op) {
  op.expect_operands(3);
  std::string_view distribution = op.keyword({"distribution", "rng_distribution"});
  if (distribution != "UNIFORM") op.refuse("expected the distribution UNIFORM; got ", distribution);
  op.result(apply1("rng_uniform", {op.x(0), op.x(1)}, {{"shape", op.out_type()->shape()}}));
}

// ---- Devices

// Values and types are of whole arrays; how they are split changes neither.
void identity(OpText& op) {
  if (op.size() != op.types.size())
    op.fail("expected as many results as operands; got ", op.types.size(), " and ", op.size());
  for (size_t i = 0; i < op.size(); ++i)
    op.operands[i].is_token() ? op.results.push_back({}) : op.result(op.x(i));
}

// Among groups of one device each these give what they take.
void within_groups(OpText& op) {
  std::optional<std::string_view> groups = op.find({"replica_groups", "source_target_pairs"});
  bool alone = false;
  if (groups) {
    std::string_view text = op.document.resolved(*groups);
    size_t type = text.rfind("tensor<");
    bool is_permutation = op.find("source_target_pairs").has_value();
    std::string_view shape = type == text.npos ? std::string_view() : text.substr(type + 7);
    alone =
        is_permutation ? text.find("dense<0>") != text.npos : shape.find("x1xi64>") != shape.npos;
  }
  if (!alone)
    op.refuse(
        "expected groups of one device each: programs are read as they are for whole arrays"
        "\n  Lower the program without shard_map, or for one device.");
  for (size_t i = 0; i < op.size(); ++i) op.result(op.x(i));
}

void first_device(OpText& op) { op.results.push_back(op.b.literal(zero(op.out_type()->dtype()))); }

// Tokens, and ops without results that only say how values are split.
void token(OpText& op) { op.results = Values(op.types.size(), Value{}); }

// ---- Functions outside

// backend_config = {uplo = 76 : ui8}, or in mhlo.backend_config
NamedList config_of(const OpText& op) {
  for (std::string_view name : {"mhlo.backend_config", "backend_config"})
    if (std::optional<std::string_view> value = op.find(name);
        value && op.document.resolved(*value).starts_with('{'))
      return op.document.fields(*value);
  return {};
}

// Written from the minor to the major axis; weft's are from the major to the minor one.
std::vector<Dims> layouts(const OpText& op, std::string_view value) {
  std::vector<Dims> all;
  for (std::string_view layout : op.document.list(value)) {
    all.push_back(op.document.ints(layout));
    std::reverse(all.back().begin(), all.back().end());
  }
  return all;
}

// Pairs of an operand and the result that takes its memory.
std::vector<Dims> aliases(const OpText& op) {
  std::vector<Dims> all;
  std::optional<std::string_view> value = op.find("output_operand_aliases");
  if (!value) return all;
  for (std::string_view alias : op.document.list(*value)) {
    Dims pair{0, 0};
    for (const Named& field : op.document.fields(alias)) {
      if (field.name == "operand_index") pair[0] = op.document.integer(field.value);
      if (field.name != "output_tuple_indices") continue;
      Dims indices = op.document.ints(field.value);
      if (!indices.empty()) pair[1] = indices[0];
    }
    all.push_back(pair);
  }
  return all;
}

void foreign(OpText& op, const std::string& target) {
  if (target.find("callback") != target.npos)
    op.refuse("expected a program without callbacks; got the target ", target,
              ", a function of the process that wrote the program");
  std::vector<TypeRef> results;
  for (TypeRef type : op.types) {
    if (type == kToken) op.refuse("expected a call without tokens of the target ", target);
    results.push_back(type);
  }
  constexpr int64_t kTyped = 4;
  int64_t version = op.integer_or("api_version", 1);
  std::vector<NamedAttr> attrs = {{"target_name", target},
                                  {"result_avals", results},
                                  {"has_side_effect", op.boolean_or("has_side_effect", false)},
                                  {"custom_call_api_version", version}};
  for (std::string_view name : {"mhlo.backend_config", "backend_config"}) {
    std::optional<std::string_view> value = op.find(name);
    if (!value) continue;
    std::string_view text = op.document.resolved(*value);
    if (text.starts_with('{')) {
      attrs.push_back({"attributes", std::string(text.substr(1, text.size() - 2))});
      attrs[3].second = kTyped;
      break;
    }
    if (std::string config = op.document.string(text); !config.empty())
      attrs.push_back({"legacy_backend_config", config});
  }
  if (std::optional<std::string_view> value = op.find("operand_layouts"))
    attrs.push_back({"input_layouts", layouts(op, *value)});
  if (std::optional<std::string_view> value = op.find("result_layouts"))
    attrs.push_back({"output_layouts", layouts(op, *value)});
  attrs.push_back({"input_output_aliases", aliases(op)});
  const OpDef& def = op_named<"ffi_call">();
  Values operands;
  for (Val x : op.all()) operands.push_back(x.value);
  for (Value v : op.b.add(def, operands, AttrRecord::make(def.name, def.attrs, attrs)))
    op.results.push_back(v);
}

void custom_call(OpText& op) {
  std::string_view value = op.get({"call_target_name", "callee"});
  std::string target = unescaped(op.document.symbol(value));
  for (std::string_view plain :
       {"Sharding", "LayoutConstraint", "annotate_device_placement", "xla.sdy.FuncResultSharding"})
    if (target == plain) return identity(op);
  if (target.starts_with("SPMD"))
    op.refuse("expected a program for whole arrays; got the target ", target);
  if (find_solver(target)) return apply_solver(op, target, config_of(op));
  // CHLO's ops, as they are written for versions of StableHLO that do not have them.
  for (std::string_view dialect : {"mhlo.", "chlo."})
    if (target.starts_with(dialect))
      if (Rule rule = find_rule(std::string_view(target).substr(dialect.size()))) return rule(op);
  foreign(op, target);
}

void unknown_kind(OpText& op) {
  op.fail_as(ErrorKind::kNotImplemented,
             "expected an op on arrays of numbers; weft has nothing that this op could become");
}

constexpr NamedRule kHostRules[] = {
    {"after_all", token},
    {"all_reduce", within_groups},
    {"collective_broadcast", within_groups},
    {"collective_permute", within_groups},
    {"create_token", token},
    {"custom_call", custom_call},
    {"partition_id", first_device},
    {"replica_id", first_device},
    {"rng", rng},
    {"rng_bit_generator", rng_bit_generator},
    {"sharding_constraint", identity},
    {"sharding_group", token},
    {"uniform_dequantize", unknown_kind},
    {"uniform_quantize", unknown_kind},
};

}  // namespace

std::span<const NamedRule> host_rules() { return kHostRules; }

}  // namespace weft::reader
