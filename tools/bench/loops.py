"""Small programs in loops, weft against jax: first calls and calls.

usage: loops.py [--rounds N] [--json OUT] [--native] [--weft JSON] [PROGRAM ...]

Programs are those of loop_programs.py; turns.py says how they are measured. `--native` times C++ of
native/loops.cpp, as the system's compiler makes it with -O3 -march=native, beside weft's calls.
`--weft` gives arguments to `weft.jit`, as '{"kernels": "never"}'.
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import loop_programs
import loops_control
import numpy as np
import turns
from compile import load


def native_calls():
    """{program: function without arguments} of native/loops.cpp."""
    source = Path(__file__).parent / "native" / "loops.cpp"
    flags = ["-std=c++20", "-O3", "-march=native", "-shared", "-fPIC"]
    compiler = os.environ.get("CXX", "c++")
    with tempfile.TemporaryDirectory() as folder:
        made = f"{folder}/loops.so"
        subprocess.run([compiler, *flags, str(source), "-o", made], check=True)
        library = ctypes.CDLL(made)  # stays loaded without its file
    framework = SimpleNamespace(numpy=np, lax=None)  # all that making the arguments needs
    floats, whole = np.ctypeslib.ndpointer("f", flags="C"), ctypes.c_int64
    library.kalman.argtypes = [floats, floats, whole]
    library.scalar_carries.argtypes = [floats, whole, whole]
    library.kalman.restype = library.scalar_carries.restype = ctypes.c_float
    (seen,) = loop_programs.PROGRAMS["kalman"](framework)[1]
    start = np.array(loop_programs.PROGRAMS["scalar_carries"](framework)[1][0])
    moves, steps = loops_control.kalman_moves(framework), loops_control.CARRIED_STEPS
    return {
        "kalman": lambda: library.kalman(moves, seen, len(seen)),
        "scalar_carries": lambda: library.scalar_carries(start, len(start), steps),
    }


if __name__ == "__main__":
    turns.run(__doc__, __file__, loop_programs.PROGRAMS, load, loop_programs.ASKED, native_calls)
