"""Running programs given as Jaxpr objects."""

from weft import _core
from weft.compiler._programs import adapted
from weft.errors import ArgumentTypeError


def eval_jaxpr(jaxpr, consts, *args, propagate_source_info=True):
    """The results of a program, a list: run at once, or as part of the program being traced.

    Args:
      jaxpr: a Jaxpr; or a ClosedJaxpr, whose own constants are used if `consts` is empty.
      consts: a value for each of jaxpr.constvars.
      args: a value for each of jaxpr.invars, of its shape and dtype.

    `propagate_source_info` has no effect: operations keep the lines that made them.

    Raises ArgumentTypeError for values of another number or type.
    """
    if isinstance(jaxpr, _core.ClosedJaxpr):
        consts = list(consts) or jaxpr.consts
        jaxpr = jaxpr.jaxpr
    graph = jaxpr.graph
    values = [*consts, *args]
    if len(values) != len(graph.in_types) or len(args) != len(graph.in_types) - graph.num_consts:
        raise ArgumentTypeError(
            f"eval_jaxpr expected {graph.num_consts} constants and "
            f"{len(graph.in_types) - graph.num_consts} arguments; "
            f"got {len(values) - len(args)} and {len(args)}"
        )
    for i, (value, expected) in enumerate(zip(values, graph.in_types, strict=True)):
        number = i - graph.num_consts
        what = f"argument {number}" if number >= 0 else "a constant"
        values[i] = adapted("eval_jaxpr", what, value, expected)
    return _core.call_graph(graph, values, ())


def jaxpr_as_fun(closed):
    """The function of a ClosedJaxpr: its arguments are those of `eval_jaxpr`, its result a list."""

    def fun(*args):
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    return fun
