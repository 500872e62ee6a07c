"""`octet certify` from the outside: verdicts, the page, the digest."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
from certifying import (
    NETWORKS,
    certify,  # noqa: F401: a fixture
    files_in,
    octet,  # noqa: F401: a fixture
    passed,
)
from generating import (
    SETTINGS,
    copy,  # noqa: F401: a fixture
    edit_tensors,
    model,  # noqa: F401: a fixture
    weights_of,
)
from json_docs import check_against, documented_fields
from PIL import Image
from running import only_sentence
from safetensors.torch import load_file

# --- verdicts ------------------------------------------------------------------------------------


def test_a_sound_checkpoint(certify, repository, model, tmp_path):
    before = files_in(model)
    done = passed(certify(model, "--json", "-"))
    check_against(documented_fields(repository), "certify", done)
    assert done["verdict"] == "pass" and done["reasons"] == [] and done["equal"] is False
    assert done["checkpoint"]["linears"] == "int8" and done["reference"]["linears"] == "float"
    assert done["checkpoint"]["fingerprint"] == done["reference"]["fingerprint"]
    assert "int8" in {use["path"] for use in done["checkpoint"]["kernels"]}
    assert "int8" not in {use["path"] for use in done["reference"]["kernels"]}
    assert [(image["caption"], image["seed"]) for image in done["images"]] == [
        ("prompt-1", 0), ("prompt-1", 1), ("prompt-2", 0), ("prompt-2", 1)]
    assert done["psnr_db"]["interval"][0] <= done["psnr_db"]["mean"]
    assert [entry["file"] for entry in done["checkpoint"]["files"]] == [
        str(weights_of(model / part)) for part in NETWORKS]
    for entry in done["checkpoint"]["files"]:
        content = before[weights_of(model / entry["file"].split("/")[-2])]
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
        assert entry["bytes"] == len(content)
    assert files_in(model) == before  # nothing was asked to change
    assert (tmp_path / "certificate.html").is_file()


def test_linears_in_floating_point_are_equal_to_the_reference(certify, model):
    done = passed(certify(model, "--linears", "float", "--reference", model, "--json", "-",
                          "--min-psnr", 1000))
    assert done["equal"] is True and done["verdict"] == "pass"
    assert done["psnr_db"]["mean"] is None


def test_the_digest_is_that_of_the_document(certify, model):
    done = passed(certify(model, "--json", "-"))
    digest = done.pop("digest")
    text = json.dumps(done, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == digest


def test_tensors_have_a_digest_of_their_own(certify, model):
    """As src/formats/tensor_digest.h describes it, by other means."""
    done = passed(certify(model, "--json", "-"))
    for part, entry in zip(NETWORKS, done["checkpoint"]["files"]):
        lines = []
        names = {"torch.float32": "F32", "torch.bfloat16": "BF16"}
        for name, tensor in sorted(load_file(weights_of(model / part)).items()):
            content = hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()
            shape = ", ".join(map(str, tensor.shape))
            lines.append(f"{content} {names[str(tensor.dtype)]} [{shape}] {name}\n")
        whole = hashlib.sha256("".join(lines).encode()).hexdigest()
        assert entry["tensors_sha256"] == whole


def test_a_damaged_weight_fails(certify, model, copy, tmp_path):
    edit_tensors(copy / "transformer",
                 lambda tensors: tensors["final_layer.linear.weight"].mul_(-3))
    done = certify(copy, "--reference", model, "--json", "-")
    assert done.returncode == 1
    report = json.loads(done.stdout)  # the result is shown all the same
    assert report["verdict"] == "fail" and len(report["reasons"]) >= 1
    (sentence,) = done.stderr.splitlines()
    assert report["reasons"][0] in sentence and str(copy) in sentence
    assert "FAIL" in (tmp_path / "certificate.html").read_text()
    assert len(report["reference"]["files"]) == 2
    assert report["reference"]["fingerprint"] != report["checkpoint"]["fingerprint"]
    # The same weights by themselves run as faithfully as others.
    assert certify(copy).returncode == 0


def test_the_reference_runs_networks_of_its_own(certify, model, copy):
    """--uncond is the checkpoint's."""
    edit_tensors(copy / NETWORKS[1],
                 lambda tensors: tensors["final_layer.linear.weight"].mul_(-30))
    other = weights_of(copy / NETWORKS[1])
    done = certify(model, "--uncond", other, "--reference", model, "--json", "-")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["verdict"] == "fail"
    assert [each["file"] for each in report["reference"]["files"]] == [
        str(weights_of(model / part)) for part in NETWORKS]


