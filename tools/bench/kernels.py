"""What XLA's runtime for CPUs takes for small things: the constants of src/passes/machine.h.

usage: kernels.py [--seconds S]

Programs of StableHLO are compiled with jaxlib alone, as a sequence of thunks and as one kernel (a
call with the attributes that ask XLA for it), and the least time of many calls counts; S seconds go
into each (0.05). It prints tables of what was measured, and the lines of machine.h that follow from
them. Nothing else may run meanwhile. Loops run a thousand times and more, so that the call of the
program does not show.
"""

import argparse
import functools
import os
import statistics
import subprocess
import sys
import time

# What weft gives XLA as well, but for the first: loops stay loops of thunks unless they are asked
# to be kernels. Read when jaxlib is loaded.
EXTRA = {
    "xla_cpu_small_while_loop_byte_threshold": 0,
    "xla_cpu_disable_tiled_emitter": "true",
    "xla_cpu_disable_slp_vectorizer": "true",
    "xla_cpu_disable_loop_unrolling": "true",
}
if "--joins" in sys.argv:  # what main() asks of a process of its own
    del EXTRA["xla_cpu_disable_loop_unrolling"]
os.environ["XLA_FLAGS"] = "--xla_backend_extra_options=" + ",".join(
    f"{name}={value}" for name, value in EXTRA.items()
)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # what XLA refuses, it logs as well


import numpy as np  # noqa: E402
from jaxlib import _hlo, _jax, xla_client  # noqa: E402

KERNEL = '{mhlo.frontend_attributes = {inlineable = "false", xla_cpu_small_call = "true"}}'
TRIPS = 2000


# ---- Running a text


class Type:
    """Shape and dtype of an array, as jaxlib asks for them."""

    weak_type = False

    def __init__(self, x):
        self.shape, self.dtype, self.ndim, self.size = x.shape, x.dtype, x.ndim, x.size


class OneDevice(_jax.SingleDeviceSharding):
    _device_assignment = property(lambda self: (self._device,))
    memory_kind = property(lambda self: self._memory_kind)
    device_set = property(lambda self: {self._device})
    is_fully_addressable = is_fully_replicated = True

    def _to_xla_hlo_sharding(self, rank):
        return _hlo.HloSharding.replicate()

    def shard_shape(self, shape):
        return shape


@functools.cache
def device():
    setting = _jax.config.Config("enable_x64", True, include_in_jit_key=True)
    _jax.jax_jit.set_enable_x64_state(setting)
    return xla_client.make_cpu_client().devices()[0]


def put(x):
    x = np.ascontiguousarray(x)
    return _jax.batched_device_put(
        Type(x), OneDevice(device()), [x], [device()], committed=True, enable_x64=True
    )


def compiled(text):
    return device().client.compile_and_load(
        text, _jax.DeviceList((device(),)), xla_client.CompileOptions()
    )


def seconds_of(text, arrays, spend):
    """The least time of a call; None if XLA refuses the program."""
    try:
        program = compiled(text)
    except _jax.JaxRuntimeError:
        return None
    arrays = [put(x) for x in arrays]
    least, until, count = float("inf"), time.perf_counter() + spend, 0
    while count < 5 or time.perf_counter() < until:
        start = time.perf_counter()
        for shards in program.execute_sharded(arrays).disassemble_into_single_device_arrays():
            shards[0].block_until_ready()
        least = min(least, time.perf_counter() - start)
        count += 1
    return least


# ---- Writing one


def tensor(*dims, of="f32"):
    return f"tensor<{''.join(f'{n}x' for n in dims)}{of}>"


def module(types, results, body, as_kernel):
    """A function of arguments %a0, ... whose body returns as many results."""
    given = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    kinds = ", ".join(results)
    if not as_kernel:
        return f"module @m {{ func.func public @main({given}) -> ({kinds}) {{\n{body} }} }}"
    names = ", ".join(f"%a{i}" for i in range(len(types)))
    # One number of each argument comes back as well: no argument may be without use in a kernel.
    guards, extra = "", [tensor(of=t[7:-1].split("x")[-1]) for t in types]
    for i, (t, number) in enumerate(zip(types, extra, strict=True)):
        rank = t.count("x")
        first, ones = ", ".join(["0:1"] * rank), tensor(*[1] * rank, of=t[7:-1].split("x")[-1])
        if rank:
            guards += f"%o{i} = stablehlo.slice %a{i} [{first}] : ({t}) -> {ones}\n"
            guards += f"%g{i} = stablehlo.reshape %o{i} : ({ones}) -> {number}\n"
    kept = ", ".join(f"%g{i}" if t.count("x") else f"%a{i}" for i, t in enumerate(types))
    values, _, _ = body.rpartition("return ")
    returned = body.rpartition("return ")[2].split(" : ")[0]
    count, every = len(results), ", ".join([*results, *extra])
    inner = f"{values}{guards}return {returned}, {kept} : {every}"
    out = ", ".join(f"%r#{i}" for i in range(count))
    return (
        f"module @m {{ func.func public @main({given}) -> ({kinds}) {{\n"
        f"%r:{count + len(extra)} = call @k({names}) {KERNEL} : ({', '.join(types)}) -> ({every})\n"
        f"return {out} : {kinds} }}\n"
        f"func.func private @k({given}) -> ({every}) {{\n{inner} }} }}"
    )


