"""Ops that XLA does not take in kernels, which are written in others there (OpDef::for_kernel), and
those that it takes as they are: bit for bit what a program without kernels gives. And what becomes
a kernel without being asked.
"""

import functools

import jaxlib
import numpy as np
import op_table
import pytest
from conftest import EVERYTHING

import weft
from weft import _core, lax, numpy as wnp
from weft.runtime import compile

FLOATS = [np.float32, np.float64]
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
ODD = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]
LANES = 6  # of each program, one step of a loop each


def _sample(dtype, *shape, seed=0):
    """Numbers of which some are equal; floats with every odd one."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random((LANES, *shape)) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -4, 5, (LANES, *shape)).astype(dtype)
    x = (np.round(2 * rng.standard_normal((LANES, *shape))) / 2).astype(dtype)
    odd = rng.permutation(x.size)[: len(ODD)]
    x.reshape(-1)[odd] = np.array(ODD[: len(odd)], dtype)
    return x


def _indices(dtype, low, high, *shape, seed=1):
    return np.random.default_rng(seed).integers(low, high, (LANES, *shape)).astype(dtype)


def _outcome(function, args, kernels):
    def run(*all_args):
        return lax.map(lambda each: function(*each), all_args)

    compiled = weft.jit(run, kernels=kernels).lower(*args).compile()
    # What XLA refused is compiled without the mark of kernels.
    in_kernel = bool(compiled.kernels) and "xla_cpu_small_call" in compiled.as_text()
    return [np.asarray(x) for x in weft.tree_util.tree_leaves(compiled(*args))], in_kernel


def _check(function, *args, nans=False, joins=False):
    """One kernel, and the same bits; with `nans`, any NaN is as good as another; with `joins`, a
    product may be added to another number without being rounded, as XLA does from 0.12 on."""
    with weft.enable_x64(True):
        made, in_kernel = _outcome(function, args, "always")
        expected, _ = _outcome(function, args, "never")
    assert in_kernel
    assert len(made) == len(expected)
    for x, y in zip(made, expected, strict=True):
        assert x.dtype == y.dtype
        if nans and x.dtype.kind == "f":
            x, y = (np.where(z != z, np.nan, z) for z in (x, y))
        if joins and not jaxlib.__version__.startswith("0.10."):
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)
        else:
            assert x.tobytes() == y.tobytes(), (x, y)


SCATTERS = {
    "scatter": lax.scatter,
    "add": lax.scatter_add,
    "sub": lax.scatter_sub,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}
MODES = {
    "clip": lax.GatherScatterMode.CLIP,
    "drop": lax.GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": lax.GatherScatterMode.PROMISE_IN_BOUNDS,
}


def _numbers(window, dropped, to):
    return lax.ScatterDimensionNumbers(window, dropped, to)


@pytest.mark.parametrize("count", [1, 3, 12])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", SCATTERS)
def test_scatter(op, mode, count):
    low, high = (0, 8) if mode == "promise_in_bounds" else (-3, 11)

    def function(x, i, u):
        numbers = _numbers((), (0,), (0,))
        return SCATTERS[op](x, i, u, numbers, mode=MODES[mode])

    indices = _indices(np.int32, low, high, count, 1)
    _check(function, _sample(np.float32, 8), indices, _sample(np.float32, count), nans=True)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, bool])
@pytest.mark.parametrize("op", ["scatter", "max"])
def test_scatter_dtypes(op, dtype):
    def function(x, i, u):
        return SCATTERS[op](x, i, u, _numbers((), (0,), (0,)), mode="drop")

    _check(function, _sample(dtype, 8), _indices(np.int32, -2, 10, 7, 1), _sample(dtype, 7))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize("mode", ["drop", "clip"])
def test_scatter_windows(mode, dtype):
    def function(x, i, u):  # windows that overlap, and reach out of the array
        return lax.scatter_add(x, i, u, _numbers((0, 2), (), (1, 0)), mode=mode)

    arrays = _sample(np.int32, 7, 9), _indices(dtype, 0, 9, 5, 2), _sample(np.int32, 2, 5, 3)
    _check(function, *arrays)


SCATTER_PROGRAMS = {
    "rows": lambda x, i: x.at[i].set(x[:5] * 2),
    "pairs": lambda x, i: x.at[i, i + 1].max(3),
    "one": lambda x, i: x.at[i[0], i[1]].set(7),
    "two axes of indices": lambda x, i: x.at[i[:4].reshape(2, 2)].add(x[:4].reshape(2, 2, -1)),
    "lanes": lambda x, i: weft.vmap(lambda y, j: y.at[j].add(y[0], mode="drop"))(x[:5], i),
    "lanes of several": lambda x, i: weft.vmap(lambda y: y.at[i].set(y[0], mode="drop"))(x),
    "gradient": lambda x, i: weft.grad(lambda y: wnp.sum(y[i] ** 2))(x),
    "histogram": lambda x, i: wnp.zeros(9, np.int32).at[i].add(1),
}


@pytest.mark.parametrize("name", SCATTER_PROGRAMS)
def test_scatter_programs(name):
    _check(
        SCATTER_PROGRAMS[name], _sample(np.float32, 7, 9), _indices(np.int32, -9, 9, 5), nans=True
    )


@pytest.mark.parametrize("count", [1, 3, 7])
def test_scatter_of_products(count):
    """A product is rounded before it is added, as where XLA's scatter reads it from memory."""
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, LANES, 50)).astype(np.float32)

    def function(x, y, z, i):
        return x.at[i].add(y[:count] * z[:count]), (x * y).at[i].add(z[:count])

    _check(function, x, y, z, _indices(np.int32, 0, 50, count), joins=True)


