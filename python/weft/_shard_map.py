"""shard_map: a function of the parts of arrays, run by every device of a mesh on its own parts."""

import functools
import itertools
import math

from weft import _core
from weft._jit import jit
from weft._recording import check_callable, check_leaves, function_name, leaf_paths
from weft._surface import named_after, public_function
from weft._tree_mismatch import explain_mismatch
from weft._types.avals import ShapedArray, typeof
from weft.errors import ArgumentTypeError, ShardingError
from weft.lax._regions import Body, regions
from weft.lax._sharding import constrained
from weft.runtime.pytree import registry
from weft.sharding import (
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    get_abstract_mesh,
    mesh_set,
    use_abstract_mesh,
)
from weft.tree_util import tree_broadcast, tree_leaves, tree_map


class _Infer:
    """in_specs are to be those of the arguments."""

    def __repr__(self):
        return "Infer"


Infer = _Infer()
_AS_IT_IS = object()  # in in_specs, in place of None


def shard_map(
    f=None,
    /,
    *,
    out_specs,
    in_specs=Infer,
    mesh=None,
    axis_names=frozenset(),
    check_vma=True,
):
    """A function of whole arrays from one of their parts, which every device of a mesh runs.

    Args:
      f: takes the parts of the arguments that a device has, and returns its parts of the results.
        Within it the manual axes of the mesh have names, for `lax.psum` and its like. Without it
        shard_map returns a decorator.
      out_specs: PartitionSpecs in a prefix of the tree of results. Along an axis of the mesh that a
        spec names, parts are lined up; along others all devices give the same.
      in_specs: PartitionSpecs in a prefix of the tuple of arguments: how each is split. Along an
        axis of the mesh that a spec does not name, every device has the whole. Where None stands
        for a spec, what is below is handed on as it is, like what `f` closes over. If all axes
        are manual and of type Explicit, arguments have to be split so. Without in_specs, over axes
        of type Explicit, arguments are taken as they are split.
      mesh: a Mesh or AbstractMesh; None is the one that `set_mesh` has set.
      axis_names: a set of the axes of the mesh that are manual; empty: all. Over the others XLA
        decides, or, over those of type Explicit, the types of values.
      check_vma: whether it is found which values vary over which axes of the mesh. It is an error
        then for a result that its spec says is the same along an axis to vary along it; and the
        cotangent of an argument that is the same for all devices is summed up over them. Without it
        both are for the user to see to.

    Raises ValueError for specs that do not fit the mesh or the arrays: axes that the mesh does not
    have, more dimensions than the array, sizes that the axes do not divide. TypeError for specs
    that are none, for axis_names that are no set, and where there are no in_specs but axes that are
    not Explicit.

    Examples:
      >>> mesh = weft.make_mesh((1,), ("rows",))
      >>> total = lambda part: lax.psum(part.sum(), "rows")
      >>> f = weft.shard_map(total, mesh=mesh, in_specs=P("rows"), out_specs=P())
      >>> f(wnp.arange(4.0))
      Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    check_callable(f, "shard_map")
    if not isinstance(axis_names, (set, frozenset)):
        raise ArgumentTypeError(f"shard_map expected a set for axis_names; got {axis_names!r}")
    call = Call(f, in_specs, out_specs, mesh, axis_names, check_vma)

    @named_after(f)
    def whole(*args):
        return call(args)

    at_once = jit(whole)

    @public_function
    @named_after(f)
    def mapped(*args):
        is_traced = _core.in_trace() or any(type(x) is _core.Tracer for x in tree_leaves(args))
        if is_traced or call.hands_on:
            return call(args)
        return at_once(*args)

    return mapped


def smap(f=None, /, *, in_axes=Infer, out_axes, axis_name):
    """`shard_map` along one axis of the mesh that is set, with the dimension that it splits.

    Args:
      f: takes the parts of the arguments that a device has; without it smap returns a decorator.
      in_axes: per argument the dimension that is split, an int, or None if every device has the
        whole; in a prefix of the tuple of arguments. Without it, over an axis of type Explicit,
        arguments are taken as they are split.
      out_axes: the same in a prefix of the tree of results.
      axis_name: the name of the axis of the mesh. The others stay as they are: an smap within may
        take them.

    Raises what `shard_map` does, and TypeError for an axis that is no int or None, ValueError for a
    negative one.

    Examples:
      >>> with weft.set_mesh(weft.make_mesh((1,), ("rows",))):
      ...     double = weft.smap(lambda part: 2 * part, in_axes=0, out_axes=0, axis_name="rows")
      ...     print(double(wnp.arange(3)))
      [0 2 4]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if not isinstance(axis_name, str):
        raise ArgumentTypeError(f"smap expected the name of an axis, a string; got {axis_name!r}")

    def spec(parameter):
        def of(axis):
            if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
                raise ArgumentTypeError(f"smap {parameter}: expected ints or None; got {axis!r}")
            if axis is not None and axis < 0:
                raise ShardingError(f"smap {parameter}: expected axes from 0 on; got {axis}")
            return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

        return of

    in_specs = in_axes
    if in_axes is not Infer:
        in_specs = tree_map(spec("in_axes"), in_axes, is_leaf=lambda x: x is None)
    out_specs = tree_map(spec("out_axes"), out_axes, is_leaf=lambda x: x is None)
    return shard_map(f, in_specs=in_specs, out_specs=out_specs, axis_names=frozenset({axis_name}))


