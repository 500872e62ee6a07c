"""The networks, built from diffusers' and transformers' own classes, and how they run in training.

The forward passes below are those of the classes, on the same parameters, arranged for speed: text
and image rows are projected apart, q, k and v in one product, and padding is masked by one more
channel of q and k, for which every attention kernel is quick. test_networks.py holds them against
the classes.
"""

import re
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKLFlux2, Ideogram4Transformer2DModel
from diffusers.models.transformers.transformer_ideogram4 import Ideogram4MRoPE
from transformers import Qwen3VLTextConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextModel

import feed
import tokenizer

TAPS = (0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 35)
TEXT_HIDDEN = 96
LATENT_CHANNELS = 32
TOKEN_CHANNELS = 4 * LATENT_CHANNELS
GRID = 16  # tokens along the side of a picture
IMAGE_POSITION = 65536


def _published_statistics():
    """Octet's tables of Ideogram 4's latents, from its source."""
    source = Path(__file__).parents[2] / "src/models/ideogram4/latent_statistics.cpp"
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", source.read_text())]
    assert len(numbers) == 2 * TOKEN_CHANNELS
    return {"shift": numbers[:TOKEN_CHANNELS], "scale": numbers[TOKEN_CHANNELS:]}


STATISTICS = _published_statistics()


def make_vae():
    return AutoencoderKLFlux2(
        block_out_channels=(32, 64, 128, 128),
        layers_per_block=1,
        latent_channels=LATENT_CHANNELS,
        norm_num_groups=4,
        sample_size=256,
    )


