"""What test_explicit.py runs in a process with eight CPU devices. Its argument: every n-th row.

Rows are compared with what jax answers (explicit_rows.py); what differs is in DIFFERENT, with why.
"""

import functools
import json
import sys
from importlib.metadata import version

import numpy as np
from explicit_rows import GOLDEN, GROUPS, NAMES, SIZES, answer, cases, dims_of, expressions
from sharding_checks import raises, same

import weft
import weft.numpy as wnp
from weft import lax
from weft.errors import ShardingError, ShardingTypeError
from weft.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

weft.config.update("weft_num_cpu_devices", 8)
MESH = weft.make_mesh(SIZES, NAMES, axis_types=(AxisType.Explicit,) * 2)
HOST = np.arange(128, dtype=np.float32).reshape(8, 16)

# Expressions of which some rows give a result where jax raises, by why.
DIFFERENT = {
    "unary: lax.reshape(a, (1, 128))": "axes of size 1 do not matter",
    "binary: lax.sort((a, b), dimension=0, num_keys=1)": "what is not split gives way",
    "binary: lax.dynamic_update_slice(a, b, (0, 0))": "a block that is not split gives way",
    "binary: lax.dynamic_update_slice(a, b[:4], (0, 0))": "a block that is not split gives way",
    "binary: lax.dynamic_update_slice(a, b[:, :8], (0, 0))": "a block that is not split gives way",
    "binary: lax.dynamic_update_slice(a, b[0:1], (0, 0))": "a block that is not split gives way",
    "binary: jax.vmap(lambda u: u + b[0])(a)": "what vmap makes is not held to the rules",
    "vector: jax.vmap(lambda u: u * b)(a)": "what vmap makes is not held to the rules",
    "index: jax.ops.segment_sum(a, b.astype('int32'), 4)": "updates that are not split give way",
    "batched: a @ b": "matmul is one product with batch axes",
    "cube: lax.linalg.cholesky(a[:, :8])": "stacks of matrices may be split",
    "given: a.at[0].get(out_sharding=P('y'))": "out_sharding counts for slices too",
    "given: np.broadcast_to(a, (2, 8, 16), out_sharding=P('x', None, 'y'))": "as in lax",
}

IS_JAXLIB_0_10 = version("jaxlib").startswith("0.10.")


def rows(step):
    """Every step-th row of each expression, from another one for each."""
    golden, bad, count = json.loads(GOLDEN.read_text()), [], 0
    names = {"jax": weft, "np": wnp, "lax": weft.lax, "P": P}
    with weft.set_mesh(MESH):
        for number, (group, expression) in enumerate(expressions()):
            key = f"{group}: {expression}"
            lenient = key in DIFFERENT
            function = eval(f"lambda a, b=None: {expression}", names)
            wanted = golden[key].split("; ")
            for i in range(number % step, len(wanted), step):
                specs = cases(group)[i]
                args = [
                    weft.ShapeDtypeStruct(
                        shape, "float32", sharding=NamedSharding(MESH, P(*dims_of(s, len(shape))))
                    )
                    for shape, s in zip(GROUPS[group][0], specs, strict=True)
                ]
                call = functools.partial(weft.eval_shape, function)
                got = answer(call, args, weft.tree.leaves)
                count += 1
                if lenient and (wanted[i][0] == "!" or key.startswith("given")):
                    continue
                if got != wanted[i] and not (got[0] == wanted[i][0] == "!"):
                    bad.append(
                        f"{key}: {' '.join(s or '-' for s in specs)}: {got}, not {wanted[i]}"
                    )
    return count, bad


def split(*spec):
    return NamedSharding(MESH, P(*spec))


