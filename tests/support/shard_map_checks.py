"""Programs of shard_map and what they give, by NumPy.

As a program, it runs them on eight CPU devices and writes what they give to stdout: for each a list
of the leaves when it runs under jit, and when it does not; and under "random" what is wrong with as
many random programs as its argument says, by their seeds.
"""

import pickle
import sys

import numpy as np
from shard_map_random import mismatch

import weft
from weft import lax, numpy as wnp
from weft.sharding import AbstractMesh, PartitionSpec as P

if __name__ == "__main__":
    weft.config.update("weft_num_cpu_devices", 8)
    MESH = weft.make_mesh((4, 2), ("x", "y"))
else:
    MESH = AbstractMesh((4, 2), ("x", "y"))


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
    def one(w):
        return lax.pcast(w * 0 + 1, ("x", "y"), to="varying")

    y = lax.cond(lax.axis_index("x") > 1, lambda w: wnp.sum(w * x), one, w)
    return lax.psum(y, ("x", "y"))


@weft.custom_vjp
def twice_as_steep(x):
    return wnp.sin(x)


twice_as_steep.defvjp(lambda x: (twice_as_steep(x), x), lambda x, ct: (ct * 2 * wnp.cos(x),))


@weft.custom_vjp
def summed(x):
    return lax.psum(x, "x")


summed.defvjp(lambda x: (summed(x), x), lambda x, ct: (x * lax.pcast(ct, "x", to="varying"),))


def inner(b):
    return lax.psum(b * (1 + lax.axis_index("y")), "y")


