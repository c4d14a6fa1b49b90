"""Runs short programs under weft and under jax, and compares what they call `result`.

A program is source text in which `fw` is the framework, `np` its numpy module and `lax` its lax
module. All programs of a file run in one jax process.
"""

import functools
import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np


def run(source, fw, np_module, lax):
    """("ok", leaves) or ("error", class name and message)."""
    names = {"fw": fw, "np": np_module, "lax": lax, "onp": np}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(source, names)
        leaves, tree = fw.tree_util.tree_flatten(names["result"])
        # A rule that computes with Python numbers may give such a number: jax passes them through.
        return "ok", ([np.asarray(np_module.asarray(x)) for x in leaves], str(tree))
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _main():
    import jax
    import jax.numpy as jnp

    results = [run(source, jax, jnp, jax.lax) for source in json.load(sys.stdin)]
    sys.stdout.buffer.write(pickle.dumps(results))


@functools.lru_cache(16)
def jax_results(sources):
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(sources).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0"},
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return pickle.loads(done.stdout)


def check(programs, name, rtol=2e-5):
    """Asserts that program `name` of a dict of sources gives what it gives under jax."""
    import weft

    names = tuple(programs)
    kind, expected = jax_results(tuple(programs.values()))[names.index(name)]
    assert kind == "ok", f"jax failed: {expected}"
    got_kind, got = run(programs[name], weft, weft.numpy, weft.lax)
    assert got_kind == "ok", got
    assert got[1] == expected[1]
    for x, y in zip(got[0], expected[0], strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape, (x, y)
        if x.dtype.kind != "V":
            np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)


if __name__ == "__main__":
    _main()