SHAPES = [((2,), 0), ((7,), 0), ((32,), 0), ((3, 5), 1), ((5, 3), 0), ((2, 6, 3), 1)]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, bool])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sort(dtype, shape, axis):
    x = _sample(dtype, *shape)
    _check(lambda x: (lax.sort(x, axis), wnp.argsort(x, axis)), x)
    for k in (1, shape[axis]):
        _check(lambda x, k=k: lax.top_k(x, k, axis=axis), x)


@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_sort_of_several(num_keys):
    def function(x, y, z):
        return lax.sort((x, y, z), num_keys=num_keys)

    _check(function, _sample(np.int8, 20), _sample(np.float32, 20), _sample(np.float64, 20, seed=1))


SORT_PROGRAMS = {
    "median": wnp.median,
    "quantile": lambda x: wnp.quantile(x, 0.3),
    "partition": lambda x: wnp.partition(x, 4),
    "searchsorted": lambda x: wnp.searchsorted(wnp.sort(x), x[:5]),
    "lexsort": lambda x: wnp.lexsort((x, x[::-1])),
    "gradient": lambda x: weft.grad(lambda y: wnp.sum(wnp.sort(y) * wnp.arange(12.0)))(x),
    "lanes": lambda x: weft.vmap(wnp.sort)(x.reshape(3, 4)),
}


@pytest.mark.parametrize("name", SORT_PROGRAMS)
def test_sort_programs(name):
    x = np.random.default_rng(0).standard_normal((LANES, 12))
    _check(SORT_PROGRAMS[name], x, joins=name == "quantile")


@pytest.mark.parametrize("dtype", [*FLOATS, np.float16, np.int16, np.complex64])
@pytest.mark.parametrize("shape", [(400, 16), (16, 400)])
def test_sort_of_many_rows(shape, dtype):
    """Rows of few elements are sorted as in kernels by any program."""
    if dtype == np.complex64:
        x = _sample(np.float32, *shape)[0] + 1j * _sample(np.float32, *shape, seed=1)[0]
    else:
        x = _sample(dtype, *shape)[0]
    axis = int(np.argmin(shape))
    with weft.enable_x64(True):
        order = np.asarray(weft.jit(lambda x: wnp.argsort(x, axis))(x))
        made = np.asarray(weft.jit(lambda x: lax.sort(x, axis))(x))
    if dtype != np.complex64:  # NumPy puts NaN elsewhere
        assert order.tolist() == np.argsort(x, axis, kind="stable").tolist()
    assert "stablehlo.sort" not in weft.jit(lambda x: lax.sort(x, axis)).lower(x).as_text()
    assert made.tobytes() == np.take_along_axis(x, order, axis).tobytes()


RUNNING = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]


@pytest.mark.parametrize("size", [7, 40])
@pytest.mark.parametrize("name", RUNNING)
def test_running(name, size):
    for dtype in FLOATS if name == "cumlogsumexp" else [*FLOATS, np.int32]:
        x = _sample(dtype, size, 3)
        x = x * dtype(0.7) if dtype in FLOATS else x  # sums that round
        for reverse in (False, True):

            def function(x, reverse=reverse):
                return getattr(lax, name)(x, 0, reverse) + x

            _check(function, x, nans=True)


