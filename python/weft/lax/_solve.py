"""custom_linear_solve and custom_root: derivatives by the implicit function theorem."""

from weft import _core
from weft._autodiff import linear_transpose, linearize
from weft._custom_rules import SymbolicZero, custom_jvp
from weft._recording import call, check_callable, check_leaves, function_name, leaf_paths
from weft._types.avals import typeof
from weft.dtypes import is_inexact
from weft.errors import ControlFlowTypeError, DTypeError, ShapeError, TreeStructureError
from weft.lax._regions import Body, check_same_tree, check_same_types, plain, regions
from weft.runtime.pytree import registry


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """Solves matvec(x) = b by `solve(matvec, b)`, with derivatives that follow from the equation.

    Derivatives with respect to `b` and to what `matvec` closes over are solutions of the same
    system, or of the transposed one, for another right-hand side: A dx = db - dA x. The steps that
    `solve` takes are not differentiated, so it may be a `while_loop`. All functions may close over
    traced values.

    Args:
      matvec: linear function from a tree like `b` to one of the same structure, shapes and dtypes.
      b: tree of floating-point arrays.
      solve: solve(matvec, b) -> x, a tree like `b`.
      transpose_solve: transpose_solve(vecmat, b) -> x for the transposed system, whose `vecmat` is
        made of `matvec`. Reverse mode needs it, unless `symmetric`.
      symmetric: `matvec` is its own transpose; it is the `vecmat` of `transpose_solve`, which is
        `solve` if absent.
      has_aux: `solve` and `transpose_solve` return (x, aux), with any tree of arrays as aux.

    Returns x, with has_aux (x, aux). aux has no derivative.

    Raises ShapeError or ControlFlowTypeError if a function returns other shapes, or another
    structure or dtype than `b` has; TreeStructureError if `solve` returns no pair, with has_aux;
    DTypeError for `transpose_solve` with a `b` of integers. A derivative in reverse mode without
    `transpose_solve` raises TypeError.

    Examples:
      >>> solve = lambda matvec, b: b / 4
      >>> f = lambda b: lax.custom_linear_solve(lambda x: 4 * x, b, solve, symmetric=True)
      >>> f(8.0).item(), weft.grad(f)(8.0).item()
      (2.0, 0.25)
    """
    what = "custom_linear_solve"
    given = {"matvec": matvec, "solve": solve}
    if transpose_solve is not None:
        given["transpose_solve"] = transpose_solve
    _check_functions(what, given)
    leaves, tree = registry.flatten(b)
    check_leaves(leaves, lambda i: f"b{leaf_paths(tree)[i]} of {what}")

    def apply(linear, name):
        body = Body(linear, [tree], leaves, what, ["x"])
        _check_like(body, body.out_tree, tree, leaves, name, "b", ShapeError)
        return body

    def solver(function, linear, name):
        return _solver(function, linear, tree, leaves, has_aux, what, name, "b", ShapeError)

    bodies = [apply(matvec, "matvec"), solver(solve, matvec, "solve")]
    if transpose_solve is not None:
        _check_inexact(what, "b", tree, leaves)
        vecmat = matvec if symmetric else _transposed(matvec, b)
        bodies.insert(1, bodies[0] if symmetric else apply(vecmat, "the transpose of matvec"))
        bodies.append(solver(transpose_solve, vecmat, "transpose_solve"))
    graphs, consts = [], []
    for body in bodies:
        (graph,), captures = regions(body)
        graphs.append(graph)
        consts.append(captures)
    solved = bodies[len(bodies) // 2]
    results = _core.bind_graphs(
        what,
        [*(x for captures in consts for x in captures), *leaves],
        solved.weak,
        name=solved.name,
        jaxprs=graphs,
        const_lengths=tuple(map(len, consts)),
        symmetric=symmetric and transpose_solve is None,
    )
    return solved.out_tree.unflatten(results)


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """The root of `f` that `solve(f, initial_guess)` finds, with implicit derivatives.

    For f(x, m) = 0, where `f` closes over m, the derivative follows from that of `f` at the root:
    df/dx dx = -df/dm dm. The steps that `solve` takes are not differentiated, so it may be a
    `while_loop`. All functions may close over traced values.

    Args:
      f: function of a tree like `initial_guess` to one of the same structure, shapes and dtypes.
      initial_guess: tree of floating-point arrays. The derivative with respect to it is zero.
      solve: solve(f, initial_guess) -> x with f(x) = 0, a tree like `initial_guess`.
      tangent_solve: tangent_solve(g, y) -> x with g(x) = y, where g is `f` linearised at the root
        and y a tree like `initial_guess`: `lambda g, y: y / g(1.0)` for a scalar; for trees e.g.
        `custom_linear_solve`. Reverse mode takes it to be linear in y and transposes it.
      has_aux: `solve` returns (x, aux), with any tree of arrays as aux.

    Returns x, with has_aux (x, aux). aux has no derivative.

    Raises ControlFlowTypeError if a function returns another structure, shape or dtype than
    `initial_guess` has; TreeStructureError if `solve` returns no pair, with has_aux; DTypeError for
    an `initial_guess` of integers.

    Examples:
      >>> def root(a):  # of x * x == a
      ...     solve = lambda f, guess: wnp.sqrt(a)
      ...     return lax.custom_root(lambda x: x * x - a, 1.0, solve, lambda g, y: y / g(1.0))
      >>> root(4.0).item(), weft.grad(root)(4.0).item()
      (2.0, 0.25)
    """
    what, like = "custom_root", "initial_guess"
    _check_functions(what, {"f": f, "solve": solve, "tangent_solve": tangent_solve})
    guess, tree = registry.flatten(initial_guess)
    check_leaves(guess, lambda i: f"{like}{leaf_paths(tree)[i]} of {what}")
    _check_inexact(what, like, tree, guess)

    def linearize_and_solve(x, y):
        return tangent_solve(linearize(f, x)[1], y)

    linearize_and_solve.__name__ = function_name(tangent_solve)
    equation = Body(f, [tree], guess, what, ["x"])
    _check_like(equation, equation.out_tree, tree, guess, "f", like, ControlFlowTypeError)
    solver = _solver(solve, f, tree, guess, has_aux, what, "solve", like, ControlFlowTypeError)
    tangent = Body(linearize_and_solve, [tree, tree], [*guess, *guess], what, ["x", "y"])
    _check_like(tangent, tangent.out_tree, tree, guess, "tangent_solve", like, ControlFlowTypeError)

    # What the functions close over are arguments, so that there are derivatives with respect to it.
    # The rule holds graphs only: it may outlive the trace that these values are of.
    num_unknowns, weak = len(guess), solver.weak
    solve_graph, residual_graph, tangent_graph = solver.graph, equation.graph, tangent.graph

    @custom_jvp
    def root(equation_consts, tangent_consts, solver_consts, guess):
        return call(solve_graph, [*solver_consts, *guess], weak)

    def jvp(primals, tangents):
        equation_consts, tangent_consts, _, _ = primals
        results = root(*primals)
        solution = results[:num_unknowns]
        dots = [SymbolicZero(typeof(x)) for x in results]
        moves = [not isinstance(t, SymbolicZero) for t in tangents[0]]
        if any(moves):

            def residual(*moving):
                given = iter(moving)
                consts = [
                    next(given) if m else x for m, x in zip(moves, equation_consts, strict=True)
                ]
                return call(residual_graph, [*consts, *solution])

            def moving(xs):
                return [x for m, x in zip(moves, xs, strict=True) if m]

            rhs = linearize(residual, *moving(equation_consts))[1](*moving(tangents[0]))
            solved = call(tangent_graph, [*tangent_consts, *solution, *rhs])
            dots[:num_unknowns] = [-x for x in solved]
        return results, dots

    root.defjvp(jvp, symbolic_zeros=True)
    results = root(equation.captures, tangent.captures, solver.captures, guess)
    return solver.out_tree.unflatten(results)


def _check_functions(what, functions):
    for name, function in functions.items():
        check_callable(function, f"[{what}] {name}:")


def _check_inexact(what, name, tree, leaves):
    for path, x in zip(leaf_paths(tree), map(typeof, leaves), strict=True):
        if not is_inexact(x.dtype):
            raise DTypeError(
                f"[{what}] expected {name}{path} to be of a floating-point or complex dtype, in "
                f"which there are derivatives; got {plain(x)}"
            )


def _check_like(body, got, tree, leaves, name, like, of_shapes, place="result"):
    """Checks that the first results of a body, of structure `got`, are like the input `like`.

    `of_shapes` is the class of the error for results of other shapes.
    """
    message = f"[{body.what}] expected {name} ('{body.name}') to return a tree like {like}"
    types = [typeof(x) for x in leaves]
    results = body.out_types[: got.num_leaves]
    shapes_differ = [x.shape for x in types] != [x.shape for x in results]
    error = of_shapes if shapes_differ else ControlFlowTypeError
    check_same_tree(tree.unflatten(types), got.unflatten(results), message, place, error)
    check_same_types(tree, types, results, message, place, error)


def _solver(function, argument, tree, leaves, has_aux, what, name, like, of_shapes):
    """The Body of function(argument, start), where `start` is the input `like`."""
    solution = None

    def solved(start):
        nonlocal solution
        result = function(argument, start)
        if not has_aux:
            solution = registry.flatten(result)[1]
            return result
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TreeStructureError(
                f"[{what}] expected {name} ('{function_name(function)}') to return a pair "
                f"(x, aux), as has_aux says; got {result!r:.60}"
            )
        solution = registry.flatten(result[0])[1]
        return tuple(result)

    solved.__name__ = function_name(function)
    body = Body(solved, [tree], leaves, what, [like])
    place = "result[0]" if has_aux else "result"
    _check_like(body, solution, tree, leaves, name, like, of_shapes, place)
    return body


def _transposed(matvec, b):
    transpose = linear_transpose(matvec, b)

    def vecmat(y):
        return transpose(y)[0]

    vecmat.__name__ = function_name(matvec)
    return vecmat
