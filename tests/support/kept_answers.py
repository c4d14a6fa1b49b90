"""What jax answered to the questions of the tests, kept in golden/answers_of_jax.xz.

A run asks jax only what the file does not know: a question that is new or was changed; all of them
where another version of jax is installed, or with WEFT_TESTS=all. `tools/oracle` writes the file: a
line of JSON with versions, then for each question a digest and the answer as a literal of Python,
so that the same answers give the same file.
"""

import ast
import functools
import hashlib
import importlib.metadata
import json
import lzma
import os
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "golden" / "answers_of_jax.xz"
WRITING = os.environ.get("WEFT_ORACLE") == "write"

_given = {}  # what jax answered in this process: literals by digest


def answers(how, questions, ask):
    """The answers to a sequence of texts; `ask(some)` puts a list of them to jax.

    `how` is the text of all else that the answers depend on. An answer is made of tuples, lists,
    dicts, texts, bytes, finite numbers, and None.
    """
    digests = [hashlib.sha256(f"{how}\0{q}".encode()).hexdigest()[:16] for q in questions]
    everything = WRITING or os.environ.get("WEFT_TESTS") == "all"
    known = _given if everything else {**_kept(), **_given}
    missing = {d: q for d, q in zip(digests, questions, strict=True) if d not in known}
    asked = ask(list(missing.values())) if missing else []
    new = dict(zip(missing, map(_literal, asked), strict=True))
    _given.update(new)
    if WRITING:
        pytest.skip("jax is asked, weft is not")
    return [ast.literal_eval(new[d] if d in new else known[d]) for d in digests]


def _literal(answer):
    text = repr(answer)
    assert repr(ast.literal_eval(text)) == text, f"not a literal: {text[:500]}"
    return text


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _kept():
    if not FILE.exists():
        return {}
    head, *lines = lzma.decompress(FILE.read_bytes()).decode().splitlines()
    if _version("jax") not in (json.loads(head)["jax"], None):
        return {}
    return dict(line.split(" ", 1) for line in lines)


def write():
    """Writes all that jax was asked in this process."""
    head = json.dumps({package: _version(package) for package in ("jax", "jaxlib", "numpy")})
    lines = (f"{digest} {text}" for digest, text in sorted(_given.items()))
    text = "".join(f"{line}\n" for line in (head, *lines))
    FILE.write_bytes(lzma.compress(text.encode(), preset=9))
