"""Settings as flags of absl, for programs that parse their command line with it."""


def parse_flags(config, settings):
    """Defines the flags, parses the command line, and takes what it says of them."""
    import importlib
    import sys

    try:
        flags = importlib.import_module("absl.flags")
    except ImportError:
        raise RuntimeError("parse_flags_with_absl needs the package absl-py") from None

    for name, setting in settings.items():
        define = flags.DEFINE_bool if isinstance(setting.default, bool) else flags.DEFINE_string
        for flag in (name, name.replace("weft_", "jax_", 1)):
            if flag not in flags.FLAGS:
                define(flag, None, setting.doc)
    flags.FLAGS(sys.argv, known_only=True)
    for name, setting in settings.items():
        for flag in (name, name.replace("weft_", "jax_", 1)):
            value = getattr(flags.FLAGS, flag, None)
            if value is not None:
                config.update(name, setting.parse(value) if isinstance(value, str) else value)
