"""What a terminal shows of compilations that take long: one line, gone when they end.

    weft: compiling train_step, 4.2 s
    weft: compiling train_step (3 blocks done, 2 at work), 4.2 s

Nothing is written unless stderr is a terminal and a compilation has taken a second, and no thread
runs unless something is being compiled.
"""

import contextlib
import os
import re
import sys
import threading
import time

from weft.config import config

_AFTER = 1.0  # seconds until something is shown
_EVERY = 0.2
_BLOCK = re.compile(r"(.+)_block_\d+$")


def _terminal():
    """The stream to write to, or None."""
    if not config.weft_compile_progress or os.environ.get("TERM") == "dumb":
        return None
    try:
        return sys.stderr if sys.stderr.isatty() else None
    except (AttributeError, ValueError):  # there is none, or it is closed
        return None


class _Program:
    """A module, or the blocks of one program."""

    def __init__(self, name):
        self.name = name
        self.start = time.monotonic()
        self.modules = 0  # that are being compiled
        self.done = 0

    def __str__(self):
        blocks = f" ({self.done} blocks done, {self.modules} at work)" if self.done else ""
        return f"{self.name}{blocks}, {time.monotonic() - self.start:.1f} s"


class _Display:
    """The programs that are being compiled, and the thread that shows them."""

    def __init__(self):
        self._changed = threading.Condition()
        self._programs: dict[str, _Program] = {}
        self._thread = None

    @contextlib.contextmanager
    def program(self, name):
        stream = _terminal()
        if stream is None:
            yield
            return
        with self._changed:
            program = self._programs.setdefault(name, _Program(name))
            program.modules += 1
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._show, args=(stream,), name="weft-progress", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            thread = None
            with self._changed:
                program.modules -= 1
                program.done += 1
                if not program.modules:
                    del self._programs[name]
                if not self._programs:
                    thread, self._thread = self._thread, None
                    self._changed.notify_all()
            if thread is not None:
                thread.join()

    def _show(self, stream):
        shown = False
        with self._changed:
            while self._thread is threading.current_thread():
                oldest = min(self._programs.values(), key=lambda p: p.start)
                left = oldest.start + _AFTER - time.monotonic()
                if left <= 0:
                    others = len(self._programs) - 1
                    text = f"weft: compiling {oldest}{f', and {others} others' if others else ''}"
                    shown = _write(stream, f"\r{text}\x1b[K")
                self._changed.wait(left if left > 0 else _EVERY)
        if shown:
            _write(stream, "\r\x1b[K")


def _write(stream, text):
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


_display = _Display()


def compiling(name):
    """A context in which the module of this name is compiled."""
    block = _BLOCK.match(name)
    return _display.program(block[1] if block else name)


def _after_fork():
    global _display
    _display = _Display()


os.register_at_fork(after_in_child=_after_fork)
