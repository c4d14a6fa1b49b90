"""What test_sharding.py runs in a process with eight CPU devices; its argument is a seed."""

import contextlib
import copy
import pickle
import random
import sys
import threading

import numpy as np

import weft
import weft.numpy as wnp
from weft import lax
from weft.errors import DeviceMismatchError, ShardingError
from weft.experimental import (
    checkify,
    io_callback as experimental_io,
    layout,
    mesh_utils,
    shard_alike,
)
from weft.experimental.custom_partitioning import SdyShardingRule, custom_partitioning
from weft.experimental.pjit import pjit
from weft.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec as P,
    SingleDeviceSharding,
    get_abstract_mesh,
    get_mesh,
)

weft.config.update("weft_num_cpu_devices", 8)
MESH = weft.make_mesh((2, 4), ("x", "y"))
HOST = np.arange(32, dtype=np.float32).reshape(8, 4)


def split(*spec, mesh=MESH):
    return NamedSharding(mesh, P(*spec))


def same(array, expected):
    np.testing.assert_allclose(np.asarray(array), expected, rtol=1e-5, atol=1e-5)


def raises(error, *parts):
    class Context:
        def __enter__(self):
            pass

        def __exit__(self, kind, value, _):
            assert kind is not None and issubclass(kind, error), (kind, value)
            for part in parts:
                assert part in str(value), (part, str(value))
            return True

    return Context()


def values_of_python():
    assert repr(MESH) == "Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert str(MESH) == "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
    assert MESH.shape == {"x": 2, "y": 4} and MESH.devices.shape == (2, 4) and MESH.size == 8
    assert MESH == weft.make_mesh((2, 4), ("x", "y")) and hash(MESH) is not None
    assert MESH.abstract_mesh == AbstractMesh((2, 4), ("x", "y"))
    for value in (
        MESH.abstract_mesh,
        NamedSharding(MESH.abstract_mesh, P("x", None)),
        P("x", None),
    ):
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert again == value and repr(again) == repr(value)
    explicit = MESH.update(axis_types=(AxisType.Explicit,) * 2)
    assert explicit != MESH and explicit.are_all_axes_explicit
    assert (
        repr(P("x", None, ("x", "y"))) == "P('x', None, ('x', 'y'))" and repr(P("x")) == "P('x',)"
    )
    assert P(("x",)) == P("x") and P("x") != P("x", None) and P("x") != ("x",)
    assert P("x") + P("y") == P("x", "y") and P("x", "y")[1] == "y"
    assert P("x") + (None,) == P("x", None) and (None,) + P("x") == P(None, "x")
    with_sums = P("x", unreduced={"z"})
    both = with_sums + P("a", unreduced={"b"}, reduced={"c"})
    assert both == P("x", "a", unreduced={"z", "b"}, reduced={"c"})
    with raises(TypeError, "got (None, None)"):
        with_sums + (None,) * 2
    with raises(TypeError, "got (None, None)"):
        (None,) * 2 + with_sums
    assert Mesh(weft.devices(), "x") is Mesh(weft.devices(), "x") is not Mesh(weft.devices(), "y")
    nothing = Mesh(np.empty((), dtype=object), [])
    assert nothing.empty and nothing is get_mesh() and nothing.size == 0
    assert Mesh(nothing.devices, nothing.axis_names) is nothing
    assert AbstractMesh((), ()).size == 0 and Mesh(np.array(weft.devices()[0]), ()).size == 1
    with raises(ValueError, "at least 4 dimensions", "(8, 4)"):
        split(None, ("x",), None, None).check_compatible_aval((8, 4))
    s = split("x", "y")
    assert s == split("x", "y") and s != split("x") and s.shard_shape((8, 4)) == (4, 1)
    assert s.num_devices == 8 and not s.is_fully_replicated and split().is_fully_replicated
    assert s.is_equivalent_to(split("x", ("y",)), 2) and not s.is_equivalent_to(split("y"), 2)
    assert s.devices_indices_map((8, 4))[weft.devices()[5]] == (slice(4, 8), slice(1, 2))
    assert s.with_spec(P("y")).spec == P("y") and split("x").replicated_axes == {"y"}
    with raises(ShardingError, "'z'", "Mesh("):
        split("z")
    with raises(ValueError, "twice"):
        split("x", "x")
    with raises(ValueError, "8 devices"):
        weft.make_mesh((3, 4), ("x", "y"))
    with raises(ShardingError, "divisible", "(3, 4)"):
        s.check_compatible_aval((3, 4))
    with weft.set_mesh(MESH):
        assert get_mesh() == MESH and get_abstract_mesh() == MESH.abstract_mesh
        assert weft.device_put(HOST, P("x")).sharding == split("x")
    assert get_mesh().empty
    with raises(ValueError, "set_mesh"):
        weft.device_put(HOST, P("x"))


def arrays():
    a = weft.device_put(HOST, split("x", "y"))
    same(a, HOST)
    assert a.sharding == split("x", "y") and a.devices() == set(weft.devices())
    assert a.is_fully_addressable and not a.is_fully_replicated and a.committed
    for shard in a.addressable_shards:
        same(shard.data, HOST[shard.index])
        assert shard.data.device == shard.device
    rows = weft.device_put(HOST, split("x"))
    assert [s.replica_id for s in rows.global_shards] == [0, 1, 2, 3] * 2
    reverse = Mesh(np.array(weft.devices())[::-1], ("r",))
    places = [split(), split("y"), split(("y", "x")), split(None, "x"), split("r", mesh=reverse)]
    places += [split("x"), SingleDeviceSharding(weft.devices()[3])]
    for here in places:
        for there in places:
            moved = weft.device_put(weft.device_put(HOST, here), there)
            assert moved.sharding == there
            same(moved, HOST)
    other = weft.make_mesh((1, 2, 4), ("r", "a", "b"))
    with weft.transfer_guard("disallow_explicit"):
        alike = weft.device_put(a, split("a", "b", mesh=other))
    assert alike.sharding == split("a", "b", mesh=other)
    assert weft.device_put(alike, a.sharding, may_alias=False).sharding == a.sharding
    same(weft.jit(lambda x: x + 1, donate_argnums=0)(alike), HOST + 1)
    same(a, HOST)
    for make in (
        lambda: weft.make_array_from_callback((8, 4), a.sharding, lambda index: HOST[index]),
        lambda: weft.make_array_from_process_local_data(a.sharding, HOST),
        lambda: weft.make_array_from_single_device_arrays(
            (8, 4), a.sharding, [s.data for s in a.addressable_shards][::-1]
        ),
    ):
        assert make().sharding == a.sharding
        same(make(), HOST)
    for dtype in ("bfloat16", "int4", "bool", "complex64", "float8_e4m3fn"):
        values = (HOST % 2).astype(wnp.dtype(dtype))
        assert (np.asarray(weft.device_put(values, split("x", "y"))) == values).all()
    pair = wnp.arange(8), wnp.arange(8)
    whole, second = weft.device_put(pair, (split(), weft.devices()[1]), donate=(True, False))
    assert pair[0].is_deleted() and not pair[1].is_deleted()
    again = weft.device_put((whole, second), (split(), weft.devices()[1]), may_alias=(None, False))
    assert again[0] is whole and again[1] is not second
    for device in (None, weft.devices()[0]):
        for x in weft.jvp(lambda x, d=device: weft.device_put(x, d), (1.0,), (1.0,)):
            assert isinstance(x, weft.Array), (device, x)
    keys = weft.random.split(weft.random.key(0), 8)
    spread = weft.device_put(keys, split("x"))
    same(weft.random.key_data(spread), np.asarray(weft.random.key_data(keys)))
    parts = [s.data for s in spread.addressable_shards]
    for made in (
        weft.make_array_from_callback((8,), split("x"), lambda i: keys[i]),
        weft.make_array_from_single_device_arrays((8,), split("x"), parts),
        weft.make_array_from_process_local_data(split("x"), keys),
    ):
        assert made.dtype == keys.dtype and made.committed
        assert made.sharding.is_equivalent_to(split("x"), 1)
        same(weft.random.key_data(made), np.asarray(weft.random.key_data(keys)))
    assert "jax" not in sys.modules