def types():
    x = weft.device_put(HOST, split("x", "y"))
    assert str(weft.typeof(x)) == "float32[8@x,16@y]", weft.typeof(x)
    assert repr(weft.typeof(x.T)) == "ShapedArray(float32[16@y,8@x])"
    assert str(weft.typeof(weft.device_put(HOST, split(("x", "y"))))) == "float32[8@(x,y),16]"
    sharding = weft.typeof(x).sharding
    assert sharding.spec == P("x", "y") and sharding.mesh == MESH.abstract_mesh
    assert isinstance(sharding.mesh, AbstractMesh)
    seen = []

    @weft.jit
    def f(a):
        seen.append(str(weft.typeof(a)))
        return a.sum(axis=0), a.T

    total, turned = f(x)
    assert total.sharding == split("y") and turned.sharding == split("y", "x")
    same(total, HOST.sum(axis=0))
    f(weft.device_put(HOST, split(None, "x")))
    f(x)
    assert seen == ["float32[8@x,16@y]", "float32[8,16@x]"]
    assert weft.eval_shape(lambda a: a.T, x).sharding.spec == P("y", "x")
    other = weft.make_mesh((8,), ("z",), axis_types=(AxisType.Explicit,))
    with weft.set_mesh(other):
        assert str(weft.typeof(x)) == "float32[8@x,16@y]", weft.typeof(x)
        moved = weft.reshard(x, P("z"))
        assert moved.sharding == NamedSharding(other, P("z"))
        same(moved, HOST)
        with raises(ShardingTypeError, "on one mesh"):
            moved + x
    held = weft.new_ref(x)
    assert str(weft.typeof(held)) == "Ref{float32[8@x,16@y]}", weft.typeof(held)


def eager():
    x = weft.device_put(HOST, split("x", "y"))
    w = weft.device_put(HOST.T, split(None, "y"))
    assert (x + 1).sharding == x.sharding and x.sum(axis=1).sharding == split("x")
    with raises(
        ShardingTypeError, "matmul", "f32[8@x,16@y]", "P('x', None) or", "out_sharding", ".py:"
    ):
        x @ x.T
    with raises(ShardingTypeError, "reshape", "weft.reshard"):
        x.T.reshape(8, 16)
    y = weft.device_put(HOST, split("x")) @ w
    assert y.sharding == split("x", "y")
    same(y, HOST @ HOST.T)
    without = weft.typeof(wnp.asarray(HOST)).sharding  # over no mesh: nothing to split
    same(wnp.zeros(HOST.shape, out_sharding=without), HOST * 0)
    with weft.set_mesh(MESH):
        assert wnp.dot(x, x.T, out_sharding=P("x", None)).sharding == split("x")
        same(wnp.dot(x, x.T, out_sharding=P("x", None)), HOST @ HOST.T)
        assert wnp.zeros((8, 4), out_sharding=P("x")).sharding == split("x")
        of_type = weft.typeof(x).sharding  # over the mesh without its devices
        assert weft.reshard(HOST, of_type).sharding == x.sharding
        moved = weft.reshard({"a": x}, P("y"))["a"]
        assert moved.sharding == split("y")
        same(moved, HOST)
        assert weft.random.normal(weft.random.key(0), (8,), out_sharding=P("x")).sharding == split(
            "x"
        )
        with raises(ShardingError, "divisible"):
            weft.reshard(wnp.ones(3), P("x"))
        with raises(ValueError, "'z'"):
            weft.reshard(x, P("z"))
    with raises(ValueError, "None"):
        weft.reshard(x, None)


