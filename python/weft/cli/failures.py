"""How the command reports an error: a message of one screen that points into the user's code."""

import difflib
import linecache
import re
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

MAX_LINES = 16
MAX_CALLERS = 3
PACKAGE = str(Path(__file__).absolute().parent.parent)
# What weft's own messages end with; the report starts with it.
LOCATION = re.compile(r"\s+at .+:\d+ \(.*\)")
FOREIGN = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


class CliError(Exception):
    """A mistake on the command line; its message says everything there is to say."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown name: those that it resembles, if there are any."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.66)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def describe(command: str, error: Exception) -> str:
    """The whole report on an exception, without the framework's frames."""
    if isinstance(error, CliError):
        return f"{command}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return syntax_error(command, error)
    lines = []
    frames = user_frames(error)
    if frames:
        last = frames[-1]
        lines.append(f"{command}: error at {last.filename}:{last.lineno}, in {last.name}")
        lines.append(f"    {last.line}")
        for frame in frames[-2 : -2 - MAX_CALLERS : -1]:
            lines.append(f"  called from {frame.filename}:{frame.lineno}, in {frame.name}")
    else:
        lines.append(f"{command}: error")
    lines += message_of(error)
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"... ({len(lines) - MAX_LINES} more lines)"]
    lines.append("(--traceback shows the full traceback)")
    return "\n".join(lines)


def syntax_error(command: str, error: SyntaxError) -> str:
    line = (error.text or linecache.getline(error.filename or "", error.lineno or 0)).strip()
    return (
        f"{command}: error at {error.filename}:{error.lineno}\n    {line}\nSyntaxError: {error.msg}"
    )


def message_of(error: Exception) -> list[str]:
    text = "".join(traceback.format_exception_only(error)).rstrip().split("\n")
    # "weft.errors.ShapeError: ..." is called what users import it as.
    head, colon, rest = text[0].partition(":")
    text[0] = head.rpartition(".")[2] + colon + rest
    return [line for line in text if not LOCATION.fullmatch(line)]


def user_frames(error: Exception) -> list[traceback.FrameSummary]:
    """The frames of the user's own code, outermost first."""
    return [f for f in traceback.extract_tb(error.__traceback__) if is_user_file(f.filename)]


def is_user_file(filename: str) -> bool:
    return not filename.startswith(("<", PACKAGE, *FOREIGN))
