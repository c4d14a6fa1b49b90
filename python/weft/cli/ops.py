"""`weft ops`: the registry of ops: what each takes, and which rules it has."""

import argparse
import json
from typing import Any

import numpy as np

from weft import compiler
from weft.cli.arguments import add_json, add_traceback
from weft.cli.failures import CliError, did_you_mean

EXAMPLES = """\
examples:
  weft ops                   all ops, and which rules each lacks
  weft ops add dot_general   signature, dtypes, attributes and rules of these
  weft ops --missing         those that lack a rule
"""
JVP = {
    "none": "no derivative",
    "zero": "the derivative is zero",
    "linear": "the op itself, applied to tangents",
    "args": "a rule for each operand",
    "custom": "a rule for the whole op",
    "graph": "transforms the graphs that it holds",
}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "ops",
        help="list the ops, or describe some",
        description="Lists the ops of the registry and which rules each lacks, or describes those "
        "named: operands, dtypes, attributes, rules and rewrites.",
        epilog=EXAMPLES,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="describe these ops")
    parser.add_argument("--missing", action="store_true", help="only ops that lack a rule")
    add_json(parser)
    add_traceback(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    ops = {op["name"]: op for op in compiler.registry()}
    for name in options.names:
        if name not in ops:
            raise CliError(f"no such op: {name}{did_you_mean(name, ops)}")
    chosen = [ops[name] for name in options.names] or list(ops.values())
    shown = [op for op in chosen if op["missing"] or not options.missing]
    if options.json:
        print(json.dumps(shown, indent=1, default=str))
        return
    if options.names:
        print("\n\n".join(describe(op) for op in shown))
        return
    width = max((len(op["name"]) for op in shown), default=0)
    for op in shown:
        lacks = f"lacks {', '.join(op['missing'])}" if op["missing"] else ""
        print(f"{op['name']:{width}}  {lacks}".rstrip())
    print(f"{len(shown)} ops")


def describe(op: dict[str, Any]) -> str:
    lines = [f"{op['name']}: {op['doc']}", f"  {signature(op)}"]
    if op["dtypes"]:
        lines.append(f"  dtypes: {'; '.join(dtypes(op['dtypes']))}")
    if op["attributes"]:
        texts = [f"{a['name']}: {attribute(a)}" for a in op["attributes"]]
        lines.append("  attributes: " + "\n              ".join(texts))
    if op["effects"] != "none":
        lines.append(f"  effects: {op['effects']}")
    lines.append("  rules:")
    lines += [f"    {name:<9}  {text}" for name, text in rules(op)]
    lines.append(f"  lacks: {', '.join(op['missing']) or 'nothing'}")
    return "\n".join(lines)


def signature(op: dict[str, Any]) -> str:
    """As in the text form of programs: `c d = op[attributes] a b`."""
    count = op["num_operands"]
    operands = "a..." if count < 0 else " ".join("abcdefgh"[:count])
    required = [f"{a['name']}=..." for a in op["attributes"] if a["required"]]
    attrs = f"[{' '.join(required)}]" if required else ""
    results = "y..." if op["multiple_results"] else "y"
    kind = "  (element-wise)" if op["elementwise"] else ""
    return f"{results} = {op['name']}{attrs} {operands}".rstrip() + kind


def dtypes(pairs: list[tuple[np.dtype, np.dtype]]) -> list[str]:
    """Dtypes taken, grouped by the dtype that results."""
    groups: dict[str, list[str]] = {}
    for given, result in pairs:
        groups.setdefault("" if given == result else f" -> {result.name}", []).append(given.name)
    return [", ".join(names) + result for result, names in groups.items()]


def attribute(a: dict[str, Any]) -> str:
    return a["type"] if a["required"] else f"{a['type']} = {a['default']!r}"


def rules(op: dict[str, Any]) -> list[tuple[str, str]]:
    has = op["rules"]
    out = [("jvp", JVP[has["jvp"]])]
    for name, text in (
        ("transpose", "of a linear use"),
        ("batch", "under vmap"),
        ("emit", "as other ops" if has["emit"] == "decompose" else "as StableHLO"),
        ("fold", "on numbers"),
        ("cost", "flops and bytes"),
        ("prune", "drops unused operands and results"),
    ):
        if has[name] not in (False, "none"):
            out.append((name, text))
    out += [("simplify", f"{identity}  ({name})") for name, identity in has["simplify"]]
    return out
