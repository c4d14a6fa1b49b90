"""Operations on known values, at once, in a function that is traced."""

import contextlib

from weft import _core


class ensure_compile_time_eval(contextlib.ContextDecorator):
    """Context manager: in a function that is traced, operations on known values run at once.

    Their results are arrays with values, of which shapes, indices and Python's `if` can be made.
    Operations on traced values are traced as ever.

    Examples:
      >>> @weft.jit
      ... def f(x):
      ...     with weft.ensure_compile_time_eval():
      ...         n = int(wnp.prod(wnp.array(x.shape)))
      ...     return wnp.full(2, n)
      >>> f(wnp.ones((2, 3)))
      Array([6, 6], dtype=int32, weak_type=True)
    """

    def _recreate_cm(self):
        return type(self)()

    def __enter__(self):
        self._depth = _core.begin_eager()

    def __exit__(self, *exception):
        _core.end_eager(self._depth)
