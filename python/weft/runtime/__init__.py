"""The only package that imports jaxlib: client, devices, executables, buffers, pytrees.

jaxlib is loaded when a device is first needed, except for its pytrees, which tracing needs too.
What differs between jaxlib versions is kept in here. See the README of this folder.
"""
