"""The HLO modules that a profile holds, which jaxlib's ProfileData does not show.

A profile is an XSpace in the wire format of protocol buffers. Of it, this reads:

    XSpace: planes = 1; XPlane: name = 2, event_metadata = 4, stat_metadata = 5, which are maps
    (key = 1, value = 2); XEventMetadata: name = 2, stats = 5; XStatMetadata: name = 2; XStat:
    metadata_id = 1, bytes_value = 6; HloProto: hlo_module = 1
"""

from jaxlib import xla_client

_PLANE, _STAT = b"/host:metadata", b"Hlo Proto"


def hlo_modules(profile):
    """The text of each program that ran, after XLA's optimisations, by its name."""
    found = {}
    for plane in _all(profile, 1):
        if _first(plane, 2) != _PLANE:
            continue
        names = {_first(e, 1, 0): _first(_first(e, 2), 2) for e in _all(plane, 5)}
        for entry in _all(plane, 4):
            for stat in _all(_first(entry, 2), 5):
                if names.get(_first(stat, 1)) == _STAT:
                    proto = _first(_first(stat, 6), 1)
                    module = xla_client.XlaComputation(proto).get_hlo_module()
                    found[module.name] = module.to_string()
    return found


def _fields(message):
    """(number, value) of the fields of a message: ints, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            yield number, message[at : at + size]
            at += size


def _all(message, number):
    return [value for n, value in _fields(message) if n == number]


def _first(message, number, default: bytes | int = b""):
    return next((value for n, value in _fields(message) if n == number), default)
