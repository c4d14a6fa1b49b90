// What the Python side gives the extension at import, each under a name: `_core.install(name=...)`.
// jaxlib and weft's own Python classes are reached through these slots only.
#pragma once

#include <initializer_list>

#include "references/core.h"

namespace weft::py {

// One slot. It is a member of `Hooks` and nowhere else.
class Hook {
 public:
  enum Kind : uint8_t { kCallable, kClass, kObject };
  using Listener = void (*)(PyObject*);

  Hook(const char* name, Kind kind);
  Hook(const Hook&) = delete;

  // Borrowed; raises InternalError naming the slot if nothing was installed.
  PyObject* get() const {
    if (!object_) raise_missing();
    return object_.get();
  }
  PyTypeObject* type() const { return reinterpret_cast<PyTypeObject*>(get()); }
  explicit operator bool() const { return static_cast<bool>(object_); }
  const char* name() const { return name_; }

  // What to do with an object when it is installed.
  void on_install(Listener f) { listener_ = f; }
  // Raises TypeError for an object of another kind.
  void install(PyObject* object);

 private:
  [[noreturn]] void raise_missing() const;

  const char* name_;
  Kind kind_;
  Listener listener_ = nullptr;
  Ref object_;
};

struct Hooks {
  Hook package_directory{"package_directory", Hook::kObject};  // with a trailing separator
  Hook numpy_dtypes{"numpy_dtypes", Hook::kObject};  // a list, in the order of weft::DType
  Hook methods{"methods", Hook::kObject};            // dict: attributes that arrays and tracers get

  // weft.runtime, in terms of jaxlib.
  Hook put{"put", Hook::kCallable};                    // batched_device_put
  Hook put_semantics{"put_semantics", Hook::kObject};  // HostBufferSemantics that copies
  Hook make_aval{"make_aval", Hook::kCallable};        // (shape, dtype) -> shape, dtype, weak_type
  Hook device_list{"device_list", Hook::kCallable};    // (devices) -> jaxlib's DeviceList
  // (DeviceList, blocks per dimension or None, the devices that hold them, kind of memory or None)
  Hook make_sharding{"make_sharding", Hook::kCallable};
  Hook make_handler{"make_handler", Hook::kCallable};  // (aval, sharding) -> result handler
  // (executable) -> per result None, as it is replicated, or (blocks per dimension, their devices)
  Hook output_tiles{"output_tiles", Hook::kCallable};
  // What jit was given: (shardings, tree of what they are of or None, its leaves, parameter) ->
  // list
  Hook resolve_shardings{"resolve_shardings", Hook::kCallable};
  Hook module_type{"module_type", Hook::kClass};  // what is to be compiled, by keywords
  // (name, operations) -> None, or what to call with a tuple of the operations of each module that
  // is to be compiled, and with None at the end: shows those who wait how far a compilation is.
  Hook compilation{"compilation", Hook::kCallable};
  // (module_type) -> (executable, whether it comes from disk, tiles of what is inspected)
  Hook compile{"compile", Hook::kCallable};
  // (function, count) -> None: calls it with the numbers below the count, on all cores
  Hook in_parallel{"in_parallel", Hook::kCallable};
  // dict: the platforms that call host functions, each with the targets for that (whole, in parts)
  Hook host_call_targets{"host_call_targets", Hook::kObject};
  Hook call_error{"call_error", Hook::kCallable};          // an error of jaxlib -> the one to raise
  Hook to_numpy{"to_numpy", Hook::kCallable};              // (buffer, dtype, shape) -> numpy array
  Hook copy_to_device{"copy_to_device", Hook::kCallable};  // (buffer, devices, sharding) -> buffer
  Hook start{"start", Hook::kCallable};  // () -> None: makes the client, registers its devices
  // Of several processes: (numbers of the devices, how many programs have started there, what is
  // about to start) -> None; raises unless all processes with these devices say the same.
  Hook first_start{"first_start", Hook::kCallable};
  // (value, numbers of the devices) -> None; raises unless all have the same value.
  Hook check_same{"check_same", Hook::kCallable};
  Hook keep_token{"keep_token", Hook::kCallable};  // (token) -> None: effects_barrier waits for it

