"""Values and types of every row of the op table: jitted, eager and abstract against the reference.

A row's cases are compiled as one program, since a compilation costs far more than the work.
"""

import numpy as np
import pytest
from op_table import EPS, Row, all_rows, widen

import weft

ROWS = all_rows()


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


def as_tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def expected_dtypes(row: Row, dtype: str) -> tuple[np.dtype, ...]:
    return tuple(np.dtype(d) for d in as_tuple(row.out(np.dtype(dtype))))


def check_result(row: Row, dtype: str, xs: list[np.ndarray], results) -> None:
    results = as_tuple(results)
    want = as_tuple(row.reference(*xs))
    dtypes = expected_dtypes(row, dtype)
    assert len(results) == len(want) == len(dtypes)
    for y, ref, out_dtype in zip(results, want, dtypes, strict=True):
        y = np.asarray(y)
        assert y.dtype == out_dtype, f"{row.id} {dtype}"
        with np.errstate(all="ignore"):
            ref = np.asarray(ref).astype(out_dtype)
        assert y.shape == ref.shape, f"{row.id} {dtype}"
        assert_close(y, ref, row, f"{row.id} {dtype} of {xs}")


def assert_close(y: np.ndarray, ref: np.ndarray, row: Row, message: str) -> None:
    if y.dtype.name not in EPS or row.ulps == 0:
        np.testing.assert_array_equal(widen(y), widen(ref), err_msg=message)
        return
    rtol = 2 * EPS[y.dtype.name] * max(row.ulps, 1)
    # Complex results are as good as their larger part; sums as good as their terms.
    np.testing.assert_allclose(widen(y), widen(ref), rtol=rtol, atol=rtol, err_msg=message)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_values(row):
    cases = row.cases()
    program = weft.jit(lambda args: [row.call(*xs) for xs in args])
    results = program([xs for _, xs in cases])
    for (dtype, xs), y in zip(cases, results, strict=True):
        check_result(row, dtype, xs, y)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_eager_equals_reference(row):
    """One case of each row runs op by op; the largest, in the row's most usual dtype."""
    dtypes = [d for d in ("float32", "int32", "complex64", "bool") if d in row.dtypes]
    dtype = dtypes[0] if dtypes else row.dtypes[0]
    cases = [xs for d, xs in row.cases() if d == dtype]
    xs = max(cases, key=lambda xs: max((x.size for x in xs), default=0))
    check_result(row, dtype, xs, row.call(*[weft.device_put(x) for x in xs]))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_abstract_types(row):
    for dtype, xs in row.cases():
        avals = [weft.ShapeDtypeStruct(x.shape, x.dtype) for x in xs]
        outs = as_tuple(weft.eval_shape(row.call, *avals))
        want = as_tuple(row.reference(*xs))
        shapes = [np.shape(w) for w in want]
        assert [o.shape for o in outs] == shapes
        assert tuple(o.dtype for o in outs) == expected_dtypes(row, dtype)
