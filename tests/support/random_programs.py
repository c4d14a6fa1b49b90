"""Random whole programs under random nests of transforms, as text that any framework runs.

A program is a function of one small array made of a few calls of numpy, lax and nn, some of which
are closures, jitted functions or transforms themselves. It is smooth, and bounded: whatever could
leave the interval [-3, 3] is squashed, what sorts or selects is given values far from ties.
Around it stand up to three transforms, each applied to a function that may close over the argument
of the function outside of it.

usage: random_programs.py SEED [SEED ...]     prints the programs
"""

import math
import sys
from dataclasses import dataclass, field

import numpy as np

SIZE = 12  # the most elements of an intermediate value
BOUND = 3.0

# text: bound of the result where {a} stays within BOUND
UNARY = {
    "jnp.sin({a})": 1,
    "jnp.cos({a})": 1,
    "jnp.tanh({a})": 1,
    "jnp.arctan({a})": 1.3,
    "jnp.arcsinh({a})": 1.9,
    "jnp.exp(0.3 * {a})": 2.5,
    "jnp.expm1(0.2 * {a})": 1,
    "jnp.sinh(0.5 * {a})": 2.2,
    "jnp.log1p({a} ** 2)": 2.4,
    "jnp.log(2 + jnp.sin({a}))": 1.1,
    "jnp.sqrt(1 + {a} ** 2)": 3.2,
    "jnp.cbrt(3 + jnp.sin({a}))": 1.6,
    "1 / (1 + {a} * {a})": 1,
    "0.1 * {a} ** 3": 2.7,
    "(2 + jnp.sin({a})) ** 0.7": 2.2,
    "jnp.square({a}) / 4": 2.3,
    "-{a}": 3,
    "lax.erf({a})": 1,
    "lax.rsqrt(1.5 + jnp.square({a}))": 0.9,
    "lax.integer_pow({a}, 3) / 9": 3,
    "lax.lgamma(3 + jnp.cos({a}))": 1.8,
    "lax.digamma(3 + jnp.sin({a}))": 1.3,
    "nn.sigmoid({a})": 1,
    "nn.softplus({a})": 3.1,
    "nn.gelu({a})": 3,
    "nn.silu({a})": 3,
    "nn.gelu({a}, approximate=False)": 3,
    "nn.log_sigmoid({a})": 3.1,
    "jnp.where(jnp.abs({a}) < 9, jnp.sin({a}), 0.0)": 1,
    "jnp.clip({a}, -9.0, 9.0)": 3,
}
BINARY = {
    "{a} + {b}": 6,
    "{a} - 0.5 * {b}": 4.5,
    "{a} * {b}": 9,
    "{a} / (2 + jnp.sin({b}))": 3,
    "(2 + jnp.cos({a})) ** jnp.sin({b})": 3,
    "jnp.arctan2(2 + jnp.sin({a}), {b})": 3,
    "jnp.logaddexp({a}, {b})": 4,
    "jnp.hypot(1 + jnp.exp(0.2 * {a}), {b})": 5,
    "jnp.maximum(jnp.tanh({a}) + 2, jnp.tanh({b}) - 2)": 3,
    "jnp.where(jnp.tanh({a}) + 2 > 0, {b}, {a})": 3,
    "jnp.where({a} > 50, {a}, jnp.cos({b}) * {a})": 3,
    "jax.jit(lambda p, q: jnp.sin(p) * q)({a}, {b})": 3,
}
# over one axis, or all: {d} is 0, 1, ... or None
REDUCE = {
    "jnp.sum({a}, axis={d})": 9,
    "jnp.mean({a}, axis={d})": 3,
    "jnp.var({a}, axis={d})": 9,
    "jnp.prod(1 + 0.3 * jnp.sin({a}), axis={d})": 9,
    "nn.logsumexp({a}, axis={d})": 6,
    "jnp.sqrt(1 + jnp.sum({a} ** 2, axis={d}))": 9,
    "jnp.max(jnp.tanh({a}) + {apart}, axis={d})": 30,
    "jnp.min(jnp.tanh({a}) + {apart}, axis={d})": 30,
}
# along one axis, of the same shape
ALONG = {
    "lax.cumsum({a}, axis={d})": 9,
    "lax.cumprod(1 + 0.3 * jnp.sin({a}), axis={d})": 9,
    "lax.cumlogsumexp({a}, axis={d})": 6,
    "lax.cummax(jnp.tanh({a}) + {apart}, axis={d})": 30,
    "lax.sort(jnp.tanh({a}) + {apart}, dimension={d})": 30,
    "lax.rev({a}, ({d},))": 3,
    "jnp.roll({a}, 1, axis={d})": 3,
    "nn.softmax({a}, axis={d})": 1,
    "nn.log_softmax({a}, axis={d})": 9,
    "{a} + jnp.take_along_axis("
    "{a}, jnp.argmax(jnp.sin({a}) + {apart}, {d}, keepdims=True), {d})": 6,
    "lax.sort_key_val(jnp.sin({a}) + {apart}, {a}, dimension={d})[1]": 3,
    "jax.vmap(lambda r: jnp.cos(r) * jnp.sum(r), in_axes={d}, out_axes={d})({a})": 9,
}


