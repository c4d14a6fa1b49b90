"""shard_map on a mesh of eight CPU devices against NumPy, its derivatives, and what it refuses."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import _core, lax, numpy as wnp

MESH = _core.make_mesh(("x", "y"), (4, 2), (0, 0), ())


class P:
    """What shard_map needs of a PartitionSpec."""

    unreduced = frozenset()

    def __init__(self, *entries):
        self.entries = entries

    def __iter__(self):
        return iter(self.entries)

    def __repr__(self):
        return f"P{self.entries}"


def on_mesh(f, in_specs, out_specs, **options):
    return weft.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


rng = np.random.default_rng(0)
X = rng.normal(size=(8, 2)).astype(np.float32)
V = rng.normal(size=2).astype(np.float32)
W = np.float32(0.7)
BLOCKS = X.reshape(4, 2, 2)
WHOLE = (P(), P("x", "y"))


def loss(w, x):
    return lax.psum(wnp.sum(wnp.sin(w * x)), ("x", "y"))


def local_loss(w, x):
    return wnp.sum(wnp.sin(w * x))


total = on_mesh(loss, WHOLE, P())
unchecked = on_mesh(loss, WHOLE, P(), check_vma=False)


def scanned(w, xs):
    def body(c, x):
        return c + wnp.sin(w * x).sum(), lax.psum(x, "x")

    start = lax.pcast(wnp.float32(0), ("x", "y"), to="varying")
    c, ys = lax.scan(body, start, xs)
    return lax.psum(c, ("x", "y")), ys


scan = on_mesh(scanned, WHOLE, (P(), P(None, "y")))


def branches(w, x):
    y = lax.cond(lax.axis_index("x") > 1, lambda w: wnp.sum(w * x), lambda w: w * 0 + 1, w)
    return lax.psum(y, ("x", "y"))


@weft.custom_vjp
def twice_as_steep(x):
    return wnp.sin(x)


twice_as_steep.defvjp(lambda x: (twice_as_steep(x), x), lambda x, ct: (ct * 2 * wnp.cos(x),))


def inner(b):
    return lax.psum(b * (1 + lax.axis_index("y")), "y")


def nested(a):
    return weft.shard_map(inner, mesh=MESH, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(
        a
    )


def gradient_within(f):
    return on_mesh(lambda w, x: weft.grad(f)(w, x), WHOLE, P())


VALUE, SLOPE = np.sin(W * X).sum(), (np.cos(W * X) * X).sum()
BEND = -(np.sin(W * X) * X * X).sum()
RING = [(i, (i + 1) % 4) for i in range(4)]
# name: (function, arguments, expected)
PROGRAMS = {
    "parts": (on_mesh(lambda x: x * 2, P("x"), P("x")), (X,), X * 2),
    "psum": (on_mesh(lambda x: lax.psum(x, "x"), P("x"), P()), (X,), BLOCKS.sum(0)),
    "pmean_tree": (
        on_mesh(lambda t: {"m": lax.pmean(t["a"], "x"), "s": t["b"]},
                ({"a": P("x"), "b": P()},), {"m": P(), "s": P()}),
        ({"a": X, "b": V},), {"m": BLOCKS.mean(0), "s": V},
    ),
    "pmax": (on_mesh(lambda x: lax.pmax(x, ("x", "y")), P("x", "y"), P()), (X,),
             X.reshape(4, 2, 2, 1).max((0, 2))),
    "psum_scatter": (
        on_mesh(lambda x: lax.psum_scatter(x, "x", tiled=True), P(None, "y"), P("x", "y")),
        (X,), X * 4,
    ),
    "all_gather_names": (
        on_mesh(lambda x: lax.all_gather(x, ("x", "y"), tiled=True), P(("x", "y")),
                P(("x", "y"))),
        (X,), np.tile(X, (8, 1)),
    ),
    "all_to_all": (
        on_mesh(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P(None, "x")),
        (np.arange(64.0, dtype=np.float32).reshape(8, 8),),
        np.arange(64.0, dtype=np.float32).reshape(8, 8),
    ),
    "axis_index": (
        on_mesh(lambda x: x * 0 + lax.axis_index(("x", "y")), P(("x", "y")), P(("x", "y"))),
        (X,), np.repeat(np.arange(8.0, dtype=np.float32), 2).reshape(8, 2),
    ),
    "partly_manual": (
        on_mesh(lambda x: lax.psum(x * (1 + lax.axis_index("y")), "y"), P(None, "y"), P(),
                axis_names={"y"}),
        (X,), X @ np.float32([[1], [2]]),
    ),
    "nested": (on_mesh(nested, P("x"), P("x"), axis_names={"x"}), (X,),
               X @ np.float32([[1], [2]])),
    "closed_over": (lambda w, x: on_mesh(lambda x: x * w, P("x"), P("x"))(x), (W, X), X * W),
    "while": (
        on_mesh(lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1),
                                         (x, 0))[0], P("x"), P("x")),
        (X,), X * 8,
    ),
    "scan": (scan, (W, X), (VALUE, BLOCKS.sum(0))),
    "jvp": (lambda w, x: weft.jvp(total, (w, x), (w, x)), (W, X),
            (VALUE, 2 * W * SLOPE)),
    "grad": (weft.value_and_grad(total), (W, X), (VALUE, SLOPE)),
    "grad_unchecked": (weft.value_and_grad(unchecked, 1), (W, X), (VALUE, np.cos(W * X) * W)),
    "grad_of_replicated_unchecked": (weft.grad(unchecked), (W, X), SLOPE),
    "grad_of_grad": (weft.grad(weft.grad(total)), (W, X), BEND),
    "vmap": (weft.vmap(total, (0, None)), (V, X), [np.sin(v * X).sum() for v in V]),
    "vmap_of_grad": (weft.vmap(weft.grad(total), (0, None)), (V, X),
                     [(np.cos(v * X) * X).sum() for v in V]),
    "grad_of_scan": (weft.grad(lambda w, x: scan(w, x)[0]), (W, X), SLOPE),
    "grad_of_cond": (weft.grad(on_mesh(branches, WHOLE, P())), (W, X), X[4:].sum()),
    "grad_of_closed_over": (
        weft.grad(lambda w, x: on_mesh(lambda x: lax.psum((x * w).sum(), "x"), P("x"), P())(x)),
        (W, X), X.sum(),
    ),
    "grad_of_checkpoint": (weft.grad(on_mesh(weft.checkpoint(loss), WHOLE, P())), (W, X), SLOPE),
    "grad_of_custom_vjp": (
        weft.grad(on_mesh(lambda w, x: lax.psum(wnp.sum(twice_as_steep(w * x)), ("x", "y")),
                          WHOLE, P())),
        (W, X), 2 * SLOPE,
    ),
    "grad_of_ppermute": (
        weft.grad(lambda x: (on_mesh(lambda a: lax.ppermute(a, "x", RING), P("x"), P("x"))(x)
                             * x).sum()),
        (X,), np.roll(X, 2, 0) + np.roll(X, -2, 0),
    ),
    "grad_of_all_gather": (
        weft.grad(lambda x: on_mesh(lambda a: wnp.sin(lax.all_gather(a, "x", tiled=True)),
                                    P("x"), P(), check_vma=False)(x).sum()),
        (X,), np.cos(X),
    ),
    # The sum over devices is part of the gradient of what is the same for all.
    "grad_within": (gradient_within(local_loss), (W, X), SLOPE),
    "grad_of_psum_within": (gradient_within(loss), (W, X), SLOPE),
    "grad_of_jit_within": (gradient_within(weft.jit(local_loss)), (W, X), SLOPE),
    "grad_of_grad_within": (gradient_within(weft.grad(loss)), (W, X), BEND),
    "vmap_of_grad_within": (
        on_mesh(lambda w, x: weft.vmap(weft.grad(local_loss), (0, None))(w, x), WHOLE, P()),
        (V, X), [(np.cos(v * X) * X).sum() for v in V],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers():
    programs = []
    for f, arguments, _ in PROGRAMS.values():
        text = weft.jit(f, keep_unused=True).lower(*arguments).as_text()
        programs.append((text, weft.tree_util.tree_leaves(arguments)))
    made = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "eight_devices.py")],
        input=pickle.dumps(programs),
        capture_output=True,
        timeout=240,
        check=True,
    )
    return dict(zip(PROGRAMS, pickle.loads(made.stdout), strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_eight_devices(name, answers):
    want = PROGRAMS[name][2]
    leaves = [want] if isinstance(want, list) else weft.tree_util.tree_leaves(want)
    assert not isinstance(answers[name], str), answers[name]
    for got, expected in zip(answers[name], leaves, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_decorator_and_former_name():
    @weft.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    def double(x):
        return x * 2

    former = weft.experimental.shard_map.shard_map(lambda x: x * 2, MESH, P("x"), P("x"))
    assert double.__name__ == "double"
    assert "shard_map" in str(weft.make_jaxpr(double)(X))
    assert weft.make_jaxpr(former)(X).out_avals[0].shape == (8, 2)


def test_specs_without_split_of_an_argument_that_is_handed_on():
    f = on_mesh(lambda x, n: x * n, (P("x"), None), P("x"))
    assert "3.0" in str(weft.make_jaxpr(f, static_argnums=1)(X, 3))


BAD = {
    "varying_result": (lambda x: x, P("x"), P(), ValueError, "varies over 'x'"),
    "size": (lambda x: x, P(("x", "y", )), P("x"), None, ""),
    "rank": (lambda x: x, P("x", None, "y"), P("x"), ValueError, "at most 2 dimensions"),
    "result_rank": (lambda x: x.sum(), P("x"), P("x"), ValueError, "at most 0 dimensions"),
    "axis": (lambda x: x, P("z"), P("x"), ValueError, "got 'z'"),
    "axis_twice": (lambda x: x, P("x", "x"), P("x"), ValueError, "'x' twice"),
    "tree": (lambda x: x, (P("x"), P("x")), P("x"), ValueError, "tuple of length 2"),
    "no_spec": (lambda x: x, P("x"), 3, TypeError, "expected PartitionSpecs"),
    "unbound": (lambda x: lax.psum(x, "q"), P("x"), P("x"), NameError, "'x', 'y'"),
    "cast": (lambda x: lax.pcast(x, "x", to="much"), P("x"), P("x"), ValueError, "'varying'"),
    "carry": (lambda x: lax.scan(lambda c, t: (c + t.sum(), None), 0.0, x)[0], P("x"), P(),
              TypeError, "varies over 'x' only after the first"),
    "nested": (lambda x: on_mesh(lambda y: y, P(None), P("x"))(x), P("x"), P("x"), ValueError,
               "no shard_map around it has"),
    "vjp_within": (lambda x: weft.vjp(wnp.sin, x)[1](x)[0], P("x"), P("x"), NotImplementedError,
                   "Use grad"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name):
    f, in_specs, out_specs, error, message = BAD[name]
    if error is None:
        with pytest.raises(ValueError, match="divisible by 8"):
            weft.make_jaxpr(on_mesh(f, in_specs, out_specs))(X[:6])
        return
    with pytest.raises(error, match=message):
        weft.make_jaxpr(on_mesh(f, in_specs, out_specs))(X)


def test_collectives_outside():
    with pytest.raises(NameError, match="where none is"):
        lax.psum(X, "x")
