"""Things that code can read while it is traced, for modules that are made of them at random.

A Thing has a source with `$` for its own name and `{v}` for what an edit changes, and an expression
that reads it, a number or array. `files` are modules beside it, in the same package.
"""

import textwrap
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Thing:
    name: str
    source: str
    read: str
    values: tuple = ("2.0", "7.0")
    files: dict = field(default_factory=dict)
    is_known: bool = True  # whether its trace may be stored
    in_place: str = ""  # changes it without its source, if that can be

    def text(self, own, value):
        return self._filled(self.source, own, value)

    def _filled(self, text, own, value):
        return textwrap.dedent(text).replace("{v}", value).replace("$", own)

    def reading(self, own):
        return self.read.replace("$", own)

    def file_texts(self, own, value):
        return {
            name.replace("$", own): self._filled(text, own, value)
            for name, text in self.files.items()
        }

    def change(self, own, value):
        """What changes it in its process: its source again, or what does so in place."""
        return self._filled(self.in_place or self.source, own, value)


def swap(name, source, read, before, after, **more):
    return Thing(name, source, read, (before, after), **more)


THINGS = [
    Thing("global", "$ = {v}", "$"),
    Thing("builtin", "$ = 1\nif {v} > 3: abs = lambda y: y * {v}", "abs(-3.0)"),
    Thing("closure", "def $_make(s):\n  def g(): return s\n  return g\n$ = $_make({v})", "$()"),
    Thing("default", "def $(s={v}): return s", "$()", in_place="$.__defaults__ = ({v},)"),
    Thing("keyword default", "def $(*, s={v}): return s", "$()"),
    Thing(
        "code of a function",
        "def $(): return {v}",
        "$()",
        in_place="$.__code__ = (lambda: {v}).__code__",
    ),
    Thing("attribute of a function", "def $(): pass\n$.scale = {v}", "$.scale"),
    Thing("annotation", "def $(y: {v}): pass", "$.__annotations__['y']"),
    Thing("annotations of a class", "class $:\n  y: {v}", "$.__annotations__['y']"),
    Thing("docstring", "def $():\n  '''{v}'''", "float($.__doc__)"),
    Thing("name", "def $(): pass\n$.__name__ = '{v}'", "float($.__name__)"),
    Thing("class", "class $:\n  scale = {v}", "$.scale", in_place="$.scale = {v}"),
    Thing("dunder of a class", "class $:\n  __scale__ = {v}", "$.__scale__"),
    Thing("inherited", "class $_b:\n  scale = {v}\nclass $($_b): pass", "$.scale"),
    Thing(
        "super",
        """
        class $_b:
            def m(self): return {v}
        class $_c($_b):
            def m(self): return super().m() + 1
        $ = $_c()
        """,
        "$.m()",
    ),
    Thing("instance", "class $_c: pass\n$ = $_c()\n$.scale = {v}", "$.scale"),
    Thing("slots", "class $_c: __slots__ = ('s',)\n$ = $_c()\n$.s = {v}", "$.s"),
    Thing("property", "class $_c:\n  @property\n  def s(self): return {v}\n$ = $_c()", "$.s"),
    Thing(
        "metaclass",
        "class $_m(type):\n  @property\n  def s(c): return {v}\nclass $(metaclass=$_m): pass",
        "$.s",
    ),
    Thing("dunder getattr", "class $_c:\n  def __getattr__(self, n): return {v}\n$ = $_c()", "$.q"),
    Thing("call", "class $_c:\n  def __call__(self): return {v}\n$ = $_c()", "$()"),
    Thing(
        "bound method", "class $_c:\n  s = {v}\n  def m(self): return self.s\n$ = $_c().m", "$()"
    ),
    Thing("static method", "class $:\n  @staticmethod\n  def m(): return {v}", "$.m()"),
    Thing("class method", "class $:\n  @classmethod\n  def m(c): return {v}", "$.m()"),
    Thing("method put in", "class $: pass\n$.m = lambda self: {v}", "$().m()"),
    Thing("class made at once", "$ = type('$', (), dict(s={v}))", "$.s"),
    Thing(
        "descriptor",
        "class $_d:\n  def __get__(self, o, t): return {v}\nclass $:\n  s = $_d()",
        "$.s",
    ),
    Thing(
        "cached property",
        "class $:\n  @functools.cached_property\n  def s(self): return {v}",
        "$().s",
    ),
    Thing(
        "init subclass",
        "class $_b:\n  def __init_subclass__(c): c.s = {v}\nclass $($_b): pass",
        "$.s",
    ),
    Thing("enum", "class $(enum.Enum):\n  A = {v}", "$.A.value"),
    Thing("enum by value", "class $(enum.Enum):\n  A = {v}\n  B = 1", "list($)[0].value"),
    Thing(
        "property of an enum",
        "class $_e(enum.Enum):\n  A = 1\n  @property\n  def s(self): return {v}\n$ = $_e.A",
        "$.s",
    ),
    swap(
        "member of an enum",
        "class $_e(enum.IntEnum):\n  A = 1\n  B = 2\n$ = $_e.{v}",
        "$ * 3",
        "A",
        "B",
    ),
    Thing("flags", "class $(enum.Flag):\n  A = int({v})", "$.A.value"),
    Thing("dataclass", "@dataclasses.dataclass\nclass $_c:\n  s: float = {v}\n$ = $_c()", "$.s"),
    Thing(
        "metadata of a field",
        "@dataclasses.dataclass\nclass $:\n"
        "  s: float = dataclasses.field(default=1.0, metadata=dict(m={v}))",
        "dataclasses.fields($)[0].metadata['m']",
    ),
    Thing(
        "type of a field",
        "@dataclasses.dataclass\nclass $:\n  s: {v} = 1.0",
        "dataclasses.fields($)[0].type",
    ),
    Thing(
        "factory of a field",
        "@dataclasses.dataclass\nclass $:\n"
        "  s: list = dataclasses.field(default_factory=lambda: [{v}])",
        "$().s[0]",
    ),
    Thing(
        "frozen dataclass",
        "@dataclasses.dataclass(frozen=True, slots=True)\nclass $_c:\n  s: float\n$ = $_c({v})",
        "$.s",
    ),
    Thing("named tuple", "$ = collections.namedtuple('$', 'a b')(1, {v})", "$.b"),
    Thing("typed named tuple", "class $_c(typing.NamedTuple):\n  s: float = {v}\n$ = $_c()", "$.s"),
    swap(
        "order of a dict",
        "$ = {v}",
        "list($.values())[0]",
        "dict(a=2.0, b=7.0)",
        "dict(b=7.0, a=2.0)",
    ),
    swap("order of a set", "$ = {v}", "list($)[0]", "{1, 9}", "{9, 1}"),
    Thing(
        "nested dict", "$ = {'a': {'b': [{v}]}}", "$['a']['b'][0]", in_place="$['a']['b'][0] = {v}"
    ),
    Thing("list", "$ = [1.0, {v}]", "$[1]", in_place="$[1] = {v}"),
    Thing("ordered dict", "$ = collections.OrderedDict(a={v})", "$['a']"),
    Thing("default dict", "$ = collections.defaultdict(lambda: {v})", "$.copy()['a']"),
    Thing("subclass of a dict", "class $_c(dict): pass\n$ = $_c(a={v})", "$['a']"),
    Thing("subclass of a number", "class $_c(float): pass\n$ = $_c({v})", "$ * 1"),
    Thing("deque", "$ = collections.deque([{v}])", "$[0]"),
    Thing("namespace", "$ = types.SimpleNamespace(s={v})", "$.s"),
    Thing("proxy", "$ = types.MappingProxyType(dict(s={v}))", "$['s']"),
    Thing("complex", "$ = complex(1, {v})", "$.imag"),
    Thing("range", "$ = range(int({v}))", "len($)"),
    Thing("slice", "$ = slice(0, int({v}))", "len(range(100)[$])"),
    Thing("fraction", "$ = fractions.Fraction(int({v}), 3)", "float($)"),
    Thing("NumPy array", "$ = np.full(3, {v}, np.float32)", "$[1]", in_place="$[1] = {v}"),
    Thing("NumPy objects", "$ = np.array([{v}, None], object)", "$[0]"),
    Thing("NumPy number", "$ = np.float32({v})", "$"),
    swap("NumPy dtype", "$ = np.dtype({v})", "$.itemsize", "'int32'", "'int64'"),
    swap(
        "flags of an array",
        "$ = np.ones(2)\n$.flags.writeable = {v}",
        "3.0 if $.flags.writeable else 5.0",
        "True",
        "False",
    ),
    swap(
        "order of an array",
        "$ = np.asarray(np.arange(6.0).reshape(2, 3), order={v})",
        "$.ravel('K')[1]",
        "'C'",
        "'F'",
    ),
    Thing("array", "$ = jnp.full(3, {v})", "$.sum()"),
    Thing("arrays in a list", "$ = [jnp.ones(3), jnp.full(3, {v})]", "$[1].sum()"),
    Thing("partial", "$ = functools.partial(lambda s: s, {v})", "$()"),
    Thing("partial of words", "$ = functools.partial(lambda s: s, s={v})", "$()"),
    Thing("functions in a table", "$ = dict(a=lambda: {v})", "$['a']()"),
    Thing("wrapped", "def $_f(): return {v}\n@functools.wraps($_f)\ndef $(): return $_f()", "$()"),
    Thing("jitted", "$ = weft.jit(lambda y: y * {v})", "$(jnp.ones(2)).sum()"),
    Thing(
        "static value of jit",
        "$ = weft.jit(lambda n, y: y * n, static_argnums=0)\n$_n = {v}",
        "$($_n, 2.0)",
    ),
    Thing("mapped", "$ = weft.vmap(lambda y: y * {v})", "$(jnp.ones(2)).sum()"),
    Thing("gradient", "$ = weft.grad(lambda y: y * y * {v})", "$(3.0)"),
    Thing(
        "rule",
        "@weft.custom_jvp\ndef $(y): return y\n$.defjvp(lambda p, t: (p[0], t[0] * {v}))",
        "weft.grad($)(3.0)",
    ),
    Thing(
        "backward rule",
        "@weft.custom_vjp\ndef $(y): return y\n"
        "$.defvjp(lambda y: (y, None), lambda r, t: (t * {v},))",
        "weft.grad($)(3.0)",
    ),
    Thing("function within", "$ = {v}\ndef $_f():\n  def g(): return $\n  return g()", "$_f()"),
    Thing("class within", "$ = {v}\ndef $_f():\n  class C: s = $\n  return C.s", "$_f()"),
    Thing("comprehension", "$ = {v}", "sum($ * k for k in range(3))"),
    Thing("formatted", "$ = {v}", "float(f'{$}')"),
    Thing("getattr", "class $: scale = {v}", "getattr($, 'sc' + 'ale')"),
    Thing("vars", "class $_c: pass\n$ = $_c()\n$.s = {v}", "vars($)['s']"),
    Thing("attrgetter", "class $: scale = {v}", "operator.attrgetter('scale')($)"),
    swap("hasattr", "class $: pass\n{v}", "2.0 if hasattr($, 's') else 3.0", "", "$.s = 1"),
    swap(
        "absent global",
        "{v}",
        "$_or_not()",
        "def $_or_not():\n  try: return $_n\n  except NameError: return 3.0",
        "def $_or_not():\n  try: return $_n\n  except NameError: return 3.0\n$_n = 4.0",
    ),
    swap(
        "alias",
        "def $_a(y): return y * 2\ndef $_b(y): return y + 100\n$ = {v}",
        "$($_a(1.0) + $_b(2.0))",
        "$_a",
        "$_b",
    ),
    swap(
        "again in a list",
        "def $_a(y): return y * 2\ndef $_b(y): return y + 100\n$ = [$_a, $_b, {v}]",
        "$[2]($[1]($[0](1.0)))",
        "$_a",
        "$_b",
    ),
    swap(
        "the same array",
        "$_a = np.ones(2)\n$ = [$_a, {v}]",
        "2.0 if $[0] is $[1] else 3.0",
        "$_a",
        "$_a.copy()",
    ),
    swap(
        "the same list",
        "$_a = [1.0]\n$ = [$_a, {v}]",
        "2.0 if $[0] is $[1] else 3.0",
        "$_a",
        "[1.0]",
    ),
    swap(
        "class of an object",
        "class $_a: s = 2.0\nclass $_b: s = 7.0\n$ = $_a()\n$.__class__ = {v}",
        "$.s",
        "$_a",
        "$_b",
        in_place="$.__class__ = {v}",
    ),
    swap(
        "bases of a class",
        "class $_a: s = 2.0\nclass $_b: s = 7.0\nclass $({v}): pass",
        "$.s",
        "$_a",
        "$_b",
    ),
    swap(
        "order of bases",
        "class $_a: s = 2.0\nclass $_b: s = 7.0\nclass $({v}): pass",
        "$.s",
        "$_a, $_b",
        "$_b, $_a",
    ),
    Thing("module", "from . import $_m", "$_m.s", files={"$_m": "s = {v}"}),
    Thing("name of a module", "from .$_m import s as $", "$", files={"$_m": "s = {v}"}),
    Thing(
        "function of a module",
        "from . import $_m",
        "$_m.f()",
        files={"$_m": "S = {v}\ndef f(): return S"},
    ),
    Thing(
        "module of a module",
        "from . import $_m",
        "$_m.$_n.s",
        files={"$_m": "from . import $_n", "$_n": "s = {v}"},
    ),
    Thing(
        "getattr of a module",
        "from . import $_m",
        "$_m.q",
        files={
            "$_m": "V = {v}\ndef __getattr__(n):\n  if n == 'q': return V\n"
            "  raise AttributeError(n)"
        },
    ),
    swap(
        "hasattr of a module",
        "from . import $_m",
        "2.0 if hasattr($_m, 's') else 3.0",
        "",
        "s = 1",
        files={"$_m": "{v}"},
        is_known=False,
    ),
    Thing(
        "import within",
        "from . import $_m\ndef $():\n  from .$_m import s\n  return s",
        "$()",
        files={"$_m": "s = {v}"},
    ),
    Thing(
        "module within",
        "from . import $_m as _\ndef $():\n  from . import $_m\n  return $_m.s",
        "$()",
        files={"$_m": "s = {v}"},
    ),
    Thing(
        "first import within",
        "def $():\n  from .$_m import s\n  return s",
        "$()",
        files={"$_m": "s = {v}"},
        is_known=False,
    ),
    Thing(
        "name as of a library",
        "def $():\n  from .types import s\n  return s",
        "$()",
        files={"types": "s = {v}"},
        is_known=False,
    ),
    Thing(
        "NumPy within", "$ = {v}\ndef $_f():\n  import numpy as np\n  return np.sqrt($)", "$_f()"
    ),
    Thing(
        "module passed on",
        "from . import $_m\ndef $(m): return m.s",
        "$($_m)",
        files={"$_m": "s = {v}"},
        is_known=False,
    ),
    Thing(
        "random numbers",
        "import numpy.random as $\n$.seed(int({v}))",
        "$.rand()",
        is_known=False,
        in_place="$.seed(int({v}) + 10)",
    ),
    Thing("iterator", "$ = iter([{v}] * 9)", "next($)", is_known=False),
    Thing("cached function", "@functools.lru_cache\ndef $(): return {v}", "$()", is_known=False),
    Thing(
        "file",
        "import pathlib\npathlib.Path(__file__ + '$').write_text('{v}')",
        "float(pathlib.Path(__file__ + '$').read_text())",
        is_known=False,
    ),
    Thing(
        "abstract class",
        "class $(abc.ABC):\n  @abc.abstractmethod\n  def m(self): ...\n  s = {v}",
        "$.s",
    ),
    swap(
        "registered class",
        "class $_i: pass\nclass $_j: pass\nclass $(abc.ABC): pass\n$.register({v})",
        "2.0 if isinstance($_i(), $) else 3.0",
        "$_i",
        "$_j",
    ),
    Thing(
        "node of trees",
        """
        class $_p:
            def __init__(self, a): self.a = a
        def $_back(aux, children):
            made = $_p(children[0]); made.k = {v}; return made
        weft.tree_util.register_pytree_node($_p, lambda p: ((p.a,), None), $_back)
        """,
        "weft.tree.map(lambda y: y, $_p(2.0)).k",
        in_place="$_back.__code__ = (lambda aux, c: (m := $_p(c[0]), setattr(m, 'k', {v}))[0])"
        ".__code__",
    ),
    Thing(
        "node of trees, away",
        """
        class $_p:
            def __init__(self, a): self.a = a
        weft.tree_util.register_pytree_node(
            $_p, lambda p: ((p.a * {v},), None), lambda aux, c: $_p(c[0]))
        $ = $_p(3.0)
        """,
        "weft.tree.leaves($)[0]",
        in_place="$.a = {v}",
    ),
    Thing("library, by its name", "PUT(weft.nn, 'relu', lambda y: y * {v})", "weft.nn.relu(1.0)"),
    Thing(
        "library, in itself",
        "PUT(weft.nn, 'sigmoid', lambda y: y * {v})\n"
        "PUT(sys.modules[weft.nn.silu.__module__], 'sigmoid', lambda y: y * {v})",
        "weft.nn.silu(1.5)",
    ),
    swap(
        "library, by its own",
        "PUT(weft.nn, 'relu', weft.nn.{v})",
        "weft.nn.relu(1.5)",
        "tanh",
        "softplus",
    ),
    Thing("added to a library", "PUT(math, 'my_scale', {v})", "math.my_scale"),
    Thing("NumPy, by its name", "PUT(np, 'sinc', lambda y: y * {v})", "np.sinc(2.0)"),
    Thing("constant of a library", "PUT(math, 'tau', {v})", "math.tau"),
    Thing("alias of a library's", "$ = {v}", "$(1.5)", ("jnp.sin", "jnp.cos")),
    Thing("ufunc", "$ = {v}", "$(1.5)", ("np.sin", "np.cos")),
    Thing("builtin's alias", "$ = {v}", "$(2.5, 1.5)", ("min", "max")),
    Thing("method of a type", "$ = {v}", "len($(' a '))", ("str.strip", "str.lstrip")),
    Thing("bound method of a builtin", "$ = dict(a={v}).get", "$('a')"),
    Thing("operator", "$ = {v}", "$(5.0, 3.0)", ("operator.add", "operator.sub")),
    Thing("added to a library's function", "PUT(weft.nn.relu, 'mine', {v})", "weft.nn.relu.mine"),
    Thing(
        "added to a library's class",
        "PUT(fractions.Fraction, 'mine', {v})",
        "fractions.Fraction.mine",
    ),
    Thing(
        "method of a library's class",
        "PUT(fractions.Fraction, '__neg__', lambda self: {v})",
        "-fractions.Fraction(1, 2)",
    ),
    Thing(
        "module made at once", "$ = types.ModuleType('$')\n$.s = {v}", "$.s", in_place="$.s = {v}"
    ),
    Thing("function made of text", "exec('def $(): return {v}')", "$()"),
    Thing("recomputed", "$ = weft.checkpoint(lambda y: y * {v})", "$(1.0)"),
    Thing("partial of weft's", "$ = weft.tree_util.Partial(lambda a, y: a * y, {v})", "$(1.0)"),
    Thing(
        "body of a loop", "def $(c, _): return c * {v}, None", "weft.lax.scan($, 1.0, None, 2)[0]"
    ),
    Thing("branches", "$ = [lambda y: y, lambda y: y * {v}]", "weft.lax.switch(1, $, 3.0)"),
    Thing(
        "rule of a mapping",
        "@weft.custom_batching.custom_vmap\ndef $(y): return y\n"
        "@$.def_vmap\ndef $_r(n, b, y): return y * {v}, True",
        "weft.vmap($)(jnp.ones(2)).sum()",
    ),
    Thing(
        "gradient of one's own",
        "@weft.custom_gradient\ndef $(y): return y, lambda t: t * {v}",
        "weft.grad($)(3.0)",
    ),
    Thing(
        "context manager",
        "@contextlib.contextmanager\ndef $():\n  yield {v}\ndef $_f():\n  with $() as s: return s",
        "$_f()",
    ),
    Thing(
        "part of a method",
        "class $:\n  def m(self, s): return s\n  n = functools.partialmethod(m, {v})",
        "$().n()",
    ),
    Thing("generator", "def $():\n  yield {v}", "sum($())"),
    Thing("default made of a global", "$_s = {v}\ndef $(s=$_s): return s", "$()"),
    Thing("subclass of a text", "class $_c(str):\n  s = {v}\n$ = $_c('a')", "$.s"),
    swap("text of a subclass", "class $_c(str): pass\n$ = $_c({v})", "len($)", "'a'", "'bcd'"),
    swap(
        "number in a library's tower",
        "class $: pass\nclass $_o: pass\nnumbers.Number.register({v})",
        "2.0 if isinstance($(), numbers.Number) else 3.0",
        "$",
        "$_o",
    ),
]

