"""Stages 2 and 3: the text tower with the conditional transformer, then the unconditional one.

  python train_transformer.py conditional --vae FILE --out FOLDER --seconds N [--resume FOLDER]
  python train_transformer.py unconditional --vae FILE --out FOLDER --seconds N

Flow matching: the network sees (1 - t) noise + t latent and learns latent - noise, at times drawn
from a logit-normal distribution. Latents are kept on the GPU and replaced as new pictures arrive.
A stage ends with files that travel: weights (bf16), their running average (bf16), the optimizer's
moments (bf16, if asked for), the curve of the loss and a sheet of pictures from held-out captions.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import networks
import scenes
import tokenizer
from feed import BUCKETS, CHUNK, DEVICE, Feed, make_sample
from optimizer import Optimizer


class Pool:
    """Encoded pictures with their captions: one bucket's, the oldest replaced first."""

    def __init__(self, text, size):
        self.text, self.size, self.filled, self.at = text, size, 0, 0
        self.latents = torch.empty(
            size, networks.LATENT_CHANNELS, 32, 32, dtype=torch.bfloat16, device=DEVICE
        )
        self.ids = torch.zeros(size, text, dtype=torch.int16, device=DEVICE)
        self.lengths = torch.zeros(size, dtype=torch.int16, device=DEVICE)
        self.weights = torch.zeros(size, networks.GRID**2, dtype=torch.uint8, device=DEVICE)

    def add(self, latents, ids, lengths, weights):
        places = (self.at + torch.arange(len(ids), device=DEVICE)) % self.size
        self.latents[places], self.ids[places] = latents, ids[:, : self.text]
        self.lengths[places], self.weights[places] = lengths, weights
        self.at = (self.at + len(ids)) % self.size
        self.filled = min(self.size, self.filled + len(ids))

    def batch(self, count):
        chosen = torch.randint(self.filled, (count,), device=DEVICE)
        return (
            networks.to_tokens(self.latents[chosen]),
            self.ids[chosen].int(),
            self.lengths[chosen].long(),
            self.weights[chosen].float(),
        )


class Data:
    def __init__(self, feed, vae, size):
        self.feed, self.pictures = feed, 0
        self.pools = [Pool(text, round(size * share)) for text, share in zip(BUCKETS, (0.72, 0.28))]
        vae.requires_grad_(False)

        def encode(pictures, noise):
            x = (pictures.permute(0, 3, 1, 2).float() / 127.5 - 1).contiguous(
                memory_format=torch.channels_last
            )
            mean, logvar = vae.quant_conv(vae.encoder(x.bfloat16())).float().chunk(2, 1)
            return (mean + noise * (0.5 * logvar).exp()).bfloat16()

        self.encode = torch.compile(encode) if DEVICE == "cuda" else encode

    @torch.no_grad()
    def refill(self, chunks, wait=False):
        for _ in range(chunks):
            chunk = self.feed.take(wait)
            if chunk is None:
                return
            pictures, ids, weights, lengths = chunk
            noise = torch.randn(CHUNK, networks.LATENT_CHANNELS, 32, 32, device=DEVICE)
            latents = self.encode(pictures, noise)
            short = lengths <= BUCKETS[0]
            for pool, chosen in zip(self.pools, (short, ~short)):
                chosen = torch.from_numpy(chosen.nonzero()[0])
                known = torch.from_numpy(lengths)[chosen].to(DEVICE)
                chosen = chosen.to(DEVICE)
                pool.add(latents[chosen], ids[chosen], known, weights[chosen])
            self.pictures += CHUNK


def times(count):
    """Mostly in the earlier half, where the caption decides what is painted."""
    t = torch.sigmoid(torch.randn(count, device=DEVICE) - 0.3)
    return torch.where(torch.rand(count, device=DEVICE) < 0.1, torch.rand(count, device=DEVICE), t)


def held_out(count, fonts, seed=1 << 50):
    maker, encoder = scenes.SceneMaker(fonts, held_out=True), tokenizer.Encoder(tokenizer.build())
    return [make_sample(maker, encoder, seed + i) for i in range(count)]


