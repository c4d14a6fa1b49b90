"""Names for parts of a program: named_scope, named_call.

They stand in the locations of lowered programs, where profilers find them, and change nothing else.
"""

import contextlib

from weft import _core
from weft._recording import check_callable, function_name
from weft._surface import named_after, public_function


class named_scope(contextlib.ContextDecorator):
    """Names the operations that are traced in the `with` block (or the decorated function).

    Scopes nest: operations in an inner one are named "outer/inner".

    Examples:
      >>> @weft.jit
      ... @weft.named_scope("layer")
      ... def f(x):
      ...     return x + 1
      >>> f(1.0).item()
      2.0
    """

    def __init__(self, name):
        if not isinstance(name, str) or not name:
            raise TypeError(f"named_scope expected a non-empty string; got {name!r}")
        self._name = name

    def _recreate_cm(self):
        return type(self)(self._name)

    def __enter__(self):
        self._outer = _core.set_scope("")
        _core.set_scope(f"{self._outer}/{self._name}" if self._outer else self._name)
        return self

    def __exit__(self, *exc):
        _core.set_scope(self._outer)


def named_call(fun, *, name=None):
    """`fun` with its operations in a scope named `name` (its own name by default).

    Examples:
      >>> weft.named_call(wnp.sin, name="wave")(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    check_callable(fun, "named_call")
    scope = name or function_name(fun)

    @public_function
    @named_after(fun)
    def named(*args, **kwargs):
        with named_scope(scope):
            return fun(*args, **kwargs)

    return named