def programs():
    a = weft.device_put(HOST, split("x", "y"))
    assert (a + 1).sharding == a.sharding and a.T.sharding == split("y", "x")
    line = split(None, "y", "z", mesh=weft.make_mesh((1, 8, 1), ("x", "y", "z")))
    thin = weft.device_put(HOST[None], line)
    for f in (lambda x: x + 1, weft.jit(lambda x: wnp.sin(x) * 2)):
        assert str(f(thin).sharding.spec) == str(line.spec), f(thin).sharding
    same(a @ weft.device_put(HOST.T, split(None, "y")), HOST @ HOST.T)
    same(a + np.float32(1), HOST + 1)
    placed = weft.jit(lambda x, y: x @ y, in_shardings=(split("x"), split(None, "y")))(HOST, HOST.T)
    assert placed.sharding == split("x", "y")
    same(placed, HOST @ HOST.T)
    both = weft.jit(lambda x: (x, x * 2), out_shardings=(split("y"), None))(a)
    assert both[0].sharding == split("y") and both[1].sharding == a.sharding
    same(both[0], HOST)
    with weft.set_mesh(MESH):
        assert weft.jit(lambda x: x + 1, out_shardings=P("y"))(HOST).sharding == split("y")
    gone = weft.device_put(HOST, split("x"))
    same(weft.jit(lambda x: x + 1, donate_argnums=0)(gone), HOST + 1)
    assert gone.is_deleted()
    moved = wnp.asarray(HOST)
    same(weft.jit(lambda x: x + 1, in_shardings=split("x"), donate_argnums=0)(moved), HOST + 1)
    assert moved.is_deleted()
    compiled = weft.jit(lambda x: x + 1).lower(a).compile()
    assert compiled.input_shardings[0][0] == compiled.output_shardings == a.sharding
    same(compiled(a), HOST + 1)
    spectrum = weft.jit(lambda x: wnp.fft.ifft2(wnp.fft.fft2(x) * 2).real)
    same(spectrum(weft.device_put(HOST, split())), HOST * 2)
    one = weft.device_put(HOST, split("o", mesh=weft.make_mesh((1,), ("o",))))
    same(one + 1, HOST + 1)


def constraints():
    """with_sharding_constraint in every construct: the same values, split as it says."""
    constrain = lax.with_sharding_constraint
    rows, columns = split("x"), split(None, "y")

    def step(carry, row):
        return constrain(carry + row, split("y")), carry

    programs = {
        "jit": (lambda x: constrain(x * 2, split("x", "y")), P("x", "y")),
        "grad": (weft.grad(lambda x: (constrain(x, rows) ** 2).sum()), P("x")),
        "vmap": (weft.vmap(lambda r: constrain(r * 2, split("y"))), P(None, "y")),
        "spread": (
            weft.vmap(lambda r: constrain(r * 2, split("y")), in_axes=1, out_axes=1),
            P("y"),
        ),
        "scan": (lambda x: lax.scan(step, x[0], x)[0], P("y")),
        "while": (
            lambda x: lax.while_loop(
                lambda c: c.sum() < 1e4, lambda c: constrain(c * 2, columns), x
            ),
            P(None, "y"),
        ),
        "cond": (
            lambda x: lax.cond(x[0, 0] > 0, lambda x: x, lambda x: constrain(x * 2, rows), x) + 0,
            None,
        ),
        "remat": (
            weft.grad(weft.checkpoint(lambda x: wnp.sin(constrain(wnp.sin(x), rows)).sum())),
            P("x"),
        ),
        "free": (lambda x: constrain(constrain(x, rows), split(P.UNCONSTRAINED, "y")) * 2, None),
        "device_put": (lambda x: weft.device_put(x * 2, columns), P(None, "y")),
        "shard_map": (
            weft.shard_map(
                lambda x: constrain(wnp.sin(x), columns),
                mesh=MESH,
                in_specs=P("x"),
                out_specs=P("x"),
                axis_names={"x"},
            ),
            P("x", "y"),
        ),
    }
    at_once = {name: f(HOST) for name, (f, _) in programs.items()}
    jitted = weft.jit(lambda x: {name: f(x) for name, (f, _) in programs.items()})(HOST)
    for name, (_, spec) in programs.items():
        same(at_once[name], np.asarray(jitted[name]))
        own = at_once[name].sharding
        assert spec is None or own.is_equivalent_to(split(*spec), 2), (name, own)
    same(jitted["jit"], HOST * 2)
    same(jitted["grad"], HOST * 2)
    same(jitted["scan"], HOST.sum(0) + HOST[0])
    # What is not used is gone, what says nothing of one device stays where it is.
    text = weft.jit(lambda x: (constrain(x, rows), x)[1] * 2).lower(HOST).as_text()
    assert "constraint" not in text
    assert weft.jit(lambda x: constrain(x, weft.devices()[3]))(HOST).device == weft.devices()[3]
    # A function is traced again under another mesh.
    f = weft.jit(lambda x: constrain(x, P("x")) * 1)
    with weft.set_mesh(MESH):
        assert f(HOST).sharding == rows
        without_devices = NamedSharding(MESH.abstract_mesh, P("x"))
        assert constrain(HOST, without_devices).sharding == rows
    with weft.make_mesh((8,), ("x",)) as other:
        assert f(HOST).sharding == split("x", mesh=other)
    with raises(RuntimeError, "set_mesh"):
        f(HOST)
    # XLA chooses for dimensions that the devices do not divide.
    odd = weft.jit(lambda x: constrain(x[:, :3], split("x", "y")) * 2)(HOST)
    np.testing.assert_array_equal(odd, HOST[:, :3] * 2)
    assert odd.sharding.is_equivalent_to(rows, 2)
    assert constrain(weft.device_put(HOST, columns), without_devices).sharding == rows
    four = Mesh(np.array(weft.devices()[:4]), ("x",))
    wrong = {
        "at least 2 dimensions": (lambda x: constrain(x[0], columns), HOST),
        "argument x": (lambda x: constrain(x, rows), weft.device_put(HOST, weft.devices()[1])),
        "'x': 4; devices 0 to 3": (
            lambda x: constrain(constrain(x, rows), split("x", mesh=four)),
            HOST,
        ),
        "as many devices": (
            lambda x: constrain(x, NamedSharding(MESH.abstract_mesh, P("x"))),
            HOST,
        ),
        "not manual": (
            weft.shard_map(
                lambda x: constrain(x, rows), mesh=MESH, in_specs=P("x"), out_specs=P("x")
            ),
            HOST,
        ),
    }
    for text, (f, x) in wrong.items():
        with raises(ValueError, text, "sharding_checks.py"):
            weft.jit(f)(x)


def stages():
    """Shardings of a jit within a trace, of ShapeDtypeStructs, and of compiled programs."""
    rows, columns = split("x"), split(None, "y")
    out = weft.jit(lambda x: x * 2, out_shardings=rows)
    nested = {
        "out": (lambda x: out(x) + 1, rows),
        "in": (lambda x: weft.jit(lambda x: x + 1, in_shardings=rows, donate_argnums=0)(x), rows),
        "inline": (lambda x: weft.jit(lambda x: x + 1, inline=True, in_shardings=rows)(x), rows),
        "tree": (
            lambda x: weft.jit(lambda x: {"a": x, "b": x}, out_shardings={"a": None, "b": rows})(x)[
                "b"
            ],
            rows,
        ),
        "grad": (weft.grad(lambda x: (out(x) ** 2).sum()), rows),
        "scan": (lambda x: lax.scan(lambda c, _: (out(c), None), x, length=2)[0], rows),
    }
    for name, (f, expected) in nested.items():
        assert weft.jit(f)(HOST).sharding == expected, name
    with raises(ShardingError, "result 0 of", "f32[3,4]"):
        weft.jit(lambda x: out(x[:3]))(HOST)

    struct = weft.ShapeDtypeStruct((8, 4), np.float32, sharding=columns)
    assert weft.eval_shape(out, struct).sharding == rows
    assert weft.eval_shape(lambda x: x, struct).sharding is None
    compiled = weft.jit(lambda x, y: x + y).lower(struct, struct).compile()
    assert compiled.input_shardings[0] == (columns, columns)
    assert compiled.out_info.sharding == columns
    got = compiled(HOST, weft.device_put(HOST, columns))
    assert got.sharding == columns and got.committed
    same(got, HOST * 2)
    for other in (rows, weft.devices()[1]):
        with raises(DeviceMismatchError, "argument 0", "compiled"):
            compiled(weft.device_put(HOST, other), HOST)
    with raises(DeviceMismatchError, "argument x", "in_shardings"):
        weft.jit(lambda x: x, in_shardings=rows).lower(struct)
    with raises(ShardingError, "divisible"):
        weft.jit(lambda x: x).lower(struct.update(shape=(8, 3)))
    for name in ("in_shardings", "out_shardings"):
        with raises(ShardingError, name, "UNCONSTRAINED"):
            weft.jit(lambda x: x, **{name: split(P.UNCONSTRAINED)})(HOST)

    for name, expected in (("x", P("x", "y")), (("x",), P("x", "y")), (None, P(None, "y"))):
        mapped = weft.vmap(
            lambda r: lax.with_sharding_constraint(r * 2, split("y")), spmd_axis_name=name
        )
        for f in (mapped, weft.jit(mapped), weft.grad(lambda x, f=mapped: (f(x) ** 2).sum())):
            assert f(HOST).sharding.is_equivalent_to(NamedSharding(MESH, expected), 2)
    both = weft.vmap(lambda r: lax.with_sharding_constraint(r, split()), spmd_axis_name=("x", "y"))
    assert both(HOST).sharding == split(("x", "y"))
    whole = weft.shard_map(lambda r: 2 * r, mesh=MESH, in_specs=P(), out_specs=P())
    parts = weft.jit(weft.vmap(whole, spmd_axis_name=("x", "y")))(HOST)
    assert parts.sharding.is_equivalent_to(split(("x", "y")), 2)
    same(parts, 2 * HOST)
    # What a derivative keeps of each device is stacked over x already.
    total = weft.shard_map(
        lambda r: wnp.sin(r.sum()), mesh=MESH, in_specs=P("y"), out_specs=P(), check_vma=False
    )
    slopes = weft.vmap(weft.grad(total), spmd_axis_name="x")(HOST)
    np.testing.assert_allclose(slopes, weft.vmap(weft.grad(total))(HOST), rtol=1e-6)
    for name, text in (("y", "twice"), ("z", "'z'")):
        with raises(ValueError, text):
            weft.vmap(lambda r: lax.with_sharding_constraint(r, split("y")), spmd_axis_name=name)(
                HOST
            )


