"""The only package that imports jaxlib: client, devices, executables, buffers, pytrees.

jaxlib is loaded when a device is first needed, except for its pytrees, which tracing needs too.
What differs between jaxlib versions is kept in here. See the README of this folder.
"""

import os

# Before any module in here loads jaxlib: informational lines do not belong on a user's terminal.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
