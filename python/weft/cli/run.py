"""`weft run`: runs a function on arguments from the command line or from files."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from weft._transfer import block_until_ready
from weft.cli.arguments import ARGUMENTS_HELP, Call, add_arguments, add_json
from weft.cli.failures import CliError
from weft.cli.stages import Stages, add_stats, default
from weft.tree_util import keystr, tree_flatten_with_path

EXAMPLES = """
examples:
  weft run model.py:predict --arg 'f32[8,128]=normal' --seed 1
  weft run model.py:loss --arg 'f32[3]=[1,2,3]' --grad
  weft run model.py:predict --arg @weights.npz:w --arg @x.npy -o out.npz --stats
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a function and print or save its results",
        description="Compiles a function, runs it once, and prints or saves its results.",
        epilog=ARGUMENTS_HELP + EXAMPLES,
    )
    add_arguments(parser)
    add_stats(parser)
    parser.add_argument(
        "-o", dest="output", metavar="OUT.npz", help="save the results instead of printing them"
    )
    add_json(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    stages = Stages(options.stats)
    with stages.stage("load"):
        call = Call(options, need_values=True)
    if options.stats:
        compile_by_stage(call, stages)
    with stages.stage("run"):
        results = block_until_ready(call())
    named = name_leaves(results)
    if options.output:
        save(Path(options.output), named)
    elif options.json:
        print(json.dumps({name: facts(value) for name, value in named.items()}))
    else:
        for name, value in named.items():
            print(f"{name}: {value.dtype.name}{list(value.shape)}")
            print(value)
    stages.report()


def compile_by_stage(call: Call, stages: Stages) -> None:
    """What the call would do in one; it finds the program compiled."""
    with stages.stage("trace"):
        traced = call.trace()
    stages.optimize(traced.graph, default())
    with stages.stage("emit"):
        lowered = traced.lower()
    with stages.stage("compile"):
        lowered.compile()


def name_leaves(results: Any) -> dict[str, np.ndarray]:
    """The arrays of a result under the names of their places: out, 0, params.w."""
    leaves, _ = tree_flatten_with_path(results)
    return {
        keystr(path, simple=True, separator=".") or "out": np.asarray(leaf) for path, leaf in leaves
    }


def facts(value: np.ndarray) -> dict[str, Any]:
    """An array for JSON, which has numbers that are finite and real."""
    return {"dtype": value.dtype.name, "shape": value.shape, "values": plain(value.tolist())}


def plain(x: Any) -> Any:
    if isinstance(x, list):
        return [plain(each) for each in x]
    if isinstance(x, complex):
        return [plain(x.real), plain(x.imag)]
    if isinstance(x, (bool, int)):
        return x
    return float(x) if math.isfinite(x) else str(float(x))


def save(path: Path, named: dict[str, np.ndarray]) -> None:
    if path.suffix != ".npz":
        raise CliError(f"expected -o OUT.npz; got {path}")
    # The .npz format knows NumPy's own dtypes only; bfloat16 and the like fit into float32.
    portable: dict[str, Any] = {
        k: v.astype(np.float32) if v.dtype.kind == "V" else v for k, v in named.items()
    }
    try:
        np.savez(path, **portable)
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None