def memories():
    """Arrays in other memories of their devices, as arguments and results of programs."""
    for place in (split("x"), SingleDeviceSharding(weft.devices()[2])):
        for kind in ("pinned_host", "unpinned_host"):
            other = place.with_memory_kind(kind)
            there = weft.device_put(HOST, other)
            same(there, HOST)
            assert there.sharding == other and other != place
            assert weft.device_put(there, place).sharding == place
            f = weft.jit(lambda x: (x * 2, x + 1), out_shardings=(other, None))
            twice, more = f(there)
            # That of the host is part of types, and results are in the memory of their operands.
            follows = other if kind == "pinned_host" else place
            assert twice.sharding == other and more.sharding == (there + 1).sharding == follows
            same(twice, HOST * 2)
            loaded = f.lower(there).compile().runtime_executable()
            assert loaded.get_output_memory_kinds() == [[kind, follows.memory_kind]]
            if follows is place:
                same(there + weft.device_put(HOST, place), HOST * 2)
            else:
                with raises(ValueError, "[add] expected operands in one memory", "f32<host>[8,4]"):
                    there + weft.device_put(HOST, place)
            given = weft.jit(lambda x: x * 2, donate_argnums=0, out_shardings=place)
            same(given(there), HOST * 2)
            assert there.is_deleted()
    with raises(ValueError, "pinned_host", "'hbm'"):
        split("x").with_memory_kind("hbm")


def grids():
    """mesh_utils: which device stands where."""
    devices = weft.devices()
    grid = mesh_utils.create_device_mesh((2, 4))
    assert Mesh(grid, ("x", "y")) == MESH
    assert list(mesh_utils.create_device_mesh((3,), devices[2:5])) == devices[2:5]
    with raises(ValueError, "8 positions", "(3, 4)"):
        mesh_utils.create_device_mesh((3, 4))

    class Device:
        def __init__(self, number):
            self.number, self.process_index = number, number // 4

    others = [Device(i) for i in range(16)][::-1]
    numbers = np.vectorize(lambda d: d.number, otypes=[int])
    hybrid = mesh_utils.create_hybrid_device_mesh((2, 2), (2, 2), others, process_is_granule=True)
    assert numbers(hybrid).tolist() == [
        [3, 2, 7, 6],
        [1, 0, 5, 4],
        [11, 10, 15, 14],
        [9, 8, 13, 12],
    ]
    with raises(ValueError, "slice_index"):
        mesh_utils.create_hybrid_device_mesh((2, 4), (1, 1))
    with raises(ValueError, "1 positions in dcn_mesh_shape"):
        mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), process_is_granule=True)


def many_runs():
    """Programs whose collectives follow each other without a wait."""
    move = weft.jit(lambda x: x + 1, out_shardings=split(None, ("x", "y")))
    x = weft.device_put(np.ones((64, 64), np.float32), split(("x", "y")))
    results = [move(x) for _ in range(300)]
    same(results[-1], np.full((64, 64), 2))

    def work():
        results.append([move(x) for _ in range(150)][-1])

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    results.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive(), "runs of several threads wait for each other"
    for result in results:
        same(result, np.full((64, 64), 2))


def refs_stay_where_they_are():
    """Writes to refs of arrays over several devices, from one device, in rules and programs."""
    a = weft.device_put(HOST, split("x", "y"))
    ref = weft.new_ref(a)
    ref[...] = wnp.ones(4)
    assert ref.sharding == a.sharding and ref.committed
    same(ref[...], np.ones_like(HOST))
    ref[0] = weft.device_put(HOST, split("y"))[1]
    weft.jit(lambda r, x: r.addupdate(x))(ref, a)
    assert ref.sharding == a.sharding
    expected = HOST + 1
    expected[0] = HOST[0] + HOST[1]
    same(ref[...], expected)
    note = weft.custom_vjp(lambda r, x: x)
    note.defvjp(lambda r, x: (x, r), lambda r, g: (None, r.addupdate(g) or g))
    weft.grad(lambda x: note(ref, x * 2).sum())(a)
    same(ref[...], expected + 1)
    other = weft.new_ref(HOST)
    other[...] = a
    assert other.sharding == a.sharding  # it was nowhere in particular


def checks_of_devices():
    """checkify around shard_map and pmap: the check that fails on any device."""

    def f(x):
        checkify.check((x < 9).all(), "{} of {}", x.max(), lax.axis_index("x"))
        checkify.check((x >= 0).all(), "negative")
        return x * 2

    for options in ({}, {"check_vma": False}, {"axis_names": {"x"}}):
        mapped = weft.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), **options)
        for g in (mapped, weft.jit(mapped)):
            error, doubled = checkify.checkify(g)(HOST)
            assert error.get().startswith("15.0 of 0") or error.get().startswith("31.0 of 1")
            same(doubled, HOST * 2)
            assert checkify.checkify(g)(HOST % 9)[0].get() is None
            assert "negative" in checkify.checkify(g)(HOST - 30)[0].get()
    mapped = weft.pmap(lambda x: lax.log(x))
    error, _ = checkify.checkify(mapped, errors=checkify.nan_checks)(HOST[:, 0] - 5)
    assert "nan generated by primitive: log" in error.get()


def descriptions():
    """What shardings, meshes and formats say of themselves, without devices too."""
    abstract = NamedSharding(AbstractMesh((2, 4), ("x", "y")), P("x"))
    assert abstract.shard_shape((8, 3)) == (4, 3) and abstract.num_devices == 8
    assert abstract.memory_kind is None
    assert abstract.with_memory_kind("pinned_host").memory_kind == "pinned_host"
    with raises(ValueError, "which has no devices"):
        abstract.device_set  # noqa: B018
    assert "device_kind=cpu" in repr(MESH.abstract_mesh)
    assert repr(get_mesh()) == "Mesh(axis_sizes=(), axis_names=())" and get_mesh().empty
    ones = weft.make_mesh((1, 8), ("x", "y"))
    assert NamedSharding(ones, P("x")).is_fully_replicated
    a = weft.device_put(HOST, layout.Format(layout.Layout((0, 1)), split("x")))
    assert a.format == layout.Format(layout.Layout((0, 1), ()), split("x"))
    twice = weft.jit(lambda x: x * 2, out_shardings=layout.Format(layout.Layout.AUTO, split("y")))
    assert twice(a).sharding == split("y")
    with raises(ValueError, "the layout of arrays", "major_to_minor=(1, 0)", "sharding_checks.py"):
        weft.device_put(HOST, layout.Format(layout.Layout((1, 0)), split("x")))
    struct = weft.ShapeDtypeStruct((8, 4), "f4", sharding=a.format)
    assert struct.format == a.format and struct.sharding == split("x")
    assert struct.update(dtype="i4").format == a.format
    with raises(ValueError, "expected a Format"):
        struct.update(sharding=split("y"))
    plain = struct.update(sharding=layout.Format(None, split("y")))
    assert plain.format == layout.Format(None, split("y")) and plain.sharding == split("y")
    with raises(TypeError, "Layout.AUTO"):
        struct.update(sharding=layout.Format(layout.Layout.AUTO, split("x")))
    # From one device to the one that in_shardings names, and to the same devices in another order,
    # committed arrays go by themselves.
    first, second = map(SingleDeviceSharding, weft.devices()[:2])
    moved = weft.jit(lambda x: x + 1, in_shardings=second)(weft.device_put(HOST, first))
    assert moved.sharding == second
    same(moved, HOST + 1)
    back = Mesh(MESH.devices[::-1, ::-1], MESH.axis_names)
    for given, error in ((P("x"), None), (P("y"), DeviceMismatchError)):
        other = NamedSharding(back, given)
        for donated in ((), 0):
            a = weft.device_put(HOST, split("x"))
            f = weft.jit(lambda x: x + 1, in_shardings=other, donate_argnums=donated)
            with raises(error, "device_put") if error else contextlib.nullcontext():
                moved = f(a)
                assert moved.sharding == other, moved.sharding
                same(moved, HOST + 1)
    with raises(ShardingError, "divisible by the 2 parts", "shape (7, 4)", "sharding_checks.py"):
        weft.make_array_from_callback((7, 4), split("x"), lambda i: HOST[:7][i])


