"""Exceptions of weft.

Every class says what usually causes it, what to do, and shows the fix in a few lines. The C++ core
raises the classes named `...Error` that carry an operation's message (`ShapeError`, `DTypeError`,
...); `csrc` finds them here by name.
"""

import sys
from typing import Any

from weft import _core
from weft._surface import public as _public

__all__ = [
    "ArgumentTypeError",
    "AttributeValueError",
    "AxisError",
    "CallbackError",
    "ConcretizationTypeError",
    "ControlFlowTypeError",
    "DTypeError",
    "DeletedArrayError",
    "DeviceMismatchError",
    "ShardingError",
    "ShardingTypeError",
    "ForeignArrayError",
    "IndexOutOfBoundsError",
    "InconclusiveDimensionOperation",
    "InternalError",
    "InvalidValueError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",  # noqa: F822
    "KeyReuseError",
    "MissingMeshError",
    "NonConcreteBooleanIndexError",
    "NonHashableStaticArgumentError",
    "NotAddressableError",
    "NotImplementedRuleError",
    "ObservationWeightsError",
    "OperandError",
    "ParseError",
    "PaddingError",
    "PreconditionError",
    "ProcessFailureError",
    "ProgramMismatchError",
    "RefError",
    "ShapeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TransferGuardError",
    "TreeStructureError",
    "TypePromotionError",
    "UnboundAxisNameError",
    "UnexpectedTracerError",
    "WeftError",
]
__getattr__, __dir__ = _public(
    __name__, __all__, later={"weft.runtime.errors": ("JaxRuntimeError",)}
)


_AT = "\n  at "


