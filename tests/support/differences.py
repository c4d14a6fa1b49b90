"""Where weft gives the right result and jax 0.10.2 gives another one.

Each `difference_rows_*.py` has a list `ROWS` of them. `test_differences.py` runs every row under
weft, and under jax where it is installed; `tools/differences` writes docs/differences.md of them.
"""

import importlib
import pathlib
import pickle
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).parent


@dataclass(frozen=True)
class Difference:
    """One fact. `run(m, jnp)` computes it with `m`, which is weft or jax, and its numpy module.

    `right` is the result by mathematics, IEEE 754 or NumPy; `tolerance` is relative, and 0 asks for
    equality. `says` and `jax` are the texts of the page: what weft gives, and what jax gives.
    """

    name: str
    subject: str
    says: str
    jax: str
    run: Callable[[Any, Any], Any]
    right: Any
    tolerance: float = 0.0
    x64: bool = False
    devices: int = 1  # of a CPU; where it is more, weft is asked in a process of its own
    ask_jax: bool = True  # False where it ends the process


def modules():
    """The names of the files of rows, in order."""
    return sorted(path.stem for path in HERE.glob("difference_rows_*.py"))


def rows():
    """All rows, in the order of their files."""
    return [row for module in modules() for row in importlib.import_module(module).ROWS]


def import_all(package):
    """Imports the modules that rows reach as attributes."""
    for name in ("linalg", "optimize", "signal", "spatial.transform", "special", "stats"):
        importlib.import_module(f"{package}.scipy.{name}")
    importlib.import_module(f"{package}.sharding")


def holds(row, result):
    """Whether a result is the right one."""
    got, right = np.asarray(result), np.asarray(row.right)
    if got.shape != right.shape:
        return False
    if got.dtype.kind not in "biufc":  # the small floats of ml_dtypes
        got = got.astype(np.float64)
    if row.tolerance == 0.0:
        return bool(np.array_equal(got, right, equal_nan=got.dtype.kind in "fc"))
    return bool(np.allclose(got, right, rtol=row.tolerance, atol=0.0, equal_nan=True))


def _main(name, chosen):
    """Runs rows under a package: all that jax may be asked, or those that weft needs a process for.

    stdout gets, pickled, a dict from names to whether they hold for each of the chosen files.
    """
    package = importlib.import_module(name)
    numpy = importlib.import_module(f"{name}.numpy")
    import_all(name)
    package.config.update(f"{name}_num_cpu_devices", max(row.devices for row in rows()))

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in chosen:
            found.append({})
            for row in importlib.import_module(module).ROWS:
                if not (row.ask_jax if name == "jax" else row.devices > 1):
                    continue
                with package.enable_x64(row.x64):
                    try:
                        found[-1][row.name] = holds(row, row.run(package, numpy))
                    except Exception:
                        found[-1][row.name] = False
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    # The modules of rows import this one under its own name.
    sys.modules["differences"] = sys.modules["__main__"]
    _main(sys.argv[1], sys.argv[2:])
