"""Runs of random programs in a process of their own, which what goes wrong may end; and the flags
with which XLA takes the least time for programs that run once."""

import sys

import jaxlib.version

FEW_PASSES = [
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",
]
# The old emitters of kernels take half of the time of the new ones. They round float16 otherwise,
# and do not know every operation.
QUICK_COMPILE = list(FEW_PASSES)
if jaxlib.version.__version_info__ < (0, 11):  # later releases abort on flags that they dropped
    QUICK_COMPILE.append("--xla_cpu_use_fusion_emitters=false")


def run(first, count, mismatch, shown):
    """Runs the programs of `count` seeds from `first` on, and prints those that differ, or "ok".

    mismatch(seed) is what is wrong with a program, as a text, or None. shown(seed) is its text.
    """
    problems = 0
    for seed in range(first, first + count):
        print("program", seed, file=sys.stderr, flush=True)  # which one ended the process
        try:
            problem = mismatch(seed)
        except Exception as error:
            problem = f"{type(error).__name__} of program {seed}: {error}\n{shown(seed)}"
        if problem:
            problems += 1
            print(problem, flush=True)
    print(f"{problems} of {count} programs differ" if problems else "ok")
