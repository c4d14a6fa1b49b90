"""Writes tests/core/programs.txt: the programs that tests/core/fuzz_test.cpp makes mutants of.

One program per line: each row of the op table on one list of arguments, and the derivatives, vmaps
and optimised forms of those with regions. To run after a change to the table:

    PYTHONPATH=python python tests/support/dump_programs.py
"""

import re
import sys
from pathlib import Path

import numpy as np
from op_table import Row, all_rows

import weft
from weft import compiler, lax, numpy as wnp

PROGRAMS = Path(__file__).parents[1] / "core" / "programs.txt"
LONGEST = 3000  # characters
# Traces of functions hold none: vmap makes other ops of them.
COLLECTIVES = [
    "[4,6] = psum[axes=('i', 'j') axis_index_groups=None]",
    "[4,6] = pmax[axes=('i',) axis_index_groups=((0, 1), (2,))]",
    "[4,6] = pmin[axes=('i',) axis_index_groups=None]",
    "[4,6] = pbroadcast[axis_name=('i',) source=1]",
    "[4,6] = ppermute[axis_name=('i',) perm=((0, 1), (1, 0))]",
    "[4,18] = all_gather[all_gather_dimension=1 axis_index_groups=None axis_name=('i',)"
    " axis_size=3]",
    "[4,3] = reduce_scatter[axis_index_groups=((0, 2), (1, 3)) axis_name=('i',) axis_size=2"
    " scatter_dimension=1]",
    "[8,3] = all_to_all[axis_index_groups=None axis_name=('i',) axis_size=2 concat_axis=0"
    " split_axis=1]",
    "[4,6] = pvary[axes=('i', 'j')]",
    "[4,6] = vary_cast[axes=('i',) unreduced=True]",
]
# Over meshes without devices, which no function is traced on.
_MESH = "mesh<'x': 4, 'y': 2>"
ON_MESHES = [
    "{ lambda ; a:f32[8,2] w:f32[]. let b:f32[8,2] c:f32[] = shard_map["
    f"in_specs=(sharding<['x'], ['y']; {_MESH}>, sharding<; {_MESH}>) "
    "jaxpr={ lambda ; a:f32[2,1] w:f32[]. let "
    "b:f32[2,1] = mul a w "
    "c:f32[2,1] = psum[axes=('x', 'y') axis_index_groups=None] b "
    "d:f32[] = reduce_sum[axes=(0, 1)] c in (b, d) } "
    f"manual_axes=('x', 'y') mesh={_MESH} "
    f"out_specs=(sharding<['x'], ['y']; {_MESH}>, sharding<; {_MESH}>)] a w in (b, c) }}",
    "{ lambda ; a:f32[8,2]. let b:f32[8,2] = sharding_constraint["
    f"sharding=sharding<['x'], [?]; {_MESH}>] a c:f32[8,2] = sin b in (c,) }}",
    "{ lambda ; a:f32[3]. let b:f32[3] = device_put[memory='pinned_host' source='device'] a "
    "in (b,) }",
    "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] d:f32[3] = pullback[in_mask=(True,) "
    "jaxpr={ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } out_mask=(True,)] a b in (c, d) }",
    "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] d:f32[3] = pushforward[in_mask=(True,) "
    "jaxpr={ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } out_mask=(True,)] a b in (c, d) }",
    "{ lambda ; a:f32[3] b:f32[2]. let c:f32[3] = vary_like a b in (c,) }",
]


# As vmap makes them of functions with checks, and without any.
LANES = (
    "{ lambda ; a:f32[3] b:f32[2,4] c:f32[]. let d:f32[4,3] e:f32[4,2] = mapped_call["
    "axis_name=('i',) axis_size=4 in_dims=(-1, 1, -1) jaxpr={ lambda ; a:f32[3] b:f32[2] c:f32[]. "
    "let d:f32[3] = mul a c e:f32[2] = sin b in (d, e) }] a b c in (d, e) }"
)


