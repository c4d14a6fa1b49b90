"""What a page shows of a program, as one dict of plain data: the program after each pass, what is
compiled, the source, how arrays are split. Everything about graphs is made by the core."""

import json
import linecache

from weft import _core
from weft._explain import explain
from weft._stages.compiled import Compiled, Kernel, Loop, why_cut
from weft._stages.stage import Stage
from weft._tracing.signature import describe_argument, result_paths
from weft._visualize import Drawing

_FIGURES = (
    *("ops", "flops", "transcendentals", "bytes", "peak_bytes", "input_bytes", "output_bytes"),
    *("critical_path", "levels", "width"),
)
_LARGE = 100_000  # operations
_AROUND = 30  # lines of source before and after those that made operations
_WHOLE_FILE = 600  # lines; of longer files only what is around those lines is shown
_MOST_PICTURES = 24
_SMALL = 500  # operations: what is smaller is compiled as one program as it is


def analysis_data(analysis):
    """An Analysis as plain data: its figures, and dicts by_op and by_line of dicts with ops, flops,
    transcendentals and bytes."""
    data = {name: getattr(analysis, name) for name in _FIGURES}
    for by in ("by_op", "by_line"):
        costs = getattr(analysis, f"cost_{by}")
        data[by] = {name: {"ops": n, **costs[name]} for name, n in getattr(analysis, by).items()}
    return data


def page_data(program, *, title=None, tab="graph"):
    """The data of the page of a program: a Graph, or a stage of a jitted function.

    title: None for the function's name.

    The programs are JSON already, as text: a million operations are too many for objects of Python.
    """
    stage = program if isinstance(program, Stage) else None
    traced = stage._program.core.graph if stage else program
    steps = _Steps(traced)
    steps.run(_core.default_pipeline())
    optimised = len(steps.stages) - 1
    places = _shardings(stage)
    devices = {device for _, _, sharding in places for device in sharding.device_set}
    compiled = _compiled(stage, steps, devices)
    programs = _core.view_json(steps.graphs)
    name = title or (stage._program.name if stage else "graph")
    return {
        "title": name,
        "subtitle": f"{type(program).__name__}, {steps.stages[0]['analysis']['ops']:,} operations",
        "tab": tab,
        "first": optimised if stage else 0,
        "inputs": _input_names(stage, traced),
        "outputs": result_paths(stage._program.core) if stage else [],
        "stages": steps.stages,
        "programs": programs,
        "compiled": compiled,
        "explanation": _explanation(stage),
        "facts": _facts(stage),
        "files": _files(_places(programs)),
        "shardings": _pictures(places),
    }


class _Steps:
    """The program after one pass after the other, each as a stage of the page."""

    def __init__(self, graph):
        self.graphs = []
        self.stages = []
        self.numbers = {}  # of graphs that are known, by structure
        self.add("traced", "The program as the function was traced.", graph)

    def add(self, name, doc, graph, *, stats=None, hidden=False):
        """Adds a stage; returns its number."""
        changed = not self.graphs or hidden or graph is not self.graph
        if changed:
            self.graphs.append(graph)
        if not hidden:
            self.graph = graph
        ops = [None, _count(graph)] if stats is None else [stats["ops_before"], stats["ops_after"]]
        self.stages.append(
            {
                "name": name,
                "doc": doc,
                "program": len(self.graphs) - 1,
                "changed": changed,
                "hidden": hidden,
                "ops": ops,
                "ms": None if stats is None else round(1e3 * stats["seconds"], 3),
                "rewrites": {} if stats is None else stats["rewrites"],
                "analysis": analysis_data(_core.analyze(graph))
                if changed
                else self.stages[-1]["analysis"],
            }
        )
        return len(self.stages) - 1

    def run(self, names):
        """Runs passes on the program as it is. Of a large one the last result alone is kept."""
        docs = dict(_core.passes())
        steps = [names] if _count(self.graph) > _LARGE else [[name] for name in names]
        for passes in steps:
            before = self.graph
            after, all_stats = _core.run_passes(before, passes, [], [], False, False, None)
            *others, last = all_stats
            for stats in others:
                self.add(stats["pass"], docs[stats["pass"]], before, stats=stats)
            result = before if after == before else after
            self.add(last["pass"], docs[last["pass"]], result, stats=last)


