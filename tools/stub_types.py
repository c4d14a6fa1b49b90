"""What the stubs that tools/stubs writes say of types: by the name of a parameter, by function.

A parameter's type is, in this order: what the source says; what FUNCTIONS says of the parameter of
this function, or of this module; what PARAMETERS says of the name; the type of its default. None as
the default adds `| None`. A function returns what the source, RETURNS or RETURNS_BY_MODULE say;
else Any. SPELLED has functions and classes whose types need more than that, in full: the names
and kinds of their parameters are checked against what runs, as all others are.
"""

ARRAYS = "Sequence[ArrayLike] | Array"


def table(text):
    """`type: name name ...` on each line, as a dictionary from name to type."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        kind, _, names = line.rpartition(": ")
        found |= dict.fromkeys(names.split(), kind)
    return found


# Of parameters whose name means one thing in all modules that work on arrays.
PARAMETERS = table("""
    ArrayLike: x a b y x1 x2 z lhs rhs m v q p arr ary operand where weights initial element
    ArrayLike: test_elements indices start_indices scatter_indices updates update loc scale df
    ArrayLike: alpha beta mean cov init_value padding_value a1 a2 ar1 ar2 xp fp data
    ArrayLike: on_true on_false
    ArrayLike: src like_arr image query value bias mask logits minval maxval lam dfnum dfden sigma
    ArrayLike: left right concentration rtol atol fill_value c d A B C E M taus pivots prototype
    ArrayLike: in1 in2 lmbda theta phi mu kappa k n w f s start stop step
    ArrayLike: segment_ids group_sizes lhs_scale rhs_scale lhs_scales rhs_scales
    ArrayLike: a_matrix c_matrix r_matrix w_vector sample condition bins coordinates input
    ArrayLike: obs code_book y0 filt u pred index start_index prepend append to_begin to_end
    ArrayLike: r T Z dl du e h negative_slope values vals val lower upper base
    ArrayLike: variance epsilon fweights aweights x0 discont period obj ind repeats shift
    Array | np.ndarray[Any, Any]: key keys key_bits_array
    DTypeLike: dtype preferred_element_type out_dtype new_dtype index_dtype
    Shape: shape sizes new_sizes strides window_strides fft_lengths broadcast_dimensions
    Shape: permutation slice_sizes limit_indices filter_shape lhs_dilation rhs_dilation
    Shape: window_dimensions base_dilation window_dilation window_shape in_shape lhs_shape rhs_shape
    Shape: new_shape dimensions reps dims update_shape operand_shape
    int: num_segments num_classes bucket_size series_order ndmin max_squarings blocksize
    int: axis1 axis2 num decimals offset ddof dimension length unroll n_iter num_keys
    int: start_dimension stop_dimension rank minlength total_repeat_length max_steps batch_size
    int: exponent_bits mantissa_bits feature_group_count batch_group_count axisa axisb axisc
    int: nperseg noverlap nfft lwork deg
    str: method indexing side bitorder casting name assume_a lapack_driver
    bool: keepdims is_stable transpose
    Axis: axis
    Shape: axes
    Sequence[ArrayLike] | Array: arrays tup arys condlist choicelist
    None: out
    str | None: norm
    PyTree: tree pytree
    Callable[[Any], Any]: is_leaf
    Callable[..., Any]: fun func pyfunc func1d mask_func computation function callback
    Callable[..., Any]: cond_fun body_fun true_fun false_fun