  // Trees of arguments and results, and their names in messages.
  Hook flatten{"flatten", Hook::kCallable};  // tree -> (leaves, treedef)
  Hook flatten_one_level{"flatten_one_level",
                         Hook::kCallable};     // tree -> (children, data), or None
  Hook tree_type{"tree_type", Hook::kClass};   // PyTreeDef
  Hook describe{"describe", Hook::kCallable};  // (function, in_tree, static_argnums, leaf) -> text
  Hook describe_output{"describe_output", Hook::kCallable};  // (function, out_tree, leaf) -> text
  Hook describe_position{"describe_position", Hook::kCallable};  // (function, position) -> text

  // Each raises the error for what was refused.
  Hook reject_leaf{"reject_leaf", Hook::kCallable};  // (leaf, its name): is no array or number
  Hook reject_gradient_input{"reject_gradient_input",
                             Hook::kCallable};       // (leaf, its name, holomorphic)
  Hook reject_loss{"reject_loss", Hook::kCallable};  // (shape, dtype, function's name, holomorphic)
  Hook reject_aux{"reject_aux", Hook::kCallable};    // (result, function's name): is no pair

  Hook reject_structure{"reject_structure",
                        Hook::kCallable};  // (tree expected, tree, transform, what is of the tree)

  // (shape, dtype, tangent, name of the primal, transform): raises unless the two fit.
  Hook check_tangent{"check_tangent", Hook::kCallable};
  Hook zero_tangent{"zero_tangent", Hook::kCallable};  // (shape, dtype): of a primal
  Hook zeros{"zeros", Hook::kCallable};                // (shape, dtype, weak)

  // vmap: (axes, tree, option) -> a list of axes, one per leaf of the tree, of which `axes` is a
  // prefix.
  Hook spread_axes{"spread_axes", Hook::kCallable};
  Hook reject_axis{"reject_axis", Hook::kCallable};  // (axis, rank, what of, option)
  // (axes or None, sizes, axis_size or None, describe): mapped axes of unequal sizes, or none.
  Hook reject_sizes{"reject_sizes", Hook::kCallable};

  // (kind, details...): something that the user's settings want to be told.
  Hook notice{"notice", Hook::kCallable};
  // Each raises: (checked, number, values) of a check that failed; (graph, inputs, whether NaNs and
  // infinities are meant) of a program that gave one.
  Hook reject_check{"reject_check", Hook::kCallable};
  Hook reject_value{"reject_value", Hook::kCallable};
  // (array, how it came about) -> None: raises for a NaN or an infinity that the settings mean.
  Hook look_at_made{"look_at_made", Hook::kCallable};

  Hook leave{"leave", Hook::kCallable};  // (error, function): the error goes to the user's code

  // (class of an error, function, arguments) -> the arguments with arrays in place of objects that
  // stand for them, or None.
  Hook stand_ins{"stand_ins", Hook::kCallable};

  // Classes of weft.
  Hook abstract_type{"abstract_type", Hook::kClass};  // ShapeDtypeStruct
  Hook typed{"typed", Hook::kCallable};  // what has a shape and a dtype -> that, or itself
  Hook shaped_array{"shaped_array", Hook::kClass};
  Hook source_info{"source_info", Hook::kClass};
  Hook primitive{"primitive", Hook::kClass};
  Hook application{"application", Hook::kClass};

  // Operators that are more than one op.
  Hook floordiv{"floordiv", Hook::kCallable};
  Hook mod{"mod", Hook::kCallable};
  Hook divmod{"divmod", Hook::kCallable};
  Hook pow{"pow", Hook::kCallable};
  Hook matmul{"matmul", Hook::kCallable};
  Hook lshift{"lshift", Hook::kCallable};
  Hook rshift{"rshift", Hook::kCallable};
  Hook getitem{"getitem", Hook::kCallable};
  Hook update{"update", Hook::kCallable};     // (kind, array, index, values) -> array
  Hook dim_class{"dim_class", Hook::kClass};  // of symbolic dimensions; made of a handle
};
// Never destroyed: at exit there is no interpreter left to release references to.
extern Hooks& hooks;

// Tells the user; see python/weft/_notices.py for the kinds.
void notice(const char* kind, std::initializer_list<Ref> details);

// Raises what `hook`, one of those that reject, raises.
[[noreturn]] void reject(const Hook& hook, std::initializer_list<PyObject*> details);

// Fills the slot of that name; raises AttributeValueError with the known names for another.
void install(std::string_view name, PyObject* object);

}  // namespace weft::py
