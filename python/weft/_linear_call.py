"""linear_call: a linear function with a transpose that the user writes."""

from weft._recording import check_callable
from weft._stages.program import eval_shape
from weft._types.avals import ShapedArray, typeof
from weft.dtypes import float0
from weft.errors import DTypeError, ShapeError, TreeStructureError
from weft.extend._primitive import Primitive
from weft.extend._zeros import UndefinedPrimal, Zero, instantiate_zeros
from weft.tree_util import tree_flatten, tree_structure


def linear_call(fun, fun_transpose, residual_args, linear_args):
    """fun(residual_args, linear_args), whose transpose is a function of its own.

    Args:
      fun: linear in its second argument.
      fun_transpose: fun_transpose(residual_args, cotangent) -> a tree like `linear_args`: the
        transpose of `fun`, whatever it computes. Its own transpose is `fun`.
      residual_args, linear_args: arrays or trees of arrays. There is no derivative with respect to
        `residual_args`.

    Raises TreeStructureError, ShapeError or DTypeError if what `fun_transpose` returns does not fit
    `linear_args`; NotImplementedError under vmap, and where a derivative with respect to
    `residual_args` is taken.
    """
    check_callable(fun, "linear_call")
    check_callable(fun_transpose, "linear_call")
    residuals, residual_tree = tree_flatten(residual_args)
    operands, tree = tree_flatten(linear_args)
    out_tree = tree_structure(eval_shape(fun, residual_args, linear_args))
    results = _linear_call.bind(
        *residuals,
        *operands,
        fun=fun,
        transpose=fun_transpose,
        trees=(residual_tree, tree, out_tree),
    )
    return out_tree.unflatten(results)


_linear_call = Primitive("linear_call")
_linear_call.multiple_results = True


def _split(args, trees):
    count = trees[0].num_leaves
    return list(args[:count]), list(args[count:])


@_linear_call.def_lowering
def _run(*args, fun, transpose, trees):
    residuals, operands = _split(args, trees)
    return tree_flatten(fun(trees[0].unflatten(residuals), trees[1].unflatten(operands)))[0]


@_linear_call.def_abstract_eval
def _types(*avals, fun, transpose, trees):
    residuals, operands = _split(avals, trees)
    found = eval_shape(fun, trees[0].unflatten(residuals), trees[1].unflatten(operands))
    return [ShapedArray(x.shape, x.dtype) for x in tree_flatten(found)[0]]


def _jvp(primals, tangents, **params):
    residuals, _ = _split(primals, params["trees"])
    of_residuals, of_operands = _split(tangents, params["trees"])
    if not all(isinstance(t, Zero) or t.dtype == float0 for t in of_residuals):
        raise NotImplementedError(
            "linear_call has no derivative with respect to residual_args: apply "
            "weft.lax.stop_gradient to them, or pass them in linear_args"
        )
    along = _linear_call.bind(*residuals, *map(instantiate_zeros, of_operands), **params)
    return _linear_call.bind(*primals, **params), along


def _transpose(cts, *args, fun, transpose, trees):
    residuals, operands = _split(args, trees)
    cotangent = trees[2].unflatten([instantiate_zeros(ct) for ct in cts])
    found = eval_shape(transpose, trees[0].unflatten(residuals), cotangent)
    _check_like(found, operands, trees[1])
    results = _linear_call.bind(
        *residuals,
        *tree_flatten(cotangent)[0],
        fun=transpose,
        transpose=fun,
        trees=(trees[0], trees[2], trees[1]),
    )
    return [None] * len(residuals) + results


def _check_like(found, operands, tree):
    leaves, got = tree_flatten(found)
    if got != tree:
        raise TreeStructureError(
            f"linear_call expected fun_transpose to return {tree}, as linear_args are; got {got}"
        )
    for leaf, operand in zip(leaves, operands, strict=True):
        aval = operand.aval if isinstance(operand, UndefinedPrimal) else typeof(operand)
        expected = f"linear_call expected fun_transpose to return {aval}, as linear_args have"
        if leaf.shape != aval.shape:
            raise ShapeError(f"{expected}; got {leaf}")
        if leaf.dtype != aval.dtype:
            raise DTypeError(f"{expected}; got {leaf}")


_linear_call.def_jvp(_jvp, symbolic_zeros=True)
_linear_call.def_transpose(_transpose, symbolic_zeros=True)
