"""What modules of the name jax.* have that those of weft have not: three tables, by module.

- HOMES: where the names of a module are found, if not in the module of weft of that path: other
  modules, in turn. Modules of `jax._src` need no entry if weft has one at the path without `_src`.
- VALUES: what stands for single names.
- NOT_THERE: names for imports only; what stands for them raises when it is called.
"""

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import Any

import numpy as np

from weft import _core
from weft._as_jax import flat
from weft._jit import jit
from weft._types.avals import AbstractRef, AbstractValue, typeof
from weft.config import config
from weft.dtypes import extended, float0, to_complex_dtype, to_inexact_dtype
from weft.errors import InconclusiveDimensionOperation, JaxRuntimeError, TypePromotionError
from weft.extend import core as extend_core
from weft.extend.core import Primitive
from weft.numpy import asarray, result_type
from weft.runtime.callback import effects_barrier

VERSION = (0, 10, 2)  # the one whose names and behaviour weft has


def _itself(function=None, **options):
    """A decorator that changes nothing, with and without options."""
    return (lambda f: f) if function is None else function


def _nothing(*args, **kwargs):
    """Takes note of what weft does not need to know."""


def _apply_primitive(primitive, *args, **params):
    return jit(functools.partial(primitive.bind, **params))(*args)


def _promoting(to):
    """A function from values to a list of them as arrays of the dtype to(what they promote to)."""

    def promote(*args):
        dtype = to(result_type(*args))
        return [asarray(x, dtype) for x in args]

    return promote


def _primitives(*names):
    """Operations of JAX's that no program of weft has, to be compared with and given rules."""
    return {f"{name}_p": Primitive(name) for name in names}


def _of(module, names):
    return {name: getattr(module, name) for name in names.split()}


_VERSIONS = {"__version__": ".".join(map(str, VERSION)), "__version_info__": VERSION}
_CORE = {
    "InconclusiveDimensionOperation": InconclusiveDimensionOperation,
    "JaxprTypeError": flat.JaxprTypeError,
    "find_top_trace": lambda xs: flat.Trace,
}
_DEPRECATED_OF_CORE = {
    **_CORE,
    **_of(
        extend_core,
        "concrete_or_error get_opaque_trace_state jaxprs_in_params no_effects "
        "primal_dtype_to_tangent_dtype valid_jaxtype",
    ),
    "is_constant_dim": lambda d: isinstance(d, int),
    "is_constant_shape": lambda shape: all(isinstance(d, int) for d in shape),
    "literalable_types": {bool, int, float, complex, np.ndarray},
    "pytype_aval_mappings": {np.ndarray: _itself},
    "unsafe_am_i_under_a_jit_DO_NOT_USE": _core.in_trace,
}
_LINEAR_UTIL = {
    name: getattr(flat, name)
    for name in (
        "StoreException",
        "WrappedFun",
        "merge_linear_aux",
        "transformation",
        "transformation2",
        "transformation_with_aux",
        "transformation_with_aux2",
        "wrap_init",
    )
}
_SOURCE_INFO = {"register_exclusion": _nothing}

