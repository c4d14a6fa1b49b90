"""What programs about programs import most: types, tracers, jaxprs and their evaluation."""

from typing import Any

from weft._core import Tracer
from weft._dims import max_dim, min_dim
from weft._surface import public as _public
from weft._tracing.known_values import ensure_compile_time_eval
from weft._types.avals import AbstractValue, ShapedArray, typeof as get_aval
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
    "AbstractValue",
    "Atom",
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "ParamDict",
    "Primitive",
    "ShapedArray",
    "Tracer",
    "Value",
    "Var",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "get_aval",
    "jaxpr_as_fun",
    "max_dim",
    "min_dim",
]
__getattr__, __dir__ = _public(__name__, __all__)

Atom = Var | Literal  # for annotations
Value = Any
ParamDict = dict[str, Any]
eval_context = ensure_compile_time_eval
