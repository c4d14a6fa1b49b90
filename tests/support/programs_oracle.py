"""Runs short programs under weft and under jax, and compares what they call `result`.

A program is source text in which `fw` is the framework, `np` its numpy module and `lax` its lax
module. All programs of a file that `kept_answers.py` does not know run in one jax process.
"""

import functools
import inspect
import json
import os
import pickle
import subprocess
import sys

import comparing
import kept_answers
import numpy as np


def run(source, fw, np_module, lax):
    """The outcome (`comparing.py`): leaves and structure of `result`."""
    names = {"fw": fw, "np": np_module, "lax": lax, "onp": np}

    def result():
        exec(source, names)
        leaves, tree = fw.tree_util.tree_flatten(names["result"])
        # A rule that computes with Python numbers may give such a number: jax passes them through.
        return [np.asarray(np_module.asarray(x)) for x in leaves], str(tree)

    return comparing.outcome(result)


def _main():
    import jax
    import jax.numpy as jnp

    results = [run(source, jax, jnp, jax.lax) for source in json.load(sys.stdin)]
    sys.stdout.buffer.write(pickle.dumps(results))


def _ask(sources):
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(sources).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0"},
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return pickle.loads(done.stdout)


@functools.lru_cache(16)
def _expected(sources):
    how = inspect.getsource(run) + inspect.getsource(comparing.describe)
    return kept_answers.answers(how, sources, _ask)


def check(programs, name, rtol=2e-5):
    """Asserts that program `name` of a dict of sources gives what it gives under jax."""
    import weft

    expected = _expected(tuple(programs.values()))[list(programs).index(name)]
    assert expected[0] == "ok", f"jax failed: {comparing.short(expected)}"
    got = run(programs[name], weft, weft.numpy, weft.lax)
    found = comparing.difference(got, expected, lambda dtype, wanted: (rtol, 1e-6))
    assert not found, found


if __name__ == "__main__":
    _main()