@torch.no_grad()
def paint_sheet(
    vae, transformer, tower, unconditional, fonts, path, count=32, guidance=3.0, steps=20
):
    samples = held_out(count, fonts)
    longest = max(len(ids) for _, ids, _, _ in samples)
    ids = torch.zeros(count, longest, dtype=torch.int, device=DEVICE)
    for row, (_, numbers, _, _) in zip(ids, samples):
        row[: len(numbers)] = torch.tensor(numbers)
    lengths = torch.tensor([len(numbers) for _, numbers, _, _ in samples], device=DEVICE)
    noise = torch.randn(
        count, networks.GRID**2, networks.TOKEN_CHANNELS, generator=torch.Generator().manual_seed(0)
    ).to(DEVICE)
    features = networks.text_features(tower, ids)
    z = networks.sample(transformer, unconditional, features, lengths, noise, steps, guidance)
    pictures = vae.decoder(vae.post_quant_conv(networks.to_latents(z).to(vae.dtype))).float()
    pictures = ((pictures.clamp(-1, 1) + 1) * 127.5).round().byte().permute(0, 2, 3, 1).cpu()
    across = 8
    sheet = torch.cat(
        [torch.cat(list(pictures[i : i + across]), 1) for i in range(0, count, across)]
    )
    Image.fromarray(sheet.numpy()).save(path)
    path.with_suffix(".json").write_text(json.dumps([caption for *_, caption in samples]))