def nested(a):
    return weft.shard_map(inner, mesh=MESH, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(
        a
    )


@weft.custom_jvp
def half_as_steep(w, x):
    return wnp.sum(wnp.sin(w * x))


# What the rule computes varies where the argument does not: its transpose has to sum that up.
@half_as_steep.defjvp
def _half(primals, tangents):
    (w, x), (dw, dx) = primals, tangents
    return half_as_steep(w, x), (wnp.cos(w * x) * (x * dw + w * dx)).sum() / 2


def scanned_loss(w, x):
    start = lax.pcast(wnp.float32(0), ("x", "y"), to="varying")
    return lax.scan(lambda c, t: (c + wnp.sin(w * t).sum(), None), start, x)[0]


def pulled(w, x):
    y, pull = weft.vjp(local_loss, w, x)
    return lax.psum(y, ("x", "y")), *pull(wnp.ones_like(y))


def descended(w, xs):
    def step(w, x):
        return w - weft.grad(lambda w: lax.psum(wnp.sin(w * x).sum(), "x"))(w), None

    return lax.scan(step, w, xs)[0]


def transposed(w, x):
    return weft.linear_transpose(lambda w: w * x, w)(x)[0]


def transposed_derivatives(x):
    """Of tangents, which are linear in tangents, and of cotangents."""
    forwards = weft.linearize(lambda x: (x**2).mean(), x)[1]
    backwards = weft.vjp(lambda x: wnp.sin(x) * x.sum(), x)[1]
    one = wnp.ones_like(x)
    return (
        weft.linear_transpose(forwards, x)(forwards(x))[0],
        weft.linear_transpose(lambda ct: backwards(ct)[0], one)(x)[0],
    )


def sums(x):
    """Loops and draws of the library whose carries vary only later, and one that starts alike."""
    total = lax.fori_loop(0, 2, lambda i, c: c + x[i], wnp.zeros_like(x[0]))
    places = wnp.digitize(x[:, 0], np.arange(0.0, 20.0, 5.0, dtype=np.float32))
    key = weft.random.fold_in(weft.random.key(0), lax.axis_index("x"))
    drawn = weft.random.gamma(key, wnp.abs(x) + 1)
    return total[None] + places.sum() + (drawn > 0).sum()


def held(x):
    """Under a mesh that is partly manual, a bare spec is over the rest."""
    return lax.with_sharding_constraint(x * 2, P(None, "y"))


SAME = P()  # along all axes


def within(f, out_specs=SAME, **options):
    return on_mesh(f, WHOLE, out_specs, **options)


def gradient_within(f):
    return on_mesh(lambda w, x: weft.grad(f)(w, x), WHOLE, P())


def mapped(f, **options):
    return weft.pmap(f, "i", **options)


def share(x):
    return x / lax.psum(x, "i")


Y = X.reshape(2, 8)
VALUE, SLOPE = np.sin(W * X).sum(), (np.cos(W * X) * X).sum()
BEND = -(np.sin(W * X) * X * X).sum()
RING = [(i, (i + 1) % 4) for i in range(4)]
# name: (function, arguments, expected)
PROGRAMS = {
    "library_loops": (
        on_mesh(sums, P("x"), P("x")), (X,),
        BLOCKS.sum(1)
        + np.stack([np.digitize(b[:, 0], np.arange(0, 20, 5)).sum() + 4 for b in BLOCKS])[:, None],
    ),
    "bare_spec": (on_mesh(held, P("x"), P("x"), axis_names={"x"}), (X,), X * 2),
    "transposed_derivatives": (
        on_mesh(transposed_derivatives, P("x"), P("x")), (X,),
        ((BLOCKS * (BLOCKS**2).mean((1, 2), keepdims=True)).reshape(X.shape),
         ((np.cos(BLOCKS) * BLOCKS + np.sin(BLOCKS)) * BLOCKS.sum((1, 2), keepdims=True))
         .reshape(X.shape)),
    ),
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
    "all_gather_invarying": (
        on_mesh(lambda x: lax.all_gather(x, "x", tiled=True, to="invarying"), P("x", "y"),
                P(None, "y")), (X,), X,
    ),
    "grad_of_all_gather_invarying": (
        weft.grad(lambda x: on_mesh(
            lambda a: wnp.sin(lax.all_gather(a, "x", tiled=True, to="invarying")),
            P("x"), P())(x).sum()), (X,), np.cos(X)),
    "psum_over_no_axis": (on_mesh(lambda x: lax.psum(x, ()), P("x"), P("x")), (X,), X),
    "no_specs": (on_mesh(lambda x: x * 2, None, P()), (X,), X * 2),
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
    # Its cotangent varies over the axis that it sums over.
    "grad_of_custom_sum": (
        weft.grad(lambda x: on_mesh(summed, P("x"), P())(x).sum()), (X,), X,
    ),
    "vmap_of_grad_of_custom_sum": (
        weft.vmap(weft.grad(lambda x: on_mesh(summed, P("x"), P())(x).sum())),
        (np.stack([X, 2 * X]),), np.stack([X, 2 * X]),
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
    "vjp_within": (within(pulled, (P(), P(), P("x", "y"))), (W, X),
                   (VALUE, SLOPE, np.cos(W * X) * W)),
    "vjp_within_unchecked": (
        within(lambda w, x: pulled(w, x)[::2], (P(), P("x", "y")), check_vma=False), (W, X),
        (VALUE, np.cos(W * X) * W)),
    "linear_transpose_within": (within(transposed), (W, X), (X * X).sum()),
    "linearize_within": (
        within(lambda w, x: weft.linearize(loss, w, x)[1](w, 0 * x)), (W, X), W * SLOPE),
    "jacrev_within": (
        within(lambda v, x: weft.jacrev(lambda v: lax.psum(wnp.sin(v * x.sum()), ("x", "y")))(v)),
        (V, X),
        np.diag([(np.cos(v * (S := BLOCKS.sum(1))) * S).sum() for v in V]),
    ),
    "hessian_within": (within(lambda w, x: weft.hessian(local_loss)(w, x)), (W, X), BEND),
    "jvp_of_grad_within": (
        within(lambda w, x: weft.jvp(lambda w: weft.grad(loss)(w, x), (w,), (w,))[1]), (W, X),
        W * BEND),
    "hessian_of_scan_within": (within(lambda w, x: weft.hessian(scanned_loss)(w, x)), (W, X), BEND),
    "value_and_grad_aux_within": (
        within(lambda w, x: weft.value_and_grad(lambda w: (loss(w, x), x), has_aux=True)(w),
               ((P(), P("x", "y")), P())), (W, X), (VALUE, X, SLOPE)),
    "grad_of_custom_jvp_within": (gradient_within(half_as_steep), (W, X), SLOPE / 2),
    "grad_of_grad_of_custom_jvp_within": (
        gradient_within(weft.grad(half_as_steep)), (W, X), BEND / 2),
    "grad_of_checkpoint_within": (gradient_within(weft.checkpoint(local_loss)), (W, X), SLOPE),
    "grad_of_jvp_of_grad_around": (
        weft.grad(lambda w, x: within(lambda w, x: weft.jvp(
            lambda w: weft.grad(loss)(w, x), (w,), (w,))[0])(w, x)), (W, X), BEND),
    "descent_within": (
        on_mesh(descended, (P(), P("x")), P()), (W, X[:4] * 0 + 1), W - 8 * np.cos(W)),
    "ambient_mesh_within": (
        on_mesh(lambda a: weft.shard_map(inner, in_specs=P(None, "y"), out_specs=P())(a),
                P("x"), P("x"), axis_names={"x"}),
        (X,), X @ np.float32([[1], [2]])),
    "vmap_of_grad_within": (
        on_mesh(lambda w, x: weft.vmap(weft.grad(local_loss), (0, None))(w, x), WHOLE, P()),
        (V, X), [(np.cos(v * X) * X).sum() for v in V],
    ),
    "pmap": (mapped(share), (X,), X / X.sum(0)),
    "pmap_of_some_devices": (weft.pmap(lambda x: x @ x), (X[:3],), (X[:3] ** 2).sum(1)),
    "pmap_axes": (
        mapped(lambda d, y: {"p": d["a"] * y, "s": lax.psum(d["b"], "i")},
               in_axes=({"a": 1, "b": 0}, None), out_axes={"p": 1, "s": None}),
        ({"a": Y, "b": X}, 2.0), {"p": Y * 2, "s": X.sum(0)},
    ),
    "pmap_keywords": (
        lambda x: mapped(lambda x, n, *, y: x * n + y, in_axes=(0, 0),
                         static_broadcasted_argnums=1)(x, 3, y=x), (X,), X * 4),
    "pmap_index": (mapped(lambda x: x * 0 + lax.axis_index("i")), (X[:, 0],), np.arange(8.0)),
    "grad_of_pmap": (weft.grad(lambda w, x: (mapped(lambda w, x: w * x, in_axes=(None, 0))(w, x)
                                             ** 2).sum()), (W, X), 2 * W * (X * X).sum()),
    "grad_within_pmap": (mapped(weft.grad(lambda x: lax.psum(x**3, "i"))), (X[:, 0],),
                         24 * X[:, 0] ** 2),
    "vmap_of_pmap": (weft.vmap(mapped(share), in_axes=1, out_axes=1), (X,), X / X.sum(0)),
    "jvp_of_pmap": (lambda x: weft.jvp(mapped(share), (x,), (x,)), (X,), (X / X.sum(0), 0 * X)),
}  # fmt: skip


def answers(f, arguments):
    try:
        return [
            [np.asarray(x) for x in weft.tree_util.tree_leaves(g(*arguments))]
            for g in (weft.jit(f), f)
        ]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    made = {name: answers(f, arguments) for name, (f, arguments, _) in PROGRAMS.items()}
    made["random"] = {seed: mismatch(seed) for seed in range(int(sys.argv[1]))}
    sys.stdout.buffer.write(pickle.dumps(made))
