"""Random index expressions (random_indices.py): reads and updates as NumPy's.

A chunk is a few expressions on an array, and compiled as one program: reads, updates, both out of
bounds in every mode, gradients, and both under vmap over array and indices.

usage: test_random_indices.py FIRST LAST       runs the chunks of these seeds
"""

import sys

import numpy as np
import pytest
from random_indices import beyond, is_traced, random_index, random_shape, split, with_edge

import weft
from weft.errors import WeftError

EACH = 12  # expressions of a chunk
UPDATES = {
    "set": lambda old, new: new,
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def updated(kind, x, index, values):
    """One update after the other."""
    places = np.arange(x.size).reshape(x.shape)[index]
    flat = x.reshape(-1).copy()
    for place, value in zip(places.flat, np.broadcast_to(values, places.shape).flat, strict=True):
        flat[place] = UPDATES[kind](flat[place], value)
    return flat.reshape(x.shape)


class Chunk:
    """Calls to be compiled together, with what they should give."""

    def __init__(self):
        self.calls, self.args, self.wanted, self.about = [], [], [], []

    def add(self, about, call, args, want):
        self.calls.append(call)
        self.args.append(args)
        self.wanted.append(want)
        self.about.append(about)

    def check(self):
        calls = self.calls
        got = weft.jit(lambda args: [f(*a) for f, a in zip(calls, args, strict=True)])(self.args)
        for y, want, about in zip(got, self.wanted, self.about, strict=True):
            y = np.asarray(y)
            assert y.shape == want.shape, about
            np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6, err_msg=str(about))


def values_for(rng, x, index, kind):
    """Values to update with; the same ones for elements that are set twice."""
    shape = x[index].shape
    counts = updated("add", np.zeros(x.shape), index, 1)
    if kind == "set" and counts.max(initial=0) > 1:
        return np.float32(rng.normal())
    if shape and not rng.integers(0, 3):
        shape = shape[1:]
    return rng.normal(size=shape).astype(np.float32)


def add_expression(chunk, rng, x, index):
    arrays, put = split(index)
    kind = rng.choice(list(UPDATES))
    values = values_for(rng, x, index, kind)
    about = (x.shape, index)

    def update(x, values, arrays):
        return getattr(x.at[put(arrays)], kind)(values)

    chunk.add(about, lambda x, arrays: x[put(arrays)], (x, arrays), x[index])
    chunk.add((*about, kind), update, (x, values, arrays), updated(kind, x, index, values))

    weight = rng.normal(size=x[index].shape).astype(np.float32)
    slope = weft.grad(lambda x, arrays: (weight * x[put(arrays)]).sum())
    want = updated("add", np.zeros_like(x), index, weight)
    chunk.add((*about, "grad"), slope, (x, arrays), want)
    add_lanes(chunk, rng, x, index, update, kind, values)
    if isinstance(index, tuple) and any(is_traced(i) and i.ndim for i in index) and x.size:
        add_beyond(chunk, rng, x, index, kind)


def add_lanes(chunk, rng, x, index, update, kind, values):
    """The update under vmap over the array, the indices or both; the gradient of a read too."""
    arrays, put = split(index)
    axis = int(rng.integers(0, x.ndim + 1))
    xs = [x, x[::-1].copy(), -x]
    lanes = [arrays, [np.zeros_like(a) for a in arrays], arrays]
    over_x, over_arrays = [(True, False), (False, True), (True, True)][rng.integers(0, 3)]
    over_x |= not arrays
    over_arrays &= bool(arrays)
    each_x = xs if over_x else [x] * 3
    each_index = [put(a) for a in lanes] if over_arrays else [index] * 3
    if kind == "set":  # elements may be set twice in a lane
        values = np.float32(1.5)
    args = (
        np.stack(xs, axis) if over_x else x,
        values,
        [np.stack(a) for a in zip(*lanes, strict=True)] if over_arrays else arrays,
    )
    axes = (axis if over_x else None, None, 0 if over_arrays else None)
    pairs = list(zip(each_x, each_index, strict=True))
    want = np.stack([updated(kind, a, i, values) for a, i in pairs])
    chunk.add((x.shape, index, kind, "vmap", axes), weft.vmap(update, in_axes=axes), args, want)

    def slope(x, _, arrays):
        return weft.grad(lambda x: (x[put(arrays)] ** 2).sum())(x)

    want = np.stack([updated("add", np.zeros_like(a), i, 2 * a[i]) for a, i in pairs])
    chunk.add((x.shape, index, "vmap grad", axes), weft.vmap(slope, in_axes=axes), args, want)


def add_beyond(chunk, rng, x, index, kind):
    """Reads and an update with positions out of bounds, which NumPy does not take."""
    far = beyond(rng, index, x.shape)
    arrays, put = split(far)
    edge = with_edge(far, x.shape)
    padded = np.pad(x, [(0, 1)] * x.ndim, constant_values=np.nan)
    clipped = np.pad(x, [(0, 1)] * x.ndim, mode="edge")
    about = (x.shape, far)

    def get(mode):
        return lambda x, arrays: x.at[put(arrays)].get(mode=mode)

    chunk.add((*about, "fill"), get("fill"), (x, arrays), padded[edge])
    chunk.add((*about, "clip"), get("clip"), (x, arrays), clipped[edge])
    values = values_for(rng, padded, edge, kind)
    padded[np.isnan(padded)] = 0
    want = updated(kind, padded, edge, values)[tuple(slice(n) for n in x.shape)]

    def update(x, arrays):
        return getattr(x.at[put(arrays)], kind)(values)

    chunk.add((*about, kind, "drop"), update, (x, arrays), want)


def run(seed):
    rng = np.random.default_rng(seed)
    chunk = Chunk()
    shape = random_shape(rng)
    x = rng.normal(size=shape).astype(np.float32)
    for _ in range(EACH):
        index = random_index(rng, shape)
        try:
            x[index]
        except IndexError:
            with pytest.raises(WeftError):
                weft.numpy.asarray(x)[index]
            continue
        add_expression(chunk, rng, x, index)
    chunk.check()


@pytest.mark.parametrize("seed", range(12))
def test_random_indices_as_numpy(seed):
    run(seed)


if __name__ == "__main__":
    for seed in range(*map(int, sys.argv[1:])):
        try:
            run(seed)
        except Exception as error:
            sys.stdout.write(f"{seed}: {type(error).__name__}: {str(error)[:1500]}\n")
