"""Differentiation rules of primitives.

Rules set here see zeros as `Zero` objects, as `def_jvp(rule, symbolic_zeros=True)` has it.
"""

from weft import lax
from weft._surface import public as _public
from weft.extend._zeros import (
    UndefinedPrimal,
    Zero,
    instantiate_zeros,
    is_undefined_primal,
)
from weft.interpreters._rules import Rules

__all__ = [
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]
__getattr__, __dir__ = _public(__name__, __all__)


primitive_jvps = Rules("jvp", lambda p, rule: p.def_jvp(rule, symbolic_zeros=True))
primitive_transposes = Rules(
    "transpose", lambda p, rule: p.def_transpose(rule, symbolic_zeros=True)
)


def defjvp(primitive, *rules):
    """A jvp from one rule per operand: rule(tangent, *operands, **params) -> its contribution.

    None for an operand of which the result is locally independent. One result only.
    """
    with_result = [r and (lambda t, _, *xs, r=r, **params: r(t, *xs, **params)) for r in rules]
    defjvp2(primitive, *with_result)


def defjvp2(primitive, *rules):
    """As `defjvp`, with rule(tangent, result, *operands, **params)."""

    def jvp(primals, tangents, **params):
        result = primitive.bind(*primals, **params)
        total = None
        for rule, t in zip(rules, tangents, strict=True):
            if rule is None or isinstance(t, Zero):
                continue
            part = rule(t, result, *primals, **params)
            total = part if total is None else lax.add(total, part)
        return result, Zero(None) if total is None else total

    primitive_jvps[primitive] = jvp


def deflinear(primitive, transpose):
    """Declares that the primitive is linear; transpose(ct, **params) -> a cotangent per operand."""
    deflinear2(primitive, lambda ct, *_, **params: transpose(ct, **params))


def deflinear2(primitive, transpose):
    """As `deflinear`, with transpose(ct, *operands, **params)."""

    def jvp(primals, tangents, **params):
        result = primitive.bind(*primals, **params)
        if all(isinstance(t, Zero) for t in tangents):
            return result, [Zero(None)] * len(result) if primitive.multiple_results else Zero(None)
        return result, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def defbilinear(prim, lhs_rule, rhs_rule):
    """Declares that the primitive is linear in each of its two operands.

    Args:
      prim: the primitive.
      lhs_rule: lhs_rule(ct, lhs, rhs, **params) -> the cotangent of `lhs`, which stands as an
        UndefinedPrimal.
      rhs_rule: the same for `rhs`.
    """
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct, x, y, **params):
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    primitive_transposes[prim] = transpose


def get_primitive_transpose(p):
    """The transpose rule of a primitive; NotImplementedError if it has none."""
    if p not in primitive_transposes:
        raise NotImplementedError(f"primitive '{p}' has no transpose rule that was set here")
    return primitive_transposes[p]


def zeros_like_aval(aval):
    """An array of zeros of a type."""
    return instantiate_zeros(Zero(aval))


def add_jaxvals(x, y):
    """The sum of two arrays of one type."""
    return lax.add(x, y)


def add_tangents(x, y):
    """The sum of two tangents, each of which may be a Zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)
