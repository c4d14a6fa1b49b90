"""What is asked of jax, and what is taken from the file of its answers."""

import importlib.metadata

import kept_answers
import pytest


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Answers to texts; `ask.asked` are those that it was given. The file is one of its own."""
    monkeypatch.setattr(kept_answers, "FILE", tmp_path / "answers.xz")
    monkeypatch.delenv("WEFT_TESTS", raising=False)

    def ask(questions):
        ask.asked += questions
        return [{"text": (q, b"\0", [1.5, None])} for q in questions]

    ask.asked = []
    yield ask
    kept_answers._kept.cache_clear()


@pytest.fixture
def new_process(monkeypatch):
    def new_process():
        monkeypatch.setattr(kept_answers, "_given", {})
        kept_answers._kept.cache_clear()

    new_process()
    return new_process


def test_only_what_is_not_known_is_asked(ask, new_process):
    first = kept_answers.answers("how", ["b", "a"], ask)
    kept_answers.write()
    for how, question, is_asked in (("how", "a", 0), ("how", "c", 1), ("other", "a", 1)):
        new_process()
        ask.asked.clear()
        answer = kept_answers.answers(how, [question], ask)
        assert len(ask.asked) == is_asked and answer == ask([question])
    assert first == ask(["b", "a"])


def test_the_same_answers_make_the_same_file(ask, new_process):
    files = []
    for questions in (["b", "a"], ["a", "b"]):
        new_process()
        kept_answers.answers("how", questions, ask)
        kept_answers.write()
        files.append(kept_answers.FILE.read_bytes())
        kept_answers.FILE.unlink()
    assert files[0] == files[1]


@pytest.mark.parametrize("change", ["version", "everything"])
def test_all_is_asked_of_another_jax_and_where_everything_is_run(
    change, ask, new_process, monkeypatch
):
    kept_answers.answers("how", ["a", "b"], ask)
    kept_answers.write()
    new_process()
    ask.asked.clear()
    if change == "version":
        monkeypatch.setattr(importlib.metadata, "version", lambda package: "0.0")
    else:
        monkeypatch.setenv("WEFT_TESTS", "all")
    kept_answers.answers("how", ["a", "b"], ask)
    assert ask.asked == ["a", "b"]


def test_an_answer_that_is_not_a_literal_is_refused(ask, new_process):
    for answer in (float("nan"), object(), 1 + float("inf") * 1j):
        with pytest.raises((AssertionError, ValueError, SyntaxError)):
            kept_answers.answers("how", ["a"], lambda questions, answer=answer: [answer])
