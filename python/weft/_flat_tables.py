"""Bytes in the form of FlatBuffers: tables of numbered fields, found by offsets.

A table begins with the distance back to its list of fields, which says where in the table each
one is, 0 for those that are left out. What has no fixed size stands elsewhere, and the field holds
the distance to it. All numbers are little-endian.
"""

import struct

_OFFSET = struct.Struct("<I")
_BACK = struct.Struct("<i")
_PLACE = struct.Struct("<H")


class Table:
    """A table in bytes, which is read field by field. Raises ValueError for bad offsets."""

    def __init__(self, data, at):
        self._data, self._at = data, at
        fields = at - self._number(_BACK, at)
        size = self._number(_PLACE, fields)
        places = [self._number(_PLACE, fields + i) for i in range(4, size, 2)]
        self._places = {i: at + place for i, place in enumerate(places) if place}

    @classmethod
    def root(cls, data):
        """The table that all bytes are of."""
        return cls(data, Table._number_in(data, _OFFSET, 0))

    @staticmethod
    def _number_in(data, form, at):
        if not 0 <= at <= len(data) - form.size:
            raise ValueError(f"an offset of {at} in {len(data)} bytes")
        return form.unpack_from(data, at)[0]

    def _number(self, form, at):
        return self._number_in(self._data, form, at)

    def _target(self, at):
        return at + self._number(_OFFSET, at)

    def __contains__(self, field):
        return field in self._places

    def number(self, field, code):
        """A number of the field, of a format of `struct`; 0 where it is left out."""
        at = self._places.get(field)
        return 0 if at is None else self._number(struct.Struct("<" + code), at)

    def table(self, field):
        """The table of a field, or None."""
        at = self._places.get(field)
        return None if at is None else Table(self._data, self._target(at))

    def _span(self, field, size):
        """Where the elements of a field begin, and how many there are."""
        at = self._places.get(field)
        if at is None:
            return 0, 0
        begin = self._target(at)
        return begin + _OFFSET.size, self._count(begin, size)

    def _count(self, begin, size):
        count = self._number(_OFFSET, begin)
        if begin + _OFFSET.size + count * size > len(self._data):
            raise ValueError(f"{count} elements at {begin} of {len(self._data)} bytes")
        return count

    def bytes(self, field):
        """The bytes of a field; none where it is left out."""
        begin, count = self._span(field, 1)
        return bytes(self._data[begin : begin + count])

    def text(self, field):
        """The text of a field. Raises ValueError if it is none."""
        return self.bytes(field).decode()

    def numbers(self, field, code):
        """A tuple of the numbers of a field."""
        begin, count = self._span(field, struct.calcsize("<" + code))
        return struct.unpack_from(f"<{count}{code}", self._data, begin)

    def _targets(self, field):
        begin, count = self._span(field, _OFFSET.size)
        return [self._target(begin + i * _OFFSET.size) for i in range(count)]

    def tables(self, field):
        """The tables of a field."""
        return [Table(self._data, at) for at in self._targets(field)]

    def texts(self, field):
        """A tuple of the texts of a field."""
        spans = [(at + _OFFSET.size, self._count(at, 1)) for at in self._targets(field)]
        return tuple(bytes(self._data[at : at + n]).decode() for at, n in spans)


def pack(table):
    """A table as bytes.

    table: a dict from the numbers of fields to their contents: dicts (tables), lists of tables and
    texts, text, bytes, and (format of `struct`, number) or (format, list of numbers).
    """
    data = bytearray(_OFFSET.size)
    waiting = [(0, table)]  # places of offsets, and what they lead to
    while waiting:
        place, content = waiting.pop()
        data.extend(bytes(-len(data) % 8))
        begin = _write(data, content, waiting)
        _OFFSET.pack_into(data, place, begin - place)
    return bytes(data)


def _write(data, content, waiting):
    """Appends what an offset leads to; returns where it begins."""
    if isinstance(content, dict):
        return _write_table(data, content, waiting)
    begin = len(data)
    if isinstance(content, tuple):
        code, numbers = content
        data.extend(struct.pack(f"<I{len(numbers)}{code}", len(numbers), *numbers))
    elif isinstance(content, list):
        data.extend(_OFFSET.pack(len(content)) + bytes(_OFFSET.size * len(content)))
        places = range(begin + _OFFSET.size, len(data), _OFFSET.size)
        waiting.extend(zip(places, content, strict=True))
    else:
        raw = content.encode() + b"\0" if isinstance(content, str) else bytes(content)
        data.extend(_OFFSET.pack(len(raw) - isinstance(content, str)) + raw)
    return begin


def _write_table(data, fields, waiting):
    places, inside, size = {}, [], _BACK.size
    for field, content in fields.items():
        is_number = isinstance(content, tuple) and not isinstance(content[1], (list, tuple))
        code, value = content if is_number else ("I", 0)
        width = struct.calcsize("<" + code)
        size += -size % width
        places[field] = size
        inside.append((size, code, value, None if is_number else content))
        size += width
    count = max(fields, default=-1) + 1
    listing = [4 + 2 * count, size, *(places.get(i, 0) for i in range(count))]
    data.extend(struct.pack(f"<{len(listing)}H", *listing))
    data.extend(bytes(-len(data) % 8))
    begin, back = len(data), 2 * len(listing) + (-2 * len(listing)) % 8
    data.extend(_BACK.pack(back) + bytes(size - _BACK.size))
    for place, code, value, content in inside:
        struct.pack_into("<" + code, data, begin + place, value)
        if content is not None:
            waiting.append((begin + place, content))
    return begin