def programs():
    x = weft.device_put(HOST, split("x", "y"))
    w = weft.device_put(HOST.T / 100, split("y", None))

    def loss(x, w):
        y = wnp.dot(x, w, out_sharding=P("x", None))
        return (wnp.tanh(y) ** 2).sum()

    plain = weft.value_and_grad(lambda x, w: (wnp.tanh(x @ w) ** 2).sum(), (0, 1))
    with weft.set_mesh(MESH):
        for f in (weft.value_and_grad(loss, (0, 1)), weft.jit(weft.value_and_grad(loss, (0, 1)))):
            value, (dx, dw) = f(x, w)
            assert dx.sharding == x.sharding and dw.sharding == w.sharding
            expected = weft.tree.leaves(plain(HOST, HOST.T / 100))
            for got, wanted in zip((value, dx, dw), expected, strict=True):
                same(got, np.asarray(wanted))
        left = weft.device_put(HOST, split("x"))
        for n in range(1, 6):  # of unsplit values the later ones run op by op
            slope = weft.grad(lambda w, n=n: ((left @ w) ** n).sum())(HOST.T / 1000)
            expected = weft.grad(lambda w, n=n: ((HOST @ w) ** n).sum())(HOST.T / 1000)
            same(slope, np.asarray(expected))
        rows = weft.device_put(HOST, split(None, "y"))
        carry = weft.device_put(HOST[0], split("y"))

        @weft.jit
        def loop(rows, carry):
            return weft.lax.scan(weft.checkpoint(lambda c, r: (c + r, c * r)), carry, rows)

        last, stacked = loop(rows, carry)
        assert last.sharding == split("y") and stacked.sharding == split(None, "y")
        same(last, HOST.sum(axis=0) + HOST[0])
        with raises(ShardingTypeError, "carry", "f32[16]", "f32[16@y]"):
            weft.lax.scan(lambda c, r: (c + r, r), wnp.zeros(16), rows)
        with raises(ValueError, "axis 0"):
            weft.lax.scan(lambda c, r: (c, r), 0.0, x)
        with raises(ShardingTypeError, "branches"):
            weft.lax.cond(True, lambda a, b: a, lambda a, b: b, x, rows)
        mapped = weft.vmap(lambda a: weft.reshard(a * 2, P(None)))(x)
        same(mapped, HOST * 2)
        halves = weft.shard_map(lambda a: a * 2, in_specs=P("x", "y"), out_specs=P("x", "y"))
        assert weft.jit(halves)(x).sharding == x.sharding


def checked(cases):
    """Rows of a function, its arguments, how its result is split, and the values."""
    for f, args, spec, wanted in cases:
        for g in (f, weft.jit(f)):
            got = g(*args)
            assert got.sharding == split(*spec), (got.sharding, spec)
            same(got, wanted)


def lanes():
    """What a mapped axis that is split makes of results that have no other way to follow."""
    places = HOST.astype(int) % 16
    with weft.set_mesh(MESH):
        x, rows = weft.device_put(HOST, split("x", "y")), weft.device_put(HOST, split("x"))
        at = weft.device_put(places, split("x"))
        doubled = weft.shard_map(lambda v: 2 * v, in_specs=P("y"), out_specs=P("y"))
        ones = weft.vmap(lambda v: wnp.ones(3), out_axes=1)
        taken = weft.vmap(lambda v, i: v.at[i].get(out_sharding=P("y")))
        put = weft.vmap(lambda v: weft.reshard(wnp.arange(4.0), P("y")))
        checked(
            [
                (ones, (rows,), (None, "x"), np.ones((3, 8))),
                (weft.vmap(ones, 1), (x,), ("y", None, "x"), np.ones((16, 3, 8))),
                (weft.vmap(doubled), (x,), ("x", "y"), 2 * HOST),
                (taken, (rows, at), ("x", "y"), np.take_along_axis(HOST, places, 1)),
                (put, (rows,), ("x", "y"), np.tile(np.arange(4.0), (8, 1))),
            ]
        )
        with raises(ShardingError, "spmd_axis_name", "split over x"):
            weft.vmap(lambda v: v, spmd_axis_name="y")(rows)


def updates():
    """Blocks at a computed place of an array that is split along other dimensions."""
    columns, row = HOST.copy(), HOST[0] + 1
    with weft.set_mesh(MESH):
        x, i = weft.device_put(HOST, split(None, "y")), wnp.asarray(3)
        for kind, f in (
            ("set", None),
            ("add", np.add),
            ("multiply", np.multiply),
            ("min", np.minimum),
        ):
            columns[3] = row if f is None else f(HOST[3], row)
            for values in (row, weft.device_put(row, split("y"))):
                update = functools.partial(
                    lambda kind, v, x, i: getattr(x.at[i], kind)(v), kind, values
                )
                checked([(update, (x, i), (None, "y"), columns)])
        columns[::2] = 7
        columns[1::2] = HOST[1::2]
        checked([(lambda x: x.at[::2].set(7), (x,), (None, "y"), columns)])
        batch = weft.device_put(HOST.reshape(2, 4, 16), split("x", None, "y"))
        at = weft.device_put(np.array([1, 3]), split("x"))
        wanted = HOST.reshape(2, 4, 16).copy()
        wanted[0, 1] = wanted[1, 3] = 0
        zeroed = weft.vmap(lambda x, i: x.at[i].set(0))
        checked([(zeroed, (batch, at), ("x", None, "y"), wanted)])


