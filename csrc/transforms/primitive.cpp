// Each slot of a user's op calls an Application, the Python object (weft/extend/_application.py)
// that stands for the op applied to operands of given types; it knows the user's rules and checks
// what they return. Rules are run on tracers, and the graph that comes out is put in place.

#include "transforms/primitive.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "binding/bind.h"
#include "conversions/sharding_object.h"
#include "execution/emission_mesh.h"
#include "graphs/attrs.h"
#include "graphs/graph_object.h"
#include "graphs/jaxpr_view.h"
#include "graphs/primitive_object.h"
#include "graphs/recording.h"
#include "references/bound_text.h"
#include "references/hooks.h"
#include "transforms/rules.h"
#include "weft/passes.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// Never freed: graphs point to their ops.
struct UserOp : OpDef {
  PyObject* primitive;
};

nb::tuple avals(std::span<const TypeRef> types) {
  nb::list out;
  for (TypeRef t : types) out.append(take(shaped_array(t)));
  return nb::tuple(out);
}

template <typename Range>
nb::tuple bools(const Range& mask) {
  nb::list out;
  for (bool m : mask) out.append(nb::bool_(m));
  return nb::tuple(out);
}

nb::tuple present(std::span<const Value> values) {
  Mask mask;
  for (Value v : values) mask.push_back(static_cast<bool>(v));
  return bools(mask);
}

nb::object params_of(const AttrRecord* attrs) {
  if (attrs && std::holds_alternative<ObjectRef>(attrs->values()[0]))
    return take(from_attr(attrs->schema().specs()[0], attrs->values()[0]));
  return nb::dict();
}

nb::object application(const UserOp& op, const AttrRecord* attrs, std::span<const TypeRef> in_types,
                       nb::object out_avals, Loc loc) {
  return nb::handle(hooks.application.get())(nb::handle(op.primitive), params_of(attrs),
                                             avals(in_types), out_avals,
                                             loc == kNoLoc ? std::string() : loc_text(loc));
}
nb::object application(const RuleCtx& c) {
  return application(static_cast<const UserOp&>(c.op), c.attrs.get(), c.in_types,
                     avals(c.out_types), c.b.loc());
}

// The graph of a rule: `function` takes a list of tracers and returns a list.
GraphRef trace(const UserOp& op, nb::handle function, std::span<const TypeRef> types) {
  return hold_captures(trace_body(function.ptr(), types, std::vector<bool>(types.size()), op.name,
                                  Py_None, cat("a rule of ", op.name)));
}

TypeRefs types_of(const Builder& b, std::span<const Value> values) {
  TypeRefs out;
  for (Value v : values) out.push_back(b.type(v));
  return out;
}

void append_present(Values& to, std::span<const Value> from) {
  for (Value v : from)
    if (v) to.push_back(v);
}

// ---- The slots

TypeRefs infer(const UserOp& op, const InferCtx& c) {
  nb::object avals = application(op, c.attrs, c.operands, nb::none(), kNoLoc).attr("infer")();
  TypeRefs out;
  for (nb::handle aval : avals) out.push_back(classify_type(aval.ptr(), op.name).type);
  return out;
}

void differentiate(GraphJvpCtx& c) {
  const auto& op = static_cast<const UserOp&>(c.op);
  nb::object rule = application(c).attr("jvp")(present(c.tangents));
  Values args(c.operands);
  append_present(args, c.tangents);
  GraphRef graph = trace(op, rule, types_of(c.b, args));
  size_t n = c.out_types.size();
  // A linearization keeps what depends on tangents for later; results cannot wait that long.
  Mask is_tangent(args.size(), false);
  for (size_t i = c.size(); i < args.size(); ++i) is_tangent[i] = true;
  auto dependent = dependent_outputs(graph, is_tangent);
  if (std::find(dependent->begin(), dependent->begin() + n, true) != dependent->begin() + n)
    fail(ErrorKind::kValue, "[", op.name,
         "] def_jvp: expected results that do not depend on tangents; got results that do");
  Values made = c.b.inline_graph(*graph, args);
  for (size_t i = 0; i < n; ++i) c.results.push_back(made[i]);
  size_t next = n;
  for (nb::handle has_tangent : rule.attr("returned"))
    c.result_tangents.push_back(nb::cast<bool>(has_tangent) ? made[next++] : Value{});
}

