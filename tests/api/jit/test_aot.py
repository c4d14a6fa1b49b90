"""Traces that are kept for later processes: when they are used, and when they must not be."""

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import EVERYTHING

MODEL = """
    import dataclasses, enum, math
    import numpy as np
    import weft, weft.numpy as wnp

    SCALE = 2.0
    CONFIG = {"depth": 2, "names": ["a", "b"]}
    TABLE = np.arange(3, dtype=np.float32)
    HELD = wnp.arange(3.0)

    class Act(enum.Enum):
        TANH = "tanh"
        SIN = "sin"

    @dataclasses.dataclass
    class Layer:
        width: int
        def __call__(self, x):
            return wnp.tanh(x @ wnp.eye(self.width)) + HELD

    LAYERS = [Layer(3), Layer(3)]

    def act(x, kind):
        return wnp.tanh(x) if kind is Act.TANH else wnp.sin(x)

    @weft.custom_jvp
    def safe(x):
        return wnp.where(x > 0, x, 0.0)
    safe.defjvp(lambda p, t: (safe(*p), t[0]))

    @weft.jit
    def inner(x):
        return x * math.pi

    def loss(p, x):
        print("traced")
        for layer in LAYERS:
            x = layer(x)
        for _ in range(CONFIG["depth"]):
            x = act(x @ p["w"], Act.TANH)
        return (safe(inner(x)) * SCALE * TABLE).sum()

    @weft.aot
    def step(p, x):
        value, g = weft.value_and_grad(loss)(p, x)
        return value, {"p": [p["w"] - 0.1 * g["w"], None]}
"""
CALLS = """
    import sys
    import numpy as np
    import weft
    import model
    p = {"w": np.full((3, 3), 0.25, np.float32)}
    value, out = model.step(p, np.ones((2, 3), np.float32))
    again, _ = model.step(p, np.ones((2, 3), np.float32))
    event = model.step.explain().events[-1]
    assert len(model.step.explain().events) == 1 and float(value) == float(again)
    print(event.cause, "|", "; ".join(event.reasons))
    print(float(value), float(out["p"][0].sum()), out["p"][1], value.weak_type)
"""


class Project:
    """A directory with model.py and what runs it."""

    def __init__(self, path):
        self.path = path
        self.write("model", MODEL)
        self.write("main", CALLS)

    def write(self, name, text):
        (self.path / f"{name}.py").write_text(textwrap.dedent(text))

    def edit(self, before, after):
        text = (self.path / "model.py").read_text()
        assert text.count(before) == 1
        (self.path / "model.py").write_text(text.replace(before, after))

    def run(self, *many, **env):
        """What processes print that run main.py at the same time."""
        path = os.pathsep.join(filter(None, [str(self.path), *sys.path]))
        started = [
            subprocess.Popen(
                [sys.executable, "-B", str(self.path / "main.py")],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "random", **env},
            )
            for _ in many or [0]
        ]
        outs = []
        for process in started:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err[-3000:]
            outs.append(out)
        return outs if many else outs[0]

    @property
    def files(self):
        return sorted((self.path / "__weftcache__").glob("*"))


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def split(out):
    *traced, told, result = out.splitlines()
    return bool(traced), told, result


def test_a_later_process_does_not_trace(project):
    traced, told, result = split(project.run())
    assert traced and "first | first call; weft.aot: no trace was stored" in told
    assert len(project.files) == 1 and project.files[0].stat().st_mode & 0o077 == 0
    # A comment moves lines, and nothing else.
    project.edit("SCALE = 2.0", "# moves lines\nSCALE = 2.0")
    assert split(project.run()) == (False, STORED, result)


STORED = "stored | first call in this process; another one had stored the trace"

EDITS = [
    ("x * math.pi", "x * math.e", "model.inner"),
    ("SCALE = 2.0", "SCALE = 3.0", "SCALE"),
    ('"depth": 2', '"depth": 3', "depth"),
    ("wnp.arange(3.0)", "wnp.arange(3.0) + 1", "HELD"),
    ("dtype=np.float32)", "dtype=np.float32) * 2", "TABLE"),
]


def test_what_has_changed_is_traced_again_and_named(project):
    _, _, result = split(project.run())
    for before, after, name in EDITS if EVERYTHING else EDITS[:2]:
        project.edit(before, after)
        traced, told, now = split(project.run())
        assert traced and "changed since a trace was stored" in told and name in told, told
        assert now != result and len(project.files) == 1
        result = now
    assert split(project.run())[1] == STORED
    assert "no trace was stored" in split(project.run(WEFT_ENABLE_X64="1"))[1]


