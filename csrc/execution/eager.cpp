// The cache of eagerly run computations: a bounded map from (function, attributes, operand types)
// to a compiled program. Values of scalars are operands, never part of the key.

#include "execution/eager.h"

#include <algorithm>

#include "arrays/array.h"
#include "conversions/sharding_object.h"
#include "execution/compile.h"
#include "execution/run.h"
#include "references/lru_table.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

struct Key {
  CacheKey words;
  AttrsRef attrs;

  uint64_t hash() const { return hash_combine(words.hash(), weft::hash(attrs)); }
};

constexpr size_t kMaxPrograms = 4096;
using Table = LruTable<Key, ProgramRef>;

Table& table() {
  static auto* t = new Table("eager_programs", kMaxPrograms);
  return *t;
}
EagerStats stats;

Table::Handle find(const Key& key, uint64_t hash) {
  return table().find(hash, [&](const Key& known) {
    return known.words == key.words && equal(known.attrs, key.attrs);
  });
}

TypeRef passed_type(const EagerCall& call, size_t i) {
  const Operand& x = call.operands[i];
  return x.kind == OperandKind::kScalar ? scalar_type(call.scalar_dtypes[i]) : x.type;
}

Key make_key(const EagerCall& call, const Places& places) {
  Key key{call.extra, call.attrs};
  constexpr uint64_t kOfPrograms = kTracedSettings | kDebugNans.mask() | kDebugInfs.mask();
  key.words.add({word(call.what), word(places.at), static_cast<int64_t>(settings() & kOfPrograms)});
  SmallVector<int64_t, 8> types;
  for (size_t i = 0; i < call.operands.size(); ++i)
    types.push_back(word(passed_type(call, i)) | call.operands[i].weak);
  for (ShardingRef s : places.inputs) types.push_back(word(s));
  key.words.add(types);
  return key;
}

ProgramRef build_program(const EagerCall& call, const Places& places, Build build) {
  auto context = std::make_shared<TraceContext>();
  context->locations = false;
  context->name = "an eager op";
  begin_placements(*context);
  GraphRef graph;
  std::vector<bool> weak;
  std::vector<ShardingRef> splits;
  {
    ContextScope scope(context);
    std::vector<Ref> tracers;
    std::vector<Operand> xs;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      Value v = context->builder.input(passed_type(call, i));
      if (types_tell_places) set_split(*context, v, shown_split(places.input(i)));
      tracers.push_back(Ref::steal(make_tracer(context, v, call.operands[i].weak)));
      xs.push_back(classify(tracers.back().get()));
    }
    Objects results = build(xs);
    std::vector<Value> outputs;
    for (const Ref& r : results) {
      Operand x = classify(r.get());
      outputs.push_back(value_in(*context, x, x.type->dtype()));
      weak.push_back(x.weak);
    }
    splits = splits_of(*context, outputs);
    graph = context->builder.finish(outputs, context->capture_values);
  }
  CompileOptions options;
  options.places = places;
  for (size_t i = 0; i < splits.size(); ++i)
    options.places.outputs.push_back(
        place_of_result(splits[i], graph->type(graph->outputs()[i]), places.at->mesh()));
  options.name = "eager";
  options.keep_unused = false;
  options.at_once = true;
  return compile(graph, options, std::move(weak));
}

}  // namespace

namespace {

[[noreturn]] void mismatch(const std::string& first, TypeRef first_type, ShardingRef first_place,
                           const std::string& other, TypeRef other_type, ShardingRef other_place) {
  bool single = is_trivial(first_place) && is_trivial(other_place);
  raise_error("DeviceMismatchError", "expected arrays committed to ",
              single ? "one device" : "the same devices", "; got ", first, " (", first_type,
              ") on ", describe(first_place), " and ", other, " (", other_type, ") on ",
              describe(other_place), "\n  Move one of them with weft.device_put.");
}

// Where an operand insists on being: an array that was committed, or what stands for one; else
// null.
ShardingRef home(const Operand& x) {
  if (x.kind == OperandKind::kArray)
    return as_array(x.object)->committed ? as_array(x.object)->sharding : nullptr;
  return x.kind == OperandKind::kInvalid ? abstract_home(x) : nullptr;
}

}  // namespace

ShardingRef place_by_default() {
  MeshRef set = mesh_that_is_set();
  bool counts = set && set->size() > 1 && !set->is_abstract() &&
                std::ranges::all_of(set->devices(), [](int32_t d) {
                  return device_table()[static_cast<size_t>(d)].addressable;
                });
  return counts ? replicated(set) : current_placement();
}

