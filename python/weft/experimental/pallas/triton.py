"""Names for kernels of GPUs, for interpreted kernels: masked loads and stores, options."""

import dataclasses as _dataclasses
import operator as _operator

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental.pallas import _kernel, _specs
from weft.lax._dot import dot as _dot
from weft.numpy import tanh as _tanh

__all__ = [
    "CompilerParams",
    "approx_tanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "debug_barrier",
    "dot",
    "load",
    "max_contiguous",
    "store",
]
__getattr__, __dir__ = _public(__name__, __all__)


@_dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerParams(_specs.CompilerParams):
    """Options of the Triton compiler, without effect on interpreted kernels."""

    num_warps: int | None = None
    num_stages: int | None = None


def approx_tanh(x):
    """tanh, exact to rounding.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> triton.approx_tanh(wnp.array(0.0)).item()
      0.0
    """
    return _tanh(x)


def _all(idx):
    return ... if idx is None else idx


def _combine(ref, idx, val, mask, function):
    old = ref[_all(idx)]
    _kernel.store(ref, _all(idx), function(old, val), mask=mask)
    return old


def atomic_add(x_ref_or_view, idx, val, *, mask=None):
    """Adds `val` to `ref[idx]`, for each time that an element is indexed.

    Returns what was there before.
    `idx` None is all of the ref; where `mask` is False nothing changes.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array([1, 6]))
      >>> triton.atomic_add(ref, 1, 3).item(), ref[...].tolist()
      (6, [1, 9])
    """
    return _kernel.update(x_ref_or_view, _all(idx), val, mask, "add", 0)


def atomic_max(x_ref_or_view, idx, val, *, mask=None):
    """Makes `ref[idx]` the greater of what it is and `val`. Returns what was there before.

    `idx` None is all of the ref; where `mask` is False nothing changes.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array([1, 6]))
      >>> triton.atomic_max(ref, 1, 3).item(), ref[...].tolist()
      (6, [1, 6])
    """
    return _kernel.update(x_ref_or_view, _all(idx), val, mask, "max")


def atomic_min(x_ref_or_view, idx, val, *, mask=None):
    """Makes `ref[idx]` the lesser of what it is and `val`. Returns what was there before.

    `idx` None is all of the ref; where `mask` is False nothing changes.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array([1, 6]))
      >>> triton.atomic_min(ref, 1, 3).item(), ref[...].tolist()
      (6, [1, 3])
    """
    return _kernel.update(x_ref_or_view, _all(idx), val, mask, "min")


def atomic_and(x_ref_or_view, idx, val, *, mask=None):
    """Makes `ref[idx]` its bitwise "and" with `val`. Returns what was there before.

    `idx` None is all of the ref; where `mask` is False nothing changes.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array([1, 6]))
      >>> triton.atomic_and(ref, 1, 3).item(), ref[...].tolist()
      (6, [1, 2])
    """
    return _combine(x_ref_or_view, idx, val, mask, _operator.and_)


def atomic_or(x_ref_or_view, idx, val, *, mask=None):
    """Makes `ref[idx]` its bitwise "or" with `val`. Returns what was there before.

    `idx` None is all of the ref; where `mask` is False nothing changes.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array([1, 6]))
      >>> triton.atomic_or(ref, 1, 3).item(), ref[...].tolist()
      (6, [1, 7])
    """
    return _combine(x_ref_or_view, idx, val, mask, _operator.or_)


def atomic_xor(x_ref_or_view, idx, val, *, mask=None):
    """Makes `ref[idx]` its bitwise "exclusive or" with `val`. Returns what was there before.

    `idx` None is all of the ref; where `mask` is False nothing changes.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array([1, 6]))
      >>> triton.atomic_xor(ref, 1, 3).item(), ref[...].tolist()
      (6, [1, 5])
    """
    return _combine(x_ref_or_view, idx, val, mask, _operator.xor)


def atomic_xchg(x_ref_or_view, idx, val, *, mask=None):
    """Writes `val` to `ref[idx]`. Returns what was there before.

    `idx` None is all of the ref; where `mask` is False nothing changes.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array([1, 6]))
      >>> triton.atomic_xchg(ref, 1, 3).item(), ref[...].tolist()
      (6, [1, 3])
    """
    return _combine(x_ref_or_view, idx, val, mask, lambda old, new: new)


def atomic_cas(ref, cmp, val):
    """Writes `val` to `ref[...]` where that equals `cmp`. Returns what was there before.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.array(6))
      >>> triton.atomic_cas(ref, 6, 3).item(), ref[...].item()
      (6, 3)
    """
    old = ref[...]
    _kernel.store(ref, ..., val, mask=old == cmp)
    return old


def debug_barrier():
    """Does nothing: interpreted kernels run one after the other."""


def dot(a, b, *, trans_a=False, trans_b=False, allow_tf32=None, precision=None):
    """The product of two matrices, float32 at the least.

    `trans_a` and `trans_b` say which of them is transposed first.
    `allow_tf32` has no effect; `precision` is that of `weft.numpy.dot`.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> triton.dot(wnp.ones((2, 3)), wnp.ones((2, 3)), trans_b=True)
      Array([[3., 3.],
             [3., 3.]], dtype=float32)
    """
    return _dot(
        a.T if trans_a else a,
        b.T if trans_b else b,
        precision=precision,
        preferred_element_type="float32",
    )


def load(ref, *, mask=None, other=None, cache_modifier=None, eviction_policy=None, volatile=False):
    """`ref[...]`, with `other` (0 by default) where `mask` is False.

    `cache_modifier`, `eviction_policy` and `volatile` have no effect.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> triton.load(weft.new_ref(wnp.arange(2)), mask=wnp.array([True, False]), other=9)
      Array([0, 9], dtype=int32)
    """
    return _kernel.load(ref, mask=mask, other=other)


def store(ref, val, *, mask=None, eviction_policy=None):
    """`ref[...] = val`, but where `mask` is False; `eviction_policy` has no effect.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> ref = weft.new_ref(wnp.arange(2))
      >>> triton.store(ref, 7, mask=wnp.array([True, False]))
      >>> ref[...]
      Array([7, 1], dtype=int32)
    """
    _kernel.store(ref, ..., val, mask=mask)


def max_contiguous(x, values):
    """`x`, said to have runs of consecutive values; the lengths in `values` have no effect.

    Examples:
      >>> from weft.experimental.pallas import triton
      >>> triton.max_contiguous(3, 8)
      3
    """
    return x


_open_to_users(__name__)
