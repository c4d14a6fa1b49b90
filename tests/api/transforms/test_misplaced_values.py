"""Values of one trace in every place of another: functions, rules, loops, operands of transforms.

Whatever each ends in, it is a value or an error that blames the caller, never weft.
"""

import numpy as np
import pytest
from conftest import EVERYTHING

import weft
import weft.experimental
import weft.numpy as wnp
from weft import errors, lax
from weft.experimental.jet import jet

FLOAT = weft.ShapeDtypeStruct((), np.float32)


def ruled(f, rule):
    made = weft.custom_jvp(f)
    made.defjvp(rule)
    return made


def with_vjp(f, forward, backward):
    made = weft.custom_vjp(f)
    made.defvjp(forward, backward)
    return made


def double(y):
    return y * 2.0


# by name: a function of x, a value of the trace around
PLACES = {
    "jit": lambda x: weft.jit(lambda y: y * x)(2.0),
    "grad": lambda x: weft.grad(lambda y: y * x * y)(2.0),
    "hessian": lambda x: weft.hessian(lambda y: y * x * y)(2.0),
    "vmap": lambda x: weft.vmap(lambda y: y * x)(np.ones(2)).sum(),
    "vmap in": lambda x: weft.vmap(lambda y, z: y * z, in_axes=(0, None))(np.ones(2), x).sum(),
    "scan": lambda x: lax.scan(lambda c, y: (c * x, y * x), 1.0, np.ones(2))[0],
    "scan xs": lambda x: lax.scan(lambda c, y: (c * y, y), 1.0, wnp.stack([x, x]))[0],
    "fori": lambda x: lax.fori_loop(0, 2, lambda i, c: c * x, 1.0),
    "fori traced": lambda x: (
        lax.fori_loop(0, wnp.array(2) + (x > 100).astype(int), lambda i, c: c * 2.0, 1.0) + x
    ),
    "while": lambda x: lax.while_loop(lambda c: c < x + 1, lambda c: c + 1.0, 1.0),
    "while max": lambda x: (
        lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[0] + x
    ),
    "cond": lambda x: lax.cond(x > 0, lambda: x, lambda: 2 * x),
    "switch": lambda x: lax.switch(x.astype(int), [lambda y: y * x, lambda y: y + x], 2.0),
    "ck": lambda x: weft.checkpoint(lambda y: y * x)(2.0),
    "cj primal": lambda x: ruled(lambda y: y * x, lambda p, t: (p[0] * 2, t[0] * 2))(2.0) + x,
    "cj rule": lambda x: ruled(double, lambda p, t: (p[0] * 2, t[0] * x))(x),
    "cj rule value": lambda x: ruled(double, lambda p, t: (p[0] * x, t[0] * 2))(x),
    "cj rule none": lambda x: ruled(double, lambda p, t: None)(x),
    "cj rule swapped": lambda x: ruled(double, lambda p, t: (t[0], p[0]))(x),
    "cj rule tangent as value": lambda x: ruled(double, lambda p, t: (t[0] * 1.0, t[0]))(x),
    "cj rule nonlinear": lambda x: ruled(double, lambda p, t: (p[0], t[0] * t[0]))(x),
    "cj rule while": lambda x: ruled(
        double,
        lambda p, t: (
            p[0],
            lax.while_loop(lambda c: c[0] < 3.0, lambda c: (c[0] + 1, c[1] * 2), (t[0], p[0]))[1],
        ),
    )(x),
    "cj rule both while": lambda x: ruled(
        double,
        lambda p, t: lax.while_loop(
            lambda c: c[0] < 30.0, lambda c: (c[0] * 2, c[1] * 2), (p[0], t[0])
        ),
    )(x),
    "cj rule cond on t": lambda x: ruled(
        double,
        lambda p, t: lax.cond(t[0] > 0, lambda a, b: (a, b), lambda a, b: (a, 2 * b), p[0], t[0]),
    )(x),
    "cj rule int": lambda x: ruled(double, lambda p, t: (p[0], 1))(x),
    "cj rule grad": lambda x: ruled(
        double, lambda p, t: (p[0], weft.grad(lambda z: z * t[0])(p[0]))
    )(x),
    "cj rule lt": lambda x: ruled(
        double, lambda p, t: (p[0], weft.linear_transpose(lambda z: z * p[0], t[0])(t[0])[0])
    )(x),
    "cv": lambda x: with_vjp(double, lambda y: (y * 2, x), lambda r, c: (c * r,))(x),
    "cv bwd": lambda x: with_vjp(double, lambda y: (y * 2, y), lambda r, c: (c * x,))(x),
    "cv bwd bad": lambda x: with_vjp(double, lambda y: (y * 2, y), lambda r, c: (c, c))(x),
    "cv bwd none": lambda x: with_vjp(double, lambda y: (y * 2, y), lambda r, c: None)(x),
    "cv fwd bad": lambda x: with_vjp(double, lambda y: y * 2, lambda r, c: (c,))(x),
    "cv bwd loop": lambda x: with_vjp(
        double, lambda y: (y * 2, y), lambda r, c: (lax.fori_loop(0, 3, lambda i, a: a * r, c),)
    )(x),
    "lt": lambda x: weft.linear_transpose(lambda y: y * x, 2.0)(3.0)[0],
    "lt of x": lambda x: weft.linear_transpose(lambda y: y * 2, x)(x)[0],
    "lt nonlinear": lambda x: weft.linear_transpose(lambda y: y * y, x)(x)[0],
    "cc": lambda x: (lambda f, c: f(2.0, *c))(*weft.closure_convert(lambda y: y * x, 2.0)),
    "jaxpr": lambda x: (weft.make_jaxpr(lambda y: y * x)(2.0), x)[1],
    "eval_shape": lambda x: (weft.eval_shape(lambda y: y * x, 2.0), x)[1],
    "pure_callback": lambda x: weft.pure_callback(lambda y: np.asarray(y), FLOAT, x),
    "io": lambda x: weft.experimental.io_callback(lambda y: np.asarray(y), FLOAT, x),
    "print": lambda x: (weft.debug.callback(lambda y: None, x), x)[1],
    "solve": lambda x: lax.custom_linear_solve(
        lambda y: y * x, x, lambda mv, b: b / x, symmetric=True
    ),
    "solve nosym": lambda x: lax.custom_linear_solve(lambda y: y * x, x, lambda mv, b: b / x),
    "root": lambda x: lax.custom_root(
        lambda y: y * y - x, 1.0, lambda f, y: y, lambda g, y: y / g(1.0)
    ),
    "jvp": lambda x: weft.jvp(lambda y: y * x, (x,), (x,))[1],
    "jvp bad": lambda x: weft.jvp(lambda y: y * x, (x,), (1,))[1],
    "vjp": lambda x: weft.vjp(lambda y: y * x, x)[1](x)[0],
    "vjp bad": lambda x: weft.vjp(lambda y: y * x, x)[1](np.ones(3))[0],
    "lin": lambda x: weft.linearize(lambda y: y * x * y, x)[1](x),
    "jacfwd": lambda x: weft.jacfwd(lambda y: y * x * wnp.ones(3))(x).sum(),
    "np": lambda x: np.sin(x),
    "float": lambda x: float(x) * x,
    "index": lambda x: wnp.arange(3.0)[x.astype(int)] * x,
    "ref": lambda x: (lambda r: r[...] * x)(weft.new_ref(x)),
    "reduce": lambda x: lax.reduce(wnp.ones(3) * x, 0.0, lambda a, b: a + b * 1.0, (0,)),
    "reduce x": lambda x: lax.reduce(wnp.ones(3), 1.0, lambda a, b: a * x + b, (0,)),
    "assoc": lambda x: lax.associative_scan(lambda a, b: a * b * x, wnp.ones(3) * x).sum(),
    "map": lambda x: lax.map(lambda y: y * x, wnp.ones(3)).sum(),
    "composite": lambda x: lax.composite(lambda y: y * 2.0, "a.b")(x),
    "switch lin": lambda x: lax.switch(1, [lambda y: y, lambda y: y * x], x),
}
# how that function is traced
OUTER = {
    "jit": lambda f: weft.jit(f)(1.5),
    "grad": lambda f: weft.grad(f)(1.5),
    "jitgrad": lambda f: weft.jit(weft.grad(f))(1.5),
    "gradgrad": lambda f: weft.grad(weft.grad(f))(1.5),
    "jacfwd2": lambda f: weft.jacfwd(weft.jacfwd(f))(1.5),
    "vmap": lambda f: weft.vmap(f)(np.ones(2, "f")),
    "vmapgrad": lambda f: weft.vmap(weft.grad(f))(np.ones(2, "f")),
    "gradvmap": lambda f: weft.grad(lambda x: weft.vmap(f)(x * np.ones(2, "f")).sum())(1.5),
    "linT": lambda f: weft.linear_transpose(f, 1.5)(1.0),
    "lin": lambda f: weft.linearize(f, 1.5)[1](1.0),
    "scan": lambda f: lax.scan(lambda c, _: (f(c), None), 1.5, None, length=2),
    "gradscan": lambda f: weft.grad(
        lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    )(1.5),
    "gradck": lambda f: weft.grad(weft.checkpoint(f))(1.5),
    "hess": lambda f: weft.jit(weft.hessian(f))(1.5),
    "jet": lambda f: jet(f, (1.5,), ((1.0, 0.0),)),
    "cjouter": lambda f: weft.grad(ruled(f, lambda p, t: weft.jvp(f, p, t)))(1.5),
    "eager": lambda f: f(wnp.array(1.5)),
    "convert": lambda f: weft.closure_convert(f, 1.5),
    "gradcond": lambda f: weft.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x))(1.5),
}


@pytest.mark.parametrize("outer", OUTER)
def test_values_in_wrong_places_are_the_callers_mistakes(outer):
    places = list(PLACES)
    if not EVERYTHING:
        places = places[list(OUTER).index(outer) % 5 :: 5]
    for place in places:
        try:
            OUTER[outer](PLACES[place])
        except (errors.WeftError, TypeError, ValueError) as error:
            assert not isinstance(error, errors.InternalError), f"{place}: {error!r}"
