"""Saves checkpoints until it is killed: a process of test_checkpoints.py.

usage: checkpoint_writer.py FOLDER [CALL]      with CALL it kills itself at that call of the system
"""

import os
import signal
import sys

import numpy as np

from weft import checkpoints

CALLS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir")
folder = sys.argv[1]
step = (checkpoints.latest_step(folder) or 0) + 1
left = int(sys.argv[2]) if len(sys.argv) > 2 else -1


def count(event, arguments):
    """Kills the process when files have been touched so many times."""
    global left
    if event in CALLS and folder in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(count)
print("ready", flush=True)
while True:
    tree = {"arrays": [np.full(20_000, step + i) for i in range(3)], "step": step}
    checkpoints.save(folder, tree, step, keep=2)
    step += 1
