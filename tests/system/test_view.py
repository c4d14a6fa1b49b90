"""Pages: what `weft.compiler.show` and `weft view` write, as data and in a browser."""

import re

import browser
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft._profiles import _nested
from weft._view.page import data_of
from weft.compiler import show


def data_of_page(path):
    return data_of(path.read_text())


def page_of(tmp_path, function, *args):
    return data_of_page(show(function, *args, path=tmp_path / "page.html"))


class Ops:
    """The operations of a graph of a page: (kind, place, operands) each."""

    def __init__(self, data, number):
        programs = data["programs"]
        graph = self.graph = programs["graphs"][number]
        self.kinds, self.places, self.operands = [], [], []
        flat, first = list(graph["ops"]), len(graph["inputs"])
        while flat:
            kind = programs["kinds"][flat[0]]
            self.kinds.append(kind)
            self.places.append(programs["places"][flat[1]])
            count = kind[3]
            self.operands.append([first - x if x > 0 else x for x in flat[2 : 2 + count]])
            del flat[: 2 + count]
            first += len(kind[4])

    names = property(lambda self: [kind[0] for kind in self.kinds])


def traced_ops(data):
    return Ops(data, data["programs"]["programs"][0])


def two_lines(x, y):
    product = x @ y
    return wnp.sin(product) + 2.0


X = np.ones((3, 4), np.float32)
Y = np.ones((4, 5), np.float32)


def test_operations_and_edges(tmp_path):
    data = page_of(tmp_path, weft.jit(two_lines), X, Y)
    ops = traced_ops(data)
    assert ops.names == ["dot_general", "sin", "add"]
    # Values: two inputs, then a result each. 2.0 is the first literal.
    assert ops.operands == [[0, 1], [2], [3, -1]]
    assert ops.graph["outputs"] == [4]
    assert data["programs"]["literals"] == ["2.0:f32[]"]
    assert data["inputs"] == ["x", "y"]
    types = data["programs"]["types"]
    assert [types[t] for t in ops.graph["inputs"]] == [
        ["f32[3,4]", "f32", 48],
        ["f32[4,5]", "f32", 80],
    ]


def test_lines_and_source(tmp_path):
    data = page_of(tmp_path, weft.jit(two_lines), X, Y)
    first = two_lines.__code__.co_firstlineno
    ops = traced_ops(data)
    assert [place[:3] for place in ops.places] == [
        [__file__, first + k, "two_lines"] for k in (1, 2, 2)
    ]
    [[start, lines]] = data["files"][__file__]
    assert lines[first + 1 - start] == "    product = x @ y"


def test_costs_memory_and_chain(tmp_path):
    data = page_of(tmp_path, weft.jit(two_lines), X, Y)
    ops = traced_ops(data)
    product, sine, add = ops.kinds
    assert product[5:8] == [2 * 3 * 4 * 5, 0, 48 + 80 + 60]
    assert sine[5:8] == [0, 15, 120]
    assert add[5:8] == [15, 0, 120]  # a number is not read
    # x, y and the product; the product and the sine; the sine and the sum.
    assert ops.graph["live"] == [188, 120 - 188, 0]
    assert ops.graph["peak"] == 0
    assert ops.graph["held"] == [0, 1, 2]
    assert ops.graph["critical"] == [0, 1, 1]
    assert ops.graph["chain"] == round(sum(kind[8] for kind in ops.kinds))
    analysis = weft.compiler.analyze(two_lines, X, Y)
    assert data["stages"][0]["analysis"]["flops"] == analysis.flops
    assert data["stages"][0]["analysis"]["peak_bytes"] == analysis.peak_bytes == 188


def test_memory_follows_the_analysis(tmp_path):
    @weft.jit
    def f(x):
        return weft.lax.scan(lambda c, _: (wnp.sin(c @ c), None), x @ x, None, length=7)[0].sum()

    data = page_of(tmp_path, weft.jit(weft.grad(f)), wnp.ones((9, 9)))
    for stage in data["stages"]:
        graph = data["programs"]["graphs"][data["programs"]["programs"][stage["program"]]]
        assert max(np.cumsum(graph["live"])) == stage["analysis"]["peak_bytes"]


