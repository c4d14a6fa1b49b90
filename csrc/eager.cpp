// The cache of eagerly run computations: a bounded map from (function, attributes, operand types)
// to a compiled program. Values of scalars are operands, never part of the key.

#include "eager.h"

#include "array.h"
#include "compile.h"
#include "lru_table.h"
#include "run.h"
#include "trace.h"

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

Key make_key(const EagerCall& call, int device) {
  Key key{call.extra, call.attrs};
  constexpr uint64_t kOfPrograms = kTracedSettings | kDebugNans.mask() | kDebugInfs.mask();
  key.words.add({word(call.what), device, static_cast<int64_t>(settings() & kOfPrograms)});
  SmallVector<int64_t, 8> types;
  for (size_t i = 0; i < call.operands.size(); ++i)
    types.push_back(word(passed_type(call, i)) | call.operands[i].weak);
  key.words.add(types);
  return key;
}

ProgramRef build_program(const EagerCall& call, int device, Build build) {
  auto context = std::make_shared<TraceContext>();
  context->locations = false;
  context->name = "an eager op";
  GraphRef graph;
  std::vector<bool> weak;
  {
    ContextScope scope(context);
    std::vector<Ref> tracers;
    std::vector<Operand> xs;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      Value v = context->builder.input(passed_type(call, i));
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
    graph = context->builder.finish(outputs, context->capture_values);
  }
  CompileOptions options;
  options.device = device;
  options.name = "eager";
  options.keep_unused = false;
  options.at_once = true;
  return compile(graph, options, std::move(weak));
}

}  // namespace

Placement placement(std::span<const Operand> xs, Describe describe) {
  Placement p{-1, false};
  size_t by = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].kind != OperandKind::kArray) continue;
    const ArrayObject* a = as_array(xs[i].object);
    if (a->deleted) check_live(as_array(xs[i].object), cat("a live array for ", describe(i)));
    if (!a->committed) continue;
    if (p.committed && a->device != p.device) {
      auto text = [](int d) {
        Ref s = Ref::checked(PyObject_Str(device_table()[static_cast<size_t>(d)].device.get()));
        return readable(s.get());
      };
      raise_error("DeviceMismatchError", "expected arrays committed to one device; got ",
                  describe(by), " (", xs[by].type, ") on ", text(p.device), " and ", describe(i),
                  " (", a->type, ") on ", text(a->device),
                  "\n  Move one of them with weft.device_put.");
    }
    p = {a->device, true};
    by = i;
  }
  if (p.device < 0) p.device = current_device();
  return p;
}

Ref on_device(Ref array, int device) {
  ArrayObject* a = as_array(array.get());
  if (a->device == device) return array;
  return copy_buffer(a, device, a->weak, a->committed);
}

static void run_call(const EagerCall& call, Build build, Outputs& out) {
  Placement where = placement(call.operands, [](size_t i) { return cat("operand ", i); });
  Key key = make_key(call, where.device);
  uint64_t hash = key.hash();
  Table::Handle program = find(key, hash);
  if (program) {
    ++stats.hits;
  } else {
    check_may_trace("an eager op");
    ++stats.misses;
    ProgramRef made = build_program(call, where.device, build);
    program = find(key, hash);  // another thread may have been first
    if (!program) program = table().insert(hash, std::move(key), std::move(made));
  }
  SmallVector<PyObject*, 4> inputs;
  std::vector<Ref> held;  // what is not the caller's
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& x = call.operands[i];
    if (x.kind == OperandKind::kArray && as_array(x.object)->device == where.device) {
      inputs.push_back(x.object);
      continue;
    }
    guard_transfer(x);
    std::optional<DType> dtype;
    if (!call.scalar_dtypes.empty()) dtype = call.scalar_dtypes[i];
    held.push_back(on_device(to_device(x, where.device, dtype), where.device));
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
  Placement where = placement(call.operands, [](size_t i) { return cat("operand ", i); });
  Key key = make_key(call, where.device);
  return static_cast<bool>(find(key, key.hash()));
}

EagerStats eager_cache_stats() {
  EagerStats s = stats;
  s.size = table().size();
  return s;
}

void clear_eager_cache() { table().clear(); }

}  // namespace weft::py