@dataclass
class Variable:
    name: str
    shape: tuple


@dataclass
class Program:
    """Text of `build(fw)`; `kinds` names the transforms, innermost first."""

    seed: int
    text: str
    kinds: list

    def described(self):
        return f"# seed {self.seed}: {' of '.join(reversed(self.kinds))}\n{self.text}"

    def build(self, framework):
        """(x, levels): the argument, and per transform (function inside, function outside).

        The function inside takes the variable of the transform and the argument of the function
        outside; levels[-1][1] is the whole.
        """
        names = {"np": np}
        exec(compile(self.text, f"<program {self.seed}>", "exec"), names)
        return names["build"](framework)


@dataclass
class Writer:
    rng: np.random.Generator
    constants: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    variables: list = field(default_factory=list)

    # -- choices

    def choose(self, options):
        options = list(options)
        return options[self.rng.integers(len(options))]

    def pick(self, rank=0):
        """A variable of at least this rank, of the later ones rather."""
        fitting = [v for v in self.variables if len(v.shape) >= rank]
        return self.choose(fitting[-3:]) if fitting else None

    def numbers(self, shape):
        values = self.rng.uniform(-1.5, 1.5, shape).round(2)
        return np.array2string(values, separator=", ", max_line_width=10**6).replace("\n", "")

    def constant(self, shape):
        """The name of an array outside of the program, which captures it."""
        name = f"c{len(self.constants)}"
        make = self.choose(["jnp.array({})", "np.array({}, dtype)"])
        self.constants.append(f"{name} = {make.format(self.numbers(shape))}")
        return name

    def other(self, v):
        """An operand that broadcasts with `v`: a variable, a constant, a number."""
        fitting = [u for u in self.variables if u.shape in (v.shape, (), v.shape[1:])]
        if fitting and self.rng.random() < 0.7:
            return self.choose(fitting[-4:]).name
        if self.rng.random() < 0.3:
            return f"{self.rng.uniform(-1.5, 1.5):.2f}"
        return self.constant(v.shape)

    def apart(self, shape):
        """Numbers three apart, so that no sum with something in [-1, 1] comes near another."""
        size = math.prod(shape)
        order = self.rng.permutation(size).reshape(shape) * 3
        return f"np.array({np.array2string(order, separator=', ')}, dtype)".replace("\n", "")

    # -- statements: (text, shape, bound), or None where nothing fits

    def unary(self):
        v = self.pick()
        text = self.choose(UNARY)
        return text.format(a=v.name), v.shape, UNARY[text]

    def binary(self):
        v = self.pick()
        text = self.choose(BINARY)
        a, b = v.name, self.other(v)
        if self.rng.random() < 0.5 and not b.lstrip("-")[0].isdigit():
            a, b = b, a
        shape = np.broadcast_shapes(v.shape, self.shape_of(a), self.shape_of(b))
        return text.format(a=a, b=b), shape, BINARY[text]

    def shape_of(self, name):
        return next((v.shape for v in self.variables if v.name == name), ())

    def reduce(self):
        v = self.pick(1)
        if v is None:
            return None
        text = self.choose(REDUCE)
        d = self.choose([None, *range(len(v.shape))])
        shape = () if d is None else v.shape[:d] + v.shape[d + 1 :]
        return text.format(a=v.name, d=d, apart=self.apart(v.shape)), shape, REDUCE[text]

    def along(self):
        v = self.pick(1)
        if v is None:
            return None
        text = self.choose(ALONG)
        d = self.choose(range(len(v.shape)))
        return text.format(a=v.name, d=d, apart=self.apart(v.shape)), v.shape, ALONG[text]

    def product(self):
        v = self.pick(1)
        if v is None:
            return None
        n = v.shape[-1]
        m = int(self.rng.integers(1, 4))
        vectors = [u for u in self.variables if u.shape == (n,)]
        options = [
            (f"{v.name} @ {self.constant((n, m))}", (*v.shape[:-1], m)),
            (f"jnp.dot({v.name}, {self.constant((n,))})", v.shape[:-1]),
            (f"jnp.einsum('...i,...i->...', {v.name}, {v.name})", v.shape[:-1]),
        ]
        if vectors:
            u = self.choose(vectors).name
            options.append((f"{v.name} @ {u}", v.shape[:-1]))
            options.append((f"jnp.einsum('...i,i->...i', {v.name}, {u})", v.shape))
            options.append((f"jnp.outer({u}, {u})", (n, n)))
        if len(v.shape) == 2:
            p, q = v.shape
            options.append((f"jnp.einsum('ij,kj->ik', {v.name}, jnp.sin({v.name}))", (p, p)))
            options.append((f"jnp.tensordot({v.name}, {v.name}, ((0,), (0,)))", (q, q)))
        text, shape = self.choose(options)
        return text, shape, 99

    def reshaped(self):
        v = self.pick()
        a, shape, size = v.name, v.shape, math.prod(v.shape)
        options = [
            (f"jnp.reshape({a}, (-1,))", (size,)),
            (f"{a}[None]", (1, *shape)),
            (f"jnp.stack([{a}, jnp.cos({a})], axis=-1)", (*shape, 2)),
            (f"jnp.broadcast_to({a}, {(2, *shape)})", (2, *shape)),
            (f"jnp.pad({a}, 1)" if len(shape) == 1 else f"{a} * 1.0",
             (shape[0] + 2,) if len(shape) == 1 else shape),
        ]  # fmt: skip
        if size % 2 == 0:
            options.append((f"{a}.reshape(2, {size // 2})", (2, size // 2)))
        if len(shape) >= 1:
            n = shape[0]
            double = (2 * n, *shape[1:])
            options.append((f"jnp.concatenate([{a}, jnp.sin({a})])", double))
            options.append((f"jnp.tile({a}, 2)", (*shape[:-1], 2 * shape[-1])))
            options.append((f"jnp.repeat({a}, 2, axis=0)", double))
            options.append((f"jnp.swapaxes({a}, 0, -1)", _swapped(shape)))
            options.append((f"sum(jnp.split({a}, {n}))", (1, *shape[1:])))
        if len(shape) == 2:
            options.append((f"{a}.T", shape[::-1]))
            options.append((f"jnp.tril({a}) + 0.5", shape))
        text, shape = self.choose(options)
        return text, shape, BOUND * 4

    def indexed(self):
        v = self.pick(1)
        if v is None:
            return None
        a, n, rest = v.name, v.shape[0], v.shape[1:]
        count = int(self.rng.integers(1, 4))
        where = self.rng.integers(-n, n, count).tolist()
        traced = f"jnp.argmax(jnp.sin({a}).reshape({n}, -1)[:, 0] + {self.apart((n,))})"
        first = int(self.rng.integers(n))
        b = self.other(v)
        options = [
            (f"{a}[{first}]", rest),
            (f"{a}[::-1]", v.shape),
            (f"{a}[np.array({where})]", (count, *rest)),
            (f"jnp.take({a}, np.array({where}), axis=0)", (count, *rest)),
            (f"{a}.at[{first}].set(jnp.sin({a}[{n - 1}]))", v.shape),
            (f"{a}.at[np.array({where})].add(0.5)", v.shape),
            (f"({b} + 0 * {a}).at[np.array({where})].add(jnp.cos({a}[0]))", v.shape),
            (f"{a}.at[np.array({where})].multiply(0.7)" if len(set(where)) == count else f"+{a}",
             v.shape),
            (f"{a}[{traced}]", rest),
            (f"{a}.at[{traced}].set(jnp.tanh({a}[0]))", v.shape),
            (f"lax.dynamic_index_in_dim({a}, {traced}, 0)", (1, *rest)),
            (f"lax.dynamic_update_slice_in_dim({a}, jnp.cos({a}[:1]), {traced}, 0)", v.shape),
            (f"jnp.take({a}, {traced}, axis=0)", rest),
        ]  # fmt: skip
        if n > 1:
            options.append((f"{a}[1:]", (n - 1, *rest)))
            options.append((f"{a}[:-1] * {a}[1:]", (n - 1, *rest)))
            options.append((f"jnp.diff({a}, axis=0)", (n - 1, *rest)))
        text, shape = self.choose(options)
        return text, shape, BOUND * 3

    def closure(self):
        """A function inside the program that uses variables outside of it, transformed or not."""
        v, u = self.pick(), self.pick()
        name = f"g{len(self.lines)}"
        closed = f"jnp.mean({u.name})" if u.shape != v.shape else u.name
        inside = self.choose(["jnp.sin(z) * {}", "jnp.tanh(z + {})", "z / (2 + jnp.cos({}))"])
        self.lines.append(f"{name} = lambda z: {inside.format(closed)}")
        ways = [
            "{f}({a})",
            "jax.jit({f})({a})",
            "jax.checkpoint({f})({a})",
            "jax.checkpoint(lambda z: jnp.cos({f}(z)) * {f}(z))({a})",
            "jax.grad(lambda z: jnp.sum({f}(z)))({a})",
            "jax.jvp({f}, ({a},), (jnp.cos({a}),))[1]",
            "jax.vjp({f}, {a})[1](jnp.sin({a}))[0]",
            "jax.vmap(lambda s: {f}(s * {a}))(np.array([0.5, -1.0], dtype)).sum(0)",
        ]
        way = self.choose(ways)
        return way.format(f=name, a=v.name), v.shape, 9

    def custom(self):
        """A function with a derivative of its own; of forward mode, which serves every nest."""
        v = self.pick()
        name = f"g{len(self.lines)}"
        self.lines += [
            f"{name} = jax.custom_jvp(lambda z, s: jnp.sin(z) * s)",
            f"{name}.defjvps(lambda t, y, z, s: jnp.cos(z) * s * t,",
            "              lambda t, y, z, s: jnp.sin(z) * t)",
        ]
        return f"{name}({v.name}, jnp.cos(jnp.sum({v.name})))", v.shape, BOUND

    # -- the program

    def statement(self):
        kinds = [self.unary, self.binary, self.reduce, self.along, self.product]
        kinds += [self.reshaped, self.indexed, self.closure, self.custom]
        made = self.choose(kinds)()
        if made is None or math.prod(made[1]) > SIZE or len(made[1]) > 3:
            return
        text, shape, bound = made
        if bound > BOUND:
            text = self.choose(["jnp.tanh({})", "1.5 * jnp.sin({})", "jnp.arctan({})"]).format(text)
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.variables.append(Variable(name, tuple(shape)))

    def program(self, shape, statements):
        self.variables.append(Variable("x", shape))
        while len(self.variables) <= statements:
            self.statement()
        last = [v.name for v in self.variables[-2:]]
        self.lines.append(f"return jnp.sum({last[0]}) * 0.3 + {last[1]}")


def _swapped(shape):
    swapped = list(shape)
    swapped[0], swapped[-1] = shape[-1], shape[0]
    return tuple(swapped)


# A transform, or a way of using it, at x: of `lambda y: inner(y, x)`, or of its `total`, a scalar.
TRANSFORMS = {
    "jit": ["return jax.jit(lambda y: inner(y, x))(x)"],
    "grad": ["return jax.grad(lambda y: total(inner(y, x)))(x)"],
    "grad_both": [
        "a, b = jax.grad(lambda y, z: total(inner(y, z)), argnums=(0, 1))(x, x)",
        "return a + b",
    ],
    "value_and_grad": [
        "value, slope = jax.value_and_grad(lambda y: total(inner(y, x)))(x)",
        "return value + slope",
    ],
    "jvp": ["return jax.jvp(lambda y: inner(y, x), (x,), (direction(x),))[1]"],
    "vjp": [
        "value, pull = jax.vjp(lambda y: inner(y, x), x)",
        "return pull(weights(value))[0]",
    ],
    "linearize": [
        "value, push = jax.linearize(lambda y: inner(y, x), x)",
        "return value + push(direction(x))",
    ],
    "linearize_vmap": [
        "value, push = jax.linearize(lambda y: inner(y, x), x)",
        "return jax.vmap(push)(jnp.stack([direction(x), jnp.sin(x)]))",
    ],
    "jacfwd": ["return jax.jacfwd(lambda y: inner(y, x))(x)"],
    "jacrev": ["return jax.jacrev(lambda y: inner(y, x))(x)"],
    "hessian": ["return jax.hessian(lambda y: total(inner(y, x)))(x)"],
    "vmap": ["return jax.vmap(lambda y: inner(y, x))(jnp.stack([x, 0.5 * x, -x]))"],
    "vmap_both": ["return jax.vmap(inner)(jnp.stack([x, 0.5 * x]), jnp.stack([-x, x]))"],
    "vmap_last": [
        "return jax.vmap(inner, in_axes=(-1, None), out_axes=-1)(jnp.stack([x, 0.5 * x], -1), x)",
    ],
    "vmap_scale": ["return jax.vmap(lambda s: inner(s * x, x))(jnp.array([0.5, -0.7]))"],
}
# What the function inside makes of its variable y and of the argument x outside of it.
INNER = [
    "{f}(y)",
    "{f}(y)",
    "{f}(y * jnp.cos(x))",
    "{f}(0.6 * y + 0.4 * x)",
    "jnp.sum(jnp.sin(x)) * {f}(y)",
]
# Each makes the program a few times larger: what they stand around is kept short.
HEAVY = ("grad", "grad_both", "value_and_grad", "vjp", "jacrev", "jacfwd", "hessian")
HEAD = """\
def build(jax):
    jnp, lax, nn = jax.numpy, jax.lax, jax.nn
    dtype = jnp.array(0.0).dtype  # float32 or float64

    def direction(x):
        return jnp.cos(1.3 * x + 0.5)

    def weights(y):
        return jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape)

    def total(y):
        return jnp.sum(weights(y) * y)
"""


def generate(seed):
    """The program of a seed: the same on every machine."""
    rng = np.random.default_rng(seed)
    writer = Writer(rng)
    shape = writer.choose([(), (2,), (3,), (4,), (2, 2)])
    depth = rng.choice([1, 2, 3], p=[0.2, 0.4, 0.4])
    while True:
        kinds = [writer.choose(TRANSFORMS) for _ in range(depth)]
        if kinds.count("hessian") < 2:
            break
    heavy = sum(kind in HEAVY for kind in kinds) + 2 * kinds.count("hessian")
    writer.program(shape, int(rng.integers(3, max(4, 9 - heavy))))
    lines = [f"x = jnp.array({writer.numbers(shape)})", *writer.constants, "", "def f0(x):"]
    lines += [f"    {line}" for line in writer.lines]
    for i, kind in enumerate(kinds):
        made = writer.choose(INNER).format(f=f"f{i}")
        lines += ["", f"def inner{i}(y, x):", f"    return {made}"]
        lines += ["", f"def f{i + 1}(x):", f"    inner = inner{i}"]
        lines += [f"    {line}" for line in TRANSFORMS[kind]]
    levels = ", ".join(f"(inner{i}, f{i + 1})" for i in range(len(kinds)))
    lines += ["", f"return x, [{levels}]"]
    text = HEAD + "\n".join(["", *(f"    {line}".rstrip() for line in lines), ""])
    return Program(seed, text, kinds)


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        print(generate(seed).described())