def loop(types, body, trips, as_kernel, read=()):
    """A loop that carries %c0, ... of these types, from the first arguments on; its body makes
    %n0, ... of them, and may read later arguments, of the types `read`, and the counter %i."""
    count, number = len(types), tensor(of="i32")
    starts = "".join(f", %c{k} = %a{k}" for k in range(count))
    kinds = ", ".join([number, *types])
    made = "".join(f", %n{k}" for k in range(count))
    text = f"""%zero = stablehlo.constant dense<0> : {number}
%w:{count + 1} = stablehlo.while(%i = %zero{starts}) : {kinds} cond {{
  %last = stablehlo.constant dense<{trips}> : {number}
  %on = stablehlo.compare LT, %i, %last : ({number}, {number}) -> {tensor(of="i1")}
  stablehlo.return %on : {tensor(of="i1")}
}} do {{
  %one = stablehlo.constant dense<1> : {number}
{body}
  %j = stablehlo.add %i, %one : {number}
  stablehlo.return %j{made} : {kinds}
}}
return {", ".join(f"%w#{k + 1}" for k in range(count))} : {", ".join(types)}"""
    return module([*types, *read], types, text, as_kernel)


def constant(name, value, kind):
    return f"%{name} = stablehlo.constant dense<{value:e}> : {kind}\n"


# ---- What is measured, in seconds


def trip(shapes, body, as_kernel, spend, read=(), trips=TRIPS):
    """Seconds of one trip of a loop over arrays of these shapes."""
    types = [tensor(*shape) for shape in shapes]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.1, 0.9, shape).astype("f") for shape in (*shapes, *read)]
    text = loop(types, body, trips, as_kernel, [tensor(*shape) for shape in read])
    spent = seconds_of(text, arrays, spend)
    return None if spent is None else spent / trips


def steps(count):
    """A body of steps that neither depend on each other nor have the same shape."""
    return "".join(
        constant(f"p{k}", 0.999, tensor(k + 1))
        + f"%m{k} = stablehlo.multiply %c{k}, %p{k} : {tensor(k + 1)}\n"
        + f"%n{k} = stablehlo.add %m{k}, %p{k} : {tensor(k + 1)}\n"
        for k in range(count)
    )


def step_and_trip(as_kernel, spend):
    """What a step takes, by a line through loops of 1 to 16, and a trip besides its one step."""
    counts = (1, 2, 4, 8, 16)
    times = [trip([(k + 1,) for k in range(n)], steps(n), as_kernel, spend) for n in counts]
    step = statistics.linear_regression(counts, times).slope
    return step, max(0.0, times[0] - step)


def branch(as_kernel, spend):
    """What a branch takes, besides the step in it."""
    kind, number = tensor(4), tensor(of="i32")
    body = f"""%h = stablehlo.and %i, %one : {number}
%n0 = "stablehlo.case"(%h) ({{
  %x = stablehlo.negate %c0 : {kind}
  stablehlo.return %x : {kind}
}}, {{
  %x = stablehlo.abs %c0 : {kind}
  stablehlo.return %x : {kind}
}}) : ({number}) -> {kind}"""
    plain = f"%n0 = stablehlo.negate %c0 : {kind}"
    return trip([(4,)], body, as_kernel, spend) - trip([(4,)], plain, as_kernel, spend)


def border(step, spend):
    """What an array takes that a kernel in a loop is handed or gives, besides the step of it."""

    def text(count):
        types = [tensor(k + 1) for k in range(count)]
        made = ", ".join([f"%n{k}" for k in range(count)] + [f"%g{k}" for k in range(count)])
        every = ", ".join(types + [tensor()] * count)
        carried = ", ".join(f"%c{k}" for k in range(count))
        call = f"{made} = func.call @k({carried}) {KERNEL} : ({', '.join(types)}) -> ({every})"
        guards = "".join(
            f"%o{k} = stablehlo.slice %c{k} [0:1] : ({t}) -> {tensor(1)}\n"
            f"%g{k} = stablehlo.reshape %o{k} : ({tensor(1)}) -> {tensor()}\n"
            for k, t in enumerate(types)
        )
        given = ", ".join(f"%c{k}: {t}" for k, t in enumerate(types))
        inner = f"{steps(count)}{guards}return {made} : {every}"
        kernel = f"func.func private @k({given}) -> ({every}) {{\n{inner} }}"
        return loop(types, call, TRIPS, False).removesuffix("}") + kernel + " }"

    counts = (2, 4, 8, 16)
    times = [
        seconds_of(text(n), [np.full(k + 1, 0.5, "f") for k in range(n)], spend) / TRIPS
        for n in counts
    ]
    return (statistics.linear_regression(counts, times).slope - step) / 2


