"""What the devices of a compiled program send each other, read from XLA's optimised HLO text."""

import collections
import math
import re
from typing import NamedTuple

from weft import _html
from weft._figures import columns
from weft._hlo_places import Places

_KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)
# What the devices of a group hand in together, in terms of what one does.
_WHOLE = {"all-gather": lambda group: group}
# What a device sends of that, where no more is sent than needed.
_SENT = {
    "all-reduce": lambda group: 2 * (group - 1) / group,
    "collective-permute": lambda group: 1.0,
    "collective-broadcast": lambda group: 1.0,
}

_HEAD = re.compile(r"^(ENTRY )?%(\S+) \(.*\{$")
_OP = re.compile(
    r"^\s+(?:ROOT )?%(?P<name>\S+) = (?P<type>\(.*?\)|\S+) (?P<opcode>[a-z][\w-]*)\((?P<args>.*)$"
)
_TYPE = re.compile(r"([a-z]+\d*\w*)\[([\d,]*)\]")
_NAME = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(
    r"\b(condition|body|to_apply|calls|true_computation|false_computation)=%([\w.\-]+)"
)
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


_TITLES = ("collective", "of", "bytes", "times", "devices", "sent by each", "at")
_LEFT = (0, 1, 6)  # columns of text


class Collective(NamedTuple):
    """Collectives of a program that are alike: a row of `Communication`.

    Attributes: kind ("all-reduce", ...), types (of what a device hands in: "f32[4,8]"), bytes (of
    the data of one: what a device hands in, and for all-gather what it gets), sent (bytes that a
    device at least has to send for one), number (how often it runs in a run of the program; None
    where that is not known, as in a loop that ends by its values), group_size (how many devices
    take part in each), num_groups, where (the user's line, "file.py:12 (f)"), file, line.
    """

    kind: str
    types: str
    bytes: int
    sent: int
    number: int | None
    group_size: int
    num_groups: int
    where: str
    file: str
    line: int


class Communication:
    """The collectives of a compiled program, for one of its devices; prints as a table.

    Attributes: rows (Collectives, those that send most first). A branch counts as taken; a
    collective that XLA made of several has the line of one of them. XLA may do without a
    collective that the program has, and combine or split others: this is what is left to run.
    """

    def __init__(self, rows):
        self.rows = tuple(rows)

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __getitem__(self, i):
        return self.rows[i]

    @property
    def bytes(self):
        """Bytes of all data in one run of the program, where it is known how often each runs."""
        return sum(self.by_kind().values())

    @property
    def sent(self):
        """Bytes that a device at least has to send in one run."""
        return sum(row.sent * (row.number or 0) for row in self.rows)

    def by_kind(self) -> dict[str, int]:
        """By kind of collective, bytes in one run."""
        return self._summed(lambda row: row.kind)

    def by_line(self) -> dict[str, int]:
        """By the user's line, bytes in one run."""
        return self._summed(lambda row: row.where)

    def _summed(self, key):
        sums = collections.Counter()
        for row in self.rows:
            sums[key(row)] += row.bytes * (row.number or 0)
        return dict(sums.most_common())

    def _lines(self):
        lines: list[tuple[str, ...]] = []
        for row in self.rows:
            devices = f"{row.num_groups} x {row.group_size}"
            times = "?" if row.number is None else f"{row.number:,}"
            sent = "?" if row.number is None else f"{row.sent * row.number:,}"
            lines.append((row.kind, row.types, f"{row.bytes:,}", times, devices, sent, row.where))
        lines.append(("in all", "", "", "", "", f"{self.sent:,}", ""))
        return lines

    def __str__(self):
        if not self.rows:
            return "no communication"
        return columns([_TITLES, *self._lines()], _LEFT)

    __repr__ = __str__

    def _repr_html_(self):
        facts = ["of one device in a run"] if self.rows else ["none"]
        table = _html.table(_TITLES, self._lines(), _LEFT) if self.rows else ""
        return _html.card("Communication", facts, table)


def communication(text):
    """The `Communication` of modules as XLA prints them after its optimisations."""
    rows = []
    for module in re.split(r"^(?=HloModule )", text, flags=re.MULTILINE):
        if module.strip():
            rows += _Module(module).rows()
    rows.sort(key=lambda row: (-row.sent * (row.number or 0), -row.bytes, row.kind, row.where))
    return Communication(rows)


class _Op(NamedTuple):
    kind: str
    operands: tuple[str, ...]  # their types
    rest: str  # operands and attributes, as printed


