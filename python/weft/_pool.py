"""Work on all cores: compilations, in the threads of one pool."""

import collections
import contextlib
import os
import threading
from concurrent.futures import Future

from weft import _core
from weft.runtime.compile import cores


class _Pool:
    """Threads for work that leaves the interpreter's lock, no more than there are cores, which end
    when nothing is left to do. None of them waits for work that no thread has begun.

    They are no daemons: the interpreter waits for what is being compiled, since the compiler must
    not find it gone. What no thread has begun by then is cancelled.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._waiting = collections.deque()
        self._running = 0

    def submit(self, work) -> Future:
        future: Future = Future()
        with self._lock:
            self._waiting.append((future, work))
            starts = self._running < cores()
            self._running += starts
        if starts:
            try:
                threading.Thread(target=self._run, name="weft-compile").start()
            except BaseException:
                with self._lock:
                    self._running -= 1
                    # Another thread of the pool may have it by now.
                    with contextlib.suppress(ValueError):
                        self._waiting.remove((future, work))
                raise
        return future

    def _next(self):
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None, None

    def _run(self):
        while True:
            future, work = self._next()
            if future is None or work is None:
                return
            if not threading.main_thread().is_alive():  # the interpreter ends
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            del future, work
            result = None


_pool = _Pool()


def _after_fork():
    global _pool
    _pool = _Pool()  # the threads are the parent's


os.register_at_fork(after_in_child=_after_fork)


def submit(work) -> Future:
    """What `work()` gives, which a thread of the pool calls under the settings of this one."""
    settings = _core.thread_settings()

    def under_settings():
        _core.use_thread_settings(settings)
        return work()

    return _pool.submit(under_settings)


def in_parallel(work, count):
    """Calls work(0) to work(count - 1), in this thread and in those of the pool that are free.

    After an error, which is raised, nothing else is begun; what other threads have begun goes on.
    """
    numbers = iter(range(count))

    def some():
        for number in numbers:
            try:
                work(number)
            except BaseException:
                list(numbers)  # no thread finds another one
                raise

    others = []
    try:
        with contextlib.suppress(RuntimeError):  # no thread can be had: there is this one
            for _ in range(min(count, cores()) - 1):
                others.append(submit(some))
        some()
    finally:
        begun = [future for future in others if not future.cancel()]
    for future in begun:
        future.result()
