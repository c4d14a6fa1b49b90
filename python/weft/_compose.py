"""Small helpers over the transforms: compose and derivative."""

import functools
import math

from weft._autodiff import positions
from weft._jacobian import jacfwd, jacrev
from weft._recording import check_callable, function_name
from weft._stages.program import eval_shape
from weft._surface import named_after, public_function
from weft._types.avals import typeof
from weft.tree_util import tree_leaves


def compose(*transforms):
    """The transform that applies `transforms` from right to left.

    compose(jit, vmap, grad)(f) is jit(vmap(grad(f))).

    Examples:
      >>> weft.compose(weft.vmap, weft.grad)(lambda x: x**2)(wnp.array([1.0, 2.0]))
      Array([2., 4.], dtype=float32)
    """
    for transform in transforms:
        check_callable(transform, "compose")
    return lambda fun: functools.reduce(lambda f, t: t(f), reversed(transforms), fun)


def derivative(fun, mode="auto", argnums=0):
    """A function that returns the Jacobian of `fun`, in the mode that is cheaper.

    Args:
      fun: a function of arrays or trees of arrays.
      mode: "forward" (cost grows with the number of input elements), "reverse" (with that of the
        results), or "auto", which compares the two at each call without running `fun`.
      argnums: position or positions of the arguments to differentiate by.

    Raises ValueError for another mode.

    Examples:
      >>> weft.derivative(lambda x: wnp.array([x, x**2, x**3]))(2.0)
      Array([ 1.,  4., 12.], dtype=float32)
    """
    check_callable(fun, "derivative")
    if mode == "forward":
        return jacfwd(fun, argnums)
    if mode == "reverse":
        return jacrev(fun, argnums)
    if mode != "auto":
        raise ValueError(f"mode: expected 'auto', 'forward' or 'reverse'; got {mode!r}")

    def elements(tree):
        return sum(math.prod(typeof(leaf).shape) for leaf in tree_leaves(tree))

    @public_function
    @named_after(fun)
    def cheaper(*args, **kwargs):
        nums, _ = positions(argnums, len(args), function_name(fun))
        inputs = elements([args[n] for n in nums])
        outputs = elements(eval_shape(lambda *a: fun(*a, **kwargs), *args))
        transform = jacfwd if inputs < outputs else jacrev
        return transform(fun, argnums)(*args, **kwargs)

    return cheaper
