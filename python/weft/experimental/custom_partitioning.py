"""Functions that say themselves how XLA is to split them over the devices of a mesh."""

import inspect
import itertools
import math
from typing import Any

import numpy as np

from weft._jit import jit
from weft._shard_map import shard_map
from weft._surface import open_to_users as _open_to_users, public as _public
from weft._types.avals import ShapeDtypeStruct
from weft.compiler import optimize as _optimize
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    NotImplementedRuleError,
    ShardingError,
)
from weft.experimental._sharding_rule import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    parsed as _parsed,
    text as _rule_text,
)
from weft.extend.core import Primitive as _Primitive
from weft.runtime import mlir as _mlir, partitioner as _partitioner
from weft.runtime.pytree import registry as _registry
from weft.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
    "custom_partitioning_p",
]
__getattr__, __dir__ = _public(__name__, __all__)


class custom_partitioning:
    """A function of trees of arrays that says how it is to be split over devices; a decorator.

        f = custom_partitioning(lambda x: jnp.fft.fft(x))

        def partition(mesh, args, result):
            spec = P(args[0].sharding.spec[0], None)  # rows may be split, not what is transformed
            sharding = NamedSharding(mesh, spec)
            return mesh, jnp.fft.fft, sharding, (sharding,)

        f.def_partition(partition, sharding_rule="... i -> ... i")

    On one device, and within a shard_map, it is the function itself. In a program that XLA splits
    over a mesh, XLA propagates shardings by `sharding_rule` and then asks `partition`. It cannot be
    differentiated or vectorised: give the function that calls it rules with custom_vjp or
    custom_vmap.

    Args:
      fun: the function. It must not close over traced arrays.
      static_argnums: positions of arguments that are no arrays; `partition` and `sharding_rule` get
        them first.
    """

    def __init__(self, fun, static_argnums=()):
        self.fun = fun
        self.static_argnums = (
            (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        )
        self.partition: Any = None
        self.propagate_user_sharding: Any = None
        self.infer_sharding_from_operands: Any = None
        self.sharding_rule: Any = None
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if isinstance(found := getattr(fun, name, None), str):
                setattr(self, name, found)

    def def_partition(
        self,
        partition,
        infer_sharding_from_operands=None,
        propagate_user_sharding=None,
        decode_shardings=True,
        sharding_rule=None,
        *,
        reduction_factors=(),
        need_replication_factors=(),
        permutation_factors=(),
        **factor_sizes,
    ):
        """Sets how the function is split; returns `partition`.

        Args:
          partition: partition(*static, mesh, args, result), which is given trees of
            ShapeDtypeStruct with a NamedSharding each. It returns (mesh, function of the parts of
            one device, tree of shardings of the results, tuple of those of the arguments); XLA
            brings arguments into these. In the function the axes of the mesh have names.
          infer_sharding_from_operands, propagate_user_sharding: ignored beside `sharding_rule`,
            which XLA asks in their place; calls raise NotImplementedRuleError without it.
          decode_shardings: ignored; shardings are those of the mesh.
          sharding_rule: an SdyShardingRule, its notation, such as "i j, j k -> i k", or a function
            rule(*static, mesh, operand types, result types) that returns either, or the notation
            and a dict of the following.
          reduction_factors, need_replication_factors, permutation_factors, factor_sizes: see
            SdyShardingRule; for a notation.

        Raises ValueError for a rule that is none.
        """
        kinds = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        options = {**factor_sizes, **{name: given for name, given in kinds.items() if given}}
        if isinstance(sharding_rule, str):
            sharding_rule = _parsed(sharding_rule, **options)
        elif options:
            raise AttributeValueError(
                f"def_partition expected no factors beside a rule that is no text; got {options}"
            )
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, *args, **kwargs):
        args = _by_position(self.fun, args, kwargs)
        if self.partition is None:
            raise AttributeValueError(
                f"custom_partitioning expected def_partition to be called before {self.fun!r} is"
            )
        by_callbacks = self.infer_sharding_from_operands or self.propagate_user_sharding
        if self.sharding_rule is None and by_callbacks:
            raise NotImplementedRuleError(
                "custom_partitioning expected a sharding_rule, as XLA propagates shardings by rules"
            )
        static = {n % len(args): args[n] for n in self.static_argnums}
        leaves, tree = _registry.flatten([x for i, x in enumerate(args) if i not in static])

        def of_arrays(*leaves):
            rest = iter(tree.unflatten(leaves))
            return self.fun(*(static[i] if i in static else next(rest) for i in range(len(args))))

        call = _Call(self, of_arrays, leaves, tree, [static[i] for i in sorted(static)])
        return call.out_tree.unflatten(custom_partitioning_p.bind(*leaves, call=call))


