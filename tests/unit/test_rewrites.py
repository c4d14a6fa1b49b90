"""Every rewrite and every fold keeps values to the bit: zeros keep their signs, nan stays nan.

The programs are those of tests/ir/NAME.ir, in which the rewrite NAME fires, the element-wise ones
in other dtypes too. Each runs as it stands, with that rewrite only and with all passes, on values
that tell rewrites apart. Subnormals count as zeros of their sign: XLA flushes them on CPU.
"""

import itertools
import operator
import re

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

import weft
import weft.numpy as wnp
from weft import compiler
from weft.runtime.buffers import to_numpy
from weft.runtime.compile import Module, compile_module

HERE = ROOT / "tests" / "ir"
DTYPES = {
    "bool": np.dtype(bool), "i8": np.dtype(np.int8), "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "c64": np.dtype(np.complex64),
}  # fmt: skip
# Sums are taken in another order, or a power is rounded otherwise: test_exact_arithmetic says by
# how much.
ROUNDS = {"scan_products", "pow_half"}
# Programs that are no elementwise identities: in the dtypes of their text only.
BY_OP = {name: op for op, name, _ in compiler.rewrites()}
ELEMENTWISE = {op["name"] for op in compiler.registry() if op["elementwise"]}


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


def specials(dtype):
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 5, info.max, info.min, info.max - 1, info.min + 1], dtype)
    info = ml_dtypes.finfo(real_part(dtype))
    real = [0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan, info.max, info.smallest_normal]
    if dtype == np.float16:  # XLA computes it in f32, where these are normal
        real.append(info.smallest_subnormal)
    if dtype.kind == "c":
        few = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]
        return np.array([complex(a, b) for a in few for b in few], dtype)
    return np.array(real).astype(dtype)


def real_part(dtype):
    return {"c8": np.dtype(np.float32), "c16": np.dtype(np.float64)}.get(dtype.str[1:], dtype)


