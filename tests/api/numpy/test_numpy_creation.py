"""Functions of `weft.numpy` that make arrays, dtypes, and matrices of constants.

Each line of the table must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does. See `oracle.py` for the operands.
"""

import re

import jaxlib
import numpy as np
import pytest
from oracle import check, check_staged, lines, needs_jax, sampled

import weft
import weft.numpy as wnp

CASES = lines(
    """
    jnp.array([[1,2],[3,4]])
    jnp.array([1,2.5],dtype='bfloat16').astype('float32')
    jnp.array(np.float16(2))
    jnp.array([True,False])
    jnp.array([1,2],ndmin=3)
    jnp.array([x[0],x[1]])
    jnp.array([[w,1],[2,wi]])
    jnp.array([x[0],[1,2,3]])
    jnp.array([x[0],x[0,:2]])
    jnp.array([1,[2]])
    jnp.array(None)
    jnp.array(['a'])
    jnp.array('a')
    jnp.array(object())
    jnp.array(range(4))
    jnp.array([np.float16(1),2.])
    jnp.array([np.int8(1),1.5])
    jnp.array([np.int8(1),300])
    jnp.array([[np.int8(1)],[2]])
    jnp.array([np.ones(2,'int8'),[1,2]])
    jnp.array([np.ones(2,'float16'),np.ones(2,'int16')])
    jnp.array([np.int64(2),np.uint64(2)])
    jnp.array([jnp.bfloat16.dtype.type(1),1.5])
    jnp.array([np.bool_(True),1])
    jnp.array([np.zeros(0,'int8')])
    jnp.array([2**31])
    jnp.array([2**40])
    jnp.array(2**40)
    jnp.array(-2**31)
    jnp.array(np.array([2**40]))
    jnp.array([300],dtype='int8')
    jnp.array(300,dtype='int8')
    jnp.array([1.7,-1.7],dtype='int32')
    jnp.array([-1],dtype='uint8')
    jnp.array(x,dtype='int32')
    jnp.array(np.arange(3.)[::-1])
    jnp.array(np.arange(6).reshape(2,3).T)
    jnp.array(np.zeros((0,3)))
    jnp.array([[],[]])
    jnp.array(memoryview(b'ab'))
    jnp.asarray([1,2],dtype=float)
    jnp.asarray(x)
    jnp.asarray(1j)
    jnp.asarray([1+2j])
    jnp.float32(2)
    jnp.int8([1,2])
    jnp.bool_(2)
    jnp.bool_([0,1])
    jnp.float64(2)
    jnp.complex64(1)
    jnp.uint8(3)
    jnp.float16(x)
    jnp.zeros(3)
    jnp.zeros((2,3),int)
    jnp.zeros((),bool)
    jnp.zeros((2,0))
    jnp.zeros(2,dtype=jnp.float16)
    jnp.zeros(2,dtype=jnp.int4)
    jnp.ones((2,2),'complex64')
    jnp.empty(2)
    jnp.zeros(-1)
    jnp.zeros(1.5)
    jnp.zeros((2,'a'))
    jnp.zeros(2,object)
    jnp.zeros(2,'float77')
    jnp.zeros([2,3])
    jnp.zeros(np.array([2,3]))
    jnp.zeros(np.int64(2))
    jnp.full((2,3),1.5)
    jnp.full((2,3),1.5,int)
    jnp.full((2,3),x[0])
    jnp.full(2,w)
    jnp.full((2,),1,dtype=bool)
    jnp.full(2,True)
    jnp.full(2,1j)
    jnp.full((2,3),jnp.ones(2))
    jnp.full_like(x,2)
    jnp.full_like(k,2.7)
    jnp.full_like(x,2,dtype='int8',shape=(2,))
    jnp.full_like(1.,2)
    jnp.full_like(x,x[0])
    jnp.zeros_like(x)
    jnp.zeros_like(k,dtype=float)
    jnp.ones_like(b)
    jnp.ones_like(wi)
    jnp.ones_like(np.zeros(3))
    jnp.ones_like(type('Duck',(),dict(shape=(2,3),dtype=np.dtype('int8')))())
    jnp.full_like(type('Duck',(),dict(shape=(2,3),dtype=np.dtype('int8')))(),3,shape=(3,))
    lax.full_like(type('Duck',(),dict(shape=(2,3),dtype=np.dtype('int8')))(),3)
    jnp.zeros_like(x,shape=())
    jnp.empty_like(x,'int32')
    jnp.arange(5)
    jnp.arange(5.)
    jnp.arange(2,5)
    jnp.arange(2,5,dtype='float16')
    jnp.arange(0,1,0.1)
    jnp.arange(5,0,-1)
    jnp.arange(5,0)
    jnp.arange(3,3)
    jnp.arange(1.5,4)
    jnp.arange(np.float32(3))
    jnp.arange(jnp.int32(3))
    jnp.arange(0,10,jnp.int32(3))
    jnp.arange(3,dtype=complex)
    jnp.arange(3,dtype=bool)
    jnp.arange(-3)
    jnp.arange(1e6)[-1]
    jnp.arange(100000)[-1]
    jnp.arange(x)
    jnp.linspace(0,1,5)
    jnp.linspace(h[0],h[1]*1.1,5,dtype='float32',retstep=True)
    jnp.linspace(x[0],x[1],3,dtype='float16',retstep=True)
    jnp.logspace(np.float16(5),np.float16(.1),3,dtype='float32')
    jnp.geomspace(h[0]+1,h[1],3,dtype='float32')
    jnp.linspace(jnp.uint8(5),i8,3,retstep=True)
    jnp.linspace(jnp.int8(100),jnp.int8(-100),3,retstep=True)
    jnp.linspace(b,b[::-1],3,retstep=True)
    jnp.linspace(x,x+1,1,retstep=True)
    jnp.arange(1j,dtype=float)
    jnp.arange(0,5,1+0j,dtype=complex)
    jnp.linspace(0,10,4,dtype=int)
    jnp.linspace(1,0,3)
    jnp.linspace(0,1,5,endpoint=False)
    jnp.linspace(0,1,1,endpoint=False)
    jnp.linspace(x[0],x[1],3)
    jnp.linspace(w,3,4)
    jnp.linspace(x[0],x[1],3,axis=1)
    jnp.linspace(x[0],x[1],3,axis=3)
    jnp.linspace(0,1j,3)
    jnp.linspace(0,1,3,retstep=True)
    jnp.linspace(x[0],1,3,retstep=True)
    jnp.linspace(w,1,1,retstep=True)
    jnp.linspace(0,1,dtype='float16')
    jnp.linspace(0,1,100000)[77]
    jnp.linspace(0,w,100000)[77]
    jnp.logspace(0,2,3)
    jnp.logspace(0,2,3,base=2,dtype=int)
    jnp.logspace(w,3,3)
    jnp.geomspace(1,1000,4)
    jnp.geomspace(1,1000,3,endpoint=False)
    jnp.geomspace(x[0]+1,x[1]+1,3)
    list(jnp.meshgrid(x[0],k[1]))
    list(jnp.meshgrid(x[0],k[1],indexing='ij'))
    list(jnp.meshgrid(x[0],k[1],i8,sparse=True))
    list(jnp.meshgrid(x[0]))
    list(jnp.meshgrid(x[0],copy=False))
    list(jnp.meshgrid())
    list(jnp.meshgrid(x,k))
    list(jnp.meshgrid(x[0],k[1],indexing='xx'))
    jnp.eye(3)
    jnp.eye(2,3,-1,dtype='int8')
    jnp.eye(300)[5]
    jnp.eye(-1)
    jnp.full_like(x,1j)
    jnp.full_like(h,2j,dtype=complex)
    lax.map(lambda k: jnp.eye(2,3,k=k,dtype=bool),jnp.array([0,-1]))
    jnp.eye(3,k=1.5)
    jnp.eye(3,k=2**100)
    jnp.eye(3,4,k=-2**31)
    jnp.tri(3,k=2**33)
    jnp.tri(3,k=7)
    jnp.tri(3,2,-3)
    jnp.tril(x,-9)
    jnp.triu(x,9)
    jnp.triu(x,-2)
    jnp.identity(2)
    jnp.tri(3)
    jnp.tri(2,4,-1,dtype=bool)
    jnp.tril(x)
    jnp.tril(k,1)
    jnp.triu(k,1)
    jnp.triu(x,-1)
    jnp.tril(b[:,None]&b)
    jnp.tril(x[0])
    jnp.tril(jnp.ones((2,3,3)),-1)
    jnp.diag(x)
    jnp.diag(x,1)
    jnp.diag(x,-1)
    jnp.diag(x,5)
    jnp.diag(i8)
    jnp.diag(i8,2)
    jnp.diag(b)
    jnp.diagflat(k,1)
    jnp.diagonal(x)
    jnp.diagonal(jnp.arange(24).reshape(2,3,4),1,0,2)
    jnp.diagonal(jnp.arange(24).reshape(2,3,4),-1,2,1)
    jnp.diagonal(jnp.arange(24).reshape(2,3,4),0,-1,-2)
    jnp.diagonal(x,9)
    jnp.diagonal(x,0,0,0)
    jnp.diagonal(x[0])
    jnp.trace(x)
    jnp.trace(x,1)
    jnp.trace(i8[:,None]*i8,dtype='int8')
    jnp.trace(jnp.arange(24).reshape(2,3,4))
    jnp.vander(x[0])
    jnp.vander(x[0],-1)
    jnp.vander(x[0],2,increasing=True)
    jnp.vander(k[0],4)
    jnp.vander(k)
    jnp.tril_indices(3,1)
    jnp.triu_indices(3,-1,4)
    jnp.diag_indices(2,3)
    jnp.diag_indices(2,-1)
    jnp.diag_indices(-1)
    jnp.indices((2,3))
    jnp.indices((2,3),sparse=True)
    jnp.indices((2,),dtype=float)
    jnp.fromfunction(lambda i,j:i*j,(2,3))
    jnp.fromfunction(lambda i,j:i*j,(2,3),dtype=int)
    jnp.fromfunction(lambda i:jnp.arange(3)*i,(2,))
    jnp.fromfunction(lambda i:1,(2,))
    jnp.fromfunction(lambda i,j:[i,(j,)],(2,2),dtype='int8')
    jnp.fromfunction(lambda i,j:i.ndim,(2,2))
    jnp.fromfunction(lambda i,j:i if i>j else j,(2,2))
    jnp.fromfunction(lambda i,j:i+j,(2,0))
    jnp.fromfunction(lambda: 3,())
    jnp.isscalar(np.array(1.)),jnp.isscalar(np.array([1.])),jnp.isscalar(jnp.float32(1)),jnp.isscalar([1])
    jnp.frombuffer(b'abcd',dtype='uint8')
    jnp.frombuffer(b'12345678')
    jnp.frombuffer(b'1234')
    jnp.copy(x)
    jnp.iscomplexobj(x)
    jnp.isscalar(x)
    jnp.isscalar('a')
    jnp.isscalar([1])
    jnp.shape(x)
    jnp.ndim(x)
    jnp.size(x)
    jnp.size(x,0)
    jnp.size(1)
    jnp.finfo(jnp.float32).eps.item()
    jnp.finfo('bfloat16').bits
    jnp.iinfo('uint8').max
    jnp.iinfo(jnp.int4).min
    jnp.issubdtype(jnp.bfloat16,jnp.floating)
    jnp.issubdtype(jnp.int4,jnp.integer)
    jnp.issubdtype(x.dtype,jnp.inexact)
    jnp.issubdtype(None,jnp.floating)
    jnp.promote_types('int8','uint8')
    jnp.promote_types('bfloat16','float16')
    jnp.promote_types(int,'int8')
    jnp.promote_types('uint32','int32')
    jnp.promote_types('int4','int8')
    jnp.result_type(x,1)
    jnp.result_type(h,1.5)
    jnp.result_type(k,h)
    jnp.result_type('int8',2)
    jnp.result_type(1,2.)
    jnp.result_type()
    jnp.isdtype('float16','real floating')
    jnp.isdtype(k.dtype,('integral','bool'))
    jnp.isdtype('int8','foo')
    jnp.isdtype(x,'real floating')
    jnp.isdtype('float32',x)
    jnp.isdtype('float32',3)
    jnp.isdtype('float32',jnp.floating)
    jnp.isdtype(3,'float32')
    jnp.issubdtype(x,jnp.floating)
    jnp.issubdtype(x,k)
    jnp.can_cast('int8','int16')
    jnp.dtype('float32')
    x.dtype
    jnp.pi
    jnp.newaxis
    x.astype('int8')
    x.astype(bool)
    c.astype('float32')
    x.astype(jnp.bfloat16).astype('float32')
    (x-2).astype('uint8')
    jnp.array([1e10,-1e10,np.nan]).astype('int32')
    x.astype('float32')
    x.astype('complex64')
    b.astype(float)
    x.astype(str)
    x.astype(x.dtype)
    wi.astype(float)
    jnp.astype(x,int)
    i8.view('uint8')
    x.view('int32')
    x[:, :2].view('float16').shape
    h[:, :2].view('int32')
    h.view('int32')
    jnp.trace(k)
    jnp.trace(i8[:,None]*i8)
    jnp.trace(b[:,None]&b)
    jnp.diag(k,1)
    jnp.diag(jnp.arange(2),-1)
    jnp.diag(w)
    jnp.meshgrid(jnp.arange(2),jnp.arange(3),indexing='ij',sparse=True)[0].shape
    jnp.tril(jnp.arange(3))
    jnp.tri(2,3,1)
    jnp.eye(2,3,k=1,dtype=int)
    jnp.arange(1,10,3)
    jnp.arange(10,1,-3)
    jnp.arange(5.5,0,-1.5)
    jnp.arange(1,5,dtype=float)
    jnp.arange(w)
    jnp.arange(0,1,0)
    jnp.linspace(0,1,1)
    jnp.linspace(0,1,0)
    jnp.linspace(0,1,5,endpoint=False,retstep=True)
    jnp.linspace(x[0],x[1],4,axis=-1).shape
    jnp.linspace(0,1,-1)
    jnp.logspace(0,1,3,base=2)
    jnp.geomspace(-1,-8,4)
    jnp.indices((2,3)).shape
    jnp.full((2,),w)
    jnp.full_like(k,1.5)
    jnp.full_like(w,1)
    jnp.zeros_like(w)
    jnp.zeros_like(k,dtype=float,shape=(1,))
    jnp.empty_like(k)
    jnp.copy(wi)
    jnp.array(wi,dtype='int32')
    jnp.array(wi,dtype=int)
    jnp.iscomplexobj(c)
    jnp.iscomplexobj(jnp.complex64)
    jnp.iscomplexobj(jnp.float32)
    jnp.iscomplexobj([1j])
    jnp.isscalar(1.)
    jnp.isscalar(w)
    jnp.ndim([1])
    jnp.shape([[1]])
    jnp.size(k,1)
    jnp.vander(i8)
    jnp.fromfunction(lambda i,j:i+j,(2,2))
    jnp.tril_indices(2)
    jnp.array([True,2])
    jnp.array([1,2.5,1j])
    jnp.array((1,2),dtype='bfloat16')
    jnp.array(range(3))
    jnp.array({1:2})
    jnp.asarray(np.arange(3,dtype='int64'))
    jnp.asarray(np.float32(2))
    jnp.asarray(True)
    jnp.array([[]]).shape
    jnp.array([w,1])
    jnp.array([w,w])
    jnp.array([wi,w])
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


# Which jax 0.10 gives in 32 bits; weft, NumPy and later releases of jax do not.
NARROW = [case for case in SAMPLE if re.match(r"jnp\.tri\(", case) and "dtype" not in case]
if not jaxlib.__version__.startswith("0.10."):
    NARROW = []


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", [case for case in SAMPLE if case not in NARROW])
def test_as_jax_x64(case):
    check(SAMPLE, case, x64=True)


def test_tri_is_of_the_default_float_dtype():
    assert weft.numpy.tri(3).dtype == np.float32
    with weft.enable_x64():
        assert weft.numpy.tri(3).dtype == weft.numpy.tri(2, 3, 1).dtype == np.tri(3).dtype


def test_arrays_are_made_on_a_device():
    device = weft.devices()[0]
    made = {
        "arange": (3,),
        "array": ([1, 2],),
        "asarray": ([1, 2],),
        "astype": (wnp.ones(2), "int32"),
        "empty": (2,),
        "empty_like": (np.ones(2),),
        "eye": (2,),
        "full": (2, 1.5),
        "full_like": (np.ones(2), 3),
        "linspace": (0, 1, 3),
        "ones": (2,),
        "ones_like": (np.ones(2),),
        "zeros": (2,),
        "zeros_like": (np.ones(2),),
    }
    for name, args in made.items():
        function = getattr(wnp, name)
        placed = function(*args, device=device)
        assert placed.committed and placed.device == device
        np.testing.assert_array_equal(placed, function(*args))
        assert weft.jit(lambda f=function, a=args: f(*a, device=device))().shape == placed.shape
        with pytest.raises(ValueError, match="device: expected one of weft.devices"):
            function(*args, device="here")
        if name not in ("astype", "empty_like", "eye", "linspace"):
            with pytest.raises(ValueError, match="expected a NamedSharding or a PartitionSpec"):
                function(*args, out_sharding=device)


@pytest.mark.parametrize("x", [None, [None], "a", 3, True, {"a": 1}, [], object(), [[1, 2]]])
def test_shapes_of_other_objects_are_those_of_numpy(x):
    assert wnp.shape(x) == np.shape(x)
    assert wnp.ndim(x) == np.ndim(x)
    assert wnp.size(x) == np.size(x)


def test_diagonals_that_are_traced():
    np.testing.assert_array_equal(weft.jit(lambda k: wnp.tri(3, M=2, k=k))(1), np.tri(3, 2, 1))
    many = weft.vmap(lambda k: wnp.tri(2, k=k))(wnp.arange(-1, 3))
    np.testing.assert_array_equal(many, [np.tri(2, k=k) for k in range(-1, 3)])


def test_short_floats_are_rounded_once_under_jit():
    make = lambda: wnp.arange(1.2, 4.8, 0.24, dtype="bfloat16")
    np.testing.assert_array_equal(np.asarray(weft.jit(make)()), np.asarray(make()))


def test_objects_with_a_dtype_name_it():
    class Header:
        dtype = np.dtype("float16")

    assert wnp.zeros(2, dtype=Header()).dtype == wnp.ones(2).astype(Header()).dtype == "float16"
    for x in (wnp.ones(2), np.ones(2), np.float32(1), weft.random.key(0)):
        with pytest.raises(TypeError, match="pass `x.dtype`"):
            wnp.zeros(2, dtype=x)


@pytest.mark.parametrize(
    "convert",
    [
        lambda z: z.astype(float),
        lambda z: z.astype(int),
        lambda z: wnp.astype(z, wnp.float32),
        lambda z: wnp.array(z, dtype=wnp.float32),
        lambda z: wnp.asarray(np.asarray(z), dtype=wnp.float32),
        lambda z: weft.lax.convert_element_type(z, wnp.float32),
        lambda z: weft.jit(lambda z: z.astype(float))(z),
    ],
)
def test_imaginary_parts_are_not_lost_in_silence(convert):
    z = wnp.array([3 + 2j])
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary") as seen:
        assert convert(z).tolist() == [3]
    assert [each.filename for each in seen] == [__file__]
    # Neither of these loses anything in silence.
    assert z.real.tolist() == [3] and z.astype(bool).tolist() == [True]
    assert z.astype(wnp.complex64).tolist() == [3 + 2j]