namespace {

// Whether the two split alike, over the same devices in another order.
bool is_reordered(ShardingRef a, ShardingRef b) {
  std::span<const int32_t> of_a = a->mesh()->devices(), of_b = b->mesh()->devices();
  auto sizes = [](const MeshAxis& x, const MeshAxis& y) { return x.size == y.size; };
  return !std::ranges::equal(of_a, of_b) && std::ranges::is_permutation(of_a, of_b) &&
         std::ranges::equal(a->dims(), b->dims()) && a->unreduced().empty() &&
         b->unreduced().empty() && std::ranges::equal(a->mesh()->axes(), b->mesh()->axes(), sizes);
}

// Where an array on one device, or the places of all, is not enough.
Placement spread(std::span<const Operand> xs, Describe describe, MeshRef mesh,
                 const std::vector<ShardingRef>& inputs, const std::vector<ShardingRef>& outputs) {
  // What places the program: its own mesh, what is asked for, the first committed array.
  ShardingRef first = mesh ? replicated(mesh) : nullptr;
  std::string by = "the program";
  TypeRef by_type = nullptr;
  auto join = [&](ShardingRef s, TypeRef type, FunctionRef<std::string()> what) {
    if (!first) {
      first = s;
      by = what();
      by_type = type;
    } else if (place_of(first).devices != place_of(s).devices) {
      mismatch(by, by_type ? by_type : type, first, what(), type, s);
    }
  };
  // If that is what is asked for, an array goes from one device to another by itself, and from a
  // mesh to one of the same devices in another order.
  auto moves = [&](const Operand& x, ShardingRef own, size_t i) {
    ShardingRef wanted = i < inputs.size() ? inputs[i] : nullptr;
    return x.kind == OperandKind::kArray && wanted && wanted->memory() == own->memory() &&
           ((is_trivial(wanted) && is_trivial(own)) || is_reordered(wanted, own));
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) join(inputs[i], xs[i].type, [&] { return cat("in_shardings, ", describe(i)); });
  for (ShardingRef s : outputs)
    if (s) join(s, nullptr, [] { return std::string("out_shardings"); });
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].kind == OperandKind::kArray && as_array(xs[i].object)->deleted)
      check_live(as_array(xs[i].object), cat("a live array for ", describe(i)));
    ShardingRef own = home(xs[i]);
    if (own && !moves(xs[i], own, i)) join(own, xs[i].type, [&] { return describe(i); });
  }
  if (!first) first = place_by_default();
  Placement p{{.at = replicated(first->mesh())}, true};
  for (size_t i = 0; i < xs.size(); ++i) {
    ShardingRef wanted = i < inputs.size() ? inputs[i] : nullptr;
    if (ShardingRef own = home(xs[i]); own && !moves(xs[i], own, i)) {
      check_fit(own, xs[i].type, describe(i));
      if (wanted && !are_equivalent(wanted, own, xs[i].type))
        raise_error("DeviceMismatchError", "expected ", describe(i), " (", xs[i].type,
                    ") to be split as in_shardings says, ", shown(wanted),
                    "; got an array split as ", shown(own), "\n  Move it with weft.device_put.");
      wanted = wanted ? wanted : own;
    }
    if (wanted) check_fit(wanted, xs[i].type, describe(i));
    p.places.inputs.push_back(wanted ? wanted : p.places.at);
  }
  p.places.outputs = outputs;
  return p;
}

}  // namespace

Placement placement(std::span<const Operand> xs, Describe describe, MeshRef mesh) {
  if (mesh) return spread(xs, describe, mesh, {}, {});
  Placement p{{}, false};
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].kind == OperandKind::kInvalid && home(xs[i]))
      return spread(xs, describe, nullptr, {}, {});
    if (xs[i].kind != OperandKind::kArray) continue;
    const ArrayObject* a = as_array(xs[i].object);
    if (a->deleted) check_live(as_array(xs[i].object), cat("a live array for ", describe(i)));
    if (!a->committed || a->sharding == p.places.at) continue;
    if (p.committed || !is_trivial(a->sharding) || !a->sharding->memory().empty())
      return spread(xs, describe, nullptr, {}, {});
    p.places.at = a->sharding;
    p.committed = true;
  }
  if (!p.places.at) {
    p.places.at = place_by_default();
    p.committed = !is_trivial(p.places.at);
  }
  return p;
}

