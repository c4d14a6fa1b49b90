"""Running sums, polynomials, convolutions, windows, integers, index tricks, vectorize, files.

Each line of the table must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does. See `oracle.py` for the operands.
"""

import io

import numpy as np
import pytest
from oracle import check, check_staged, lines, needs_jax, sampled

import weft
import weft.numpy as wnp
import weft.test_util
from weft.errors import AttributeValueError, DTypeError, OperandError, ShapeError

TABLE = lines(
    """
    jnp.cumsum(2.0,axis=-1)
    jnp.cumsum(w,axis=-1)
    jnp.cumsum(x,axis=[0])
    lax.cumsum(x,axis=-1)
    lax.cummax(b)
    jnp.diff(x,n=0,prepend=0)
    jnp.roll(x,jnp.array([1,2]),axis=(0,1))
    jnp.hstack(x[0,0])
    jnp.cumsum(x)
    jnp.cumsum(k,axis=1)
    jnp.cumsum(i8)
    jnp.cumsum(b)
    jnp.cumsum(h.astype('float16'),axis=0)
    jnp.cumsum(jnp.array([1,2,3],dtype='bfloat16'))
    jnp.cumsum(c,axis=-1)
    jnp.cumsum(k,dtype='float16')
    jnp.cumsum(x,dtype=int)
    jnp.cumsum(x,axis=2)
    jnp.cumsum(w)
    jnp.cumsum(jnp.uint8(3))
    jnp.cumsum(jnp.arange(3,dtype='uint8'))
    jnp.cumsum(x,out=x)
    jnp.cumsum(x[:0])
    jnp.cumsum(jnp.array([1,jnp.nan,2]))
    jnp.cumsum([1,2])
    jnp.cumsum(k,dtype=bool)
    jnp.cumsum(b,dtype=bool)
    jnp.cumsum(3)
    jnp.cumsum(wv)
    jnp.cumprod(x+1)
    jnp.cumprod(i8+1)
    jnp.cumprod(b)
    jnp.cumprod(k,axis=0,dtype='float32')
    jnp.cumprod(x,axis=(0,))
    jnp.cumulative_sum(x[0])
    jnp.cumulative_sum(x)
    jnp.cumulative_sum(x,axis=1,include_initial=True)
    jnp.cumulative_sum(k,axis=0,dtype='int8')
    jnp.cumulative_sum(i8,include_initial=True)
    jnp.cumulative_sum(w)
    jnp.cumulative_sum(b)
    jnp.cumulative_prod(x[0]+1)
    jnp.cumulative_prod(x,axis=-1,include_initial=True)
    jnp.cumulative_prod(i8,dtype='float32')
    jnp.cumsum(wi,axis=0)
    jnp.cumsum(np.int32(3),axis=0)
    jnp.cumsum(True,axis=0)
    jnp.nancumsum(jnp.array([1,jnp.nan,2]))
    jnp.nancumsum(k)
    jnp.nancumsum(jnp.array([[1,jnp.nan],[2,3.]]),axis=0)
    jnp.nancumprod(jnp.array([1,jnp.nan,2]))
    jnp.nancumprod(i8+1,dtype='float32')
    jnp.nancumprod(jnp.array([1,jnp.nan,2])*(1+1j))
    jnp.poly(x[0])
    jnp.poly(jnp.array([1,2,3]))
    jnp.poly(m)
    jnp.poly(c[0]+1j)
    jnp.poly(w)
    jnp.poly(x)
    jnp.poly(x[0,:0])
    jnp.poly(mi)
    jnp.poly(jnp.array([1+1j,1-1j]))
    jnp.polyadd(x[0],x[1,:2])
    jnp.polyadd(k[0],x[1])
    jnp.polyadd(w,x[0])
    jnp.polyadd(x,x)
    jnp.polyadd(x[:1],x)
    jnp.polysub(x,x[:1])
    jnp.polyadd(x,x[0])
    jnp.polyadd(x,x[:,:2])
    jnp.polyadd(x[:,:2],x[0,:1])
    jnp.polysub(x[0,:1],x)
    jnp.polysub(k[0],k[1])
    jnp.polysub(x[0],x[1,:1])
    jnp.polyder(x[1])
    jnp.polyder(x[1],0)
    jnp.polyder(x[1],2)
    jnp.polyder(x[1],5)
    jnp.polyder(k[1])
    jnp.polyder(x[1],-1)
    jnp.polyint(x[1])
    jnp.polyint(x[1],0)
    jnp.polyint(x[1],2)
    jnp.polyint(k[1])
    jnp.polyint(x[1],2,k=3)
    jnp.polyint(x[1],2,k=jnp.array([3.,4.]))
    jnp.polyint(x[1],1,k=jnp.array([3.,4.]))
    jnp.polyint(x[1],-1)
    jnp.polyint(x[1],2,k=[3.,4.])
    jnp.polymul(x[0],x[1])
    jnp.polymul(k[0],x[1])
    jnp.polymul(x[0],x[1],trim_leading_zeros=True)
    jnp.polymul(x[0],x[0,:1],trim_leading_zeros=True)
    jnp.polymul(n[3:5],x[0],trim_leading_zeros=True)
    jnp.polymul(k[0],k[1])
    jnp.polydiv(x[1],x[1,:2])
    jnp.polydiv(k[1],k[1,:2])
    jnp.polydiv(x[1],x[1,:2],trim_leading_zeros=True)
    jnp.polydiv(x[0]/9000,x[1],trim_leading_zeros=True)
    jnp.polydiv(h[0]/50,h[1]*n[0],trim_leading_zeros=True)
    jnp.polydiv(x[1,:1],x[1])
    jnp.polydiv(x[1],x[1,:1])
    jnp.polyfit(x[0],x[1],1)
    jnp.polyfit(x[0],x[1]**2,2)
    jnp.polyfit(x[0],x[1]**2,1,full=True)
    jnp.polyfit(x[0],x[1]**2,1,cov=True)
    jnp.polyfit(x[0],x[1]**2,1,cov='unscaled')
    jnp.polyfit(jnp.arange(6.),jnp.arange(6.)**2,1,cov=True)
    jnp.polyfit(jnp.arange(6.),jnp.arange(6.)**2,1,cov='unscaled')
    jnp.polyfit(x[0],x[1]**2,1,w=x[1])
    jnp.polyfit(x[0],m,1)
    jnp.polyfit(x[0],m,1,full=True)
    jnp.polyfit(k[0],k[1],1)
    jnp.polyfit(x[0],x[1],-1)
    jnp.polyfit(x,x[1],1)
    jnp.polyfit(x[0],x[1,:2],1)
    jnp.polyfit(x[0],x[1],1,w=x)
    jnp.polyfit(x[0],x[1],1,w=x[0,:2])
    jnp.polyfit(x[0,:0],x[1,:0],1)
    jnp.polyfit(x[0],x[1],1,rcond=0.1)
    jnp.roots(jnp.array([1.,-3.,2.]))
    jnp.roots(jnp.asarray(1.5))
    jnp.roots(x[0,:1])
    jnp.roots(jnp.array([0.,1.,-3.,2.]))
    jnp.roots(jnp.array([1.,-3.,2.,0.,0.]))
    jnp.roots(jnp.array([0,0,2,-6,4]))
    jnp.roots(jnp.array([1.,0.,1.]))
    jnp.roots(jnp.array([1.,-3.,2.,0.,0.]),strip_zeros=False)
    jnp.roots(jnp.array([0.,1.,-3.,2.]),strip_zeros=False)
    jnp.roots(jnp.array([5.]))
    jnp.roots(jnp.array([0.,0.]))
    jnp.roots(jnp.array([]))
    jnp.roots(w)
    jnp.roots(x)
    jnp.convolve(x[0],x[1])
    jnp.convolve(x[0],x[1],'same')
    jnp.convolve(x[0],x[1,:2],'valid')
    jnp.convolve(x[0,:2],x[1],'same')
    jnp.convolve(x[0,:2],x[1],'valid')
    jnp.convolve(k[0],k[1])
    jnp.convolve(k[0],x[1])
    jnp.convolve(c[0]+1j,c[1])
    jnp.convolve(x,x)
    jnp.convolve(x[0],x[1,:0])
    jnp.convolve(x[0],x[1],'bad')
    jnp.convolve(b,b)
    jnp.convolve(w,w)
    jnp.convolve(h[0],h[1])
    jnp.correlate(x[0],x[1])
    jnp.correlate(x[0],x[1],'full')
    jnp.correlate(x[0],x[1,:2],'same')
    jnp.correlate(x[0,:2],x[1],'same')
    jnp.correlate(x[0,:2],x[1],'full')
    jnp.correlate(x[0,:2],x[1],'valid')
    jnp.correlate(c[0]+1j,c[1]-2j,'full')
    jnp.correlate(k[0],k[1],'full')
    jnp.correlate(x[0],x[1,:0])
    jnp.correlate(i8,i8,'full')
    jnp.bartlett(5)
    jnp.bartlett(1)
    jnp.bartlett(0)
    jnp.bartlett(-1)
    jnp.bartlett(6)
    jnp.blackman(5)
    jnp.blackman(1)
    jnp.blackman(0)
    jnp.hamming(6)
    jnp.hamming(1)
    jnp.hanning(6)
    jnp.hanning(1)
    jnp.hanning(0)
    jnp.kaiser(5,14)
    jnp.kaiser(5,14.)
    jnp.kaiser(1,2)
    jnp.kaiser(4,w)
    jnp.kaiser(4,jnp.int32(3))
    jnp.i0(x)
    jnp.i0(k)
    jnp.i0(-x)
    jnp.i0(w)
    jnp.i0(c)
    jnp.i0(h.astype('float16'))
    jnp.i0(2.)
    jnp.gcd(k,4)
    jnp.gcd(b,0)
    jnp.lcm(b,3)
    jnp.gcd(k,i8)
    jnp.gcd(-12,18)
    jnp.gcd(0,0)
    jnp.gcd(x,2)
    jnp.gcd(jnp.array([12,18,0]),jnp.array([8,27,5]))
    jnp.gcd(jnp.uint8(12),jnp.uint8(18))
    jnp.lcm(k,4)
    jnp.lcm(-4,6)
    jnp.lcm(0,5)
    jnp.lcm(x,2)
    jnp.lcm(jnp.array([12,18,0]),jnp.array([8,27,5]))
    jnp.gcd(b,b)
    jnp.packbits(b)
    jnp.packbits(jnp.array([1,0,1,1,0,0,1,0,1]))
    jnp.packbits(jnp.array([1,0,1,1,0,0,1,0,1]),bitorder='little')
    jnp.packbits(k>2,axis=1)
    jnp.packbits(k,axis=0)
    jnp.packbits(x)
    jnp.packbits(b,bitorder='bad')
    jnp.packbits(k)
    jnp.packbits(jnp.array(True))
    jnp.packbits(b[:0])
    jnp.unpackbits(jnp.array([3,130],dtype='uint8'))
    jnp.unpackbits(jnp.array([3,130],dtype='uint8'),bitorder='little')
    jnp.unpackbits(jnp.array([3,130],dtype='uint8'),count=10)
    jnp.unpackbits(jnp.array([3,130],dtype='uint8'),count=-3)
    jnp.unpackbits(jnp.array([3,130],dtype='uint8'),count=20)
    jnp.unpackbits(jnp.array([[3],[130]],dtype='uint8'),axis=1)
    jnp.unpackbits(jnp.array([[3],[130]],dtype='uint8'),axis=0,count=9)
    jnp.unpackbits(jnp.array([[3],[130]],dtype='uint8'))
    jnp.unpackbits(k)
    jnp.unpackbits(jnp.uint8(3))
    jnp.ix_(jnp.array([0,1]),jnp.array([2,3,4]))
    jnp.ix_(jnp.array([True,False]),jnp.array([2,3,4]))
    jnp.ix_(x)
    jnp.ix_(jnp.array([]),jnp.array([1]))
    jnp.ix_([0,1])
    jnp.ix_(x[0],k[0])
    jnp.ix_()
    jnp.r_[1:4]
    jnp.r_['r',[1,2,3],[4,5,6]]
    jnp.r_['c',[1,2,3],4.]
    jnp.r_['r',x,x]
    jnp.r_['c',x,x[0]]
    jnp.c_['r',[1,2],[3,4]]
    jnp.c_['c',[1,2],[3,4]]
    jnp.r_[1:4,0,5]
    jnp.r_[x,x]
    jnp.r_[-1:1:5j]
    jnp.r_[x[0],3.,[1,2]]
    jnp.r_['0,2',x[0],x[1]]
    jnp.r_['1',x,x]
    jnp.r_['0,2,0',x[0],x[1]]
    jnp.r_['1,2,0',x[0],x[1]]
    jnp.r_['r',x[0]]
    jnp.r_['bad',x[0]]
    jnp.r_['0,3,1',x[0],x[1]]
    jnp.r_[1:10:3]
    jnp.r_[:4]
    jnp.r_[5]
    jnp.r_[()]
    jnp.r_[1:4:0.5]
    jnp.r_['-1',x,x]
    jnp.c_[x[0],x[1]]
    jnp.c_[x,x]
    jnp.c_[1:4,5:8]
    jnp.c_[x[0]]
    jnp.c_['r',x[0]]
    jnp.c_[jnp.array([[1,2,3]]),0,0,jnp.array([[4,5,6]])]
    jnp.c_['0,2',x[0],x[1]]
    jnp.mgrid[0:3]
    jnp.mgrid[:]
    jnp.mgrid[()]
    jnp.mgrid[3:,:2]
    list(jnp.ogrid[::2,:2])
    jnp.r_[:,3:]
    jnp.c_[3:]
    jnp.mgrid[0:3,1:5:2]
    jnp.mgrid[-1:1:5j]
    jnp.mgrid[0:1:3j,0:2]
    jnp.mgrid[0:3.5]
    jnp.mgrid[:3,:2]
    jnp.ogrid[0:3]
    list(jnp.ogrid[0:3,1:5:2])
    list(jnp.ogrid[0:1:3j,0:2])
    jnp.ogrid[-1:1:5j]
    jnp.s_[1:3,...]
    jnp.index_exp[1:3]
    jnp.mgrid[3]
    jnp.fromstring('1 2 3',sep=' ',dtype=int)
    jnp.fromstring('1,2.5',sep=',')
    jnp.fromstring('1 2',dtype='int16')
    jnp.apply_along_axis(jnp.sum,1,x)
    jnp.apply_along_axis(lambda v: v*2,0,x)
    jnp.apply_along_axis(lambda v: jnp.outer(v,v),1,x)
    jnp.apply_along_axis(lambda v,s: v*s,1,x,3.)
    jnp.apply_along_axis(lambda v,s=1: v*s,1,x,s=3.)
    jnp.apply_along_axis(jnp.sum,1,u)
    jnp.apply_along_axis(lambda v: jnp.stack([v,v,v]).T,1,u)
    jnp.apply_along_axis(jnp.sum,3,x)
    jnp.apply_along_axis(jnp.sum,0,w)
    jnp.apply_along_axis(jnp.sum,0,[1.,2.])
    jnp.apply_over_axes(jnp.sum,u,(0,2))
    jnp.apply_over_axes(jnp.sum,u,1)
    jnp.apply_over_axes(jnp.sum,u,(0,-1))
    jnp.apply_over_axes(lambda a,i: a,u,(0,-1))
    jnp.apply_over_axes(lambda a,i: a.sum(),u,(0,-1))
    jnp.vectorize(lambda a,b: a+b)(x,x[0])
    jnp.vectorize(lambda a,b: a if b is None else a+b)(x,None)
    jnp.vectorize(lambda a,b: a if b is None else a+b)(x,b=None)
    jnp.vectorize(lambda a,b: a,signature='(),()->()')(x,None)
    jnp.vectorize(jnp.dot,signature='(n),(n)->()')(x,x[0])
    jnp.vectorize(jnp.dot,signature='(n,m),(m)->(n)')(u,x[0,:2] if False else jnp.arange(4.))
    jnp.vectorize(jnp.dot,signature='(n),(n)->()')(x,x[0,:2])
    jnp.vectorize(lambda a,b: a+b,excluded={1})(x,2.)
    jnp.vectorize(lambda a,b: a+b,excluded={'b'})(x,b=2.)
    jnp.vectorize(lambda a: (a,a*2),signature='(n)->(n),(n)')(x)
    jnp.vectorize(lambda a: a,signature='(n)->(m)')(x)
    jnp.vectorize(lambda a: a,signature='(n->(m)')(x)
    jnp.vectorize(lambda a: a,signature='(n)->(n),(n)')(x)
    jnp.vectorize(lambda a: a.sum(),signature='(n)->(n)')(x)
    jnp.vectorize(lambda a,b: a@b,signature='(n,m),(m,k)->(n,k)')(u,jnp.ones((4,2)))
    jnp.vectorize(lambda a,b: a@b,signature='(n?,m),(m,k?)->(n?,k?)')(x[0],m)
    jnp.vectorize(lambda a: a[:2],signature='(3)->(2)')(x)
    jnp.vectorize(lambda a: a[:2],signature='(4)->(2)')(x)
    jnp.vectorize(lambda a,b: a+b,signature='(n),(n)->(n)')(x)
    jnp.vectorize(lambda a,b: a+b,signature='(n),(n)->(n)')(w,x)
    jnp.vectorize(lambda a: a+1)(3)
    jnp.vectorize(lambda a: a+1)([3])
    jnp.vectorize(lambda a,b: a+b,excluded={0})(2.,x)
    jnp.vectorize(lambda a,b: a+b,excluded={-1})(2.,x)
    jnp.vectorize(lambda a,b: a+b,excluded=[1])(2.,x)
    jnp.vectorize(lambda a,b: a+b)(x,m)
    jnp.vectorize(lambda a,b: a+b)(None,x)
    """
)
CASES = sampled(TABLE)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check(CASES, case)


