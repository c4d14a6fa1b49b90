"""Sorting, selections, sets, quantiles, histograms, edits and interpolation of `weft.numpy`.

Each line of the table must give the same values, dtypes and weak types as under jax, eagerly and
under `jit`, or raise an error as jax does; see `oracle.py` for the operands. The first line of each
function and every sixteenth of the others are run by default.
"""

import itertools

import numpy as np
import pytest
from conftest import EVERYTHING
from oracle import check, check_staged, lines, needs_jax

import weft
import weft.numpy as wnp
from weft.errors import ConcretizationTypeError

CASES = lines(
    """
    jnp.argpartition(t,1)
    jnp.quantile(x,1)
    jnp.unique_inverse(jnp.zeros((2,0,3)))
    jnp.take(x,jnp.array([True]),axis=1)
    jnp.sort(n)
    jnp.sort(n,descending=True)
    jnp.sort(x,axis=None)
    jnp.sort(x,axis=5)
    jnp.sort(w)
    jnp.sort(w,axis=None)
    jnp.sort(wv)
    jnp.sort(x,kind="quicksort")
    jnp.sort(x,order="a")
    jnp.argsort(n)
    jnp.argsort(t,descending=True)
    jnp.argsort(t,descending=True,stable=False)
    jnp.argsort(t,dtype="int8")
    jnp.argsort(t,dtype="float32")
    jnp.argsort(w)
    jnp.argsort(x,kind="stable")
    jnp.argsort(x,order="a")
    jnp.argsort(x,axis=None)
    jnp.argsort(b)
    jnp.lexsort((t,i8))
    jnp.lexsort((t,t[::-1]))
    jnp.lexsort(x)
    jnp.lexsort(x,axis=0)
    jnp.lexsort([])
    jnp.lexsort((w,w))
    jnp.lexsort((x,k),axis=0)
    jnp.partition(n,3)
    jnp.partition(t,2)
    jnp.partition(t,-2)
    jnp.partition(t,9)
    jnp.partition(c,1)
    jnp.partition(x,1,axis=0)
    jnp.partition(wv,1)
    jnp.sort_complex(n)
    jnp.sort_complex(x[::-1])
    jnp.sort_complex(i8)
    jnp.sort_complex(h)
    jnp.sort_complex(w)
    jnp.searchsorted(jnp.sort(n),jnp.array([jnp.nan,0.,-0.]))
    jnp.searchsorted(jnp.sort(n),jnp.array([jnp.nan,0.,-0.]),side="right")
    jnp.searchsorted(x[0],1)
    jnp.searchsorted(x[0],x,method="sort")
    jnp.searchsorted(x[0],x,method="foo")
    jnp.searchsorted(x[0],x,side="foo")
    jnp.searchsorted(x,1)
    jnp.searchsorted(jnp.zeros(0),x)
    jnp.searchsorted(x[0],1,sorter=jnp.array([2,1,0]))
    jnp.searchsorted(x[0],1,sorter=jnp.array([2.,1,0]))
    jnp.searchsorted(x[0],1,sorter=jnp.array([1,0]))
    jnp.searchsorted(c[0],1)
    jnp.searchsorted(c[0],1+1j)
    jnp.searchsorted(jnp.arange(3,dtype="uint8"),1)
    jnp.searchsorted([1,2],1)
    jnp.digitize(x,jnp.array([1.,3.]))
    jnp.digitize(x,jnp.array([3.,1.]))
    jnp.digitize(x,jnp.array([3.,1.]),right=True)
    jnp.digitize(x,jnp.zeros(0))
    jnp.digitize(x,x)
    jnp.digitize(x,jnp.array([3.]))
    jnp.digitize(x,jnp.array([1.,3.]),method="sort")
    jnp.digitize(c,jnp.array([1.,3.]))
    jnp.nonzero(x)
    jnp.nonzero(x,fill_value=.5)
    jnp.nonzero(x,fill_value=jnp.float32(.5))
    jnp.nonzero(x,size=0,fill_value=.5)
    jnp.nonzero(x,size=8)
    jnp.nonzero(x,size=8,fill_value=-1)
    jnp.nonzero(x,size=8,fill_value=(7,8))
    jnp.nonzero(x,size=8,fill_value=(7,8,9))
    jnp.nonzero(x,size=8,fill_value=jnp.array([7,8]))
    jnp.nonzero(x,size=8,fill_value=1.5)
    jnp.nonzero(x,size=2)
    jnp.nonzero(x,size=0)
    jnp.nonzero(x,size=-1)
    jnp.nonzero(x,size=1.5)
    jnp.nonzero(x,fill_value=3)
    jnp.nonzero(w)
    jnp.nonzero(jnp.zeros((0,3)),size=2,fill_value=9)
    jnp.nonzero(jnp.zeros((3)),size=2,fill_value=9)
    jnp.nonzero(jnp.zeros((3)),size=0,fill_value=9)
    jnp.where(x)
    jnp.where(x>1)
    jnp.where(x,x)
    jnp.where(x,x,None)
    jnp.where(x,size=3,fill_value=9)
    jnp.where(x,x,x,size=3)
    jnp.where(condition=x)
    jnp.argwhere(x)
    jnp.argwhere(x,size=8)
    jnp.argwhere(x,size=8,fill_value=7)
    jnp.argwhere(x,size=8,fill_value=(7,8))
    jnp.argwhere(w)
    jnp.argwhere(w*0)
    jnp.argwhere(w,size=3)
    jnp.argwhere(w,size=0)
    jnp.flatnonzero(x)
    jnp.flatnonzero(x,size=8,fill_value=9)
    jnp.flatnonzero(x,size=8,fill_value=(9,))
    jnp.extract(x>1,k)
    jnp.extract(x>1,k,size=8,fill_value=9)
    jnp.extract(x>1,k,size=8)
    jnp.extract(x[0]>1,k)
    jnp.extract(True,3)
    jnp.extract(x>1,wv)
    jnp.compress(b,x,axis=0)
    jnp.compress(b,x)
    jnp.compress(b,x,axis=1)
    jnp.compress(jnp.array([True,False,True,False]),x,axis=1)
    jnp.compress(jnp.array([True,False,True,True]),x,axis=1)
    jnp.compress(jnp.array([True,False,True,False]),x,axis=1,size=3,fill_value=9)
    jnp.compress(x>1,x)
    jnp.compress(b,x,axis=0,size=1)
    jnp.compress(b,x,axis=0,out=x)
    jnp.compress(jnp.array(True),x,axis=0)
    jnp.compress(k[0],x,axis=1)
    jnp.compress(b,w)
    jnp.repeat(x,2,total_repeat_length=4)
    jnp.repeat(t,t)
    jnp.repeat(t,t,total_repeat_length=4)
    jnp.repeat(t,t,total_repeat_length=12)
    jnp.repeat(x,jnp.array([1,2]),axis=0,total_repeat_length=2)
    jnp.repeat(x,jnp.array([1,2]),axis=0,total_repeat_length=5)
    jnp.repeat(x,jnp.array([2]),axis=0,total_repeat_length=5)
    jnp.repeat(x,jnp.array([1,2,3]),axis=0)
    jnp.repeat(x,jnp.array([1,-2]),axis=0)
    jnp.repeat(x,jnp.array([1.,2.]),axis=0)
    jnp.repeat(w,3)
    jnp.repeat(x,2,axis=0,total_repeat_length=6)
    jnp.unique(t)
    jnp.unique(n)
    jnp.unique(n,equal_nan=False)
    jnp.unique(x)
    jnp.unique(t,True,True,True)
    jnp.unique(t,True,True,True,size=5)
    jnp.unique(t,True,True,True,size=2)
    jnp.unique(t,True,True,True,size=5,fill_value=9)
    jnp.unique(t,True,True,True,size=5,fill_value=-9)
    jnp.unique(x,False,True)
    jnp.unique(jnp.array([[1,2],[1,2],[0,5]]),True,True,True,axis=0)
    jnp.unique(jnp.array([[1,2],[1,2],[0,5]]),True,True,True,axis=0,size=4)
    jnp.unique(jnp.array([[1,2],[1,2],[0,5]]),True,True,True,axis=0,size=4,fill_value=9)
    jnp.unique(jnp.array([[1,1,2],[1,1,2]]),True,True,True,axis=1)
    jnp.unique(jnp.array([[1,jnp.nan],[1,jnp.nan],[0,5]]),True,True,True,axis=0)
    jnp.unique(jnp.array([[1,jnp.nan],[1,jnp.nan],[0,5]]),True,True,True,axis=0,equal_nan=False)
    jnp.unique(x,axis=3)
    jnp.unique(w)
    jnp.unique(w,True,True,True)
    jnp.unique(w,axis=0)
    jnp.unique(wv)
    jnp.unique(b)
    jnp.unique(jnp.zeros(0))
    jnp.unique(jnp.zeros(0),True,True,True)
    jnp.unique(jnp.zeros(0),True,True,True,size=2)
    jnp.unique(jnp.zeros(0),True,True,True,size=2,fill_value=7)
    jnp.unique(jnp.zeros((0,3)),True,True,True,axis=0)
    jnp.unique(jnp.zeros((3,0)),True,True,True,axis=0)
    jnp.unique(jnp.zeros((3,0)),axis=1)
    jnp.unique(jnp.zeros((0,3)),axis=0,size=2,fill_value=5)
    jnp.unique(c)
    jnp.unique(n[:,None]+1j*n[None])
    jnp.unique(t,size=-1)
    jnp.unique(t,size=0,return_inverse=True)
    jnp.unique(t,sorted=False)
    jnp.unique([1,2])
    jnp.unique(t,size=5,fill_value=1.5)
    jnp.unique_all(x)
    jnp.unique_all(n)
    jnp.unique_all(n,size=10)
    jnp.unique_counts(n)
    jnp.unique_inverse(n)
    jnp.unique_values(n)
    jnp.unique_values(t,size=6,fill_value=2)
    jnp.union1d(t,i8)
    jnp.union1d(i8,1j)
    jnp.union1d(2,1)
    jnp.union1d(t,x,size=8)
    jnp.union1d(t,x,size=8,fill_value=-1)
    jnp.union1d(t,i8,size=2)
    jnp.intersect1d(t,i8)
    jnp.intersect1d(t,i8,return_indices=True)
    jnp.intersect1d(t,x,return_indices=True)
    jnp.intersect1d(t,x,return_indices=True,size=5)
    jnp.intersect1d(t,x,return_indices=True,size=5,fill_value=9)
    jnp.intersect1d(t,x,return_indices=True,size=1)
    jnp.intersect1d(t,x,size=5)
    jnp.intersect1d(i8,jnp.array([2,5]),True,True)
    jnp.intersect1d(i8,i8+9,size=3,return_indices=True)
    jnp.intersect1d(jnp.zeros(0),x)
    jnp.intersect1d(n,n)
    jnp.setdiff1d(x,t)
    jnp.setdiff1d(t,i8)
    jnp.setdiff1d(t,i8,size=4)
    jnp.setdiff1d(i8[:0],t,size=2)
    jnp.setdiff1d(i8[:0],t,size=2,fill_value=5,assume_unique=True)
    jnp.setxor1d(i8[:0],t[:0],size=2,fill_value=5)
    jnp.setdiff1d(t,i8,size=4,fill_value=-1)
    jnp.setdiff1d(t,i8,size=4,fill_value=-1,assume_unique=True)
    jnp.setdiff1d(t,jnp.array([1]),assume_unique=True)
    jnp.setdiff1d(x,jnp.zeros(0))
    jnp.setdiff1d(t,t,size=2)
    jnp.setdiff1d(n,n)
    jnp.setdiff1d(t,1.5)
    jnp.setxor1d(t,i8)
    jnp.setxor1d(t,i8,size=4)
    jnp.setxor1d(t,i8,size=4,fill_value=-1)
    jnp.setxor1d(t,i8,True)
    jnp.setxor1d(t,t,size=2)
    jnp.setxor1d(i8,x,True,size=5)
    jnp.setxor1d(n,n)
    jnp.isin(x,t)
    jnp.isin(x,t,invert=True)
    jnp.isin(n,n)
    jnp.isin(3,t)
    jnp.isin(x,jnp.zeros(0))
    jnp.isin(x,t,method="sort")
    jnp.isin(x,t,method="foo")
    jnp.isin(x,t,method="binary_search")
    jnp.isin(c,1)
    jnp.isin(n,n,method="compare_all")
    jnp.isin(n,n,method="binary_search")
    jnp.isin(n,n,method="sort")
    jnp.median(x)
    jnp.median(k,axis=1)
    jnp.median(x,axis=(0,1),keepdims=True)
    jnp.median(n)
    jnp.median(w)
    jnp.median(wv)
    jnp.median(i8)
    jnp.median(h)
    jnp.median(b)
    jnp.median(c)
    jnp.median(jnp.zeros((0,2)),axis=1)
    jnp.median(x,out=x)
    jnp.median(x,overwrite_input=True)
    jnp.nanmedian(n)
    jnp.nanmedian(x,axis=-1)
    jnp.nanmedian(jnp.array([jnp.nan]))
    jnp.quantile(x,0.3)
    jnp.quantile(x,jnp.array([0.3,0.6]),axis=1)
    jnp.quantile(x,jnp.array([[0.3,0.6]]),axis=1)
    jnp.quantile(x,jnp.array([0.3,0.6]),axis=1,keepdims=True)
    jnp.quantile(x,0.3,axis=(0,1),keepdims=True)
    jnp.quantile(k,0.3)
    jnp.quantile(h,0.3)
    jnp.quantile(h,jnp.float32(0.3))
    jnp.quantile(c,0.3)
    jnp.quantile(b,0.3)
    jnp.quantile(w,0.3)
    jnp.quantile(wv,0.3)
    jnp.quantile(x,-0.3)
    jnp.quantile(x,1.3)
    jnp.quantile(n,0.3)
    jnp.quantile(n,jnp.nan)
    jnp.quantile(x,0.3,method="foo")
    jnp.quantile(x,0.3,method="lower")
    jnp.quantile(x,0.3,method="higher")
    jnp.quantile(x,0.3,method="midpoint")
    jnp.quantile(x,0.3,method="nearest")
    jnp.quantile(x,0.3,method="inverted_cdf")
    jnp.quantile(x,0.3,method="averaged_inverted_cdf")
    jnp.quantile(x,0.3,method="closest_observation")
    jnp.quantile(x,0.3,method="interpolated_inverted_cdf")
    jnp.quantile(x,0.3,method="hazen")
    jnp.quantile(x,0.3,method="weibull")
    jnp.quantile(x,0.3,method="median_unbiased")
    jnp.quantile(x,0.3,method="normal_unbiased")
    jnp.quantile(x,0.3,weights=x)
    jnp.quantile(x,0.3,weights=x,method="inverted_cdf")
    jnp.quantile(x,0.5,weights=x,method="inverted_cdf")
    jnp.quantile(x,0.5,weights=x[0],axis=1,method="inverted_cdf")
    jnp.quantile(x,0.5,weights=x[0],axis=1)
    jnp.quantile(x,0.5,weights=x[:1],axis=1,method="inverted_cdf")
    jnp.quantile(x,0.5,weights=x,method="averaged_inverted_cdf")
    jnp.quantile(x,0.5,weights=x,method="hazen")
    jnp.quantile(x,jnp.array([0.,.2,.5,1.]),weights=k,method="inverted_cdf")
    jnp.quantile(k,jnp.array([0.,.2,.5,1.]),weights=k,method="inverted_cdf")
    jnp.quantile(x,0.3,weights=-x,method="inverted_cdf")
    jnp.quantile(n,0.3,weights=jnp.ones(8),method="inverted_cdf")
    jnp.nanquantile(n,0.3,weights=jnp.ones(8),method="inverted_cdf")
    jnp.nanquantile(n,0.3)
    jnp.nanquantile(n,jnp.array([0.3,.9]),method="nearest")
    jnp.nanpercentile(n,30)
    jnp.percentile(x,30)
    jnp.percentile(x,jnp.array([30,60]))
    jnp.percentile(k,30)
    jnp.percentile(x,50.,method="midpoint")
    jnp.quantile(jnp.zeros((0,2)),0.5,axis=1)
    jnp.quantile(x,jnp.zeros(0))
    jnp.quantile(x,1+1j)
    jnp.quantile(x,[0.5])
    jnp.quantile(x,jnp.zeros((1,1,1)))
    jnp.histogram(x)
    jnp.histogram(x,'auto')
    jnp.histogram(k,3)
    jnp.histogram(k,3,weights=x)
    jnp.histogram(k,3,weights=k)
    jnp.histogram(x,3,density=True)
    jnp.histogram(k,3,density=True)
    jnp.histogram(x,jnp.array([0.,1.,5.]))
    jnp.histogram(x,jnp.array([0,1,5]))
    jnp.histogram(x,3,(1,4))
    jnp.histogram(x,3,(1,1))
    jnp.histogram(x,3,(4,1))
    jnp.histogram(x,jnp.array([5.,1.,0.]))
    jnp.histogram(x,"auto")
    jnp.histogram(jnp.zeros(0),3)
    jnp.histogram(jnp.ones(3),3)
    jnp.histogram(n,3)
    jnp.histogram(h,3)
    jnp.histogram(c,3)
    jnp.histogram(b,3)
    jnp.histogram(x,0)
    jnp.histogram(x,2.5)
    jnp.histogram(x,x)
    jnp.histogram(x,3,weights=x[0])
    jnp.histogram(x,3,weights=c)
    jnp.histogram(w,3)
    jnp.histogram_bin_edges(x)
    jnp.histogram_bin_edges(x,'auto')
    jnp.histogramdd(h,[2,jnp.arange(4.),3],density=True)
    jnp.histogramdd(h,2,density=True,weights=x[:,0])
    jnp.histogram_bin_edges(k,3)
    jnp.histogram_bin_edges(h,3)
    jnp.histogram_bin_edges(k,jnp.array([0,1,5]))
    jnp.histogram_bin_edges(x,3,(1,4),weights=x)
    jnp.histogram_bin_edges(k,3,(1,4,5))
    jnp.histogram_bin_edges(x,"auto")
    jnp.histogram_bin_edges(x,3,jnp.array([1,2]))
    jnp.histogram2d(x[0],x[1])
    jnp.histogram2d(x[0],x[1],3)
    jnp.histogram2d(x[0],x[1],[3,2])
    jnp.histogram2d(x[0],x[1],jnp.array([0.,3.,6.]))
    jnp.histogram2d(x[0],x[1],[jnp.array([0.,3.,6.]),2])
    jnp.histogram2d(x[0],x[1],3,[(0,1),(3,5)],density=True)
    jnp.histogram2d(x[0],x[1],3,[(0,1),None],weights=x[0])
    jnp.histogram2d(x[0],x[1][:2],3)
    jnp.histogram2d(k[0],k[1],2)
    jnp.histogram2d(x[0],x[1],[3,2,1])
    jnp.histogramdd(x,2)
    jnp.histogramdd(x.T,2)
    jnp.histogramdd(x.T,[2,jnp.array([0.,3.,5.])],density=True)
    jnp.histogramdd(x[0],2)
    jnp.histogramdd(k.T,2,[(0,3),(0,3)])
    jnp.histogramdd(x.T,2,weights=x[0])
    jnp.histogramdd(x.T,2,weights=x)
    jnp.histogramdd(x.T,[2])
    jnp.histogramdd(x.T,(2,3))
    jnp.histogramdd(x.T,2,[(0,3)])
    jnp.histogramdd(x.T[None],2)
    jnp.bincount(t)
    jnp.bincount(t,x[0])
    jnp.bincount(t,length=2)
    jnp.bincount(t,length=8)
    jnp.bincount(t,minlength=8)
    jnp.bincount(t,minlength=-8)
    jnp.bincount(t,minlength=1,length=2)
    jnp.bincount(t,jnp.arange(5.))
    jnp.bincount(t,jnp.arange(5))
    jnp.bincount(t,jnp.arange(5,dtype="int8"))
    jnp.bincount(t,jnp.arange(5.)*1j)
    jnp.bincount(t-2)
    jnp.bincount(x[0])
    jnp.bincount(k)
    jnp.bincount(jnp.zeros(0,int))
    jnp.bincount(jnp.zeros(0,int),minlength=3)
    jnp.bincount(b)
    jnp.bincount(i8)
    jnp.bincount(w)
    jnp.bincount(t,jnp.ones((5,)) > 0)
    jnp.bincount([1,2])
    jnp.bincount(jnp.array([3,1],"uint8"))
    jnp.cov(x,fweights=jnp.array([1,2,3]))
    jnp.cov(x,fweights=jnp.array([1.,2,3]))
    jnp.cov(x,aweights=jnp.array([1.,2,3]))
    jnp.cov(x,aweights=jnp.array([1,2,3]))
    jnp.cov(x,fweights=jnp.array([1,2,3]),aweights=jnp.array([1.,2,3]),ddof=0)
    jnp.cov(x,fweights=jnp.array([1,2]))
    jnp.cov(x,fweights=jnp.array([[1,2,3]]))
    jnp.cov(x,fweights=jnp.array([-1,2,3]))
    jnp.cov(x,aweights=jnp.array([[1,2,3]]))
    jnp.cov(x,aweights=jnp.array([1,2]))
    jnp.cov(x,aweights=c[0])
    jnp.cov(x,dtype="float16")
    jnp.cov(k,dtype="float32")
    jnp.cov(k,dtype="int32")
    jnp.cov(x,dtype="complex64")
    jnp.cov(x,ddof=1.5)
    jnp.corrcoef(x,dtype="float16")
    jnp.corrcoef(c+1j)
    jnp.cov(x[0],ddof=9)
    jnp.cov(x[0],fweights=jnp.array([1,2,3]))
    jnp.cov(jnp.zeros((0,3)))
    jnp.cov(w)
    jnp.choose(t[:3]%2,(x[0],i8))
    jnp.choose(t,x)
    jnp.choose(t,x,mode="wrap")
    jnp.choose(t,(1,2),mode="clip")
    jnp.choose(jnp.array([0,1,1]),x)
    jnp.choose(jnp.array([0,1,1]),x[:,:1])
    jnp.choose(k%2,x)
    jnp.choose(k%2,(x,1),out=x)
    jnp.choose(x,x)
    jnp.choose(t,x,mode="foo")
    jnp.choose(jnp.array([],int),())
    jnp.choose(1,(1,2.5))
    jnp.choose(jnp.array([0,1,1]),(w,w))
    jnp.piecewise(x,[x<1,x>3],[1,2])
    jnp.piecewise(x,[x<1,x>3],[1,2,3])
    jnp.piecewise(x,[x<1,x>3],[lambda x: x*2,2,lambda x: -x])
    jnp.piecewise(x,x<1,[lambda x,y: x*y,5.5],3.)
    jnp.piecewise(x,[x<1,x>3],[1])
    jnp.piecewise(k,[k<1,k>3],[lambda x: x*2.5,2.7,lambda x: -x])
    jnp.piecewise(w,[w<1,w>3],[lambda x: x*2,2,lambda x: -x])
    jnp.piecewise(x,[x<3,x>=0],[lambda x,s=1: x*s,2,3],s=7)
    jnp.piecewise(2.0,[True],[lambda x: x])
    jnp.piecewise(x,x[:1]<1,[5,6])
    jnp.piecewise(x,True,[5,6])
    jnp.piecewise(x,[True,False],[5,6])
    jnp.piecewise(x,[b],[5,6])
    jnp.piecewise(x,(x<1,x>3),(1,2))
    jnp.piecewise(x,[],[])
    jnp.piecewise(x,[],[1])
    jnp.place(x,x>2,jnp.array([9.]),inplace=False)
    jnp.place(x,x>2,jnp.array([9.]))
    jnp.place(x,x>2,jnp.array([9.,8.]),inplace=False)
    jnp.place(k,x>2,jnp.array([9.5,8.]),inplace=False)
    jnp.place(x,x>2,jnp.zeros(0),inplace=False)
    jnp.place(x,x[0]>2,jnp.zeros(1),inplace=False)
    jnp.place(x,(x>2).ravel(),jnp.array([7.]),inplace=False)
    jnp.place(x,k,5,inplace=False)
    jnp.place(x,x>2,5,inplace=False)
    jnp.place(x,x>2,[5],inplace=False)
    jnp.place(wv,x>2,5,inplace=False)
    jnp.put(x,jnp.array([0,5]),9,inplace=False)
    jnp.put(x,jnp.array([0,5]),9)
    jnp.put(x,jnp.array([0,-1]),jnp.array([7,8]),inplace=False)
    jnp.put(x,jnp.array([0,1,2]),jnp.array([7,8]),inplace=False)
    jnp.put(x,jnp.array([0,1,2]),jnp.array([7,8,9,10]),inplace=False)
    jnp.put(x,jnp.array([0,99]),9,inplace=False)
    jnp.put(x,jnp.array([0,99]),9,mode="clip",inplace=False)
    jnp.put(x,jnp.array([0,-99]),9,mode="clip",inplace=False)
    jnp.put(x,jnp.array([0,-1]),9,mode="clip",inplace=False)
    jnp.put(x,jnp.array([0,100]),9,mode="wrap",inplace=False)
    jnp.put(x,jnp.array([0,-100]),9,mode="wrap",inplace=False)
    jnp.put(x,jnp.array([0,99]),9,mode="raise",inplace=False)
    jnp.put(x,jnp.array([0,99]),9,mode="foo",inplace=False)
    jnp.put(x,jnp.array([0.,1]),9,inplace=False)
    jnp.put(x,jnp.zeros(0,int),9,inplace=False)
    jnp.put(x,jnp.zeros(2,int),jnp.zeros(0),inplace=False)
    jnp.put(x,3,9.5,inplace=False)
    jnp.put(k,3,9.5,inplace=False)
    jnp.put(x,[0],9,inplace=False)
    jnp.put_along_axis(x,jnp.array([[1],[2]]),9,1,inplace=False)
    jnp.put_along_axis(x,jnp.array([[1],[2]]),9,1)
    jnp.put_along_axis(x,jnp.array([[1],[2]]),jnp.array([[7],[8]]),axis=1,inplace=False)
    jnp.put_along_axis(x,jnp.array([[1,0,1]]),9,0,inplace=False)
    jnp.put_along_axis(x,jnp.array([1,0]),9,None,inplace=False)
    jnp.put_along_axis(x,jnp.array([[1]]),9,None,inplace=False)
    jnp.put_along_axis(x,jnp.array([1,0]),9,1,inplace=False)
    jnp.put_along_axis(x,jnp.array([[1],[-1]]),9,1,inplace=False)
    jnp.put_along_axis(x,jnp.array([[1],[9]]),9,1,inplace=False)
    jnp.put_along_axis(x,jnp.array([[1],[9]]),9,1,inplace=False,mode="clip")
    jnp.put_along_axis(x,jnp.array([[2]]),9,1,inplace=False)
    jnp.put_along_axis(x,jnp.array([[2.]]),9,1,inplace=False)
    jnp.put_along_axis(k,jnp.array([[2]]),9.5,1,inplace=False)
    jnp.fill_diagonal(x,9,inplace=False)
    jnp.fill_diagonal(x,9)
    jnp.fill_diagonal(jnp.zeros((5,2)),9,inplace=False)
    jnp.fill_diagonal(jnp.zeros((5,2)),9,wrap=True,inplace=False)
    jnp.fill_diagonal(jnp.zeros((5,2)),jnp.array([1,2,3]),inplace=False)
    jnp.fill_diagonal(jnp.zeros((7,2)),jnp.array([1,2,3]),wrap=True,inplace=False)
    jnp.fill_diagonal(jnp.zeros((3,3,3)),jnp.array([[1,2,3],[4,5,6]]),inplace=False)
    jnp.fill_diagonal(jnp.zeros((3,3,2)),1,inplace=False)
    jnp.fill_diagonal(x[0],1,inplace=False)
    jnp.fill_diagonal(k,1.5,inplace=False)
    jnp.fill_diagonal(jnp.zeros((3,3)),jnp.array([1,2]),inplace=False)
    jnp.fill_diagonal(jnp.zeros((3,3)),jnp.array([1,2,3,4]),inplace=False)
    jnp.fill_diagonal(wv,1,inplace=False)
    jnp.insert(x,1,9)
    jnp.insert(x,1,9,axis=1)
    jnp.insert(x,1,jnp.array([8,9]),axis=1)
    jnp.insert(x,jnp.array([1]),jnp.array([[8],[9]]),axis=1)
    jnp.insert(x,jnp.array([1,1]),jnp.array([8,9]),axis=1)
    jnp.insert(x,jnp.array([0,2]),5,axis=1)
    jnp.insert(x,slice(1,3),5,axis=1)
    jnp.insert(x,-1,9)
    jnp.insert(x,9,9)
    jnp.insert(x,6,9)
    jnp.insert(k,1,9.5)
    jnp.insert(x,jnp.array([True,False,True]),9,axis=1)
    jnp.insert(x,jnp.array([5,1]),jnp.array([8,9]))
    jnp.insert(x,1,jnp.array([8,9,10]))
    jnp.insert(w,0,3)
    jnp.insert(wv,0,3)
    jnp.insert(x,1.5,3)
    jnp.insert(x,jnp.zeros(0,int),3)
    jnp.insert(x,1,x[:,:1],axis=0)
    jnp.insert(x,1,x[0],axis=0)
    jnp.insert(x,jnp.array([[1]]),3)
    jnp.delete(x,1)
    jnp.delete(x,1,axis=1)
    jnp.delete(x,-1,axis=1)
    jnp.delete(x,9,axis=1)
    jnp.delete(x,slice(0,2),axis=1)
    jnp.delete(x,slice(None,None,-2),axis=1)
    jnp.delete(x,jnp.array([0,2]),axis=1)
    jnp.delete(x,jnp.array([0,0]),axis=1)
    jnp.delete(x,jnp.array([0,9]),axis=1)
    jnp.delete(x,jnp.array([True,False,True]),axis=1)
    jnp.delete(x,jnp.array([True,False]),axis=1)
    jnp.delete(x,jnp.array([0,-1]))
    jnp.delete(x,jnp.array([[0,-1]]))
    jnp.delete(x,jnp.zeros(0,int))
    jnp.delete(x,[0])
    jnp.delete(x,1.5)
    jnp.delete(w,0)
    jnp.delete(wv,0)
    jnp.delete(x,jnp.array([1,2]),assume_unique_indices=True)
    jnp.delete(x,jnp.array([1,-1]),axis=1,assume_unique_indices=True)
    jnp.trim_zeros(jnp.array([0,0,1,0,2,0]))
    jnp.trim_zeros(jnp.array([0,0,1,0,2,0]),"f")
    jnp.trim_zeros(jnp.array([0,0,1,0,2,0]),"B")
    jnp.trim_zeros(jnp.array([0,0]))
    jnp.trim_zeros(jnp.array([0,0,1,0,2,0]),"x")
    jnp.trim_zeros(jnp.array([[0,0,0],[0,1,0],[0,2,0]]))
    jnp.trim_zeros(jnp.array([[0,0,0],[0,1,0],[0,2,0]]),axis=0)
    jnp.trim_zeros(jnp.array([[0,0,0],[0,1,0],[0,2,0]]),axis=(0,1))
    jnp.trim_zeros([0,1])
    jnp.trim_zeros(jnp.zeros(0))
    jnp.trim_zeros(w)
    jnp.unravel_index(5,(2,3))
    jnp.unravel_index(jnp.array([5,-1,99,-99]),(2,3))
    jnp.unravel_index(k,(2,3))
    jnp.unravel_index(i8,(2,3))
    jnp.unravel_index(i8,np.array([2,3]))
    jnp.unravel_index(u8,(np.int16(2),3))
    jnp.unravel_index(b,np.array([2,3],'int8'))
    jnp.unravel_index(5,np.int32(6))
    jnp.unravel_index(jnp.array([1],"uint8"),(2,3))
    jnp.unravel_index(b,(2,3))
    jnp.unravel_index(5,7)
    jnp.unravel_index(5,())
    jnp.unravel_index(0,())
    jnp.unravel_index(jnp.array([5]),(300,300))
    jnp.unravel_index(i8,(300,300))
    jnp.ravel_multi_index((jnp.array([1,0]),jnp.array([2,1])),(2,3))
    jnp.ravel_multi_index((1,2),(2,3))
    jnp.ravel_multi_index((1,9),(2,3))
    jnp.ravel_multi_index((1,9),(2,3),mode="clip")
    jnp.ravel_multi_index((1,9),(2,3),mode="wrap")
    jnp.ravel_multi_index((1,-1),(2,3),mode="wrap")
    jnp.ravel_multi_index((1,-1),(2,3),mode="clip")
    jnp.ravel_multi_index((1,2),(2,3),order="F")
    jnp.ravel_multi_index((1,2),(2,3),order="K")
    jnp.ravel_multi_index((1,2),(2,3),mode="foo")
    jnp.ravel_multi_index((1,2,3),(2,3))
    jnp.ravel_multi_index((1.,2),(2,3))
    jnp.ravel_multi_index(k[:,:2],(9,9),mode="clip")
    jnp.ravel_multi_index((i8,i8),(9,9),mode="clip")
    jnp.ravel_multi_index((i8,i8),(9,9),mode="clip",dtype="int16")
    jnp.diag_indices_from(jnp.zeros((3,3)))
    jnp.diag_indices_from(x)
    jnp.diag_indices_from(x[0])
    jnp.tril_indices_from(x)
    jnp.tril_indices_from(x,1)
    jnp.tril_indices_from(x[0])
    jnp.triu_indices_from(x,k=-1)
    jnp.mask_indices(3,jnp.triu)
    jnp.mask_indices(3,jnp.tril,1)
    jnp.mask_indices(3,jnp.tril,-1,size=5)
    jnp.interp(1.5,x[0],x[1])
    jnp.interp(1.5,x[0],x[1],period=x[0,:1])
    jnp.interp(x,x[0],x[1])
    jnp.interp(x,x[0],x[1],left=-1,right=9)
    jnp.interp(x,x[0],x[1],left="extrapolate",right="extrapolate")
    jnp.interp(x,x[0],x[1],left="foo")
    jnp.interp(x,x[0],x[1],period=2)
    jnp.interp(x,x[0],x[1],period=2.5,left=3)
    jnp.interp(x,x[0],x[1],period=0)
    jnp.interp(x,x[0],x[1],period=-2.)
    jnp.interp(n,x[0],x[1])
    jnp.interp(x,k[0],k[1])
    jnp.interp(k,k[0],k[1])
    jnp.interp(x,x[0],c[1])
    jnp.interp(c,x[0],c[1])
    jnp.interp(x,x,x)
    jnp.interp(x,x[0],t)
    jnp.interp(x,jnp.zeros(0),jnp.zeros(0))
    jnp.interp(x,jnp.ones(1),jnp.ones(1)*2)
    jnp.interp(x,jnp.array([0.,1.,1.,2.]),jnp.array([0.,1.,5.,6.]))
    jnp.interp(h,h[0],h[1])
    jnp.interp(w,x[0],x[1])
    jnp.interp(2.,x[0],wv[0])
    jnp.unwrap(x)
    jnp.unwrap(x*3)
    jnp.unwrap(k*3)
    jnp.unwrap(k*3,period=4)
    jnp.unwrap(x*3,discont=7)
    jnp.unwrap(x*3,axis=0)
    jnp.unwrap(h*3)
    jnp.unwrap(c)
    jnp.unwrap(w)
    jnp.unwrap(wv)
    jnp.unwrap(x*3,period=3.)
    jnp.unwrap(k*3,period=3.)
    jnp.unwrap(jnp.zeros(0))
    jnp.unwrap(i8*3)
    jnp.unwrap(b)
    jnp.take_along_axis(x,jnp.array([[1],[-1]]),1,wrap_negative_indices=False)
    jnp.take_along_axis(x,jnp.array([[1],[-1]]),1,mode="clip",wrap_negative_indices=False)
    jnp.take_along_axis(x,jnp.array([[1],[-1]]),1,mode="clip")
    jnp.take_along_axis(x,jnp.array([[1],[-1]]),1,wrap_negative_indices=True)
    x.sort(descending=True)
    x.argsort(axis=0)
    x[0].searchsorted(1)
    t.choose(x,mode="wrap")
    x.compress(b,axis=0)
    x.nonzero()
    x.compress(b,axis=0,size=2)
    jnp.intersect1d(i8+1,i8+9,size=3)
    jnp.intersect1d(i8+1,i8+9,size=3,fill_value=4)
    jnp.intersect1d(jnp.array([5,6]),jnp.array([3,7]),size=2)
    jnp.setxor1d(t,t+0,size=2,fill_value=8)
    jnp.setxor1d(jnp.array([5,6]),jnp.array([6,5]),size=2)
    jnp.setdiff1d(jnp.array([5,6]),jnp.array([6,5]),size=2)
    jnp.compress(b,jnp.array([3,4]),size=2,fill_value=9.5)
    jnp.compress(jnp.array([1.,0.]),jnp.array([3,4]))
    jnp.compress(jnp.array([True,True,True]),jnp.array([3,4]),size=1)
    jnp.extract(jnp.array([True,True,True]),jnp.array([3,4]))
    jnp.extract(jnp.array([True,False,True,False]),x,size=2)
    jnp.cov(x[0],ddof=3)
    jnp.cov(x,ddof=3)
    jnp.unique(jnp.array([[3,1],[1,2]]),axis=-1,return_index=True)
    jnp.insert(jnp.arange(3),jnp.array([1]),jnp.array([7,8,9]))
    jnp.insert(jnp.arange(3),jnp.array([1,2]),jnp.array([7]))
    jnp.insert(x,jnp.array([0,1]),jnp.array([[7],[8]]),axis=0)
    jnp.insert(x,1,jnp.zeros((2,3,1)))
    jnp.insert(x,-9,9)
    jnp.insert(x,jnp.array([-1,0]),9)
    jnp.histogramdd(x.T,2,weights=k[0])
    jnp.histogramdd(x.T,2,density=True,weights=k[0])
    jnp.histogram2d(x[0],x[1],[2])
    jnp.histogram2d(x[0],x[1],(2,3))
    jnp.histogram2d(x[0],x[1],(jnp.array([0.,1.,2.]),jnp.array([0.,1.,2.])))
    jnp.bincount(t,minlength=2,length=None,weights=x.ravel()[:5])
    jnp.place(x,x>2,jnp.array([[9.,8.]]),inplace=False)
    jnp.choose(jnp.array([-1,0,3]),(jnp.arange(3),jnp.arange(3)+10),mode="wrap")
    jnp.choose(jnp.array([-1,0,3]),(jnp.arange(3),jnp.arange(3)+10),mode="clip")
    jnp.choose(jnp.array([1,0,1]),jnp.arange(6).reshape(2,3))
    jnp.choose(jnp.array([[1],[0]]),jnp.arange(6).reshape(2,3))
    jnp.lexsort((t,),axis=1)
    jnp.nonzero(x,size=8,fill_value=jnp.array(7))
    jnp.nonzero(np.array([1,0]),size=jnp.array(1))
    jnp.argwhere(x,fill_value=3,size=6)
    jnp.where(x,size=3)
    jnp.where([True,False])
    jnp.where(w)
    jnp.quantile(x,jnp.float32(0.3),axis=-1,method="linear",keepdims=True)
    jnp.quantile(x,0.25,axis=(1,0))
    jnp.quantile(x,0.25,axis=())
    jnp.median(x,axis=())
    jnp.nanquantile(x,0.25,axis=(1,0),keepdims=True)
    jnp.trim_zeros(jnp.array([[0,0,0],[0,1,0],[0,2,0]]),trim="b")
    jnp.put(x,jnp.array([0,-99]),9,inplace=False)
    jnp.sort(u,axis=-2)
    jnp.argsort(u[::-1],axis=0)
    jnp.sort(jnp.array([3,1,2],"uint8"),descending=True)
    jnp.sort(jnp.array([1+2j,1-1j,0+3j,jnp.nan]))
    jnp.lexsort((x.ravel()%2,x.ravel()%3))
    jnp.lexsort(u,axis=0)
    jnp.searchsorted(jnp.array([1,3,5],"int8"),2.5)
    jnp.searchsorted(h[0],jnp.array([[0.5],[9.]]),side="right",method="sort")
    jnp.searchsorted(jnp.sort(n),n,method="compare_all")
    jnp.searchsorted(jnp.sort(n),n,side="right",method="sort")
    jnp.searchsorted(jnp.arange(9),4,method="scan_unrolled")
    jnp.digitize(n,jnp.array([-1.,0.,1.]))
    jnp.digitize(t,jnp.array([3,2,1]),right=True)
    jnp.nonzero(u > 20)
    jnp.nonzero(b,size=4,fill_value=(-1,))
    jnp.unique(u,axis=1,size=5,fill_value=-1)
    jnp.unique(u,return_counts=True,axis=-1)
    jnp.unique(h,return_inverse=True)
    jnp.unique(jnp.array([True,True]),True,True,True)
    jnp.unique(k,size=3,return_counts=True)
    jnp.isin(u,jnp.arange(40.)[::2])
    jnp.isin(i8,jnp.array([1.0,300.]))
    jnp.setdiff1d(k,jnp.arange(20)[3:])
    jnp.intersect1d(k,jnp.arange(40)[2:5],return_indices=True)
    jnp.compress(jnp.array([0,2,3]),u,axis=-1)
    jnp.extract(u % 5 == 0,u)
    jnp.repeat(u,2,axis=-1)
    jnp.repeat(k,jnp.array([1,0,2]),axis=1)
    jnp.repeat(k,0)
    jnp.repeat(jnp.arange(3),jnp.array([0,2,0]),total_repeat_length=3)
    jnp.median(u,axis=(0,2))
    jnp.median(u,axis=-2,keepdims=True)
    jnp.quantile(u,jnp.array([0.1,0.5]),axis=(0,-1),keepdims=True)
    jnp.percentile(u,jnp.array([10,50]),axis=1,method="nearest")
    jnp.nanquantile(jnp.stack([n,n*2]),jnp.array([.1,.9]),axis=1)
    jnp.nanquantile(jnp.stack([n,n*jnp.nan]),.5,axis=1,method="lower")
    jnp.nanpercentile(jnp.stack([n,n*2]),40,axis=0)
    jnp.nanmedian(n[None],axis=1,keepdims=True)
    jnp.quantile(jnp.array([1.,jnp.inf,jnp.inf]),jnp.array([0.,.3,.5,.9,1.]))
    jnp.quantile(jnp.array([-jnp.inf,1.,jnp.inf]),jnp.array([0.,.3,.5,.9,1.]))
    jnp.quantile(h,0.37,method="midpoint")
    jnp.quantile(u8,0.37,method="higher")
    jnp.quantile(u,.4,axis=(1,2),weights=u[0],method="inverted_cdf")
    jnp.quantile(u,.4,axis=(2,1),weights=u[0].T,method="inverted_cdf")
    jnp.histogram(u,jnp.array([0.,3.,3.,9.]))
    jnp.histogram(u8,4,weights=h[0])
    jnp.histogram(jnp.array([1.,2.,2.,3.]),bins=jnp.array([1.,2.,3.]),density=True)
    jnp.histogram2d(x[0],x[1],2,weights=x[1],density=True)
    jnp.histogramdd(u.reshape(6,3),(2,3,1))
    jnp.histogram_bin_edges(u,2,range=(0,10))
    jnp.bincount(jnp.array([0,1,1,9]),length=4)
    jnp.bincount(i8,weights=h[0],minlength=5)
    jnp.cov(u[0],fweights=jnp.array([1,0,2]),bias=True)
    jnp.cov(x,x,aweights=jnp.array([.5,1.,2.]))
    jnp.cov(x.T,rowvar=False,fweights=jnp.array([1,0,2]))
    jnp.cov(c*1j+x,fweights=jnp.array([1,0,2]))
    jnp.cov(x,aweights=jnp.array([.5,1.,2.]),ddof=2)
    jnp.corrcoef(u[0],u[1])
    jnp.corrcoef(x,rowvar=False)
    jnp.choose(k%3,(k,x,7.5))
    jnp.choose(jnp.array([[0],[1]]),(i8,i8+1))
    jnp.piecewise(i8,[i8>1,i8==1],[lambda v: v+1,9,lambda v: v-1])
    jnp.piecewise(c,[x>2],[lambda v: v*1j])
    jnp.place(h,h>1,jnp.array([1.5,2.5,3.5]),inplace=False)
    jnp.place(x,jnp.zeros((2,3)),7,inplace=False)
    jnp.put(u,jnp.array([[0,3],[5,-2]]),jnp.array([1,2,3]),inplace=False)
    jnp.put_along_axis(u,jnp.zeros((2,1,3),int),5,1,inplace=False)
    jnp.put_along_axis(u,jnp.zeros((2,3,2),int),jnp.array([7.,8.]),-1,inplace=False)
    jnp.fill_diagonal(h,jnp.array([[1.,2.]]),inplace=False)
    jnp.insert(u,1,5,axis=-1)
    jnp.insert(u,jnp.array([0,3]),u[:,:2],axis=1)
    jnp.insert(u,2,u[:,0],axis=1)
    jnp.insert(x,slice(None,None,2),5,axis=1)
    jnp.insert(x,1,jnp.array([[8.],[9.]]),axis=1)
    jnp.delete(u,slice(1,None),axis=2)
    jnp.delete(u,jnp.array([2,-1,0]),axis=2)
    jnp.delete(t,t>1)
    jnp.trim_zeros(jnp.array([0,0,jnp.nan,0.]))
    jnp.trim_zeros(u,axis=-1)
    jnp.trim_zeros(x*0)
    jnp.unravel_index(t,(2,2,2))
    jnp.ravel_multi_index((k,k),(6,6),order="F")
    jnp.ravel_multi_index((t,t-2),(2,3),mode=("wrap","clip"))
    jnp.interp(jnp.array([-1.,.5,9.]),x[0],x[1],left=jnp.nan,right=0)
    jnp.interp(u,jnp.array([0.,5.,20.]),jnp.array([1,2,9]))
    jnp.interp(t,i8,i8*2)
    jnp.interp(x,x[0],x[1],left="extrapolate")
    jnp.interp(x,x[0],x[1],right=1j)
    jnp.unwrap(jnp.array([0.,3.,6.5,1.,-4.]),discont=4.)
    jnp.unwrap(u*2,axis=1,period=3.)
    jnp.unwrap(jnp.array([0,4,8,9]),period=8)
    jnp.take_along_axis(u,jnp.argsort(u,axis=1),axis=1)
    jnp.take_along_axis(k,jnp.array([[0,-4]]),1,wrap_negative_indices=False)
    jnp.where(b,1,jnp.array([2.5,3.]))
    jnp.where(x > 2,x,jnp.nan)
    jnp.union1d(b,i8)
    jnp.unique_all(b).counts
    jnp.digitize(jnp.array([jnp.nan,1.]),jnp.array([2.,1.]))
    jnp.mask_indices(3,jnp.tril,0,size=2)
    jnp.tri(3)[jnp.tril_indices_from(jnp.tri(3),-1)]
    """
)


