"""Programs that are compiled ahead of their first call, several at a time.

Functions are traced by the thread that asks, under its settings; XLA works in threads of a pool.
"""

from concurrent.futures import Future
from typing import Any

from weft import _core, _pool
from weft._jit import jit
from weft._stages.compiled import Compiled
from weft._stages.lowered import Lowered
from weft._stages.traced import Traced


def compile_async(lowered: Lowered, compiler_options: Any = None) -> Future:
    """What `Lowered.compile_async` does."""
    return _pool.submit(lowered._compilation(compiler_options))


def compile_all(programs, *, return_exceptions=False):
    """Several programs compiled at the same time, on all cores.

    Functions are traced one after the other, while what was traced before is being compiled. What
    is compiled is found by later calls of the same functions.

    Args:
      programs: of each what `jit(f).lower(...)` or `jit(f).trace(...)` gave, or a tuple
        (function, args) or (function, args, kwargs), with a tuple of arguments and a dict of those
        by keyword, arrays or weft.ShapeDtypeStruct; functions that are not jitted are.
      return_exceptions: errors take the place of results in the list, and none is raised.

    Returns a list of weft.stages.Compiled, in the order of `programs`.

    Raises the error of the program that could not be traced or compiled, with a note that names it,
    when all others are done; ExceptionGroup of them if there are several. TypeError for what is
    none of the above.

    Examples:
      >>> programs = [weft.jit(f).lower(1.0) for f in (wnp.sin, wnp.cos)]
      >>> sin, cos = weft.compile_all(programs)
      >>> cos(0.0)
      Array(1., dtype=float32, weak_type=True)
    """
    programs, futures = list(programs), []
    try:
        futures.extend(map(_begun, programs))  # those before an interrupt are in the list
        outcomes = [_outcome(future) for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    errors = []
    for number, (program, outcome) in enumerate(zip(programs, outcomes, strict=True)):
        if isinstance(outcome, Exception):
            outcome.add_note(f"in weft.compile_all, program {number}{_name(program)}")
            errors.append(outcome)
    if return_exceptions or not errors:
        return outcomes
    if len(errors) == 1:
        raise errors[0]
    raise ExceptionGroup(
        f"weft.compile_all: {len(errors)} of {len(outcomes)} programs could not be compiled", errors
    )


def _begun(program) -> Future:
    try:
        return compile_async(_lowered(program))
    except Exception as error:
        failed: Future = Future()
        failed.set_exception(error)
        return failed


def _outcome(future) -> Compiled | Exception:
    try:
        return future.result()
    except Exception as error:
        return error


def _is_call(program):
    """Whether it is (function, args) or (function, args, kwargs)."""
    return (
        isinstance(program, tuple)
        and len(program) in (2, 3)
        and callable(program[0])
        and isinstance(program[1], (tuple, list))
        and isinstance((*program, {})[2], dict)
    )


def _name(program):
    if isinstance(program, (Lowered, Traced)):
        return f", '{program._program.name}'"
    if _is_call(program):
        return f", '{getattr(program[0], '__name__', type(program[0]).__name__)}'"
    return ""


def _lowered(program) -> Lowered:
    if isinstance(program, Lowered):
        return program
    if isinstance(program, Traced):
        return program.lower()
    if not _is_call(program):
        raise TypeError(
            "compile_all: expected jit(f).lower(...), jit(f).trace(...), or (function, args) or "
            f"(function, args, kwargs) with a tuple of arguments; got {program!r}"
        )
    function, args, kwargs = (*program, {})[:3]
    jitted = function if isinstance(function, _core.JitFunction) else jit(function)
    return jitted.lower(*args, **kwargs)
