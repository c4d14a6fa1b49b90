"""Reductions of `weft.numpy`.

Each line of the table must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does. See `oracle.py` for the operands.
"""

import numpy as np
import pytest
from oracle import check, check_staged, lines, needs_jax, sampled

import weft
import weft.numpy as wnp
from weft import lax, nn, ops
from weft.scipy.stats import sem

CASES = lines(
    """
    jnp.sum(x[0,0],where=jnp.ones((2,3),bool),keepdims=True)
    jnp.max(x[0],where=jnp.array([[True],[False]]),initial=9)
    jnp.sum(x,axis="i")
    jnp.prod(x,axis="i")
    jnp.mean(x,dtype=bool)
    jnp.var(c,dtype="float32")
    jnp.nanargmax(x,axis=jnp.array(0))
    jnp.linalg.diagonal(jnp.full((2,2),1.5))
    jnp.sum(x)
    jnp.sum(x,0)
    jnp.sum(x,axis=-1,keepdims=True)
    jnp.sum(x,axis=(0,1),keepdims=True)
    jnp.sum(x,axis=(1,0))
    jnp.sum(x,axis=())
    jnp.sum(x,dtype=int)
    jnp.sum(x,dtype='float16')
    jnp.sum(h)
    jnp.sum(h,axis=0)
    jnp.sum(h,dtype='float32')
    jnp.sum(c)
    jnp.sum(b,axis=0)
    jnp.sum(u8,dtype='int16')
    jnp.sum(u8,promote_integers=False)
    jnp.sum(x,where=x>2)
    jnp.sum(x,axis=0,where=jnp.array([True,False,True]))
    jnp.sum(x,initial=3)
    jnp.sum(x,axis=1,initial=w,where=x>1,keepdims=True)
    jnp.sum(jnp.zeros((0,3)),axis=0)
    jnp.sum(jnp.zeros((0,3)))
    jnp.sum(1.5)
    jnp.sum(wi)
    jnp.sum(True)
    jnp.sum(x,axis=2)
    jnp.sum(x,axis=(0,0))
    jnp.sum(x,axis='a')
    jnp.sum('a')
    x.sum()
    x.sum(axis=1)
    x.sum(1,keepdims=True)
    x.prod()
    jnp.prod(k+1)
    jnp.prod(i8+1,axis=0)
    jnp.prod(h+1)
    jnp.prod(x,where=x>0,axis=0)
    jnp.prod(x+1,initial=2)
    jnp.max(x)
    jnp.max(x,axis=1)
    jnp.max(x,axis=1,keepdims=True)
    jnp.max(h,axis=0)
    jnp.max(c*(2-1j),axis=1)
    jnp.min(jnp.array([2-1j,2-3j,2+3j]))
    jnp.max(c,where=x<3,initial=-1j)
    jnp.max(c[:0],axis=0)
    jnp.max(c[:0],axis=1)
    jnp.nanmin(jnp.array([1-2j,jnp.nan,1-3j]))
    jnp.ptp(c*(2-1j))
    jnp.argmax(c)
    nn.softmax(c)
    nn.relu(c*(1-1j))
    lax.cummax(c*1j,1)
    lax.cumlogsumexp(c*(1-1j),1)
    c.at[0,jnp.array([0,0])].max(jnp.array([1j,3]))
    jnp.max(b)
    jnp.max(u8)
    jnp.max(x,initial=10)
    jnp.max(x,where=x<3,initial=-1)
    jnp.max(i8,where=i8<2,initial=-100)
    jnp.max(jnp.array([1,np.nan,2]))
    jnp.min(jnp.array([1,np.nan,2]))
    jnp.min(x,axis=0)
    jnp.min(k,axis=(0,1))
    jnp.min(b)
    jnp.amin(x)
    jnp.max(jnp.zeros((0,)))
    jnp.max(jnp.zeros((0,3)),axis=0)
    jnp.max(jnp.zeros((0,3)),axis=1)
    jnp.max(jnp.zeros((0,)),initial=2.)
    x.max()
    x.min(0)
    jnp.all(x)
    jnp.all(x,axis=0)
    jnp.any(x,axis=1,keepdims=True)
    jnp.all(b)
    jnp.any(b)
    jnp.any(x,where=x>4)
    jnp.all(x,where=x>0,axis=0)
    jnp.all(jnp.zeros((0,)))
    jnp.any(jnp.zeros((0,)))
    jnp.any(c)
    x.any()
    b.all()
    jnp.argmax(x)
    jnp.argmax(x,0)
    jnp.argmax(x,axis=-1,keepdims=True)
    jnp.argmin(x,axis=1)
    jnp.argmin(x,keepdims=True)
    jnp.argmax(b)
    jnp.argmax(jnp.array([1,np.nan,2,np.nan]))
    jnp.argmin(jnp.array([3,1,1]))
    jnp.argmax(jnp.zeros((0,)))
    jnp.argmax(jnp.zeros((0,2)),axis=1)
    jnp.argmax(x,axis=2)
    jnp.argmax(u8)
    jnp.argmin(h)
    x.argmax()
    x.argmin(axis=0)
    jnp.mean(x)
    jnp.mean(x,axis=0)
    jnp.mean(x,axis=1,keepdims=True)
    jnp.mean(h)
    jnp.mean(c)
    jnp.mean(i8)
    jnp.mean(b)
    jnp.mean(x,where=x>1)
    jnp.mean(x,axis=0,where=x>1)
    jnp.mean(x,dtype='float16')
    jnp.mean(k,dtype=int)
    jnp.mean(jnp.zeros((0,)))
    jnp.mean(x,axis=(0,1))
    jnp.mean(2)
    x.mean()
    x.mean(1)
    jnp.var(x)
    jnp.var(x,axis=0)
    jnp.var(x,axis=1,keepdims=True,ddof=1)
    jnp.var(h)
    jnp.var(k)
    jnp.var(c+1j*x)
    jnp.var(x,where=x>1,axis=1)
    jnp.var(x,where=x>4,axis=1,ddof=1)
    jnp.var(x,dtype='float16')
    jnp.var(x,mean=2.)
    jnp.var(x,axis=0,mean=jnp.zeros((1,3)))
    jnp.var(x,ddof=0.5)
    jnp.var(x,ddof=1,correction=1)
    jnp.var(b)
    jnp.std(x)
    jnp.std(x,axis=1)
    jnp.std(h,axis=0)
    jnp.std(x,correction=1)
    jnp.std(c)
    x.var()
    x.std(axis=0)
    jnp.average(x)
    jnp.average(k,axis=1)
    jnp.average(x,weights=x+1)
    jnp.average(x,axis=1,weights=i8+1)
    jnp.average(x,axis=0,weights=jnp.array([1.,3.]))
    jnp.average(x,axis=(1,0),weights=(x+1).T)
    jnp.average(x,axis=(0,1),weights=x+1,keepdims=True)
    jnp.average(x,axis=0,returned=True)
    jnp.average(x,axis=0,weights=jnp.array([1.,3.]),returned=True)
    jnp.average(x,weights=i8)
    jnp.average(x,axis=0,weights=i8)
    jnp.average(k,weights=k)
    jnp.count_nonzero(x)
    jnp.count_nonzero(x,axis=(0,))
    jnp.count_nonzero(b,keepdims=True)
    jnp.ptp(x)
    jnp.ptp(x,axis=1,keepdims=True)
    jnp.ptp(i8)
    x.ptp(axis=0)
    jnp.nansum(jnp.array([[1,np.nan],[np.nan,np.nan]]),axis=1)
    jnp.nansum(k)
    jnp.nansum(jnp.array([1,np.nan],'float16'))
    jnp.nansum(jnp.array([1,np.nan]),initial=2.)
    jnp.nanprod(jnp.array([3,np.nan]))
    jnp.nanmean(jnp.array([[1,np.nan],[np.nan,np.nan]]),axis=1)
    jnp.nanmean(jnp.array([[1,np.nan],[2,4]]),axis=1,keepdims=True)
    jnp.nanmax(jnp.array([[1,np.nan],[np.nan,np.nan]]),axis=1)
    jnp.nanmin(jnp.array([[1,np.nan],[2,3]]),axis=0)
    jnp.nanmax(k)
    jnp.nanmax(jnp.array([1,np.nan]),initial=5.)
    jnp.nanvar(jnp.array([[1,np.nan,3],[2,4,8]]),axis=1)
    jnp.nanstd(jnp.array([[1,np.nan,3],[2,4,8]]),axis=1,ddof=1)
    jnp.nanvar(jnp.array([np.nan]))
    jnp.nanargmax(jnp.array([[1,np.nan],[2,3]]),axis=1)
    jnp.nanargmin(jnp.array([[np.nan,1],[np.nan,np.nan]]),axis=1)
    jnp.nanargmin(jnp.array([3,np.nan,1]))
    jnp.nanargmax(k)
    jnp.nansum(x,where=x>1)
    jnp.nanmean(x,axis=0,where=x>1)
    jnp.nanvar(x,dtype='float16')
    jnp.sum(jnp.ones((2,3,4,5)),axis=(1,3))
    jnp.max(jnp.arange(24).reshape(2,3,4),axis=(0,2))
    jnp.sum(jnp.full((3,),60000.,'float16'))
    jnp.mean(jnp.full((4000,),100.,'float16'))
    jnp.sum(jnp.array([1,2],'bfloat16'))
    jnp.max(jnp.array([1,2],'bfloat16'))
    jnp.sum(jnp.array([200,100],'uint8'))
    jnp.sum(jnp.array([2**31-1,1]))
    jnp.argmax(jnp.array([1,2],'bfloat16'))
    jnp.sum(w)
    jnp.sum(wv)
    jnp.mean(wv)
    jnp.var(wv)
    jnp.max(wv)
    jnp.prod(wv)
    jnp.argmax(wv)
    jnp.sum(wv,where=True)
    jnp.sum(wv, initial=1)
    jnp.mean(wi)
    jnp.sum(i8)
    jnp.sum(u8)
    jnp.sum(i8,promote_integers=False)
    jnp.sum(i8,dtype='int8')
    jnp.prod(b)
    jnp.sum(b,dtype='float32')
    jnp.mean(h).dtype
    jnp.mean(k,dtype='int32')
    jnp.max(jnp.zeros((0,)),initial=1.)
    jnp.max(x,where=x>1)
    jnp.sum(x,out=x)
    jnp.sum(x,axis=(0,-2))
    jnp.sum(x,axis=1.5)
    jnp.sum([1,2])
    jnp.sum(jnp.float32(3),axis=0)
    jnp.argmax(wi)
    jnp.argmax(x,keepdims=True)
    jnp.average(k,axis=0,weights=jnp.ones(2),returned=True)
    jnp.average(k,weights=jnp.ones(2))
    jnp.ptp(k)
    jnp.count_nonzero(k)
    jnp.count_nonzero(k,axis=0,keepdims=True)
    jnp.nanmean(k)
    jnp.nansum(jnp.array([1,np.nan]))
    jnp.nanmax(jnp.array([np.nan,np.nan]))
    jnp.nanargmax(jnp.array([np.nan,1,3]))
    jnp.nanargmax(jnp.array([np.nan,np.nan]))
    jnp.nanvar(jnp.array([np.nan,1,3]),ddof=1)
    jnp.nanprod(k)
    jnp.var(x,ddof=1)
    jnp.var(x,correction=1)
    jnp.var(x,ddof=6)
    jnp.var(x,where=x>1)
    jnp.std(i8,dtype='float16')
    jnp.var(c).dtype
    """
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check(CASES, case)


@pytest.mark.parametrize("case", sampled(CASES, 3))
def test_staged(case):
    check_staged(case)


SAMPLE = sampled(CASES, 2)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", SAMPLE)
def test_as_jax_x64(case):
    check(SAMPLE, case, x64=True)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(2, 45, 30), (2, 45, 800), (2, 1045, 33)])