def function_of(case):
    return case.split("(")[0]


FIRST = tuple({function_of(case): case for case in reversed(CASES)}.values())
SAMPLE = CASES if EVERYTHING else tuple(dict.fromkeys((*FIRST, *CASES[::16])))


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", SAMPLE)
def test_as_jax(case):
    check(SAMPLE, case)


@pytest.mark.parametrize("case", CASES if EVERYTHING else FIRST)
def test_staged(case):
    check_staged(case)


# ---- against NumPy, at sizes where a slip would show

RNG = np.random.default_rng(7)
METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_search_finds_the_place(method):
    for size in (1, 2, 3, 7, 8, 33) if EVERYTHING else (1, 8):
        a = np.sort(RNG.integers(0, 9, size)).astype(np.float32)
        v = np.concatenate([np.arange(-1, 10), [np.inf, -np.inf, 2.5]]).astype(np.float32)
        for side in ("left", "right"):
            got = wnp.searchsorted(a, v, side, method=method)
            np.testing.assert_array_equal(got, np.searchsorted(a, v, side), f"{size} {side}")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float32", "complex64"])
def test_sorting_and_sets_of_every_kind_of_dtype(dtype):
    a = wnp.asarray(RNG.integers(0, 5, 24)).astype(dtype)
    host = np.asarray(a)
    plain = host.astype(np.float32) if dtype == "bfloat16" else host
    assert_same(wnp.sort(a), np.sort(plain))
    order = np.asarray(wnp.argsort(a, descending=True))
    assert_same(plain[order], np.sort(plain)[::-1])
    assert all(i < j for i, j in zip(order, order[1:], strict=False) if plain[i] == plain[j])
    for got, wanted in zip(
        wnp.unique(a, True, True, True), np.unique(plain, True, True, True), strict=True
    ):
        assert_same(got, wanted)
    at = wnp.partition(a, 7) if dtype != "complex64" else wnp.sort(a)
    assert_same(np.sort(np.asarray(at)[:8].astype(plain.dtype)), np.sort(plain)[:8])