def stacks_of_matrices():
    """Linear algebra on stacks that are split."""
    stack = np.random.default_rng(0).normal(size=(8, 3, 3)).astype(np.float32) + 4 * np.eye(3)
    stack = stack.astype(np.float32)
    one, rows = stack[:, :, :1], stack[:, 0]
    packed, taus = stack, rows
    linalg, diagonals = wnp.linalg, (stack[:, 0] * [0, 1, 1], rows + 9, stack[:, 2] * [1, 1, 0])
    diagonals = [d.astype(np.float32) for d in diagonals]
    with weft.set_mesh(MESH):
        for f, args in (
            (linalg.solve, (stack, one)),
            (linalg.inv, (stack,)),
            (weft.vmap(linalg.solve), (stack, rows)),
            (weft.grad(lambda a, b: linalg.solve(a, b).sum()), (stack, one)),
            (
                lambda a, b: weft.scipy.linalg.lu_solve(weft.scipy.linalg.lu_factor(a), b),
                (stack, one),
            ),
            (lax.linalg.tridiagonal_solve, (*diagonals, one)),
            (lax.linalg.householder_product, (packed, taus)),
        ):
            parts = [weft.device_put(np.asarray(x), split("y")) for x in args]
            got = f(*parts)
            assert got.sharding == split("y"), got.sharding
            same(got, f(*map(np.asarray, args)))
        key = np.arange(4, dtype=np.uint32)
        bits = lax.rng_bit_generator(key, (4, 8), out_sharding=P("x"))[1]
        assert bits.sharding == split("x")
        same(bits, np.asarray(lax.rng_bit_generator(key, (4, 8))[1]))


def parts():
    """shard_map where splits are types: what arguments say, what it refuses, smap."""
    x = weft.device_put(HOST, split("x", "y"))
    with weft.set_mesh(MESH):
        inferred = weft.shard_map(lambda a: a * 2, out_specs=P("x", "y"))
        assert inferred(x).sharding == weft.jit(inferred)(x).sharding == x.sharding
        rows = weft.device_put(HOST, P("x"))
        for spec in (P("x"), P("x", None)):
            f = weft.shard_map(lambda a: a * 2, in_specs=spec, out_specs=spec)
            assert f(rows).sharding == split("x")
        wrong = weft.shard_map(lambda a: a, in_specs=P("y", "x"), out_specs=P("x"))
        with raises(ValueError, "split as in_specs says", "[8@x,16@y]"):
            wrong(x)
        seen = []

        def doubled(a):
            seen.append(str(weft.typeof(a)))
            return a * 2

        for f in (
            weft.smap(doubled, in_axes=0, out_axes=0, axis_name="x"),
            weft.smap(doubled, out_axes=0, axis_name="x"),
            weft.shard_map(doubled, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}),
        ):
            got = weft.jit(f)(x)
            assert got.sharding == x.sharding, got.sharding
            same(got, HOST * 2)
        assert set(seen) == {f"float32[{8 // SIZES[0]},16@y]{{V:x}}"}, seen
        total = weft.smap(lambda a: weft.lax.psum(a, "y"), in_axes=1, out_axes=None, axis_name="y")
        same(total(x), HOST.reshape(8, SIZES[1], -1).sum(1))
        assert str(weft.typeof(x.flatten(out_sharding=P("x")))) == "float32[128@x]"

        def moved(w, y):
            return weft.vjp(lambda w: wnp.sin(w) + y, w)[1](y)[0]

        assert str(weft.typeof(moved(weft.reshard(wnp.ones((8, 16)), P()), x))) == "float32[8,16]"
        with raises(AssertionError, "with_sharding_constraint"):
            weft.lax.with_sharding_constraint(x, P("y", "x"))
        with raises(ValueError, "UNCONSTRAINED"):
            weft.reshard(x, P(P.UNCONSTRAINED))
    mixed = weft.make_mesh(SIZES, NAMES, axis_types=(AxisType.Explicit, AxisType.Auto))
    y = weft.device_put(HOST, NamedSharding(mixed, P("x", "y")))
    with weft.set_mesh(mixed):
        assert str(weft.typeof(y)) == "float32[8@x,16]"
        for f in (lambda a: a + 1, weft.jit(lambda a: a * 2)):
            assert f(y).sharding == y.sharding, f(y).sharding
        assert weft.jit(lambda a: a.T)(y).sharding.spec == P("y", "x")
        assert weft.jit(lambda a: a.sum(1))(y).sharding.spec == P("x")
        pinned = weft.jit(lambda a: weft.lax.with_sharding_constraint(a, P(None, "y")))
        assert pinned(weft.device_put(HOST, P("x"))).sharding == y.sharding
        with raises(ValueError, "type Explicit", "'y'"):
            weft.reshard(x, P("x", "y"))
        with raises(ValueError, "type Auto", "'x'"):
            weft.jit(lambda x: weft.lax.with_sharding_constraint(x, P("x")))(HOST)


