"""From a model in bf16 to what is shipped: INT8 networks, an INT8 text encoder, words.json.

  python package.py BF16_FOLDER --octet PROGRAM --recipe convrot --out models/demo

The text encoder computes in bf16 whatever its file holds; rows of INT8 make the file half as large.
--bf16 FOLDER makes models/demo-bf16, for programs that know no INT8.
"""

import argparse
import json
import shutil
import subprocess
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from write_words import write_words

WEIGHTS = {
    "text_encoder": "model.safetensors",
    "vae": "diffusion_pytorch_model.safetensors",
}
# What ComfyUI calls a weight of I8 with scales: of the tensor or, as here, of its rows.
MARKER = json.dumps({"format": "int8_tensorwise"}).encode()
# transformers would take codes for weights; it refuses a quantization without a `quant_method`.
NO_WEIGHTS = {"octet": "rows of INT8; models/demo-bf16 has weights for transformers"}


def in_int8(tensors):
    """Matrices as rows of INT8, except the embedding."""
    stored = {}
    for name, value in tensors.items():
        if value.ndim != 2 or "embed" in name:
            stored[name] = value
            continue
        module = name.removesuffix(".weight")
        scale = (value.float().abs().amax(1, keepdim=True) / 127).clamp(min=1e-12)
        stored[name] = (value.float() / scale).round().to(torch.int8)
        stored[module + ".weight_scale"] = scale
        stored[module + ".comfy_quant"] = torch.tensor(list(MARKER), dtype=torch.uint8)
    return stored


def in_bf16(stored):
    """The other way: what is computed with."""
    tensors = {}
    for name, value in stored.items():
        if name.endswith((".weight_scale", ".comfy_quant")):
            continue
        scale = stored.get(name.removesuffix(".weight") + ".weight_scale")
        tensors[name] = value if scale is None else (value.float() * scale).to(torch.bfloat16)
    return tensors


def write_twin(source, out, twin):
    """models/demo-bf16: the networks as they were, the rest as it is shipped."""
    for folder in ("transformer", "unconditional_transformer"):
        shutil.copytree(source / folder, twin / folder, dirs_exist_ok=True)
    for folder in ("scheduler", "tokenizer", "vae", "text_encoder"):
        shutil.copytree(out / folder, twin / folder, dirs_exist_ok=True)
    for name in ("model_index.json", "octet_presets.json", "octet_trained_for.json"):
        shutil.copy(out / name, twin / name)
    text = Path("text_encoder") / WEIGHTS["text_encoder"]
    save_file(in_bf16(load_file(out / text)), twin / text, {"format": "pt"})
    shutil.copy(source / text.with_name("config.json"), twin / text.with_name("config.json"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("--octet", type=Path, required=True)
    parser.add_argument("--recipe", default="convrot")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--bf16", type=Path, help="also make the twin without INT8, here")
    arguments = parser.parse_args()
    source, out = arguments.source, arguments.out
    out.mkdir(parents=True, exist_ok=True)
    for transformer in ("transformer", "unconditional_transformer"):
        shutil.rmtree(out / transformer, ignore_errors=True)
    made = out / "quantized"
    command = [arguments.octet, "quantize", source, made, "--recipe", arguments.recipe, "--verify"]
    subprocess.run(command, check=True)
    for folder in made.iterdir():
        folder.rename(out / folder.name)
    made.rmdir()
    for name in ("model_index.json", "octet_presets.json"):
        shutil.copy(source / name, out / name)
    for folder in ("scheduler", "tokenizer", "vae", "text_encoder"):
        shutil.copytree(source / folder, out / folder, dirs_exist_ok=True)
    tensors = load_file(source / "text_encoder" / WEIGHTS["text_encoder"])
    save_file(in_int8(tensors), out / "text_encoder" / WEIGHTS["text_encoder"], {"format": "pt"})
    config = out / "text_encoder" / "config.json"
    config.write_text(
        json.dumps(json.loads(config.read_text()) | {"quantization_config": NO_WEIGHTS}, indent=2)
        + "\n"
    )
    tensors = load_file(source / "vae" / WEIGHTS["vae"])
    decoder = {
        name: value
        for name, value in tensors.items()
        if not name.startswith(("encoder.", "quant_conv."))
    }
    save_file(decoder, out / "vae" / WEIGHTS["vae"], {"format": "pt"})
    write_words(out)
    if arguments.bf16:
        write_twin(source, out, arguments.bf16)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
