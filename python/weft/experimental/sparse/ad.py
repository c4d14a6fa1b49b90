"""Derivatives with respect to sparse arrays: of the values that they store."""

from typing import Any

from weft import _autodiff, _jacobian, numpy as wnp
from weft._autodiff import positions
from weft._recording import check_callable, function_name
from weft._surface import named_after, open_to_users as _open_to_users, public as _public
from weft.experimental.sparse._base import is_sparse
from weft.tree_util import tree_flatten, tree_structure

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]
__getattr__, __dir__ = _public(__name__, __all__)


def _with_values(x, values, lead=()):
    """A sparse array with other values at its places, in batches of shape `lead`; an array."""
    if not is_sparse(x):
        return values
    (_, *places), facts = x.tree_flatten()
    places = [wnp.broadcast_to(p, (*lead, *p.shape)) if lead else p for p in places]
    return type(x).tree_unflatten(facts, (values, *places))


class _Values:
    """Arguments by which to differentiate, as a list of arrays of values."""

    def __init__(self, args, argnums, name):
        self.nums, self.single = positions(argnums, len(args), name)
        self.args = list(args)
        self.leaves, self.tree = tree_flatten([args[n] for n in self.nums], is_leaf=is_sparse)
        self.values = [x.data if is_sparse(x) else x for x in self.leaves]

    def all_args(self, values):
        """All arguments, of which some have other values."""
        pairs = zip(self.leaves, values, strict=True)
        new = self.tree.unflatten([_with_values(x, y) for x, y in pairs])
        args = list(self.args)
        for n, x in zip(self.nums, new, strict=True):
            args[n] = x
        return args

    def derivative(self, values, num_own_axes=None):
        """Derivatives like the arguments; with further leading axes if a function counts them."""
        new = []
        for x, own, y in zip(self.leaves, self.values, values, strict=True):
            lead = () if num_own_axes is None else y.shape[: y.ndim - num_own_axes(own)]
            new.append(_with_values(x, y, lead))
        found = self.tree.unflatten(new)
        return found[0] if self.single else tuple(found)


def value_and_grad(fun, argnums=0, has_aux=False, **kwargs):
    """`weft.value_and_grad` of functions that take sparse arrays; see `grad`.

    Args:
      fun, argnums, has_aux, kwargs: as there.
    """
    check_callable(fun, "value_and_grad")
    name = function_name(fun)

    @named_after(fun)
    def value_and_gradient(*args, **kw):
        parts = _Values(args, argnums, name)

        def of_values(values):
            return fun(*parts.all_args(values), **kw)

        transform = _autodiff.value_and_grad(of_values, has_aux=has_aux, **kwargs)
        value, gradient = transform(parts.values)
        return value, parts.derivative(gradient)

    return value_and_gradient


def grad(fun, argnums=0, has_aux=False, **kwargs):
    """`weft.grad` of functions that take sparse arrays.

    Args:
      fun: a function of arrays, sparse arrays or trees of these, which returns a real scalar.
      argnums: the position of the argument, or positions, by which to differentiate.
      has_aux: whether `fun` returns (result, aux).
      kwargs: further options of `weft.grad`.

    Returns a function whose result has, for a sparse array, one with the same places, whose values
    are the derivatives by the stored values. By an array the gradient is an array.

    Examples:
      >>> a = weft.experimental.sparse.BCOO.fromdense(wnp.array([[0.0, 2.0], [0.0, 0.0]]))
      >>> weft.experimental.sparse.grad(lambda a: (a.data**2).sum())(a).todense()
      Array([[0., 4.],
             [0., 0.]], dtype=float32)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @named_after(fun)
    def gradient(*args, **kw):
        value, found = both(*args, **kw)
        return (found, value[1]) if has_aux else found

    return gradient


def _jacobian_by(transform, fun, argnums, has_aux, kwargs):
    name = function_name(fun)

    @named_after(fun)
    def jacobian_fun(*args, **kw):
        parts = _Values(args, argnums, name)
        out_tree: Any = None  # of the results, once the function has run

        def of_values(values):
            nonlocal out_tree
            result = fun(*parts.all_args(values), **kw)
            out_tree = tree_structure(result[0] if has_aux else result)
            return result

        found = transform(of_values, has_aux=has_aux, **kwargs)(parts.values)
        found, aux = found if has_aux else (found, None)
        leaves, count = tree_flatten(found)[0], len(parts.values)
        derivatives = [
            parts.derivative(leaves[i : i + count], wnp.ndim) for i in range(0, len(leaves), count)
        ]
        jacobian = out_tree.unflatten(derivatives)
        return (jacobian, aux) if has_aux else jacobian

    return jacobian_fun


def jacfwd(fun, argnums=0, has_aux=False, **kwargs):
    """`weft.jacfwd` of functions that take sparse arrays.

    Args:
      fun, argnums, has_aux: as of `grad`; results may have any shape.
      kwargs: further options of `weft.jacfwd`.

    Returns a function whose result has, for a sparse array and a result of shape r, a sparse array
    with r as further batch axes.
    """
    check_callable(fun, "jacfwd")
    return _jacobian_by(_jacobian.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun, argnums=0, has_aux=False, **kwargs):
    """`weft.jacrev` of functions that take sparse arrays; see `jacfwd`.

    Args:
      fun, argnums, has_aux: as there.
      kwargs: further options of `weft.jacrev`.
    """
    check_callable(fun, "jacrev")
    return _jacobian_by(_jacobian.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev

_open_to_users(__name__)
