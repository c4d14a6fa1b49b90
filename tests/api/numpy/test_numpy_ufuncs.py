"""`weft.numpy.ufunc` and its methods, against NumPy; calls that run without Python.

The functions that are ufunc objects have NumPy's methods, whose results, dtypes and errors are
jax's where it differs.
"""

import copy
import inspect
import operator
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as wnp

BINARY = {
    "add": 0,
    "subtract": None,
    "multiply": 1,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
    "maximum": None,
    "minimum": None,
    "logaddexp": float("-inf"),
    "logaddexp2": float("-inf"),
}
K = np.array([[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]], np.int32)
X = K.astype(np.float32)
MASK = K > 2
AT = np.array([0, 2, 1, 1])


def of(name):
    return getattr(wnp, name), getattr(np, name), K if "bit" in name else X


def same(got, wanted):
    np.testing.assert_allclose(np.asarray(got, np.asarray(wanted).dtype), wanted, rtol=2e-6)


@pytest.mark.parametrize("name", BINARY)
def test_methods_give_what_numpy_s_do(name):
    ours, theirs, a = of(name)
    start = 2 if BINARY[name] is None or "log" in name else BINARY[name]

    @weft.jit
    def all_of_it(a):
        results = [ours.reduce(a), ours.reduce(a, axis=-1, keepdims=True)]
        results += [ours.reduce(a, axis=None), ours.reduce(a, 1, where=MASK, initial=start)]
        results += [ours.accumulate(a), ours.accumulate(a, axis=1), ours.outer(a[0], a[1])]
        return [*results, ours.reduceat(a, wnp.array([0, 2, 1]), axis=1)]

    got = all_of_it(a)
    wanted = [theirs.reduce(a), theirs.reduce(a, axis=-1, keepdims=True)]
    wanted += [theirs.reduce(a.ravel()), theirs.reduce(a, 1, where=MASK, initial=start)]
    wanted += [theirs.accumulate(a), theirs.accumulate(a, axis=1), theirs.outer(a[0], a[1])]
    wanted += [theirs.reduceat(a, [0, 2, 1], axis=1)]
    for g, w in zip(got, wanted, strict=True):
        same(g, w)


@pytest.mark.parametrize("name", BINARY)
def test_at_updates_as_often_as_an_element_is_indexed(name):
    ours, theirs, a = of(name)
    wanted = a[0].astype(bool) if "logical" in name else a[0].copy()
    theirs.at(wanted, AT, np.array([1, 2, 3, 4], a.dtype))
    same(ours.at(a[0], AT, np.array([1, 2, 3, 4], a.dtype), inplace=False), wanted)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        ours.at(a[0], AT, 1)


def test_attributes():
    for name, identity in BINARY.items():
        f = getattr(wnp, name)
        assert isinstance(f, wnp.ufunc) and (f.nin, f.nout, f.nargs) == (2, 1, 2)
        assert f.identity == identity and type(f.identity) is type(identity)
        assert repr(f) == f"<ufunc '{name}'>" and f.__name__ == name and f.__doc__
        assert pickle.loads(pickle.dumps(f)) is f and copy.copy(f) is f
    assert (
        wnp.negative.nin == 1
        and str(inspect.signature(wnp.add)) == "(x1, x2, /, *, out=None, where=None)"
    )
    assert len({wnp.add, wnp.add, wnp.subtract}) == 2
    same(wnp.negative.at(X[0], 1, inplace=False), [3, -1, 4, 1])


def test_frompyfunc():
    f = wnp.frompyfunc(lambda x, y: x - y, 2, 1)
    g = wnp.frompyfunc(operator.sub, 2, 1, identity=0)
    assert g == wnp.frompyfunc(operator.sub, 2, 1, identity=0) != f
    assert hash(g) == hash(wnp.frompyfunc(operator.sub, 2, 1, identity=0))
    same(f(X, 1), X - 1)
    same(f.reduce(X), np.subtract.reduce(X))
    same(g.reduce(X, where=MASK), np.subtract.reduce(np.where(MASK, X, 0), initial=0))
    same(f.accumulate(K, 1), np.subtract.accumulate(K, 1))
    same(f.outer(X[0], X[1]), np.subtract.outer(X[0], X[1]))
    same(f.reduceat(K[0], AT[:2]), np.subtract.reduceat(K[0], AT[:2]))
    affine = wnp.frompyfunc(lambda x, y: x * y + 1, 2, 1, identity=2)  # reductions begin with it
    assert affine.reduce(wnp.array([3, 4])) == 29 and affine.reduce(wnp.array([3]), initial=1) == 4
    both = wnp.frompyfunc(lambda x: (x + 1, x * 2), 1, 2)
    for got, wanted in zip(both(X), (X + 1, X * 2), strict=True):
        same(got, wanted)
    same(weft.grad(lambda v: f.reduce(f.accumulate(v)))(wnp.arange(3.0)), [-1, 2, 1])
    same(weft.vmap(f.reduce)(X), np.subtract.reduce(X, axis=1))
    divide = wnp.frompyfunc(operator.truediv, 2, 1)
    assert divide.reduce(K + 1).dtype == np.float32
    with pytest.raises(TypeError, match="dtype"):
        divide.reduceat(K, AT[:2])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: wnp.add(X, X, out=X), NotImplementedError),
        (lambda: wnp.add(X, X, where=MASK), NotImplementedError),
        (lambda: wnp.add(X), TypeError),
        (lambda: wnp.add(X, X, foo=1), TypeError),
        (lambda: wnp.add.reduce([1, 2]), TypeError),
        (lambda: wnp.add.reduce(X, out=X), NotImplementedError),
        (lambda: wnp.add.reduce(X, axis=5), ValueError),
        (lambda: wnp.maximum.reduce(X, where=MASK), ValueError),
        (lambda: wnp.subtract.reduce(X, where=MASK), ValueError),
        (lambda: wnp.subtract.reduce(np.zeros((0, 2), "f")), ValueError),
        (lambda: wnp.subtract.reduce(X, axis=(0, 1)), NotImplementedError),
        (lambda: wnp.subtract.accumulate(X, axis=None), ValueError),
        (lambda: wnp.negative.reduce(X), ValueError),
        (lambda: wnp.bitwise_or.reduce(X), ValueError),
        (lambda: wnp.logical_or.reduce(X, dtype="float32"), TypeError),
        (lambda: wnp.add.reduceat(X, np.array([[0]])), ValueError),
        (lambda: wnp.add.reduceat(X, np.array([0.5])), ValueError),
        (lambda: wnp.add.reduceat(X, AT[:1], axis=None), ValueError),
        (lambda: wnp.negative.at(X, 0, 1, inplace=False), TypeError),
        (lambda: wnp.frompyfunc(3, 2, 1), TypeError),
        (lambda: wnp.frompyfunc(abs, 1.5, 1), TypeError),
    ],
)
def test_mistakes(call, error):
    with pytest.raises(error):
        call()