def function(name, size, spend):
    """Seconds of a function of one of so many numbers in a kernel."""
    body = f"%n0 = stablehlo.{name} %c0 : {tensor(size)}"
    idle = f"%n0 = stablehlo.negate %c0 : {tensor(size)}"
    less = trip([(size,)], idle, True, spend)
    return max(0.0, trip([(size,)], body, True, spend) - less) / size


def join(axis, spend, side=32):
    """Of an element of a square, rolled both ways along an axis, for each of the two."""
    whole, lines = tensor(side, side), []
    for name, first in (("a", 1), ("b", side - 1)):
        for part, begin, end in (("x", first, side), ("y", 0, first)):
            ranges = [f"{begin}:{end}" if i == axis else f"0:{side}" for i in (0, 1)]
            shape = [end - begin if i == axis else side for i in (0, 1)]
            lines.append(
                f"%{name}{part} = stablehlo.slice %c0 [{', '.join(ranges)}] : "
                f"({whole}) -> {tensor(*shape)}"
            )
        parts = [tensor(*(n if i == axis else side for i in (0, 1))) for n in (side - first, first)]
        lines.append(
            f"%{name} = stablehlo.concatenate %{name}x, %{name}y, dim = {axis} : "
            f"({', '.join(parts)}) -> {whole}"
        )
    lines.append(f"%n0 = stablehlo.subtract %a, %b : {whole}")
    return trip([(side, side)], "\n".join(lines), True, spend) / side**2 / 2


def joins(spend):
    return [join(axis, spend) for axis in (1, 0)]


def flop(size, spend, chain=20):
    """Seconds of an addition or multiplication of one of so many numbers, in a long chain."""
    kind = tensor(size)
    body, last = constant("p", 0.999, kind), "%c0"
    for k in range(chain):
        body += f"%m{k} = stablehlo.multiply {last}, %p : {kind}\n"
        last = f"%s{k}" if k + 1 < chain else "%n0"
        body += f"{last} = stablehlo.add %m{k}, %p : {kind}\n"
    idle = f"%n0 = stablehlo.negate %c0 : {kind}"
    less = trip([(size,)], idle, True, spend)
    return (trip([(size,)], body, True, spend) - less) / (2 * chain * size)


def product(n, as_dot, as_kernel, spend):
    """Seconds of a product of two square matrices in a loop."""
    kind, wide = tensor(n, n), tensor(n, n, n)
    if as_dot:
        body = (
            "%n0 = stablehlo.dot_general %c0, %a1, contracting_dims = [1] x [0] "
            f": ({kind}, {kind}) -> {kind}"
        )
    else:
        body = f"""%x = stablehlo.broadcast_in_dim %c0, dims = [0, 2] : ({kind}) -> {wide}
%t = stablehlo.transpose %a1, dims = [1, 0] : ({kind}) -> {kind}
%y = stablehlo.broadcast_in_dim %t, dims = [1, 2] : ({kind}) -> {wide}
%p = stablehlo.multiply %x, %y : {wide}
%z = stablehlo.constant dense<0.0> : {tensor()}
%n0 = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [2]
  : ({wide}, {tensor()}) -> {kind}"""
    # Powers of a matrix soon leave the range of floats, where arithmetic may take other time.
    body = body.replace("%n0 =", "%r =") + f"\n%b = stablehlo.constant dense<1.0> : {kind}\n"
    body += f"%n0 = stablehlo.minimum %r, %b : {kind}"
    return trip([(n, n)], body, as_kernel, spend, read=[(n, n)])


def call(spend):
    """Seconds of a call of a program of one step."""
    kind = tensor(4)
    text = module([kind], [kind], f"%r = stablehlo.negate %a0 : {kind}\nreturn %r : {kind}", False)
    return seconds_of(text, [np.ones(4, "f")], spend)


