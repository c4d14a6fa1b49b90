"""pmap: a function of examples, each run by a device of its own, over shard_map."""

import operator

from weft import _core
from weft._jit import jit
from weft._recording import check_callable, check_leaves, function_name, leaf_paths
from weft._shard_map import Call
from weft._surface import named_after
from weft._tree_mismatch import explain_mismatch
from weft._types.avals import typeof
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    AxisError,
    ShapeError,
    TreeStructureError,
)
from weft.lax._shape import expand_dims, squeeze
from weft.runtime.listing import local_devices, process_count
from weft.runtime.pytree import registry
from weft.sharding import Mesh, PartitionSpec
from weft.tree_util import tree_broadcast, tree_leaves, tree_map

_UNNAMED = "pmap"  # the axis of a mesh needs a name


def pmap(
    fun,
    axis_name=None,
    *,
    in_axes=0,
    out_axes=0,
    static_broadcasted_argnums=(),
    devices=None,
    backend=None,
    axis_size=None,
    donate_argnums=(),
):
    """A function that applies `fun` to every slice of its arguments, each on a device of its own.

    It is `vmap` spread over devices: `shard_map` over a mesh of one axis, whose parts have one
    slice each, under `jit`. The results lie split over the devices along their mapped axis.

    Args:
      fun: a function of arrays or trees of arrays.
      axis_name: a string, the name by which collective operations (lax.psum, ...) in `fun` refer
        to the mapped axis.
      in_axes: the axis to map, an int from 0 on, None for an argument that is the same on all
        devices, or a tuple of these, one per positional argument; entries may be trees that are
        prefixes of the argument. Keyword arguments are mapped along axis 0.
      out_axes: where the mapped axis stands in the results, in a prefix of their tree. None takes
        the result of one device: it has to be the same on all.
      static_broadcasted_argnums: position or positions of arguments that are compile-time values;
        they must be hashable.
      devices: the devices, one per slice. By default the first of this process are taken, as many
        as there are slices.
      backend: the platform of the devices ("cpu", "gpu").
      axis_size: the number of slices, to be checked.
      donate_argnums: position or positions of arguments whose buffers the results may reuse.

    Raises ValueError where nothing is mapped, where mapped axes differ in size, have more slices
    than there are devices, or other than `devices` or `axis_size` say, and for axes that do not fit
    the arguments or results; TypeError for axes that are no ints. NotImplementedError where several
    processes take part and no devices are given.

    Examples:
      >>> weft.pmap(lambda x: x + lax.axis_index("i"), axis_name="i")(wnp.ones((1, 2), "int32"))
      Array([[1, 1]], dtype=int32)
    """
    check_callable(fun, "pmap")
    if axis_name is not None and not isinstance(axis_name, str):
        raise ArgumentTypeError(f"pmap axis_name: expected a string or None; got {axis_name!r}")
    if axis_size is not None:
        axis_size = operator.index(axis_size)
    static = _positions(static_broadcasted_argnums, "static_broadcasted_argnums")
    call = _Pmap(fun, axis_name, in_axes, out_axes, static, devices, backend, axis_size)

    @named_after(fun)
    def whole(*args, **kwargs):
        return call(args, kwargs)

    donated = _positions(donate_argnums, "donate_argnums")
    return jit(whole, static_argnums=static, donate_argnums=donated)


def _positions(numbers, parameter):
    numbers = numbers if isinstance(numbers, (tuple, list, set, frozenset)) else (numbers,)
    try:
        return tuple(sorted(operator.index(n) for n in numbers))
    except TypeError:
        raise ArgumentTypeError(
            f"pmap {parameter}: expected an int or ints; got {numbers!r}"
        ) from None


