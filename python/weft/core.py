"""What programs about programs import most: types, tracers, jaxprs and their evaluation."""

from weft._core import Tracer
from weft._staging import ShapedArray, typeof as get_aval
from weft._surface import public as _public
from weft.extend.core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    Var,
    eval_jaxpr,
    jaxpr_as_fun,
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
__getattr__, __dir__ = _public(__name__, __all__)