def assert_same(got, wanted):
    np.testing.assert_array_equal(np.asarray(got).astype(wanted.dtype), wanted)


def test_top_k_and_minmax():
    # What jax 0.12 gives.
    x = wnp.array([[3, 1, 2], [6, 5, 4.0]])
    values, at = wnp.top_k(x, 2)
    assert values.tolist() == [[3, 2], [6, 5]] and at.tolist() == [[0, 2], [0, 1]]
    values, at = weft.jit(lambda x: wnp.top_k(x, 2, axis=0, mode="smallest"))(x[:, ::-1])
    assert values.tolist() == [[2, 1, 3], [4, 5, 6]] and at.tolist() == [[0, 0, 0], [1, 1, 1]]
    values, at = wnp.top_k(wnp.array([2, 1, 2, 0]), 3, mode="smallest")
    assert values.tolist() == [0, 1, 2] and at.tolist() == [3, 1, 0] and at.dtype == "int32"
    values, at = wnp.top_k(wnp.array([1, np.nan, 2]), 2)
    assert np.isnan(values[0]) and at.tolist() == [1, 2]
    assert wnp.top_k(wnp.array([1, np.nan, 2]), 2, mode="smallest")[0].tolist() == [1, 2]
    assert wnp.top_k(np.array([3, 200, 100], np.uint8), 1, mode="smallest")[0].tolist() == [3]
    for mode, k, axis in itertools.product(("largest", "smallest", "least"), (4, -1, 1), (1, 2)):
        if (mode, k, axis) not in (("largest", 1, 1), ("smallest", 1, 1)):
            with pytest.raises(ValueError, match="top_k"):
                wnp.top_k(x, k, axis=axis, mode=mode)
    with pytest.raises(TypeError):
        wnp.top_k(wnp.array([1j]), 1, mode="smallest")
    assert [float(v) for v in wnp.minmax(x)] == [1, 6]
    low, high = wnp.minmax(x, axis=0, initial=(2.5, 5.0), keepdims=True)
    assert low.tolist() == [[2.5, 1, 2]] and high.tolist() == [[6, 5, 5]]
    assert [float(v) for v in wnp.minmax(x, initial=9.0)] == [1, 9]
    assert [float(v) for v in wnp.minmax(x, where=x > 2, initial=(99.0, -99.0))] == [3, 6]
    with pytest.raises(ValueError, match="minmax"):
        wnp.minmax(x, where=x > 2)


