"""octet.Engine, octet.inspect, octet.quantize and `python -m octet`, with the demo's model.

Twenty seconds on two cores.
"""

from __future__ import annotations

import io
import json
import pickle
import os
import signal
import subprocess
import threading

import numpy as np
import octet
import pytest
from conftest import REPOSITORY

MODEL = REPOSITORY / "models" / "demo"
CAPTION = json.loads((MODEL / "demo.json").read_text())
QUICK = {"steps": 1, "size": 64, "output": "numpy"}


@pytest.fixture(scope="module")
def engine():
    with octet.Engine(MODEL, device="cpu") as engine:
        yield engine
    assert repr(engine) == "Engine(closed)"


# --- pictures ---


def test_a_picture_is_what_the_program_paints(engine, built_program, tmp_path):
    image = pytest.importorskip("PIL.Image")
    out = tmp_path / "demo.png"
    subprocess.run(
        [built_program("octet"), "generate", "--model", MODEL, "--caption", MODEL / "demo.json",
         "-o", out, "--seed", "7", "--steps", "2", "--device", "cpu", "--quiet"], check=True
    )  # fmt: skip
    made = engine.render(CAPTION, seed=7, steps=2)
    assert made.image.size == image.open(out).size == (256, 256)
    assert made.image.tobytes() == image.open(out).convert("RGB").tobytes()
    assert made.seeds == [7] and made.looks == ["ordinary"] and len(made) == 1
    assert made.metadata[0]["seed"] == "7"
    assert made.report.steps == 2 and made.report.linears.int8 > 0
    assert json.dumps(made.report.as_dict())
    again = pickle.loads(pickle.dumps(made))  # for another process
    assert again.report.as_dict() == made.report.as_dict() and again.seeds == [7]
    assert again.report.linears.int8 == made.report.linears.int8
    assert repr(again.report) == repr(made.report) and pickle.loads(pickle.dumps(again)) == again
    with pytest.raises(octet.OctetTypeError, match="a Job belongs to its engine"):
        pickle.dumps(engine.check(CAPTION, steps=1))


def test_captions_sizes_and_seeds(engine, tmp_path):
    path = tmp_path / "caption.json"
    path.write_text(json.dumps(CAPTION))
    first = engine.render(CAPTION, **QUICK, seed=3)
    assert first.image.shape == (64, 64, 3) and first.image.dtype == np.uint8
    for other in (json.dumps(CAPTION), path):
        np.testing.assert_array_equal(engine.render(other, **QUICK, seed=3).image, first.image)
    two = engine.render(CAPTION, steps=1, width=64, height=64, images=2, seed=2, output="numpy")
    assert two.seeds == [2, 3]
    np.testing.assert_array_equal(two.images[1], first.image)
    wide = engine.render("A red circle.", wrap_text=True, steps=1, size=(96, 64), output="numpy")
    assert wide.image.shape == (64, 96, 3)
    noise = np.zeros((16, 128), np.float32)
    assert engine.render(CAPTION, **QUICK, noise=noise).image.shape == (64, 64, 3)
    assert engine.render(CAPTION, **QUICK, guidance=1).report.steps == 1


def test_pictures_as_png(engine):
    image = pytest.importorskip("PIL.Image")
    previews = []
    png = {**QUICK, "output": "png", "seed": 3}
    made = engine.render(CAPTION, **png, preview=previews.append)
    opened = image.open(io.BytesIO(made.image))
    np.testing.assert_array_equal(np.asarray(opened), engine.render(CAPTION, **QUICK, seed=3).image)
    assert opened.text["seed"] == "3" and opened.text == made.metadata[0]
    assert image.open(io.BytesIO(previews[0].image)).size == (4, 4)
    small = engine.render(CAPTION, **png, level=9, scale=8, preview=previews.append)
    assert small.image != made.image
    np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(small.image))), opened)
    assert image.open(io.BytesIO(previews[-1].image)).size == (32, 32)
    del previews[:]
    for name, value in (("level", 10), ("level", "x"), ("scale", 0), ("scale", 2.5), ("scale", 65)):
        with pytest.raises(octet.InvalidRequest, match=f"`{name}` is .* expected a whole number"):
            engine.render(CAPTION, **png, **{name: value}, preview=previews.append)
    assert not previews  # nothing was rendered for it
    with pytest.raises(octet.InvalidRequest, match="level"):
        engine.render(CAPTION, **QUICK, level=9)


def test_loras_of_a_request_are_for_it_alone(engine, tmp_path):
    layer = "transformer.layers.0.attention.o"
    tensors = {f"{layer}.lora_A.weight": (1, 512), f"{layer}.lora_B.weight": (512, 1)}
    header = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [2048 * i, 2048 * (i + 1)]}
        for i, (name, shape) in enumerate(tensors.items())
    }
    text = json.dumps(header).encode()
    path = tmp_path / "style.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + np.ones(1024, np.float32).tobytes())
    plain = engine.render(CAPTION, **QUICK, seed=3).image
    styled = engine.render(CAPTION, **QUICK, seed=3, loras=[f"{path}:0.5"])
    assert not np.array_equal(styled.image, plain)
    assert "style.safetensors" in json.dumps(styled.metadata[0])
    np.testing.assert_array_equal(engine.render(CAPTION, **QUICK, seed=3).image, plain)


