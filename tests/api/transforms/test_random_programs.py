"""Random whole programs (random_programs.py) under random nests of transforms.

What a nest gives is compared with differences of, or loops over, the function inside its outermost
transform; with the same nest compiled; in float32; and under jax.

A chunk of programs runs in a process of its own, where XLA optimises little: what is tested is
above XLA, and compiling would take most of the time.

usage: test_random_programs.py SEED [SEED ...]     compares these programs alone, with jax too
"""

import importlib.util
import inspect
import os
import pickle
import subprocess
import sys
import traceback
import warnings

import comparing
import kept_answers
import numpy as np
import pytest
import random_programs
from conftest import EVERYTHING
from oracle import needs_jax
from program_runs import QUICK_COMPILE

CHUNK = 25
CHUNKS = range(0, 200 if EVERYTHING else 50, CHUNK)

# ---- what a transform of a function should give, from values of that function alone


def jacobian(f, x, step=5e-4):
    """df_i/dx_j by central differences of fourth order, of shape (*f(x).shape, *x.shape)."""
    columns = []
    for j in range(x.size):
        unit = np.zeros(x.size)
        unit[j] = step
        unit = unit.reshape(x.shape)
        near, far = (f(x + k * unit) - f(x - k * unit) for k in (1, 2))
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, -1).reshape((*np.shape(columns[0]), *x.shape))


def direction(x):
    return np.cos(1.3 * x + 0.5)


def total(y):
    return np.sum(np.cos(np.arange(float(y.size))).reshape(y.shape) * y)


def gradient(f, x):
    return jacobian(lambda y: total(f(y)), x)


def along(f, x, t):
    return np.tensordot(jacobian(f, x), t, x.ndim)


# by the names of random_programs.TRANSFORMS; f is `inner`, of two concrete arguments
EXPECTED = {
    "jit": lambda f, x: f(x, x),
    "grad": lambda f, x: gradient(lambda y: f(y, x), x),
    "grad_both": lambda f, x: gradient(lambda y: f(y, y), x),
    "value_and_grad": lambda f, x: total(f(x, x)) + gradient(lambda y: f(y, x), x),
    "jvp": lambda f, x: along(lambda y: f(y, x), x, direction(x)),
    "vjp": lambda f, x: gradient(lambda y: f(y, x), x),
    "linearize": lambda f, x: f(x, x) + along(lambda y: f(y, x), x, direction(x)),
    "linearize_vmap": lambda f, x: np.stack(
        [along(lambda y: f(y, x), x, t) for t in (direction(x), np.sin(x))]
    ),
    "jacfwd": lambda f, x: jacobian(lambda y: f(y, x), x),
    "jacrev": lambda f, x: jacobian(lambda y: f(y, x), x),
    "hessian": lambda f, x: jacobian(lambda y: gradient(lambda z: f(z, x), y), x),
    "vmap": lambda f, x: np.stack([f(y, x) for y in (x, 0.5 * x, -x)]),
    "vmap_both": lambda f, x: np.stack([f(x, -x), f(0.5 * x, x)]),
    "vmap_last": lambda f, x: np.stack([f(y, x) for y in (x, 0.5 * x)], -1),
    "vmap_scale": lambda f, x: np.stack([f(s * x, x) for s in (0.5, -0.7)]),
}


# ---- in the process of a chunk


def values_of_weft(program):
    import weft

    with weft.enable_x64(True):
        x, levels = program.build(weft)
        inner, whole = levels[-1]
        plain, jitted = np.asarray(whole(x)), np.asarray(weft.jit(whole)(x))
        concrete = weft.jit(inner)
        expected = EXPECTED[program.kinds[-1]](
            lambda y, x: np.asarray(concrete(y, x)), np.asarray(x)
        )
    values = {"plain": plain, "jit": jitted, "expected": expected}
    if program.seed % 2 == 0:  # half of them, to save time
        x, levels = program.build(weft)
        values["narrow"] = np.asarray(weft.jit(levels[-1][1])(x))
    return values


def values_of_jax(program):
    import jax

    jax.config.update("jax_enable_x64", True)
    x, levels = program.build(jax)
    return {"jax": np.asarray(jax.jit(levels[-1][1])(x))}


def evaluate(framework, seeds):
    """Per seed what the function above gives, or the text of the exception it ended in."""
    values_of = {"weft": values_of_weft, "jax": values_of_jax}[framework]
    results = {}
    for seed in seeds:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error" if framework == "weft" else "ignore")
                results[seed] = values_of(random_programs.generate(seed))
        except Exception:
            results[seed] = traceback.format_exc(limit=-4)
    return results