def _in_cell(location):
    """A place, of which the file is named as IPython names it if it is a cell of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)
    file, _, line = location.rpartition(":")
    cell = named(file)
    return f"{' '.join(cell)}, line {line}" if cell else location


class WeftError(Exception):
    """Base class of all errors that weft raises itself.

    Catch it to handle any of them: ``except weft.errors.WeftError``. The subclasses also derive
    from the built-in class that NumPy would raise in the same place, so that existing handlers
    (``except ValueError``) keep working. The message ends with the line of the user's program that
    was being executed.
    """

    _names_line = True

    def __init__(self, message="", *args):
        if self._names_line and isinstance(message, str) and _AT not in message:
            location = _core.user_location()
            if location:
                message = f"{message}{_AT}{_in_cell(location)}"
        super().__init__(message, *args)


class ShapeError(WeftError, TypeError, ValueError):
    """Operands whose shapes do not fit the operation.

    The message names the operation and the operands' shapes. Reshape or broadcast one of them::

        x = jnp.ones((3, 4)); b = jnp.ones(3)
        x + b               # ShapeError: (3, 4) and (3,) do not broadcast
        x + b[:, None]      # adds b[i] to row i
    """


class InconclusiveDimensionOperation(WeftError, ValueError):
    """A comparison of symbolic dimensions holds for some sizes only.

    The message shows the comparison. Say what always holds::

        b, n = weft.export.symbolic_shape("b, n")
        x[:n]               # of an axis of size b: InconclusiveDimensionOperation
        b, n = weft.export.symbolic_shape("b, n", constraints=["b >= n"])
    """


class DTypeError(WeftError, TypeError, ValueError, NotImplementedError):
    """Operands whose dtypes the operation does not take.

    A NotImplementedError too: decompositions of matrices of 16-bit floats, say, are not there.
    `weft.numpy` promotes dtypes, `weft.lax` does not. Convert explicitly::

        lax.add(jnp.int32(1), jnp.float32(2))                     # DTypeError
        lax.add(jnp.int32(1).astype(jnp.float32), jnp.float32(2))
    """


class AttributeValueError(WeftError, TypeError, ValueError):
    """A static argument of an operation (axes, sizes, permutation, ...) has a wrong value.

    The message says which argument and which values are allowed::

        lax.transpose(jnp.ones((2, 3)), (0, 2))   # AttributeValueError: not a permutation of 0, 1
        lax.transpose(jnp.ones((2, 3)), (1, 0))
    """


class AxisError(AttributeValueError, IndexError):
    """An axis is out of bounds: it must be one of -ndim..ndim-1.

    As NumPy's error of this name it is a ValueError and an IndexError::

        wnp.sum(wnp.ones((2, 3)), axis=2)   # AxisError: axes are 0, 1, or -2, -1
        wnp.sum(wnp.ones((2, 3)), axis=1)
    """


class PreconditionError(AttributeValueError, ShapeError, AssertionError):
    """What a function assumes of its arguments does not hold; also an AssertionError.

    The message says what is assumed::

        nn.glu(jnp.ones(3))    # PreconditionError: the size of the axis must be even
        nn.glu(jnp.ones(4))
    """


class ObservationWeightsError(ShapeError, RuntimeError):
    """Weights are not one for each observation; also a RuntimeError, as in NumPy::

    jnp.cov(jnp.ones((2, 3)), aweights=jnp.ones(2))    # ObservationWeightsError: 3 are needed
    jnp.cov(jnp.ones((2, 3)), aweights=jnp.ones(3))
    """


class PaddingError(AttributeValueError, RuntimeError):
    """The name of a padding is unknown; also a RuntimeError.

    The names are "VALID", "SAME" and "SAME_LOWER"::

        lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "full")    # PaddingError
        lax.reduce_window(x, 0.0, lax.add, (2,), (1,), [(1, 1)])
    """


class OperandError(WeftError, TypeError, ValueError):
    """The number or the kind of operands is wrong: something that is not an array was passed.

    Lists are not converted silently, since each element would become an operand::

        jnp.sin([1.0, 2.0])              # OperandError
        jnp.sin(jnp.array([1.0, 2.0]))
    """


class ArgumentTypeError(WeftError, TypeError, ValueError):
    """An argument of a transformed function is not an array, number or pytree of these.

    Strings, functions and other objects must be static, or be bound before::

        weft.jit(f)(x, "relu")                                  # error
        weft.jit(f, static_argnames="kind")(x, kind="relu")
    """


class ForeignArrayError(OperandError, ArgumentTypeError):
    """An object that stands for an array (`__jax_array__`) was passed where it is not asked for it.

    Operators and functions of arrays do ask: those of weft.numpy, nn, scipy, random, ops and image.
    Operations and transformed functions do not::

        jnp.sin(x)                       # an array
        lax.sin(x)                       # ForeignArrayError
        jit(f)(x)                        # ForeignArrayError, unless its class is a pytree
        jit(f)(jnp.asarray(x))
    """


class InvalidValueError(WeftError, FloatingPointError):
    """A program gave a NaN under `debug_nans`, or an infinity under `debug_infs`.

    The message names the operation that made it, the line, and its operands. Keep the operands of
    that line where it has a value, also for its derivative::

        jnp.where(x > 0, jnp.log(x), 0.0)                          # log makes a NaN for x < 0
        jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), 0.0)
    """


class ParseError(WeftError, ValueError):
    """The text given to the graph parser is not a valid program.

    The message holds the line and column. Compare with the text that `make_jaxpr` prints for a
    small function.
    """

    _names_line = False  # the text has lines of its own


class NestingError(WeftError, RecursionError):
    """Functions, loops, branches or containers are nested more deeply than weft can handle.

    Usually a jitted function that calls itself, or a chain of jitted functions built in a loop,
    each of which calls the one before; or a list or dict that holds itself. Repeat with a loop
    instead of nesting::

        for _ in range(1000):
            f = weft.jit(lambda x, f=f: f(x) + 1)             # nests 1000 functions: error
        lax.fori_loop(0, 1000, lambda _, x: x + 1, x)         # one loop
    """


class NotImplementedRuleError(WeftError, NotImplementedError, ValueError):
    """An operation lacks the rule (jvp, transpose, batching, emission) that a transform needs.

    A ValueError too: no rule can be there for the derivative of a function on the host, or of a
    loop backwards whose steps are not counted.

    Write the function with other operations, or give it a derivative of its own with
    `custom_jvp` or `custom_vjp`.
    """


class KeyReuseError(WeftError, TypeError):
    """A random key was used twice while the setting weft_debug_key_reuse is on.

    The same key gives the same numbers. Make new keys of it first::

        with weft.debug_key_reuse(True):
            key = weft.random.key(0)
            weft.random.normal(key); weft.random.uniform(key)    # KeyReuseError
            a, b = weft.random.split(weft.random.key(0))         # use a and b
    """


class InternalError(WeftError, RuntimeError):
    """An invariant of weft itself was broken. Please report it with the program that caused it."""


class JAXTypeError(WeftError, TypeError):
    """Base class of the errors of tracing that are TypeErrors, by JAX's name."""


