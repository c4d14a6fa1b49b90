"""Settings: process-wide values, and context managers that change one for the current thread.

Settings that the core reads live there, in one word per thread with a process-wide default; those
that change what is traced are part of the keys of all traces. The others live here. Environment
variables named like the setting in upper case (`WEFT_ENABLE_X64=1`) give the initial values.
"""

import os
import threading
from contextlib import ContextDecorator, contextmanager

from weft._settings import BARE as _BARE, SETTINGS as _SETTINGS
from weft._surface import public as _public

__all__ = [
    "Config",
    "allow_f16_reductions",
    "array_garbage_collection_guard",
    "auto_pcast",
    "check_tracer_leaks",
    "checking_leaks",
    "config",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "disable_jit",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "explain_cache_misses",
    "jax2tf_associative_scan_reductions",
    "legacy_prng_key",
    "log_compiles",
    "no_execution",
    "no_tracing",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "remove_size_one_mesh_axis_from_type",
    "softmax_custom_jvp",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
]
__getattr__, __dir__ = _public(__name__, __all__)

_SHORT = {"weft_explain_cache_misses": "WEFT_EXPLAIN"}  # other names in the environment
_DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")


class _Values(dict):
    """Settings by name, of which those that JAX gave them are read as well."""

    def __missing__(self, name):
        own = _own_name(name)
        if own == name:
            raise KeyError(name)
        return self[own]

    def __contains__(self, name):
        return super().__contains__(_own_name(name))

    def get(self, name, default=None):
        return super().get(_own_name(name), default)


def _own_name(name):
    if isinstance(name, str) and (name.startswith("jax_") or name in _BARE):
        return "weft_" + name.removeprefix("jax_")
    return name