def test_floating_point_is_no_test_of_itself(certify, model):
    sentence = only_sentence(certify(model, "--linears", "float", "--stamp"), code=2)
    assert "--linears" in sentence and "--reference" in sentence


def presets(folder, **changes):
    preset = {"name": "brief", "steps": 2, "guidance": 3, "mu": 0.5, "std": 1.2, **changes}
    (folder / "octet_presets.json").write_text(
        json.dumps({"presets": [preset], "size": [16, 12]}))


def test_what_was_not_asked_for_is_written_down(octet, copy):
    presets(copy)
    words = ("-q", "--device", "cpu", "--threads", "1", "--tune", "off", "-p", "a fox",
             "--convention", "diffusers")
    done = passed(octet("certify", copy, *words, "--json", "-"))
    shown = {key: done[key] for key in ("size", "preset", "guidance", "noise", "dtype",
                                        "convention", "loras")}
    assert shown == {"size": "16x12", "preset": "brief", "guidance": None, "noise": None,
                     "dtype": "bf16", "convention": "diffusers", "loras": []}
    presets(copy, guidance=1)  # then the other network does not run, and nothing is said of it
    done = passed(octet("certify", copy, *words, "--json", "-"))
    assert [entry["file"] for entry in done["checkpoint"]["files"]] == [
        str(weights_of(copy / NETWORKS[0]))]


@pytest.mark.parametrize(("flag", "key"), [("--min-psnr", "psnr_db"), ("--min-snr", "snr_db")])
def test_thresholds(certify, model, flag, key):
    done = passed(certify(model, "--json", "-"))
    mean = (done if key == "psnr_db" else done["first_velocity"])[key]["mean"]
    assert certify(model, flag, mean - 1e-6).returncode == 0
    below = certify(model, flag, mean + 1e-6, "--json", "-")
    assert below.returncode == 1 and json.loads(below.stdout)["verdict"] == "fail"
    assert "expected at least" in below.stderr


def test_pictures_of_one_colour_fail(certify, model, copy):
    """A decoder whose last convolution is nothing but its bias."""
    edit_tensors(copy / "vae", lambda tensors: tensors["decoder.conv_out.weight"].zero_())
    done = certify(copy, "--reference", model, "--json", "-")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert {image["look_b"] for image in report["images"]} == {"constant"}
    assert {image["look_a"] for image in report["images"]} == {"ordinary"}
    assert any("is nearly one colour" in reason for reason in report["reasons"])
    both = certify(copy, "--json", "-")
    report = json.loads(both.stdout)
    assert both.returncode == 1 and len(report["warnings"]) == 4
    assert "there is nothing to compare" in report["reasons"][0]
    assert report["judged_pictures"] == 0 and report["judged_psnr_db"]["count"] == 0
    # Where the reference alone is one, the distance to it does not count either.
    report = json.loads(certify(model, "--reference", copy, "--json", "-").stdout)
    assert report["psnr_db"]["mean"] < 15 and report["judged_pictures"] == 0
    assert len(report["reasons"]) == 1 and "there is nothing to compare" in report["reasons"][0]


def test_generate_warns_of_one_colour(octet, copy, tmp_path):
    edit_tensors(copy / "vae", lambda tensors: tensors["decoder.conv_out.weight"].zero_())
    words = [word for pair in SETTINGS.items() for word in pair if pair[0] != "--caption"]
    done = octet("generate", "--model", copy, *words, "-p", "x", "-q", "--json", "j.json")
    assert done.returncode == 0
    assert done.stderr == "octet: warning: out.png: it is nearly all one colour\n"
    assert json.loads((tmp_path / "j.json").read_text())["captions"][0]["looks"] == ["constant"]


# --- captions ------------------------------------------------------------------------------------


def test_captions_that_come_along(octet, repository, model):
    """Those of examples/, where the model has none."""
    settings = [word for pair in SETTINGS.items() if pair[0] != "--caption" for word in pair]
    done = octet("certify", model, *settings, "-q", "--json", "-", "-n", "1")
    names = [each["name"] for each in json.loads(done.stdout)["captions"]]
    assert names == sorted(path.stem for path in (repository / "examples").glob("*.json"))


