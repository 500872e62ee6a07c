"""Puts the trained parts into one folder, laid out as a Hugging Face repository, in bf16.

python export.py --vae FILE --conditional FOLDER --unconditional FOLDER --out FOLDER
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import networks
import tokenizer

INDEX = {
    "_class_name": "Ideogram4Pipeline",
    "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
    "text_encoder": ["transformers", "Qwen3VLModel"],
    "tokenizer": ["transformers", "Qwen2Tokenizer"],
    "transformer": ["diffusers", "Ideogram4Transformer2DModel"],
    "unconditional_transformer": ["diffusers", "Ideogram4Transformer2DModel"],
    "vae": ["diffusers", "AutoencoderKLFlux2"],
}
SCHEDULER = {
    "_class_name": "FlowMatchEulerDiscreteScheduler",
    "num_train_timesteps": 1000,
    "shift": 1.0,
    "use_dynamic_shifting": False,
}
# The vision tower is as small as its class allows, and not in the files: nobody looks at images.
VISION = {
    "model_type": "qwen3_vl_vision",
    "depth": 1,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_heads": 2,
    "out_hidden_size": networks.TEXT_HIDDEN,
    "num_position_embeddings": 4,
    "deepstack_visual_indexes": [0],
}
PRESETS = {
    "presets": [
        {
            "name": "default",
            "steps": 20,
            "guidance": 2.0,
            "polish_guidance": 1.5,
            "polish_steps": 2,
            "mu": 0.5,
            "std": 1.2,
        },
        {
            "name": "quality",
            "steps": 40,
            "guidance": 2.0,
            "polish_guidance": 1.5,
            "polish_steps": 3,
            "mu": 0.5,
            "std": 1.2,
        },
        {
            "name": "turbo",
            "steps": 12,
            "guidance": 2.0,
            "polish_guidance": 1.5,
            "polish_steps": 1,
            "mu": 0.5,
            "std": 1.2,
        },
    ],
    "size": [256, 256],
}


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--conditional", type=Path, required=True)
    parser.add_argument(
        "--unconditional", type=Path, help="without it the model paints only without guidance"
    )
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    out = arguments.out
    write_json(out / "model_index.json", INDEX)
    write_json(out / "scheduler" / "scheduler_config.json", SCHEDULER)
    write_json(out / "octet_presets.json", PRESETS)
    parts = {"transformer": arguments.conditional}
    if arguments.unconditional:
        parts["unconditional_transformer"] = arguments.unconditional
    for part, folder in parts.items():
        tensors = networks.with_text_features(
            load_file(folder / "transformer_average.safetensors"),
            len(networks.TAPS) * networks.TEXT_HIDDEN,
        )
        model = networks.transformer_from(tensors, arguments.head_dim)
        model.to(torch.bfloat16).save_pretrained(out / part)
    vae = networks.make_vae()
    tensors = load_file(arguments.vae)
    vae.load_state_dict(tensors)
    vae.save_config(out / "vae")
    save_file(tensors, out / "vae" / "diffusion_pytorch_model.safetensors", {"format": "pt"})
    text = {
        "language_model." + name: value
        for name, value in load_file(
            arguments.conditional / "text_encoder_average.safetensors"
        ).items()
    }
    built = tokenizer.build()
    config = networks.text_config(tokenizer.Encoder(built).size).to_diff_dict()
    config |= {"model_type": "qwen3_vl_text", "rms_norm_eps": 1e-6, "hidden_act": "silu"}
    write_json(
        out / "text_encoder" / "config.json",
        {
            "architectures": ["Qwen3VLModel"],
            "model_type": "qwen3_vl",
            "dtype": "bfloat16",
            "text_config": config,
            "vision_config": VISION,
        },
    )
    save_file(text, out / "text_encoder" / "model.safetensors", {"format": "pt"})
    write_json(out / "tokenizer" / "tokenizer.json", built)
    write_json(out / "tokenizer" / "tokenizer_config.json", tokenizer.CONFIG)


if __name__ == "__main__":
    main()
