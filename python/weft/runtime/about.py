"""The versions of weft and of what it runs on."""

import importlib.metadata
import platform

from weft._version import __version__
from weft.runtime.devices import devices


def print_environment_info(return_string=False):
    """Prints the versions of weft and of what it runs on, or returns the text: `return_string`.

    Examples:
      >>> "weft" in weft.print_environment_info(return_string=True)
      True
    """
    text = versions()
    if return_string:
        return text
    print(text)
    return None


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
    lines += _device_lines()
    return "\n".join(lines)


def _device_lines() -> list[str]:
    try:
        found = devices()
    except Exception as error:
        return [f"devices: {error}"]
    by_platform: dict[str, list] = {}
    for device in found:
        by_platform.setdefault(device.platform, []).append(device)
    return [
        f"{name}: {len(group)} x {group[0].device_kind}, {group[0].client.platform_version}"
        for name, group in by_platform.items()
    ]
