"""Functions on the host within programs: pure_callback, io_callback, and what weft.debug stands on.

A function of trees becomes one of lists of arrays (`_FlatCallback`), an attribute of the op that
stands for the call. With nothing being traced the function is called at once. The function gets
arrays of weft on this process's first CPU, of typed random keys the words.
"""

import logging

import numpy as np

from weft import _core
from weft._recording import check_leaves, function_name
from weft._tree_mismatch import structure_text
from weft._types.avals import ShapedArray, typeof
from weft._types.keys import keys
from weft.dtypes import is_key, x64_enabled
from weft.errors import CallbackError, DTypeError, NotImplementedRuleError
from weft.runtime.callback import (
    as_runtime_error,
    check_results,
    effects_barrier,
    host_argument,
    inside_callback,
)
from weft.runtime.devices import own_cpu, placement_of
from weft.runtime.pytree import registry

_log = logging.getLogger("weft")

VMAP_METHODS = (
    None,
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


class _FlatCallback:
    """A function of trees as one of lists of arrays.

    Equal if function, trees and static arguments are (and of equal types), so that programs that
    call the same function are the same. One that holds something unhashable is equal to itself
    only.
    """

    def __init__(self, fun, in_tree, out_tree, op, static=()):
        self.fun = fun
        self.in_tree = in_tree
        self.out_tree = out_tree  # None: what the function returns is dropped
        self.op = op
        self.static = static  # (position among the leaves, value)
        self.__name__ = function_name(fun)
        self._key = (fun, in_tree, out_tree, static)
        try:
            self._hash = hash(self._key)
        except TypeError:
            self._key = None
            self._hash = id(self)

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, _FlatCallback) or self._key is None:
            return False
        return self._hash == other._hash and _core.same_value(self._key, other._key)

    def __hash__(self):
        return self._hash

    def __call__(self, *arrays):
        cpu = placement_of(own_cpu())
        leaves = [_core.host_argument(x, cpu) for x in arrays]
        for i, value in self.static:
            leaves.insert(i, value)
        args, kwargs = self.in_tree.unflatten(leaves)
        try:
            result = self.fun(*args, **kwargs)
        except Exception:
            # Where its program's results are used, the error may be far from here.
            _log.exception("%s of '%s' failed", self.op, self.__name__)
            raise
        if self.out_tree is None:
            return []
        leaves, tree = registry.flatten(result)
        # The promised tree is what callers get; a list for a tuple does no harm.
        if tree.num_leaves != self.out_tree.num_leaves:
            raise CallbackError(
                f"{self.op} expected '{self.__name__}' to return the tree "
                f"{structure_text(self.out_tree)}, as promised; got {structure_text(tree)}"
            )
        return leaves


def pure_callback(callback, result_shape_dtypes, *args, sharding=None, vmap_method=None, **kwargs):
    """The result of a Python function on the host, also within compiled programs.

    The function must be pure: calls may be left out, shared or repeated. Programs with callbacks
    run on CPU only.

    Args:
      callback: takes arrays on the CPU in place of those of `args` and `kwargs`, returns arrays, of
        weft or of NumPy, that are what `result_shape_dtypes` says.
      result_shape_dtypes: a tree of ShapeDtypeStruct, or of arrays that have the shapes and dtypes.
      args, kwargs: trees of arrays.
      sharding: None or a SingleDeviceSharding, without effect: all devices have the same host.
      vmap_method: how the call is made under vmap. "sequential": once per element, in a loop;
        "sequential_unrolled": once per element, each call an operation of its own.
        "expand_dims", "broadcast_all": one call on arrays with a leading axis for the mapped one,
        of size 1 (or broadcast to its size) where an argument is not mapped.
        "legacy_vectorized": the same, arguments that are not mapped as they are.
        None raises.

    Returns a tree of arrays. Raises NotImplementedRuleError when differentiated (give the calling
    function a derivative with custom_jvp), CallbackError if the function returns something else
    than was promised; an error of the function itself arrives as one of its class that is also a
    JaxRuntimeError, with its traceback, where the program is called or its results are used. The
    logger "weft" records it at once.

    Examples:
      >>> shape = weft.ShapeDtypeStruct((2,), "float32")
      >>> f = weft.jit(lambda x: weft.pure_callback(np.sort, shape, x))
      >>> f(wnp.array([2.0, 1.0]))
      Array([1., 2.], dtype=float32)
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method: expected one of {', '.join(map(repr, VMAP_METHODS))}; "
            f"got {vmap_method!r}"
        )
    _check_sharding(sharding, "pure_callback")
    avals, out_tree = _promised(result_shape_dtypes)
    leaves, flat = _flat(callback, args, kwargs, out_tree, "pure_callback")
    if _is_recorded(leaves):
        out = _recorded(
            "pure_callback",
            leaves,
            avals,
            callback=flat,
            result_avals=avals,
            vmap_method=vmap_method,
        )
    else:
        out = _called_at_once(flat, leaves, avals)
    return out_tree.unflatten(out)


def io_callback(callback, result_shape_dtypes, *args, sharding=None, ordered=False, **kwargs):
    """The result of a Python function on the host that has effects, such as reading from a file.

    Each time the program gets there the function is called once, whether its result is used or
    not. Programs with callbacks run on CPU only.

    Args:
      callback: takes arrays on the CPU in place of those of `args` and `kwargs`, returns arrays, of
        weft or of NumPy, that are what `result_shape_dtypes` says.
      result_shape_dtypes: a tree of ShapeDtypeStruct, or of arrays that have the shapes and dtypes.
      args, kwargs: trees of arrays.
      sharding: as for `pure_callback`.
      ordered: whether calls come in the order of the program, with other ordered ones.

    Returns a tree of arrays. Under vmap: one call per element; NotImplementedRuleError if ordered.
    Raises NotImplementedRuleError when differentiated, CallbackError if the function returns
    something else than was promised; errors of the function arrive as with `pure_callback`.

    Examples:
      >>> seen = []
      >>> f = lambda x: weft.experimental.io_callback(lambda v: seen.append(int(v)), None, x)
      >>> weft.jit(f)(3)
      >>> weft.effects_barrier()
      >>> seen
      [3]
    """
    _check_sharding(sharding, "io_callback")
    avals, out_tree = _promised(result_shape_dtypes)
    leaves, flat = _flat(callback, args, kwargs, out_tree, "io_callback")
    if _is_recorded(leaves, ordered):
        out = _recorded(
            "io_callback", leaves, avals, callback=flat, result_avals=avals, ordered=bool(ordered)
        )
    else:
        out = _called_at_once(flat, leaves, avals, ordered)
    return out_tree.unflatten(out)


def debug_callback(callback, args, kwargs, ordered, partitioned=False):
    """Calls a function on the host for its effects; see weft.debug.callback."""
    if ordered and partitioned:
        raise ValueError(
            "debug.callback expected ordered=False with partitioned=True, since the parts of a "
            "program run at the same time; got both"
        )
    leaves, in_tree = registry.flatten((args, kwargs))
    static = tuple((i, x) for i, x in enumerate(leaves) if not _is_array(x))
    flat = _FlatCallback(callback, in_tree, None, "debug.callback", static)
    leaves = [_on_host(x) for x in leaves if _is_array(x)]
    if _is_recorded(leaves, ordered):
        _recorded(
            "debug_callback",
            leaves,
            (),
            callback=flat,
            ordered=bool(ordered),
            partitioned=bool(partitioned),
        )
    else:
        _called_at_once(flat, leaves, (), ordered)


class _Inspector:
    """A function of a sharding as one of the core's; equal if the functions are."""

    def __init__(self, fun):
        self.fun = fun
        self.__name__ = function_name(fun)

    def __eq__(self, other):
        return isinstance(other, _Inspector) and self.fun == other.fun

    def __hash__(self):
        return hash(self.fun)

    def __call__(self, placement):
        from weft._placement import sharding_of

        self.fun(sharding_of(placement))


