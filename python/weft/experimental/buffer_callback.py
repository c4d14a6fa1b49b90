"""Functions on the host that write their results into memory that they are given.

What a program does with them is what it does with `weft.pure_callback` and, where they have side
effects, with `weft.experimental.io_callback`: they run on a CPU.
"""

import numpy as np

from weft._callback import (
    VMAP_METHODS as _VMAP_METHODS,
    io_callback as _io_callback,
    pure_callback as _pure_callback,
)
from weft._surface import open_to_users as _open_to_users, public as _public
from weft._types.avals import typeof as _typeof
from weft.errors import AttributeValueError, CallbackError
from weft.runtime.ffi import ExecutionStage
from weft.runtime.pytree import registry as _registry

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
__getattr__, __dir__ = _public(__name__, __all__)


class Buffer:
    """Memory of an argument, which is not to be written to, or of a result.

    Attributes: dtype, ndim, shape, writeable (whether it is a result's). `numpy.asarray` of one is
    the memory itself, and `from_dlpack` takes it.
    """

    def __init__(self, array, writeable):
        self._array = array
        self.writeable = writeable

    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)
    shape = property(lambda self: self._array.shape)

    def __array__(self, dtype=None, copy=None):
        array = np.asarray(self._array)
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            return array.astype(array.dtype if dtype is None else dtype)
        return array

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("the memory of a Buffer is that of a CPU")


class ExecutionContext:
    """What runs the program that the function is called by.

    Attributes: stage (ExecutionStage.EXECUTE); stream, which raises NotImplementedError, as CPUs
    have none.
    """

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self):
        raise NotImplementedError("ExecutionContext.stream: a CPU has no streams")


class _Writer:
    """A function of buffers as one of arrays, equal if what it is made of is."""

    def __init__(self, callback, avals, tree, ranks, aliases):
        self.callback = callback
        self._avals = avals  # (shape, dtype) of each result
        self._tree = tree
        self._ranks = ranks  # of the leaves of the arguments
        self._aliases = aliases
        self.__name__ = getattr(callback, "__name__", type(callback).__name__)

    def _key(self):
        return self.callback, self._avals, self._tree, self._ranks, self._aliases

    def __eq__(self, other):
        return isinstance(other, _Writer) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __call__(self, *args, **kwargs):
        leaves, tree = _registry.flatten((args, kwargs))
        # Under vmap arguments have axes for the mapped ones in front, and so have the results.
        mapped = np.broadcast_shapes(
            *(x.shape[: x.ndim - rank] for x, rank in zip(leaves, self._ranks, strict=True))
        )
        results = [np.empty(mapped + shape, dtype) for shape, dtype in self._avals]
        for i, o in self._aliases:
            results[o][...] = np.asarray(leaves[i])
        given, named = tree.unflatten([Buffer(x, False) for x in leaves])
        out = self._tree.unflatten([Buffer(x, True) for x in results])
        returned = self.callback(ExecutionContext(), out, *given, **named)
        if returned is not None:
            raise CallbackError(
                f"buffer_callback expected '{self.__name__}' to write its results and to return "
                f"nothing; got {returned!r}"
            )
        return self._tree.unflatten(results)


def buffer_callback(
    callback,
    result_shape_dtypes,
    *,
    has_side_effect=False,
    vmap_method=None,
    input_output_aliases=None,
    command_buffer_compatible=False,
):
    """A function of arrays whose results a function on the host writes.

    Args:
      callback: callback(context, out, *args, **kwargs), which takes an ExecutionContext, a tree of
        Buffers to write the results into, and trees of Buffers in place of arrays. It returns None.
      result_shape_dtypes: a tree of ShapeDtypeStruct, or of arrays that have the shapes and dtypes.
      has_side_effect: whether it is called though nobody needs its results; under vmap it is then
        called once per element.
      vmap_method: see `weft.pure_callback`; Buffers of results have the axes of all mapped
        arguments.
      input_output_aliases: dict from the number of an array among the arguments to that of the
        result whose Buffer begins with its values. Both have one type.
      command_buffer_compatible: no effect; it is for GPUs.

    Returns:
      call(*args, **kwargs), which takes trees of arrays and gives a tree of arrays. Calls raise
      ValueError for aliases that do not fit, NotImplementedRuleError when differentiated, and an
      error of the function as `weft.pure_callback` does.

    Examples:
      >>> from weft.experimental.buffer_callback import buffer_callback
      >>> def add_one(context, out, x):
      ...     np.add(x, 1, out=np.asarray(out))
      >>> f = buffer_callback(add_one, weft.ShapeDtypeStruct((2,), "float32"))
      >>> weft.jit(f)(wnp.array([1.0, 2.0]))
      Array([2., 3.], dtype=float32)
    """
    if vmap_method not in _VMAP_METHODS:
        raise AttributeValueError(
            f"buffer_callback: expected vmap_method to be one of "
            f"{', '.join(map(repr, _VMAP_METHODS))}; got {vmap_method!r}"
        )
    promised, out_tree = _registry.flatten(result_shape_dtypes)
    avals = tuple((tuple(x.shape), np.dtype(x.dtype)) for x in promised)

    def call(*args, **kwargs):
        types = [_typeof(x) for x in _registry.flatten((args, kwargs))[0]]
        aliases = tuple(sorted((input_output_aliases or {}).items()))
        for i, o in aliases:
            if not (0 <= i < len(types) and 0 <= o < len(avals)):
                raise AttributeValueError(
                    f"buffer_callback expected input_output_aliases of {len(types)} arguments and "
                    f"{len(avals)} results; got {i}: {o}"
                )
            if (types[i].shape, types[i].dtype) != avals[o]:
                raise AttributeValueError(
                    f"buffer_callback expected aliases of one type; got {types[i]} and "
                    f"{promised[o]}"
                )
        writer = _Writer(callback, avals, out_tree, tuple(t.ndim for t in types), aliases)
        if has_side_effect:
            return _io_callback(writer, result_shape_dtypes, *args, **kwargs)
        return _pure_callback(writer, result_shape_dtypes, *args, vmap_method=vmap_method, **kwargs)

    return call


_open_to_users(__name__)
