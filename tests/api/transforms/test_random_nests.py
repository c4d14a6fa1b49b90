"""Random programs of regions in regions (random_nests.py) under transforms, against plain NumPy.

Every value, derivative and transpose that the programs have is compared with that of the oracle;
whatever a program ends in that is no documented refusal fails. A chunk of programs runs in a
process of its own, where XLA optimises little.

usage: test_random_nests.py START STOP     compares the programs of these seeds
"""

import os
import subprocess
import sys
import traceback
import warnings

import numpy as np
import pytest
import random_nests
from conftest import EVERYTHING
from program_runs import QUICK_COMPILE
from random_nests import Plain, Weft, leaves

CHUNK = 10
CHUNKS = range(0, 400 if EVERYTHING else 40, CHUNK)
# what a program may end in: (what its text has, words of the error)
REFUSALS = [("custom_vjp", "expected reverse mode for")]


def linear_checks(f, s, k, n):
    """name: function of a framework, each with a tree of arrays; f is linear in s."""
    cts = (np.float64(0.7), np.array([1.3, -0.4]))

    def of_s(k):
        return lambda s: f(s, k, n)

    def transposed(w, k, cts):
        return w.linear_transpose(of_s(k), s)(cts)

    return {
        "value": lambda w: f(s, k, n),
        "jit": lambda w: w.jit(lambda s, k, n: f(s, k, n))(s, k, n),
        "transpose": lambda w: transposed(w, k, cts),
        "jit of transpose": lambda w: w.jit(lambda k, cts: transposed(w, k, cts))(k, cts),
        "transpose of transpose": lambda w: w.linear_transpose(
            lambda *cts: transposed(w, k, cts), *cts
        )((s,)),
        "transpose of checkpoint": lambda w: w.linear_transpose(w.checkpoint(of_s(k)), s)(cts),
        "vmap of transpose": lambda w: w.vmap(lambda k: transposed(w, k, cts), (0,))(
            np.stack([k, -k])
        ),
        "vjp": lambda w: w.vjp(of_s(k), s)[1](cts),
        "vjp of transpose": lambda w: w.vjp(lambda k: transposed(w, k, cts), k)[1]((s,)),
    }


def smooth_checks(f, s, k, n):
    cts = (np.float64(0.7), np.array([1.3, -0.4]))
    t = (np.array([0.6, -1.1]), np.array([-0.3, 0.8]))

    def of_both(s, k):
        return f(s, k, n)

    def pulled(w, s, k):
        return w.vjp(of_both, s, k)[1](cts)

    def scalar(s, k):
        return f(s, k, n)[0]

    return {
        "value": lambda w: f(s, k, n),
        "jit": lambda w: w.jit(lambda s, k, n: f(s, k, n))(s, k, n),
        "grad": lambda w: w.grad(scalar, s, k),
        "vjp": lambda w: pulled(w, s, k),
        "jit of vjp": lambda w: w.jit(lambda s, k: pulled(w, s, k))(s, k),
        "vjp of checkpoint": lambda w: w.vjp(w.checkpoint(of_both), s, k)[1](cts),
        "vmap of vjp": lambda w: w.vmap(lambda s: pulled(w, s, k), (0,))(np.stack([s, -s])),
        "jvp": lambda w: w.jvp(of_both, (s, k), t),
        "linearize": lambda w: w.linearize(of_both, s, k)[1](*t),
        "jvp of jvp": lambda w: w.jvp(lambda s, k: w.jvp(of_both, (s, k), t)[1], (s, k), t[::-1]),
        "jvp of vjp": lambda w: w.jvp(lambda s, k: pulled(w, s, k), (s, k), t),
        "vjp of jvp": lambda w: w.vjp(lambda s, k: w.jvp(of_both, (s, k), t)[1], s, k)[1](cts),
        "vjp of vjp": lambda w: w.vjp(lambda s, k: pulled(w, s, k), s, k)[1](t),
    }


def checks(program, framework):
    f = program.function(framework)
    make = linear_checks if program.is_linear else smooth_checks
    return make(f, *program.arguments())


def is_refusal(program, text):
    return any(made in program.text and words in text for made, words in REFUSALS)


def compared(got, expected):
    """What differs, as text; empty if nothing does."""
    got, expected = leaves(got), leaves(expected)
    if len(got) != len(expected):
        return f"{len(got)} results instead of {len(expected)}"
    for x, y in zip(map(np.asarray, got), map(np.asarray, expected), strict=True):
        scale = 1 + np.max(np.abs(y), initial=0)
        if x.shape != y.shape or not np.all(np.abs(x - y) <= 1e-9 * scale):
            return f"{x} instead of {y}"
    return ""


def complaints(program):
    import weft

    expected, found = checks(program, Plain()), []
    wanted = list(expected)
    if not EVERYTHING:  # every third, to save time
        wanted = wanted[program.seed // 2 % 3 :: 3]
    for name in wanted:
        check = checks(program, Weft(weft))[name]
        try:
            got = check(Weft(weft))
        except Exception:
            text = traceback.format_exc()
            if not is_refusal(program, text):
                found.append(f"{name}:\n{text}")
            continue
        if wrong := compared(got, expected[name](Plain())):
            found.append(f"{name}: {wrong}")
    return found


def report(start, stop):
    import weft

    texts = []
    weft.config.update("jax_enable_x64", True)
    warnings.simplefilter("error")
    for seed in range(start, stop):
        program = random_nests.generate(seed)
        if found := complaints(program):
            texts.append("\n".join([f"# seed {seed}", program.text, *found]))
    return "\n\n".join(texts)


@pytest.mark.parametrize("start", CHUNKS)
def test_nests(start):
    flags = [os.environ.get("XLA_FLAGS", ""), *QUICK_COMPILE]
    done = subprocess.run(
        [sys.executable, __file__, str(start), str(start + CHUNK)],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]


def test_the_oracle_knows_derivatives():
    """Of one program by central differences."""
    f = lambda w: lambda x: w.sin(x) * w.tanh(w.square(x)) / (2.0 + w.cos(x))
    x, h = np.array([0.3, -0.8]), 1e-5
    slope = Plain.jvp(f(Plain), (x,), (np.ones(2),))[1]
    np.testing.assert_allclose(slope, (f(Plain)(x + h) - f(Plain)(x - h)) / (2 * h), rtol=1e-8)
    assert compared((slope,), (slope + 1e-3,)) and compared((slope,), (slope, slope))


if __name__ == "__main__":
    if text := report(*map(int, sys.argv[1:])):
        print(text)
        sys.exit(1)
    print("ok")
