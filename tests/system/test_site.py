"""The documents as a site: the table of contents, links, and the reference of what is public."""

import importlib.util
import runpy
import subprocess
import sys

import pytest
from conftest import ROOT
from public_modules import MODULES

from weft import _absent

sys.path.insert(0, str(ROOT / "tools" / "pages"))

import docstrings
import markdown
import reference

HAS_SPHINX = all(importlib.util.find_spec(n) for n in ("sphinx", "myst_parser", "furo"))


def test_every_page_is_in_the_contents_once():
    pages = markdown.pages()
    assert len(pages) == len({*pages})
    documents = {p for p in markdown.files() if p.startswith("docs/")}
    assert documents - {markdown.INDEX} == {p for p in pages if p.startswith("docs/")}
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"} <= {*pages}
    assert len({markdown.site_name(p) for p in pages}) == len(pages)


@pytest.mark.parametrize("path", markdown.files())
def test_links_lead_somewhere(path):
    assert [*markdown.dead_links(path)] == []


def test_dead_links_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(markdown, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.md").write_text("# A title: `x`, [y](#z)\n\n# Twice\n\n# Twice\n")
    (tmp_path / "a.md").write_text(
        "[1](docs/b.md) [`2`](docs/b.md#a-title-x-y) [3](https://x.y)\n"
        "`[4](no.md)` [5](docs/b.md#twice-1) [6](docs)\n"
        "```\n[7](no.md)\n# Code\n```\n"
        "[8](no.md)\n[9](docs/b.md#no) [10](#code)\n[11](../out.md)\n"
    )
    assert [*markdown.dead_links("a.md")] == [
        (7, "no.md"),
        (8, "docs/b.md#no"),
        (8, "#code"),
        (9, "../out.md"),
    ]


def described():
    """The names that the pages of the reference describe."""
    found = []
    for text in reference.pages().values():
        module = ""
        for line in text.split("\n"):
            kind, _, name = line.strip().removeprefix(".. py:").partition(":: ")
            name = name.partition("(")[0]
            if kind in ("module", "currentmodule"):
                module = name
                found += [name] if kind == "module" else []
            elif line.startswith(".. py:"):
                owner = f"{module}.{name}"
                found.append(owner)
            elif line.startswith("   .. py:"):
                found.append(f"{owner}.{name}")
    return found


def test_every_public_name_is_in_the_reference_once():
    found = described()
    assert len(found) == len({*found})
    names = {f"{module}.{name}" for module in MODULES for name in MODULES[module].__all__}
    assert {*MODULES, *names} <= {*found}


def test_every_name_of_jax_that_is_present_is_in_the_reference():
    found = {*described()}
    support = runpy.run_path(str(ROOT / "tools" / "support"), run_name="support")
    for section, names in _absent.jax_names()[1].items():
        owner = support["owner_of"](section)
        path = section.replace("jax", "weft", 1)
        for name in names:
            # Primitives are in weft.lax too; they are described where the others are.
            home = reference.HOMES.get(id(getattr(owner, name, None)), "")
            there = home.startswith("weft.extend.core.primitives.") or f"{path}.{name}" in found
            assert there or not hasattr(owner, name), f"{path}.{name}"


def test_docstrings_become_descriptions():
    text = """Sums `x`; see docs/random.md.

    Args:
      x, y: arrays*,
        of any shape.
      z: one of
        - this
        - that

    Raises ValueError for *args.

        code(`x`)

    Examples:
      >>> f(1)
      2
    """
    assert "\n".join(docstrings.rest(text)) == "\n".join(
        [
            r"Sums \ ``x``\ ; see \ :doc:`/random`\ .",
            "",
            r"Raises ValueError for \*args.",
            "",
            "::",
            "",
            "   code(`x`)",
            "",
            ":Arguments:",
            r"   - \ ``x``\ , \ ``y``\ : arrays\*, of any shape.",
            "",
            r"   - \ ``z``\ : one of",
            "",
            "     - this",
            "",
            "     - that",
            "",
            "",
            ":Examples:",
            "   >>> f(1)",
            "   2",
            "",
            "",
        ]
    )


@pytest.mark.slow
@pytest.mark.skipif(not HAS_SPHINX, reason="the extra `docs` is not installed")
def test_the_site_builds_without_warnings(tmp_path):
    # In a process of its own: what its packages warn Python of is theirs.
    command = [sys.executable, str(ROOT / "tools" / "site"), str(tmp_path / "site")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Search in the site finds names, and code in prose leads to them.
    index = (tmp_path / "site" / "searchindex.js").read_text()
    assert "searchsorted" in index
    page = (tmp_path / "site" / "coming-from-numpy.html").read_text()
    assert 'href="reference/lax-control-flow.html#weft.lax.cond"' in page
