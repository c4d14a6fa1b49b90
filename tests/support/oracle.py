"""Compares expressions under weft and under jax, which runs in a process of its own.

jax is asked only what `kept_answers.py` does not know.

A case is an expression in `jnp`, `lax`, `np`, `random`, `nn`, `image`, `sparse` and the operands
below.
Results must agree in structure, shape, dtype, weak type and values; where jax raises, weft must
raise too.
"""

import functools
import importlib.metadata
import importlib.util
import inspect
import json
import os
import pickle
import subprocess
import sys
import warnings

import comparing
import kept_answers
import numpy as np
import pytest

# Operands of all tables: float, int, bool, small ints, half, complex, three axes; w, wi and wv are
# weakly typed; matrices that are Hermitian (m, mi, mc), general (g), both (mg);
# n has NaN and zeros of both signs, t has numbers that occur twice.
OPERANDS = """
x = jnp.arange(6.0).reshape(2, 3)
k = jnp.arange(6).reshape(2, 3)
b = jnp.array([True, False])
i8 = jnp.arange(3, dtype="int8")
u8 = i8.astype("uint8")
h = x.astype("float16")
c = x.astype("complex64")
u = jnp.arange(24.0).reshape(2, 3, 4)[:, :, :3]
w = jnp.asarray(2.0)
wi = jnp.asarray(3)
wv = jnp.full((2, 3), 1.5)
m = jnp.array([[4.0, 1.0, -2.0], [1.0, 2.0, 0.5], [-2.0, 0.5, 3.0]])
g = jnp.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [2.0, 0.0, 1.0]])
mi = jnp.array([[2, 1], [1, 3]])
mc = m + 1j * jnp.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 0.5], [-2.0, -0.5, 0.0]])
mg = jnp.stack([m, g])
n = jnp.array([3.0, jnp.nan, 1.0, jnp.inf, -0.0, 0.0, jnp.nan, -2.0])
t = jnp.array([3, 1, 2, 3, 1])
"""

# What later versions of jax than 0.10, which weft follows, do otherwise.
CHANGED_LATER = {"meshgrid", "cross", "broadcast_arrays", "atleast_1d", "atleast_2d", "atleast_3d"}
CHANGED_LATER |= {"hypot", "get_scaled_dot_general_config"}

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax not installed")


def is_later_jax():
    """Whether the jax that answers is of a later version than weft follows."""
    return not importlib.metadata.version("jax").startswith("0.10.")


def _outcome(expression, names):
    return comparing.outcome(lambda: eval(expression, names))


def _allowed(dtype, expected):
    return (comparing.TOLERANCE.get(dtype, 1e-12),) * 2


def _main():
    """Evaluates the cases on stdin under jax; the results go to stdout, pickled."""
    import jax
    import jax.image
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import sparse

    expressions = json.load(sys.stdin)
    names = {"jnp": jnp, "lax": lax, "np": np, "jax": jax}
    names |= {"random": jax.random, "nn": jax.nn, "image": jax.image, "sparse": sparse}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(OPERANDS, names)
    results = [_outcome(expression, names) for expression in expressions]
    sys.stdout.buffer.write(pickle.dumps(results))


def _ask(expressions, x64):
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(expressions).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "JAX_ENABLE_X64": str(int(x64)), "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return pickle.loads(done.stdout)


@functools.lru_cache(64)
def _expected(expressions, x64):
    how = f"{x64}\n{OPERANDS}\n{inspect.getsource(comparing.describe)}"
    given = kept_answers.answers(how, expressions, functools.partial(_ask, x64=x64))
    return dict(zip(expressions, given, strict=True))


def lines(text):
    """The expressions of a table: its lines, without empty ones and comments."""
    stripped = (line.strip() for line in text.splitlines())
    return tuple(line for line in stripped if line and not line.startswith("#"))


def sampled(rows, step=4):
    """Every `step`-th expression of each function of a table; all of them with WEFT_TESTS=all."""
    if os.environ.get("WEFT_TESTS") == "all":
        return rows
    seen = {}
    chosen = []
    for row in rows:
        name = row.partition("(")[0]
        seen[name] = seen.get(name, -1) + 1
        if seen[name] % step == 0:
            chosen.append(row)
    return tuple(chosen)


@functools.lru_cache(64)
def operands(x64=False):
    """The names that an expression may use, and the operands among them, under weft."""
    import weft
    from weft import lax, numpy as jnp
    from weft.experimental import sparse

    names = {"jnp": jnp, "lax": lax, "np": np, "weft": weft}
    names |= {"random": weft.random, "nn": weft.nn, "image": weft.image, "sparse": sparse}
    own = set(names)
    with warnings.catch_warnings(), weft.enable_x64(x64):
        warnings.simplefilter("ignore")
        exec(OPERANDS, names)
    return names, {name: names[name] for name in set(names) - own - {"__builtins__"}}


def check(expressions, expression, x64=False):
    """Asserts that an expression of a table gives under weft what it gives under jax."""
    import weft

    if is_later_jax() and expression.partition("(")[0].partition(".")[2] in CHANGED_LATER:
        pytest.skip("changed in later versions of jax")
    expected = _expected(expressions, x64)[expression]
    with weft.enable_x64(x64):
        got = _outcome(expression, operands(x64)[0])
    found = comparing.difference(got, expected, _allowed)
    assert not found, found


def check_staged(expression):
    """Asserts that an expression gives the same under `jit`, or needs values (and says so)."""
    import weft

    names, arrays = operands()
    arrays = {k: v for k, v in arrays.items() if isinstance(v, weft.Array)}
    expected = _outcome(expression, names)
    if expected[0] == "error" or not comparing.holds_only_arrays(expected[1]):
        return

    def staged(arrays):
        return eval(expression, {**names, **arrays})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = "ok", comparing.describe(weft.jit(staged)(arrays))
        except (weft.errors.ConcretizationTypeError, weft.errors.ArgumentTypeError):
            return
    found = comparing.difference(got, expected, lambda dtype, expected: (1e-5, 1e-5))
    assert not found, found


if __name__ == "__main__":
    _main()
