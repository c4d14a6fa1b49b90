"""What the settings let users be told of traces, compilations and transfers, by way of `logging`.

The core calls these functions by name, if a setting asks for it. All speak through the logger
"weft", as warnings, so that they are seen without any set-up of `logging`.
"""

import logging

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


def missed(function, types, closest):
    """`explain_cache_misses`: a call has to be traced. `closest` are the types of the earlier call
    that is most like it, None if there is none."""
    name = getattr(function, "__name__", type(function).__name__)
    if closest is None:
        why = "never seen function"
    elif len(types) != len(closest):
        why = f"different number of arrays: now {len(types)} and before {len(closest)}"
    elif types == closest:
        why = "different nesting, static arguments or settings"
    else:
        pairs = enumerate(zip(types, closest, strict=True))
        why = "different input types: " + "; ".join(
            f"at array {i}, now {new} and before {old}" for i, (new, old) in pairs if new != old
        )
    code = getattr(function, "__code__", None)
    place = f" defined at {code.co_filename}:{code.co_firstlineno}" if code else ""
    _log.warning("TRACING CACHE MISS (%s)%s: %s", name, place, why)


def transferred(direction, what):
    """`transfer_guard`: something went from host to device, back, or to another device."""
    _log.warning("%s transfer of %s", direction, what)
