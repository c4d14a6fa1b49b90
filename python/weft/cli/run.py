"""`weft run`: runs a function on arguments from the command line or from files."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import weft
from weft.cli.arguments import add_arguments, jitted, read_arguments
from weft.cli.load import load_function
from weft.cli.report import CliError


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a function and print or save its results",
        description="Compiles a function, runs it once, and prints or saves its results.",
    )
    add_arguments(parser)
    parser.add_argument(
        "-o", dest="output", metavar="OUT.npz", help="save the results instead of printing them"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    if options.x64:
        weft.config.update("weft_enable_x64", True)
    function = load_function(options.target)
    args, kwargs = read_arguments(options, function, need_values=True)
    named = name_leaves(jitted(function, options.static)(*args, **kwargs))
    if options.output:
        save(Path(options.output), named)
        return
    for name, value in named.items():
        print(f"{name}: {value.dtype.name}{list(value.shape)}")
        print(value)


def name_leaves(results: Any) -> dict[str, np.ndarray]:
    """The arrays of a result under the names of their places: out, 0, params.w."""
    leaves, _ = weft.tree_util.tree_flatten_with_path(results)
    return {
        weft.tree_util.keystr(path, simple=True, separator=".") or "out": np.asarray(leaf)
        for path, leaf in leaves
    }


def save(path: Path, named: dict[str, np.ndarray]) -> None:
    if path.suffix != ".npz":
        raise CliError(f"expected -o OUT.npz; got {path}")
    # The .npz format knows NumPy's own dtypes only; bfloat16 and the like fit into float32.
    portable = {k: v.astype(np.float32) if v.dtype.kind == "V" else v for k, v in named.items()}
    try:
        np.savez(path, **portable)
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None