def inspect_sharding(value, callback):
    """Calls a function on the sharding of each array; see weft.debug.inspect_array_sharding."""
    leaves, _ = registry.flatten(value)
    check_leaves(leaves, lambda i: f"leaf {i} of the value of debug.inspect_array_sharding")
    inspector = _Inspector(callback)
    for x in map(_on_host, leaves):
        if _is_recorded([x]):
            _recorded("inspect_sharding", [x], (), callback=inspector)
        else:
            inspector(_core.asarray(x)._placement)


def _is_recorded(leaves, ordered=False):
    """Whether a call becomes an op of a graph that is being made."""
    if _core.in_trace() or any(type(x) is _core.Tracer for x in leaves):
        return True
    return ordered and _core.in_context()


def _is_array(x):
    try:
        _core.typeof(x)
    except TypeError:
        return False
    return True


def _check_sharding(sharding, op):
    if sharding is None:
        return
    from weft.sharding import SingleDeviceSharding

    if not isinstance(sharding, SingleDeviceSharding):
        raise NotImplementedRuleError(
            f"{op} expected sharding to be a SingleDeviceSharding or None; got {sharding!r}"
        )


def _promised(result_shape_dtypes):
    """The types of results, and their tree."""
    results, out_tree = registry.flatten(result_shape_dtypes)
    return tuple(_result_aval(r) for r in results), out_tree


def _flat(callback, args, kwargs, out_tree, op):
    """The arrays among the arguments, and the function of them."""
    if not callable(callback):
        raise TypeError(f"{op} expected a function; got {callback!r}")
    leaves, in_tree = registry.flatten((args, kwargs))
    flat = _FlatCallback(callback, in_tree, out_tree, op)
    check_leaves(leaves, lambda i: f"argument {i} of '{flat.__name__}'")
    return [_on_host(x) for x in leaves], flat


def _on_host(x):
    """An array as functions on the host get it."""
    if not is_key(_core.typeof(x)[1]):
        return x
    return keys.words(x)


def _recorded(op, leaves, avals, **attrs):
    # Not `bind`, under which a Python number takes the dtype of the arrays beside it.
    return _core.bind_graphs(op, leaves, (False,) * len(avals), **attrs)


def _called_at_once(flat, leaves, avals, ordered=False):
    if ordered and not inside_callback():
        effects_barrier()  # of programs that were started before
    types = [(a.shape, a.dtype) for a in avals]
    arrays = [host_argument(x, _core.typeof(x)[1]) for x in leaves]
    try:
        results = flat(*arrays)
    except Exception as error:
        raised = as_runtime_error(error)
        if raised is error:
            raise
        raise raised from None
    results = check_results(flat, results, types, "", x64_enabled())
    if _core.get_setting("debug_nans") or _core.get_setting("debug_infs"):
        from weft._checks import look_at

        for result in results:
            look_at(result, f"{flat.op} of '{flat.__name__}'")
    return [_core.asarray(r) for r in results]


def _result_aval(x):
    has_type = hasattr(x, "shape") and hasattr(x, "dtype")
    aval = x if has_type else typeof(x)
    if isinstance(aval.dtype, np.dtype) and aval.dtype != _core.canonical_dtype(aval.dtype):
        raise DTypeError(
            f"expected result_shape_dtypes of 32-bit types while 64-bit types are off; got {x!r}\n"
            "  Promise the narrow type, or use weft.enable_x64(True)."
        )
    return ShapedArray(aval.shape, aval.dtype)
