"""Primitive: an op, of the library or of the user, as a Python object."""

from weft import _core
from weft._types.avals import ShapedArray
from weft.dtypes import x64_enabled
from weft.extend._application import Application
from weft.runtime.callback import check_results, host_argument

_ACTS = 1 | 8  # kUnordered, kActs of src/include/weft/op.h


class Primitive:
    """An operation of programs.

    `Primitive(name)` makes a new one; what it means is said by the methods `def_...`, each of which
    may be used as a decorator. Of these only `def_abstract_eval`, and `def_impl` or a lowering, are
    needed to use it under `jit`; the other rules when a transform asks for them. Rules are to be
    defined before the primitive is used: programs that are compiled already keep the old ones.
    A primitive lives as long as the process.

    Attributes:
      name: as in printed programs.
      multiple_results: whether results are a list; set it before use.
      impl: what was given to `def_impl`, or else `bind`; setting it is `def_impl`.
      call_primitive: False: those that call functions have these as parameters.
    """

    call_primitive = False

    def __init__(self, name):
        self._set_up(str(name), False)
        self._op = _core.new_op(self.name, self, 0)

    def _with_effects(self, effects):
        """Another primitive with these rules, which has effects: bits, as of a graph."""
        other = type(self).__new__(type(self))
        other._set_up(self.name, self._multiple_results)
        other._rules = self._rules
        other._op = _core.new_op(self.name, other, effects)
        _core.set_multiple_results(other._op, self._multiple_results)
        return other

    def _has_effects(self, args, params):
        """Whether this call is part of a program, and its rule says that it has effects."""
        effects = self._rules.get("effects")
        if effects is None or not (_core.in_trace() or any(type(a) is _core.Tracer for a in args)):
            return False
        return bool(effects(*_avals(_core.typeof(a) for a in args), **params))

    def _acting(self):
        """The primitive of the calls that have effects."""
        if self._with_acts is None:
            self._with_acts = self._with_effects(_ACTS)
        return self._with_acts

    def _set_up(self, name, multiple_results):
        self.name = name
        self._with_acts = None
        self._multiple_results = multiple_results
        self._rules = {}
        self._built_in = False

    @classmethod
    def _of_op(cls, name, op, multiple_results):
        """The Primitive of an op of the library."""
        self = cls.__new__(cls)
        self._set_up(name, multiple_results)
        self._op = op
        self._built_in = True
        return self

    @property
    def multiple_results(self):
        return self._multiple_results

    @multiple_results.setter
    def multiple_results(self, multiple):
        self._check_user_defined("multiple_results")
        self._multiple_results = bool(multiple)
        _core.set_multiple_results(self._op, self._multiple_results)

    @property
    def impl(self):
        return self._rules.get("impl", self.bind)

    @impl.setter
    def impl(self, impl):
        self.def_impl(impl)

    def __repr__(self):
        return self.name

    __str__ = __repr__

    def __reduce__(self):
        if self._built_in:
            return _built_in, (self.name,)
        raise TypeError(
            f"primitive '{self.name}' is defined by its Python object; cannot pickle it"
        )

    # ---- Use

    def bind(self, *args, **params):
        """Applies the primitive to arrays, with static parameters.

        Under a trace the operation is recorded. Otherwise the function given to `def_impl` is
        called on NumPy arrays, or the lowering is compiled (once per types and parameters) and run.
        Parameters must be hashable, except for that direct call.
        """
        if self._has_effects(args, params):
            return _core.bind_op(self._acting()._op, *args, **params)
        impl = self._rules.get("impl")
        if impl is None or _core.in_trace() or any(type(a) is _core.Tracer for a in args):
            return _core.bind_op(self._op, *args, **params)
        return self._call_impl(impl, args, params)

    def _call_impl(self, impl, args, params):
        try:
            types = [_core.typeof(a) for a in args]
        except TypeError:
            return _core.bind_op(self._op, *args, **params)  # raises, with this primitive's name
        results = impl(
            *(host_argument(a, t[1]) for a, t in zip(args, types, strict=True)), **params
        )
        if "abstract_eval" in self._rules:
            application = Application(self, params, _avals(types), None, "")
            expected = [(a.shape, a.dtype) for a in application.infer()]
            flat = results if self.multiple_results else [results]
            results = check_results(impl, flat, expected, "", x64_enabled())
        elif not self.multiple_results:
            results = [results]
        results = [_core.asarray(r) for r in results]
        return results if self.multiple_results else results[0]

    def get_bind_params(self, params):
        """([], params): what to give `bind` before and by name, for interpreters."""
        return [], dict(params)

    # ---- Rules

    def _check_user_defined(self, what):
        if self._built_in:
            raise TypeError(f"{what}: expected a primitive of your own; '{self.name}' is built in")

    def _define(self, slot, rule, *options):
        self._check_rule(slot, rule)
        self._rules[slot] = (rule, *options) if options else rule
        return rule

    def _check_rule(self, slot, rule):
        self._check_user_defined(f"def_{slot}")
        if not callable(rule):
            raise TypeError(f"def_{slot} of '{self.name}': expected a function; got {rule!r}")

    def def_impl(self, impl):
        """impl(*arrays, **params) -> array (list of arrays): the operation on NumPy arrays.

        Called directly on concrete values. In compiled programs it is called back on the host,
        unless there is a lowering; this works on CPU only.
        """
        return self._define("impl", impl)

    def def_abstract_eval(self, rule):
        """rule(*avals, **params) -> aval (list): the ShapedArrays of the results."""
        return self._define("abstract_eval", rule)

    def def_effectful_abstract_eval(self, rule):
        """rule(*avals, **params) -> (aval (list), effects): as `def_abstract_eval`, and what calls
        do beside giving results, any collection. Where it is not empty, programs keep the call
        though nothing needs its results; calls may run in any order.
        """
        self._define("effects", lambda *avals, **params: rule(*avals, **params)[1])
        self.def_abstract_eval(lambda *avals, **params: rule(*avals, **params)[0])
        return rule

    def def_jvp(self, rule, *, symbolic_zeros=False):
        """rule(primals, tangents, **params) -> (results, their tangents).

        `primals` and `tangents` are tuples. A tangent that is zero is an array of zeros (of dtype
        float0 for operands that are not float or complex); with `symbolic_zeros`, it is an
        `interpreters.ad.Zero`. A tangent returned may be a Zero either way. Results must not depend
        on tangents. With `multiple_results`, results and tangents are sequences.
        """
        return self._define("jvp", rule, symbolic_zeros)

    def def_transpose(self, rule, *, symbolic_zeros=False):
        """rule(ct, *args, **params) -> a cotangent per operand.

        Operands in which the operation is linear stand as `interpreters.ad.UndefinedPrimal(aval)`;
        each gets a cotangent of its type, or None for zero. The others get None. With
        `multiple_results`, `ct` is a list; `symbolic_zeros` is as for `def_jvp`.
        """
        return self._define("transpose", rule, symbolic_zeros)

    def def_batching(self, rule):
        """rule(args, dims, **params) -> (results, their dims): the operation under vmap.

        dims[i] is the axis of args[i] that is mapped, None if it is not. With `multiple_results`
        results and dims are sequences, else an array and an int or None.
        """
        return self._define("batching", rule)

    def def_lowering(self, rule, platform=None):
        """rule(*args, **params) -> result (list): the operation in terms of others.

        For one platform ("cpu", "cuda"), or for those without a lowering of their own.
        """
        return self._lower(platform, "lowering", rule)

    def def_stablehlo(self, rule, platform=None):
        """rule(ctx, *names, **params) -> name of the result (list): the operation as text.

        `names` are the operands in the module, such as "%3". `ctx.line(text)` appends an op, given
        by what stands right of the "=", and returns the name of its result; `ctx.in_types` and
        `ctx.out_types` are the types as StableHLO writes them, `ctx.avals_in`, `ctx.avals_out` the
        same as ShapedArrays, `ctx.platform` the platform.
        """
        return self._lower(platform, "stablehlo", rule)

    def _lower(self, platform, kind, rule):
        self._check_rule(kind, rule)
        name = {"gpu": "cuda"}.get(platform, platform)
        self._rules.setdefault("lowerings", {})[name] = (kind, rule)
        return rule


def _built_in(name):
    return _core.primitive(name)


def _avals(types):
    return tuple(ShapedArray(s, d, weak_type=w) for s, d, w in types)


_core.install(primitive=Primitive, application=Application)
