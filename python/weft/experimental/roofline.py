"""What a function computes, reads and sends, counted from its program: nothing is compiled.

Numbers are sums over operations, by a rule for each kind; those without one count as nothing.
Bodies of loops count once. `register_roofline` adds rules.
"""

import collections
import dataclasses
import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft._autodiff import vjp as _vjp
from weft._shard_map import shard_map as _shard_map
from weft._stages.program import make_jaxpr as _make_jaxpr
from weft._surface import (
    named_after as _named_after,
    open_to_users as _open_to_users,
    public as _public,
)
from weft._types.avals import ShapeDtypeStruct as _ShapeDtypeStruct
from weft._types.primitives import primitive_named as _primitive_named
from weft.errors import ArgumentTypeError
from weft.extend.core import Literal as _Literal, Primitive as _Primitive
from weft.sharding import NamedSharding as _NamedSharding
from weft.tree_util import tree_broadcast as _tree_broadcast, tree_map as _tree_map

__all__ = [
    "RooflineResult",
    "RooflineRuleContext",
    "RooflineShape",
    "register_roofline",
    "register_standard_roofline",
    "roofline",
    "roofline_and_grad",
]
__getattr__, __dir__ = _public(__name__, __all__)
_log = logging.getLogger("weft")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of a value.

    Attributes: shape, dtype, size (number of elements), bytes.
    """

    shape: tuple
    dtype: Any

    @classmethod
    def from_aval(cls, aval):
        """That of a ShapedArray."""
        return cls(shape=aval.shape, dtype=aval.dtype)

    @classmethod
    def total_bytes(cls, avals):
        """The bytes of several values."""
        return sum(cls.from_aval(aval).bytes for aval in avals)

    size = property(lambda self: math.prod(self.shape))
    bytes = property(lambda self: self.size * self.dtype.itemsize)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """What a program, or an operation, takes. Results add up, and are multiplied by numbers.

    Attributes:
      flops: operations on numbers that no fusion saves: those of products of matrices.
      unfused_flops: all that are counted.
      ici_bytes, ici_latency: per axis of the mesh the bytes that the busiest link sends, and the
        number of steps from device to device, if devices along axes are rings.
      hbm_bytes: bytes that products of matrices read and write.
      unfused_hbm_bytes: bytes that operations read and write, if each does so by itself.
      peak_hbm_bytes: the most bytes of values that are alive together.
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict = dataclasses.field(default_factory=dict)
    ici_latency: dict = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls):
        """That of nothing."""
        return cls()

    def __add__(self, other):
        def joint(name) -> Any:
            a, b = getattr(self, name), getattr(other, name)
            if name == "peak_hbm_bytes":
                return max(a, b)
            if isinstance(a, dict):
                return {axis: a.get(axis, 0) + b.get(axis, 0) for axis in {**a, **b}}
            return a + b

        return RooflineResult(**{f.name: joint(f.name) for f in dataclasses.fields(self)})

    def __mul__(self, constant):
        def times(x) -> Any:
            return (
                {k: int(v * constant) for k, v in x.items()}
                if isinstance(x, dict)
                else int(x * constant)
            )

        values = {f.name: times(getattr(self, f.name)) for f in dataclasses.fields(self)}
        return RooflineResult(**values)

    __rmul__ = __mul__


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """What a rule knows of an operation.

    Attributes: primitive; avals_in and avals_out, the ShapedArrays of operands and results; mesh,
    the Mesh or None; pin_lhs_in_vmem and pin_rhs_in_vmem, as `roofline` is given them.
    """

    primitive: Any
    avals_in: list
    avals_out: list
    mesh: Any = None
    pin_lhs_in_vmem: bool = False
    pin_rhs_in_vmem: bool = False


_rules: dict[Any, Callable] = {}  # by primitive


def register_roofline(prim):
    """A decorator that sets the rule of a Primitive: rule(context, *shapes, **params), which gets a
    RooflineRuleContext, the RooflineShapes of the operands and the parameters of the operation, and
    gives a RooflineResult.

    Examples:
      >>> from weft.experimental import roofline as rl
      >>> double_p = weft.extend.core.Primitive("double")
      >>> @rl.register_roofline(double_p)
      ... def rule(context, x):
      ...     return rl.RooflineResult(unfused_flops=x.size)
    """

    def register(rule):
        _rules[prim] = rule
        return rule

    return register