HOMES: Mapping[str, tuple[str, ...]] = {
    "_src.api": ("",),
    "_src.api_util": ("api_util",),
    "_src.array": ("", "sharding"),
    "_src.callback": ("", "experimental"),
    "_src.checkify": ("experimental.checkify",),
    "_src.core": ("core", "extend.core", "extend.core.primitives"),
    "_src.custom_transpose": ("custom_derivatives",),
    "_src.debugging": ("debug",),
    "_src.dtypes": ("dtypes", "numpy"),
    "_src.interpreters.partial_eval": ("interpreters.partial_eval",),
    "_src.interpreters.pxla": ("interpreters.pxla",),
    "_src.interpreters.xla": ("interpreters.xla",),
    "_src.lax.control_flow": ("lax", "extend.core.primitives"),
    "_src.lax.convolution": ("lax",),
    "_src.lax.lax": ("lax",),
    "_src.lax.parallel": ("lax",),
    "_src.lax.slicing": ("lax",),
    "_src.lax.special": ("lax",),
    "_src.lax.windowed_reductions": ("lax",),
    "_src.linear_util": ("extend.linear_util",),
    "_src.mesh": ("sharding",),
    "_src.named_sharding": ("sharding",),
    "_src.nn.functions": ("nn",),
    "_src.numpy.array_creation": ("numpy",),
    "_src.numpy.lax_numpy": ("numpy",),
    "_src.numpy.reductions": ("numpy",),
    "_src.numpy.ufuncs": ("numpy",),
    "_src.ops.scatter": ("ops",),
    "_src.partition_spec": ("sharding",),
    "_src.pjit": ("", "extend.core.primitives", "sharding"),
    "_src.prng": ("random", "extend.random"),
    "_src.scipy.special": ("scipy.special",),
    "_src.sharding": ("sharding",),
    "_src.sharding_impls": ("sharding",),
    "_src.source_info_util": ("extend.source_info_util",),
    "_src.typing": ("typing", ""),
    "_src.xla_bridge": ("extend.backend", ""),
}

VALUES: Mapping[str, Mapping[str, Any]] = {
    "": _VERSIONS,
    "version": _VERSIONS,
    "lib": {"__version__": importlib.metadata.version("jaxlib")},
    "api_util": {
        "argnums_partial": flat.argnums_partial,
        "debug_info": flat.debug_info,
        "donation_vector": flat.donation_vector,
        "flatten_axes": flat.flatten_axes,
        "flatten_fun": flat.flatten_fun,
        "flatten_fun_nokwargs": flat.flatten_fun_nokwargs,
        "rebase_donate_argnums": flat.rebase_donate_argnums,
        "safe_map": flat.safe_map,
        "shaped_abstractify": typeof,
    },
    "core": _DEPRECATED_OF_CORE,
    "experimental.hijax": {
        "AbstractValue": AbstractValue,
        "aval_method": _itself,
        "aval_property": _itself,
        "control_flow_allowed_effects": flat.Effects(),
        "instantiate_zeros": _itself,
        "is_undefined_primal": lambda x: False,
        "register_hitype": _nothing,
    },
    "extend.core": _CORE,
    "extend.core.primitives": _primitives("call", "closed_call"),
    "extend.linear_util": {**_LINEAR_UTIL, "cache": functools.lru_cache},
    "extend.source_info_util": _SOURCE_INFO,
    "interpreters.ad": {"JVPTracer": _core.Tracer, **_primitives("add_jaxvals")},
    "interpreters.batching": {"register_vmappable": _nothing, "unregister_vmappable": _nothing},
    "interpreters.partial_eval": {
        "DynamicJaxprTracer": _core.Tracer,
        "JaxprTracer": _core.Tracer,
        "PartialVal": flat.PartialVal,
        "trace_to_jaxpr_nounits": flat.trace_to_jaxpr_nounits,
    },
    "interpreters.xla": {
        "apply_primitive": _apply_primitive,
        "canonicalize_dtype_handlers": {np.ndarray: _itself},
    },
    "_src.ad_checkpoint": _primitives("remat"),
    "_src.ad_util": _primitives("stop_gradient"),
    "_src.api_util": {"infer_argnums_and_argnames": flat.infer_argnums_and_argnames},
    "_src.config": {"config": config},
    "_src.core": {
        **_DEPRECATED_OF_CORE,
        "safe_map": flat.safe_map,
        "safe_zip": flat.safe_zip,
        "trace_state_clean": lambda: not _core.in_trace(),
    },
    "_src.dispatch": {"apply_primitive": _apply_primitive, "wait_for_tokens": effects_barrier},
    "_src.distributed": {"global_state": flat.Processes()},
    "_src.dtypes": {
        "TypePromotionError": TypePromotionError,
        "extended": extended,
        "float0": float0,
        "supports_inf": lambda dtype: np.isinf(np.array(np.inf).astype(dtype)).item(),
        "to_complex_dtype": to_complex_dtype,
        "to_inexact_dtype": to_inexact_dtype,
    },
    "_src.lib": {"jaxlib_extension_version": 0},
    "_src.lib.xla_client": {"XlaRuntimeError": JaxRuntimeError},
    "_src.numpy.util": {
        "promote_dtypes": _promoting(np.dtype),
        "promote_dtypes_complex": _promoting(to_complex_dtype),
        "promote_dtypes_inexact": _promoting(to_inexact_dtype),
    },
    "_src.state.types": {"AbstractRef": AbstractRef},
    "_src.traceback_util": {
        "_exclude_paths": [],
        "api_boundary": _itself,
        "include_frame": lambda frame: True,
        "register_exclusion": _nothing,
    },
    "_src.tree_util": {"_registry": flat.NodeClasses(), "flatten_one_level": flat.one_level},
    "_src.util": {"safe_map": flat.safe_map, "safe_zip": flat.safe_zip},
    "_src.xla_bridge": {"_backends": {}},
}