def modes():
    x = weft.device_put(HOST, split("x", "y"))
    seen = []

    def product(a):
        seen.append(str(weft.typeof(a)))
        return a @ a.T

    with weft.set_mesh(MESH):
        auto = weft.sharding.auto_axes(product, out_sharding=P("y"))
        for f in (auto, weft.jit(auto), weft.sharding.auto_axes(product, axes=("x", "y"))):
            got = (
                f(x)
                if f is not None and f.__wrapped__ is not product
                else f(x, out_sharding=P("y"))
            )
            assert got.sharding == split("y"), got.sharding
            same(got, HOST @ HOST.T)
        partly = weft.sharding.auto_axes(product, axes="x", out_sharding=P())
        partly(weft.device_put(HOST, split("x")))
        assert seen == ["float32[8,16]"] * 4, seen
        with raises(TypeError, "out_sharding"):
            weft.sharding.auto_axes(product)(x)
        with raises(ValueError, "'z'"):
            weft.sharding.auto_axes(product, axes="z", out_sharding=P())(x)
    auto_mesh = weft.make_mesh(SIZES, NAMES)
    y = weft.device_put(HOST, NamedSharding(auto_mesh, P("x", "y")))
    kinds = []

    def double(a):
        kinds.append((str(weft.typeof(a)), weft.sharding.get_abstract_mesh().axis_types))
        return a * 2

    with weft.set_mesh(auto_mesh):
        for f in (lambda g: g, weft.jit):
            same(f(weft.sharding.explicit_axes(double, in_sharding=P("y", "x")))(y), HOST * 2)
        kept = weft.sharding.auto_axes(lambda a: a * 2, out_sharding=P("y"))
        assert kept(y).sharding == y.sharding
    assert kinds == [("float32[8@y,16@x]", (AxisType.Explicit,) * 2)] * 2, kinds


