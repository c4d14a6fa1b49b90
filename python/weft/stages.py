"""The stages of a function on its way to the device, and what they tell of its arguments."""

from weft._communication import Collective, Communication
from weft._explain import Explanation
from weft._stages.compiled import Compiled
from weft._stages.lowered import Lowered
from weft._stages.stage import ArgInfo, CompilerOptions, Wrapped
from weft._stages.traced import Traced
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = [
    "ArgInfo",
    "Collective",
    "Communication",
    "Compiled",
    "CompilerOptions",
    "Explanation",
    "Lowered",
    "Traced",
    "Wrapped",
]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
