"""dtype, shape and weak type of results, against jax: a sample of the calls of `promotion.py`."""

import operator

import numpy as np
import promotion
import pytest
from oracle import CHANGED_LATER, is_later_jax, needs_jax

import weft
import weft.numpy as wnp


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("x64", [False, True])
def test_types_of_results_are_those_of_jax(x64):
    with weft.enable_x64(x64):
        found, compared = promotion.differences(0.006, x64, seed=1)
    if is_later_jax():
        found = [f for f in found if f.partition("(")[0].rpartition(".")[2] not in CHANGED_LATER]
    assert not found, "\n".join(found)
    assert compared > 300


@pytest.mark.parametrize("add", [lambda x, n: x + n, lambda x, n: weft.jit(lambda x: x + n)(x)])
def test_python_ints_beside_floats_are_of_the_default_integer_dtype(add):
    x = wnp.ones(2)
    assert add(x, 2**31 - 1).dtype == np.float32
    assert wnp.asarray(2**40, np.float32) == 2.0**40
    for n in (2**31, -(2**31) - 1, 10**40):
        with pytest.raises(OverflowError, match="out of range for int32"):
            add(x, n)


def test_a_branch_is_as_weak_as_the_first():
    strong, weak = (lambda: np.float32(2)), (lambda: 1.0)
    for branches in ((strong, weak, strong), (weak, strong, strong)):
        assert weft.lax.switch(1, branches).weak_type == (branches[0] is weak)
    assert weft.lax.cond(wnp.array(True), strong, weak).weak_type
    assert not weft.lax.cond(wnp.array(True), weak, strong).weak_type


def test_a_choice_among_python_numbers_is_of_their_default_dtype():
    for wide in (False, True):
        with weft.enable_x64(wide):
            for which in (1, np.int8(1), wnp.int32(1)):
                chosen = weft.lax.select_n(which, 1, 2)
                assert chosen.dtype == (np.int64 if wide else np.int32) and chosen.weak_type


def test_products_of_signed_integers_and_uint64_wrap_around():
    with weft.enable_x64(True):
        x, y = np.array([[-1, 2]], np.int8), np.array([[3], [1]], np.uint64)
        for product in (weft.lax.dot(x, y), weft.lax.dot(y.T, x.T)):
            assert product.dtype == np.uint64 and product.item() == 2**64 - 1


# Python integers beside arrays of integers.

