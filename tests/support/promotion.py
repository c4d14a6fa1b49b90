"""Compares dtype, shape and weak type of results with jax's, by function and kind of argument.

usage: promotion.py [--share S] [--x64] [--seed N]

Calls every function that weft.numpy, weft.lax or weft.nn share with jax with one and two arguments
(and with a list of two) of every kind: Python's and NumPy's numbers, arrays of many dtypes, weakly
typed or not. Nothing is compiled: functions are traced. `--share` is the part of all calls to make,
1 by default. What differs is printed, and the exit status is 1. jax runs in a process of its own.

Where one of the two refuses a call, nothing is compared. EXCEPTIONS holds the calls in which
weft differs on purpose.
"""

import argparse
import functools
import inspect
import itertools
import json
import os
import random
import subprocess
import sys
import types
import warnings

import kept_answers
import numpy as np

PYTHON = {"True": True, "2": 2, "1.5": 1.5, "1+2j": 1 + 2j}
NUMPY = ("bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex64")
ARRAYS = ("bool", "int8", "int32", "uint8", "uint32", "bfloat16", "float16", "float32", "complex64")
WIDE = ("int64", "uint64", "float64", "complex128")
WEAK = ("int", "float", "complex")

# Functions whose results depend on values, or that make no array of their arguments.
LEFT_OUT = {
    *(
        "arange",
        "array",
        "asarray",
        "astype",
        "blackman",
        "bartlett",
        "broadcast_shapes",
        "can_cast",
        "frompyfunc",
    ),
    *(
        "broadcast_to_rank",
        "convert_element_type",
        "einsum_path",
        "empty",
        "eye",
        "finfo",
        "fromfunction",
    ),
    *("from_dlpack", "frombuffer", "full", "hamming", "hanning", "identity", "iinfo", "indices"),
    *("isdtype", "issubdtype", "iota", "kaiser", "ones", "promote_types", "result_type", "tri"),
    *("tril_indices", "triu_indices", "diag_indices", "printoptions", "set_printoptions", "zeros"),
    *("empty_like", "ones_like", "zeros_like", "get_printoptions", "bitcast_convert_type"),
}


def _joined(names):
    return frozenset(names.split())


# (functions, what sets the call apart, why)
_HALF = _joined("bfloat16[3] float16[3]")
EXCEPTIONS = (
    # jax's float16 numbers become float32 here, its arrays do not; nor is `deg` an array.
    (_joined("angle"), lambda kinds: kinds[0] in ("float16", "1.5") or len(kinds) == 2),
    # Marks that depend on the rank of the result, or on which of two arguments is a number.
    (_joined("heaviside soft_sign softplus"), lambda kinds: True),
    (
        _joined("pow power"),
        lambda kinds: kinds[-1] in ("bool", "True") or kinds[-1].endswith("[3]"),
    ),
    # No dtype of these holds the values of both.
    (_joined("dot"), lambda kinds: set(kinds) == _HALF or "bool[3]" in kinds),
    # jax takes the dtype of the shape into account.
    (_joined("unravel_index"), lambda kinds: True),
    # Sums up small integers in the default one, as the array API standard has it.
    (_joined("cumulative_prod cumulative_sum"), lambda kinds: True),
    # A number chosen by an integer predicate.
    (_joined("select_n"), lambda kinds: True),
)


def kinds(x64):
    """Names of all kinds of arguments."""
    wide = WIDE if x64 else ()
    arrays = [f"{d}[3]" for d in (*ARRAYS, *wide)]
    return [*PYTHON, *NUMPY, *arrays, *(f"weak {d}[3]" for d in WEAK)]


def _argument(kind, struct, bfloat16, x64):
    if kind in PYTHON:
        return PYTHON[kind]
    if not kind.endswith("[3]"):
        return np.dtype(kind).type(2)
    name = kind.removesuffix("[3]").removeprefix("weak ")
    dtype = np.dtype({"bfloat16": bfloat16}.get(name, name))
    if name in WEAK and not x64:
        dtype = np.dtype({"int": "int32", "float": "float32", "complex": "complex64"}[name])
    return struct((3,), dtype, weak_type=kind.startswith("weak"))