def unreduced():
    """Sums that are not made yet: types of arrays, values, and what cannot be read."""
    left, right = HOST.reshape(16, 8)[:, :8], HOST.reshape(8, 16)
    with weft.set_mesh(MESH):
        x, w = weft.reshard(left, P("x", "y")), weft.reshard(right, P("y", None))
        part = P("x", unreduced={"y"})

        def product(x, w):
            return wnp.dot(x, w, out_sharding=part)

        sums = product(x, w)
        assert sums.sharding.spec == P("x", None, unreduced={"y"})
        assert not sums.is_fully_replicated and "shape=(16, 16)" in repr(sums)
        for read in (np.asarray, weft.device_get):
            with raises(NotImplementedError, "added up", "unreduced={'y'}", ".py:"):
                read(sums)
        same(weft.reshard(sums, P("x")), left @ right)
        twice = lambda c, _: (c + c, None)
        in_bodies = (
            (lambda y: lax.cond(True, lambda y: y + y, lambda y: y, y), 2),
            (lambda y: lax.scan(twice, y, length=2)[0], 4),
        )
        for f, times in (
            *(in_bodies if IS_JAXLIB_0_10 else ()),  # docs/parallel.md
            (lambda y: y + y, 2),
            (lambda y: y.T.astype("int32").astype("float32").T, 1),
            (lambda y: wnp.sum(y[None], 0), 1),
            (lambda y: wnp.concatenate([y, y], 1)[:, 16:], 1),
        ):
            whole = lambda y, f=f: weft.reshard(f(y), P())
            for g in (f, weft.jit(f)):
                made = g(sums)
                assert str(weft.typeof(made)) == "float32[16@x,16]{U:y}", weft.typeof(made)
                same(weft.reshard(made, P()), left @ right * times)
            same(weft.jit(whole)(sums), left @ right * times)
        # With out_sharding=, weft makes the sums itself before an operation that is not linear.
        both = (left @ right)[:16, :16]
        for f, expected in (
            (lambda y: wnp.dot(y, both, out_sharding=P("x")), both @ both),
            (lambda y: wnp.dot(y, both, out_sharding=part), both @ both),
            (lambda y: wnp.dot(both, y, out_sharding=P(None, "y")), both @ both),
            (lambda y: lax.reduce_sum(y, (0,), out_sharding=P("y", unreduced={"x"})), both.sum(0)),
            (lambda y: weft.sharding.auto_axes(wnp.abs, out_sharding=P("y"))(y), abs(both)),
            (lambda y: weft.sharding.auto_axes(lambda y: y.T, out_sharding=part)(y), both.T),
        ):
            for g in (f, weft.jit(f)):
                same(weft.reshard(g(sums), P()), expected)
        same(weft.reshard(sums[::2], P()), both[::2])
        # To sums over other axes than the value stands for, or that an operation does not make.
        rows = weft.reshard(right, P("x"))
        for f, expected in (
            (lambda: weft.reshard(product(x, w), P(unreduced={"x"})), left @ right),
            (lambda: weft.reshard(rows * 2, P(unreduced={"x", "y"})), right * 2),
            (lambda: weft.reshard(rows * 2, P("x", unreduced={"y"})), right * 2),
            (
                lambda: lax.reduce_sum(rows, (1,), out_sharding=P("x", unreduced={"y"})),
                right.sum(1),
            ),
            (
                lambda: lax.reduce_sum(product(x, w), (0,), out_sharding=P(unreduced={"x"})),
                (left @ right).sum(0),
            ),
            (lambda: wnp.dot(rows, rows.T, out_sharding=part), right @ right.T),
            (lambda: wnp.dot(x, w, out_sharding=P(unreduced={"x"})), left @ right),
        ):
            for g in (f, weft.jit(f)):
                same(weft.reshard(g(), P()), expected)
        for f, error in (
            (lambda y: y * 2, ShardingTypeError),
            (lambda y: y + 1, ShardingTypeError),
            (lambda y: y @ y, ShardingTypeError),
            (wnp.sin, NotImplementedError),
            (lambda y: wnp.max(y, 1), NotImplementedError),
        ):
            for g in (f, weft.jit(f)):
                with raises(error, "sums over axes", "{U:y}", ".py:"):
                    g(sums)
        for value in (left, x, weft.device_put(left, weft.devices()[1])):
            put = weft.device_put(value, NamedSharding(MESH, part))
            same(weft.device_put(put, NamedSharding(MESH, P("x"))), left)
            same(weft.device_put(put, weft.devices()[2]), left)
        slope = weft.grad(lambda w: wnp.sum(weft.reshard(product(x, w), P("x")) ** 2))(w)
        expected = weft.grad(lambda w: wnp.sum((left @ w) ** 2))(wnp.asarray(right))
        same(slope, np.asarray(expected))
    given, plain = (NamedSharding(MESH, s) for s in (part, P("x")))
    assert not given.is_equivalent_to(plain, 1) and given != plain