class _Pmap:
    """A function under pmap, with its options; called once per trace."""

    def __init__(self, fun, axis_name, in_axes, out_axes, static, devices, backend, axis_size):
        self.fun, self.name = fun, function_name(fun)
        self.axis = _UNNAMED if axis_name is None else axis_name
        self.static, self.axis_size = static, axis_size
        self.in_axes = _checked_axes(in_axes, "in_axes")
        self.out_axes = _checked_axes(out_axes, "out_axes")
        self.devices, self.backend = self._checked_devices(devices), backend

    def _checked_devices(self, devices):
        if devices is None:
            return None
        from weft.runtime.devices import check_device

        devices = list(devices)
        if not devices:
            raise AttributeValueError(
                "pmap expected devices, or None for those there are; got none"
            )
        for i, device in enumerate(devices):
            check_device(device, "pmap")
            if device in devices[:i]:
                raise AttributeValueError(f"pmap expected distinct devices; got {device} twice")
        return devices

    def __call__(self, args, kwargs):
        static = [n % len(args) if -len(args) <= n < 0 else n for n in self.static]
        if static and max(static) >= len(args):
            raise AttributeValueError(
                f"pmap expected the static arguments {tuple(static)} of '{self.name}' by position; "
                f"got {len(args)} positional arguments"
            )
        given = tuple(x for i, x in enumerate(args) if i not in static)
        leaves, tree = registry.flatten((given, kwargs))
        positions = [i for i in range(len(args)) if i not in static]
        own_axes = self._axes_of(given, static, len(args))
        axes = own_axes + [0] * (len(leaves) - len(own_axes))

        def where(i):
            path = leaf_paths(tree)[i]
            if i >= len(own_axes):
                return f"kwargs{path.removeprefix('[1]')} of '{self.name}'"
            first, _, rest = path.removeprefix("[0][").partition("]")
            return f"args[{positions[int(first)]}]{rest} of '{self.name}'"

        check_leaves(leaves, where)
        leaves = [_core.asarray(x) for x in leaves]
        mesh = self._mesh(self._size(leaves, axes, where))

        @named_after(self.fun)
        def one(*parts):
            pairs = zip(parts, axes, strict=True)
            own, named = tree.unflatten([x if a is None else squeeze(x, (a,)) for x, a in pairs])
            own = iter(own)
            full = [x if i in static else next(own) for i, x in enumerate(args)]
            return self._with_axes(self.fun(*full, **named))

        call = Call(
            one,
            tuple(self._spec(axis) for axis in axes),
            self._result_specs,
            mesh,
            (),
            False,
        )
        return call(tuple(leaves))

    def _axes_of(self, given, static, count):
        """The mapped axis of each leaf of the positional arguments that are not static."""
        axes = self.in_axes
        if isinstance(axes, tuple):
            if len(axes) != count:
                raise TreeStructureError(
                    f"pmap in_axes: expected one entry for each of the {count} positional "
                    f"arguments of '{self.name}'; got {len(axes)}"
                )
            axes = tuple(axis for i, axis in enumerate(axes) if i not in static)
        return _spread(axes, given, "in_axes")

    def _size(self, leaves, axes, where):
        """The number of slices."""
        sizes = {}
        for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
            if axis is None:
                continue
            if axis >= leaf.ndim:
                raise AxisError(
                    f"pmap in_axes: expected an axis of {where(i)}, {typeof(leaf)}; got {axis}"
                )
            sizes[i] = leaf.shape[axis]
        if not sizes:
            raise AttributeValueError(
                f"pmap expected at least one mapped argument of '{self.name}'; got none"
            )
        found = set(sizes.values())
        if len(found) > 1 or self.axis_size not in (None, *found):
            lines = "".join(
                f"\n    {where(i)}: axis {axes[i]} of {typeof(leaves[i])} has size {size}"
                for i, size in sizes.items()
            )
            asked = "" if self.axis_size is None else f"\n    axis_size={self.axis_size}"
            raise ShapeError(f"pmap expected mapped axes of one size; got{lines}{asked}")
        size = found.pop()
        devices = self._available()
        exact = self.devices is not None
        if size == 0 or size > len(devices) or (exact and size != len(devices)):
            at = next(iter(sizes))
            expected = f"{len(devices)}" if exact or len(devices) == 1 else f"1 to {len(devices)}"
            raise ShapeError(
                f"pmap expected {expected} slices of {where(at)}, one per device; got "
                f"{typeof(leaves[at])}, whose axis {axes[at]} has size {size}\n"
                f"  The devices are {', '.join(map(str, devices))}."
            )
        return size

    def _available(self):
        if self.devices is not None:
            return self.devices
        if process_count(self.backend) > 1:
            raise NotImplementedError(
                "pmap over several processes is not in weft: use weft.shard_map over a mesh of the "
                "devices of all, or pass devices"
            )
        return local_devices(backend=self.backend)

    def _mesh(self, size):
        return Mesh(self._available()[:size], (self.axis,))

    def _spec(self, axis):
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, self.axis)

    def _result_specs(self, result):
        axes = _spread(self.out_axes, result, "out_axes")
        return registry.flatten(result)[1].unflatten(map(self._spec, axes))

    def _with_axes(self, result):
        """The result of one device as its part of all."""
        leaves, tree = registry.flatten(result)
        check_leaves(leaves, lambda i: f"result{leaf_paths(tree)[i]} of '{self.name}'")
        axes = _spread(self.out_axes, result, "out_axes")
        out = []
        for i, (leaf, axis) in enumerate(zip(map(_core.asarray, leaves), axes, strict=True)):
            if axis is not None and axis > leaf.ndim:
                raise AxisError(
                    f"pmap out_axes: expected 0 to {leaf.ndim} for result{leaf_paths(tree)[i]} of "
                    f"'{self.name}', {typeof(leaf)} on each device; got {axis}"
                )
            out.append(leaf if axis is None else expand_dims(leaf, (axis,)))
        return tree.unflatten(out)


class _Same:
    """In the place of a None among axes, which would be a tree without leaves."""

    def __repr__(self):
        return "None"


_SAME = _Same()


def _checked_axes(axes, parameter):
    axes = tree_map(lambda x: _SAME if x is None else x, axes, is_leaf=lambda x: x is None)
    for axis in tree_leaves(axes):
        if axis is _SAME:
            continue
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise ArgumentTypeError(
                f"pmap {parameter}: expected ints, None or trees of them; got {axis!r}"
            )
        if operator.index(axis) < 0:
            raise AttributeValueError(f"pmap {parameter}: expected axes from 0 on; got {axis}")
    return axes


def _spread(axes, tree, parameter):
    """The axis of each leaf of a tree of which `axes` is a prefix; None where none is mapped."""
    try:
        spread = tree_broadcast(axes, tree)
    except (TypeError, ValueError):
        reason = explain_mismatch(axes, tree) or "it has another structure"
    else:
        return [None if axis is _SAME else operator.index(axis) for axis in tree_leaves(spread)]
    raise TreeStructureError(
        f"pmap {parameter}: expected axes in a prefix of the tree that they are for; {reason}\n"
        "  An int or None stands for all below it."
    )
