"""Jacobians and Hessians: the linear part of a function, mapped over a basis by the core."""

from weft import _core
from weft._autodiff import argument_names, check_argnums, positions
from weft._recording import check_callable, function_name
from weft._surface import named_after, public_function


def _jacobian(fun, argnums, has_aux, holomorphic, forward, allow_int=False):
    check_argnums(argnums)
    name = function_name(fun)

    @public_function
    @named_after(fun)
    def jacobian_fun(*args, **kwargs):
        nums, single = positions(argnums, len(args), name)
        where = argument_names(fun, args, kwargs, nums)
        jacobian, aux = _core.jacobian(
            *(fun, name, args, kwargs, nums, where),
            *(has_aux, holomorphic, forward, single, allow_int),
        )
        return (jacobian, aux) if has_aux else jacobian

    return jacobian_fun


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the Jacobian of `fun`, by forward mode, one column per input element.

    Cheaper than `jacrev` where there are more outputs than inputs. For a result of shape r and an
    argument of shape a, the Jacobian has shape (*r, *a); trees nest as results of arguments. With
    has_aux, returns (jacobian, aux).

    `argnums` is the position of the argument, or positions, by which to differentiate. Results must
    be real, or with `holomorphic` complex.

    Examples:
      >>> weft.jacfwd(lambda x: x**2)(wnp.array([1.0, 2.0]))
      Array([[2., 0.],
             [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacfwd")
    return _jacobian(fun, argnums, has_aux, holomorphic, forward=True)


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """A function that returns the Jacobian of `fun`, by reverse mode, one row per output element.

    Cheaper than `jacfwd` where there are fewer outputs than inputs; same result. Results must be
    real, or with `holomorphic` complex.

    Args:
      argnums: the position of the argument, or positions, by which to differentiate.
      has_aux: whether `fun` returns (result, aux); then the function returns (jacobian, aux).
      allow_int: arguments may hold integers; the Jacobian by these is zero, of their dtype.

    Examples:
      >>> weft.jacrev(lambda x: wnp.array([x[0] * x[1], x[1]]))(wnp.array([2.0, 3.0]))
      Array([[3., 2.],
             [0., 1.]], dtype=float32)
    """
    check_callable(fun, "jacrev")
    return _jacobian(fun, argnums, has_aux, holomorphic, forward=False, allow_int=allow_int)


jacobian = jacrev


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the Hessian of `fun`: forward over reverse mode.

    For a product of the Hessian with a vector v, do not form it: `jvp(grad(f), (x,), (v,))[1]`.

    `argnums`, `has_aux` and `holomorphic` are those of `jacfwd`. For an argument of shape a and a
    result of shape r, it has shape (*r, *a, *a).

    Examples:
      >>> weft.hessian(lambda x: x[0] * x[1] ** 2)(wnp.array([1.0, 2.0]))
      Array([[0., 4.],
             [4., 2.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
