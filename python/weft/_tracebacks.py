"""What happens to an error on its way from weft to the user's code.

`leave` is called by the extension wherever an error leaves a public function (a PublicFunction, a
jitted function). It takes weft's own frames out of the traceback, as the setting
`weft_traceback_filtering` says, and puts the public function in place of the operation that a
message names. Nothing of this costs anything while there is no error.
"""

import os
import re
import sys
import types

from weft.config import config
from weft.errors import NotImplementedRuleError

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NOTE = "weft's own frames are left out; WEFT_TRACEBACK_FILTERING=off shows them."
# Modules whose functions are made of operations that their users do not see. Transforms, and those
# who define operations, speak of operations themselves.
_COMPOSED = re.compile(
    r"weft\.(?!_(?!assembly|stages\.program|transfer)|extend|interpreters|compiler|config|debug"
    r"|dtypes|errors|tree)"
)
_HELPER = re.compile(r"\bof '_\w+'")
_OPERATION = re.compile(r"\[[\w-]+\] ")
_CONSTRAINT = re.compile(r" \(\w+ C\d+\)")  # what of StableHLO's rules for an operation is broken


class UnfilteredTraceback(Exception):
    """Holds the whole traceback of the error whose cause it is."""

    def __init__(self):
        super().__init__("the traceback below holds weft's own frames as well")


def _entries(traceback):
    found = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _is_own(entry):
    return entry.tb_frame.f_code.co_filename.startswith(_OWN)


def _linked(entries):
    """The entries as one traceback; they are changed."""
    linked = None
    for entry in reversed(entries):
        entry.tb_next = linked
        linked = entry
    return linked


def _mode():
    mode = config.weft_traceback_filtering
    if mode != "auto":
        return mode
    shell = sys.modules.get("IPython")
    return "tracebackhide" if shell is not None and shell.get_ipython() else "quiet_remove_frames"


def _with_whole_traceback(error, entries):
    """Keeps the whole traceback in a cause of the error, as far as it is known by now."""
    earlier = error.__cause__ if isinstance(error.__cause__, UnfilteredTraceback) else None
    inner = [] if earlier is None else _entries(earlier.__traceback__)
    frames = {entry.tb_frame for entry in inner}
    outer = []
    for entry in entries:
        if entry.tb_frame in frames:
            break
        outer.append(entry)
    whole = None
    for entry in reversed([*outer, *inner]):
        whole = types.TracebackType(whole, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    if earlier is None:
        cause = UnfilteredTraceback()
        cause.__cause__, cause.__context__ = error.__cause__, error.__context__
        cause.__suppress_context__ = error.__suppress_context__
        error.__cause__ = cause
    error.__cause__.__traceback__ = whole


def _fold(error, mode):
    """Folds the frames of one error; returns whether there were any of weft's."""
    entries = _entries(error.__traceback__)
    own = [entry for entry in entries if _is_own(entry)]
    if mode == "tracebackhide":
        for entry in own:
            entry.tb_frame.f_locals["__tracebackhide__"] = True
    elif own or isinstance(error.__cause__, UnfilteredTraceback):
        if mode == "remove_frames":
            _with_whole_traceback(error, entries)
        error.__traceback__ = _linked([entry for entry in entries if not _is_own(entry)])
    return bool(own)


def _name(error, function):
    """Lets a message that begins with `[operation]` name the public function that was called."""
    message = error.args[0] if error.args else None
    if not isinstance(message, str) or isinstance(error, NotImplementedRuleError):
        return  # an operation without a rule may be one that the user's own functions called
    if getattr(error, "_message_is_users", False):
        return
    if not _COMPOSED.match(getattr(function, "__module__", None) or ""):
        return
    entries = _entries(error.__traceback__)
    if all(map(_is_own, entries)):  # not of a function that weft called
        name = function.__name__.strip("_")
        if not function.__name__.startswith("_"):
            message = _HELPER.sub(f"of '{name}'", message)
        if message.startswith("["):
            message = _OPERATION.sub(f"[{name}] ", message, count=1)
        elif type(error) in (TypeError, ValueError) and entries and name not in message:
            message = f"[{name}] {message}"  # Python's own, of something within the function
        if not function.__module__.startswith("weft.lax"):
            message = _CONSTRAINT.sub("", message, count=1)
        error.args = (message, *error.args[1:])


def leave(error, function):
    """An error leaves `function` for the code that called it."""
    _name(error, function)
    mode = _mode()
    if mode == "off":
        return
    if _fold(error, mode) and mode != "tracebackhide" and not hasattr(error, "__notes__"):
        error.add_note(_NOTE)
    # Errors that this one replaces are printed too.
    seen = {id(error)}
    while (error := error.__cause__ or error.__context__) is not None and id(error) not in seen:
        seen.add(id(error))
        if not isinstance(error, UnfilteredTraceback):
            _fold(error, mode)
