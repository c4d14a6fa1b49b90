"""Element-wise functions and operators of `weft.numpy`.

Each line of the table must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does. See `oracle.py` for the operands.
"""

import itertools

import numpy as np
import pytest
from oracle import check, check_staged, lines, needs_jax, sampled

import weft
import weft.numpy as wnp

CASES = lines(
    """
    jnp.floor_divide(k-2,0)
    jnp.floor_divide(u8,jnp.uint8(0))
    jnp.heaviside(wv,0.5)
    jnp.heaviside(0.0,wv)
    jnp.isfinite(1j)
    jnp.isreal(wv)
    jnp.iscomplex(1.0)
    jnp.int32(np.nan)
    jnp.int32(np.inf)
    jnp.float32(1j)
    jnp.array([1j],dtype=float)
    jnp.array([1.0,np.nan],dtype=int)
    jnp.full((2,),1j,dtype=float)
    jnp.full((2,),np.nan,dtype=int)
    jnp.full_like(wv,1j)
    jnp.exp(h)
    jnp.exp(c)
    jnp.log(x)
    jnp.log1p(i8)
    jnp.sqrt(k)
    jnp.sqrt(c)
    jnp.cbrt(x)
    jnp.tan(c)
    jnp.arcsin(x/6)
    jnp.arccosh(x+1)
    jnp.arctan2(x,-1)
    jnp.arctan2(w,wi)
    c*(1-1j) < c[::-1]
    c >= 1j
    1 <= c[:,:2]*1j
    jnp.greater(c,jnp.array([jnp.nan,1+1j,complex(1,jnp.nan)]))
    jnp.less_equal(c,x)
    jnp.fmin(c,jnp.array([jnp.nan,1+1j,complex(1,jnp.nan)]))
    jnp.heaviside(c,1)
    jnp.logaddexp(c,-3+3j)
    jnp.logaddexp2(3j*c,c)
    lax.lt(c,c)
    jnp.add(x,k)
    jnp.add(i8,u8)
    jnp.add(i8,300)
    jnp.add(h,x)
    jnp.add(h,2.5)
    jnp.add(k,2.5)
    jnp.add(b[:,None],k)
    jnp.add(x,jnp.ones(2))
    jnp.add(x,'a')
    jnp.add(x,None)
    jnp.add([1],x)
    jnp.add(np.arange(3),x)
    jnp.add(np.float64(2),h)
    jnp.add(np.arange(3.),h)
    jnp.subtract(c,x)
    jnp.multiply(wi,w)
    jnp.maximum(x,2)
    jnp.maximum(x,jnp.nan)
    jnp.minimum(i8,1.5)
    jnp.less(x,2)
    jnp.equal(x,k)
    jnp.not_equal(c,1)
    jnp.greater_equal(u8,1)
    jnp.logical_and(x,k)
    jnp.logical_xor(b,True)
    jnp.logical_not(x)
    jnp.bitwise_xor(i8,1)
    jnp.invert(b)
    jnp.invert(u8)
    ~k
    jnp.right_shift(i8-2,1)
    jnp.right_shift(u8,i8)
    jnp.bitwise_count(u8)
    jnp.bitwise_count(i8-2)
    jnp.abs(i8-2)
    jnp.abs(c)
    jnp.fabs(k)
    jnp.absolute(b)
    jnp.sign(c-2)
    jnp.sign(x-2)
    jnp.square(c)
    jnp.square(wi)
    jnp.positive(x)
    jnp.nextafter(x,1)
    jnp.floor(x/2)
    jnp.ceil(x/2)
    jnp.trunc(x/2-1)
    jnp.rint(x/2)
    jnp.round(x/4,1)
    jnp.round(h/4,300)
    jnp.isclose(random.key(0),random.key(0))
    jnp.round(-x*10,-1)
    jnp.round(jnp.array([0.5,1.5,2.5,-0.5]))
    jnp.floor(c)
    jnp.trunc(c)
    jnp.isfinite(jnp.array([1.,np.inf,np.nan]))
    jnp.isinf(jnp.array([1.,np.inf,-np.inf,np.nan]))
    jnp.isposinf(jnp.array([1.,np.inf,-np.inf,np.nan]))
    jnp.isneginf(jnp.array([1.,np.inf,-np.inf,np.nan]))
    jnp.isposinf(k)
    jnp.isposinf(c)
    jnp.isreal(c+1j)
    jnp.iscomplex(c+1j)
    jnp.isreal(x)
    jnp.angle(c+1j)
    jnp.angle(x-3)
    jnp.angle(h)
    jnp.angle(h[0])
    jnp.angle(k)
    jnp.angle(i8)
    jnp.real(c)
    jnp.imag(c+2j)
    jnp.imag(k)
    jnp.conj(c+1j)
    jnp.signbit(jnp.array([-0.,0.,-1.,np.nan]))
    jnp.signbit(h-2)
    jnp.signbit(i8-2)
    jnp.copysign(x,jnp.array([-0.,0.,-1.]))
    jnp.frexp(h)
    jnp.frexp(jnp.array([2e-38,-3e38,np.nan,-np.inf,0.1]))
    jnp.ldexp(jnp.array([1.,0.75,-3.]),jnp.array([-3,100,0]))
    jnp.ldexp(x,x)
    jnp.modf(x/4-1)
    jnp.modf(n)
    jnp.heaviside(x-2,w)
    jnp.heaviside(jnp.nan,0.5)
    jnp.sinc(x/3)
    jnp.hypot(x,k)
    jnp.hypot(jnp.inf,jnp.nan)
    jnp.logaddexp(x,k)
    jnp.logaddexp(jnp.array([-np.inf,np.inf,0.]),jnp.array([-np.inf,np.inf,np.nan]))
    jnp.logaddexp2(x,k)
    jnp.fmax(x,jnp.nan)
    jnp.fmin(jnp.nan,x)
    jnp.log2(x)
    jnp.log10(x)
    jnp.rad2deg(x)
    jnp.degrees(k)
    jnp.reciprocal(k)
    jnp.reciprocal(x)
    jnp.float_power(x,k)
    jnp.power(x,-2)
    jnp.power(x,2.)
    jnp.power(x,x)
    jnp.power(k,x)
    jnp.power(c,2)
    jnp.power(c,c)
    jnp.power(-x,k)
    jnp.power(i8-2,u8)
    jnp.power(u8,3)
    jnp.power(2,i8)
    jnp.power(k,jnp.array(2))
    jnp.power(wi[None],wi[None])
    jnp.power(b,wi[None])
    x**np.int32(2)
    x**jnp.int32(2)
    x**h
    h**2
    k**0
    b**0
    jnp.power(k,wi)
    jnp.floor_divide(x-3,2)
    jnp.floor_divide(k-3,2)
    jnp.floor_divide(k-3,-2)
    jnp.remainder(k-3,2)
    jnp.remainder(k-3,-2)
    jnp.remainder(x-3,2.5)
    jnp.remainder(x-3,-2.5)
    jnp.remainder(h-3,2)
    jnp.fmod(k-3,2)
    jnp.fmod(x-3,2.5)
    jnp.mod(u8,2)
    jnp.divmod(x-3,2)
    jnp.divmod(k-3,2)
    divmod(x-3,k+1)
    7//(k+1)
    7%(k+1)
    7.5//(k+1)
    -7//(i8+1)
    2-x
    2/x
    x.__rpow__(2)
    x@x.T
    x%2
    x//2
    -x
    abs(-x)
    +x
    x==k
    x!=1
    x<k
    x>>1
    k>>1
    k<<1
    k&1
    k|8
    k^3
    True&b
    jnp.float_power(h,2)
    jnp.spacing(jnp.array([1.,-1.,1e10]))
    jnp.spacing(jnp.array([0.,-0.,1e-38,-1e-33,1e-31,jnp.inf,jnp.nan]))
    jnp.where(x>2,x,-x)
    jnp.where(b[:,None],x,k)
    jnp.where(k%2,x,0)
    jnp.where(w,1,2)
    jnp.where(x>2,1j,x)
    jnp.where(b,i8[:2],u8[:2])
    jnp.where(b,x,1)
    jnp.where(True,1,2)
    jnp.select([x<1,x<3],[x,x*2],-1)
    jnp.select([x<1,x<3],[1,k])
    jnp.select([b],[1],2.5)
    jnp.select([b,b],[1])
    jnp.clip(x,1,3)
    jnp.clip(x,x[0],None)
    jnp.clip(k,None,2.5)
    jnp.clip(i8,0,1)
    x.clip(1,2)
    x.clip(max=2)
    jnp.isclose(x,x+1e-7)
    jnp.isclose(jnp.array([np.nan,np.inf,-np.inf]),jnp.array([np.nan,np.inf,np.inf]))
    jnp.isclose(jnp.array([np.nan,np.inf]),jnp.array([np.nan,1.]),equal_nan=True)
    jnp.isclose(x,k,rtol=0.5,atol=1)
    jnp.isclose(c,c+1e-9)
    jnp.isclose(h,h)
    jnp.allclose(x,x+1)
    jnp.allclose(x,x[:1])
    jnp.array_equal(jnp.array([np.nan]),jnp.array([np.nan]))
    jnp.array_equal(jnp.array([np.nan]),jnp.array([np.nan]),equal_nan=True)
    jnp.array_equiv(x[:1],x[0])
    jnp.array_equal([1,2],(1,2))
    jnp.array_equal([1,2],[1,2,3])
    jnp.array_equiv([1,2],[[1,2],[1,2]])
    jnp.nan_to_num(jnp.array([np.nan,np.inf,-np.inf,1.]),nan=2.,posinf=3.,neginf=-3.)
    jnp.nan_to_num(jnp.array([np.nan+1j,1-np.inf*1j]))
    jnp.nan_to_num(h)
    jnp.nan_to_num(b)
    jnp.deg2rad(180)
    jnp.positive(w)
    jnp.exp(jnp.bfloat16(1))
    jnp.add(jnp.bfloat16(1),jnp.float16(2))
    jnp.add(jnp.float8_e5m2(1),1)
    jnp.add(jnp.float8_e5m2(1),jnp.float8_e4m3fn(1))
    jnp.add(jnp.int4(3),jnp.int4(2))
    jnp.add(jnp.int4(3),1)
    jnp.add(jnp.uint8(255),jnp.int8(1))
    jnp.add(jnp.uint32(1),jnp.int32(-2))
    jnp.add(jnp.uint32(1),jnp.int8(-2))
    jnp.add(2**31,1)
    jnp.add(k,2**31)
    jnp.add(1,2)
    jnp.add(1,2.)
    jnp.add(True,1)
    jnp.add(1j,x)
    jnp.add(1j,k)
    jnp.sin(1)
    jnp.sin(True)
    jnp.exp(1j)
    jnp.sqrt(-1.)
    jnp.sign(-2)
    jnp.abs(-2.5)
    jnp.maximum(1,2.)
    jnp.square(3)
    jnp.sin(np.float32(1))
    jnp.sin(np.float64(1))
    jnp.add(np.int64(1),1)
    jnp.add(np.bool_(True),1)
    jnp.sin([1.0])
    jnp.sin('a')
    jnp.add(b,b)
    jnp.multiply(b,b)
    jnp.subtract(b,b)
    b+b
    b*b
    b-b
    -b
    jnp.negative(b)
    jnp.sign(b)
    jnp.square(b)
    jnp.maximum(b,b)
    jnp.abs(u8)
    jnp.sign(u8)
    jnp.negative(u8)
    jnp.exp(b)
    jnp.exp(i8)
    jnp.exp(w)
    jnp.exp(wi)
    jnp.floor(i8)
    jnp.floor(b)
    jnp.ceil(wi)
    jnp.floor(w)
    jnp.trunc(b)
    jnp.rint(k)
    jnp.round(b)
    jnp.isnan(b)
    jnp.isfinite(b)
    jnp.isinf(k)
    jnp.isfinite(c)
    jnp.isnan(c)
    jnp.isinf(c)
    b/b
    k/k
    i8/i8
    b//b
    b%b
    b**b
    b**2
    k**2
    k**2.5
    k**-1
    2**k
    2.0**k
    k**k
    i8**2
    i8**i8
    x**k
    x**b
    x**True
    w**2
    w**2.
    wi**2
    jnp.power(2,3)
    jnp.power(2.,3)
    jnp.power(b,2)
    jnp.float_power(k,2)
    jnp.float_power(2,3)
    jnp.reciprocal(w)
    jnp.left_shift(b,b)
    jnp.left_shift(i8,1)
    jnp.right_shift(u8,1)
    jnp.right_shift(b,1)
    jnp.bitwise_and(b,k[:,:2])
    jnp.bitwise_not(x)
    jnp.logaddexp(k,k)
    jnp.logaddexp(w,w)
    jnp.hypot(k,k)
    jnp.hypot(c,c)
    jnp.arctan2(k,k)
    jnp.where(b,1,2)
    jnp.where(b,1,2.)
    jnp.where(b,w,1)
    jnp.where(True,x,k)
    jnp.where(x,1,0)
    jnp.where([True,False],1,0)
    jnp.where(b,x)
    jnp.clip(k,0.5,3)
    jnp.clip(k,1)
    jnp.clip(x,0,wi)
    jnp.clip(w,0,1)
    jnp.clip(c,0,1)
    jnp.clip(x)
    jnp.clip(u8,1,200)
    jnp.isclose(k,k)
    jnp.isclose(b,b)
    jnp.isclose(1,1+1e-9)
    jnp.nan_to_num(k)
    jnp.nan_to_num(jnp.array([np.nan,np.inf,-np.inf]))
    jnp.nan_to_num(w)
    jnp.real(w)
    jnp.imag(w)
    jnp.conj(w)
    jnp.angle(k)
    jnp.angle(-1.0)
    jnp.angle(c,deg=True)
    jnp.fmod(k,2)
    jnp.fmod(k,0)
    k%0
    x//0
    x%0
    jnp.floor_divide(-7,2)
    jnp.floor_divide(-7.,2.)
    jnp.floor_divide(u8,2)
    jnp.floor_divide(c,c)
    jnp.frexp(jnp.array([1.5,-0.25,np.inf,0.]))
    jnp.frexp(k)
    jnp.ldexp(x,2)
    jnp.ldexp(k,2)
    jnp.ldexp(1.,np.int32(3))
    jnp.copysign(k,-1)
    jnp.signbit(k)
    jnp.signbit(u8)
    jnp.signbit(b)
    jnp.heaviside(k,0.5)
    jnp.sinc(k)
    jnp.fmax(k,x)
    jnp.log2(k)
    jnp.deg2rad(wi)
    jnp.round(2.567,2)
    jnp.round(h,1)
    jnp.round(c,1)
    jnp.round(123.,-1)
    jnp.array_equal(k,k)
    jnp.array_equal(k,x[:1])
    jnp.array_equiv(k,k[0])
    jnp.allclose(k,k)
    jnp.select([b,~b],[1,2.])
    jnp.select([],[])
    jnp.astype(wi,'int32')
    wi.astype('int32')
    wi.astype(int)
    k.astype(None)
    jnp.astype(c,'float32')
    jnp.result_type(w)
    jnp.positive(b)
    jnp.spacing(x)
    jnp.ceil(h).dtype
    jnp.exp2(i8)
    """
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check(CASES, case)


@pytest.mark.parametrize("case", sampled(CASES, 3))
def test_staged(case):
    check_staged(case)


SAMPLE = sampled(CASES, 2)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", SAMPLE)
def test_as_jax_x64(case):
    check(SAMPLE, case, x64=True)


@pytest.mark.parametrize(
    "dtype", [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
def test_integer_powers_wrap(dtype):
    info = np.iinfo(dtype)
    bases = [*range(8), 15, 16, 17, 100, info.max - 1, info.max]
    bases += [-1, -2, -3, -7, info.min, info.min + 1] if info.min < 0 else []
    exponents = [*range(70), 100, 127, info.max - 1, info.max]
    base, exponent = np.meshgrid(
        np.array(bases, dtype), np.array([e for e in exponents if e <= info.max], dtype)
    )
    with weft.enable_x64(True), np.errstate(all="ignore"):
        want = np.power(base, exponent)
        powers = wnp.power(base, exponent)
        assert powers.dtype == dtype
        np.testing.assert_array_equal(powers, want)
        for row in (0, 1, 2, 17, 40, 69, -1):
            array = wnp.asarray(base[row])
            np.testing.assert_array_equal(array ** exponent[row, 0], want[row])
            if exponent[row, 0] < 2**63:
                np.testing.assert_array_equal(array ** int(exponent[row, 0]), want[row])
        np.testing.assert_array_equal(weft.jit(lambda x, y: x**y)(base, exponent), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_small_integer_power(dtype):
    info = np.iinfo(dtype)
    base, exponent = np.meshgrid(
        np.arange(info.min, info.max + 1).astype(dtype), np.arange(info.max + 1).astype(dtype)
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wnp.power(base, exponent), np.power(base, exponent))


def test_negative_powers_of_integers_round_to_zero():
    base = np.array([0, 1, -1, -1, 2, -3, 3])
    exponent = np.array([-1, -5, -4, -3, -1, -2, 0])
    np.testing.assert_array_equal(wnp.power(base, exponent), [0, 1, 1, -1, 0, 0, 1])


# Complex numbers with zero, infinite, huge and tiny parts.


def _complex_table(dtype):
    wide = np.dtype(dtype) == np.complex128
    huge, tiny = (1e300, 1e-300) if wide else (1e30, 1e-30)
    parts = [0.0, 1.0, 2.5, 100.0, huge, np.inf]
    parts = [*parts, *(-x for x in parts), np.nan, tiny]
    return np.array([complex(x, y) for x in parts for y in parts], dtype)


def _as_numpy(name, z):
    with np.errstate(all="ignore"):
        if name in ("log2", "log10"):
            logarithm = np.log(z)
            factor = z.real.dtype.type(1 / np.log(int(name[3:])))
            return (logarithm.view(z.real.dtype) * factor).view(z.dtype)
        name = name if hasattr(np, name) else f"arc{name[1:]}"
        return getattr(np, name)(z)


def _check_parts(got, want, z):
    """NaN where NumPy has NaN, equal infinities and numbers, zeros of the same sign; the sign of
    an infinity beside a NaN, and of a zero of an infinite number, is open. XLA has no subnormals.
    """
    tiny = np.finfo(want.dtype).tiny
    for x, y in ((got.real, want.real), (got.imag, want.imag)):
        open_sign = np.isnan(want) & np.isinf(y)
        np.testing.assert_allclose(
            np.where(open_sign, abs(x), x),
            np.where(open_sign, abs(y), y),
            rtol=2e-5 if want.itemsize <= 8 else 1e-12,
            atol=tiny,
        )
        zero = np.isfinite(z) & (abs(x) < tiny) & (abs(y) < tiny)
        np.testing.assert_array_equal(np.signbit(x[zero]), np.signbit(y[zero]))


_BY_PARTS = ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "log", "sqrt", "abs"]


@pytest.mark.parametrize("name", [*_BY_PARTS, "log2", "log10"])
def test_complex_special_values(name):
    z = _complex_table(np.complex64)
    _check_parts(np.asarray(getattr(wnp, name)(z)), _as_numpy(name, z), z)


def test_sign_of_negative_zero_is_zero():
    for zero in (np.float32(-0.0), np.complex64(complex(-0.0, -0.0)), -0.0):
        parts = np.asarray(wnp.sign(zero)).reshape(1).view(np.float32)
        assert (parts == 0).all() and not np.signbit(parts).any()
        assert np.signbit(np.asarray(weft.lax.sign(zero)).real)
    assert wnp.sign(-0.0).weak_type and wnp.sign(wnp.int8(-3)).dtype == np.int8
    np.testing.assert_array_equal(wnp.sign(np.float16([np.nan, -2, 3])), [np.nan, -1, 1])


def test_complex_special_values_in_64_bits():
    z = _complex_table(np.complex128)
    with weft.enable_x64(True):
        every = weft.jit(lambda z: {name: getattr(wnp, name)(z) for name in _BY_PARTS})(z)
    for name, got in every.items():
        _check_parts(np.asarray(got), _as_numpy(name, z), z)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_complex_special_values_of_inverse_functions(name):
    """XLA's (and so jax's) poles are a little wide."""
    z = _complex_table(np.complex64)
    z = z[abs(z) != 1]
    _check_parts(np.asarray(getattr(wnp, name)(z)), _as_numpy(name, z), z)


def test_complex_powers():
    z = _complex_table(np.complex64)
    # The difference of two squares out of range is what the processor makes of it.
    z = z[(np.abs(z.real) < 1e19) | (np.abs(z.imag) < 1e19)]
    with np.errstate(all="ignore"):
        _check_parts(np.asarray(wnp.asarray(z) ** 2), z * z, z)
    zeros = np.array([complex(x, y) for x in (0.0, -0.0) for y in (0.0, -0.0)], np.complex64)
    for exponent, want in ((0.5, 0), (2 + 1j, 0), (0.0, 1)):
        assert (np.asarray(wnp.power(zeros, np.complex64(exponent))) == want).all()


def test_products_of_large_and_small_factors():
    """cosh(100) is beyond the range of float32; what it is multiplied by brings it back."""
    z = np.array([1e-30 + 100j, 1e-37 - 170j, 100 + 1e-30j, -170 + 1e-37j], np.complex64)
    with np.errstate(all="ignore"):
        for name in ("sin", "cos", "sinh", "cosh", "exp"):
            want = getattr(np, name)(z.astype(complex)).astype(np.complex64)
            _check_parts(np.asarray(getattr(wnp, name)(z)), want, z)


def test_more_axes_than_numpy_has():
    x = wnp.ones((1,) * 40)
    assert wnp.array_equiv(x, wnp.ones(3)) and not wnp.array_equiv(x, 2.0)
    assert wnp.ones(3)[wnp.zeros((1,) * 40, int)].shape == (1,) * 40
    assert weft.random.truncated_normal(weft.random.key(0), -x, 1.0).shape == (1,) * 40
    with pytest.raises(weft.errors.ShapeError, match=r"\[truncated_normal\].*got \(3,\), \(2,\)"):
        weft.random.truncated_normal(weft.random.key(0), wnp.zeros(3), wnp.ones(2))


def test_weak_bools():
    def masks(x):
        mask = x < 1.5
        weak = [mask, ~mask, mask[0], mask.reshape(3, 1), wnp.isfinite(wnp.asarray(2.0)), mask * 2]
        strong = [
            mask & mask,
            mask.any(),
            wnp.where(mask, True, False),
            wnp.isinf(2.0),
            mask + mask,
        ]
        return weak, strong

    for run in (masks, weft.jit(masks)):
        weak, strong = run(wnp.arange(3))
        assert all(each.weak_type for each in weak)
        assert not any(each.weak_type for each in strong)


def test_bools_beside_integers():
    assert wnp.gcd(wnp.array([True, False]), wnp.array([6, 4])).tolist() == [1, 4]
    assert wnp.lcm(True, 3).tolist() == 3
    assert wnp.ldexp(1.5, wnp.array([True, False])).tolist() == [3.0, 1.5]
    assert wnp.power(wnp.array([2.0, 3.0]), True).tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="gcd"):
        wnp.gcd(True, False)


def test_weak_types_of_powers():
    assert wnp.power(wnp.asarray(3), wnp.asarray(3)).weak_type
    assert not wnp.power(1 + 2j, wnp.arange(3)).weak_type
    with weft.enable_x64(True):
        got = wnp.power(wnp.arange(3, dtype="int8"), wnp.arange(3, dtype="uint64"))
        assert got.dtype == "float64" and got.tolist() == [1.0, 1.0, 4.0]


def test_flat_gradients():
    def flat(x):
        return wnp.floor_divide(x, wnp.array([2.0, 0.0, 1.0])).sum() + wnp.i0(x[:1]).sum()

    assert weft.jit(weft.grad(flat))(wnp.array([0.0, 1.0, 3.0])).tolist() == [0.0, 0.0, 0.0]


def test_subnormal_angles_count_as_zero():
    assert wnp.tanh(np.complex64(complex(np.inf, 1e-45))) == 1


@pytest.mark.parametrize("angle", [0.0, -0.0, 0.5, 2.0, -2.0, 30.0, 1e30, np.inf, np.nan])
def test_tanh_of_infinities_has_the_sign_of_the_angle(angle):
    for size in (np.inf, -np.inf):
        found = complex(wnp.tanh(np.complex64(complex(size, angle))))
        assert found.real == np.sign(size) or not np.isfinite(angle)
        if np.isfinite(angle):
            assert found.imag == 0 and np.signbit(found.imag) == np.signbit(angle)


def test_derivatives_where_formulas_divide_by_zero():
    np.testing.assert_allclose(weft.grad(weft.grad(wnp.sinc))(0.0), -(np.pi**2) / 3, rtol=1e-6)
    mantissa = weft.jit(weft.grad(lambda x: wnp.frexp(x)[0]))
    assert mantissa(6.0) == 0.125
    assert weft.grad(wnp.arccosh)(-2.0) == weft.grad(wnp.arccosh)(2.0)
    nanvar = weft.grad(wnp.nanvar)(np.array([1, np.nan, 1, -2], np.float32))
    np.testing.assert_allclose(nanvar, [2 / 3, 0, 2 / 3, -4 / 3], rtol=1e-6)
    with pytest.raises(NotImplementedError, match="nextafter"):
        weft.grad(wnp.nextafter)(1.0, 2.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_spacing_is_that_of_numpy(dtype):
    """Also where it is subnormal, which a difference loses on CPU, and where it overflows."""
    info = np.finfo(dtype)
    with weft.enable_x64(True):
        # numpy.spacing of float16 is wrong for negative powers of two.
        powers = 2.0 ** np.arange(info.minexp - info.nmant, info.maxexp)
        x = np.concatenate([powers, 1.5 * powers, [0, info.max, np.inf, np.nan]]).astype(dtype)
        with np.errstate(all="ignore"):
            want = np.spacing(x)
        made = np.asarray(wnp.spacing(x))
        assert made.dtype == dtype
        np.testing.assert_array_equal(
            made.view(f"u{info.bits // 8}")[:-2], want.view(f"u{info.bits // 8}")[:-2]
        )
        assert np.isnan(made[-2:]).all()
        finite = x[:-2]
        np.testing.assert_array_equal(np.asarray(wnp.spacing(-finite)), -want[:-2])


@pytest.mark.parametrize("x, y", [(1.0, 1.0), (-3.0, 3.0), (2.0, -2.0), (-0.25, -0.25), (3.0, 2.0)])
def test_second_derivatives_of_hypot(x, y):
    """Also where both parts are equally long: no part is the greater one there."""
    want = np.array([[y * y, -x * y], [-x * y, x * x]]) / np.hypot(x, y) ** 3
    point = np.array([x, y], np.float32)
    found = [
        weft.hessian(lambda v: wnp.hypot(*v))(point),
        weft.jit(weft.jacrev(weft.jacrev(lambda v: wnp.hypot(*v))))(point),
    ]
    for hessian in found:
        np.testing.assert_allclose(hessian, want, rtol=1e-5, atol=1e-6)


def test_second_derivatives_of_a_power_of_zero():
    """At exponent 0 the slope by x is 0, and its own slope by the exponent is 1/x."""
    log = np.log(4)
    for outer, inner in itertools.product((weft.jacfwd, weft.jacrev), repeat=2):
        second = outer(inner(lambda v: v[0] ** v[1]))(wnp.array([4.0, 0.0]))
        np.testing.assert_allclose(second, [[0, 0.25], [0.25, log * log]], rtol=1e-6)
    for x in (0.0, -0.0, np.inf, np.nan, 1e-40):
        assert weft.grad(wnp.power)(x, 0.0) == 0


def test_astype_copies_where_that_is_asked():
    x = wnp.arange(5)
    for copied in (x.astype("int32", copy=True), wnp.astype(x, "int32", copy=True)):
        copied.delete()
    assert not x.is_deleted()


def test_rounding_to_places_beyond_the_dtype():
    for dtype in ("float16", "bfloat16", "float32"):
        x = wnp.array([0.93], dtype)
        for places in (39, 40, 1000):
            assert wnp.round(x, places) == x and wnp.round(x, -places) == 0


def test_complex_bits_of_one_number():
    with weft.enable_x64(True):
        for dtype in ("float64", "int64", "uint64"):
            x = np.complex64(1 + 2j)
            assert wnp.asarray(x).view(dtype) == x.view(dtype)
            assert wnp.asarray(x.view(dtype)).view("complex64") == x


def test_hypot_of_nan_and_zero():
    for call in (wnp.hypot, weft.jit(wnp.hypot)):
        for x, y in [(np.nan, 0.0), (0.0, np.nan), (np.nan, 2.0), (2.0, np.nan)]:
            assert np.isnan(call(x, y))
        assert call(0.0, -0.0) == 0
        assert call(np.nan, -np.inf) == np.inf
    assert [weft.grad(wnp.hypot, i)(0.0, 0.0) for i in (0, 1)] == [0.5, 0.5]


@pytest.mark.parametrize("x", [-2.0, -0.5, 0.0, 2.0, 3.0])
def test_second_derivative_of_squareplus(x):
    second = weft.grad(weft.grad(weft.nn.squareplus))(x)
    np.testing.assert_allclose(second, 2 / (x * x + 4) ** 1.5, rtol=1e-5)
