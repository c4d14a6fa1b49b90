"""What newcomers get wrong: which error they see, and the words that help them.

A row is the code, the error, and words of the message: the function that was called, the argument
or its path, the way out. No message speaks of what users do not see.
"""

import builtins
import dataclasses
import re
import warnings
from importlib.machinery import BuiltinImporter

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import errors, lax, nn, random, tree


class Model:
    """A user's class that is no pytree."""

    def __init__(self):
        self.w = wnp.ones(3)

    def __call__(self, x):
        return self.w * x

    def method(self, x):
        return self.w * x


@dataclasses.dataclass
class Config:
    """A user's dataclass that is no pytree."""

    rate: float


def no_return(x):
    """Where `return` was forgotten."""
    x * 2


class Foreign:
    """An array of another library."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(3, np.float32)


class ForeignTracer:
    """What jax calls a function with."""

    __jax_array__ = None
    __module__ = "jax._src.core"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("it has no value")


NAMES = {
    "np": np,
    "weft": weft,
    "wnp": wnp,
    "lax": lax,
    "nn": nn,
    "random": random,
    "tree": tree,
    "jit": weft.jit,
    "grad": weft.grad,
    "vmap": weft.vmap,
    "Foreign": Foreign,
    "TRACED_BY_JAX": ForeignTracer(),
    "Model": Model,
    "MODEL": Model(),
    "CONFIG": Config(0.1),
    "no_return": no_return,
}
OPERANDS = """
X = wnp.ones((2, 3))
K = wnp.arange(3)
Y = wnp.ones((4, 5))
key = random.key(0)
NO_FORWARD = weft.custom_vjp(lambda x: x)
NO_FORWARD.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
"""
HIDDEN = re.compile(
    r"PyTreeDef|_core\b|convert_element_type|select_n|broadcast_in_dim|[Ii]nternal error"
    r"|<function |bound method"
)

_TO_TREE = ["Model", "a pytree", "weft.tree_util.register_pytree_node_class"]

MISTAKES = [
    ("wnp.sum([1., 2.])", "OperandError", ["[sum]", "weft.numpy.array"]),
    ("wnp.mean([1., 2.])", "OperandError", ["[mean]", "weft.numpy.array"]),
    ("wnp.sin([1., 2.])", "OperandError", ["[sin]", "weft.numpy.array"]),
    ("wnp.add([1.], X)", "OperandError", ["[add]", "weft.numpy.array"]),
    ("wnp.dot([1.],[2.])", "OperandError", ["[dot]", "weft.numpy.array"]),
    ("wnp.concatenate(X, X)", "OperandError", ["[concatenate]", "concatenate([a, b])"]),
    ("wnp.concatenate([X, Y])", "ShapeError", ["[concatenate]", "axis 0"]),
    ("wnp.concatenate([])", "AttributeValueError", ["[concatenate]"]),
    ("wnp.concatenate([X, X], axis=2)", "AttributeValueError", ["[concatenate]", "axis 2"]),
    ("wnp.concatenate([X, K])", "ShapeError", ["[concatenate]", "axis 0"]),
    ('wnp.concatenate([X, "a"])', "OperandError", ["[concatenate]"]),
    ("wnp.concatenate(3)", "OperandError", ["[concatenate]", "concatenate([a, b])"]),
    ("wnp.stack(X, X)", "OperandError", ["[stack]", "stack([a, b])"]),
    ("wnp.stack([X, Y])", "ShapeError", ["[stack]"]),
    ("wnp.stack([])", "AttributeValueError", ["[stack]"]),
    ("wnp.stack([X,X], axis=5)", "AttributeValueError", ["[stack]", "axis 5"]),
    ("wnp.vstack([X, Y])", "ShapeError", ["[vstack]", "axis 0"]),
    ("wnp.hstack([X, Y])", "ShapeError", ["[hstack]", "axis 1"]),
    ("wnp.where(X > 0, X, Y)", "ShapeError", ["[where]"]),
    ("wnp.where(X > 0, None, X)", "TypeError", ["'x'"]),
    ("lax.select(True, 1.0, 2)", "DTypeError", ["[select]", "float32, int32"]),
    ("lax.cumsum(3.0)", "AttributeValueError", ["[cumsum]", "an array with axes"]),
    ("lax.cond(1j, X.sum, X.sum)", "ControlFlowTypeError", ["[cond]", "complex64"]),
    ("weft.vjp(wnp.sin, X)[1](K)", "ShapeError", ["vjp", "the cotangent of result of 'sin'"]),
    ('weft.vjp(wnp.sin, X)[1]("a")', "ArgumentTypeError", ["the cotangent of", "'a'"]),
    ("weft.jvp(wnp.sin, (X,), [X])", "TreeStructureError", ["a tuple and a list"]),
    ("vmap(lambda x: x, 0, (0,))(X)", "TreeStructureError", ["out_axes", "one array or number"]),
    ("vmap(lambda x: x, 0, None)(X)", "AttributeValueError", ["out_axes", "mapped at axis 0"]),
    ("vmap(lambda x: x, axis_size=2.5)", "TypeError", ["vmap axis_size", "2.5"]),
    (
        "jit(lambda x, n: x, static_argnums=2)",
        "AttributeValueError",
        ["static_argnums", "'<lambda>', 0 (x), 1 (n); got 2"],
    ),
    ('weft.devices("gpus")', "RuntimeError", ["'gpus'", "there are: cpu"]),
    ('jit(wnp.sin, static_argnums="a")', "TypeError", ["static_argnums", "'a'"]),
    ("weft.eval_shape(3, X)", "TypeError", ["eval_shape", "3"]),
    ("weft.make_jaxpr(3)", "TypeError", ["make_jaxpr expected a function"]),
    ("grad(wnp.sum, reduce_axes='i')", "NotImplementedError", ["reduce_axes", "'i'"]),
    ("NO_FORWARD(X, X)", "ArgumentTypeError", ["custom_vjp", "too many positional"]),
    ("weft.jacfwd(NO_FORWARD)(X)", "TypeError", ["[custom_vjp]", "reverse mode"]),
    ("jit(wnp.where)(X > 0)", "ConcretizationTypeError", ["[where]", "size=n"]),
    ("wnp.where(X > 0, X)", "TypeError", ["'y'"]),
    ("wnp.reshape(X, (4, 2))", "ShapeError", ["[reshape]", "shape (2, 3)"]),
    ("wnp.reshape(X, (-1, -1))", "ShapeError", ["[reshape]", "shape (2, 3)"]),
    ("wnp.reshape(X, (4, -1))", "ShapeError", ["[reshape]", "shape (2, 3)"]),
    ('wnp.reshape(X, "a")', "TypeError", ["[reshape]"]),
    ("wnp.reshape(X, 2.0)", "TypeError", ["[reshape]"]),
    ("X.reshape(7)", "ShapeError", ["[reshape]", "shape (2, 3)"]),
    ("X.reshape((2.0, 3))", "TypeError", ["[reshape]"]),
    ("wnp.broadcast_to(X, (2, 4))", "ShapeError", ["[broadcast_to]"]),
    ("wnp.broadcast_to(X, (3,))", "ShapeError", ["[broadcast_to]"]),
    ("X + Y", "ShapeError", ["[add]"]),
    ("X - Y", "ShapeError", ["[subtract]"]),
    ("X * Y", "ShapeError", ["[multiply]"]),
    ("X / Y", "ShapeError", ["[divide]"]),
    ("X == Y", "ShapeError", ["[equal]"]),
    ("weft.jit(lambda x, y: x <= y)(X, Y)", "ShapeError", ["[less_equal]"]),
    ("X @ X", "ShapeError", ["[matmul]"]),
    ("wnp.matmul(X, X)", "ShapeError", ["[matmul]"]),
    ("wnp.matmul(X, 3)", "ShapeError", ["[matmul]"]),
    ("X @ 3", "ShapeError", ["[matmul]"]),
    ("wnp.dot(X, X)", "ShapeError", ["[dot]"]),
    ("wnp.tensordot(X, Y, 1)", "ShapeError", ["[tensordot]"]),
    ("wnp.tensordot(X, X, 5)", "ShapeError", ["[tensordot]"]),
    ('wnp.einsum("ij,jk->ik", X, X)', "ShapeError", ["[einsum]"]),
    ('wnp.einsum("ij,jk->iz", X, X.T)', "AttributeValueError", ["[einsum]"]),
    ('wnp.einsum("ij", X, X)', "AttributeValueError", ["[einsum]"]),
    ('wnp.einsum("ijk", X)', "ShapeError", ["[einsum]"]),
    ("wnp.einsum(X)", "OperandError", ["[einsum]", "einsum('ij,jk->ik', a, b)"]),
    ('wnp.einsum("ij->ji")', "AttributeValueError", ["[einsum]"]),
    ("wnp.take(X, 5, axis=3)", "AttributeValueError", ["[take]", "axis 3"]),
    ("wnp.take(X, 1.5)", "DTypeError", ["[take]"]),
    ("wnp.take(X, [0, 1])", "OperandError", ["[take]", "weft.numpy.array"]),
    ("wnp.take_along_axis(X, K, 1)", "ShapeError", ["[take_along_axis]", "shape (2, 3)"]),
    ("wnp.transpose(X, (0, 2))", "ShapeError", ["[transpose]", "(0, 2)"]),
    ("wnp.transpose(X, (0, 0))", "ShapeError", ["[transpose]"]),
    ("wnp.swapaxes(X, 0, 5)", "AttributeValueError", ["[swapaxes]", "axis 5"]),
    ("wnp.moveaxis(X, 0, 7)", "AttributeValueError", ["[moveaxis]", "axis 7"]),
    ("wnp.expand_dims(X, 5)", "AttributeValueError", ["[expand_dims]", "axis 5"]),
    ("wnp.squeeze(X, 0)", "ShapeError", ["[squeeze]"]),
    ("wnp.sum(X, axis=2)", "AttributeValueError", ["[sum]", "axis 2"]),
    ('wnp.sum(X, axis="x")', "UnboundAxisNameError", ["'x'", "axis_name"]),
    ("wnp.sum(X, axis=1.0)", "TypeError", ["[sum]"]),
    ("wnp.sum(X, axis=(0, 0))", "AttributeValueError", ["[sum]"]),
    ('wnp.sum(X, dtype="flaot32")', "DTypeError", ["[sum]", "Did you mean 'float32'"]),
    ("wnp.sum(X, axs=0)", "TypeError", ["'axs'"]),
    ('wnp.sum("a")', "OperandError", ["[sum]"]),
    ("wnp.sum(None)", "OperandError", ["[sum]"]),
    ("wnp.sum()", "TypeError", ["'a'"]),
    ("wnp.mean(X, axis=3)", "AttributeValueError", ["[mean]", "axis 3"]),
    ("wnp.max(wnp.zeros((0,)))", "ShapeError", ["[max]", "axis 0"]),
    ("wnp.add(X, X, out=X)", "NotImplementedError", ["[add] expected out to be None"]),
    ("wnp.argmax(X, axis=4)", "AttributeValueError", ["[argmax]", "axis 4"]),
    ("wnp.argmax(wnp.zeros((0,)))", "ShapeError", ["[argmax]"]),
    ('wnp.zeros("a")', "TypeError", ["[zeros]"]),
    ("wnp.zeros((2, -1))", "ShapeError", ["[zeros]"]),
    ("wnp.zeros((2.5,))", "TypeError", ["[zeros]"]),
    ('wnp.zeros(3, dtype="float3")', "DTypeError", ["[zeros]", "Did you mean 'float32'"]),
    ("wnp.ones(3, 4)", "DTypeError", ["[ones]", "write ones((..., 4))"]),
    ("wnp.zeros(3, 4.5)", "DTypeError", ["[zeros]", "got 4.5"]),
    ("wnp.array([1, 300], 'uint8')", "OverflowError", ["[array]", "from 0 to 255", "got 300"]),
    ('X.astype("str")', "DTypeError", ["[astype]", "got str"]),
    ("X.view(3, 2)", "NotImplementedError", ["view", "x.reshape(shape)"]),
    ("wnp.einsum('ijk->i', X)", "ShapeError", ["[einsum]", "got 3", "an operand of 2 axes"]),
    ("wnp.sin(TRACED_BY_JAX)", "OperandError", ["[sin]", "jax traces it", "weft.grad"]),
    ("weft.jit(wnp.sin)(TRACED_BY_JAX)", "ArgumentTypeError", ["'sin'", "jax traces it"]),
    ("nn.softmax(TRACED_BY_JAX)", "ArgumentTypeError", ["'softmax'", "jax traces it"]),
    ("wnp.ones(3, dtype=object)", "DTypeError", ["[ones]"]),
    ('wnp.ones(3, dtype="S3")', "DTypeError", ["[ones]"]),
    ('wnp.array(["a", "b"])', "DTypeError", ["[array]"]),
    ("wnp.array([[1, 2], [3]])", "ShapeError", ["[array]"]),
    ("wnp.array([1, None])", "DTypeError", ["[array]"]),
    ("wnp.array(object())", "DTypeError", ["[array]"]),
    ('wnp.asarray({"a": 1})', "DTypeError", ["[asarray]"]),
    ("wnp.arange()", "TypeError", ["'start'"]),
    ('wnp.arange("a")', "OperandError", ["[arange]"]),
    ("wnp.arange(0, 5, 0)", "ZeroDivisionError", ["[arange]"]),
    ("wnp.linspace(0, 1, -3)", "AttributeValueError", ["[linspace]"]),
    ("wnp.eye(2.5)", "TypeError", ["[eye]"]),
    ('X.astype("flt")', "DTypeError", ["[astype]", "Did you mean 'float64'"]),
    ("X[0, 0, 0]", "IndexOutOfBoundsError", ["[getitem]"]),
    ('X["a"]', "OperandError", ["[getitem]"]),
    ("X[1.5]", "OperandError", ["[getitem]"]),
    ("X[[0, 1]]", "OperandError", ["[getitem]"]),
    ("X[None, ..., ...]", "IndexOutOfBoundsError", ["[getitem]"]),
    ("X[0] = 1.0", "OperandError", ["x.at[index].set"]),
    ("X[X > 0] = 0", "OperandError", ["x.at[index].set"]),
    ('X += "a"', "TypeError", ["'str'"]),
    ('X + "a"', "TypeError", ["'str'"]),
    ("X + None", "TypeError", ["'NoneType'"]),
    ("X + [1, 2, 3]", "TypeError", ["'list'"]),
    ('X * {"a": 1}', "TypeError", ["'dict'"]),
    ('K % "a"', "TypeError", ["'str'"]),
    ("K << 1.5", "DTypeError", ["[left_shift]"]),
    ("X & X", "DTypeError", ["[bitwise_and]"]),
    ("~X", "DTypeError", ["[bitwise_not]"]),
    ("X.at[5, 5, 5].set(1.0)", "IndexOutOfBoundsError", ["[set]", "shape (2, 3)"]),
    ("X.at[0].set(Y)", "ShapeError", ["[set]"]),
    ("int(wnp.ones(3))", "TypeError", ["shape (3,)", "as with x[0]."]),
    ("float(X)", "TypeError", ["shape (2, 3)", "as with x[0, 0]."]),
    ("int(wnp.ones(1))", "TypeError", ["shape (1,)", "as with x.item()."]),
    ("weft.make_mesh((99,), ('x',))", "ShardingError", ["got (99,)", "WEFT_NUM_CPU_DEVICES=99"]),
    ('weft.debug.print("{}")', "IndexError", ["{0}; got 0 by position, and by name none"]),
    ("X.at[0] = 3", "OperandError", ["immutable", "x.at[index].set(value)"]),
    ("X.at[0].sett(1)", "AttributeError", ["'IndexedElements'"]),
    ("X.foo", "AttributeError", ["'foo'"]),
    ("wnp.split(X, 4)", "AttributeValueError", ["[split]"]),
    ("wnp.split(X, 2, axis=9)", "AttributeValueError", ["[split]", "axis 9"]),
    ("wnp.repeat(X, -1)", "ShapeError", ["[repeat]"]),
    ('wnp.tile(X, "a")', "TypeError", ["[tile]"]),
    ('wnp.pad(X, 1, mode="foo")', "NotImplementedError", ["[pad]"]),
    ("wnp.pad(X, (1, 2, 3))", "AttributeValueError", ["[pad]"]),
    ('wnp.clip("a", 0, 1)', "OperandError", ["[clip]"]),
    ("wnp.diag(wnp.ones((2, 2, 2)))", "ShapeError", ["[diag]"]),
    ("wnp.trace(K)", "ShapeError", ["[trace]"]),
    ('wnp.linspace("a", 1)', "OperandError", ["[linspace]"]),
    ("wnp.cross(X, Y)", "ShapeError", ["[cross]"]),
    ('wnp.outer("a", K)', "ArgumentTypeError", ["'outer'"]),
    ("wnp.roll(X, 1, axis=7)", "AttributeValueError", ["[roll]", "axis 7"]),
    ("wnp.flip(X, axis=7)", "AttributeValueError", ["[flip]", "axis 7"]),
    ("wnp.squeeze(X, axis=9)", "AttributeValueError", ["[squeeze]", "axis 9"]),
    ("wnp.allclose(X, Y)", "ShapeError", ["[allclose]"]),
    ("wnp.logical_and(X, Y)", "ShapeError", ["[logical_and]"]),
    ("wnp.maximum(X, Y)", "ShapeError", ["[maximum]"]),
    ("wnp.power(X, Y)", "ShapeError", ["[power]"]),
    ("wnp.true_divide(X, Y)", "ShapeError", ["[divide]"]),
    ('wnp.negative("a")', "OperandError", ["[negative]"]),
    ("wnp.exp()", "OperandError", ["[exp]"]),
    ("wnp.exp(X, X)", "OperandError", ["[exp]"]),
    ("wnp.exp(x=X)", "OperandError", ["[exp]"]),
    ("wnp.add(X)", "OperandError", ["[add]"]),
    ("wnp.var(X, axis=3)", "AttributeValueError", ["[var]", "axis 3"]),
    ("wnp.select([X > 0], [X, X])", "AttributeValueError", ["[select]"]),
    ("wnp.meshgrid(X)", "ShapeError", ["[meshgrid]"]),
    ("int(X)", "TypeError", ["shape (2, 3)"]),
    ("float(X)", "TypeError", ["shape (2, 3)"]),
    ("complex(X)", "TypeError", ["shape (2, 3)"]),
    ("bool(X)", "ValueError", ["shape (2, 3)", "any() or all()"]),
    ("if X: pass", "ValueError", ["shape (2, 3)", "any() or all()"]),
    ("range(X)", "TypeError", ["only a scalar integer"]),
    ("range(K[0] * 1.0)", "TypeError", ["only a scalar integer"]),
    ("[1, 2, 3][X[0, 0]]", "TypeError", ["only a scalar integer"]),
    ("len(wnp.array(3.0))", "TypeError", ["len() of an array"]),
    ("list(wnp.array(3.0))", "TypeError", ["iteration over an array"]),
    ("for _ in wnp.array(3.0): pass", "TypeError", ["iteration over an array"]),
    ('f"{X:.2f}"', "TypeError", ["shape (2, 3)"]),
    ('f"{K:d}"', "TypeError", ["'d'"]),
    ("hash(X)", "TypeError", ["unhashable type: 'weft.Array'"]),
    ("{X: 1}", "TypeError", ["unhashable type: 'weft.Array'"]),
    ("jit(lambda x: int(x))(1.0)", "ConcretizationTypeError", ["argument x of '<lambda>'"]),
    ("jit(lambda x: float(x))(1.0)", "ConcretizationTypeError", ["argument x of '<lambda>'"]),
    (
        'jit(lambda x: f"{x:.2f}")(1.0)',
        "ConcretizationTypeError",
        ["argument x of '<lambda>'", "weft.debug.print"],
    ),
    ('jit(lambda x: f"{x}")(1.0)', "ArgumentTypeError", ["'<lambda>'"]),
    ('jit(lambda x: f"{x:>10}")(1.0)', "ArgumentTypeError", ["'<lambda>'"]),
    ('jit(lambda x: "%.2f" % x)(1.0)', "ConcretizationTypeError", ["argument x of '<lambda>'"]),
    (
        'jit(lambda x: "{:.3e}".format(x))(1.0)',
        "ConcretizationTypeError",
        ["argument x of '<lambda>'", "weft.debug.print"],
    ),
    (
        'jit(lambda x: format(x, ".1f"))(1.0)',
        "ConcretizationTypeError",
        ["argument x of '<lambda>'", "weft.debug.print"],
    ),
    (
        "jit(lambda x: 1 if x > 0 else 2)(1.0)",
        "TracerBoolConversionError",
        ["weft.numpy.where", "weft.lax.cond", "weft.lax.while_loop", "static_argnums"],
    ),
    (
        "jit(lambda x: np.sin(x))(1.0)",
        "TracerArrayConversionError",
        ["argument x of '<lambda>'", "weft.numpy"],
    ),
    (
        "jit(lambda x: np.asarray(x))(1.0)",
        "TracerArrayConversionError",
        ["argument x of '<lambda>'", "weft.numpy"],
    ),
    (
        "jit(lambda x: np.add(x, 1))(K)",
        "TracerArrayConversionError",
        ["argument x of '<lambda>'", "weft.numpy"],
    ),
    (
        "jit(lambda n: range(n))(3)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    (
        "jit(lambda n: [1, 2, 3][n])(1)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    (
        "jit(lambda n: wnp.zeros(n))(3)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    (
        "jit(lambda n: wnp.zeros((n, 2)))(3)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    ("jit(lambda n: wnp.arange(n))(3)", "ConcretizationTypeError", ["[arange]"]),
    (
        "jit(lambda n: X.reshape(n))(6)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    (
        "jit(lambda n: X[:n])(1)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    (
        "jit(lambda n: wnp.sum(X, axis=n))(1)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    (
        "jit(lambda n: wnp.linspace(0, 1, n))(3)",
        "TracerIntegerConversionError",
        [
            "argument n of '<lambda>'",
            "static_argnums",
            "weft.lax.dynamic_slice",
            "weft.numpy.array",
        ],
    ),
    (
        "jit(lambda n: X[X > n])(3)",
        "NonConcreteBooleanIndexError",
        ["[getitem]", "shape (2, 3)", "weft.numpy.where"],
    ),
    ("jit(lambda n: n.item())(3)", "ConcretizationTypeError", ["argument n of '<lambda>'"]),
    ("jit(lambda n: n.tolist())(3)", "ConcretizationTypeError", ["argument n of '<lambda>'"]),
    ("jit(lambda n: hash(n))(3)", "TypeError", ["unhashable type: 'weft.Tracer'"]),
    ("jit(lambda n: len(n))(3)", "TypeError", ["len() of an array"]),
    ("jit(lambda n: [a for a in n])(3)", "TypeError", ["iteration over an array"]),
    ("jit(lambda x: x.device)(1.0)", "AttributeError", ["'device'"]),
    ('jit(lambda x: "text")(1.0)', "ArgumentTypeError", ["'<lambda>'"]),
    ("jit(lambda x: {1, 2})(1.0)", "ArgumentTypeError", ["'<lambda>'"]),
    ("jit(lambda x: object())(1.0)", "ArgumentTypeError", ["'<lambda>'"]),
    ('jit(lambda x: x)("a")', "ArgumentTypeError", ["argument x of '<lambda>'", "static_argnums"]),
    (
        "jit(lambda x: x)(object())",
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "static_argnums"],
    ),
    (
        "jit(lambda x: x)({1, 2})",
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "static_argnums"],
    ),
    (
        'jit(lambda x: x)({"a": [1.0, "b"]})',
        "ArgumentTypeError",
        ["argument x['a'][1] of '<lambda>'", "static_argnums"],
    ),
    (
        'jit(lambda x: x)(np.array(["a"]))',
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "static_argnums"],
    ),
    (
        "jit(lambda x: x)(np.array([None]))",
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "static_argnums"],
    ),
    (
        "jit(lambda x, y: x, static_argnums=1)(1.0, [1, 2])",
        "NonHashableStaticArgumentError",
        ["argument y of '<lambda>'", "tuple in place of a list"],
    ),
    ('jit(lambda x, y: x, static_argnames="z")(1.0, 2)', "ValueError", ["static_argnames"]),
    ("jit(lambda x, y: x, static_argnums=5)(1.0, 2)", "ValueError", ["static_argnums"]),
    ('jit(lambda x, y: x, static_argnums="y")', "TypeError", ["jit"]),
    ("jit(lambda x, y: x, static_argnames=1)", "TypeError", ["jit"]),
    (
        "jit(lambda x, n: x, static_argnums=1)(1.0, np.ones(3))",
        "NonHashableStaticArgumentError",
        ["argument n of '<lambda>'", "tuple in place of a list"],
    ),
    (
        "jit(lambda x, n: x, static_argnums=1)(1.0, X)",
        "NonHashableStaticArgumentError",
        ["argument n of '<lambda>'", "tuple in place of a list"],
    ),
    ("jit(3)", "TypeError", ["jit"]),
    ("jit(lambda x: x, donate=1)", "TypeError", ["jit"]),
    ("jit(lambda x: x, static_argnums=0, donate_argnums=0)", "ValueError", ["jit"]),
    ("jit(lambda x: x)(1.0, 2.0)", "TypeError", ["<lambda>() takes 1 positional"]),
    ("jit(lambda x: x)(y=1.0)", "TypeError", ["'y'"]),
    ("jit(lambda x: x)()", "TypeError", ["'x'"]),
    (
        "grad(lambda x: x * 2)(3)",
        "DTypeError",
        ["argument x of '<lambda>'", "grad", "(x.astype(float))", "allow_int=True"],
    ),
    (
        "grad(lambda x: x * 2)(True)",
        "DTypeError",
        ["argument x of '<lambda>'", "grad", "(x.astype(float))", "allow_int=True"],
    ),
    ("grad(lambda x: x * 2)(X)", "ShapeError", ["grad", "jacrev"]),
    ("grad(lambda x: (x, x))(1.0)", "TypeError", ["grad", "has_aux=True"]),
    ('grad(lambda x: "a")(1.0)', "ArgumentTypeError", ["'<lambda>'"]),
    ("grad(lambda x: None)(1.0)", "TypeError", ["grad", "None", "`return`"]),
    ('grad(lambda x: x)("a")', "ArgumentTypeError", ["'<lambda>'"]),
    (
        "grad(lambda x: x)([1.0, 2])",
        "DTypeError",
        ["argument x[1] of '<lambda>'", "grad", "(x.astype(float))", "allow_int=True"],
    ),
    (
        'grad(lambda x: x["a"])({"a": 1})',
        "DTypeError",
        ["argument x['a'] of '<lambda>'", "grad", "(x.astype(float))", "allow_int=True"],
    ),
    ("grad(lambda x: x, argnums=1)(1.0)", "AttributeValueError", ["argnums"]),
    ('grad(lambda x: x, argnums="x")(1.0)', "TypeError", ["argnums"]),
    ("grad(lambda x: x)()", "AttributeValueError", ["argnums"]),
    ('grad(lambda x: {"a": x})(1.0)', "TypeError", ["grad", "has_aux=True"]),
    ("wnp.asarray(2) * [1, 2]", "TypeError", ["multiply", "weft.numpy.array"]),
    ("(1, 2) * wnp.asarray(2)", "TypeError", ["multiply", "weft.numpy.array"]),
    ("int(wnp.asarray(1j))", "TypeError", ["complex64", "x.real"]),
    ("float(wnp.asarray(1j))", "TypeError", ["complex64", "x.real"]),
    ("wnp.linalg.cross(X, X, axis=2)", "AxisError", ["[cross]"]),
    ("wnp.linalg.matrix_rank(X[:0])", "ShapeError", ["[matrix_rank]"]),
    ('wnp.linalg.eigh(wnp.eye(2, dtype="float16"))', "NotImplementedError", ["[eigh]", "f16"]),
    ("grad(lambda x: int(x))(1.0)", "DTypeError", ["grad"]),
    (
        "grad(lambda x: np.sin(x))(1.0)",
        "TracerArrayConversionError",
        ["argument x of '<lambda>'", "weft.numpy"],
    ),
    ("grad(lambda x: wnp.round(x).astype(int))(1.0)", "DTypeError", ["grad"]),
    ("grad(lambda x: x, has_aux=True)(1.0)", "TreeStructureError", ["has_aux"]),
    ("grad(3)", "TypeError", ["grad"]),
    (
        "grad(lambda x: x)(1.0 + 2j)",
        "DTypeError",
        ["real floating-point result of '<lambda>'", "grad", "holomorphic=True"],
    ),
    (
        "grad(lambda x: x, holomorphic=True)(1.0)",
        "DTypeError",
        ["argument x of '<lambda>'", "grad", "holomorphic=True"],
    ),
    ("weft.jvp(lambda x: x, 1.0, 1.0)", "TypeError", ["jvp"]),
    ("weft.jvp(lambda x: x, (1.0,), (1.0, 2.0))", "TreeStructureError", ["jvp"]),
    ("weft.jvp(lambda x: x, (X,), (K,))", "ShapeError", ["argument x of '<lambda>'", "jvp"]),
    ("weft.jvp(lambda x: x, (X,), (Y,))", "ShapeError", ["argument x of '<lambda>'", "jvp"]),
    ("weft.jvp(lambda x: x, (K,), (K,))", "DTypeError", ["argument x of '<lambda>'", "jvp"]),
    ("weft.vjp(lambda x: x, X)[1](Y)", "ShapeError", ["vjp"]),
    ("weft.vjp(lambda x: (x, x), X)[1](X)", "TreeStructureError", ["vjp"]),
    ('weft.vjp(lambda x: {"a": x}, X)[1]({"b": X})', "TreeStructureError", ["vjp"]),
    (
        "vmap(lambda x: x)(1.0)",
        "ShapeError",
        ["argument x of '<lambda>'", "vmap in_axes", "axis 0"],
    ),
    ("vmap(lambda x, y: x + y)(X, Y)", "ShapeError", ["vmap expected"]),
    (
        "vmap(lambda x, y: x, in_axes=0)(X, 1.0)",
        "ShapeError",
        ["argument y of '<lambda>'", "vmap in_axes", "axis 0", "0 axes", "None in in_axes"],
    ),
    ("vmap(lambda x, y: x, in_axes=(0,))(X, X)", "TreeStructureError", ["vmap in_axes"]),
    (
        "vmap(lambda x, y: x, in_axes=(0, 0))(X, y=X)",
        "TreeStructureError",
        ["vmap in_axes", "given by name"],
    ),
    (
        "vmap(lambda x: x, in_axes=2)(X)",
        "ShapeError",
        ["argument x of '<lambda>'", "vmap in_axes", "axis 2"],
    ),
    ('vmap(lambda x: x, in_axes="a")(X)', "TypeError", ["vmap in_axes"]),
    ('vmap(lambda x: x, in_axes=({"a": 0},))(X)', "TreeStructureError", ["vmap in_axes"]),
    ('vmap(lambda x: x, in_axes=({"a": 0},))({"b": X})', "TreeStructureError", ["vmap in_axes"]),
    ("vmap(lambda x: x, in_axes=None)(X)", "ShapeError", ["vmap expected"]),
    ("vmap(lambda x: x, out_axes=5)(X)", "ShapeError", ["vmap out_axes", "axis 5"]),
    ("vmap(lambda x: x, out_axes=(0, 0))(X)", "TreeStructureError", ["vmap out_axes"]),
    (
        "vmap(lambda x: 1.0 if x > 0 else 2.0)(K)",
        "TracerBoolConversionError",
        ["weft.numpy.where", "weft.lax.cond", "weft.lax.while_loop", "static_argnums"],
    ),
    ("vmap(lambda x: float(x))(K)", "ConcretizationTypeError", ["argument x of '<lambda>'"]),
    ('vmap(lambda x: x)("a")', "ArgumentTypeError", ["'<lambda>'"]),
    ("vmap(lambda x: x, axis_size=5)(X)", "ShapeError", ["vmap expected"]),
    ("vmap(lambda x: x, axis_name=[0])(X)", "ArgumentTypeError", ["hashable", "[0]"]),
    ("lax.psum(X, 'i')", "UnboundAxisNameError", ["'i'", "vmap(f, axis_name='i')"]),
    ("vmap(lambda x: x, spmd_axis_name=0)(X)", "ArgumentTypeError", ["vmap spmd_axis_name"]),
    ('vmap(lambda x: "a")(X)', "ArgumentTypeError", ["'<lambda>'"]),
    ("vmap(3)", "TypeError", ["vmap expected"]),
    ("lax.scan(lambda c, x: c, 0.0, X)", "ControlFlowTypeError", ["[scan]"]),
    ("lax.scan(lambda c, x: ((c, c), x), 0.0, X)", "ControlFlowTypeError", ["[scan]", "carry"]),
    (
        'lax.scan(lambda c, x: ({"a": 1.0, "b": wnp.ones(2)}, x), {"a": 0.0, "b": K * 1.0}, Y[0])',
        "ControlFlowTypeError",
        ["[scan]", "carry['b']"],
    ),
    ("lax.scan(lambda c, x: (c, x), 0.0, (X, Y))", "ShapeError", ["[scan]", "xs[0]"]),
    ("lax.scan(lambda c, x: (c, x), 0.0, 1.0)", "ShapeError", ["[scan]"]),
    ("lax.scan(lambda c, x: (c, x), 0.0)", "AttributeValueError", ["[scan]"]),
    ("lax.scan(lambda c, x: (c, x), 0.0, None)", "AttributeValueError", ["[scan]"]),
    ("lax.scan(lambda c, x: (c, x), 0.0, X, length=7)", "ShapeError", ["[scan]"]),
    ('lax.scan(lambda c, x: (c, "a"), 0.0, X)', "ArgumentTypeError", ["'<lambda>'"]),
    ("lax.scan(lambda c: (c, c), 0.0, X)", "TypeError", ["<lambda>() takes 1 positional"]),
    (
        "lax.scan(lambda c, x: (c if c > 0 else x[0], x), 0.0, X)",
        "TracerBoolConversionError",
        ["weft.numpy.where", "weft.lax.cond", "weft.lax.while_loop", "static_argnums"],
    ),
    ("lax.scan(3, 0.0, X)", "TypeError", ["scan"]),
    (
        "lax.fori_loop(0, 3, lambda i, x: x / 2, wnp.int32(8))",
        "ControlFlowTypeError",
        ["[fori_loop]", "carry[1]"],
    ),
    ("lax.fori_loop(0, 3, lambda x: x, 1.0)", "TypeError", ["<lambda>() takes 1 positional"]),
    ("lax.fori_loop(0, 3.5, lambda i, x: x, 1.0)", "ControlFlowTypeError", ["[fori_loop]"]),
    (
        "lax.fori_loop(0, 3, lambda i, x: (x, x), 1.0)",
        "ControlFlowTypeError",
        ["[fori_loop]", "carry[1]"],
    ),
    ("lax.while_loop(lambda x: x, lambda x: x, 1.0)", "ControlFlowTypeError", ["[while_loop]"]),
    (
        "lax.while_loop(lambda x: x > 0, lambda x: (x, x), 1.0)",
        "ControlFlowTypeError",
        ["[while_loop]"],
    ),
    ("lax.while_loop(lambda x: X > 0, lambda x: x, 1.0)", "ControlFlowTypeError", ["[while_loop]"]),
    (
        "lax.while_loop(lambda x: (x > 0, x), lambda x: x, 1.0)",
        "ControlFlowTypeError",
        ["[while_loop]"],
    ),
    ("lax.cond(True, lambda: 1.0, lambda: 1)", "ControlFlowTypeError", ["[cond]"]),
    ("lax.cond(True, lambda x: x, lambda x: (x, x), 1.0)", "ControlFlowTypeError", ["[cond]"]),
    (
        'lax.cond(True, lambda x: {"a": x}, lambda x: {"b": x}, 1.0)',
        "ControlFlowTypeError",
        ["[cond]"],
    ),
    (
        "lax.cond(True, lambda x: wnp.ones(2), lambda x: wnp.ones(3), 1.0)",
        "ControlFlowTypeError",
        ["[cond]"],
    ),
    ("lax.cond(X, lambda x: x, lambda x: x, 1.0)", "ControlFlowTypeError", ["[cond]"]),
    ('lax.cond("a", lambda x: x, lambda x: x, 1.0)', "ControlFlowTypeError", ["[cond]"]),
    ("lax.cond(True, 1.0, 2.0)", "TypeError", ["cond"]),
    ("lax.cond(True, lambda x: x, lambda x: x)", "TypeError", ["'x'"]),
    ("lax.switch(0, [], 1.0)", "AttributeValueError", ["[switch]"]),
    ("lax.switch(1.5, [lambda x: x], 1.0)", "ControlFlowTypeError", ["[switch]"]),
    ("lax.switch(0, [lambda x: x, lambda x: (x,)], 1.0)", "ControlFlowTypeError", ["[switch]"]),
    ("lax.map(lambda x: x, 1.0)", "ShapeError", ["[map]"]),
    ("lax.add(X, K)", "DTypeError", ["[add]"]),
    ("lax.add(X, Y)", "ShapeError", ["[add]"]),
    ("lax.dot(X, X)", "ShapeError", ["[dot]"]),
    (
        "lax.dot_general(X, X, (((1,), (1,)), ((0,), (0, 1))))",
        "AttributeValueError",
        ["[dot_general]"],
    ),
    ("lax.reshape(X, (4,))", "ShapeError", ["[reshape]"]),
    ("lax.concatenate([X, Y], 0)", "ShapeError", ["[concatenate]", "axis 0"]),
    ("lax.slice(X, (0,), (1,))", "AttributeValueError", ["[slice]"]),
    ("lax.dynamic_slice(X, (0,), (1, 1))", "AttributeValueError", ["[dynamic_slice]"]),
    ("lax.transpose(X, (0,))", "AttributeValueError", ["[transpose]"]),
    ("lax.broadcast_in_dim(X, (3, 3), (0, 1))", "ShapeError", ["[broadcast_in_dim]", "axis 0"]),
    ("lax.select(X, X, X)", "DTypeError", ["[select]"]),
    ("lax.associative_scan(wnp.add, 1.0)", "AttributeValueError", ["[associative_scan]", "axis 0"]),
    ("lax.sort(1.0)", "AttributeValueError", ["[sort]", "axis -1"]),
    ("lax.cumsum(X, axis=4)", "AttributeValueError", ["[cumsum]", "axis 4"]),
    ('tree.map(lambda x, y: x, {"a": 1}, {"b": 1})', "TreeStructureError", ["tree_map"]),
    ("tree.map(lambda x, y: x, [1, 2], (1, 2))", "TreeStructureError", ["tree_map"]),
    ("tree.map(lambda x, y: x, [1, 2], [1])", "TreeStructureError", ["tree_map"]),
    ('tree.map(lambda x, y: x, {"a": {"c": 1}}, {"a": 2})', "TreeStructureError", ["tree_map"]),
    ("tree.map(lambda x: x)", "TypeError", ["tree_map"]),
    ('tree.map({"a": 1}, lambda x: x)', "ArgumentTypeError", ["tree_map", "function", "dict"]),
    ("tree.unflatten(tree.structure([1, 2]), [1])", "TreeStructureError", ["tree_unflatten"]),
    ('tree.unflatten("a", [1])', "TypeError", ["tree_unflatten"]),
    (
        "tree.transpose(tree.structure([1]), tree.structure((1, 2)), [1])",
        "TreeStructureError",
        ["tree_transpose"],
    ),
    ("random.normal(0, (3,))", "DTypeError", ["[normal]", "weft.random.key"]),
    ("random.normal((3,))", "OperandError", ["[normal]", "a key", "(3,)", "weft.random.key(0)"]),
    ("random.uniform((3, 4), key)", "AttributeValueError", ["[uniform]", "key is the first"]),
    ("random.shuffle", "AttributeError", ["weft.random.permutation"]),
    ("random.uniform([3])", "OperandError", ["[uniform]", "a key", "weft.random.key(0)"]),
    ("random.randint(key, 0, 5, (3,))", "OperandError", ["[randint]", "tuple: (3,)"]),
    ("random.permutation(K, key)", "DTypeError", ["[permutation]", "a key", "int32[3]"]),
    ("random.bernoulli(0.5)", "DTypeError", ["[bernoulli]", "a key", "weft.random.key(0)"]),
    ("random.normal(None, (3,))", "OperandError", ["[normal]", "a key", "None"]),
    ("random.normal(np.random.default_rng(0))", "OperandError", ["[normal]", "a key", "PCG64"]),
    ("random.normal(shape=(3,))", "TypeError", ["normal()", "'key'"]),
    ("random.fold_in(1, key)", "DTypeError", ["[fold_in]", "a key"]),
    # A loss without `return`.
    ("grad(no_return)(1.0)", "TypeError", ["'no_return'", "None", "`return`"]),
    ("weft.value_and_grad(no_return)(1.0)", "TypeError", ["'no_return'", "None", "`return`"]),
    ("jit(grad(no_return))(1.0)", "TypeError", ["'no_return'", "None", "`return`"]),
    ("grad(lambda x: (None, x), has_aux=True)(1.0)", "TypeError", ["None", "`return`"]),
    ("grad(lambda x: ())(1.0)", "TypeError", ["a tree of 0 arrays"]),
    ("lax.scan(lambda c, x: no_return(c), 0, K)", "ControlFlowTypeError", ["[scan]", "None"]),
    ("lax.fori_loop(0, 3, lambda i, c: None, 0)", "ControlFlowTypeError", ["got None"]),
    # Keywords where derivatives are taken.
    ("grad(lambda x: x**2)(x=1.0)", "AttributeValueError", ["0 positional", "f(x), not f(x=x)"]),
    ("weft.jacrev(lambda x: x**2)(x=1.0)", "AttributeValueError", ["0 positional", "by position"]),
    ("weft.hessian(lambda x: x**2)(x=1.0)", "AttributeValueError", ["0 positional", "by position"]),
    (
        "grad(lambda x, y: x * y, argnums=(0, 1))(1.0, y=2.0)",
        "AttributeValueError",
        ["1 positional argument;", "argnums=(0, 1)", "by position"],
    ),
    # Keys of dicts.
    (
        "tree.map(lambda x, y: x, {'a': {'b': 1, 'c': 2}}, {'a': {'b': 1}})",
        "TreeStructureError",
        ["tree 2", "at ['a']", "('c' missing)"],
    ),
    (
        "tree.map(lambda x, y: x, {'b': 1}, {'d': 1, 'b': 1})",
        "TreeStructureError",
        ["at the root", "('d' not expected)"],
    ),
    (
        "tree.map(lambda x, y: x, {'b': 1, 'c': 3}, {'d': 1, 'b': 1})",
        "TreeStructureError",
        ["('c' missing; 'd' not expected)"],
    ),
    # Objects of users' classes.
    ("jit(lambda m, x: m(x))(MODEL, X)", "ArgumentTypeError", ["argument m", *_TO_TREE, "static"]),
    ("grad(lambda m: m(X).sum())(MODEL)", "ArgumentTypeError", ["argument m", *_TO_TREE]),
    ("vmap(lambda m, x: m(x))(MODEL, X)", "ArgumentTypeError", ["argument m", *_TO_TREE]),
    ("lax.scan(lambda m, x: (m, x), MODEL, K)", "ArgumentTypeError", ["init of scan", *_TO_TREE]),
    ("lax.cond(True, lambda m: 1, lambda m: 2, MODEL)", "ArgumentTypeError", ["cond", *_TO_TREE]),
    ("weft.checkpoint(lambda m: 1.0)(MODEL)", "ArgumentTypeError", ["argument m", *_TO_TREE]),
    ("weft.jvp(lambda m: 1.0, (MODEL,), (MODEL,))", "ArgumentTypeError", ["m of", *_TO_TREE]),
    ("jit(lambda: MODEL)()", "ArgumentTypeError", ["result of '<lambda>'", *_TO_TREE]),
    ("jit(lambda c: c.rate)(CONFIG)", "ArgumentTypeError", ["Config", "register_dataclass"]),
    ("grad(lambda c: c.rate)(CONFIG)", "ArgumentTypeError", ["Config", "register_dataclass"]),
    ("jit(lambda f: f(X))(wnp.sin)", "ArgumentTypeError", ["argument f", "static_argnums"]),
    ("jit(MODEL.method)('a')", "ArgumentTypeError", ["argument x of 'method'", "static_argnums"]),
    ("jit(Model.method)(MODEL, X)", "ArgumentTypeError", ["argument self of 'method'", *_TO_TREE]),
    # Dtypes that other libraries would read as others.
    ("np.from_dlpack(key)", "BufferError", ["random keys", "weft.random.key_data"]),
    ("wnp.from_dlpack(key)", "BufferError", ["random keys", "weft.random.key_data"]),
    ("np.from_dlpack(X.astype('int4'))", "BufferError", ["int4", ".astype('int8')"]),
    ("K.astype('uint8').at[0].max(300)", "OverflowError", ["300", "uint8"]),
    ("wnp.minimum(K.astype('uint8'), 300)", "OverflowError", ["300", "uint8"]),
    ("wnp.clip(K.astype('uint8'), 300, None)", "OverflowError", ["300", "uint8"]),
    ("random.normal(key, 3.5)", "TypeError", ["[normal]"]),
    ('random.normal(key, (3,), "int32")', "DTypeError", ["[normal]"]),
    ("random.split(0)", "DTypeError", ["[split]", "weft.random.key"]),
    ('random.split(key, "a")', "TypeError", ["[split]"]),
    ('random.uniform(key, minval="a")', "OperandError", ["[uniform]"]),
    ('random.choice(key, "a")', "OperandError", ["[choice]"]),
    ('random.categorical(key, "a")', "OperandError", ["[categorical]"]),
    ('random.bernoulli(key, "a")', "OperandError", ["[bernoulli]"]),
    ('random.PRNGKey("a")', "OperandError", ["[PRNGKey]"]),
    ('nn.relu("a")', "ArgumentTypeError", ["'relu'"]),
    ("nn.relu([1.0])", "OperandError", ["[relu]", "weft.numpy.array"]),
    ("nn.softmax(X, axis=3)", "AttributeValueError", ["[softmax]", "axis 3"]),
    ("nn.one_hot(K, 2.5)", "TypeError", ["[one_hot]"]),
    ("nn.logsumexp([1.0])", "OperandError", ["[logsumexp]", "weft.numpy.array"]),
    ('weft.device_put(X, "cpu")', "AttributeValueError", ["weft.devices"]),
    ('weft.device_put("a")', "OperandError", ["[device_put]"]),
    ('weft.devices("tpu")', "RuntimeError", ["'tpu'"]),
    ('weft.config.update("weft_enable_x64", "yes")', "TypeError", ["'yes'"]),
    ("weft.checkpoint(3)", "TypeError", ["checkpoint"]),
    ("weft.custom_jvp(3)", "TypeError", ["custom_jvp"]),
    ("weft.custom_vjp(lambda x: x)(1.0)", "AttributeError", ["'<lambda>'"]),
    ("weft.custom_jvp(lambda x: x)(1.0)", "AttributeError", ["'<lambda>'"]),
    (
        'weft.eval_shape(lambda x: x, "a")',
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "static_argnums"],
    ),
    (
        'weft.make_jaxpr(lambda x: x)("a")',
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "static_argnums"],
    ),
    ("weft.ShapeDtypeStruct((2, 3))", "TypeError", ["'dtype'"]),
    (
        'weft.pure_callback(lambda x: np.ones(3), weft.ShapeDtypeStruct((2,), "float32"), 1.0)',
        "CallbackError",
        ["'<lambda>'"],
    ),
    ("weft.jacfwd(lambda x: x)(K)", "DTypeError", ["jacfwd"]),
    (
        "weft.linearize(lambda x: x, X)[1](Y)",
        "ShapeError",
        ["argument x of '<lambda>'", "linearize"],
    ),
    (
        'jit(lambda x: x).lower("a")',
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "static_argnums"],
    ),
    ("jit(lambda x: x).lower(X).compile()(Y)", "ArgumentTypeError", ["argument x of '<lambda>'"]),
    ("jit(lambda x: x).lower(X).compile()(X, X)", "TreeStructureError", ["'<lambda>'"]),
    ("X.sum(axis=5)", "AttributeValueError", ["[sum]", "axis 5"]),
    ("X.mean(1, 2, 3, 4, 5, 6)", "TypeError", ["mean() takes from 1"]),
    ("X.reshape(2, 2)", "ShapeError", ["[reshape]", "shape (2, 3)"]),
    ("X.T.dot(X.T)", "ShapeError", ["[dot]"]),
    ('wnp.bool_("a")', "DTypeError", ["[array]"]),
    ('wnp.float32("a")', "DTypeError", ["[array]"]),
    ('wnp.result_type("spam")', "TypeError", ["spam"]),
    ('wnp.promote_types("float32", "spam")', "TypeError", ["spam"]),
    ("Foreign() + X", "TypeError", ["'Foreign'"]),
    (
        "jit(lambda x: x * 2)(Foreign())",
        "ArgumentTypeError",
        ["argument x of '<lambda>'", "weft.numpy.asarray"],
    ),
    ("wnp.sin(Foreign())", "OperandError", ["[sin]", "weft.numpy.asarray"]),
]


@pytest.fixture(scope="module")
def names():
    made = dict(NAMES)
    exec(OPERANDS, made)
    return made


@pytest.mark.parametrize(("code", "error", "words"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(names, code, error, words):
    expected = getattr(errors, error, None) or getattr(builtins, error)
    with pytest.raises(expected) as info:
        exec(compile(code, "<user>", "exec"), dict(names))
    message = str(info.value)
    for word in words:
        assert word in message
    if not code.startswith("lax."):  # whose functions are operations
        assert not re.search(r" C\d+\)", message)
    if "broadcast_in_dim" not in code:
        assert not HIDDEN.search(message), message
    assert issubclass(info.type, expected) and len(message) < 1000


def test_values_that_are_known_take_formats():
    assert f"{wnp.asarray(3.14159):.2f}" == "3.14"
    assert f"{wnp.asarray(7):>4d}" == "   7"
    assert f"{wnp.arange(2)}" == "[0 1]"
    seen = []
    weft.grad(lambda x: seen.append(f"{x:.1f} {x * 2:.1f}") or x)(1.5)
    assert seen == ["1.5 3.0"]
    weft.jit(lambda x: seen.append(f"{x:>30}") or x)(1.5)
    assert seen[1].strip().startswith("Tracer(")


def test_the_way_out_of_the_messages_works():
    assert wnp.sum(wnp.array([1.0, 2.0])) == 3.0
    assert wnp.sin(wnp.asarray(Foreign())).shape == (3,)
    assert weft.grad(lambda x: (x * 2).sum())(wnp.asarray(3).astype(float)) == 2.0
    assert weft.grad(lambda x: x * 2.0, allow_int=True)(3).dtype == weft.dtypes.float0


def test_differences_of_trees_name_the_place():
    def vjp_of(value, cotangent):
        return lambda: weft.vjp(lambda x: value(x), 1.0)[1](cotangent)

    for call, place in [
        (vjp_of(lambda x: {"a": (x, x)}, {"a": (1.0, 2.0, 3.0)}), "in ['a']: expected a tuple of"),
        (vjp_of(lambda x: [x, {"b": x}], [1.0, 2.0]), "in [1]: expected a dict with keys ['b']"),
    ]:
        with pytest.raises(errors.TreeStructureError) as info:
            call()
        assert place in str(info.value) and "PyTreeDef" not in str(info.value)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: wnp.allclose(1.0, "a"), "'allclose'"),
        (lambda: wnp.vstack("a"), "'vstack'"),
        (lambda: wnp.nanargmax("a"), "'nanargmax'"),
        (lambda: wnp.around(wnp.ones(3), {}), "[round]"),
        (lambda: wnp.tril(wnp.ones((2, 2)), {}), "[tril]"),
        (lambda: nn.elu(wnp.ones(3), {}), "[elu]"),
        (lambda: wnp.einsum(wnp.ones(3), wnp.ones(3)), "[einsum]"),
    ],
)
def test_messages_do_not_name_helpers(call, name):
    with pytest.raises((TypeError, ValueError)) as info:
        call()
    assert name in str(info.value)
    assert not re.search(r"'_\w+'", str(info.value))


_NARROWED = {
    "wnp.array([1.0], 'float64')": "array",
    "wnp.asarray(np.ones(3), np.float64)": "array",
    "wnp.zeros(3, 'int64')": "zeros",
    "wnp.full_like(X, 1, dtype='float64')": "full_like",
    "wnp.arange(3, dtype='int64')": "arange",
    "X.astype('float64')": "astype",
    "X.sum(dtype='float64')": "sum",
    "wnp.cumsum(X, dtype='float64')": "cumsum",
    "wnp.float64(3)": "float64",
    "lax.convert_element_type(X, 'float64')": "convert_element_type",
    "lax.iota('int64', 3)": "iota",
    "random.normal(key, (3,), 'float64')": "normal",
    "random.bits(key, (3,), 'uint64')": "bits",
    "nn.one_hot(K, 3, dtype='float64')": "one_hot",
    "jit(lambda x: x.astype('float64'))(X)": "astype",
    "grad(lambda x: x.astype('float64').sum())(X)": "astype",
}


@pytest.mark.parametrize("code", list(_NARROWED))
def test_warnings_of_narrowed_dtypes_name_each_line_once(names, code):
    function = f"def call():\n    {code}\n    {code}\n"
    # The loader is that of code on the command line, which knows no source.
    scope = {**names, "__name__": "a_users_module", "__loader__": BuiltinImporter}
    exec(compile(function, "<a user's file>", "exec"), scope)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            scope["call"]()
    assert [(w.filename, w.lineno) for w in caught] == [("<a user's file>", n) for n in (2, 3)]
    text = str(caught[0].message)
    assert _NARROWED[code] in text and "64" in text and "weft_enable_x64" in text


def test_other_warnings_name_the_users_line(names):
    lines = (
        "wnp.zeros(3, 'int32').at[0].set(1.5)",
        "wnp.array([1], None, True)",
        "jit(lambda x: x[0], donate_argnums=0)(wnp.ones(3) * 1.0)",
    )
    with warnings.catch_warnings(record=True) as caught, weft.numpy_rank_promotion("warn"):
        warnings.simplefilter("always")
        exec(compile("\n".join((*lines, "X + K")), "<a user's file>", "exec"), dict(names))
    assert [w.filename for w in caught] == ["<a user's file>"] * 4
    assert [w.lineno for w in caught] == [1, 2, 3, 4]
