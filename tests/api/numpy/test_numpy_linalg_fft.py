"""`weft.numpy.fft` and `weft.numpy.linalg`.

Each line of the tables must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does. See `oracle.py` for the operands.
"""

import numpy as np
import pytest
from conftest import EVERYTHING
from oracle import check, check_staged, lines, needs_jax, sampled

import weft
import weft.numpy as wnp
import weft.test_util
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
LINALG = lines(
    """
    jnp.linalg.cholesky(m)
    jnp.linalg.cholesky(m,upper=True)
    jnp.linalg.cholesky(mi)
    jnp.linalg.cholesky(g,symmetrize_input=False)
    jnp.linalg.cholesky(mc)
    jnp.linalg.cholesky(mc,upper=True)
    jnp.linalg.cholesky(h)
    jnp.linalg.cholesky(x)
    jnp.linalg.cholesky(x[0])
    jnp.linalg.cholesky([[1.]])
    jnp.linalg.cholesky(-m)
    jnp.linalg.cond(m)
    jnp.linalg.cond(m,p=1)
    jnp.linalg.cond(m,p='fro')
    jnp.linalg.cond(m,p=-2)
    jnp.linalg.cond(m,p=2)
    jnp.linalg.cond(m,p=jnp.inf)
    jnp.linalg.cond(m,p='nuc')
    jnp.linalg.cond(m,p=3)
    jnp.linalg.cond(x)
    jnp.linalg.cond(x,p=1)
    jnp.linalg.cond(mg)
    jnp.linalg.cond(mi)
    jnp.linalg.cond(x[:0])
    jnp.linalg.cond(m*0)
    jnp.linalg.cross(x,x+1)
    jnp.linalg.cross(x[:,:2],x[:,:2])
    jnp.linalg.cross(x,x[:,:2])
    jnp.linalg.cross(x.T,x.T,axis=0)
    jnp.linalg.cross(x[0],x)
    jnp.linalg.cross(k,k+1)
    jnp.linalg.det(m)
    jnp.linalg.det(m[:2,:2])
    jnp.linalg.det(m[:1,:1])
    jnp.linalg.det(m[:0,:0])
    jnp.linalg.det(mi)
    jnp.linalg.det(mc)
    jnp.linalg.det(mg)
    jnp.linalg.det(x)
    jnp.linalg.det(x[0])
    jnp.linalg.det(h)
    jnp.linalg.det(jnp.eye(4)*2)
    jnp.linalg.diagonal(x)
    jnp.linalg.diagonal(x,offset=1)
    jnp.linalg.diagonal(u)
    jnp.linalg.diagonal(x[0])
    jnp.linalg.eig(g)
    jnp.linalg.eig(mi)
    jnp.linalg.eig(h)
    jnp.linalg.eig(x)
    jnp.linalg.eigh(m)
    jnp.linalg.eigh(m,UPLO='U')
    jnp.linalg.eigh(m,UPLO='u')
    jnp.linalg.eigh(m,UPLO='X')
    jnp.linalg.eigh(g,'L',False)
    jnp.linalg.eigh(mi)
    jnp.linalg.eigh(mc)
    jnp.linalg.eigh(h)
    jnp.linalg.eigh(x)
    jnp.linalg.eigvals(g)
    jnp.linalg.eigvals(mc)
    jnp.linalg.eigvalsh(m)
    jnp.linalg.eigvalsh(m,'U')
    jnp.linalg.eigvalsh(m,'X')
    jnp.linalg.eigvalsh(mi)
    jnp.linalg.eigvalsh(g,symmetrize_input=False)
    jnp.linalg.eigvalsh(x)
    jnp.linalg.inv(m)
    jnp.linalg.inv(mi)
    jnp.linalg.inv(mc)
    jnp.linalg.inv(mg)
    jnp.linalg.inv(x)
    jnp.linalg.inv(x[0])
    jnp.linalg.inv(h)
    jnp.linalg.inv(m[:0,:0])
    jnp.linalg.lstsq(g,x[0])
    jnp.linalg.lstsq(x.T,m[0])
    jnp.linalg.lstsq(x.T,m)
    jnp.linalg.lstsq(x,x[:,0])
    jnp.linalg.lstsq(x.T,m,numpy_resid=True)
    jnp.linalg.lstsq(x,x[:,0],numpy_resid=True)
    jnp.linalg.lstsq(x.T,m[0],numpy_resid=True)
    jnp.linalg.lstsq(x.T,m,rcond=-1)
    jnp.linalg.lstsq(x.T,m,rcond=0.5)
    jnp.linalg.lstsq(k.T,mi[:0])
    jnp.linalg.lstsq(mg,x)
    jnp.linalg.lstsq(m,x)
    jnp.linalg.lstsq(x[:0],x[:0])
    jnp.linalg.lstsq(x.T,c.T)
    jnp.linalg.matmul(x,m)
    jnp.linalg.matmul(x[0],m)
    jnp.linalg.matmul(k,m)
    jnp.linalg.matmul(x,m,preferred_element_type='float16')
    jnp.linalg.matrix_norm(x)
    jnp.linalg.matrix_norm(x,ord=1)
    jnp.linalg.matrix_norm(x,ord=-1)
    jnp.linalg.matrix_norm(x,ord=2)
    jnp.linalg.matrix_norm(x,ord=-2)
    jnp.linalg.matrix_norm(x,ord=jnp.inf)
    jnp.linalg.matrix_norm(x,ord=-jnp.inf)
    jnp.linalg.matrix_norm(x,ord='nuc')
    jnp.linalg.matrix_norm(x,ord='fro',keepdims=True)
    jnp.linalg.matrix_norm(u,ord=2,keepdims=True)
    jnp.linalg.matrix_norm(x,ord=3)
    jnp.linalg.matrix_norm(x[0])
    jnp.linalg.matrix_power(g,3)
    jnp.linalg.matrix_power(g,0)
    jnp.linalg.matrix_power(g,1)
    jnp.linalg.matrix_power(g,2)
    jnp.linalg.matrix_power(g,-2)
    jnp.linalg.matrix_power(mi,3)
    jnp.linalg.matrix_power(mi,-1)
    jnp.linalg.matrix_power(g,5)
    jnp.linalg.matrix_power(x,2)
    jnp.linalg.matrix_power(g,1.5)
    jnp.linalg.matrix_power(x[0],2)
    jnp.linalg.matrix_power(mg,2)
    jnp.linalg.matrix_rank(g)
    jnp.linalg.matrix_rank(jnp.ones((3,3)))
    jnp.linalg.matrix_rank(jnp.ones((3,3)),hermitian=True)
    jnp.linalg.matrix_rank(x[0])
    jnp.linalg.matrix_rank(x[0]*0)
    jnp.linalg.matrix_rank(w)
    jnp.linalg.matrix_rank(mg)
    jnp.linalg.matrix_rank(m,tol=0.5)
    jnp.linalg.matrix_rank(m,0.5,tol=0.5)
    jnp.linalg.matrix_rank(mi)
    jnp.linalg.matrix_rank(x)
    jnp.linalg.matrix_rank(x,hermitian=True)
    jnp.linalg.matrix_transpose(x)
    jnp.linalg.matrix_transpose(u)
    jnp.linalg.matrix_transpose(x[0])
    jnp.linalg.multi_dot([x,m])
    jnp.linalg.multi_dot([x,m,g])
    jnp.linalg.multi_dot([x[0],m,g,x[1]])
    jnp.linalg.multi_dot([x,m,g,x.T,x])
    jnp.linalg.multi_dot([])
    jnp.linalg.multi_dot([x,x])
    jnp.linalg.multi_dot([x[0],x[0]])
    jnp.linalg.multi_dot([k,m])
    jnp.linalg.multi_dot([x,u[0],x])
    jnp.linalg.multi_dot([u,u])
    jnp.linalg.norm(x)
    jnp.linalg.norm(k)
    jnp.linalg.norm(h)
    jnp.linalg.norm(c+1j)
    jnp.linalg.norm(u)
    jnp.linalg.norm(u,axis=(0,1))
    jnp.linalg.norm(u,ord=2)
    jnp.linalg.norm(x,ord=2)
    jnp.linalg.norm(x,ord='fro')
    jnp.linalg.norm(x,ord='nuc')
    jnp.linalg.norm(x,ord=1,axis=0)
    jnp.linalg.norm(x,ord=3,axis=1)
    jnp.linalg.norm(x,ord=0,axis=1)
    jnp.linalg.norm(x,ord=jnp.inf,axis=1,keepdims=True)
    jnp.linalg.norm(x,ord=-jnp.inf,axis=1)
    jnp.linalg.norm(x,ord=-1,axis=0)
    jnp.linalg.norm(x,ord=2.5,axis=0)
    jnp.linalg.norm(x[0],ord='fro')
    jnp.linalg.norm(x[0],ord='nuc')
    jnp.linalg.norm(x[0],ord='bad')
    jnp.linalg.norm(x,ord='bad')
    jnp.linalg.norm(x,ord=5)
    jnp.linalg.norm(x,ord=0)
    jnp.linalg.norm(u,ord='nuc',axis=(0,2),keepdims=True)
    jnp.linalg.norm(u,ord=-2,axis=(2,0))
    jnp.linalg.norm(u,ord=1,axis=(2,0),keepdims=True)
    jnp.linalg.norm(u,axis=(0,1,2))
    jnp.linalg.norm(u,axis=3)
    jnp.linalg.norm(u,axis=())
    jnp.linalg.norm(w)
    jnp.linalg.norm(x[:0])
    jnp.linalg.norm(x[:,:0],axis=1)
    jnp.linalg.norm(k,ord=1,axis=1)
    jnp.linalg.norm(k,ord=0,axis=1)
    jnp.linalg.norm(k,ord=jnp.inf,axis=1)
    jnp.linalg.norm(b)
    jnp.linalg.norm(x,axis=(0,0))
    jnp.linalg.norm(x,keepdims=True)
    jnp.linalg.norm(u,keepdims=True)
    jnp.linalg.norm([1.])
    jnp.linalg.outer(x[0],x[1])
    jnp.linalg.outer(x,x)
    jnp.linalg.outer(k[0],x[0])
    jnp.linalg.pinv(x)
    jnp.linalg.pinv(m)
    jnp.linalg.pinv(m,hermitian=True)
    jnp.linalg.pinv(mc)
    jnp.linalg.pinv(mc,hermitian=True)
    jnp.linalg.pinv(mg)
    jnp.linalg.pinv(m,rtol=0.5)
    jnp.linalg.pinv(m,rcond=0.5)
    jnp.linalg.pinv(m,0.5,rcond=0.5)
    jnp.linalg.pinv(k)
    jnp.linalg.pinv(mg,rtol=jnp.array([.5,.1]))
    jnp.linalg.pinv(x[:0])
    jnp.linalg.pinv(x[0])
    jnp.linalg.pinv(x,hermitian=True)
    jnp.linalg.qr(x)
    jnp.linalg.qr(x.T)
    jnp.linalg.qr(x.T,mode='complete')
    jnp.linalg.qr(x.T,mode='r')
    jnp.linalg.qr(x.T,mode='raw')
    jnp.linalg.qr(x.T,mode='full')
    jnp.linalg.qr(x.T,mode='economic')
    jnp.linalg.qr(x.T,mode='bad')
    jnp.linalg.qr(k)
    jnp.linalg.qr(c)
    jnp.linalg.qr(x[0])
    jnp.linalg.qr(h)
    jnp.linalg.slogdet(m)
    jnp.linalg.slogdet(-g)
    jnp.linalg.slogdet(mc)
    jnp.linalg.slogdet(mi)
    jnp.linalg.slogdet(mg)
    jnp.linalg.slogdet(m,method='lu')
    jnp.linalg.slogdet(m,method='qr')
    jnp.linalg.slogdet(m,method='bad')
    jnp.linalg.slogdet(m*0)
    jnp.linalg.slogdet(x)
    jnp.linalg.slogdet(m[:0,:0])
    jnp.linalg.slogdet(h)
    jnp.linalg.solve(m,x[0])
    jnp.linalg.solve(m,x.T)
    jnp.linalg.solve(m,x)
    jnp.linalg.solve(mg,x[0])
    jnp.linalg.solve(mg,x)
    jnp.linalg.solve(mg,jnp.stack([x.T,x.T]))
    jnp.linalg.solve(m,jnp.stack([x.T,x.T]))
    jnp.linalg.solve(mi,mi[0])
    jnp.linalg.solve(mc,x[0])
    jnp.linalg.solve(m,k[0])
    jnp.linalg.solve(x,x)
    jnp.linalg.solve(m,w)
    jnp.linalg.solve(m[:0,:0],x[0,:0])
    jnp.linalg.solve(h,h[0])
    jnp.linalg.svd(x)
    jnp.linalg.svd(x,full_matrices=False)
    jnp.linalg.svd(x,compute_uv=False)
    jnp.linalg.svd(x.T)
    jnp.linalg.svd(m,hermitian=True)
    jnp.linalg.svd(-g-g.T,hermitian=True)
    jnp.linalg.svd(m,hermitian=True,compute_uv=False)
    jnp.linalg.svd(mc)
    jnp.linalg.svd(k)
    jnp.linalg.svd(h)
    jnp.linalg.svd(x[0])
    jnp.linalg.svd(x,subset_by_index=(0,1))
    jnp.linalg.svd(x,True,False,subset_by_index=(0,1))
    jnp.linalg.svd(x[:0])
    jnp.linalg.svd(x,hermitian=True)
    jnp.linalg.svdvals(x)
    jnp.linalg.svdvals(mg)
    jnp.linalg.svdvals(k)
    jnp.linalg.svdvals(x[0])
    jnp.linalg.tensordot(x,m,axes=1)
    jnp.linalg.tensordot(x,x)
    jnp.linalg.tensordot(x,u,axes=((1,),(1,)))
    jnp.linalg.tensorinv(jnp.eye(6).reshape(2,3,6)*2,ind=2)
    jnp.linalg.tensorinv(jnp.eye(6).reshape(6,3,2)*2,ind=1)
    jnp.linalg.tensorinv(m,ind=1)
    jnp.linalg.tensorinv(m,ind=0)
    jnp.linalg.tensorinv(m)
    jnp.linalg.tensorinv(x,ind=1)
    jnp.linalg.tensorsolve(jnp.eye(6).reshape(2,3,6)*2,x)
    jnp.linalg.tensorsolve(m,x[0])
    jnp.linalg.tensorsolve((jnp.eye(6)*2).reshape(2,3,2,3),x)
    jnp.linalg.tensorsolve(((jnp.eye(6)*2)+jnp.arange(36.).reshape(6,6)/50).reshape(2,6,3),x.reshape(6),axes=(1,))
    jnp.linalg.tensorsolve(((jnp.eye(6)*2)+jnp.arange(36.).reshape(6,6)/50).reshape(2,6,3),x.reshape(6))
    jnp.linalg.tensorsolve(m,x)
    jnp.linalg.trace(m)
    jnp.linalg.trace(m,offset=1)
    jnp.linalg.trace(m,dtype='float16')
    jnp.linalg.trace(u)
    jnp.linalg.trace(mi)
    jnp.linalg.trace(x[0])
    jnp.linalg.vecdot(x,x)
    jnp.linalg.vecdot(c+1j,c)
    jnp.linalg.vecdot(u,u,axis=1)
    jnp.linalg.vecdot(x,m)
    jnp.linalg.vecdot(x,x[0])
    jnp.linalg.vector_norm(x)
    jnp.linalg.vector_norm(k[:0],axis=0,ord=jnp.inf)
    jnp.linalg.vector_norm(x,axis=1)
    jnp.linalg.vector_norm(x,axis=(0,1))
    jnp.linalg.vector_norm(u,axis=(0,2),keepdims=True)
    jnp.linalg.vector_norm(x,keepdims=True)
    jnp.linalg.vector_norm(u,keepdims=True,ord=1)
    jnp.linalg.vector_norm(x,ord=1,axis=0)
    jnp.linalg.vector_norm(x,ord=jnp.inf,axis=0)
    jnp.linalg.vector_norm(x,ord=0,axis=0)
    jnp.linalg.vector_norm(x,ord=3.5)
    jnp.linalg.vector_norm(w)
    jnp.linalg.vector_norm(k)
    jnp.linalg.vector_norm(x,ord='fro')
    """
)


