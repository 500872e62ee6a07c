"""The PyTorch side of bench/peers.py, as far as a CPU can run it: the model of the step is that of
diffusers, and every contestant that needs no GPU gives the right result. Fifteen seconds."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def bench(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "bench"))
    return repository / "bench"


# --- the step ------------------------------------------------------------------------------------

TINY = {"layers": 2, "heads": 4, "head_dim": 32, "ffn": 48, "modulation": 16, "channels": 16,
        "theta": 1e4, "sections": (6, 5, 5)}


def test_the_model_is_that_of_diffusers():
    import torch_dit
    from diffusers import Ideogram4Transformer2DModel

    torch.manual_seed(0)
    sizes = torch_dit.Sizes(**TINY)
    theirs = Ideogram4Transformer2DModel(
        in_channels=16, num_layers=2, attention_head_dim=32, num_attention_heads=4,
        intermediate_size=48, adaln_dim=16, llm_features_dim=24, rope_theta=10000,
        mrope_section=(6, 5, 5)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    weights = theirs.state_dict()
    for at in ("layers.0.", "layers.1."):
        weights[at + "attention.qkv.weight"] = torch.cat(
            [weights[f"{at}attention.to_{name}.weight"] for name in "qkv"])
        weights[at + "feed_forward.w13.weight"] = torch.cat(
            [weights[f"{at}feed_forward.{name}.weight"] for name in ("w1", "w3")])

    def tensor(name, shape):
        assert weights[name].shape == shape, name
        return weights[name]

    tokens, grid = 5, (3, 4)
    features, z = torch.randn(tokens, 24), torch.randn(12, 16)
    rows, columns = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
    image = 65536 + torch.stack([torch.zeros_like(rows), rows, columns], -1).view(-1, 3)
    positions = torch.cat([torch.arange(tokens)[:, None].expand(-1, 3), image])
    with torch.no_grad():
        expected = theirs(
            hidden_states=torch.cat([torch.zeros(tokens, 16), z])[None],
            timestep=torch.tensor([0.375]),
            encoder_hidden_states=torch.cat([features, torch.zeros(12, 24)])[None],
            position_ids=positions[None], segment_ids=torch.ones(1, 17, dtype=torch.long),
            indicator=torch.tensor([[3] * tokens + [2] * 12]), return_dict=False)[0][0, tokens:]
        kind = torch_dit.KINDS["bf16"]
        text = theirs.llm_cond_proj(theirs.llm_cond_norm(features))
        got = torch_dit.forward(
            torch_dit.block_runner(kind, sizes, compiled=False), sizes,
            torch_dit.make_model(sizes, kind, tensor),
            text + theirs.embed_image_indicator.weight[0], z, 0.375,
            torch_dit.rotary_tables(sizes, tokens, grid, "cpu"))
    # Angles of 65536 rad, whose sines torch computes from rounded angles.
    assert (got - expected).norm() <= 2e-5 * expected.norm()


@pytest.mark.parametrize("installed", [True, False])
def test_a_step_measures_what_runs_and_says_what_does_not(monkeypatch, installed):
    import kitchen
    import step_peers
    import torch_dit

    if not installed:
        monkeypatch.setattr(kitchen, "package", lambda: fail("comfy-kitchen is not installed"))
    sizes = torch_dit.Sizes(layers=1, heads=2, head_dim=128, ffn=512, modulation=16, channels=16,
                            sections=(24, 20, 20))
    said, saved = [], []
    case = step_peers.StepCase(size=64, text_tokens=3, steps=2)
    others, attention = step_peers.torch_contestants(
        torch, ("bf16", "kitchen_convrot", "unknown"), case, "cpu", sizes, compiled=False)
    octet = iter([step_peers.Run({"conditional": 2.0, "unconditional": 1.0}, {"mean_w": 500.0}),
                  step_peers.Run({"conditional": 4.0, "unconditional": 3.0}, {"mean_w": 600.0})])
    result = step_peers.measure({"octet": octet.__next__, **others}, case, 1, said.append,
                                save=lambda so_far: saved.append(sorted(so_far["ms"])))
    assert result["ms"]["octet"] == {"conditional": 3.0, "unconditional": 2.0}
    assert result["power"] == {"octet": {"mean_w": 550.0}}
    assert set(result["ms"]["bf16"]) == {"conditional", "unconditional"}
    assert len(result["runs"]["bf16"]) == 2 and attention
    assert result["off"]["bf16"] == 0 and "unknown" in result["left_out"]
    assert any("unknown is left out" in line for line in said)
    assert saved[0] == ["octet"] and saved[1] == ["bf16", "octet"]  # a cut run leaves what it has
    has_package = installed and "kitchen_convrot" in result["ms"]
    if has_package:
        assert 0 < result["off"]["kitchen_convrot"] < 0.1
    else:
        assert "comfy-kitchen is not installed" in result["left_out"]["kitchen_convrot"]


def fail(reason: str):
    raise RuntimeError(reason)


def test_octets_step_fails_with_its_sentence(tmp_path):
    import step_peers

    program = tmp_path / "octet"
    program.write_text("#!/bin/sh\necho 'octet: no GPU' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="octet: no GPU"):
        step_peers.octet_step(program, step_peers.StepCase(), 34, "cuda:0")


def test_octets_step_is_asked_as_the_program_wants(built_program):
    """One layer of the published width takes seconds: a wrong flag is found before that."""
    import step_peers

    case = step_peers.StepCase(size=256, text_tokens=0, steps=1)
    with pytest.raises(RuntimeError, match="cuda:7|CUDA"):
        step_peers.octet_step(built_program("octet"), case, 1, "cuda:7")


# --- the linears ---------------------------------------------------------------------------------


@pytest.fixture
def contestants(monkeypatch):
    import gpu_contestants

    monkeypatch.setattr(gpu_contestants, "DEVICE", "cpu")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    return gpu_contestants


@pytest.mark.parametrize("bias", [False, True])
def test_contestants_are_right_on_a_cpu(contestants, built_program, bias):
    import peers
    from octet_library import Octet

    torch.manual_seed(0)
    octet = Octet("cpu", library=built_program("liboctet.so"))
    passes = contestants.compile_passes()
    weight = contestants.WeightOperand(octet, 96, 512, bias)
    rows = contestants.Rows(octet, weight, 40)
    notes = {}
    cuda = SimpleNamespace(synchronize=lambda: None)
    measurement = peers.Measurement(SimpleNamespace(cuda=cuda), octet, None, contestants,
                                    {"cases": [], "failed": [], "notes": []})
    works, left_out, kernel = measurement.ready(
        contestants.gemms(octet, None, passes, rows, notes)
        | contestants.linears(octet, passes, rows, notes), rows)
    needed = {"octet", "bf16", "int_mm", "int_mm_dequant", "fake_int8", "quantize",
              "quantize_rotated", "quantize_torch", "quantize_fp8"}
    assert needed <= set(works), left_out
    # These need a GPU, or a package; anything else is a fault of ours.
    assert set(left_out) <= {"triton", "fp8_row", "fp8_tensor", "kitchen", "kitchen_convrot"}
    if "kitchen" in works:
        assert "its backend eager" in notes["kitchen"] and "kitchen_convrot" in works
    assert kernel
    weight.close()
    octet.close()


def test_wrong_results_are_found(contestants, built_program):
    from octet_library import Octet, WrongResult

    torch.manual_seed(0)
    octet = Octet("cpu", library=built_program("liboctet.so"))
    weight = contestants.WeightOperand(octet, 32, 256, False)
    rows = contestants.Rows(octet, weight, 8)
    ours = torch.randn(8, 32).bfloat16()
    for kind, out in (("close", -ours), ("int8", ours * 1.1), ("sums", torch.ones(8, 32).int())):
        with pytest.raises(WrongResult):
            contestants.check_against(contestants.Contestant(None, out, kind), ours, rows)
    for kind, values in (("quantized", rows.q.roll(1)), ("rotated", rows.q),
                         ("fp8", torch.zeros_like(rows.fp8))):
        with pytest.raises(WrongResult):
            contestants.check_against(
                contestants.Contestant(None, values, kind, (rows.scale,)), ours, rows)
    weight.close()
    octet.close()


def test_the_shell_script_is_sound(bench):
    assert subprocess.run(["bash", "-n", bench / "gpu_bench.sh"]).returncode == 0
    done = subprocess.run([bench / "gpu_bench.sh", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "comfy-kitchen" in done.stdout
