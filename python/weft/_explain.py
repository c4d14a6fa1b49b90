"""Why functions under `jit` were traced and compiled: `explain()`, and lines for the logger.

The core remembers what differed and how long the stages took (csrc/jit/history.h); here it becomes
text, when somebody asks.
"""

from typing import Any, NamedTuple

from weft import _html
from weft._figures import count, seconds
from weft._settings import SETTINGS
from weft._stages.compiled import Kernel
from weft._surface import public_methods
from weft._tracing.signature import describe_argument, describe_position, quoted_name
from weft._tree_mismatch import explain_difference

_LONGEST = 80  # letters of a static value
_MOST_KERNELS = 8  # of a program that are shown one by one
_CAUSES = {
    "first": "first call",
    "cleared": "first call since the caches were cleared",
    "forgotten": "called like this before; that trace made room for others",
    "outer": "called like this before; that trace closed over values of the function that was "
    "being traced then, and was good for that one only",
    "leaked": "called like this before; that trace leaked traced values, and was good for one jit "
    "function only",
    "failed": "called like this before; that trace raised an error",
    "runs_only": "called like this before, with a stored trace, without rules of derivatives, and "
    "now while another function is traced",
    "stored": "first call in this process; another one had stored the trace",
}


class Made(NamedTuple):
    """A program that a trace was made into.

    Attributes: why (why it was made again; empty for the first one), optimize, emit, compile
    (seconds of weft's passes, of writing the module, and in XLA), operations, modules (how many
    XLA was to compile), in_memory and from_disk (how many of them were there already), blocks (how
    many of them are blocks; see the parameter `compile` of `jit`), rolled (how many operations
    became loops, as they repeat), loops (how many loops), packed (how many operations fewer loops
    have, as they work on arrays where they worked on many small values), kernels (a list of those
    that are part of it; see the parameter `kernels` of `jit`).
    """

    why: str
    optimize: float
    emit: float
    compile: float
    operations: int
    modules: int
    in_memory: int
    from_disk: int
    blocks: int
    rolled: int
    loops: int
    packed: int
    kernels: list[Kernel]

    @property
    def source(self) -> str:
        """Who served it: "xla", "disk", "memory"; "nothing" where nothing is to be computed."""
        if not self.modules:
            return "nothing"
        if self.in_memory == self.modules:
            return "memory"
        return "disk" if self.in_memory + self.from_disk == self.modules else "xla"

    def __str__(self):
        size = count(self.operations, "operation")
        if self.blocks:
            size += f" in {count(self.blocks, 'block')}"
        if self.loops:
            size += f", {self.rolled} of them rolled into {count(self.loops, 'loop')}"
        if self.packed:
            size += f", {count(self.packed, 'operation')} fewer as small values became arrays"
        if self.kernels:
            inside = sum(kernel.num_ops for kernel in self.kernels)
            size += f", {count(len(self.kernels), 'kernel')} of {inside} operations"
        stages = [("optimise", self.optimize), ("emit", self.emit), ("XLA", self.compile)]
        if self.source == "nothing":
            text = "compiled: nothing is left to compute"
        elif self.source == "memory":
            text = f"found in memory: a program of the same structure ({size})"
        elif self.source == "disk":
            stages[2] = ("load", self.compile)
            text = f"read from disk in {seconds(self._total)} ({size}; {_stages(stages)})"
        else:
            text = f"compiled in {seconds(self._total)} ({size}; {_stages(stages)})"
            found = [(self.in_memory, "in memory"), (self.from_disk, "on disk")]
            parts = ", ".join(f"{n} {where}" for n, where in found if n)
            if parts:
                text += f"; of {count(self.modules, 'module')} {parts}"
        return f"{text}, as {self.why}" if self.why else text

    _total = property(lambda self: self.optimize + self.emit + self.compile)

    def _lines(self):
        """Its text, and that of its largest kernels."""
        largest = sorted(self.kernels, key=lambda kernel: -kernel.seconds)[:_MOST_KERNELS]
        return [str(self), *(f"  {_kernel_text(kernel)}" for kernel in largest)]


