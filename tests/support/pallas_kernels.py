"""Kernels for tests of Pallas: each a function of a Modules to a tree of arrays."""

import functools
from typing import Any, NamedTuple

import numpy as np


class Modules(NamedTuple):
    """What the kernels are written with: jax or weft, and its modules."""

    top: Any
    np: Any
    lax: Any
    pl: Any
    tpu: Any


def _values(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


A, B = _values(32, 48), _values(48, 24)
RAMP = np.arange(20, dtype="float32")


def _shape(m, shape, dtype="float32"):
    return m.top.ShapeDtypeStruct(shape, dtype)


def matmul(m):
    def kernel(a, b, o, acc):
        @m.pl.when(m.pl.program_id(2) == 0)
        def _():
            acc[...] = m.np.zeros_like(acc)

        acc[...] += m.np.dot(a[...], b[...], preferred_element_type="float32")

        @m.pl.when(m.pl.program_id(2) == m.pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...].astype(o.dtype)

    call = m.pl.pallas_call(
        kernel,
        out_shape=_shape(m, (32, 24)),
        grid=(4, 3, 3),
        in_specs=[
            m.pl.BlockSpec((8, 16), lambda i, j, k: (i, k)),
            m.pl.BlockSpec((16, 8), lambda i, j, k: (k, j)),
        ],
        out_specs=m.pl.BlockSpec((8, 8), lambda i, j, k: (i, j)),
        scratch_shapes=[m.tpu.VMEM((8, 8), "float32")],
        compiler_params=m.tpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        interpret=True,
    )
    return call(A, B), m.top.jit(call)(A, B)


def matmul_of_ragged_blocks(m):
    def kernel(a, b, o):
        o[...] = a[...] @ b[...]

    call = m.pl.pallas_call(
        kernel,
        out_shape=_shape(m, (32, 24)),
        grid=(m.pl.cdiv(32, 5), m.pl.cdiv(24, 7)),
        in_specs=[
            m.pl.BlockSpec((5, 48), lambda i, j: (i, 0)),
            m.pl.BlockSpec((48, 7), lambda i, j: (0, j)),
        ],
        out_specs=m.pl.BlockSpec((5, 7), lambda i, j: (i, j)),
        interpret=True,
    )
    return call(A, B), m.top.jvp(call, (A, B), (2 * A, B - 1))


def _rows(m, kernel):
    block = m.pl.BlockSpec((8, 48), lambda i: (i, 0))
    return m.pl.pallas_call(
        kernel,
        out_shape=_shape(m, A.shape),
        grid=(4,),
        in_specs=[block],
        out_specs=block,
        interpret=True,
    )


def softmax_of_rows(m):
    def kernel(x, o):
        e = m.np.exp(x[...] - x[...].max(-1, keepdims=True))
        o[...] = e / e.sum(-1, keepdims=True)

    call = _rows(m, kernel)
    return call(A), m.top.vmap(call)(m.np.stack([A, A + 1])), m.top.jvp(call, (A,), (A,))


def rules_of_the_user(m):
    def kernel(x, o):
        o[...] = m.np.sin(x[...])

    call = _rows(m, kernel)
    f = m.top.custom_vjp(call)
    f.defvjp(lambda x: (call(x), x), lambda x, g: (g * m.np.cos(x),))
    slope = m.top.grad(lambda x: (f(x) ** 2).sum())
    return slope(A), m.top.vmap(slope)(m.np.stack([A, A + 1]))


def attention(m, causal):
    q, k, v = _values(2, 16, 8), 2 * _values(2, 32, 8), _values(2, 32, 8) - 1

    def kernel(q, k, v, o, *, causal):
        first = m.pl.program_id(1) * 8

        def body(j, carry):
            acc, top, total = carry
            scores = q[...] @ k[m.pl.ds(j * 8, 8), :].T
            if causal:
                later = first + m.np.arange(8)[:, None] < j * 8 + m.np.arange(8)
                scores = m.np.where(later, -1e30, scores)
            now = m.np.maximum(top, scores.max(-1))
            p, scale = m.np.exp(scores - now[:, None]), m.np.exp(top - now)
            acc = acc * scale[:, None] + p @ v[m.pl.ds(j * 8, 8), :]
            return acc, now, total * scale + p.sum(-1)

        start = m.np.zeros((8, 8)), m.np.full(8, -np.inf), m.np.zeros(8)
        last = m.pl.program_id(1) + 1 if causal else 4
        acc, _, total = m.lax.fori_loop(0, last, body, start)
        o[...] = acc / total[:, None]

    whole = m.pl.BlockSpec((None, 32, 8), lambda b, i: (b, 0, 0))
    part = m.pl.BlockSpec((m.pl.squeezed, 8, 8), lambda b, i: (b, i, 0))
    return m.top.jit(
        m.pl.pallas_call(
            functools.partial(kernel, causal=causal),
            out_shape=_shape(m, q.shape),
            grid=(2, 2),
            in_specs=[part, whole, whole],
            out_specs=part,
            interpret=True,
        )
    )(q, k, v)


def masked_by_program_id(m):
    def kernel(x, o):
        i = m.pl.program_id(0) * 8 + m.np.arange(8)
        o[...] = m.np.where(i < 20, x[...] + 1, 0)

    block = m.pl.BlockSpec((8,), lambda i: i)
    return m.pl.pallas_call(
        kernel, _shape(m, (24,)), grid=3, in_specs=[block], out_specs=block, interpret=True
    )(RAMP)


def unwritten(m):
    """What nothing writes, of each kind of dtype, and what blocks have past the end."""

    def kernel(x, *outs):
        @m.pl.when(m.pl.program_id(0) == 1)
        def _():
            outs[0][...] = x[...]

    block = m.pl.BlockSpec((8,), lambda i: i)
    dtypes = ["float32", "int32", "uint8", "bool", "bfloat16"]
    return m.pl.pallas_call(
        kernel,
        [_shape(m, (30,), dtype) for dtype in dtypes],
        grid=3,
        in_specs=[m.pl.BlockSpec((8,), lambda i: i + 1)],
        out_specs=[block] * len(dtypes),
        interpret=True,
    )(RAMP)


def histogram_in_an_alias(m):
    def kernel(x, h, o):
        o[x[m.pl.program_id(0)]] += 1

    return m.pl.pallas_call(
        kernel,
        _shape(m, (5,), "int32"),
        grid=(9,),
        input_output_aliases={1: 0},
        interpret=True,
    )(np.array([0, 1, 4, 4, 4, 2, 1, 0, 3]), np.full(5, 10, np.int32))


def alias_beside_its_argument(m):
    def kernel(x, o):
        o[0] = x[0] + 1
        o[1] = x[0]

    return m.pl.pallas_call(
        kernel, _shape(m, (20,)), grid=(3,), input_output_aliases={0: 0}, interpret=True
    )(RAMP)


def running_sum_in_scratch(m):
    def kernel(x, o, carry):
        @m.pl.when(m.pl.program_id(0) == 0)
        def _():
            carry[0] = 0.0

        o[...] = m.np.cumsum(x[...]) + carry[0]
        carry[0] = o[x.shape[0] - 1]

    block = m.pl.BlockSpec((4,), lambda i: i)
    return m.pl.pallas_call(
        kernel,
        _shape(m, (20,)),
        grid=(5,),
        in_specs=[block],
        out_specs=block,
        scratch_shapes=[m.tpu.SMEM((1,), "float32")],
        interpret=True,
    )(RAMP)


def transposed_blocks(m):
    def kernel(x, o):
        o[...] = x[...].T

    return m.pl.pallas_call(
        kernel,
        _shape(m, (48, 32)),
        grid=(4, 6),
        in_specs=[m.pl.BlockSpec((8, 8), lambda i, j: (i, j))],
        out_specs=m.pl.BlockSpec((8, 8), lambda i, j: (j, i)),
        interpret=True,
    )(A)


def prefetched_rows(m):
    def kernel(rows, x, o):
        o[...] = 2 * x[...] + rows[m.pl.program_id(0)]

    spec = m.tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(5,),
        in_specs=[m.pl.BlockSpec((None, 48), lambda i, rows: (rows[i], 0))],
        out_specs=m.pl.BlockSpec((None, 48), lambda i, rows: (i, 0)),
    )
    call = m.pl.pallas_call(kernel, _shape(m, (5, 48)), grid_spec=spec, interpret=True)
    rows = np.array([3, 1, 31, 0, 3], np.int32)
    return call(rows, A), m.top.vmap(call, (0, None))(np.stack([rows, rows[::-1]]), A)


