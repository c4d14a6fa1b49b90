"""make_user_context: values of users that functions may read while they are traced."""

import threading
from contextlib import contextmanager

from weft import _core
from weft._surface import public_methods

_current = threading.local()
_numbers = {}  # by combination of values, those of the core's setting; 0 stands for none


@public_methods
class UserContext:
    """A value that traces depend on: called with one, it gives a context manager that sets it.

    Attributes: value (the current one of this thread).
    """

    def __init__(self, default_value=None):
        self._default = default_value

    @property
    def value(self):
        return _values().get(self, self._default)

    @contextmanager
    def __call__(self, value):
        earlier = _values()
        self.set(value)
        try:
            yield
        finally:
            _set(earlier)

    def set(self, value):
        """Sets it for the code that follows."""
        _set({**_values(), self: value})

    def __repr__(self):
        return f"UserContext(value={self.value!r})"


def _values():
    return getattr(_current, "values", {})


def _set(values):
    number = _number(values)
    _current.values = values
    _core.set_setting("user_context", number or None)


def _number(values):
    """The number of a combination of values; those that are the defaults do not count."""
    own = frozenset(
        (context, type(value), value)
        for context, value in values.items()
        if (type(value), value) != (type(context._default), context._default)
    )
    return _numbers.setdefault(own, len(_numbers) + 1) if own else 0


def make_user_context(default_value=None):
    """A context whose value jitted functions may depend on: traces are kept by it.

        precision = weft.make_user_context(default_value="low")

        @weft.jit
        def f(x):
            return x if precision.value == "low" else x.astype("float64")

        with precision("high"):
            f(1.0)  # traced again

    Values must be hashable. They are of the thread that sets them, and may take a million
    combinations in a process.

    Examples:
      >>> scale = weft.make_user_context(1)
      >>> f = weft.jit(lambda x: x * scale.value)
      >>> f(3)
      Array(3, dtype=int32, weak_type=True)
      >>> with scale(10):
      ...     print(f(3))
      30
    """
    return UserContext(default_value)