def test_progress_and_previews_on_the_thread_that_called(engine):
    seen, previews = [], []

    def on_progress(progress) -> None:
        seen.append((threading.get_ident(), progress.stage, progress.done, progress.total))

    made = engine.render(CAPTION, **{**QUICK, "steps": 3}, progress=on_progress,
                         preview=previews.append)  # fmt: skip
    assert {ident for ident, *_ in seen} == {threading.get_ident()}
    assert [(done, total) for _, stage, done, total in seen if stage == "denoise"][-1] == (3, 3)
    assert seen[-1][1] == "decode"
    assert [(p.index, p.step, p.steps) for p in previews] == [(0, 1, 3), (0, 2, 3), (0, 3, 3)]
    assert previews[0].image.shape == (4, 4, 3) and made.image.shape == (64, 64, 3)


def test_jobs_are_checked_while_a_picture_is_made(engine):
    job = engine.check(CAPTION, size=64, steps=2, seed=3, images=2)
    assert job.size == (64, 64) and job.latents == (16, 128) and job.steps == 2
    assert job.text_tokens > 0 and job.branches == engine.info.branches
    trained_for, size = job.warnings
    assert "was trained on" in trained_for and "64x64 is smaller" in size
    seen = []

    def ask() -> None:
        state = engine.state
        assert state.loaded and state.busy and state.progress.stage
        seen.append(engine.check(CAPTION, size=64).size)
        seen.append(engine.estimate(job).device_bytes)

    def on_progress(_) -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(60)
        ask()

    made = engine.render(job, output="numpy", progress=on_progress)
    assert seen[0] == (64, 64) and seen[1] >= 0 and len(seen) % 4 == 0
    assert made.seeds == [3, 4] and made.report.warnings == job.warnings
    assert engine.estimate(job).seconds > 0 and not engine.state.busy
    np.testing.assert_array_equal(made.images[1],
                                  engine.render(CAPTION, size=64, steps=2, seed=4,
                                                output="numpy").image)  # fmt: skip
    with pytest.raises(octet.InvalidRequest, match="job") as raised:
        engine.render(job, seed=3)
    assert raised.value.field == "seed"


def test_a_stop_ends_its_own_request_alone(engine):
    stop = octet.Stop()
    stop.request()
    assert stop.requested
    calls = []
    with pytest.raises(octet.Cancelled):
        engine.render(CAPTION, **QUICK, stop=stop, progress=calls.append)
    assert calls == []
    assert engine.render(CAPTION, **QUICK).image.shape == (64, 64, 3)
    stop = octet.Stop()
    with pytest.raises(octet.Cancelled):
        engine.render(CAPTION, **{**QUICK, "steps": 9}, stop=stop,
                      preview=lambda _: stop.request())  # fmt: skip
    with pytest.raises(octet.Cancelled):
        octet.Engine(MODEL, device="cpu", stop=stop)


def test_previews_are_as_frequent_as_asked_for(engine):
    previews = []
    engine.warm_up(64, previews=True)
    engine.render(CAPTION, **{**QUICK, "steps": 5}, preview=previews.append, preview_every=2)
    assert [rough.step for rough in previews] == [2, 4, 5]


def test_warnings_are_in_the_report(engine):
    report = engine.render("plain text", any_caption=True, **QUICK).report
    assert report.warnings and all(isinstance(sentence, str) for sentence in report.warnings)
    assert [branch.name for branch in report.branches] == engine.info.branches


class Mine(Exception):
    pass


def test_what_callbacks_may_do(engine):
    def fail(_) -> None:
        raise Mine

    for callback in ("progress", "preview"):
        with pytest.raises(Mine):
            engine.render(CAPTION, **{**QUICK, "steps": 3}, **{callback: fail})
    with pytest.raises(octet.Cancelled):
        engine.render(CAPTION, **QUICK, progress=lambda _: False)
    with pytest.raises(octet.Cancelled):
        engine.render(CAPTION, **{**QUICK, "steps": 9}, preview=lambda _: engine.cancel())
    with pytest.raises(octet.OctetError, match="a callback may call only cancel"):
        engine.render(CAPTION, **QUICK, progress=lambda _: engine.render(CAPTION, **QUICK))
    names = []
    engine.render(CAPTION, **QUICK, progress=lambda _: names.append(engine.info.family))
    assert set(names) == {"ideogram4"}