void transpose(TransposeCtx& c) {
  const auto& op = static_cast<const UserOp&>(c.op);
  nb::object rule = application(c).attr("transpose")(bools(c.linear_mask), present(c.cotangents));
  Values args;
  for (size_t i = 0; i < c.size(); ++i)
    if (!c.linear(i)) args.push_back(c.operands[i]);
  append_present(args, c.cotangents);
  Values made = c.b.inline_graph(*trace(op, rule, types_of(c.b, args)), args);
  size_t i = 0, next = 0;
  for (nb::handle has_cotangent : rule.attr("returned")) {
    if (nb::cast<bool>(has_cotangent)) c.add(i, c.val(made[next++]));
    ++i;
  }
}

void batch(BatchCtx& c) {
  const auto& op = static_cast<const UserOp&>(c.op);
  nb::list dims;
  for (int d : c.dims) dims.append(d == kNotBatched ? nb::none() : nb::object(nb::int_(d)));
  TypeRefs types = types_of(c.b, c.operands);
  nb::object rule = application(c).attr("batch")(c.size, nb::tuple(dims));
  Values made = c.b.inline_graph(*trace(op, rule, types), c.operands);
  size_t i = 0;
  for (nb::handle dim : rule.attr("returned"))
    c.result(c.val(made[i++]), dim.is_none() ? kNotBatched : nb::cast<int>(dim));
}

// What a rule that writes StableHLO text sees of the module; good while the rule runs.
struct EmitContext {
  EmitCtx* c;

  EmitCtx& get() const {
    if (!c)
      raise_error("AttributeValueError",
                  "expected a lowering context to be used by its rule only; got one kept after it");
    return *c;
  }
};

void emit_text(EmitCtx& c, nb::handle function) {
  nb::object context = nb::cast(EmitContext{&c});
  auto& own = nb::cast<EmitContext&>(context);
  struct Close {
    EmitContext& context;
    ~Close() { context.c = nullptr; }
  } close{own};
  nb::list names;
  for (size_t i = 0; i < c.size(); ++i) names.append(nb::str(c.in(i).c_str()));
  size_t i = 0;
  for (nb::handle name : function(context, *nb::tuple(names)))
    c.set_out(i++, nb::cast<std::string>(name));
}

