"""Objects of other libraries that stand for arrays: which functions ask them for the array."""

from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as wnp
import weft.scipy.special as special
from weft import lax, nn

M = np.arange(6, dtype="float32").reshape(2, 3)
V = np.array([0.5, 2, 1], "float32")
I = np.array([0, 2, 1], "int32")


class Foreign:
    def __init__(self, array):
        self.array = wnp.asarray(array)

    def __jax_array__(self):
        return self.array


@weft.tree_util.register_pytree_node_class
class Node(Foreign):
    def tree_flatten(self):
        return (self.array,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        made = object.__new__(cls)
        made.array = children[0]
        return made


class OfNumpy:
    def __init__(self, array):
        self.array = np.asarray(array)

    def __array__(self, dtype=None, copy=None):
        return self.array


# Each gives arrays, of what stands for M, V and I.
CALLS = {
    "ufuncs": lambda m, v, i: (wnp.sin(m), wnp.add(m, v), wnp.power(v, 2), wnp.left_shift(i, i)),
    "ufunc_objects": lambda m, v, i: (wnp.add.reduce(m), wnp.add.outer(v, v), wnp.maximum(v, 1.0)),
    "at": lambda m, v, i: (
        wnp.add.at(v, i, v, inplace=False),
        wnp.ones(3).at[0].set(wnp.sum(v)),
    ),
    "joins": lambda m, v, i: (wnp.stack([v, v]), wnp.concatenate([v, V]), wnp.block([[v], [v]])),
    "shapes": lambda m, v, i: (wnp.reshape(m, 6), wnp.transpose(m), wnp.broadcast_to(v, (2, 3))),
    "moves": lambda m, v, i: (wnp.roll(v, 1), wnp.tile(v, 2), wnp.pad(v, 1), wnp.split(v, 3)[1]),
    "reductions": lambda m, v, i: (wnp.sum(m), wnp.mean(m, 0), wnp.max(m), wnp.std(m), wnp.all(m)),
    "where": lambda m, v, i: (wnp.sum(M, where=wnp.greater(v, 1)), wnp.where(v, v, v)),
    "products": lambda m, v, i: (wnp.einsum("ij,j", m, v), wnp.dot(m, v), wnp.tensordot(m, v, 1)),
    "order": lambda m, v, i: (wnp.sort(v), wnp.argsort(v), wnp.unique(v), wnp.searchsorted(V, v)),
    "choice": lambda m, v, i: (wnp.take(v, i), wnp.select([i], [v], 7.0), wnp.clip(v, 0.6, 1.5)),
    "facts": lambda m, v, i: (np.asarray(wnp.ndim(m)), np.asarray(wnp.size(m))),
    "creation": lambda m, v, i: (wnp.zeros_like(m), wnp.full_like(m, 2), wnp.array([v, V])),
    "nested": lambda m, v, i: (wnp.asarray([[v, v], [V, v]]),),
    "linalg": lambda m, v, i: (wnp.linalg.norm(m), wnp.fft.fft(v)),
    "nn": lambda m, v, i: (nn.softmax(v), nn.relu(v), nn.one_hot(i, 3), nn.logsumexp(v)),
    "special": lambda m, v, i: (special.erf(v), special.xlogy(v, v)),
    "random": lambda m, v, i: (
        weft.random.permutation(weft.random.PRNGKey(0), v),
        weft.random.fold_in(weft.random.PRNGKey(0), wnp.sum(i)),
    ),
    "methods": lambda m, v, i: (wnp.asarray(V).dot(v), wnp.asarray(V).searchsorted(v)),
    "operators": lambda m, v, i: (
        wnp.ones(3) + v,
        v - wnp.ones(3),
        wnp.eye(3) @ v,
        v // wnp.ones(3),
    ),
    "conversion": lambda m, v, i: (lax.convert_element_type(v, "int32"), wnp.astype(v, "int32")),
    "indices": lambda m, v, i: (wnp.asarray(V)[i], wnp.asarray(M)[:, i]),
    "segments": lambda m, v, i: (weft.ops.segment_sum(v, i, 3),),
}


@pytest.mark.parametrize("kind", [Foreign, Node])
@pytest.mark.parametrize("name", CALLS)
def test_functions_of_arrays_ask_for_the_array(name, kind):
    call = CALLS[name]
    expected = call(wnp.asarray(M), wnp.asarray(V), wnp.asarray(I))
    got = call(kind(M), kind(V), kind(I))
    for x, y in zip(got, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_they_do_so_within_traces():
    f = weft.jit(lambda x: wnp.sum(wnp.stack([Foreign(x), Foreign(x)]) * wnp.sin(Foreign(x))))
    x = wnp.asarray(V)
    np.testing.assert_allclose(weft.grad(f)(x), 2 * (np.sin(V) + V * np.cos(V)), rtol=1e-6)
    assert weft.grad(lambda tree: wnp.sin(tree).sum())(Node(x)).array.shape == (3,)


REFUSED = {
    "lax": lambda x: lax.sin(x),
    "lax of two": lambda x: lax.add(x, x),
    "lax.concatenate": lambda x: lax.concatenate([x, x], 0),
    "jit": lambda x: weft.jit(abs)(x),
    "grad": lambda x: weft.grad(lambda y: y)(x),
    "vmap": lambda x: weft.vmap(lambda y: y)(x),
    "scan": lambda x: lax.scan(lambda c, y: (c, y), 0.0, x),
    "device_put": lambda x: weft.device_put(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operations_and_transformed_functions_do_not(name):
    with pytest.raises((TypeError, ValueError), match="asarray") as info:
        REFUSED[name](Foreign(I))
    assert isinstance(info.value, ValueError) and isinstance(info.value, TypeError)


def test_numpy_protocol_is_for_asarray():
    assert (wnp.asarray(OfNumpy(V)) == V).all() and (wnp.array([OfNumpy(V), V])[0] == V).all()
    with pytest.raises(TypeError, match="asarray"):
        wnp.sin(OfNumpy(V))


def test_what_fails_with_arrays_fails_with_objects():
    with pytest.raises(weft.errors.ShapeError, match="reshape"):
        wnp.reshape(Foreign(V), 7)

    class Broken:
        def __jax_array__(self):
            raise RuntimeError("no array today")

    with pytest.raises(RuntimeError, match="no array today"):
        wnp.sin(Broken())
    with pytest.raises(TypeError):
        wnp.sin(Foreign)


def test_is_it_a_scalar():
    assert wnp.isscalar(Foreign(1)) and not wnp.isscalar(Foreign(V))
    assert wnp.isscalar(1) and wnp.isscalar("a") and not wnp.isscalar([1])
    assert not wnp.isscalar(None) and not wnp.isscalar(Foreign)


class Pair(NamedTuple):
    first: object
    second: object

    def __rmul__(self, other):
        return Pair(other * self.first, other * self.second)

    def __gt__(self, other):
        return "greater"


class Row(list):
    def __rmul__(self, other):
        return [other * x for x in self]


def test_classes_of_sequences_have_reflected_methods_of_their_own():
    for made in (wnp.ones(3) * Pair(2, 3), weft.jit(lambda x: x * Pair(2, 3))(wnp.ones(3))):
        assert made.first.tolist() == [2, 2, 2] and made.second.tolist() == [3, 3, 3]
    assert (wnp.int32(2) * Row([1, 2]))[1] == 4
    assert (wnp.ones(3) < Pair(2, 3)) == "greater"
    for f in (lambda x, y: x == y, lambda x, y: x >= y, lambda x, y: x - y):
        with pytest.raises(TypeError):  # Python's own methods of tuples are not for arrays
            f(wnp.ones(2), Pair(2, 3))
    with pytest.raises(TypeError):
        wnp.int32(2) * [1, 2]
