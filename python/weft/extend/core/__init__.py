"""Programs as objects (Jaxpr, JaxprEqn, Var, ...), and primitives that users define."""

from weft._core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
)
from weft._staging import SourceInfo
from weft._surface import public as _public
from weft.extend._jaxpr import eval_jaxpr, jaxpr_as_fun
from weft.extend._primitive import Primitive
from weft.extend.core import primitives

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
__getattr__, __dir__ = _public(__name__, __all__)