def threads(name, chain, size, spend):
    """Seconds of a chain over so many numbers: as XLA splits it, and in a loop of one trip, where
    it has one thread."""
    kind = tensor(size)
    body, last = constant("p", 0.999, kind), "%c0"
    for k in range(chain):
        made = f"%s{k}" if k + 1 < chain else "%n0"
        if name == "add":
            body += f"%m{k} = stablehlo.multiply {last}, %p : {kind}\n"
            body += f"{made} = stablehlo.add %m{k}, %p : {kind}\n"
        else:
            body += f"{made} = stablehlo.{name} {last} : {kind}\n"
        last = made
    x = np.full(size, 0.5, "f")
    straight = body.replace("%c0", "%a0") + f"return %n0 : {kind}"
    free = seconds_of(module([kind], [kind], straight, False), [x], spend)
    return free, seconds_of(loop([kind], body, 1, False), [x], spend)


def table(head, rows):
    print("\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(x if isinstance(x, str) else f"{x:.3g}" for x in row) + " |")


def ns(seconds):
    return "refused" if seconds is None else f"{seconds * 1e9:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--joins", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    spend = options.seconds
    if options.joins:
        print(*joins(spend))
        return

    thunk, turn = step_and_trip(False, spend)
    step, turn_inside = step_and_trip(True, spend)
    choice, choice_inside = branch(False, spend), branch(True, spend)
    rows = [
        ("a step", thunk, step),
        ("a trip of a loop", turn, turn_inside),
        ("a branch", choice, choice_inside),
    ]
    table(["besides the work, ns", "thunks", "one kernel"], [(n, ns(a), ns(b)) for n, a, b in rows])
    of_array, of_call = border(step, spend), call(spend)
    print(f"\nAn array that a kernel is handed or gives: {ns(of_array)} ns")
    print(f"\nA call of a program of one step: {of_call * 1e6:.3g} us")

    sizes = range(2, 25)
    forms = [(True, False), (False, False), (False, True)]
    products = {n: [product(n, *form, spend) for form in forms] for n in sizes}
    head = ["product n x n, ns", "dot", "multiply and reduce", "the same in a kernel"]
    table(head, [(str(n), *map(ns, times)) for n, times in products.items()])
    large = [n for n in sizes if n >= 8]
    library_flop, library_call = statistics.linear_regression(
        [2.0 * n**3 for n in large], [products[n][0] for n in large]
    )
    loses = [n for n in sizes if products[n][1] > products[n][0]]

    names = ["exponential", "tanh", "sine", "logistic", "log"]
    functions = {n: (function(n, 1024, spend), function(n, 15, spend)) for n in names}
    table(
        ["a function of one number, ns", "of 1024", "of 15"],
        [(name, *map(ns, times)) for name, times in functions.items()],
    )
    arithmetic = flop(1024, spend)
    large = 1 << 14
    kept = trip([(large,)], f"%n0 = stablehlo.negate %c0 : {tensor(large)}", True, spend)
    print(f"\nAn operation on one number in a chain: {ns(arithmetic)} ns")

    rows, helped = [], {}
    for name, chain in (("add", 20), ("negate", 1), ("exponential", 1), ("sine", 1)):
        for size in (1000, 4000, 16000, 64000, 256000, 1024000):
            free, bound = threads(name, chain, size, spend)
            rows.append(
                (f"{chain} x {name}", str(size), *(f"{t * 1e6:.3g}" for t in (free, bound)))
            )
            if free >= 0.9 * bound:
                helped.pop(name, None)
            else:
                helped.setdefault(name, size)
    table(["outside of loops, us", "numbers", "as XLA splits it", "one thread"], rows)

    gains = ", ".join(f"{name} {size}" for name, size in helped.items()) or "none"
    again = [sys.executable, __file__, "--joins", "--seconds", str(spend)]
    told = subprocess.run(again, stdout=subprocess.PIPE, text=True, check=True).stdout
    together = list(zip(("along", "across"), joins(spend), map(float, told.split()), strict=True))
    table(
        ["an element of rows that are put together, ns", "as it is", "unrolled"],
        [(name, ns(plain), ns(unrolled)) for name, plain, unrolled in together],
    )
    print(f"\n// threads help from so many numbers on: {gains};")
    print(f"// products are slower written out from n = {min(loses, default=sizes[-1] + 1)} on")
    constants = {
        "kThunk": thunk,
        "kBranch": choice,
        "kTrip": turn,
        "kBorderArray": of_array,
        "kStep": step,
        "kStepOfBranch": choice_inside,
        "kStepOfTrip": turn_inside,
        "kLibraryCall": library_call,
        "kLibraryFlop": library_flop,
        "kFlop": arithmetic,
        "kFunction": statistics.median(many for many, _ in functions.values()),
        "kFunctionAlone": statistics.median(few for _, few in functions.values()),
        "kCachedByte": kept / (8 * large),
        "kCall": of_call,
        "kUnrolledJoin": together[0][1] - together[0][2],
        "kUnrolledJoinAcross": together[1][1] - together[1][2],
    }
    for name, value in constants.items():
        print(f"inline constexpr double {name} = {value:.2g};  // seconds")


if __name__ == "__main__":
    main()