""")

# Of parameters of one module, or of one function, where their name means something else there.
FUNCTIONS = {
    "weft": table("""
        PyTree: x init_val tree local_data
        Iterable[Any]: programs
        str: name
        int: host_id process_index
        Any: mode backend
    """),
    "weft.numpy": table("""
        Any: a1 object
        Axis: axis
        int: n m k N M axis1 axis2
        str | None: mode order
        Device | Sharding: device
    """)
    | {
        "a1": "ArrayLike",
        "size": "int",
        "shape": "SupportsIndex | Shape",
        "xi": "ArrayLike",
        "operands": "Any",
        "range": "Any",
    },
    "weft.numpy.linalg": table("""
        Any: p ord
        int: n ind
        str: mode
    """),
    "weft.numpy.fft": table("""
        int: n axis
        Shape: s axes
        float: d
        Device | Sharding: device
    """),
    "weft.lax": table("""
        Any: b solve lower upper
        int: k axis m
        Sequence[ArrayLike]: start_indices operands cases
        AxisName: axis_name
        PrecisionLike: precision
        str | Sequence[tuple[int, int]]: padding
    """)
    | {"axes": "Shape", "start_indices": "ArrayLike | Sequence[ArrayLike]"},
    "weft.lax.linalg": table("""
        bool: lower left
        int: permutation_size
        Any: algorithm implementation
        float: eps
    """),
    "weft.nn": {"axis": "Axis", "approximate": "bool"},
    "weft.nn.initializers": table("""
        int | Sequence[int]: in_axis out_axis batch_axis
        str: mode distribution
        int: column_axis
        ArrayLike: stddev
    """),
    "weft.random": table("""
        int: seed axis num n
        Any: impl
        str | None: mode
    """),
    "weft.scipy": table("""
        int: n
        bool: lower
        float: tol
        str: mode
        Any: p
        Callable[..., Any] | ArrayLike: A M
    """),
    "weft.scipy.special": table("""
        ArrayLike: n m p
    """)
    | {"d": "int", "axis": "Axis"},
    "weft.scipy.stats": table("""
        ArrayLike: n p
    """),
    "weft.scipy.linalg": table("""
        ArrayLike: A B E
    """),
    "weft.scipy.signal": table("""
        ArrayLike | str: window
        int: axis time_axis freq_axis
        float: fs
    """),
    "weft.ops": {},
    "weft.image": {"precision": "PrecisionLike", "spatial_dims": "Sequence[int]"},
    "weft.tree": table("""
        PyTree: tree
        Callable[..., Any]: is_leaf
        Callable[..., Any]: f function operation
        PyTree: rest prefix_tree full_tree pytree_to_transpose
        PyTreeDef: treedef outer_treedef inner_treedef
        Iterable[Any]: leaves
    """),
    "weft.ref": {"ref": "Ref", "idx": "Any", "x": "ArrayLike", "value": "ArrayLike"},
    # Functions.
    "weft.numpy.asarray": {"a": "Any"},
    "weft.numpy.shape": {"a": "Any"},
    "weft.numpy.ndim": {"a": "Any"},
    "weft.numpy.size": {"a": "Any"},
    "weft.numpy.block": {"arrays": "Any"},
    "weft.numpy.iterable": {"y": "Any"},
    "weft.numpy.isscalar": {"element": "Any"},
    "weft.numpy.iscomplexobj": {"x": "Any"},
    "weft.numpy.isrealobj": {"x": "Any"},
    "weft.numpy.from_dlpack": {"x": "Any", "device": "Device | Sharding", "copy": "bool"},
    "weft.numpy.promote_types": {"a": "DTypeLike", "b": "DTypeLike"},
    "weft.numpy.einsum": {"subscripts": "Any"},
    "weft.numpy.einsum_path": {"subscripts": "Any"},
    "weft.numpy.insert": {"obj": "ArrayLike | slice"},
    "weft.numpy.delete": {"obj": "ArrayLike | slice"},
    "weft.numpy.lexsort": {"keys": ARRAYS},
    "weft.numpy.moveaxis": table("int | Sequence[int]: source destination"),
    "weft.numpy.roll": {"shift": "ArrayLike | Sequence[int]"},
    "weft.numpy.tile": {"A": "ArrayLike", "reps": "SupportsIndex | Shape"},
    "weft.numpy.resize": {"new_shape": "SupportsIndex | Shape"},
    "weft.numpy.gradient": {"f": "ArrayLike", "axis": "Axis", "varargs": "ArrayLike"},
    "weft.numpy.pad": {"array": "ArrayLike", "mode": "Any", "pad_width": "Any"},
    "weft.numpy.expand_dims": {"axis": "int | Sequence[int]"},
    "weft.numpy.broadcast_to": {"array": "ArrayLike"},
    "weft.numpy.broadcast_shapes": {"shapes": "SupportsIndex | Shape"},
    "weft.numpy.broadcast_arrays": {"args": "ArrayLike"},
    "weft.numpy.tensordot": {"axes": "int | Sequence[int] | Sequence[Sequence[int]]"},
    "weft.numpy.polyfit": {"cov": "bool | str", "w": "ArrayLike", "deg": "int"},
    "weft.numpy.polyint": {"k": "ArrayLike | Sequence[Any]", "m": "int"},
    "weft.numpy.rollaxis": {"axis": "int", "start": "int"},
    "weft.numpy.squeeze": {"axis": "Axis"},
    "weft.numpy.choose": {"choices": ARRAYS, "mode": "str"},
    "weft.numpy.rot90": {"m": "ArrayLike", "axes": "tuple[int, int]"},
    "weft.numpy.trim_zeros": {"trim": "str", "axis": "Axis"},
    "weft.numpy.piecewise": {"condlist": "Any", "funclist": "Sequence[Any]"},
    "weft.numpy.fromfunction": {"shape": "Shape"},
    "weft.numpy.ravel_multi_index": {"multi_index": ARRAYS, "mode": "str", "order": "str"},
    "weft.numpy.mask_indices": {"k": "Any"},
    "weft.numpy.apply_along_axis": {"axis": "int", "arr": "ArrayLike"},
    "weft.numpy.apply_over_axes": {"axes": "Axis"},
    "weft.numpy.partition": {"kth": "int", "axis": "int"},
    "weft.numpy.argpartition": {"kth": "int", "axis": "int"},
    "weft.numpy.transpose": {"axes": "Shape"},
    "weft.numpy.indices": {"dimensions": "Shape"},
    "weft.numpy.atleast_1d": {"arys": "ArrayLike"},
    "weft.numpy.atleast_2d": {"arys": "ArrayLike"},
    "weft.numpy.atleast_3d": {"arys": "ArrayLike"},
    "weft.numpy.ix_": {"args": "ArrayLike"},
    "weft.numpy.linspace": {"dtype": "DTypeLike"},
    "weft.numpy.histogramdd": {"bins": "Any", "sample": "Any"},
    "weft.numpy.histogram2d": {"bins": "Any"},
    "weft.numpy.histogram": {"bins": "ArrayLike | str"},
    "weft.numpy.histogram_bin_edges": {"bins": "ArrayLike | str"},
    "weft.numpy.unwrap": {"p": "ArrayLike", "axis": "int"},
    **dict.fromkeys(
        ("weft.numpy.tril", "weft.numpy.triu", "weft.numpy.cov", "weft.numpy.flip"),
        {"m": "ArrayLike"},
    ),
    "weft.numpy.fliplr": {"m": "ArrayLike"},
    "weft.numpy.flipud": {"m": "ArrayLike"},
    "weft.numpy.linalg.matrix_rank": {"M": "ArrayLike", "tol": "ArrayLike"},
    "weft.numpy.linalg.tensordot": {"axes": "int | Sequence[int] | Sequence[Sequence[int]]"},
    "weft.numpy.linalg.tensorsolve": {"axes": "Shape"},
    "weft.numpy.linalg.vector_norm": {"axis": "Axis", "ord": "Any"},
    "weft.numpy.fft.fftshift": {"axes": "Axis"},
    "weft.numpy.fft.ifftshift": {"axes": "Axis"},
    "weft.lax.betainc": {"b": "ArrayLike"},
    "weft.lax.rng_uniform": {"b": "ArrayLike"},
    "weft.lax.polygamma": {"m": "ArrayLike"},
    "weft.lax.expand_dims": {"array": "ArrayLike"},
    "weft.lax.squeeze": {"array": "ArrayLike"},
    "weft.lax.clamp": {"min": "ArrayLike", "max": "ArrayLike"},
    "weft.lax.integer_pow": {"y": "int"},
    "weft.lax.slice": {"start_indices": "Shape"},
    "weft.lax.slice_in_dim": {"start_index": "int | None", "limit_index": "int | None"},
    "weft.lax.index_in_dim": {"index": "int"},
    "weft.lax.index_take": {"idxs": ARRAYS},
    "weft.lax.shape_as_value": {"shape": "Shape"},
    "weft.lax.broadcast_shapes": {"shapes": "Shape"},
    "weft.lax.concatenate": {"operands": "Sequence[ArrayLike]"},
    "weft.lax.select_n": {"cases": "ArrayLike", "which": "ArrayLike"},
    "weft.lax.pad": {"padding_config": "Sequence[tuple[int, int, int]]"},
    "weft.lax.sort": {"operand": "ArrayLike | Sequence[ArrayLike]"},
    "weft.lax.split": {"sizes": "Shape"},
    "weft.lax.conv_transpose": {"strides": "Shape"},
    "weft.lax.conv_shape_tuple": {"pads": "Any", "strides": "Shape"},
    "weft.lax.composite": {"decomposition": "Callable[..., Any]"},
    "weft.lax.optimization_barrier": {"operand": "PyTree"},
    "weft.lax.reduce": {"operands": "PyTree"},
    "weft.lax.reduce_window": {"operand": "PyTree", "init_value": "PyTree", "padding": "Any"},
    "weft.lax.ragged_all_to_all": table(
        "ArrayLike: output input_offsets send_sizes output_offsets recv_sizes"
    ),
    **{
        f"weft.lax.{name}": {"x": "PyTree"}
        for name in table("""
            PyTree: all_gather all_to_all pbroadcast pmax pmean pmin ppermute pshuffle psum
            PyTree: psum_scatter pswapaxes stop_gradient with_sharding_constraint stage
        """)
    },
    "weft.lax.custom_linear_solve": {"b": "PyTree", "solve": "Callable[..., Any]"},
    "weft.lax.map": {"xs": "PyTree", "f": "Callable[..., Any]"},
    "weft.lax.associative_scan": {"fn": "Callable[..., Any]", "elems": "PyTree"},
    "weft.lax.unstack": {"axis": "int"},
    "weft.lax.custom_root": {"f": "Callable[..., Any]", "initial_guess": "PyTree"},
    "weft.nn.one_hot": {"axis": "int | AxisName", "num_classes": "int"},
    "weft.nn.glu": {"axis": "int"},
    "weft.nn.logsumexp": {"b": "ArrayLike"},
    "weft.nn.dot_product_attention": {
        "key": "ArrayLike",
        "scale": "float",
        "local_window_size": "int | tuple[int, int]",
        "implementation": "str",
    },
    "weft.nn.scaled_dot_general": {"dimension_numbers": "Any", "configs": "Any"},
    "weft.nn.get_scaled_dot_general_config": {"mode": "str"},
    "weft.nn.initializers.truncated_normal": table("ArrayLike: lower upper"),
    "weft.random.key": {"seed": "ArrayLike"},
    "weft.random.PRNGKey": {"seed": "ArrayLike"},
    "weft.random.split": {"num": "SupportsIndex | Shape"},
    "weft.random.binomial": {"n": "ArrayLike"},
    "weft.random.multinomial": {"n": "ArrayLike"},
    "weft.random.orthogonal": {"m": "int"},
    "weft.random.triangular": {"mode": "ArrayLike"},
    "weft.random.bernoulli": {"mode": "str"},
    "weft.random.ball": {"d": "int"},
    "weft.random.generalized_normal": {"p": "ArrayLike"},
    "weft.random.multivariate_normal": {"method": "str"},
    "weft.scipy.special.factorial": {"exact": "bool"},
    "weft.scipy.special.bernoulli": {"n": "int"},
    "weft.scipy.special.sph_harm_y": {"n_max": "int", "diff_n": "int"},
    "weft.scipy.linalg.eigh": {"lower": "bool", "type": "int"},
    "weft.scipy.linalg.eigh_tridiagonal": {"tol": "float", "select_range": "tuple[float, float]"},
    "weft.scipy.linalg.funm": {"func": "Callable[[Array], Array]", "disp": "bool"},
    "weft.scipy.linalg.block_diag": {"arrs": "ArrayLike"},
    "weft.scipy.linalg.cho_solve": {"c_and_lower": "tuple[ArrayLike, bool]"},
    "weft.scipy.linalg.lu_solve": {"lu_and_piv": "tuple[ArrayLike, ArrayLike]"},
    "weft.scipy.optimize.minimize": {"fun": "Callable[..., Any]", "args": "tuple[Any, ...]"},
    "weft.scipy.signal.detrend": {"bp": "Any"},
    "weft.scipy.signal.stft": {"detrend": "Any", "boundary": "str", "nperseg": "int"},
    "weft.scipy.signal.csd": {"y": "ArrayLike", "detrend": "Any"},
    "weft.scipy.signal.welch": {"detrend": "Any"},
    "weft.scipy.ndimage.map_coordinates": {"coordinates": ARRAYS, "order": "int"},
    "weft.scipy.stats.mode": {"axis": "int"},
    "weft.scipy.stats.sem": {"axis": "int"},
    "weft.scipy.stats.rankdata": {"axis": "int"},
    "weft.scipy.sparse.linalg": table("PyTree: b x0"),
}

RETURNS_BY_MODULE = {
    "weft.numpy": "Array",
    "weft.lax": "Array",
    "weft.nn": "Array",
    "weft.random": "Array",
    "weft.image": "Array",
    "weft.ops": "Array",
    "weft.scipy.special": "Array",
    "weft.scipy.stats": "Array",
    "weft.scipy.signal": "Array",
    "weft.scipy.linalg": "Array",
    "weft.scipy.ndimage": "Array",
    "weft.scipy.integrate": "Array",
    "weft.nn.initializers": "Initializer",
}

_PAIR, _TRIPLE = "tuple[Array, Array]", "tuple[Array, Array, Array]"
_SETTING = "AbstractContextManager[None]"
RETURNS = {
    f"weft.{name}": kind
    for name, kind in table(f"""
        {_SETTING}: allow_f16_reductions array_garbage_collection_guard auto_pcast
        {_SETTING}: check_tracer_leaks checking_leaks debug_infs debug_key_reuse debug_nans
        {_SETTING}: default_device default_matmul_precision default_prng_impl disable_jit
        {_SETTING}: enable_checks enable_custom_prng enable_x64 explain_cache_misses
        {_SETTING}: jax2tf_associative_scan_reductions legacy_prng_key log_compiles no_execution
        {_SETTING}: no_tracing numpy_dtype_promotion numpy_rank_promotion
        {_SETTING}: remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard
        {_SETTING}: threefry_partitionable transfer_guard transfer_guard_device_to_device
        {_SETTING}: transfer_guard_device_to_host transfer_guard_host_to_device
        None: clear_caches effects_barrier free_ref ref.free_ref ref.set ref.addupdate
        str: default_backend numpy.array_repr numpy.array_str
        str | None: print_environment_info
        int: device_count local_device_count process_count process_index host_count host_id
        list[int]: process_indices host_ids
        list[Device]: devices local_devices
        list[Array]: live_arrays
        list[Any]: compile_all
        Array: freeze make_array_from_callback make_array_from_process_local_data
        Array: make_array_from_single_device_arrays ref.freeze ref.get ref.swap
        Ref: new_ref empty_ref ref.new_ref ref.empty_ref
        ShapedArray: typeof
        Callable[..., ClosedJaxpr]: make_jaxpr

        list[Array]: numpy.array_split numpy.broadcast_arrays numpy.dsplit numpy.hsplit
        list[Array]: numpy.split numpy.vsplit numpy.meshgrid
        tuple[Array, ...]: numpy.unstack numpy.diag_indices numpy.diag_indices_from
        tuple[Array, ...]: numpy.ix_ numpy.mask_indices numpy.nonzero numpy.unravel_index
        {_PAIR}: numpy.divmod numpy.frexp numpy.modf numpy.polydiv numpy.histogram
        {_PAIR}: numpy.tril_indices numpy.tril_indices_from numpy.triu_indices
        {_PAIR}: numpy.triu_indices_from
        EigResult: numpy.linalg.eig
        EighResult: numpy.linalg.eigh
        SlogdetResult: numpy.linalg.slogdet
        UniqueAllResult: numpy.unique_all
        UniqueCountsResult: numpy.unique_counts
        UniqueInverseResult: numpy.unique_inverse
        ModeResult: scipy.stats.mode
        {_TRIPLE}: numpy.histogram2d
        tuple[Array, list[Array]]: numpy.histogramdd
        bool: numpy.can_cast numpy.iscomplexobj numpy.isdtype numpy.isrealobj numpy.isscalar
        bool: numpy.issubdtype numpy.iterable
        int: numpy.ndim numpy.size
        tuple[int, ...]: numpy.shape numpy.broadcast_shapes
        np.dtype[Any]: numpy.promote_types numpy.result_type numpy.dtype lax.dtype
        None: numpy.save numpy.savez numpy.set_printoptions
        dict[str, Any]: numpy.get_printoptions
        AbstractContextManager[Any]: numpy.printoptions
        Any: numpy.frompyfunc
        Any: numpy.einsum_path numpy.finfo numpy.iinfo numpy.load numpy.polyfit numpy.piecewise
        Any: numpy.atleast_1d numpy.atleast_2d numpy.atleast_3d numpy.average numpy.gradient
        Any: numpy.intersect1d numpy.unique numpy.indices numpy.linalg.qr numpy.linalg.svd
        Any: numpy.linalg.lstsq numpy.fromfile
        Callable[..., Any]: numpy.vectorize

        Any: lax.DotDimensionNumbers lax.after_all lax.create_token lax.all_gather lax.all_to_all
        Any: lax.associative_scan lax.conv_dimension_numbers lax.custom_linear_solve
        Any: lax.custom_root lax.dce_sink lax.optimization_barrier lax.pbroadcast
        Any: lax.platform_dependent lax.pmax lax.pmean lax.pmin lax.ppermute lax.pshuffle lax.psum
        Any: lax.psum_scatter lax.pswapaxes lax.reduce lax.reduce_window lax.sort
        Any: lax.with_sharding_constraint lax.map lax.linalg.eig lax.linalg.eigh lax.linalg.qr
        Any: lax.linalg.schur lax.linalg.svd lax.linalg.qdwh lax.linalg.tridiagonal
        Any: lax.padtype_to_pads lax.conv_general_permutations
        int: lax.axis_size
        tuple[int, ...]: lax.broadcast_shapes lax.conv_shape_tuple lax.conv_transpose_shape_tuple
        tuple[int, ...]: lax.conv_general_shape_tuple lax.reduce_window_shape_tuple
        {_PAIR}: lax.rng_bit_generator lax.sort_key_val
        list[Array]: lax.approx_max_k lax.approx_min_k lax.linalg.hessenberg lax.linalg.lu
        list[Array]: lax.split lax.top_k scipy.linalg.schur
        tuple[Array, ...]: lax.unstack
        Callable[..., Any]: lax.composite
        Array: nn.initializers.ones nn.initializers.zeros

        Any: nn.dot_product_attention nn.logsumexp nn.get_scaled_dot_general_config
        Any: random.key_impl

        Any: scipy.special.factorial scipy.special.logsumexp
        {_PAIR}: scipy.special.fresnel scipy.special.sici
        tuple[Array, bool]: scipy.linalg.cho_factor
        {_PAIR}: scipy.linalg.lu_factor scipy.linalg.polar scipy.linalg.rsf2csf
        {_PAIR}: scipy.cluster.vq.vq scipy.sparse.linalg.cg
        Any: scipy.linalg.eigh scipy.linalg.eigh_tridiagonal scipy.linalg.expm_frechet
        Any: scipy.linalg.funm scipy.linalg.hessenberg scipy.linalg.lu scipy.linalg.qr
        Any: scipy.linalg.qr_multiply scipy.linalg.svd scipy.linalg.invpascal
        {_PAIR}: scipy.signal.csd scipy.signal.welch scipy.signal.istft
        {_TRIPLE}: scipy.signal.stft
        tuple[Any, None]: scipy.sparse.linalg.cg scipy.sparse.linalg.bicgstab
        tuple[Any, None]: scipy.sparse.linalg.gmres
        OptimizeResults: scipy.optimize.minimize

        bool: tree.all
        list[Any]: tree.leaves
        PyTreeDef: tree.structure
        tuple[list[Any], PyTreeDef]: tree.flatten
        tuple[list[tuple[KeyPath, Any]], PyTreeDef]: tree.flatten_with_path
        list[tuple[KeyPath, Any]]: tree.leaves_with_path
    """).items()
}

# What instances of classes of the C++ module have. It has a Sharding of its own.
MEMBERS = {
    "Array": table("""
        Array: T mT real imag
        IndexedView: at
        np.dtype[Any]: dtype
        tuple[int, ...]: shape
        int: ndim size itemsize nbytes __len__ __int__ __index__ on_device_size_in_bytes
        int: unsafe_buffer_pointer
        bool: weak_type committed is_deleted is_fully_addressable is_fully_replicated is_ready
        bool: __bool__ __contains__
        float: __float__
        complex: __complex__
        bytes: tobytes
        Device | weft.sharding.Sharding: device
        weft.sharding.Sharding: sharding
        set[Device]: devices
        list[Shard]: addressable_shards global_shards
        ShapedArray: aval
        np.ndarray[Any, Any]: __array__
        Iterator[Array]: __iter__
        tuple[Array, Array]: __divmod__ __rdivmod__
        tuple[Array, ...]: nonzero
        tuple[int, int]: __dlpack_device__
        None: copy_to_host_async delete
        Array: all any argmax argmin argpartition argsort astype byteswap choose clip compress conj
        Array: conjugate copy cumprod cumsum diagonal dot flatten max mean min prod ptp ravel repeat
        Array: reshape round searchsorted sort squeeze std sum swapaxes take to_device trace
        Array: transpose var view block_until_ready addressable_data __copy__ __deepcopy__ __round__
        Array: __add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __matmul__ __and__
        Array: __or__ __xor__ __lshift__ __rshift__ __radd__ __rsub__ __rmul__ __rtruediv__
        Array: __rfloordiv__ __rmod__ __rpow__ __rmatmul__ __rand__ __ror__ __rxor__ __rlshift__
        Array: __rrshift__ __neg__ __pos__ __abs__ __invert__ __eq__ __ne__ __lt__ __le__ __gt__
        Array: __ge__ __getitem__
    """),
    "IndexedElements": table("""
        Array: get apply set add subtract sub multiply mul divide div power min max
    """),
    "IndexedView": {"__getitem__": "IndexedElements"},
    "ufunc": table("""
        Array: reduce accumulate reduceat outer
        Any: at
        int: nin nout nargs
    """),
}
# Parameters of these members, where their names say too little.
MEMBER_PARAMETERS = {
    "Array": {
        "value": "ArrayLike",
        "mod": "None",
        "new": "Any",
        "axes": "Any",
        "index": "int",
        "order": "str",
        "key": "Any",
        "device": "Device | weft.sharding.Sharding",
        "stream": "Any",
        "type": "None",
        "n": "int",
        "k": "int",
        "indices": "ArrayLike",
    },
    "IndexedView": {"index": "Any"},
    "IndexedElements": {"values": "ArrayLike", "func": "Callable[[Array], Array]"},
    "ufunc": {
        "args": "ArrayLike",
        "A": "ArrayLike",
        "B": "ArrayLike",
        "a": "ArrayLike",
        "axis": "Axis",
        "nin": "int",
        "nout": "int",
    },
}

_JIT = """
    in_shardings: Any = None, out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False, device: Any = None, backend: str | None = None,
    inline: bool = False, compiler_options: dict[str, Any] | None = None,
    compile: str = "auto", optimize: str = "balanced", kernels: str = "auto"