def _count(graph):
    """Operations as passes count them: those of graphs in it are among them, of each graph once."""
    (stats,) = _core.run_passes(graph, ["dce"], [], [], False, False, None)[1]
    return stats["ops_before"]


# ---- What is compiled


def _compiled(stage, steps, devices):
    """What becomes blocks, loops, arrays and kernels: a list of tables. Adds stages for them.

    devices: that the program is compiled for; where that is not known, one of a CPU is meant.
    """
    options = stage._program.options if stage else None
    cut, choice = (options.compile, options.kernels) if options else ("auto", "auto")
    optimised = steps.graph
    if steps.stages[-1]["ops"][1] > _LARGE:
        why = "What compiling makes of a program as large is not told here."
        return [_part("Blocks, loops and kernels", why, [], [])]
    if len(devices) > 1 or any(device.platform != "cpu" for device in devices):
        pieces = [(block.graph, block.graph.num_ops, block.times) for block in stage.blocks]
        if pieces:
            return [_blocks(pieces, optimised, steps)]
        why = (
            "XLA compiles the program as one module, and splits it where it is for several devices."
        )
        return [_part("Blocks", why, [], [])]
    blocks, loops, packed, repacked, last, kernels = _core.plan(optimised, cut, choice)
    small = steps.stages[-1]["ops"][1] < _SMALL
    if blocks:
        return [_blocks(blocks, optimised, steps), _kernels(kernels, choice)]
    if repacked is not None:
        doc = "What repeats became loops, small values in loops became arrays."
        steps.add("roll, pack", doc, repacked)
    if last is not None:
        steps.add("kernels", "What XLA emits as one function each.", last)
    why = (
        "The program is compiled as one module: it is small."
        if small
        else "The program is compiled as one module: nothing repeats by so much that pieces of it, "
        "compiled on their own, would save compile time and cost calls next to nothing."
    )
    if cut in ("whole", "unrolled"):
        why = f"jit was told compile={cut!r}: one module."
    return [
        _part("Blocks", why, [], []),
        _loops(loops, packed, small, cut),
        _kernels(kernels, choice),
    ]


def _part(title, why, columns, rows):
    return {"title": title, "why": why, "columns": columns, "rows": rows}


def _row(*cells, stage=None, line=None):
    return {"cells": list(cells), "stage": stage, "line": line}


def _blocks(blocks, optimised, steps):
    rows = []
    for i, (graph, num_ops, times) in enumerate(blocks):
        why = why_cut(num_ops, times, optimised.num_ops)
        stage = steps.add(f"block {i}", why, graph, hidden=True)
        rows.append(_row(f"block {i}", num_ops, times, why, stage=stage))
    why = (
        "Pieces of the program are alike. Each distinct one is compiled once, and they run one "
        "after the other, as that takes less compile time, and calls lose next to nothing by "
        "estimate."
    )
    return _part("Blocks", why, ["piece", "operations", "runs", "why"], rows)


def _loops(loops, packed, small, cut):
    rows = [
        _row(loop.num_ops, loop.length, loop.unroll) for loop in (Loop(*each) for each in loops)
    ]
    if rows:
        why = (
            "Sequences of operations that repeat became loops, which XLA compiles once. By "
            "estimate calls lose at most 3 %."
        )
    elif cut != "auto" and cut != "whole":
        why = f"jit was told compile={cut!r}: nothing is rolled."
    elif small:
        why = f"Nothing is rolled in programs of fewer than {_SMALL} operations."
    else:
        why = "No sequence of operations repeats often enough to be worth a loop, by estimate."
    if packed:
        why += (
            f" Loops have {packed} operations fewer, as small values that are treated alike became "
            "arrays."
        )
    return _part(
        "Loops of what was written out",
        why,
        ["operations it stands for", "iterations", "of them in its body"],
        rows,
    )


def _kernels(kernels, choice):
    found = sorted((Kernel(*each) for each in kernels), key=lambda k: -k.seconds)
    rows = [
        _row(
            kernel.line or "unknown line",
            kernel.num_ops,
            *(round(1e6 * s, 2) for s in (kernel.apart, kernel.apart - kernel.seconds)),
            round(1e6 * kernel.seconds, 2),
            line=_place(kernel.line),
        )
        for kernel in found
    ]
    if choice == "never":
        why = "jit was told kernels='never'."
    elif rows:
        why = (
            "Parts of the program that XLA emits as one function each, loops and branches "
            "included, since by estimate they run faster so than operation by operation."
        )
    else:
        why = "No part of the program would run faster as one function, by estimate."
    columns = [
        "where most of it is",
        "operations",
        "one by one, µs",
        "as a kernel, µs",
        "saved, µs",
    ]
    return _part("Kernels", why, columns, rows)