class Event(NamedTuple):
    """A call that had to be traced.

    Attributes: line (the user's, "file.py:12 (f)", or None), cause ("first", "differs", "stored"
    where the trace was found by `weft.aot`, and others that `reasons` tells in words), reasons (a
    list of texts), trace (seconds, also of finding it; None if it raised an error), operations,
    nested (whether it was within another trace), programs (a list of what it was compiled into:
    Made).
    """

    line: str | None
    cause: str
    reasons: list[str]
    trace: float | None
    operations: int
    nested: bool
    programs: list[Made]

    def __str__(self):
        return "\n".join([_at(self.line) + "; ".join(self.reasons), *self._stages()])

    def _stages(self):
        if self.trace is None:
            return ["the trace raised an error, or is not at its end"]
        how = "loaded" if self.cause == "stored" else "traced"
        text = f"{how} in {seconds(self.trace)}, {count(self.operations, 'operation')}"
        if self.nested:
            text += ", within another trace"
        return [text, *(line for program in self.programs for line in program._lines())]


@public_methods
class Explanation:
    """Why a function was traced and compiled; `print` shows it.

    Attributes: name (of the function), place ("file.py:12", or None), events (a list of the last
    calls that had to be traced, oldest first; of a question about a call, the one whose trace it
    would use), forgotten (how many older ones there were), call (of a question about a call, what
    would become of it: "runs", "compiles", "traces"; else None), reasons (why).
    """

    def __init__(self, name, place, events, forgotten=0, call=None, reasons=()):
        self.name = name
        self.place = place
        self.events = events
        self.forgotten = forgotten
        self.call = call
        self.reasons = list(reasons)

    def __repr__(self):
        return "\n".join(self._lines())

    def _repr_html_(self):
        head, *lines = self._lines()
        return _html.card(head, [], _html.listing("\n".join(lines)))

    def _lines(self):
        head = f"{self.name}, defined at {self.place}" if self.place else self.name
        if self.call is not None:
            yield f"{head}: this call {_CALLS[self.call]}"
            yield from (f"  {reason}" for reason in self.reasons)
            for event in self.events:
                yield f"  its trace is that of {event.line or 'an unknown line'}"
                yield from (f"    {text}" for text in event._stages())
            return
        programs = [program for event in self.events for program in event.programs]
        compiled = sum(program.source == "xla" for program in programs)
        stored = sum(event.cause == "stored" for event in self.events)
        traced = _times(len(self.events) + self.forgotten - stored)
        yield f"{head}: traced {traced}, compiled {_times(compiled)}"
        if self.forgotten:
            yield f"  ({count(self.forgotten, 'older trace')} forgotten)"
        for i, event in enumerate(self.events, 1 + self.forgotten):
            first, *rest = event.reasons
            yield f"{i}. {_at(event.line)}{first}"
            yield from (f"     {reason}" for reason in rest)
            yield from (f"     {text}" for text in event._stages())


_CALLS = {
    "runs": "would run at once",
    "compiles": "would be compiled, from a trace that is there",
    "traces": "would be traced and compiled",
}


def explain(jitted: Any, args: tuple, kwargs: dict) -> Explanation:
    """What `explain` of a jit function gives."""
    fun = jitted.__wrapped__
    known = getattr(fun, "__name__", type(fun).__name__), _place(fun)
    if not args and not kwargs:
        misses, forgotten = jitted._history()
        return Explanation(*known, [_event(fun, miss) for miss in misses], forgotten)
    miss, used, ready = jitted._outlook(args, kwargs)
    if miss is not None:
        return Explanation(*known, [], 0, "traces", _reasons(fun, miss))
    events = [] if used is None else [_event(fun, used)]
    return Explanation(*known, events, 0, "runs" if ready else "compiles")


def missed_line(fun, miss):
    """What the setting explain_cache_misses tells of a trace."""
    event = _event(fun, miss)
    place = _place(fun)
    head = f"{quoted_name(fun)[1:-1]}{f' (defined at {place})' if place else ''}"
    *_, stages = event._stages()
    why = "\n  ".join(event.reasons)
    return f"TRACING CACHE MISS of {head} at {event.line or 'an unknown line'}: {why}\n  {stages}"


def made_line(name, made):
    """What it tells of a compilation."""
    return f"{name}: {_made(made)}"


def _made(values):
    *counts, kernels = values
    return Made._make([*counts, [Kernel(*kernel) for kernel in kernels]])


