"""Whole numbers divided by zero, and by -1: the same results whoever knows the numbers, and when.

XLA folds a division of constants on the machine, which ends the process where the divisor is zero.
"""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import lax

DTYPES = ["int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16",
          "uint32", "uint64"]  # fmt: skip


def limits(dtype):
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def as_dtype(x, dtype):
    """The number with these bits."""
    low, high = limits(dtype)
    return low + (x - low) % (high - low + 1)


@pytest.mark.parametrize("name", DTYPES)
def test_literals_and_arguments_agree(name):
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    low, high = limits(dtype)
    for x in {low, high, 0, 1, low // 2}:
        for y in {0, as_dtype(-1, dtype), 1}:
            if y == 0:
                expected = as_dtype(-1, dtype), x
            elif y == -1:
                expected = as_dtype(-x, dtype), 0
            else:
                expected = x // y, x % y
            a, b = dtype.type(x), dtype.type(y)
            with weft.enable_x64(True):
                at_run_time = [weft.jit(f)(weft.device_put(a), weft.device_put(b))
                               for f in (lax.div, lax.rem)]  # fmt: skip
                known = weft.jit(lambda a=a, b=b: (lax.div(a, b), lax.rem(a, b)))()
            assert tuple(int(np.asarray(v)) for v in at_run_time) == expected, (x, y)
            assert tuple(int(np.asarray(v)) for v in known) == expected, (x, y)


# Ways in which XLA comes to know the operands of a division. Each gives -1 and 7, or arrays of it.
FORMS = """
div(i(-8), i(0)) * 1, rem(i(-8), i(0)) + i(15)
div(wnp.full(3, 7), wnp.full(3, 0)), rem(wnp.full(3, 7), wnp.full(3, 0))
div(i(7), wnp.full(3, 0)), rem(i(7), wnp.full(3, 0))
div(wnp.full(3, 7), i(0)), rem(wnp.full(3, 7), i(0))
div(wnp.stack([i(7), i(7)]), wnp.stack([i(0), i(0)])), rem(wnp.stack([i(7), i(7)]), wnp.stack([i(0), i(0)]))
div(i(7), lax.iota(np.int32, 4))[0], rem(i(7), lax.iota(np.int32, 4))[0]
div(wnp.full(4, 7), lax.iota(np.int32, 4) * 0), rem(wnp.full(4, 7), lax.iota(np.int32, 4) * 0)
div(i(7), n - n), rem(i(7), n - n)
div(i(7), n * 0), rem(i(7), n * 0)
div(i(7), n & 0), rem(i(7), n & 0)
div(i(7), (n ^ n)), rem(i(7), (n ^ n))
div(i(7), wnp.minimum(n * 0, 0)), rem(i(7), wnp.minimum(n * 0, 0))
div(i(7), lax.convert_element_type(f(0.5), np.int32)), rem(i(7), lax.convert_element_type(f(0.5), np.int32))
div(i(7), wnp.sum(wnp.zeros(0, np.int32))), rem(i(7), wnp.sum(wnp.zeros(0, np.int32)))
div(i(7), lax.cond(True, lambda: i(0), lambda: i(1))), rem(i(7), lax.cond(True, lambda: i(0), lambda: i(1)))
div(i(7), lax.dynamic_slice(wnp.stack([i(3), i(0)]), (1,), (1,))), rem(i(7), lax.dynamic_slice(wnp.stack([i(3), i(0)]), (1,), (1,)))
div(i(7), wnp.pad(wnp.full(2, 1), 1)[0]), rem(i(7), wnp.pad(wnp.full(2, 1), 1)[0])
weft.vmap(lambda a: div(i(7), i(0)) + a * 0)(xs), weft.vmap(lambda a: rem(i(7), i(0)) + a * 0)(xs)
weft.vmap(lambda a: div(wnp.full(2, 7), wnp.full(2, 0)) + a * 0)(xs), weft.vmap(lambda a: rem(i(7), i(0)) + a * 0)(xs)
lax.fori_loop(0, 3, lambda k, c: div(i(7), i(0)), i(1)), lax.fori_loop(0, 3, lambda k, c: rem(i(7), i(0)), i(1))
lax.scan(lambda c, k: (div(i(7), k * 0), c), i(1), xs)[0], lax.scan(lambda c, k: (rem(i(7), k * 0), c), i(1), xs)[0]
lax.while_loop(lambda c: c > 0, lambda c: div(i(7), i(0)), i(1)), lax.fori_loop(0, 1, lambda k, c: rem(i(7), k * 0), n)
inner(i(7), i(0))[0], inner(i(7), i(0))[1]
i(7) // i(0) * 0 - 1, rem(i(7), i(0))
"""  # noqa: E501

SCRIPT = """
import sys
import numpy as np
import weft, weft.numpy as wnp
from weft import lax
from weft.lax import div, rem

i, f = np.int32, np.float32
inner = weft.jit(lambda a, b: (div(a, b), rem(a, b)))
xs = np.arange(3, dtype=np.int32)
for form in sys.stdin.read().strip().split("\\n"):
    print(form, flush=True)
    quotient, remainder = weft.jit(lambda n: eval(form))(np.int32(5))
    assert (np.asarray(quotient) == -1).all(), quotient
    assert (np.asarray(remainder) == 7).all(), remainder
"""


def test_no_form_of_a_known_zero_ends_the_process():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=FORMS,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-300:]}{done.stderr[-2000:]}"


def test_a_divisor_that_is_known_costs_nothing():
    text = weft.jit(lambda x: x // 3).lower(np.arange(3, dtype=np.int32)).as_text()
    assert "stablehlo.divide" in text
    quotient = weft.jit(lambda x: lax.div(x, np.int32(3))).lower(np.arange(3, dtype=np.int32))
    assert "select" not in quotient.as_text()