_INSIDE_OF_CORE = """CallPrimitive DebugInfo DropVar Effect Effects JaxprPpContext
    JaxprPpSettings OutputType Trace abstract_token call check_jaxpr
    concretization_function_error custom_typechecks gensym is_concrete new_jaxpr_eqn
    no_axis_name nonempty_axis_env_DO_NOT_USE trace_ctx
    unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE"""
_NAMES = {
    "core": _INSIDE_OF_CORE,
    "experimental": "cur_qdd EArray primal_tangent_dtype",
    "experimental.hijax": "AvalMutableQDD AvalQDD HiPrimitive MutableHiType Zero",
    "experimental.pallas": """BlockDim DeviceIdType Indirect core_map debug_check empty_ref_like
        enable_debug_checks enable_poison_buffers estimate_cost get_global kernel lower_as_mlir
        pallas_call_p pallas_export_experimental select_ref semaphore semaphore_read
        semaphore_signal semaphore_wait swap""",
    "experimental.pallas.tpu": """BufferType BufferedRef BufferedRefBase ChipVersion CoreType
        LoweringException SemaphoreType SideEffectType Tiling TpuInfo async_copy
        async_remote_copy bitcast core_barrier create_tensorcore_mesh dma_semaphore einshape
        emit_pipeline emit_pipeline_with_allocations get_barrier_semaphore get_tpu_info
        get_tpu_info_for_chip make_async_copy make_async_remote_copy matmul_acc_lhs matmul_pop
        matmul_push_rhs pack_elementwise prng_random_bits prng_seed
        reset_tpu_interpret_mode_state roll run_on_first_core sample_block
        set_tpu_interpret_mode stateful_bernoulli stateful_bits stateful_normal stateful_uniform
        stochastic_round sync_copy to_pallas_key touch trace_value unpack_elementwise
        with_memory_space_constraint""",
    "experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel": """BlockSizes
        QKVLayout SegmentIds make_splash_mha make_splash_mha_single_device make_splash_mqa
        make_splash_mqa_single_device""",
    "experimental.pallas.ops.tpu.splash_attention.splash_attention_mask": """CausalMask FullMask
        LocalMask Mask MultiHeadMask NumpyMask make_causal_mask make_local_attention_mask
        make_random_mask""",
    "experimental.pallas.triton": "TritonCompilerParams elementwise_inline_asm",
    "experimental.pallas.mosaic_gpu": """ACC Barrier BlockSpec ClusterBarrier CompilerParams
        CopyPartition GMEM Layout LoweringSemantics MemorySpace Mesh NDLoopInfo OOBFillMode
        PeerMemRef PipelinePipeline REGS RefType RefUnion Replicated SMEM SemaphoreSignal
        SemaphoreType ShapeDtypeStruct SwizzleTransform TMEM TMEMLayout Tiling TilingTransform
        TraceScope Transform TryClusterCancelResult WGMMAAccumulatorRef WarpMesh as_torch_kernel
        async_copy_scales_to_tmem async_copy_smem_to_tmem async_copy_sparse_metadata_to_tmem
        async_load_tmem async_prefetch async_store_smem async_store_tmem atomic_add atomic_and
        atomic_max atomic_min atomic_or atomic_xor barrier_arrive barrier_test barrier_wait
        broadcasted_iota cluster_ref commit_smem commit_smem_to_gmem_group commit_tmem
        copy_gmem_to_smem copy_smem_to_gmem dynamic_scheduling_loop emit_pipeline
        emit_pipeline_warp_specialized find_swizzle format_tcgen05_sparse_metadata
        griddepcontrol_launch_dependents griddepcontrol_wait inline_mgpu kernel layout_cast load
        multicast_ref multimem_load_reduce multimem_store nd_loop planar_snake print_layout
        query_cluster_cancel remote_ref semaphore_signal semaphore_signal_multicast
        semaphore_signal_parallel semaphore_wait set_max_registers tcgen05_commit_arrive
        tcgen05_mma transform_ref transpose_ref try_cluster_cancel wait_load_tmem
        wait_smem_to_gmem warp_map wgmma wgmma_accumulator_load wgmma_wait""",
    "extend.core": """AbstractToken CallPrimitive DebugInfo DropVar Effect Effects Token TraceTag
        call_impl check_jaxpr gensym new_jaxpr_eqn set_current_trace take_current_trace""",
    "extend.source_info_util": """NameStack current current_name_stack extend_name_stack
        new_name_stack new_source_info reset_name_stack set_name_stack summarize
        transform_name_stack user_context""",
    "interpreters.ad": "JVPTrace jvp linearize",
    "interpreters.mlir": """LoweringRuleContext _call_lowering core_call_lowering
        emit_python_callback jaxpr_subcomp lower_jaxpr_to_fun""",
    "interpreters.partial_eval": """Val dce_jaxpr dce_jaxpr_call_rule dce_jaxpr_consts
        trace_to_jaxpr_dynamic""",
    "interpreters.pxla": """MeshComputation MeshExecutable are_hlo_shardings_equal
        array_mapping_to_axis_resources create_compile_options global_aval_to_result_handler
        global_avals_to_results_handler is_hlo_sharding_replicated op_sharding_to_indices""",
    "interpreters.xla": "Backend",
    "_src.checkify": "JaxException Out",
    "_src.compiler": "",
    "_src.core": f"{_INSIDE_OF_CORE} TraceTag full_lower set_current_trace take_current_trace",
    "_src.cudnn.fused_attention_stablehlo": """_normalize_layout check_compute_capability
        check_cudnn_version check_is_flash_attention check_layout""",
    "experimental.array_serialization.serialization": """GlobalAsyncCheckpointManager
        GlobalAsyncCheckpointManagerBase async_deserialize async_serialize get_tensorstore_spec
        run_deserialization run_serialization""",
    "experimental.colocated_python": """colocated_cpu_devices colocated_python
        colocated_python_class""",
    "experimental.colocated_python.func": "_make_prng_wrapped_fun",
    "experimental.colocated_python.serialization": """DeviceList _get_cpu_device_map
        _reduce_device_list _reduce_mesh _reduce_single_device_sharding""",
    "extend.ifrt_programs": "ifrt_programs",
    "_src.dtypes": "DType ExtendedDType",
    "_src.earray": "EArray",
    "_src.effects": "Effect",
    "_src.literals": "TypedComplex TypedFloat TypedInt TypedNdArray",
    "_src.sharding_impls": "UNSPECIFIED UnspecifiedValue canonicalize_sharding",
    "_src.state": "",
}
NOT_THERE = {
    module: {name: flat.not_there(f"jax.{module}.{name}") for name in names.split()}
    for module, names in _NAMES.items()
}
