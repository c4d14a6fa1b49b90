"""Looking into programs: print, callback; how values are split over devices.

The first two stay in the program through jit, derivatives, vmap and control flow. They run on the
host, on the values of the run, once each time the program gets there.
"""

import builtins
import contextlib
import dataclasses
import functools
import logging
import string
import typing

import numpy as np

from weft._callback import debug_callback as _debug_callback, inspect_sharding as _inspect_sharding
from weft._loop_progress import progress as _progress
from weft._surface import public as _public
from weft.lax import axis_index as _axis_index, cond as _cond
from weft.sharding import P as _P, get_abstract_mesh as _get_abstract_mesh

__all__ = [
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "progress",
    "save_sharding",
    "visualize_array_sharding",
    "visualize_sharding",
]
__getattr__, __dir__ = _public(__name__, __all__, later={"weft._breakpoint": ("breakpoint",)})


def callback(callback=None, *args, ordered=False, partitioned=False, **kwargs):
    """Calls a Python function on values of the program, for its effects.

    What the function returns is dropped. With derivatives it sees primal values and takes part in
    nothing; it runs in the forward pass only, also within `checkpoint`. Under vmap it is called
    once per element if an argument is mapped, once in all if none is. Programs with callbacks run
    on CPU only.

    Args:
      callback: takes arrays on the CPU in place of those among `args` and `kwargs`, and anything
        else as it is. Programs that call equal functions are the same program, so that a function
        defined once costs less than a new lambda per call.
      args, kwargs: trees of arrays and other values.
      ordered: whether calls come in the order of the program, with other ordered ones, and in the
        order of the elements that vmap maps. If not, they may come in another; none is left out.
      partitioned: whether a program that runs in parts on several devices calls it for each part,
        on the part's values. If not, it is called once, on whole values.

    `callback(ordered=True)` gives a function that takes the rest.

    Raises TypeError if `callback` cannot be called, ValueError if it is to be both ordered and
    partitioned. An error of the function arrives as one of its class that is a JaxRuntimeError,
    too, where the program's results are used or at weft.effects_barrier().

    Examples:
      >>> seen = []
      >>> f = weft.jit(lambda x: weft.debug.callback(lambda v: seen.append(int(v)), x))
      >>> f(3)
      >>> weft.effects_barrier()
      >>> seen
      [3]
    """
    if callback is None:
        _check_alone("callback", args, kwargs)
        return functools.partial(_callback_with, ordered, partitioned)
    return _callback_with(ordered, partitioned, callback, *args, **kwargs)


def _callback_with(ordered, partitioned, callback, /, *args, **kwargs):
    if not callable(callback):
        raise TypeError(f"debug.callback expected a function; got {callback!r}")
    _call_on_host(callback, args, kwargs, ordered, partitioned)


def _call_on_host(callback, args, kwargs, ordered, partitioned):
    mesh = _get_abstract_mesh()
    rest = tuple(name for name in mesh.axis_names if name not in mesh.manual_axes)
    if ordered or partitioned or not mesh.manual_axes or not rest:
        return _debug_callback(callback, args, kwargs, ordered, partitioned)

    from weft._shard_map import shard_map

    # XLA calls the host for each device where all axes are manual. Along those that were not, all
    # devices have the same part then, and the first calls.
    def first_alone():
        _cond(
            _axis_index(rest) == 0,
            lambda: _debug_callback(callback, args, kwargs, ordered=False),
            lambda: None,
        )

    return shard_map(
        first_alone, in_specs=(), out_specs=_P(), axis_names=frozenset(rest), check_vma=False
    )()