@pytest.mark.parametrize("case", sampled(CASES, 2))
def test_staged(case):
    check_staged(case)


# ---- running sums


def test_running_products_widen_integers_as_the_standard_has_it():
    for x64, wide in (False, 32), (True, 64):
        with weft.enable_x64(x64):
            for kind in ("int", "uint"):
                small = wnp.full(3, 7, f"{kind}8")
                made = wnp.cumulative_prod(small, include_initial=True)
                assert made.dtype == f"{kind}{wide}" and made.tolist() == [1, 7, 49, 343]
                assert wnp.cumulative_prod(small, dtype="int8").dtype == "int8"


def test_running_sums_as_methods():
    x = wnp.arange(6).reshape(2, 3)
    staged = weft.jit(lambda x: (x.cumsum(1), x.cumprod(axis=0)))(x)
    np.testing.assert_array_equal(staged[0], np.cumsum(np.arange(6).reshape(2, 3), 1))
    np.testing.assert_array_equal(staged[0], x.cumsum(1))
    np.testing.assert_array_equal(staged[1], x.cumprod(axis=0))
    assert x.cumsum(dtype="float16").dtype == "float16"


def test_running_sums_have_derivatives():
    x = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(2, 3)
    weft.test_util.check_grads(lambda x: wnp.cumsum(x, 1), (x,), 1)
    weft.test_util.check_grads(lambda x: wnp.nancumprod(x), (x,), 1)


