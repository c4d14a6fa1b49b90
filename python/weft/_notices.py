"""What the settings let users be told of traces, compilations and transfers, by way of `logging`.

The core calls these functions by name, if a setting asks for it. All but `warn` speak through the
logger "weft", as warnings, so that they are seen without any set-up of `logging`.
"""

import logging

from weft._warnings import warn  # noqa: F401

_log = logging.getLogger("weft")


def traced(name, seconds):
    """`log_compiles`: a function was traced."""
    _log.warning("Finished tracing %s for jit in %.9f sec", name, seconds)


def compiling(name, types):
    """`log_compiles`: a program is about to be lowered and compiled."""
    _log.warning("Compiling jit(%s) with global shapes and types (%s)", name, ", ".join(types))


def lowered(name, seconds):
    """`log_compiles`: the StableHLO of a program is there."""
    _log.warning("Finished lowering of jit(%s) to StableHLO in %.9f sec", name, seconds)


def compiled(name, seconds):
    """`log_compiles`: the program can run."""
    _log.warning("Finished XLA compilation of jit(%s) in %.9f sec", name, seconds)


def retrieved(name, seconds):
    """`log_compiles`: the program can run, and was on disk."""
    _log.warning("Finished loading of jit(%s) from the cache on disk in %.9f sec", name, seconds)


def missed(function, miss):
    """`explain_cache_misses`: a call was traced; see `weft._explain` for what a miss is."""
    from weft._explain import missed_line  # nothing that a program should load at import

    _log.warning("%s", missed_line(function, miss))


def made(name, cost):
    """`explain_cache_misses`: a trace was compiled, or its program found."""
    from weft._explain import made_line

    _log.warning("%s", made_line(name, cost))


def transferred(direction, what):
    """`transfer_guard`: something went from host to device, back, or to another device."""
    _log.warning("%s transfer of %s", direction, what)
