"""weft.aot after random edits of random modules: the result is that of a process without traces."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EVERYTHING, SUPPORT
from readable_things import HEAD, THINGS, WAYS

COUNT = 500 if EVERYTHING else 40
SEED = 0


class Module:
    """A package of a few things that its function reads, of which one is edited."""

    def __init__(self, number):
        self.name = f"edited{number}"
        draw = random.Random(f"{SEED} {number}")
        # Every thing is the edited one of some module.
        edited = THINGS[number % len(THINGS)]
        others = draw.sample(
            [t for t in THINGS if t.is_known and t is not edited], draw.randint(0, 3)
        )
        self.things = [edited, *others]
        self.edited = edited
        draw.shuffle(self.things)
        self.ways = [draw.choice(WAYS) for _ in self.things]
        self.starts = [draw.randint(0, 1) for _ in self.things]

    @property
    def is_known(self):
        return all(thing.is_known for thing in self.things)

    def write(self, folder, is_edited):
        folder = Path(folder, self.name)
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "__init__.py").write_text("")
        parts, reads = [HEAD], []
        for i, (thing, (around, expression), start) in enumerate(
            zip(self.things, self.ways, self.starts, strict=True)
        ):
            own, way = f"t{i}", f"w{i}"
            value = thing.values[start ^ (is_edited and thing is self.edited)]
            for name, text in thing.file_texts(own, value).items():
                (folder / f"{name}.py").write_text(text)
            read = thing.reading(own)
            parts.append(thing.text(own, value))
            parts.append(around.replace("$", way).replace("{e}", read))
            reads.append("(" + expression.replace("$", way).replace("{e}", read) + ")")
        total = " + ".join(f"x * {k + 1} * {read}" for k, read in enumerate(reads))
        note = "# edited\n" if is_edited else ""
        (folder / "main.py").write_text("\n".join(parts) + f"\n{note}def f(x): return {total}\n")


def run(folder, store, modules):
    """Of each module (value, cause, reasons), in a process of its own."""
    path = os.pathsep.join([str(SUPPORT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-B", SUPPORT / "aot_edits.py", folder, store, *(m.name for m in modules)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "random"},
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """(modules, results before, again, after an edit, and after it without traces)."""
    folder = str(tmp_path_factory.mktemp("modules"))
    store, empty = (str(tmp_path_factory.mktemp(name)) for name in ("store", "empty"))
    step = 1 if EVERYTHING else max(1, len(THINGS) // COUNT)
    modules = [Module(number * step) for number in range(COUNT)]
    for module in modules:
        module.write(folder, False)
    before, again = (run(folder, store, modules) for _ in range(2))
    for module in modules:
        module.write(folder, True)
    return modules, before, again, run(folder, store, modules), run(folder, empty, modules)


def test_no_edit_finds_the_trace_of_before(runs):
    modules, before, _, after, right = runs
    stale = [m.edited.name for m in modules if after[m.name][0] != right[m.name][0]]
    assert not stale
    changed = [m for m in modules if before[m.name][0] != right[m.name][0]]
    assert len(changed) > 0.9 * len(modules)  # the edits are ones that matter


def test_what_is_not_edited_is_found(runs):
    modules, _, again, _, _ = runs
    told = {m.name: (again[m.name][1] == "stored", m) for m in modules}
    traced = [
        (m.things, again[name]) for name, (found, m) in told.items() if m.is_known and not found
    ]
    assert not traced
    assert not [m.edited.name for found, m in told.values() if found and not m.is_known]
