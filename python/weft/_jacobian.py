"""Jacobians and Hessians, composed of vmap with jvp, vjp and linearize."""

import functools
import math

import numpy as np

from weft import _core
from weft._autodiff import linearize, positions, vjp
from weft._recording import check_callable, function_name
from weft._surface import public_function
from weft._vmap import vmap
from weft.dtypes import is_complex, is_float, is_inexact
from weft.errors import DTypeError
from weft.runtime.pytree import registry


def _check_inputs(leaves, transform, holomorphic):
    for leaf in leaves:
        dtype = _core.typeof(leaf)[1]
        if holomorphic and not is_complex(dtype):
            raise DTypeError(
                f"{transform} with holomorphic=True expected complex inputs; got {dtype}"
            )
        if transform == "jacfwd" and not holomorphic and not is_float(dtype):
            raise DTypeError(f"jacfwd expected real floating-point inputs; got {dtype}")
        if not is_inexact(dtype):
            raise DTypeError(f"{transform} expected floating-point or complex inputs; got {dtype}")


def _check_outputs(leaves, transform, holomorphic):
    for leaf in leaves:
        dtype = _core.typeof(leaf)[1]
        if holomorphic and not is_complex(dtype):
            raise DTypeError(
                f"{transform} with holomorphic=True expected complex results; got {dtype}"
            )
        # Backwards a complex result that is not holomorphic has two rows per element.
        if transform == "jacrev" and not holomorphic and not is_float(dtype):
            raise DTypeError(f"jacrev expected real floating-point results; got {dtype}")


def _basis(leaves):
    """For each leaf, the standard basis of all leaves together: shape (total, *leaf shape)."""
    types = [_core.typeof(x) for x in leaves]
    sizes = [math.prod(shape) for shape, _, _ in types]
    total, start, out = sum(sizes), 0, []
    for (shape, dtype, _), size in zip(types, sizes, strict=True):
        block = np.zeros((total, size), dtype)
        block[start : start + size] = np.eye(size, dtype=dtype)
        out.append(_core.astype(block.reshape(total, *shape), dtype))
        start += size
    return out, sizes


def _split(x, sizes, axis):
    """Parts of an axis of x, one per size."""
    if len(sizes) == 1:
        return [x]
    bounds = np.cumsum([0, *sizes])
    index = (slice(None),) * axis
    return [x[(*index, slice(a, b))] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _reshape(x, shape):
    return x if x.shape == shape else _core.bind("reshape", x, new_sizes=shape)


def _prepare(fun, argnums, args, kwargs, transform, holomorphic):
    nums, single = positions(argnums, len(args), function_name(fun))
    selected = tuple(args[n] for n in nums)
    leaves, tree = registry.flatten(selected)
    _check_inputs(leaves, transform, holomorphic)

    def of_leaves(*values):
        new = list(args)
        for n, value in zip(nums, tree.unflatten(values), strict=True):
            new[n] = value
        return fun(*new, **kwargs)

    of_leaves.__name__ = function_name(fun)
    return of_leaves, leaves, tree, single


def _assemble(parts, out_tree, in_tree, single):
    """parts[result][input leaf] as a tree of results of trees of inputs."""
    per_output = []
    for row in parts:
        gradient = in_tree.unflatten(row)
        per_output.append(gradient[0] if single else gradient)
    return out_tree.unflatten(per_output)


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the Jacobian of `fun`, by forward mode, one column per input element.

    Cheaper than `jacrev` where there are more outputs than inputs. For a result of shape r and an
    argument of shape a, the Jacobian has shape (*r, *a); trees nest as results of arguments. With
    has_aux, returns (jacobian, aux).
    """
    check_callable(fun, "jacfwd")

    @public_function
    @functools.wraps(fun)
    def jacobian_fun(*args, **kwargs):
        f, leaves, tree, single = _prepare(fun, argnums, args, kwargs, "jacfwd", holomorphic)
        value, push, *aux = linearize(f, *leaves, has_aux=has_aux)
        _check_outputs(registry.flatten(value)[0], "jacfwd", holomorphic)
        basis, sizes = _basis(leaves)
        columns = vmap(push, out_axes=-1)(*basis)
        rows, out_tree = registry.flatten(columns)
        parts = []
        for y in rows:
            shape = y.shape[:-1]
            blocks = _split(y, sizes, len(shape))
            parts.append(
                [
                    _reshape(b, shape + _core.typeof(x)[0])
                    for b, x in zip(blocks, leaves, strict=True)
                ]
            )
        jacobian = _assemble(parts, out_tree, tree, single)
        return (jacobian, *aux) if has_aux else jacobian

    return jacobian_fun


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """A function that returns the Jacobian of `fun`, by reverse mode, one row per output element.

    Cheaper than `jacfwd` where there are fewer outputs than inputs; same result. Arguments must be
    floating-point or complex: `allow_int` must be False. Results must be real, or with
    `holomorphic` complex.
    """
    check_callable(fun, "jacrev")
    if allow_int:
        raise NotImplementedError("jacrev allow_int: Jacobians by integers are not in weft yet")

    @public_function
    @functools.wraps(fun)
    def jacobian_fun(*args, **kwargs):
        f, leaves, tree, single = _prepare(fun, argnums, args, kwargs, "jacrev", holomorphic)
        value, pull, *aux = vjp(f, *leaves, has_aux=has_aux)
        outputs, out_tree = registry.flatten(value)
        _check_outputs(outputs, "jacrev", holomorphic)
        basis, sizes = _basis(outputs)
        gradients = vmap(lambda ct: pull(ct))(out_tree.unflatten(basis))
        columns = [_split(g, sizes, 0) for g in gradients]
        parts = []
        for i, y in enumerate(outputs):
            shape = _core.typeof(y)[0]
            parts.append([_reshape(c[i], shape + c[i].shape[1:]) for c in columns])
        jacobian = _assemble(parts, out_tree, tree, single)
        return (jacobian, *aux) if has_aux else jacobian

    return jacobian_fun


jacobian = jacrev


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the Hessian of `fun`: forward over reverse mode.

    For a product of the Hessian with a vector v, do not form it: `jvp(grad(f), (x,), (v,))[1]`.
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
