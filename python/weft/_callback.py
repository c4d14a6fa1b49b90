"""pure_callback: functions on the host within compiled programs."""

from weft import _core
from weft._recording import check_leaves, function_name
from weft._staging import ShapedArray, typeof
from weft.errors import ArgumentTypeError
from weft.runtime.callback import check_results, host_argument
from weft.runtime.pytree import registry

_VMAP_METHODS = (
    None,
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


class _FlatCallback:
    """A function of trees as one of lists of arrays.

    Equal if function and trees are, so that programs that call the same function are the same.
    """

    def __init__(self, fun, in_tree, out_tree, name):
        self.fun = fun
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.__name__ = name

    def _key(self):
        return self.fun, self.in_tree, self.out_tree

    def __eq__(self, other):
        return isinstance(other, _FlatCallback) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __call__(self, *arrays):
        args, kwargs = self.in_tree.unflatten(list(arrays))
        leaves, tree = registry.flatten(self.fun(*args, **kwargs))
        if tree != self.out_tree:
            raise ArgumentTypeError(
                f"pure_callback expected '{self.__name__}' to return the tree {self.out_tree}, as "
                f"promised; got {tree}"
            )
        return leaves


def pure_callback(callback, result_shape_dtypes, *args, vmap_method=None, **kwargs):
    """The result of a Python function on the host, also within compiled programs.

    The function must be pure: calls may be left out, shared or repeated. Programs with callbacks
    run on CPU only.

    Args:
      callback: takes NumPy arrays in place of the arrays of `args` and `kwargs`, returns what
        `result_shape_dtypes` says.
      result_shape_dtypes: a tree of ShapeDtypeStruct, or of arrays that have the shapes and dtypes.
      args, kwargs: trees of arrays.
      vmap_method: how the call is made under vmap. "sequential": once per element, in a loop;
        "sequential_unrolled": once per element, each call an operation of its own.
        "expand_dims", "broadcast_all": one call on arrays with a leading axis for the mapped one,
        of size 1 (or broadcast to its size) where an argument is not mapped.
        "legacy_vectorized": the same, arguments that are not mapped as they are.
        None raises.

    Returns a tree of arrays. Raises NotImplementedRuleError when differentiated (give the calling
    function a derivative with custom_jvp), CallbackError if the function returns something else
    than was promised; an error of the function itself arrives as a RuntimeError that holds its
    traceback, from un-jitted calls as it is.
    """
    if vmap_method not in _VMAP_METHODS:
        raise ValueError(
            f"vmap_method: expected one of {', '.join(map(repr, _VMAP_METHODS))}; "
            f"got {vmap_method!r}"
        )
    if not callable(callback):
        raise TypeError(f"pure_callback expected a function; got {callback!r}")
    results, out_tree = registry.flatten(result_shape_dtypes)
    avals = tuple(_result_aval(r) for r in results)
    leaves, in_tree = registry.flatten((args, kwargs))
    name = function_name(callback)
    check_leaves(leaves, lambda i: f"argument {i} of '{name}'")
    flat = _FlatCallback(callback, in_tree, out_tree, name)
    if _core.in_trace() or any(type(x) is _core.Tracer for x in leaves):
        out = _core.bind(
            "pure_callback", *leaves, callback=flat, result_avals=avals, vmap_method=vmap_method
        )
    else:
        types = [(a.shape, a.dtype) for a in avals]
        arrays = [host_argument(x, _core.typeof(x)[1]) for x in leaves]
        x64 = _core.get_state()[0]
        out = [_core.asarray(r) for r in check_results(flat, flat(*arrays), types, "", x64)]
    return out_tree.unflatten(out)


def _result_aval(x):
    has_type = hasattr(x, "shape") and hasattr(x, "dtype")
    aval = x if has_type else typeof(x)
    return ShapedArray(aval.shape, aval.dtype)