def test_running_reductions_of_large_arrays(shape, reverse):
    rng = np.random.default_rng(0)
    whole = rng.integers(-9, 9, shape).astype(np.int32)
    x = rng.standard_normal(whole.shape).astype(np.float32)
    x[1, 20, 7] = np.nan
    x[0, 30, 8] = np.inf

    def expected(ufunc, x):
        flipped = np.flip(x, 1) if reverse else x
        with np.errstate(invalid="ignore"):
            made = ufunc.accumulate(flipped, 1)
        return np.flip(made, 1) if reverse else made

    @weft.jit
    def running(whole, x):
        run = {"axis": 1, "reverse": reverse}
        return lax.cumsum(whole, **run), lax.cummax(x, **run), lax.cumlogsumexp(x, **run)

    sums, greatest, logs = running(whole, x)
    np.testing.assert_array_equal(sums, expected(np.add, whole))
    np.testing.assert_array_equal(greatest, expected(np.maximum, x))
    np.testing.assert_allclose(logs, expected(np.logaddexp, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["sum", "max", "any", "mean", "var", "nansum", "nanmean"])
def test_masks_are_bools(name):
    with pytest.raises(ValueError, match="where"):
        getattr(wnp, name)(wnp.ones(3), where=wnp.ones(3, int))


@pytest.mark.parametrize("name", ["sum", "max", "nanprod"])
def test_initial_values_are_scalars(name):
    with pytest.raises(ValueError, match="initial"):
        getattr(wnp, name)(wnp.ones(3), initial=wnp.ones(3))


def test_names_of_mapped_axes():
    def lane(a):
        masked = wnp.mean(a, axis=("i", 0), where=a > 0)
        return wnp.sum(a, axis="i"), wnp.mean(a, axis=("i", 0)), wnp.max(a, axis="i"), masked

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3) - 2
    total, mean, greatest, masked = weft.vmap(lane, axis_name="i")(x)
    np.testing.assert_array_equal(total, [x.sum(0)] * 2)
    np.testing.assert_array_equal(mean, [x.mean()] * 2)
    np.testing.assert_array_equal(greatest, [x.max(0)] * 2)
    np.testing.assert_array_equal(masked, [x[x > 0].mean()] * 2)
    for lanes in (2, 3):  # what runs without Python must not remember another axis of that name
        ones = weft.vmap(lambda _: wnp.sum(np.ones(2), axis="i"), axis_name="i")(np.ones(lanes))
        np.testing.assert_array_equal(ones, np.full((lanes, 2), lanes))


