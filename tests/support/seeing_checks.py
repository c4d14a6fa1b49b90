"""What test_seeing.py runs in a process with eight CPU devices."""

import contextlib
import io
import pathlib
import tempfile

import numpy as np

import weft
import weft.numpy as wnp
from weft import lax
from weft._view.page import data_of
from weft.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding

weft.config.update("weft_num_cpu_devices", 8)
MESH = weft.make_mesh((8,), ("x",))
GRID = weft.make_mesh((4, 2), ("x", "y"))


def put(shape, mesh, *spec):
    return weft.device_put(np.ones(shape, np.float32), NamedSharding(mesh, P(*spec)))


def inspection():
    seen = []

    def f(x):
        y = wnp.sin(x)
        weft.debug.inspect_array_sharding(y, callback=seen.append)
        return y * 2

    x = put((16, 8), GRID, "x", "y")
    jitted = weft.jit(f)
    np.testing.assert_allclose(np.asarray(jitted(x)), 2 * np.sin(1), rtol=1e-6)
    jitted(x)
    assert seen == [NamedSharding(GRID, P("x", "y"))], seen
    f(x)
    assert seen[1:] == [x.sharding]
    weft.jit(weft.grad(lambda x: f(x).sum()))(x)
    assert len(seen) == 3
    weft.jit(weft.vmap(f))(x)  # the same program as the first
    weft.jit(weft.vmap(f))(x[None])
    assert len(seen) == 4
    weft.jit(f)(np.ones(3, np.float32))
    assert isinstance(seen[4], SingleDeviceSharding)
    weft.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(x)
    assert seen[5] == x.sharding


def tables():
    x, w = put((1024, 8), MESH, None, "x"), put((8, 64), MESH, "x", None)
    table = weft.jit(lambda x, w: x @ w).lower(x, w).compile().communication()
    (row,) = table
    assert (row.kind, row.types, row.bytes) == ("all-reduce", "f32[1024,64]", 1024 * 64 * 4)
    assert (row.number, row.group_size, row.num_groups) == (1, 8, 1)
    assert row.sent == 2 * 7 * 1024 * 64 * 4 // 8 and table.sent == row.sent
    assert row.file.endswith("seeing_checks.py") and f":{row.line} " in row.where
    assert "all-reduce" in str(table) and table.by_line() == {row.where: row.bytes}

    @weft.shard_map(mesh=GRID, in_specs=(P("x"), P("y")), out_specs=P("x"), check_vma=False)
    def f(x, w):
        w = lax.all_gather(w, "y", axis=0, tiled=True)

        def body(c, _):
            c = lax.ppermute(wnp.tanh(c @ w), "x", [(i, (i + 1) % 4) for i in range(4)])
            return c + lax.psum(c, ("x", "y")), None

        return lax.scan(body, x, None, length=5)[0]

    compiled = weft.jit(f).lower(put((16, 8), GRID, "x"), put((8, 8), GRID, "y")).compile()
    assert compiled.communication().by_kind() == {
        "all-reduce": 5 * 4 * 8 * 4,
        "collective-permute": 5 * 4 * 8 * 4,
        "all-gather": 8 * 8 * 4,
    }
    assert {(r.group_size, r.num_groups) for r in compiled.communication()} == {
        (8, 1),
        (4, 2),
        (2, 4),
    }
    alone = weft.jit(lambda x: x + 1).lower(x).compile().communication()
    assert len(alone) == 0 and str(alone) == "no communication"


def drawings():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        weft.debug.visualize_array_sharding(put((16, 8), GRID, "x", "y"))
        weft.debug.visualize_sharding((16,), NamedSharding(GRID, P("x")))
    text = out.getvalue()
    assert all(f"CPU {i} " in text for i in range(8)) and "CPU 6,7" in text and "\x1b" not in text
    for shape in ((), (2, 2, 2), (3,)):
        try:
            weft.debug.visualize_sharding(shape, NamedSharding(GRID, P("x") if shape else P()))
        except ValueError:
            continue
        raise AssertionError(shape)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.svg"
        weft.debug.save_sharding(path, (16, 8), NamedSharding(GRID, P("x", "y")))
        assert path.read_text().count("<rect") == 8


def callbacks():
    """In a shard_map over one axis of two: one call for each part along that axis."""
    rows = np.arange(16, dtype=np.float32).reshape(8, 2)
    parts = [float(part.sum()) for part in np.split(rows, 4)]

    def noted(x):
        weft.debug.callback(lambda v, name: seen.append((float(v.sum()), name)), x, "part")
        return wnp.sin(x)

    def scanned(x):
        return lax.scan(lambda c, row: (c, noted(row)), 0, x)[1]

    def in_turn(x):
        weft.debug.callback(seen.append, x, ordered=True)
        return x

    def over_x(f):
        return weft.jit(
            weft.shard_map(f, mesh=GRID, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
        )

    def called(f):
        seen.clear()
        np.testing.assert_allclose(np.asarray(f(rows)), expected, rtol=1e-6)
        weft.effects_barrier()
        return sorted(value for value, _ in seen)

    seen, expected = [], np.sin(rows)
    assert called(over_x(noted)) == parts, seen
    each_row = sorted(map(float, rows.sum(1)))
    assert called(over_x(weft.vmap(noted))) == each_row
    assert called(over_x(scanned)) == each_row
    expected = np.cos(rows)
    assert called(weft.grad(lambda x: over_x(noted)(x).sum())) == parts
    try:
        over_x(in_turn)(rows)
    except NotImplementedError as error:
        assert "shard_map over all axes" in str(error)
    else:
        raise AssertionError("an ordered call was not refused")


def pages():
    x, w = put((16, 8), GRID, "x"), put((8, 4), GRID, None, "y")
    compiled = weft.jit(lambda x, w: {"y": wnp.tanh(x @ w)}).lower(x, w).compile()
    with tempfile.TemporaryDirectory() as folder:
        page = weft.compiler.show(compiled, path=pathlib.Path(folder) / "page.html")
        data = data_of(page.read_text())
    names = [s["names"] for s in data["shardings"]]
    assert names == [["x"], ["w"], ["result['y']"]], names
    assert [s["svg"].count("<rect") for s in data["shardings"]] == [4, 2, 8]
    (part,) = data["compiled"]
    assert "as one module" in part["why"] and not part["rows"]


for check in (inspection, tables, drawings, callbacks, pages):
    check()
print("ok")
