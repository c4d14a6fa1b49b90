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
    "debug_infs",
    "debug_nans",
    "default_device",
    "disable_jit",
    "enable_x64",
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
    "weft_debug_nans": _Setting(
        False,
        "Raise FloatingPointError where a program gives a NaN, naming the operation that made it.",
        _check_bool,
        _parse_bool,
        core=("debug_nans", 3),
    ),
    "weft_debug_infs": _Setting(
        False,
        "Raise FloatingPointError where a program gives an infinity.",
        _check_bool,
        _parse_bool,
        core=("debug_infs", 4),
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
        return self._values[name] if core is None else _core.get_state()[core[1]]

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


config = Config()


_overrides = threading.local()  # one stack of values per setting


class _Override(ContextDecorator):
    """Sets one of the core's settings for the current thread; restores it at the end."""

    def __init__(self, name, value):
        self._name = name
        self._value = _SETTINGS[name].check(value)

    def _recreate_cm(self):
        return _Override(self._name, self._value)

    def _stack(self):
        return _overrides.__dict__.setdefault(self._name, [])

    def __enter__(self):
        keyword = _SETTINGS[self._name].core[0]
        _core.set_state(**{keyword: self._value})
        self._stack().append(self._value)

    def __exit__(self, *exception):
        keyword = _SETTINGS[self._name].core[0]
        stack = self._stack()
        stack.pop()
        # None makes the thread follow the process-wide value again.
        _core.set_state(**{keyword: stack[-1] if stack else None})


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


def debug_nans(new_val=True):
    """Context manager: a program of the current thread that gives a NaN raises FloatingPointError.

    The error names the operation that made it, the line, the pass and the operands; see
    docs/debugging.md.
    """
    return _Override("weft_debug_nans", new_val)


def debug_infs(new_val=True):
    """Context manager: as `debug_nans`, for infinities."""
    return _Override("weft_debug_infs", new_val)
