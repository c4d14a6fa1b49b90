"""Installs what the scripts in this folder need into the environment that runs this file.

usage: install_deps.py EXTRA...

Reads the requirements of pyproject.toml: those of the package, of its build, and of the extras
named; cmake and ninja come from PyPI where the machine has none. A stamp in the environment makes
the second run free.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CMAKE_MIN = (3, 21)


def cmake_is_usable() -> bool:
    if shutil.which("cmake") is None:
        return False
    text = subprocess.run(["cmake", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)\.(\d+)", text)
    return bool(found) and tuple(map(int, found.groups())) >= CMAKE_MIN


def build_requirements(*extras: str) -> list[str]:
    """What building the package needs, and what these extras name."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    out = [*config["build-system"]["requires"]]
    for extra in extras:
        out += config["project"]["optional-dependencies"][extra]
    if not cmake_is_usable():
        out.append("cmake>=" + ".".join(map(str, CMAKE_MIN)))
    if shutil.which("ninja") is None:
        out.append("ninja")
    return sorted(set(out))


def main() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = sorted({*build_requirements(*sys.argv[1:]), *dependencies})
    stamp = Path(sys.prefix) / "weft-deps"
    installed = set(stamp.read_text().split("\n")) if stamp.exists() else set()
    if set(wanted) <= installed:
        return
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *wanted], check=True)
    stamp.write_text("\n".join(sorted(installed | set(wanted))))


if __name__ == "__main__":
    main()