@pytest.mark.parametrize("end", ["signal", "cancel"])
def test_a_long_picture_ends_when_it_is_told_to(engine, end):
    def later() -> None:
        if end == "signal":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            engine.cancel()

    timer = threading.Timer(0.3, later)
    timer.start()
    with pytest.raises(KeyboardInterrupt if end == "signal" else octet.Cancelled):
        engine.render(CAPTION, steps=1000)
    timer.join()
    assert engine.render(CAPTION, **QUICK).image.shape == (64, 64, 3)


def test_threads_wait_for_each_other(engine):
    made = {}

    def work(seed: int) -> None:
        made[seed] = engine.render(CAPTION, **QUICK, seed=seed).image

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, image in made.items():
        np.testing.assert_array_equal(image, engine.render(CAPTION, **QUICK, seed=seed).image)


@pytest.mark.parametrize(
    "options, field",
    [
        ({"size": 17}, "size"),
        ({"size": (64,)}, "size"),
        ({"size": "64"}, "size"),
        ({"size": 64, "width": 64}, "size"),
        ({"preset": "none"}, "preset"),
        ({"steps": -1}, "steps"),
        ({"guidance": [1, 2, 3]}, "guidance"),
        ({"images": 0}, "images"),
        ({"negative": "rain"}, "negative"),
        ({"output": "jpeg"}, "output"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
    ],
)
def test_requests_that_make_no_sense(engine, options, field):
    with pytest.raises(octet.InvalidRequest) as raised:
        engine.render(CAPTION, **{"steps": 1, **options})
    assert raised.value.field == field


@pytest.mark.parametrize("caption", ["", "{", "{}", "plain text", 3, None])
def test_captions_that_are_none(engine, caption):
    with pytest.raises(octet.OctetError, match="caption"):
        engine.render(caption, **QUICK)
    with pytest.raises(octet.OctetError, match="progress"):
        engine.render(CAPTION, **QUICK, progress=3)


def test_captions_are_checked_without_an_engine():
    report = octet.check_caption(CAPTION)
    assert report.valid and json.loads(report.canonical)
    assert octet.check_caption(report.canonical).canonical == report.canonical
    report = octet.check_caption('{"elements": 3}')
    assert not report.valid and report.canonical == ""
    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert errors and errors[0].path.startswith("$") and errors[0].rule
    with pytest.raises(octet.OctetTypeError):
        octet.check_caption(3)


@pytest.mark.parametrize(
    "model, options, words",
    [
        ("no/such/folder", {}, "no/such/folder"),
        (MODEL, {"linears": "int4"}, "`linears` is \"int4\", expected one of"),
        (MODEL, {"keep": "nowhere"}, "`keep` is \"nowhere\""),
        (MODEL, {"device": "tpu"}, "tpu"),
        (MODEL, {"threads": -3}, "-3 threads"),
        (MODEL, {"loras": "none.safetensors:0.5"}, "none.safetensors"),
        (MODEL, {"parts": {"vae": "no/vae"}}, "no/vae"),
        (MODEL, {"progress": 3}, "`progress`"),
        (MODEL, {"attention": "float"}, '`attention` is "float", expected one of "auto", "bf16"'),
        (MODEL, {"keep": "streamed"}, '`keep` is "streamed", expected one of "device", "host", "s'),
    ],
)
def test_models_that_cannot_be_loaded(model, options, words):
    with pytest.raises(octet.OctetError) as raised:
        octet.Engine(model, **{"device": "cpu", **options})
    assert words in str(raised.value)


def test_what_is_loaded_and_what_is_not_any_more():
    with octet.Engine(MODEL, device="cpu", keep={"text_encoder": "stream"}, lazy=True) as engine:
        info = engine.info
        assert info.family == "ideogram4" and info.size == (256, 256) and info.token_side == 16
        assert {place.part: place.where for place in info.plan}["text_encoder"] == "stream"
        assert [preset.name for preset in info.presets] == ["default", "quality", "turbo"]
        assert "ideogram4" in repr(engine)
        engine.set_loras([])
    with pytest.raises(octet.OctetError, match="no model is loaded"):
        engine.render(CAPTION)
    engine.close()


def test_loading_ends_when_its_callback_fails():
    def fail(_) -> None:
        raise Mine

    with pytest.raises(Mine):
        octet.Engine(MODEL, device="cpu", progress=fail)


def test_a_forked_child_is_told_that_the_engine_stayed_behind(engine):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            engine.render(CAPTION, **QUICK)
        except octet.OctetError as error:
            status = 0 if "forked" in str(error) else 2
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_child_that_a_callback_forks_is_told_so(engine):
    """It lacks the thread that renders, and does not wait for it."""
    parent = os.getpid()
    children = []

    def fork(_) -> None:
        if not children and os.getpid() == parent:
            children.append(os.fork())
            signal.alarm(0 if children[0] else 60)

    status = 1
    try:
        engine.render(CAPTION, **QUICK, progress=fork)
    except octet.OctetError as error:
        status = 0 if "forked by a callback" in str(error) else 2
    if os.getpid() != parent:
        os._exit(status)
    assert os.waitpid(children[0], 0)[1] == 0