class Config:
    """The settings as attributes. Change them with `update`, or for a block of code with the
    context managers of this module."""

    def __init__(self):
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_frozen", set())
        for name, setting in _SETTINGS.items():
            self._store(name, self._initial(name, setting))

    @staticmethod
    def _initial(name, setting):
        variable = name.upper()
        text = os.environ.get(variable)
        if text is None and name in _SHORT:
            variable = _SHORT[name]
            text = os.environ.get(variable)
        if text is None or setting.parse is None:
            return setting.default
        try:
            return setting.check(setting.parse(text))
        except (TypeError, ValueError) as error:
            raise ValueError(f"environment variable {variable}: {error}") from None

    @staticmethod
    def _resolve(name):
        """The setting of a name; `jax_...` is accepted for `weft_...`."""
        own = _own_name(name)
        if own not in _SETTINGS:
            import difflib  # for messages only

            similar = difflib.get_close_matches(str(own), _SETTINGS, 1)
            hint = f". Did you mean {similar[0]!r}?" if similar else "; see config.describe()"
            raise AttributeError(f"no setting {name!r}{hint}")
        return own

    def _store(self, name, value):
        core = _SETTINGS[name].core
        if core is not None:
            core.set_global(value)
        else:
            self._values[name] = value

    def update(self, name, value):
        """Sets a setting for the whole process.

        Threads inside a context manager for the setting keep that value. Raises AttributeError for
        an unknown name, ValueError or TypeError for a wrong value, and RuntimeError for a setting
        that came too late because the device client has been started.
        """
        name = self._resolve(name)
        value = _checked(name, value)
        if name in self._frozen and value != self._values[name]:
            raise RuntimeError(
                f"{name} must be set before the first use of a device; it is "
                f"{self._values[name]!r} now"
            )
        self._store(name, value)
        if name == "weft_transfer_guard":
            for direction in _DIRECTIONS:
                self._store(f"weft_transfer_guard_{direction}", value)

    def read(self, name):
        """The value of a setting, as it is for the current thread."""
        name = self._resolve(name)
        core = _SETTINGS[name].core
        if core is not None:
            return core.get()
        stack = _overrides.__dict__.get(name)
        return stack[-1] if stack else self._values[name]

    @property
    def values(self):
        """A dict of all settings as they are for the current thread."""
        return _Values((name, self.read(name)) for name in _SETTINGS)

    def freeze(self, *names):
        """Declares that the values of these settings are in use and cannot be changed any more."""
        self._frozen.update(map(self._resolve, names))

    def describe(self):
        """A text with every setting, its value and its meaning."""
        lines = (f"{n} = {self.read(n)!r}: {s.doc}" for n, s in sorted(_SETTINGS.items()))
        return "\n".join(lines)

    def table(self):
        """docs/config.md: every setting, its default and its meaning."""
        rows = [
            "# Settings",
            "",
            "`weft.config.update(name, value)` sets one for the process, the environment variable"
            " of the same name in upper case before the start, and those that are functions of weft"
            " (`with weft.enable_x64():`) for a block of code and one thread. `jax_...` is accepted"
            " for `weft_...`. Written by `tools/settings`; do not edit.",
            "",
            "| setting | default | |",
            "|---|---|---|",
        ]
        without_effect = {}
        for name, setting in sorted(_SETTINGS.items()):
            if setting.why_none is None:
                rows.append(f"| `{name}` | `{setting.default!r}` | {setting.doc} |")
            else:
                without_effect.setdefault(setting.why_none, []).append(f"`{name}`")
        rows += [
            "",
            "## Appendix: settings without effect",
            "",
            "JAX has these. Programs may set them; weft does not need them.",
            "",
            "| why | settings |",
            "|---|---|",
        ]
        rows += [f"| {why} | {', '.join(names)} |" for why, names in without_effect.items()]
        return "\n".join(rows) + "\n"

    def parse_flags_with_absl(self):
        """Adds the settings to the flags of absl (`--jax_enable_x64`, `--weft_enable_x64`), and
        takes the values that the command line has for them.

        Raises RuntimeError where the package absl-py is not installed.
        """
        from weft._flags import parse_flags

        parse_flags(self, _SETTINGS)

    @property
    def x64_enabled(self):
        """Whether 64-bit dtypes are enabled."""
        return self.read("weft_enable_x64")

    def __getattr__(self, name):
        return self.read(name)

    def __setattr__(self, name, value):
        raise AttributeError(f"use config.update({name!r}, ...) to change a setting")

    def __dir__(self):
        return [*super().__dir__(), *_SETTINGS]

    def __repr__(self):
        return f"Config({', '.join(f'{n}={self.read(n)!r}' for n in sorted(_SETTINGS))})"


