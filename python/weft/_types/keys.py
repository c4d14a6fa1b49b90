"""What is known of random keys below weft.random, which installs it."""

from collections.abc import Callable
from typing import Any


class Keys:
    """Functions of weft.random.

    Attributes: words (keys -> their words, uint32, along last axes), wrapped ((words, dtype) ->
    keys), lanes ((function, args, kwargs) -> the function for a call under vmap, where the setting
    weft_debug_key_reuse is on).
    """

    words: Callable[..., Any]
    wrapped: Callable[..., Any]
    lanes: Callable[..., Any]


keys = Keys()
