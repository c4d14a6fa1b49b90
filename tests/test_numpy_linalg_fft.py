"""`weft.numpy.fft` and `weft.numpy.linalg`.

Each line of the tables must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does. See `oracle.py` for the operands.
"""

import numpy as np
import pytest
from conftest import EVERYTHING
from oracle import check, check_staged, lines, needs_jax

import weft
import weft.numpy as wnp
from weft.errors import AttributeValueError, OperandError, ShapeError

KINDS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
FFT = lines(
    """
    jnp.fft.fft(x)
    jnp.fft.fft(k)
    jnp.fft.fft(b)
    jnp.fft.fft(h)
    jnp.fft.fft(c,axis=0)
    jnp.fft.fft(wv)
    jnp.fft.fft(x,axis=None)
    jnp.fft.fft(x,n=5,norm='ortho')
    jnp.fft.ifft(x,n=2,norm='forward')
    jnp.fft.fft(x,n=0)
    jnp.fft.fft(w)
    jnp.fft.fft(x,axis=2)
    jnp.fft.fft(x,axis=(0,))
    jnp.fft.fft(x,norm='unit')
    jnp.fft.fft([1.,2.])
    jnp.fft.fft(x[:0])
    jnp.fft.fft(x[:,:0])
    jnp.fft.rfft(x)
    jnp.fft.rfft(i8,n=6)
    jnp.fft.rfft(x,axis=-2,norm='forward')
    jnp.fft.rfft(c)
    jnp.fft.rfft(x[:0])
    jnp.fft.irfft(c)
    jnp.fft.irfft(x)
    jnp.fft.irfft(k,n=5,axis=0,norm='ortho')
    jnp.fft.irfft(c[:,:1])
    jnp.fft.irfft(c[:,:0])
    jnp.fft.irfft(c,n=0)
    jnp.fft.hfft(c+1j)
    jnp.fft.hfft(c,n=5,norm='forward')
    jnp.fft.ihfft(x)
    jnp.fft.ihfft(x,n=5,norm='ortho')
    jnp.fft.ihfft(c)
    jnp.fft.fft2(x)
    jnp.fft.fft2(u,axes=(0,2))
    jnp.fft.ifft2(x,s=(3,2),norm='ortho')
    jnp.fft.rfft2(u,s=(2,5))
    jnp.fft.irfft2(u,axes=(1,0))
    jnp.fft.fft2(x[0])
    jnp.fft.fft2(x,s=(3,))
    jnp.fft.fft2(x,axes=(0,))
    jnp.fft.fftn(u)
    jnp.fft.fftn(u,s=(4,3))
    jnp.fft.fftn(u,axes=(2,0),norm='forward')
    jnp.fft.fftn(x,axes=(0,0))
    jnp.fft.fftn(x,axes=(2,))
    jnp.fft.fftn(x,s=(1,2,3))
    jnp.fft.fftn(x,s=(-1,3))
    jnp.fft.fftn(x,axes=())
    jnp.fft.rfftn(k,axes=())
    jnp.fft.fftn(w)
    jnp.fft.ifftn(c)
    jnp.fft.rfftn(u)
    jnp.fft.rfftn(u,axes=(2,1))
    jnp.fft.irfftn(u)
    jnp.fft.irfftn(u,s=(2,3,5),norm='ortho')
    jnp.fft.fftn(u.reshape(2,1,3,3,1))
    jnp.fft.rfftn(u.reshape(2,1,3,3))
    jnp.fft.irfftn(u.reshape(2,1,3,3))
    jnp.fft.irfftn(u.reshape(2,3,3,1))
    jnp.fft.fftfreq(5)
    jnp.fft.fftfreq(6,d=2)
    jnp.fft.fftfreq(0)
    jnp.fft.fftfreq(-2)
    jnp.fft.fftfreq(4,dtype='float16')
    jnp.fft.fftfreq(4,dtype=int)
    jnp.fft.fftfreq(4,d=w)
    jnp.fft.fftfreq(4,d=0)
    jnp.fft.fftfreq([1,2])
    jnp.fft.fftfreq(4,d=x)
    jnp.fft.rfftfreq(5,d=0.5)
    jnp.fft.rfftfreq(6)
    jnp.fft.rfftfreq(0)
    jnp.fft.fftshift(x)
    jnp.fft.fftshift(u,axes=(0,2))
    jnp.fft.fftshift(k,axes=-1)
    jnp.fft.fftshift(w)
    jnp.fft.fftshift(x,axes=2)
    jnp.fft.fftshift([1,2])
    jnp.fft.ifftshift(x)
    jnp.fft.ifftshift(i8)
    jnp.fft.ifftshift(u,axes=1)
    """
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", FFT)
def test_fft_as_jax(case):
    check(FFT, case)


@pytest.mark.parametrize("case", FFT if EVERYTHING else FFT[::2])
def test_fft_staged(case):
    check_staged(case)


@pytest.mark.parametrize("kind", KINDS if EVERYTHING else KINDS[:4])
def test_fft_of_random_numbers_as_numpy(kind):
    rng = np.random.default_rng(0)
    for n, size, axis, norm in [(7, 7, -1, None), (9, 6, 0, "ortho"), (4, 8, 1, "forward")]:
        a = rng.normal(size=(size, size)).astype(np.float32)
        if kind not in ("rfft", "ihfft"):
            a = (a + 1j * rng.normal(size=a.shape)).astype(np.complex64)
        expected = getattr(np.fft, kind)(a, n, axis, norm)
        got = getattr(wnp.fft, kind)(a, n, axis, norm)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ("rfft", "irfftn"))
def test_fft_has_derivatives(kind):
    def f(x):
        return wnp.real(getattr(wnp.fft, kind)(x) * wnp.complex64(1 - 2j)).sum()

    x = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)
    weft.test_util.check_grads(f, (x,), 1)
    stacked = np.stack([x, 2 * x])
    np.testing.assert_allclose(weft.vmap(f)(stacked), [f(x), f(2 * x)], rtol=1e-5)


def test_fft_mistakes_are_named():
    with pytest.raises(AttributeValueError, match=r"\[irfftn\] expected norm to be None or one of"):
        wnp.fft.irfftn(wnp.ones(3), norm="unit")
    with pytest.raises(ShapeError, match=r"\[fftn\] expected as many lengths as axes, 1; got 2"):
        wnp.fft.fftn(wnp.ones(3), s=(1, 2), axes=(0,))
    with pytest.raises(OperandError, match="Convert it with weft.numpy.array"):
        wnp.fft.fft([1.0])
    assert wnp.fft.fftfreq(3, device=weft.devices()[0]).committed
