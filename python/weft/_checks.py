"""What is said of a check that failed, and of the operation that made a NaN or an infinity."""

import contextlib

import numpy as np

from weft import _core
from weft._recording import call
from weft.config import debug_infs, debug_nans
from weft.dtypes import is_inexact
from weft.errors import InvalidValueError

_PASSES = {
    "values": "in the forward pass",
    "tangents": "in the derivative of this line",
    "cotangents": "in the backward pass, in the derivative of this line",
}


def reject_value(graph, inputs, nans, infs):
    """Raises: a program gave a NaN or an infinity. Finds the operation that made it by running the
    program again with one more output per operation, then that operation with its values."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(debug_nans(False))
        stack.enter_context(debug_infs(False))
        what, lines = _source_of(_core.repeatable(graph), inputs, nans, infs)
    text = "\n".join([f"invalid value ({what}) encountered in {lines[0]}", *lines[1:]])
    raise InvalidValueError(text)


def _source_of(graph, inputs, nans, infs):
    kinds = " or ".join(["nan"] * nans + ["inf"] * infs)
    if graph is None:
        return kinds, ["a program with callbacks, which is not run again to find where"]
    checked = _core.checked(graph, nans=nans, infs=infs)
    number = int(call(checked.graph, inputs)[checked.num_outputs])
    if number == _core.nothing_failed:
        return kinds, ["a result, though no operation made it: it was in an argument or a constant"]
    site = checked.site(number)
    alone = _core.checked(graph, nans=nans, infs=infs, only=number)
    first, last = alone.site(number)["values"]
    values = call(alone.graph, inputs)[alone.num_outputs + 1 :][first:last]
    lines = [site["op"]]
    if site["place"]:
        lines.append(f"  at {site['place']}, {_PASSES[site['computes']]}")
    for i, x in enumerate(values):
        operand = i < site["num_operands"]
        name = f"operand {i}" if operand else "result"
        lines.append(f"  {name}: {summary(np.asarray(x))}")
    return site["kind"], lines


def look_at_made(array, what):
    """As `look_at`, for an array that no program gave."""
    if is_inexact(array.dtype) and array.is_fully_addressable:
        look_at(np.asarray(array), what)


def look_at(value, what):
    """Raises if a NumPy array holds a NaN or an infinity that the settings mean.

    `what` says how it came about.
    """
    for kind, setting, is_bad in (("nan", "debug_nans", np.isnan), ("inf", "debug_infs", np.isinf)):
        if _core.get_setting(setting) and is_inexact(value.dtype) and is_bad(_wide(value)).any():
            lines = [f"invalid value ({kind}) encountered in {what}"]
            place = _core.user_location()
            lines += [f"  at {place}"] if place else []
            raise InvalidValueError("\n".join([*lines, f"  value: {summary(value)}"]))


def _wide(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def summary(x):
    """An array in a line: type, and values if they are few, else range and first bad place."""
    head = f"{x.dtype}[{','.join(map(str, x.shape))}]"
    if x.size <= 8:
        return f"{head} = {' '.join(np.array2string(x, threshold=9).split())}"
    if not np.issubdtype(np.asarray(x).dtype, np.inexact) and x.dtype.kind != "V":
        return f"{head}, from {x.min()} to {x.max()}"
    wide = _wide(x)
    finite = np.isfinite(wide)
    parts = [head]
    if finite.any() and x.dtype.kind != "c":
        parts.append(f"from {wide[finite].min():.6g} to {wide[finite].max():.6g}")
    for name, bad in (("nan", np.isnan(wide)), ("inf", np.isinf(wide))):
        if bad.any():
            place = ", ".join(map(str, np.argwhere(bad)[0]))
            parts.append(f"{name} at [{place}] ({bad.sum()} of {x.size})")
    return ", ".join(parts)