class Call:
    """A function under shard_map; called with a tuple of arguments, it is traced in its context.

    `out_specs` may be a function, to the specs from the result with types in place of arrays.
    """

    def __init__(self, fun, in_specs, out_specs, mesh, axis_names, check_vma):
        self.fun, self.name = fun, function_name(fun)
        # None as a leaf, which stands for all below it as a spec does.
        self.in_specs = tree_map(
            lambda spec: _AS_IT_IS if spec is None else spec,
            in_specs,
            is_leaf=lambda x: x is None or is_spec(x),
        )
        self.out_specs, self.mesh = out_specs, mesh
        self.axis_names, self.check_vma = axis_names, bool(check_vma)
        # Whether some arguments, which may be of any type, are handed on as they are.
        self.hands_on = _AS_IT_IS in tree_leaves(self.in_specs, is_leaf=is_spec)

    def __call__(self, args):
        mesh = core_mesh(self.mesh)
        axes = self._manual_axes(mesh)
        fun, in_specs = self.fun, self.in_specs
        if self.hands_on:
            fun, args, in_specs = self._without_handed_on(args)
        leaves, tree = registry.flatten(args)
        names = [f"args{path}" for path in leaf_paths(tree)]
        check_leaves(leaves, lambda i: f"{names[i]} of '{self.name}'")
        leaves = [_core.asarray(x) for x in leaves]
        whole = [typeof(x) for x in leaves]
        if in_specs is Infer:
            in_specs = tree.unflatten(self._inferred(whole, mesh, axes))
        specs = self._specs("in_specs", in_specs, args, mesh, axes)
        inside = _with_manual(mesh, axes)
        types = [
            self._part(kind, spec, mesh, inside, name)
            for kind, spec, name in zip(whole, specs, names, strict=True)
        ]

        trees = [registry.flatten(x)[1] for x in args]
        places = [f"args[{i}]" for i in range(len(args))]
        sizes = dict(zip(mesh.names, mesh.sizes, strict=True))
        kept = []  # per result, how its parts are split over explicit axes

        def noted(*parts):
            result = fun(*parts)
            kept.extend(map(_names_of, map(typeof, tree_leaves(result))))
            return result

        traced = functools.update_wrapper(noted, fun, updated=()) if inside.explicit_axes else fun
        with use_abstract_mesh(inside):
            body = _core.with_axes(
                tuple((axis, sizes[axis]) for axis in axes),
                self.check_vma,
                lambda: Body(traced, trees, types, "shard_map", places),
            )
        (graph,), captures = regions(body)
        out_specs = self.out_specs(body.structure()) if callable(self.out_specs) else self.out_specs
        out = self._specs("out_specs", out_specs, body.structure(), mesh, axes)
        paths = [f"result{path}" for path in leaf_paths(body.out_tree)]
        for spec, kind, path in zip(out, body.out_types, paths, strict=True):
            self._check_rank(spec, kind, "out_specs", path)
        if self.check_vma:
            every = [((), (), ())] * len(captures) + [spec.varying for spec in specs]
            graph, varying = _core.shard(graph, list(axes), every)
            self._check_varying(out, varying, paths)
        results = _core.bind_graphs(
            "shard_map",
            [*captures, *leaves],
            tuple(body.weak),
            jaxpr=graph,
            mesh=mesh,
            in_specs=[_Spec((), mesh).sharding] * len(captures) + [s.sharding for s in specs],
            out_specs=[spec.sharding for spec in out],
            manual_axes=list(axes),
            check_vma=self.check_vma,
        )
        for i, dims in enumerate(kept):
            if any(dims):
                joined = itertools.zip_longest(out[i].dims, dims, fillvalue=())
                spec = PartitionSpec(*(own + rest for own, rest in joined))
                results[i] = constrained(results[i], _Spec(spec, mesh).sharding)
        return body.out_tree.unflatten(results)

    def _without_handed_on(self, args):
        """The function of what is split, with that as arguments and in_specs of one structure."""
        leaves, tree = registry.flatten(args)
        specs = self._spread("in_specs", self.in_specs, args)

        kept = [spec is not _AS_IT_IS for spec in specs]

        def only(values):
            return tree.unflatten(x if k else None for x, k in zip(values, kept, strict=True))

        def fun(*parts):
            parts = iter(tree_leaves(parts))
            whole = zip(leaves, kept, strict=True)
            return self.fun(*tree.unflatten(next(parts) if k else x for x, k in whole))

        named = functools.update_wrapper(fun, self.fun, updated=())
        return named, only(leaves), only(specs)

    def _spread(self, what, specs, tree):
        """Of each leaf of a tree the spec in its prefix `specs`."""
        try:
            return tree_leaves(tree_broadcast(specs, tree, is_leaf=is_spec), is_leaf=is_spec)
        except (TypeError, ValueError):
            self._reject_tree(what, specs, tree)

    def _manual_axes(self, mesh):
        """The names of the manual axes, in the order of the mesh: all that are not yet, or those
        that are chosen."""
        chosen = set(self.axis_names) or set(mesh.names) - set(AbstractMesh._of(mesh).manual_axes)
        unknown = chosen - set(mesh.names)
        if unknown:
            raise ShardingError(
                f"shard_map expected axis_names of {mesh}; got {sorted(map(str, unknown))}"
            )
        return tuple(name for name in mesh.names if name in chosen)

    def _specs(self, what, specs, tree, mesh, axes):
        """One per leaf of the tree that `specs` is a prefix of."""
        for spec in tree_leaves(specs, is_leaf=is_spec):
            if not is_spec(spec):
                raise ArgumentTypeError(
                    f"shard_map expected PartitionSpecs in a prefix of the tree for {what}; got "
                    f"{spec!r}"
                )
        found = []
        for spec in self._spread(what, specs, tree):
            found.append(_Spec(spec, mesh))
            self._check_marks(what, found[-1], mesh, axes)
            for axis in found[-1].axes:
                if axis not in axes:
                    raise ShardingError(
                        f"shard_map expected {what} over the manual axes {axes} of {mesh}; got "
                        f"{axis!r} in {spec!r}"
                    )
        return found

    def _check_marks(self, what, spec, mesh, axes):
        """Raises for marked axes that are not Explicit, or where not all axes are manual."""
        marked = {*spec.unreduced, *spec.reduced}
        if not marked:
            return
        if len(axes) < len(mesh.names):
            raise NotImplementedError(
                "shard_map expected all axes of the mesh to be manual for unreduced and reduced "
                f"axes; got {axes} of {mesh}, and {spec} in {what}"
            )
        if not _explicit_axes(mesh).issuperset(marked):
            raise ShardingError(
                "shard_map expected unreduced and reduced axes of type Explicit; got "
                f"{mesh}, and {spec} in {what}"
            )

    def _reject_tree(self, what, specs, tree):
        marked = tree_map(lambda _: 0, specs, is_leaf=is_spec)
        reason = explain_mismatch(marked, tree) or "it has another structure"
        raise ShardingError(
            f"shard_map expected {what} in a prefix of the tree that they are for; {reason}\n"
            "  A PartitionSpec stands for all below it."
        )

    def _check_rank(self, spec, kind, what, name):
        if len(spec.dims) > len(kind.shape):
            raise ShardingError(
                f"shard_map expected a spec of at most {len(kind.shape)} dimensions for {name} of "
                f"'{self.name}', {kind}; got {spec} in {what}"
            )

    def _part(self, kind, spec, mesh, inside, name):
        """The type of a device's part; `inside` is the mesh there."""
        self._check_rank(spec, kind, "in_specs", name)
        shape = list(kind.shape)
        for i, names in enumerate(spec.dims):
            parts = math.prod(mesh.sizes[mesh.names.index(n)] for n in names)
            if shape[i] % parts:
                raise ShardingError(
                    f"shard_map expected dimension {i} of {name} of '{self.name}' to be divisible "
                    f"by {parts}, the size of {' times '.join(map(repr, names))} of {mesh}; got "
                    f"{kind}, and {spec} in in_specs"
                )
            shape[i] //= parts
        if _marks_of(kind) != (set(spec.unreduced), set(spec.reduced)):
            raise ShardingError(
                f"shard_map expected {name} of '{self.name}' to be unreduced and reduced as "
                f"in_specs says; got {kind}, and {spec} in in_specs\n  Without in_specs arguments "
                "are taken as they are; weft.reshard changes that."
            )
        split = self._rest_of_split(kind, spec, mesh, inside, name)
        manual = None
        if self.check_vma:
            outside = kind.manual_axis_type.varying
            manual = ManualAxisType(
                varying=outside.union(*spec.dims), unreduced=spec.unreduced, reduced=spec.reduced
            )
        return ShapedArray(
            tuple(shape),
            kind.dtype,
            sharding=split,
            weak_type=kind.weak_type,
            manual_axis_type=manual,
        )

    def _rest_of_split(self, kind, spec, mesh, inside, name):
        """How a device's part is split over axes of type Explicit that are not manual.

        Raises ValueError if all axes are explicit, and manual in the body, and the whole is split
        otherwise than `spec` says.
        """
        dims = _names_of(kind)
        wanted = [*spec.dims, *[()] * (len(dims) - len(spec.dims))]
        strict = len(_explicit_axes(mesh)) == len(mesh.names) == len(inside.manual_axes)
        if strict and dims != wanted:
            raise ShardingError(
                f"shard_map expected {name} of '{self.name}' to be split as in_specs says, as "
                f"the axes of the mesh are explicit; got {kind}, and {spec} in in_specs\n"
                "  Without in_specs arguments are taken as they are split; weft.reshard gives them "
                "another split."
            )
        rest = [tuple(n for n in names if n not in inside.manual_axes) for names in dims]
        return NamedSharding(inside, PartitionSpec(*rest)) if any(rest) else None

    def _inferred(self, kinds, mesh, axes):
        """in_specs, where arguments say by their types how they are split."""
        explicit = _explicit_axes(mesh)
        if not explicit.issuperset(axes):
            raise ArgumentTypeError(
                f"shard_map expected in_specs, as not all axes of {mesh} are explicit; got none"
            )

        def inferred(kind):
            dims = (tuple(n for n in names if n in axes) for names in _names_of(kind))
            unreduced, reduced = _marks_of(kind)
            return PartitionSpec(*dims, unreduced=unreduced, reduced=reduced)

        return list(map(inferred, kinds))

    def _check_varying(self, specs, varying, paths):
        for spec, (axes, unreduced, reduced), path in zip(specs, varying, paths, strict=True):
            are_summands = {*axes, *unreduced}.issuperset(spec.unreduced)
            if (
                not are_summands
                or not spec.unreduced.issuperset(unreduced)
                or spec.reduced != set(reduced)
            ):
                raise ShardingError(
                    f"shard_map expected {path} of '{self.name}' to be unreduced and reduced as "
                    f"its spec says; got one that is unreduced over {list(unreduced)}, reduced "
                    f"over {list(reduced)} and varies over {list(axes)}, and {spec} in out_specs"
                )
            extra = [axis for axis in axes if axis not in (*spec.axes, *spec.unreduced)]
            if extra:
                listed = ", ".join(map(repr, extra))
                raise ShardingError(
                    f"shard_map expected {path} of '{self.name}' to be the same along the axes "
                    f"that its spec does not name; got one that varies over {listed}, and {spec} "
                    "in out_specs\n"
                    f"  Name {listed} in out_specs, take lax.psum, pmax or pmin over it, or, if "
                    "all devices give the same nevertheless, set check_vma=False."
                )


