"""Exported functions: a traced program with all that a call of it needs, but no code of Python.

What runs is weft's own program, so calls join the programs around them and are transformed with
them; the StableHLO module beside it is for other readers.
"""

import dataclasses
import functools
import re
from typing import Any

import numpy as np

from weft import _core, _export_form as own_form, _export_jax as form_of_jax, numpy
from weft._autodiff import vjp
from weft._custom_rules import custom_vjp
from weft._dims import is_symbolic_dim, solve
from weft._jit import jit
from weft._placement import sharding_of
from weft._stages.listing import signature_text
from weft._tree_mismatch import explain_difference
from weft._types.avals import ShapedArray, ShapeDtypeStruct, typeof
from weft.compiler import optimize
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DeviceMismatchError,
    DTypeError,
    NotImplementedRuleError,
    ShapeError,
    TreeStructureError,
)
from weft.lax import with_sharding_constraint
from weft.runtime import devices
from weft.runtime.mlir import artifact, artifact_text
from weft.runtime.pytree import PyTreeDef, leaf_paths, registry
from weft.sharding import Mesh, NamedSharding, mesh_set
from weft.tree_util import keystr

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

# The types of functions of weft, which are programs of their own as jitted ones are.
_OWN_FUNCTIONS = (_core.PublicFunction, type(numpy.sin), type(numpy.add))
_PLATFORMS = {"gpu": "cuda"}
_CALLBACK = re.compile(r"\b((?:pure|io|debug)_callback)\[")
_FFI_TARGET = re.compile(r'\bffi_call\[.*?target_name=("(?:[^"\\]|\\.)*"|[^\s\]]+)', re.DOTALL)


class DisabledSafetyCheck:
    """A check of `export` or of calls that is left out; made by its class methods."""

    __slots__ = ("_check",)

    def __init__(self, _impl):
        self._check = _impl

    @classmethod
    def platform(cls):
        """Calls are not checked to run on one of the platforms of the export."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name):
        """Functions of other libraries of this name (`weft.ffi`) may be called; where the bytes are
        read they must be registered as well."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self):
        """The name of the function that may be called, or None."""
        kind, _, name = self._check.partition(":")
        return name if kind == "custom_call" else None

    def __str__(self):
        return self._check

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, DisabledSafetyCheck) and self._check == other._check

    def __hash__(self):
        return hash(self._check)


def default_export_platform():
    """The platform of the default device: "cpu", "cuda", "rocm" or "tpu".

    Examples:
      >>> weft.export.default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
      True
    """
    return _platform(devices.device_at(_core.current_device()).platform)