// A lowering may apply its own primitive (to other parameters), as long as that ends.
class Nesting {
 public:
  explicit Nesting(const UserOp& op) {
    constexpr int kMaxDepth = 100;
    if (depth_ >= kMaxDepth)
      fail(ErrorKind::kValue, "[", op.name, "] def_lowering: expected at most ", kMaxDepth,
           " lowerings within each other; got more. Does it apply '", op.name, "' to itself?");
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;

 private:
  static thread_local int depth_;
};
thread_local int Nesting::depth_ = 0;

// The graph of a lowering, after those of the default passes without which it cannot be emitted:
// emission knows neither rules nor keys.
GraphRef lowered(const UserOp& op, nb::handle lowering, std::span<const TypeRef> types) {
  static const std::vector<std::string> passes = {"strip_rules", "lower_keys", "expand"};
  return run_passes(trace(op, lowering, types), passes);
}

// A lowering for all platforms becomes part of the program, unless it has side effects that the op
// is not known to have.
GraphRef expand(const UserOp& op, const CostCtx& c) {
  Nesting nesting(op);
  nb::object lowering = application(op, c.attrs, c.in_types, avals(c.out_types), kNoLoc)
                            .attr("lowering_everywhere")();
  if (lowering.is_none()) return nullptr;
  GraphRef graph = lowered(op, lowering, c.in_types);
  return graph->effects() & ~op.effects ? nullptr : graph;
}

void emit(const UserOp& op, EmitCtx& c) {
  Nesting nesting(op);
  nb::object applied = application(op, c.attrs, c.in_types, avals(c.out_types), kNoLoc);
  std::string platform(c.platform());
  nb::tuple chosen = nb::cast<nb::tuple>(applied.attr("lowering")(platform));
  auto kind = nb::cast<std::string>(chosen[0]);
  if (kind == "stablehlo") {
    emit_text(c, chosen[1]);
  } else if (kind == "impl") {
    c.host_callback(std::make_shared<PythonObject>(Ref::borrow(chosen[1].ptr()), op.name, ""));
  } else {
    std::vector<std::string> args;
    for (size_t i = 0; i < c.size(); ++i) args.push_back(c.in(i));
    std::vector<std::string> results = c.inline_graph(*lowered(op, chosen[1], c.in_types), args);
    for (size_t i = 0; i < results.size(); ++i) c.set_out(i, std::move(results[i]));
  }
}

// ---- For Python

nb::object new_op(const std::string& op_name, nb::handle primitive, uint32_t effects) {
  auto* op = new UserOp;
  op->name = op_name;
  op->doc = "Defined by the user.";
  op->primitive = primitive.inc_ref().ptr();
  op->effects = effects;
  // Without a name, and left out where there are no parameters.
  op->attrs = {{"", AttrType::kObject, AttrSpec::kHideDefault}};
  auto slot = [op](auto rule) {
    return [op, rule](auto& c) { return calling_python([&] { return rule(*op, c); }); };
  };
  op->infer = slot([](const UserOp& o, const InferCtx& c) { return infer(o, c); });
  op->jvp_kind = JvpKind::kGraph;
  op->graph_jvp = slot([](const UserOp&, GraphJvpCtx& c) { differentiate(c); });
  op->graph_linearize = op->graph_jvp;
  op->transpose = slot([](const UserOp&, TransposeCtx& c) { transpose(c); });
  op->batch = slot([](const UserOp&, BatchCtx& c) { batch(c); });
  op->emit = slot([](const UserOp& o, EmitCtx& c) { emit(o, c); });
  op->expand = slot([](const UserOp& o, const CostCtx& c) { return expand(o, c); });
  add_user_op(*op, primitive.ptr());
  return take(op_capsule(*op));
}

AttrsRef user_attrs(const OpDef& op, PyObject* names, PyObject* const* values) {
  Py_ssize_t n = names ? PyTuple_GET_SIZE(names) : 0;
  if (n == 0) return AttrRecord::make(op.name, op.attrs, {});
  Ref params = Ref::checked(PyDict_New());
  for (Py_ssize_t i = 0; i < n; ++i)
    check(PyDict_SetItem(params.get(), PyTuple_GET_ITEM(names, i), values[i]));
  ObjectRef object = std::make_shared<PythonObject>(std::move(params), op.name, "");
  return AttrRecord::make(op.name, op.attrs, {{"", object}});
}

// bind_op(op, *operands, **params)
PyObject* bind_op_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    if (n < 1) raise_error("OperandError", "bind_op expected an op first");
    const OpDef& op = op_of(args[0]);
    std::vector<Operand> xs;
    for (Py_ssize_t i = 1; i < n; ++i) xs.push_back(classify_operand(args[i], op.name));
    AttrsRef attrs =
        is_user_op(op) ? user_attrs(op, kwnames, args + n) : make_attrs(op, kwnames, args + n);
    Objects results = bind_op(op, xs, attrs);
    if (!op.multiple_results) return results[0].release();
    return to_list(std::move(results));
  });
}

