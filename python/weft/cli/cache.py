"""`weft cache`: the compiled programs that are kept on disk."""

import argparse
import json
import time
from typing import Any

from weft.cli.arguments import add_json, add_traceback
from weft.cli.failures import CliError
from weft.config import config
from weft.runtime import disk_cache

EXAMPLES = """\
examples:
  weft cache                 the directory, and how much of what it may hold is there
  weft cache sizes           what programs of one name take together, most first
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
    )
    parser.add_argument("action", nargs="?", choices=tuple(ACTIONS), default="where")
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        help="only programs with this in their names (list, sizes, clear)",
    )
    parser.add_argument("--remove", action="store_true", help="verify: remove what is damaged")
    add_json(parser)
    add_traceback(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    if options.name and options.action not in ("list", "sizes", "clear"):
        raise CliError(f"weft cache {options.action} takes no name; got {options.name!r}")
    if options.remove and options.action != "verify":
        raise CliError("--remove is for weft cache verify")
    try:
        path, _ = disk_cache.location()
        store = disk_cache.Store(path)
        facts = ACTIONS[options.action](store, options)
    except disk_cache.Unusable as error:
        raise CliError(str(error)) from None
    if options.json:
        print(json.dumps(facts, indent=1))
    else:
        _SHOWN[options.action](facts)
    if options.action == "verify" and len(facts["damaged"]) > facts["removed"]:
        bad, good = len(facts["damaged"]) - facts["removed"], facts["whole"]
        raise CliError(f"{bad} of {good + len(facts['damaged'])} files are not to be used")


# What each action finds or does, as JSON has it.


def where(store: disk_cache.Store, options: argparse.Namespace) -> dict[str, Any]:
    sizes = [*store.sizes()]
    limit = config.weft_compilation_cache_max_size
    return {
        "path": str(store.path),
        "programs": len(sizes),
        "bytes": sum(sizes),
        "limit": None if limit < 0 else limit,
        "enabled": bool(config.weft_enable_compilation_cache and limit != 0),
    }


def list_programs(store: disk_cache.Store, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Those used last come first; times are seconds since 1970."""
    found = [
        {
            "file": file,
            "name": about.get("name", "?"),
            "bytes": status.st_size,
            "used": status.st_mtime,
            "compiled": about.get("created"),
            "seconds": about.get("seconds"),
            "versions": about.get("versions", "?"),
            "devices": about.get("devices", "?"),
            "error": None if error is None else str(error),
        }
        for file, status, about, error in store.entries()
        if options.name in about.get("name", "")
    ]
    return sorted(found, key=lambda program: -program["used"])


def sizes(store: disk_cache.Store, options: argparse.Namespace) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for program in list_programs(store, options):
        name = program["name"]
        total = found.setdefault(name, {"name": name, "programs": 0, "bytes": 0})
        total["programs"] += 1
        total["bytes"] += program["bytes"]
    return sorted(found.values(), key=lambda total: -total["bytes"])


def verify(store: disk_cache.Store, options: argparse.Namespace) -> dict[str, Any]:
    found = [(file, error) for file, _, _, error in store.entries(whole=True)]
    bad = [{"file": file, "error": str(error)} for file, error in found if error is not None]
    removed = store.clear({each["file"] for each in bad})[0] if options.remove and bad else 0
    return {"whole": len(found) - len(bad), "damaged": bad, "removed": removed}


def clear(store: disk_cache.Store, options: argparse.Namespace) -> dict[str, Any]:
    names = None
    if options.name:
        names = {program["file"] for program in list_programs(store, options)}
    removed, freed = store.clear(names)
    return {"removed": removed, "bytes": freed}


ACTIONS = {"where": where, "list": list_programs, "sizes": sizes, "clear": clear, "verify": verify}


# The same for readers.


def show_where(facts: dict[str, Any]) -> None:
    print(facts["path"])
    print(f"{count(facts['programs'])}, {size(facts['bytes'])} of {limit()}")
    if not facts["enabled"]:
        print("off (weft_enable_compilation_cache, weft_compilation_cache_max_size)")


def show_list(programs: list[dict[str, Any]]) -> None:
    width = min(max((len(program["name"]) for program in programs), default=0), 40)
    now = time.time()
    for program in programs:
        line = f"{program['file'][:12]}  {program['name']:{width}}  {size(program['bytes']):>9}"
        line += f"  used {age(now - program['used']):>5} ago"
        if program["error"] is None:
            line += f"  compiled {age(now - (program['compiled'] or now)):>5} ago"
            line += f" in {program['seconds'] or 0:.2f} s by {program['versions']}"
            line += f" for {program['devices']}"
        else:
            line += f"  not read: {program['error']}"
        print(line)
    show_total(programs, len(programs))


def show_sizes(totals: list[dict[str, Any]]) -> None:
    width = min(max((len(total["name"]) for total in totals), default=0), 40)
    for total in totals:
        print(f"{total['name']:{width}}  {size(total['bytes']):>9}  {count(total['programs'])}")
    show_total(totals, sum(total["programs"] for total in totals))


def show_total(rows: list[dict[str, Any]], programs: int) -> None:
    print(f"{count(programs)}, {size(sum(row['bytes'] for row in rows))} of {limit()}")


def show_verify(facts: dict[str, Any]) -> None:
    for each in facts["damaged"]:
        print(f"{each['file']}: {each['error']}")
    removed = f", {facts['removed']} removed" if facts["removed"] else ""
    print(f"{count(facts['whole'])} as they were written, {len(facts['damaged'])} not{removed}")


def show_clear(facts: dict[str, Any]) -> None:
    print(f"{count(facts['removed'])} removed, {size(facts['bytes'])}")


_SHOWN = {
    "where": show_where,
    "list": show_list,
    "sizes": show_sizes,
    "clear": show_clear,
    "verify": show_verify,
}


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
