"""Random programs of explicit mode and shard_map with sums that are not made yet and with functions
on the host, beside the same programs on one device.

`python sums_random.py FIRST COUNT` runs those of these seeds in a process of eight CPU devices.
None may end the process, give other values, call a function another number of times, or raise an
error that is not weft's own.
"""

import functools
import sys

import numpy as np

import weft
import weft.numpy as wnp
from weft import lax
from weft.errors import NotImplementedRuleError, ShardingError, ShardingTypeError
from weft.experimental import io_callback
from weft.sharding import AxisType, PartitionSpec as P

SIZES = [((8,), "x"), ((4, 2), "xy"), ((2, 4), "xy"), ((2, 2, 2), "xyz")]
TYPE = weft.ShapeDtypeStruct((8, 8), np.float32)


class Program:
    """Steps on an array of (8, 8); each has a form for a mesh and one for a single device."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        sizes, names = SIZES[self.rng.integers(len(SIZES))]
        self.names = tuple(names)
        self.mesh = weft.make_mesh(sizes, self.names, axis_types=(AxisType.Explicit,) * len(names))
        self.calls, self.wanted = [], 0  # of functions on the host
        self.start = self.spec()
        self.plain = True  # the value is no sum that is yet to be made
        self.steps, self.kinds = [], []
        names = sorted(n for n in dir(self) if n.startswith("step_"))
        for _ in range(self.rng.integers(2, 5)):
            kind = names[self.rng.integers(len(names))]
            self.kinds.append(kind)
            self.steps.append(getattr(self, kind)())
        self.is_jitted = bool(self.rng.integers(4))

    def flip(self):
        return bool(self.rng.integers(2))

    def spec(self, rank=2, sums=0.0):
        """Axes are for a dimension, for sums with this probability, or for neither."""
        dims, unreduced = [[] for _ in range(rank)], set()
        for name in self.rng.permutation(self.names):
            if self.rng.random() < sums:
                unreduced.add(str(name))
            elif self.rng.random() < 0.7:
                dims[self.rng.integers(rank)].append(str(name))
        self.plain = not unreduced
        return P(*(tuple(d) or None for d in dims), unreduced=unreduced)

    def on_mesh(self, x):
        return functools.reduce(lambda x, step: step[0](x), self.steps, x)

    def alone(self, x):
        return functools.reduce(lambda x, step: step[1](x), self.steps, x)

    def note(self, *xs):
        self.calls.append([x.shape for x in xs])

    def twice(self, x):
        self.note(x)
        return np.asarray(x) * 2

    # ---- Sums that are yet to be made

    def step_reshard(self):
        spec = self.spec(sums=0.5)
        return lambda x: weft.reshard(x, spec), lambda x: x

    step_reshard_again = step_reshard

    def step_product(self):
        first, spec = self.spec(), self.spec(sums=0.5)
        return (
            lambda x: wnp.dot(weft.reshard(x, first), weft.reshard(x, first).T, out_sharding=spec),
            lambda x: x @ x.T,
        )

    def step_product_of_sums(self):
        first, spec = self.spec(sums=0.3), self.spec(sums=0.4)
        w = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8)
        return (
            lambda x: wnp.dot(weft.reshard(x, first), w, out_sharding=spec),
            lambda x: x @ w,
        )

    def step_sum(self):
        axis, first, spec = int(self.rng.integers(2)), self.spec(sums=0.3), self.spec(1, 0.4)
        last = self.spec(sums=0.3)

        def on_mesh(x):
            made = lax.reduce_sum(weft.reshard(x, first), (axis,), out_sharding=spec)
            return wnp.broadcast_to(made / 8 if not spec.unreduced else made, (8, 8),
                                    out_sharding=last)  # fmt: skip

        return on_mesh, lambda x: wnp.broadcast_to(
            x.sum(axis) / 8 if not spec.unreduced else x.sum(axis), (8, 8)
        )

    def step_linear(self):
        f = [
            lambda x: x + x,
            lambda x: x.T,
            lambda x: -x,
            lambda x: wnp.concatenate([x, x])[4:12],
            lambda x: x.astype("float16").astype("float32"),
            lambda x: x[::-1],
        ][self.rng.integers(6)]
        return f, f

    def step_nested(self):
        spec = self.spec(sums=0.5)
        f = weft.jit(lambda x: weft.reshard(x + x, spec))
        return f, lambda x: x + x

    def step_gradient(self):
        spec = self.spec(sums=0.4)
        self.plain = True
        f = weft.grad(lambda x: (weft.reshard(weft.reshard(x, spec), P()) ** 2).sum())
        return lambda x: f(weft.reshard(x, P())), lambda x: 2 * x

    def axis(self):
        return self.names[self.rng.integers(len(self.names))]

    def step_summands(self):
        """Each device makes a summand, of which a second shard_map makes sums, or more summands."""
        a, which = self.axis(), self.rng.integers(3)
        summands = weft.shard_map(
            lambda p: p @ p.T / 8, in_specs=P(None, a), out_specs=P(unreduced={a})
        )
        then, out = [
            (lambda s: lax.psum(s, a), P()),
            (lambda s: lax.psum_scatter(s, a, scatter_dimension=1, tiled=True), P(None, a)),
            (lambda s: s[::-1].T, P(unreduced={a})),
        ][which]
        made = weft.shard_map(then, in_specs=P(unreduced={a}), out_specs=out)
        self.plain = which < 2
        product = lambda x: x @ x.T / 8
        return (
            lambda x: made(summands(weft.reshard(x, P(None, a)))),
            product if self.plain else lambda x: product(x)[::-1].T,
        )

    def gathered(self):
        a = self.axis()
        gather = weft.shard_map(
            lambda p: lax.all_gather(p, a, tiled=True, to="reduced"),
            in_specs=P(a),
            out_specs=P(reduced={a}),
        )
        return lambda x: gather(weft.reshard(x, P(a)))

    def step_gathered(self):
        gather, spec = self.gathered(), self.spec(sums=0.3)
        return lambda x: weft.reshard(gather(x) * 2, spec), lambda x: x * 2

    def step_gradient_of_gathered(self):
        gather, first, self.plain = self.gathered(), self.spec(), True
        f = weft.grad(lambda x, y: (wnp.dot(weft.reshard(y, first), gather(x),
                                            out_sharding=P()) ** 2).sum() / 64)  # fmt: skip
        plain = weft.grad(lambda x, y: ((y @ x) ** 2).sum() / 64)
        whole = lambda x: weft.reshard(x, P())
        return lambda x: f(whole(x), whole(x)), lambda x: plain(x, x)

    def step_gradient_of_reduced(self):
        gather, self.plain = self.gathered(), True
        f = weft.grad(lambda r: (r**2).sum())
        return lambda x: weft.reshard(f(gather(x)), P()), lambda x: 2 * x

    # ---- Functions on the host

    def step_callback(self):
        options = [{"ordered": True}, {"partitioned": True}, {}][self.rng.integers(3)]
        self.wanted = None if options or self.wanted is None else self.wanted + 1

        def f(x):
            weft.debug.callback(self.note, weft.reshard(x, P()), **options)
            return x * 1

        return (lambda x: f(weft.reshard(x, P()))), lambda x: x

    def step_mapped_callback(self):
        partitioned, spec = self.flip(), self.spec()
        self.wanted = None

        def row(r):
            weft.debug.callback(self.note, r, partitioned=partitioned)
            return r * 2

        return lambda x: weft.vmap(row)(weft.reshard(x, spec)), lambda x: x * 2

    def step_callback_of_split(self):
        partitioned, spec = self.flip(), self.spec()
        self.wanted = None

        def f(x):
            x = weft.reshard(x, spec)
            weft.debug.callback(self.note, x, x.sum(), partitioned=partitioned)
            return x

        return f, lambda x: x

    def step_callback_in_loop(self):
        spec = self.spec()
        self.wanted = None

        def body(c, _):
            weft.debug.callback(self.note, c, partitioned=True)
            return c * 0.5, None

        return (
            lambda x: lax.scan(body, weft.reshard(x, spec), length=2)[0],
            lambda x: x / 4,
        )

    def step_result(self):
        ordered = self.flip()
        self.wanted = None
        ways = [
            lambda x: weft.pure_callback(self.twice, TYPE, x),
            lambda x: io_callback(self.twice, TYPE, x, ordered=ordered),
        ]
        f = ways[self.rng.integers(2)]
        return lambda x: f(weft.reshard(x, P())), lambda x: x * 2

    # ---- shard_map

    def step_parts(self):
        axes = set(self.rng.permutation(self.names)[: self.rng.integers(1, len(self.names) + 1)])
        axis = str(min(axes))
        mode, partitioned = int(self.rng.integers(4)), self.flip()
        self.wanted, self.plain = None, True

        def part(x):
            if mode == 1:
                weft.debug.callback(self.note, x, partitioned=partitioned)
            if mode == 2:
                return lax.psum(x, axis) * 0 + x
            if mode == 3:
                return x + lax.axis_index(axis) * 0.0
            return wnp.sin(x)

        spec = P(axis)
        mapped = weft.shard_map(
            part, in_specs=spec, out_specs=spec, axis_names=frozenset(map(str, axes))
        )
        return (
            lambda x: mapped(weft.reshard(x, spec)),
            wnp.sin if mode < 2 else lambda x: x,
        )


def problem(seed):
    """What is wrong with a program; None if nothing is, or if it is refused."""
    x = np.random.default_rng(seed).normal(size=(8, 8)).astype(np.float32)
    program = Program(seed)
    wanted = np.asarray(program.alone(wnp.asarray(x)))
    with weft.set_mesh(program.mesh):
        f = lambda x: weft.reshard(program.on_mesh(x), P())
        placed = weft.reshard(x, program.start)
        try:
            got = np.asarray((weft.jit(f) if program.is_jitted else f)(placed))
            weft.effects_barrier()
        except (ShardingError, ShardingTypeError, NotImplementedRuleError):
            return None
        except Exception as error:
            return f"{seed} {program.kinds}: {type(error).__name__}: {error}"
    if not np.allclose(got, wanted, 2e-2, 2e-2 * (1 + abs(wanted).max())):
        return f"{seed} {program.kinds}: {got} instead of {wanted}"
    calls = len(program.calls)
    if program.wanted is not None and calls != program.wanted:
        return f"{seed} {program.kinds}: {calls} calls instead of {program.wanted}"
    return None


if __name__ == "__main__":
    weft.config.update("weft_num_cpu_devices", 8)
    first, count = map(int, sys.argv[1:])
    problems = 0
    for seed in range(first, first + count):
        print("program", seed, file=sys.stderr, flush=True)  # which one ended the process
        if found := problem(seed):
            problems += 1
            print(found, flush=True)
    print(f"{problems} of {count} programs" if problems else "ok")