def no_communication():
    """no_collectives: what would communicate over an axis is an error; other things are not."""
    x = weft.device_put(np.arange(64.0, dtype=np.float32).reshape(8, 8), P("x", "y"))
    total = weft.jit(lambda x: wnp.sum(x, 1))
    total(x)  # traced before

    def over_y(function, *out_spec):
        return weft.shard_map(function, mesh=MESH, in_specs=P("x", "y"), out_specs=P(*out_spec))

    forbidden = [
        total,
        lambda x: wnp.sum(x, 1),
        lambda x: wnp.argmax(x, 1),
        lambda x: weft.grad(lambda x: wnp.sum(x))(x),
        lambda x: weft.reshard(x, P("x")),
        lambda x: weft.reshard(x, P("y", "x")),
        lambda x: weft.jit(lambda x: weft.reshard(x, P("x")))(x),
        lambda x: weft.jit(lambda x: weft.reshard(x, P("y", "x")))(x),
        lambda x: weft.reshard(weft.reshard(x, P("x", unreduced={"y"})), P("x")),
        over_y(lambda x: lax.psum(x, "y"), "x"),
        over_y(lambda x: lax.all_gather(x, ("y", "x")), "x", "y"),
        over_y(lambda x: lax.ppermute(x, "y", [(0, 1)]), "x", "y"),
    ]
    allowed = [
        lambda x: wnp.sum(x, 0),
        lambda x: x.T + 1,
        lambda x: weft.reshard(x, P(None, "y")),
        lambda x: weft.jit(lambda x: weft.reshard(x, P("x", unreduced={"y"})))(x),
        over_y(lambda x: lax.psum(x, "x"), None, "y"),
        over_y(lambda x: x + lax.axis_index("y"), "x", "y"),
        lambda x: weft.vmap(lambda z: lax.psum(z, "y"), axis_name="y")(np.ones(3)),
    ]
    with weft.sharding.no_collectives({"y"}):
        for run in allowed:
            run(x)
        for run in forbidden:
            with raises(ShardingTypeError, "no_collectives"):
                run(x)
        with weft.sharding.no_collectives({"x"}):
            total(x)
    for run in forbidden[:4]:
        run(x)


