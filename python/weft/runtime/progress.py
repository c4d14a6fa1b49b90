"""What those who wait see of compilations and loops that take long.

    weft: compiling train_step, 4.2 s, about 9.0 s more
    weft: compiling train_step, 3 of 12 blocks, 4.2 s, about 10.1 s more
    sampling: 4,200 of 10,000, 12.0 s, about 16.6 s more

On a terminal (stderr) it is one line that is written again and again, in a notebook one output;
elsewhere nothing is written. No thread runs unless something is being compiled.
"""

import contextvars
import functools
import os
import re
import sys
import threading
import time

from weft._figures import duration
from weft.config import config

_AFTER = 2.0  # seconds until something is shown
_EVERY = 0.2  # seconds between two looks at what is compiled
_LINE_EVERY = 1.0  # seconds between two texts about a loop
_BLOCK = re.compile(r"(.+)_(?:block_\d+|constants)$")


# ---- where it is shown


class _Terminal:
    """One line of stderr."""

    def __init__(self):
        self._stream = sys.stderr
        self._is_used = False

    def show(self, text):
        self._is_used = self._write(f"\r{text}\x1b[K")

    def close(self, text=""):
        """Leaves a line with the text, or nothing."""
        if self._is_used:
            self._write(f"\r{text}\x1b[K{text and chr(10)}")

    def _write(self, text):
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            return False
        return True


class _Notebook:
    """One output of a cell."""

    def __init__(self):
        self._handle = None

    def show(self, text):
        from IPython.display import display

        if self._handle is None:
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def close(self, text=""):
        if self._handle is not None:
            self.show(text)


def _in_notebook():
    """Whether a kernel of Jupyter runs this process."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _place():
    """Where somebody sees it: a class, or None."""
    if _in_notebook():
        return _Notebook
    try:
        is_terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        is_terminal = False
    return _Terminal if is_terminal and os.environ.get("TERM") != "dumb" else None


def _time_text(passed, left):
    more = "" if left is None or left < 0.5 else f", about {duration(left)} more"
    return f"{duration(passed)}{more}"


# ---- compilations


class _Rate:
    """How long XLA takes for an operation, in seconds, as the last modules say."""

    def __init__(self):
        self.operations = 1000.0
        self.seconds = 2.0

    def learn(self, operations, seconds):
        # What was found on disk took next to nothing.
        if operations and seconds > 1e-4 * operations:
            self.operations = self.operations / 2 + operations
            self.seconds = self.seconds / 2 + seconds

    def estimate(self, operations):
        return operations * self.seconds / self.operations


_rate = _Rate()


class _Program:
    """A program on its way: first weft's passes, then one module or several in XLA."""

    def __init__(self, name):
        self.name = name
        self.start = time.monotonic()
        self.users = 0  # that are at work on it
        self.modules = ()  # how many operations each has; those that have most are compiled first
        self.in_xla = 0.0  # since when
        self.done = 0

    def compiles(self, modules):
        self.modules = sorted(modules, reverse=True)
        self.in_xla = time.monotonic()

    def _left(self, now):
        total, passed = sum(self.modules), now - self.in_xla
        done = sum(self.modules[: self.done])
        whole = passed * total / done if done else _rate.estimate(total)
        return whole - passed

    def __str__(self):
        now = time.monotonic()
        if not self.modules:
            return f"optimising {self.name}, {_time_text(now - self.start, None)}"
        blocks = f", {self.done} of {len(self.modules)} blocks" if len(self.modules) > 1 else ""
        times = _time_text(now - self.start, self._left(now))
        return f"compiling {self.name}{blocks}, {times}"


class _Display:
    """The programs that are being compiled, and the thread that shows them."""

    def __init__(self):
        self._changed = threading.Condition()
        self._programs: dict[str, _Program] = {}
        self._thread = None

    def enter(self, name, place):
        with self._changed:
            program = self._programs.setdefault(name, _Program(name))
            program.users += 1
            if self._thread is None:
                # A notebook finds the cell of an output by the context.
                show = contextvars.copy_context().run
                self._thread = threading.Thread(
                    target=show, args=(self._show, place()), name="weft-progress", daemon=True
                )
                self._thread.start()
            return program

    def leave(self, program):
        thread = None
        with self._changed:
            program.users -= 1
            if not program.users:
                del self._programs[program.name]
            if not self._programs:
                thread, self._thread = self._thread, None
                self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _show(self, line):
        with self._changed:
            while self._thread is threading.current_thread():
                oldest = min(self._programs.values(), key=lambda p: p.start)
                left = oldest.start + _AFTER - time.monotonic()
                if left <= 0:
                    others = len(self._programs) - 1
                    line.show(f"weft: {oldest}{f', and {others} others' if others else ''}")
                self._changed.wait(left if left > 0 else _EVERY)
        line.close()


_display = _Display()


def compilation(name, operations):
    """Called by the core when it begins with a program: None, or what it calls with the operations
    of the modules that XLA is to compile, and with None at the end."""
    place = _place() if config.weft_compile_progress else None
    if place is None:
        return None
    display, program = _display, _display.enter(name, place)

    def tell(modules):
        if modules is None:
            display.leave(program)
        else:
            program.compiles(modules)

    return tell


def shown(compile, name_of):
    """`compile`, of a module, where those who wait see that it is at work."""

    @functools.wraps(compile)
    def compile_shown(module):
        place = _place() if config.weft_compile_progress else None
        if place is None:
            return compile(module)
        name = name_of(module.text)
        block = _BLOCK.match(name)
        display, program = _display, _display.enter(block[1] if block else name, place)
        start = time.monotonic()
        try:
            made = compile(module)
        finally:
            program.done += 1
            display.leave(program)
        _rate.learn(module.survey.operations, time.monotonic() - start)
        return made

    return compile_shown


def _after_fork():
    global _display
    _display = _Display()


os.register_at_fork(after_in_child=_after_fork)


# ---- loops


class _Loop:
    """A loop that tells how many of its iterations are done."""

    def __init__(self, what, total):
        self._what = what
        self._total = total
        self._lock = threading.Lock()
        self._done = total
        self._line = None

    def __call__(self, done):
        now = time.monotonic()
        with self._lock:
            if done <= self._done or self._line is None:  # another run
                place = _place()
                self._line = place and place()
                self._first, self._start, self._shown = int(done), now, now - _LINE_EVERY
            self._done = int(done)
            if self._line is None:
                return
            passed = now - self._start
            text = f"{self._what}: {self._done:,} of {self._total:,}, "
            if self._done >= self._total:
                self._line.close(text + duration(passed))
                self._line = None
            elif passed >= _AFTER and now - self._shown >= _LINE_EVERY:
                self._shown = now
                rest = (self._total - self._done) / max(1, self._done - self._first)
                self._line.show(text + _time_text(passed, passed * rest))


@functools.lru_cache(maxsize=64)
def _loop(what, total):
    return _Loop(what, total)


def loop(what, total):
    """What to call with the number of iterations that are done; None where nobody would see it."""
    return _loop(what, total) if config.weft_loop_progress and _place() else None
