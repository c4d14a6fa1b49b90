"""`jit` and `composite`: functions that run as compiled programs.

The callable itself, its caches and its call path are C++ (`_core.JitFunction`); this file reads the
options and gives the callable its other methods (`lower`, `trace`, `eval_shape`).
"""

import functools
import operator
import types
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from weft import _core
from weft._stages.options import JitOptions, complete, is_inlined, options_of_compiler
from weft._stages.stage import Program
from weft._stages.traced import Traced
from weft._surface import public_function
from weft._tracing.signature import (
    describe_argument,
    describe_output,
    describe_position,
)
from weft._types.avals import ShapeDtypeStruct, typed
from weft.errors import ArgumentTypeError, AttributeValueError
from weft.runtime.pytree import PyTreeDef, registry

_F = TypeVar("_F", bound=Callable[..., Any])
_P = ParamSpec("_P")
_T = TypeVar("_T")
_Shown = TypeVar("_Shown", bound=bool)


class JitDecorator(Protocol):
    """What stubs say of `jit` with options alone (of the first overload: tools/stub_types.py)."""

    @overload
    def __call__(self, fun: _Shown, /) -> "_Shown | _core.JitFunction[..., Any]": ...
    @overload
    def __call__(self, fun: Callable[_P, _T], /) -> "_core.JitFunction[_P, _T]": ...


def _reject_value(*details):
    from weft._checks import reject_value  # nothing that a program without errors should load

    reject_value(*details)


def _look_at_made(*details):
    from weft._checks import look_at_made

    look_at_made(*details)


def _resolve_shardings(*args):
    from weft._placement import resolve

    return resolve(*args)


def _in_parallel(*args):
    from weft._pool import in_parallel  # threads, for those who have several modules

    in_parallel(*args)


def _notice(kind, *details):
    from weft import _notices  # nothing that a program should load unless it is told something

    getattr(_notices, kind)(*details)


_core.install(
    notice=_notice,
    in_parallel=_in_parallel,
    resolve_shardings=_resolve_shardings,
    reject_value=_reject_value,
    look_at_made=_look_at_made,
    flatten=registry.flatten,
    flatten_one_level=registry.flatten_one_level,
    tree_type=PyTreeDef,
    describe=describe_argument,
    describe_output=describe_output,
    describe_position=describe_position,
    abstract_type=ShapeDtypeStruct,
    typed=typed,
)


_TRACES = "__weft_traces__"


class _TracesByOptions:
    """What the jit functions of one function have traced; an attribute of that function.

    There it lives as long as the function, and cycles through it can be collected.
    """

    def __init__(self, fun):
        self.fun = weakref.ref(fun)
        self.by_options = {}

    def __reduce__(self):  # a copy or pickle of the function takes nothing along
        return (_TracesByOptions, (_TracesByOptions,))


def _traces(fun, options):
    """The traces that a new jit function shares with earlier ones of the same function and options.

    Other callables than functions and partial applications of them are jitted once as a rule, or
    are made anew each time, like bound methods.
    """
    if type(fun) not in (types.FunctionType, functools.partial):
        return _core.Traces()
    shared = vars(fun).get(_TRACES)
    # functools.wraps copies attributes of one function to another.
    if type(shared) is not _TracesByOptions or shared.fun() is not fun:
        shared = vars(fun)[_TRACES] = _TracesByOptions(fun)
    return shared.by_options.setdefault(options, _core.Traces())


_GENERATOR = 0x20  # inspect.CO_GENERATOR
_CUTS = ("auto", "whole", "blocks", "unrolled")
_EFFORTS = ("fast_compile", "balanced", "fast_run")
_KERNELS = ("auto", "always", "never")


def _device_of(device, backend):
    """The number of the device that the parameters of jit name; -1 if they name none."""
    if device is not None and backend is not None:
        raise AttributeValueError(
            f"jit expected a device or a backend; got {device!r} and {backend!r}"
        )
    if device is None and backend is None:
        return -1
    from weft.runtime import devices

    if backend is not None:
        device = devices.devices(backend)[0]
    devices.check_device(device, "jit")
    return _core.device_index(device)


