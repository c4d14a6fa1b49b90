"""Written by tools/stubs; do not edit."""

from typing import Any
from weft._core import ClosedJaxpr as ClosedJaxpr
from weft._core import Jaxpr as Jaxpr
from weft._core import JaxprEqn as JaxprEqn
from weft._core import Literal as Literal
from weft._core import Var as Var
from weft._staging import SourceInfo as SourceInfo
from weft.extend._primitive import Primitive as Primitive
from weft.extend.core import primitives as primitives

def eval_jaxpr(jaxpr: Any, consts: Any, *args: Any) -> Any: ...
def jaxpr_as_fun(closed: Any) -> Any: ...