def _platform(name):
    return _PLATFORMS.get(name, name)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Exported:
    """A function as a program: what it takes, what it gives, and how it is computed.

    Attributes: fun_name; in_tree and out_tree, the structures of (arguments, keyword arguments) and
    of the result; in_avals and out_avals, tuples of ShapedArray; platforms, those that it may run
    on; nr_devices, how many devices it runs on; disabled_safety_checks; calling_convention_version;
    mlir_module_serialized, the StableHLO module in its portable form (bytes); module_kept_var_idx,
    which of the arguments the module takes; uses_global_constants, whether it takes the platform's
    number before them; in_shardings_hlo and out_shardings_hlo, tuples of None (see
    in_shardings_jax); ordered_effects and unordered_effects, which are empty.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple
    out_tree: PyTreeDef
    out_avals: tuple
    platforms: tuple
    nr_devices: int
    disabled_safety_checks: tuple
    calling_convention_version: int
    module_kept_var_idx: tuple
    mlir_module_serialized: bytes
    _graph: Any  # what runs
    _in_splits: tuple  # per argument None, or (the mesh's names and sizes, PartitionSpec)
    _out_splits: tuple
    _get_vjp: Any  # None, or a function of no arguments

    ordered_effects = ()
    unordered_effects = ()
    uses_global_constants = property(lambda self: len(self.platforms) > 1)
    in_shardings_hlo = property(lambda self: (None,) * len(self.in_avals))
    out_shardings_hlo = property(lambda self: (None,) * len(self.out_avals))

    def __repr__(self):
        taken, given = (
            [(aval.shape, aval.dtype, aval.weak_type) for aval in avals]
            for avals in (self.in_avals, self.out_avals)
        )
        on = ", ".join(self.platforms)
        return f"<Exported {self.fun_name}{signature_text(taken, given)} for {on}>"

    __str__ = __repr__

    def mlir_module(self):
        """The StableHLO module as text.

        Raises NotImplementedError for programs with symbolic dimensions, whose module follows from
        the sizes of a call.

        Examples:
          >>> exported = weft.export.export(weft.jit(lambda x: 2 * x))(wnp.ones(2))
          >>> "stablehlo.multiply" in exported.mlir_module()
          True
        """
        if self._is_symbolic:
            raise NotImplementedRuleError(
                f"mlir_module expected a program without symbolic dimensions; {self!r} has some\n"
                "  jit(exported.call).lower(x).as_text() is the module for the sizes of x."
            )
        return artifact_text(self.mlir_module_serialized)

    def in_shardings_jax(self, mesh):
        """Per argument None, or how it is split: a NamedSharding of a mesh, whose axes must have
        the names and sizes of the mesh of the export."""
        return tuple(_on_mesh(split, mesh) for split in self._in_splits)

    def out_shardings_jax(self, mesh):
        """As `in_shardings_jax`, of the results."""
        return tuple(_on_mesh(split, mesh) for split in self._out_splits)

    def has_vjp(self):
        """Whether there is the program of the derivative."""
        return self._get_vjp is not None

    def vjp(self):
        """The derivative in reverse as a function exported: it takes the arguments, flat, and the
        cotangents of the results, and returns a tuple of cotangents of the arguments.

        Raises ValueError if it was not serialised with the function.

        Examples:
          >>> exported = weft.export.export(weft.jit(lambda x: x**2))(3.0)
          >>> exported.vjp().call(3.0, 1.0)
          (Array(6., dtype=float32, weak_type=True),)
        """
        if self._get_vjp is None:
            raise AttributeValueError(
                f"No VJP is available of {self.fun_name!r}: expected the program of its derivative "
                "beside it\n  Serialise with vjp_order=1, or more for derivatives of derivatives."
            )
        return self._get_vjp()

    def serialize(self, vjp_order=0, *, form="weft"):
        """The function as a bytearray, for `deserialize` in this or another process.

        vjp_order: how many times it can be differentiated where it is read.
        form: "weft", or "jax", which `jax.export.deserialize` reads as well.

        Raises ValueError for other forms, for structures of classes that are not registered, for
        programs that hold operations of this process, and if it cannot be differentiated so often
        itself; with form="jax" also for programs of several devices.

        Examples:
          >>> exported = weft.export.export(weft.jit(lambda x: x**2))(3.0)
          >>> again = weft.export.deserialize(exported.serialize(vjp_order=1))
          >>> again.has_vjp()
          True
        """
        if form not in ("weft", "jax"):
            raise AttributeValueError(f"serialize expected form 'weft' or 'jax'; got {form!r}")
        return (form_of_jax if form == "jax" else own_form).pack(self, vjp_order)

    def call(self, *args, **kwargs):
        """The results for arguments of the structure, shapes and dtypes of the export.

        It can be called in jitted functions and under `vmap` and, as far as there are derivatives
        in reverse, `grad` and `vjp`.

        Raises ValueError for other arguments, platforms and numbers of devices.

        Examples:
          >>> weft.export.export(weft.jit(wnp.add))(1, 2).call(3, 4)
          Array(7, dtype=int32, weak_type=True)
        """
        leaves, tree = registry.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TreeStructureError(
                f"{self.fun_name!r} takes the same pytree structure as in its export: "
                f"expected {explain_difference(self.in_tree, tree)}"
            )
        for i, (leaf, aval) in enumerate(zip(leaves, self.in_avals, strict=True)):
            self._check_leaf(i, leaf, aval)
        self._sizes(leaves)
        if DisabledSafetyCheck.platform() not in self.disabled_safety_checks:
            self._check_platform(leaves)
        return self.out_tree.unflatten(self._differentiable(*leaves))

    def _check_leaf(self, i, leaf, aval):
        got = typeof(leaf)
        alike = len(got.shape) == len(aval.shape) and all(
            is_symbolic_dim(want) or size == want
            for size, want in zip(got.shape, aval.shape, strict=True)
        )
        if alike and got.dtype == aval.dtype:
            return
        where = self._place_of(i)
        if not alike:
            raise ShapeError(
                f"Shape mismatch for {where}: expected {aval.shape}, as exported; got {got.shape}"
            )
        raise DTypeError(
            f"Dtype mismatch for {where}: expected {aval.dtype}, as exported; got {got.dtype}"
        )

    def _place_of(self, i):
        path = leaf_paths(self.in_tree)[i]
        return f"{('args', 'kwargs')[path[0].idx]}{keystr(path[1:])} of {self.fun_name!r}"

    @functools.cached_property
    def _is_symbolic(self):
        return any(is_symbolic_dim(dim) for aval in self.in_avals for dim in aval.shape)

    def _sizes(self, leaves):
        """The sizes of the variables in symbolic dimensions for some arguments, as a tuple."""
        if not self._is_symbolic:
            return ()
        expected = [aval.shape for aval in self.in_avals]
        sizes = solve(expected, [typeof(leaf).shape for leaf in leaves], self._place_of)
        return tuple(sorted(sizes.items()))

    @functools.cached_property
    def _refined(self):
        """A function from the sizes of variables to the program for them."""
        graph = self._graph
        return functools.lru_cache(maxsize=64)(lambda sizes: _core.refine(graph, dict(sizes)))

    def _check_platform(self, leaves):
        placed = [x for x in leaves if type(x) is _core.Array and x.committed]
        used = {_platform(d.platform) for x in placed for d in x.devices()}
        used = used or {default_export_platform()}
        if not used <= set(self.platforms):
            raise AttributeValueError(
                f"Function {self.fun_name!r} was exported for platforms {self.platforms} but it is "
                f"used on {tuple(sorted(map(str, used)))}: expected one of the former\n"
                "  Export it for them, or with disabled_checks=[DisabledSafetyCheck.platform()]"
            )

    @functools.cached_property
    def _differentiable(self):
        """A function from the flat arguments to the list of flat results."""

        def run(*xs):
            return self._run(*xs)

        run.__name__ = self.fun_name
        run = custom_vjp(run)
        run.defvjp(
            lambda *xs: (run(*xs), xs),  # so that the program itself is never differentiated
            lambda xs, cotangents: tuple(self.vjp().call(*xs, *cotangents)),
        )
        return run

    def _run(self, *leaves):
        sizes = self._sizes(leaves)
        graph = self._refined(sizes) if sizes else self._graph
        leaves, weak = list(leaves), [a.weak_type for a in self.out_avals]
        if self.nr_devices == 1:
            return _core.call_graph(graph, leaves, tuple(weak))
        placed = self._devices_of_call(leaves)
        graph = own_form.with_devices(graph, tuple(map(_core.device_index, placed)))
        leaves = _constrained(leaves, self._in_splits, placed)
        results = _core.call_graph(graph, leaves, tuple(weak))
        return _constrained(results, self._out_splits, placed)

    def _devices_of_call(self, leaves):
        """The devices that a program of several runs on: those of the first argument that is split,
        of the mesh that is set, or the first there are, in their order."""
        places = [x.sharding for x in leaves if type(x) is _core.Array]
        meshes = [place.mesh for place in places if isinstance(place, NamedSharding)]
        meshes += [mesh for mesh in [mesh_set()] if not mesh.empty]
        found = list(meshes[0].devices.flat) if meshes else devices.devices()[: self.nr_devices]
        if len(found) != self.nr_devices:
            raise DeviceMismatchError(
                f"expected {self.nr_devices} devices for {self.fun_name!r}, as it was exported; "
                f"got {len(found)}"
            )
        return found


def _on_mesh(split, mesh):
    return None if split is None else NamedSharding(mesh, split[2])


def _constrained(values, splits, placed):
    """The values, split over devices as an export has it."""
    out = []
    for x, split in zip(values, splits, strict=True):
        if split is not None:
            names, sizes, spec = split
            mesh = Mesh(np.array(placed, object).reshape(sizes), names)
            x = with_sharding_constraint(x, NamedSharding(mesh, spec))
        out.append(x)
    return out


def export(fun_jit, *, platforms=None, disabled_checks=(), _override_lowering_rules=None):
    """A function as a program that other processes and other tools can run.

    Args:
      fun_jit: what `weft.jit` returned, or a function of weft.
      platforms: a sequence of "cpu", "cuda", "rocm", "tpu": those that the program may run on; by
        default that of the default device.
      disabled_checks: DisabledSafetyChecks that are left out.

    Returns:
      a function that takes the arguments of `fun_jit`, or ShapeDtypeStructs in their place, and
      returns an Exported.

    Raises ValueError for other functions, TypeError for platforms that are no text, and, of the
    function it returns, ValueError for functions of other libraries that no DisabledSafetyCheck
    allows; NotImplementedError for what only this process can do: host callbacks, refs.

    Examples:
      >>> x = weft.ShapeDtypeStruct((3,), "float32")
      >>> exported = weft.export.export(weft.jit(wnp.sin))(x)
      >>> exported.in_avals, exported.call(wnp.zeros(3))
      ((ShapedArray(float32[3]),), Array([0., 0., 0.], dtype=float32))
    """
    if _override_lowering_rules is not None:
        raise NotImplementedRuleError(
            "export expected no rules of lowering but those that primitives have; got "
            "_override_lowering_rules"
        )
    if type(fun_jit) in _OWN_FUNCTIONS:
        fun_jit = jit(fun_jit)
    if not isinstance(fun_jit, _core.JitFunction):
        raise AttributeValueError(
            "export: Function to be exported must be the result of `jit`: expected what weft.jit "
            f"returned; got {fun_jit!r:.80}\n  Write export(weft.jit(f))."
        )
    if isinstance(platforms, str):
        platforms = (platforms,)
    chosen = tuple(platforms) if platforms else (default_export_platform(),)
    if not all(isinstance(platform, str) for platform in chosen):
        raise ArgumentTypeError(f"export expected platforms that are text; got {platforms!r}")
    disabled = tuple(disabled_checks)

    def export_for(*args, **kwargs):
        return _exported(fun_jit.trace(*args, **kwargs), chosen, disabled)

    return export_for


def _exported(traced, platforms, disabled):
    core = traced._program.core
    if core.written or core.written_arguments:
        raise NotImplementedRuleError(
            f"export expected a function that writes no refs; {traced.fun_name!r} writes some"
        )
    closed = _without_constants(traced)
    in_avals, out_avals = (
        tuple(registry.flatten(t)[0]) for t in (traced.in_avals, traced.out_avals)
    )
    # A program with symbolic dimensions stays as it is until its sizes are known.
    symbolic = any(is_symbolic_dim(dim) for aval in in_avals for dim in aval.shape)
    graph = closed if symbolic else optimize(closed, passes=own_form.PASSES)
    _check_portable(graph, traced.fun_name, disabled)
    places = core.places()
    given = [places.input(len(core.consts) + i) for i in range(len(in_avals))]
    placed, in_splits = _splits(given)
    _, out_splits = _splits(core.out_shardings)
    name = f"jit_{traced.fun_name}"
    if symbolic:
        if len(placed) > 1:
            raise NotImplementedRuleError(
                "export expected arguments on one device beside symbolic dimensions; got "
                f"{len(placed)} devices"
            )
        module, kept = b"", tuple(range(len(in_avals)))
    elif len(placed) > 1:
        texts = [_text_on_devices(graph, given, core.out_shardings, name, platforms)]
        graph = own_form.with_devices(graph, {number: i for i, number in enumerate(placed)})
        module, kept = artifact(texts, core.options.keep_unused)
    else:
        lowered = optimize(graph)
        texts = [_core.emit_stablehlo(lowered, name, platform, False) for platform in platforms]
        module, kept = artifact(texts, core.options.keep_unused)
    weak = tuple(aval.weak_type for aval in out_avals)
    ins = list(map(_placed, in_avals, given))
    outs = list(map(_placed, (aval.to_ct_aval() for aval in out_avals), core.out_shardings))
    return Exported(
        fun_name=traced.fun_name,
        in_tree=traced.in_tree,
        in_avals=in_avals,
        out_tree=traced.out_tree,
        out_avals=out_avals,
        platforms=platforms,
        nr_devices=max(1, len(placed)),
        disabled_safety_checks=disabled,
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=kept,
        mlir_module_serialized=module,
        _graph=graph,
        _in_splits=in_splits,
        _out_splits=out_splits,
        _get_vjp=functools.cache(
            lambda: _derivative(closed, weak, [*ins, *outs], platforms, disabled)
        ),
    )


def _splits(placements):
    """The numbers of the devices that something is split over, in order, and each split."""
    placed, out = [], []
    for placement in placements:
        place = None if placement is None else sharding_of(placement)
        if not isinstance(place, NamedSharding):
            out.append(None)
            continue
        mesh = place.mesh
        placed = placed or [_core.device_index(d) for d in mesh.devices.flat]
        out.append((mesh.axis_names, mesh.devices.shape, place.spec))
    return placed, tuple(out)


def _placed(aval, placement):
    """What stands for an array of a type that is placed so."""
    place = None if placement is None else sharding_of(placement)
    split = place if isinstance(place, NamedSharding) else None
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=split)


def _text_on_devices(graph, given, wanted, name, platforms):
    """The module of a program for several devices."""
    if platforms != (default_export_platform(),):
        raise NotImplementedRuleError(
            "export expected the platform of the default device for a program of several devices, "
            f"{default_export_platform()!r}; got {platforms}"
        )

    def run(*xs):
        return tuple(_core.call_graph(graph, list(xs), ()))

    run.__name__ = name.removeprefix("jit_")
    ins, outs = ([None if p is None else sharding_of(p) for p in side] for side in (given, wanted))
    arguments = [ShapeDtypeStruct(*t) for t in graph.in_types]
    jitted = jit(run, keep_unused=True, in_shardings=tuple(ins), out_shardings=tuple(outs))
    core = jitted.trace(*arguments)._program.core
    names = [f"result[{i}]" for i in range(len(outs))]
    return core.stablehlo(core.places(), False, names, "")


def _without_constants(traced):
    """The graph of a function, in which the arrays that it closes over are constants."""
    graph = traced.graph
    if not traced.consts:
        return graph
    weak = tuple(w for _, _, w in traced._program.core.out_avals)
    made = [own_form.constant(x) for x in traced.consts]

    def closed(*xs):
        return _core.call_graph(graph, [*(c()[0] for c in made), *xs], weak)

    arguments = [
        ShapeDtypeStruct(shape, dtype, weak_type=w)
        for shape, dtype, w in traced._program.core.in_avals
    ]
    return jit(closed).trace(*arguments).graph


def _derivative(graph, weak, arguments, platforms, disabled):
    """The program of a derivative in reverse, exported, for arguments and cotangents."""

    def fun_vjp(*xs):
        count = len(xs) - len(weak)
        _, pull, *_ = vjp(lambda *ys: tuple(_core.call_graph(graph, list(ys), weak)), *xs[:count])
        return pull(xs[count:])

    return _exported(jit(fun_vjp).trace(*arguments), platforms, disabled)


def _check_portable(graph, name, disabled):
    text = str(graph)
    found = None if graph.is_portable else _CALLBACK.search(text)
    if found:
        raise NotImplementedRuleError(
            "export: serialization of host_callbacks is not yet implemented: expected a function "
            f"without them; {name!r} has a {found[1]}"
        )
    allowed = {check.is_custom_call() for check in disabled}
    targets = {target.strip('"') for target in _FFI_TARGET.findall(text)} - allowed
    if targets:
        raise AttributeValueError(
            "export: Cannot serialize code with custom calls whose targets have no compatibility "
            f"guarantees: expected a function without them; {name!r} calls {sorted(targets)}\n"
            "  Allow it with disabled_checks=[DisabledSafetyCheck.custom_call(name)]."
        )


def deserialize(blob):
    """The Exported whose `serialize` returned these bytes; also of those that jax.export wrote.

    A function that jax.export wrote has derivatives of any order, also where none were kept.

    Raises ValueError for bytes that are damaged, or that this version of weft cannot read, and for
    structures of classes that are not registered; NotImplementedError for functions of jax.export
    with effects, for several devices, or for shapes that are not known.

    Examples:
      >>> blob = weft.export.export(weft.jit(lambda x: 2 * x))(wnp.ones(2)).serialize()
      >>> weft.export.deserialize(blob).call(wnp.array([1.0, 3.0]))
      Array([2., 6.], dtype=float32)
    """
    data = own_form.checked_bytes(blob)
    if not own_form.is_named(data):
        return _of_jax(form_of_jax.unpack(data))
    told, module, derivative = own_form.unpack(data)
    return Exported(
        fun_name=told["fun_name"],
        in_tree=told["in_tree"],
        in_avals=told["in_avals"],
        out_tree=told["out_tree"],
        out_avals=told["out_avals"],
        platforms=tuple(told["platforms"]),
        nr_devices=told["nr_devices"],
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, told["disabled"])),
        calling_convention_version=told["calling_convention_version"],
        module_kept_var_idx=tuple(told["kept"]),
        mlir_module_serialized=module,
        _graph=told["graph"],
        _in_splits=told["in_splits"],
        _out_splits=told["out_splits"],
        _get_vjp=functools.cache(lambda: deserialize(derivative)) if derivative else None,
    )


def _of_jax(told):
    """The Exported of what `_export_jax.unpack` told."""
    graph = form_of_jax.graph_of(told, default_export_platform())
    ins, outs = ([ShapedArray(*t) for t in told[side]] for side in ("in_types", "out_types"))
    disabled = tuple(map(DisabledSafetyCheck, told["disabled"]))

    def derivative():
        if told["derivative"] is not None:
            return _of_jax(told["derivative"])
        cotangents = [aval.to_ct_aval() for aval in outs]
        arguments = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in [*ins, *cotangents]]
        weak = (False,) * len(outs)
        return _derivative(graph, weak, arguments, told["platforms"], disabled)

    return Exported(
        fun_name=told["fun_name"],
        in_tree=told["in_tree"],
        in_avals=tuple(ins),
        out_tree=told["out_tree"],
        out_avals=tuple(outs),
        platforms=told["platforms"],
        nr_devices=1,
        disabled_safety_checks=disabled,
        calling_convention_version=told["calling_convention_version"],
        module_kept_var_idx=told["kept"],
        mlir_module_serialized=told["module"],
        _graph=graph,
        _in_splits=(None,) * len(ins),
        _out_splits=(None,) * len(outs),
        _get_vjp=functools.cache(derivative),
    )