PyMethodDef functions[] = {
    {"bind_op", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(bind_op_function)),
     METH_FASTCALL | METH_KEYWORDS, "bind_op(op, *operands, **params): runs or records one op."},
    {nullptr, nullptr, 0, nullptr}};

nb::list mlir_types(std::span<const TypeRef> types) {
  nb::list out;
  for (TypeRef t : types) out.append(nb::str(mlir_type(t).c_str()));
  return out;
}

void bind_emit_context(nb::module_& m) {
  nb::class_<EmitContext>(m, "EmitContext", "The module that a lowering rule adds text to.")
      .def_prop_ro("platform", [](const EmitContext& e) { return std::string(e.get().platform()); })
      .def_prop_ro(
          "mesh",
          [](const EmitContext& e) -> nb::object {
            if (!emission_mesh() || e.get().manual_mesh()) return nb::none();
            return take(mesh_object(emission_mesh()));
          },
          "The mesh that XLA splits arrays over; None for one device, and within a shard_map.")
      .def_prop_ro(
          "partitions", [](const EmitContext& e) { return e.get().partitions(emission_mesh()); },
          "Where each device of the mesh comes among those of the program.")
      .def_prop_ro("in_types", [](const EmitContext& e) { return mlir_types(e.get().in_types); })
      .def_prop_ro("out_types", [](const EmitContext& e) { return mlir_types(e.get().out_types); })
      .def_prop_ro("avals_in", [](const EmitContext& e) { return avals(e.get().in_types); })
      .def_prop_ro("avals_out", [](const EmitContext& e) { return avals(e.get().out_types); })
      .def(
          "line",
          [](const EmitContext& e, const std::string& text, int num_results) -> nb::object {
            std::string name = e.get().line(text, num_results);
            if (num_results == 1) return nb::str(name.c_str());
            nb::list names;
            for (int i = 0; i < num_results; ++i) names.append(nb::str(cat(name, '#', i).c_str()));
            return names;
          },
          nb::arg("text"), nb::arg("num_results") = 1,
          "Appends an op, given by the text right of the \"=\"; returns the name of its result, a "
          "list of names for num_results other than 1.")
      .def(
          "inline_graph",
          [](const EmitContext& e, nb::handle graph, const std::vector<std::string>& names) {
            return e.get().inline_graph(*graph_of(graph.ptr()), names);
          },
          nb::arg("graph"), nb::arg("names"),
          "Appends the operations of a graph on values; returns the names of its results.")
      .def(
          "ffi_call",
          [](const EmitContext& e, const std::string& target, std::vector<std::string> operands,
             const std::string& attributes, const std::vector<std::vector<int64_t>>& in_layouts,
             const std::vector<std::vector<int64_t>>& out_layouts, bool has_side_effect,
             const std::vector<std::pair<size_t, size_t>>& aliases, int64_t api_version) {
            FfiCall call{.target = target, .operands = std::move(operands)};
            call.attributes = attributes;
            for (const auto& l : in_layouts) call.operand_layouts.emplace_back(l.begin(), l.end());
            for (const auto& l : out_layouts) call.result_layouts.emplace_back(l.begin(), l.end());
            call.has_side_effect = has_side_effect;
            call.aliases = aliases;
            call.api_version = api_version;
            return ffi_call_text(e.get(), call);
          },
          "The text of a call of a target that the runtime knows by name.");
}

}  // namespace

void bind_primitive(nb::module_& m) {
  check(PyModule_AddFunctions(m.ptr(), functions));
  bind_emit_context(m);
  m.def("new_op", new_op);
  m.def("set_multiple_results", [](nb::handle op, bool multiple) {
    const OpDef& known = op_of(op.ptr());
    if (!is_user_op(known))
      raise_error("OperandError", "expected an op of a user's; got ", known.name);
    const_cast<OpDef&>(known).multiple_results = multiple;
  });
  m.def("primitive",
        [](const std::string& op_name) { return take(primitive_object(registry().get(op_name))); });
}

}  // namespace weft::py