def save(folder, models, optimizer, suffix, values):
    optimizer.use(values)
    for key, model in models.items():
        tensors = {name: value.contiguous().cpu() for name, value in model.state_dict().items()}
        save_file(tensors, folder / f"{key}{suffix}.safetensors.part")
        (folder / f"{key}{suffix}.safetensors.part").rename(folder / f"{key}{suffix}.safetensors")
    optimizer.use(optimizer.masters)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=["conditional", "unconditional"])
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", type=Path, help="a folder that an earlier piece wrote")
    parser.add_argument(
        "--conditional", type=Path, help="its files, for the sheet of an unconditional stage"
    )
    parser.add_argument("--fonts", default="/usr/share/fonts/truetype/dejavu")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cooldown", type=float, default=0.3, help="share of the time, at the end")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--lr", type=float, default=1.2e-3)
    parser.add_argument("--pool", type=int, default=400_000)
    parser.add_argument("--first", type=int, default=30_000, help="pictures before the first step")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--short-words", type=float, default=0.0, help="share, in the first fifth")
    parser.add_argument("--moments", action="store_true", help="save the optimizer's, too")
    parser.add_argument("--sheets", type=float, default=240, help="seconds between sheets")
    parser.add_argument("--profile", action="store_true", help="of a few steps: profile.txt")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.time()
    earlier = (
        json.loads((arguments.resume / "curve.json").read_text()) if arguments.resume else None
    )
    first_seed = (earlier["next_seed"] if earlier else 0) + (arguments.stage == "unconditional") * (
        1 << 34
    )
    feed = Feed(arguments.fonts, arguments.workers, first_seed)
    feed.short_words.value = arguments.short_words
    torch.manual_seed(arguments.seed + (len(earlier["rows"]) if earlier else 0))

    vae = networks.make_vae()
    vae.load_state_dict(load_file(arguments.vae))
    vae = vae.to(DEVICE, torch.bfloat16, memory_format=torch.channels_last).eval()
    conditional = arguments.stage == "conditional"
    if conditional:
        models = {
            "transformer": networks.make_transformer(arguments.layers, arguments.head_dim),
            "text_encoder": networks.make_text_tower(),
        }
    else:
        models = {
            "transformer": networks.make_transformer(
                arguments.layers, arguments.head_dim, text_features=16
            )
        }
        models["transformer"].llm_cond_norm.requires_grad_(False)
        models["transformer"].llm_cond_proj.requires_grad_(False)
    if arguments.resume:
        for key, model in models.items():
            model.load_state_dict(load_file(arguments.resume / f"{key}.safetensors"), strict=False)
    models = {key: model.to(DEVICE, torch.bfloat16) for key, model in models.items()}
    if conditional:
        last = models["text_encoder"].norm
        last.requires_grad_(False)  # taps come before it
    optimizer = Optimizer(models, arguments.lr)
    if arguments.resume:
        optimizer.load(arguments.resume)
    counts = {
        key: sum(p.numel() for p in model.parameters()) / 1e6 for key, model in models.items()
    }
    print("millions of parameters:", counts, flush=True)

    # One program for each length of the captions.
    backend = "inductor" if DEVICE == "cuda" else "eager"
    block = torch.compile(networks.block, dynamic=False, backend=backend)
    text_layer = torch.compile(networks.text_layer, dynamic=False, backend=backend)
    data = Data(feed, vae, arguments.pool)
    transformer = models["transformer"]

    def loss_of(pool, count):
        latents, ids, lengths, weights = pool.batch(count)
        noise = torch.randn_like(latents)
        t = times(count)
        mixed = noise + t[:, None, None] * (latents - noise)
        features = (
            networks.text_features(models["text_encoder"], ids, text_layer) if conditional else None
        )
        v = networks.velocity(transformer, mixed, t, features, lengths, block)
        error = (v - (latents - noise)).square().mean(-1)
        return (error * weights).sum() / weights.sum(), error.detach().mean()

    while data.pictures < arguments.first:
        data.refill(8, wait=True)
    print(f"{time.time() - started:.0f} s: {data.pictures} pictures", flush=True)
    rows, step, began, last_sheet, since = [], 0, None, 0.0, []
    stop = arguments.out / "stop"  # a file that ends the stage early, as if its time were over
    stop.unlink(missing_ok=True)
    while began is None or (time.time() - began < arguments.seconds and not stop.exists()):
        if arguments.profile and step in (60, 64):
            if step == 60:
                profiler = torch.profiler.profile()
                profiler.start()
            else:
                profiler.stop()
                table = profiler.key_averages().table(
                    sort_by="self_cuda_time_total", row_limit=40, max_name_column_width=70
                )
                (arguments.out / "profile.txt").write_text(table)
        data.refill(1)
        share = torch.rand(()).item()
        loss, plain = loss_of(data.pools[0 if share < 0.72 else 1], arguments.batch)
        loss.backward()
        elapsed = 0 if began is None else time.time() - began
        done = elapsed / arguments.seconds
        rate = min(1, (step + 1) / 200) * min(
            1, max(0.02, (1 - done) / max(arguments.cooldown, 1e-6))
        )
        if done > 0.2:
            feed.short_words.value = 0
        optimizer.step(rate)
        step += 1
        since.append(plain)
        if step == 12:
            began = time.time()  # both buckets are compiled by now, most likely
        if step % 100 == 0:
            rows.append([step, elapsed, torch.stack(since).mean().item(), data.pictures])
            since = []
            if step % 200 == 0:
                print(
                    f"{step:6d}  {elapsed:6.1f} s  error {rows[-1][2]:.4f}  {data.pictures} pictures  "
                    f"{step * arguments.batch / max(elapsed, 1):.0f} samples/s",
                    flush=True,
                )
        if conditional and elapsed - last_sheet > arguments.sheets:
            last_sheet = elapsed
            save(arguments.out, models, optimizer, "_average", optimizer.averages)
            optimizer.use(optimizer.averages)
            paint_sheet(
                vae,
                transformer,
                models["text_encoder"],
                None,
                arguments.fonts,
                arguments.out / "sheet.png",
                guidance=1,
            )
            optimizer.use(optimizer.masters)

    feed_position = feed.next_seed.value
    feed.stop()
    save(arguments.out, models, optimizer, "", optimizer.masters)
    save(arguments.out, models, optimizer, "_average", optimizer.averages)
    if arguments.moments:
        optimizer.save(arguments.out)
    history = earlier["rows"] if earlier else []
    (arguments.out / "curve.json").write_text(
        json.dumps(
            {
                "columns": ["step", "seconds", "error", "pictures"],
                "rows": history + rows,
                "pieces": (earlier["pieces"] if earlier else [])
                + [
                    {
                        "steps": step,
                        "seconds": time.time() - began,
                        "torch": torch.__version__,
                        "arguments": {key: str(value) for key, value in vars(arguments).items()},
                    }
                ],
                "next_seed": feed_position,
            }
        )
    )
    tower = models.get("text_encoder")
    unconditional = None
    if not conditional and arguments.conditional:
        unconditional = transformer
        tower = networks.make_text_tower()
        tower.load_state_dict(load_file(arguments.conditional / "text_encoder_average.safetensors"))
        config = load_file(arguments.conditional / "transformer_average.safetensors")
        layers = 1 + max(int(name.split(".")[1]) for name in config if name.startswith("layers."))
        transformer = networks.make_transformer(layers, arguments.head_dim)
        transformer.load_state_dict(config)
        tower, transformer = (model.to(DEVICE, torch.bfloat16) for model in (tower, transformer))
    if tower is not None:
        optimizer.use(optimizer.averages)
        for guidance in (1.0,) if unconditional is None else (1.0, 2.0, 3.0, 5.0):
            paint_sheet(
                vae,
                transformer,
                tower,
                unconditional,
                arguments.fonts,
                arguments.out / f"sheet_{guidance:g}.png",
                guidance=guidance,
            )
    print(f"{time.time() - started:.0f} s: {step} steps", flush=True)


if __name__ == "__main__":
    main()