class _Module:
    def __init__(self, text):
        devices = re.search(r"num_partitions=(\d+)", text.split("\n", 1)[0])
        self.num_devices = int(devices[1]) if devices else 1
        self.places = Places(text)
        self.collectives = collections.defaultdict(list)  # by computation
        self.calls = collections.defaultdict(list)  # by computation: (callee, trips or None)
        self.entry = ""
        self._read(text)

    def _read(self, text):
        here, types = "", {}
        for line in text.splitlines():
            head = _HEAD.match(line)
            if head:
                here, types = head[2], {}
                self.entry = here if head[1] else self.entry
                continue
            op = _OP.match(line)
            if not op:
                continue
            types[op["name"]] = op["type"]
            args, opcode = op["args"], op["opcode"]
            kind = opcode.removesuffix("-start")
            if kind in _KINDS:
                names = _NAME.findall(args[: args.index(")")])
                operands = tuple(
                    f"{t[0]}[{t[1]}]" for name in names for t in _TYPE.findall(types[name])
                )
                self.collectives[here].append(_Op(kind, operands, args))
                continue
            trips = _TRIPS.search(args) if opcode == "while" else None
            for role, callee in _CALLED.findall(args):
                times = 1
                if opcode == "while":
                    times = int(trips[1]) + (role == "condition") if trips else None
                self.calls[here].append((callee, times))
            for branches in _BRANCHES.findall(args):
                self.calls[here] += [(name, 1) for name in _NAME.findall(branches)]

    def rows(self):
        runs = collections.Counter()  # by computation
        unknown = set()

        # A module has no recursion, and few computations that hold others.
        def visit(name, times, known):
            runs[name] += times
            if not known:
                unknown.add(name)
            for callee, trips in self.calls[name]:
                visit(callee, times * (1 if trips is None else trips), known and trips is not None)

        visit(self.entry, 1, True)
        numbers = collections.Counter()
        for name, ops in self.collectives.items():
            for op in ops if runs[name] else ():
                numbers[self._row(op, None if name in unknown else 0)] += runs[name]
        return [
            row if row.number is None else row._replace(number=number)
            for row, number in numbers.items()
        ]

    def _row(self, op, number):
        size, groups = self._groups(op)
        data = sum(map(_bytes, op.operands)) * _WHOLE.get(op.kind, lambda group: 1)(size)
        sent = round(data * _SENT.get(op.kind, lambda group: (group - 1) / group)(size))
        counted = collections.Counter(op.operands)
        types = ", ".join(t if n == 1 else f"{n} x {t}" for t, n in counted.items())
        where, file, line = self.places.of(op.rest)
        return Collective(op.kind, types, data, sent, number, size, groups, where, file, line)

    def _groups(self, op):
        """How many devices are in a group, and how many groups there are."""
        pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", op.rest)
        if pairs:
            return _rings([tuple(map(int, p)) for p in re.findall(r"(\d+),(\d+)", pairs[1])])
        found = re.search(r"replica_groups=\[(\d+),(\d+)\]<=", op.rest)
        if found:
            return int(found[2]), int(found[1])
        found = re.search(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}", op.rest)
        if found:
            sizes = {name: int(n) for name, n in re.findall(r"'([^']*)'=(\d+)", found[1])}
            used = re.findall(r"'([^']*)'(?::\(\d+\)(\d+))?", found[2])
            size = math.prod(int(part) if part else sizes[name] for name, part in used)
            return size, math.prod(sizes.values()) // size
        found = re.search(r"replica_groups=\{(\{.*?\})\}", op.rest)
        if found:
            groups = re.findall(r"\{([\d,]*)\}", found[1])
            return len(groups[0].split(",")), len(groups)
        return self.num_devices, 1


def _rings(pairs):
    """The size of the largest set of devices that send each other something, and how many sets."""
    sets = {}
    for a, b in pairs:
        joined = sets.get(a, {a}) | sets.get(b, {b})
        for device in joined:
            sets[device] = joined
    found = {frozenset(s) for s in sets.values()}
    return max(map(len, found), default=1), len(found)


def _bytes(kind):
    """The size of "f32[4,8]"; of a token 0."""
    dtype, dims = kind[:-1].split("[")
    bits = 8 if dtype == "pred" else int((re.search(r"\d+", dtype) or "0")[0])
    return math.prod(map(int, filter(None, dims.split(",")))) * bits // 8
