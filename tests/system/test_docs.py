"""The Python code in the documents runs, and gives what it says.

The blocks of a document are one program. A line `expression  # -> text` shows what it gives.
"""

import ast
import re
import subprocess
import sys

import pytest
from conftest import ROOT

DOCUMENTS = [
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if "```python" in path.read_text()
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"#\s*->\s*(.*)$")


def program(text):
    """The blocks of a document, each on the lines where it stands there."""
    code = ""
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        code += "\n" * (start - code.count("\n")) + block[1]
    return code


def run(code, name):
    lines = code.split("\n")
    names = {"__name__": name}
    for node in ast.parse(code).body:
        shown = SHOWN.search(lines[node.end_lineno - 1])
        if shown and isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), name, "eval"), names)
            assert str(value) == shown[1], f"{name}:{node.lineno}: {value}, not {shown[1]}"
        else:
            assert not shown, f"{name}:{node.lineno}: a statement has no value to show"
            exec(compile(ast.Module([node], []), name, "exec"), names)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_code_runs(name):
    code = program((ROOT / name).read_text())
    if "import weft.as_jax" not in code:
        run(code, name)
        return
    # It decides what `import jax` gives in the whole process.
    alone = subprocess.run([sys.executable, __file__, name], check=False, capture_output=True)
    assert alone.returncode == 0, alone.stderr.decode()


PATH = re.compile(r"`((?:src|csrc|run|capi|python|tests|tools|examples)/[\w./-]+)`")
OF_RECIPES = {  # files that a reader of CONTRIBUTING.md adds
    "python/weft/scipy/stats/rayleigh.py",
    "src/passes/drop_barriers.cpp",
    "tests/ir/drop_barrier.ir",
}


def test_files_that_documents_name_are_there():
    folders = [ROOT, *(ROOT / name for name in ("docs", "src", "csrc", "tests", "run", "tools"))]
    named = {
        (path.name, name)
        for folder in folders
        for path in folder.glob("*.md")
        for name in PATH.findall(path.read_text())
        if name not in OF_RECIPES and not (ROOT / name).exists()
    }
    assert not named


def test_figures_of_performance_are_measured_ones():
    def figures(text):
        return set(re.findall(r"\d+(?:\.\d+)?", text))

    text = (ROOT / "docs" / "performance.md").read_text()
    tables = "\n".join(re.findall(r"^\|.*\d.*\|$", text, re.MULTILINE))
    sources = ("tools/bench/README.md", "docs/small_programs.md")
    measured = set().union(*(figures((ROOT / name).read_text()) for name in sources))
    assert len(figures(tables)) > 30
    assert figures(tables) <= measured


def test_every_block_is_found():
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        assert text.count("```python") == len(BLOCK.findall(text)), name


def test_a_wrong_value_is_found():
    run("x = 1\nx + 1  # -> 2", "right")
    with pytest.raises(AssertionError, match="wrong:2: 2, not 3"):
        run("x = 1\nx + 1  # -> 3", "wrong")


if __name__ == "__main__":
    run(program((ROOT / sys.argv[1]).read_text()), sys.argv[1])
