"""Differences, integrals, polynomials and covariances of `weft.numpy`.

Each line of the table must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does. See `oracle.py` for the operands.
"""

import numpy as np
import pytest
from oracle import check, check_staged, lines, needs_jax, sampled

import weft
import weft.numpy as wnp

CASES = lines(
    """
    jnp.diff(k)
    jnp.diff(k,n=0)
    jnp.diff(k,n=2)
    jnp.diff(b)
    jnp.diff(x,axis=0)
    jnp.diff(x,prepend=0.,append=x[:,:1])
    jnp.diff(x,n=-1)
    jnp.diff(w)
    jnp.ediff1d(k)
    jnp.ediff1d(x,to_end=1.,to_begin=jnp.array([2.,3.]))
    jnp.trapezoid(k)
    jnp.trapezoid(x,dx=0.5,axis=0)
    jnp.trapezoid(x,x=i8)
    jnp.trapezoid(x,x=x*2)
    jnp.trapezoid(u,u[0]*u[0])
    jnp.trapezoid(u,u[0]*u[0],axis=-2)
    jnp.cov(x[:1],rowvar=False,ddof=0)
    jnp.corrcoef(x[:1],rowvar=False).shape
    jnp.convolve(i8,i8,preferred_element_type='int32')
    jnp.correlate(i8,u8,'full',preferred_element_type='int32')
    jnp.polyfit(jnp.arange(6.),jnp.arange(12.).reshape(6,2)**2,1,cov='unscaled')
    jnp.polyfit(jnp.arange(6.),jnp.arange(6.)**2,1,full=True,rcond=1)[4]
    jnp.gradient(x,axis=1)
    jnp.gradient(n)
    jnp.gradient(x)
    jnp.gradient(x,2.)
    jnp.gradient(x,2.,0.5)
    jnp.gradient(x*x,jnp.array([0.,1.,4.]),axis=1)
    jnp.gradient(x*x,3.,jnp.array([0.,1.,4.]))
    jnp.gradient(k,np.array([1,2,5]),2,axis=(1,0))
    jnp.gradient(x*x,jnp.array([0.,1.,4.]))
    jnp.gradient(x,2.,3.,4.)
    jnp.gradient(w*x[0],jnp.array([0,1,4]))
    jnp.gradient(k[0],1.5)
    jnp.gradient(k[0],wv[0]*jnp.arange(3))
    jnp.gradient(c[:,:2],jnp.array([0.,1.]))
    jnp.gradient(x[0])
    jnp.gradient(x[:1])
    jnp.gradient(h,axis=1)
    jnp.polyval(i8,2)
    jnp.polyval(x[0],x)
    jnp.polyval(x[0],c)
    jnp.cov(x)
    jnp.cov(x[0])
    jnp.cov(x,x[1:])
    jnp.cov(x,rowvar=False)
    jnp.cov(x,bias=True)
    jnp.cov(x,ddof=0)
    jnp.cov(c+1j)
    jnp.cov(k)
    jnp.corrcoef(x)
    jnp.corrcoef(x[0])
    jnp.block([[k,k],[x,x]])
    jnp.block([x,k])
    jnp.block([[x],[i8]])
    jnp.block(x)
    jnp.block([1,2])
    jnp.block([x[0],[x[0]]])
    jnp.block([[x[0]],x[0]])
    jnp.iterable(x)
    jnp.iterable(1)
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


def test_weights_that_are_not_one_for_each_observation():
    with pytest.raises(weft.errors.ObservationWeightsError, match=r"aweights of shape \(3,\)"):
        wnp.cov(np.ones((2, 3)), aweights=np.ones(2))
    assert issubclass(weft.errors.ObservationWeightsError, RuntimeError)  # as in NumPy
