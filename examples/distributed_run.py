"""Runs a program in several processes of this machine, which form one group of weft.

usage: distributed_run.py [-n PROCESSES] [PROGRAM ARGUMENT...]

Without a program it runs distributed_training.py, which stands beside it. Every line that a process
prints is shown with the number of the process. When one fails, the others are told so by weft and
end by themselves; what has not ended a while later is killed. The status is 0 if all processes
succeeded.
"""

import argparse
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

PATIENCE = 60.0  # seconds that the others have after the first failure


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def show(number: int, stream: IO[str]) -> None:
    for line in stream:
        print(f"[{number}] {line}", end="", flush=True)


def start(command: list[str], number: int, count: int, address: str) -> "subprocess.Popen[str]":
    variables = {
        "WEFT_COORDINATOR_ADDRESS": address,
        "WEFT_NUM_PROCESSES": str(count),
        "WEFT_PROCESS_ID": str(number),
    }
    return subprocess.Popen(
        [sys.executable, "-u", *command],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a program in several processes.")
    parser.add_argument("-n", type=int, default=2, help="how many processes (default: 2)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="program and its arguments")
    options = parser.parse_args()
    command = options.command or [str(Path(__file__).with_name("distributed_training.py"))]
    address = free_address()
    running = [start(command, i, options.n, address) for i in range(options.n)]
    readers = [
        threading.Thread(target=show, args=(i, process.stdout)) for i, process in enumerate(running)
    ]
    for reader in readers:
        reader.start()
    failed_at = None
    try:
        while any(process.poll() is None for process in running):
            if failed_at is None and any(process.poll() for process in running):
                failed_at = time.monotonic()
            if failed_at is not None and time.monotonic() > failed_at + PATIENCE:
                break
            time.sleep(0.05)
    finally:
        for process in running:
            process.kill()
            process.wait()
    for reader in readers:
        reader.join()
    for i, process in enumerate(running):
        if process.returncode:
            print(f"process {i} ended with status {process.returncode}", file=sys.stderr)
    return int(any(process.returncode for process in running))


if __name__ == "__main__":
    sys.exit(main())