def _by_position(fun, args, kwargs):
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentTypeError(
            f"custom_partitioning expected arguments by position; got {sorted(bound.kwargs)}"
        )
    return bound.args


class _Call:
    """One application: what the op's rules need. It lives as long as programs that have the op."""

    def __init__(self, owner, function, leaves, tree, static):
        traced = jit(function).trace(*leaves)
        if traced.consts:
            raise ArgumentTypeError(
                "custom_partitioning expected a function that takes all arrays as arguments; got "
                f"one that closes over {len(traced.consts)}"
            )
        self.in_dtypes = [x.dtype for x in _registry.flatten(traced.in_avals)[0]]
        self.out_avals = list(_registry.flatten(traced.out_avals)[0])
        self.out_tree = traced.out_tree
        self._graph = traced.graph
        self._partition = owner.partition
        self._rule = owner.sharding_rule
        self._tree = tree
        self._static = static
        self._alive = []  # what XLA asks while it compiles

    def text(self, ctx, names):
        if ctx.mesh is None:
            graph = _optimize(self._graph, passes=("strip_rules", "lower_keys", "expand"))
            return ctx.inline_graph(graph, list(names))
        mesh = Mesh._of(ctx.mesh)
        split = _Split(mesh, ctx.partitions, self)
        self._alive.append(split)
        rule = self._rule_text(mesh, ctx.avals_in, ctx.avals_out)
        line = (
            f"stablehlo.custom_call @{_partitioner.TARGET}({', '.join(names)}) {{api_version = 2 : "
            f'i32, backend_config = "{_partitioner.key_of(split)}"{rule}}} : '
            f"({', '.join(ctx.in_types)}) -> "
        )
        types = ctx.out_types
        made = ctx.line(
            line + (types[0] if len(types) == 1 else f"({', '.join(types)})"), len(types)
        )
        return [made] if len(types) == 1 else made

    def _rule_text(self, mesh, in_avals, out_avals):
        rule = self._rule
        if rule is None:
            return ""
        if callable(rule):
            rule = rule(*self._static, mesh, list(in_avals), list(out_avals))
            rule, options = rule if isinstance(rule, (tuple, list)) else (rule, {})
            rule = _parsed(rule, **options) if isinstance(rule, str) else rule
        if not isinstance(rule, SdyShardingRule):
            raise AttributeValueError(f"expected an SdyShardingRule or its notation; got {rule!r}")
        shapes = ([a.shape for a in avals] for avals in (in_avals, out_avals))
        return f", sdy.sharding_rule = {_rule_text(rule, *shapes)}"

    def parts(self, mesh, args, results):
        """(function, shardings of results and of arguments, flat) for what XLA suggests."""
        mesh, function, result, given = self._partition(
            *self._static, mesh, tuple(self._tree.unflatten(args)), self.out_tree.unflatten(results)
        )
        flat_args = _shardings(list(given), self._tree, len(args))
        return mesh, function, _shardings(result, self.out_tree, len(results)), flat_args

    def of_leaves(self, function):
        return lambda *leaves: _registry.flatten(function(*self._tree.unflatten(leaves)))[0]


def _shardings(given, tree, count):
    leaves, own = _registry.flatten(given, lambda x: isinstance(x, NamedSharding))
    if len(leaves) != count or not all(isinstance(x, NamedSharding) for x in leaves):
        raise ShardingError(
            f"custom_partitioning expected a NamedSharding for each leaf of {tree}; got {own}"
        )
    return leaves