def test_as_many_as_there_are_or_as_many_as_are_wanted():
    a = RNG.integers(0, 4, (5, 6))
    assert_same(wnp.argwhere(a), np.argwhere(a))
    assert_same(wnp.flatnonzero(a), np.flatnonzero(a))
    assert_same(wnp.compress(a[0] > 1, a, axis=1), np.compress(a[0] > 1, a, axis=1))
    assert_same(wnp.repeat(a, a[:, 0], 0), np.repeat(a, a[:, 0], 0))
    assert_same(wnp.asarray(a)[a > 1], a[a > 1])
    for size in (0, 3, 40):
        staged = weft.jit(lambda a, size=size: wnp.nonzero(a, size=size, fill_value=9))
        wanted = [np.pad(each, (0, 40), constant_values=9)[:size] for each in np.nonzero(a)]
        for got, each in zip(staged(a), wanted, strict=True):
            assert_same(got, each)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_unique_slices_rebuild_the_array(axis):
    a = RNG.integers(0, 2, (6, 3))
    values, index, inverse, counts = wnp.unique(a, True, True, True, axis)
    assert_same(values, np.unique(a, axis=axis))
    along = a.ravel() if axis is None else a
    assert_same(np.take(along, index, axis), np.asarray(values))
    assert_same(np.take(np.asarray(values), inverse, axis), a)
    assert int(counts.sum()) == along.shape[axis or 0]


