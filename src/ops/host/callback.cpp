// Functions on the host, given by the embedding language, as ops of a program; they take and return
// arrays. pure_callback: free of side effects, since calls may be dropped, shared or repeated.
// io_callback: called once each time the program gets there, for results and effects.
// debug_callback: the same, for effects alone; it is invisible to derivatives.
// inspect_sharding: called when the program is compiled.
#include "ops/def/axes.h"
#include "ops/def/host_batch.h"
#include "ops/def/presets.h"
#include "ops/host/family.h"
#include "weft/build.h"
#include "weft/registry.h"

namespace weft {
namespace {

TypeRefs infer_callback(const InferCtx& c) {
  TypeRefs out;
  for (TypeRef t : c.operands)
    if (is_key(t->dtype()))
      c.fail(ErrorKind::kDtype, "expected arrays that the host has; got random keys, ", t);
  for (TypeRef t : c.attr().types("result_avals")) out.push_back(t);
  return out;
}

// One call per element.
void batch_unrolled(BatchCtx& c) {
  std::vector<Vals> rows(c.out_types.size());
  for (int64_t i = 0; i < c.size; ++i) {
    Values args;
    for (size_t k = 0; k < c.operands.size(); ++k) {
      Val x = c.moved(k, 0);
      if (c.batched(k)) {
        Dims begin(x.shape().size(), 0), end = x.shape();
        begin[0] = i;
        end[0] = i + 1;
        x = squeeze(slice(x, begin, end), {0});
      }
      args.push_back(x.value);
    }
    Values made = c.b.add_typed(c.op, args, c.attrs, c.out_types);
    for (size_t r = 0; r < rows.size(); ++r) rows[r].push_back(expand_dim(c.val(made[r]), 0));
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    TypeRef empty = with_shape(c.out_types[r], inserted(c.out_types[r]->shape(), 0, 0));
    c.result(c.size > 0 ? concatenate(rows[r], 0) : zeros(c.b, empty), 0);
  }
}

// One call per element, in a loop.
void batch_sequential(BatchCtx& c) {
  GraphBuilder body;
  Values args(c.operands.size());
  Vals operands;
  int64_t num_consts = 0;
  for (bool mapped : {false, true}) {
    for (size_t i = 0; i < c.operands.size(); ++i) {
      if (c.batched(i) != mapped) continue;
      args[i] = body.input(c.in_types[i]);
      operands.push_back(c.moved(i, 0));
      num_consts += !mapped;
    }
  }
  GraphRef graph = body.finish(body.add_typed(c.op, args, c.attrs, c.out_types));
  for (Val v : scan_over(c.b, operands, graph, {.length = c.size, .num_consts = num_consts}))
    c.result(v, 0);
}

}  // namespace

void batch_by_method(BatchCtx& c, const WidenRule& widen) {
  if (c.attr().is_none("vmap_method"))
    fail(ErrorKind::kNotImplemented, "[", c.op.name,
         "] expected a vmap_method to be given, since the call is under vmap; got None");
  const std::string& method = c.attr().string("vmap_method");
  if (method == "sequential_unrolled") return batch_unrolled(c);
  if (method == "sequential") return batch_sequential(c);
  Vals xs;
  Mask grown, whole;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    whole.push_back(c.batched(i) || method == "broadcast_all");
    if (whole[i]) {
      xs.push_back(c.at(i, 0));
    } else if (method == "expand_dims") {
      xs.push_back(expand_dim(c.x(i), 0));
    } else {  // legacy_vectorized
      xs.push_back(c.x(i));
    }
    grown.push_back(whole[i] || method == "expand_dims");
  }
  std::vector<TypeRef> types;
  for (TypeRef t : c.out_types) types.push_back(with_shape(t, inserted(t->shape(), 0, c.size)));
  AttrsRef attrs = widen ? widen(c.attrs, grown, whole) : c.attrs;
  c.apply(xs, attrs->with({{"result_avals", types}}), 0);
}

namespace {

// Which element comes first must not decide what an element gets.
void batch_io(BatchCtx& c) {
  if (c.attr().boolean("ordered"))
    fail(ErrorKind::kNotImplemented,
         "[io_callback] expected ordered=False under vmap, since the elements of the mapped axis "
         "have no order; got an ordered call on a mapped value");
  batch_sequential(c);
}

OpDef callback_op(std::string name, std::string doc) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.multiple_results = true;
  d.infer = infer_callback;
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = [](JvpCtx& c) -> Vals {
    fail(ErrorKind::kNotImplemented, "[", c.op.name,
         "] expected no derivative to be asked of a function on the host; give the function that "
         "calls it one with custom_jvp or custom_vjp");
  };
  d.emit = [](EmitCtx& c) { c.host_callback(c.attr().object("callback")); };
  d.cost = [](const CostCtx& c) { return cost_bytes(c); };
  return d;
}

OpDef pure_callback_op() {
  OpDef d = callback_op("pure_callback", "The results of a function on the host.");
  d.attrs = {{"callback", AttrType::kObject},
             {"result_avals", AttrType::kTypes},
             {"vmap_method", AttrType::kString, AttrSpec::kOptional}};
  d.batch = [](BatchCtx& c) { batch_by_method(c); };
  return d;
}

OpDef effectful_op(std::string name, std::string doc) {
  OpDef d = callback_op(std::move(name), std::move(doc));
  d.effects = kUnordered;
  d.ordered_by = "ordered";
  return d;
}

OpDef io_callback_op() {
  OpDef d = effectful_op("io_callback", "The results of a function on the host with effects.");
  d.effects |= kActs;
  d.attrs = {{"callback", AttrType::kObject},
             {"result_avals", AttrType::kTypes},
             {"ordered", AttrType::kBool}};
  d.batch = batch_io;
  return d;
}

OpDef debug_callback_op() {
  OpDef d = effectful_op("debug_callback", "Calls a function on the host that gives nothing.");
  d.attrs = {{"callback", AttrType::kObject},
             {"ordered", AttrType::kBool},
             {"partitioned", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.emit = [](EmitCtx& c) {
    c.host_callback(c.attr().object("callback"), c.attr().boolean("partitioned"));
  };
  d.infer = [](const InferCtx&) -> TypeRefs { return {}; };
  d.jvp_kind = JvpKind::kZero;
  d.jvp = nullptr;
  d.batch = batch_sequential;
  return d;
}

OpDef inspect_sharding_op() {
  OpDef d = effectful_op("inspect_sharding",
                         "Tells a function how XLA splits a value, when the program is compiled.");
  d.attrs = {{"callback", AttrType::kObject}};
  d.ordered_by = "";
  d.emit = [](EmitCtx& c) { c.inspect_sharding(c.attr().object("callback")); };
  d.infer = [](const InferCtx&) -> TypeRefs { return {}; };
  d.jvp_kind = JvpKind::kZero;
  d.jvp = nullptr;
  d.batch = [](BatchCtx& c) {
    Val x = c.x(0);
    c.apply({&x, 1}, c.attrs, 0);
  };
  return d;
}

}  // namespace

void register_callback(OpRegistry& r) {
  r.add(pure_callback_op());
  r.add(io_callback_op());
  r.add(debug_callback_op());
  r.add(inspect_sharding_op());
}

}  // namespace weft
