"""Public functions called with arguments that they should not get: the process lives, the errors
are errors of the caller. `bad_calls.py` makes as many such calls as are asked for."""

import subprocess
import sys
from functools import partial

import bad_calls
import pytest

import weft
import weft.numpy as wnp
from weft import tree_util
from weft.errors import NestingError
from weft.test_util import check_grads, check_jvp, check_vjp


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


@pytest.mark.parametrize(
    "words, at, found",
    [
        ("at 3\nat 4\ndone 2\n", None, [4]),
        ('at 3\nfound [3, "KeyError", ""]\nat 4\n', 4, [3]),
    ],
)
def test_a_process_that_ends_badly_is_a_finding(monkeypatch, words, at, found):
    def process(command, **kwargs):  # before its last words, or behind them
        return subprocess.CompletedProcess(command, -6, words)

    monkeypatch.setattr(subprocess, "run", process)
    died_at, _, findings, _ = bad_calls.run_range(0, 3, 5)
    assert died_at == at
    assert [index for index, *_ in findings] == found


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


@tree_util.register_pytree_node_class
class _Endless:
    def tree_flatten(self):
        return [self], None

    @classmethod
    def tree_unflatten(cls, data, children):
        return cls()


def _depth(so_far=0):
    try:
        return _depth(so_far + 1)
    except RecursionError:
        return so_far


def _refuses(*_):
    raise KeyError("as it was told to")


_FLATTEN = [tree_util.tree_flatten, tree_util.tree_flatten_with_path]


@pytest.mark.parametrize("flatten", _FLATTEN)
def test_nodes_that_never_end(flatten):
    before = _depth()
    for _ in range(3):
        with pytest.raises(RecursionError):
            flatten(_Endless())
        with pytest.raises(NestingError):
            flatten(_holds_itself(dict))
    assert _depth() == before


@pytest.mark.parametrize("flatten", _FLATTEN)
def test_errors_from_within_a_tree_take_no_levels_of_recursion(flatten):
    before = _depth()
    for _ in range(300):
        with pytest.raises(KeyError):
            flatten([[[[[{"a": 1.0}]]]]], is_leaf=lambda x: isinstance(x, dict) and _refuses())
    assert _depth() == before


def test_paths_of_deep_trees():
    tree = leaf = []
    for _ in range(300):
        leaf.append([])
        leaf = leaf[0]
    leaf.append(1.0)
    ((path, value),), treedef = tree_util.tree_flatten_with_path(tree)
    assert len(path) == 301 and value == 1.0
    assert treedef == tree_util.tree_structure(tree)


def test_a_seed_is_a_number():
    seed = 0
    for _ in range(200_000):
        seed = [seed]
    for check, *rule in (
        (check_jvp, partial(weft.jvp, wnp.sin)),
        (check_vjp, partial(weft.vjp, wnp.sin)),
        (partial(check_grads, order=1),),
    ):
        with pytest.raises(TypeError, match="integer"):
            check(wnp.sin, *rule, (1.0,), seed=seed)


def test_more_differences_than_elements():
    assert wnp.diff(wnp.arange(3), n=2**63, prepend=1).shape == (0,)


def test_messages_of_errors_that_are_no_text():
    assert weft.errors.ShapeError(range(2**62)).args == (range(2**62),)


@pytest.mark.parametrize("split", [wnp.array_split, wnp.split])
def test_more_pieces_than_there_is_use_for(split):
    with pytest.raises(weft.errors.AttributeValueError, match="at most 65536 pieces"):
        split(wnp.zeros((0, 3)), 2**31)
    assert len(split(wnp.zeros((0, 3)), 3)) == 3
