"""Public names of `weft.numpy`, `weft.lax` and the small modules: complete, documented, private."""

import types

import pytest

import weft
from weft import _core, dtypes, lax, numpy as wnp, tree, tree_util

# Operations without a function in weft.lax: internal ones, and those of other modules.
NOT_IN_LAX = {
    "shard_alike",  # of weft.experimental
    "add_any",
    "checkpoint",
    "constant",
    "copy",
    "csr_places",  # of weft.experimental.sparse, as are sampled_dot and sparse_dot
    "custom_jvp_call",
    "custom_lin",
    "custom_vjp_call",
    "check",
    "debug_callback",
    "derivative",
    "device_put",
    "dim_as_value",  # sizes that are symbols, as operands
    "eq_to",
    "ffi_call",
    "fusion",
    "geqp3",
    "geqrf",
    "igamma_grad_x",
    "io_callback",
    "jit",
    "kernel",
    "le_to",
    "lt_to",
    "mapped_call",
    "one_less_square",
    "name",
    "platform_index",
    "pullback",
    "inspect_sharding",
    "pure_callback",
    "pushforward",
    "pvary",
    "vary_cast",
    "vary_like",
    "reduce_scatter",
    "reduce_window_max",
    "reduce_window_min",
    "reduce_window_sum",
    "regularized_incomplete_beta_grad_x",
    "require_platform",
    "sampled_dot",
    "select_and_gather_add",
    "select_and_scatter",
    "select_and_scatter_add",
    "shard_map",
    "sharding_constraint",
    "sparse_dot",
    "threefry2x32",
}
RENAMED = {
    "while": "while_loop",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "bitwise_not",
    "regularized_incomplete_beta": "betainc",
}
KEY_CLASSES = {"DictKey", "FlattenedIndexKey", "GetAttrKey", "PyTreeDef", "SequenceKey"}


def public(module):
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }


@pytest.mark.parametrize("module", [wnp, lax, weft.random, tree, tree_util, dtypes, weft.errors])
def test_everything_is_documented(module):
    undocumented = [
        name
        for name, value in public(module).items()
        if callable(value) and not (getattr(value, "__doc__", None) or "").strip()
    ]
    assert set(undocumented) <= KEY_CLASSES


def function_of(op):
    return RENAMED.get(op, op).replace("-", "_")


def test_every_operation_has_a_function():
    operations = set(_core.op_names())
    modules = (lax, lax.linalg)
    missing = {op for op in operations if not any(hasattr(m, function_of(op)) for m in modules)}
    assert missing <= NOT_IN_LAX, sorted(missing - NOT_IN_LAX)
    assert operations >= {"add", "dot_general", "reduce_sum", "select_n"}


@pytest.mark.parametrize("module", [wnp, lax])
def test_submodules_are_private(module):
    modules = [n for n, v in vars(module).items() if isinstance(v, types.ModuleType)]
    assert all(name.startswith("_") or name in module.__all__ for name in modules)


def test_scalar_types():
    import numpy as np

    for name in ("bool_", "int8", "uint16", "float32", "bfloat16", "float8_e5m2", "complex64"):
        scalar = getattr(wnp, name)
        assert np.dtype(scalar) == scalar.dtype == dtypes.as_dtype(scalar)
        assert scalar == scalar.dtype and scalar == scalar.dtype.type
        assert hash(scalar) == hash(scalar.dtype.type)
        assert wnp.zeros(2, scalar).dtype == scalar
        made = scalar([0, 1])
        assert isinstance(made, weft.Array) and made.dtype == scalar and not made.weak_type
    assert wnp.float32 != wnp.float16
    assert wnp.bool is wnp.bool_