def _pooled(x):
    return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID")


WINDOWS = {
    "sums": lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME"),
    "maxima": _pooled,
    "products": lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 3), (1, 2), ((1, 0), (2, 1))),
    "gradient": lambda x: weft.grad(lambda y: wnp.sum(_pooled(y) ** 2))(x),
    "tangent": lambda x: weft.jvp(_pooled, (x,), (x * 2,)),
    "convolution": lambda x: lax.conv(
        wnp.round(4 * x)[None, None], x[None, None, :2, :3].round(), (1, 1), "SAME"
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    # The terms of a convolution are added up in another order, so that they have to be exact.
    x = np.random.default_rng(0).standard_normal((LANES, 6, 8)).astype(np.float32)
    _check(WINDOWS[name], x)


RANDOM = {
    "bits": lambda key: weft.random.bits(key, (5,)),
    "split": lambda key: weft.random.split(key, 3),
    "uniform": lambda key: weft.random.uniform(key, (), np.float32),
    "normal": lambda key: weft.random.normal(key, (7,), np.float32),
    "permutation": lambda key: weft.random.permutation(key, 7),
    "generator": lambda key: lax.rng_bit_generator(wnp.concatenate([key, key]), (5,), np.uint32),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random(name):
    _check(RANDOM[name], np.arange(2 * LANES, dtype=np.uint32).reshape(LANES, 2))


def _complex(dtype, *shape, seed=0):
    """Complex numbers whose parts are sometimes odd."""
    part = np.float32 if dtype == np.complex64 else np.float64
    return _sample(part, *shape, seed=seed) + 1j * _sample(part, *shape, seed=seed + 1)


OUTSIDE = (  # libraries', or with other last bits
    "atan", "composite", "custom_linear_solve", "eig", "eigh", "geqp3", "geqrf", "hessenberg",
    "householder_product", "optimization_barrier", "ormqr", "qr", "schur", "shard_alike", "svd",
    "tan", "tridiagonal", "tridiagonal_solve",
)  # fmt: skip
# What adds or multiplies in another order, or is joined with what stands beside it.
ROUNDED = ("conv_general_dilated", "dot_general", "fft", "lu", "scatter-mul", "triangular_solve")


def _complex_cases():
    """(name, function, arguments) from the op table: of each op one, or all with WEFT_TESTS=all."""
    cases = {}
    for row in op_table.all_rows():
        for dtype, args in row.cases():
            is_part = not (EVERYTHING or row.op not in cases) or row.op in OUTSIDE
            if dtype not in op_table.COMPLEX or is_part or not all(a.size for a in args):
                continue
            if all(np.size(x) for x in weft.tree.leaves(row.reference(*args))):
                cases[f"{row.id}-{len(cases)}" if EVERYTHING else row.op] = row.op, row.call, args
    return cases


COMPLEX_CASES = _complex_cases()


@pytest.mark.parametrize("name", COMPLEX_CASES)
def test_complex_ops(name):
    """Ops on complex numbers give in a kernel what they give without."""
    op, function, args = COMPLEX_CASES[name]
    stacked = [np.stack([a, a]) for a in args]
    with weft.enable_x64(True):
        made, in_kernel = _outcome(function, stacked, "always")
        expected, _ = _outcome(function, stacked, "never")
    assert in_kernel or op == "conv_general_dilated"  # some are products
    joins = not jaxlib.__version__.startswith("0.10.")
    for x, y in zip(made, expected, strict=True):
        if op in ROUNDED or joins:
            few = 2e-5 if x.dtype in (np.complex64, np.float32) else 1e-13
            np.testing.assert_allclose(x, y, few, few * np.max(abs(y), initial=1))
        else:
            assert x.tobytes() == y.tobytes(), (x, y)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 12, 15, 16])
