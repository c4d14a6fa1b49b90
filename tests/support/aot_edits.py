"""Calls of the functions of many modules, for test_aot_edits.py: a process of its own.

usage: aot_edits.py FOLDER STORE NAMES: of each package NAME in FOLDER, the result of `main.f(3)`
with traces kept in STORE, and why it was traced, one line of JSON each.
"""

import importlib
import json
import sys

import numpy as np
from readable_things import restore

folder, store, *names = sys.argv[1:]
sys.path.insert(0, folder)
for name in names:
    module = importlib.import_module(f"{name}.main")
    try:
        f = __import__("weft").aot(module.f, path=f"{store}/{name}")
        value = float(np.asarray(f(np.float32(3))))
        event = f.explain().events[-1]
        print(json.dumps([name, value, event.cause, "; ".join(event.reasons)]), flush=True)
    finally:
        restore(module)