def _make(fun, options) -> Any:
    """The jitted function; names and positions of arguments are as users give them."""
    if not callable(fun) or isinstance(fun, staticmethod):
        raise ArgumentTypeError(f"jit expected a function; got {fun!r}")
    if getattr(getattr(fun, "__code__", None), "co_flags", 0) & _GENERATOR:
        raise ArgumentTypeError(f"jit expected a function; got the generator function {fun!r}")
    statics = complete(fun, options.static_argnums, options.static_argnames, "static")
    donated = complete(fun, options.donate_argnums, options.donate_argnames, "donate")
    both = set(statics[0]) & set(donated[0])
    if both:
        raise AttributeValueError(f"jit: argument {min(both)} is both static and donated")
    named = fun
    while isinstance(named, functools.partial):
        named = named.func
    name = getattr(named, "__name__", None)
    if not (name and isinstance(name, str)):
        name = type(fun).__name__
    options = options._replace(
        static_argnums=statics[0],
        static_argnames=statics[1],
        donate_argnums=donated[0],
        donate_argnames=donated[1],
    )
    # Trees of shardings have no hash, and jit functions that name them are made once.
    is_placed = options.in_shardings is not None or options.out_shardings is not None
    # How a trace is compiled does not matter to it.
    traced_with = options._replace(compile="auto", kernels="auto")
    traces = _core.Traces() if is_placed else _traces(fun, traced_with)
    jitted: Any = _core.JitFunction(fun, name, options, traces)
    functools.update_wrapper(jitted, fun)
    if not hasattr(fun, "__name__"):
        jitted.__name__ = name
    vars(jitted).pop(_TRACES, None)
    return jitted


class _NotGiven:
    """What stands for no function, as None does not: it is refused."""

    def __repr__(self):
        return "<not given>"


NOT_GIVEN = _NotGiven()


def jit(
    fun=NOT_GIVEN,
    /,
    *,
    in_shardings=None,
    out_shardings=None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
    compile="auto",
    optimize="balanced",
    kernels="auto",
) -> Any:
    """A function that is traced once per signature of its arguments and then runs compiled.

    Arguments and results are arrays, numbers, or trees (tuples, lists, dicts, registered classes)
    of them. A signature is the tree of the arguments, the shape, dtype and weak type of each leaf,
    and the values and types of static arguments. Jitting a function again with the same options
    finds what was traced; two functions of the same structure share one compiled program, whatever
    their names.

    Args:
      fun: the function; without it, a decorator is returned.
      static_argnums, static_argnames: positions and names of arguments that are compile-time
        values. They must be hashable. Giving one kind implies the other.
      donate_argnums, donate_argnames: arguments whose buffers the results may reuse. A donated
        array is deleted by the call.
      in_shardings, out_shardings: how arguments are, and results are to be, split over devices: a
        sharding (weft.sharding.NamedSharding), a PartitionSpec under weft.set_mesh, None for what
        the arguments are and for what XLA chooses; or trees of these, of which the arguments
        (a tuple of them) and results may go on below. Arrays that nobody committed are moved.
      keep_unused: pass arguments that the function ignores to the device all the same.
      device, backend: the device, or the platform, that the function runs on, wherever its
        arguments are; the results are committed to it. One of the two. Within another trace they
        have no effect: a program runs on one device.
      inline: within another trace, splice the function's operations into the caller's program
        instead of recording a call; a boolean, or a member of `weft.Inline`.
      compiler_options: a dict of options of XLA's, by name. XLA refuses unknown ones
        (JaxRuntimeError) when the function is compiled; a call within another trace does
        (ValueError).
      compile: "whole", one module of XLA's; "blocks", pieces of the program that repeat (layers,
        steps, their derivatives) are compiled once each and the program runs in steps; "auto",
        blocks where by estimate much less is compiled, steps cost little and need no more
        memory, unless `optimize` is "fast_run". Blocks need a program without effects on one
        device. Within another trace "blocks" is refused (ValueError). What one module would repeat
        hundreds of times, as a loop of Python wrote it out, becomes a loop of XLA's where that is
        compiled much faster and runs as fast; "unrolled" is one module without that.
      optimize: how hard XLA's compiler for CPUs tries: "balanced", all that calls gain from;
        "fast_compile", programs in half of the time or less, whose calls may take twice as long;
        "fast_run", whatever XLA has, also where it rarely pays, in one module. `compiler_options`
        count before it. Within another trace all but "balanced" are refused (ValueError).
      kernels: "auto", parts of the program that are small become functions that XLA's compiler for
        CPUs emits as a whole, loops and branches included, where they run faster so by estimate;
        "always", wherever that is possible; "never", none does. See docs/small_programs.md.

    Raises:
      ArgumentTypeError: for an argument or result that is no tree of arrays; it names the path.
      NonHashableStaticArgumentError: for a static argument without a hash.
      TypeError, ValueError: for positions or names that the function does not have.

    Examples:
      >>> @weft.jit
      ... def norm(x):
      ...     return wnp.sqrt(wnp.sum(x * x))
      >>> norm(wnp.array([3.0, 4.0]))
      Array(5., dtype=float32)
    """
    if not (device is backend is None or in_shardings is out_shardings is None):
        raise AttributeValueError(
            "jit expected a device, or in_shardings and out_shardings; got both: "
            f"{backend if device is None else device!r} and {in_shardings!r}, {out_shardings!r}"
        )
    if compile not in _CUTS:
        raise AttributeValueError(
            f"compile: expected 'auto', 'whole', 'blocks' or 'unrolled'; got {compile!r}"
        )
    if optimize not in _EFFORTS:
        raise AttributeValueError(
            f"optimize: expected 'fast_compile', 'balanced' or 'fast_run'; got {optimize!r}"
        )
    if kernels not in _KERNELS:
        raise AttributeValueError(f"kernels: expected 'auto', 'always' or 'never'; got {kernels!r}")
    options = JitOptions(
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        inline=is_inlined(inline),
        keep_unused=bool(keep_unused),
        device=_device_of(device, backend),
        compiler_options=options_of_compiler(compiler_options, optimize),
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        compile="whole" if (compile, optimize) == ("auto", "fast_run") else compile,
        kernels=kernels,
    )
    if fun is NOT_GIVEN:
        return lambda f: _make(f, options)
    return _make(fun, options)


