"""`weft cache`: the compiled programs that are kept on disk."""

import argparse
import time
from typing import Any

from weft.cli.arguments import add_traceback
from weft.cli.failures import CliError
from weft.config import config
from weft.runtime import disk_cache

EXAMPLES = """\
examples:
  weft cache where           the directory, and what the settings say
  weft cache list            all programs, those used last first
  weft cache list step       those with `step` in their names
  weft cache verify          reads all files; --remove removes those that are damaged
  weft cache clear           removes all programs; `weft cache clear step`: some

The directory is that of $WEFT_CACHE_DIR, of the setting weft_compilation_cache_dir, or weft in
$XDG_CACHE_HOME or ~/.cache."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "cache",
        help="list, verify or clear the compiled programs on disk",
        description="Shows, verifies or clears the directory of compiled programs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("list", "clear", "verify", "where"))
    parser.add_argument(
        "name", nargs="?", default="", help="only programs with this in their names (list, clear)"
    )
    parser.add_argument("--remove", action="store_true", help="verify: remove what is damaged")
    add_traceback(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    if options.name and options.action not in ("list", "clear"):
        raise CliError(f"weft cache {options.action} takes no name; got {options.name!r}")
    if options.remove and options.action != "verify":
        raise CliError("--remove is for weft cache verify")
    try:
        path, _ = disk_cache.location()
        store = disk_cache.Store(path)
        _ACTIONS[options.action](store, options)
    except disk_cache.Unusable as error:
        raise CliError(str(error)) from None


def where(store: disk_cache.Store, options: argparse.Namespace) -> None:
    found = list(store.entries())
    print(store.path)
    print(f"{count(len(found))}, {size(sum(f[1].st_size for f in found))} of {limit()}")
    if not config.weft_enable_compilation_cache or config.weft_compilation_cache_max_size == 0:
        print("off (weft_enable_compilation_cache, weft_compilation_cache_max_size)")


def list_programs(store: disk_cache.Store, options: argparse.Namespace) -> None:
    found = [f for f in store.entries() if options.name in f[2].get("name", "")]
    found.sort(key=lambda f: -f[1].st_mtime)
    width = max((len(f[2].get("name", "?")) for f in found), default=0)
    width = min(width, 40)
    now = time.time()
    for name, status, about, error in found:
        line = f"{name[:12]}  {about.get('name', '?'):{width}}  {size(status.st_size):>9}"
        line += f"  used {age(now - status.st_mtime):>5} ago"
        if error is None:
            line += f"  compiled {age(now - about.get('created', now)):>5} ago"
            line += f" in {about.get('seconds', 0):.2f} s by {about.get('versions', '?')}"
            line += f" for {about.get('devices', '?')}"
        else:
            line += f"  not read: {error}"
        print(line)
    print(f"{count(len(found))}, {size(sum(f[1].st_size for f in found))} of {limit()}")


def verify(store: disk_cache.Store, options: argparse.Namespace) -> None:
    good, bad = 0, []
    for name, _, _, error in store.entries(whole=True):
        if error is None:
            good += 1
        else:
            bad.append(name)
            print(f"{name}: {error}")
    removed = store.clear(set(bad))[0] if options.remove and bad else 0
    print(f"{count(good)} as they were written, {len(bad)} not", end="")
    print(f", {removed} removed" if options.remove else "")
    if len(bad) > removed:
        raise CliError(f"{len(bad) - removed} of {good + len(bad)} files are not to be used")


def clear(store: disk_cache.Store, options: argparse.Namespace) -> None:
    names = None
    if options.name:
        names = {f[0] for f in store.entries() if options.name in f[2].get("name", "")}
    removed, freed = store.clear(names)
    print(f"{count(removed)} removed, {size(freed)}")


_ACTIONS = {"list": list_programs, "clear": clear, "verify": verify, "where": where}


def count(number: int) -> str:
    return f"{number} program{'' if number == 1 else 's'}"


def size(number: float) -> str:
    for unit in ("B", "KB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def limit() -> str:
    most = config.weft_compilation_cache_max_size
    return "any number of bytes" if most < 0 else size(most)


def age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
