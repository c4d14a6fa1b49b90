"""Settings: process-wide values, and context managers that change one for the current thread.

The settings that the hot call path reads (`weft_enable_x64`, `weft_disable_jit`,
`weft_default_device`) live in the C++ core, per thread with a process-wide default. All others live
here and must be set before the device client starts. Environment variables named like the setting
in upper case (`WEFT_ENABLE_X64=1`) give the initial values.
"""

import os
import threading
from contextlib import ContextDecorator

from weft import _core
from weft._surface import public as _public

__all__ = [
    "Config",
    "config",
    "debug_key_reuse",
    "default_device",
    "default_prng_impl",
    "disable_jit",
    "enable_custom_prng",
    "enable_x64",
    "legacy_prng_key",
    "threefry_partitionable",
]
__getattr__, __dir__ = _public(__name__, __all__)


def _parse_bool(text):
    word = text.strip().lower()
    if word in ("1", "true", "t", "yes", "y", "on"):
        return True
    if word in ("", "0", "false", "f", "no", "n", "off"):
        return False
    raise ValueError(f"expected a truth value such as 1, true, 0 or false; got {text!r}")


def _check_bool(value):
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    raise TypeError(f"expected a bool; got {value!r}")


def _check_count(value):
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"expected a positive integer or None; got {value!r}")
    return value


def _check_text(value):
    if value is not None and not isinstance(value, str):
        raise TypeError(f"expected a string or None; got {value!r}")
    return value


def _one_of(*values):
    def check(value):
        if value not in values:
            raise ValueError(f"expected one of {', '.join(map(repr, values))}; got {value!r}")
        return value

    return check


_FILTERINGS = ("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames")


def _check_filtering(value):
    if value not in _FILTERINGS:
        raise ValueError(f"expected one of {', '.join(_FILTERINGS)}; got {value!r}")
    return value


class _Setting:
    """One setting: how it is read from the environment, checked, and where it is kept."""

    def __init__(self, default, doc, check, parse=None, core=None):
        self.default = default
        self.doc = doc
        self.check = check
        self.parse = parse
        self.core = core  # (keyword of _core.set_state, index in _core.get_state())