def test_graphs_of_loops_and_branches(tmp_path):
    def f(x):
        x = weft.lax.cond(x[0] > 0, wnp.sin, wnp.cos, x)
        return weft.lax.fori_loop(0, 5, lambda _, c: c * 2.0, x)

    data = page_of(tmp_path, weft.jit(f), wnp.ones(3))
    ops = traced_ops(data)
    by_name = {kind[0]: kind for kind in ops.kinds}
    branches = [label for label, _ in by_name["cond"][2]]
    assert branches == ["branches 0", "branches 1"]
    names = [Ops(data, number).names for _, number in by_name["cond"][2]]
    assert [n[-1] for n in names] == ["cos", "sin"]
    [(_, body)] = by_name["scan"][2]
    assert "mul" in Ops(data, body).names
    once = next(k for k in Ops(data, body).kinds if k[0] == "mul")
    assert by_name["scan"][5] >= 5 * once[5]


def test_stages_are_the_pipeline(tmp_path):
    def f(x):
        unused = wnp.cos(x)
        return x * 1.0 + 0 * unused.shape[0]

    data = page_of(tmp_path, weft.jit(f), wnp.ones(3))
    names = [stage["name"] for stage in data["stages"]]
    assert names[: 1 + len(weft.compiler.default_pipeline())] == [
        "traced",
        *weft.compiler.default_pipeline(),
    ]
    assert data["first"] == len(weft.compiler.default_pipeline())
    first = data["stages"][1 + weft.compiler.default_pipeline().index("dce")]
    assert first["changed"]
    assert first["ops"][0] > first["ops"][1]
    last = data["programs"]["programs"][data["stages"][data["first"]]["program"]]
    expected = weft.compiler.optimize(weft.jit(f).trace(wnp.ones(3)))
    assert Ops(data, last).names == expected.op_names()


def test_a_graph_is_in_the_data_once(tmp_path):
    inner = weft.jit(lambda x: wnp.sin(wnp.cos(x)) * x)

    def f(x):
        for _ in range(20):
            x = inner(x)
        return x

    programs = page_of(tmp_path, f, wnp.ones(3))["programs"]
    graph = programs["graphs"][programs["programs"][0]]
    assert len(graph["ops"]) == 3 * 20
    held = [number for kind in programs["kinds"] for _, number in kind[2]]
    assert len(held) == len(set(held)) == 1


@pytest.mark.parametrize("form", ["function", "jaxpr", "graph", "traced", "lowered", "compiled"])
def test_what_may_be_shown(tmp_path, form):
    jitted = weft.jit(two_lines)
    program = {
        "function": lambda: two_lines,
        "jaxpr": lambda: weft.make_jaxpr(two_lines)(X, Y),
        "graph": lambda: weft.make_jaxpr(two_lines)(X, Y).graph,
        "traced": lambda: jitted.trace(X, Y),
        "lowered": lambda: jitted.lower(X, Y),
        "compiled": lambda: jitted.lower(X, Y).compile(),
    }[form]()
    data = page_of(tmp_path, program, *((X, Y) if form == "function" else ()))
    assert traced_ops(data).names == ["dot_general", "sin", "add"]
    assert bool(data["facts"]) == (form == "compiled")


def test_what_may_not(tmp_path):
    with pytest.raises(weft.errors.ArgumentTypeError, match="show expected a graph"):
        show(3, path=tmp_path / "page.html")


def test_loops_blocks_and_kernels_say_why(tmp_path):
    def f(x):
        for _ in range(300):
            x = wnp.tanh(x @ x)
        return x

    data = page_of(tmp_path, weft.jit(f), wnp.ones((16, 16)))
    parts = {part["title"].split()[0]: part for part in data["compiled"]}
    assert parts["Loops"]["rows"][0]["cells"][0] == 600
    assert "became loops" in parts["Loops"]["why"]
    assert "roll, pack" in [stage["name"] for stage in data["stages"]]
    unrolled = page_of(tmp_path, weft.jit(f, compile="unrolled"), wnp.ones((16, 16)))
    assert "compile='unrolled'" in unrolled["compiled"][1]["why"]
    blocks = page_of(tmp_path, weft.jit(f, compile="blocks"), wnp.ones((16, 16)))
    [*_, part] = [p for p in blocks["compiled"] if p["title"] == "Blocks"]
    assert part["rows"]
    stage = blocks["stages"][part["rows"][0]["stage"]]
    assert stage["hidden"]
    assert stage["name"] == "block 0"