NEEDS_A_SIZE = {
    "nonzero": wnp.nonzero,
    "where": wnp.where,
    "argwhere": wnp.argwhere,
    "flatnonzero": wnp.flatnonzero,
    "unique": wnp.unique,
    "unique_all": wnp.unique_all,
    "union1d": lambda x: wnp.union1d(x, x),
    "intersect1d": lambda x: wnp.intersect1d(x, x),
    "setdiff1d": lambda x: wnp.setdiff1d(x, x),
    "setxor1d": lambda x: wnp.setxor1d(x, x),
    "extract": lambda x: wnp.extract(x, x),
    "compress": lambda x: wnp.compress(x, x),
}
NEEDS_ANOTHER = {
    "bincount": (wnp.bincount, "length="),
    "repeat": (lambda x: wnp.repeat(x, x), "total_repeat_length="),
    "choose": (lambda x: wnp.choose(x, (1, 2)), "mode="),
    "ravel_multi_index": (lambda x: wnp.ravel_multi_index((x,), (9,)), "mode="),
    "delete": (lambda x: wnp.delete(x, x), "assume_unique_indices="),
    "trim_zeros": (wnp.trim_zeros, "before"),
}


@pytest.mark.parametrize("name", [*NEEDS_A_SIZE, *NEEDS_ANOTHER])
def test_what_needs_values_says_what_to_pass(name):
    function, words = NEEDS_ANOTHER.get(name) or (NEEDS_A_SIZE[name], "size=")
    with pytest.raises(ConcretizationTypeError, match=words) as info:
        weft.jit(function)(wnp.arange(3))
    assert f"[{name}]" in str(info.value)