@overload
def composite(
    fun: _F, *, static_argnames: Any = (), exact_ints: bool = False, broadcasts: bool = False
) -> _F: ...
@overload
def composite(
    fun: None = None,
    *,
    static_argnames: Any = (),
    exact_ints: bool = False,
    broadcasts: bool = False,
) -> Callable[[_F], _F]: ...
def composite(
    fun: Any = None,
    *,
    static_argnames: Any = (),
    exact_ints: bool = False,
    broadcasts: bool = False,
) -> Any:
    """Decorator for library functions made of several operations.

    Eagerly such a function is one cached compiled program; within a trace its operations become
    part of the caller's program, at the caller's source line.

    A Python integer that the default dtype does not hold is no argument of that program: the
    operations get it, and take it exactly beside arrays whose dtype holds it. With `exact_ints`
    they also get those that the dtype of another argument does not hold, which would wrap around.

    `broadcasts` says that the function aligns the axes of its arguments: they are to have one rank,
    or no axes, where a user who calls it wants that (`weft.numpy_rank_promotion`).
    """
    if fun is None:
        return functools.partial(
            composite, static_argnames=static_argnames, exact_ints=exact_ints, broadcasts=broadcasts
        )
    return _make(
        fun,
        JitOptions(
            static_argnums=None,
            static_argnames=static_argnames,
            donate_argnums=None,
            donate_argnames=None,
            inline=True,
            library=True,
            exact_ints=exact_ints,
            broadcasts=broadcasts,
        ),
    )


def _trace(self, /, *args, **kwargs):
    """Traces for these arguments (arrays or ShapeDtypeStructs) without running anything."""
    return Traced(Program(_core.trace(self, args, kwargs), self))


def _lower(self, /, *args, **kwargs):
    """Traces and lowers to StableHLO; see `Lowered`."""
    return self.trace(*args, **kwargs).lower()


def _eval_shape(self, /, *args, **kwargs):
    """Shapes and dtypes of the results, a tree of ShapeDtypeStruct."""
    return self.trace(*args, **kwargs).out_info


def _explain(self, /, *args, **kwargs):
    """Why the function was traced and compiled: a weft.stages.Explanation; `print` shows it.

    Without arguments, of the last 64 calls that had to be traced: the user's line, which argument
    differed from the closest earlier call, in shape, dtype, weak type, sharding, static value,
    nesting, or which setting; the seconds of each stage; whether XLA, the disk or memory served the
    program. With arguments, as `lower` takes them: what would become of a call, which is not made.
    """
    from weft._explain import explain  # when asked for

    return explain(self, args, kwargs)


class CacheInfo(tuple):
    """(hits, misses, size, limit) of a function's cache of traced signatures."""

    __slots__ = ()
    hits = property(operator.itemgetter(0))
    misses = property(operator.itemgetter(1))
    currsize = property(operator.itemgetter(2))
    maxsize = property(operator.itemgetter(3))

    def __repr__(self):
        return "CacheInfo(hits={}, misses={}, currsize={}, maxsize={})".format(*self)


def _signature(self):
    import inspect  # nothing that import should load

    return inspect.signature(self.__wrapped__)


def _repr(self):
    return f"<jit function {self.__name__}>"


for _name, _method in {
    "trace": _trace,
    "lower": _lower,
    "explain": _explain,
    "eval_shape": _eval_shape,
    "cache_info": lambda self: CacheInfo(self._cache_info()),
    "_cache_size": lambda self: self._cache_info()[2],
    "cache_clear": lambda self: self.clear_cache(),
    "__repr__": _repr,
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
}.items():
    setattr(_core.JitFunction, _name, public_function(_method))
_core.JitFunction.__signature__ = property(_signature)  # pyright: ignore[reportAttributeAccessIssue]