CASES = sampled(FFT + LINALG)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check(CASES, case)


@pytest.mark.parametrize("case", sampled(CASES, 2))
def test_staged(case):
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


@pytest.mark.parametrize("kind", ["fft", "rfft"])
def test_fft_and_matrices_in_one_program(kind):
    """LAPACK orders elements by columns. A transform stands before it and behind it."""
    x = np.eye(8, dtype=np.float32) * 2 + np.arange(64, dtype=np.float32).reshape(8, 8) / 50

    def transformed(x, m):
        return abs(getattr(m.fft, kind)(m.linalg.inv(x))[:, :5]).sum(1) + x

    inverse = np.linalg.inv
    got = weft.jit(lambda x: wnp.linalg.inv(transformed(x, wnp)))(x)
    np.testing.assert_allclose(got, inverse(transformed(x, np)), 1e-2, 1e-2)
    weft.test_util.check_grads(
        weft.jit(lambda x: transformed(x, wnp)), (x,), order=1, modes=("rev",), atol=0.05, rtol=0.05
    )


def test_fft_mistakes_are_named():
    with pytest.raises(AttributeValueError, match=r"\[irfftn\] expected norm to be None or one of"):
        wnp.fft.irfftn(wnp.ones(3), norm="unit")
    with pytest.raises(ShapeError, match=r"\[fftn\] expected as many lengths as axes, 1; got 2"):
        wnp.fft.fftn(wnp.ones(3), s=(1, 2), axes=(0,))
    with pytest.raises(OperandError, match="Convert it with weft.numpy.array"):
        wnp.fft.fft([1.0])
    assert wnp.fft.fftfreq(3, device=weft.devices()[0]).committed


