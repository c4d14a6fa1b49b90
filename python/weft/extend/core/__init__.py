"""Programs as objects (Jaxpr, JaxprEqn, Var, ...), and primitives that users define."""

from weft._core import (
    ClosedJaxpr as ClosedJaxpr,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    Literal as Literal,
    Var as Var,
)
from weft._staging import SourceInfo as SourceInfo
from weft.extend._jaxpr import eval_jaxpr as eval_jaxpr, jaxpr_as_fun as jaxpr_as_fun
from weft.extend._primitive import Primitive as Primitive
from weft.extend.core import primitives as primitives

__all__ = [
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "SourceInfo",
    "Var",
    "eval_jaxpr",
    "jaxpr_as_fun",
    "primitives",
]