def test_the_page_needs_nothing_else(tmp_path):
    path = show(weft.jit(two_lines), X, Y, path=tmp_path / "page.html")
    text = path.read_text()
    known = {"http://www.w3.org/2000/svg"}  # names the elements of pictures; nobody fetches it
    assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= known
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=\"(?!data:,)", text)
    assert "@import" not in text
    assert "url(" not in text
    assert len(text) < 200_000


def repeated(times):
    def f(x):
        for _ in range(times):
            x = wnp.sin(x) * 2.0
        return x

    return weft.jit(f)


def test_a_large_program_is_a_small_page(tmp_path):
    path = show(repeated(5000), wnp.ones(3), path=tmp_path / "page.html")
    assert path.stat().st_size < 300_000
    assert traced_ops(data_of_page(path)).names.count("sin") == 5000


@pytest.mark.parametrize(("times", "kept"), [(10, 3), (40_000, 2)])
def test_of_a_very_large_program_first_and_last_are_kept(tmp_path, times, kept):
    def f(x):
        for _ in range(times):
            wnp.cos(x)  # goes in dce
            x = wnp.sin(x) / 1.0  # becomes sin(x) in canonicalize
        return x

    path = show(weft.jit(f), wnp.ones(3), path=tmp_path / "page.html")
    assert path.stat().st_size < 300_000
    data = data_of_page(path)
    assert len(data["stages"]) >= 1 + len(weft.compiler.default_pipeline())
    assert len({stage["program"] for stage in data["stages"][: data["first"] + 1]}) == kept
    assert data["stages"][data["first"]]["ops"][1] == times


def test_where_it_is_written_by_default():
    path = show(weft.jit(two_lines), X, Y)
    assert path.name == "two_lines.html"
    assert path.read_text().startswith("<!doctype html>")


# ---- Profiles


def matrices(x):
    product = x @ x
    return weft.lax.fori_loop(0, 4, lambda _, c: wnp.sin(c @ x), product)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    f, x = weft.jit(matrices, kernels="never"), wnp.ones((200, 200)) / 200
    f(x).block_until_ready()
    with weft.profiler.trace(folder):
        for _ in range(3):
            f(x).block_until_ready()
    return folder


def test_time_by_line_and_operation(profiled):
    summary = weft.profiler.summary(profiled)
    first = matrices.__code__.co_firstlineno
    numbers = {line: share.number for line, share in summary.by_line.items()}
    assert numbers[f"{__file__}:{first + 1} (matrices)"] == 3
    inside = f"{__file__}:{first + 2} (<lambda>)"
    assert numbers[inside] >= 3 * 4 * 2  # products and sines
    for rows in (summary.by_line, summary.by_op):
        values = [share.value for share in rows.values()]
        assert values == sorted(values, reverse=True)
        assert sum(values) == pytest.approx(summary.total)
    assert re.search(rf"^  test_view.py:{first + 2} \(<lambda>\) .* %", str(summary), re.MULTILINE)
    (file,) = profiled.glob("**/*.xplane.pb")
    assert weft.profiler.summary(file).total == summary.total


def test_operations_take_what_those_within_them_leave():
    events = [(12, 1, "f", "c"), (1, 3, "f", "a"), (0, 10, "f", "while"), (5, 4, "f", "b")]
    assert list(_nested(events)) == [
        ("f", ["while", "a"], 3),
        ("f", ["while", "b"], 4),
        ("f", ["while"], 3),
        ("f", ["c"], 1),
    ]


def test_flames_are_in_one_another(profiled, tmp_path):
    data = data_of_page(weft.profiler.summary(profiled).show(tmp_path / "flames.html"))

    def check(node):
        inside = sum(child["value"] for child in node["children"])
        assert node["value"] >= inside * (1 - 1e-9)
        for child in node["children"]:
            check(child)

    check(data["flame"])
    [program] = data["flame"]["children"]
    assert program["name"] == "jit_matrices"
    line = matrices.__code__.co_firstlineno + 2
    [loop] = [n for n in program["children"] if n["name"] == f"test_view.py:{line} (matrices)"]
    [whole] = [n for n in loop["children"] if n["children"]]
    assert f"test_view.py:{line} (<lambda>)" in [n["name"] for n in whole["children"]]