def marks():
    """shard_maps of what is unreduced and reduced: types, values, parts and derivatives."""
    left, right = HOST.reshape(16, 8) / 64, HOST / 64
    part, ones = P("x", unreduced={"y"}), np.ones((16, 16), np.float32)

    def typed(x, expected):
        assert str(weft.typeof(x)) == expected, (weft.typeof(x), expected)
        return x

    def close(x, expected):
        np.testing.assert_allclose(np.asarray(x), np.asarray(expected), rtol=1e-3, atol=1e-3)

    with weft.set_mesh(MESH):
        x, w = weft.reshard(left, P("x", "y")), weft.reshard(right, P("y", None))
        multiply = weft.shard_map(wnp.matmul, in_specs=(P("x", "y"), P("y")), out_specs=part)
        add_up = weft.shard_map(lambda s: lax.psum(s, "y"), out_specs=P("x"))
        scatter = weft.shard_map(
            lambda s: lax.psum_scatter(s, "y", scatter_dimension=1, tiled=True),
            in_specs=part,
            out_specs=P("x", "y"),
        )
        for f in (multiply, weft.jit(multiply)):
            sums = typed(f(x, w), "float32[16@x,16]{U:y}")
            own = [np.asarray(s.data) for s in sums.addressable_shards]
            n = MESH.shape["y"]
            same(np.concatenate([sum(own[i : i + n]) for i in range(0, 8, n)]), left @ right)
            same(weft.reshard(sums, P("y")), left @ right)
            for g in (add_up, weft.jit(add_up), scatter, weft.jit(scatter)):
                same(g(sums), left @ right)
            slopes = weft.jit(weft.grad(lambda s: (add_up(s + s) ** 2).sum()))(sums)
            same(typed(slopes, "float32[16@x,16]{R:y}"), 8 * (left @ right))
        loss = lambda x, w: (scatter(multiply(x, w)) ** 2).sum()
        expected = weft.grad(lambda x, w: ((x @ w) ** 2).sum(), (0, 1))(left, right)
        for g in (weft.grad(loss, (0, 1)), weft.jit(weft.grad(loss, (0, 1)))):
            for got, want in zip(g(x, w), expected, strict=True):
                close(got, want)
        # In the body of a loop XLA is told nothing of sums.
        summed = lambda s: lax.scan(lambda c, _: (c + add_up(multiply(x, w)), None), s, length=3)[0]
        same(weft.jit(summed)(weft.reshard(0 * ones, P("x"))), 3 * (left @ right))

        # Weights that are gathered for a product, and whose gradients are scattered.
        gather = weft.shard_map(
            lambda w: lax.all_gather(w, "x", tiled=True, to="reduced"),
            in_specs=P("x"),
            out_specs=P(reduced={"x"}),
        )
        rows, weights = weft.reshard(right.T, P("x")), weft.reshard(right, P("x"))
        whole = typed(gather(weights), "float32[8,16]{R:x}")
        same(whole, right)
        model = lambda w, rows: wnp.sin(rows @ w).sum()
        expected = weft.grad(model)(right, right.T)
        given = weft.grad(lambda w: model(gather(w), rows))
        for g in (given, weft.jit(given)):
            close(g(weights), expected)
        slope = weft.jit(weft.grad(model))(whole, rows)
        close(weft.reshard(typed(slope, "float32[8,16]{U:x}"), P()), expected)
        twice_differentiated = weft.grad(lambda w: (weft.grad(model)(w, right.T) ** 2).sum())
        second = weft.grad(lambda w: (weft.grad(lambda w: model(gather(w), rows))(w) ** 2).sum())
        close(weft.jit(second)(weights), twice_differentiated(right))

        # What explicit mode hands on of it.
        for f, expected in (
            (lambda r: wnp.sin(r) * 2, "float32[8,16]{R:x}"),
            (lambda r: r.T.sum(1), "float32[16]{R:x}"),
            (lambda r: r[None] + r, "float32[1,8,16]{R:x}"),
            (wnp.zeros_like, "float32[8,16]{R:x}"),
            (lambda r: rows @ r, "float32[16@x,16]"),
            (lambda r: r @ weft.reshard(right.T, P()), "float32[8,8]"),
            (lambda r: weft.reshard(r, P("y")), "float32[8@y,16]"),
            (lambda r: weft.reshard(r, P(reduced={"x", "y"})), "float32[8,16]{R:(x,y)}"),
        ):
            for g in (f, weft.jit(f)):
                typed(g(whole), expected)
        with raises(ShardingTypeError, "reduced over the same axes", "{R:x}", ".py:"):
            whole * weft.reshard(right, P())
        reduced = weft.reshard(ones, P("x", reduced={"y"}))
        products = weft.jit(lambda s: typed(s * reduced, "float32[16@x,16]{U:y}"))(multiply(x, w))
        same(weft.reshard(products, P()), left @ right)

        for spec, argument in ((part, reduced), (P("x"), multiply(x, w)), (P(), whole)):
            with raises(ValueError, "unreduced and reduced as in_specs says"):
                weft.shard_map(lambda s: s, in_specs=spec, out_specs=spec)(argument)
        with raises(NotImplementedError, "all axes of the mesh to be manual"):
            weft.shard_map(lambda s: s, in_specs=part, out_specs=part, axis_names={"x"})(
                multiply(x, w)
            )
        # Without check_vma the sums are not divided among devices.
        unchecked = weft.shard_map(
            wnp.matmul, in_specs=(P("x", "y"), P("y")), out_specs=part, check_vma=False
        )
        total = lambda x, w: wnp.sin(weft.reshard(unchecked(x, w), P("x"))).sum()
        want = weft.grad(lambda x, w: wnp.sin(x @ w).sum(), (0, 1))(left, right)
        for got, expected in zip(weft.jit(weft.grad(total, (0, 1)))(x, w), want, strict=True):
            close(got, expected)


if __name__ == "__main__":
    count, bad = rows(int(sys.argv[1]))
    types()
    eager()
    programs()
    lanes()
    updates()
    stacks_of_matrices()
    parts()
    modes()
    unreduced()
    marks()
    with weft.set_mesh(MESH):
        no_communication()
    assert not bad, "\n".join([f"{len(bad)} of {count} rows"] + bad[:40])
    print("ok")