class _Split:
    """What XLA asks of a call in a program over a mesh."""

    def __init__(self, mesh, partitions, call):
        self._mesh = mesh
        self._grid = np.reshape(partitions, mesh.axis_sizes)
        self._call = call

    def __call__(self, args, results):
        call, mesh = self._call, self._mesh
        out_dtypes = [x.dtype for x in call.out_avals]
        known = [
            [
                ShapeDtypeStruct(
                    shape, dtype, sharding=NamedSharding(mesh, self._spec(shape, tiles))
                )
                for (shape, tiles), dtype in zip(side, dtypes, strict=True)
            ]
            for side, dtypes in ((args, call.in_dtypes), (results, out_dtypes))
        ]
        mesh, function, out, given = call.parts(mesh, *known)
        local = [
            [ShapeDtypeStruct(s.shard_shape(x.shape), x.dtype) for s, x in zip(*pair, strict=True)]
            for pair in ((given, known[0]), (out, known[1]))
        ]
        of_part = shard_map(
            call.of_leaves(function),
            mesh=mesh,
            in_specs=PartitionSpec(),
            out_specs=PartitionSpec(),
            check_vma=False,
        )
        traced = jit(of_part).trace(*local[0])
        made = [(a.shape, a.dtype) for a in _registry.flatten(traced.out_avals)[0]]
        if made != [(x.shape, x.dtype) for x in local[1]]:
            raise ShardingError(
                f"custom_partitioning expected the function of parts to return {local[1]}; got "
                f"{traced.out_avals}"
            )
        module = _mlir.of_one_part(traced.lower().as_text())
        return module, *(
            [self._tiles(s, x.shape) for s, x in zip(*pair, strict=True)]
            for pair in ((given, known[0]), (out, known[1]))
        )

    def _tiles(self, sharding, shape):
        """(blocks per dimension, the devices that have them), None for all on each."""
        axes = [
            [] if e is None else list(e) if isinstance(e, tuple) else [e]
            for e in (*sharding.spec, *[None] * (len(shape) - len(sharding.spec)))
        ]
        return self._of_axes(axes)

    def _of_axes(self, axes):
        names = self._mesh.axis_names
        used = [names.index(name) for dim in axes for name in dim]
        rest = [i for i in range(len(names)) if i not in used]
        sizes = self._mesh.shape
        blocks = [math.prod(sizes[name] for name in dim) for dim in axes]
        order = self._grid.transpose(used + rest).ravel().tolist()
        return (None, order) if math.prod(blocks) == 1 else (blocks, order)

    def _spec(self, shape, tiles):
        """The axes over which tiles split an array; none where the mesh has no such axes."""
        if tiles is None:
            return PartitionSpec()
        blocks, devices = tiles[0][: len(shape)], list(tiles[1])
        names = self._mesh.axis_names
        choices = [
            [
                axes
                for n in range(len(names) + 1)
                for axes in itertools.permutations(names, n)
                if math.prod(self._mesh.shape[a] for a in axes) == block and (n or block == 1)
            ]
            for block in blocks
        ]
        held = math.prod(blocks)
        for axes in itertools.product(*choices):
            flat = [name for dim in axes for name in dim]
            if len(set(flat)) < len(flat):
                continue
            order = self._of_axes(axes)[1]
            repeats = len(order) // held
            if all(
                sorted(order[i * repeats : (i + 1) * repeats])
                == sorted(devices[i * repeats : (i + 1) * repeats])
                for i in range(held)
            ):
                return PartitionSpec(*(dim or None for dim in axes))
        return PartitionSpec()


custom_partitioning_p = _Primitive("custom_partitioning")
custom_partitioning_p.multiple_results = True
custom_partitioning_p.def_abstract_eval(lambda *avals, call: call.out_avals)
custom_partitioning_p.def_stablehlo(lambda ctx, *names, call: call.text(ctx, names))

_open_to_users(__name__)
