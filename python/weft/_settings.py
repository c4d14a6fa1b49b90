"""The table of settings: default, meaning, check, spelling in the environment, where it is kept."""

import enum
from typing import Any, ClassVar

from weft import _core
from weft._inert_settings import INERT


class CompilerEffortLevel(enum.Enum):
    """How hard XLA's compiler is to try, by its own scale; `weft_optimization_level` takes the
    names. On CPU it has no effect: `jit(optimize=)` is what counts there.

    Examples:
      >>> weft.CompilerEffortLevel.O2.name
      'O2'
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_PRECISIONS = (
    None,
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)


class Core:
    """A setting that the core keeps: a number per thread, with one of the process behind it."""

    def __init__(self, name, values):
        self._name = name
        self._values = values  # by number
        self._numbers = {value: i for i, value in enumerate(values)}

    def get(self):
        return self._values[_core.get_setting(self._name)]

    def set(self, value):
        _core.set_setting(self._name, self._numbers[value])

    def follow_process(self):
        _core.set_setting(self._name, None)

    def set_global(self, value):
        _core.set_global_setting(self._name, self._numbers[value])


class _DefaultDevice:
    """The same for the device of new arrays."""

    @staticmethod
    def get():
        return _core.get_default_device()

    @staticmethod
    def set(device):
        _core.set_default_device(device)

    @staticmethod
    def follow_process():
        _core.set_default_device(None)

    @staticmethod
    def set_global(device):
        _core.set_global_default_device(device)


class _ConstantsKept:
    """A number of bytes, of the process."""

    @staticmethod
    def get():
        return _core.max_constants_kept()

    @staticmethod
    def set_global(value):
        _core.set_max_constants_kept(value)


class _SeedOffset:
    """An integer of the process.

    The core has a number for each that was set, which is part of the keys of traces.
    """

    _seen: ClassVar[list[int]] = [0]

    @classmethod
    def get(cls):
        return cls._seen[_core.get_setting("seed_offset")]

    @classmethod
    def set_global(cls, value):
        value = value or 0
        if value not in cls._seen:
            if len(cls._seen) == 128:
                raise ValueError(f"expected at most 128 offsets in one process; got {value}")
            cls._seen.append(value)
        _core.set_global_setting("seed_offset", cls._seen.index(value))


class Setting:
    """One setting: how it is read from the environment, checked, where it is kept; of one without
    effect, why it has none."""

    def __init__(self, default, doc, check, parse=None, core: Any = None, why_none=None):
        self.default = default
        self.doc = doc
        self.check = check
        self.parse = parse
        self.core = core
        self.why_none = why_none


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
    if value is None:
        return -1
    if isinstance(value, bool) or not isinstance(value, int) or (value < 1 and value != -1):
        raise ValueError(f"expected a positive integer, or None or -1; got {value!r}")
    return value


def _check_bytes(value):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"expected a number of bytes below 2**31; got {value!r}")
    return value


def _check_limit(value):
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise ValueError(f"expected a number of bytes, or -1 for any; got {value!r}")
    return value


def _check_number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"expected a number; got {value!r}")
    return value


def _check_number_or_none(value):
    return value if value is None else _check_number(value)


def _check_integer_or_none(value):
    if value is not None and not isinstance(value, int):
        raise ValueError(f"expected an integer or None; got {value!r}")
    return value


def _check_offset(value):
    if isinstance(value, bool) or not -(2**63) <= (_check_integer_or_none(value) or 0) < 2**63:
        raise ValueError(f"expected an integer of at most 64 bits; got {value!r}")
    return value


def _check_text(value):
    if value is not None and not isinstance(value, str):
        raise ValueError(f"expected a string or None; got {value!r}")
    return value


def _check_words(value):
    if not isinstance(value, str):
        raise TypeError(f"expected a string; got {value!r}")
    return value


def _one_of(values):
    def check(value):
        if (value is None or isinstance(value, str)) and value in values:
            return value
        raise ValueError(f"expected one of {', '.join(map(repr, values))}; got {value!r}")

    return check


def _enum_of(values):
    """The same where JAX has a class for the values, and refuses others by their type."""

    def check(value):
        if not isinstance(value, str):
            raise TypeError(f"expected one of {', '.join(map(repr, values))}; got {value!r}")
        return _one_of(values)(value)

    return check


_platform_devices: Any = None  # weft.runtime.devices says which devices a platform has


def devices_come_from(function):
    """`function` gives the devices of a platform, or raises RuntimeError where there are none."""
    global _platform_devices
    _platform_devices = function


def _check_device(value):
    if isinstance(value, str):
        try:
            return _platform_devices(value)[0]
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    return value


def _flag(doc, core):
    return Setting(False, doc, _check_bool, _parse_bool, Core(core, (False, True)))


def _choice(values, doc, core, check=_one_of):
    """A setting that has one of a few values, the first by default."""
    return Setting(values[0], doc, check(values), str.strip, Core(core, values))


def _guard(what, core):
    values = (None, *_GUARDS)
    doc = (
        f"What becomes of transfers {what}: allow, log or disallow for those that are not asked "
        "for by name, log_explicit or disallow_explicit for all."
    )
    return Setting(None, doc, _one_of(values), str.strip, _Guard(core))


class _Guard(Core):
    """None is what "allow" is."""

    def __init__(self, name):
        super().__init__(name, _GUARDS)
        self._numbers[None] = 0

    def get(self):
        value = super().get()
        return None if value == "allow" else value


def _inert(default, why, check=None):
    """A setting of JAX that is accepted and changes nothing; `check`, if its default's is not."""
    doc = f"Accepted without effect: {why}."
    own_check, parse = {
        bool: (_check_bool, _parse_bool),
        int: (_check_integer_or_none, int),
        float: (_check_number_or_none, float),
    }.get(type(default), (_check_text, str.strip))
    return Setting(default, doc, check or own_check, parse, why_none=why)


