"""Random programs on arrays that are split somehow, beside the same programs on one device.

Most steps make dimensions that the devices do not divide. `python sharded_random.py FIRST COUNT`
compares values and gradients of the programs of these seeds in a process of eight CPU devices;
`--show SEED` writes one down.
"""

import math
import sys

import numpy as np
import program_runs

MESHES = [((8,), "a"), ((2, 4), "ab"), ((4, 2), "ab"), ((2, 2, 2), "abc")]
SIZES = (8, 8, 8, 16, 4, 12, 6, 5, 3)


class Program:
    """Text of a function of one to three arrays; `inputs` has for each name the shape and the spec.

    A step takes a value, its shape and one of its axes, and gives the text of another value and its
    shape, or None where it does not apply. Methods whose names begin with `step_` are steps.
    """

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        sizes, names = self.choose(MESHES)
        self.mesh = sizes, tuple(names)
        self.sizes = dict(zip(names, sizes, strict=True))
        self.lines, self.shapes, self.inputs = [], {}, {}
        for name in ("x", "y", "z")[: self.number(1, 4)]:
            rank = self.choose([1, 2, 2, 3])
            shape = (self.choose((8, 16, 8)), *(self.choose(SIZES) for _ in range(rank - 1)))
            if math.prod(shape) > 512:
                shape = tuple(min(n, 8) for n in shape)
            shape = self.shuffled(shape)
            self.inputs[name] = shape, self.spec(shape, 0.85)
            self.shapes[name] = shape
        wanted = self.number(2, 6)
        while len(self.lines) < wanted:
            self.add_line()

    # ---- Choices

    def number(self, low, high):
        return int(self.rng.integers(low, high))

    def numbers(self, low, high, count):
        return [int(i) for i in self.rng.integers(low, high, count)]

    def choose(self, options):
        options = list(options)
        return options[self.number(0, len(options))]

    def shuffled(self, values):
        return tuple(values[i] for i in self.rng.permutation(len(values)))

    def spec(self, shape, often):
        """A split that divides the shape; an axis of the mesh is used this often."""
        dims = [[] for _ in shape]
        for name in self.shuffled(list(self.sizes)):
            d = self.number(0, len(shape))
            parts = math.prod(self.sizes[a] for a in [*dims[d], name])
            if self.rng.random() < often and shape[d] % parts == 0:
                dims[d].append(name)
        return tuple(tuple(d) if d else None for d in dims)

    def other(self, shape):
        """A value of this shape, made of one that there is; None if there is none as large."""
        shape = tuple(shape)
        same = [n for n, s in self.shapes.items() if s == shape]
        if same and self.rng.random() < 0.5:
            return self.choose(same)
        larger = [
            n
            for n, s in self.shapes.items()
            if len(s) == len(shape) and all(a >= b for a, b in zip(s, shape, strict=True))
        ]
        if larger:
            name = self.choose(larger)
            starts = [
                self.number(0, a - b + 1) for a, b in zip(self.shapes[name], shape, strict=True)
            ]
            return (
                f"{name}[{', '.join(f'{i}:{i + n}' for i, n in zip(starts, shape, strict=True))}]"
            )
        size = math.prod(shape)
        flat = [n for n, s in self.shapes.items() if math.prod(s) >= size]
        return f"{self.choose(flat)}.reshape(-1)[:{size}].reshape({shape})" if flat else None

    def index(self, value, size):
        """Whole numbers below the size, made of a value."""
        return f"(jnp.abs({value}) * 7).astype('int32') % {size}"

    def starts(self, v, shape):
        found = [
            f"({v}.sum() > {self.rng.normal():.2f}).astype('int32') * {self.number(0, n)}"
            for n in shape
        ]
        return f"({', '.join(found)},)"

    def add_line(self):
        v = self.choose(list(self.shapes)[-3:])
        s = self.shapes[v]
        step = self.choose(sorted(n for n in dir(self) if n.startswith("step_")))
        made = getattr(self, step)(v, s, self.number(0, len(s)))
        if made is None:
            return
        text, shape = made[0], tuple(map(int, made[1]))
        if not shape or 0 in shape or math.prod(shape) > 2048 or len(shape) > 4:
            return
        text = f"bound({text})"
        if self.rng.random() < 0.15:
            text = f"constrain({text}, {self.spec(shape, 0.7)})"
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.shapes[name] = shape

    @property
    def text(self):
        last = [line.split(" = ")[0] for line in self.lines][-2:]
        lines = [*self.lines, f"return ({', '.join(last)},)"]
        return "\n    ".join([f"def f({', '.join(self.inputs)}):", *lines])

    def described(self):
        inputs = "; ".join(f"{n}: {s} split {p}" for n, (s, p) in self.inputs.items())
        return f"# mesh {self.mesh}; {inputs}\n{self.text}"

    # ---- Parts of arrays, and arrays of parts

    def step_slice(self, v, s, d):
        cut, shape = [], []
        for n in s:
            begin = self.number(0, n)
            end, step = self.number(begin + 1, n + 1), self.choose([1, 1, 1, 2, 3])
            if self.rng.random() < 0.3:
                begin, end, step = 0, n, 1
            cut.append(f"{begin}:{end}:{step}")
            shape.append(len(range(begin, end, step)))
        return f"{v}[{', '.join(cut)}]", shape

    step_slice_again = step_slice  # more often than others

    def step_dynamic_slice(self, v, s, d):
        shape = tuple(self.number(1, n + 1) for n in s)
        return f"lax.dynamic_slice({v}, {self.starts(v, s)}, {shape})", shape

    def step_update_slice(self, v, s, d):
        b = self.other([self.number(1, n + 1) for n in s])
        return b and (f"lax.dynamic_update_slice({v}, {b}, {self.starts(v, s)})", s)

    def step_set_slice(self, v, s, d):
        begins = [self.number(0, n) for n in s]
        ends = [self.number(i + 1, n + 1) for i, n in zip(begins, s, strict=True)]
        cut = ", ".join(f"{i}:{k}" for i, k in zip(begins, ends, strict=True))
        b = self.other([k - i for i, k in zip(begins, ends, strict=True)])
        way = self.choose(["set", "add", "multiply"])
        return b and (f"{v}.at[{cut}].{way}({b}, unique_indices=True)", s)

    def step_pad(self, v, s, d):
        edges = [(self.number(-1, 3), self.number(-2, 3), self.number(0, 2)) for _ in s]
        shape = [
            n + low + high + (n - 1) * mid for n, (low, high, mid) in zip(s, edges, strict=True)
        ]
        if min(shape) < 1:
            return None
        return f"lax.pad({v}, {self.choose(['0.0', '1.5'])}, {edges})", shape

    def step_pad_with_own(self, v, s, d):
        widths = [(0, 0)] * len(s)
        widths[d] = (self.number(0, min(s[d], 3)), self.number(0, min(s[d], 3)))
        shape = [n + sum(w) for n, w in zip(s, widths, strict=True)]
        mode = self.choose(["wrap", "edge", "reflect", "symmetric"])
        return f"jnp.pad({v}, {widths}, mode={mode!r})", shape

    def step_concatenate(self, v, s, d):
        shape = list(s)
        shape[d] = self.number(1, s[d] + 1)
        b = self.other(shape)
        shape[d] += s[d]
        return b and (f"jnp.concatenate([{', '.join(self.shuffled([v, b]))}], axis={d})", shape)

    def step_stack(self, v, s, d):
        b = self.other(s)
        return b and (f"jnp.stack([{v}, {b}, {v}], axis={d})", (*s[:d], 3, *s[d:]))

    def step_repeat(self, v, s, d):
        shape = list(s)
        shape[d] *= 2
        times = [1] * len(s)
        times[d] = 2
        ways = [f"jnp.repeat({v}, 2, axis={d})", f"jnp.tile({v}, {tuple(times)})"]
        return self.choose(ways), shape

    def step_reshape(self, v, s, d):
        size = math.prod(s)
        shapes = [(size,)]
        for k in (2, 3, 4, 5, 6, 8):
            if size % k == 0:
                shapes += [(k, size // k), (size // k, k)]
            if size % (2 * k) == 0:
                shapes.append((2, k, size // (2 * k)))
        shape = self.choose(shapes)
        return f"{v}.reshape({shape})", shape

    def step_transpose(self, v, s, d):
        order = tuple(int(i) for i in self.rng.permutation(len(s)))
        return f"{v}.transpose({order})", [s[i] for i in order]

    def step_turn(self, v, s, d):
        by = self.choose([self.number(-3, 4), f"({v}.sum() > 0).astype('int32') + 1"])
        return self.choose([f"jnp.roll({v}, {by}, {d})", f"lax.rev({v}, ({d},))"]), s

    def step_diff(self, v, s, d):
        return f"jnp.diff({v}, axis={d})", [n - (i == d) for i, n in enumerate(s)]

    def step_triangle(self, v, s, d):
        way = self.choose(["tril", "triu"])
        return (f"jnp.{way}({v}, {self.number(-1, 2)})", s) if len(s) > 1 else None

    def step_diagonal(self, v, s, d):
        if len(s) > 2:
            return None
        return (f"jnp.diagonal({v})", (min(s),)) if len(s) == 2 else (f"jnp.diag({v})", s * 2)

    # ---- Computed places

    def step_take(self, v, s, d):
        count = self.choose([1, 2, 3, 5, 8, 11])
        shape = [count if i == d else n for i, n in enumerate(s)]
        where = f"np.array({self.numbers(-s[d], s[d], count)})"
        b = self.other((count,))
        if b and self.rng.random() < 0.5:
            where = self.index(b, s[d])
        return f"jnp.take({v}, {where}, axis={d})", shape

    def step_take_pairs(self, v, s, d):
        if len(s) < 2:
            return None
        count = self.choose([3, 5, 8])
        pairs = ", ".join(f"np.array({self.numbers(0, n, count)})" for n in s[:2])
        return f"{v}[{pairs}]", (count, *s[2:])

    def step_take_along(self, v, s, d):
        shape = [self.number(1, 9) if i == d else n for i, n in enumerate(s)]
        b = self.other(shape)
        return b and (f"jnp.take_along_axis({v}, {self.index(b, s[d])}, {d})", shape)

    def step_scatter(self, v, s, d):
        way = self.choose(["add", "add", "set", "max", "min", "multiply"])
        count = self.choose([1, 2, 3, 4, 5, 8])
        where = self.numbers(0, s[0], count)
        if way in ("set", "multiply"):
            where = list(dict.fromkeys(where))
        b, i = self.other((len(where), *s[1:])), self.other((len(where),))
        where = f"jnp.array({where})"
        if way in ("add", "max", "min") and i and self.rng.random() < 0.5:
            where = self.index(i, s[0])
        unique = ", unique_indices=True" if way == "multiply" else ""
        return b and (f"{v}.at[{where}].{way}({b}{unique})", s)

    def step_scatter_columns(self, v, s, d):
        if len(s) < 2:
            return None
        count = self.choose([1, 3, 4, 5])
        b = self.other((s[0], count, *s[2:]))
        return b and (f"{v}.at[:, jnp.array({self.numbers(0, s[1], count)})].add({b})", s)

    def step_segments(self, v, s, d):
        count = self.choose([3, 4, 5, 8])
        where = f"jnp.array({self.numbers(0, count, s[0])})"
        text = self.choose(
            [
                f"jax.ops.segment_sum({v}, {where}, {count})",
                f"jnp.maximum(jax.ops.segment_max({v}, {where}, {count}), -9.0)",
            ]
        )
        return text, (count, *s[1:])

    def step_count(self, v, s, d):
        where = self.index(v, 6)
        return f"jnp.bincount(({where}).reshape(-1), weights={v}.reshape(-1), length=6)", (6,)

    def step_one_hot(self, v, s, d):
        return f"jax.nn.one_hot({self.index(v, 5)}, 5) * {v}[..., None]", (*s, 5)

    # ---- Order

    def step_top_k(self, v, s, d):
        k = self.number(1, s[-1] + 1)
        found = f"lax.top_k({v}, {k})"
        return self.choose([f"{found}[0]", f"{found}[1].astype('float32') * 0.1"]), (*s[:-1], k)

    def step_sort(self, v, s, d):
        ways = [f"jnp.sort({v}, axis={d})", f"jnp.argsort({v}, axis={d}).astype('float32') * {v}"]
        if b := self.other(s):
            ways.append(f"lax.sort(({v}, {b}), dimension={d}, num_keys=1)[1]")
        return self.choose(ways), s

    def step_extreme(self, v, s, d):
        where = f"jnp.{self.choose(['argmax', 'argmin'])}({v}, axis={d}, keepdims=True)"
        return f"{v} + jnp.take_along_axis({v}, {where}, {d})", s

    def step_median(self, v, s, d):
        return f"{v} * jnp.median({v}, axis={d}, keepdims=True)", s

    def step_search(self, v, s, d):
        ways = [
            f"jnp.searchsorted(jnp.sort({v}), {v} * 0.9).astype('float32') * {v}",
            f"jnp.interp({v}, jnp.arange({s[0]}.) - 2, {v})",
        ]
        return (self.choose(ways), s) if len(s) == 1 else None

    # ---- Sums, products, windows

    def step_reduce(self, v, s, d):
        way = self.choose(["sum", "max", "min", "prod", "mean", "var"])
        return f"jnp.{way}({v}, axis={d})", s[:d] + s[d + 1 :]

    def step_reduce_beside(self, v, s, d):
        way = self.choose(["sum", "max", "min", "prod", "mean"])
        return f"{v} * jnp.{way}({v}, axis={d}, keepdims=True)", s

    def step_any(self, v, s, d):
        return f"jnp.{self.choose(['any', 'all'])}({v} > -0.5, axis={d}, keepdims=True) * {v}", s

    def step_softmax(self, v, s, d):
        return f"jax.nn.{self.choose(['softmax', 'log_softmax'])}({v}, axis={d})", s

    def step_running(self, v, s, d):
        way = self.choose(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
        return f"lax.{way}({v}, axis={d}, reverse={self.choose([True, False])})", s

    def step_associative_scan(self, v, s, d):
        return f"lax.associative_scan(lambda a, b: a * 0.5 + b, {v}, axis={d})", s

    def step_product(self, v, s, d):
        m = self.choose([3, 4, 5, 8])
        b = self.other((s[-1], m))
        return b and (f"{v} @ ({b})", (*s[:-1], m))

    def step_gram(self, v, s, d):
        if len(s) == 3:
            b = self.other(s)
            return b and (f"jnp.einsum('abc,adc->abd', {v}, {b})", (s[0], s[1], s[1]))
        if len(s) != 2:
            return None
        n = s[d]
        return f"jnp.einsum('{'ij,kj->ik' if d == 0 else 'ij,ik->jk'}', {v}, {v})", (n, n)

    def step_conv_image(self, v, s, d):
        if len(s) != 2:
            return None
        window = [self.number(1, min(n, 4) + 1) for n in s]
        b, pad, step = self.other(window), self.choose(["SAME", "VALID"]), self.choose([1, 1, 2])
        room = s if pad == "SAME" else [n - k + 1 for n, k in zip(s, window, strict=True)]
        text = (
            f"lax.conv_general_dilated({v}[None, None], ({b})[None, None], ({step},) * 2, {pad!r})"
        )
        return b and (f"{text}[0, 0]", [-(-n // step) for n in room])

    def step_conv_sequence(self, v, s, d):
        if len(s) == 1:
            return None
        k, m = self.number(1, 4), self.number(1, 5)
        b = self.other((k, s[1], m)) or self.other((k * s[1] * m,))
        if b is None:
            return None
        window = f"({b}).reshape({k}, {s[1]}, {m})"
        if len(s) == 2:
            numbers = "('NWC', 'WIO', 'NWC')"
            numbers = f"dimension_numbers={numbers}"
            text = f"lax.conv_general_dilated({v}[None], {window}, (1,), 'SAME', {numbers})"
            return f"{text}[0]", (s[0], m)
        return f"lax.conv_general_dilated({v}, {window}.T, (1,), 'SAME')", (s[0], m, *s[2:])

    def step_convolve(self, v, s, d):
        if len(s) > 1:
            return None
        k = self.number(1, min(5, s[0]) + 1)
        b = self.other((k,))
        return b and (f"jnp.convolve({v}, {b}, 'same')", s)

    def step_window(self, v, s, d):
        window = tuple(self.number(1, min(4, n + 1)) for n in s)
        steps = tuple(self.choose([1, 1, 2]) for _ in s)
        start, way = self.choose([("0.0", "add"), ("-jnp.inf", "max"), ("jnp.inf", "min")])
        pad = self.choose(["SAME", "VALID"])
        room = s if pad == "SAME" else [n - k + 1 for n, k in zip(s, window, strict=True)]
        shape = [-(-n // t) for n, t in zip(room, steps, strict=True)]
        return f"lax.reduce_window({v}, {start}, lax.{way}, {window}, {steps}, {pad!r})", shape

    def step_fft(self, v, s, d):
        n = s[d]
        ways = [
            (f"jnp.fft.fft({v}, axis={d}).real", n),
            # Not the imaginary part of a real array's alone, which sums up to 0 but for rounding:
            # conditions are about the sign of such sums.
            (f"jnp.fft.ifft({v} * (1 - 2j), axis={d}).imag", n),
            (f"jnp.fft.rfft({v}, axis={d}).real", n // 2 + 1),
            (f"jnp.fft.hfft({v} * (1 + 2j), {n}, axis={d})", n),
        ]
        if len(s) > 1:
            axes = tuple(int(i) for i in self.rng.permutation(len(s))[:2])
            ways.append((f"jnp.fft.fft2({v}, axes={axes}).real", n))
            ways.append((f"jnp.fft.irfft2({v} * (1 - 1j), {s[axes[0]], s[axes[1]]}, {axes})", n))
        text, size = self.choose(ways)
        return text, (*s[:d], size, *s[d + 1 :])

    # ---- Matrices

    def step_solve(self, v, s, d):
        if len(s) < 2:
            return None
        n = s[-2]
        square = f"({v} @ jnp.swapaxes({v}, -1, -2) * 0.1 + 2 * jnp.eye({n}))"
        factor = f"jnp.linalg.cholesky({square})"
        solved = f"lax.linalg.triangular_solve({factor}, {v}, left_side=True, lower=True)"
        return self.choose(
            [
                (factor, (*s[:-1], n)),
                (solved, s),
                (f"jnp.linalg.solve({square}, {v})", s),
                (f"jnp.linalg.inv({square})", (*s[:-1], n)),
            ]
        )

    def step_qr(self, v, s, d):
        if len(s) != 2 or s[0] < s[1]:
            return None
        text = f"jnp.abs(jnp.linalg.qr({v} + 3 * jnp.eye({s[0]}, {s[1]}))[1])"
        return text, (s[1], s[1])

    def step_eigenvalues(self, v, s, d):
        if len(s) != 2:
            return None
        return f"jnp.linalg.eigh({v} @ {v}.T + jnp.diag(jnp.arange({s[0]}.)))[0]", s[:1]

    # ---- Element by element, loops, branches, transforms

    def step_elements(self, v, s, d):
        b = self.other(s)
        return b and (self.choose([f"jnp.where({v} > 0.2, {b}, {v})", f"{v} * {b} + {v}"]), s)

    def step_number(self, v, s, d):
        shape = tuple(n if i == d else 1 for i, n in enumerate(s))
        return f"{v} + jnp.arange({s[d]}.).reshape({shape}) * 0.1", s

    def step_whole(self, v, s, d):
        return f"(({v} * 10).astype('int32') % 7).astype('float32') * 0.1 + {v}", s

    def step_complex(self, v, s, d):
        return f"jnp.abs({v} * 1j + jnp.flip({v}, {d}) + 0.3)", s

    def step_random(self, v, s, d):
        return f"{v} * jax.random.uniform(jax.random.key({self.number(0, 99)}), {s})", s

    def step_broadcast(self, v, s, d):
        shape = (*s[:d], 3, *s[d:])
        return f"jnp.broadcast_to(jnp.expand_dims({v}, {d}), {shape}) * 1.0", shape

    def step_scan(self, v, s, d):
        rows = f"jnp.moveaxis({v}, {d}, 0)"
        return self.choose([
            f"lax.scan(lambda c, r: (c * 0.5 + jnp.sin(r), c), {rows}[0], {rows})[1]",
            f"lax.scan(lambda c, r: (c + r, c * r), {rows}[0] * 0, {rows}, reverse=True)[1]",
            f"lax.map(lambda r: r * jnp.cos(r).sum(), {rows})",
        ]), (s[d], *s[:d], *s[d + 1 :])  # fmt: skip

    def step_loop(self, v, s, d):
        row = f"lax.dynamic_index_in_dim({v}, i, {d})"
        return self.choose([
            f"lax.fori_loop(0, {s[d]}, lambda i, c: c + {row}, {v} * 0)",
            f"lax.fori_loop(0, 3, lambda i, c: jnp.sin(c).at[i].add(0.5) * {v}, {v})",
        ]), s  # fmt: skip

    def step_branch(self, v, s, d):
        branches = f"lambda a: jnp.sin(a), lambda a: jnp.roll(a, 1, {d})"
        return f"lax.cond({v}.sum() > 0, {branches}, {v})", s

    def step_vmap(self, v, s, d):
        rest = s[:d] + s[d + 1 :]
        if not rest or rest[0] < 2:
            return None
        inner = self.choose([
            "jnp.sin(r) * r.sum()", "r.at[1:].add(r[:-1])", "jnp.roll(r, 1, 0)", "r[::-1] * r[0]",
        ])  # fmt: skip
        return f"jax.vmap(lambda r: {inner}, {d}, {d})({v})", s

    def step_checkpoint(self, v, s, d):
        return f"jax.checkpoint(lambda a: jnp.cos(jnp.sin(a)) * a)({v})", s


def mismatch(seed):
    """What of a program or its gradient is not what it is on one device; None if all is."""
    import weft
    import weft.numpy as wnp
    from weft import lax
    from weft.sharding import Mesh, NamedSharding, PartitionSpec as P

    program = Program(seed)
    sizes, names = program.mesh
    mesh = Mesh(np.array(weft.devices()).reshape(sizes), names)

    def outputs(is_split):
        def constrain(x, spec):
            place = NamedSharding(mesh, P(*spec))
            return lax.with_sharding_constraint(x, place) if is_split else x

        scope = {"jax": weft, "jnp": wnp, "lax": lax, "np": np, "constrain": constrain}
        scope["bound"] = wnp.arctan
        exec(program.text, scope)

        def loss(xs):
            results = scope["f"](*xs)
            weights = [
                np.cos(np.arange(r.size, dtype=np.float32)).reshape(r.shape) for r in results
            ]
            return sum((w * r).sum() for w, r in zip(weights, results, strict=True)), results

        return weft.jit(weft.value_and_grad(loss, has_aux=True))

    values = np.random.default_rng(seed)
    host = [values.normal(size=s).astype(np.float32) for s, _ in program.inputs.values()]
    placed = [
        weft.device_put(x, NamedSharding(mesh, P(*spec)))
        for x, (_, spec) in zip(host, program.inputs.values(), strict=True)
    ]
    wanted = weft.tree.leaves(outputs(False)(host))
    got = weft.tree.leaves(outputs(True)(placed))
    kinds = ["loss", *["value"] * (len(got) - len(host) - 1), *["gradient"] * len(host)]
    for kind, x, y in zip(kinds, got, wanted, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if not np.allclose(x, y, 3e-3, 3e-4 * (1 + abs(y).max()), equal_nan=True):
            return f"{kind} of program {seed}\n{program.described()}\n{x}\ninstead of\n{y}"
    return None


if __name__ == "__main__":
    if sys.argv[1] == "--show":
        print(Program(int(sys.argv[2])).described())
        sys.exit()
    import weft

    weft.config.update("weft_num_cpu_devices", 8)
    first, count = map(int, sys.argv[1:])
    program_runs.run(first, count, mismatch, lambda seed: Program(seed).described())
