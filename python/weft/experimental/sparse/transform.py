"""sparsify: functions of arrays as functions of sparse arrays.

The function is traced as if its sparse arguments were arrays; its program is then run one operation
after the other, with the rules below for those that have a sparse operand.
"""

from typing import Any

from weft import lax, numpy as wnp
from weft._recording import check_callable
from weft._stages.program import make_jaxpr
from weft._surface import named_after, open_to_users as _open_to_users, public as _public
from weft._types.avals import ShapeDtypeStruct
from weft.errors import NotImplementedRuleError
from weft.experimental.sparse import _arithmetic, _products, _shape
from weft.experimental.sparse._base import is_sparse
from weft.extend.core import ClosedJaxpr, Literal, Primitive
from weft.tree_util import tree_flatten, tree_map

__all__ = ["sparsify", "todense"]
__getattr__, __dir__ = _public(__name__, __all__)

_NUMBERS = (bool, int, float, complex)


def sparsify(f, use_tracer=False):
    """A function of arrays as one that takes sparse arrays, too.

    Args:
      f: a function of arrays or trees of arrays.
      use_tracer: no effect.

    Returns a function of the same arguments, which may hold BCOO arrays. Results are sparse where
    the operations on sparse arrays are. Raises NotImplementedRuleError for operations that would
    give values where none is stored.

    Examples:
      >>> a = weft.experimental.sparse.BCOO.fromdense(wnp.array([[0.0, 2.0], [0.0, 0.0]]))
      >>> weft.experimental.sparse.sparsify(lambda a, x: wnp.square(a) @ x / 2)(a, wnp.ones(2))
      Array([2., 0.], dtype=float32)
    """
    check_callable(f, "sparsify")

    @named_after(f)
    def sparse_function(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
        traced = [i for i, x in enumerate(leaves) if is_sparse(x) or hasattr(x, "dtype")]
        out_tree: Any = None  # of the results, once the function has run

        def flat(*values):
            nonlocal out_tree
            full = list(leaves)
            for i, x in zip(traced, values, strict=True):
                full[i] = x
            args, kwargs = tree.unflatten(full)
            results, out_tree = tree_flatten(f(*args, **kwargs))
            return results

        values = [leaves[i] for i in traced]
        closed: Any = make_jaxpr(flat)(*map(_stand_in, values))
        return out_tree.unflatten(_run(closed.jaxpr, closed.consts, values))

    return sparse_function


def _stand_in(x):
    return ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x


todense_p = Primitive("todense")
todense_p.def_abstract_eval(lambda x: x)
todense_p.def_lowering(lambda x: x)
todense_p.def_jvp(lambda primals, tangents: (todense_p.bind(*primals), todense_p.bind(*tangents)))
todense_p.def_transpose(lambda ct, x: [ct])
todense_p.def_batching(lambda args, dims: (todense_p.bind(*args), dims[0]))


def todense(arr):
    """A sparse array with all its elements; an array as it is.

    Args:
      arr: sparse array or array. Within `sparsify` an array may stand for a sparse one.
    """
    return arr.todense() if is_sparse(arr) else todense_p.bind(wnp.asarray(arr))


def _run(jaxpr, consts, args):
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(v):
        return v.val if isinstance(v, Literal) else env[v]

    for eqn in jaxpr.eqns:
        operands = [read(v) for v in eqn.invars]
        if any(map(is_sparse, operands)):
            rule = _RULES.get(eqn.primitive.name)
            if rule is None:
                raise NotImplementedRuleError(
                    f"[{eqn.primitive.name}] expected no sparse operand: the operation has no rule "
                    "for them, since its result would have values where none is stored. "
                    f"sparse.todense() makes an array first\n  at {eqn.source_info}"
                )
            results = rule(*operands, **eqn.params)
        else:
            results = eqn.primitive.bind(*operands, **eqn.params)
        if not isinstance(results, (list, tuple)):
            results = [results]
        env.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _as_function(jaxpr):
    """A program as a function of its inputs, sparse or not, that returns a list."""
    if isinstance(jaxpr, ClosedJaxpr):
        return lambda *args: _run(jaxpr.jaxpr, jaxpr.consts, args)
    return lambda *args: _run(jaxpr, (), args)


# ---- Rules


def _keeps_zero(name):
    """The rule of an element-wise function that takes 0 to 0."""
    function = getattr(lax, name)

    def rule(mat, **params):
        params = {k: v for k, v in params.items() if v is not None}
        return _arithmetic.elementwise(lambda data: function(data, **params), mat)

    return rule


def _linear(name):
    function = getattr(lax, name)
    return lambda mat, **_: _arithmetic.with_data(mat, function(mat.data))


_NONLINEAR = (
    "abs asin asinh atan atanh cbrt ceil erf erf_inv expm1 floor log1p round sign sin sinh sqrt "
    "square tan tanh"
)


def _convert(mat, *, new_dtype, **_):
    return _arithmetic.elementwise(lambda data: data.astype(new_dtype), mat)


def _integer_pow(mat, *, y):
    return _arithmetic.power(mat, y)


def _pow(mat, exponent):
    if is_sparse(exponent) or wnp.ndim(exponent):
        return _arithmetic.power(mat, exponent)
    return _arithmetic.power(mat, float(exponent))


def _dot_general(lhs, rhs, *, dimension_numbers, preferred_element_type=None, **_):
    return _products.bcoo_dot_general(
        lhs,
        rhs,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


def _reduce_sum(mat, *, axes, **_):
    result = _arithmetic.bcoo_reduce_sum(mat, axes=axes)
    return result if result.shape else result.todense()


def _transpose(mat, *, permutation):
    return _shape.bcoo_transpose(mat, permutation=permutation)


def _slice(mat, *, start_indices, limit_indices, strides=None):
    return _shape.bcoo_slice(
        mat, start_indices=start_indices, limit_indices=limit_indices, strides=strides
    )


def _dynamic_slice(mat, *starts, slice_sizes):
    return _shape.bcoo_dynamic_slice(mat, starts, slice_sizes)


def _squeeze(mat, *, dimensions):
    return _shape.bcoo_squeeze(mat, dimensions=dimensions)


def _rev(mat, *, dimensions):
    return _shape.bcoo_rev(mat, dimensions)


def _reshape(mat, *, new_sizes, dimensions=None, **_):
    return _shape.bcoo_reshape(mat, new_sizes=new_sizes, dimensions=dimensions)


def _broadcast_in_dim(mat, *, shape, broadcast_dimensions, **_):
    return _shape.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=broadcast_dimensions)


def _concatenate(*operands, dimension):
    if not all(map(is_sparse, operands)):
        raise NotImplementedRuleError(
            "[concatenate] expected sparse arrays only; got arrays beside them"
        )
    return _shape.bcoo_concatenate(operands, dimension=dimension)


def _gather(mat, indices, *, slice_sizes, mode, fill_value=None, **params):
    names = lax.GatherDimensionNumbers._fields
    numbers = lax.GatherDimensionNumbers(**{k: params[k] for k in names if k in params})
    return _shape.bcoo_gather(mat, indices, numbers, slice_sizes, mode=mode, fill_value=fill_value)


def _call(*operands, jaxpr=None, call_jaxpr=None, **_):
    return _as_function(call_jaxpr if jaxpr is None else jaxpr)(*operands)


def _unmarked(tree):
    """Sparse arrays of which nothing is claimed, so that all that a loop carries are alike."""
    return tree_map(
        lambda x: x._like(x.data, x.indices, x.shape, False, False) if is_sparse(x) else x,
        tree,
        is_leaf=is_sparse,
    )


def _cond(index, *operands, branches, **_):
    def branch(jaxpr):
        return lambda *args: _unmarked(_as_function(jaxpr)(*args))

    return lax.switch(wnp.asarray(index, int), list(map(branch, branches)), *operands)


def _while(*operands, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr, **_):
    of_cond = operands[:cond_nconsts]
    of_body = operands[cond_nconsts : cond_nconsts + body_nconsts]
    carry = _unmarked(list(operands[cond_nconsts + body_nconsts :]))
    return lax.while_loop(
        lambda carry: _as_function(cond_jaxpr)(*of_cond, *carry)[0],
        lambda carry: _unmarked(_as_function(body_jaxpr)(*of_body, *carry)),
        carry,
    )


def _scan(*operands, jaxpr, length, num_consts, num_carry, reverse, unroll, **_):
    consts = operands[:num_consts]
    carry = _unmarked(list(operands[num_consts : num_consts + num_carry]))
    xs = list(operands[num_consts + num_carry :])

    def step(carry, xs):
        results = _as_function(jaxpr)(*consts, *carry, *xs)
        return _unmarked(results[:num_carry]), _unmarked(results[num_carry:])

    carry, ys = lax.scan(step, carry, xs, length=length, reverse=reverse, unroll=unroll)
    return [*carry, *ys]


_RULES = {
    **{name: _keeps_zero(name) for name in _NONLINEAR.split()},
    **{name: _linear(name) for name in ("neg", "real", "imag", "conj")},
    "add": _arithmetic.add,
    "add_any": _arithmetic.add,
    "sub": _arithmetic.subtract,
    "mul": _arithmetic.multiply,
    "div": _arithmetic.divide,
    "pow": _pow,
    "integer_pow": _integer_pow,
    "convert_element_type": _convert,
    "copy": lambda mat: mat,
    "todense": todense,
    "dot_general": _dot_general,
    "reduce_sum": _reduce_sum,
    "transpose": _transpose,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "squeeze": _squeeze,
    "rev": _rev,
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "gather": _gather,
    "jit": _call,
    "checkpoint": _call,
    "custom_jvp_call": _call,
    "custom_vjp_call": _call,
    "cond": _cond,
    "while": _while,
    "scan": _scan,
}

_open_to_users(__name__)