class JAXIndexError(WeftError, IndexError):
    """Base class of the errors of indexing, by JAX's name."""


class IndexOutOfBoundsError(JAXIndexError):
    """A static index is outside the axis that it indexes.

    Only indices known while tracing are checked; array-valued ones are clamped::

        jnp.arange(3)[5]                 # IndexOutOfBoundsError
        jnp.arange(3)[-1]
    """


class ConcretizationTypeError(JAXTypeError):
    """The value of a traced array was needed while its function was being traced.

    Inside `jit` (and loop bodies, branches, ...) arrays have a shape and a dtype but no value.
    Python control flow and shapes need values. Either use the traced form of the construct or make
    the argument static::

        @weft.jit
        def f(x, n):
            return jnp.broadcast_to(x, (n,))      # n is traced: error

        f = weft.jit(f, static_argnames="n")      # n is a Python value now
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used as a Python condition (`if`, `while`, `and`, `assert`).

    Select between values with `where`, or between computations with `lax.cond`::

        @weft.jit
        def relu(x):
            return x if x > 0 else 0.0            # error
            return jnp.where(x > 0, x, 0.0)       # works
    """


class TracerIntegerConversionError(ConcretizationTypeError, IndexError):
    """A traced array was used where Python needs an integer (list index, `range`, a shape).

    It is an IndexError too, for bounds of slices. Index an array instead of a list, take a slice
    by `lax.dynamic_slice`, or declare the argument static::

        @weft.jit
        def pick(i):
            return [1.0, 2.0][i]                  # error
            return jnp.array([1.0, 2.0])[i]       # works
    """


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced array was passed to NumPy, which needs its values.

    Call the function of the same name in `weft.numpy`, or compute the NumPy part outside::

        @weft.jit
        def f(x):
            return np.sin(x)                      # error
            return jnp.sin(x)                     # works
    """


class UnboundAxisNameError(WeftError, NameError):
    """A collective operation named an axis that no vmap around it has named.

    Give the mapped axis its name::

        lax.psum(x, "i")                                      # error: there is no axis "i"
        weft.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(x)
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced array outlived the function in which it was made.

    It was stored in a global, an attribute or a closure during tracing and used afterwards. Return
    it from the function instead::

        saved = []

        @weft.jit
        def f(x):
            saved.append(x * 2)                   # leaks
            return x

        f(1.0)
        saved[0] + 1                              # error
    """


class RefError(WeftError, TypeError, ValueError):
    """A ref (`weft.new_ref`) where it cannot be, or a write that does not fit it.

    Functions take refs as arguments, each once, or close over them; they return arrays. What is
    written has the dtype of the ref. ::

        count = weft.new_ref(0)

        @weft.jit
        def f(x):
            count[...] += 1
            return count                          # RefError: return count[...]
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean array was used as an index; the result's shape would depend on its values.

    Use the three-argument `where`, which keeps the shape::

        @weft.jit
        def f(x):
            return x[x > 0].sum()                 # error
            return jnp.where(x > 0, x, 0).sum()   # works
    """


class NonHashableStaticArgumentError(WeftError, ValueError, TypeError):
    """An argument declared static cannot be hashed, so compiled programs cannot be looked up by it.

    Pass a hashable value (a tuple for a list, a frozen dataclass for a dict)::

        f = weft.jit(lambda x, axes: x.sum(axes), static_argnames="axes")
        f(x, axes=[0, 1])                         # error
        f(x, axes=(0, 1))
    """


class TypePromotionError(WeftError, ValueError, TypeError):
    """There is no dtype to which both operands are converted implicitly.

    This is so for the 8-bit floats and for 4-bit integers among others. Convert one operand::

        x.astype(jnp.float32) * y
    """


class DeletedArrayError(WeftError, RuntimeError, ValueError):
    """An array was used after its memory was given away.

    Arguments listed in `donate_argnums`, and arrays on which `delete()` was called, must not be
    used again. Keep the result instead of the argument::

        step = weft.jit(update, donate_argnums=0)
        new = step(state)
        state + 1                                 # error: state was donated
    """


class TransferGuardError(WeftError, RuntimeError):
    """Data was to go between host and devices although a setting forbids it.

    Ask for the transfer by name, or allow it::

        with weft.transfer_guard("disallow"):
            x + np.ones(3)                        # error
            x + weft.device_put(np.ones(3))
    """


class CallbackError(WeftError, RuntimeError):
    """A Python function that a program calls on the host returned something else than promised.

    The results' number, shapes and dtypes are part of the compiled program::

        shape = weft.ShapeDtypeStruct(x.shape, x.dtype)
        weft.pure_callback(lambda x: np.sum(x), shape, x)            # error
        weft.pure_callback(lambda x: np.cumsum(x, -1, x.dtype), shape, x)
    """


class DeviceMismatchError(WeftError, ValueError):
    """Operands are committed to different devices. Move one of them with `device_put`."""


class ProcessFailureError(WeftError, RuntimeError):
    """A process of those that `weft.distributed.initialize` brought together has failed.

    It is raised in the main thread of each other process, wherever that is, and by every later call
    that waits for the failed one. Programs over the devices of all processes cannot run any more:
    end the process, start all of them again and restore the last checkpoint (`weft.checkpoints`).

    Attributes: failed_processes, a list of their numbers; failed_devices, the set of their devices.
    """

    _devices: Any = None  # set by weft.runtime.devices: what gives the devices of all processes

    def __init__(self, message, failed_processes=()):
        super().__init__(message)
        self.failed_processes = list(failed_processes)

    @property
    def failed_devices(self):
        return {d for d in self._devices() if d.process_index in self.failed_processes}


class ProgramMismatchError(WeftError, RuntimeError):
    """Processes with common devices started different programs there, or in another order.

    The message has what each of them was about to start. Every process has to make the same calls
    on arrays that are spread over several processes, also where only one of them wants the result::

        if weft.process_index() == 0:
            print(x.sum())               # error, if x has parts in other processes
        total = x.sum()                  # every process
        if weft.process_index() == 0:
            print(total)
    """


class NotAddressableError(WeftError, RuntimeError, ValueError):
    """The value of an array was asked for of which other processes hold parts.

    See what this process holds, or bring all of it to every process::

        np.asarray(x)                                  # error
        [shard.data for shard in x.addressable_shards]
        multihost_utils.process_allgather(x, tiled=True)
    """


class ShardingError(WeftError, ValueError):
    """A sharding that does not fit: the array, the mesh, or what the program has.

    Each dimension of an array has to be divisible by the number of parts that its entry of the
    PartitionSpec asks for, and a spec has at most as many entries as the array has dimensions::

        s = NamedSharding(weft.make_mesh((4,), ("x",)), weft.P("x"))
        weft.device_put(jnp.ones(6), s)      # error: 6 is not divisible by 4
        weft.device_put(jnp.ones(8), s)
    """


class MissingMeshError(ShardingError, RuntimeError):
    """A bare PartitionSpec where no mesh is set; also a RuntimeError.

    Set the mesh that it is over, or name it::

        weft.device_put(x, weft.P("x"))      # MissingMeshError
        with weft.set_mesh(mesh):
            weft.device_put(x, weft.P("x"))
        weft.device_put(x, NamedSharding(mesh, weft.P("x")))
    """


class ShardingTypeError(WeftError, TypeError, ValueError):
    """Arrays split over explicit axes of a mesh from which it does not follow how a result is.

    Say it, with `out_sharding=`, or bring an operand into another sharding first::

        x @ y                                # error: both are split where they are summed up
        jnp.dot(x, y, out_sharding=weft.P("x", None))
        weft.reshard(x, weft.P("x", None)) @ y
    """


class ControlFlowTypeError(WeftError, TypeError):
    """A branch or the body of a loop returns something else than the construct needs.

    Branches must return the same tree of shapes and dtypes, the body of a loop what it takes; the
    message lists the parts that differ. Convert or reshape them in the function::

        lax.fori_loop(0, 3, lambda i, x: x / 2, jnp.int32(8))      # error: int32 becomes float32
        lax.fori_loop(0, 3, lambda i, x: x // 2, jnp.int32(8))
    """


class TreeStructureError(WeftError, ValueError, TypeError):
    """Pytrees that should have the same structure do not; the message names the key path.

    Common causes are a tuple in place of a list, a missing dict key, or None for an array::

        tree.map(jnp.add, {"w": 1.0}, {"w": 1.0, "b": 2.0})   # error: keys ['w'] and ['b', 'w']
    """