# ---- calls that reach their programs without Python


def test_calls_with_other_arguments_are_other_programs():
    x = wnp.asarray(X)
    for _ in range(2):
        same(wnp.sum(x), X.sum())
        same(wnp.sum(x, 0), X.sum(0))
        same(wnp.sum(x, axis=0), X.sum(0))
        same(wnp.sum(x, axis=1, keepdims=True), X.sum(1, keepdims=True))
        same(wnp.sum(x, axis=(0, -1)), X.sum())
        same(wnp.sum(x, initial=5), X.sum() + 5)
        same(wnp.sum(x, initial=6), X.sum() + 6)
        same(wnp.sum(x, where=MASK), X.sum(where=MASK))
        same(x.sum(dtype="int32"), K.sum())
        same(wnp.var(x, ddof=1), X.var(ddof=1))
        same(wnp.var(x, ddof=0.5), X.var(ddof=0.5))
        same(wnp.argmax(x, axis=1), X.argmax(1))
        same(X @ x.T, X @ X.T)
        same(x[0] @ x[1], X[0] @ X[1])
        same(wnp.cumsum(x, 1), X.cumsum(1))
        places = np.array([0, 9, -1])
        same(wnp.take(x[0], places, mode="clip"), np.take(X[0], places, mode="clip"))
        same(wnp.take(x[0], places, mode="wrap"), np.take(X[0], places, mode="wrap"))
        same(wnp.take(x[0], places), np.array([X[0, 0], np.nan, X[0, -1]], X.dtype))
        same(wnp.take(x, wnp.array([1, 0]), axis=0), X[[1, 0]])
    assert wnp.sum(wnp.ones(3, "int8")).dtype == "int32"
    assert wnp.sum(wnp.ones(3, "int8"), promote_integers=False).dtype == "int8"
    with weft.enable_x64(True):
        assert wnp.sum(wnp.ones(3, "int8")).dtype == "int64"


def test_calls_without_python_fail_like_the_others():
    x = wnp.asarray(X)
    for call, error in (
        (lambda: wnp.sum(x, axis=7), ValueError),
        (lambda: wnp.sum(x, 0, 1, None, None, None, None, True, 9), TypeError),
        (lambda: wnp.sum(x, foo=1), TypeError),
        (lambda: wnp.sum(x, 0, axis=0), TypeError),
        (lambda: wnp.sum(), TypeError),
        (lambda: wnp.sum(x, axis=2**70), ValueError),
        (lambda: wnp.take(x, wnp.arange(2), mode="else"), ValueError),
        (lambda: wnp.take(x, wnp.arange(2), mode="\ud800"), ValueError),
        (lambda: x @ x, TypeError),
    ):
        with pytest.raises(error):
            call()
    gone = wnp.ones(3)
    gone.delete()
    with pytest.raises(RuntimeError):
        wnp.sum(gone)


def test_calls_under_traces_and_without_programs():
    x = wnp.asarray(X)
    same(weft.jit(lambda v: wnp.sum(v, axis=0) + wnp.sum(x, axis=0))(x), 2 * X.sum(0))
    same(weft.grad(lambda v: wnp.max(v) * wnp.sum(x))(x), (X == 9) * X.sum())
    same(weft.vmap(lambda v: wnp.mean(v) + wnp.mean(x))(x), X.mean(1) + X.mean())
    with weft.disable_jit():
        same(wnp.sum(x, axis=0), X.sum(0))


def test_logical_functions_ask_what_is_not_zero():
    c = wnp.array([1j, 2, 0, 3])
    for name in ("logical_and", "logical_or", "logical_xor"):
        f, theirs = getattr(wnp, name), getattr(np, name)
        np.testing.assert_array_equal(f.accumulate(c), theirs.accumulate(np.asarray(c)))
        assert f.reduce(wnp.zeros((2, 0)), axis=1, dtype="uint8").tolist() == [f.identity] * 2


@pytest.mark.parametrize("f", [wnp.subtract, wnp.frompyfunc(lambda a, b: a - b, 2, 1)])
def test_attributes_are_read_only(f):
    for name in ("nin", "nout", "nargs", "identity", "reduce"):
        with pytest.raises(AttributeError, match="read-only"):
            setattr(f, name, None)
        with pytest.raises(AttributeError, match="read-only"):
            delattr(f, name)
    assert f.nin == 2 and f(3, 1) == 2
