"""liboctet.so through bench/octet_library.py, as bench/peers.py times it: here on the CPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def octet(repository, built_program, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "bench"))
    from octet_library import Octet

    opened = Octet("cpu", library=built_program("liboctet.so"))
    yield opened
    opened.close()


@pytest.fixture
def operands():
    random = torch.Generator().manual_seed(1)

    def int8(rows, k):
        return torch.randint(-127, 128, (rows, k), generator=random, dtype=torch.int8)

    m, n, k = 37, 50, 96
    return (int8(m, k), torch.rand(m, generator=random), int8(n, k),
            torch.rand(n, generator=random), torch.randn(n, generator=random))


def expected(a, row_scale, w, col_scale):
    sums = a.double() @ w.double().t()
    return (sums.float() * row_scale[:, None]) * col_scale[None, :]


def test_gemm_gives_the_bits_of_the_contract(octet, operands):
    a, row_scale, w, col_scale, bias = operands
    plain = octet.pack(w, col_scale)
    out = torch.full((37, 50), float("nan"), dtype=torch.bfloat16)
    octet.gemm(plain, a, row_scale, out)()
    assert torch.equal(out, expected(a, row_scale, w, col_scale).bfloat16())
    assert octet.kernel

    sums = torch.zeros(37, 50, dtype=torch.int32)
    octet.gemm(plain, a, row_scale, sums)()
    assert torch.equal(sums, (a.double() @ w.double().t()).int())

    biased = octet.pack(w, col_scale, bias)
    octet.gemm(biased, a, row_scale, out, "bias")()
    assert torch.equal(out, (expected(a, row_scale, w, col_scale) + bias).bfloat16())
    for weight in (plain, biased):
        weight.close()


def test_gate_and_up_rows_meet_in_a_swiglu(octet, operands):
    a, row_scale, w, col_scale, _ = operands
    weight = octet.pack(w, col_scale, gate_up=True)
    out = torch.full((37, 25), float("nan"))
    octet.gemm(weight, a, row_scale, out, "swiglu")()
    gate, up = expected(a, row_scale, w, col_scale).chunk(2, dim=1)
    torch.testing.assert_close(out, torch.nn.functional.silu(gate) * up, rtol=1e-5, atol=1e-5)
    weight.close()


def test_quantize(octet):
    x = torch.randn(9, 130, generator=torch.Generator().manual_seed(2)).bfloat16()
    values, scales = torch.zeros(9, 130, dtype=torch.int8), torch.zeros(9)
    octet.quantize(x, values, scales)()
    amax = x.float().abs().amax(1)
    assert torch.equal(scales, torch.div(amax, torch.full_like(amax, 127)))
    assert (values.float() * scales[:, None] - x.float()).abs().max() <= 0.51 * scales.max()


def test_quantize_with_a_rotation(octet):
    import kitchen

    x = torch.randn(5, 512, generator=torch.Generator().manual_seed(3)).bfloat16()
    values, scales = torch.zeros(5, 512, dtype=torch.int8), torch.zeros(5)
    octet.quantize(x, values, scales, kitchen.GROUP)()
    rotated = kitchen.rotated(x)
    torch.testing.assert_close(scales, rotated.abs().amax(1) / 127, rtol=1e-5, atol=0)
    assert (values.float() * scales[:, None] - rotated).abs().max() <= 0.51 * scales.max()
    # Symmetric and orthogonal: twice is nothing.
    torch.testing.assert_close(kitchen.rotated(rotated), x.float(), rtol=1e-5, atol=1e-5)


def test_errors_are_sentences(octet, operands):
    from octet_library import Octet, OctetError

    a, row_scale, w, col_scale, bias = operands
    with pytest.raises(OctetError, match="tpu"):
        Octet("tpu", library=octet.library)
    with pytest.raises(OctetError, match="does not exist; build it"):
        Octet("cpu", library=octet.library.with_name("no.so"))
    weight = octet.pack(w, col_scale)
    out = torch.empty(37, 50, dtype=torch.bfloat16)
    with pytest.raises(OctetError, match="'relu' is not a fusion"):
        octet.gemm(weight, a, row_scale, out, "relu")()
    with pytest.raises(OctetError, match="bias"):
        octet.gemm(weight, a, row_scale, out, "bias")()
    with pytest.raises(OctetError, match="takes no bias"):
        octet.pack(w, col_scale, bias, gate_up=True)
    with pytest.raises(OctetError, match=r"\[37, 51\], expected torch.bfloat16 \[37, 50\]"):
        octet.gemm(weight, a, row_scale, torch.empty(37, 51, dtype=torch.bfloat16))
    with pytest.raises(OctetError, match="not dense"):
        octet.gemm(weight, a, row_scale, torch.empty(50, 37, dtype=torch.bfloat16).t())
    weight.close()
    with pytest.raises(OctetError, match="is closed"):
        octet.gemm(weight, a, row_scale, out)()


def test_a_type_without_a_name_and_a_damaged_library_are_sentences(octet, operands, tmp_path):
    from octet_library import Octet, OctetError

    a, row_scale, w, col_scale, _ = operands
    weight = octet.pack(w, col_scale)
    with pytest.raises(OctetError, match="torch.float64, expected one of torch.bfloat16"):
        octet.gemm(weight, a, row_scale, torch.empty(37, 50, dtype=torch.float64))
    weight.close()
    damaged = tmp_path / "liboctet.so"
    for content in (b"", b"no library"):
        damaged.write_bytes(content)
        with pytest.raises(OctetError, match="cannot be used .*; build it again"):
            Octet("cpu", library=damaged)


def test_a_gemm_and_a_quantization_keep_their_tensors(octet, operands):
    import weakref

    a, row_scale, w, col_scale, _ = operands
    weight = octet.pack(w, col_scale)
    out, x = torch.empty(37, 50, dtype=torch.bfloat16), torch.randn(5, 96)
    held = [weakref.ref(out), weakref.ref(x)]
    works = [octet.gemm(weight, a, row_scale, out),
             octet.quantize(x, torch.empty(5, 96, dtype=torch.int8), torch.empty(5))]
    del out, x
    assert all(tensor() is not None for tensor in held)
    for work in works:
        work()
    weight.close()
