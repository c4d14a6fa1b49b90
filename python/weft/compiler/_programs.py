"""What may stand for a program, and programs that are called."""

from typing import Any

from weft import _core
from weft._jit import jit
from weft._stages.compiled import Compiled
from weft._stages.lowered import Lowered
from weft._stages.traced import Traced
from weft._types.avals import ShapedArray, typeof
from weft.errors import ArgumentTypeError


def graph_of(what, program, args=None, kwargs=None):
    """The graph of a program; of a function traced on arguments, where `what` takes some."""
    found: Any = program_of(what, program, args, kwargs)
    return found if isinstance(found, _core.Graph) else found.graph


def program_of(what, program, args=None, kwargs=None):
    """A program as a stage of a jitted function, or as a graph; a function is traced."""
    if isinstance(program, (_core.Graph, *_STAGES)):
        found = program
    elif isinstance(program, (_core.Jaxpr, _core.ClosedJaxpr)):
        found = program.graph
    elif args is not None and callable(program):
        return _traced(program, args, kwargs)
    else:
        function = "" if args is None else ", or a function and its arguments"
        raise ArgumentTypeError(
            f"{what} expected a graph, what make_jaxpr returns, or a traced, lowered or compiled "
            f"function{function}; got {type(program).__name__}"
        )
    given = [*(args or ()), *(kwargs or ())]
    if given:
        raise ArgumentTypeError(
            f"{what} expected no arguments for a {type(program).__name__}, which is traced "
            f"already; got {len(given)} (passes go by name: passes=[...])"
        )
    return found


_STAGES = Traced, Lowered, Compiled


def _traced(function, args, kwargs):
    # A jitted function has static arguments of its own.
    trace = getattr(function, "trace", None) or jit(function).trace
    return trace(*args, **kwargs)


def call(graph, /, *arrays):
    """The results of a graph on arrays, one per input (constvars first): a tuple.

    Runs compiled, or as part of the program that is being traced.

    Raises ArgumentTypeError for values of another number, shape or dtype.
    """
    types = graph.in_types
    if len(arrays) != len(types):
        consts = f" ({graph.num_consts} of them constvars)" if graph.num_consts else ""
        raise ArgumentTypeError(
            f"the graph expected {len(types)} arrays, one per input{consts}; got {len(arrays)}"
        )
    values = [
        adapted("the graph", f"input {i}", value, expected)
        for i, (value, expected) in enumerate(zip(arrays, types, strict=True))
    ]
    return tuple(_core.call_graph(graph, values, ()))


def adapted(caller, what, value, expected):
    """The value if it has the type of an input; a weakly typed one is converted."""
    try:
        shape, dtype, weak = _core.typeof(value)
    except TypeError:
        raise ArgumentTypeError(
            f"{caller} expected {what} of type {ShapedArray(*expected)}; "
            f"got {type(value).__name__}: {value!r:.60}"
        ) from None
    if shape == expected[0] and dtype == expected[1]:
        return value
    if shape == expected[0] and weak and _core.result_type(value, expected[1])[0] == expected[1]:
        return _core.astype(value, expected[1])
    raise ArgumentTypeError(
        f"{caller} expected {what} of type {ShapedArray(*expected)}; got {typeof(value)}"
    )
