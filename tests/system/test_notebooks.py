"""What notebooks show of arrays, programs and analyses; and the notebooks of examples/notebooks."""

import html.parser
import json
import subprocess
import sys
import warnings

import pytest
from conftest import ROOT

import weft
import weft.numpy as wnp
from weft import _html

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


class Reader(html.parser.HTMLParser):
    """The text of HTML, whose elements must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(value):
    reader = Reader(value._repr_html_())
    assert not {"script", "b2"} & {*reader.tags}
    return reader.text


def predict(params, x):
    return wnp.tanh(x @ params["<script>"]).sum(axis=1)


predict.__name__ = "<b2>"
PARAMS = {"<script>": wnp.ones((3, 4), "float32")}


@pytest.fixture(scope="module")
def traced():
    return weft.jit(predict).trace(PARAMS, wnp.ones((2, 3), "float32"))


def test_text_is_escaped_and_pieces_are_not():
    piece = _html.element("b", "a < b", ["&", 1], title='"')
    assert piece == '<b title="&quot;">a &lt; b&amp;1</b>'
    assert _html.element("p", piece) == f"<p>{piece}</p>"


def test_long_texts_and_tables_are_cut():
    text = Reader(_html.listing("line\n" * 100_000)).text
    assert len(text) < 21_000 and "480,000 letters more" in text
    rows = _html.table(("n",), [(str(n),) for n in range(1000)])
    reader = Reader(_html.element("div", rows))
    assert reader.tags.count("tr") == 31 and "and 970 more" in reader.text


@pytest.mark.parametrize(
    "array, words",
    [
        (wnp.arange(3), ["int32[3]", "12 B", "[0, 1, 2]"]),
        (wnp.asarray(1.0), ["float32[]", "weak type", "1."]),
        (wnp.zeros((1000, 1000)), ["float32[1000, 1000]", "4 MB", "..."]),
        (wnp.zeros((0, 3)), ["float32[0, 3]", "[]"]),
        (weft.random.key(7), ["key<fry>[]", "[0, 7]"]),
    ],
)
def test_arrays(array, words):
    text = shown(array)
    assert all(word in text for word in words), text
    assert len(text) < 3000


def test_deleted_arrays():
    array = wnp.arange(3) + 1
    array.delete()
    assert "deleted" in shown(array)


def test_traced_values_have_no_html():
    assert weft.jit(lambda x: x * hasattr(x, "_repr_html_"))(2.0) == 0


def test_stages(traced):
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage in (traced, lowered, compiled):
        text = shown(stage)
        assert f"{type(stage).__name__} <b2>" in text
        assert "argument params['<script>']float32[3,4]" in text and "resultfloat32[2]" in text
    assert "stablehlo.add" in shown(lowered)
    assert "temporaries" in shown(compiled) and "flops" in shown(compiled)
    types = "<b2>(float32[3,4], float32[2,3]) -> float32[2]"
    assert repr(traced) == f"<Traced {types}: 3 operations>"
    assert repr(lowered) == f"<Lowered {types}>"
    assert repr(compiled) == f"<Compiled {types}: 3 operations, 72 B in, 8 B out>"


def test_many_arguments_are_counted():
    repeated = weft.jit(lambda xs: xs).lower([1.0] * 50)
    floats = ", ".join(["~float32[]"] * 5)
    assert repr(repeated) == f"<Lowered <lambda>({floats}, and 45 more) -> ({floats}, and 45 more)>"


def test_arguments_after_static_ones_have_their_names():
    @weft.jit(static_argnums=0)
    def scaled(scale, x):
        return scale * x

    compiled = scaled.lower(2, wnp.ones(3)).compile()
    assert "argument xfloat32[3]" in shown(compiled)
    with pytest.raises(TypeError, match="for argument x of 'scaled', as compiled"):
        compiled(wnp.ones(4))


def test_programs(traced):
    for program in (traced.graph, traced.jaxpr, traced.jaxpr.jaxpr):
        text = shown(program)
        assert "(float32[3,4], float32[2,3]) -> float32[2]" in text and "tanh" in text

    def long(x):
        for _ in range(3000):
            x = wnp.sin(x) * x
        return x

    text = shown(weft.make_jaxpr(long)(1.0))
    assert "sin3,000" in text and len(text) < 1000


def test_analyses(traced):
    text = shown(weft.compiler.analyze(traced))
    assert "3 operations" in text and "dot_general148" in text and "test_notebooks.py:" in text


def test_costs_and_memory_print_as_tables_and_are_what_they_were(traced):
    compiled = traced.lower().compile()
    costs = compiled.cost_analysis()
    assert json.loads(json.dumps(costs)) == costs and costs["flops"] > 0
    assert str(costs).split("\n")[0].startswith("bytes accessed")
    assert repr(costs).startswith("{") and "flops" in shown(costs)
    assert type(traced.lower().cost_analysis()) is type(costs)
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 72 and isinstance(memory.temp_size_in_bytes, int)
    rows = [line.rsplit(None, 2) for line in str(memory).split("\n")]
    assert rows[:2] == [["arguments", "72", "B"], ["results", "8", "B"]]
    total = 80 + memory.temp_size_in_bytes + memory.generated_code_size_in_bytes
    assert rows[-1] == ["in all", str(total), "B"]
    assert "results8 B" in shown(memory)


def test_explanations():
    called = weft.jit(predict)
    called(PARAMS, wnp.ones((2, 3)))
    text = shown(called.explain())
    assert text.startswith("<b2>, defined at") and "first call" in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs") and not cell.get("execution_count")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path):
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    kernel = {"metadata": {"path": str(path.parent)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own packages
        nbclient.NotebookClient(notebook, timeout=300, resources=kernel).execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert [
        out for out in outputs if out.output_type == "error" or out.get("name") == "stderr"
    ] == []
    pages = [out.data["text/html"] for out in outputs if "text/html" in out.get("data", ())]
    assert len(pages) >= 4
    for page in pages:
        Reader(page)


IN_A_CELL = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_cell("import weft.numpy as wnp", store_history=True)
done = shell.run_cell("x = wnp.ones(3)\\nx + wnp.ones(4)", store_history=True)
assert str(done.error_in_exec).endswith("at Cell In[2], line 2 (<module>)"), done.error_in_exec
"""


def test_errors_name_the_cell():
    pytest.importorskip("IPython")
    # A shell of IPython changes tracebacks in the whole process.
    done = subprocess.run([sys.executable, "-c", IN_A_CELL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