def _place(line):
    """(file, line) of "file.py:12 (f)", or None."""
    file, colon, rest = (line or "").partition(" (")[0].rpartition(":")
    return [file, int(rest)] if colon else None


def _explanation(stage):
    function = stage._program.function if stage else None
    if not isinstance(function, _core.JitFunction):
        return None
    found = explain(function, (), {})
    return str(found) if found.events else None


def _facts(stage):
    """What XLA says of a compiled program: pairs of texts."""
    if not isinstance(stage, Compiled):
        return []
    memory, costs = stage.memory_analysis(), stage.cost_analysis() or {}
    facts = [
        (what, f"{getattr(memory, name):,} B")
        for what, name in (
            ("arguments", "argument_size_in_bytes"),
            ("results", "output_size_in_bytes"),
            ("temporaries", "temp_size_in_bytes"),
            ("code", "generated_code_size_in_bytes"),
        )
        if memory is not None
    ]
    return facts + [(f"XLA's {k}", f"{costs[k]:,.0f}") for k in ("flops",) if k in costs]


# ---- Names, source, shardings


def _input_names(stage, graph):
    """A name per input of the program; None where it has none but that of its value."""
    count = len(graph.in_types)
    if stage is None:
        return [None] * count
    core = stage._program.core
    fun, leaves = getattr(stage._program.function, "__wrapped__", None), len(core.in_avals)
    names: list[str | None] = [None] * (count - leaves)
    for i in range(leaves):
        text = describe_argument(fun, core.in_tree, (), i) if fun else ""
        names.append(text.removeprefix("argument ").rpartition(" of ")[0] or None)
    return names


def _places(programs):
    """The places of programs as JSON, in which each table is a line."""
    (line,) = (line for line in programs.split("\n", 3) if line.startswith('"places":'))
    return json.loads(line.removeprefix('"places":').rstrip(","))


def _files(places):
    """The source around the lines that operations come from: per file a list of (first line's
    number, lines)."""
    wanted = {}
    for file, line, *_ in places:
        if file and line > 0:
            wanted.setdefault(file, set()).add(line)
    found = {file: _excerpts(linecache.getlines(file), lines) for file, lines in wanted.items()}
    return {file: excerpts for file, excerpts in found.items() if excerpts}


def _excerpts(text, lines):
    text = [line.rstrip("\n")[:400] for line in text]
    if not text:
        return []
    if len(text) <= _WHOLE_FILE:
        return [[1, text]]
    spans = []
    for line in sorted(lines):
        first, last = max(1, line - _AROUND), min(len(text), line + _AROUND)
        if spans and first <= spans[-1][1] + 1:
            spans[-1][1] = last
        else:
            spans.append([first, last])
    return [[first, text[first - 1 : last]] for first, last in spans if first <= last]


def _shardings(stage):
    """(what, shape, sharding) of the arguments and results of which it is known."""
    if stage is None:
        return []
    found = []
    core = stage._program.core
    if isinstance(stage, Compiled):
        from weft._placement import sharding_of

        avals = core.in_avals
        placed = stage._made.input_shardings
        names = _input_names(stage, core.graph)[-len(avals) :] if avals else []
        for name, (shape, *_), place in zip(
            names, avals, placed[len(placed) - len(avals) :], strict=True
        ):
            found.append((name or "an argument", shape, sharding_of(place)))
        results = zip(result_paths(core), core.out_avals, stage._result_places, strict=False)
        for name, (shape, *_), place in results:
            if place is not None:
                found.append((name, shape, sharding_of(place)))
    return found


def _pictures(places):
    """Drawings of arrays that are split, one for all that are so in the same way."""
    groups = {}
    for name, shape, sharding in places:
        if sharding.num_devices > 1:
            groups.setdefault((shape, sharding), []).append(name)
    out = []
    for (shape, sharding), names in list(groups.items())[:_MOST_PICTURES]:
        svg = Drawing(shape, sharding).svg(0.5) if len(shape) in (1, 2) else ""
        shown = f"{tuple(shape)}  {sharding}"
        out.append({"names": names[:12], "text": shown, "svg": svg})
    return out