Placement placement(std::span<const Operand> xs, Describe describe, MeshRef mesh,
                    const std::vector<ShardingRef>& inputs,
                    const std::vector<ShardingRef>& outputs) {
  return spread(xs, describe, mesh, inputs, outputs);
}

Ref on_device(Ref array, ShardingRef sharding) {
  ArrayObject* a = as_array(array.get());
  if (a->sharding == sharding) return array;
  check_fit(sharding, a->type, "device_put");
  const Place& to = place_of(sharding);
  // What is yet to be added up, or to be taken apart, is so by a program on the devices of its
  // mesh.
  if (place_of(a->sharding).devices != to.devices) {
    if (!a->sharding->unreduced().empty())
      return on_device(on_device(array, with_unreduced(a->sharding, {})), sharding);
    if (!sharding->unreduced().empty())
      return on_device(on_device(array, with_unreduced(sharding, {})), sharding);
  }
  // CPU devices share the host's memory: small arrays are read and split in a third of the time in
  // which eight threads meet for a collective.
  constexpr int64_t kSmallBytes = 4 << 20;
  bool is_on_host = to.devices->platform == "cpu" && to.devices->is_local &&
                    a->type->num_bytes() <= kSmallBytes && a->sharding->unreduced().empty() &&
                    sharding->unreduced().empty();
  if (place_of(a->sharding).devices != to.devices || to.on_one_device() || is_on_host)
    return copy_to(a, sharding, a->weak, a->committed);
  GraphBuilder b;
  GraphRef graph = b.finish(Values{b.input(a->type)});
  CompileOptions options;
  options.name = "device_put";
  options.places = {replicated(sharding->mesh()), {a->sharding}, {sharding}};
  Outputs out;
  PyObject* input = array.get();
  run(*compile(graph, options, {a->weak}), {&input, 1}, a->committed, out);
  return out.take(0);
}

Ref for_call(const Operand& x, ShardingRef sharding, std::optional<DType> dtype) {
  return on_device(to_device(x, sharding, dtype), sharding);
}

// The mesh that an op names, or one of a graph that it holds.
static MeshRef mesh_of(const EagerCall& call) {
  return call.attrs ? mesh_named_in(*call.attrs) : nullptr;
}

static void run_call(const EagerCall& call, Build build, Outputs& out) {
  Placement where =
      placement(call.operands, [](size_t i) { return cat("operand ", i); }, mesh_of(call));
  Key key = make_key(call, where.places);
  uint64_t hash = key.hash();
  Table::Handle program = find(key, hash);
  if (program) {
    ++stats.hits;
  } else {
    check_may_trace("an eager op");
    ++stats.misses;
    ProgramRef made = build_program(call, where.places, build);
    program = find(key, hash);  // another thread may have been first
    if (!program) program = table().insert(hash, std::move(key), std::move(made));
  }
  SmallVector<PyObject*, 4> inputs;
  std::vector<Ref> held;  // what is not the caller's
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& x = call.operands[i];
    ShardingRef at = where.places.input(i);
    if (x.kind == OperandKind::kArray && as_array(x.object)->sharding == at) {
      inputs.push_back(x.object);
      continue;
    }
    guard_transfer(x);
    std::optional<DType> dtype;
    if (!call.scalar_dtypes.empty()) dtype = call.scalar_dtypes[i];
    held.push_back(for_call(x, at, dtype));
    inputs.push_back(held.back().get());
  }
  run(**program, {inputs.data(), inputs.size()}, where.committed, out);
}

Objects run_eagerly(const EagerCall& call, Build build) {
  Outputs out;
  run_call(call, build, out);
  Objects results;
  results.reserve(out.size());
  for (size_t i = 0; i < out.size(); ++i) results.push_back(out.take(i));
  return results;
}

Ref run_for_one(const EagerCall& call, Build build) {
  Outputs out;
  run_call(call, build, out);
  return out.take(0);
}

bool is_cached(const EagerCall& call) {
  Placement where =
      placement(call.operands, [](size_t i) { return cat("operand ", i); }, mesh_of(call));
  Key key = make_key(call, where.places);
  return static_cast<bool>(find(key, key.hash()));
}

EagerStats eager_cache_stats() {
  EagerStats s = stats;
  s.size = table().size();
  return s;
}

void clear_eager_cache() { table().clear(); }

}  // namespace weft::py