SETTINGS = {
    "weft_enable_x64": _flag(
        "Keep 64-bit dtypes. When off, float64 becomes float32, int64 becomes int32, and so on.",
        "x64",
    ),
    "weft_disable_jit": _flag(
        "Run functions under `jit` operation by operation, with concrete values, for debugging.",
        "disable_jit",
    ),
    "weft_default_device": Setting(
        None,
        "Device on which new arrays are placed; None is the first device of the platform.",
        _check_device,
        core=_DefaultDevice,
    ),
    "weft_numpy_rank_promotion": _choice(
        ("allow", "warn", "raise"),
        "What happens where a user's call of a function of weft.numpy aligns operands of different "
        "ranks. What weft's own functions do within does not count.",
        "rank_promotion",
    ),
    "weft_numpy_dtype_promotion": _choice(
        ("standard", "strict"),
        "strict: operands of different dtypes are an error in what users call, except for Python "
        "numbers that the other dtype holds.",
        "strict_promotion",
        _enum_of,
    ),
    "weft_default_matmul_precision": _choice(
        _PRECISIONS, "Precision of products and convolutions that name none.", "matmul_precision"
    ),
    "weft_fast_arithmetic": _flag(
        "Let XLA's compiler for CPUs replace arithmetic of floats by other arithmetic, which may "
        "be faster and rounds, overflows and vanishes elsewhere: `x / y` by `x * (1 / y)` where y "
        "is broadcast, `(x + 1) - 1` by `x`, `log(exp(x))` by `x`. When off, every operation gives "
        "under `jit` what it gives alone.",
        "fast_arithmetic",
    ),
    "weft_check_tracer_leaks": _flag(
        "A traced value that outlives its trace is an error as soon as the trace ends.",
        "check_leaks",
    ),
    "weft_log_compiles": _flag(
        'The logger "weft" tells of traces and compilations, as warnings.', "log_compiles"
    ),
    "weft_explain_cache_misses": _flag(
        'The logger "weft" tells why calls of functions under `jit` are traced and compiled, and '
        "how long that takes. WEFT_EXPLAIN=1 is short for WEFT_EXPLAIN_CACHE_MISSES=1.",
        "explain_misses",
    ),
    "weft_compile_progress": Setting(
        True,
        "Show on a terminal (stderr) and in notebooks what is being compiled, once that has taken "
        "two seconds: a line that goes when it ends. Nothing is written to files and pipes.",
        _check_bool,
        _parse_bool,
    ),
    "weft_loop_progress": Setting(
        True,
        "weft.debug.progress shows on a terminal (stderr) and in notebooks how far a loop is. When "
        "off, it adds nothing to functions that are traced from then on.",
        _check_bool,
        _parse_bool,
    ),
    "weft_no_tracing": _flag("What would have to be traced raises RuntimeError.", "no_tracing"),
    "weft_no_execution": _flag("Programs that would run raise RuntimeError.", "no_execution"),
    "weft_transfer_guard": Setting(
        None,
        "Sets the three guards below; they are what counts.",
        _one_of((None, *_GUARDS)),
        str.strip,
    ),
    "weft_transfer_guard_host_to_device": _guard("of host data to a device", "guard_to_device"),
    "weft_transfer_guard_device_to_device": _guard("between devices", "guard_between_devices"),
    "weft_transfer_guard_device_to_host": _guard(
        "of arrays to the host (not from CPUs, whose memory it shares)", "guard_to_host"
    ),
    "weft_default_prng_impl": _choice(
        ("threefry2x32", "rbg", "unsafe_rbg"),
        "The generator that keys are of unless another one is asked for, and that untyped keys are "
        "of.",
        "prng_impl",
    ),
    "weft_legacy_prng_key": _choice(
        ("allow", "warn", "error"),
        "What happens where an untyped key is used: nothing, a UserWarning or a ValueError.",
        "legacy_keys",
        _enum_of,
    ),
    "weft_enable_custom_prng": _flag(
        "Give typed keys also where untyped ones were asked for or given.", "custom_prng"
    ),
    "weft_threefry_partitionable": Setting(
        True,
        "Use the streams of threefry2x32 whose elements each come from their own counter. When "
        "off, keys give the bits and new keys that they gave before these were the default.",
        _check_bool,
        _parse_bool,
        Core("sequential", (True, False)),
    ),
    "weft_random_seed_offset": Setting(
        0,
        "An integer that is added to the seed of every key that is made.",
        _check_offset,
        int,
        _SeedOffset,
    ),
    "weft_debug_key_reuse": _flag(
        "Raise KeyReuseError where a typed key is used that was used before; functions under `jit` "
        "run operation by operation.",
        "key_reuse",
    ),
    "weft_debug_nans": _flag(
        "Raise FloatingPointError where a program gives a NaN, naming the operation that made it.",
        "debug_nans",
    ),
    "weft_debug_infs": _flag(
        "Raise FloatingPointError where a program gives an infinity.", "debug_infs"
    ),
    "weft_num_cpu_devices": Setting(
        -1,
        "Number of CPU devices to make; -1 is one, or what XLA_FLAGS say. Read when the client "
        "starts.",
        _check_count,
        int,
    ),
    "weft_constants_kept": Setting(
        2**28,
        "Bytes of what functions under `jit` compute from arrays that they close over, or from "
        "nothing at all: it is computed once for those arrays and kept, of all functions together. "
        "Where there is no room for more, what was used last stays; weft.clear_caches() forgets "
        "all. 0: nothing is kept, and everything is computed at every call.",
        _check_bytes,
        int,
        _ConstantsKept,
    ),
    "weft_cpu_enable_async_dispatch": Setting(
        False,
        "Programs on CPUs run in a thread of XLA's while Python goes on. When off, calls return "
        "when their program has run, which takes small programs half the time and a quarter of the "
        "work. Read when the client starts.",
        _check_bool,
        _parse_bool,
    ),
    "weft_cpu_memory_kept": Setting(
        2**28,
        "Bytes of memory that programs on CPUs have given back and that stay mapped for the next "
        "ones, so that these need not fault them in again; weft.clear_caches() gives them to the "
        "system. It is a threshold of glibc's allocator, for the whole process: 0 leaves that as "
        "it is, and so do settings of its own in the environment (GLIBC_TUNABLES, MALLOC_...). "
        "Read when the client starts.",
        _check_bytes,
        int,
    ),
    "weft_enable_compilation_cache": Setting(
        True,
        "Keep compiled programs on disk, and load those that are there (docs/cache.md).",
        _check_bool,
        _parse_bool,
    ),
    "weft_compilation_cache_dir": Setting(
        None,
        "The directory of compiled programs; None is weft in the user's directory of caches "
        "($XDG_CACHE_HOME, or ~/.cache). WEFT_CACHE_DIR in the environment goes first.",
        _check_text,
        str,
    ),
    "weft_compilation_cache_max_size": Setting(
        2**30,
        "Bytes that the directory of compiled programs may hold, about: what was used least "
        "recently goes first. -1 is no limit, 0 keeps nothing and reads nothing.",
        _check_limit,
        int,
    ),
    "weft_compilation_cache_include_metadata_in_key": Setting(
        False,
        "A program is found on disk only if its name and lines are those of the one that was kept. "
        "When off, HLO text and profiles may show other lines than the present ones.",
        _check_bool,
        _parse_bool,
    ),
    "weft_persistent_cache_min_compile_time_secs": Setting(
        0.0,
        "Programs that compile in less time are not kept on disk.",
        _check_number,
        float,
    ),
    "weft_persistent_cache_min_entry_size_bytes": Setting(
        0,
        "Programs whose files would be smaller are not kept on disk; -1 is the same as 0.",
        _check_number,
        int,
    ),
    "weft_raise_persistent_cache_errors": Setting(
        False,
        "What goes wrong with the directory of compiled programs is an error, and not one warning.",
        _check_bool,
        _parse_bool,
    ),
    "weft_traceback_filtering": Setting(
        "auto",
        "What becomes of weft's own frames in tracebacks: off (they stay), tracebackhide (they are "
        "marked for IPython and pytest), remove_frames (they move to a cause of the error), "
        "quiet_remove_frames (they go), auto (tracebackhide in IPython, else quiet_remove_frames).",
        _one_of(("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames")),
        str.strip,
    ),
    "weft_platforms": Setting(
        None,
        'Platforms to try, in order ("cuda,cpu"). Read when the client starts.',
        _check_text,
        str,
    ),
}

