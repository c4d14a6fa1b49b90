"""cond and switch."""

from weft import _core
from weft._jit import jit
from weft._recording import check_callable, check_leaves, leaf_paths
from weft._types.avals import typeof
from weft.errors import AttributeValueError, ConcretizationTypeError, ControlFlowTypeError
from weft.lax._regions import (
    Body,
    check_distinct,
    check_same_tree,
    check_same_types,
    regions,
    runs_in_python,
    split,
    unites_axes,
    weak_types,
    written,
)
from weft.runtime.pytree import registry

_NO_OPERAND = object()


def cond(pred, true_fun, false_fun, *operands, operand=_NO_OPERAND):
    """The result of `true_fun(*operands)` if `pred` holds, else that of `false_fun(*operands)`.

    Both functions are traced, and one of them runs. Under `vmap` with a predicate that differs
    between lanes both run, for all lanes, and each lane selects its results.

    Args:
      pred: scalar bool, or a number, which holds unless it is zero.
      true_fun, false_fun: functions to trees of arrays of the same structure, shapes and dtypes.
        What they close over may be traced.
      operands: any trees of arrays.
      operand: in place of `operands`, a single one.

    `cond(pred, true_operand, true_fun, false_operand, false_fun)`, with an operand of its own for
    each function, is an older form.

    Raises ControlFlowTypeError if pred is no scalar, or if the functions return different types.

    Examples:
      >>> lax.cond(True, lambda x: x + 1, lambda x: x - 1, 5).item()
      6
    """
    return cond_with(False, pred, true_fun, false_fun, *operands, operand=operand)


def cond_with(is_own, pred, true_fun, false_fun, *operands, operand=_NO_OPERAND):
    """`cond`; `is_own`: for a function of weft (see `unites_axes`)."""
    if len(operands) == 2 and callable(operands[1]) and not callable(true_fun):
        branches = false_fun, operands[1]
        operands = true_fun, operands[0]
        true_fun, false_fun = (lambda x, _: branches[0](x)), (lambda _, x: branches[1](x))
    check_callable(true_fun, "cond")
    check_callable(false_fun, "cond")
    operands = _operands("cond", operands, operand)
    _check_predicate(pred)
    if runs_in_python() and (known := _value(pred, bool)) is not None:
        return (true_fun if known else false_fun)(*operands)
    index = _core.astype(_core.astype(pred, bool), "int32")
    bodies = _trace("cond", (false_fun, true_fun), operands)
    names = ("false_fun", "true_fun")
    return _bind("cond", index, bodies, operands, names, 1, unites_axes(is_own))


def switch(index, branches, *operands, operand=_NO_OPERAND):
    """The result of `branches[index](*operands)`.

    All branches are traced, and one of them runs. Under `vmap` with an index that differs between
    lanes all of them run.

    Args:
      index: integer scalar, clamped to 0 .. len(branches) - 1.
      branches: sequence of functions to trees of the same structure, shapes and dtypes.
      operands: any trees of arrays.
      operand: in place of `operands`, a single one.

    Raises ControlFlowTypeError if the index is no integer scalar, or if the branches return
    different types; AttributeValueError without branches.

    Examples:
      >>> branches = [lambda x: x, lambda x: x * x, lambda x: -x]
      >>> [lax.switch(i, branches, 3).item() for i in range(3)]
      [3, 9, -3]
    """
    return switch_with(False, index, branches, *operands, operand=operand)


def switch_with(is_own, index, branches, *operands, operand=_NO_OPERAND):
    """`switch`; `is_own`: for a function of weft (see `unites_axes`)."""
    branches = tuple(branches)
    for branch in branches:
        check_callable(branch, "switch")
    operands = _operands("switch", operands, operand)
    if not branches:
        raise AttributeValueError("[switch] expected at least one branch; got none")
    _check_index(index)
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if runs_in_python() and (known := _value(index, int)) is not None:
        return branches[min(max(known, 0), last)](*operands)
    index = _core.bind("clamp", *_core.promote_dtypes(0, _narrow(index), last))
    bodies = _trace("switch", branches, operands)
    names = [f"branches[{k}]" for k in range(len(branches))]
    index = _core.astype(index, "int32")
    return _bind("switch", index, bodies, operands, names, 0, unites_axes(is_own))


