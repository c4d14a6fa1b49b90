"""Programs and types of results as values: functions that are traced and not run."""

import operator
from typing import Any

import numpy as np

from weft import _core
from weft._arguments import axis_text
from weft._jit import jit
from weft._recording import check_callable, function_name
from weft._surface import named_after, public_function
from weft._types.avals import ShapeDtypeStruct, typeof
from weft.dtypes import is_key, requested_dtype
from weft.tree_util import tree_flatten, tree_leaves, tree_map


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False):
    """A function that returns the traced program of `fun` instead of running it.

    `str()` of the result is the program in jaxpr notation. Arguments may be ShapeDtypeStructs.

    Args:
      fun: a function of arrays or trees of arrays.
      static_argnums: positions of compile-time arguments.
      axis_env: pairs of a name and a size, of axes over which `fun` is mapped.
      return_shape: also return the tree of ShapeDtypeStruct of the results.

    Examples:
      >>> print(weft.make_jaxpr(lambda x: wnp.sin(x) * 2)(1.0))
      { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    check_callable(fun, "make_jaxpr")
    jitted: Any = jit(fun, static_argnums=static_argnums)

    axes = tuple((axis_text(name), operator.index(size)) for name, size in axis_env or ())

    @public_function
    @named_after(fun)
    def traced_program(*args, **kwargs):
        traced = _core.with_axes(axes, False, lambda: jitted.trace(*args, **kwargs))
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    named: Any = traced_program
    named.__name__ = named.__qualname__ = f"make_jaxpr({function_name(fun)})"
    return traced_program


def eval_shape(fun, *args, **kwargs):
    """Shapes and dtypes that `fun` would return: a tree of ShapeDtypeStruct. Nothing runs.

    What `fun` returns may have ShapeDtypeStructs in it. Of the arguments only types matter: objects
    with `shape` and `dtype` stand for arrays of these.

    Examples:
      >>> weft.eval_shape(wnp.dot, wnp.ones((2, 3)), wnp.ones((3, 4)))
      ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable(fun, "eval_shape")
    in_shard_map = bool(_core.varying_axes())
    if isinstance(fun, _core.JitFunction) and not in_shard_map:
        return fun.eval_shape(*args, **kwargs)
    manual = []

    @named_after(fun)
    def described(*args, **kwargs):
        result = tree_map(_value_of, fun(*args, **kwargs))
        if in_shard_map:
            manual.extend(typeof(leaf).manual_axis_type for leaf in tree_leaves(result))
        return result

    types = jit(described).eval_shape(*args, **kwargs)
    return types if not manual else _with_manual(types, manual)


def _with_manual(types, manual):
    leaves, tree = tree_flatten(types)
    pairs = zip(leaves, manual, strict=True)
    return tree.unflatten([leaf.update(manual_axis_type=own) for leaf, own in pairs])


def _value_of(leaf):
    """A result of a function of which only the types matter."""
    if not isinstance(leaf, ShapeDtypeStruct):
        return leaf
    dtype = requested_dtype(leaf.dtype, "full")
    if is_key(dtype):
        words = _core.broadcast_to(np.uint32(0), (dtype.itemsize // 4,))
        zero = _core.bind("bitcast_convert_type", words, new_dtype=dtype)
    else:
        zero = _core.astype(0, dtype)
    zeros = _core.broadcast_to(zero, leaf.shape)
    return _core.astype(zeros, leaf.dtype, True) if leaf.weak_type else zeros
