"""One of the processes of test_distributed.py.

usage: distributed_worker.py MODE ADDRESS PROCESSES NUMBER FOLDER

Prints one line of JSON: what it saw.
"""

import json
import os
import signal
import sys
import threading
import time

import numpy as np

import weft
import weft.numpy as wnp
from weft.experimental import multihost_utils
from weft.sharding import Mesh, NamedSharding, PartitionSpec as P

MODE, ADDRESS, COUNT, NUMBER, FOLDER = sys.argv[1:]
COUNT, NUMBER = int(COUNT), int(NUMBER)
HEARTBEAT = 3
VICTIM = {"kill_first": 0}.get(MODE, COUNT - 1)


def message(function, *args, **kwargs):
    """The error of a call, as its class and its text."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None


def meshed():
    """A mesh of all devices, a row for each process, and the sharding over both of its axes."""
    mesh = Mesh(np.array(weft.devices()).reshape(COUNT, 2), ("p", "d"))
    return mesh, NamedSharding(mesh, P("p", "d"))


@weft.jit
def step(x):
    return x / (1 + wnp.abs(x).sum())


def whole(x):
    return multihost_utils.process_allgather(x, tiled=True)


def arrays_are_spread():
    """Arrays with parts in all processes: made, asked, refused."""
    mesh, both = meshed()
    host = np.arange(COUNT * 8, dtype=np.float32).reshape(2 * COUNT, 4)
    mine = host[2 * NUMBER : 2 * NUMBER + 2]
    parts = [weft.device_put(mine[:, i : i + 2], weft.local_devices()[i // 2]) for i in (0, 2)]
    for x in (
        weft.device_put(host, both),
        weft.device_put(wnp.asarray(host), both),
        weft.make_array_from_callback(host.shape, both, lambda index: host[index]),
        weft.make_array_from_process_local_data(both, mine),
        weft.make_array_from_process_local_data(both, mine, host.shape),
        weft.make_array_from_process_local_data(both, host, host.shape),
        weft.make_array_from_single_device_arrays(host.shape, both, parts[::-1]),
        multihost_utils.host_local_array_to_global_array(mine, mesh, P("p", "d")),
    ):
        assert (x.shape, x.sharding, x.committed) == (host.shape, both, True)
        assert not x.is_fully_addressable and not x.is_fully_replicated
        assert [s.data.tolist() for s in x.addressable_shards] == [p.tolist() for p in parts]
        assert [s.device for s in x.global_shards] == weft.devices()
        assert [s.data is None for s in x.global_shards].count(False) == 2
        assert (whole(x) == host).all()
    local = multihost_utils.global_array_to_host_local_array(x, mesh, P("p", "d"))
    assert local.is_fully_addressable and (np.asarray(local) == mine).all()
    turned = weft.device_put(x, NamedSharding(mesh, P("d", "p")))
    assert turned.sharding.spec == P("d", "p") and (whole(turned) == host).all()
    everywhere = weft.device_put(x, NamedSharding(mesh, P()))
    assert everywhere.is_fully_replicated and (np.asarray(everywhere) == host).all()
    assert repr(x) == str(x) == f"{x}" == f"Array(shape={host.shape}, dtype=float32)"
    for ask in (np.asarray, memoryview, weft.device_get, lambda x: x.item(0), lambda x: x.tolist()):
        assert message(ask, x)[0] == "NotAddressableError"
    there = weft.devices()[-1]
    assert message(weft.device_put, x, there)[0] == "NotAddressableError"
    one = weft.device_put(np.ones(2), there)
    assert len(one.addressable_shards) == (NUMBER == COUNT - 1)
    keys = weft.device_put(
        weft.random.split(weft.random.key(0), 2 * COUNT), NamedSharding(mesh, P("p"))
    )
    assert not keys.is_fully_addressable and repr(keys).startswith("Array(")
    assert message(x.__dlpack__)[0] == "BufferError"
    bad = message(weft.make_array_from_process_local_data, both, np.ones((3, 4)), host.shape)
    assert "or the 2 that the devices of this process hold" in bad[1]
    differ = message(weft.device_put, np.full(host.shape, NUMBER), both)
    assert differ[0] == "ProgramMismatchError" and "expected the same value" in differ[1]
    assert message(multihost_utils.process_allgather, x)[0] == "ValueError"
    return host, x


def programs_are_spread(host, x):
    """Programs over all processes compute what one device does, and its derivatives."""
    mesh, both = meshed()

    def f(x, w):
        return (wnp.tanh(x @ w) ** 2).sum()

    w = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    value, grads = weft.jit(weft.value_and_grad(f, argnums=(0, 1)))(x, w)
    wanted, wanted_grads = weft.jit(weft.value_and_grad(f, argnums=(0, 1)))(host, w)
    np.testing.assert_allclose(float(value), float(wanted), rtol=1e-5)
    for own, other in zip(grads, wanted_grads, strict=True):
        np.testing.assert_allclose(whole(own), other, rtol=1e-4, atol=1e-4)
    assert whole(x[1]).tolist() == host[1].tolist()
    placed = weft.jit(
        lambda a: a.T * 2, in_shardings=both, out_shardings=NamedSharding(mesh, P("d"))
    )(x)
    assert placed.sharding.spec == P("d") and (whole(placed) == host.T * 2).all()

    def exchanged(part):
        ring = [(i, (i + 1) % COUNT) for i in range(COUNT)]
        return weft.lax.ppermute(part, "p", ring) + weft.lax.psum(part, ("p", "d"))

    moved = weft.shard_map(exchanged, mesh=mesh, in_specs=P("p", "d"), out_specs=P("p", "d"))
    blocks = host.reshape(COUNT, 2, 2, 2)
    total = np.tile(blocks.sum((0, 2)), (COUNT, 2))
    for run in (moved, weft.jit(moved)):
        assert (whole(run(x)) == np.roll(host, 2, axis=0) + total).all()
    for _ in range(20):  # without a wait in between
        x = step(x)
    assert whole(x).shape == host.shape
    other = weft.jit(lambda x: x.sum() * (NUMBER + 1))
    differ = message(other, x)
    assert differ[0] == "ProgramMismatchError" and "program in each; got '<lambda>(f32" in differ[1]


def checkpoints_are_spread(host, x):
    """Each process writes its parts; they are restored to any layout."""
    mesh, both = meshed()
    share = NamedSharding(mesh, P(("d", "p")))
    tree = {
        "x": x,
        "same": weft.device_put(np.arange(4 * COUNT), NamedSharding(mesh, P())),
        "bits": weft.device_put(wnp.arange(8 * COUNT).astype("bfloat16"), share),
        "keys": weft.device_put(weft.random.split(weft.random.key(3), 2 * COUNT), share),
        "n": 5,
    }
    folder = os.path.join(FOLDER, "spread")
    weft.checkpoints.save(folder, tree, 1, asynchronous=True).wait()
    files = os.path.join(folder, "1", "arrays")
    assert [len(os.listdir(os.path.join(files, i, "c"))) for i in "01"] == [2 * COUNT, 2 * COUNT]
    again = weft.checkpoints.restore(folder, tree)
    same = weft.tree.map(lambda a, b: a == b if a is b else a.sharding == b.sharding, again, tree)
    assert all(weft.tree.leaves(same))
    turned = NamedSharding(mesh, P("d", "p"))
    wish = {**tree, "x": weft.ShapeDtypeStruct(x.shape, x.dtype, sharding=turned)}
    here = NamedSharding(mesh.local_mesh, P(None, "d"))
    to = dict.fromkeys(tree, share) | {"x": here}
    for restored, place in (
        (weft.checkpoints.restore(folder, wish), turned),
        (weft.checkpoints.restore(folder, shardings=to), here),
    ):
        assert restored["x"].sharding == place and (whole_or_own(restored["x"]) == host).all()
    assert restored["bits"].sharding == share
    assert (whole(restored["bits"]).astype(int) == np.arange(8 * COUNT)).all()


def whole_or_own(x):
    return np.asarray(x) if x.is_fully_addressable else whole(x)


def full(*_):
    raise OSError("disk full")


def meet():
    share = multihost_utils
    seen = {
        "counts": [
            weft.process_index(),
            weft.process_count(),
            weft.device_count(),
            weft.local_device_count(),
        ],
        "owners": [d.process_index for d in weft.devices()],
        "own_device": (wnp.arange(3) + 1).device.process_index,
        "twice": message(weft.distributed.initialize, ADDRESS, COUNT, NUMBER),
    }
    everyone = share.process_allgather({"a": wnp.arange(2) + NUMBER, "n": NUMBER})
    joined = share.process_allgather(wnp.ones(2, wnp.bfloat16) * NUMBER, tiled=True)
    seen["gathered"] = [everyone["a"].tolist(), everyone["n"].tolist()]
    seen["tiled"] = [str(joined.dtype), joined.astype(float).tolist()]
    seen["broadcast"] = float(share.broadcast_one_to_all(NUMBER + 0.5))
    seen["from_last"] = int(share.broadcast_one_to_all(NUMBER, is_source=NUMBER == COUNT - 1))
    big = np.full(700_000, NUMBER, np.float32)  # more than one piece in the store
    seen["big"] = float(share.broadcast_one_to_all(big).sum())
    seen["no_source"] = message(share.broadcast_one_to_all, 1, is_source=False)
    seen["shapes"] = message(share.broadcast_one_to_all, np.zeros(NUMBER))
    seen["same"] = message(share.assert_equal, {"x": 3})
    seen["differ"] = message(share.assert_equal, {"x": NUMBER}, "numbers:")
    seen["names"] = message(share.sync_global_devices, f"place {NUMBER}")
    share.sync_global_devices("place")
    host, x = arrays_are_spread()
    programs_are_spread(host, x)
    checkpoints_are_spread(host, x)
    tree = {"w": wnp.arange(6.0) + NUMBER, "n": NUMBER}
    for step in range(3):
        saving = weft.checkpoints.save(FOLDER, tree, step, keep=2, asynchronous=step < 2)
    saving.wait()
    seen["saved"] = weft.checkpoints.all_steps(FOLDER)
    seen["restored"] = weft.checkpoints.restore(FOLDER, tree)["w"].tolist()
    if NUMBER == 0:
        os.mkdir(os.path.join(FOLDER, ".incomplete-7"), 0o500)
        os.mkdir = full
    seen["not_saved"] = message(weft.checkpoints.save, FOLDER, tree, 7)
    weft.distributed.shutdown()
    seen["after"] = [weft.distributed.is_initialized(), (wnp.arange(2) * 2).tolist()]
    return seen


def fail():
    """A process fails in the middle of a step; the others say how long it took to reach them."""
    _, both = meshed()
    x = weft.device_put(np.ones((2 * COUNT, 4), np.float32), both)
    long = weft.jit(lambda x, n: weft.lax.fori_loop(0, n, lambda _, x: step(x), x))
    long(x, 1).block_until_ready()
    multihost_utils.sync_global_devices("begin")
    began = time.time()
    try:
        if NUMBER == VICTIM:
            if MODE in ("kill", "kill_first"):
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
                long(x, 10**8)
            if MODE == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if MODE == "raise":
                raise ValueError("a mistake")
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)
        if MODE != "sleep":
            long(x, 10**8).block_until_ready()
        time.sleep(60)
    except weft.errors.ProcessFailureError as error:
        return {
            "told": str(error),
            "lost": [error.failed_processes, sorted(d.id for d in error.failed_devices)],
            "took": time.time() - began,
            "again": message(multihost_utils.sync_global_devices, "after"),
            "program": message(step, x),
        }


def mismatch():
    return {}


def diverge():
    """Programs that all have started before, in different orders: found while they run."""
    _, both = meshed()
    x = weft.device_put(np.ones((2 * COUNT, 4), np.float32), both)
    programs = [weft.jit(lambda x, i=i: step(x) + i) for i in range(3)]
    for program in programs:
        program(x)
    try:
        programs[NUMBER](x)
        time.sleep(60)
    except weft.errors.ProgramMismatchError as error:
        return {"told": str(error)}


weft.config.update("weft_num_cpu_devices", 2)
try:
    weft.distributed.initialize(
        ADDRESS,
        COUNT + (MODE == "mismatch" and NUMBER == 1),
        NUMBER,
        initialization_timeout=60,
        heartbeat_timeout_seconds=HEARTBEAT,
        shutdown_timeout_seconds=10,
    )
except RuntimeError as error:
    seen = {"initialize": [type(error).__name__, str(error)]}
else:
    seen = {"meet": meet, "mismatch": mismatch, "diverge": diverge}.get(MODE, fail)()
print(json.dumps(seen), flush=True)
