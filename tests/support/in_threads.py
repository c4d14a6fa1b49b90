"""Work that threads begin together."""

import threading
from concurrent.futures import ThreadPoolExecutor


def in_threads(work, count=8):
    """Runs work(i) in threads that start together; returns the results."""
    barrier = threading.Barrier(count)

    def start(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))