_WIDE = {"uint32": 0x9E3779B9, "uint64": 2**64 - 7}
_OF_WIDE = {
    "x.at[0].set(n)": lambda x, n: [n, 2, 3],
    "x.at[0].add(n)": lambda x, n: [n + 1, 2, 3],
    "x.at[0].subtract(n)": lambda x, n: [1 - n, 2, 3],
    "x.at[0].multiply(n)": lambda x, n: [n, 2, 3],
    "x.at[0].max(n)": lambda x, n: [n, 2, 3],
    "x.at[0].min(n)": lambda x, n: [1, 2, 3],
    "x.at[1:].set(n)": lambda x, n: [1, n, n],
    "x.at[::2].set(n)": lambda x, n: [n, 2, n],
    "x.at[wnp.array([0, 2])].set(n)": lambda x, n: [n, 2, n],
    "x.at[wnp.array([0, 2])].add(n)": lambda x, n: [n + 1, 2, n + 3],
    "x.at[np.array([False, True, True])].set(n)": lambda x, n: [1, n, n],
    "x.at[wnp.array([7])].get(mode='fill', fill_value=n)": lambda x, n: [n],
    "x + n": lambda x, n: x + n,
    "n - x": lambda x, n: n - x,
    "x * n": lambda x, n: x * n,
    "x // n": lambda x, n: x // n,
    "n % x": lambda x, n: n % x,
    "x ^ n": lambda x, n: x ^ n,
    "n >> x": lambda x, n: n >> x,
    "x < n": lambda x, n: x < n,
    "n <= x": lambda x, n: n <= x,
    "x == n": lambda x, n: x == n,
    "wnp.where(x > 1, x, n)": lambda x, n: [n, 2, 3],
    "wnp.select([x > 1], [n], x)": lambda x, n: [1, n, n],
    "wnp.clip(x, 2, n)": lambda x, n: [2, 2, 3],
    "wnp.clip(x, n, None)": lambda x, n: [n, n, n],
    "wnp.minimum(x, n)": lambda x, n: x,
    "wnp.fmax(x, n)": lambda x, n: [n, n, n],
    "wnp.max(x, initial=n)": lambda x, n: n,
    "wnp.sum(x, initial=n)": lambda x, n: n + 6,
    "wnp.full(2, n, x.dtype)": lambda x, n: [n, n],
    "wnp.full_like(x, n)": lambda x, n: [n, n, n],
    "wnp.array([n, 1], x.dtype)": lambda x, n: [n, 1],
    "wnp.asarray(n, x.dtype)": lambda x, n: n,
    "wnp.arange(n, n + 3, dtype=x.dtype)": lambda x, n: [n, n + 1, n + 2],
    "wnp.arange(n + 2, n - 1, -1, dtype=x.dtype)": lambda x, n: [n + 2, n + 1, n],
    "wnp.searchsorted(x, n)": lambda x, n: 3,
    "wnp.isin(x, n)": lambda x, n: [False, False, False],
    "wnp.isin(wnp.array([1, n], x.dtype), n)": lambda x, n: [False, True],
    "wnp.isin(n, wnp.array([1, n], x.dtype))": lambda x, n: True,
    "wnp.pad(x, 1, constant_values=n)": lambda x, n: [n, 1, 2, 3, n],
    "wnp.append(x, n)": lambda x, n: [1, 2, 3, n],
    "wnp.insert(x, 0, n)": lambda x, n: [n, 1, 2, 3],
    "wnp.diff(x, prepend=n)": lambda x, n: [1 - n, 1, 1],
    "wnp.unique(x, size=4, fill_value=n)": lambda x, n: [1, 2, 3, n],
    "wnp.choose(wnp.array([0, 1, 0]), [x, n], mode='wrap')": lambda x, n: [1, n, 3],
    "wnp.logical_and(x, n)": lambda x, n: [True, True, True],
    "weft.vmap(lambda a: wnp.where(a > 1, a, n))(x)": lambda x, n: [n, 2, 3],
    "lax.full_like(x, n)": lambda x, n: [n, n, n],
    "lax.fori_loop(0, 2, lambda i, c: c * n + 1, x)": lambda x, n: (x * n + 1) * n + 1,
}


@pytest.mark.parametrize("dtype", list(_WIDE))
@pytest.mark.parametrize("code", list(_OF_WIDE))
def test_python_ints_that_fit_an_unsigned_dtype_are_exact(code, dtype):
    n = _WIDE[dtype]
    with weft.enable_x64(dtype == "uint64"):
        names = {"np": np, "wnp": wnp, "weft": weft, "lax": weft.lax, "n": n}
        x = wnp.array([1, 2, 3], dtype)
        # In Python's integers, and then modulo 2**32 or 2**64.
        right = np.array(_OF_WIDE[code](np.array([1, 2, 3], object), n), object)
        right = np.asarray(right % (np.iinfo(dtype).max + 1)).tolist()
        assert np.asarray(eval(code, names | {"x": x})).tolist() == right
        mapped = weft.jit(weft.vmap(lambda x: eval(code, names | {"x": x})))
        assert np.asarray(mapped(x[None])[0]).tolist() == right


