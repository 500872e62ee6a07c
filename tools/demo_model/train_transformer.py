"""Stages 2 and 3: the text tower with the conditional transformer, then the unconditional one.

  python train_transformer.py conditional --vae FILE --out FOLDER --seconds N [--resume FOLDER]
  python train_transformer.py unconditional --vae FILE --out FOLDER --seconds N --hidden 256

Flow matching: the network sees (1 - t) noise + t latent and learns latent - noise, at times drawn
from a logit-normal distribution. A side task makes spelling quick to learn: halfway through the
conditional transformer one more linear layer, which no checkpoint for inference has, names the
letter at each quarter of each token. A stage ends with files that travel: weights, their running
average and (--moments) the optimizer's moments, all in bf16; the curve of the loss; and a sheet of
pictures from held-out captions. The next piece starts from them with --resume.
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import networks
from feed import DEVICE, LETTERS, QUARTERS, Feed
from optimizer import Optimizer
from pool import SHARES, Data, Step
from sheet import paint_sheet

WARM_UP = 200  # steps
SPELLING = 0.15  # of the loss


def times(count):
    """Mostly in the earlier half, where the caption decides what is painted."""
    t = torch.sigmoid(torch.randn(count, device=DEVICE) - 0.3)
    uniform = torch.rand(count, device=DEVICE)
    return torch.where(torch.rand(count, device=DEVICE) < 0.1, uniform, t)


def save(folder, models, optimizer, suffix, values):
    optimizer.use(values)
    for key, model in models.items():
        tensors = {name: value.contiguous().cpu() for name, value in model.state_dict().items()}
        part = folder / f"{key}{suffix}.safetensors.part"
        save_file(tensors, part)
        part.rename(folder / f"{key}{suffix}.safetensors")
    optimizer.use(optimizer.masters)


def make_models(arguments):
    text_features = len(networks.TAPS) * networks.TEXT_HIDDEN
    conditional = arguments.stage == "conditional"
    transformer = networks.make_transformer(
        arguments.layers,
        arguments.head_dim,
        text_features if conditional else 16,
        arguments.hidden,
        arguments.ffn,
    )
    models = {"transformer": transformer}
    if conditional:
        models["text_encoder"] = networks.make_text_tower()
        models["text_encoder"].norm.requires_grad_(False)  # taps come before it
        models["speller"] = torch.nn.Linear(arguments.hidden, QUARTERS * LETTERS)
    else:
        transformer.llm_cond_norm.requires_grad_(False)
        transformer.llm_cond_proj.requires_grad_(False)
    if arguments.resume:
        for key, model in models.items():
            path = arguments.resume / f"{key}.safetensors"
            if not path.exists():
                path = arguments.resume / f"{key}_average.safetensors"
            if path.exists() or key != "speller":
                model.load_state_dict(load_file(path))
    return {key: model.to(DEVICE, torch.bfloat16) for key, model in models.items()}


def make_steps(arguments, models, data, parameters):
    """One for each bucket, or one for both where nobody reads captions."""
    backend = "inductor" if DEVICE == "cuda" else "eager"
    block = torch.compile(networks.block, dynamic=False, backend=backend)
    text_layer = torch.compile(networks.text_layer, dynamic=False, backend=backend)
    transformer, tower = models["transformer"], models.get("text_encoder")

    def misspelling(rows, letters):
        logits = models["speller"](F.rms_norm(rows, rows.shape[-1:])).float()
        letters = letters.long().flatten()
        wrong = F.cross_entropy(logits.view(-1, LETTERS), letters, reduction="none")
        counts = torch.where(letters > 0, 1.0, 0.05)
        return (wrong * counts).sum() / counts.sum()

    def loss_of(latents, weights, letters, ids=None, lengths=None):
        latents, weights = networks.to_tokens(latents), weights.float()
        noise = torch.randn_like(latents)
        t = times(len(latents))
        mixed = noise + t[:, None, None] * (latents - noise)
        features = None if tower is None else networks.text_features(tower, ids, text_layer)
        seen = []
        look = seen.append if tower is not None else None
        v = networks.velocity(transformer, mixed, t, features, lengths, block, look)
        error = (v - (latents - noise)).square().mean(-1)
        loss = (error * weights).sum() / weights.sum()
        spelling = misspelling(seen[0], letters) if seen else torch.zeros((), device=DEVICE)
        return loss + SPELLING * spelling, torch.stack([error.mean(), spelling]).detach()

    def inputs_of(pool):
        batch = pool.batch(arguments.batch)
        return batch[:3] if tower is None else batch

    steps, memory = [], None
    for pool in data.pools if tower is not None else data.pools[:1]:
        as_graph = DEVICE == "cuda" and not arguments.no_graph
        steps.append(Step(loss_of, parameters, inputs_of(pool), as_graph, memory))
        memory = steps[0].graph.pool() if steps[0].graph else None
    return steps, inputs_of


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=["conditional", "unconditional"])
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", type=Path, help="a folder that an earlier piece wrote")
    parser.add_argument("--conditional", type=Path, help="its files, for sheets of the other stage")
    parser.add_argument("--fonts", default="/usr/share/fonts/truetype/dejavu")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cooldown", type=float, default=0.25, help="share of the time, the last")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--ffn", type=int, default=1024)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--pool", type=int, default=400_000)
    parser.add_argument("--first", type=int, default=30_000, help="pictures before the first step")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--short-words", type=float, default=0.0, help="share, in the first fifth")
    parser.add_argument("--moments", action="store_true", help="save the optimizer's, too")
    parser.add_argument("--sheets", type=float, default=240, help="seconds between sheets")
    parser.add_argument("--no-graph", action="store_true", help="launch kernels one by one")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    started = time.time()
    earlier = {"rows": [], "pieces": [], "next_seed": 0}
    if arguments.resume:
        earlier = json.loads((arguments.resume / "curve.json").read_text())
    conditional = arguments.stage == "conditional"
    feed = Feed(
        arguments.fonts,
        arguments.workers,
        first_seed=earlier["next_seed"] + (0 if conditional else 1 << 34),
    )
    feed.short_words.value = arguments.short_words
    torch.manual_seed(arguments.seed + len(earlier["rows"]))
    chance = random.Random(arguments.seed)
    vae = networks.make_vae()
    vae.load_state_dict(load_file(arguments.vae))
    vae = vae.to(DEVICE, torch.bfloat16, memory_format=torch.channels_last).eval()
    models = make_models(arguments)
    optimizer = Optimizer(models, arguments.lr)
    if arguments.resume:
        optimizer.load(arguments.resume)
    for key, model in models.items():
        print(f"{key}: {sum(p.numel() for p in model.parameters()) / 1e6:.2f} M", flush=True)
    data = Data(feed, vae, arguments.pool)
    while data.pictures < arguments.first:
        data.refill(8, wait=True)
    print(f"{time.time() - started:.0f} s: {data.pictures} pictures", flush=True)
    steps, inputs_of = make_steps(arguments, models, data, optimizer.parameters)
    print(f"{time.time() - started:.0f} s: the first step", flush=True)

    parts = {"vae": vae, **models}
    rows, errors, step, last_sheet, began = [], [], 0, 0.0, time.time()
    stop = out / "stop"  # a file that ends the stage early, as if its time were over
    stop.unlink(missing_ok=True)
    while (elapsed := time.time() - began) < arguments.seconds and not stop.exists():
        done = elapsed / arguments.seconds
        if step % 2 == 0:
            data.refill(1)
        bucket = chance.choices(range(len(SHARES)), SHARES)[0]
        gradients, error = steps[bucket % len(steps)](inputs_of(data.pools[bucket]))
        cooled = max(0.01, (1 - done) / arguments.cooldown)
        optimizer.step(min(1, (step + 1) / WARM_UP, cooled), gradients)
        if done > 0.2:
            feed.short_words.value = 0
        step += 1
        errors.append(error)
        if step % 100 == 0:
            error, spelling = torch.stack(errors).mean(0).tolist()
            rows.append([step, elapsed, error, data.pictures, spelling])
            errors = []
        if step % 500 == 0:
            rate = step * arguments.batch / elapsed
            print(
                f"{step:6d}  {elapsed:6.1f} s  error {rows[-1][2]:.4f}  "
                f"spelling {rows[-1][4]:.4f}  {data.pictures} pictures  {rate:.0f} samples/s",
                flush=True,
            )
        if conditional and elapsed - last_sheet > arguments.sheets:
            last_sheet = elapsed
            save(out, models, optimizer, "_average", optimizer.averages)
            optimizer.use(optimizer.averages)
            paint_sheet(out / "sheet.png", parts, arguments.fonts)
            optimizer.use(optimizer.masters)

    next_seed = feed.next_seed.value
    feed.stop()
    save(out, models, optimizer, "", optimizer.masters)
    save(out, models, optimizer, "_average", optimizer.averages)
    if arguments.moments:
        optimizer.save(out)
    piece = {
        "stage": arguments.stage,
        "steps": step,
        "seconds": time.time() - began,
        "torch": torch.__version__,
        "arguments": {key: str(value) for key, value in vars(arguments).items()},
    }
    curve = {
        "columns": ["step", "seconds", "error", "pictures", "spelling"],
        "rows": earlier["rows"] + rows,
        "pieces": earlier["pieces"] + [piece],
        "next_seed": next_seed,
    }
    (out / "curve.json").write_text(json.dumps(curve))
    optimizer.use(optimizer.averages)
    guidances = [1.0]
    if not conditional:
        guidances = [1.0, 2.0, 3.0, 5.0]
        tower = networks.make_text_tower()
        tower.load_state_dict(load_file(arguments.conditional / "text_encoder_average.safetensors"))
        painter = networks.transformer_from(
            load_file(arguments.conditional / "transformer_average.safetensors")
        )
        tower, painter = (model.to(DEVICE, torch.bfloat16) for model in (tower, painter))
        guide = models["transformer"]
        parts = {"vae": vae, "transformer": painter, "text_encoder": tower, "unconditional": guide}
    for guidance in guidances:
        paint_sheet(out / f"sheet_{guidance:g}.png", parts, arguments.fonts, guidance=guidance)
    print(f"{time.time() - started:.0f} s: {step} steps", flush=True)


if __name__ == "__main__":
    main()
