// The cache of eagerly run computations: a bounded map from (function, attributes, operand types)
// to a compiled program. Values of scalars are operands, never part of the key.

#include "eager.h"

#include <list>
#include <unordered_map>

#include "array.h"
#include "compile.h"
#include "run.h"
#include "trace.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

struct Key {
  const void* what;
  AttrsRef attrs;
  SmallVector<int64_t, 8> extra;
  SmallVector<uint64_t, 4> types;  // type pointer with the weak bit
  int device;
  bool x64;
  uint64_t hash;

  bool operator==(const Key& o) const {
    return hash == o.hash && what == o.what && device == o.device && x64 == o.x64 &&
           types == o.types && extra == o.extra && equal(attrs, o.attrs);
  }
};
struct KeyHash {
  size_t operator()(const Key& k) const { return k.hash; }
};

constexpr size_t kMaxPrograms = 4096;

// Least recently used first out.
struct Cache {
  std::list<std::pair<Key, ProgramRef>> entries;
  std::unordered_map<Key, std::list<std::pair<Key, ProgramRef>>::iterator, KeyHash> index;
  EagerStats stats;

  ProgramRef find(const Key& key) {
    auto it = index.find(key);
    if (it == index.end()) return nullptr;
    if (it->second != entries.begin()) entries.splice(entries.begin(), entries, it->second);
    ++stats.hits;
    return it->second->second;
  }
  void insert(const Key& key, ProgramRef program) {
    ++stats.misses;
    if (index.count(key)) return;  // another thread was first
    entries.emplace_front(key, std::move(program));
    index.emplace(key, entries.begin());
    if (entries.size() > kMaxPrograms) {
      index.erase(entries.back().first);
      entries.pop_back();
    }
  }
};

Cache& cache() {
  static auto* c = new Cache;
  return *c;
}

TypeRef passed_type(const EagerCall& call, size_t i) {
  const Operand& x = call.operands[i];
  return x.kind == OperandKind::kScalar ? scalar_type(call.scalar_dtypes[i]) : x.type;
}

Key make_key(const EagerCall& call, int device) {
  Key key{call.what, call.attrs, call.extra, {}, device, x64_enabled(), 0};
  uint64_t h = hash_combine(hash_pointer(call.what), hash(call.attrs));
  h = hash_combine(h, static_cast<uint64_t>(device) * 2 + key.x64);
  for (int64_t x : call.extra) h = hash_combine(h, static_cast<uint64_t>(x));
  for (size_t i = 0; i < call.operands.size(); ++i) {
    uint64_t t = reinterpret_cast<uint64_t>(passed_type(call, i)) | call.operands[i].weak;
    key.types.push_back(t);
    h = hash_combine(h, t);
  }
  key.hash = h;
  return key;
}

ProgramRef build_program(const EagerCall& call, int device,
                         const std::function<Objects(std::span<const Operand>)>& build) {
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
  return compile(graph, options, std::move(weak));
}

}  // namespace

Placement placement(std::span<const Operand> xs, const Describe& describe) {
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
        return std::string(utf8(s.get()));
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

Objects run_eagerly(const EagerCall& call,
                    const std::function<Objects(std::span<const Operand>)>& build) {
  Placement where = placement(call.operands, [](size_t i) { return cat("operand ", i); });
  Key key = make_key(call, where.device);
  ProgramRef program = cache().find(key);
  if (!program) {
    program = build_program(call, where.device, build);
    cache().insert(key, program);
  }
  SmallVector<PyObject*, 4> inputs;
  std::vector<Ref> held;
  held.reserve(call.operands.size());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    held.push_back(on_device(
        to_device(call.operands[i], where.device,
                  call.scalar_dtypes.empty() ? std::nullopt : std::optional(call.scalar_dtypes[i])),
        where.device));
    inputs.push_back(held.back().get());
  }
  std::vector<PyObject*> out;
  run(*program, {inputs.data(), inputs.size()}, where.committed, out);
  Objects results;
  results.reserve(out.size());
  for (PyObject* o : out) results.push_back(Ref::steal(o));
  return results;
}

bool is_cached(const EagerCall& call) {
  Placement where = placement(call.operands, [](size_t i) { return cat("operand ", i); });
  return cache().index.count(make_key(call, where.device)) > 0;
}

EagerStats eager_cache_stats() {
  EagerStats s = cache().stats;
  s.size = cache().entries.size();
  return s;
}

void clear_eager_cache() {
  cache().index.clear();
  cache().entries.clear();
}

}  // namespace weft::py