def register_standard_roofline(prim):
    """Sets that a Primitive counts as nothing.

    Examples:
      >>> from weft.experimental import roofline as rl
      >>> rl.register_standard_roofline(weft.extend.core.Primitive("view"))
    """
    _rules[prim] = lambda context, *shapes, **params: RooflineResult()


def roofline(
    f,
    mesh=None,
    in_specs=None,
    out_specs=None,
    *,
    pin_lhs_in_vmem=False,
    pin_rhs_in_vmem=False,
    vjp=False,
    print_jaxpr=False,
):
    """A function that counts what `f` takes for arguments of given types.

    Args:
      f: a function of trees of arrays.
      mesh, in_specs, out_specs: as for `weft.shard_map`; with all of them, what one device takes is
        counted of `f` as a function of parts. Without in_specs and out_specs that is so for the
        last shard_map of `f`, if it has one.
      pin_lhs_in_vmem, pin_rhs_in_vmem: whether the first operand of products and their results, or
        the second, are in memory that costs nothing.
      vjp: whether to count its vector-Jacobian product, with what that needs of the function.
      print_jaxpr: whether to print the program that is counted.

    Returns:
      count(*args), for arrays or ShapeDtypeStructs, which gives (a tree of ShapeDtypeStruct like
      the result of `f`, a RooflineResult).

    Examples:
      >>> from weft.experimental.roofline import roofline
      >>> x = weft.ShapeDtypeStruct((8, 8), "float32")
      >>> shapes, result = roofline(lambda x, y: x @ y)(x, x)
      >>> result.flops, result.hbm_bytes
      (1024, 768)
    """
    is_mapped = mesh is not None and in_specs is not None and out_specs is not None

    @_named_after(f)
    def count(*args):
        function = f
        if is_mapped:
            function = _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        if vjp:
            function = _with_vjp(function)
        closed, shapes = _make_jaxpr(function, return_shape=True)(*args)
        if mesh is not None and out_specs is not None:
            shapes = _tree_map(
                lambda s, spec: _ShapeDtypeStruct(
                    s.shape, s.dtype, sharding=_NamedSharding(mesh, spec)
                ),
                shapes,
                _tree_broadcast(out_specs, shapes),
            )
        jaxpr = closed.jaxpr
        mapped = [eqn for eqn in _needed(jaxpr) if eqn.primitive.name == "shard_map"]
        if mapped:
            jaxpr = _plain(mapped[-1].params["jaxpr"])
        if print_jaxpr:
            print(jaxpr)
        options = {"mesh": mesh, "pin_lhs_in_vmem": pin_lhs_in_vmem}
        return shapes, _counted(jaxpr, {**options, "pin_rhs_in_vmem": pin_rhs_in_vmem})

    return count


def roofline_and_grad(
    f,
    mesh,
    in_specs,
    out_specs,
    *,
    pin_lhs_in_vmem=False,
    pin_rhs_in_vmem=False,
    print_jaxpr=False,
):
    """A function that counts what `f` takes, and what its vector-Jacobian product takes.

    The arguments are those of `roofline`. It returns count(*args), which gives (a tree of
    ShapeDtypeStruct, RooflineResult of `f`, that of the product with what it needs of `f`). For
    the latter, arguments that are not int32 are bfloat16.

    Examples:
      >>> from weft.experimental.roofline import roofline_and_grad
      >>> mesh = weft.make_mesh((1,), ("x",))
      >>> x = weft.ShapeDtypeStruct((8, 8), "bfloat16")
      >>> count = roofline_and_grad(lambda x, y: x @ y, mesh, (P(), P()), P())
      >>> _, result, of_product = count(x, x)
      >>> of_product.flops // result.flops
      2
    """
    options = {
        "pin_lhs_in_vmem": pin_lhs_in_vmem,
        "pin_rhs_in_vmem": pin_rhs_in_vmem,
        "print_jaxpr": print_jaxpr,
    }

    def low(x):
        dtype = x.dtype if x.dtype == np.int32 else "bfloat16"
        return _ShapeDtypeStruct(x.shape, dtype)

    @_named_after(f)
    def count(*args):
        shapes, alone = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        both = roofline(f, mesh, in_specs, out_specs, vjp=True, **options)
        return shapes, alone, both(*_tree_map(low, args))[1]

    return count


def _with_vjp(function):
    def both(*args):
        results, pull, *_ = _vjp(function, *args)
        return pull(results)

    return both


def _plain(jaxpr):
    return getattr(jaxpr, "jaxpr", jaxpr)


