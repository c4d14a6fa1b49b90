"""Products of `weft.numpy`: dot, matmul, tensordot, einsum and others.

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
    jnp.dot(x,x.T)
    jnp.dot(x[0],x[0])
    jnp.dot(x,x[0])
    jnp.dot(x[:,0],x)
    jnp.dot(x,2)
    jnp.dot(w,x)
    jnp.dot(u,x.T)
    jnp.dot(x,u.swapaxes(1,2))
    jnp.dot(k,x.T)
    jnp.dot(i8,i8)
    jnp.dot(h,h.T)
    jnp.dot(c,c.T)
    jnp.dot(b,b)
    jnp.dot(x,x)
    jnp.dot(i8,i8,preferred_element_type='int32')
    jnp.dot(w,w,preferred_element_type='float32')
    jnp.dot(i8*1.,i8*1.,precision='highest',preferred_element_type='float32')
    jnp.matmul(m,m,precision=(lax.Precision.HIGH,lax.Precision.HIGH),preferred_element_type='float32')
    jnp.einsum('ij,jk',m,m,precision=lax.Precision.HIGHEST,preferred_element_type='float32')
    jnp.tensordot(m,m,1,precision='float32',preferred_element_type='float32')
    jnp.dot(i8*1.,i8*1.,preferred_element_type='float32')
    jnp.vdot(i8*1.,i8,preferred_element_type='float32')
    jnp.dot(i8*1.,i8*1.,preferred_element_type='int16')
    jnp.dot(i8,i8,preferred_element_type='bool')
    jnp.dot(x,x.T,precision='highest')
    jnp.dot(x,x.T,precision=lax.Precision.HIGH)
    jnp.dot(x,x.T,precision='bogus')
    x.dot(x.T)
    jnp.matmul(x,x.T)
    jnp.matmul(x,x[0])
    jnp.matmul(x[:,0],x)
    jnp.matmul(x[0],x[0])
    jnp.matmul(u,x.T)
    jnp.matmul(x,u.swapaxes(1,2))
    jnp.matmul(u,u.swapaxes(1,2))
    jnp.matmul(u[:1],u.swapaxes(1,2))
    jnp.matmul(u,u[0].T)
    jnp.matmul(u,u[:1].swapaxes(1,2))
    jnp.matmul(u[:,None],u.swapaxes(1,2))
    jnp.matmul(u,u[0,0])
    jnp.matmul(x[:,0],u[:,:2].swapaxes(0,1)[:2])
    jnp.matmul(x,x)
    jnp.matmul(x,2)
    jnp.matmul(u,jnp.ones((3,4,2)))
    jnp.matmul(jnp.zeros((2,0)),jnp.zeros((0,3)))
    jnp.matmul(k,x.T)
    jnp.matmul(i8,i8,preferred_element_type='int32')
    jnp.matmul(h,h.T,preferred_element_type='float32')
    jnp.matmul(k,k.T.astype('float32'),preferred_element_type='int32')
    x@k.T
    np.ones((2,2))@x
    jnp.matvec(x,x[0])
    jnp.matvec(u,x[0])
    jnp.matvec(u,x)
    jnp.vecmat(x[:,0],x)
    jnp.vecmat(c[:,0]+1j,c)
    jnp.vecmat(x[0],u)
    jnp.vecdot(x,x)
    jnp.vecdot(c+1j,c)
    jnp.vecdot(x,x,axis=0)
    jnp.vecdot(u,x)
    jnp.vecdot(x,x.T)
    jnp.inner(x,x)
    jnp.inner(x,x[0])
    jnp.inner(x,2)
    jnp.inner(u,x)
    jnp.inner(x,x[:,:2])
    jnp.vdot(x,k)
    jnp.vdot(c+1j,c)
    jnp.vdot(x,x.T)
    jnp.vdot(x,x[0])
    jnp.outer(x,i8)
    jnp.outer(c,x[0])
    jnp.outer(2,x)
    jnp.tensordot(x,x.T)
    jnp.tensordot(x,x)
    jnp.tensordot(u,x,2)
    jnp.tensordot(u,x.T,1)
    jnp.tensordot(u,x,((1,2),(0,1)))
    jnp.tensordot(u,x,((2,1),(1,0)))
    jnp.tensordot(u,x,(2,1))
    jnp.tensordot(u,u,((0,2),(0,-1)))
    jnp.tensordot(x,x,0)
    jnp.tensordot(x,x,3)
    jnp.tensordot(x,x,((0,),(1,)))
    jnp.tensordot(x,x,((0,1),(0,)))
    jnp.tensordot(k,x,2)
    jnp.einsum('ij,jk->ik',x,x.T)
    jnp.einsum('ij,jk',x,x.T)
    jnp.einsum('2j,j1',x,x.T)
    jnp.einsum('i.,.->i',x,x[0])
    jnp.einsum('ij,kj->ik',x,x)
    jnp.einsum('ij,kj->ik',x,x,_dot_general=lambda *a,**k: 2*lax.dot_general(*a,**k))
    jnp.einsum('ij,ij->i',x,x)
    jnp.einsum('ij,ij',x,x)
    jnp.einsum('ij->ji',x)
    jnp.einsum('ji',x)
    jnp.einsum('ij->',x)
    jnp.einsum('ij->j',x)
    jnp.einsum('ij->j',x>1)
    jnp.einsum('ij->',x<0)
    jnp.einsum('ii',x[:,:2])
    jnp.einsum('ii->i',x[:,:2])
    jnp.einsum('iij->j',u[:,:2])
    jnp.einsum('iii',jnp.arange(8.).reshape(2,2,2))
    jnp.einsum('iii->i',jnp.arange(8.).reshape(2,2,2))
    jnp.einsum('i,j->ij',i8,i8)
    jnp.einsum('i,j->ji',i8,x[0])
    jnp.einsum('i,i->i',i8,i8)
    jnp.einsum(',',2,3)
    jnp.einsum('ij,jk,kl->il',x,x.T,x)
    jnp.einsum('ij,jk,kl->li',x,x.T,x)
    jnp.einsum('ij,jk,kl',x,x.T,x)
    jnp.einsum('ij,jk,ik->',x,x.T,x[:,:2])
    jnp.einsum('a,b,c,d,e->',i8,i8,i8,i8,i8)
    jnp.einsum('ab,bc,cd,de,ef->af',x,x.T,x,x.T,x)
    jnp.einsum('bij,bjk->bik',u,u.swapaxes(1,2))
    jnp.einsum('bij,bjk->ikb',u,u.swapaxes(1,2))
    jnp.einsum('bij,bij->b',u,u)
    jnp.einsum('...ij,...jk->...ik',u,x.T)
    jnp.einsum('...ij,...kj',u,x)
    jnp.einsum('...j->...',u)
    jnp.einsum('i...->...',u)
    jnp.einsum('i...,i...->...',x,x)
    jnp.einsum('...,...',x,x[0])
    jnp.einsum('...i,i->...',u,i8)
    jnp.einsum('ij...,jk...->ik...',u,u.swapaxes(0,1))
    jnp.einsum('i,ij',jnp.ones(1),x)
    jnp.einsum('ij,j->i',x,jnp.ones(1))
    jnp.einsum('ij,ik->jk',x,x[:1])
    jnp.einsum(x,[0,1],x,[2,1],[0,2])
    jnp.einsum(x,[0,1],x.T,[1,2])
    jnp.einsum(u,[...,0],[...])
    jnp.einsum(x,[1,0])
    jnp.einsum('ij,jk',x,x)
    jnp.einsum('ij,jk',x)
    jnp.einsum('ijk',x)
    jnp.einsum('i',x)
    jnp.einsum('ij->k',x)
    jnp.einsum('ij->ii',x)
    jnp.einsum('ij,jk->ik',k,x.T)
    jnp.einsum('ij,jk->ik',h,h.T)
    jnp.einsum('ij,jk->ik',i8[:,None],i8[None],preferred_element_type='int32')
    jnp.einsum('i->',i8*50,preferred_element_type='int32')
    jnp.einsum('i,j->j',i8*50,i8,preferred_element_type='int32')
    jnp.einsum('ij->j',x>1,preferred_element_type='int32')
    jnp.einsum('i->',k[0],preferred_element_type='float32')
    jnp.einsum('ij,jk->ik',x,x.T,optimize=False)
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize=False)
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='greedy')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='eager')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='dp')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='dynamic-programming')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='auto-hq')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='branch-all')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='branch-2')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='random-greedy')
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize='random-greedy-128')
    jnp.einsum_path('ij,jk,kl->il',x,x.T,x,optimize='eager')[0]
    jnp.einsum('ij,jk,kl->il',x,x.T,x,optimize=[(0,1),(0,1)])
    jnp.einsum_path('ij,jk,kl->il',x,x.T,x,optimize=False)[0]
    jnp.einsum_path('ij,jk',x,x.T)[0]
    jnp.einsum('ij,jk->ik',x,x.T,precision='highest')
    jnp.einsum(' ij , jk -> ik ',x,x.T)
    jnp.einsum('aab,bb->a',u[:,:2,:],x.T[:,:1]*jnp.ones((3,3)))
    jnp.kron(x,k)
    jnp.kron(i8,x)
    jnp.kron(x,2)
    jnp.kron(u,x)
    jnp.cross(x,x[0])
    jnp.cross(x,k+1)
    jnp.cross(x[:,:2],x[:,1:])
    jnp.cross(x[:,:2],x)
    jnp.cross(x,x[:,:2])
    jnp.cross(x.T,k.T+1,axis=0)
    jnp.cross(x.T,k+1,axisa=0)
    jnp.cross(x,k+1,axisc=0)
    jnp.cross(x.T,x.T)
    jnp.cross(x[0,:2],x[0,:2])
    jnp.dot(w,w)
    jnp.dot(w,2)
    jnp.dot(b[:2],b)
    jnp.matmul(w,w)
    jnp.matmul(b,b)
    jnp.matmul(i8,i8)
    jnp.matmul(h,h.T).dtype
    jnp.inner(w,x)
    jnp.outer(x,x).shape
    jnp.vdot(k,x)
    jnp.tensordot(x,x,2)
    jnp.tensordot(x,x,0).shape
    jnp.einsum('ij,k',x)
    jnp.einsum('ii',jnp.eye(3))
    jnp.einsum(x,[0,1],[1,0]).shape
    jnp.einsum('...j->...',x)
    jnp.einsum('i...,i...',x,x)
    jnp.einsum('ij,ij->',k,x)
    jnp.kron(k,w)
    jnp.cross(jnp.arange(3),jnp.arange(3.))
    jnp.cross(jnp.arange(2),jnp.arange(2))
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


# Those of few elements are weft's own kernel where they run un-jitted: rows, terms, columns.
SMALL = [(1, 1, 1), (3, 5, 2), (17, 16, 33), (32, 32, 32), (2, 256, 3), (64, 2, 64), (33, 32, 32)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SMALL, ids=str)
def test_small_products(sizes, dtype):
    rows, terms, columns = sizes
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(rows, terms)), rng.normal(size=(terms, columns))
    tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-12}
    with weft.enable_x64(True):
        a, b = wnp.asarray(x, dtype), wnp.asarray(y, dtype)
        results = [a @ b, wnp.dot(a, b), wnp.einsum("ij,jk", a, b)]
        sums = (((0,), (1,)), ((), ()))
        results.append(weft.lax.dot_general(a.T, b.T, sums))
        results += [wnp.stack([a @ c for c in b.T], 1), wnp.stack([r @ b for r in a])]
        for result in results:
            assert result.dtype == dtype
            np.testing.assert_allclose(result, x @ y, **tolerance)
        # Under jit it is XLA's, and what people see of it: text, cost.
        compiled = weft.jit(wnp.matmul).lower(a, b).compile()
        np.testing.assert_allclose(compiled(a, b), a @ b, **tolerance)
        assert "weft_" not in compiled.as_text()


def test_einsum_path_names_the_labels_of_the_user():
    x, y = wnp.ones((2, 3)), wnp.ones((3, 4))
    assert "qr,rs,st->qt" in wnp.einsum_path("qr,rs,st->qt", x, y, y.T)[1]
    assert "aq,qs->as" in wnp.einsum_path("...q,qs->...s", x, y)[1]


def test_a_real_product_of_complex_operands():
    x = np.array([[1 + 2j, 3], [0.5j, 4 - 1j]], np.complex64)
    real = {"preferred_element_type": "float32"}
    for run in [lambda f: f, weft.jit]:
        for result in [
            run(lambda x: wnp.matmul(x, x, **real))(x),
            run(lambda x: wnp.einsum("ij,jk->ik", x, x, **real))(x),
            run(lambda x: wnp.dot(x, wnp.eye(2), **real))(x @ x),
        ]:
            assert result.dtype == "float32"
            np.testing.assert_allclose(result, (x @ x).real, rtol=1e-6)


def test_sums_of_einsum_in_the_dtype_asked():
    """Also of an operand that is summed before it is multiplied, and at each step of a path."""
    ones = wnp.ones(3000, "float16")
    many = wnp.full(300, 100, "int8")
    three = np.ones(3, np.int8)
    pair = lambda x: wnp.einsum("i,j->", x, three, preferred_element_type="int32")
    for each in (pair(many), weft.jit(pair)(many), weft.vmap(pair)(many[None])[0]):
        assert each == 90000 and each.dtype == np.int32
    total = wnp.einsum("i,j,k->", many, three, three, preferred_element_type="int32")
    assert total == 270000
    halves = wnp.einsum("i,j->j", ones * 30, ones[:2], preferred_element_type="float32")
    np.testing.assert_array_equal(halves, np.full(2, 90000, np.float32))  # float16 ends at 65504
    assert wnp.einsum("i->", ones > 0, preferred_element_type="int32") == 3000
    slope = weft.grad(lambda x: wnp.einsum("i,j->", x, x, preferred_element_type="float32"))(ones)
    assert slope.dtype == np.float16 and set(slope.tolist()) == {6000.0}


@pytest.mark.parametrize("optimize", ["shortest", "branch-3", 7, None])
def test_unknown_orders_of_products_are_named(optimize):
    x = wnp.ones((2, 2))
    for f in (wnp.einsum, wnp.einsum_path):
        with pytest.raises(ValueError, match=f"expected optimize .*got {optimize!r}"):
            f("ij,jk,kl->il", x, x, x, optimize=optimize)