def evaluate_apart(framework, start):
    flags = [os.environ.get("XLA_FLAGS", ""), *QUICK_COMPILE]
    done = subprocess.run(
        [sys.executable, __file__, "--pickle", framework, str(start), str(start + CHUNK)],
        capture_output=True,
        env={**os.environ, "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return done.stdout


@pytest.fixture
def values_of_chunk(tmp_path_factory):
    """values_of_chunk(framework, start), computed by whichever worker comes first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def values(framework, start):
        path = folder / f"random-programs-{framework}-{start}"
        if not path.exists():
            mine = path.with_name(f"{path.name}-{os.getpid()}")
            mine.write_bytes(evaluate_apart(framework, start))
            mine.replace(path)
        return pickle.loads(path.read_bytes())

    return values


# ---- comparisons

# how the text of a complaint calls it: (one value, the other, tolerance relative to the largest)
COMPARISONS = {
    "differs from differences or a loop": ("plain", "expected", 1e-6),
    "under jit": ("jit", "plain", 1e-10),
    "in float32": ("narrow", "plain", 1e-3),
    "differs from jax": ("plain", "jax", 1e-9),
}


def complaints(values):
    """What is wrong with the values of one program, as texts."""
    if isinstance(values, str):
        return [values]
    found = []
    if not np.isfinite(values["plain"]).all():
        found.append("not finite: the generator must keep values bounded")
    for text, (a, b, tolerance) in COMPARISONS.items():
        if a not in values or b not in values:
            continue
        x, y = values[a], values[b]
        if x.shape != y.shape:
            found.append(f"{text}: shapes {x.shape} and {y.shape}")
            continue
        error = np.max(np.abs(x - y), initial=0) / (1 + np.max(np.abs(y), initial=0))
        if not error <= tolerance:
            found.append(f"{text}: off by {error:.1e}\n  {a}: {x}\n  {b}: {y}")
    return found


def report(results):
    """Text about every seed whose values are wrong; empty if none is."""
    texts = []
    for seed, values in results.items():
        if found := complaints(values):
            hint = f"alone: python tests/api/transforms/test_random_programs.py {seed}"
            texts.append("\n".join([random_programs.generate(seed).described(), *found, hint]))
    return "\n\n".join(texts)


def both(weft, jax):
    """The values of both frameworks by seed; where one raised, its text."""
    return {
        seed: next((v for v in (weft[seed], jax[seed]) if isinstance(v, str)), None)
        or weft[seed] | jax[seed]
        for seed in jax
    }


@pytest.mark.parametrize("start", CHUNKS)
def test_programs(start, values_of_chunk):
    assert not (text := report(values_of_chunk("weft", start))), text


@pytest.mark.oracle
@needs_jax
@pytest.mark.parametrize("start", CHUNKS)
def test_programs_against_jax(start, values_of_chunk):
    programs = {
        random_programs.generate(seed).described(): seed for seed in range(start, start + CHUNK)
    }

    def ask(missing):
        values = [values_of_chunk("jax", start)[programs[program]] for program in missing]
        return [v if isinstance(v, str) else comparing.described_array(v["jax"]) for v in values]

    kept = kept_answers.answers(inspect.getsource(values_of_jax), list(programs), ask)
    jax = {
        seed: v if isinstance(v, str) else {"jax": np.frombuffer(v[2], v[0]).reshape(v[1])}
        for seed, v in zip(programs.values(), kept, strict=True)
    }
    assert not (text := report(both(values_of_chunk("weft", start), jax))), text


def test_a_wrong_value_is_reported():
    values = {name: np.ones(2) for name in ("plain", "jit", "expected", "narrow", "jax")}
    assert not complaints(values)
    for name, value in (("jit", np.ones(3)), ("expected", np.array([1, np.nan])), ("jax", 1.1)):
        assert len(complaints({**values, name: np.asarray(value)})) == 1
    assert "alone: python" in report({7: "Traceback"}) and "def f0" in report({7: "Traceback"})


def main(args):
    if args[:1] == ["--pickle"]:
        framework, start, stop = args[1], *map(int, args[2:])
        sys.stdout.buffer.write(pickle.dumps(evaluate(framework, range(start, stop))))
        return
    seeds = list(map(int, args))
    values = evaluate("weft", seeds)
    if importlib.util.find_spec("jax"):
        values = both(values, evaluate("jax", seeds))
    print(report(values) or "ok")


if __name__ == "__main__":
    main(sys.argv[1:])
