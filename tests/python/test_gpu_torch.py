"""octet.torch on a GPU: the bits of the CPU, on the caller's stream, in graphs, in threads.

Half a minute, most of it torch.compile's. Skipped without a GPU that torch can use. The last test
prints what a call costs beside its kernels (pytest -s).
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)

import octet  # noqa: E402
from int8_definition import random_codes  # noqa: E402
from octet.torch import (  # noqa: E402
    Int8Linear,
    int8_linear,
    int8_linear_codes,
    int8_linear_parts,
    int8_mm,
    quantize_,
    quantize_rows,
)
from small_models import Attention, inputs, residue, transformer  # noqa: E402
from torch import nn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
# m, n, k; those with odd N or K are packed in each call
SHAPES = [(1, 32, 16), (7, 48, 64), (33, 70, 100), (64, 96, 256), (300, 512, 1024)]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(scope="module", autouse=True)
def engine():
    from octet.torch.runtime import engine

    try:
        return engine(0)
    except octet.OctetError as error:  # a build without CUDA, a GPU without kernels
        pytest.skip(str(error))


def a_weight(n: int, k: int, dtype=torch.float32):
    return random_codes(n, k, -128), torch.rand(n, 1) * 0.01, torch.randn(n).to(dtype)


def on_gpu(*values):
    return [v.cuda() if isinstance(v, torch.Tensor) else v for v in values]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_the_bits_of_the_cpu(m, n, k, dtype):
    x, weight = torch.randn(m, k).to(dtype), a_weight(n, k, dtype)
    group = 16 if k % 16 == 0 else 4
    for options in ({}, {"rotation_group": group}, {"smooth": torch.rand(k) + 0.5}):
        there = {key: on_gpu(value)[0] for key, value in options.items()}
        y = int8_linear(*on_gpu(x, *weight), **there)
        assert torch.equal(y.cpu(), int8_linear(x, *weight, **options))
    if n % 2 == 0:
        y = int8_linear(*on_gpu(x, *weight[:2]), gate_up=True)
        assert torch.equal(y.cpu(), int8_linear(x, *weight[:2], gate_up=True))
    codes, scales = quantize_rows(x.cuda())
    expected_codes, expected_scales = quantize_rows(x)
    assert torch.equal(codes.cpu(), expected_codes) and torch.equal(scales.cpu(), expected_scales)
    y = int8_linear_codes(codes, scales, *on_gpu(*weight), out_dtype=dtype)
    assert torch.equal(y.cpu(), int8_linear(x, *weight))


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_int8_mm_is_exact(m, n, k):
    a, b = random_codes(m, k, -128), random_codes(n, k, -128).t()
    a[0], b[:, 0] = -128, -128
    for right in (b, b.contiguous()):
        assert torch.equal(int8_mm(a.cuda(), right.cuda()).cpu(), a.int() @ b.int())


def test_strided_inputs_and_rows_of_a_weight():
    weight, scale, bias = a_weight(128, 256)
    x = torch.randn(4, 6, 300)[..., :256]
    for rows in (slice(0, 128), slice(32, 96), slice(16, 80)):
        parts = weight[rows], scale[rows], bias[rows]
        for view in (x, x.transpose(0, 1), x[:, 0]):
            y = int8_linear(view.cuda(), *on_gpu(weight, scale, bias))
            assert torch.equal(y.cpu(), int8_linear(view, weight, scale, bias))
            whole = on_gpu(weight, scale, bias)
            y = int8_linear(view.cuda(), *(tensor[rows] for tensor in whole))
            assert torch.equal(y.cpu(), int8_linear(view, *parts))
    apart = torch.stack([bias, bias + 9], 1).cuda()[:, 0]  # the bias, every other number
    y = int8_linear(x.cuda(), *on_gpu(weight, scale), apart)
    assert torch.equal(y.cpu(), int8_linear(x, weight, scale, bias))
    sizes = [64, 64]
    y = int8_linear_parts(x.cuda(), *(t.split(sizes) for t in on_gpu(weight, scale, bias)))
    assert torch.equal(y.cpu(), int8_linear(x, weight, scale, bias))


def test_a_side_stream_and_memory_that_is_used_again():
    weight = on_gpu(*a_weight(512, 512))
    expected, outputs = [], []
    stream = torch.cuda.Stream()
    for _ in range(50):
        x = torch.randn(64, 512)
        expected.append(x)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            outputs.append(int8_linear(x.cuda(non_blocking=True), *weight).clone())
    stream.synchronize()
    host = [tensor.cpu() for tensor in weight]
    for x, y in zip(expected, outputs):
        assert torch.equal(y.cpu(), int8_linear(x, *host))


def test_a_call_waits_for_nothing():
    linear = Int8Linear.from_linear(nn.Linear(512, 512, device="cuda", dtype=torch.bfloat16))
    x = torch.randn(64, 512, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        linear(x)  # kernels are chosen here
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000_000)  # about a second
        done = torch.cuda.Event()
        done.record()
        linear(x)
        assert not done.query()
        torch.cuda.synchronize()


def test_a_cuda_graph_replays():
    model = quantize_(transformer(layers=1).cuda())
    (x, t), (other, _) = inputs(), inputs()
    x, t, other = on_gpu(x, t, other)
    with torch.no_grad():
        expected, expected_other = model(x, t), model(other, t)
        kept = x.clone()
        graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(kept, t)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            y = model(kept, t)
        for given, wanted in ((x, expected), (other, expected_other), (x, expected)):
            kept.copy_(given)
            graph.replay()
            assert torch.equal(y, wanted)
    assert not residue(model)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_it_has_the_same_bits(mode):
    pytest.importorskip("triton")
    model = quantize_(transformer(layers=1).cuda())
    x, t = on_gpu(*inputs())
    with torch.no_grad():
        expected = model(x, t)
        linear = model.blocks[0].attn.to_out[0]
        h = torch.randn(2, 5, 64, device="cuda", dtype=torch.bfloat16)
        compiled = torch.compile(linear, fullgraph=True, mode=mode)
        for _ in range(3):
            assert torch.equal(compiled(h), linear(h))
        whole = torch.compile(model, fullgraph=True, mode=mode)
        for _ in range(3):
            y = whole(x, t)
        # What lies between the linears is Triton's arithmetic.
        assert (y - expected).norm() < 0.02 * expected.norm()
    assert not residue(model)


def test_autocast_and_inference_mode():
    linear = Int8Linear.from_linear(nn.Linear(64, 64, device="cuda"))
    x = torch.randn(3, 64, device="cuda")
    with torch.autocast("cuda", torch.bfloat16), torch.inference_mode():
        y = linear(x)
    assert y.dtype == torch.bfloat16
    with torch.no_grad():
        assert torch.equal(y, linear(x.bfloat16()))


def test_threads_with_streams_of_their_own():
    model = quantize_(Attention(256).to(torch.bfloat16).cuda())
    batches = [torch.randn(16, 256, dtype=torch.bfloat16, device="cuda") for _ in range(32)]
    with torch.no_grad():
        expected = [model(x) for x in batches]
    torch.cuda.synchronize()

    def work(part):
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            outputs = [model(x) for x in batches[part::4]]
        stream.synchronize()
        return outputs

    with ThreadPoolExecutor(4) as pool:
        for part, outputs in enumerate(pool.map(work, range(4))):
            assert all(torch.equal(a, b) for a, b in zip(outputs, expected[part::4]))


def test_a_model_moves_to_the_gpu_and_back():
    model = quantize_(transformer(layers=1))
    x, t = inputs()
    with torch.no_grad():
        expected = model(x, t)
        model.cuda()
        attention = model.blocks[0].attn
        end = attention.to_q.weight.data_ptr() + attention.to_q.weight.numel()
        assert attention.to_k.weight.data_ptr() == end
        there = model(*on_gpu(x, t)).cpu()
        assert (there - expected).norm() < 0.02 * expected.norm()
        assert torch.equal(model.cpu()(x, t), expected)
    assert octet.report(model).native == 7


def test_tensors_on_two_devices_are_refused():
    linear = Int8Linear.from_linear(nn.Linear(64, 64, device="cuda"))
    with torch.no_grad(), pytest.raises(octet.OctetError, match="one device"):
        linear(torch.randn(3, 64))
    with pytest.raises(octet.OctetError, match="one device"):
        int8_linear(torch.randn(3, 64, device="cuda"), linear.weight, linear.weight_scale.cpu())


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus():
    linear = Int8Linear.from_linear(nn.Linear(256, 256, dtype=torch.bfloat16))
    x = torch.randn(16, 256, dtype=torch.bfloat16)
    expected = linear(x)
    both = [copy.deepcopy(linear).to(f"cuda:{index}") for index in (0, 1)]
    for _ in range(3):
        for index, one in enumerate(both):
            assert torch.equal(one(x.to(f"cuda:{index}")).cpu(), expected)
            assert torch.cuda.current_device() == 0
    with pytest.raises(octet.OctetError, match="one device"):
        both[0](x.to("cuda:1"))
