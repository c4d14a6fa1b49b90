"""Text tests of passes and emission: program in, expected text out.

Each .ir file holds a line `// RUN: <weft-opt options>` and sections separated by `// ---`:
input, expected, input, expected, ... Other lines that start with `//` are comments. What is
expected is what weft-opt prints, or its error message where it is to fail.

A file named after a rewrite must make that rewrite fire, and every rewrite must have such a file.
Beyond what is written in the files, every program is checked for this: the default pipeline leaves
its own result alone, and what is emitted, before and after it, is valid StableHLO (if jaxlib is
there to ask).

    python tests/ir/run.py --opt build/weft-opt [--update] [file.ir ...]
"""

import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).parent
SEPARATOR = "// ---"


class Case:
    """One input of a file and what weft-opt is expected to print for it."""

    def __init__(self, source: str, expected: str):
        self.source = source
        self.expected = expected.strip()

    def program(self) -> str:
        lines = self.source.splitlines()
        return "\n".join(line for line in lines if not line.startswith("//"))


class TestFile:
    def __init__(self, path: pathlib.Path):
        self.path = path
        sections = [[]]
        for line in path.read_text().splitlines():
            if line.strip() == SEPARATOR:
                sections.append([])
            else:
                sections[-1].append(line)
        texts = ["\n".join(lines) for lines in sections]
        run = re.search(r"^// RUN:(.*)$", texts[0], re.MULTILINE)
        if run is None:
            raise ValueError(f"{path.name}: expected a line '// RUN: <options>'")
        self.options = shlex.split(run.group(1))
        if len(texts) % 2:
            texts.append("")
        self.cases = [Case(*texts[i : i + 2]) for i in range(0, len(texts), 2)]

    def rewrite(self) -> None:
        parts = [part for c in self.cases for part in (c.source.strip(), c.expected)]
        self.path.write_text(f"\n{SEPARATOR}\n".join(parts) + "\n")


class WeftOpt:
    def __init__(self, path: str):
        self.path = path

    def __call__(self, program: str, *options: str) -> subprocess.CompletedProcess:
        command = [self.path, *options]
        return subprocess.run(command, input=program, capture_output=True, text=True)

    def rewrites(self) -> set[str]:
        listed = self("", "--list-rewrites")
        return {line.split()[0] for line in listed.stdout.splitlines()}


def run_case(weft_opt: WeftOpt, options: list[str], case: Case) -> tuple[str, set[str]]:
    """The text that weft-opt prints, and the names of the rewrites that fired."""
    done = weft_opt(case.program(), "--verify", "--stats", *options)
    if done.returncode != 0:
        return done.stderr.strip(), set()
    fired = re.findall(r"^ +\d+  ([\w-]+)$", done.stderr, re.MULTILINE)
    return done.stdout.strip(), set(fired)


def check_pipeline(weft_opt: WeftOpt, program: str, check_module) -> str:
    """What is wrong with the default pipeline or the emission of a valid program."""
    if weft_opt(program).returncode != 0:
        return ""
    once = weft_opt(program, "--default", "--verify")
    twice = weft_opt(once.stdout, "--default", "--verify")
    if once.returncode or twice.returncode:
        return once.stderr + twice.stderr
    if once.stdout != twice.stdout:
        return "the default pipeline changes its own result\n" + diff(once.stdout, twice.stdout)
    for options in ["--locations"], ["--default"]:
        emitted = weft_opt(program, "--emit=stablehlo", *options)
        if emitted.returncode == 0 and (error := check_module(emitted.stdout)):
            return f"invalid StableHLO with {options[0]}: {error}\n{emitted.stdout}"
    return ""


def make_module_check():
    """A function that says what is wrong with a StableHLO module; without jaxlib, nothing."""
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, sdy, stablehlo
    except ImportError:
        print("jaxlib is not installed: emitted modules are not verified")
        return lambda text: ""
    one_at_a_time = threading.Lock()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    sdy.register_dialect(context)

    def check(text: str) -> str:
        try:
            with one_at_a_time:
                return "" if ir.Module.parse(text, context).operation.verify() else "not verified"
        except ir.MLIRError as error:
            return str(error)

    return check


def diff(expected: str, actual: str) -> str:
    lines = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm=""
    )
    return "\n".join(lines)


def check_file(
    path: pathlib.Path, weft_opt: WeftOpt, check_module, rewrites: set[str], update: bool
) -> list[tuple[str, str]]:
    """The name of each check of a file, and what is wrong: nothing where it passes."""
    test = TestFile(path)
    checks = []
    fired_in_file = set()
    for number, case in enumerate(test.cases, 1):
        actual, fired = run_case(weft_opt, test.options, case)
        fired_in_file |= fired
        if update:
            case.expected = actual
        wrong = diff(case.expected, actual)
        wrong = wrong or check_pipeline(weft_opt, case.program(), check_module)
        checks.append((f"{path.name}:{number}", wrong))
    if path.stem in rewrites:
        missed = path.stem not in fired_in_file
        checks.append((path.name, f"the rewrite {path.stem} did not fire" if missed else ""))
    if update:
        test.rewrite()
    return checks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--opt", required=True, help="path of weft-opt")
    parser.add_argument("--update", action="store_true", help="rewrite the expectations")
    args = parser.parse_args()

    weft_opt = WeftOpt(args.opt)
    check_module = make_module_check()
    rewrites = weft_opt.rewrites()
    files = args.files or sorted(HERE.glob("*.ir"))
    failures = []
    passed = 0

    def count(name: str, failure: str) -> None:
        nonlocal passed
        if failure:
            failures.append(name)
            print(f"FAILED {name}\n{failure}\n")
        else:
            passed += 1

    # The time is that of weft-opt, in processes of its own.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        checks = [
            pool.submit(check_file, path, weft_opt, check_module, rewrites, args.update)
            for path in files
        ]
        for check in checks:
            for name, failure in check.result():
                count(name, failure)
    if not args.files:
        for name in sorted(rewrites - {path.stem for path in files}):
            count(name, f"expected a file {name}.ir for this rewrite")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
