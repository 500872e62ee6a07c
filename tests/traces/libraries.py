#!/usr/bin/env python3
"""Records programs of other libraries: tests/traces/libraries.

    tests/traces/libraries.py cpu|cuda OUT [NAME...]

Needs what the programs import: torchao, hqq, sdnq and diffusers from PyPI, jax, onnx, onnxruntime.
What is missing fails only its own programs. A file is a trace of PyTorch's profiler with shapes
(.shapes) or without (.plain), its table (.table.txt), or the profile of JAX or ONNX Runtime.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from network import SETTINGS, Dit, Setting, input_of
from record import compressed, without_private
from torch import nn
from torch.profiler import ProfilerActivity, profile

PROGRAMS = {}


def program(name: str, device: str, *variants: str):
    def register(make):
        PROGRAMS[name] = (device, variants, make)
        return make

    return register


def network(setting: Setting) -> nn.Module:
    def linear(weight):
        made = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
        made.weight = nn.Parameter(weight)
        return made

    return Dit(setting, linear).eval()


def with_linears(module: nn.Module, make) -> nn.Module:
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            setattr(module, name, make(child))
        else:
            with_linears(child, make)
    return module


# --- PyTorch -------------------------------------------------------------------------------------


def torchao_fp8(setting: Setting) -> nn.Module:
    from torchao.quantization import Float8WeightOnlyConfig, quantize_

    model = network(setting)
    quantize_(model, Float8WeightOnlyConfig())
    return model


@program("torchao_fp8_weight_only", "cuda", "plain", "table")
def _(setting):
    model, x = torchao_fp8(setting), input_of(setting)
    return lambda: model(x)


@program("torchao_fp8_weight_only_compiled", "cuda", "table")
def _(setting):
    model, x = torch.compile(torchao_fp8(setting)), input_of(setting)
    return lambda: model(x)


@program("hqq_int8", "cpu", "shapes", "table")
def _(setting):
    from hqq.core.quantize import BaseQuantizeConfig, HQQBackend, HQQLinear

    HQQLinear.set_backend(HQQBackend.PYTORCH)
    config = BaseQuantizeConfig(nbits=8, group_size=64)
    model = with_linears(network(setting), lambda linear: HQQLinear(
        linear, config, compute_dtype=torch.bfloat16, device=setting.device, del_orig=False))
    x = input_of(setting)
    return lambda: model(x)


@program("sdnq_int8", "cpu", "shapes", "table")
def _(setting):
    from sdnq import sdnq_post_load_quant

    model = sdnq_post_load_quant(network(setting), weights_dtype="int8", quant_conv=False,
                                 use_quantized_matmul=False, torch_dtype=torch.bfloat16)
    x = input_of(setting)
    return lambda: model(x)


@program("diffusers_layerwise_fp8", "cpu", "table")
def _(setting):
    from diffusers import FluxTransformer2DModel

    heads = 4
    model = FluxTransformer2DModel(
        num_layers=1, num_single_layers=1, num_attention_heads=heads,
        attention_head_dim=setting.hidden // heads, joint_attention_dim=setting.hidden,
        pooled_projection_dim=setting.hidden, in_channels=64, axes_dims_rope=(16, 24, 24))
    model = model.to(setting.device, torch.bfloat16).eval()
    model.enable_layerwise_casting(storage_dtype=torch.float8_e4m3fn,
                                   compute_dtype=torch.bfloat16)

    def numbers(*dims):
        return torch.randn(*dims, device=setting.device, dtype=torch.bfloat16)

    inputs = {"hidden_states": numbers(1, 4 * setting.tokens, 64),
              "encoder_hidden_states": numbers(1, setting.tokens, setting.hidden),
              "pooled_projections": numbers(1, setting.hidden), "timestep": numbers(1),
              "img_ids": torch.zeros(4 * setting.tokens, 3), "txt_ids": torch.zeros(64, 3)}
    return lambda: model(**inputs)


def record_torch(name: str, setting: Setting, variants, make, out: Path) -> None:
    torch.manual_seed(0)
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * setting.is_cuda
    with torch.no_grad():
        step = make(setting)
        for _ in range(3):
            step()
        for variant in variants:
            with profile(activities=kinds, record_shapes=variant == "shapes") as run:
                step()
                if setting.is_cuda:
                    torch.cuda.synchronize()
            if variant == "table":
                order = f"self_{setting.device}_time_total"
                text = run.key_averages().table(sort_by=order, row_limit=40)
                (out / f"{name}.table.txt").write_text(text)
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "trace.json"
                run.export_chrome_trace(str(path))
                text = without_private(path.read_text())
            (out / f"{name}.{variant}.json.gz").write_bytes(compressed(text))


# --- JAX and ONNX Runtime ------------------------------------------------------------------------


def record_jax(out: Path) -> None:
    import jax
    import jax.numpy as jnp

    codes = [jax.random.randint(jax.random.PRNGKey(i), (2048, 2048), -100, 100) for i in range(8)]
    x = jnp.ones((1024, 2048), jnp.bfloat16)

    def in_bf16(x, weights):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return x

    def in_int8(x, weights):
        for weight in weights:
            scale = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
            rows = jnp.round(x / scale).astype(jnp.int8)
            y = jax.lax.dot(rows, weight, preferred_element_type=jnp.int32)
            x = jnp.tanh(y.astype(jnp.bfloat16) * scale * jnp.bfloat16(0.01))
        return x

    for name, run, dtype in (("jax_bf16", in_bf16, jnp.bfloat16), ("jax_int8", in_int8, jnp.int8)):
        run, weights = jax.jit(run), [code.astype(dtype) for code in codes]
        run(x, weights).block_until_ready()
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                run(x, weights).block_until_ready()
            (trace,) = Path(folder).rglob("*.trace.json.gz")
            text = without_private(gzip.decompress(trace.read_bytes()).decode())
        (out / f"{name}.json.gz").write_bytes(compressed(text))


def record_onnxruntime(out: Path) -> None:
    """Six products whose weights are known: in f32, and with both operands from integers."""
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    rows, width, random = 64, 512, np.random.default_rng(0)
    for name in ("onnxruntime_f32", "onnxruntime_qdq"):
        nodes, known, x = [], [], "x"

        def constant(tag, values):
            known.append(numpy_helper.from_array(values, tag))  # noqa: B023
            return tag

        for i in range(6):
            if name.endswith("f32"):
                weight = constant(f"w{i}", random.standard_normal((width, width), np.float32) / 20)
            else:
                codes = random.integers(-127, 127, (width, width)).astype(np.int8)
                scale = constant(f"s{i}", np.float32(0.001))
                weight, taken = f"d{i}", [constant(f"w{i}", codes), scale]
                step = [constant(f"a{i}", np.float32(0.03)), constant(f"b{i}", np.uint8(128))]
                nodes += [helper.make_node("DequantizeLinear", taken, [weight]),
                          helper.make_node("QuantizeLinear", [x, *step], [f"q{i}"]),
                          helper.make_node("DequantizeLinear", [f"q{i}", *step], [f"e{i}"])]
                x = f"e{i}"
            nodes += [helper.make_node("MatMul", [x, weight], [f"y{i}"]),
                      helper.make_node("Relu", [f"y{i}"], [f"x{i}"])]
            x = f"x{i}"
        shape, kind = [rows, width], TensorProto.FLOAT
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", kind, shape)],
                                  [helper.make_tensor_value_info(x, kind, shape)], known)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        with tempfile.TemporaryDirectory() as folder:
            options = onnxruntime.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = f"{folder}/profile"
            session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                   providers=["CPUExecutionProvider"])
            for _ in range(2):
                session.run(None, {"x": random.standard_normal(shape, np.float32)})
            shutil.move(session.end_profiling(), f"{folder}/done.json")
            text = without_private(Path(f"{folder}/done.json").read_text())
        (out / f"{name}.json.gz").write_bytes(compressed(text))


def main() -> None:
    device, out, *names = sys.argv[1:]
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    records = {name: lambda name=name, variants=variants, make=make: record_torch(
        name, SETTINGS[device], variants, make, out)
        for name, (wanted, variants, make) in PROGRAMS.items() if wanted == device}
    records |= {"jax": lambda: record_jax(out)} if device == "cuda" else {
        "onnxruntime": lambda: record_onnxruntime(out)}
    for name, record in records.items():
        if names and name not in names:
            continue
        try:
            record()
            print(f"{name}: ok", flush=True)
        except Exception as error:  # of any package, and the others go on
            print(f"{name}: {type(error).__name__}: {error}"[:300], flush=True)


if __name__ == "__main__":
    main()