@pytest.mark.parametrize("function", [wnp.sort, wnp.median, wnp.unique, wnp.nonzero, wnp.bincount])
def test_lists_are_refused(function):
    with pytest.raises(weft.errors.OperandError):
        function([1, 2])


def test_the_count_needs_no_program_of_its_own():
    wnp.flatnonzero(np.arange(64) > 60)
    select = lambda bound: wnp.compress(np.arange(64) > bound, np.arange(64))
    select(60)
    before = weft.compiler.cache_stats()
    for bound in (3, 17, 40):
        assert select(bound).shape == (63 - bound,)
    assert weft.compiler.cache_stats() == before


def test_a_known_condition_selects_under_jit_and_grad():
    mask = np.array([True, False, True])
    x = np.array([1.0, 2.0, 3.0], np.float32)
    assert weft.jit(lambda x: wnp.extract(mask, x))(x).tolist() == [1, 3]
    assert weft.jit(lambda x: x[np.flatnonzero(mask)] + wnp.nonzero(mask)[0])(x).tolist() == [1, 5]
    assert weft.grad(lambda x: (wnp.extract(x > 1, x) ** 2).sum())(x).tolist() == [0, 4, 6]
    assert weft.grad(lambda x: (wnp.unique(x) ** 2).sum())(x).tolist() == [2, 4, 6]
    with pytest.raises(ConcretizationTypeError, match="size="):
        weft.jit(lambda x: x + wnp.unique(mask).sum())(x)


