"""`weft.debug.breakpoint`: a prompt on the values of a run, in the frames that traced it."""

import bdb
import cmd
import linecache
import os
import pprint
import sys
import traceback

from weft import _core
from weft.debug import callback
from weft.errors import AttributeValueError
from weft.runtime.pytree import registry

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_AROUND = 5  # lines before and after that of a frame


class _Frame:
    """A frame of Python's when the breakpoint was traced."""

    def __init__(self, frame):
        self.code, self.line = frame.f_code, frame.f_lineno
        self.globals, self.locals = frame.f_globals, dict(frame.f_locals)

    def place(self):
        return f"{self.code.co_filename}({self.line})"

    def source(self):
        first = max(self.code.co_firstlineno, self.line - _AROUND)
        last = max(number for *_, number in self.code.co_lines() if number)
        rows = []
        for number in range(first, min(last, self.line + _AROUND) + 1):
            text = linecache.getline(self.code.co_filename, number).rstrip()
            rows.append(f"{'->' if number == self.line else '  '}  {text}")
        return "\n".join(rows)


def breakpoint(
    *, backend=None, filter_frames=True, num_frames=None, ordered=False, token=None, **kwargs
):
    """Stops a run at this point of the program, for a look at its values.

    A prompt reads commands: `p` and `pp` with an expression, of the names of the frame, whose
    traced arrays have the values of the run (NumPy arrays); `u` and `d` for the frame above and
    below; `l` for its lines, `bt` for all frames; `c` goes on, `q` ends the run with an error, `h`
    lists them.

    Args:
      backend: "cli" or None; there is no other.
      filter_frames: whether frames of weft are left out.
      num_frames: how many frames are kept, of the innermost ones; None for all.
      ordered: as for `weft.debug.callback`.
      token: a tree of arrays; the program stops when they are computed, and they are returned.
      kwargs: `stdin` and `stdout`, text files in place of the process's.

    Returns `token`. Raises ValueError for another backend, TypeError for other options.
    """
    if backend not in (None, "cli"):
        raise AttributeValueError(f"breakpoint expected 'cli' as backend; got {backend!r}")
    if not kwargs.keys() <= {"stdin", "stdout"}:
        raise TypeError(f"breakpoint expected stdin and stdout as options; got {sorted(kwargs)}")
    frames, at = [], sys._getframe(1)
    while at is not None and (num_frames is None or len(frames) < num_frames):
        if not (filter_frames and at.f_code.co_filename.startswith(_HERE)):
            frames.append(_Frame(at))
        at = at.f_back
    values, fill = _traced_in([frame.locals for frame in frames])
    tokens = [x for x in registry.flatten(token)[0] if isinstance(x, _core.Tracer)]

    def stop(*given):
        for frame, names in zip(frames, fill(given), strict=True):
            frame.locals = names
        _Prompt(frames, **kwargs).cmdloop()

    if values or tokens or _core.in_trace():
        callback(stop, *values, *tokens, ordered=ordered)
    else:
        stop()
    return token


def _traced_in(scopes):
    """The traced arrays in dicts of names, and a function that puts others in their places."""
    traced, made = [], []
    for scope in scopes:
        rows = {}
        for name, value in scope.items():
            try:
                leaves, tree = registry.flatten(value)
            except Exception:  # a tree that cannot be taken apart is shown as it is
                continue
            if any(isinstance(x, _core.Tracer) for x in leaves):
                rows[name] = (tree, leaves, len(traced))
                traced += [x for x in leaves if isinstance(x, _core.Tracer)]
        made.append(rows)

    def fill(given):
        for scope, rows in zip(scopes, made, strict=True):
            names = dict(scope)
            for name, (tree, leaves, first) in rows.items():
                rest = iter(given[first:])
                names[name] = tree.unflatten(
                    [next(rest) if isinstance(x, _core.Tracer) else x for x in leaves]
                )
            yield names

    return traced, fill


class _Prompt(cmd.Cmd):
    """The commands; see `breakpoint`."""

    prompt = "(weft) "
    intro = "Entering the debugger of weft:"

    def __init__(self, frames, stdin=None, stdout=None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._frames, self._at = frames, 0

    def _print(self, text):
        print(text, file=self.stdout)

    def _value(self, text):
        frame = self._frames[self._at]
        return eval(text, frame.globals, frame.locals)  # what the user types at the prompt

    def _show(self, text, shown):
        try:
            self._print(shown(self._value(text)))
        except Exception as error:
            self._print("*** " + traceback.format_exception_only(error)[-1].strip())

    def default(self, line):
        self._show(line, repr)

    def emptyline(self):
        pass

    def do_p(self, arg):
        """p expression: prints its value."""
        self._show(arg, repr)

    def do_pp(self, arg):
        """pp expression: prints its value over several lines."""
        self._show(arg, pprint.pformat)

    def do_list(self, arg):
        """l(ist): the lines around that of the frame."""
        frame = self._frames[self._at]
        self._print(f"> {frame.place()}\n{frame.source()}")

    def do_up(self, arg):
        """u(p): the frame that called this one."""
        if self._at + 1 == len(self._frames):
            self._print("At topmost frame.")
        else:
            self._at += 1
            self.do_list(arg)

    def do_down(self, arg):
        """d(own): the frame that this one called."""
        if self._at == 0:
            self._print("At bottommost frame.")
        else:
            self._at -= 1
            self.do_list(arg)

    def do_bt(self, arg):
        """bt: all frames, the innermost last."""
        for frame in reversed(self._frames):
            text = linecache.getline(frame.code.co_filename, frame.line).strip()
            self._print(f"  {frame.place()} {frame.code.co_name}\n    {text}")

    def do_continue(self, arg):
        """c(ontinue): goes on with the run."""
        return True

    def do_quit(self, arg):
        """q(uit): ends the run with an error."""
        raise bdb.BdbQuit("the run was ended at a breakpoint")

    def do_EOF(self, arg):
        """The end of the input: goes on with the run."""
        return True

    do_l, do_u, do_d, do_c, do_q, do_h = (
        do_list, do_up, do_down, do_continue, do_quit, cmd.Cmd.do_help,
    )  # fmt: skip
    do_where = do_bt