def make_transformer(
    layers, head_dim=64, text_features=len(TAPS) * TEXT_HIDDEN, hidden=512, ffn=1024
):
    third = head_dim // 2 * 5 // 16
    model = Ideogram4Transformer2DModel(
        in_channels=TOKEN_CHANNELS,
        num_layers=layers,
        attention_head_dim=head_dim,
        num_attention_heads=hidden // head_dim,
        intermediate_size=ffn,
        adaln_dim=64,
        llm_features_dim=text_features,
        rope_theta=2000,
        mrope_section=(head_dim // 2 - 2 * third, third, third),
    )
    with torch.no_grad():
        for block in model.layers:  # open gates, scales of one
            block.adaln_modulation.weight.normal_(std=0.02)
            bias = block.adaln_modulation.bias.zero_().view(4, -1)
            bias[1] = bias[3] = 0.4
        model.final_layer.linear.weight.zero_()
        model.final_layer.linear.bias.zero_()
        model.final_layer.adaln_modulation.weight.normal_(std=0.02)
        model.final_layer.adaln_modulation.bias.zero_()
    return model


def text_config(vocabulary):
    return Qwen3VLTextConfig(
        vocab_size=-(-vocabulary // 64) * 64,
        hidden_size=TEXT_HIDDEN,
        intermediate_size=192,
        num_hidden_layers=36,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=4096,
        rms_norm_eps=1e-6,
        attention_bias=False,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [6, 5, 5],
            "mrope_interleaved": True,
        },
    )


def make_text_tower():
    config = text_config(tokenizer.Encoder(tokenizer.build()).size)
    config._attn_implementation = "sdpa"
    model = Qwen3VLTextModel(config)
    with torch.no_grad():
        model.embed_tokens.weight.normal_(std=1.0)
        for layer in model.layers:  # 36 layers add to one stream
            layer.self_attn.o_proj.weight.mul_(0.3)
            layer.mlp.down_proj.weight.mul_(0.3)
    return model


# --- rotary tables -------------------------------------------------------------------------------


@lru_cache
def _text_rotation(head_dim, theta, length, device):
    exponents = torch.arange(0, head_dim, 2, device=device).float() / head_dim
    angles = torch.arange(length, device=device).float()[:, None] * theta**-exponents
    angles = torch.cat([angles, angles], -1)
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def text_rotation(tower, length, device):
    config = tower.config
    return _text_rotation(
        config.head_dim, config.rope_parameters["rope_theta"], length, str(device)
    )


def positions(text, device):
    """Of `text` tokens and the picture's: [1, L, 3]."""
    along = torch.arange(text, device=device)[:, None].expand(text, 3)
    side = torch.arange(GRID, device=device)
    y, x = torch.meshgrid(side, side, indexing="ij")
    image = IMAGE_POSITION + torch.stack([torch.zeros_like(y), y, x], -1).view(-1, 3)
    return torch.cat([along, image])[None]


@lru_cache
def _rotation(head_dim, theta, section, text, dtype, device):
    table = Ideogram4MRoPE(head_dim, theta, section).to(device)
    cos, sin = table(positions(text, device))
    return cos[0].to(dtype), sin[0].to(dtype)


def rotation(model, text, device):
    """From frequencies in float32: those of a model in bf16 are rounded, which at position 65536
    means another angle altogether."""
    config = model.config
    section = tuple(config.mrope_section)
    return _rotation(
        config.attention_head_dim, config.rope_theta, section, text, model.dtype, str(device)
    )


def rotate(x, cos, sin):
    """x: [B, H, L, head]; cos, sin: [L, head]."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


# --- the forward passes --------------------------------------------------------------------------


# Layers are given as their tensors, not as modules: torch.compile then makes one program for all of
# them, where modules would be compiled one by one.


def text_tensors(layer):
    attention, mlp = layer.self_attn, layer.mlp
    return (
        layer.input_layernorm.weight,
        torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]),
        attention.q_norm.weight,
        attention.k_norm.weight,
        attention.o_proj.weight,
        layer.post_attention_layernorm.weight,
        torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
        mlp.down_proj.weight,
    )


def text_layer(tensors, h, cos, sin):
    norm1, qkv, norm_q, norm_k, out, norm2, gate_up, down = tensors
    batch, length, width = h.shape
    head = norm_q.shape[0]
    heads = out.shape[1] // head
    kv_heads = (qkv.shape[0] // head - heads) // 2
    x = F.linear(F.rms_norm(h, (width,), norm1, 1e-6), qkv).view(batch, length, -1, head)
    q, k, v = x.split([heads, kv_heads, kv_heads], 2)
    q = rotate(F.rms_norm(q, (head,), norm_q, 1e-6).transpose(1, 2), cos, sin)
    k = rotate(F.rms_norm(k, (head,), norm_k, 1e-6).transpose(1, 2), cos, sin)
    groups = heads // kv_heads
    k = k.repeat_interleave(groups, 1)
    v = v.transpose(1, 2).repeat_interleave(groups, 1)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    h = h + F.linear(mixed.transpose(1, 2).flatten(2), out)
    gate, up = F.linear(F.rms_norm(h, (width,), norm2, 1e-6), gate_up).chunk(2, -1)
    return h + F.linear(F.silu(gate) * up, down)


def text_features(tower, ids, layer_function=text_layer):
    """Channel-major, tap-minor, as the transformer takes them: [B, T, 13 * hidden]."""
    # A product with rows of ones and zeros: its gradient is one, too, and needs no sorting.
    words = tower.embed_tokens.weight
    h = (ids[..., None] == torch.arange(words.shape[0], device=ids.device)).to(words.dtype) @ words
    cos, sin = text_rotation(tower, ids.shape[1], ids.device)
    taps = []
    for i, layer in enumerate(tower.layers):
        h = layer_function(text_tensors(layer), h, cos, sin)
        if i in TAPS:
            taps.append(h)
    return torch.stack(taps, -1).flatten(2)


def block_tensors(layer):
    attention, ffn = layer.attention, layer.feed_forward
    return (
        layer.adaln_modulation.weight,
        layer.adaln_modulation.bias,
        layer.attention_norm1.weight,
        torch.cat([attention.to_q.weight, attention.to_k.weight, attention.to_v.weight]),
        attention.norm_q.weight,
        attention.norm_k.weight,
        attention.to_out[0].weight,
        layer.attention_norm2.weight,
        layer.ffn_norm1.weight,
        torch.cat([ffn.w1.weight, ffn.w3.weight]),
        ffn.w2.weight,
        layer.ffn_norm2.weight,
    )


def block(tensors, h, condition, cos, sin, hidden_keys):
    """hidden_keys: [B, L], true for padding; or None."""
    (mod_weight, mod_bias, norm1, qkv, norm_q, norm_k, out, norm2, norm3, gate_up, down, norm4) = (
        tensors
    )
    batch, length, width = h.shape
    head = norm_q.shape[0]
    heads = width // head
    scale1, gate1, scale2, gate2 = F.linear(condition, mod_weight, mod_bias).chunk(4, -1)
    x = F.rms_norm(h, (width,), norm1, 1e-5) * (1 + scale1)
    q, k, v = F.linear(x, qkv).view(batch, length, 3, heads, head).unbind(2)
    q = rotate(F.rms_norm(q, (head,), norm_q, 1e-5).transpose(1, 2), cos, sin)
    k = rotate(F.rms_norm(k, (head,), norm_k, 1e-5).transpose(1, 2), cos, sin)
    v = v.transpose(1, 2)
    if hidden_keys is None:
        mixed = F.scaled_dot_product_attention(q, k, v)
    elif head > 120:
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden_keys[:, None, None, :])
    else:  # one more channel, of eight: 1 for every query, very low for the keys to hide
        low = torch.where(hidden_keys, -20000.0, 0.0).to(k.dtype)[:, None, :, None]
        low = F.pad(low.expand(-1, heads, -1, -1), (0, 7))
        one = F.pad(q.new_ones(1, 1, 1, 1).expand(batch, heads, length, 1), (0, 7))
        mixed = F.scaled_dot_product_attention(
            torch.cat([q, one], -1), torch.cat([k, low], -1), F.pad(v, (0, 8)), scale=head**-0.5
        )
        mixed = mixed[..., :head]
    mixed = F.linear(mixed.transpose(1, 2).reshape(batch, length, width), out)
    h = h + torch.tanh(gate1) * F.rms_norm(mixed, (width,), norm2, 1e-5)
    x = F.rms_norm(h, (width,), norm3, 1e-5) * (1 + scale2)
    gate, up = F.linear(x, gate_up).chunk(2, -1)
    x = F.linear(F.silu(gate) * up, down)
    return h + torch.tanh(gate2) * F.rms_norm(x, (width,), norm4, 1e-5)


def conditioning(model, t):
    return F.silu(model.adaln_proj(model.t_embedding(t.to(model.dtype))))[:, None]


def embed(model, z, features):
    """z: [B, N, 128]; features: [B, T, ...] or None."""
    roles = model.embed_image_indicator.weight
    image = model.input_proj(z.to(model.dtype)) + roles[1]
    if features is None:
        return image
    norm = model.llm_cond_norm
    text = F.rms_norm(features, norm.weight.shape, norm.weight, 1e-6)
    return torch.cat([model.llm_cond_proj(text) + roles[0], image], 1)


def finish(model, h, condition, images):
    return model.final_layer(h[:, -images:], condition)


def velocity(model, z, t, features=None, lengths=None, block_function=block, look=None):
    """z: [B, N, 128] in float32; t: [B], 0 for noise to 1; lengths: of the captions. `look` is
    given the picture's rows halfway through."""
    condition = conditioning(model, t)
    h = embed(model, z, features)
    text = 0 if features is None else features.shape[1]
    cos, sin = rotation(model, text, z.device)
    hidden_keys = None
    if text:
        along = torch.arange(h.shape[1], device=z.device)
        hidden_keys = (along >= lengths[:, None]) & (along < text)
    for i, layer in enumerate(model.layers):
        h = block_function(block_tensors(layer), h, condition, cos, sin, hidden_keys)
        if look is not None and i + 1 == len(model.layers) // 2:
            look(h[:, -z.shape[1] :])
    return finish(model, h, condition, z.shape[1]).float()


# --- latents -------------------------------------------------------------------------------------


@lru_cache
def _statistics(device):
    return [torch.tensor(STATISTICS[key], device=device) for key in ("shift", "scale")]


def to_tokens(latents):
    """[B, 32, 32, 32] as the VAE has them -> normalised [B, 256, 128], channels (ph, pw, c)."""
    batch, channels, height, width = latents.shape
    x = latents.view(batch, channels, height // 2, 2, width // 2, 2).permute(0, 2, 4, 3, 5, 1)
    x = x.reshape(batch, height * width // 4, 4 * channels).float()
    shift, scale = _statistics(str(x.device))
    return (x - shift) / scale


def to_latents(tokens):
    batch, count, channels = tokens.shape
    shift, scale = _statistics(str(tokens.device))
    side = int(count**0.5)
    x = (tokens * scale + shift).view(batch, side, side, 2, 2, channels // 4)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(batch, channels // 4, 2 * side, 2 * side)


@torch.no_grad()
def sample(
    transformer, unconditional, features, lengths, noise, steps=20, guidance=3.0, mu=0.5, std=1.2
):
    """Euler steps on Octet's schedule for 256 x 256."""
    mean = mu + 0.5 * torch.log(torch.tensor((feed.CELL * GRID / 512.0) ** 2)).item()
    u = torch.linspace(1, 0, steps + 1, dtype=torch.float64)
    times = 1 / (1 + torch.exp(mean + std * torch.special.ndtri(u)))
    times = times.clamp(1 / (1 + torch.e**9), 1 / (1 + torch.e**-7.5)).float().tolist()
    z = noise.clone()
    for t, following in zip(times[:-1], times[1:]):
        now = torch.full((z.shape[0],), t, device=z.device)
        v = velocity(transformer, z, now, features, lengths)
        if unconditional is not None and guidance != 1:
            v = guidance * v + (1 - guidance) * velocity(unconditional, z, now)
        z = z + (following - t) * v
    return z


def with_text_features(tensors, features):
    """For text features of this width: that of the pipeline, which also hands them, all zero, to
    the unconditional network, trained with fewer of them. What is added multiplies zeros."""
    norm, projection = tensors["llm_cond_norm.weight"], tensors["llm_cond_proj.weight"]
    more = features - norm.shape[0]
    return tensors | {
        "llm_cond_norm.weight": torch.cat([norm, norm.new_ones(more)]),
        "llm_cond_proj.weight": torch.nn.functional.pad(projection, (0, more)),
    }


def transformer_from(tensors, head_dim=64):
    """The network that fits these weights."""
    layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("layers."))
    hidden, ffn = tensors["layers.0.feed_forward.w2.weight"].shape
    features = tensors["llm_cond_norm.weight"].shape[0]
    model = make_transformer(layers, head_dim, features, hidden, ffn)
    model.load_state_dict(tensors)
    return model
