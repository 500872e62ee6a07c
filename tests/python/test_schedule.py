"""The sampling schedule against torch's arithmetic and against the pipeline of diffusers."""

import json
import math
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

PRESETS = {"quality": (48, 0.0, 1.5), "default": (20, 0.0, 1.75), "turbo": (12, 0.5, 1.75)}
SIZES = [(1024, 1024), (512, 512), (2048, 768), (1024, 1792), (1920, 1088), (2048, 2048)]
STEPS = [0, 1, 2, 4, 7, 9, 13, 14, 28, 50, 128]  # 0: the preset's


@pytest.fixture
def schedule_of(built_program):
    def run(convention, preset, size, steps, *guidance):
        words = [convention, preset, f"{size[0]}x{size[1]}", steps, *guidance]
        done = subprocess.run([built_program("print_schedule"), *map(str, words)],
                              capture_output=True, text=True, check=True)
        return {key: np.array(values, np.float32) for key, values in json.loads(done.stdout).items()}

    return run


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("size", SIZES)
def test_official_times(schedule_of, preset, size):
    count, mu, std = PRESETS[preset]
    mean = mu + 0.5 * math.log(size[0] * size[1] / 512**2)
    for steps in STEPS:
        u = torch.linspace(0, 1, (steps or count) + 1, dtype=torch.float32).double()
        times = 1 - torch.special.expit(mean + std * torch.special.ndtri(u))
        times = times.clamp(1 / (1 + math.exp(9)), 1 / (1 + math.exp(-7.5))).flip(0).float().numpy()
        ours = schedule_of("official", preset, size, steps)
        np.testing.assert_array_equal(ours["times"], times)
        np.testing.assert_array_equal(ours["deltas"], times[1:] - times[:-1])


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("size", SIZES)
def test_diffusers_times(schedule_of, preset, size):
    """What the networks of its pipeline are called with, and how far its scheduler moves."""
    pipeline = pytest.importorskip("diffusers.pipelines.ideogram4.pipeline_ideogram4")
    from diffusers import FlowMatchEulerDiscreteScheduler

    count, mu, std = PRESETS[preset]
    for steps in STEPS:
        mean = pipeline._resolution_aware_mu(height=size[1], width=size[0], base_mu=mu)
        sigmas = pipeline._logit_normal_sigmas(steps or count, mean, std=std)
        scheduler = FlowMatchEulerDiscreteScheduler(shift=1.0)
        scheduler.set_timesteps(sigmas=sigmas.tolist())
        times, deltas = [], []
        for t in scheduler.timesteps:
            times.append(float(1.0 - (t.float() / scheduler.config.num_train_timesteps)))
            # A velocity of 1, negated as in the pipeline, from a latent of 0.
            deltas.append(float(scheduler.step(-torch.ones(1), t, torch.zeros(1)).prev_sample))
        ours = schedule_of("diffusers", preset, size, steps)
        np.testing.assert_array_equal(ours["times"], np.array([*times, 1], np.float32))
        np.testing.assert_array_equal(ours["deltas"], np.array(deltas, np.float32))


def test_guidance_of_the_pipeline_of_diffusers(schedule_of):
    import inspect

    pipeline = pytest.importorskip("diffusers").Ideogram4Pipeline
    defaults = inspect.signature(pipeline.__call__).parameters
    ours = schedule_of("diffusers", "quality", (2048, 2048), 0)
    assert defaults["num_inference_steps"].default == len(ours["guidance"]) == 48
    assert list(defaults["guidance_schedule"].default) == ours["guidance"].tolist()
    assert (defaults["mu"].default, defaults["std"].default) == PRESETS["quality"][1:]
    assert schedule_of("diffusers", "turbo", (512, 512), 3, 4.5)["guidance"].tolist() == [4.5] * 3