def test_unknown_names_of_axes():
    with pytest.raises(NameError, match="axis_name"):
        wnp.sum(np.ones(3), axis="i")
    with pytest.raises(NotImplementedError, match="names of mapped axes"):
        wnp.prod(np.ones(3), axis="i")


def test_slopes_beside_nan_and_at_ends():
    nan, inf = np.nan, np.inf
    x = np.float32([1, nan, 3, inf])
    weights = np.float32([1, 2, 3, 4])

    @weft.jit
    def slopes(x):
        ends = np.float32([-1, 0, 1])
        return {
            "max": weft.grad(wnp.max)(x),
            "min": weft.grad(lambda x: wnp.min(x.reshape(2, 2), 0).sum())(x),
            "cummax": weft.grad(lambda x: (lax.cummax(x) * weights).sum())(x),
            "cummin forwards": weft.jvp(lax.cummin, (x,), (weights,))[1],
            "acos": weft.vmap(weft.grad(weft.grad(lax.acos)))(ends),
            "asin": weft.vmap(weft.grad(weft.grad(lax.asin)))(ends),
            "logaddexp of NaN": weft.grad(weft.grad(wnp.logaddexp))(nan, 1.0),
            "logaddexp": weft.grad(wnp.logaddexp, (0, 1))(inf, -inf),
        }

    wanted = {
        "max": [nan] * 4,
        "min": [1, nan, 0, nan],
        "cummax": [1, 0, 0, 0],
        "cummin forwards": [1, 0, 0, 0],
        "acos": [inf, 0, -inf],
        "asin": [-inf, 0, inf],
        "logaddexp of NaN": nan,
        "logaddexp": [1, 0],
    }
    for name, got in slopes(x).items():
        np.testing.assert_array_equal(got, wanted[name], err_msg=name)


