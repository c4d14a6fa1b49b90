"""What notebooks show of programs and of their analyses; jaxprs and graphs are classes in C++."""

import collections
import math
from typing import Any

from weft import _html
from weft._core import Analysis, ClosedJaxpr, Graph, Jaxpr
from weft._figures import count, size
from weft._types.avals import ShapedArray

_OPERATIONS = 5000  # of a program that is shown as text


def types_text(types):
    """Types of arrays, the first ones of many: "float32[3,4], int32[2]"."""
    texts = [str(ShapedArray(shape, dtype, weak_type=any(weak))) for shape, dtype, *weak in types]
    if len(texts) > 6:
        texts[5:] = [f"and {len(texts) - 5} more"]
    return ", ".join(texts)


def signature_text(in_types, out_types):
    """ "(float32[3,4]) -> float32[3]"."""
    results = types_text(out_types)
    return f"({types_text(in_types)}) -> {results if len(out_types) == 1 else f'({results})'}"


def bytes_of(types):
    """How many bytes arrays of these types have."""
    return sum(dtype.itemsize * math.prod(shape) for shape, dtype, *_ in types)


def program_listing(graph):
    """A graph as text; how often a large one has which operation."""
    if graph.num_ops <= _OPERATIONS:
        return _html.listing(graph.to_text(100))
    numbers = collections.Counter(graph.op_names()).most_common()
    return _html.table(("operation", "times"), [(name, f"{n:,}") for name, n in numbers])


def _program(title):
    def shown(program):
        graph = getattr(program, "graph", program)
        types = signature_text(graph.in_types, graph.out_types)
        facts = [count(graph.num_ops, "operation"), types]
        return _html.card(title, facts, program_listing(graph))

    return shown


def _analysis(figures):
    def costs(table, numbers):
        rows = [
            (name, numbers[name], cost["flops"], cost["transcendentals"], cost["bytes"])
            for name, cost in table.items()
        ]
        rows.sort(key=lambda row: (-row[2], -row[4]))
        return [(name, *(f"{n:,}" for n in row)) for name, *row in rows]

    head = ("operations", "flops", "transcendentals", "bytes")
    return _html.card(
        "Analysis",
        [
            count(figures.ops, "operation"),
            count(figures.flops, "flop"),
            f"{size(figures.bytes)} read and written",
            f"{size(figures.peak_bytes)} alive at most",
            f"{figures.critical_path:,} wait for one another",
        ],
        _html.table(("by operation", *head), costs(figures.cost_by_op, figures.by_op)),
        _html.table(("by line", *head), costs(figures.cost_by_line, figures.by_line)),
    )


_kinds: Any = {kind: _program(kind.__name__) for kind in (Graph, Jaxpr, ClosedJaxpr)}
_kinds[Analysis] = _analysis
for _kind, _shown in _kinds.items():
    _kind._repr_html_ = _shown
