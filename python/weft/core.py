"""What programs about programs import most: types, tracers, jaxprs and their evaluation."""

from weft._core import Tracer as Tracer
from weft._staging import ShapedArray as ShapedArray, typeof as get_aval
from weft.extend.core import (
    ClosedJaxpr as ClosedJaxpr,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    Literal as Literal,
    Primitive as Primitive,
    Var as Var,
    eval_jaxpr as eval_jaxpr,
    jaxpr_as_fun as jaxpr_as_fun,
)

__all__ = [
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Tracer",
    "Var",
    "eval_jaxpr",
    "get_aval",
    "jaxpr_as_fun",
]