def around_one(x):
    """1 and 1/128 more or less in turn, which both dtypes have."""
    return wnp.where(np.arange(len(x)) % 2, 1 + 1 / 128, 1 - 1 / 128).astype(x.dtype)


# Functions whose results float16 can hold, though sums on the way exceed it; and sums in which each
# element is less than half of the rounding error of the total.
OF_MANY_HALVES = {
    "logsumexp": nn.logsumexp,
    "logsumexp with weights": lambda x: nn.logsumexp(x, b=x + 1),
    "logmeanexp": lambda x: nn.logmeanexp(x, where=x > 0.1),
    "log_softmax": lambda x: nn.log_softmax(x)[:200],
    "standardize": lambda x: nn.standardize(x * 1000)[:200],
    "mean": lambda x: wnp.mean(x * 1000),
    "var": lambda x: wnp.var(x * 100),
    "std": lambda x: wnp.std(x * 1000),
    "nanmean": wnp.nanmean,
    "average": lambda x: wnp.average(x * 1000, weights=x + 1),
    "norm": wnp.linalg.norm,
    "norm of order 3": lambda x: wnp.linalg.norm(x * 100, 3),
    "matrix_norm": lambda x: wnp.linalg.matrix_norm(x.reshape(2, -1) * 100),
    "cov": wnp.cov,
    "corrcoef": lambda x: wnp.corrcoef(x * 1000, x * x),
    "sem": lambda x: sem(x) * 1000,
    "sum": lambda x: wnp.sum(x / 64),
    "cumsum": lambda x: wnp.cumsum(x / 64)[::999],
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x)[::999],
    "cumprod": lambda x: wnp.cumprod(around_one(x))[::999],
    "segment_sum": lambda x: ops.segment_sum(x / 64, np.zeros(len(x), int), 2),
    "at add": lambda x: wnp.zeros(2, x.dtype).at[np.zeros(len(x), int)].add(x / 64),
    "bincount": lambda x: wnp.bincount(np.zeros(len(x), int), weights=x / 64, length=2),
    "histogram": lambda x: wnp.histogram(x, 3, weights=x / 64)[0],
    "gradient of a factor": lambda x: weft.grad(lambda s: (s * (x / 64)).sum())(x.dtype.type(1)),
    "gradient of an element": lambda x: weft.grad(
        lambda s: (s[np.zeros(len(x), int)] * (x / 64)).sum()
    )(x[:2]),
}
# Derivatives that are not below the normal numbers of float16.
WITH_SLOPES = ("average", "norm", "standardize", "cumlogsumexp", "cumsum")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_many_halves(dtype):
    x = wnp.asarray((np.arange(1 << 17) % 64 / 64).astype(dtype))
    eps = float(weft.numpy.finfo(dtype).eps)

    @weft.jit
    def values(x):
        return {name: f(x) for name, f in OF_MANY_HALVES.items()}

    @weft.jit
    def slopes(x):
        def of(f):
            return weft.grad(lambda y: f(y).astype("float32").sum())(x[: 1 << 14])[:200]

        return {name: of(OF_MANY_HALVES[name]) for name in WITH_SLOPES}

    for program in (values, slopes):
        got, want = program(x), program(x.astype("float32"))
        for name, value in got.items():
            value, right = (np.asarray(v, np.float64) for v in (value, want[name]))
            scale = np.abs(right).max()
            np.testing.assert_allclose(
                value, right, rtol=8 * eps, atol=8 * eps * scale, err_msg=name
            )
            assert got[name].dtype == dtype


