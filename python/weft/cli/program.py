"""Programs that files hold: modules of StableHLO, and graphs in text form."""

from pathlib import Path

import numpy as np

from weft import _core, compiler
from weft._types.avals import ShapeDtypeStruct
from weft.cli.failures import CliError


class Program:
    """A graph as a function of its inputs, which gives its one output, or a tuple of them."""

    def __init__(self, graph: compiler.Graph, name: str):
        self.graph = graph
        self.__name__ = name

    def __call__(self, *arrays):
        results = self.graph(*arrays)
        return results[0] if len(results) == 1 else results

    @property
    def arguments(self) -> tuple[ShapeDtypeStruct, ...]:
        """Its inputs, known by their types."""
        return tuple(ShapeDtypeStruct(shape, np.dtype(dtype)) for shape, dtype in self.types)

    @property
    def types(self):
        return self.graph.in_types


def is_program(target: str) -> bool:
    """Whether a target names a file that is no Python file, and not a function in one."""
    path = Path(target)
    return path.suffix != ".py" and path.is_file()


def load_program(target: str) -> Program:
    """What kind of program a file holds is told by its contents."""
    path = Path(target)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CliError(f"cannot read {target}: {error.strerror}") from None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Program(compiler.read(data), path.stem)
    if _core.is_mlir(text):
        return Program(compiler.read(text, file=target), path.stem)
    return Program(compiler.parse(text), path.stem)
