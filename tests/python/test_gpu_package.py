"""The functions of the package on a GPU: the same bits as on the CPU, on the caller's stream.

Ten seconds, most of it for starting CUDA. Skipped without torch and a GPU.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)

import octet  # noqa: E402
from octet import _octet as raw  # noqa: E402

SHAPES = [(1, 32, 16), (5, 48, 64), (33, 70, 100), (257, 384, 512)]  # with odd N and K


@pytest.fixture(scope="module")
def device():
    try:
        return raw.Device("cuda:0", tuning="off")
    except octet.OctetError as error:
        pytest.skip(str(error))


def random_linear(m: int, n: int, k: int, dtype=torch.float32):
    generator = torch.Generator().manual_seed(m)
    x = torch.randn(m, k, generator=generator).to(dtype)
    weight = torch.randint(-127, 128, (n, k), generator=generator, dtype=torch.int8)
    scale = torch.rand(n, generator=generator) * 0.01
    return x, weight, scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_linear_has_the_bits_of_the_cpu(device, m, n, k, dtype):
    arrays = random_linear(m, n, k, dtype)
    y = octet.int8_linear(*(array.cuda() for array in arrays))
    assert y.is_cuda and y.dtype == dtype
    assert torch.equal(y.cpu(), octet.int8_linear(*arrays))


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_int8_mm_is_exact(device, m, n, k):
    generator = torch.Generator().manual_seed(n)
    a = torch.randint(-128, 128, (m, k), generator=generator, dtype=torch.int8)
    b = torch.randint(-128, 128, (k, n), generator=generator, dtype=torch.int8)
    meant = a.int() @ b.int()
    for right in (b.cuda(), b.t().contiguous().cuda().t()):
        assert torch.equal(octet.int8_mm(a.cuda(), right).cpu(), meant)


def test_quantize_rows_has_the_bits_of_the_cpu(device):
    x = random_linear(33, 1, 256)[0]
    for group in (0, 64, 256):
        meant = octet.quantize_rows(x, group)
        for mine, theirs in zip(octet.quantize_rows(x.cuda(), group), meant):
            assert torch.equal(mine.cpu(), theirs)


class Foreign:
    """An array that knows DLPack, and nothing else."""

    def __init__(self, tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_arrays_by_dlpack(device):
    arrays = [array.cuda() for array in random_linear(8, 32, 64)]
    y = octet.int8_linear(*map(Foreign, arrays))
    assert torch.equal(y, octet.int8_linear(*arrays))
    with pytest.raises(octet.OctetError):
        octet.int8_linear(arrays[0], arrays[1].cpu(), arrays[2])
    with pytest.raises(octet.OctetError):
        octet.int8_linear(np.ones((8, 64), np.float32), arrays[1], arrays[2])


def run_raw(device, x, weight, scale, y, allocate, memory=None) -> str:
    (m, k), n = x.shape, weight.shape[0]
    return raw.linear(
        *(device, torch.cuda.current_stream().cuda_stream),
        *((memory.data_ptr(), memory.numel()) if memory is not None else (0, 0)),
        *(allocate, plain_weight(weight, scale), x.data_ptr(), k, raw.F32, m),
        *(y.data_ptr(), n, raw.F32),
    )


def plain_weight(weight, scale) -> raw.PlainWeight:
    n, k = weight.shape
    return raw.PlainWeight(
        *(weight.data_ptr(), n, k, k, scale.data_ptr(), n, 0, 0, 0, 0, False)
    )


@pytest.mark.parametrize("n, k", [(64, 128), (40, 72)])  # the latter is packed in each call
def test_memory_is_the_callers(device, n, k):
    x, weight, scale = (array.cuda() for array in random_linear(16, n, k))
    meant = octet.int8_linear(x, weight, scale)
    y = torch.empty_like(meant)
    asked = []

    def allocate(size: int):
        asked.append(size)
        return torch.empty(size, dtype=torch.uint8, device="cuda")

    assert run_raw(device, x, weight, scale, y, allocate)
    assert asked and torch.equal(y, meant)
    # What it took once is known, so that nothing has to be asked for a second time.
    y.zero_()
    asked.clear()
    needed = raw.linear_memory(device, plain_weight(weight, scale), 16)
    assert needed >= 16 * k + (n * k if n == 40 else 0)
    memory = torch.empty(needed, dtype=torch.uint8, device="cuda")
    run_raw(device, x, weight, scale, y, allocate, memory)
    assert torch.equal(y, meant) and not asked


class Mine(Exception):
    pass


def test_memory_that_does_not_come(device):
    x, weight, scale = (array.cuda() for array in random_linear(16, 64, 128))
    y = torch.empty(16, 64, device="cuda")

    def fail(_):
        raise Mine

    for allocate, error in (
        (fail, Mine),
        (lambda _: None, AttributeError),
        (lambda _: "text", AttributeError),
        (None, octet.OctetError),
    ):
        with pytest.raises(error):
            run_raw(device, x, weight, scale, y, allocate)


def test_work_is_on_the_callers_stream_and_waits_for_nothing(device):
    x, weight, scale = (array.cuda() for array in random_linear(64, 128, 256))
    meant = octet.int8_linear(x, weight, scale)  # kernels are chosen, weights are known
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.cuda.stream(side):
            late = torch.zeros_like(x)
            torch.cuda._sleep(20_000_000)
            late.copy_(x)
            y = octet.int8_linear(late, weight, scale)
            assert not side.query(), "the call waited for the stream"
    finally:
        torch.cuda.set_sync_debug_mode("default")
    side.synchronize()
    assert torch.equal(y, meant)


def test_a_gpu_that_is_not_there():
    with pytest.raises(octet.OctetError, match="cuda:99"):
        raw.Device("cuda:99")
