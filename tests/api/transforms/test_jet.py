"""jet: derivatives along curves against nested jvp, and against values that jax gives."""

import math

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax
from weft.experimental.jet import jet


def loop(x):
    return lax.scan(lambda c, _: (wnp.sin(c) + c, c), x, None, length=3)[0]


def branch(x):
    return lax.cond(x > 0, wnp.exp, wnp.cos, x)


@weft.custom_jvp
def cubed(x):
    return x**3


cubed.defjvp(lambda xs, ts: (cubed(*xs), 3 * xs[0] ** 2 * ts[0]))

FUNCTIONS = {
    "sin": wnp.sin,
    "exp_product": lambda x: wnp.exp(x) * wnp.tanh(x) / (1 + x * x),
    "power": lambda x: wnp.sqrt(x) ** 3 + wnp.log(x),
    "special": lambda x: weft.lax.lgamma(x) + weft.lax.erf(x),
    "scan": loop,
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: wnp.cos(c) + i, x),
    "cond": branch,
    "custom_jvp": cubed,
    "jit": weft.jit(lambda x: wnp.arctan(x) * x),
}
CURVE = (0.7, -0.4, 0.3)  # derivatives of the curve


def along(f, order):
    """The derivative of an order along the curve by nested jvp in its parameter."""

    def g(t):
        x = 0.6 + sum(s * t**k / math.factorial(k) for k, s in enumerate(CURVE, 1))
        return f(x)

    def derivative(g):
        return lambda t: weft.jvp(g, (t,), (1.0,))[1]

    for _ in range(order):
        g = derivative(g)
    return g(0.0)


def test_against_nested_jvp():
    with weft.enable_x64(True):
        # One program for all of them.
        compute = weft.jit(
            lambda x, s: {n: jet(f, (x,), (s,)) for n, f in FUNCTIONS.items()},
        )
        expected = weft.jit(
            lambda _: {n: [along(f, k) for k in range(4)] for n, f in FUNCTIONS.items()}
        )(0.0)
        for name, (value, terms) in compute(0.6, CURVE).items():
            np.testing.assert_allclose([value, *terms], expected[name], rtol=1e-9, err_msg=name)


def test_known_values():
    """As jax.experimental.jet gives them."""
    value, terms = jet(wnp.sin, (0.5,), ((1.0, 0.0, 0.0),))
    np.testing.assert_allclose([value, *terms], [0.479426, 0.877583, -0.479426, -0.877583], 1e-5)
    _, terms = jet(wnp.sin, (0.5,), ((1.0, 0.5, 0.3),), factorial_scaled=False)
    np.testing.assert_allclose(terms, [0.877583, 0.199078, -0.122703], 1e-5)
    value, terms = jet(lambda x, y: x * y, (0.5, 2.0), ((1.0, 0.0), (1.0, 0.0)))
    np.testing.assert_allclose([value, *terms], [1, 2.5, 2])


def test_trees_and_other_dtypes():
    def f(d):
        return {"twice": d["x"] * 2, "sign": d["x"] > 0}

    value, terms = jet(f, ({"x": np.ones(2, np.float16)},), (({"x": np.ones(2, np.float16)},),))
    assert value["twice"].dtype == np.float16 and bool(value["sign"].all())
    assert [t.dtype for t in terms["twice"]] == [np.float16]
    assert [t.dtype for t in terms["sign"]] == [np.float32]
    assert jet(lambda x: x, (1.0,), ((),)) == (1.0, [])


def test_arguments_in_a_tree_of_results():
    """The numbers themselves come back, whose terms are numbers as well."""
    value, terms = jet(lambda x: {"a": x}, (1.0,), ((2.0, 0.5),))
    assert value == {"a": 1.0} and terms == {"a": [2.0, 0.5]}


def test_work_grows_with_a_power_of_the_order():
    def num_ops(order):
        f = weft.jit(lambda x: jet(lambda x: wnp.sin(x) * wnp.exp(x), (x,), ((1.0,) * order,)))
        return len(f.trace(0.5).graph)

    assert num_ops(8) < 10 * num_ops(4)


def test_bad_calls():
    with pytest.raises(ValueError, match="as many terms for every argument; got 1, 2"):
        jet(lambda x, y: x * y, (0.5, 2.0), ((1.0,), (1.0, 0.0)))
    with pytest.raises(ValueError, match="one list of terms for each of the 2 primals; got 1"):
        jet(lambda x, y: x * y, (0.5, 2.0), ((1.0,),))
    with pytest.raises(ValueError, match="lists of terms"):
        jet(lambda x: x, (1.0,), ({"a": 1.0},))
    with pytest.raises(ValueError, match="terms like the primals"):
        jet(lambda x: x, ((0.5, 2.0),), ((1.0,),))


def test_weak_types_and_whole_numbers():
    """Terms of weakly typed results are weak, those of constants are weak zeros, as in jax."""

    def described(results):
        return [
            f"{'~' if y.weak_type else ''}{y.dtype}" if hasattr(y, "dtype") else y
            for y in weft.tree.leaves(results)
        ]

    weak, strong = ["~float32"] * 2, ["float32"] * 2
    for f, x, value, terms in [
        (wnp.abs, 2.0, "~float32", weak),
        (wnp.abs, wnp.float32(2), "float32", strong),
        (wnp.abs, 2, "~int32", weak),
        (lambda x: x > 0, 2.0, "~bool", weak),
        (lambda x: 3.0, wnp.float32(2), 3.0, weak),
        (lambda x: wnp.where(x > 0, x.astype("float16"), 0), 2, "float16", ["float16"] * 2),
    ]:
        assert described(jet(f, (x,), ([1.0, 0.0],))) == [value, *terms]
