"""Warnings that name the user's line, as errors do."""

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def user_frame():
    """The innermost frame outside of weft; the outermost one if all are weft's."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((_PACKAGE, "<frozen")):
        frame = frame.f_back
    return frame


def warn(text, category: type[Warning] = UserWarning):
    """A warning at the user's line, where Python's filters count it: by default once per line."""
    frame = user_frame()
    names = frame.f_globals
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        names.get("__name__") or "<string>",  # as Python names code without a module
        names.setdefault("__warningregistry__", {}),
    )
