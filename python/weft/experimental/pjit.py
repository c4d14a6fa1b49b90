"""pjit, the former name of jit."""

from weft import _jit
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["pjit"]
__getattr__, __dir__ = _public(__name__, __all__)


def pjit(
    fun,
    in_shardings=None,
    out_shardings=None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
):
    """`weft.jit` with the options by position as well; deprecated."""
    return _jit.jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )


_open_to_users(__name__)