@pytest.mark.parametrize("kernels", ["never", "always"])
@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        *(f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)),
        "float16",
        "bfloat16",
        "float32",
        "float64",
    ],
)
def test_the_first_of_equal_extremes(dtype, kernels):
    """At every end of a dtype's range, of either zero, subnormals, infinities and NaN."""
    rng = np.random.default_rng(0)
    dtype = wnp.dtype(dtype)
    wide = np.float64 if wnp.issubdtype(dtype, wnp.floating) else dtype
    if dtype.kind in "iu":
        ends = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    elif dtype.kind == "b":
        ends = [False, True]
    else:
        tiny = float(wnp.finfo(dtype).smallest_subnormal)
        ends = [0.0, -0.0, tiny, -tiny, 3 * tiny, np.inf, -np.inf, 1.5]
    with weft.enable_x64(True):
        for extra in ([], [np.nan]) if wide is np.float64 else ([],):
            x = rng.choice(np.array(ends + extra, wide), (6, 5, 40)).astype(dtype)
            for axis in (0, 1, 2):
                for ours, theirs in ((wnp.argmax, np.argmax), (wnp.argmin, np.argmin)):
                    found = weft.jit(lambda v, f=ours, a=axis: f(v, a), kernels=kernels)(x)
                    np.testing.assert_array_equal(found, theirs(x.astype(wide), axis))