""".strip()


def _once(text):
    return " ".join(text.split())


def _shown(name, rest, also=""):
    """A first overload for Jedi, which does not know ParamSpec: what `name` makes of a function has
    the signature, the docstring and the results of that function.

    Type checkers pass over it, since no function is a bool.
    """
    return f"def {name}(fun: _Shown{rest}) -> _Shown{also}: ..."


_JITTED = " | JitFunction[..., Any]"
_VMAP = (
    ", in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None, axis_size: int | None = None, "
    "spmd_axis_name: AxisName | None = None, sum_match: bool = False"
)


def _derivative(name, rest, aux, plain, anything):
    """Overloads of grad and its like: the first argument without and with aux, any other way."""
    first = "fun: Callable[Concatenate[_A, _P], "
    return [
        _shown(name, f", argnums: int | Sequence[int] = 0, has_aux: bool = False, {rest}"),
        f"def {name}({first}{plain[0]}], argnums: Literal[0] = 0, "
        f"has_aux: Literal[False] = False, {rest}) "
        f"-> Callable[Concatenate[_A, _P], {plain[1]}]: ...",
        f"def {name}({first}tuple[{plain[0]}, _Aux]], argnums: Literal[0] = 0, *, "
        f"has_aux: Literal[True], {rest}) -> Callable[Concatenate[_A, _P], {aux}]: ...",
        f"def {name}(fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, "
        f"has_aux: bool = False, {rest}) -> Callable[_P, {anything}]: ...",
    ]


_GRAD = "holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[AxisName] = ()"


_JACOBIAN = "argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False"


def _checkpoint(name):
    rest = (
        "*, prevent_cse: bool = True, policy: Callable[..., Any] | None = None, "
        "static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (), "
        "concrete: bool | None = None"
    )
    return [
        _shown(name, f", {rest}"),
        f"def {name}(fun: Callable[_P, _T], {rest}) -> Callable[_P, _T]: ...",
        f"def {name}(fun: None = None, {rest}) -> "
        "Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...",
    ]


# Overloads, by the name of the function.
SPELLED = {
    "weft.aot": [
        _shown("aot", ", /, *, path: str | None = None, **options: Any", _JITTED),
        "def aot(fun: Callable[_P, _T], /, *, path: str | None = None, **options: Any) -> "
        "JitFunction[_P, _T]: ...",
        "def aot(fun: None = None, /, *, path: str | None = None, **options: Any) -> "
        "JitDecorator: ...",
    ],
    "weft.jit": [
        _shown("jit", f", /, *, {_once(_JIT)}", _JITTED),
        f"def jit(fun: Callable[_P, _T], /, *, {_once(_JIT)}) -> JitFunction[_P, _T]: ...",
        f"def jit(fun: None = None, /, *, {_once(_JIT)}) -> JitDecorator: ...",
    ],
    "weft.vmap": [
        _shown("vmap", _VMAP),
        f"def vmap(fun: Callable[_P, _T]{_VMAP}) -> Callable[_P, _T]: ...",
    ],
    "weft.grad": _derivative("grad", _GRAD, "tuple[_A, _Aux]", ("Any", "_A"), "Any"),
    "weft.value_and_grad": _derivative(
        "value_and_grad",
        _GRAD,
        "tuple[tuple[_T, _Aux], _A]",
        ("_T", "tuple[_T, _A]"),
        "tuple[Any, Any]",
    ),
    "weft.checkpoint": _checkpoint("checkpoint"),
    "weft.remat": _checkpoint("remat"),
    "weft.named_call": [
        _shown("named_call", ", *, name: str | None = None"),
        "def named_call(fun: Callable[_P, _T], *, name: str | None = None) "
        "-> Callable[_P, _T]: ...",
    ],
    **{
        f"weft.{name}": [
            _shown(name, f", {_JACOBIAN}{rest}"),
            f"def {name}(fun: Callable[_P, Any], {_JACOBIAN}{rest}) -> Callable[_P, Any]: ...",
        ]
        for name, rest in {
            "hessian": "",
            "jacfwd": "",
            "jacrev": ", allow_int: bool = False",
            "jacobian": ", allow_int: bool = False",
        }.items()
    },
    "weft.jvp": [
        "def jvp(fun: Callable[..., _T], primals: Sequence[Any], tangents: Sequence[Any], "
        "has_aux: Literal[False] = False) -> tuple[_T, _T]: ...",
        "def jvp(fun: Callable[..., tuple[_T, _Aux]], primals: Sequence[Any], "
        "tangents: Sequence[Any], has_aux: Literal[True]) -> tuple[_T, _T, _Aux]: ...",
        "def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], "
        "has_aux: bool = False) -> tuple[Any, ...]: ...",
    ],
    "weft.vjp": [
        "def vjp(fun: Callable[..., _T], *primals: Any, has_aux: Literal[False] = False, "
        "reduce_axes: Sequence[AxisName] = ()) -> tuple[_T, VJP]: ...",
        "def vjp(fun: Callable[..., tuple[_T, _Aux]], *primals: Any, has_aux: Literal[True], "
        "reduce_axes: Sequence[AxisName] = ()) -> tuple[_T, VJP, _Aux]: ...",
    ],
    "weft.linearize": [
        "def linearize(fun: Callable[..., _T], *primals: Any, has_aux: Literal[False] = False) "
        "-> tuple[_T, JVP]: ...",
        "def linearize(fun: Callable[..., tuple[_T, _Aux]], *primals: Any, "
        "has_aux: Literal[True]) -> tuple[_T, JVP, _Aux]: ...",
    ],
    "weft.tree.map": [
        "def map(f: Callable[[Any], Any], tree: PyTree, *, "
        "is_leaf: Callable[[Any], Any] | None = None) -> Any: ...",
        "def map(f: Callable[[Any, Any], Any], tree: PyTree, second: PyTree, /, *, "
        "is_leaf: Callable[[Any], Any] | None = None) -> Any: ...",
        "def map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, "
        "is_leaf: Callable[[Any], Any] | None = None) -> Any: ...",
    ],
    "weft.block_until_ready": ["def block_until_ready(x: _T) -> _T: ..."],
    "weft.copy_to_host_async": ["def copy_to_host_async(x: _T) -> _T: ..."],
    "weft.lax.stop_gradient": ["def stop_gradient(x: _T) -> _T: ..."],
    "weft.lax.optimization_barrier": ["def optimization_barrier(operand: _T, /) -> _T: ..."],
    "weft.lax.cond": [
        "def cond(pred: ArrayLike, true_fun: Callable[..., _T], false_fun: Callable[..., _T], "
        "*operands: Any, operand: Any = ...) -> _T: ..."
    ],
    "weft.lax.switch": [
        "def switch(index: ArrayLike, branches: Sequence[Callable[..., _T]], *operands: Any, "
        "operand: Any = ...) -> _T: ..."
    ],
    "weft.lax.while_loop": [
        "def while_loop(cond_fun: Callable[[_T], ArrayLike], body_fun: Callable[[_T], _T], "
        "init_val: _T, *, max_steps: int | None = None) -> _T: ..."
    ],
    "weft.lax.fori_loop": [
        "def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, _T], _T], "
        "init_val: _T, *, unroll: int | bool | None = None, max_steps: int | None = None) "
        "-> _T: ..."
    ],
    "weft.lax.scan": [
        "def scan(f: Callable[[_T, _X], tuple[_T, _Y]], init: _T, xs: _X | None = None, "
        "length: int | None = None, reverse: bool = False, unroll: int | bool = 1, "
        "_split_transpose: bool = False, *, checkpoint: Any = None) -> tuple[_T, _Y]: ..."
    ],
    "weft.numpy.where": [
        "def where(condition: ArrayLike, x: None = None, y: None = None, /, *, "
        "size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]: ...",
        "def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, "
        "size: int | None = None, fill_value: Any = None) -> Array: ...",
    ],
    "weft.numpy.linspace": [
        "def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, "
        "retstep: Literal[False] = False, dtype: DTypeLike | None = None, axis: int = 0, *, "
        "device: Device | Sharding | None = None) -> Array: ...",
        "def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *, "
        "retstep: Literal[True], dtype: DTypeLike | None = None, axis: int = 0, "
        "device: Device | Sharding | None = None) -> tuple[Array, Array]: ...",
    ],
    **{
        f"weft.numpy.{name}": [
            f"def {name}(array: ArrayLike, /) -> Array: ...",
            f"def {name}(*arys: ArrayLike) -> list[Array]: ...",
        ]
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    },
}

# Members of generic classes.
SPELLED_MEMBERS = {
    "JitFunction": {
        "__call__": ["__call__: Callable[_P, _T]"],
        "__get__": [
            "def __get__(self, instance: None, owner: Any = None, /) -> Self: ...",
            "def __get__(self: JitFunction[Concatenate[Any, _Q], _T], instance: object, "
            "owner: Any = None, /) -> JitFunction[_Q, _T]: ...",
        ],
        # Arrays, or ShapeDtypeStructs in their place.
        "eval_shape": ["def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any: ..."],
        "lower": ["def lower(self, /, *args: Any, **kwargs: Any) -> Lowered: ..."],
        "explain": ["def explain(self, /, *args: Any, **kwargs: Any) -> Explanation: ..."],
        "trace": ["def trace(self, /, *args: Any, **kwargs: Any) -> Traced: ..."],
        "cache_info": ["def cache_info(self) -> CacheInfo: ..."],
        "cache_clear": ["def cache_clear(self) -> None: ..."],
        "clear_cache": ["def clear_cache(self) -> None: ..."],
        "__wrapped__": ["__wrapped__: Callable[_P, _T]"],
        "_options": ["_options: Any"],
    },
}
SPELLED_MEMBERS["ufunc"] = {
    "__call__": [
        "def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array: ..."
    ],
}
# Members that only raise an error: checkers report their use.
SPELLED_MEMBERS |= dict.fromkeys(("Array", "IndexedView"), {"__setitem__": []})
BASES = {"JitFunction": "Generic[_P, _T]", "Tracer": "Array"}

# Where stubs find the names that types are made of.
HOMES = {
    "Array": "weft._core",
    "ClosedJaxpr": "weft._core",
    "JitFunction": "weft._core",
    "JitDecorator": "weft._jit",
    "Ref": "weft._core",
    "Primitive": "weft.extend._primitive",
    "ufunc": "weft._core",
    "ShapedArray": "weft._types.avals",
    "Explanation": "weft._explain",
    "Lowered": "weft._stages.lowered",
    "Traced": "weft._stages.traced",
    "CacheInfo": "weft._jit",
    "JVP": "weft._autodiff",
    "VJP": "weft._autodiff",
    "EigResult": "weft.numpy._decompositions",
    "EighResult": "weft.numpy._decompositions",
    "SlogdetResult": "weft.numpy._solvers",
    "UniqueAllResult": "weft.numpy._sets",
    "UniqueCountsResult": "weft.numpy._sets",
    "UniqueInverseResult": "weft.numpy._sets",
    "ModeResult": "weft.scipy.stats._ranks",
    "Shard": "weft._array",
    "IndexedView": "weft.numpy._at",
    "ScalarType": "weft.numpy._scalars",
    "Device": "weft.runtime.devices",
    "Sharding": "weft.sharding",
    "PrecisionLike": "weft.lax._dot",
    "PyTreeDef": "weft.tree_util",
    "KeyPath": "weft.tree_util",
    "Initializer": "weft.nn._initializers",
    "OptimizeResults": "weft.scipy.optimize._minimize",
    **{
        name: home
        for home, names in {
            "weft.typing": "ArrayLike Axis AxisName DTypeLike PyTree Shape",
            "collections.abc": "Callable Iterable Iterator Mapping Sequence",
            "contextlib": "AbstractContextManager",
            "typing": "Any ClassVar Concatenate Generic Literal ParamSpec Self SupportsIndex "
            "TypeVar overload",
        }.items()
        for name in names.split()
    },
}
VARIABLES = {
    "_A": 'TypeVar("_A")',
    "_Aux": 'TypeVar("_Aux")',
    "_P": 'ParamSpec("_P")',
    "_Q": 'ParamSpec("_Q")',
    "_Shown": 'TypeVar("_Shown", bound=bool)',
    "_T": 'TypeVar("_T")',
    "_X": 'TypeVar("_X")',
    "_Y": 'TypeVar("_Y")',
}
