"""What the subcommands that take a function share: its name, its arguments, transforms of it."""

import argparse
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from weft._autodiff import grad
from weft._jit import jit
from weft._vmap import vmap
from weft.cli.failures import CliError, did_you_mean
from weft.cli.load import load, load_function
from weft.cli.program import Program
from weft.cli.values import Reader, literal
from weft.config import config

ARGUMENTS_HELP = """\
arguments (SPEC):
  f32[8,128]            an array known by its type: enough to lower or to report
  i32[]=3               an array with a value; one number fills the shape
  f32[2,2]=[[1,2],[3,4]]
  f32[8,3]=normal       random: normal, uniform, randint, or normal(MEAN,STD), uniform(LOW,HIGH),
                        randint(LOW,HIGH); the same for the same --seed
  f32[8,3]=arange       also zeros, ones, arange(START,STEP)
  @x.npy, @x.npz:name   an array of a file
  3, 2.5, 'mean', None  a Python value
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="FILE.py:FUNCTION",
        help="the function, or package.module:FUNCTION; or a file with StableHLO or a graph",
    )  # fmt: skip
    parser.add_argument(
        "--arg", action="append", default=[], metavar="SPEC", help="the next positional argument"
    )
    parser.add_argument(
        "--kwarg", action="append", default=[], metavar="NAME=SPEC", help="a keyword argument"
    )
    parser.add_argument(
        "--args", metavar="FILE.py:NAME", help="all positional arguments (any pytrees): a tuple, "
        "or a function that returns one",
    )  # fmt: skip
    parser.add_argument(
        "--static", action="append", default=[], metavar="WHICH",
        help="an argument, by position or name, that is part of the program and not its input",
    )  # fmt: skip
    parser.add_argument(
        "--grad", dest="transforms", action="append", type=parse_grad, metavar="ARGNUMS",
        help="of the gradient with respect to these positions: --grad (of 0) or --grad=0,2",
    )  # fmt: skip
    parser.add_argument(
        "--vmap", dest="transforms", action="append", type=parse_vmap, metavar="AXES",
        help="of the function mapped over these axes: --vmap (all over 0), --vmap=0,None or "
        "--vmap='0,None->1'; with --grad, what comes first is done first",
    )  # fmt: skip
    parser.add_argument("--seed", type=seed, default=0, help="of random arguments; default: 0")
    parser.add_argument("--x64", action="store_true", help="64-bit dtypes stay as they are")
    add_traceback(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_traceback(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--traceback", action="store_true", help="show tracebacks of errors")


# `--grad FILE.py:F` is --grad without a value, which argparse alone would not see.
OPTIONAL_VALUES = {
    "--grad": ("0", re.compile(r"-?\d+(,-?\d+)*")),
    "--vmap": ("0", re.compile(r"[-\d,() ]*(None[-\d,() ]*)*(->[^:]*)?")),
}


def with_default_values(argv: list[str]) -> list[str]:
    """The command line with the values that --grad and --vmap have when none is given."""
    out: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*out, word, *rest]
        if word in OPTIONAL_VALUES:
            default, pattern = OPTIONAL_VALUES[word]
            value = rest.pop(0) if rest and rest[0] and pattern.fullmatch(rest[0]) else default
            word = f"{word}={value}"
        out.append(word)
    return out


def seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number; got {text!r}")
    return int(text)


def parse_grad(text: str) -> Callable[[Any], Any]:
    if not re.fullmatch(r"\s*-?\d+\s*(,\s*-?\d+\s*)*,?\s*", text):
        raise argparse.ArgumentTypeError(f"expected positions such as 0 or 0,2; got {text!r}")
    numbers = tuple(int(n) for n in text.split(",") if n.strip())
    return functools.partial(grad, argnums=numbers if "," in text else numbers[0])


def parse_vmap(text: str) -> Callable[[Any], Any]:
    given, arrow, wanted = text.partition("->")
    try:
        in_axes = literal(given, "--vmap")
        out_axes = literal(wanted, "--vmap") if arrow else 0
    except CliError:
        raise argparse.ArgumentTypeError(
            f"expected axes such as 0, '0,None' or '0,None->1'; got {text!r}"
        ) from None
    return functools.partial(vmap, in_axes=in_axes, out_axes=out_axes)


class Call:
    """The function that a command line names, transformed, with its arguments."""

    def __init__(self, options: argparse.Namespace, *, need_values: bool):
        if options.x64:
            config.update("weft_enable_x64", True)
        function = load_function(options.target)
        self.args, self.kwargs = read_arguments(options, function, need_values)
        if isinstance(function, Program) and not (self.args or self.kwargs or need_values):
            self.args = function.arguments
        self.name = getattr(function, "__name__", "f")
        for transform in options.transforms or ():
            function = transform(function)
        self.function = jitted(function, options.static)

    def trace(self) -> Any:
        return self.function.trace(*self.args, **self.kwargs)

    def __call__(self) -> Any:
        return self.function(*self.args, **self.kwargs)


def jitted(function: Callable[..., Any], static: list[str]) -> Any:
    """jit of a function, which may be jitted already."""
    if hasattr(function, "lower") and hasattr(function, "trace"):
        if static:
            raise CliError("--static cannot be added to a function that is jitted already")
        return function
    numbers = tuple(int(s) for s in static if s.lstrip("-").isdecimal())
    names = tuple(s for s in static if not s.lstrip("-").isdecimal())
    return jit(function, static_argnums=numbers or None, static_argnames=names or None)


def read_arguments(
    options: argparse.Namespace, function: Callable[..., Any], need_values: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments that the command line describes."""
    if options.args and options.arg:
        raise CliError("--args gives all positional arguments; --arg cannot add to it")
    reader = Reader(options.seed)
    if options.args:
        args = positional_arguments(options.args)
    else:
        args = tuple(reader.read(s, f"--arg {s!r}", need_values) for s in options.arg)
    kwargs = {}
    for text in options.kwarg:
        name, equals, spec = text.partition("=")
        if not equals or not name.isidentifier():
            raise CliError(f"expected --kwarg NAME=SPEC; got {text!r}")
        if name in kwargs:
            raise CliError(f"--kwarg {name} is given twice")
        kwargs[name] = reader.read(spec, f"--kwarg {text!r}", need_values)
    signature = signature_of(function)
    if signature is not None:
        if not options.args and next(iter(signature.parameters), "") == "self":
            raise CliError(
                f"{options.target} is a method without its instance: name one that the file makes "
                "(after `model = Model()`, FILE.py:model.call), or give all arguments by --args"
            )
        check_signature(options.target, function, signature, args, kwargs)
    return args, kwargs


def positional_arguments(target: str) -> tuple[Any, ...]:
    found = load(target)
    if callable(found):
        found = found()
    if not isinstance(found, tuple):
        raise CliError(
            f"--args {target} gives {type(found).__name__}; expected a tuple of the positional "
            "arguments (for one argument x: `(x,)`)"
        )
    return found


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def check_signature(
    target: str,
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = target.rpartition(":")[2]
        given = [f"{len(args)} positional", *(f"{k}=..." for k in kwargs)]
        names = signature.parameters
        meant = next((did_you_mean(k, names) for k in kwargs if k not in names), "")
        raise CliError(
            f"the arguments do not fit `def {name}{signature}`{definition_of(function)}: {error}; "
            f"got {', '.join(given)}{meant}"
        ) from None


def definition_of(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