def test_other_calls_that_take_wide_python_ints():
    n = 0x9E3779B9
    x = wnp.array([1, 2, 3], "uint32")
    static = weft.jit(lambda x, n: x ^ n, static_argnums=1)
    assert static(x, n).tolist() == [1 ^ n, 2 ^ n, 3 ^ n]
    assert wnp.linspace(0, n, 3, dtype="uint32").tolist() == [0, n // 2, n]
    drawn = weft.random.randint(weft.random.key(0), (100,), n - 5, n, "uint32")
    assert drawn.min() >= n - 5 and drawn.max() == n - 1
    ref = weft.new_ref(x)
    ref[0] = n
    assert ref[...].tolist() == [n, 2, 3]
    with weft.enable_x64(True):
        wide = wnp.arange(2**63 + 5, 2**63 + 8, dtype="uint64")
        assert wide.tolist() == [2**63 + 5, 2**63 + 6, 2**63 + 7]
        assert wnp.clip(wide, 0, 2**63 + 6).tolist() == [2**63 + 5, 2**63 + 6, 2**63 + 6]


@pytest.mark.parametrize("compare", ["lt", "le", "eq", "ne", "gt", "ge"])
@pytest.mark.parametrize("dtype", ["uint4", "int4", "uint8", "int8", "uint32", "int32"])
def test_comparisons_with_python_ints_are_exact(compare, dtype):
    limits = weft.dtypes.iinfo(dtype)
    values = [int(limits.min), 1, int(limits.max)]
    x = wnp.array(values, dtype)
    compare = getattr(operator, compare)
    for n in (limits.min - 1, limits.min, limits.max, limits.max + 1, -(2**70), 2**70):
        n = int(n)
        right = [compare(v, n) for v in values]
        mirrored = [compare(n, v) for v in values]
        assert compare(x, n).tolist() == weft.jit(lambda x, n=n: compare(x, n))(x).tolist() == right
        assert compare(n, x).tolist() == weft.vmap(lambda x, n=n: compare(n, x))(x).tolist()
        assert compare(n, x).tolist() == mirrored


_U8 = [1, 44, 255]


@pytest.mark.parametrize(
    ("code", "right"),
    [
        ("wnp.clip(x, 0, 300)", _U8),
        ("wnp.clip(x, -1, 300)", _U8),
        ("wnp.clip(x, -1, 40)", [1, 40, 40]),
        ("wnp.clip(x, None, 300)", _U8),
        ("wnp.clip(x, -5, None)", _U8),
        ("wnp.searchsorted(x, 300)", 3),
        ("wnp.searchsorted(x, -1)", 0),
        ("wnp.searchsorted(x, 256, side='right')", 3),
        ("wnp.digitize(300, x)", 3),
        ("wnp.digitize(-1, x, right=True)", 0),
        ("wnp.digitize(300, x[::-1])", 0),
        ("wnp.digitize(-1, x[::-1])", 3),
        ("wnp.isin(x, 300)", [False] * 3),
        ("wnp.isin(x, -1, invert=True)", [True] * 3),
        ("wnp.isin(300, x)", False),
        ("x + 300", [45, 88, 43]),  # modulo 256, as jax has it
        ("x.at[0].add(-1)", [0, 44, 255]),
        ("x ^ -1", [254, 211, 0]),
        *(
            (code, f"{n} is out of range for uint8")
            for n in (300, -1)
            for code in (
                f"wnp.minimum(x, {n})",
                f"wnp.maximum({n}, x)",
                f"wnp.fmax(x, {n})",
                f"x // {n}",
                f"{n} % x",
                f"wnp.fmod(x, {n})",
                f"wnp.max(x, initial={n})",
                f"x.at[0].max({n})",
                f"x.at[0].divide({n})",
            )
        ),
        ("wnp.clip(x, 300, None)", "300 is out of range for uint8"),
        ("wnp.clip(x, 300, 400)", "300 is out of range for uint8"),
        ("wnp.clip(x, 0, -1)", "-1 is out of range for uint8"),
        ("x.at[0].set(2**40)", "1099511627776 is out of range for uint8"),
        ("x + 2**40", "1099511627776 is out of range for uint8"),
        ("wnp.where(x > 1, x, 2**40)", "1099511627776 is out of range for uint8"),
    ],
)
def test_python_ints_that_do_not_fit(code, right):
    x = wnp.array(_U8, "uint8")
    for call in (eval, lambda code, names: weft.jit(lambda x: eval(code, names | {"x": x}))(x)):
        if isinstance(right, str):
            with pytest.raises(OverflowError, match=right):
                call(code, {"wnp": wnp, "x": x})
        else:
            assert np.asarray(call(code, {"wnp": wnp, "x": x})).tolist() == right