_SETTINGS = {
    "weft_enable_x64": _Setting(
        False,
        "Keep 64-bit dtypes. When off, float64 becomes float32, int64 becomes int32, and so on.",
        _check_bool,
        _parse_bool,
        core=("x64", 0),
    ),
    "weft_disable_jit": _Setting(
        False,
        "Run functions under `jit` operation by operation, with concrete values, for debugging.",
        _check_bool,
        _parse_bool,
        core=("disable_jit", 1),
    ),
    "weft_default_device": _Setting(
        None,
        "Device on which new arrays are placed; None is the first device of the platform.",
        lambda device: device,
        core=("default_device", 2),
    ),
    "weft_num_cpu_devices": _Setting(
        None,
        "Number of CPU devices to make; None is one. Read when the client starts.",
        _check_count,
        int,
    ),
    "weft_traceback_filtering": _Setting(
        "auto",
        "What becomes of weft's own frames in tracebacks: off (they stay), tracebackhide (they are "
        "marked for IPython and pytest), remove_frames (they move to a cause of the error), "
        "quiet_remove_frames (they go), auto (tracebackhide in IPython, else quiet_remove_frames).",
        _check_filtering,
        str.strip,
    ),
    # Of weft.random.
    "weft_default_prng_impl": _Setting(
        "threefry2x32",
        "The generator that keys are of unless another one is asked for, and that untyped keys are "
        "of: threefry2x32, rbg or unsafe_rbg.",
        _one_of("threefry2x32", "rbg", "unsafe_rbg"),
        str.strip,
    ),
    "weft_legacy_prng_key": _Setting(
        "allow",
        "What happens where an untyped key is used: allow, warn (UserWarning) or error "
        "(ValueError).",
        _one_of("allow", "warn", "error"),
        str.strip,
    ),
    "weft_enable_custom_prng": _Setting(
        False,
        "Give typed keys also where untyped ones were asked for or given.",
        _check_bool,
        _parse_bool,
    ),
    "weft_threefry_partitionable": _Setting(
        True,
        "Use the streams of threefry2x32 whose elements each come from their own counter. When "
        "off, keys give the bits and new keys that they gave before these were the default.",
        _check_bool,
        _parse_bool,
    ),
    "weft_debug_key_reuse": _Setting(
        False,
        "Raise KeyReuseError where a typed key is used that was used before; functions under `jit` "
        "run operation by operation.",
        _check_bool,
        _parse_bool,
    ),
    "weft_platforms": _Setting(
        None,
        'Platforms to try, in order ("cuda,cpu"). Read when the client starts.',
        _check_text,
        str,
    ),
}


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
        if text is None or setting.parse is None:
            return setting.default
        try:
            return setting.check(setting.parse(text))
        except (TypeError, ValueError) as error:
            raise ValueError(f"environment variable {variable}: {error}") from None

    @staticmethod
    def _resolve(name):
        """The setting of a name; `jax_...` is accepted for `weft_...`."""
        own = "weft_" + name.removeprefix("jax_") if name.startswith("jax_") else name
        if own not in _SETTINGS:
            raise AttributeError(f"no setting {name!r}; there are {', '.join(sorted(_SETTINGS))}")
        return own

    def _store(self, name, value):
        core = _SETTINGS[name].core
        if core is None:
            self._values[name] = value
        else:
            _core.set_global_state(**{core[0]: value})

    def update(self, name, value):
        """Sets a setting for the whole process.

        Threads inside a context manager for the setting keep that value. Raises AttributeError for
        an unknown name, ValueError or TypeError for a wrong value, and RuntimeError for a setting
        that came too late because the device client has been started.
        """
        name = self._resolve(name)
        try:
            value = _SETTINGS[name].check(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None
        if name in self._frozen and value != self._values[name]:
            raise RuntimeError(
                f"{name} must be set before the first use of a device; it is "
                f"{self._values[name]!r} now"
            )
        self._store(name, value)

    def read(self, name):
        """The value of a setting, as it is for the current thread."""
        name = self._resolve(name)
        core = _SETTINGS[name].core
        if core is not None:
            return _core.get_state()[core[1]]
        stack = _overrides.__dict__.get(name)
        return stack[-1] if stack else self._values[name]

    def freeze(self, *names):
        """Declares that the values of these settings are in use and cannot be changed any more."""
        self._frozen.update(map(self._resolve, names))

    def describe(self):
        """A text with every setting, its value and its meaning."""
        lines = (f"{n} = {self.read(n)!r}: {s.doc}" for n, s in sorted(_SETTINGS.items()))
        return "\n".join(lines)

    def __getattr__(self, name):
        return self.read(name)

    def __setattr__(self, name, value):
        raise AttributeError(f"use config.update({name!r}, ...) to change a setting")

    def __dir__(self):
        return [*super().__dir__(), *_SETTINGS]

    def __repr__(self):
        return f"Config({', '.join(f'{n}={self.read(n)!r}' for n in sorted(_SETTINGS))})"


_overrides = threading.local()  # one stack of values per setting
config = Config()


class _Override(ContextDecorator):
    """Sets a setting for the current thread; restores it at the end."""

    def __init__(self, name, value):
        self._name = name
        self._value = _SETTINGS[name].check(value)

    def _recreate_cm(self):
        return _Override(self._name, self._value)

    def _stack(self):
        return _overrides.__dict__.setdefault(self._name, [])

    def __enter__(self):
        core = _SETTINGS[self._name].core
        if core is not None:
            _core.set_state(**{core[0]: self._value})
        self._stack().append(self._value)

    def __exit__(self, *exception):
        core = _SETTINGS[self._name].core
        stack = self._stack()
        stack.pop()
        if core is None:
            return
        # None makes the thread follow the process-wide value again.
        _core.set_state(**{core[0]: stack[-1] if stack else None})


def enable_x64(new_val=True):
    """Context manager: 64-bit dtypes are kept (or, with False, not) in the current thread.

    with enable_x64():
        jnp.arange(3)       # int64
    """
    return _Override("weft_enable_x64", new_val)


def disable_jit(disable=True):
    """Context manager: functions under `jit` run operation by operation in the current thread.

    Values are concrete, so `print`, a debugger and Python control flow work inside them.
    """
    return _Override("weft_disable_jit", disable)


def default_device(device):
    """Context manager: new arrays of the current thread are placed on `device`.

    None stands for the process-wide default.
    """
    return _Override("weft_default_device", device)


def default_prng_impl(new_val):
    """Context manager: the implementation of keys that name none, "threefry2x32", "rbg" or
    "unsafe_rbg"; untyped keys are of it, too."""
    return _Override("weft_default_prng_impl", new_val)


def legacy_prng_key(new_val):
    """Context manager: whether untyped keys may be used: "allow", "warn" or "error"."""
    return _Override("weft_legacy_prng_key", new_val)


def enable_custom_prng(new_val=True):
    """Context manager: `PRNGKey` gives typed keys, and so do functions of untyped keys."""
    return _Override("weft_enable_custom_prng", new_val)


def threefry_partitionable(new_val=True):
    """Context manager: with False, keys of threefry2x32 give the streams of before each element
    had a counter of its own. Read where a function is traced: one under `jit` keeps its stream."""
    return _Override("weft_threefry_partitionable", new_val)


def debug_key_reuse(new_val=True):
    """Context manager: a typed key that is used twice raises KeyReuseError.

    The first use that draws bits of a key or splits it marks the key; `weft.random.clone` gives one
    without the mark. Functions under `jit` run operation by operation, as with `disable_jit`, so
    that keys within them are seen; keys that loops and branches make anew are not.
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
