"""The operations of programs, as functions: no promotion, no implicit broadcasting.

`weft.numpy` offers the same with NumPy's conventions. Names are those of the operations in printed
programs, but for `bitwise_not`, `bitwise_and`, `bitwise_or` and `bitwise_xor`.
"""

from weft.lax._associative import associative_scan as associative_scan
from weft.lax._barrier import optimization_barrier as optimization_barrier
from weft.lax._branches import cond as cond, switch as switch
from weft.lax._creation import (
    broadcasted_iota as broadcasted_iota,
    dtype as dtype,
    empty as empty,
    full as full,
    full_like as full_like,
    iota as iota,
)
from weft.lax._cumulative import (
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
)
from weft.lax._dot import (
    Precision as Precision,
    batch_matmul as batch_matmul,
    dot as dot,
    dot_general as dot_general,
)
from weft.lax._elementwise import (
    RoundingMethod as RoundingMethod,
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bessel_i0e as bessel_i0e,
    bessel_i1e as bessel_i1e,
    betainc as betainc,
    bitcast_convert_type as bitcast_convert_type,
    bitwise_and as bitwise_and,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    cbrt as cbrt,
    ceil as ceil,
    clamp as clamp,
    clz as clz,
    complex as complex,
    conj as conj,
    convert_element_type as convert_element_type,
    cos as cos,
    cosh as cosh,
    digamma as digamma,
    div as div,
    eq as eq,
    erf as erf,
    erf_inv as erf_inv,
    erfc as erfc,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    ge as ge,
    gt as gt,
    igamma as igamma,
    igamma_grad_a as igamma_grad_a,
    igammac as igammac,
    imag as imag,
    integer_pow as integer_pow,
    is_finite as is_finite,
    le as le,
    lgamma as lgamma,
    log as log,
    log1p as log1p,
    logistic as logistic,
    lt as lt,
    max as max,
    min as min,
    mul as mul,
    ne as ne,
    neg as neg,
    nextafter as nextafter,
    polygamma as polygamma,
    population_count as population_count,
    pow as pow,
    random_gamma_grad as random_gamma_grad,
    real as real,
    reciprocal as reciprocal,
    reduce_precision as reduce_precision,
    rem as rem,
    round as round,
    rsqrt as rsqrt,
    select as select,
    select_n as select_n,
    shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_logical as shift_right_logical,
    sign as sign,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    stop_gradient as stop_gradient,
    sub as sub,
    tan as tan,
    tanh as tanh,
    zeta as zeta,
)
from weft.lax._gather import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    gather as gather,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_apply as scatter_apply,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
)
from weft.lax._loops import fori_loop as fori_loop, while_loop as while_loop
from weft.lax._reduce import (
    argmax as argmax,
    argmin as argmin,
    reduce as reduce,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    reduce_xor as reduce_xor,
)
from weft.lax._scan import map as map, scan as scan
from weft.lax._shape import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    broadcast_like as broadcast_like,
    broadcast_shapes as broadcast_shapes,
    broadcast_to_rank as broadcast_to_rank,
    collapse as collapse,
    concatenate as concatenate,
    expand_dims as expand_dims,
    pad as pad,
    reshape as reshape,
    rev as rev,
    split as split,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    transpose as transpose,
    unstack as unstack,
)
from weft.lax._slice import (
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    index_in_dim as index_in_dim,
    slice as slice,
    slice_in_dim as slice_in_dim,
)
from weft.lax._solve import (
    custom_linear_solve as custom_linear_solve,
    custom_root as custom_root,
)
from weft.lax._sort import sort as sort, sort_key_val as sort_key_val


def __getattr__(name):
    # lax.add_p: the primitive of an operation.
    if name.endswith("_p"):
        from weft.extend.core import primitives

        if hasattr(primitives, name):
            return getattr(primitives, name)
    raise AttributeError(f"module 'weft.lax' has no attribute {name!r}")