def print(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """Prints values of the program: `weft.debug.print("x = {}", x)`, also in compiled programs.

    Args:
      fmt: a text for str.format. No f-string, which would show tracers in place of values.
      args, kwargs: what `fmt` refers to: arrays, which it gets as NumPy arrays, and other values.
      ordered, partitioned: as for `callback`.
      skip_format_check: whether to leave out the check that `fmt` uses all arguments.

    `print(ordered=True)` gives a function that takes the rest.

    Raises TypeError if `fmt` is not a string; ValueError if it is no valid format or leaves out
    arguments; IndexError or KeyError if it refers to some that are not there; and what `callback`
    raises.

    Examples:
      >>> @weft.jit
      ... def f(x):
      ...     weft.debug.print("x = {}, {y:.1f}", x, y=x / 3)
      ...     return x
      >>> y = f(2.0); weft.effects_barrier()
      x = 2.0, 0.7
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
    _call_on_host(made(fmt), args, kwargs, ordered, partitioned)


def log(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """As `print`, but to Python's logger "weft.debug", at level INFO.

    Args:
      fmt, args, kwargs, ordered, partitioned, skip_format_check: as for `print`.

    Examples:
      >>> weft.jit(lambda x: weft.debug.log("x = {}", x))(2)  # "x = 2", to the logger
    """
    if fmt is None:
        _check_alone("log", args, kwargs)
        return functools.partial(_run_with, _Logger, ordered, partitioned, skip_format_check)
    return _run_with(_Logger, ordered, partitioned, skip_format_check, fmt, *args, **kwargs)


def progress(step, total, what="loop", *, every=None):
    """Shows how far a loop is, on a terminal (stderr) or in a notebook; to be called in its body.

        def body(i, x):
            weft.debug.progress(i, 10_000, "sampling")
            ...

        sampling: 4,200 of 10,000, 12.0 s, about 16.6 s more

    The line appears when the loop has taken two seconds, and changes once a second at most. Loops
    under jit, grad and vmap show one line, as those in Python do: for the elements that vmap maps,
    that of the element that is least far. Backward passes show nothing.

    Where stderr is no terminal, and with the setting `weft_loop_progress` off, it adds nothing to
    the program. Else it looks at the number of each step, and calls the host in every `every`-th. A
    loop with it is no part of a kernel (docs/small_programs.md).

    Args:
      step: the number of the iteration, from 0: an integer, or an integer array without axes.
      total: how many iterations there are, an int.
      what: the text in front.
      every: how many steps lie between two looks at the time; by default a 500th of `total`.

    Raises TypeError unless `step` and `total` are integers, ValueError if `total` is not positive.

    Examples:
      >>> for i in range(3):
      ...     weft.debug.progress(i, 3, "reading")
    """
    _progress(step, total, what, every)


def inspect_array_sharding(value, *, callback):
    """Tells how XLA splits values of a program: `inspect_array_sharding(x, callback=print)`.

    In a program that is compiled the callback is called once XLA has chosen, before the program
    runs first, and not again for a program that is compiled already; also under derivatives, and
    under vmap for the whole of the mapped values. With nothing being traced it is called at once.

    Args:
      value: a tree of arrays. Of typed random keys the words are meant.
      callback: gets a weft.sharding.Sharding per leaf. In a function under shard_map that of the
        parts, which are whole. What it raises comes out of the call that compiles.

    Raises TypeError for leaves that are no arrays, and if `callback` cannot be called.

    Examples:
      >>> tell = lambda sharding: print(sharding.num_devices)
      >>> weft.debug.inspect_array_sharding(wnp.ones(4), callback=tell)
      1
    """
    if not callable(callback):
        raise TypeError(f"debug.inspect_array_sharding expected a function; got {callback!r}")
    _inspect_sharding(value, callback)


def visualize_array_sharding(arr, **kwargs):
    """Prints how an array is split over devices; see `visualize_sharding`.

    Args:
      arr: an array of one or two axes; in a program that is compiled it is drawn as
        `inspect_array_sharding` would tell.
      kwargs: those of `visualize_sharding`.
    """
    inspect_array_sharding(arr, callback=_Drawer(tuple(arr.shape), tuple(kwargs.items())))


@dataclasses.dataclass(frozen=True)
class _Drawer:
    """Equal for equal arguments, so that a program that is traced again is found again."""

    shape: tuple[int, ...]
    options: tuple[tuple[str, typing.Any], ...]
    __name__ = "visualize_array_sharding"

    def __call__(self, sharding):
        visualize_sharding(self.shape, sharding, **dict(self.options))


def visualize_sharding(
    shape,
    sharding,
    *,
    use_color=True,
    scale=1.0,
    min_width=9,
    max_width=80,
    color_map=None,
):
    """Prints how an array of a shape would be split: a box per part, with its devices.

    Args:
      shape: of one or two axes.
      sharding: a weft.sharding.Sharding.
      use_color: whether parts have colours where the output is a terminal; none has them where
        the variable NO_COLOR is set.
      scale: how large the drawing is; at 1 it is about ten lines high.
      min_width, max_width: the least and the most characters of a box.
      color_map: gives the colour of a part by a number from 0 to 1: (r, g, b) of 0 to 1, or
        "#rrggbb". Colour maps of matplotlib will do.

    Raises ShapeError for other shapes, and if the sharding does not divide it; TypeError for what
    is no sharding.

    Examples:
      >>> one = weft.sharding.SingleDeviceSharding(weft.devices()[0])
      >>> weft.debug.visualize_sharding((4, 4), one, use_color=False)
      ┌─────────────────────────┐
      │                         │
      │                         │
      │                         │
      │                         │
      │          CPU 0          │
      │                         │
      │                         │
      │                         │
      │                         │
      │                         │
      └─────────────────────────┘
    """
    from weft._visualize import show

    show(
        shape,
        sharding,
        use_color=use_color,
        scale=scale,
        min_width=min_width,
        max_width=max_width,
        color_map=color_map,
    )


def save_sharding(path, shape, sharding, *, scale=1.0, color_map=None):
    """Writes what `visualize_sharding` draws to a file.

    Args:
      path: ends in ".svg", or in ".png", which needs Pillow.
      shape, sharding, scale, color_map: as for `visualize_sharding`.

    Raises ValueError for other names, ImportError where Pillow is not installed, and what
    `visualize_sharding` raises.

    Examples:
      >>> import pathlib, tempfile
      >>> one = weft.sharding.SingleDeviceSharding(weft.devices()[0])
      >>> path = pathlib.Path(tempfile.mkdtemp(), "whole.svg")
      >>> weft.debug.save_sharding(path, (4, 4), one)
      >>> path.read_text()[:4]
      '<svg'
    """
    from weft._visualize import save

    save(path, shape, sharding, scale=scale, color_map=color_map)


def _check_alone(name, args, kwargs):
    if args or kwargs:
        raise TypeError(f"debug.{name} expected a first argument; got None and others after it")


@dataclasses.dataclass(frozen=True)
class _Printer:
    """Equal for equal texts: a program that is traced again is found again.

    Where NumPy's options of printing are not the usual ones when it is made, they are kept.
    """

    fmt: str
    options: tuple = dataclasses.field(default_factory=lambda: _unusual_options())
    __name__ = "print"

    def __call__(self, *args, **kwargs):
        builtins.print(self._text(args, kwargs))

    def _text(self, args, kwargs):
        with np.printoptions(**dict(self.options)) if self.options else contextlib.nullcontext():
            return self.fmt.format(*args, **kwargs)


_USUAL_OPTIONS = np.get_printoptions()


def _unusual_options():
    options = np.get_printoptions().items()
    return tuple((name, value) for name, value in options if value != _USUAL_OPTIONS[name])


class _Logger(_Printer):
    __name__ = "log"

    def __call__(self, *args, **kwargs):
        logging.getLogger(__name__).info("%s", self._text(args, kwargs))


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
            missing = IndexError if isinstance(key, int) else KeyError
            raise missing(
                f"debug.print expected an argument for {{{key}}}; got {len(args)} by position, "
                f"and by name {', '.join(sorted(kwargs)) or 'none'}"
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