def spaces_of_memory():
    a = weft.device_put(HOST, split("x"))
    there = weft.device_put(a, weft.memory.Space.Host)
    assert there.sharding == a.sharding.with_memory_kind("pinned_host")
    assert weft.device_put(there, weft.memory.Space.Any).sharding == there.sharding
    back = weft.device_put(there, weft.memory.Space.Device)
    assert back.sharding == a.sharding
    same(back, HOST)
    host, device = weft.memory.Space.Host, weft.memory.Space.Device
    assert weft.typeof(there).memory_space is host and weft.typeof(a).memory_space is device
    assert str(weft.typeof(there)) == "float32<host>[8,4]"

    def through(x, place):
        x = weft.device_put(x * 2, place)
        assert weft.typeof(x).memory_space is host
        x = lax.scan(lambda c, row: (c + row, c), x[0] * 0, x)[1]
        x = weft.jit(lambda x: wnp.where(x > 1e9, 0, x).reshape(-1))(x)
        assert weft.typeof(x).memory_space is host
        return x, wnp.sum(weft.device_put(x, device) ** 2)

    expected = 2 * (np.cumsum(HOST, axis=0) - HOST).reshape(-1)
    for x in (a, HOST, weft.device_put(HOST, weft.devices()[1])):
        for place in (host, there.sharding if x is a else host):
            moved, total = weft.jit(through, static_argnums=1)(x, place)
            same(moved, expected)
            assert moved.sharding.memory_kind == "pinned_host"
            assert total.sharding.memory_kind == "device"
            assert moved.devices() == total.devices()
            slope = weft.jit(weft.grad(lambda x, p=place: through(x, p)[1]))(x)
            assert slope.sharding.memory_kind == "device"
            same(slope, weft.grad(lambda x: wnp.sum((2 * (wnp.cumsum(x, 0) - x)) ** 2))(HOST))
    with raises(ValueError, "[add] expected operands in one memory", "sharding_checks.py"):
        weft.jit(lambda x: weft.device_put(x, host) + x)(a)


def programs_under_a_mesh():
    """Programs of arrays that nobody committed run on the mesh that is set."""
    x = wnp.ones(4)
    with weft.set_mesh(MESH):
        for y in (x + 1, weft.jit(lambda x: x * 2)(x), weft.jit(lambda: wnp.ones(3) * 2)()):
            assert y.sharding == split() and y.committed, y.sharding
            same(y, np.full(y.shape, 2))
        on_one = weft.device_put(HOST, weft.devices()[1])
        assert (on_one + 1).devices() == {weft.devices()[1]}
    assert (x + 1).devices() == {weft.devices()[0]}


def errors():
    a = weft.device_put(HOST, split("x"))
    for value in (HOST, weft.device_put(HOST, weft.devices()[0])):
        with raises(ShardingError, "divisible by the 4", "f32[4,2]", "Mesh('x': 2, 'y': 4", ".py:"):
            weft.device_put(value.reshape(4, 8)[:, :2], split(None, "y"))
    with raises(ShardingError, "at least 2 dimensions", "f32[4]"):
        weft.device_put(np.ones(4, np.float32), split("x", "y"))
    for put in (
        weft.device_put,
        lax.with_sharding_constraint,
        lambda x, sharding: weft.jit(lambda x: x, in_shardings=sharding)(x),
        lambda x, sharding: weft.jit(lambda x: x, out_shardings=sharding)(x),
        lambda x, sharding: weft.jit(weft.jit(lambda x: x, in_shardings=sharding))(x),
    ):
        with raises(ShardingError, "at least 3 dimensions", "P('x', None, None)", "(8, 4)", ".py:"):
            put(HOST, split("x", None, None))
    for spec, error in (
        ({"unreduced": "x"}, TypeError),
        ({"reduced": {None}}, ValueError),
        ({"unreduced": {"x"}, "reduced": {"x"}}, ValueError),
    ):
        with raises(error, "PartitionSpec expected"):
            P(**spec)
    with raises(ShardingError, "type Auto", "'x'"):
        NamedSharding(MESH, P(unreduced={"x"}))
    with raises(DeviceMismatchError, "operand 0", "P('x',) on Mesh(", "operand 1", "cpu:1", ".py:"):
        a + weft.device_put(HOST, weft.devices()[1])
    for here in (a, weft.device_put(HOST, weft.devices()[1])):
        with raises(DeviceMismatchError, "committed to", "Mesh(device 0)", ".py:"):
            lax.with_sharding_constraint(here, weft.devices()[0])
    with raises(
        DeviceMismatchError, "argument x of 'f'", "in_shardings", "P('y',) on", "P('x',) on"
    ):

        def f(x):
            return x

        weft.jit(f, in_shardings=split("y"))(a)
    with raises(ShardingError, "result 0", "divisible"):
        weft.jit(lambda x: x[:3], out_shardings=split("x"))(a)
    with raises(ShardingError, "divisible"):
        weft.jit(lambda x: x, in_shardings=split("y"))(HOST[:3])


def calls_that_are_wrong():
    """The class that jax raises, and what the message has: what came, spec, mesh and line."""
    devices = np.array(weft.devices()).reshape(2, 4)
    types = (AxisType.Auto,)
    put, constrain = weft.device_put, lax.with_sharding_constraint

    def part(f, **changed):
        specs = {"in_specs": P("x"), "out_specs": P("x"), **changed}
        return lambda: weft.shard_map(f, mesh=MESH, **specs)(HOST)

    def same(x):
        return x

    from_local = weft.make_array_from_process_local_data
    from_parts = weft.make_array_from_single_device_arrays
    from_callback = weft.make_array_from_callback
    grid = "Mesh('x': 2, 'y': 4"
    wrong = [
        (ValueError, "8 devices; got (4, 4)", lambda: weft.make_mesh((4, 4), ("x", "y"))),
        (ValueError, "at least 1; got (2, -4)", lambda: weft.make_mesh((2, -4), ("x", "y"))),
        (TypeError, "tuple of sizes; got 8", lambda: weft.make_mesh(8, "x")),
        (ValueError, "axis_types=(Auto,)", lambda: weft.make_mesh((2, 4), ("x", "y"), types)),
        (TypeError, "AxisType for each", lambda: Mesh(devices, ("x", "y"), axis_types=(1, 2))),
        (ValueError, "different names; got ('x', 'x')", lambda: Mesh(devices, ("x", "x"))),
        (ValueError, "got devices of shape (2, 4)", lambda: Mesh(devices, ("x",))),
        (ValueError, "'z' in P('z',)", lambda: split("z")),
        (ValueError, "'x' twice in P(('x', 'y'), 'x')", lambda: split(("x", "y"), "x")),
        (ValueError, "one of device, pinned_host", lambda: split("x").with_memory_kind("hbm")),
        (ValueError, "not both; got donate=True", lambda: put(HOST, donate=True, may_alias=True)),
        (ValueError, "at least 3 dimensions", lambda: put(HOST, split(None, None, "x"))),
        (ValueError, "names per dimension; got (('x',),)", lambda: P((("x",),))),
        (TypeError, "per dimension; got {'x'}", lambda: P({"x"})),
        (
            weft.errors.MissingMeshError,
            "expected a mesh for P('x',)",
            lambda: from_local(P("x"), HOST),
        ),
        (TypeError, "got float", lambda: from_parts((8, 4), split("x"), [1.0] * 8)),
        (TypeError, "integers; got 4.5", lambda: from_callback(4.5, split("x"), lambda i: HOST)),
        (
            ValueError,
            "argument 0 is both",
            lambda: weft.jit(same, static_argnums=0, donate_argnums=0),
        ),
        (ValueError, "of 'same', 0 (x); got 3", lambda: weft.jit(same, donate_argnums=3)),
        (ValueError, "no parameter 'q'", lambda: weft.jit(same, donate_argnames="q")),
        (ValueError, grid, lambda: put(HOST[:3], split("x"))),
        (ValueError, "set_mesh", lambda: put(HOST, P("x"))),
        (RuntimeError, "set_mesh", lambda: constrain(HOST, P("x"))),
        (RuntimeError, "set_mesh", lambda: weft.jit(same, in_shardings=P("x"))(HOST)),
        (ValueError, "got both", lambda: weft.jit(same, device=devices[0, 0], in_shardings=P())),
        (TypeError, "got CpuDevice(id=0)", lambda: weft.reshard(HOST, devices[0, 0])),
        (ValueError, f"{grid}; devices 0 to 7); got 'z'", part(same, in_specs=P("z"))),
        (ValueError, "a tuple of length 2", part(same, in_specs=(P("x"), P()))),
        (ValueError, "got P('x',) in out_specs", part(lambda x: x.sum())),
        (ValueError, "got ['z']", part(same, axis_names={"z"})),
        (TypeError, "expected a set", part(same, axis_names="x")),
        (NameError, "got 'z', where there are 'x', 'y'", part(lambda x: lax.psum(x, "z"))),
        (ValueError, "got none", lambda: weft.shard_map(same, in_specs=P(), out_specs=P())(HOST)),
    ]
    for error, text, call in wrong:
        with raises(error, text, "sharding_checks.py:"):
            call()
    assert put([HOST, None], split("x"))[1] is None