def test_no_profile(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected a folder that trace .* has none"):
        weft.profiler.summary(tmp_path)


def test_memory_of_arrays():
    before = weft.profiler.memory_summary().total
    held = wnp.ones((321, 123))
    summary = weft.profiler.memory_summary()
    assert summary.total - before == held.nbytes
    assert summary.by_type["float32[321,123]"] == (held.nbytes, 1)
    assert "float32[321,123]" in str(summary)


# ---- In a browser


@pytest.fixture(scope="module")
def chromium():
    if not browser.is_there():
        pytest.skip("chromium and chromedriver are not installed")
    with browser.Browser() as opened:
        yield opened


def loop_and_call(x):
    def body(c, _):
        return wnp.tanh(c @ c), None

    return weft.lax.scan(body, x, None, length=9)[0].sum()


def count(chromium, selector):
    return chromium.run("return document.querySelectorAll(arguments[0]).length", selector)


def test_pages_in_a_browser(tmp_path, chromium):
    path = show(weft.jit(weft.grad(loop_and_call)), wnp.ones((4, 4)), path=tmp_path / "page.html")
    chromium.open(path.as_uri())
    assert count(chromium, ".node") > 5
    ids = chromium.run("return [...document.querySelectorAll('[data-id]')].map(e => e.dataset.id)")
    assert len(ids) == len(set(ids))

    chromium.run("weft.picture.foldAll()")
    folded = count(chromium, ".node")
    scan = chromium.run(
        "return [...document.querySelectorAll('.node')]"
        ".find((e) => e.textContent.startsWith('scan')).dataset.id"
    )
    chromium.click(f'[data-id="{scan}"] .chevron')
    assert count(chromium, ".node") > folded
    chromium.click(f'[data-id="{scan}"] .chevron')
    assert count(chromium, ".node") == folded

    chromium.type("#search", "tanh")
    assert "1 operation for" in chromium.run("return document.querySelector('.found').textContent")
    assert count(chromium, ".node.marked") == 1  # the scan that holds it
    chromium.type("#search", "\ue007")  # enter: to the first one found
    assert chromium.run("return document.querySelector('.node.selected').textContent").startswith(
        "tanh"
    )
    line = loop_and_call.__code__.co_firstlineno + 2
    assert chromium.run("return document.querySelector('.line.on').dataset.line") == str(line)
    chromium.run("document.querySelector('.line.on').click()")
    assert count(chromium, ".node.marked") >= 2  # tanh and the product

    assert chromium.run("return document.querySelector('.line.on').dataset.line") == str(line)
    for tab in ("text", "cost", "chain", "memory", "passes", "compiled", "graph"):
        chromium.click(f"#tab-{tab}")
    for stage in range(len(chromium.run("return weft.page.stages"))):
        chromium.run("weft.show(arguments[0])", stage)
        assert count(chromium, ".node")
    assert chromium.screenshot().startswith(b"\x89PNG")
    assert chromium.messages() == []


def test_flames_in_a_browser(profiled, tmp_path, chromium):
    chromium.open(weft.profiler.summary(profiled).show(tmp_path / "flames.html").as_uri())
    all_of_it = count(chromium, ".flame")
    assert all_of_it > 5
    chromium.type("#search", "lambda")
    assert 0 < count(chromium, ".flame.found") < all_of_it
    chromium.run("document.querySelector('.flame.found').dispatchEvent(new Event('click'))")
    assert "›" in chromium.run("return document.querySelector('.crumbs').textContent")
    assert count(chromium, ".flame") < all_of_it
    assert chromium.messages() == []


def test_many_operations_in_a_browser(tmp_path, chromium):
    path = show(repeated(60_000), wnp.ones(3), path=tmp_path / "page.html")
    chromium.open(path.as_uri())
    assert 0 < count(chromium, ".node") < 200  # groups of groups
    for _ in range(2):
        opened = chromium.run(
            "const { flat, open } = weft.picture;"
            "const folded = flat.filter((s) => s.holds && !open.has(s.id));"
            "const inner = folded.reduce((a, b) => (b.depth > a.depth ? b : a));"
            "weft.picture.toggle(inner.id);"
            "return weft.picture.open.has(inner.id)"
        )
        assert opened
    found = chromium.run("weft.search('sin'); return document.querySelector('.details').innerText")
    assert found.startswith("60,000 operations")
    chromium.run("weft.goTo(59999)")
    assert chromium.run("return document.querySelector('.node.selected').textContent").startswith(
        "sin"
    )
    chromium.click("#tab-text")
    assert 0 < count(chromium, ".row") < 200
    assert chromium.messages() == []
