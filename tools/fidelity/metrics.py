"""How far two pictures are apart, and how sure a mean over captions is.

LPIPS is its shift-tolerant version (ST-LPIPS) with AlexNet, whose weights come with the package
stlpips_pytorch: its numbers are not those of plain LPIPS.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from PIL import Image
from skimage.metrics import structural_similarity

LPIPS_NETWORK = "ST-LPIPS (shift-tolerant), AlexNet"
RESAMPLES = 2000
BOOTSTRAP_SEED = 20260101


def _levels(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB"), np.float64)


def psnr(a: Image.Image, b: Image.Image) -> float:
    """In dB, over 8-bit levels; infinite for equal pictures."""
    error = np.mean((_levels(a) - _levels(b)) ** 2)
    return float("inf") if error == 0 else float(10 * np.log10(255**2 / error))


def ssim(a: Image.Image, b: Image.Image) -> float:
    """As `octet compare` has it."""
    return float(
        structural_similarity(
            _levels(a),
            _levels(b),
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
            data_range=255,
            channel_axis=2,
        )
    )


@lru_cache(maxsize=1)
def _lpips_network():
    import torch
    from stlpips_pytorch import stlpips

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # pictures are judged side by side, and two threads fight over a core
    # pnet_rand: the trunk's weights are in the package's file, with those of the linear layers.
    return stlpips.LPIPS(net="alex", variant="shift_tolerant", pnet_rand=True, verbose=False)


def lpips(a: Image.Image, b: Image.Image) -> float:
    import torch

    tensors = [
        torch.from_numpy(_levels(picture) / 127.5 - 1).permute(2, 0, 1)[None].float()
        for picture in (a, b)
    ]
    return float(_lpips_network()(*tensors))


# --- intervals -----------------------------------------------------------------------------------

Statistic = Callable[..., np.ndarray]  # np.mean or np.median


def _draws(count: int) -> np.ndarray:
    """The same for all scores of as many captions, so that all are paired."""
    return np.random.default_rng(BOOTSTRAP_SEED).integers(0, count, (RESAMPLES, count))


def interval(
    by_caption: dict[str, list[float]], statistic: Statistic = np.mean
) -> tuple[float, float, float]:
    """(value, low, high): 95 % by bootstrap over captions, of which all have as many pictures. The
    pictures of a caption stay together, since they are much alike."""
    values = np.array([scores for _, scores in sorted(by_caption.items())])
    resampled = values[_draws(len(values))].reshape(RESAMPLES, -1)
    low, high = np.percentile(statistic(resampled, axis=1), [2.5, 97.5])
    return float(statistic(values)), float(low), float(high)


def difference(
    a: dict[str, list[float]], b: dict[str, list[float]], statistic: Statistic = np.mean
) -> tuple[float, float, float] | None:
    """(mean or median of b - a, low, high) over the captions that both have; pictures of one
    caption and seed are compared with each other alone. None without any."""
    common = {
        caption: [second - first for first, second in zip(a[caption], b[caption], strict=True)]
        for caption in sorted(a.keys() & b.keys())
    }
    return interval(common, statistic) if common else None
