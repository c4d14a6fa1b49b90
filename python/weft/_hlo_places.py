"""Which lines of the user's the operations of an HLO module come from, read from its text."""

import collections
import re
from typing import NamedTuple


class Place(NamedTuple):
    """A line of the user's: as text, "file.py:12 (f)", and its parts. Where an operation has none,
    the text is the operation's own name, or empty."""

    text: str
    file: str
    line: int


class Places:
    """The lines of a module's operations."""

    def __init__(self, text):
        self._tables = _tables(text)

    def of(self, operation):
        """The Place of an operation, as printed."""
        frame = re.search(r"stack_frame_id=(\d+)", operation)
        location = self._tables["StackFrames"].get(frame[1]) if frame else None
        if location:
            at = self._tables["FileLocations"][location["file_location_id"]]
            file = self._tables["FileNames"][at["file_name_id"]]
            function = self._tables["FunctionNames"][at["function_name_id"]]
            return Place(f"{file}:{at['line']} ({function})", file, int(at["line"]))
        file = re.search(r'source_file="([^"]*)"', operation)
        line = re.search(r"source_line=(\d+)", operation)
        if file and line:
            return Place(f"{file[1]}:{line[1]}", file[1], int(line[1]))
        name = re.search(r'op_name="([^"]*)"', operation)
        return Place(name[1] if name else "", "", 0)


def _tables(text):
    """The tables of source lines at the head of a module, by their names and numbers."""
    tables = collections.defaultdict(dict)
    for head in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
        found = re.search(rf"^{head}\n(.*?)\n\s*\n", text, re.MULTILINE | re.DOTALL)
        for number, entry in re.findall(r"^(\d+) (.*)$", found[1] if found else "", re.MULTILINE):
            if entry.startswith("{"):
                tables[head][number] = dict(re.findall(r"(\w+)=(\d+)", entry))
            else:
                tables[head][number] = entry.strip('"')
    return tables