def _event(fun, miss):
    programs = [_made(made) for made in miss["compilations"]]
    reasons = _reasons(fun, miss)
    return Event(
        *(miss["line"], miss["cause"], reasons, miss["seconds"], miss["ops"]),
        *(miss["is_nested"], programs),
    )


def _place(fun):
    code = getattr(fun, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else None


def _reasons(fun, miss):
    found = _causes(fun, miss)
    return [*found, f"weft.aot: {miss['note']}"] if miss["note"] else found


def _causes(fun, miss):
    cause = miss["cause"]
    if cause == "fresh":
        others = count(miss["others"], "other function")
        return [
            f"first call of this function object; {others} of the same code had been traced. A "
            "function made anew for each call is traced each time: make and jit it once"
        ]
    if cause != "differs":
        return [_CAUSES[cause]]
    found = list(_differences(fun, miss))
    if not found:
        found = ["the call differs from the closest earlier one in what compares unequal to itself"]
    found[0] = f"unlike the closest earlier call: {found[0]}"
    return found


def _differences(fun, miss):
    tree, keys = miss["structure"] or (None, ())
    before = miss["structure_before"]
    if miss["other_structure"] or miss["num_leaves"] != miss["leaves_before"]:
        yield from _other_structure(miss, tree, before)
    numbers = tuple(key for key in keys if isinstance(key, int))

    def name(leaf):
        return describe_argument(fun, tree, numbers, leaf).rpartition(" of ")[0]

    for leaf, now, then in miss["leaves"]:
        yield f"{name(leaf)} is {now}, before {then}{_kind(now, then)}"
    unnamed = miss["num_different"] - len(miss["leaves"])
    if unnamed:
        yield f"and {count(unnamed, 'other array')}"
    same_keys = before is None or keys == before[1]
    for key, now, then in miss["statics"]:
        if same_keys and not _same(now, then):
            what = describe_position(fun, key).rpartition(" of ")[0]
            yield f"static {what} is {_value(now)}, before {_value(then)}{_types(now, then)}"
    for what, now, then in miss["texts"]:
        if what.startswith("sharding "):
            yield f"{name(int(what.split()[1]))} is {now}, before {then}"
        else:
            yield "{} is {}, before {}".format(*_setting(what, now, then))


def _other_structure(miss, tree, before):
    if miss["num_leaves"] != miss["leaves_before"]:
        now = count(miss["num_leaves"], "array")
        yield f"{now} in the arguments, before {miss['leaves_before']}"
    if tree is None or before is None:
        if miss["num_leaves"] == miss["leaves_before"]:
            yield "arguments are given otherwise: by name, or nested"
    elif tree != before[0]:
        text = " ".join(explain_difference(before[0], tree).split())
        yield f"the arguments are nested otherwise: expected {text}"
    elif miss["structure"][1] != before[1]:
        yield f"static arguments are {miss['structure'][1]}, before {before[1]}"


def _kind(now, then):
    """What of a type differs, where that is easily overlooked."""
    if now.lstrip("~") == then.lstrip("~"):
        return " (~: weakly typed, as Python's numbers are)"
    return ""


def _setting(name, now, then):
    for public, setting in SETTINGS.items():
        core = setting.core
        if core is not None and getattr(core, "_name", None) == name:
            return public, core._values[int(now)], core._values[int(then)]
    return name.replace("_", " "), now, then


def _same(a, b):
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def _value(value):
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: {type(error).__name__} in repr>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _types(now, then):
    kinds = type(now).__name__, type(then).__name__
    if kinds[0] != kinds[1]:
        return f" ({kinds[0]}, before {kinds[1]})"
    if _value(now) == _value(then):
        return ": unequal, though they look the same (does the class define __eq__ and __hash__?)"
    return ""


def _at(line):
    return f"{line}: " if line else ""


def _kernel_text(kernel):
    where = f" at {kernel.line}" if kernel.line else ""
    now, before = (1e6 * seconds for seconds in (kernel.apart - kernel.seconds, kernel.apart))
    size = count(kernel.num_ops, "operation")
    return f"kernel{where}: {size}, {now:.0f} us in place of {before:.0f} by estimate"


def _times(n):
    return {0: "never", 1: "once", 2: "twice"}.get(n, f"{n} times")


def _stages(stages):
    return ", ".join(f"{name} {seconds(taken)}" for name, taken in stages)
