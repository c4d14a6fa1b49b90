"""The options of `jit`: as users give them, and as the core reads them."""

import enum
import operator
from typing import Any, NamedTuple

from weft._tracing.signature import quoted_name, signature_of
from weft.errors import ArgumentTypeError, AttributeValueError


class Inline(enum.Enum):
    """What becomes of the call of a jitted function within another trace.

    JAX_EARLY: its operations become part of the caller's program, as `inline=True` says. All
    others record a call, as `inline=False` does: what is called once or is small is put in place
    when the caller's program is optimised.

    Examples:
      >>> f = weft.jit(wnp.sin, inline=weft.Inline.JAX_EARLY)
      >>> [e.primitive.name for e in weft.make_jaxpr(f)(1.0).eqns]
      ['sin']
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def is_inlined(inline):
    """What `jit(inline=)` was given, as a boolean."""
    return inline is Inline.JAX_EARLY if isinstance(inline, Inline) else bool(inline)


class JitOptions(NamedTuple):
    """What `jit` and `composite` were given; what the core calls a function by.

    The core reads the fields by their names and keeps the object: `jitted._options`.
    """

    static_argnums: Any = ()
    static_argnames: Any = ()
    donate_argnums: Any = ()
    donate_argnames: Any = ()
    inline: bool = False
    keep_unused: bool = False
    library: bool = False  # composite()
    exact_ints: bool = False  # of a composite(), as is the next
    broadcasts: bool = False
    device: int = -1  # its number; -1 for none
    compiler_options: tuple | None = None  # see options_of_compiler
    in_shardings: Any = None
    out_shardings: Any = None
    compile: str = "auto"
    kernels: str = "auto"


def _tuple_of(value, option) -> tuple[Any, ...]:
    """An option given as one value or a sequence of them, as a tuple; None is empty."""
    if value is None:
        return ()
    of_names = option.endswith("names")
    try:
        if of_names:
            return (value,) if isinstance(value, str) else tuple(value)
        return (
            (operator.index(value),)
            if not isinstance(value, (tuple, list))
            else tuple(operator.index(v) for v in value)
        )
    except TypeError:
        expected = "a name or a sequence of names" if of_names else "an int or ints"
        raise ArgumentTypeError(f"jit {option}: expected {expected}; got {value!r}") from None


def complete(fun, nums, names, which):
    """Positions and names that name the same arguments, as far as the signature tells.

    Where both are given, arguments are named as they are passed, and nothing is added. Raises
    ValueError for one that the function does not have.
    """
    both_given = nums is not None and names is not None
    nums, names = _tuple_of(nums, f"{which}_argnums"), _tuple_of(names, f"{which}_argnames")
    if not nums and not names:
        return nums, names
    signature = signature_of(fun)
    if signature is None:
        return nums, names
    positional, variadic, keywords = signature.positional, signature.rest, signature.keywords
    named = [*positional[signature.positional_only :], *signature.keyword_only]
    unnamed = (*positional[: signature.positional_only], variadic)
    for n in nums:
        if not variadic and not -len(positional) <= n < len(positional):
            known = ", ".join(f"{i} ({each})" for i, each in enumerate(positional))
            raise AttributeValueError(
                f"{which}_argnums: expected positions of parameters of {quoted_name(fun)}, "
                f"{known or 'which has none'}; got {n}"
            )
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{which}_argnames: expected names; got {name!r}")
        if name in unnamed or (not keywords and name not in named):
            raise AttributeValueError(
                f"{which}_argnames: {quoted_name(fun)} has no parameter {name!r} that can be "
                f"given by name; there are {', '.join(named) or 'none'}"
            )
    by_name = {name: i for i, name in enumerate(positional)}
    all_nums = {n % len(positional) if not variadic else n for n in nums}
    all_names = set(names)
    if both_given:
        return tuple(sorted(all_nums)), tuple(sorted(all_names))
    all_nums.update(by_name[n] for n in names if n in by_name)
    for n in nums:
        in_range = -len(positional) <= n < len(positional)
        if in_range and n % len(positional) >= signature.positional_only:
            all_names.add(positional[n])
    return tuple(sorted(all_nums)), tuple(sorted(all_names))


def options_of_compiler(options, optimize="balanced"):
    """The dict that users give as pairs in the order of the names, after ("optimize", ...) unless
    that is "balanced"; None for none."""
    effort = () if optimize == "balanced" else (("optimize", optimize),)
    if not options:
        return effort or None
    if not isinstance(options, dict):
        raise ArgumentTypeError(f"compiler_options: expected a dict; got {type(options).__name__}")
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise ArgumentTypeError(
                "compiler_options: expected names with texts, bools or numbers; got "
                f"{name!r}: {value!r}"
            )
    return (*effort, *sorted(options.items()))