def is_spec(x):
    """Whether it is a PartitionSpec, or the names of axes in a tuple: ("x", None)."""
    if type(x) is tuple:
        return any(type(entry) is str for entry in x)
    return isinstance(x, PartitionSpec)


def _explicit_axes(mesh):
    return set(AbstractMesh._of(mesh).explicit_axes)


def _names_of(kind):
    """Per dimension of a type the names of the axes over which it is split."""
    dims = [] if kind._place is None else [names for names, _ in kind._place._core.dims]
    return dims + [()] * (len(kind.shape) - len(dims))


def _marks_of(kind):
    """The axes over which a value of a type is unreduced, and those over which it is reduced."""
    spec = None if kind._place is None else kind._place.spec
    return (spec.unreduced, spec.reduced) if spec else (frozenset(), frozenset())


class _Spec:
    """A PartitionSpec on a mesh.

    Attributes: dims (per dimension the names of axes), axes (all of them), unreduced, reduced,
    varying (the three sets of a value that it is for), sharding (the core's).
    """

    def __init__(self, spec, mesh):
        self.spec = spec
        self.dims = [
            () if entry is None else tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)
            for entry in spec
        ]
        self.axes = [name for names in self.dims for name in names]
        self.unreduced = getattr(spec, "unreduced", frozenset())
        self.reduced = getattr(spec, "reduced", frozenset())
        self.varying = (self.axes, self.unreduced, self.reduced)
        for name in (*self.axes, *self.unreduced, *self.reduced):
            if name not in mesh.names:
                raise ShardingError(f"shard_map expected axes of {mesh}; got {name!r} in {spec!r}")
        dims = [(names, False) for names in self.dims]
        self.sharding = _core.make_sharding(mesh, dims, self.unreduced, "", self.reduced)

    def __repr__(self):
        return repr(self.spec)


def _with_manual(mesh, axes):
    """The mesh in the body of a shard_map: an AbstractMesh."""
    return AbstractMesh._of(mesh.abstract).update_axis_types(dict.fromkeys(axes, AxisType.Manual))


def core_mesh(mesh):
    """The core's mesh of a Mesh or AbstractMesh; of the one that is set for None."""
    if isinstance(mesh, _core.Mesh):
        return mesh
    if mesh is None:
        # Within a shard_map that is its mesh, without devices.
        mesh = get_abstract_mesh()
        if mesh_set().abstract_mesh == mesh:
            mesh = mesh_set()
        if mesh.empty:
            raise ShardingError(
                "shard_map expected a mesh; got none, and weft.set_mesh has set none either"
            )
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise ArgumentTypeError(f"shard_map expected a Mesh or AbstractMesh; got {mesh!r}")
    here = mesh_set()
    if not here.empty and mesh.shape_tuple != here.shape_tuple:
        raise ShardingError(f"shard_map expected the mesh that is set, {here}, or none; got {mesh}")
    return mesh._core
