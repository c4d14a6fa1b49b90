"""Compares expressions under weft and under jax, which runs in a process of its own.

A case is an expression in `jnp`, `lax`, `np`, `random`, `nn`, `image` and the operands below.
Results must agree in structure, shape, dtype, weak type and values; where jax raises, weft must
raise too.
"""

import functools
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import warnings

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

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "complex64": 2e-6}

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax not installed")


def evaluate(expression, names):
    """("ok", tree of leaves) or ("error", text); a leaf is (values, dtype, weak type)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "ok", _described(eval(expression, names))
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _described(x):
    if isinstance(x, (tuple, list)):
        return [_described(each) for each in x]
    if hasattr(x, "weak_type"):
        return np.asarray(x), np.asarray(x).dtype.name, bool(x.weak_type)
    return x if isinstance(x, (bool, int, float, str, np.dtype, type(None))) else repr(x)


def _main():
    """Evaluates the cases on stdin under jax; the results go to stdout, pickled."""
    import jax
    import jax.image
    import jax.numpy as jnp
    from jax import lax

    expressions = json.load(sys.stdin)
    names = {"jnp": jnp, "lax": lax, "np": np, "jax": jax}
    names |= {"random": jax.random, "nn": jax.nn, "image": jax.image}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(OPERANDS, names)
    results = [evaluate(expression, names) for expression in expressions]
    sys.stdout.buffer.write(pickle.dumps(results))


@functools.lru_cache(64)
def _expected(expressions, x64):
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(expressions).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "JAX_ENABLE_X64": str(int(x64)), "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return dict(zip(expressions, pickle.loads(done.stdout), strict=True))


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

    names = {"jnp": jnp, "lax": lax, "np": np, "weft": weft}
    names |= {"random": weft.random, "nn": weft.nn, "image": weft.image}
    own = set(names)
    with warnings.catch_warnings(), weft.enable_x64(x64):
        warnings.simplefilter("ignore")
        exec(OPERANDS, names)
    return names, {name: names[name] for name in set(names) - own - {"__builtins__"}}


def check(expressions, expression, x64=False):
    """Asserts that an expression of a table gives under weft what it gives under jax."""
    import weft

    kind, expected = _expected(expressions, x64)[expression]
    with weft.enable_x64(x64):
        got_kind, got = evaluate(expression, operands(x64)[0])
    if kind == "error":
        assert got_kind == "error", f"expected an error as jax's ({expected}); got {got}"
        assert not got.startswith(("InternalError", "AttributeError", "NameError")), got
    else:
        assert got_kind == "ok", got
        assert_same(got, expected)


def check_staged(expression):
    """Asserts that an expression gives the same under `jit`, or needs values (and says so)."""
    import weft

    names, arrays = operands()
    arrays = {k: v for k, v in arrays.items() if isinstance(v, weft.Array)}
    kind, expected = evaluate(expression, names)
    if kind == "error" or not _only_arrays(expected):
        return

    def staged(arrays):
        return eval(expression, {**names, **arrays})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = _described(weft.jit(staged)(arrays))
        except (weft.errors.ConcretizationTypeError, weft.errors.ArgumentTypeError):
            return
    assert_same(got, expected, rtol=1e-5)


def _only_arrays(described):
    if isinstance(described, list):
        return all(map(_only_arrays, described))
    return isinstance(described, tuple)


def assert_same(got, expected, rtol=None):
    """Compares two results of `evaluate`."""
    if isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected), (got, expected)
        for each, wanted in zip(got, expected, strict=True):
            assert_same(each, wanted, rtol)
    elif isinstance(expected, tuple):
        assert isinstance(got, tuple), (got, expected)
        assert got[1] == expected[1], f"dtype {got[1]}, expected {expected[1]}"
        assert got[0].shape == expected[0].shape, f"{got[0].shape}, expected {expected[0].shape}"
        assert got[2] == expected[2], f"weak type {got[2]}, expected {expected[2]}"
        wide = [_wide(x[0]) for x in (got, expected)]
        if rtol is None:
            rtol = TOLERANCE.get(expected[1], 1e-12)
        np.testing.assert_allclose(*wide, rtol=rtol, atol=rtol)
    else:
        assert got == expected, (got, expected)


def _wide(x):
    """Values in a dtype that NumPy computes with."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


if __name__ == "__main__":
    _main()