def arguments_handed_on():
    """None in the in_specs of a shard_map stands for a spec, at any depth."""
    handed = {"a": object(), "b": HOST}

    def doubled(d, x):
        assert d["a"] is handed["a"] and d["b"].shape[0] in (4, 8)
        return x * 2

    for spec in (None, {"a": None, "b": P("x")}):
        f = weft.shard_map(doubled, mesh=MESH, in_specs=(spec, P("x")), out_specs=P("x"))
        same(f(handed, HOST), HOST * 2)
        same(weft.jit(lambda x, f=f: f(handed, x))(HOST), HOST * 2)
    for specs in ((None, None), None):
        f = weft.shard_map(lambda x, y: x + y, mesh=MESH, in_specs=specs, out_specs=P())
        same(f(wnp.asarray(HOST), 2), HOST + 2)


def split_alike():
    """What XLA knows of one value holds for the other, its gradient and its lanes."""
    rows = split("x")

    def f(x, y):
        return shard_alike.shard_alike(x, y)

    def alone(x, y):
        return x, y

    given = weft.device_put(HOST, rows), HOST
    for function, expected in ((f, rows), (alone, split())):
        x, y = weft.jit(function)(*given)
        assert x.sharding == rows and y.sharding == expected, y.sharding
        same(y, HOST)
    slopes = weft.jit(weft.grad(lambda y, x: (f(x, y)[0] * f(x, y)[1]).sum(), argnums=(0, 1)))
    for slope in slopes(HOST, given[0]):
        same(slope, HOST)
    lanes = weft.jit(weft.vmap(f, in_axes=(1, None), out_axes=1))(given[0], HOST[:, 0])
    assert lanes[1].sharding == rows
    same(lanes[1], np.broadcast_to(HOST[:, :1], HOST.shape))
    with raises(ValueError, "(8, 4) and (3, 4)", ".py:"):
        f(HOST, HOST[:3])


def specs_as_written():
    """Specs have as many entries as were written; those of results as the first input's."""
    long, short, whole = split("x", None), split("x"), split(None, None)
    a, b = weft.device_put(HOST, long), weft.device_put(HOST, short)

    def spec(x):
        return x.sharding.spec

    twice = weft.jit(lambda x: x * 2)
    for x in (a, a * 2, twice(a), a + b, weft.grad(lambda x: (x * x).sum())(a), wnp.zeros_like(a)):
        assert spec(x) == P("x", None)
    for x in (b, twice(b), b + a, a.sum(1), a.reshape(8, 2, 2), weft.device_put(a, short)):
        assert spec(x) == P("x")
    assert spec(weft.device_put(HOST, whole) * 2) == P(None, None) and spec(a.T) == P(None, "x")
    out = weft.jit(lambda x: (x, x * 2), out_shardings=(short, long))
    assert [spec(x) for x in out(HOST)] == [P("x"), P("x", None)]
    assert [s.spec for s in out.lower(HOST).compile().output_shardings] == [P("x"), P("x", None)]
    rows = a.sum(1)
    assert weft.device_put(rows, short) is rows and weft.device_put(a, long) is a
    x = weft.device_put(b, long)  # the same buffer
    assert spec(x) == P("x", None) and spec(b) == P("x") and x.sharding == b.sharding
    assert twice._cache_size() == 1
    b.delete()
    same(x, HOST)
    explicit = MESH.update(axis_types=(AxisType.Explicit,) * 2)
    x = weft.device_put(HOST, split("x", mesh=explicit))
    assert spec(x) == P("x") and spec(twice(x)) == spec(x * 2) == P("x", None)


def like_others():
    """New arrays are where a committed one is; of another shape, if it is whole everywhere."""
    device = weft.devices()[3]
    for place in (split("x"), split("y", "x"), split(), weft.device_put(1, device).sharding):
        x = weft.device_put(HOST, place)
        for made in (wnp.zeros_like(x), wnp.ones_like(x, "i4"), lax.full_like(x, 2.5)):
            assert made.sharding == place and made.committed, made.sharding
        struct = weft.ShapeDtypeStruct(HOST.shape, "f4", sharding=place)
        for made in (wnp.zeros_like(struct), lax.full_like(HOST, 2.0, sharding=place)):
            assert made.sharding == place, made.sharding
        assert lax.full((8, 4), 1.0, sharding=place).sharding == place
        assert not wnp.zeros_like(struct, shape=(3,)).committed
        other = wnp.empty_like(x, shape=(3,))
        if place.is_fully_replicated:
            assert other.devices() == x.devices() and other.committed
        else:
            assert other.devices() == {weft.devices()[0]} and not other.committed
    assert not wnp.full_like(weft.device_put(HOST, split("x")), HOST).committed
    assert not wnp.zeros_like(HOST).committed and not wnp.zeros_like(wnp.ones(3)).committed