def platform_dependent(*args, default=None, **per_platform):
    """The result of the function for the platform that the program runs on, applied to `args`.

    All functions are traced; the program that is compiled has only the one for its platform.
    Transforms go into each of them.

    Args:
      args: trees of arrays.
      default: the function for platforms without one; None if there is none.
      per_platform: functions by platform: `cpu`, `cuda`, `rocm`, `tpu`. All return trees of the
        same structure, shapes and dtypes.

    Raises:
      ControlFlowTypeError: if functions return different types.
      NotImplementedError: where the program is compiled, for a platform without a function.

    Examples:
      >>> lax.platform_dependent(3, cuda=lambda x: x + 1, default=lambda x: 2 * x).item()
      6
    """
    for name, function in per_platform.items():
        check_callable(function, f"platform_dependent, for {name},")
    if default is not None:
        check_callable(default, "platform_dependent")
    if "gpu" in per_platform:
        raise AttributeValueError("[platform_dependent] expected platforms cuda or rocm; got gpu")
    by_function = {}
    for name, function in per_platform.items():
        by_function.setdefault(id(function), (function, []))[1].append(name)
    functions = [function for function, _ in by_function.values()]
    platforms = ";".join(",".join(names) for _, names in by_function.values())
    names = [f"'{', '.join(names)}'" for _, names in by_function.values()]
    if default is not None:
        functions.append(default)
        names.append("default")

    @jit
    def choose(args):
        if default is None:
            _core.bind("require_platform", platforms=platforms)
        if not functions:
            return None
        index = _core.bind("platform_index", platforms=platforms)
        bodies = _trace("platform_dependent", functions, args)
        return _bind("platform_dependent", index, bodies, args, names, 0, False)

    return choose(args)


def _operands(what, operands, operand):
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise TypeError(f"[{what}] expected operands by position or by name; got both")
    return (operand,)


def _value(x, kind):
    """The value of a scalar as bool or int; None if it has not one value (vmap, jit)."""
    try:
        return kind(x)
    except ConcretizationTypeError:
        return None


def _check_predicate(pred):
    try:
        aval = typeof(pred)
    except TypeError:
        raise ControlFlowTypeError(f"[cond] expected a scalar pred; got {pred!r:.60}") from None
    if aval.shape:
        raise ControlFlowTypeError(
            f"[cond] expected a scalar pred; got {aval}\n"
            "  Reduce it (all, any), or choose by element with where."
        )
    if aval.dtype.kind == "c":
        raise ControlFlowTypeError(f"[cond] expected a bool or a real number as pred; got {aval}")


def _check_index(index):
    try:
        aval = typeof(index)
    except TypeError:
        raise ControlFlowTypeError(f"[switch] expected an index; got {index!r:.60}") from None
    if aval.shape or aval.dtype.kind not in "iu":
        raise ControlFlowTypeError(f"[switch] expected an integer scalar as index; got {aval}")


def _narrow(index):
    """An index whose dtype holds the numbers of branches."""
    return _core.astype(index, "int32") if _core.typeof(index)[1].itemsize < 4 else index


def _trace(what, functions, operands):
    leaves, tree = registry.flatten(operands)
    refs = {i: x for i, x in enumerate(leaves) if isinstance(x, _core.Ref)}

    def describe(i):
        return f"operand{leaf_paths(tree)[i]} of {what}"

    check_distinct(refs, describe)
    check_leaves([0 if i in refs else x for i, x in enumerate(leaves)], describe)
    trees = [registry.flatten(x)[1] for x in operands]
    names = [f"operand {i}" for i in range(len(operands))]
    return [Body(f, trees, leaves, what, names, writes=True) for f in functions]


def _bind(what, index, bodies, operands, names, first, auto_pcast):
    """Binds the op; results are compared to those of bodies[first]."""
    model = bodies[first]
    for body, name in zip(bodies, names, strict=True):
        message = (
            f"[{what}] expected {name} ('{body.name}') to return what {names[first]} "
            f"('{model.name}') returns"
        )
        check_same_tree(model.structure(), body.structure(), message, "result")
        check_same_types(model.out_tree, model.out_types, body.out_types, message, "result")
    refs = written(*bodies)
    graphs, captures = regions(*bodies, refs=refs)
    leaves = [x for x in registry.flatten(operands)[0] if not isinstance(x, _core.Ref)]
    inputs = [index, *captures, *leaves]
    results = _core.bind_graphs(
        "cond",
        inputs,
        (*weak_types(refs), *bodies[0].weak),
        branches=graphs,
        auto_pcast=auto_pcast,
    )
    values, results = split(results, len(refs))
    _core.set_refs(refs, values)
    return model.out_tree.unflatten(results)
