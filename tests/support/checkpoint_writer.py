"""Saves checkpoints until it is killed: a process of test_checkpoints.py.

usage: checkpoint_writer.py FOLDER CALL [ADDRESS COUNT NUMBER]

It kills itself at that call of the system if CALL is not 0. As one of several processes it saves
arrays of which each has a part.
"""

import os
import signal
import sys

import numpy as np

import weft
from weft import checkpoints
from weft.sharding import Mesh, NamedSharding, PartitionSpec as P

CALLS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir")
folder, call, *group = sys.argv[1:]
place = None
if group:
    weft.distributed.initialize(group[0], int(group[1]), int(group[2]))
    place = NamedSharding(Mesh(np.array(weft.devices()), "x"), P("x"))
step = (checkpoints.latest_step(folder) or 0) + 1
left = int(call) or -1


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
    arrays = [np.full(20_000, step + i, np.int32) for i in range(3)]
    tree = {"arrays": arrays if place is None else weft.device_put(arrays, place), "step": step}
    checkpoints.save(folder, tree, step, keep=2)
    step += 1