# ---- polynomials, convolutions


def test_polynomials_as_numpy():
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=(2, 5)).astype(np.float32)
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    for f, args in {
        "polyadd": (p, q[:3]),
        "polymul": (p, q[:3]),
        "polyder": (p, 2),
        "polyint": (p, 2, 3),
        "poly": (p[:3],),
        "polyfit": (x, np.polyval(p, x), 4),
    }.items():
        expected = getattr(np, f)(*args)
        np.testing.assert_allclose(getattr(wnp, f)(*args), expected, rtol=2e-4, atol=2e-5)
    for got, expected in zip(wnp.polydiv(p, q[:3]), np.polydiv(p, q[:3]), strict=True):
        np.testing.assert_allclose(got[-len(expected) :], expected, rtol=1e-3, atol=1e-4)
    zeros = np.sort_complex(np.asarray(wnp.roots(p)))
    np.testing.assert_allclose(zeros, np.sort_complex(np.roots(p)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_as_numpy(mode):
    rng = np.random.default_rng(1)
    for sizes in [(5, 3), (3, 5), (4, 4), (1, 6)]:
        a, v = ((rng.normal(size=n) + 1j * rng.normal(size=n)).astype(np.complex64) for n in sizes)
        for f in ("convolve", "correlate"):
            expected = getattr(np, f)(a, v, mode)
            np.testing.assert_allclose(getattr(wnp, f)(a, v, mode), expected, rtol=1e-5, atol=1e-5)


def test_convolutions_have_derivatives():
    a, v = np.float32([1, 2, -1, 0.5]), np.float32([0.3, 2])
    weft.test_util.check_grads(lambda a, v: wnp.convolve(a, v, "same"), (a, v), 1)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows_as_numpy(name):
    for count in (0, 1, 2, 7):
        expected = getattr(np, name)(count)
        np.testing.assert_allclose(getattr(wnp, name)(count), expected, atol=1e-6)
    assert np.isfinite(wnp.kaiser(5, 300.0)).all()


# ---- integers


def test_divisors_as_numpy():
    a = np.arange(-20, 21, dtype=np.int32)[:, None]
    b = np.arange(-15, 16, dtype=np.int32)
    np.testing.assert_array_equal(wnp.gcd(a, b), np.gcd(a, b))
    np.testing.assert_array_equal(weft.jit(wnp.lcm)(a, b), np.lcm(a, b))
    least = np.int8(-128)  # its absolute value does not fit
    assert wnp.gcd(least, np.int8(0)) == np.gcd(least, np.int8(0))
    assert abs(int(wnp.gcd(least, np.int8(12)))) == 4


def test_bits_as_numpy():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, size=(3, 11)).astype(bool)
    for order in ("big", "little"):
        packed = np.packbits(bits, 1, order)
        np.testing.assert_array_equal(wnp.packbits(bits, 1, order), packed)
        np.testing.assert_array_equal(
            wnp.unpackbits(packed, 1, 11, order), np.unpackbits(packed, 1, 11, order)
        )


# ---- index tricks, vectorize


def test_index_tricks():
    assert wnp.s_[1:3, ...] == np.s_[1:3, ...] and wnp.index_exp[2] == (2,)
    x = np.arange(12).reshape(3, 4)
    crossed = wnp.asarray(x)[wnp.ix_(wnp.array([0, 2]), wnp.array([1, 3]))]
    np.testing.assert_array_equal(crossed, x[np.ix_([0, 2], [1, 3])])
    np.testing.assert_array_equal(wnp.r_[3:], np.r_[3:])
    staged = weft.jit(lambda x: wnp.c_[x, x, 1:4])(np.arange(3))
    np.testing.assert_array_equal(staged, np.c_[np.arange(3), np.arange(3), 1:4])


def test_vectorized_functions():
    f = wnp.vectorize(lambda m, v: m @ v, signature="(m,n),(n)->(m)")
    m, v = np.ones((5, 1, 2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    assert f(m, v).shape == weft.jit(f)(m, v).shape == (5, 4, 2)
    np.testing.assert_allclose(f(m, v), np.matmul(m, v[..., None])[..., 0])
    assert f(m[:1], v[:1]).shape == (1, 1, 2)
    assert wnp.vectorize(wnp.dot, signature="(n),(n)->()").__name__ == "dot"
    weft.test_util.check_grads(lambda v: f(m, v), (v,), 1)


def test_mistakes_are_named():
    for call, error, words in [
        (lambda: wnp.cumsum([1]), OperandError, "Convert it with weft.numpy.array"),
        (lambda: wnp.cumsum(1, out=wnp.ones(1)), NotImplementedError, "out must be None"),
        (lambda: wnp.convolve(wnp.ones(2), wnp.ones(2), "all"), AttributeValueError, "'valid'"),
        (lambda: wnp.packbits(wnp.ones(2)), DTypeError, r"\[packbits\] expected integers"),
        (lambda: wnp.vectorize(abs, signature="(n"), AttributeValueError, "expected a signature"),
        (lambda: wnp.polyint(wnp.ones(2), -1), AttributeValueError, "expected m of at least 0"),
        (lambda: wnp.ix_(wnp.ones((2, 2))), ShapeError, "expected vectors"),
        (lambda: wnp.fromiter([1], int), NotImplementedError, "numpy.fromiter"),
    ]:
        with pytest.raises(error, match=words):
            call()


# ---- files, text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64"])
def test_files_hold_arrays(dtype):
    x = wnp.arange(4, dtype=dtype)
    file = io.BytesIO()
    wnp.save(file, x)
    file.seek(0)
    loaded = wnp.load(file)
    assert isinstance(loaded, weft.Array) and loaded.dtype == dtype
    np.testing.assert_array_equal(loaded, x)
    file = io.BytesIO()
    wnp.savez(file, x, y=x)
    file.seek(0)
    assert sorted(wnp.load(file)) == ["arr_0", "y"]


def test_text_of_arrays():
    x = wnp.arange(3) / 3
    assert wnp.array_repr(x) == repr(x) and wnp.array_str(x) == str(x)
    assert wnp.array_str(x, precision=2) == "[0.   0.33 0.67]"
    assert "0.33, " in wnp.array_repr(x, None, 2)


def test_the_namespace_describes_itself():
    x = wnp.ones(3)
    for version in (None, "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is wnp
    assert wnp.__array_api_version__ == "2025.12"
    with pytest.raises(AttributeValueError, match="expected api_version None or one of"):
        x.__array_namespace__(api_version="1999.01")
    info = wnp.__array_namespace_info__()
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32"}
    assert info.default_dtypes()["real floating"] == np.float32
    assert weft.devices()[0] in info.devices() and info.default_device() is None
    assert info.capabilities()["boolean indexing"] is True
    with weft.enable_x64(True):
        assert "float64" in info.dtypes() and info.default_dtypes()["indexing"] == np.int64
    with pytest.raises(ValueError, match="expected a dtype or one of"):
        info.dtypes(kind="small")


def test_vectorized_functions_return_trees():
    @weft.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, *parts):
            self.parts = parts

        def tree_flatten(self):
            return self.parts, None

        @classmethod
        def tree_unflatten(cls, _, parts):
            return cls(*parts)

    x = wnp.arange(6.0).reshape(2, 3)
    halves = {
        None: lambda x: Pair(x, x * 2),
        "(n)->(n)": lambda x: Pair(x, x * 2),
        "(n)->()": lambda x: Pair(x, x * 2),
        "(n)->(),(n)": lambda x: (Pair(x, {"a": x * 2}), x),
    }
    for signature, f in halves.items():
        found = wnp.vectorize(f, signature=signature)(x)
        found = found[0] if isinstance(found, tuple) else found
        assert isinstance(found, Pair)
        for part, factor in zip(weft.tree.leaves(found), (1, 2), strict=True):
            np.testing.assert_array_equal(part, np.asarray(x) * factor)
    assert wnp.vectorize(lambda x: None, signature="(n)->()")(x) is None
    with pytest.raises(ShapeError, match=r"the axes \(n\); got shape \(\)"):
        wnp.vectorize(lambda x: Pair(x, x.sum()), signature="(n)->(n)")(x)
    with pytest.raises(TypeError, match="result of 'opaque'.*object"):

        def opaque(x):
            return object()

        wnp.vectorize(opaque)(x)