# ---- derivatives

A = np.array([[2, 1, 0.5, 0], [0.3, 1, -1, 2], [1, 0, 3, 0.1], [-0.5, 0.2, 0, 1]], np.float32)
SYMMETRIC = A + A.T + 4 * np.eye(4, dtype=np.float32)
B = np.array([[1, 2], [0, 1], [3, -1], [0.5, 0.2]], np.float32)
DIFFERENTIABLE = {
    "cholesky": (wnp.linalg.cholesky, (SYMMETRIC,)),
    "cholesky upper": (lambda a: wnp.linalg.cholesky(a, upper=True), (SYMMETRIC,)),
    "cond": (wnp.linalg.cond, (A,)),
    "det": (wnp.linalg.det, (A,)),
    "det 3": (wnp.linalg.det, (A[:3, :3],)),
    "eigh": (lambda a: wnp.linalg.eigh(a).eigenvalues, (SYMMETRIC,)),
    "eigvals": (
        lambda a: wnp.abs(wnp.linalg.eigvals(a)).sum(),
        (A + 2 * np.diag(np.float32([1, 3, 5, 9])),),
    ),
    "inv": (wnp.linalg.inv, (A,)),
    "lstsq": (lambda a, b: wnp.linalg.lstsq(a, b)[0], (A[:, :2], B)),
    "matrix_power": (lambda a: wnp.linalg.matrix_power(a, -3), (SYMMETRIC / 4,)),
    "multi_dot": (lambda a, b: wnp.linalg.multi_dot([a, a, b]), (A, B)),
    "norm": (wnp.linalg.norm, (A,)),
    "norm 3": (lambda a: wnp.linalg.norm(a + 4, 3, 1), (A,)),
    "norm nuc": (lambda a: wnp.linalg.norm(a, "nuc"), (A,)),
    "pinv": (wnp.linalg.pinv, (B,)),
    "pinv of equal singular values": (wnp.linalg.pinv, (np.eye(3, 2, dtype=np.float32),)),
    "qr": (lambda a: wnp.linalg.qr(a).R, (A,)),
    "slogdet": (lambda a: wnp.linalg.slogdet(a).logabsdet, (A,)),
    "solve": (wnp.linalg.solve, (A, B)),
    "solve vector": (wnp.linalg.solve, (np.stack([A, 2 * SYMMETRIC]), B[:, 0])),
    "svd": (lambda a: wnp.linalg.svd(a, False).S, (B,)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_linalg_has_derivatives(name):
    f, args = DIFFERENTIABLE[name]
    order = 2 if EVERYTHING else 1
    weft.test_util.check_grads(weft.jit(f), args, order, atol=2e-2, rtol=2e-2, eps=1e-3)


def test_derivatives_of_determinants_of_singular_matrices():
    for rank in (4, 3, 2):
        u, s, v = np.linalg.svd(A.astype(np.float64))
        s[rank:] = 0
        singular = (u * s) @ v
        adjugate = np.linalg.det(u @ v) * (v.T * [np.prod(np.delete(s, i)) for i in range(4)]) @ u.T
        got = weft.grad(wnp.linalg.det)(singular.astype(np.float32))
        np.testing.assert_allclose(got, adjugate.T, rtol=1e-3, atol=1e-4)
    zero = np.diag(np.float32([1, 2, 0, 3]))
    np.testing.assert_allclose(
        weft.grad(wnp.linalg.det)(zero), np.diag(np.float32([0, 0, 6, 0])), atol=1e-5
    )


def test_linalg_of_stacks_is_as_vmap():
    stacked = np.stack([A, SYMMETRIC])
    for f in (wnp.linalg.det, wnp.linalg.inv, wnp.linalg.pinv, wnp.linalg.matrix_rank):
        np.testing.assert_allclose(weft.vmap(f)(stacked), f(stacked), rtol=1e-4, atol=1e-5)


def test_results_have_names():
    q, r = result = wnp.linalg.qr(B)
    assert result.Q is q and result.R is r
    assert wnp.linalg.svd(B)._fields == ("U", "S", "Vh")
    assert wnp.linalg.eigh(SYMMETRIC)._fields == ("eigenvalues", "eigenvectors")
    assert wnp.linalg.slogdet(A)._fields == ("sign", "logabsdet")
    assert type(weft.jit(wnp.linalg.qr)(B)) is type(result)


def test_tolerances_of_ranks():
    matrix = np.diag(np.float32([5, 2, 0.5]))
    assert wnp.linalg.matrix_rank(matrix, 0.3) == 2  # relative to the greatest singular value
    assert wnp.linalg.matrix_rank(matrix, tol=0.3) == 3
    assert wnp.linalg.matrix_rank(np.stack([matrix, matrix]), np.float32([0.3, 0.5])).tolist() == [
        2,
        1,
    ]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: wnp.linalg.solve(A, B[:3]), ShapeError, r"\[solve\] expected a \[..., n, n\]"),
        (lambda: wnp.linalg.inv(B), ShapeError, r"\[inv\] expected square matrices"),
        (lambda: wnp.linalg.norm(A, 7), AttributeValueError, r"\[norm\] expected 'fro', 'nuc'"),
        (lambda: wnp.linalg.pinv(A, 1, rcond=1), AttributeValueError, "expected rtol or rcond"),
        (lambda: wnp.linalg.qr(A, "thin"), AttributeValueError, r"\[qr\] expected mode"),
        (lambda: wnp.linalg.det([[1.0]]), OperandError, "Convert it with weft.numpy.array"),
    ],
)
def test_linalg_mistakes_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_edges_of_norms_and_products():
    zeros, weak = np.zeros((2, 2), np.float32), wnp.full((2, 3), 1.5)
    assert np.isinf(wnp.linalg.cond(zeros, 1)) and np.isnan(wnp.linalg.cond(zeros))
    assert np.isnan(wnp.linalg.cond(zeros + np.nan, 1))
    counts = wnp.asarray([3, -4])
    for order in (1, np.inf, -np.inf):
        got = wnp.linalg.vector_norm(counts, ord=order)
        assert got.dtype == np.int32 and got == np.linalg.norm([3, -4], order)
    np.testing.assert_array_equal(wnp.linalg.multi_dot([A, A, B], precision="high").shape, (4, 2))
    assert wnp.tensordot(B[0], B[1], -1).shape == (2, 2)
    assert wnp.linalg.diagonal(weak).weak_type and not wnp.diagonal(weak[:, :2]).weak_type
    assert (2 ** wnp.asarray(3)).weak_type and not (wnp.arange(3) ** wnp.asarray(3)).weak_type
