"""Calls every function, class and method of weft._core with arguments of all kinds.

usage: core_calls.py SEED CALLS     writes each call to stderr before it is made

A process that dies while it runs this has found a bug; errors are what the calls should raise.
"""

import gc
import random
import sys
import warnings

import numpy as np

import weft
import weft.numpy as wnp
from weft import _core

# They are meant to change the process for good: other calls would mean nothing after them.
LEFT_OUT = {"install", "register_device", "set_multiple_results", "new_op"}


class Awkward:
    """Answers everything, mostly with something of the wrong kind."""

    shape = (2, -1)
    dtype = "f4"
    weak_type = None

    def __len__(self):
        return 3

    def __getitem__(self, i):
        raise IndexError(i)

    def __index__(self):
        return -5

    def __call__(self, *args):
        return args

    def __eq__(self, other):
        weft.clear_caches()
        return True

    def __hash__(self):
        return 1


def dead_tracer():
    kept = []
    weft.jit(lambda x: kept.append(x) or x)(1.0)
    return kept[0]


def deleted_array():
    x = wnp.ones(3)
    x.delete()
    return x


def objects():
    graph = weft.jit(lambda x: x * 2 + 1).trace(np.ones(3, np.float32)).graph
    jaxpr = weft.make_jaxpr(lambda x: wnp.sin(x))(1.0)
    traced = _core.trace(weft.jit(lambda x: x + 1), (1.0,), {})
    return [
        *(
            None,
            True,
            0,
            -1,
            3,
            2**63,
            -(2**200),
            1.5,
            float("nan"),
            2j,
            "",
            "add",
            "cond",
            "\udcff",
        ),
        *(
            b"x",
            [],
            [None],
            [1.0, 2.0],
            (),
            (None,),
            (True,),
            (0, 1),
            {},
            {"a": 1},
            set(),
            object(),
        ),
        *(np.ones(3), np.ones((2, 2), np.int8), np.array("s"), np.array(None), np.float32(1)),
        *(np.dtype("f4"), np.dtype("M8[s]"), wnp.ones(3), wnp.asarray(1), deleted_array()),
        *(dead_tracer(), graph, [graph], [(graph, [])], [(graph, [1.0])], jaxpr, jaxpr.jaxpr),
        *(
            jaxpr.jaxpr.eqns[0],
            jaxpr.jaxpr.invars[0],
            traced,
            traced.compile(traced.places(), None, None),
        ),
        *(weft.jit(lambda x: x), lambda *a: a, lambda *a: list(a), len, int, wnp.add, Awkward()),
        *(weft.ShapeDtypeStruct((2,), np.float32), [weft.ShapeDtypeStruct((2,), np.float32)]),
        *(weft.devices()[0], _core.primitive("add"), type(wnp.ones(1)), _core),
    ]


def targets():
    """(name, callable) for all that can be called, methods on the class and on an object."""
    out = []
    for name in sorted(dir(_core)):
        if name.startswith("__") or name in LEFT_OUT:
            continue
        value = getattr(_core, name)
        if callable(value):
            out.append((name, value))
        if isinstance(value, type):
            for method in sorted(vars(value)):
                if method not in ("__new__", "__del__", "__class_getitem__", "__init_subclass__"):
                    attribute = getattr(value, method, None)
                    if callable(attribute):
                        out.append((f"{name}.{method}", attribute))
    return out


def main():
    seed, calls = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    pool = objects()
    every = targets()
    fine = 0
    for i in range(calls):
        name, function = every[i % len(every)] if i < 2 * len(every) else rng.choice(every)
        args = [rng.choice(pool) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6)))]
        owner = getattr(_core, name.partition(".")[0]) if "." in name else None
        fitting = [x for x in pool if owner and isinstance(x, owner)]
        if args and fitting and rng.random() < 0.7:
            args[0] = rng.choice(fitting)
        kwargs = {"axis": rng.choice(pool)} if rng.random() < 0.1 else {}
        shown = ", ".join(f"{type(a).__name__}:{getattr(a, '__name__', '')}" for a in args)
        sys.stderr.write(f"{name}({shown}, {list(kwargs)})\n")
        sys.stderr.flush()
        try:
            function(*args, **kwargs)
            fine += 1
        except Exception as e:
            if isinstance(e, SystemError):
                print(f"SystemError from {name}({shown}): {e}")
        if i % 500 == 0:
            gc.collect()
            pool = objects()
    print(f"{calls} calls, {fine} without an error")


if __name__ == "__main__":
    main()
