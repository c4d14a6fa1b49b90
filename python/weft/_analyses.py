"""What a program costs, as XLA tells it: figures that print as tables."""

import dataclasses

from weft import _html
from weft._figures import columns, size


class Costs(dict):
    """Estimates by name: a dict. `print` shows those of the whole program as a table."""

    def _rows(self):
        whole = sorted((name, value) for name, value in self.items() if "{" not in name)
        return [
            (name, f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}") for name, value in whole
        ]

    def __str__(self):
        return columns(self._rows()) if self._rows() else repr(self)

    def _table(self):
        return _html.table(("", "estimate"), self._rows())

    def _repr_html_(self):
        return _html.card("Costs", ["of one run"], self._table())


_NAMES = {
    "argument_size_in_bytes": "arguments",
    "output_size_in_bytes": "results",
    "alias_size_in_bytes": "shared by arguments and results",
    "temp_size_in_bytes": "temporaries",
    "generated_code_size_in_bytes": "code",
}


@dataclasses.dataclass(frozen=True)
class Memory:
    """Sizes in bytes of what a compiled program needs on each device; `print` shows a table.

    Those that begin with `host_` are in the memory of the host.
    """

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    peak_memory_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    serialized_buffer_assignment_proto: bytes = dataclasses.field(default=b"", repr=False)

    @classmethod
    def of(cls, stats):
        """Those of jaxlib's object, whose versions have more or fewer attributes."""
        names = (field.name for field in dataclasses.fields(cls))
        return cls(**{name: getattr(stats, name) for name in names if hasattr(stats, name)})

    def _rows(self):
        rows = [(what, size(getattr(self, name))) for name, what in _NAMES.items()]
        # What jaxlib tells as the peak leaves out temporaries on CPUs.
        shared, used = self.alias_size_in_bytes, ("argument", "output", "temp", "generated_code")
        total = sum(getattr(self, f"{name}_size_in_bytes") for name in used) - shared
        on_host = [(f"{what}, host", getattr(self, f"host_{n}", 0)) for n, what in _NAMES.items()]
        return [*rows, ("in all", size(total)), *((w, size(n)) for w, n in on_host if n)]

    def __str__(self):
        return columns(self._rows())

    def _table(self):
        return _html.table(("", "size"), self._rows())

    def _repr_html_(self):
        return _html.card("Memory", ["of each device"], self._table())
