"""Programs of jax as the bytes that jax.export writes.

`python tests/support/exported_by_jax.py` exports those of `read_programs.py` that have gradients,
with jax and the package flatbuffers, and keeps their bytes in golden/exported_by_jax.xz. Every
other one has its derivative in them. Arguments, results and gradients are those that
`read_programs.py` keeps.
"""

import json
import lzma
from pathlib import Path

import numpy as np
from read_programs import is_float, kept_programs, programs, weights

FILE = Path(__file__).parents[1] / "golden" / "exported_by_jax.xz"
NUMBER = 24


def names():
    return [name for name, kept in kept_programs().items() if kept["grads"]][:NUMBER]


def loss_of(call, args, results, library):
    """The sum of float results, weighted, as a function of the float32 arguments; and which these
    are."""
    numpy, leaves = library.numpy, library.tree_util.tree_leaves
    floats = [i for i, x in enumerate(args) if np.asarray(x).dtype == np.float32]

    def loss(*xs):
        given = list(args)
        for i, x in zip(floats, xs, strict=True):
            given[i] = x
        pairs = zip(leaves(call(*given)), weights(results), strict=True)
        return sum((numpy.sum(y * c) for y, c in pairs if is_float(c)), np.float32(0))

    return loss, floats


def kept_bytes():
    stored = json.loads(lzma.decompress(FILE.read_bytes()))
    return {name: bytes.fromhex(data) for name, data in stored.items()}


def keep(jax, export):
    found, kept = programs(jax), {}
    for i, name in enumerate(names()):
        fn, args = found[name]
        exported = export.export(jax.jit(fn), platforms=["cpu", "cuda"][: 1 + i % 3 // 2])(*args)
        kept[name] = bytes(exported.serialize(vjp_order=i % 2)).hex()
    FILE.write_bytes(lzma.compress(json.dumps(kept).encode(), preset=9))


if __name__ == "__main__":
    import jax
    from jax import export

    keep(jax, export)
