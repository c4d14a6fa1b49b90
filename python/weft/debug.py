"""Looking into programs while they run: print, callback.

Both stay in the program through jit, derivatives, vmap and control flow. They run on the host, on
the values of the run, once each time the program gets there.
"""

import builtins
import dataclasses
import functools
import logging
import string

from weft._callback import debug_callback as _debug_callback
from weft._surface import public as _public

__all__ = ["callback", "log", "print"]
__getattr__, __dir__ = _public(__name__, __all__)


def callback(callback=None, *args, ordered=False, partitioned=False, **kwargs):
    """Calls a Python function on values of the program, for its effects.

    What the function returns is dropped. With derivatives it sees primal values and takes part in
    nothing; it runs in the forward pass only, also within `checkpoint`. Under vmap it is called
    once per element if an argument is mapped, once in all if none is. Programs with callbacks run
    on CPU only.

    Args:
      callback: takes NumPy arrays in place of the arrays among `args` and `kwargs`, and anything
        else as it is. Programs that call equal functions are the same program, so that a function
        defined once costs less than a new lambda per call.
      args, kwargs: trees of arrays and other values.
      ordered: whether calls come in the order of the program, with other ordered ones, and in the
        order of the elements that vmap maps. If not, they may come in another; none is left out.
      partitioned: whether a program that runs in parts on several devices calls it for each part,
        on the part's values. Programs run on one device so far, as a single part.

    `callback(ordered=True)` gives a function that takes the rest.

    Raises TypeError if `callback` cannot be called, ValueError if it is to be both ordered and
    partitioned. An error of the function arrives as it is, where the program's results are used or
    at weft.effects_barrier().
    """
    if callback is None:
        _check_alone("callback", args, kwargs)
        return functools.partial(_callback_with, ordered, partitioned)
    return _callback_with(ordered, partitioned, callback, *args, **kwargs)


def _callback_with(ordered, partitioned, callback, /, *args, **kwargs):
    if not callable(callback):
        raise TypeError(f"debug.callback expected a function; got {callback!r}")
    _debug_callback(callback, args, kwargs, ordered, partitioned)


def print(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """Prints values of the program: `weft.debug.print("x = {}", x)`, also in compiled programs.

    Args:
      fmt: a text for str.format. No f-string, which would show tracers in place of values.
      args, kwargs: what `fmt` refers to: arrays, which it gets as NumPy arrays, and other values.
      ordered, partitioned: as for `callback`.
      skip_format_check: whether to leave out the check that `fmt` uses all arguments.

    `print(ordered=True)` gives a function that takes the rest.

    Raises TypeError if `fmt` is not a string; ValueError if it is no valid format, refers to
    arguments that are not there or leaves some out; and what `callback` raises.
    """
    if fmt is None:
        _check_alone("print", args, kwargs)
        return functools.partial(_run_with, _Printer, ordered, partitioned, skip_format_check)
    return _run_with(_Printer, ordered, partitioned, skip_format_check, fmt, *args, **kwargs)


def _run_with(made, ordered, partitioned, skip_format_check, fmt, /, *args, **kwargs):
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print expected a format string; got {fmt!r}")
    if not skip_format_check:
        _check_format(fmt, args, kwargs)
    _debug_callback(made(fmt), args, kwargs, ordered, partitioned)


def log(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """As `print`, but to Python's logger "weft.debug", at level INFO.

    Args:
      fmt, args, kwargs, ordered, partitioned, skip_format_check: as for `print`.
    """
    if fmt is None:
        _check_alone("log", args, kwargs)
        return functools.partial(_run_with, _Logger, ordered, partitioned, skip_format_check)
    return _run_with(_Logger, ordered, partitioned, skip_format_check, fmt, *args, **kwargs)


def _check_alone(name, args, kwargs):
    if args or kwargs:
        raise TypeError(f"debug.{name} expected a first argument; got None and others after it")


@dataclasses.dataclass(frozen=True)
class _Printer:
    """Equal for equal texts: a program that is traced again is found again."""

    fmt: str
    __name__ = "print"

    def __call__(self, *args, **kwargs):
        builtins.print(self.fmt.format(*args, **kwargs))


class _Logger(_Printer):
    __name__ = "log"

    def __call__(self, *args, **kwargs):
        logging.getLogger(__name__).info("%s", self.fmt.format(*args, **kwargs))


class _Uses(string.Formatter):
    """Formats nothing, and notes which arguments a text refers to."""

    def __init__(self):
        self.used = set()

    def get_value(self, key, args, kwargs):
        self.used.add(key)
        if isinstance(key, int):
            found = key < len(args)
        else:
            found = key in kwargs
        if not found:
            raise ValueError(
                f"debug.print expected an argument for {{{key}}}; got {len(args)} positional ones "
                f"and {sorted(kwargs)}"
            )
        return self

    def get_field(self, field_name, args, kwargs):
        first = field_name.split(".", 1)[0].split("[", 1)[0]
        key = int(first) if first.isdigit() else first
        return self.get_value(key, args, kwargs), key

    def convert_field(self, value, conversion):
        return value

    def format_field(self, value, format_spec):
        return ""


def _check_format(fmt, args, kwargs):
    uses = _Uses()
    try:
        uses.vformat(fmt, args, kwargs)
    except ValueError as error:
        if str(error).startswith("debug.print"):
            raise
        raise ValueError(f"debug.print expected a text for str.format; got {fmt!r}: {error}") from (
            None
        )
    unused = [i for i in range(len(args)) if i not in uses.used]
    unused += [name for name in kwargs if name not in uses.used]
    if unused:
        raise ValueError(
            f"debug.print expected a format that uses all arguments; got {fmt!r}, which leaves out "
            f"{', '.join(map(repr, unused))}\n  An f-string is formatted while the program is "
            "traced; pass the text with {} and the values after it."
        )