def numeric(function, x, step=1e-2):
    x = np.asarray(x, np.float32)
    slopes = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[i] = step
        slopes[i] = (function(x + shift) - function(x - shift)) / (2 * step)
    return slopes


POINTS = np.array([0.3, 2.1, -0.7, 1.2, 0.9], np.float32)
KNOTS = np.array([-1.0, 0.0, 1.0, 3.0], np.float32)
DIFFERENTIABLE = {
    "sort": lambda x: (wnp.sort(x) * wnp.arange(5.0)).sum(),
    "partition": lambda x: wnp.partition(x, 2)[2] ** 2,
    "quantile": lambda x: wnp.quantile(x, 0.3) ** 2,
    "nanmedian": lambda x: wnp.nanmedian(x) ** 2,
    "interp": lambda x: (wnp.interp(x, KNOTS, KNOTS**2) ** 2).sum(),
    "insert": lambda x: (wnp.insert(x, 2, x[0] * 2) ** 2).sum(),
    "delete": lambda x: (wnp.delete(x, 1) ** 2).sum(),
    "extract": lambda x: (wnp.extract(x > 0.5, x, size=3) ** 2).sum(),
    "put": lambda x: (wnp.put(x, np.array([1]), x[:1] ** 2, inplace=False) ** 2).sum(),
    "unwrap": lambda x: (wnp.unwrap(3 * x) ** 2).sum(),
    "cov": lambda x: wnp.cov(x, aweights=np.arange(1.0, 6.0)),
    "piecewise": lambda x: wnp.piecewise(x, [x > 1], [lambda v: v**2, lambda v: -v]).sum(),
    "choose": lambda x: wnp.choose(np.array([0, 1, 0, 1, 1]), (x, x**2)).sum(),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    function = DIFFERENTIABLE[name]
    got = weft.jit(weft.grad(function))(POINTS)
    np.testing.assert_allclose(got, numeric(weft.jit(function), POINTS), rtol=2e-2, atol=2e-2)


def test_under_vmap():
    a = RNG.integers(0, 5, (3, 8)).astype(np.float32)
    rows = {
        "sort": (wnp.sort, np.sort),
        "median": (wnp.median, np.median),
        "searchsorted": (lambda x: wnp.searchsorted(KNOTS, x), lambda x: KNOTS.searchsorted(x)),
        "bincount": (
            lambda x: wnp.bincount(x.astype(int), length=5),
            lambda x: np.bincount(x.astype(int), minlength=5),
        ),
        "isin": (lambda x: wnp.isin(x, KNOTS), lambda x: np.isin(x, KNOTS)),
        "flatnonzero": (
            lambda x: wnp.flatnonzero(x, size=8, fill_value=-1),
            lambda x: np.pad(np.flatnonzero(x), (0, 8), constant_values=-1)[:8],
        ),
    }
    got = weft.jit(weft.vmap(lambda x: [ours(x) for ours, _ in rows.values()]))(a)
    for name, values in zip(rows, got, strict=True):
        wanted = np.stack([rows[name][1](row) for row in a])
        np.testing.assert_allclose(values, wanted, err_msg=name)


def test_methods_of_arrays():
    x = wnp.array([[3, 1], [0, 2]])
    assert x.sort().tolist() == [[1, 3], [0, 2]]
    assert x.argsort(0, descending=True).tolist() == [[0, 1], [1, 0]]
    assert x[1].searchsorted(1).tolist() == 1
    assert [each.tolist() for each in x.nonzero()] == [[0, 0, 1], [0, 1, 1]]
    assert x.compress(wnp.array([False, True]), 0).tolist() == [[0, 2]]
    assert (x % 2).choose((10, 20)).tolist() == [[20, 20], [10, 10]]
    assert x.argpartition(0).tolist() == [[1, 0], [0, 1]]
    assert weft.jit(lambda x: x.sort(descending=True))(x).tolist() == [[3, 1], [2, 0]]


TINY = {"float32": 2.0**-140, "float64": 5e-320, "bfloat16": 2.0**-130, "float16": 6e-8}


@pytest.mark.parametrize("dtype", TINY)
def test_subnormal_numbers_have_their_order(dtype):
    with weft.enable_x64(True):
        t = TINY[dtype]
        x = np.array([0.0, t, -t, np.nan, -0.0, 2 * t, -np.inf, np.nan]).astype(dtype)
        for f in (lambda f: f, weft.jit):
            order = f(wnp.argsort)(x)
            assert order.tolist() == [6, 2, 0, 4, 1, 5, 3, 7]
            made = np.asarray(f(wnp.sort)(x), float)
            np.testing.assert_array_equal(made, x[np.asarray(order)].astype(float))
            assert np.signbit(made)[:5].tolist() == [1, 1, 0, 1, 0]
            assert int(f(wnp.argmax)(x[:3])) == 1 and int(f(wnp.argmin)(x[:3])) == 2
            assert int(f(wnp.argmax)(x)) == int(f(wnp.argmin)(x)) == 3  # the first NaN
            assert int(f(wnp.argmax)(x[[0, 4]])) == int(f(wnp.argmin)(x[[0, 4]])) == 0
            assert int(f(wnp.nanargmin)(x[:6])) == 2
            assert f(lambda x: weft.lax.top_k(x, 2))(x[:3])[1].tolist() == [1, 0]
        if dtype in ("float32", "float64"):
            wide = {"float32": "complex64", "float64": "complex128"}[dtype]
            z = (1 + 1j * x[:3]).astype(wide)
            assert wnp.argsort(z).tolist() == [2, 0, 1]


QUANTILES = [
    lambda x, **k: wnp.quantile(x, 0.5, **k),
    lambda x, **k: wnp.percentile(x, np.float32([20, 80]), **k),
    lambda x, **k: wnp.nanquantile(x, np.float32([0.2, 0.8]), **k),
    lambda x, **k: wnp.nanpercentile(x, 30.0, **k),
    wnp.median,
    wnp.nanmedian,
]


@pytest.mark.parametrize("function", QUANTILES)
def test_quantiles_of_nothing_are_nan(function):
    for f in (function, weft.jit(function, static_argnames=("axis", "keepdims"))):
        for dtype in ("float32", "int32", "float16"):
            made = np.asarray(f(np.empty((0, 4), dtype), axis=0), float)
            assert made.shape[-1] == 4 and np.isnan(made).all()
        assert np.isnan(f(np.empty((2, 0, 3), np.float32), axis=(0, 1), keepdims=True)).all()
        assert np.isnan(f(np.empty(0, np.float32))).all()
        assert f(np.empty((4, 0), np.float32), axis=0).shape[-1] == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_top_k_of_short_floats_sorts_nothing(dtype):
    """XLA has one pass for float32 alone; narrower floats are found as such."""
    x = np.random.default_rng(0).standard_normal((3, 500)).astype(dtype)
    top = weft.jit(lambda x: weft.lax.top_k(x, 4)).lower(x).compile()
    assert "sort(" not in top.as_text()
    values, order = (np.asarray(y) for y in top(x))
    wanted = np.argsort(-x.astype(float), axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(order, wanted)
    assert values.tobytes() == np.take_along_axis(x, wanted, 1).tobytes()


def test_unravel_index_of_a_traced_shape():
    indices = np.array([5, 11, 0, 7])
    right = np.unravel_index(indices, (3, 4))
    shapes = ([wnp.array([3, 4])], [(wnp.array(3), 4)])
    for (shape,) in shapes:
        found = weft.jit(wnp.unravel_index)(indices, shape)
        assert [axis.tolist() for axis in found] == [axis.tolist() for axis in right]
    found = weft.jit(wnp.unravel_index)(np.array([-1, 30, -30]), wnp.array([3, 4]))
    assert [axis.tolist() for axis in found] == [[2, 2, 0], [3, 3, 0]]
    with pytest.raises(ConcretizationTypeError):
        weft.jit(wnp.unravel_index)(indices, wnp.array([3.0, 4.0]))
