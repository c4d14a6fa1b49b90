"""Convolutions and reductions of windows: public functions against jax, mistakes, derivatives that
no row of the op table has.
"""

import numpy as np
import pytest
from oracle import check, lines, needs_jax

import weft
from weft import _core, lax, numpy as wnp
from weft.errors import AttributeValueError, DTypeError, ShapeError

X = "jnp.arange(60.).reshape(2,5,6)"
IMAGE = "jnp.sin(jnp.arange(2*5*4*3.)).reshape(2,5,4,3)"
WEIGHTS = "jnp.cos(jnp.arange(3*2*3*4.)).reshape(3,2,3,4)"
CASES = lines(
    f"""
    lax.conv({X},jnp.ones((4,5,2)),(2,),"SAME")
    lax.conv({X},jnp.ones((4,5,2)),(2,),"SAME_LOWER")
    lax.conv({X},jnp.ones((4,5,2)),(2,),"valid")
    lax.conv({X},jnp.ones((4,5,2)),(1,),"FULL")
    lax.conv({X},jnp.ones((4,5,2)),(1,),3)
    lax.conv({X},jnp.ones((4,4,2)),(1,),"VALID")
    lax.conv({X},jnp.ones((4,5,2)),(1,1),"VALID")
    lax.conv({X},jnp.ones((4,5)),(1,),"VALID")
    lax.conv({X}.astype("bfloat16"),jnp.ones((4,5,2),"bfloat16"),(1,),"SAME",None,"float32")
    lax.conv({X}.astype("int8"),jnp.ones((4,5,2),"int8"),(1,),"SAME",None,"int32")
    lax.conv({X}.astype("int32"),jnp.ones((4,5,2),"int32"),(1,),"SAME",None,"int8")
    lax.conv_general_dilated({X}>9,jnp.ones((4,5,2),bool),(1,),"SAME")
    lax.conv({X},jnp.ones((4,5,2)),(1,),"SAME","highest")
    lax.conv({X},jnp.ones((4,5,2)),(1,),"SAME",("high","highest"))
    lax.conv({X},jnp.ones((4,5,2)),(1,),"SAME","best")
    lax.conv({X},jnp.ones((4,5,2),"int32"),(1,),"SAME")
    lax.conv_with_general_padding({X},jnp.ones((4,5,2)),(1,),[(1,-2)],(2,),(3,))
    lax.conv_with_general_padding({X},jnp.ones((4,5,2)),(1,),[(-9,0)],None,None)
    lax.conv_with_general_padding({X},jnp.ones((4,5,2)),(1,),"SAME",(2,),None)
    lax.conv_with_general_padding({X},jnp.ones((4,5,2)),(1,),[(1,2,3)],None,None)
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NHWC","HWIO","NHWC"))
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NWHC","HWIO","CHWN"))
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NWHC","HWIO","CHWX"))
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NWC","HIO","CHN"))
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=7)
    lax.conv_general_dilated({IMAGE},jnp.ones((3,2,1,6)),(1,2),"SAME",dimension_numbers=("NHWC","HWIO","NHWC"),feature_group_count=3)
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NHWC","HWIO","NHWC"),feature_group_count=2)
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NHWC","HWIO","NHWC"),batch_group_count=2)
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NHWC","HWIO","NHWC"),batch_group_count=3)
    lax.conv_general_dilated({IMAGE},{WEIGHTS},(1,2),"SAME",dimension_numbers=("NHWC","HWIO","NHWC"),feature_group_count=0)
    lax.conv_general_dilated(jnp.ones((2,3)),jnp.ones((4,3)),(),"SAME")
    lax.conv_transpose({IMAGE},{WEIGHTS},(2,1),"SAME")
    lax.conv_transpose({IMAGE},{WEIGHTS},(2,3),"VALID")
    lax.conv_transpose({IMAGE},{WEIGHTS},(1,2),"SAME",(2,1))
    lax.conv_transpose({IMAGE},{WEIGHTS},(2,1),[(1,2),(0,1)])
    lax.conv_transpose({IMAGE},{WEIGHTS},(2,1),[(1,2),(0,1)],use_consistent_padding=True)
    lax.conv_transpose({IMAGE},{WEIGHTS},(2,1),[(1,2),(0,1)],(1,2),use_consistent_padding=True)
    lax.conv_transpose({IMAGE},{WEIGHTS}.swapaxes(2,3),(2,1),"SAME",transpose_kernel=True)
    lax.conv_transpose({IMAGE},{WEIGHTS},(2,1),"SAME_LOWER")
    lax.conv_transpose(jnp.ones((2,3)),jnp.ones((3,5)),(),"SAME")
    lax.conv_transpose(jnp.ones((2,)*6),jnp.ones((2,)*6),(1,)*4,"SAME")
    lax.conv_general_dilated_patches({IMAGE},(3,2),(1,2),"SAME",dimension_numbers=("NHWC","HWIO","NHWC"))
    lax.conv_general_dilated_patches({IMAGE},(3,2),(1,1),"VALID",rhs_dilation=(1,2))
    lax.conv_general_dilated_patches({IMAGE},(2,2),(1,2),[(1,0),(0,1)],(2,1),dimension_numbers=("NWHC","OIWH","CNWH"))
    lax.conv_general_dilated_patches({X}.astype("int32"),(2,),(1,),"SAME")
    lax.conv_general_dilated_local({X},(jnp.arange(3*10*4.)%7-3).reshape(3,10,4),(2,),"SAME",(2,),dimension_numbers=("NCH","HIO","NHC"))
    lax.conv_general_dilated_local({IMAGE},jnp.cos(jnp.arange(4*12*5*2.)).reshape(4,12,5,2),(1,1),"SAME",(2,2),dimension_numbers=("NHWC","WIHO","NHWC"))
    lax.conv_dimension_numbers((1,2,3,4),(4,3,2,1),("NHWC","HWIO","CHWN"))
    lax.conv_dimension_numbers((1,2,3),(4,3,2),None)
    lax.conv_dimension_numbers((1,2,3),(4,3,2),("NHC","HIO","NHHC"))
    lax.conv_dimension_numbers((1,2,3),(4,3),None)
    lax.conv_general_permutations(("NHWC","IHWO","CNWH"))
    tuple(map(int,lax.conv_shape_tuple((1,2,3,4),(5,2,2,2),(1,1),"SAME")))
    tuple(map(int,lax.conv_shape_tuple((1,2,3,4),(5,2,2,2),(1,1),[(1,2),(0,-1)])))
    tuple(map(int,lax.conv_shape_tuple((4,2,3,4),(6,2,2,2),(1,2),[(1,2),(0,-1)],2)))
    tuple(map(int,lax.conv_general_shape_tuple((1,2,3,4),(5,2,2,2),(1,2),"SAME",("NCHW","OIHW","NHWC"))))
    tuple(map(int,lax.conv_transpose_shape_tuple((1,2,3,4),(5,2,2,2),(2,1),"VALID",("NCHW","OIHW","NHWC"))))
    lax.padtype_to_pads((5,6),(2,3),(2,2),"SAME")
    lax.padtype_to_pads((5,6),(2,3),(2,2),"SAME_LOWER")
    lax.padtype_to_pads((5,6),(2,3),(2,2),"VALID")
    lax.padtype_to_pads((5,6),(2,3),(2,2),"HALF")
    lax.padtype_to_pads((5,6),(2,3),(2,2),((1,2),(3,4)))
    tuple(map(int,lax.reduce_window_shape_tuple((5,6),(2,3),(2,2),((0,0),(1,1)),(2,1),(1,2))))
    lax.reduce_window({X},0.,lax.add,(1,2,3),(1,2,1),"SAME")
    lax.reduce_window({X},-jnp.inf,lax.max,(1,2,3),(1,)*3,"SAME_LOWER",(1,)*3,(1,2,1))
    lax.reduce_window({X},jnp.inf,lax.min,(2,2,1),(1,1,2),[(0,1),(2,0),(0,0)],(1,1,2))
    lax.reduce_window({X},1.,lax.mul,(1,2,2))
    lax.reduce_window({X},0.,lax.add,(2,2,3),(2,2,2),"SAME",(3,2,2),(1,2,1))
    lax.reduce_window({X},-jnp.inf,lax.max,(1,2,3),(1,2,3),"SAME_LOWER",(1,3,2))
    lax.reduce_window({X}.astype("int32"),0,lax.bitwise_or,(1,1,2))
    lax.reduce_window({X}.astype("int32"),-1,lax.bitwise_and,(1,1,2),(1,)*3,"SAME",(1,)*3,(1,)*3)
    lax.reduce_window({X}>9,False,lax.bitwise_or,(1,1,2),(1,)*3,"SAME",(1,)*3,(1,)*3)
    lax.reduce_window({X}.astype("int8"),np.int8(-128),lax.max,(1,1,3),(1,)*3,"SAME",(1,)*3,(1,)*3)
    lax.reduce_window({X}.astype("bfloat16"),0.,lax.add,(1,1,2))
    lax.reduce_window(c,0j,lax.add,(1,2))
    lax.reduce_window({X},5.,lax.max,(1,2,2),(1,)*3,"SAME",(1,)*3,(1,)*3)
    lax.reduce_window(({X},-{X}),(0.,1.),lambda a,b:(a[0]+b[0],a[1]*b[1]),(1,2,2))
    lax.reduce_window({X},0.,lax.add,(1,2))
    lax.reduce_window({X},0.,lax.add,(1,0,1))
    lax.reduce_window({X},0.,lax.add,(1,2,3),(0,1,1))
    lax.reduce_window({X},0.,lax.add,(1,2,3),None,"HALF")
    lax.reduce_window({X},(0.,0.),lax.add,(1,2,3))
    lax.reduce_window({X},jnp.zeros(2),lax.add,(1,2,3))
    """
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("expression", CASES)
def test_as_jax(expression):
    check(CASES, expression)


IMAGES = np.sin(np.arange(2 * 5 * 4 * 3, dtype=np.float32)).reshape(2, 5, 4, 3)
KERNEL = np.cos(np.arange(3 * 2 * 3 * 4, dtype=np.float32)).reshape(3, 2, 3, 4)
NHWC = ("NHWC", "HWIO", "NHWC")


def test_conv_transpose_is_the_transpose_of_a_convolution():
    def forward(x):
        return lax.conv_general_dilated(x, KERNEL, (2, 1), "SAME", dimension_numbers=NHWC)

    y, pull = weft.vjp(forward, np.zeros((2, 6, 4, 3), np.float32))
    ct = np.sin(np.arange(y.size, dtype=np.float32)).reshape(y.shape)
    back = lax.conv_transpose(ct, KERNEL, (2, 1), "SAME", transpose_kernel=True)
    np.testing.assert_allclose(back, pull(ct)[0], rtol=1e-5, atol=1e-5)


def test_second_derivative_of_a_network_with_pooling():
    def loss(w):
        h = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)
        pooled = lax.reduce_window(wnp.sin(h), -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        mean = lax.reduce_window(pooled**2, 0.0, lax.add, (1, 2, 1, 1), None, "VALID")
        return mean.sum()

    with weft.enable_x64(True):
        x, w = IMAGES.astype(np.float64), KERNEL.astype(np.float64)
        direction = np.sin(np.arange(w.size)).reshape(w.shape)
        _, curvature = weft.jvp(weft.grad(loss), (w,), (direction,))
        step = 1e-6
        near = weft.grad(loss)(w + step * direction) - weft.grad(loss)(w - step * direction)
        np.testing.assert_allclose(curvature, near / (2 * step), rtol=1e-5, atol=1e-5)
        hessian_product = weft.grad(lambda w: wnp.vdot(weft.grad(loss)(w), direction))(w)
        np.testing.assert_allclose(curvature, hessian_product, rtol=1e-9, atol=1e-9)


def test_maxima_of_dilated_windows_have_reverse_derivatives():
    x = np.sin(np.arange(8, dtype=np.float32))

    def picks(x):
        args = ((2,), (1,), ((0, 1),), (2,), (3,))
        return lax.reduce_window(x, -np.inf, lax.max, *args)

    gradient = weft.grad(lambda x: picks(x).sum())(x)
    jacobian = weft.jacfwd(picks)(x)
    np.testing.assert_array_equal(gradient, np.asarray(jacobian).sum(0))


NO_PAD = ((0, 0), (0, 0))
WINDOW = (1, 1, 2, 2)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: lax.conv(x, KERNEL, (1, 1), "SAME"), ShapeError, "features"),
        (lambda x: lax.conv(x, KERNEL[0], (1, 1), "SAME"), ShapeError, "one rank"),
        (lambda x: lax.conv(x, x.astype("int32"), (1, 1), "SAME"), DTypeError, "one dtype"),
        (lambda x: lax.conv(x, x, (0, 1), "SAME"), AttributeValueError, "positive"),
        (lambda x: lax.conv(x, x, (1, -1), NO_PAD), AttributeValueError, "stride -1"),
        (lambda x: lax.conv(x, x, (1, 1), ((0, 0), (-9, 0))), ShapeError, "leaves a size"),
        (lambda x: lax.conv(x, x, (1, 1), ((0, 0), (2**62, 0))), ShapeError, r"2\*\*60"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2)), AttributeValueError, "4 integers"),
        (lambda x: lax.reduce_window(x, 0.0, lambda a, b: (a, b), WINDOW), TypeError, "returns"),
        (lambda x: lax.reduce_window(x, 1j, lax.add, WINDOW), DTypeError, "float32"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(IMAGES)
    assert "test_windows.py" in str(caught.value)


def test_a_network_maps_over_images_weights_and_both():
    def layer(x, w):
        y = lax.conv_general_dilated(
            x, w, (2, 1), "SAME", dimension_numbers=NHWC, batch_group_count=2
        )
        return lax.reduce_window(y, -np.inf, lax.max, (1, 2, 2, 1), None, "SAME")

    xs = np.stack([IMAGES, 2 - IMAGES], 3)
    ws = np.stack([KERNEL, KERNEL * 2], 1)
    for over_x, over_w in ((True, False), (False, True), (True, True)):
        x, w = xs if over_x else IMAGES, ws if over_w else KERNEL
        axes = (3 if over_x else None, 1 if over_w else None)
        mapped = weft.vmap(layer, in_axes=axes)(x, w)
        for i in range(2):
            one = layer(xs.take(i * over_x, 3), ws.take(i * over_w, 1))
            np.testing.assert_allclose(mapped[i], one, rtol=1e-5, atol=1e-5)


def test_axes_are_put_in_the_order_that_xla_has_kernels_for():
    x, w = np.ones((2, 3, 6, 5), np.float32), np.ones((4, 3, 3, 3), np.float32)
    conv = weft.jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME"))
    graph = conv.trace(x, w).graph
    in_order = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    assert in_order in weft.compiler.emit_stablehlo(graph)
    assert "[b, f, 0, 1]x[o, i, 0, 1]" in weft.compiler.emit_stablehlo(graph, platform="cuda")


def by_window(x, ct, size):
    """The transpose of a convolution by its window."""

    def conv(w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)

    return weft.vjp(conv, np.ones((*size, x.shape[3], ct.shape[3]), np.float32))[1](ct)[0]


def test_sums_over_many_pixels():
    rng = np.random.default_rng(0)
    x, ct = rng.standard_normal((2, 9, 32, 32, 32)).astype(np.float32)
    x[5], ct[7] = 3, 2
    small = slice(0, 2)
    few = weft.jit(lambda x, ct: by_window(x, ct, (3, 3)))
    assert "stablehlo.while" in few.lower(x, ct).as_text()  # they do not fit in caches
    assert "stablehlo.while" not in few.lower(x[small], ct[small]).as_text()
    rows = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))).astype(np.float64)
    expected = np.empty((3, 3, 32, 32))
    for i, j in np.ndindex(3, 3):
        seen = rows[:, i : i + 32, j : j + 32].reshape(-1, 32)
        expected[i, j] = seen.T @ ct.reshape(-1, 32)
    np.testing.assert_allclose(few(x, ct), expected, rtol=1e-4, atol=1e-2)

    one = weft.jit(lambda x, ct: by_window(x, ct, (1, 1)))
    assert "stablehlo.convolution" not in one.lower(x, ct).as_text()
    np.testing.assert_allclose(one(x, ct), expected[1:2, 1:2], rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("init", [-np.inf, np.float32(-np.inf), wnp.float32(-np.inf)])
def test_reductions_from_an_identity_on_are_named(init):
    def pooled(x):
        return lax.reduce_window(x, init, lax.max, (2, 2), (2, 2))

    assert "reduce_window_max" in str(weft.make_jaxpr(pooled)(np.ones((2, 2), np.float32)))
    first = weft.grad(lambda x: pooled(x).sum())(np.ones((2, 4), np.float32))
    np.testing.assert_array_equal(first, [[1, 0, 1, 0], [0, 0, 0, 0]])
    reduced = weft.make_jaxpr(lambda x: lax.reduce(x, init, lax.max, (0,)))(np.ones(3, np.float32))
    assert "reduce_max" in str(reduced)


@pytest.mark.parametrize(
    "shape, window, strides", [((6, 9), (2, 3), (2, 3)), ((7, 9), (3, 3), (1, 2))]
)
@pytest.mark.parametrize("compare", [lax.ge, lax.le])
def test_choices_of_windows_are_those_of_xla(shape, window, strides, compare):
    # Few different values, so that many are equal.
    x = np.random.default_rng(0).choice([0, -0.0, 1, 2, np.inf, -np.inf, np.nan], shape)
    x = x.astype(np.float32)
    attrs = {"window_dimensions": window, "window_strides": strides, "padding": NO_PAD}
    places = lax.reduce_window_shape_tuple(shape, window, strides, NO_PAD)
    source = np.sin(np.arange(np.prod(places), dtype=np.float32)).reshape(places)
    zero = np.float32(0)
    choose, add = (weft.jit(f).trace(zero, zero).graph for f in (compare, lax.add))
    by_graphs = _core.bind(
        "select_and_scatter", x, source, zero, select_jaxpr=choose, scatter_jaxpr=add, **attrs
    )
    named = _core.bind("select_and_scatter_add", source, x, select_prim=compare.__name__, **attrs)
    np.testing.assert_array_equal(named, by_graphs)


def test_many_windows_that_overlap():
    x = np.random.default_rng(0).standard_normal((3, 80, 80)).astype(np.float32)
    x[1, 40, 40] = np.nan
    padding = ((0, 0), (1, 1), (2, 0))
    around = np.pad(x, padding, constant_values=-np.inf)
    seen = np.lib.stride_tricks.sliding_window_view(around, (1, 3, 3)).max((-3, -2, -1))
    pooled = lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3), (1, 1, 1), padding)
    np.testing.assert_array_equal(pooled, seen)
    sums = lax.reduce_window(x, 0.0, lax.add, (1, 1, 2), (1,) * 3, window_dilation=(1, 1, 3))
    np.testing.assert_allclose(sums, x[:, :, :-3] + x[:, :, 3:], rtol=1e-6)