def canonical(x):
    """The bits of an array, with one nan and without subnormals."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return canonical(np.stack([x.real, x.imag]))
    if x.dtype.kind not in "fV":
        return x
    wide = x.astype(np.float64)
    tiny = np.abs(wide) < float(ml_dtypes.finfo(x.dtype).smallest_normal)
    wide = np.where(tiny, np.copysign(0.0, wide), np.where(np.isnan(wide), np.nan, wide))
    return wide.view(np.uint64)


class Compiled:
    """Graphs, compiled together as they stand: one function of the arguments of each."""

    def __init__(self, graphs):
        device = weft.devices()[0]
        assert device is not None
        self.types = [g.out_types for g in graphs]
        avals = [[weft.ShapeDtypeStruct(*t) for t in g.in_types] for g in graphs]
        calls = [weft.jit(lambda *xs, g=g: g(*xs)) for g in graphs]
        whole = weft.jit(lambda xss: [call(*xs) for call, xs in zip(calls, xss, strict=True)])
        text = compiler.emit_stablehlo(whole.trace(avals).graph)
        self.loaded = compile_module(Module(text, (0,))).executable

    def __call__(self, xss):
        """The results of each graph."""
        buffers = [wnp.asarray(x)._buffer for xs in xss for x in xs]
        results = self.loaded.execute_sharded(buffers).disassemble_into_single_device_arrays()
        results = iter([r[0] if isinstance(r, list) else r for r in results])
        return [
            [to_numpy(next(results), np.dtype(dtype), tuple(shape)) for shape, dtype in types]
            for types in self.types
        ]


def programs(name):
    """The inputs of the file of a rewrite."""
    parts = (HERE / f"{name}.ir").read_text().split("// ---\n")
    for part in parts[::2]:
        yield "\n".join(line for line in part.splitlines() if not line.startswith("//"))


def in_dtype(text, dtype):
    """A program of f32 (or i32) values with another dtype in its place, or None."""
    source = "f32" if "f32[" in text else "i32"
    if source not in text or "[" in dtype:
        return None
    kind = DTYPES[dtype].kind

    def literal(match):
        value = float(match[1])
        if kind in "iu":
            usable = (
                value == int(value) and not (kind == "u" and value < 0)
                if np.isfinite(value)
                else False
            )
            return f"{int(value)}:{dtype}[]" if usable else "unusable"
        if kind == "c":
            if not np.isfinite(value):
                return "unusable"
            sign = "-" if np.signbit(value) else "+"
            return f"({value:g}{sign}0j):{dtype}[]" if value or sign == "-" else f"0j:{dtype}[]"
        return f"{value!r}:{dtype}[]"

    text = re.sub(rf"(-?(?:inf|\d[\d.e+-]*)):{source}\[\]", literal, text)
    text = text.replace(f"{source}[", f"{dtype}[").replace("float32", DTYPES[dtype].name)
    try:
        return compiler.parse(text)
    except weft.errors.WeftError:
        return None  # not a dtype of the op


def fills(graph, tame):
    """Arguments that bring every special value of an input together with every one of the next."""
    types = list(zip(graph.in_types, itertools.count(), strict=False))
    pools = []
    for (shape, dtype), i in types:
        pool = np.arange(4).astype(dtype) if tame else specials(np.dtype(dtype))
        pools.append((shape, np.roll(pool, i)))
    longest = max((len(pool) for _, pool in pools), default=0)
    for shift in range(longest):
        yield [
            np.resize(np.roll(pool, shift * i), shape) if len(pools) > 1
            else np.resize(np.roll(pool, shift * max(1, int(np.prod(shape)))), shape)
            for i, (shape, pool) in enumerate(pools)
        ]  # fmt: skip


def variants(name):
    for text in programs(name):
        yield compiler.parse(text)
        if BY_OP[name] in ELEMENTWISE or name in ("fold", "cse", "fusion", "inline_call"):
            for dtype in DTYPES:
                graph = in_dtype(text, dtype)
                if graph is not None:
                    yield graph


def fired(stats, name):
    return sum(dict(s["rewrites"]).get(name, 0) for s in stats)


PASSES = ["strip_rules", "lower_keys", "expand", "inline", "canonicalize", "fuse", "dce"]


@pytest.mark.parametrize("name", sorted(BY_OP))
def test_rewrite_keeps_bits(name):
    plain, rewritten = [], []
    for graph in variants(name):
        stats = []
        alone = compiler.optimize(graph, passes=PASSES, only=[name], verify=True, stats=stats)
        if not fired(stats, name):
            continue
        try:
            compiler.emit_stablehlo(graph)
        except weft.errors.NotImplementedRuleError:
            graph = compiler.optimize(graph, passes=["strip_rules", "lower_keys"])
        plain.append(graph)
        rewritten.append((alone, compiler.optimize(graph, verify=True)))
    assert plain, f"no program makes {name} fire"
    run_plain = Compiled(plain)
    run_rewritten = Compiled([form for forms in rewritten for form in forms])
    tame = name in ROUNDS or BY_OP[name] == "while"
    arguments = [list(fills(graph, tame)) for graph in plain]
    for k in range(max(map(len, arguments))):
        xss = [xs[k % len(xs)] for xs in arguments]
        results = iter(run_rewritten([xs for xs in xss for _ in range(2)]))
        for graph, forms, xs, expected in zip(plain, rewritten, xss, run_plain(xss), strict=True):
            for form in forms:
                for e, got in zip(expected, next(results), strict=True):
                    if not agree(e, got, name in ROUNDS):
                        pytest.fail(f"{name}: {graph}\n{form}\nof {xs}: {e} became {got}")


def agree(x, y, nearly=False):
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return np.allclose(x, y, rtol=1e-5) if nearly else np.array_equal(canonical(x), canonical(y))


def text_of(x, short):
    """A literal of a program's text."""
    if x.dtype.kind == "c":
        sign = "-" if np.signbit(x.imag) else "+"
        return f"({float(x.real)!r}{sign}{abs(float(x.imag))!r}j):{short}[]"
    return f"{x.item() if x.dtype.kind in 'biu' else float(x)!r}:{short}[]"


def value_of(text, dtype):
    """The value of a literal, None for the name of a value."""
    value, colon, _ = text.rpartition(":")
    if not colon:
        return None
    read = {"b": lambda s: s == "True", "c": complex, "i": int, "u": int}.get(dtype.kind, float)
    return np.asarray(read(value)).astype(dtype)


def parsed(*programs):
    for program in programs:
        try:
            return compiler.parse(program)
        except weft.errors.WeftError:
            pass
    return None


def operand_counts():
    return [
        (op["name"], op["num_operands"])
        for op in compiler.registry()
        if op["elementwise"] and not op["attrs"] and op["num_operands"] in (1, 2, 3)
    ]


