"""A fused INT8 GEMM in Triton, as one would write it for one's own model: the peer to beat among
what a user of PyTorch can write without CUDA.

    out[m, n] = bf16((sum over k of a[m, k] * w[n, k]) * row_scale[m] * col_scale[n] + bias[n])

a int8 [m, k] and w int8 [n, k], both dense, k a multiple of 128. Blocks of the output are walked in
groups of rows, so that the operands of blocks that run together stay in L2.
"""

from __future__ import annotations

import triton
import triton.language as tl

# block_m, block_n, block_k, warps, stages. Large blocks, for tokens by the thousand.
CONFIGS = (
    (128, 256, 128, 8, 3),
    (128, 256, 128, 8, 4),
    (128, 256, 64, 8, 4),
    (256, 128, 128, 8, 3),
    (256, 128, 128, 8, 4),
    (128, 128, 128, 4, 4),
    (128, 128, 128, 8, 4),
    (128, 128, 64, 4, 4),
    (64, 256, 128, 4, 3),
    (128, 64, 128, 4, 4),
    (64, 128, 128, 4, 4),
)
# For a handful of tokens, where many small blocks have to share the reading of the weight.
SKINNY_CONFIGS = (
    (16, 32, 128, 4, 5),
    (16, 64, 128, 4, 5),
    (16, 128, 128, 4, 4),
    (64, 32, 128, 4, 5),
    (64, 64, 128, 4, 5),
    (64, 128, 128, 4, 4),
)
GROUPS = (8, 16)  # rows of blocks that are walked together; the first while configs are searched
SCREEN_ROUNDS, FINAL_ROUNDS, FINALISTS = 2, 8, 3


# m changes from call to call: without this each of 1, a multiple of 16 and the rest is compiled.
@triton.jit(do_not_specialize=["m"])
def _int8_gemm(a_at, w_at, out_at, row_scale_at, col_scale_at, bias_at, m, n, k,
               HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
               BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(m, BLOCK_M)
    blocks_n = tl.cdiv(n, BLOCK_N)
    group = block // (GROUP_M * blocks_n)
    within = block % (GROUP_M * blocks_n)
    height = tl.minimum(blocks_m - group * GROUP_M, GROUP_M)  # the last group may be lower
    block_m = group * GROUP_M + within % height
    block_n = within // height

    rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    # Rows past the end read the last one: cheaper than masks, and their outputs are not stored.
    a = a_at + tl.minimum(rows, m - 1)[:, None] * k + ks[None, :]
    w = w_at + tl.minimum(columns, n - 1)[None, :] * k + ks[:, None]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for _ in range(0, k // BLOCK_K):
        sums = tl.dot(tl.load(a), tl.load(w), sums, out_dtype=tl.int32)
        a += BLOCK_K
        w += BLOCK_K

    row_scale = tl.load(row_scale_at + rows, mask=rows < m, other=0.0)
    col_scale = tl.load(col_scale_at + columns, mask=columns < n, other=0.0)
    result = sums.to(tl.float32) * row_scale[:, None] * col_scale[None, :]
    if HAS_BIAS:
        result += tl.load(bias_at + columns, mask=columns < n, other=0.0)[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out_at + rows[:, None] * n + columns[None, :], result.to(tl.bfloat16), mask=mask)


def launcher(config, group, a, w, row_scale, col_scale, bias, out):
    """A function that runs one config, its blocks walked in groups of this many rows."""
    block_m, block_n, block_k, warps, stages = config
    (m, k), n = a.shape, w.shape[0]
    assert k % block_k == 0, f"k is {k}, expected a multiple of {block_k}"
    assert max(m * k, n * k, m * n) < 2**31, "an offset would not fit into 32 bits"
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)

    def run():
        _int8_gemm[grid](a, w, out, row_scale, col_scale, bias if bias is not None else col_scale,
                         m, n, k, HAS_BIAS=bias is not None, BLOCK_M=block_m, BLOCK_N=block_n,
                         BLOCK_K=block_k, GROUP_M=group, num_warps=warps, num_stages=stages)

    return run


def config_name(config, group: int) -> str:
    return "{}x{}x{} warps {} stages {} group {}".format(*config, group)


def tuned(measure, *operands):
    """(name of the fastest config, function that runs it, how many were measured). `operands` as
    launcher() takes them; `measure` takes {name: function} and a number of rounds and returns
    {name: microseconds}. All are screened in few rounds, the best of them compared in more, and the
    winner's groups after that. Configs that this GPU or Triton cannot run are skipped."""
    works, configs = {}, {}

    def add(config, group):
        name, run = config_name(config, group), launcher(config, group, *operands)
        try:
            run()
        except Exception as error:  # out of shared memory, or refused by the compiler
            if "illegal" in str(error).lower():
                raise  # the GPU's context is gone: nothing after this would be a measurement
            return None
        works[name], configs[name] = run, config
        return name

    def ordered(names, rounds):
        times = measure({name: works[name] for name in names}, rounds)
        return sorted(times, key=times.get)

    for config in SKINNY_CONFIGS if operands[0].shape[0] <= 64 else CONFIGS:
        add(config, GROUPS[0])
    if not works:
        raise RuntimeError("no config of the Triton kernel runs on this GPU")
    finalists = ordered(list(works), SCREEN_ROUNDS)[:FINALISTS]
    fastest = ordered(finalists, FINAL_ROUNDS)[0]
    others = [add(configs[fastest], group) for group in GROUPS[1:]]
    fastest = ordered([fastest, *filter(None, others)], FINAL_ROUNDS)[0]
    return fastest, works[fastest], len(works)
