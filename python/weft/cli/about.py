"""`weft --version`, and where the C++ library of an installed weft is."""

import argparse
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

from weft import _api
from weft._version import __version__

PACKAGE = Path(__file__).parent.parent
# Where the wheel puts the headers, the library and the CMake package (pyproject.toml).
PATHS = {
    "--cmake-dir": ("_cpp/lib/cmake/weft", "for CMake: -Dweft_DIR=$(python -m weft --cmake-dir)"),
    "--include-dir": ("_cpp/include", "the directory that holds weft/weft.h"),
}


class _Path(argparse.Action):
    def __call__(self, parser, namespace, values, option_string: Any = None):
        path = PACKAGE / PATHS[option_string][0]
        if not path.is_dir():
            parser.error(
                f"{path} is not there: headers and library are part of an installed weft (a wheel, "
                "`pip install .`), not of a checkout"
            )
        print(path)
        parser.exit()


def add_paths(parser: argparse.ArgumentParser) -> None:
    for option, (_, text) in PATHS.items():
        parser.add_argument(option, action=_Path, nargs=0, help=text)


def versions() -> str:
    """One line per part: what a report of a bug should say."""
    lines = [f"weft {__version__}"]
    for name in ("jaxlib", "numpy", "ml_dtypes"):
        try:
            lines.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            lines.append(f"{name} (no version)")
    lines.append(f"Python {platform.python_version()} ({platform.python_implementation()})")
    lines.append(f"platform {platform.platform()}")
    lines += devices()
    return "\n".join(lines)


def devices() -> list[str]:
    try:
        found = _api.devices()
    except Exception as error:
        return [f"devices: {error}"]
    by_platform: dict[str, list] = {}
    for device in found:
        by_platform.setdefault(device.platform, []).append(device)
    return [
        f"{name}: {len(group)} x {group[0].device_kind}, {group[0].client.platform_version}"
        for name, group in by_platform.items()
    ]
