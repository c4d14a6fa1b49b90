"""What a call gave under weft and under jax, as what can be pickled, and where two such differ.

The tables of the tests (`oracle.py`) and `tools/sweep` compare with it: structure, shapes, dtypes,
weak types, values, and the types of exceptions.
"""

import builtins
import cmath
import importlib
import warnings

import ml_dtypes  # noqa: F401  (names of its dtypes)
import numpy as np

# How far apart results of one computation in a dtype may be, relatively; exactly the same for
# integers.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "complex64": 2e-6}


def outcome(run):
    """What `run()` gives: ("ok", described result) or ("error", class names, message)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "ok", describe(run())
    except Exception as error:
        return "error", [c.__name__ for c in type(error).__mro__[:-1]], str(error)[:300]


def describe(x):
    """A value as a tree of arrays, numbers and texts, each in a dict that says what it is."""
    if isinstance(x, dict):
        return {"dict": {str(k): describe(v) for k, v in x.items()}}
    if isinstance(x, (tuple, list)):
        return {type(x).__name__ if type(x) in (tuple, list) else "tuple": [describe(v) for v in x]}
    if isinstance(x, (np.ndarray, np.generic)):
        return {"numpy": described_array(x)}
    if x is None or isinstance(x, (bool, int, float, complex, str)):
        finite = not isinstance(x, (float, complex)) or cmath.isfinite(x)
        return {"python": x if finite else str(x), "type": type(x).__name__}
    if str(getattr(x, "dtype", "")).startswith("key<"):
        module = importlib.import_module(type(x).__module__.split(".")[0].replace("jaxlib", "jax"))
        return {
            "key": str(x.dtype),
            "array": described_array(np.asarray(module.random.key_data(x))),
        }
    if hasattr(x, "weak_type") and hasattr(x, "__array__"):
        return {"array": described_array(np.asarray(x)), "weak": bool(x.weak_type)}
    text = repr(x)
    return {"repr": text if " at 0x" not in text else type(x).__name__}


def described_array(x):
    """An array as (dtype, shape, bytes)."""
    return str(x.dtype), x.shape, x.tobytes() if x.dtype != object else repr(x)


def holds_only_arrays(described):
    """Whether all leaves of what `describe` gave are arrays of a framework."""
    if "dict" in described:
        return all(map(holds_only_arrays, described["dict"].values()))
    parts = described.get("tuple", described.get("list"))
    return "array" in described if parts is None else all(map(holds_only_arrays, parts))


def difference(ours, theirs, allowed):
    """Where two outcomes differ, as text; "" for nowhere.

    `allowed(dtype, expected)` is (rtol, atol) for values of a dtype that are no integers.
    """
    if ours[0] != theirs[0]:
        return f"{short(ours)} | expected: {short(theirs)}"
    if ours[0] == "ok":
        return _differ(ours[1], theirs[1], allowed)
    # A class of jax's own, or the built-in one that it derives from. Where it stumbles over what it
    # did not check, the class says only that it does not take the arguments.
    # A crash has none.
    builtin = next((name for name in theirs[1] if hasattr(builtins, name)), "")
    stumbles = builtin in ("AssertionError", "ZeroDivisionError") or theirs[1][0] == "MLIRError"
    if stumbles or theirs[2] == "tuple index out of range" or theirs[1][0] in ours[1]:
        return ""
    if builtin in ours[1] and builtin != "Exception":
        return ""
    return f"{short(ours)} | expected: {short(theirs)}"


def _differ(a, b, allowed):
    if a.keys() != b.keys():
        return f"{short(a)} | expected: {short(b)}"
    for key in a:
        left, right = a[key], b[key]
        found = ""
        if key in ("tuple", "list"):
            if len(left) != len(right):
                return f"{len(left)} leaves | expected: {len(right)}"
            pairs = zip(left, right, strict=True)
            found = next((d for d in (_differ(*pair, allowed) for pair in pairs) if d), "")
        elif key == "dict":
            if left.keys() != right.keys():
                return f"keys {list(left)} | expected: {list(right)}"
            pairs = ((left[k], right[k]) for k in left)
            found = next((d for d in (_differ(*pair, allowed) for pair in pairs) if d), "")
        elif key in ("array", "numpy"):
            found = _differ_arrays(left, right, allowed)
        elif key == "python" and isinstance(left, float) and isinstance(right, float):
            found = "" if abs(left - right) <= 1e-6 * abs(right) else f"{left} | expected: {right}"
        elif left != right:
            found = f"{key} {left!r} | expected: {right!r}"
        if found:
            return found
    return ""


def _differ_arrays(left, right, allowed):
    if left[:2] != right[:2]:
        return f"{left[0]}{list(left[1])} | expected: {right[0]}{list(right[1])}"
    if left[2] == right[2] or not isinstance(left[2], bytes):
        return ""
    x, y = (np.frombuffer(v[2], np.dtype(v[0])) for v in (left, right))
    if x.dtype.kind not in "biu":
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        near, wanted = x.astype(wide), y.astype(wide)
        rtol, atol = allowed(left[0], wanted)
        with np.errstate(all="ignore"):
            if np.isclose(near, wanted, rtol=rtol, atol=atol, equal_nan=True).all():
                return ""
    at = np.flatnonzero(x != y)[:1]
    start = max(0, int(at[0]) - 2) if at.size else 0
    place = f" (from number {start} on)" if start else ""
    return f"{x[start : start + 6]} | expected: {y[start : start + 6]}{place}"


def short(x):
    """An outcome, or a description, in a part of a line."""
    if isinstance(x, tuple) and x[0] == "error":
        return f"{x[1][0]}: {x[2][:110]!r}"
    return (repr(x[1]) if isinstance(x, tuple) else repr(x))[:110]
