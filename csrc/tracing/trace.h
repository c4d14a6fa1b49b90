// Tracers and trace contexts. A context records ops into its own graph; contexts form a stack per
// thread. See csrc/README.md for how an op finds its context.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "references/core.h"
#include "references/type_slots.h"
#include "tracing/operand.h"
#include "weft/placements.h"
#include "weft/varying.h"

namespace weft::py {

enum class ContextKind : uint8_t {
  kStaged,    // records every op: jit, make_jaxpr, bodies
  kDeferred,  // records only ops that touch its tracers: un-jitted transforms
  kEager,     // records nothing: ops without tracers run, whatever is being traced around it
};

// What a context knows of a cell of outside (cell.h).
struct OuterCell {
  Ref cell;
  Ref value;  // an array, or a tracer of this context or one further out
  bool written;
};

struct TraceContext;

// A value of another trace, and the input that stands for it once that trace has ended.
struct StandIn {
  std::weak_ptr<TraceContext> context;
  Value value;
  Value input;
};

struct TraceContext {
  ContextKind kind = ContextKind::kStaged;
  GraphBuilder builder;
  bool finished = false;
  bool locations = true;  // false for library code that is spliced into users' programs
  std::string name;       // the function being traced
  Ref describe;           // (function, in_tree, static_argnums), or a
                          // function from input number to its name; unset: none
  uint32_t num_args = 0;
  std::vector<uint32_t> arg_numbers;   // those that `describe` knows them by; empty: their own
  std::vector<std::string> arg_names;  // in place of `describe` once retire() was called
  // Values of outer contexts and arrays that the function closed over, in order of first use;
  // each is an input of the graph.
  std::vector<Ref> captures;
  std::vector<Value> capture_values;
  std::unordered_map<PyObject*, Value> captured;
  // In the trace of a rule: for the tracers that the function with the rule closed over.
  std::vector<StandIn> stand_ins;
  // Cells of outside that the function read or wrote, in order of first use; those that a staged
  // context reads are among its captures. Where it must not write any, `fixed_cells` says what the
  // function is.
  std::vector<OuterCell> cells;
  std::string fixed_cells;
  // Deferred contexts: the objects that the arguments stand for, whether each stands for one value
  // (not so under vmap), and the values computed on demand so far, by value id.
  std::vector<Ref> inputs;
  bool one_value = false;
  bool is_differentiated = false;  // recorded for the sake of a derivative by the arguments
  std::vector<Ref> known;
  std::vector<Ref> held;  // NumPy arrays whose addresses are keys of `captured`
  // How values are split over the explicit axes of a mesh, and which are in the memory of the host;
  // null: there are none.
  std::unique_ptr<Placements> placements;
  // Over which axes of a shard_map around it values vary, found when it is asked for; null: there
  // are no such axes, or, where `varies_unknown`, nothing is known of the inputs.
  std::unique_ptr<Varying> varying;
  bool varies_unknown = false;
  // Per input, what it varies as, until it is asked for; and how many captures were asked after.
  std::vector<Ref> varies_as;
  size_t captures_told = 0;
};
using ContextRef = std::shared_ptr<TraceContext>;

struct TracerObject {
  PyObject_HEAD TraceContext* context;  // kept alive by `owner`
  Value value;
  bool weak;
  Loc loc;  // where it was made
  TypeRef type;
  PyObject* weakrefs;
  ContextRef owner;
};

extern PyTypeObject* tracer_type;
void init_tracer(PyObject* module, const TypeSlots& shared);
inline bool is_tracer(PyObject* o) { return Py_TYPE(o) == tracer_type; }
inline TracerObject* as_tracer(PyObject* o) { return reinterpret_cast<TracerObject*>(o); }

PyObject* make_tracer(const ContextRef& context, Value value, bool weak);

// The stack of the current thread, innermost last.
std::vector<ContextRef>& context_stack();
// The context that an op on these operands is recorded in; null: it runs eagerly. Raises
// UnexpectedTracerError for a tracer of a finished context.
ContextRef context_for(std::span<const Operand> operands, bool innermost = false);
// Whether an op, or a call of a graph, is recorded in the innermost context whatever it touches:
// with ordered effects, which would overtake those recorded before if they were run at once, and
// with names of mapped axes, which mean something only in there.
bool stays_innermost(const OpInfo& op, const AttrsRef& attrs);
bool stays_innermost(const Graph& graph);
// Same with no operands: the innermost staged context, if it is the innermost of all.
ContextRef innermost_staged();

// The value that a tracer is in a context, or that stands for it there; none where the tracer is of
// another context.
Value own_value(const TraceContext& context, const TracerObject* t);

// The operand as a value of the context's graph; values from outside are captured. A scalar
// becomes a literal of `dtype`.
Value value_in(TraceContext& context, const Operand& x, DType dtype);

// An input of the context's graph that stands for `object`, known under `key`.
Value capture(TraceContext& context, PyObject* key, const Ref& object, TypeRef type);

// Appends an op at the user's line.
Values record(TraceContext& context, const OpInfo& op, std::span<const Value> operands,
              const AttrsRef& attrs);

// How a value is split over explicit axes, of the mesh that is set or else of its own, and whether
// it is in the memory of the host (on a mesh without axes, where there are none that are explicit);
// null if nothing is to be said.
ShardingRef split_of(const Operand& x);
// The same of its cotangents.
inline ShardingRef split_of_cotangents(const Operand& x) {
  ShardingRef split = split_of(x);
  return split ? of_cotangents(split) : nullptr;
}
// The same of an array or type with a sharding.
ShardingRef shown_split(ShardingRef sharding);
// Makes a value of the context one that is split so; null: nothing is known of it.
void set_split(TraceContext& context, Value v, ShardingRef split);
// Gives a new context its table, if the mesh that is set has explicit axes or there are values in
// the memory of the host.
void begin_placements(TraceContext& context);
// How values are split; empty if none of the context's is.
std::vector<ShardingRef> splits_of(TraceContext& context, std::span<const Value> values);
// Where a program on a mesh leaves a result that is split so: over axes of type kAuto as XLA likes.
// Null: nothing is said of that.
ShardingRef place_of_result(ShardingRef split, TypeRef type, MeshRef mesh);

// Over which of the axes a value varies that named_axes() marks as such that this is known of, in
// their order; nothing where it is not known.
std::optional<AxisSet> varying_of(const Operand& x);
// For Python: three tuples, the names of axes over which a value varies, those over which it is
// unreduced, those over which it is reduced.
AxisSet set_of_axes(const std::vector<std::string>& axes, PyObject* names);
Ref names_of_axes(const std::vector<std::string>& axes, AxisSet set);
// Gives a new context within a shard_map its table. Input number i varies as the i-th object does,
// or over the i-th set.
void begin_varying(TraceContext& context, std::vector<Ref> varies_as);
void begin_varying(TraceContext& context, std::span<const AxisSet> inputs);

// Lets go of what a context held for its trace, which has ended. Tracers that outlive the trace
// keep their context, and the traced function may be what keeps them; they must not keep the
// function.
void retire(const ContextRef& context);
// Raises UnexpectedTracerError if tracers of a context that has ended live on, and the user wants
// to know.
void check_leaks(const ContextRef& context);
// Raises RuntimeError if nothing may be traced.
void check_may_trace(std::string_view name);

// Enters a context for its lifetime.
class ContextScope {
 public:
  explicit ContextScope(ContextRef context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;

 private:
  size_t depth_;
};

// Error text that names where a tracer comes from.
std::string describe_tracer(TracerObject* t);

}  // namespace weft::py
