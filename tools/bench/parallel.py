"""Arrays and programs on eight CPU devices: calls, moves, and what tracing for parts costs.

Asked for: at most jax's time for each call and move, a tenth of it for trace and lower.
"""

import os
from pathlib import Path

from sitting import call_time, run

DEVICES = 8
# key: (what it is, unit, factor, asked for)
ROWS = {
    "add": ("jitted add on 8 devices, dispatch", "us", 1e6, 1.0),
    "put": ("device_put, 1024x64 float32, split 8 ways", "us", 1e6, 1.0),
    "gather": ("jitted add and np.asarray of the result", "us", 1e6, 1.0),
    "move": ("device_put from rows to columns", "us", 1e6, 1.0),
    "shard_map": ("shard_map of 150 ops, trace + lower", "ms", 1e3, 0.1),
    "constraint": ("50 constraints in a program, trace + lower", "ms", 1e3, 0.1),
    "pmap": ("pmap of 150 ops, trace + lower", "ms", 1e3, 0.1),
}


def measure(name):
    """Seconds per row."""
    if name == "jax":
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
        import jax as framework
        import jax.numpy as fnp
    else:
        import weft as framework
        import weft.numpy as fnp

        framework.config.update("weft_num_cpu_devices", DEVICES)
    import numpy as np

    spec, lax, axis = framework.P, framework.lax, "x"
    auto = framework.sharding.AxisType.Auto
    mesh = framework.make_mesh((DEVICES,), (axis,), axis_types=(auto,))
    rows = framework.NamedSharding(mesh, spec(axis))
    columns = framework.NamedSharding(mesh, spec(None, axis))
    host = np.ones((1024, 64), np.float32)
    x = framework.device_put(host, rows)
    add = framework.jit(lambda x: x + 1)

    def gathered():
        return np.asarray(add(x))

    def steps(a):
        for _ in range(50):
            a = fnp.sin(a) * 2 + lax.psum(a, axis)
        return a

    def constrained(a):
        for i in range(50):
            a = lax.with_sharding_constraint(fnp.sin(a) * 2, columns if i % 2 else rows)
        return a

    # A new function each time, so that nothing is found in a cache.
    def shard_mapped():
        f = framework.shard_map(
            lambda a: steps(a), mesh=mesh, in_specs=spec(axis), out_specs=spec(axis)
        )
        framework.jit(f).lower(x).as_text()

    def pmapped():
        framework.pmap(lambda a: steps(a), axis).lower(host.reshape(DEVICES, 128, 64)).as_text()

    def wait(f):
        return lambda: framework.block_until_ready(f())

    return {
        "add": call_time(wait(lambda: add(x))),
        "put": call_time(wait(lambda: framework.device_put(host, rows))),
        "gather": call_time(gathered),
        "move": call_time(wait(lambda: framework.device_put(x, columns))),
        "shard_map": call_time(shard_mapped, number=1),
        "constraint": call_time(
            lambda: framework.jit(lambda a: constrained(a)).lower(x).as_text(), number=1
        ),
        "pmap": call_time(pmapped, number=1) if hasattr(framework, "pmap") else 0.0,
    }


if __name__ == "__main__":
    run(__doc__, Path(__file__), ROWS, measure, 3)
