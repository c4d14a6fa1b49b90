"""Runs of random programs in a process of their own, which what goes wrong may end."""

import sys


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
