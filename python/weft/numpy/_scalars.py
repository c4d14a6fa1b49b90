"""Scalar types: `float32` and so on name dtypes, and called with a value make arrays of them."""

import numpy as np

from weft import dtypes
from weft.numpy._creation import array


class ScalarType(type):
    """Class of the scalar types. NumPy takes each for its dtype, because it has a `dtype`."""

    dtype: np.dtype

    def __call__(cls, x=0):
        return array(x, dtype=cls)

    def __eq__(cls, other):
        if isinstance(other, ScalarType):
            return cls.dtype == other.dtype
        return isinstance(other, (type, np.dtype)) and cls.dtype == other

    def __hash__(cls):
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls):
        return f"<scalar type weft.numpy.{cls.__name__}>"


def _scalar_type(name, dtype=None):
    dtype = dtypes.as_dtype(name if dtype is None else dtype)
    doc = f"The dtype {dtype.name}; `{name}(x)` is an array of it."
    return ScalarType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "weft.numpy"})


bool_ = _scalar_type("bool_", "bool")
int2 = _scalar_type("int2")
int4 = _scalar_type("int4")
int8 = _scalar_type("int8")
int16 = _scalar_type("int16")
int32 = _scalar_type("int32")
int64 = _scalar_type("int64")
uint2 = _scalar_type("uint2")
uint4 = _scalar_type("uint4")
uint8 = _scalar_type("uint8")
uint16 = _scalar_type("uint16")
uint32 = _scalar_type("uint32")
uint64 = _scalar_type("uint64")
float4_e2m1fn = _scalar_type("float4_e2m1fn")
float8_e3m4 = _scalar_type("float8_e3m4")
float8_e4m3 = _scalar_type("float8_e4m3")
float8_e4m3b11fnuz = _scalar_type("float8_e4m3b11fnuz")
float8_e4m3fn = _scalar_type("float8_e4m3fn")
float8_e4m3fnuz = _scalar_type("float8_e4m3fnuz")
float8_e5m2 = _scalar_type("float8_e5m2")
float8_e5m2fnuz = _scalar_type("float8_e5m2fnuz")
float8_e8m0fnu = _scalar_type("float8_e8m0fnu")
bfloat16 = _scalar_type("bfloat16")
float16 = half = _scalar_type("float16")
float32 = single = _scalar_type("float32")
float64 = double = float_ = _scalar_type("float64")
complex64 = csingle = _scalar_type("complex64")
complex128 = cdouble = complex_ = _scalar_type("complex128")
int_, uint = int64, uint64