def graph_of(fn, *xs):
    return weft.jit(fn).trace(*[weft.ShapeDtypeStruct(x.shape, x.dtype) for x in xs]).graph


def row_programs(row: Row):
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[-1]
    rng = row.rng()
    xs = [a.draw(rng, dtype) for a in row.args[-1]]
    graph = graph_of(row.call, *xs)
    yield graph
    if "jaxpr" not in str(graph):
        return
    if row.diff:
        yield graph_of(
            lambda *xs: weft.vjp(lambda *ys: row.call(*[*ys, *xs[len(ys) :]]), *xs[:1])[0], *xs
        )
    yield graph_of(weft.vmap(row.call), *[np.stack([x, x]) for x in xs])
    yield compiler.optimize(graph)


def others():
    x = np.ones((3, 4), np.float32)

    @weft.jit
    def layer(w, x):
        return wnp.tanh(x @ w)

    def twice(w, x):
        return layer(w, layer(w, x)).sum()

    def kept(x):
        return weft.checkpoint(lambda x: wnp.sin(wnp.cos(x)), prevent_cse=False)(x).sum()

    def loop(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]

    def nested(x):
        def body(c, x):
            return lax.cond(x > 0, lambda c: c + x, lambda c: lax.fori_loop(0, 3, step, c), c), x

        def step(i, c):
            return c * x[0, 0] + i

        return lax.scan(body, wnp.float32(1), x[0])

    def random(key, low):
        lax.dce_sink(low)
        return lax.rng_bit_generator(key, (3,)), lax.rng_uniform(low, 2.0, (2, 3))

    def chosen(x):
        return lax.platform_dependent(x, cpu=wnp.sin, cuda=wnp.cos)

    w = np.ones((4, 4), np.float32)
    yield graph_of(random, np.ones(4, np.uint32), np.float32(1))
    yield graph_of(chosen, x)
    yield graph_of(twice, w, x)
    yield graph_of(weft.grad(twice), w, x)
    yield graph_of(weft.grad(kept), x)
    yield graph_of(loop, x)
    yield graph_of(lambda x: weft.jvp(loop, (x,), (x,))[1], x)
    yield graph_of(nested, x)
    yield graph_of(weft.grad(lambda x: nested(x)[0]), x)
    yield graph_of(weft.vmap(nested), np.stack([x, x]))
    kernel = weft.ffi.ffi_call("nobody", weft.ShapeDtypeStruct(x.shape, x.dtype),
                               input_layouts=[(1, 0)], input_output_aliases={0: 0})  # fmt: skip
    yield graph_of(lambda x: kernel(x, n=1), x)
    yield compiler.optimize(graph_of(lambda x: wnp.sin(x * 2) + x, x), passes=["fuse"])
    yield compiler.optimize(graph_of(lambda x: wnp.sin(x * 2) + x, x), passes=["kernels"])
    yield compiler.parse(
        "{ lambda ; . let a:f32[2] = constant[value=f32[2]:0x0000803F00000040] in (a,) }"
    )
    yield compiler.parse(LANES)
    for collective in COLLECTIVES:
        yield compiler.parse(f"{{ lambda ; a:f32[4,6]. let b:f32{collective} a in (b,) }}")
    yield from map(compiler.parse, ON_MESHES)
    yield compiler.parse("{ lambda ; . let a:i32[] = axis_index[axis_name=('i',)] in (a,) }")


def programs():
    with weft.enable_x64(True):
        graphs = [g for row in all_rows() for g in row_programs(row)]
        graphs += others()
        return sorted({line(g) for g in graphs if g.is_portable and len(line(g)) < LONGEST})


def line(graph) -> str:
    return re.sub(r"\s+", " ", graph.to_text(width=10**6))


if __name__ == "__main__":
    PROGRAMS.write_text("\n".join(programs()) + "\n")
    sys.stdout.write(f"{PROGRAMS}: {PROGRAMS.stat().st_size} bytes\n")
