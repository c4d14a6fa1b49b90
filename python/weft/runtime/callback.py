"""Functions on the host, as compiled programs call them, and waiting for their effects.

jaxlib copies what a function returns into buffers of the promised size without looking at it, so
results are checked here: a wrong shape would overwrite memory.
"""

import collections
import functools
import itertools
import os
import re
import threading
from typing import Any

import numpy as np

from weft import _core
from weft.errors import CallbackError
from weft.runtime import processes
from weft.runtime.errors import JaxRuntimeError

_NARROW = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}


# By platform, the targets that jaxlib has for calls of functions on the host: of a whole program,
# and of its part on a device.
HOST_CALL_TARGETS = {
    "cpu": ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"),
}

# Tokens of runs with effects that nobody has waited for. Only so many: a loop that runs programs
# and never waits must not collect tokens without end.
_MAX_PENDING = 64
_pending = collections.deque()
_thread = threading.local()


# What functions on the host raised lately, by number. jaxlib makes an error of its own of it, whose
# text has the number.
_MAX_RAISED = 32
_raised = collections.OrderedDict()
_numbers = itertools.count()
_NUMBER = re.compile(r"HostFunctionError: number (\d+)\b")


class HostFunctionError(Exception):
    """Stands for what a function on the host raised, on its way through jaxlib."""


def as_runtime_error(error):
    """What a function on the host raised, as an error that is a JaxRuntimeError, too.

    If its class is not one of Python's, its text ends with that. Libraries look for their classes:
    the errors of jax hold the traceback.
    """
    kind = type(error)
    if not isinstance(error, Exception) or isinstance(error, JaxRuntimeError):
        return error
    try:
        of_python = kind.__module__ == "builtins"
        text = kind.__str__ if of_python else _text_with_class
        members = {"__module__": kind.__module__, "__str__": text}
        both = type(kind.__name__, (kind, JaxRuntimeError), members)
        made = both(*error.args)
    except Exception:  # of a class that cannot be extended, or made of what it holds
        return error
    made.__dict__.update(error.__dict__)
    made.__cause__, made.__suppress_context__ = error.__cause__, error.__suppress_context__
    return made.with_traceback(error.__traceback__)


def _text_with_class(error):
    kind: Any = type(error).__bases__[0]
    return (
        f"{kind.__str__(error)}\n"
        f"  A function on the host raised {kind.__name__}: the program that called it has failed."
    )


def call_error(error):
    """What to raise for an error of jaxlib: what the function on the host raised, if it was that.

    With the function's traceback, without weft's own frames at its beginning.
    """
    found = _NUMBER.search(str(error))
    raised = _raised.get(int(found[1])) if found else None
    if raised is None and (joined := processes.joined()) is not None:
        joined.explain(error)
    return error if raised is None else as_runtime_error(raised[0]).with_traceback(raised[1])


def _remember(error):
    number = next(_numbers)
    own = os.path.dirname(os.path.dirname(__file__)) + os.sep
    frames = error.__traceback__
    while frames.tb_next and frames.tb_frame.f_code.co_filename.startswith(own):
        frames = frames.tb_next
    _raised[number] = (error, frames)
    if len(_raised) > _MAX_RAISED:
        _raised.popitem(last=False)
    return HostFunctionError(f"number {number}")


def inside_callback():
    """Whether this thread runs a host function for a program."""
    return getattr(_thread, "depth", 0) > 0


def keep_token(token):
    """Remembers a run for effects_barrier. Raises the error of an old run, if there are many."""
    _pending.append(token)
    # A host function must not wait: it may be the program that called it that is waited for.
    if len(_pending) > _MAX_PENDING and not inside_callback():
        _wait(_pending.popleft())


def _wait(token):
    try:
        token.block_until_ready()
    except Exception as error:
        raise call_error(error) from None


def effects_barrier():
    """Waits until all host functions of programs that were started have run.

    Raises the first error of those that nobody has seen yet; RuntimeError when called by a host
    function, which would wait for itself.

    Examples:
      >>> seen = []
      >>> weft.jit(lambda x: weft.debug.callback(seen.append, x))(1.0)
      >>> weft.effects_barrier()
      >>> len(seen)
      1
    """
    if inside_callback():
        raise RuntimeError(
            "effects_barrier: expected to be called by the program that waits; got a call from a "
            "function on the host, which the barrier would wait for"
        )
    first_error = None
    while _pending:
        try:
            token = _pending.popleft()
        except IndexError:
            break  # another thread took it
        try:
            _wait(token)
        except BaseException as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error


def checked(function, types, place, ordered):
    """The function as jaxlib calls it: arrays in, a tuple of arrays of the promised types out.

    Args:
      function: takes NumPy arrays, returns a list or tuple of arrays or numbers.
      types: (shape, dtype) of each result.
      place: the user's line that the call comes from, or "".
      ordered: whether a token comes after the arguments, and goes after the results.
    """
    x64 = _core.get_setting("x64")

    def call(*args):
        token = args[-1:] if ordered else ()
        args = args[: len(args) - len(token)]
        _thread.depth = getattr(_thread, "depth", 0) + 1
        try:
            # Memory of the program is used again after the call. jaxlib copies it, so far.
            results = function(*(a if a.flags.owndata else a.copy() for a in args))
            return check_results(function, results, types, place, x64) + token
        except BaseException as error:
            raise _remember(error) from None
        finally:
            _thread.depth -= 1

    # Programs run on threads that flush subnormal numbers; what the function computes is Python's.
    return functools.partial(_core.keeping_subnormals, call)


def host_argument(x, dtype):
    """An array or number as a function on the host gets it when no program is involved.

    Read-only, as the arguments that a program passes.
    """
    array = np.asarray(x, dtype).view()
    array.flags.writeable = False
    return array


def check_results(function, results, types, place, x64):
    """The results as a tuple of arrays; raises CallbackError if they are not of the types.

    Without 64-bit types, 64-bit results are narrowed as they are elsewhere.
    """
    name = getattr(function, "__name__", type(function).__name__)
    where = f"\n  at {place}" if place else ""
    if not isinstance(results, (list, tuple)) or len(results) != len(types):
        got = len(results) if isinstance(results, (list, tuple)) else type(results).__name__
        raise CallbackError(
            f"host function '{name}' expected {len(types)} results; got {got}{where}"
        )
    out = []
    for i, (result, (shape, dtype)) in enumerate(zip(results, types, strict=True)):
        array = np.asarray(result)
        narrowed = None if x64 else _NARROW.get(array.dtype.name)
        if array.shape != shape or (array.dtype != dtype and narrowed != dtype.name):
            raise CallbackError(
                f"host function '{name}' expected result {i} to be {dtype.name}{list(shape)}, as "
                f"promised; got {array.dtype.name}{list(array.shape)}{where}"
            )
        out.append(np.asarray(array, dtype, order="C"))
    return tuple(out)
