"""One of the processes of test_distributed.py.

usage: distributed_worker.py MODE ADDRESS PROCESSES NUMBER FOLDER

Prints one line of JSON: what it saw.
"""

import json
import os
import signal
import sys
import time

import numpy as np

import weft
import weft.numpy as wnp
from weft.experimental import multihost_utils

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


def all_reduce():
    """A function that sums over the devices of all processes, by a program of XLA's."""
    from jaxlib import _hlo, _jax, xla_client

    from weft.runtime import buffers, devices

    everywhere = devices.devices()
    n = len(everywhere)
    listed = _jax.DeviceList(tuple(everywhere))
    options = xla_client.CompileOptions()
    options.num_partitions = n
    ids = np.array([[d.id for d in everywhere]], np.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    text = f"""
      sdy.mesh @mesh = <["x"={n}]>
      func.func public @main(%a: tensor<{n}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
          -> (tensor<1xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}]>}}) {{
        %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}]>]
            out_shardings=[<@mesh, [{{}}]>] manual_axes={{"x"}} (%b: tensor<1xf32>) {{
          %1 = "stablehlo.all_reduce"(%b) <{{
            channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            replica_groups = dense<{[list(range(n))]}> : tensor<1x{n}xi64>, use_global_device_ids
          }}> ({{
            ^bb0(%x: tensor<f32>, %y: tensor<f32>):
              %s = stablehlo.add %x, %y : tensor<f32>
              stablehlo.return %s : tensor<f32>
          }}) : (tensor<1xf32>) -> tensor<1xf32>
          sdy.return %1 : tensor<1xf32>
        }} : (tensor<{n}xf32>) -> tensor<1xf32>
        return %0 : tensor<1xf32>
      }}"""
    own = weft.local_devices()
    program = own[0].client.compile_and_load(text, listed, options)
    parts = [np.float32([everywhere.index(d)]) for d in own]
    given = _jax.batched_device_put(
        devices.Aval((n,), np.dtype("float32")),
        _jax.GSPMDSharding(listed, _hlo.HloSharding.iota_tile((n,))),
        parts,
        own,
        committed=True,
        enable_x64=True,
    )
    result = devices.Aval((1,), np.dtype("float32"))
    whole = _jax.GSPMDSharding(listed, _hlo.HloSharding.replicate())
    handler = buffers.make_handler(result, whole)

    def run():
        (out,) = program.execute_sharded([given]).consume_with_handlers([handler])
        out.block_until_ready()
        return out

    return run, n


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
    run, n = all_reduce()
    (part, *_) = run()._arrays
    seen["reduced"] = [float(np.asarray(memoryview(part))[0]), sum(range(n))]
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
    run, _ = all_reduce()
    run()
    multihost_utils.sync_global_devices("begin")
    began = time.time()
    try:
        if NUMBER == VICTIM:
            time.sleep(0.2)
            if MODE == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if MODE == "raise":
                raise ValueError("a mistake")
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while MODE != "sleep":
                run()
        except weft.errors.JaxRuntimeError:
            time.sleep(60)  # of the connection: what is behind it is told now
        time.sleep(60)
    except weft.errors.ProcessFailureError as error:
        return {
            "told": str(error),
            "lost": [error.failed_processes, sorted(d.id for d in error.failed_devices)],
            "took": time.time() - began,
            "again": message(multihost_utils.sync_global_devices, "after"),
        }


def mismatch():
    return {}


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
    seen = {"meet": meet, "mismatch": mismatch}.get(MODE, fail)()
print(json.dumps(seen), flush=True)
