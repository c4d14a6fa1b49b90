"""Programs as objects (Jaxpr, JaxprEqn, Var, ...), and primitives that users define."""

from weft._core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
)
from weft._surface import public as _public
from weft._types.avals import SourceInfo
from weft.compiler._jaxprs import eval_jaxpr, jaxpr_as_fun
from weft.extend._primitive import Primitive
from weft.extend.core import primitives
from weft.extend.core._values import (
    array_types,
    concrete_or_error,
    get_opaque_trace_state,
    jaxprs_in_params,
    mapped_aval,
    no_effects,
    primal_dtype_to_tangent_dtype,
    subjaxprs,
    unmapped_aval,
    valid_jaxtype,
)

__all__ = [
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "SourceInfo",
    "Var",
    "array_types",
    "concrete_or_error",
    "eval_jaxpr",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "no_effects",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "subjaxprs",
    "unmapped_aval",
    "valid_jaxtype",
]
__getattr__, __dir__ = _public(__name__, __all__)