def _needed(jaxpr):
    """The operations that results need, in order."""
    needed = {v for v in jaxpr.outvars if not isinstance(v, _Literal)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or needed.intersection(eqn.outvars):
            needed.update(v for v in eqn.invars if not isinstance(v, _Literal))
            kept.append(eqn)
    return kept[::-1]


def _counted(jaxpr, options):
    eqns = _needed(jaxpr)
    last = {v: eqn for eqn in eqns for v in eqn.invars if not isinstance(v, _Literal)}
    for v in jaxpr.outvars:
        if not isinstance(v, _Literal):
            last.pop(v, None)
    alive = RooflineShape.total_bytes(v.aval for v in (*jaxpr.constvars, *jaxpr.invars))
    result = RooflineResult(peak_hbm_bytes=alive)
    for eqn in eqns:
        result += _of_operation(eqn, options)
        alive += RooflineShape.total_bytes(v.aval for v in eqn.outvars)
        gone = {v for v in eqn.invars if not isinstance(v, _Literal) and last.get(v) is eqn}
        alive -= RooflineShape.total_bytes(v.aval for v in gone)
        result += RooflineResult(peak_hbm_bytes=alive)
    return result


def _of_operation(eqn, options):
    inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    if inner is not None:
        return _counted(_plain(inner), options)
    rule = _rules.get(eqn.primitive)
    if rule is None:
        if eqn.primitive._built_in:
            return RooflineResult()
        _log.warning("roofline: no rule for %s, which counts as nothing", eqn.primitive)
        return RooflineResult()
    avals_in = [v.aval for v in eqn.invars]
    context = RooflineRuleContext(
        primitive=eqn.primitive,
        avals_in=avals_in,
        avals_out=[v.aval for v in eqn.outvars],
        **options,
    )
    return rule(context, *map(RooflineShape.from_aval, avals_in), **eqn.params)


# ---- Rules


def _rule_of(names):
    def register(rule):
        for name in names.split():
            primitive = _primitive_named(f"{name}_p")
            if not isinstance(primitive, _Primitive):
                raise ArgumentTypeError(f"roofline: no operation {name!r}")
            _rules[primitive] = rule
        return rule

    return register


def _moved(context, flops, operands=None):
    """So many operations, and the bytes of operands and results."""
    given = context.avals_in if operands is None else context.avals_in[:operands]
    total = RooflineShape.total_bytes([*given, *context.avals_out])
    return RooflineResult(unfused_flops=int(flops), unfused_hbm_bytes=total)


@_rule_of(
    "abs acos asin atan cbrt ceil conj cos cosh exp expm1 floor imag integer_pow is_finite log "
    "log1p logistic neg not real round rsqrt sign sin sinh sqrt square tan bessel_i0e bessel_i1e "
    "digamma erf_inv erf erfc lgamma add sub mul div rem and or xor gt lt ge le eq ne min max"
)
def _elementwise(context, *shapes, **params):
    return _moved(context, RooflineShape.from_aval(context.avals_out[0]).size)


@_rule_of("select_n")
def _select(context, *shapes, **params):
    return _moved(context, RooflineShape.from_aval(context.avals_out[0]).size, operands=1)


@_rule_of("cummax cummin cumprod cumsum cumlogsumexp")
def _cumulative(context, x, *, axis, **params):
    each = 2 if context.primitive.name == "cumlogsumexp" else 1
    return _moved(context, each * x.shape[axis])


@_rule_of("reduce_sum")
def _sum(context, x, *, axes, **params):
    terms = math.prod(x.shape[i] for i in axes)
    return _moved(context, (terms - 1) * math.prod(context.avals_out[0].shape))


@_rule_of("dot_general")
def _product(context, x, y, *, dimension_numbers, **params):
    (contracted, _), _ = dimension_numbers
    out = RooflineShape.from_aval(context.avals_out[0])
    flops = 2 * out.size * math.prod(x.shape[i] for i in contracted)
    total = (0 if context.pin_lhs_in_vmem else x.bytes + out.bytes) + (
        0 if context.pin_rhs_in_vmem else y.bytes
    )
    return RooflineResult(
        flops=flops, unfused_flops=flops, hbm_bytes=total, unfused_hbm_bytes=total
    )


@_rule_of("conv_general_dilated")
def _convolution(
    context,
    x,
    w,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    batch_group_count,
    **params,
):
    (batch, _, *places), (_, features, *taps), (_, channels, *outs) = dimension_numbers
    out = context.avals_out[0].shape
    met = 1  # pairs of a tap and a result that meet an element of x
    for i, tap in enumerate(taps):
        at = np.arange(out[outs[i]])[:, None] * window_strides[i] - padding[i][0]
        at = at + np.arange(w.shape[tap]) * rhs_dilation[i]
        inside = (at >= 0) & (at // lhs_dilation[i] < x.shape[places[i]])
        met *= int((inside & (at % lhs_dilation[i] == 0)).sum())
    rows = x.shape[batch] // batch_group_count
    return _moved(context, 2 * met * rows * w.shape[features] * out[channels])


@_rule_of("gather")
def _gather(context, x, indices, *, mode, **params):
    out = RooflineShape.from_aval(context.avals_out[0])
    is_checked = getattr(mode, "name", str(mode)).lower() in ("fill_or_drop", "fill", "1")
    flops = 4 * indices.size + out.size if is_checked else 0
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=2 * out.bytes + indices.bytes)


@_rule_of("scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub")
def _scatter(context, x, indices, updates, **params):
    flops = 0 if context.primitive.name == "scatter" else updates.size
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=3 * updates.bytes + indices.bytes)