def test_transforms_of_few_points(n, dtype):
    rng = np.random.default_rng(n)
    z = (rng.standard_normal((LANES, 3, n)) + 1j * rng.standard_normal((LANES, 3, n))).astype(dtype)
    half, x = z[..., : n // 2 + 1], z.real.copy()
    inverse = lambda fft: lambda z: fft.irfft(z, n)
    for of, arg in (
        (lambda fft: fft.fft, z), (lambda fft: fft.ifft, z), (lambda fft: fft.rfft, x),
        (inverse, half), (lambda fft: fft.fft2, z), (lambda fft: fft.ifft2, z),
        (lambda fft: fft.rfft2, x), (lambda fft: lambda z: fft.irfft2(z, (3, n)), half),
    ):  # fmt: skip
        with weft.enable_x64(True):
            (made,), in_kernel = _outcome(of(wnp.fft), (arg,), "always")
        assert in_kernel
        wide = arg.astype(np.complex128 if arg.dtype.kind == "c" else np.float64)
        expected = np.stack([of(np.fft)(each) for each in wide])
        error = np.linalg.norm(made - expected) / np.linalg.norm(expected)
        assert error < 4 * np.finfo(dtype).eps


COMPLEX_PROGRAMS = {
    "gates": lambda z: wnp.tensordot(z[:2, :2], z.reshape(2, 2, 3), ((1,), (0,))),
    "products": lambda z: z[:, :3] @ z[:3] @ z[:3].conj().T,
    "steps": lambda z: lax.fori_loop(0, 5, lambda _, z: z + 0.1j * wnp.fft.fft(z), z),
    "gradient": lambda z: weft.grad(lambda z: wnp.sum(abs(wnp.fft.ifft(z**2)) ** 2))(z),
    "lanes": lambda z: weft.vmap(lambda row: wnp.fft.irfft(row * wnp.exp(1j * row.real)))(z),
}


@pytest.mark.parametrize("name", COMPLEX_PROGRAMS)
def test_complex_programs(name):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((LANES, 4, 3)) + 1j * rng.standard_normal((LANES, 4, 3))
    with weft.enable_x64(True):
        (made,), in_kernel = _outcome(COMPLEX_PROGRAMS[name], (z,), "always")
        (expected,), _ = _outcome(COMPLEX_PROGRAMS[name], (z,), "never")
    assert in_kernel
    np.testing.assert_allclose(made, expected, 1e-12, 1e-12 * abs(expected).max())


def test_what_is_computed_again_is_in_kernels():
    """Barriers of `checkpoint` fall away in kernels; a user's stay, and keep a loop outside."""

    def loss(barrier, w, xs):
        def step(h, x):
            h = barrier(wnp.tanh(w @ h + x))
            return h, h.sum()

        return (lax.scan(weft.checkpoint(step), xs[0], xs)[1] ** 2).sum()

    rng = np.random.default_rng(0)
    w, xs = rng.standard_normal((4, 4)).astype(np.float32), rng.standard_normal((50, 4))
    for barrier, is_one in ((lambda x: x, True), (lax.optimization_barrier, False)):
        slope = weft.jit(weft.grad(functools.partial(loss, barrier)), kernels="always")
        compiled = slope.lower(w, xs.astype(np.float32)).compile()
        assert "stablehlo.optimization_barrier" in slope.lower(w, xs.astype("f")).as_text()
        # The main function has the loops that no kernel has. The program has two.
        main = compiled.as_text().partition("ENTRY")[2]
        assert main.count(" while(") == (0 if is_one else 2)
        plain = weft.jit(weft.grad(functools.partial(loss, barrier)), kernels="never")
        np.testing.assert_allclose(compiled(w, xs.astype("f")), plain(w, xs.astype("f")), 1e-4)


# ---- The choice, without being asked


@pytest.fixture
def unrolled():
    """Whether XLA was asked to unroll the loops of each module that is compiled from now on."""
    asked = []

    def compile_module(module):
        asked.append(module.unroll)
        return compile.compile_module(module)

    _core.install(compile=compile_module)
    yield asked
    _core.install(compile=compile.compile_module)


def _loop(step, x, trips=101):
    program = weft.jit(lambda x: lax.fori_loop(0, trips, lambda _, x: step(x), x))
    compiled = program.lower(x).compile()
    weft.block_until_ready(compiled(x))
    return compiled


@pytest.mark.parametrize(
    ("step", "shape", "unrolls"),
    [
        # Sums across rows and of short ones have loops of their own. Others gain nothing.
        (lambda x: x / (1 + x.sum(0)), (100, 3), True),
        (lambda x: x * 0.9 + x.sum(0), (8, 64), True),
        (lambda x: x * 0.9 + x.sum(1, keepdims=True), (8, 63), False),
        # Of arrays that are stacked, each has a branch.
        (lambda x: wnp.stack([x[:, 1], x[:, 0], -x[:, 3], x[:, 2]], 1) * 0.5, (32, 4), True),
        # LLVM makes no vectors of what reads long rows that are put together, unless it unrolls
        # the loop. Across rows that loses.
        (lambda x: (wnp.roll(x, 1) - x + wnp.roll(x, -1)) * 0.5, (512,), True),
        (lambda x: wnp.roll(x, 1, 1) - 0.5 * x, (32, 32), True),
        (lambda x: sum(wnp.roll(x, n, a) for a in (0, 1) for n in (1, -1)) * 0.2, (32, 32), True),
        (lambda x: wnp.roll(x, 1, 0) - 0.5 * x, (32, 32), False),
        # Rows that fill no vector of an unrolled loop are computed number by number.
        (lambda x: wnp.exp(-x), (8, 8), False),
        # Products of small matrices have no loops.
        (lambda x: x @ x * 0.5, (4, 4), False),
        (wnp.negative, (4,), False),
    ],
)
def test_loops_are_unrolled_where_that_pays(step, shape, unrolls, unrolled):
    compiled = _loop(step, np.full(shape, 0.5, "f"))
    assert len(compiled.kernels) == 1
    assert unrolled == [unrolls]


@pytest.mark.parametrize("is_known", [True, False])
def test_short_loops_are_unrolled_where_their_length_is_not_known(is_known, unrolled):
    """Small gains are worth the longer compilation in loops that may be long."""

    def slope(x):
        return wnp.stack([1.1 * x[0] - 0.4 * x[0] * x[1], 0.1 * x[0] * x[1] - 0.4 * x[1]])

    def step(x):
        slopes = [slope(x)]
        for _ in range(4):
            slopes.append(slope(x + 0.01 * sum(slopes)))
        return x + 0.01 * sum(slopes)

    def run(x):
        if is_known:
            return lax.fori_loop(0, 30, lambda _, x: step(x), x)
        return lax.while_loop(lambda x: x[0] < 10, step, x)

    assert weft.jit(run, kernels="always").lower(np.full(2, 0.5, "f")).compile().kernels
    assert unrolled == [not is_known]


@pytest.mark.parametrize(
    ("axis", "shape", "unrolls"),
    [(0, (9, 16, 16), True), (2, (64, 64, 3), False), (1, (64, 64, 3), False)],
)
def test_loops_without_kernels_are_unrolled_for_sums_across_rows(axis, shape, unrolls, unrolled):
    def run(x):
        return lax.fori_loop(0, 101, lambda _, x: x * 0.5 + wnp.expand_dims(x.sum(axis), axis), x)

    compiled = weft.jit(run, kernels="never").lower(np.ones(shape, "f")).compile()
    assert not compiled.kernels
    assert unrolled == [unrolls]


def test_long_sequences_of_thunks_over_larger_arrays_become_kernels():
    # XLA's runtime takes four times as long for a thunk of more than eight, if one reads or writes
    # more than 512 bytes. These arrays are so large that little is to be gained otherwise.
    def step(count):
        def f(xs):
            return [wnp.roll(x, k) * 0.5 for k, x in enumerate(xs[:count], 1)] + xs[count:]

        return f

    xs = [np.ones(3000, "f")] * 10
    assert len(_loop(step(10), xs).kernels) == 1
    assert len(_loop(step(2), xs).kernels) == 0


@pytest.mark.parametrize("name", ["eigh", "svd", "qr"])
def test_loops_over_small_factorisations_become_kernels(name):
    def squares(x):
        parts = getattr(wnp.linalg, name)(x)
        return x * 0.5 + 1e-3 * sum((part * part).sum() for part in parts)

    x = np.random.default_rng(0).standard_normal((3, 3)).astype("f")
    assert len(_loop(squares, x + x.T).kernels) == 1


def _beside_library(x):
    """A value that keeps the loop that computes it out of kernels."""
    return wnp.fft.fft(x).real.astype(x.dtype)


def test_what_waits_for_nothing_is_one_kernel():
    def step(state):
        x, ys = state
        return _beside_library(x), [y / (1 + y.sum()) for y in ys]

    state = np.ones(128, "f"), [np.ones(200 + k, "f") for k in range(12)]
    assert len(_loop(step, state).kernels) == 1


def test_what_is_too_large_is_cut():
    def step(state):
        x, y = state
        for k in range(70):
            y = wnp.roll(y, 1) / (1.0 + k + y.sum())
        return _beside_library(x), y

    kernels = _loop(step, (np.ones(128, "f"), np.ones(200, "f"))).kernels
    assert len(kernels) > 1 and all(kernel.num_ops < 400 for kernel in kernels)