def meshes_that_are_set():
    """What set_mesh does to values that nobody placed, and `with mesh:` does not."""
    explicit = MESH.update(axis_types=(AxisType.Explicit,) * 2)
    makers = (
        lambda: wnp.ones((8, 4)),
        lambda: wnp.arange(8),
        lambda: wnp.array(1.0),
        lambda: wnp.asarray(HOST),
        lambda: weft.random.key(0),
        lambda: weft.random.uniform(weft.random.key(0), (3,)),
        lambda: lax.full((2,), 1.0),
    )
    for make in makers:
        before = make()
        for mesh in (MESH, explicit):
            with weft.set_mesh(mesh):
                x = make()
            assert x.sharding == split(mesh=mesh) and x.committed, x.sharding
            if mesh is explicit:
                assert x.sharding.spec == P(*[None] * x.ndim)
        with MESH:
            x = make()
        assert x.sharding == before.sharding and not x.committed, x.sharding
    with weft.set_mesh(MESH):
        assert len(weft.device_put(HOST).devices()) == 1
        assert weft.device_put(HOST, weft.devices()[1]).devices() == {weft.devices()[1]}
        other = Mesh(np.array(weft.devices()), ("x",))
        with raises(ValueError, "the mesh that is set", ".py:"):
            weft.shard_map(lambda x: x, mesh=other, in_specs=P(), out_specs=P())(HOST)
        here = get_abstract_mesh()
        places = NamedSharding(here, P("x")), NamedSharding(here, P(None, "y"))
        rows, columns = split("x"), split(None, "y")
        for jitted in (
            weft.jit(lambda x: (x, x * 2), out_shardings=places),
            weft.jit(lambda x: (x, x * 2), in_shardings=places[1], out_shardings=places),
        ):
            first, second = jitted(HOST)
            assert first.sharding == rows and second.sharding == columns
            same(second, HOST * 2)
        assert weft.jit(lambda x: x, in_shardings=places[0])(HOST).sharding == rows
        assert weft.device_put(HOST, places[0]).sharding == rows
        assert weft.jit(lambda x: weft.device_put(x, places[1]))(HOST).sharding == columns
        assert lax.with_sharding_constraint(HOST, places[0]).sharding == rows
        assert wnp.zeros((8, 4), device=places[0]).sharding == rows
        grad = weft.grad(lambda x: weft.jit(lambda x: x * 2, out_shardings=places[0])(x).sum())
        same(grad(HOST), np.full_like(HOST, 2))
    with raises(ValueError, "a mesh of devices", ".py:"):
        weft.jit(lambda x: x, out_shardings=places[0])(HOST)
    constrained = MESH(lambda: lax.with_sharding_constraint(HOST, P("x")))
    assert constrained().sharding == split("x")
    f = pjit(lambda x: (x, x * 2), in_shardings=P("x"), out_shardings=(None, P(None, "y")))
    for mesh in (MESH, MESH.update(devices=MESH.devices[::-1])):
        with mesh:
            whole, columns = f(HOST)
            assert whole.sharding == split(mesh=mesh)
            assert columns.sharding == split(None, "y", mesh=mesh)
            assert f.lower(HOST).compile().output_shardings[0] == split(mesh=mesh)
            plain = pjit(lambda x: x * 2)
            assert plain(HOST).sharding == split(mesh=mesh)
            rows = weft.device_put(HOST, split("x", mesh=mesh))
            assert plain(rows).sharding == rows.sharding
            with raises(ValueError, "in_shardings"):
                pjit(lambda x: x, in_shardings=None)(rows)
            with raises(ValueError, "committed to", "pjit"):
                plain(weft.device_put(HOST, weft.devices()[3]))
    with raises(RuntimeError, "set_mesh"):
        f(HOST)
    with MESH:
        assert get_mesh().empty and get_abstract_mesh().empty
        assert lax.with_sharding_constraint(HOST, P("x")).sharding == split("x")
        with raises(RuntimeError, "set_mesh", ".py:"):
            weft.jit(lambda x: x, in_shardings=P("x"))(HOST)
    for trace in (weft.jit, weft.vmap, lambda f: weft.grad(lambda x: f(x).sum())):
        with raises(ValueError, "set_mesh expected", "traced", ".py:"):
            trace(lambda x: (weft.set_mesh(MESH), x)[1])(HOST)
        with raises(ValueError, "get_mesh expected", "get_abstract_mesh", ".py:"):
            trace(lambda x: (get_mesh(), x)[1])(HOST)


def unequal_parts():
    """Dimensions that the devices do not divide, where XLA's partitioner reads what fills them."""
    mesh = weft.make_mesh((4, 2), ("a", "b"))
    x, y = np.random.default_rng(1).normal(size=(2, 8, 8)).astype(np.float32)
    where = np.array([1, 1, 6])
    cotangents = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8)

    def convolved(x, y):
        return lax.conv_general_dilated(x[None, None], y[None, None], (1, 1), "SAME")[0, 0]

    def running(name, axis):
        f = getattr(lax, name)
        return lambda x, y: weft.grad(lambda x: (f(x, axis=axis) * cotangents).sum())(x)

    def shifted(x, y):  # from whole to split
        whole = lax.with_sharding_constraint(wnp.sin(x), split(mesh=mesh))
        return lax.pad(whole, 1.0, ((1, -1, 0), (0, 0, 0))) + x

    def spread(x, y):  # from whole to split
        whole = lax.with_sharding_constraint(wnp.sin(x), split(mesh=mesh))
        padded = lax.pad(whole, 1.0, ((1, 0, 1), (0, 1, 1)))
        place = NamedSharding(mesh, P(("a", "b")))
        return lax.with_sharding_constraint(padded, place)

    def slices(x, y):  # of which each has parts as large as those of x
        whole = [lax.with_sharding_constraint(v, split(mesh=mesh)) for v in (x[:7], x, x[:, :7])]
        return whole[0].sum(0) + whole[1].sum(0) + whole[2].sum(1)

    def joint(x, y):
        def larger(a, b):
            return wnp.maximum(a[0], b[0]), wnp.where(a[0] >= b[0], a[1], b[1])

        starts = np.float32(-np.inf), np.float32(0)
        return lax.reduce_window((x, y), starts, larger, (3, 3), (1, 1), "SAME")[1]

    def largest(size):
        return lambda x: lax.reduce_window(x, -np.inf, lax.max, size, (1, 1), "SAME").sum(1)

    functions = {
        "add": lambda x, y: x.at[where].add(y[:3]),
        "max": lambda x, y: x.at[where].max(y[:3]),
        "computed": lambda x, y: x.at[(abs(y[0, :5]) * 7).astype(int) % 8].add(y[3:]),
        "conv": lambda x, y: convolved(x, y[:3, :3]),
        "conv by window": lambda x, y: weft.grad(lambda y: (convolved(x, y) * cotangents).sum())(
            y[:3, 2:5]
        ),
        "top_k": lambda x, y: weft.grad(lambda x: (lax.top_k(x, 3)[0] @ y[:3]).sum())(x),
        "sort": lambda x, y: wnp.sort(x[:5], axis=0) + y[:5],
        "update": lambda x, y: weft.grad(
            lambda x: wnp.sin(lax.dynamic_update_slice(x, x[2:5], ((x[0, 0] > 0) * 2, 0))).sum()
        )(x),
        "steps": lambda x, y: lax.reduce_window(x, 0.0, lax.add, (1, 2), (2, 2), "SAME"),
        "spread": lambda x, y: lax.pad(x, 0.0, ((-1, 2, 1), (0, -1, 0))),
        "spread to split": spread,
        "slices": slices,
        "own slice": lambda x, y: lax.dynamic_update_slice(x, x[:3], (0, 0)),
        "pools": lambda x, y: weft.vjp(largest((5, 4)), x)[1](y[0])[0],
        "small pools": lambda x, y: weft.vjp(largest((3, 2)), x)[1](y[0])[0],
        "tangents of pools": lambda x, y: weft.jvp(largest((3, 3)), (x,), (y,))[1],
        "clamped": lambda x, y: lax.with_sharding_constraint(
            lax.dynamic_slice(x, ((x[0, 0] < 9) * 5, 0), (4, 8)), NamedSharding(mesh, P("a"))
        ).sum(1),
        "clamped update": lambda x, y: lax.dynamic_update_slice(x, y[:4], ((x[0, 0] < 9) * 5, 0)),
        "joint windows": joint,
        "transform": lambda x, y: weft.grad(lambda x: (wnp.fft.hfft(x, 8) * y).sum())(x),
        "shifted": shifted,
        "cumprod": running("cumprod", 0),
        "cummax": running("cummax", 1),
    }
    for name, f in functions.items():
        expected = np.asarray(weft.jit(f)(x, y))
        for spec in (P("a"), P(None, "b"), P(("b", "a")), P("a", "b")):
            placed = [weft.device_put(v, NamedSharding(mesh, spec)) for v in (x, y)]
            np.testing.assert_allclose(
                np.asarray(weft.jit(f)(*placed)), expected, 1e-4, 1e-4, err_msg=f"{name} {spec}"
            )
    # Where the devices divide all axes, only some windows get constraints. A program on one device
    # gets none.
    placed = [weft.device_put(v, split("a", mesh=mesh)) for v in (x, y)]
    for name in ("joint windows", "tangents of pools"):
        assert "constraint" in weft.jit(functions[name]).lower(*placed).as_text(), name
    for f in (lambda x, y: x @ y, lambda x, y: wnp.sort(x, 1) + wnp.cumsum(y, 0)):
        assert "constraint" not in weft.jit(f).lower(*placed).as_text()
    assert "constraint" not in weft.jit(functions["add"]).lower(x, y).as_text()


def one_update_of_split_arrays():
    """Each part of what an update writes to is a slice of it, of which the update is a slice."""
    u, ones = np.arange(1.0, 6.0, dtype=np.float32), np.ones(16, np.float32)
    updates = (
        lambda z, i: z.at[i].add(1.0),
        lambda z, i: z.at[i].set(7.0),
        lambda z, i: z.at[i].apply(lambda x: x + 1),
    )
    for update in updates:
        f = lambda u, i, y, update=update: update(lax.pad(u, 0.0, [(1, 10, 0)]), i) * y
        whole = weft.jit(f)(u, np.array([9]), ones)
        g = weft.jit(f, in_shardings=(split(), split(), split(("x", "y"))))
        same(g(u, np.array([9]), ones), whole)