@pytest.mark.parametrize("op, arity", operand_counts())
def test_fold_computes_what_runs(op, arity):
    """On all special values, what `fold` makes of literals is what the op makes of arrays."""
    graphs, arguments, folds = [], [], []
    for short, dtype in DTYPES.items():
        pool = specials(dtype)
        if dtype.kind == "c":
            pool = pool[:: 1 if arity == 1 else 5]
        elif arity == 3:
            pool = pool[[0, 1, 2, 3, -3, -2]] if dtype.kind != "b" else pool
        cases = list(itertools.product(pool, repeat=arity))
        n = len(cases)
        shown = [" ".join(text_of(x, short) for x in case) for case in cases]
        for out in dict.fromkeys([short, "bool", "f32", "f64", "c64", "c128"]):
            ops = "; ".join(f"y{i}:{out}[] = {op} {xs}" for i, xs in enumerate(shown))
            ys = ", ".join(f"y{i}" for i in range(n))
            names = [f"x{i}" for i in range(arity)]
            inputs = " ".join(f"{x}:{short}[{n}]" for x in names)
            scalars = parsed(f"{{ lambda ; . let {ops} in ({ys},) }}")
            arrays = parsed(
                f"{{ lambda ; {inputs}. let y:{out}[{n}] = {op} {' '.join(names)} in (y,) }}"
            )
            if scalars is not None and arrays is not None:
                break
        else:
            continue
        folded = str(compiler.optimize(scalars, passes=["fold"])).replace("\n", " ")
        texts = re.findall(r"(?:\([^()]*\)|[^\s,()]+)(?::\w+\[\])?", folded.rpartition(" in (")[2])
        out_dtype = np.dtype(scalars.out_types[0][1])
        values = [value_of(text, out_dtype) for text in texts[:n]]
        if all(v is None for v in values):
            continue
        graphs.append(arrays)
        arguments.append([np.array([c[i] for c in cases], dtype) for i in range(arity)])
        folds.append((cases, values))
    if not graphs:
        return
    for (cases, values), (executed,) in zip(folds, Compiled(graphs)(arguments), strict=True):
        folded = np.array(
            [got if v is None else v for v, got in zip(values, executed, strict=True)]
        )
        differs = canonical(folded) != canonical(executed)
        wrong = [
            f"{op} of {case} is {got}, folded to {value}"
            for case, value, got, bad in zip(cases, values, executed, differs.T, strict=True)
            if bad.any()
        ]
        assert not wrong, "\n".join(wrong)


X = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], np.float32)
# XLA itself takes x + 0 for x, so sums with +0 are not among them.
IDENTITIES = {
    "0 - x": lambda x: 0.0 - x,
    "-0 - x": lambda x: -0.0 - x,
    "x - 0": lambda x: x - 0.0,
    "x + -0": lambda x: x + -0.0,
    "x * 1": lambda x: x * 1.0,
    "x * -1": lambda x: x * -1.0,
    "-1 * x": lambda x: -1.0 * x,
    "x / 1": lambda x: x / 1.0,
    "x / 4": lambda x: x / 4.0,
    "x / -2": lambda x: x / -2.0,
    "x ** 1": lambda x: x**1,
    "x ** 2": lambda x: x**2,
    "x - -x": lambda x: x - (-x),
    "x + -x": lambda x: x + (-x),
    "-x + x": lambda x: (-x) + x,
    "-x * -x": lambda x: (-x) * (-x),
    "x - x": lambda x: x - x,
    "0 * x": lambda x: 0.0 * x,
    "- -x": lambda x: operator.neg(-x),
    "0 / x": lambda x: 0.0 / x,
    "1 / (0 - x)": lambda x: 1 / (0.0 - x),
    "zeros - x": lambda x: wnp.zeros_like(x) - x if isinstance(x, weft.Array) else 0.0 - x,
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_signed_zeros_are_those_of_numpy(dtype):
    x = X.astype(dtype)
    jitted = weft.jit(lambda v: {name: f(v) for name, f in IDENTITIES.items()})
    results = [jitted(v) for v in x]
    for name, f in IDENTITIES.items():
        with np.errstate(all="ignore"):
            expected = np.stack([np.asarray(f(v)) for v in x])
        compiled = np.stack([np.asarray(r[name]) for r in results])
        eager = np.asarray(f(wnp.asarray(x)))
        np.testing.assert_array_equal(canonical(compiled), canonical(expected), err_msg=name)
        np.testing.assert_array_equal(canonical(eager), canonical(expected), err_msg=name)


def test_division_by_a_zero_that_was_subtracted():
    """The sign of the zero decides between the infinities."""
    assert float(weft.jit(lambda x: 1 / (0.0 - x))(0.0)) == np.inf
    assert float(weft.jit(lambda x: 1 / (x - (-0.0)))(np.float32(0.0))) == np.inf
