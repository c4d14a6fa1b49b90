"""Random programs of shard_map beside the plain programs that they stand for.

A program is a list of steps. Each has two forms: on the part of a device, given over which axes of
the mesh each dimension is split, and on the whole array.
"""

import functools
import math

import numpy as np

import weft
from weft import lax, numpy as wnp
from weft.sharding import PartitionSpec as P

MESHES = [((8,), ("x",)), ((4, 2), ("x", "y")), ((2, 4), ("x", "y")), ((2, 2, 2), ("x", "y", "z"))]


class Program:
    """Random steps for an array of the attribute `shape`, split as `start` says; `end` is how the
    result is. The attributes `parts` and `whole` are functions of (w, x)."""

    def __init__(self, rng):
        sizes, self.names = MESHES[rng.integers(len(MESHES))]
        self.sizes = dict(zip(self.names, sizes, strict=True))
        self.mesh = weft.make_mesh(sizes, self.names)
        self.checked = bool(rng.integers(2))
        self.rng = rng
        self.split = [[] for _ in range(rng.integers(2, 4))]
        for name in rng.permutation(self.names):
            if rng.integers(4):
                self.split[rng.integers(len(self.split))].append(str(name))
        # Whatever is split, joined or exchanged later, sizes divide.
        self.shape = tuple(8 for _ in self.split)
        self.start = self.spec()
        self.steps = []
        while len(self.steps) < 5:
            kind = rng.choice([n for n in dir(self) if n.startswith("step_")])
            made = getattr(self, kind)()
            self.steps += [made] if made else []
        self.end = self.spec()

    def spec(self):
        return P(*map(tuple, self.split))

    def parts(self, w, x):
        return functools.reduce(lambda a, step: step[0](w, a), self.steps, x)

    def whole(self, w, x):
        return functools.reduce(lambda a, step: step[1](w, a), self.steps, x)

    def mapped(self):
        return weft.shard_map(
            self.parts,
            mesh=self.mesh,
            in_specs=(P(), self.start),
            out_specs=self.end,
            check_vma=self.checked,
        )

    # ---- What there is to choose from

    def dimension(self, where):
        found = [d for d, axes in enumerate(self.split) if where(axes)]
        return int(self.rng.choice(found)) if found else None

    def size_of(self, axes):
        return math.prod(self.sizes[a] for a in axes)

    def room(self, d):
        """The number of elements that a device has along a dimension."""
        return 8 // self.size_of(self.split[d])

    # ---- Steps: (on parts, on the whole); None where one does not apply

    def step_sin(self):
        return (lambda w, a: wnp.sin(w * a),) * 2

    def step_loop(self):
        def f(w, a):
            return lax.scan(lambda c, _: (wnp.cos(c) * w + c, None), a * w, None, length=2)[0]

        return f, f

    def step_checkpoint(self):
        f = weft.checkpoint(lambda w, a: wnp.tanh(a + w))
        return f, f

    def step_sum(self):
        if len(self.split) < 2:
            return None
        d = int(self.rng.integers(len(self.split)))
        axes = tuple(self.split.pop(d))
        return (
            lambda w, a: lax.psum(a.mean(d), axes) / self.size_of(axes),
            lambda w, a: a.mean(d),
        )

    def step_scatter(self):
        if len(self.split) < 2:
            return None
        d = self.dimension(lambda axes: len(axes) == 1)
        if d is None:
            return None
        (axis,) = self.split[d]
        e = int(self.rng.choice([i for i in range(len(self.split)) if i != d]))
        if self.room(e) % self.sizes[axis]:
            return None
        self.split[e].append(axis)
        self.split.pop(d)
        at, n = e - (e > d), self.sizes[axis]
        return (
            lambda w, a: lax.psum_scatter(a.mean(d), axis, scatter_dimension=at, tiled=True) / n,
            lambda w, a: a.mean(d),
        )

    def step_gather(self):
        d = self.dimension(bool)
        if d is None:
            return None
        axis, to = self.split[d].pop(), "invarying" if self.checked else "varying"
        return lambda w, a: lax.all_gather(a, axis, axis=d, tiled=True, to=to), lambda w, a: a

    def step_split(self):
        used = {axis for axes in self.split for axis in axes}
        free = [axis for axis in self.names if axis not in used]
        d = int(self.rng.integers(len(self.split)))
        if not free or self.room(d) % self.sizes[free[0]]:
            return None
        axis, size = free[0], self.room(d) // self.sizes[free[0]]
        self.split[d].append(axis)
        return (
            lambda w, a: lax.dynamic_slice_in_dim(a, lax.axis_index(axis) * size, size, d),
            lambda w, a: a,
        )

    def step_exchange(self):
        d = self.dimension(bool)
        if d is None or len(self.split) < 2:
            return None
        e = int(self.rng.choice([i for i in range(len(self.split)) if i != d]))
        axis = self.split[d][-1]
        if self.room(e) % self.sizes[axis]:
            return None
        self.split[e].append(self.split[d].pop())
        return lambda w, a: lax.all_to_all(a, axis, e, d, tiled=True), lambda w, a: a

    def step_shift(self):
        d = self.dimension(lambda axes: len(axes) == 1)
        if d is None:
            return None
        (axis,) = self.split[d]
        n = self.sizes[axis]
        ring = [(i, (i + 1) % n) for i in range(n)]
        return (
            lambda w, a: lax.ppermute(a, axis, ring),
            lambda w, a: wnp.roll(a, 8 // n, d),
        )

    def step_number(self):
        d = self.dimension(lambda axes: len(axes) == 1)
        if d is None:
            return None
        (axis,) = self.split[d]
        n = self.sizes[axis]

        def whole(w, a):
            numbers = np.repeat(np.arange(1, n + 1), 8 // n) / n
            shape = [1] * a.ndim
            shape[d] = 8
            return a * numbers.reshape(shape).astype(np.float32)

        return lambda w, a: a * ((lax.axis_index(axis) + 1) / np.float32(n)), whole


def mismatch(seed):
    """What differs between a random program of parts and that of whole arrays, value or gradient;
    None if nothing does."""
    rng = np.random.default_rng(seed)
    program = Program(rng)
    w = np.float32(rng.uniform(0.5, 1.5))
    x = rng.normal(size=program.shape).astype(np.float32)

    def loss(f, w, x):
        y = f(w, x)
        return (wnp.sin(y) * y).sum(), y

    def both(f):
        return weft.jit(weft.value_and_grad(functools.partial(loss, f), (0, 1), has_aux=True))

    got = weft.tree_util.tree_leaves(both(program.mapped())(w, x))
    want = weft.tree_util.tree_leaves(both(program.whole)(w, x))
    for what, a, b in zip(("loss", "value", "by w", "by x"), got, want, strict=True):
        if not np.allclose(a, b, rtol=2e-3, atol=2e-4):
            return f"{what} of program {seed}: {np.asarray(a)} instead of {np.asarray(b)}"
    return None