UNKNOWN = """
    import array, random, time, datetime, os
    import numpy as np
    import weft, weft.numpy as wnp

    of_c = array.array("f", [2.0])
    big = np.broadcast_to(np.float32(1), 1 << 25)  # more than is compared
    ref = weft.new_ref(wnp.ones(3))
    stamp = time.time

    def clock(x): return x * time.time()
    def clock_by_name(x): return x * stamp()
    def now(x): return x * datetime.datetime.now().year
    def draws(x): return x * random.random()
    def numpy_draws(x): return x * np.random.rand()
    def reads_file(x): return x * len(open(__file__).read())
    def loads(x): return x * np.load("x.npy") if x is None else x
    def made_in_c(x): return x * of_c[0]
    def identity(x): return x * (id(x) % 3)
    def reads_ref(x): return x * ref[...]
    def host(x): return weft.pure_callback(np.sin, weft.ShapeDtypeStruct((3,), np.float32), x)
    def settings(x): return x * weft.config.weft_enable_x64
    def large(x): return x * big[:3]
    USES = [lambda module, x: module.sin(x)]
    def passed_on(x): return USES[0](wnp, x)
    def made(x): return x * wnp.asarray(np.arange(3.0))
    def good(x): return x * 2
"""
ASKS = """
    import numpy as np, weft, model
    for name, f in list(vars(model).items()):
        if callable(f) and getattr(f, "__module__", "") == "model" and type(f) is not type:
            aot = weft.aot(f)
            aot(np.ones(3, np.float32))
            print(name, "|", "; ".join(aot.explain().events[0].reasons))
"""


def test_what_cannot_be_told_is_traced_in_each_process(project):
    project.write("model", UNKNOWN)
    project.write("main", ASKS)
    for _ in range(2):
        out = project.run()
    told = dict(line.split(" | ") for line in out.splitlines())
    assert told.pop("good").startswith("first call in this process")
    assert told.pop("made").startswith("first call in this process")
    assert len(told) == 14, sorted(told)
    for name, reason in told.items():
        assert "weft.aot: not " in reason, (name, reason)
    assert (
        "time" in told["clock"] and "array.array" in told["made_in_c"] and "id" in told["identity"]
    )


RULE = """
    import weft
    @weft.custom_jvp
    def scaled(x):
        return x * 3
    scaled.defjvp(lambda p, t: (scaled(*p), t[0] * 10))
    @weft.aot
    def f(x):
        return scaled(x) + 1
"""
DERIVATIVE = """
    import weft, model
    print(float(model.f(2.0)), float(weft.grad(model.f)(2.0)), float(model.f(2.0)))
    print([e.cause for e in model.f.explain().events])
"""


def test_rules_of_derivatives_are_traced_where_they_are_wanted(project):
    project.write("model", RULE)
    project.write("main", DERIVATIVE)
    assert project.run().splitlines() == ["7.0 10.0 7.0", "['first']"]
    assert project.run().splitlines() == ["7.0 10.0 7.0", "['stored', 'runs_only']"]


def test_files_that_are_damaged_or_of_others(project):
    first = split(project.run())[2]
    (file,) = project.files
    data = file.read_bytes()
    file.write_bytes(data[:-7])
    traced, _, result = split(project.run())
    assert traced and result == first
    (file,) = project.files
    assert file.read_bytes()[:16] == data[:16] and split(project.run())[1] == STORED
    file.chmod(0o666)
    traced, told, _ = split(project.run())
    assert traced and "not looked for" in told
    file.chmod(0o600)
    file.parent.chmod(0o500)
    assert split(project.run())[1] == STORED
    file.parent.chmod(0o700)


def test_processes_at_the_same_time(project):
    outs = project.run(1, 2)
    assert len({split(out)[2] for out in outs}) == 1
    assert len(project.files) == 1 and split(project.run())[1] == STORED


def test_elsewhere(project, tmp_path):
    place = tmp_path / "kept"
    project.run(WEFT_AOT_DIR=str(place))
    assert not project.files and len(list(place.iterdir())) == 1
    assert split(project.run(WEFT_AOT_DIR=str(place)))[1] == STORED
