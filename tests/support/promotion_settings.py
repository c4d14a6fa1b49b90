"""Which calls numpy_rank_promotion="raise" and numpy_dtype_promotion="strict" refuse.

The calls are the expressions of the tables that other tests compare with jax. `python
tests/support/promotion_settings.py --write` (with jax) keeps those that jax refuses in
golden/promotion_settings.json. What weft composes of other functions must not show: a call is
refused for its own arguments only.
"""

import collections
import contextlib
import functools
import importlib
import json
import os
import pathlib
import runpy
import subprocess
import sys
import warnings

import numpy as np
import oracle
import scipy_cases

TESTS = pathlib.Path(__file__).parents[1]
GOLDEN = TESTS / "golden" / "promotion_settings.json"
SETTINGS = {"rank": ("numpy_rank_promotion", "raise"), "dtype": ("numpy_dtype_promotion", "strict")}
# Test modules, and the names of their tables.
TABLES = (
    *("test_numpy_elementwise CASES", "test_numpy_reductions CASES", "test_numpy_shape CASES"),
    *("test_numpy_creation CASES", "test_numpy_products CASES", "test_numpy_sorting_sets CASES"),
    *("test_numpy_calculus CASES", "test_numpy_programs CASES", "test_numpy_more TABLE"),
    *("test_numpy_linalg_fft FFT", "test_numpy_linalg_fft LINALG", "test_indexing READS"),
    *("test_indexing GETS", "test_indexing UPDATES", "test_lax_functions CASES"),
    *("test_nn EXPRESSIONS", "test_nn_attention CASES", "test_windows CASES", "test_ragged CASES"),
    *("test_random DISCRETE", "test_random WIDE", "test_dot_algorithm CASES"),
)


@functools.cache
def _names_in(module):
    (path,) = TESTS.rglob(f"{module}.py")
    return runpy.run_path(str(path))


def tables():
    """Expressions by table, two of each function."""
    found = {}
    for each in TABLES:
        module, name = each.split()
        found[each] = _two_of_each(_names_in(module)[name])
    return found | {each: _two_of_each(scipy_cases.rows(each)) for each in scipy_cases.TABLES}


def _two_of_each(expressions):
    seen = collections.Counter()
    chosen = []
    for expression in expressions:
        function = expression.partition("(")[0]
        seen[function] += 1
        if seen[function] <= 2:
            chosen.append(expression)
    return chosen


def names_of(table, root):
    """The names that the expressions of a table use; `root` is jax or weft."""
    if table in scipy_cases.TABLES:
        return scipy_cases.names_of(table, root)
    names = {"jnp": importlib.import_module(f"{root.__name__}.numpy"), "np": np, "jax": root}
    for name in ("lax", "random", "nn", "image"):
        names[name] = importlib.import_module(f"{root.__name__}.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(oracle.OPERANDS, names)
    return names


def refused(expression, names, root):
    """Which settings let an expression fail that runs without them; None if it does not run."""

    def runs(setting):
        with warnings.catch_warnings(), setting:
            warnings.simplefilter("ignore")
            try:
                eval(expression, dict(names))
            except Exception:
                return False
        return True

    if not runs(contextlib.nullcontext()):
        return None
    return [k for k, (name, value) in SETTINGS.items() if not runs(getattr(root, name)(value))]


def _main():
    """Answers the tables on stdin under jax; writes those that it refuses to stdout."""
    import jax
    import jax.image

    answers = {}
    for table, expressions in json.load(sys.stdin).items():
        names = names_of(table, jax)
        answers[table] = {x: r for x in expressions if (r := refused(x, names, jax)) != []}
    json.dump(answers, sys.stdout)


def _write():
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(tables()).encode(),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0"},
    )
    answers = json.loads(done.stdout)
    GOLDEN.write_text(json.dumps(answers, indent=0, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    _write() if sys.argv[1:] == ["--write"] else _main()