@_rule_of("pure_callback io_callback")
def _callback(context, *shapes, **params):
    return _moved(context, 0)


@_rule_of("debug_callback")
def _debug_callback(context, *shapes, **params):
    return RooflineResult(unfused_hbm_bytes=RooflineShape.total_bytes(context.avals_in))


# Communication, over axes whose devices are rings.


def _sent(axes, total, latency):
    axes = tuple(axes)
    return RooflineResult(
        ici_bytes=dict.fromkeys(axes, int(total)), ici_latency=dict.fromkeys(axes, int(latency))
    )


def _sizes(context, axes):
    return {axis: context.mesh.shape[axis] for axis in axes}


def _around_rings(context, axes, part):
    """Parts of so many bytes go around the rings of all axes at once, the larger ones first."""
    sizes = sorted(_sizes(context, axes).values(), reverse=True)
    if math.prod(sizes) == 1:
        return _sent(axes, 0, 0)
    total, part = 0, part // len(sizes)
    for size in sizes:
        total += part * (size - 1)
        part *= size
    return _sent(axes, total, sizes[0] * len(sizes))


def _part(context, axes):
    return RooflineShape.total_bytes(context.avals_in) / math.prod(_sizes(context, axes).values())


@_rule_of("reduce_scatter")
def _reduce_scatter(context, *shapes, axis_name, **params):
    return _around_rings(context, axis_name, _part(context, axis_name))


@_rule_of("all_gather")
def _all_gather(context, *shapes, axis_name, **params):
    return _around_rings(context, axis_name, RooflineShape.total_bytes(context.avals_in))


@_rule_of("psum")
def _all_reduce(context, *shapes, axes, **params):
    return 2 * _around_rings(context, axes, _part(context, axes))  # reduce_scatter, all_gather


@_rule_of("pmin pmax")
def _extreme(context, *shapes, axes, **params):
    return _around_rings(context, axes, sum(x.dtype.itemsize for x in shapes))


@_rule_of("all_to_all")
def _all_to_all(context, *shapes, axis_name, **params):
    sizes = list(_sizes(context, axis_name).values())
    if math.prod(sizes) == 1:
        return _sent(axis_name, 0, 0)
    halves = min(sizes) ** (len(sizes) - 1) * (2 if min(sizes) > 2 else 1)  # links between these
    total = RooflineShape.total_bytes(context.avals_in) * math.prod(sizes)
    return _sent(axis_name, total / 2 / halves, sum(size / 2 for size in sizes))


@_rule_of("ppermute")
def _permute(context, *shapes, axis_name, perm, **params):
    sizes = list(_sizes(context, axis_name).values())
    if math.prod(sizes) == 1:
        return _sent(axis_name, 0, 0)
    links: collections.Counter = collections.Counter()
    longest = 0
    for pair in perm:
        here, there = ([int(i) for i in np.unravel_index(lane, sizes)] for lane in pair)
        steps = 0
        for i, size in enumerate(sizes):
            forward, back = (there[i] - here[i]) % size, (here[i] - there[i]) % size
            step = 1 if forward <= back else -1
            for k in range(min(forward, back)):
                ends = [
                    (*here[:i], (here[i] + step * n) % size, *here[i + 1 :]) for n in (k, k + 1)
                ]
                links[tuple(sorted(ends))] += 1
            steps += min(forward, back)
        longest = max(longest, steps)
    total = RooflineShape.total_bytes(context.avals_in) * max(links.values(), default=0)
    return _sent(axis_name, total, longest)


_open_to_users(__name__)