@pytest.mark.parametrize(("count", "expected"), [
    (3, [0, 1, 2]), (20, [0, 2, 5, 7, 10, 12, 15, 17])])
def test_captions_of_the_model(octet, copy, count, expected):
    (copy / "captions").mkdir()
    for number in range(count):
        (copy / "captions" / f"{number:03}.json").write_text(tiny.CAPTION)
    settings = [word for pair in SETTINGS.items() if pair[0] != "--caption" for word in pair]
    done = octet("certify", copy, *settings, "-q", "--json", "-", "-n", "1")
    assert [int(each["name"]) for each in json.loads(done.stdout)["captions"]] == expected


def test_captions_that_cannot_be_read(octet, copy):
    (copy / "captions").symlink_to("captions")
    assert "captions: cannot be read" in only_sentence(octet("certify", copy))


# --- the page ------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.images, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "img", "line", "polyline", "polygon"):
            self.open.append(tag)
        if tag == "img":
            self.images.append(dict(attributes))

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page(certify, model, tmp_path):
    done = passed(certify(model, "--json", "-", "-o", tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert page.open == [] and "script" not in page.tags and "svg" in page.tags
    assert not re.search(r'(?:src|href)="(?!data:image/png;base64,)', text)
    assert len(page.images) == 3 * len(done["images"])
    for image in page.images:
        content = base64.b64decode(image["src"].split(",")[1])
        with Image.open(io.BytesIO(content)) as picture:
            assert picture.size == (16, 12)
    assert page.images[0]["alt"] == "Reference: prompt-1, seed 0"
    assert page.images[4]["alt"] == "Checkpoint: prompt-1, seed 1"
    for word in (done["digest"], done["date"], done["checkpoint"]["fingerprint"], "PASS",
                 done["checkpoint"]["files"][0]["sha256"], "a fox"):
        assert word in text
    assert not (tmp_path / "certificate.html").exists()


def test_words_of_strangers_are_text(certify, model, tmp_path):
    words = "</pre><script>alert(1)</script>"
    passed(certify(model, "-p", words, "-p", words, "--json", "-"))
    text = (tmp_path / "certificate.html").read_text()
    assert "<script" not in text and "&lt;script&gt;" in text


def test_large_pictures_are_made_smaller(certify, model, tmp_path):
    flags = ("--size", "1040x12", "--steps", "1", "-n", "1", "-p", "x")
    assert certify(model, *flags, "-o", "wide.html").returncode == 0
    page = Page((tmp_path / "wide.html").read_text())
    for image in page.images:
        with Image.open(io.BytesIO(base64.b64decode(image["src"].split(",")[1]))) as picture:
            assert picture.size == (346, 4)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "value"), [
    ("--min-psnr", "-1"), ("--min-psnr", "nan"), ("--min-snr", "loud"), ("--linears", "int4"),
    ("--images", "0"), ("--out", ""), ("--size", "7x8"), ("--model", "x"), ("--a-linears", "int8"),
    ("--steps", "0")])
def test_wrong_usage(certify, model, flag, value):
    sentence = only_sentence(certify(model, flag, value), code=2)
    assert flag in sentence or "image size" in sentence


def test_bad_models_and_files(certify, model, copy, tmp_path):
    assert "nowhere" in only_sentence(certify(tmp_path / "nowhere"))
    assert "nowhere" in only_sentence(certify(model, "--reference", tmp_path / "nowhere"))
    assert "none.json" in only_sentence(certify(model, "--caption", tmp_path / "none.json"))
    assert "folder" in only_sentence(certify(model, "-o", tmp_path))
    (tmp_path / "nowhere").write_text("")  # not a folder
    assert "page.html" in only_sentence(certify(model, "-o", tmp_path / "nowhere" / "page.html"))
    path = weights_of(model / "transformer")
    assert "belongs to" in only_sentence(certify(model, "-o", path), code=2)
    edit_tensors(copy / "vae", lambda tensors: tensors.pop("decoder.conv_in.weight"))
    assert "decoder.conv_in.weight" in only_sentence(certify(copy))
    (tmp_path / "bad.json").write_text("{")
    assert "bad.json" in only_sentence(certify(model, "--caption", tmp_path / "bad.json"))
    assert not (tmp_path / "certificate.html").exists()
