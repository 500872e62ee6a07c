"""Stage 1: the VAE.

  python train_vae.py --fonts FOLDER --out FOLDER --seconds N

Writes vae.safetensors (diffusers' names, bf16, both halves), with its latents scaled to the
statistics that Ideogram 4 has built in, a sheet of pictures beside their reconstructions, and the
curve of the loss.
"""

import argparse
import json
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

import networks
from feed import CHUNK, DEVICE, Feed


@torch.no_grad()
def fit_statistics(vae, mean, deviation):
    """Folds an affine map into the two 1x1 convolutions: latents get the published statistics."""
    channels = networks.LATENT_CHANNELS
    shift, scale = (
        torch.tensor(networks.STATISTICS[key], device=mean.device).view(4, channels).mean(0)
        for key in ("shift", "scale")
    )
    factor = scale / deviation
    encode, decode = vae.quant_conv, vae.post_quant_conv
    decode.bias += decode.weight[:, :, 0, 0] @ (mean - shift / factor)
    decode.weight /= factor[None, :, None, None]
    encode.weight[:channels] *= factor[:, None, None, None]
    encode.bias[:channels] = encode.bias[:channels] * factor + shift - mean * factor
    encode.bias[channels:] += 2 * factor.log()
    table = {
        key: torch.tensor(values, device=mean.device) for key, values in networks.STATISTICS.items()
    }
    vae.bn.running_mean.copy_(table["shift"])
    vae.bn.running_var.copy_(table["scale"] ** 2 - vae.bn.eps)


def as_input(pictures):
    return (pictures.permute(0, 3, 1, 2).float() / 127.5 - 1).contiguous(
        memory_format=torch.channels_last
    )


@torch.no_grad()
def evaluate(vae, feed, arguments):
    """PSNR, the latents' mean and deviation, and a sheet of pictures beside what became of them."""
    latents, error = [], []
    for _ in range(arguments.evaluated):
        x = as_input(feed.take(wait=True)[0][: arguments.batch])
        with torch.autocast(DEVICE, torch.bfloat16):
            mean, logvar = vae.quant_conv(vae.encoder(x)).float().chunk(2, 1)
            y = vae.decoder(vae.post_quant_conv(mean)).float().clamp(-1, 1)
        latents.append(mean + torch.randn_like(mean) * (0.5 * logvar.clamp(-14, 6)).exp())
        error.append(F.mse_loss(y, x))
    latents = torch.cat(latents)
    share = (logvar.exp().mean((0, 2, 3)) / latents.var((0, 2, 3))).sort().values
    print("share of noise in the latent's channels", [round(v, 3) for v in share.tolist()])
    pairs = torch.cat([x[:16], y[:16]], 3).permute(0, 2, 3, 1)
    sheet = torch.cat([torch.cat(list(pairs[i : i + 4]), 1) for i in range(0, len(pairs), 4)])
    Image.fromarray(((sheet + 1) * 127.5).round().byte().cpu().numpy()).save(
        arguments.out / "vae.png"
    )
    psnr = -10 * torch.log10(torch.stack(error).mean() / 4).item()
    return psnr, latents.mean((0, 2, 3)), latents.std((0, 2, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fonts", default="/usr/share/fonts/truetype/dejavu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=6e-4)
    parser.add_argument("--kl", type=float, default=1e-3)
    parser.add_argument("--evaluated", type=int, default=16, help="batches")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    feed = Feed(arguments.fonts, arguments.workers, first_seed=1 << 33)
    torch.manual_seed(arguments.seed)
    vae = networks.make_vae().to(DEVICE, memory_format=torch.channels_last)
    trained = list(vae.parameters())
    optimizer = torch.optim.AdamW(
        trained, arguments.lr, betas=(0.9, 0.99), weight_decay=1e-4, fused=DEVICE == "cuda"
    )
    averages = [parameter.detach().clone() for parameter in trained]

    def forward(x, noise):
        moments = vae.quant_conv(vae.encoder(x))
        mean, logvar = moments.chunk(2, 1)
        logvar = logvar.clamp(-14, 6)
        latents = mean + noise * (0.5 * logvar).exp()
        return vae.decoder(vae.post_quant_conv(latents)), mean, logvar

    run = torch.compile(forward) if DEVICE == "cuda" else forward
    curve, step, began, at = [], 0, None, CHUNK
    while began is None or time.time() - began < arguments.seconds:
        if at + arguments.batch > CHUNK:
            pictures, _, weights, *_ = feed.take(wait=True)
            at = 0
        x = as_input(pictures[at : at + arguments.batch])
        weight = weights[at : at + len(x)].view(-1, 1, 16, 16).float()
        weight = weight.repeat_interleave(16, 2).repeat_interleave(16, 3)
        at += len(x)
        noise = torch.randn(len(x), networks.LATENT_CHANNELS, 32, 32, device=DEVICE)
        done = 0 if began is None else (time.time() - began) / arguments.seconds
        for group in optimizer.param_groups:
            group["lr"] = (
                arguments.lr * min(1, (step + 1) / 100) * min(1, max(0.01, 2.5 * (1 - done)))
            )
        with torch.autocast(DEVICE, torch.bfloat16):
            y, mean, logvar = run(x, noise)
        error = y.float() - x
        kl = 0.5 * (mean.float() ** 2 + logvar.float().exp() - 1 - logvar.float()).mean()
        loss = (weight * (error.abs() + error**2)).mean() / weight.mean() + arguments.kl * kl
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(averages, trained, 1 - min(0.999, (1 + step) / (10 + step)))
        step += 1
        if began is None:
            began = time.time()  # compiling is not training
        if step % 100 == 0:
            psnr = -10 * torch.log10(F.mse_loss(y.float().clamp(-1, 1), x) / 4).item()
            curve.append([step, time.time() - began, loss.item(), psnr, kl.item()])
            if step % 1000 == 0:
                print(
                    f"vae {step:6d}  {curve[-1][1]:6.1f} s  loss {loss.item():.4f}  {psnr:.2f} dB  "
                    f"KL {kl.item():.3f}",
                    flush=True,
                )
    with torch.no_grad():
        torch._foreach_copy_(trained, averages)
    psnr, mean, deviation = evaluate(vae, feed, arguments)
    print(f"{psnr:.2f} dB of the average weights")
    fit_statistics(vae, mean, deviation)
    tensors = {
        name: value.detach().bfloat16()
        if value.is_floating_point() and "bn." not in name
        else value
        for name, value in vae.state_dict().items()
    }
    save_file(
        {name: value.contiguous().cpu() for name, value in tensors.items()},
        arguments.out / "vae.safetensors",
    )
    (arguments.out / "vae_curve.json").write_text(
        json.dumps(
            {
                "columns": ["step", "seconds", "loss", "psnr", "kl"],
                "rows": curve,
                "psnr": psnr,
                "torch": torch.__version__,
                "arguments": {key: str(value) for key, value in vars(arguments).items()},
            }
        )
    )
    feed.stop()


if __name__ == "__main__":
    main()