# Names of JAX that do not begin with "jax_".
BARE = (
    "check_vma",
    "eager_constant_folding",
    "jax2tf_associative_scan_reductions",
    "jax2tf_default_native_serialization",
    "mock_num_gpu_processes",
)
_LEVELS = _one_of(tuple(level.name for level in CompilerEffortLevel))
_CHECKS = {  # of values that are not of the type of the default, or not of any
    "cpu_collectives_implementation": _one_of((None, "gloo", "mpi", "megascale")),
    "cross_host_transfer_timeout_seconds": _check_number_or_none,
    "cross_host_transfer_transfer_size": _check_number_or_none,
    "debug_log_modules": _check_words,
    "error_checking_behavior_divide": _one_of(("ignore", "raise")),
    "error_checking_behavior_nan": _one_of(("ignore", "raise")),
    "error_checking_behavior_oob": _one_of(("ignore", "raise")),
    "explicit_x64_dtypes": _enum_of(("warn", "error", "allow")),
    "logging_level": _one_of((None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
    "memory_fitting_level": _LEVELS,
    "optimization_level": _LEVELS,
    "send_traceback_to_runtime": _enum_of(("off", "on", "full")),
    "use_magma": _one_of(("off", "on", "auto")),
}
for _why, _group in INERT.items():
    for _name, _default in _group.items():
        SETTINGS[f"weft_{_name}"] = _inert(_default, _why, _CHECKS.get(_name))
SETTINGS["weft_array_garbage_collection_guard"] = _inert(
    None, "arrays are in no cycles of their own", _one_of((None, "allow", "log", "fatal"))
)
