"""Random small programs, whose loops and chains become kernels, beside the same programs without.

Half of the programs are exact: whatever they compute has one right value bit for bit, since nothing
in them adds up floats in an order of the compiler's choice. The others add, multiply matrices and
solve systems, but are smooth in their floats: what rounding may change is found by running the
plain program on arguments that differ in their last bits.

usage: kernel_random.py FIRST COUNT      compares values, derivatives and batches of these seeds
       kernel_random.py --show SEED      writes one down
"""

import math
import sys
from collections import Counter
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import program_runs

FLOATS = ("float32", "float32", "float32", "float32", "float64", "float16", "bfloat16")
WHOLES = ("int32", "int32", "uint32", "int8", "uint8", "int16", "uint16")
WIDE_WHOLES = ("int64", "uint64", "int32", "uint8")
SIZES = (1, 2, 3, 4, 5, 8, 12)
SEEN = Counter()  # kernels, of all programs of the process
# The most elements of a value, and the most lines of a program with its loops.
LARGEST, LONGEST = 64, 30

# Element by element: of floats f and g, whole numbers i and j, truth values p and q.
SMOOTH = [
    "jnp.sin({f})", "jnp.cos({f}) * {g}", "jnp.tanh({f})", "jnp.exp(-jnp.abs({f}))", "-{f}",
    "jnp.log1p({f} * {f})", "jnp.sqrt(1 + {f} * {f})", "{f} + {g}", "{f} - {g}", "{f} * {g}",
    "{f} / (2 + jnp.sin({g}))", "jnp.maximum({f}, {g})", "jnp.minimum({f}, {g})",
    "jnp.where({p}, {f}, {g})", "{f} * {i}.astype(F) / 64", "lax.erf({f})",
    "nn.sigmoid({f})", "jnp.square({f})", "lax.rsqrt(1 + {f} * {f})", "jnp.expm1(0.1 * {f})",
    "jnp.clip({f}, -2, 2)", "{f} * 0.5 + 0.25",
    "jnp.logaddexp({f}, {g})", "nn.softplus({f})", "(2 + jnp.sin({f})) ** {g}",
    "jnp.real(({f} + 1j * {g}) * ({g} - 0.5j)).astype(F)",
    "jnp.imag(jnp.exp(1j * {f}) / (2 + {g} * 1j)).astype(F)",
]  # fmt: skip
SHARP = [
    "jnp.log({f})", "jnp.sqrt({f})", "{f} / {g}", "1 / {f}",
    "jnp.floor({f} * 4)", "jnp.round({f} * 3)", "jnp.sign({f})", "jnp.abs({f})", "{f} % {g}",
    "jnp.where({f} > {g}, {f}, -{g})", "jnp.copysign({f}, {g})",
    "jnp.where(jnp.isnan({f}), {g}, {f})",
    "jnp.power(jnp.abs({f}), {g})", "jnp.where({p}, jnp.inf, {f})",
    "jnp.nextafter(*map(lax.stop_gradient, ({f}, {g})))",
    "jnp.where({i} == 3, jnp.nan, {f})", "{f} * 0.0", "jnp.exp({f} * 30)", "jnp.trunc({f} * 5)",
    "jnp.nan_to_num({f})", "lax.lgamma(jnp.abs({f}) + 1)", "jnp.log1p({f})",
]  # fmt: skip
# XLA computes these with other bits where other numbers stand beside theirs in a vector, also
# without kernels: they are in smooth programs only. So are the functions below, in float16.
UNSTEADY = [
    "jnp.tan({f})",
    "jnp.cbrt({f})",
    "jnp.arctan({f})",
    "jnp.arctan2({f}, 2 + jnp.cos({g}))",
]
UNSTEADY_HALF = ("log1p", "rsqrt", "logaddexp", "softplus")
WHOLE = [
    "{i} + {j}", "{i} - {j}", "{i} * {j}", "{i} // {j}", "{i} % {j}", "{i} & {j}", "{i} | {j}",
    "{i} ^ {j}", "{i} << ({j} & 3)", "{i} >> ({j} & 7)", "~{i}", "jnp.maximum({i}, {j})",
    "jnp.where({p}, {i}, {j})", "lax.population_count({i})", "lax.clz({i})", "{p}.astype(I) * 5",
    "jnp.minimum({i}, {j})", "{i} * 3 + 1", "jnp.where({i} % 2 == 0, {i} // 2, 3 * {i} + 1)",
]  # fmt: skip
TRUTH = [
    "{p} & {q}", "{p} | ~{q}", "{p} ^ {q}", "{i} < {j}", "{i} == {j}", "{i} % 3 == 0", "~{p}",
]  # fmt: skip
SHARP_TRUTH = ["{f} < {g}", "{f} == {g}", "jnp.isnan({f})", "jnp.signbit({f})", "jnp.isfinite({f})"]
# Along an axis {d} that goes: of any kind, then of floats whose order of terms shows.
REDUCED = {
    "f": ["jnp.max({x}, {d})", "jnp.min({x}, {d})"],
    "i": ["jnp.sum({x}, {d}).astype(I)", "jnp.prod({x}, {d}).astype(I)", "jnp.max({x}, {d})"],
    "b": ["jnp.any({x}, {d})", "jnp.all({x}, {d})"],
}
SUMMED = ["jnp.sum({x}, {d})", "jnp.mean({x}, {d})", "nn.logsumexp({x}, {d})", "jnp.var({x}, {d})"]
# Along an axis that stays.
RUNNING = {
    "f": ["lax.cummax({x}, {d})", "jnp.flip({x}, {d})", "jnp.roll({x}, 1, {d})"],
    "i": ["jnp.cumsum({x}, {d}).astype(I)", "jnp.sort({x}, {d})", "jnp.roll({x}, {n}, {d})",
          "jnp.argsort({x}, {d}).astype(I)"],
    "b": ["jnp.flip({x}, {d})", "jnp.roll({x}, {n}, {d})"],
}  # fmt: skip
SHARP_RUNNING = [
    "jnp.sort({x}, {d})",
    "jnp.take_along_axis({x}, jnp.argsort(-{x}, {d}), {d})",
    "lax.sort((jnp.sin({x}), {x}), dimension={d}, num_keys=1)[1]",
]
ADDED_UP = ["jnp.cumsum({x}, {d})", "nn.softmax({x}, {d})", "lax.cumlogsumexp({x}, {d})",
            "jnp.cumprod(1 + 0.1 * jnp.sin({x}), {d})"]  # fmt: skip