def _described(leaf):
    dtype = np.dtype(leaf.dtype).name
    return [list(leaf.shape), dtype, bool(leaf.weak_type)]


def results(cases, x64, library):
    """For each (module, function, kinds, whether in a list) the results, or None if refused."""
    import importlib

    top = importlib.import_module(library)
    modules = {m: importlib.import_module(f"{library}.{m}") for m in ("numpy", "lax", "nn")}

    def one(module, name, names, listed):
        function = getattr(modules[module], name, None)
        args = [_argument(n, top.ShapeDtypeStruct, modules["numpy"].bfloat16, x64) for n in names]
        abstract = [x for x in args if isinstance(x, top.ShapeDtypeStruct)]

        def call(*values):
            values = iter(values)
            full = [next(values) if isinstance(x, top.ShapeDtypeStruct) else x for x in args]
            return function(full) if listed else function(*full)

        try:
            return [
                _described(x) for x in top.tree_util.tree_leaves(top.eval_shape(call, *abstract))
            ]
        except Exception:
            return None

    with warnings.catch_warnings(), top.enable_x64(x64):
        warnings.simplefilter("ignore")
        return [one(*case) for case in cases]


def of_jax(cases, x64):
    """`results` of jax: those kept, the others from a process of its own."""
    how = f"{x64}\n{inspect.getsource(results)}"
    ask = functools.partial(_ask_jax, x64=x64)
    return kept_answers.answers(how, list(map(json.dumps, cases)), ask)


def _ask_jax(cases, x64):
    done = subprocess.run(
        [sys.executable, __file__, "--oracle", *(["--x64"] if x64 else [])],
        input=f"[{', '.join(cases)}]",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def functions():
    """(module, name) of every public function that is to be called."""
    import weft

    for module in ("numpy", "lax", "nn"):
        space = getattr(weft, module)
        for name in space.__all__:
            value = getattr(space, name)
            is_function = callable(value) and not isinstance(value, (type, types.ModuleType))
            if is_function and name not in LEFT_OUT:
                yield module, name


def sample(share, x64, seed):
    """That part of all calls; the choice for a function does not depend on other functions."""
    every = kinds(x64)
    forms = [((k,), False) for k in every]
    forms += [(pair, False) for pair in itertools.product(every, repeat=2)]
    lists = [(pair, True) for pair in itertools.product(every, repeat=2)]
    for module, name in functions():
        rng = random.Random(f"{seed} {module}.{name}")
        takes_lists = name in ("concatenate", "stack", "hstack", "vstack", "dstack", "block")
        for names, listed in lists if takes_lists else forms:
            # Calls with one argument are few.
            if rng.random() < (share if len(names) == 2 else min(1.0, 10 * share)):
                yield module, name, names, listed


def excepted(case):
    _, name, names, _ = case
    return any(name in those and apart(names) for those, apart in EXCEPTIONS)


def differences(share, x64, seed):
    """(what differs as text, how many calls were compared)."""
    cases = [case for case in sample(share, x64, seed) if not excepted(case)]
    found, compared = [], 0
    for case, own, other in zip(
        cases, results(cases, x64, "weft"), of_jax(cases, x64), strict=True
    ):
        if own is None or other is None:
            continue
        compared += 1
        if own != other:
            module, name, names, _ = case
            found.append(f"{module}.{name}({', '.join(names)}): {own}; jax: {other}")
    return found, compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--x64", action="store_true")
    parser.add_argument("--oracle", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.oracle:
        print(json.dumps(results(json.load(sys.stdin), chosen.x64, "jax")))
        return 0
    found, compared = differences(chosen.share, chosen.x64, chosen.seed)
    print("\n".join(found))
    print(f"{compared} calls, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