HEAD = """
import abc, collections, contextlib, dataclasses, enum, fractions, functools
import math, numbers, operator, sys, types, typing
import numpy as np
import weft, weft.custom_batching, weft.nn, weft.numpy as jnp
UNDO = []
def PUT(owner, name, value):
    UNDO.append((owner, name, getattr(owner, name, UNDO)))
    setattr(owner, name, value)
"""


def restore(module):
    """Takes back what a module put into libraries."""
    for owner, name, value in reversed(module.UNDO):
        if value is module.UNDO:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
    module.UNDO.clear()


# How the function comes to read something: (source of what is around it, expression).
WAYS = [
    ("", "{e}"),
    ("def $_h(): return {e}", "$_h()"),
    ("def $_h(y): return y * ({e})", "$_h(1.0)"),
    ("class $_k:\n  def m(self): return {e}\n$_k1 = $_k()", "$_k1.m()"),
    ("$_l = [lambda: {e}]", "$_l[0]()"),
    ("def $_o():\n  def i(): return {e}\n  return i\n$_i = $_o()", "$_i()"),
    ("$_j = functools.partial(lambda a, y: y * ({e}), 1)", "$_j(1.0)"),
    ("@weft.jit\ndef $_t(y): return y * ({e})", "$_t(1.0)"),
]
