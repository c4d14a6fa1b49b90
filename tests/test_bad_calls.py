"""Public functions called with arguments that they should not get: the process lives, the errors
are errors of the caller. `bad_calls.py` makes as many such calls as are asked for."""

import sys

import bad_calls
import pytest

import weft
import weft.numpy as wnp
from weft.errors import NestingError


@pytest.mark.skipif(sys.platform != "linux", reason="bounds the memory of a process")
@pytest.mark.parametrize("seed", [1, 2])
def test_no_call_kills_the_process_or_blames_weft(seed):
    findings, returned = bad_calls.run(seed, first=0, calls=500, jobs=1, batch=500)
    assert not findings, "\n".join(findings)
    assert returned > 50


def test_a_batch_that_dies_names_its_call(monkeypatch):
    def run_range(seed, first, last):  # call 13 kills a process in which call 7 was made
        at = 13 if first <= 7 and first <= 13 < last else None
        return at, "dies", [], 0

    monkeypatch.setattr(bad_calls, "run_range", run_range)
    findings, _ = bad_calls.whole_batch(0, 0, 100)
    assert findings == [[13, "process", " after the calls from 7: dies"]]


def _holds_itself(kind):
    out = kind()
    out.append(out) if kind is list else out.update(a=out)
    return out


@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize(
    "call",
    [
        weft.tree_util.tree_leaves,
        weft.tree_util.tree_leaves_with_path,
        lambda tree: weft.tree_util.tree_map(lambda x: x, tree),
        lambda tree: weft.jit(lambda x: 1.0)(tree),
        lambda tree: weft.jit(lambda: tree)(),
        lambda tree: wnp.kron(tree, wnp.ones(3)),
    ],
)
def test_containers_that_hold_themselves(call, kind):
    with pytest.raises(NestingError, match="depth that can be walked"):
        call(_holds_itself(kind))


def test_structures_of_other_objects():
    with pytest.raises(TypeError, match="got Array at position 1"):
        weft.tree_util.treedef_tuple([weft.tree_util.tree_structure(1), wnp.ones(3)])


def test_views_for_updates_are_no_sequences():
    with pytest.raises(TypeError):
        iter(wnp.ones(3).at)