def prefetch_and_alias(m):
    def kernel(a, b, x, o, acc):
        acc[...] = x[...]
        o[...] = acc[...] + a[0] * b[m.pl.program_id(0)]

    spec = m.tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(2,),
        in_specs=[m.pl.BlockSpec((16, 48), lambda i, a, b: (b[i], 0))],
        out_specs=m.pl.BlockSpec((16, 48), lambda i, *_: (i, 0)),
        scratch_shapes=[m.tpu.VMEM((16, 48), "float32")],
    )
    return m.pl.pallas_call(
        kernel, _shape(m, A.shape), grid_spec=spec, input_output_aliases={2: 0}, interpret=True
    )(np.array([3], np.int32), np.array([1, 0], np.int32), A)


def windows_of_elements(m):
    def kernel(x, o):
        o[...] = x[0:8] + x[1:9] + x[2:10]

    return m.pl.pallas_call(
        kernel,
        _shape(m, (24,)),
        grid=3,
        in_specs=[m.pl.BlockSpec((m.pl.Element(10),), lambda i: i * 8)],
        out_specs=m.pl.BlockSpec((8,), lambda i: i),
        interpret=True,
    )(np.arange(26, dtype="float32"))


def padded_windows(m):
    def kernel(x, o):
        o[...] = x[...]

    return m.pl.pallas_call(
        kernel,
        _shape(m, (6, 4)),
        grid=6,
        in_specs=[m.pl.BlockSpec((m.pl.Element(4, (1, 3)),), lambda i: i * 5)],
        out_specs=m.pl.BlockSpec((None, 4), lambda i: (i, 0)),
        interpret=True,
    )(RAMP)


