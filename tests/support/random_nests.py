"""Random programs of regions in regions, whose values and derivatives plain NumPy knows.

A program is a function of a vector `s` and of known values. Its statements call jitted functions,
loops, branches, functions with rules of users and transforms of functions, in one another to a
depth of three; operands and results of each are a mix of linear values (of `s`), known floats,
integers and bools, of shapes (), (2,) and (0,). Some functions return an argument, a value twice,
a constant, or None.

Programs are text that two frameworks run: weft, and `Plain`, where loops are loops and derivatives
come from dual numbers.

usage: random_nests.py SEED [SEED ...]     prints the programs
"""

import itertools
import sys
from dataclasses import dataclass, field

import numpy as np

LENGTH = 2
SHAPES = ((), (), (LENGTH,), (LENGTH,), (0,))
MAX_LEVEL = 3


# ---- the oracle


class Dual:
    """x + t * e, with e * e = 0, of one of the derivatives that are being taken."""

    __array_ufunc__ = None

    def __init__(self, level, x, t):
        self.level, self.x, self.t = level, x, t

    def __add__(self, other):
        return mixed(lambda x, y: x + y, lambda x, y, t, u: t + u, self, other)

    def __mul__(self, other):
        return mixed(lambda x, y: x * y, lambda x, y, t, u: t * y + x * u, self, other)

    def __truediv__(self, other):
        return mixed(lambda x, y: x / y, lambda x, y, t, u: t / y - x / y * (u / y), self, other)

    def __rtruediv__(self, other):
        return mixed(lambda x, y: x / y, lambda x, y, t, u: t / y - x / y * (u / y), other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + other * -1.0

    def __rsub__(self, other):
        return self * -1.0 + other

    def __getitem__(self, index):
        return linear(lambda x: x[index], self)

    def __gt__(self, other):
        return plain(self) > plain(other)


def plain(x):
    while isinstance(x, Dual):
        x = x.x
    return x


def parts(level, x):
    return (x.x, x.t) if isinstance(x, Dual) and x.level == level else (x, x * 0.0)


def mixed(value, tangent, a, b):
    level = max(x.level for x in (a, b) if isinstance(x, Dual))
    (x, t), (y, u) = parts(level, a), parts(level, b)
    return Dual(level, value(x, y), tangent(x, y, t, u))


def linear(f, *xs):
    levels = [x.level for x in xs if isinstance(x, Dual)]
    if not levels:
        return f(*xs)
    both = [parts(max(levels), x) for x in xs]
    return Dual(max(levels), linear(f, *(x for x, _ in both)), linear(f, *(t for _, t in both)))


def smooth(f, slope):
    def applied(x):
        if not isinstance(x, Dual):
            return f(x)
        return Dual(x.level, applied(x.x), slope(x.x) * x.t)

    return applied


def leaves(tree):
    if tree is None:
        return []
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def mapped(f, tree, *rest):
    if tree is None:
        return None
    if isinstance(tree, tuple | list):
        return tuple(mapped(f, *same) for same in zip(tree, *rest, strict=True))
    return f(tree, *rest)


def is_float(x):
    return np.asarray(plain(x)).dtype.kind == "f"


class Rule:
    def __init__(self, f):
        self.f = f

    def __call__(self, *args):
        return self.f(*args)

    def defjvp(self, rule):
        pass

    def defvjp(self, forward, backward):
        pass


class Plain:
    """What the programs use, in NumPy."""

    levels = itertools.count(1)

    # -- arrays
    sin = staticmethod(smooth(np.sin, lambda x: Plain.cos(x)))
    cos = staticmethod(smooth(np.cos, lambda x: Plain.sin(x) * -1.0))
    tanh = staticmethod(smooth(np.tanh, lambda x: Plain.square(Plain.tanh(x)) * -1.0 + 1.0))

    @staticmethod
    def square(x):
        return x * x

    @staticmethod
    def total(x):
        return linear(np.sum, x)

    @staticmethod
    def stack(xs):
        return linear(lambda *parts: np.stack(parts), *xs)

    @staticmethod
    def where(c, x, y):
        return linear(lambda a, b: np.where(c, a, b), x, y)

    @staticmethod
    def spread(x, shape):
        return x * np.ones(shape)

    @staticmethod
    def f(x):
        return x if isinstance(x, Dual) else np.asarray(x, np.float64)

    @staticmethod
    def i(x):
        return np.asarray(plain(x)).astype(np.int32)

    @staticmethod
    def b(x):
        return np.asarray(plain(x)).astype(bool)

    # -- regions
    jit = checkpoint = staticmethod(lambda f: f)
    custom_jvp = custom_vjp = Rule

    @staticmethod
    def stop_gradient(x):
        return plain(x)

    @staticmethod
    def note(*args):
        pass

    @staticmethod
    def fori_loop(start, stop, body, carry):
        for i in range(start, stop):
            carry = body(np.int32(i), carry)
        return carry

    @staticmethod
    def while_loop(holds, body, carry):
        while holds(carry):
            carry = body(carry)
        return carry

    @staticmethod
    def scan(body, carry, xs, length, reverse, like):
        ys = [None] * length
        for i in reversed(range(length)) if reverse else range(length):
            carry, ys[i] = body(carry, mapped(lambda x, i=i: x[i], xs))
        if not length:
            return carry, like
        return carry, mapped(lambda *same: Plain.stack(same), *ys)

    @staticmethod
    def cond(p, true, false, *args):
        return true(*args) if p else false(*args)

    @staticmethod
    def switch(i, branches, *args):
        return branches[min(max(int(i), 0), len(branches) - 1)](*args)

    @staticmethod
    def vmap(f, in_axes):
        def each(*args):
            lane = lambda k: [
                a if ax is None else mapped(lambda x: x[k], a)
                for a, ax in zip(args, in_axes, strict=True)
            ]
            return mapped(lambda *same: Plain.stack(same), f(*lane(0)), f(*lane(1)))

        return each

    @staticmethod
    def solve(d, b):
        return b / d

    # -- transforms
    @staticmethod
    def jvp(f, primals, tangents):
        level = next(Plain.levels)

        def dual(x, t):
            return Dual(level, x, t) if is_float(x) else x

        out = f(*(dual(x, t) for x, t in zip(primals, tangents, strict=True)))
        return mapped(lambda y: parts(level, y)[0], out), mapped(
            lambda y: parts(level, y)[1] if is_float(y) else None, out
        )

    @staticmethod
    def linearize(f, *primals):
        return f(*primals), lambda *ts: Plain.jvp(f, primals, ts)[1]

    @staticmethod
    def pullback(push, primals, cts):
        """What pairs with each unit vector as cts do with what `push` makes of it."""
        zeros = [np.zeros(np.shape(plain(x))) for x in primals]
        made = []
        for k, zero in enumerate(zeros):
            entries = []
            if not is_float(primals[k]):
                made.append(None)
                continue
            for at in np.ndindex(zero.shape):
                unit = zero.copy()
                unit[at] = 1.0
                out = push(*zeros[:k], unit, *zeros[k + 1 :])
                entries.append(
                    sum(
                        (
                            Plain.total(y * ct)
                            for y, ct in zip(leaves(out), leaves(cts), strict=True)
                        ),
                        np.zeros(()),
                    )
                )
            if zero.size:
                zero = Plain.stack(entries) if zero.ndim else entries[0]
            made.append(zero)
        return tuple(made)

    @staticmethod
    def vjp(f, *primals):
        push = lambda *ts: Plain.jvp(f, primals, ts)[1]
        return f(*primals), lambda cts: Plain.pullback(push, primals, cts)

    @staticmethod
    def grad(f, *primals):
        return Plain.vjp(f, *primals)[1](np.ones(()))

    @staticmethod
    def linear_transpose(f, *primals):
        return lambda cts: Plain.pullback(f, primals, cts)


# ---- weft as the programs see it


class Weft:
    def __init__(self, weft):
        np_, lax = weft.numpy, weft.lax
        self.weft = weft
        self.sin, self.cos, self.tanh, self.where = np_.sin, np_.cos, np_.tanh, np_.where
        self.square, self.total, self.stack = np_.square, np_.sum, np_.stack
        self.jit, self.checkpoint = weft.jit, weft.checkpoint
        self.custom_jvp, self.custom_vjp = weft.custom_jvp, weft.custom_vjp
        self.fori_loop, self.while_loop = lax.fori_loop, lax.while_loop
        self.cond, self.switch, self.stop_gradient = lax.cond, lax.switch, lax.stop_gradient
        self.linear_transpose = weft.linear_transpose

    def moved(self, xs, ts):
        """Tangents or cotangents, with those of integers as weft wants them."""
        zero = lambda x, t: (
            t if np.issubdtype(x.dtype, np.floating) else np.zeros(x.shape, self.weft.float0)
        )
        return mapped(zero, xs, ts)

    def jvp(self, f, primals, tangents):
        return self.weft.jvp(f, primals, self.moved(primals, tangents))

    def linearize(self, f, *primals):
        y, push = self.weft.linearize(f, *primals)
        return y, lambda *ts: push(*self.moved(primals, ts))

    def vjp(self, f, *primals):
        y, pull = self.weft.vjp(f, *primals)
        return y, lambda cts: pull(self.moved(y, cts))

    def grad(self, f, *primals):
        floats = [i for i, x in enumerate(primals) if np.issubdtype(x.dtype, np.floating)]
        made = dict(zip(floats, self.weft.grad(f, tuple(floats))(*primals), strict=True))
        return tuple(made.get(i) for i in range(len(primals)))

    def spread(self, x, shape):
        return x * self.weft.numpy.ones(shape)

    def f(self, x):
        return self.weft.numpy.asarray(x, np.float64)

    def i(self, x):
        return self.weft.numpy.asarray(x).astype(np.int32)

    def b(self, x):
        return self.weft.numpy.asarray(x).astype(bool)

    def note(self, *args):
        self.weft.debug.callback(lambda *_: None, *args)

    def scan(self, body, carry, xs, length, reverse, like):
        return self.weft.lax.scan(body, carry, xs, length=length, reverse=reverse)

    def vmap(self, f, in_axes):
        return self.weft.vmap(f, in_axes=in_axes)

    def solve(self, d, b):
        return self.weft.lax.custom_linear_solve(
            lambda x: x * d, b, lambda matvec, b: b / d, symmetric=True
        )


# ---- programs


@dataclass(frozen=True)
class Variable:
    name: str
    kind: str  # "L": linear in s, "K": a known float, "I": an int, "B": a bool
    shape: tuple


@dataclass
class Writer:
    rng: np.random.Generator
    is_linear: bool  # else all floats are smooth functions of s
    lines: list = field(default_factory=list)
    count: int = 0
    indent: int = 1
    level: int = 0
    forward: bool = False  # whether forward mode may go through: no custom_vjp

    def choose(self, options):
        options = list(options)
        return options[self.rng.integers(len(options))]

    def chance(self, p):
        return self.rng.random() < p

    def name(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count}"

    def write(self, text):
        self.lines.append("    " * self.indent + text)

    # -- expressions

    def pick(self, env, kind, shape=None):
        fitting = [v for v in env if v.kind == kind and shape in (None, v.shape)]
        return self.choose(fitting[-5:]) if fitting else None

    def term(self, env, kind, shape):
        """An expression of this kind and shape; of a linear one there must be some in env."""
        v = self.pick(env, kind, shape)
        if v and self.chance(0.8):
            return v.name
        if kind == "I":
            k = self.pick(env, "K", ())
            options = [str(int(self.rng.integers(4)))]
            if v:
                options += [f"({v.name} + 1) % 4"]
            if k:
                options += [f"w.i({k.name} > 0.1)"]
            return f"w.i({self.choose(options)})"
        if kind == "B":
            k, i = self.pick(env, "K", ()), self.pick(env, "I")
            options = [f"w.b({self.chance(0.5)})"]
            if k:
                options += [f"({k.name} > 0.2)"] * 2
            if i:
                options += [f"({i.name} > 1)"]
            return self.choose(options)
        v = v or self.pick(env, kind)
        if v is None:
            assert kind == "K"
            return f"w.f(np.full({shape}, {self.rng.uniform(-1, 1):.2f}))"
        if v.shape == shape:
            return v.name
        return f"w.spread(w.total({v.name}), {shape})"

    def expression(self, env, kind, shape):
        t = lambda kind=kind, shape=shape: self.term(env, kind, shape)
        options = ["{a}", "{a}"]
        if kind == "L":
            options += [
                "{a} + {b}",
                "{a} * {k}",
                "-{a}",
                "w.where({p}, {a}, {b})",
                "{a} * w.cos({k})",
            ]
            options += ["{a} / (2.0 + w.square({k}))", "w.solve(1.5 + w.square({k}), {a})"]
            options += ["{a}[::-1]"] if shape else []
        elif kind == "K":
            options += ["w.sin({a})", "w.tanh({a}) + w.cos({k})", "w.sin({a}) * {k}", "{a} * 0.5"]
            options += [
                "w.where({p}, {a}, {k})",
                "{a} + w.f({i})",
                "w.solve(1.5 + w.square({a}), {k})",
            ]
            options += ["w.stop_gradient({a}) * w.cos({k})"]
        text = self.choose(options)
        parts = {"a": t(), "b": t()}
        for letter, (k, s) in {"k": ("K", shape), "p": ("B", ()), "i": ("I", ())}.items():
            if f"{{{letter}}}" in text:
                parts[letter] = t(k, s)
        return text.format(**parts)

    def wrapped(self, env, kind, shape):
        """Of exactly the dtype of its kind, as carries must be."""
        return f"w.{'f' if kind in 'LK' else kind.lower()}({self.expression(env, kind, shape)})"

    # -- functions

    def kinds(self, env):
        """A kind and shape that an expression over env can have."""
        options = ["K", "K", "I", "B"] + (["L"] * 4 if self.pick(env, "L") else [])
        kind = self.choose(options)
        return kind, self.choose(SHAPES) if kind in "LK" else ()

    def function(self, params, outputs, env=(), exact=False, first=""):
        """Writes a function of `params` that may use env; returns its name."""
        name = self.name("g")
        names = [self.name("a") for _ in params]
        self.write(f"def {name}({', '.join([*filter(None, [first]), *names])}):")
        inner = [*env, *(Variable(n, k, s) for n, (k, s) in zip(names, params, strict=True))]
        if first:
            inner.append(Variable(first, "I", ()))
        self.indent += 1
        self.level += 1
        for _ in range(int(self.rng.integers(3 if self.level < MAX_LEVEL else 2))):
            self.statement(inner)
        make = self.wrapped if exact else self.expression
        texts = []
        for k, s in outputs:
            v = self.pick(inner, k, s)
            texts.append(v.name if v and not exact and self.chance(0.4) else make(inner, k, s))
        self.write(f"return ({''.join(t + ', ' for t in texts)})")
        self.indent -= 1
        self.level -= 1
        return name

    def operands(self, env, most=4):
        chosen = [self.choose(env) for _ in range(int(self.rng.integers(1, most + 1)))]
        return [(v.kind, v.shape) for v in chosen], ", ".join(v.name for v in chosen)

    def outputs(self, env, most=4):
        return [self.kinds(env) for _ in range(int(self.rng.integers(1, most + 1)))]

    def bind(self, env, outputs, text):
        names = [self.name() for _ in outputs]
        self.write(f"{', '.join(names)}, = {text}")
        env.extend(Variable(n, k, s) for n, (k, s) in zip(names, outputs, strict=True))

    def seen(self, env):
        return list(env) if self.chance(0.6) else []

    def scope(self, env, params):
        """What a function of params within env can make outputs of."""
        return [*env, *(Variable("", k, s) for k, s in params)]

    # -- statements

    def call(self, env):
        params, args = self.operands(env)
        seen = self.seen(env)
        outputs = self.outputs(self.scope(seen, params))
        f = self.function(params, outputs, seen)
        way = self.choose(
            ["w.jit({f})", "w.jit({f})", "w.checkpoint({f})", "w.jit(w.checkpoint({f}))"]
        )
        text = f"{way.format(f=f)}({args})"
        if self.chance(0.2):
            text = f"w.jit(lambda *xs: ({way.format(f=f)}(*xs), None, (), 3.0))({args})[0]"
        self.bind(env, outputs, text)

    def loop(self, env):
        params, args = self.operands(env)
        f = self.function(params, params, self.seen(env), exact=True, first="i")
        n = self.rng.integers(4)
        self.bind(env, params, f"w.fori_loop(0, {n}, lambda i, c: {f}(i, *c), ({args},))")

    def scan(self, env):
        carry, args = self.operands(env, 3)
        slices = [self.kinds(env) for _ in range(int(self.rng.integers(3)))]
        length = int(self.rng.integers(4))
        stacked = [
            "w.stack([" + ", ".join(self.wrapped(env, k, s) for _ in range(2)) + "])"
            for k, s in slices
        ]
        if slices:
            length = 2
        seen = self.seen(env)
        ys = self.outputs(self.scope(seen, carry + slices), 3)
        f = self.function(carry + slices, carry + ys, seen, exact=True)
        n = len(carry)
        self.write(f"def s{f}(c, x):")
        self.write(f"    out = {f}(*c, *x)")
        self.write(f"    return out[:{n}], out[{n}:]")
        xs = f"({''.join(text + ', ' for text in stacked)})"
        dtypes = {"L": "float", "K": "float", "I": "np.int32", "B": "bool"}
        like = ", ".join(f"np.zeros({(length, *s)}, {dtypes[k]})" for k, s in ys)
        made = self.name("r")
        reverse = self.chance(0.3)
        self.write(f"{made} = w.scan(s{f}, ({args},), {xs}, {length}, {reverse}, ({like},))")
        self.bind(env, carry, f"{made}[0]")
        if length:
            for i, (kind, shape) in enumerate(ys):
                self.bind(env, [(kind, shape)], f"({made}[1][{i}][{length - 1}],)")

    def branch(self, env):
        params, args = self.operands(env)
        seen = self.seen(env)
        outputs = self.outputs(self.scope(seen, params))
        n = 2 if self.chance(0.6) else 3
        fs = [self.function(params, outputs, seen, exact=True) for _ in range(n)]
        if n == 2:
            text = f"w.cond({self.term(env, 'B', ())}, {fs[0]}, {fs[1]}, {args})"
        else:
            text = f"w.switch({self.term(env, 'I', ())}, [{', '.join(fs)}], {args})"
        self.bind(env, outputs, text)

    def repeat(self, env):
        """A while: what it changes has no derivative, what it leaves alone may have one."""
        known = [("K", self.choose(SHAPES)), ("I", ())]
        starts = [f"w.stop_gradient({self.term(env, k, s)})" for k, s in known]
        kept, args = self.operands(env, 2)
        f = self.function(known, known, [], exact=True)
        self.bind(
            env,
            [("I", ()), *known, *kept],
            f"w.while_loop(lambda c: c[0] < {self.rng.integers(4)}, "
            f"lambda c: (c[0] + 1, *{f}(*c[1:3]), *c[3:]), (w.i(0), {', '.join(starts)}, {args}))",
        )

    def lanes(self, env):
        params, _ = self.operands(env, 3)
        axes = [0, *(self.choose([0, None]) for _ in params[1:])]
        args = []
        for (k, s), axis in zip(params, axes, strict=True):
            one = lambda k=k, s=s: self.wrapped(env, k, s)
            args.append(one() if axis is None else f"w.stack([{one()}, {one()}])")
        seen = self.seen(env)
        outputs = self.outputs(self.scope(seen, params), 3)
        f = self.function(params, outputs, seen, exact=True)
        made = self.name("r")
        self.write(f"{made} = w.vmap({f}, in_axes={tuple(axes)})({', '.join(args)})")
        self.bind(env, outputs, f"({''.join(f'{made}[{i}][1], ' for i in range(len(outputs)))})")

    def smooth_function(self, params, outputs, env):
        forward, self.forward = self.forward, True
        f = self.function(params, outputs, env, exact=True)
        self.forward = forward
        return f

    def differentiable(self, most=3):
        """Kinds and shapes of what a function takes or gives that is to be differentiated."""
        more = [self.choose([("I", ()), *(("K", s) for s in SHAPES)]) for _ in range(most - 1)]
        return [("K", self.choose(SHAPES)), *more[: int(self.rng.integers(most))]]

    def derivative(self, env):
        """Of a function of known values; tangents and cotangents may be linear ones."""
        params, outputs = self.differentiable(), self.differentiable(2)
        xs = "".join(self.wrapped(env, k, s) + ", " for k, s in params)
        seen = [v for v in self.seen(env) if v.kind != "L"]
        f = self.smooth_function(params, outputs, seen)
        kind = "L" if self.pick(env, "L") and self.chance(0.7) else "K"
        move = lambda ks: "".join(
            f"{self.wrapped(env, kind, s) if k == 'K' else None}, " for k, s in ks
        )
        wrap = self.choose(["{}", "{}", "w.jit({})", "w.checkpoint({})"]).format(f)
        made = self.name("r")

        def bind_moved(ks, text):
            for i, (k, s) in enumerate(ks):
                if k == "K":
                    self.bind(env, [(kind, s)], f"({text}[{i}],)")

        way = self.choose(["jvp", "jvp", "linearize", "vjp", "grad"])
        if way == "jvp":
            self.write(f"{made} = w.jvp({wrap}, ({xs}), ({move(params)}))")
            self.bind(env, outputs, f"{made}[0]")
            bind_moved(outputs, f"{made}[1]")
        elif way == "linearize":
            self.write(f"{made} = w.linearize({wrap}, {xs})")
            self.bind(env, outputs, f"{made}[0]")
            self.write(f"{made} = {made}[1]({move(params)})")
            bind_moved(outputs, made)
        elif way == "vjp":
            self.write(f"{made} = w.vjp({wrap}, {xs})")
            self.bind(env, outputs, f"{made}[0]")
            self.write(f"{made} = {made}[1](({move(outputs)}))")
            bind_moved(params, made)
        else:
            self.write(f"{made} = w.grad(lambda *xs: w.total({wrap}(*xs)[0]), {xs})")
            for i, (k, s) in enumerate(params):
                if k == "K":
                    self.bind(env, [(k, s)], f"({made}[{i}],)")

    def transposed(self, env):
        linear_params = [("L", self.choose(SHAPES))]
        seen = [v for v in env if v.kind != "L"]
        outputs = [("L", self.choose(SHAPES)) for _ in range(int(self.rng.integers(1, 3)))]
        f = self.function(linear_params, outputs, seen, exact=True)
        kind = "L" if self.pick(env, "L") and self.chance(0.7) else "K"
        cts = "".join(self.wrapped(env, kind, s) + ", " for _, s in outputs)
        example = f"w.f(np.zeros({linear_params[0][1]}))"
        self.bind(
            env, [(kind, linear_params[0][1])], f"w.linear_transpose({f}, {example})(({cts}))"
        )

    def ruled(self, env):
        """A function whose rule comes from a transform of the function."""
        forwards = self.forward or self.chance(0.6)
        if self.is_linear and self.chance(0.5):  # the rule is not asked, for the call is linear
            params, args = self.operands(env)
            outputs = self.outputs(self.scope([], params))
        else:
            params, outputs = self.differentiable(), self.differentiable(2)
            args = ", ".join(self.wrapped(env, k, s) for k, s in params)
        f = self.smooth_function(params, outputs, [])
        rule = self.name("h")
        if forwards:
            self.write(f"{rule} = w.custom_jvp({f})")
            body = self.choose(
                [
                    f"w.jvp({f}, p, t)",
                    f"w.jvp(w.jit({f}), p, t)",
                    f"w.jit(lambda p, t: w.jvp({f}, p, t))(p, t)",
                    f"(lambda made: (made[0], made[1](*t)))(w.linearize({f}, *p))",
                    f"({f}(*p), w.jvp({f}, p, t)[1])",
                ]
            )
            self.write(f"{rule}.defjvp(lambda p, t: {body})")
        else:
            self.write(f"{rule} = w.custom_vjp({f})")
            self.write(
                f"{rule}.defvjp(lambda *p: ({f}(*p), p), lambda p, ct: w.vjp({f}, *p)[1](ct))"
            )
        self.bind(env, outputs, f"{rule}({args})")

    def assigned(self, env):
        kind, shape = self.kinds(env)
        self.bind(env, [(kind, shape)], f"({self.expression(env, kind, shape)},)")

    def noted(self, env):
        v = self.pick(env, "K") or self.pick(env, "I")
        if v:
            self.write(f"w.note({v.name})")

    def statement(self, env):
        if self.level >= MAX_LEVEL or self.chance(0.15):
            return self.assigned(env)
        if self.chance(0.04):
            return self.noted(env)
        kinds = [self.call, self.call, self.loop, self.scan, self.scan, self.branch, self.repeat]
        kinds += [self.lanes, self.derivative, self.derivative, self.transposed, self.ruled]
        return self.choose(kinds)(env)


@dataclass
class Program:
    seed: int
    text: str
    is_linear: bool

    def function(self, framework):
        """f(s, k, n): of a vector, in which it may be linear, a known vector and an int."""
        names = {"np": np, "w": framework}
        exec(compile(self.text, f"<nest {self.seed}>", "exec"), names)
        return names["f"]

    def arguments(self):
        rng = np.random.default_rng(self.seed)
        draw = lambda: rng.uniform(-1, 1, LENGTH).round(3)
        return draw(), draw(), np.int32(rng.integers(3))


def generate(seed):
    rng = np.random.default_rng(seed)
    is_linear = seed % 2 == 0
    writer = Writer(rng, is_linear)
    shape = (LENGTH,)
    env = [Variable("k", "K", shape), Variable("n", "I", ())]
    env.append(Variable("s", "L" if is_linear else "K", shape))
    for _ in range(int(rng.integers(1, 4))):
        writer.statement(env)
    kind = "L" if is_linear else "K"
    late = [v for v in env if v.kind == kind][-3:]
    total = " + ".join(f"w.total({v.name})" for v in late)
    last = writer.pick(env, kind, shape)
    text = "\n".join(["def f(s, k, n):", *writer.lines, f"    return {total}, {last.name}"])
    return Program(seed, text + "\n", is_linear)


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        print(generate(seed).text)
