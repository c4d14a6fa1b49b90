"""Summaries of profiles: which lines of the user's, and which operations, take time or memory."""

import re
from pathlib import Path
from typing import NamedTuple

from weft import _core
from weft._hlo_places import Places
from weft._types.avals import typeof
from weft._view.flames import Flame, flame_data, short_line
from weft._view.page import write_page
from weft.runtime.profiler import ProfileData
from weft.runtime.xplane import hlo_modules

_NO_LINE = "<no line>"
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$", re.MULTILINE)
_ROWS = 25  # of a table that is printed
_TITLES = {"line": "By line", "op": "By operation", "type": "By type", "device": "By device"}


class Share(NamedTuple):
    """What a line or an operation takes: a value (nanoseconds, or bytes), and how often it was."""

    value: float
    number: int


class Summary:
    """What takes time in a profile, or memory now; `print` shows it as tables.

    Attributes: total (of all), unit ("ns" or "bytes"), and tables: of time by_line and by_op, of
    memory by_type and by_device. A table is a dict from a name to (value, number), largest first:
    nanoseconds of operations, without those within them, and how many ran; bytes and arrays.
    """

    def __init__(self, title, unit, tables, flame):
        self.unit = unit
        self._title = title
        self._tables = {name: _largest_first(rows) for name, rows in tables.items()}
        for name, rows in self._tables.items():
            setattr(self, f"by_{name}", rows)
        self._flame = flame
        self.total = flame.value

    def show(self, path=None):
        """Writes a page with flames, each as wide as what it takes, and the tables.

        path: of the HTML file; None for one in a new folder for temporary files.

        Returns the path, a pathlib.Path.
        """
        subtitle = f"{_amount(self.total, self.unit)} in all"
        tables = {_TITLES[name]: rows for name, rows in self._tables.items()}
        data = flame_data(self._title, subtitle, self.unit, self._flame, tables)
        return write_page(data, path)

    def __str__(self):
        lines = [f"{self._title}: {_amount(self.total, self.unit)}"]
        for name, rows in self._tables.items():
            name = _TITLES[name]
            shown = [(short_line(key)[-70:], *row) for key, row in list(rows.items())[:_ROWS]]
            width = max([len(name), *(len(key) + 2 for key, *_ in shown)])
            head = {"ns": "time", "bytes": "bytes"}[self.unit]
            lines.append(f"\n{name.lower():<{width}}{head:>12}{'share':>9}{'number':>9}")
            for key, value, number in shown:
                share = 100 * value / self.total if self.total else 0
                amount = _amount(value, self.unit)
                lines.append(f"  {key:<{width - 2}}{amount:>12}{share:>7.1f} %{number:>9,}")
            if len(rows) > _ROWS:
                lines.append(f"  and {len(rows) - _ROWS} more")
        return "\n".join(lines)

    __repr__ = __str__


def _largest_first(rows):
    return dict(sorted(rows.items(), key=lambda row: -row[1].value))


def _amount(value, unit):
    if unit == "bytes":
        return f"{value:,.0f} B"
    return f"{value / 1e6:,.3f} ms"


# ---- Time


def summary(profile):
    """What `weft.profiler.summary` gives."""
    path = _newest(Path(profile))
    serialized = path.read_bytes()
    places = {name: _places_of(text) for name, text in hlo_modules(serialized).items()}
    flame, by_line, by_op = Flame("operations"), {}, {}
    for module, stack, own in _runs(ProfileData.from_serialized_xspace(serialized)):
        known = places.get(module, {})
        path_of = [module]
        for op in stack:
            path_of += [short_line(known.get(op) or _NO_LINE), op]
        flame.add(path_of, own)
        op = stack[-1]
        _count(by_line, known.get(op) or _NO_LINE, own)
        _count(by_op, re.sub(r"\.\d+$", "", op), own)
    tables = {"line": by_line, "op": by_op}
    return Summary(f"Profile {path.parent.name}", "ns", tables, flame)


def _count(rows, key, value):
    before = rows.get(key, Share(0, 0))
    rows[key] = Share(before.value + value, before.number + 1)


def _newest(path):
    if path.is_file():
        return path
    found = sorted(path.glob("**/*.xplane.pb"), key=lambda file: file.stat().st_mtime)
    if not found:
        raise FileNotFoundError(
            f"summary: expected a folder that trace or start_trace wrote, or a file *.xplane.pb; "
            f"got {path}, which has none"
        )
    return found[-1]


def _places_of(text):
    """The user's line of each operation of a module."""
    places = Places(text)
    return {
        name: place.text
        for name, rest in _INSTRUCTION.findall(text)
        if (place := places.of(rest)).file
    }


def _runs(data):
    """(program, names of the operations that are in one another, nanoseconds of the last without
    those within it) of all operations that ran."""
    for plane in data.planes:
        lines = {line.name: list(_operations(line)) for line in plane.lines}
        # Where XLA tells of its operations apart, other lines tell of the same once more.
        chosen = [lines["XLA Ops"]] if lines.get("XLA Ops") else lines.values()
        for events in chosen:
            yield from _nested(events)


def _operations(line):
    for event in line.events:
        stats = dict(event.stats)
        if "hlo_op" in stats:
            module = str(stats.get("hlo_module", ""))
            yield event.start_ns, event.duration_ns, module, str(stats["hlo_op"])


def _nested(events):
    stack = []  # [end, program, name, own time] of those that run

    def done(until):
        while stack and stack[-1][0] <= until:
            _, module, _, own = stack[-1]
            yield module, [entry[2] for entry in stack], own
            stack.pop()

    for start, duration, module, name in sorted(events, key=lambda e: (e[0], -e[1])):
        yield from done(start)
        if stack:
            stack[-1][3] -= duration
        stack.append([start + duration, module, name, duration])
    yield from done(float("inf"))


# ---- Memory


def memory_summary():
    """What `weft.profiler.memory_summary` gives."""
    flame, by_type, by_device = Flame("arrays"), {}, {}
    for array in _core.live_arrays():
        kind = str(typeof(array))
        for shard in array.addressable_shards:
            device, size = str(shard.device), shard.data.nbytes
            flame.add([device, kind], size)
            _count(by_type, kind, size)
            _count(by_device, device, size)
    tables = {"type": by_type, "device": by_device}
    return Summary("Memory of arrays", "bytes", tables, flame)