def convolutions():
    """Images that are split over places, windows that are split over features, on a grid."""
    draw = np.random.default_rng(2)
    x, k = (draw.normal(size=s).astype(np.float32) for s in ((4, 16, 8), (3, 8, 8)))
    ct = draw.normal(size=x.shape).astype(np.float32)
    numbers = ("NWC", "WIO", "NWC")

    def f(x, k):
        conv = lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=numbers)
        return conv(x, k), weft.grad(lambda x, k: (conv(x, k) * ct).sum(), (0, 1))(x, k)

    wanted = weft.tree.leaves(weft.jit(f)(x, k))
    row = weft.make_mesh((8,), ("x",))
    for mesh, image, window, out in (
        (MESH, (None, "x"), (None, None, "y"), ()),
        (MESH, (None, "x"), (None, "x", "y"), ("x", "y")),
        (MESH, (None, None, "x"), (None, "y"), (None, "y", "x")),
        (MESH, (None, "y"), (None, None, "x"), (None, None, "y")),
        (MESH, ("y", "x"), (), (None, "x", "y")),
        (row, (None, "x"), (None, "x"), ()),
        (row, (None, "x"), (None, None, "x"), (None, None, "x")),
    ):
        image, window, out = (split(*spec, mesh=mesh) for spec in (image, window, out))
        g = weft.jit(f, in_shardings=(image, window), out_shardings=(out, (image, window)))
        for got, want in zip(weft.tree.leaves(g(x, k)), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), 1e-3, 1e-3)


