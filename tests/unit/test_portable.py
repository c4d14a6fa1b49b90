"""Graphs in other processes: hashes of contents, which graphs may leave, dense constants."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import compiler, lax
from weft.extend.core import Primitive

X = np.arange(6, dtype=np.float32).reshape(2, 3)

# Prints the hashes of programs that hold strings, policies, functions and arrays of Python.
HASHES = """
import numpy as np
import weft, weft.numpy as wnp
from weft import lax
from weft.extend.core import Primitive

tagged = Primitive("tagged")
tagged.def_abstract_eval(lambda x, **params: x)
x = np.ones((2, 3), np.float32)
held = weft.device_put(x)

@weft.custom_jvp
def f(x):
    return x * held
f.defjvp(lambda xs, ts: (f(*xs), ts[0] * held))

policy = weft.checkpoint_policies.save_only_these_names("a", "b")
programs = [
    lambda x: wnp.sin(x) + 1,
    lambda x: tagged.bind(x, name="text", number=3, pair=(1.5, None, b"bytes", "é")),
    lambda x: tagged.bind(x, function=len, other=frozenset(["a"]), real=float("nan")),
    weft.checkpoint(lambda x: wnp.sin(x), policy=policy),
    weft.checkpoint(lambda x: wnp.sin(x), policy=lambda *_, **__: True),
    lambda x: f(x),
    lambda x: weft.pure_callback(np.sin, weft.ShapeDtypeStruct((2, 3), np.float32), x),
    lambda x: lax.scan(lambda c, row: (c + row.sum(), c), 0.0, x),
    weft.grad(lambda x: lax.cond(x.sum() > 0, wnp.sin, wnp.cos, x).sum()),
]
for program in programs:
    print(weft.jit(program).trace(x).graph.structural_hash)
"""


def hashes(seed: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", HASHES],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_hashes_are_the_same_in_every_process():
    first = hashes("1")
    assert len(first) == 9
    assert first == hashes("2")
    assert len(set(first)) == len(first)


def graph_of(fn, *xs):
    return weft.jit(fn).trace(*xs).graph


def test_what_is_portable():
    def loss(x):
        return lax.cond(x.sum() > 0, wnp.sin, wnp.cos, x).sum()

    own = Primitive("own_op_of_this_process")
    own.def_abstract_eval(lambda x: x)
    custom = weft.custom_vjp(lambda x: x)
    custom.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    nested = weft.jit(lambda x: own.bind(x))
    assert graph_of(weft.grad(loss), X).is_portable
    assert not graph_of(own.bind, X).is_portable
    assert not graph_of(lambda x: nested(x), X).is_portable
    assert not graph_of(custom, X).is_portable
    assert not graph_of(lambda x: weft.debug.callback(print, x), X).is_portable
    # What compiles is without derivative rules.
    assert compiler.optimize(graph_of(custom, X)).is_portable
    kept = weft.checkpoint(wnp.sin, policy=lambda *_, **__: True)
    assert not graph_of(kept, X).is_portable
    assert compiler.optimize(graph_of(kept, X)).is_portable


DTYPES = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)], ids=str)
def test_dense_constants_run(dtype, shape):
    values = (np.arange(int(np.prod(shape))) % 5).astype(dtype).reshape(shape)
    with weft.enable_x64(True):
        kind = re.search(r"a:(\w+\[.*?\])", str(graph_of(lambda x: x, values))).group(1)
        value = f"{kind}:0x{values.tobytes().hex().upper()}"
        text = f"{{ lambda ; . let a:{kind} = constant[value={value}] in (a,) }}"
        graph = compiler.parse(text)
        assert graph.is_portable
        assert compiler.parse(str(graph)) == graph
        (got,) = graph()
        np.testing.assert_array_equal(got, values)
        assert got.dtype == values.dtype