# Of square matrices.
SQUARE = "(0.3 * jnp.sin({x}) + 2 * jnp.eye({n}, dtype=F))"
SOLVED = [
    "jnp.linalg.solve({a}, {x})", "jnp.linalg.inv({a})", "jnp.linalg.det({a}) * {x}",
    "jnp.linalg.slogdet({a})[1] * {x}", "jnp.linalg.cholesky({a} @ {a}.T)", "{x} @ {a}.T",
    "lax.linalg.triangular_solve({a}, {x}, left_side=True, lower=True)",
    "jnp.linalg.eigh({a} + {a}.T)[0][:, None] * {x}", "jnp.abs(jnp.linalg.qr({a})[1])",
    "jnp.linalg.svd({a}, compute_uv=False)[:, None] * {x}",
]  # fmt: skip


@dataclass
class Value:
    name: str
    kind: str  # f, i, b
    shape: tuple


class Program:
    """Text of a function `f`; `inputs` are its parameters."""

    def __init__(self, seed):
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.is_exact = self.chance(0.5)
        self.float = self.choose(FLOATS)
        self.whole = self.choose(WIDE_WHOLES if self.float == "float64" else WHOLES)
        # LAPACK has no form for these.
        self.has_solvers = not self.is_exact and self.float in ("float32", "float64")
        self.is_odd = self.is_exact and self.chance(0.4)  # NaN, infinities, zeros of both signs
        self.lines, self.count, self.is_reversible, self.draws = [], 0, True, False
        shapes = [self.shape() for _ in range(3)]
        kinds = "ffi" if self.chance(0.5) else "fib"
        self.inputs = [
            Value(f"x{n}", k, s) for n, (k, s) in enumerate(zip(kinds, shapes, strict=True))
        ]
        values = list(self.inputs)
        self.lines.append(f"def f({', '.join(v.name for v in self.inputs)}):")
        self.block(values, 1, self.number(3, 7), 0)
        results = values[-3:]
        if not any(v.kind == "f" for v in results):
            results.append(next(v for v in reversed(values) if v.kind == "f"))
        self.lines.append(f"    return ({', '.join(v.name for v in results)},)")
        self.text = "\n".join(self.lines)

    # ---- Choices

    def number(self, low, high):
        return int(self.rng.integers(low, high))

    def chance(self, often):
        return self.rng.random() < often

    def choose(self, options):
        options = list(options)
        return options[self.number(0, len(options))]

    def shape(self):
        if self.chance(0.25):
            n = self.choose((2, 3, 4, 6))
            return (n, n)
        return tuple(self.choose(SIZES) for _ in range(self.choose((0, 1, 1, 2))))

    def pick(self, values, kind=None, rank=0):
        fitting = [v for v in values if kind in (None, v.kind) and len(v.shape) >= rank]
        if not fitting:
            return None
        return self.choose(fitting[-4:] if self.chance(0.7) else fitting)

    # ---- Values of a kind and a shape

    def fitted(self, values, kind, shape):
        """An expression of this kind and shape."""
        v = self.pick(values, kind)
        if v is None or (self.is_exact and self.chance(0.1)):
            v = self.pick(values, None if self.is_exact else "i") or self.pick(values, "b")
        text = v.name if v.shape == shape else f"fit({v.name}, {shape})"
        if v.kind == kind:
            return text
        return {
            "f": f"{text}.astype(F)",
            "i": f"whole({text})" if v.kind == "f" else f"{text}.astype(I)",
            "b": f"({text} > 0)",
        }[kind]

    def operands(self, values, shape, template):
        names = {"f": "f", "g": "f", "i": "i", "j": "i", "p": "b", "q": "b"}
        return {
            letter: self.fitted(values, kind, shape)
            for letter, kind in names.items()
            if f"{{{letter}}}" in template
        }

    def index(self, values, size):
        return f"({self.fitted(values, 'i', ())}).astype('int32') % {size}"

    # ---- Lines

    def add(self, values, depth, kind, shape, text):
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{'    ' * depth}{name} = {text}")
        values.append(Value(name, kind, tuple(shape)))

    def block(self, values, depth, wanted, nested):
        """Lines that end with new values; `nested` counts the loops and branches around."""
        before = len(values)
        for _ in range(20 * wanted):
            if len(values) >= before + wanted:
                break
            steps = ["elements"] * 6 + ["reduce", "run", "move", "index", "index", "write", "write"]
            steps += ["draw"] * (self.rng.random() < 0.3) + ["compare"]
            if not self.is_exact:
                steps += ["product"] * 3 + ["solve"] * self.has_solvers
            if nested < 2 and len(self.lines) < LONGEST:
                steps += ["scan", "fori", "while", "cond", "call"] * (2 if nested == 0 else 1)
            getattr(self, f"step_{self.choose(steps)}")(values, depth, nested)

    def step_elements(self, values, depth, nested):
        kind = self.choose("ffffiib")
        tables = {"f": SMOOTH, "i": WHOLE, "b": TRUTH}
        table = list(tables[kind])
        if self.is_exact:
            table += {"f": SHARP, "i": [], "b": SHARP_TRUTH}[kind]
            if self.float == "float16":
                table = [t for t in table if not any(name in t for name in UNSTEADY_HALF)]
        elif kind == "f":
            table += UNSTEADY
        template = self.choose(table)
        shape = self.pick(values).shape
        text = template.format(**self.operands(values, shape, template))
        if kind == "f":
            text = f"bound({text})" if self.chance(0.5) else text
            text = f"({text}).astype(F)"
        self.add(values, depth, kind, shape, text if kind != "i" else f"({text}).astype(I)")

    def step_compare(self, values, depth, nested):
        template = self.choose(TRUTH + SHARP_TRUTH * self.is_exact)
        shape = self.pick(values).shape
        text = template.format(**self.operands(values, shape, template))
        self.add(values, depth, "b", shape, text)

    def along(self, values, tables, added, sharp=()):
        v = self.pick(values, None, 1)
        if v is None:
            return None
        table = list(tables[v.kind])
        if v.kind == "f":
            table += list(sharp) if self.is_exact else list(added)
        d = self.number(0, len(v.shape))
        n = self.number(-3, 4)
        return v, d, self.choose(table).format(x=v.name, d=d, n=n)

    def step_reduce(self, values, depth, nested):
        if found := self.along(values, REDUCED, SUMMED):
            v, d, text = found
            self.add(values, depth, v.kind, v.shape[:d] + v.shape[d + 1 :], text)

    def step_run(self, values, depth, nested):
        if found := self.along(values, RUNNING, ADDED_UP, SHARP_RUNNING):
            v, _, text = found
            self.add(values, depth, v.kind, v.shape, text)

    def step_move(self, values, depth, nested):
        v = self.pick(values, None, 1)
        if v is None:
            return
        n, rest = v.shape[0], v.shape[1:]
        other = self.fitted(values, v.kind, v.shape)
        ways = [
            (f"{v.name}.reshape(-1)[::-1]", (math.prod(v.shape),)),
            (f"{v.name}.T", v.shape[::-1]),
            (f"jnp.concatenate([{v.name}, {other}])", (2 * n, *rest)),
            (f"jnp.stack([{v.name}, {other}], 1)", (n, 2, *rest)),
            (f"{v.name}[{n // 2}:]", (n - n // 2, *rest)),
            (f"{v.name}[::2]", (-(-n // 2), *rest)),
            (f"{v.name}[0]", rest),
        ]
        text, shape = self.choose(ways)
        if math.prod(shape) <= LARGEST and len(shape) <= 3:
            self.add(values, depth, v.kind, shape, text)

    def step_index(self, values, depth, nested):
        v = self.pick(values, None, 1)
        if v is None:
            return
        n, rest = v.shape[0], v.shape[1:]
        many = self.choose((2, 3, 5))
        where = f"{self.fitted(values, 'i', (many,))}.astype('int32') % {n}"
        size = self.number(1, n + 1)
        ways = [
            (f"{v.name}[{self.index(values, n)}]", rest),
            (f"lax.dynamic_slice_in_dim({v.name}, {self.index(values, n)}, {size})", (size, *rest)),
            (f"{v.name}[{where}]", (many, *rest)),
        ]
        if v.kind == "i":
            found = f"jnp.searchsorted(jnp.sort({v.name}.reshape(-1)), {v.name}).astype(I)"
            ways.append((found, v.shape))
        if self.is_exact:
            ways.append((f"{v.name}[jnp.argmax({v.name}.reshape({n}, -1).max(1))]", rest))
            if v.kind == "f" and len(v.shape) == 1:
                ways.append((f"lax.top_k({v.name}, {size})[0]", (size,)))
        text, shape = self.choose(ways)
        if math.prod(shape) <= LARGEST:
            self.add(values, depth, v.kind, shape, text)

    def step_write(self, values, depth, nested):
        v = self.pick(values, None, 1)
        if v is None:
            return
        n, rest = v.shape[0], v.shape[1:]
        at, row = self.index(values, n), self.fitted(values, v.kind, rest)
        ways = [f"{v.name}.at[{at}].set({row})"]
        size = self.number(1, n + 1)
        part = self.fitted(values, v.kind, (size, *rest))
        ways.append(f"lax.dynamic_update_slice_in_dim({v.name}, {part}, {at}, 0)")
        if v.kind != "b":
            ways.append(
                f"{v.name}.at[{at}].{self.choose(['add', 'max', 'min', 'multiply'])}({row})"
            )
        if v.kind == "i" or (v.kind == "f" and not self.is_exact):
            rows = self.fitted(values, v.kind, (3, *rest))
            where = f"{self.fitted(values, 'i', (3,))}.astype('int32') % {n}"
            ways.append(f"{v.name}.at[{where}].add({rows})")
        self.add(values, depth, v.kind, v.shape, self.choose(ways))

    def step_draw(self, values, depth, nested):
        shape = self.pick(values).shape
        key = f"random.fold_in(KEY, ({self.fitted(values, 'i', ())}).astype('uint32'))"
        kind, text = self.choose([
            ("f", f"random.uniform({key}, {shape}).astype(F)"),
            ("f", f"random.normal({key}, {shape}).astype(F)"),
            ("i", f"random.randint({key}, {shape}, 0, 50).astype(I)"),
            ("b", f"random.bernoulli({key}, 0.4, {shape})"),
            ("f", f"random.uniform(random.split({key})[1], {shape}).astype(F)"),
        ])  # fmt: skip
        self.add(values, depth, kind, shape, text)

    def step_product(self, values, depth, nested):
        n, k, m = (self.choose((1, 2, 3, 4, 6, 8)) for _ in range(3))
        f = lambda *shape: self.fitted(values, "f", shape)
        text, shape = self.choose([
            (f"{f(n, k)} @ {f(k, m)}", (n, m)),
            (f"{f(n, k)} @ {f(k)}", (n,)),
            (f"{f(k)} @ {f(k)}", ()),
            (f"jnp.outer({f(n)}, {f(m)})", (n, m)),
            (f"jnp.einsum('bij,bjk->bik', {f(2, n, 3)}, {f(2, 3, 2)})", (2, n, 2)),
            (f"jnp.einsum('ij,kj->ki', {f(n, k)}, {f(m, k)})", (m, n)),
            (f"jnp.abs(({f(n, k)} + 1j) @ ({f(k, m)} * 1j + 2)).astype(F)", (n, m)),
            (f"jnp.real(jnp.fft.fft({f(n, m)})).astype(F)", (n, m)),
            (f"jnp.fft.irfft(jnp.fft.rfft({f(n, m)} * np.float32(1)) * 0.5j, {m})"
             ".astype(F)", (n, m)),
        ])  # fmt: skip
        if math.prod(shape) <= LARGEST:
            self.add(values, depth, "f", shape, f"bound({text})")

    def step_solve(self, values, depth, nested):
        n = self.choose((1, 2, 3, 4, 6))
        x = self.fitted(values, "f", (n, n))
        a = SQUARE.format(x=self.fitted(values, "f", (n, n)), n=n)
        self.add(values, depth, "f", (n, n), f"bound({self.choose(SOLVED).format(a=a, x=x)})")

    # ---- Loops and branches

    def carried(self, values):
        chosen = [self.pick(values) for _ in range(self.number(1, 4))]
        return [Value(f"c{self.count + n}", v.kind, v.shape) for n, v in enumerate(chosen)], chosen

    def returned(self, inner, wanted):
        """Expressions of the kinds and shapes that a body must return."""
        texts = []
        for v in wanted:
            fresh = [u for u in inner if u.name.startswith("v")]
            text = self.fitted(fresh[-4:] + [v] if self.chance(0.8) else inner, v.kind, v.shape)
            texts.append(f"bound({text})" if v.kind == "f" else text)
        return texts

    def body(self, values, depth, nested, head, inner):
        self.lines.append(f"{'    ' * depth}{head}")
        inside = values + inner
        self.block(inside, depth + 1, self.number(1, 5), nested + 1)
        return inside

    def close(self, depth, text):
        self.lines.append(f"{'    ' * (depth + 1)}return {text}")

    def bind(self, values, depth, likes, text):
        names = []
        for v in likes:
            names.append(f"v{self.count}")
            self.count += 1
            values.append(Value(names[-1], v.kind, v.shape))
        self.lines.append(f"{'    ' * depth}{', '.join(names)}, = {text}")

    def label(self):
        self.count += 1
        return f"g{self.count}"

    def step_scan(self, values, depth, nested):
        name, length = self.label(), self.choose((1, 3, 5, 9))
        carries, starts = self.carried(values)
        self.count += len(carries)
        rows = [
            Value(f"r{self.count + n}", kind, self.choose([(), (2,), (3,)]))
            for n, kind in enumerate(self.choose(["", "f", "fi"]))
        ]
        self.count += len(rows)
        pattern = f"({''.join(f'{v.name}, ' for v in carries)})"
        head = f"def {name}(carry, row):"
        mark = len(self.lines)
        inside = self.body(values, depth, nested, head, carries + rows)
        unpack = [f"{pattern} = carry"]
        if rows:
            unpack.append(f"({''.join(f'{v.name}, ' for v in rows)}) = row")
        self.lines[mark + 1 : mark + 1] = ["    " * (depth + 1) + line for line in unpack]
        out = self.pick(inside)
        self.close(depth, f"({', '.join(self.returned(inside, carries))},), {out.name}")
        xs = [self.fitted(values, v.kind, (length, *v.shape)) for v in rows]
        given = f"({', '.join(xs)},)" if xs else "None"
        start = ", ".join(v.name for v in starts)
        call = f"lax.scan({name}, ({start},), {given}, length={length}"
        call += ", reverse=True)" if self.chance(0.3) else ")"
        stacked = Value("", out.kind, (length, *out.shape))
        if math.prod(stacked.shape) > 2 * LARGEST:
            stacked = None
        each = f"lambda c, y: (*c, {'y' if stacked else ''})"
        self.bind(values, depth, [*carries, *[stacked] * bool(stacked)], f"({each})(*{call})")

    def step_fori(self, values, depth, nested):
        name, (carries, starts) = self.label(), self.carried(values)
        self.count += len(carries)
        step = Value(f"t{self.count}", "i", ())
        self.count += 1
        mark = len(self.lines)
        inside = self.body(values, depth, nested, f"def {name}(t, carry):", [*carries, step])
        pattern = f"({''.join(f'{v.name}, ' for v in carries)})"
        unpack = [f"{pattern} = carry", f"{step.name} = t.astype(I)"]
        self.lines[mark + 1 : mark + 1] = ["    " * (depth + 1) + line for line in unpack]
        self.close(depth, f"({', '.join(self.returned(inside, carries))},)")
        start = ", ".join(v.name for v in starts)
        trips = str(self.choose((1, 2, 4, 7)))
        if self.chance(0.25):
            trips, self.is_reversible = f"{self.index(values, 6)}", False
        self.bind(values, depth, carries, f"lax.fori_loop(0, {trips}, {name}, ({start},))")

    def step_while(self, values, depth, nested):
        self.is_reversible = False
        name, (carries, starts) = self.label(), self.carried(values)
        self.count += len(carries)
        mark = len(self.lines)
        inside = self.body(values, depth, nested, f"def {name}(state):", carries)
        pattern = f"(count, {''.join(f'{v.name}, ' for v in carries)})"
        self.lines.insert(mark + 1, "    " * (depth + 1) + f"{pattern} = state")
        self.close(depth, f"(count + 1, {', '.join(self.returned(inside, carries))},)")
        start = ", ".join(v.name for v in starts)
        go_on = f"lambda {name}s: {name}s[0] < {self.choose((1, 4, 6))}"
        first = carries[0]
        if first.kind == "i":
            go_on += f" + ({name}s[1] % 5).sum().astype('int32') % 4"
        elif self.is_exact and first.kind == "f":
            go_on = f"{go_on} - ({name}s[1] > 0.5).any().astype('int32')"
        call = f"lax.while_loop({go_on}, {name}, (jnp.int32(0), {start},))[1:]"
        self.bind(values, depth, carries, call)

    def step_cond(self, values, depth, nested):
        kept = self.carried(values)[1]
        count = self.choose((2, 2, 3, 4))
        names = []
        for _ in range(count):
            names.append(self.label())
            inside = self.body(values, depth, nested, f"def {names[-1]}():", [])
            self.close(depth, f"({', '.join(self.returned(inside, kept))},)")
        if count == 2:
            choice = f"lax.cond({self.fitted(values, 'b', ())}, {names[0]}, {names[1]})"
        else:
            choice = f"lax.switch({self.index(values, count)}, [{', '.join(names)}])"
        self.bind(values, depth, kept, choice)

    def step_call(self, values, depth, nested):
        """A function that is jitted, checkpointed or batched by itself."""
        way = self.choose(["weft.jit", "weft.checkpoint", "weft.vmap"])
        name, given = self.label(), self.pick(values, "f", 1 if way == "weft.vmap" else 0)
        if given is None:
            return
        shape = given.shape[1:] if way == "weft.vmap" else given.shape
        own = Value(f"a{self.count}", "f", shape)
        self.count += 1
        inside = self.body(values, depth, nested, f"def {name}({own.name}):", [own])
        (text,) = self.returned(inside, [own])
        self.close(depth, text)
        self.add(values, depth, "f", given.shape, f"{way}({name})({given.name})")


# ---- Comparing


def arguments(program):
    """Arrays for the parameters, and the same with last bits changed."""
    rng = np.random.default_rng(program.seed)
    kind = np.dtype(program.float)  # bfloat16 is ml_dtypes'
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1.0, -2.5])
    plain, moved = [], []
    eps = float(ml_dtypes.finfo(kind).eps)
    for v in program.inputs:
        if v.kind == "f":
            x = rng.normal(size=v.shape)
            if program.is_odd:
                x = np.where(rng.random(v.shape) < 0.3, rng.choice(odd, v.shape), x)
            plain.append(np.asarray(x, kind))
            moved.append(np.asarray(x * (1 + 2 * eps * rng.choice([-1, 1], v.shape)), kind))
        else:
            low = -20 if program.whole.startswith("int") else 0
            x = rng.integers(low, 100, v.shape)
            plain.append(np.asarray(x, program.whole) if v.kind == "i" else np.asarray(x > 40))
            moved.append(plain[-1])
    return plain, moved


def is_same(x, y):
    """Whether two arrays are equal bit for bit, but for what stands in a NaN."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind in "iub":
        return bool((x == y).all())
    words = f"u{x.dtype.itemsize}"
    nans = np.isnan(x.astype("f8"))
    if (nans != np.isnan(y.astype("f8"))).any():
        return False
    return bool(((x.view(words) == y.view(words)) | nans).all())


def wide(x):
    return np.asarray(x).astype("f8")


def is_near(x, y, moved):
    """Whether arrays differ by no more than rounding explains, which moved the third from y."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind in "iub":
        return is_same(x, y)
    eps = float(ml_dtypes.finfo(x.dtype).eps)
    x, y, moved = wide(x), wide(y), wide(moved)
    if not (np.isfinite(x) == np.isfinite(y)).all():
        return False
    size = 1 + np.max(np.abs(y), initial=0, where=np.isfinite(y))
    step = np.max(np.abs(moved - y), initial=0, where=np.isfinite(y) & np.isfinite(moved))
    return bool((np.abs(x - y)[np.isfinite(y)] <= 32 * (eps * size + step)).all())


def forms(weft, program, f):
    """{name: function of the arguments}: the program, its derivative, a batch of it."""
    import weft.numpy as jnp

    places = [n for n, v in enumerate(program.inputs) if v.kind == "f"]

    def loss(floats, args):
        args = list(args)
        for place, x in zip(places, floats, strict=True):
            args[place] = x
        total = 0
        for y in f(*args):
            if jnp.issubdtype(y.dtype, jnp.floating):
                weights = np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype)
                total = total + (y * weights).sum()
        return total

    def gradient(*args):
        return weft.value_and_grad(loss)([args[n] for n in places], args)

    def forward(*args):
        floats = [args[n] for n in places]
        ways = [jnp.cos(jnp.arange(x.size)).reshape(x.shape).astype(x.dtype) for x in floats]
        return weft.jvp(lambda floats: loss(floats, args), (floats,), (ways,))

    def batch(*args):
        more = [jnp.stack([x, x[::-1] if x.ndim else x, x]) for x in map(jnp.asarray, args)]
        return weft.vmap(f)(*more)

    derivative = gradient if program.is_reversible else forward
    return {"value": f, "derivative": derivative, "batch": batch}


def scope(program):
    import weft
    import weft.nn as nn
    import weft.numpy as jnp
    from weft import lax, random

    def fit(x, shape):
        return jnp.resize(x, shape)

    def whole(x):
        return jnp.clip(jnp.nan_to_num(x * 8), -99, 99).astype("int32").astype(program.whole)

    def bound(x):
        return jnp.clip(x, -4, 4)

    names = {"weft": weft, "jnp": jnp, "nn": nn, "lax": lax, "random": random, "np": np}
    names |= {"fit": fit, "whole": whole, "bound": bound, "KEY": random.key(program.seed)}
    names |= {"F": jnp.dtype(program.float), "I": jnp.dtype(program.whole)}
    exec(compile(program.text, f"<program {program.seed}>", "exec"), names)
    return names["f"]


def mismatch(seed):
    """How a program, its derivative or a batch of it differs without kernels; None if none does."""
    import weft

    program = Program(seed)
    plain, moved = arguments(program)
    with weft.enable_x64(program.float == "float64"):
        for form, f in forms(weft, program, scope(program)).items():
            without = weft.jit(f, kernels="never")
            within = weft.jit(f, kernels="always").lower(*plain).compile()
            SEEN["kernels"] += len(within.kernels)
            got, wanted = (
                [np.asarray(x) for x in weft.tree.leaves(g(*plain))] for g in (within, without)
            )
            if all(map(is_same, got, wanted)):
                continue
            near = False
            if form == "derivative" or not program.is_exact:
                shaken = [np.asarray(x) for x in weft.tree.leaves(without(*moved))]
                near = all(map(is_near, got, wanted, shaken))
            if not near:
                return (
                    f"{form} of program {seed}:\n{described(program)}\n{got}\ninstead of\n{wanted}"
                )
    return None


def described(program):
    kinds = {"f": program.float, "i": program.whole, "b": "bool"}
    inputs = ", ".join(f"{v.name}: {kinds[v.kind]}{list(v.shape)}" for v in program.inputs)
    exact = "exact" if program.is_exact else "smooth"
    return f"# {exact}; {inputs}\n{program.text}"


if __name__ == "__main__":
    if sys.argv[1] == "--show":
        print(described(Program(int(sys.argv[2]))))
    else:
        first, count = map(int, sys.argv[1:])
        program_runs.run(first, count, mismatch, lambda seed: described(Program(seed)))
        print(f"{SEEN['kernels']} kernels", file=sys.stderr)