def host_functions():
    """How often functions on the host are called by programs on several devices, and with what."""
    x = weft.device_put(HOST, split("x", "y"))
    calls = []

    def note(*xs):
        calls.append([v.shape for v in xs])

    def doubled(v):
        note(v)
        return np.asarray(v) * 2

    struct = weft.ShapeDtypeStruct(HOST.shape, HOST.dtype)

    def then(call):
        return lambda x: (call(x), x * 2)[1]

    for f, count, shape in (
        (then(lambda x: weft.debug.callback(note, x)), 1, (8, 4)),
        (then(lambda x: weft.debug.callback(note, x, ordered=True)), 1, (8, 4)),
        (then(lambda x: weft.debug.callback(note, x, partitioned=True)), 8, (4, 1)),
        (then(weft.vmap(lambda r: weft.debug.callback(note, r, partitioned=True))), 64, (1,)),
        (then(weft.vmap(lambda r: weft.debug.callback(note, r))), 8, (4,)),
        (lambda x: experimental_io(doubled, struct, x), 1, (8, 4)),
        (lambda x: experimental_io(doubled, struct, x, ordered=True), 1, (8, 4)),
        (
            weft.shard_map(
                then(lambda x: weft.debug.callback(note, x)),
                mesh=MESH, in_specs=P("x"), out_specs=P("x"),
            ),
            8,
            (4, 4),
        ),
    ):  # fmt: skip
        calls.clear()
        same(weft.jit(f)(x), HOST * 2)
        weft.effects_barrier()
        assert len(calls) == count, (calls, count)
        assert all(c == [shape] for c in calls), calls
    for count in (1, 8):
        mesh = weft.make_mesh((count,), ("x",), devices=weft.devices()[:count])
        order = []

        def log(number, v, order=order):
            weft.debug.callback(lambda v: order.append((int(v[0]), number)), v, ordered=True)

        def part(v, log=log):
            log(1, v)
            log(2, v + 0)
            return v

        @weft.jit
        def program(v, mesh=mesh, log=log, part=part):
            log(0, v)
            v = weft.shard_map(part, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(v)
            log(3, v)
            return v

        same(program(np.arange(8)), np.arange(8))
        weft.effects_barrier()
        if count == 1:
            assert order == [(0, 0), (0, 1), (0, 2), (0, 3)], order
        for first in range(count):
            assert [n for v, n in order if v == first and n in (1, 2)] == [1, 2], order
    same(weft.jit(lambda x: weft.pure_callback(doubled, struct, x))(x), HOST * 2)
    parts = weft.shard_map(
        then(lambda x: weft.debug.callback(note, x, ordered=True)),
        mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
    )  # fmt: skip
    with raises(NotImplementedError, "[debug_callback]", "all axes", ".py:"):
        weft.jit(parts)(x)


def _solve(x, w):
    """Linear algebra of a matrix that is well conditioned."""
    matrix = x.T @ x * 0.1 + 2 * wnp.eye(8)
    factor = wnp.linalg.cholesky(matrix)
    return wnp.linalg.solve(matrix, w) + lax.linalg.triangular_solve(
        factor, x, left_side=True, lower=True
    )


def _convolve(x, w):
    # Of one place: XLA's gradients by the filter are wrong where the places are split.
    kernel = wnp.stack([w, w.T, -w], axis=2)
    return x + 0.3 * lax.conv_general_dilated(x[:, :, None], kernel, (1,), "SAME")[:, :, 0]


def _loop(x, w):
    def body(state):
        i, y = state
        return i + 1, wnp.tanh(y @ w) + x

    return weft.checkpoint(lambda y: lax.fori_loop(0, 3, lambda i, y: body((i, y))[1], y))(x)


# Each takes and gives arrays of (8, 8).
STEPS = {
    "matmul": lambda x, w: x @ w,
    "tanh": lambda x, w: wnp.tanh(x) + w[0],
    "transpose": lambda x, w: x.T.reshape(x.shape) * 0.5,
    "mean": lambda x, w: x - x.mean(axis=0, keepdims=True),
    "sort": lambda x, w: wnp.sort(x, axis=1),
    "argsort": lambda x, w: wnp.take_along_axis(x, wnp.argsort(w, axis=0), axis=0),
    "top_k": lambda x, w: x + lax.top_k(w, 3)[0].sum(axis=1, keepdims=True),
    "where": lambda x, w: wnp.where(x > 0, x, wnp.flip(x, 0)),
    "cumsum": lambda x, w: wnp.concatenate([x[4:], x[:4]]) + wnp.cumsum(x, axis=0) / 8,
    "cummax": lambda x, w: lax.cummax(x, axis=1, reverse=True) + w,
    "scan": lambda x, w: lax.scan(lambda c, row: (c + row, c * 0.1), x[0], x)[1] + x,
    "batched": lambda x, w: wnp.einsum(
        "abc,acd->abd", x.reshape(4, 2, 8), wnp.stack([w, w.T, w * 2, -w])
    ).reshape(8, 8),
    "contract": lambda x, w: wnp.tensordot(
        x.reshape(2, 4, 2, 4), w.reshape(2, 4, 8), axes=((0, 3), (0, 1))
    ).reshape(8, 8),
    "softmax": lambda x, w: weft.nn.softmax(x, axis=0) @ w,
    "max": lambda x, w: x / (1 + abs(w).max(axis=1)) + wnp.prod(wnp.tanh(w) + 1, axis=0),
    "gather": lambda x, w: x[wnp.array([3, 0, 7, 7, 1, 2, 6, 5])] + w[:, wnp.arange(8) // 2],
    "scatter": lambda x, w: x.at[wnp.array([1, 1, 4, 6])].add(w[:4]).at[:, 2].set(w[3]),
    "slices": lambda x, w: lax.dynamic_update_slice(
        x, lax.dynamic_slice(w, (2, 1), (3, 5)), (4, (x[0, 0] > 0).astype(int))
    ),
    "pad": lambda x, w: wnp.pad(x[1:-1, ::2], ((1, 1), (2, 2))) + w[::-1],
    "window": lambda x, w: lax.reduce_window(x, 0.0, lax.add, (3, 2), (1, 1), "SAME") * 0.3,
    "conv": _convolve,
    "reshape": lambda x, w: x.reshape(2, 32).reshape(4, 4, 4).swapaxes(0, 2).reshape(8, 8) + w,
    "tile": lambda x, w: wnp.tile(x[:2], (4, 1)) + wnp.repeat(w[:, :4], 2, axis=1),
    "roll": lambda x, w: wnp.roll(x, 3, axis=1) - wnp.roll(w, -1, axis=0),
    "cond": lambda x, w: lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: wnp.sin(x), x),
    "loop": _loop,
    "map": lambda x, w: lax.map(lambda row: row * w[0] + row.sum(), x) * 0.3,
    "vmap": lambda x, w: weft.vmap(lambda a, b: wnp.outer(a, b).sum(0) + a, (0, 1))(x, w),
    "solve": _solve,
    "qr": lambda x, w: wnp.linalg.qr(x + 3 * wnp.eye(8))[1] + w,
    "random": lambda x, w: x * weft.random.uniform(weft.random.key(3), (8, 8)) + w,
    "half": lambda x, w: (x.astype("int32") % 3).astype("float32") + w * x,
}


def functions_that_say_how_they_are_split():
    """custom_partitioning: what XLA asks, what comes out, and what is refused."""
    asked = []

    def rows(sharding):
        return NamedSharding(sharding.mesh, P(*sharding.spec[:1], None))

    def partition(mesh, args, result):
        asked.append((args[0].sharding.spec, result.sharding.spec, args[0].shape))
        return mesh, lambda x: wnp.cumsum(x, 1), rows(args[0].sharding), (rows(args[0].sharding),)

    running = custom_partitioning(lambda x: wnp.cumsum(x, 1))
    running.def_partition(partition, sharding_rule="... i -> ... i")
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    np.testing.assert_array_equal(weft.jit(running)(x), np.cumsum(x, 1))
    assert not asked
    devices = np.array(weft.devices())
    for grid in (devices.reshape(4, 2), devices[::-1].reshape(4, 2), devices.reshape(2, 4).T):
        mesh = Mesh(grid, ("a", "b"))
        for spec in (P("a"), P("a", "b"), P("b", "a"), P(("a", "b")), P(("b", "a")), P()):
            put = weft.device_put(x, NamedSharding(mesh, spec))
            asked.clear()
            got = weft.jit(running)(put)
            np.testing.assert_array_equal(got, np.cumsum(x, 1))
            whole = P(*spec, *[None] * (2 - len(spec))) if spec else P()
            assert asked == [(whole, whole, (8, 16))], asked
            assert got.sharding.spec == spec, (got.sharding, spec)

    def total(x, y):
        return {"sum": wnp.sum(x * y, 0), "x": x}

    def partition_total(mesh, args, result):
        over = args[0].sharding.spec[0]

        def of_part(x, y):
            return {"sum": lax.psum(wnp.sum(x * y, 0), over), "x": x}

        first = args[0].sharding
        columns = NamedSharding(mesh, P(first.spec[1]))
        return mesh, of_part, {"sum": columns, "x": first}, (first, first)

    summed = custom_partitioning(total)
    summed.def_partition(
        partition_total,
        sharding_rule=SdyShardingRule(
            (("i", "j"), ("i", "j")), (("j",), ("k", "j")), reduction_factors=("i",)
        ),
    )
    mesh = Mesh(devices.reshape(4, 2), ("a", "b"))
    put = weft.device_put(x, NamedSharding(mesh, P("a", "b")))
    got = weft.jit(lambda x: summed(x, x + 1))(put)
    np.testing.assert_array_equal(got["sum"], (x * (x + 1)).sum(0))
    np.testing.assert_array_equal(got["x"], x)
    assert got["sum"].sharding.spec == P("b")
    text = weft.jit(lambda x: summed(x, x + 1)["sum"]).lower(put).compile().as_text()
    assert text.count("all-reduce(") == 1 and "all-gather" not in text

    scaled = custom_partitioning(lambda x, n: x * n, static_argnums=1)
    scaled.def_partition(
        lambda n, mesh, args, result: (mesh, lambda x: x * n, result.sharding, (result.sharding,)),
        sharding_rule=lambda n, mesh, taken, given: ("i j -> i j", {}),
    )
    np.testing.assert_array_equal(weft.jit(lambda x: scaled(x, 3))(put), x * 3)
    np.testing.assert_array_equal(
        weft.jit(
            weft.shard_map(lambda x: scaled(x, 3), mesh=mesh, in_specs=P("a"), out_specs=P("a"))
        )(put),
        x * 3,
    )

    wrong = custom_partitioning(lambda x: x)
    for returned, message in [
        (lambda mesh, s: (mesh, lambda x: x[:1], s, (s,)), "expected the function of parts"),
        (lambda mesh, s: (mesh, lambda x: x, s, (s, s)), "for each leaf"),
        (lambda mesh, s: (mesh, lambda x: x, P("a"), (s,)), "expected a NamedSharding"),
    ]:
        wrong.def_partition(
            lambda mesh, args, result, f=returned: f(mesh, result.sharding),
            sharding_rule="i j -> i j",
        )
        with raises(RuntimeError, message):
            weft.jit(lambda x: wrong(x))(put)
    wrong.def_partition(None, infer_sharding_from_operands=rows)
    with raises(ValueError, "def_partition"):
        wrong(put)
    wrong.def_partition(partition, infer_sharding_from_operands=rows)
    with raises(NotImplementedError, "sharding_rule"):
        wrong(put)


def devices_in_another_order():
    """XLA would split this product wrongly over a mesh that it is told the devices of."""
    devices = [weft.devices()[i] for i in (1, 3, 7, 4, 5, 2, 0, 6)]
    mesh = Mesh(np.array(devices).reshape(2, 2, 2), ("a", "b", "c"))
    x, w = np.random.default_rng(0).normal(size=(2, 8, 8)).astype(np.float32)
    product = weft.jit(
        lambda x, w: wnp.einsum("abc,acd->abd", x.reshape(4, 2, 8), w[None] * HOST[:4, :1, None])
    )
    expected = np.asarray(product(x, w))
    for spec in (P(None, "b"), P(None, ("c", "b")), P("c", "a"), P()):
        placed = (
            weft.device_put(x, split("c", "a", mesh=mesh)),
            weft.device_put(w, NamedSharding(mesh, spec)),
        )
        same(product(*placed), expected)
    moved = weft.device_put(placed[0], split("y", "x"))  # to the same devices in their order
    same(moved, x)
    assert moved.sharding == split("y", "x")


def random_programs(seed, count):
    """Programs on arrays that are split somehow give what they give on one device."""
    rng = random.Random(seed)
    shapes = [((8,), "a"), ((2, 4), "ab"), ((4, 2), "ab"), ((2, 2, 2), "abc"), ((4,), "a")]
    values = np.random.default_rng(seed)
    names = list(STEPS)
    rng.shuffle(names)
    for trial in range(count):
        sizes, axes = rng.choice(shapes)
        grid = np.array(rng.sample(weft.devices(), int(np.prod(sizes)))).reshape(sizes)
        mesh = Mesh(grid, tuple(axes))
        # Each step comes up before one does again.
        chosen = [names[(5 * trial + i) % len(names)] for i in range(5)]

        def spec(axes=axes):
            free = rng.sample(axes, len(axes))
            cut = rng.randint(0, len(free))
            dims = [tuple(free[:cut]), tuple(free[cut:])][: rng.randint(0, 2)]
            return P(*(P.UNCONSTRAINED if rng.random() < 0.15 else d for d in dims))

        places = [NamedSharding(mesh, spec()) if rng.random() < 0.5 else None for _ in chosen]

        def loss(x, w, is_split, chosen=chosen, places=places):
            for name, place in zip(chosen, places, strict=True):
                x = STEPS[name](x, w)
                x = x / (1 + (x * x).mean())  # so that errors stay small
                if is_split and place is not None:
                    x = lax.with_sharding_constraint(x, place)
            return (x * x).sum(), x

        f = weft.jit(weft.value_and_grad(loss, argnums=(0, 1), has_aux=True), static_argnums=2)
        x, w = (values.normal(size=(8, 8)).astype(np.float32) * 0.3 for _ in range(2))
        expected = weft.tree.leaves(f(x, w, False))
        put = []
        for v in (x, w):
            given = P(*(None if d is P.UNCONSTRAINED else d for d in spec()))
            put.append(weft.device_put(v, NamedSharding(mesh, given)))
        found = weft.tree.leaves(f(*put, True))
        for got, wanted in zip(found, expected, strict=True):
            wanted = np.asarray(wanted)
            np.testing.assert_allclose(
                np.asarray(got), wanted, 1e-3, 1e-4 * (1 + abs(wanted).max()), err_msg=str(chosen)
            )


if __name__ == "__main__":
    values_of_python()
    arrays()
    programs()
    constraints()
    stages()
    grids()
    functions_that_say_how_they_are_split()
    devices_in_another_order()
    memories()
    many_runs()
    refs_stay_where_they_are()
    checks_of_devices()
    descriptions()
    spaces_of_memory()
    programs_under_a_mesh()
    errors()
    calls_that_are_wrong()
    meshes_that_are_set()
    specs_as_written()
    like_others()
    arguments_handed_on()
    split_alike()
    unequal_parts()
    one_update_of_split_arrays()
    convolutions()
    host_functions()
    random_programs(int(sys.argv[1]), int(sys.argv[2]))
    print("ok")
