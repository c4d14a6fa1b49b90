"""`weft --version`, and where the C++ library of an installed weft is."""

import argparse
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent.parent
# Where the wheel puts the headers, the library and the CMake package (pyproject.toml).
PATHS = {
    "--cmake-dir": ("_cpp/lib/cmake/weft", "for CMake: -Dweft_DIR=$(python -m weft --cmake-dir)"),
    "--include-dir": ("_cpp/include", "the directory that holds weft/weft.h and weft/c_api.h"),
    "--lib-dir": ("_cpp/lib", "the directory that holds libweft.so, the C API, and libweft.a"),
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