def _checked(name, value):
    try:
        return _SETTINGS[name].check(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


_overrides = threading.local()  # one stack of values per setting
config = Config()


class _Override(ContextDecorator):
    """Changes a setting for the current thread; puts back what was there at the end."""

    def __init__(self, name, value):
        self._name = name
        self._value = _checked(name, value)

    def _recreate_cm(self):
        return _Override(self._name, self._value)

    def _stack(self):
        return _overrides.__dict__.setdefault(self._name, [])

    def __enter__(self):
        self._stack().append(self._value)
        core = _SETTINGS[self._name].core
        if core is not None:
            core.set(self._value)

    def __exit__(self, *exception):
        stack = self._stack()
        stack.pop()
        core = _SETTINGS[self._name].core
        if core is None:
            return
        if stack:
            core.set(stack[-1])
        else:
            core.follow_process()


def enable_x64(new_val=True):
    """Context manager: 64-bit dtypes are kept (or, with False, not) in the current thread.

    with enable_x64():
        jnp.arange(3)       # int64

    `new_val`: True or False.

    Examples:
      >>> with weft.enable_x64():
      ...     print(wnp.arange(2).dtype)
      int64
    """
    return _Override("weft_enable_x64", new_val)


def disable_jit(disable=True):
    """Context manager: functions under `jit` run operation by operation in the current thread.

    Values are concrete, so `print`, a debugger and Python control flow work inside them. Functions
    of weft that are made of several operations stay one, so that their values do not change.

    `disable`: False to compile them again within such a context.

    Examples:
      >>> def f(x):
      ...     return "more" if x > 0 else "less"
      >>> with weft.disable_jit():
      ...     print(weft.jit(f)(1.0))
      more
    """
    return _Override("weft_disable_jit", disable)


def default_device(new_val=None):
    """Context manager: new arrays of the current thread are placed on `new_val`, a device or the
    name of a platform.

    None stands for the process-wide default.

    Examples:
      >>> with weft.default_device(weft.devices("cpu")[0]):
      ...     print(wnp.zeros(2).device.platform)
      cpu
    """
    return _Override("weft_default_device", new_val)


def numpy_rank_promotion(new_val):
    """Context manager: what happens where functions of weft.numpy align operands of different
    ranks: "allow", "warn" (UserWarning) or "raise" (ValueError).

    `new_val` is one of these names.

    Examples:
      >>> try:
      ...     with weft.numpy_rank_promotion("raise"):
      ...         wnp.ones((2, 3)) + wnp.ones(3)
      ... except ValueError:
      ...     print("ranks differ")
      ranks differ
    """
    return _Override("weft_numpy_rank_promotion", new_val)


def numpy_dtype_promotion(new_val):
    """Context manager: "standard" promotion of dtypes, or "strict", where operands of different
    dtypes raise TypePromotionError, except for Python numbers that the other dtype holds.

    `new_val` is one of these names.

    Examples:
      >>> try:
      ...     with weft.numpy_dtype_promotion("strict"):
      ...         wnp.ones(2) + wnp.arange(2)
      ... except weft.dtypes.TypePromotionError:
      ...     print("float32 and int32")
      float32 and int32
    """
    return _Override("weft_numpy_dtype_promotion", new_val)


def default_matmul_precision(new_val=None):
    """Context manager: the precision of products and convolutions that do not name one.

    None; "default" or "bfloat16", "high" or "tensorfloat32", "highest" or "float32"; or the name of
    a `weft.lax.DotAlgorithmPreset`, which convolutions take as "default". Functions under `jit` are
    traced again for each.

    `new_val` is one of these.

    Examples:
      >>> x = wnp.ones(2)
      >>> with weft.default_matmul_precision("highest"):
      ...     print("HIGHEST" in str(weft.make_jaxpr(wnp.dot)(x, x)))
      True
    """
    return _Override("weft_default_matmul_precision", new_val)


def check_tracer_leaks(new_val=True):
    """Context manager: a traced value that outlives its trace raises UnexpectedTracerError as soon
    as the trace ends, and not only where it is used.

    `new_val`: True or False.

    Examples:
      >>> kept = []
      >>> try:
      ...     with weft.check_tracer_leaks():
      ...         weft.jit(kept.append)(1.0)
      ... except weft.errors.UnexpectedTracerError:
      ...     print("a traced value was kept")
      a traced value was kept
    """
    return _Override("weft_check_tracer_leaks", new_val)


def checking_leaks():
    """`check_tracer_leaks(True)`.

    Examples:
      >>> kept = []
      >>> try:
      ...     with weft.checking_leaks():
      ...         weft.jit(kept.append)(1.0)
      ... except weft.errors.UnexpectedTracerError:
      ...     print("a traced value was kept")
      a traced value was kept
    """
    return check_tracer_leaks(True)


def log_compiles(new_val=True):
    """Context manager: traces and compilations are logged, by the logger "weft", as warnings.

    `new_val`: True or False.

    Examples:
      >>> with weft.log_compiles(False):
      ...     print(weft.jit(lambda x: x + 1)(1))
      2
    """
    return _Override("weft_log_compiles", new_val)


def explain_cache_misses(new_val=True):
    """Context manager: the logger "weft" says of each call of a function under `jit` that is traced
    why no earlier trace serves it, and how long it was traced and compiled; `jit(f).explain()`
    tells the same afterwards.

    `new_val`: True or False.

    Examples:
      >>> with weft.explain_cache_misses(False):
      ...     print(weft.jit(lambda x: x + 1)(1))
      2
    """
    return _Override("weft_explain_cache_misses", new_val)


def no_tracing(new_val=True):
    """Context manager: functions and operations that would have to be traced raise RuntimeError.

    `new_val`: True or False.

    Examples:
      >>> double = weft.jit(lambda x: 2 * x)
      >>> value = double(1)
      >>> with weft.no_tracing():
      ...     print(double(3))
      6
    """
    return _Override("weft_no_tracing", new_val)


def no_execution(new_val=True):
    """Context manager: programs that would run raise RuntimeError.

    `new_val`: True or False.

    Examples:
      >>> try:
      ...     with weft.no_execution():
      ...         wnp.arange(3) + 1
      ... except RuntimeError:
      ...     print("not run")
      not run
    """
    return _Override("weft_no_execution", new_val)


def default_prng_impl(new_val):
    """Context manager: the implementation of keys that name none, "threefry2x32", "rbg" or
    "unsafe_rbg"; untyped keys are of it, too.

    `new_val` is one of these names.

    Examples:
      >>> with weft.default_prng_impl("rbg"):
      ...     print(weft.random.key(0).dtype)
      key<rbg>
    """
    return _Override("weft_default_prng_impl", new_val)


def legacy_prng_key(new_val):
    """Context manager: whether untyped keys may be used: "allow", "warn" or "error".

    `new_val` is one of these names.

    Examples:
      >>> with weft.legacy_prng_key("error"):
      ...     try:
      ...         weft.random.uniform(weft.random.PRNGKey(0))
      ...     except ValueError:
      ...         print("an untyped key")
      an untyped key
    """
    return _Override("weft_legacy_prng_key", new_val)


def enable_custom_prng(new_val=True):
    """Context manager: `PRNGKey` gives typed keys, and so do functions of untyped keys.

    `new_val`: True or False.

    Examples:
      >>> with weft.enable_custom_prng():
      ...     print(weft.random.PRNGKey(0).dtype)
      key<fry>
    """
    return _Override("weft_enable_custom_prng", new_val)


def threefry_partitionable(new_val=True):
    """Context manager: with False, keys of threefry2x32 give the streams of before each element
    had a counter of its own.

    `new_val`: True or False.

    Examples:
      >>> with weft.threefry_partitionable(False):
      ...     old = weft.random.bits(weft.random.key(0), (3,))
      >>> (old == weft.random.bits(weft.random.key(0), (3,))).all()
      Array(False, dtype=bool)
    """
    return _Override("weft_threefry_partitionable", new_val)


def debug_key_reuse(new_val=True):
    """Context manager: a typed key that is used twice raises KeyReuseError.

    The first use that draws bits of a key or splits it marks the key; `weft.random.clone` gives one
    without the mark. Functions under `jit` run operation by operation, as with `disable_jit`, so
    that keys within them are seen; keys that loops and branches make anew are not.

    `new_val`: True or False.

    Examples:
      >>> key = weft.random.key(0)
      >>> with weft.debug_key_reuse():
      ...     first, second = weft.random.split(key)
      ...     print(weft.random.bits(first).shape)  # of key instead it would be an error
      ()
    """
    return _KeyReuse(new_val)


class _KeyReuse(_Override):
    """Runs functions under `jit` operation by operation, too."""

    def __init__(self, value):
        super().__init__("weft_debug_key_reuse", value)
        self._unjitted = disable_jit()

    def _recreate_cm(self):
        return _KeyReuse(self._value)

    def __enter__(self):
        super().__enter__()
        if self._value:
            self._unjitted.__enter__()

    def __exit__(self, *exception):
        if self._value:
            self._unjitted.__exit__(*exception)
        super().__exit__(*exception)


def debug_nans(new_val=True):
    """Context manager: a program of the current thread that gives a NaN raises FloatingPointError.

    The error names the operation that made it, the line, the pass and the operands; see
    docs/debugging.md.

    `new_val`: True or False.

    Examples:
      >>> try:
      ...     with weft.debug_nans():
      ...         wnp.log(wnp.array(-1.0))
      ... except FloatingPointError:
      ...     print("a NaN")
      a NaN
    """
    return _Override("weft_debug_nans", new_val)


def debug_infs(new_val=True):
    """Context manager: as `debug_nans`, for infinities.

    `new_val`: True or False.

    Examples:
      >>> try:
      ...     with weft.debug_infs():
      ...         1 / wnp.array(0.0)
      ... except FloatingPointError:
      ...     print("an infinity")
      an infinity
    """
    return _Override("weft_debug_infs", new_val)


@contextmanager
def transfer_guard(new_val):
    """Context manager: all three guards of transfers.

    A guard is "allow", "log" or "disallow" for transfers that are not asked for by name (with
    `device_put` and `device_get`), or "log_explicit" or "disallow_explicit" for all. "disallow"
    raises TransferGuardError, a RuntimeError.

    Examples:
      >>> with weft.transfer_guard("disallow"):
      ...     x = weft.device_put(np.ones(2))  # as an operand, np.ones(2) would be an error
      >>> x
      Array([1., 1.], dtype=float32)
    """
    with (
        _Override("weft_transfer_guard", new_val),
        transfer_guard_host_to_device(new_val),
        transfer_guard_device_to_device(new_val),
        transfer_guard_device_to_host(new_val),
    ):
        yield


def transfer_guard_host_to_device(new_val):
    """Context manager: NumPy arrays and Python numbers as operands; see `transfer_guard`.

    Examples:
      >>> with weft.transfer_guard_host_to_device("disallow"):
      ...     x = weft.device_put(np.ones(2))
      >>> x
      Array([1., 1.], dtype=float32)
    """
    return _Override("weft_transfer_guard_host_to_device", new_val)


def transfer_guard_device_to_device(new_val):
    """Context manager: arrays that are needed on another device; see `transfer_guard`.

    Examples:
      >>> with weft.transfer_guard_device_to_device("disallow"):
      ...     x = weft.device_put(wnp.ones(2), weft.devices()[0])
      >>> x
      Array([1., 1.], dtype=float32)
    """
    return _Override("weft_transfer_guard_device_to_device", new_val)


def transfer_guard_device_to_host(new_val):
    """Context manager: values of arrays as NumPy arrays or numbers; see `transfer_guard`.

    The host shares the memory of devices that are CPUs: nothing is transferred.

    Examples:
      >>> with weft.transfer_guard_device_to_host("disallow"):
      ...     x = weft.device_get(wnp.ones(2))
      >>> x
      array([1., 1.], dtype=float32)
    """
    return _Override("weft_transfer_guard_device_to_host", new_val)


def _without_effect(name, values):
    def manager(new_val=True):
        return _Override(f"weft_{name}", new_val)

    manager.__name__ = manager.__qualname__ = name
    why = _SETTINGS[f"weft_{name}"].doc
    manager.__doc__ = f"""Context manager of a setting. {why}

    new_val: {values}; ignored.
    """
    return manager


_BOOL = "a bool"
allow_f16_reductions = _without_effect("allow_f16_reductions", _BOOL)
auto_pcast = _without_effect("auto_pcast", _BOOL)
enable_checks = _without_effect("enable_checks", _BOOL)
jax2tf_associative_scan_reductions = _without_effect("jax2tf_associative_scan_reductions", _BOOL)
remove_size_one_mesh_axis_from_type = _without_effect("remove_size_one_mesh_axis_from_type", _BOOL)
softmax_custom_jvp = _without_effect("softmax_custom_jvp", _BOOL)
thread_guard = _without_effect("thread_guard", _BOOL)
array_garbage_collection_guard = _without_effect(
    "array_garbage_collection_guard", 'None, "allow", "log" or "fatal"'
)
