"""Parsing and verification of emitted modules with jaxlib's MLIR (tests, `weft lower --verify`)."""

import functools


@functools.cache
def _context():
    import jaxlib.mlir.dialects.func  # noqa: F401 (registers the dialect's Python classes)
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context


def parse_module(text):
    """The text as an MLIR module. Raises ValueError with MLIR's diagnostics if it is malformed."""
    from jaxlib.mlir import ir

    try:
        return ir.Module.parse(text, context=_context())
    except ir.MLIRError as error:
        raise ValueError(f"malformed module: {error}") from None


def verify_module(text):
    """Parses and verifies; returns MLIR's own print of the module."""
    module = parse_module(text)
    if not module.operation.verify():
        raise ValueError("the module does not verify")
    return str(module)