def trees(m):
    def kernel(x, o):
        o["s"][...] = x["a"][...].sum(keepdims=True)
        o["t"][...] = x["a"][...] * x["b"][...]

    out_shape = {"s": _shape(m, (1,)), "t": _shape(m, (20,))}
    call = m.pl.pallas_call(kernel, out_shape, interpret=True)
    return call({"a": RAMP, "b": 2 * RAMP})


def scratch_by_name(m):
    def kernel(x, o, *, acc):
        acc[...] = x[...] * 3
        o[...] = acc[...]

    scratch = {"acc": m.tpu.VMEM((20,), "float32")}
    return m.pl.pallas_call(kernel, _shape(m, (20,)), scratch_shapes=scratch, interpret=True)(RAMP)


def loop_over_scoped_refs(m):
    def kernel(x, o):
        def body(acc):
            acc[...] = m.np.zeros(4)

            @m.pl.loop(0, 5, step=2)
            def _(i):
                acc[...] += x[i]

            o[...] = acc[...]

        m.pl.run_scoped(body, m.tpu.VMEM((4,), "float32"))

    return m.pl.pallas_call(kernel, _shape(m, (4,)), interpret=True)(RAMP.reshape(5, 4))


def loops_that_end_when_they_will(m):
    def kernel(x, o):
        def body(carry):
            i, _ = carry
            o[i] = x[i] * 2
            return i + 1, x[i]

        m.lax.while_loop(lambda carry: carry[1] < 5, body, (0, m.np.float32(0)))

    return m.pl.pallas_call(kernel, _shape(m, (20,)), interpret=True)(RAMP)


def grid_of_a_size_that_is_traced(m):
    def kernel(x, y, o):
        o[m.pl.program_id(0)] = x[m.pl.program_id(0)] * 2 + m.pl.num_programs(0)

    def call(n, x, y):
        return m.pl.pallas_call(
            kernel, _shape(m, (20,)), grid=(n,), input_output_aliases={1: 0}, interpret=True
        )(x, y)

    return m.top.jit(call)(4, RAMP, -RAMP)


def batches(m):
    def kernel(x, y, o):
        o[...] = x[...] * m.pl.program_id(0) + y[...]

    block = m.pl.BlockSpec((2,), lambda i: i)
    first = m.pl.BlockSpec((2,))
    call = m.pl.pallas_call(
        kernel, _shape(m, (6,)), grid=3, in_specs=[block, first], out_specs=block, interpret=True
    )
    x, y = A[:6, :4], np.ones((3, 2), "float32")
    return (
        m.top.vmap(call, (1, None))(x, y[0]),
        m.top.vmap(m.top.vmap(call, (0, None)), (None, 0))(x.T, y),
        m.top.jit(m.top.vmap(call, (1, None)))(x, y[0]),
    )


def written_arguments(m):
    def kernel(x, o):
        x[0] += 1
        o[...] = x[...]

    return m.pl.pallas_call(
        kernel,
        _shape(m, (3, 4)),
        grid=3,
        in_specs=[m.pl.BlockSpec((4,), lambda i: 0)],
        out_specs=m.pl.BlockSpec((None, 4), lambda i: (i, 0)),
        interpret=True,
    )(RAMP[:4])


def operands_as_a_whole(m):
    def kernel(x, o):
        o[m.pl.program_id(0)] = x[2 * m.pl.program_id(0)]

    whole = m.pl.BlockSpec(memory_space=m.pl.ANY)
    return m.pl.pallas_call(
        kernel, _shape(m, (20,)), grid=(2,), in_specs=[whole], out_specs=whole, interpret=True
    )(RAMP)


def no_steps(m):
    return m.pl.pallas_call(lambda o: None, _shape(m, (2,)), grid=(0, 3), interpret=True)()


def state(m):
    def swap(refs):
        refs[0][...], refs[1][...] = refs[1][...] + 1, refs[0][...]

    return m.pl.run_state(swap)((RAMP, 2 * RAMP))


KERNELS = {
    "causal_attention": functools.partial(attention, causal=True),
    "full_attention": functools.partial(attention, causal=False),
}
KERNELS |= {
    f.__name__: f
    for f in (
        matmul,
        matmul_of_ragged_blocks,
        softmax_of_rows,
        rules_of_the_user,
        masked_by_program_id,
        unwritten,
        histogram_in_an_alias,
        alias_beside_its_argument,
        running_sum_in_scratch,
        transposed_blocks,
        prefetched_rows,
        prefetch_and_alias,
        windows_of_elements,
        padded_windows,
        trees,
        scratch_by_name,
        loop_over_scoped_refs,
        loops_that_end_when_they_will,
        grid_of_a_size_that_is_traced,
        batches,
        written_arguments,
        operands_as_a_whole,
        no_steps,
        state,
    )
}
