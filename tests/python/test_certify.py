"""`octet certify` from the outside: verdicts, the page, the digest, the stamp."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import subprocess
from html.parser import HTMLParser

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
from generating import (
    SETTINGS,
    copy,  # noqa: F401: a fixture
    edit_tensors,
    model,  # noqa: F401: a fixture
    rewrite,
    shard,
    weights_of,
)
from json_docs import check_against, documented_fields, fields_of
from PIL import Image
from safetensors.torch import load_file, safe_open, save_file

NETWORKS = ("transformer", "unconditional_transformer")


@pytest.fixture
def octet(built_program, tmp_path):
    def run(*words, **options):
        return subprocess.run([built_program("octet"), *map(str, words)], capture_output=True,
                              text=True, timeout=120, cwd=tmp_path, **options)

    return run


@pytest.fixture
def certify(octet):
    """certify(model, "--flag", value, ...): small pictures of two captions, two seeds of each."""

    def run(folder, *flags, **options):
        settings = {**SETTINGS, "--size": "16x12"}
        del settings["--caption"]
        for flag in flags:
            settings.pop(flag, None)
        words = [word for pair in settings.items() for word in pair]
        captions = () if "--caption" in flags or "-p" in flags else ("-p", "a fox", "-p", "a pear")
        return octet("certify", folder, *words, *captions, "-q", *flags, **options)

    return run


def passed(done) -> dict:
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def refusal(done, code=1) -> str:
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("octet: ") and "unexpected failure" not in sentence
    return sentence


def files_in(folder) -> dict:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


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
    sentence = refusal(certify(model, "--linears", "float", "--stamp"), code=2)
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
    assert done.stderr == "octet: warning: out.png: nearly all of it has one colour\n"
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
    assert "captions: cannot be read" in refusal(octet("certify", copy))


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


# --- the stamp -----------------------------------------------------------------------------------


def own_files(folder):
    """Copies in place of links, which stamping would replace one by one."""
    for part in NETWORKS:
        path = weights_of(folder / part)
        rewrite(path, path.read_bytes())
    return folder


def inspected(octet, path) -> dict:
    done = octet("inspect", path, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_stamp(certify, octet, repository, copy, tmp_path):
    own_files(copy)
    tensors = {part: load_file(weights_of(copy / part)) for part in NETWORKS}
    done = passed(certify(copy, "--stamp", "--json", "-"))
    for part in NETWORKS:
        path = weights_of(copy / part)
        stamped = load_file(path)
        assert stamped.keys() == tensors[part].keys()
        for name, tensor in stamped.items():
            assert tensor.dtype == tensors[part][name].dtype
            assert tensor.numpy().tobytes() == tensors[part][name].numpy().tobytes()
        with safe_open(path, "pt") as file:
            stamp = json.loads(file.metadata()["octet.certificate"])
        assert stamp["digest"] == done["digest"] and stamp["verdict"] == "pass"
        assert stamp["psnr_db"] == done["psnr_db"]["mean"]
        assert list(path.parent.glob(".octet*")) == []
        shown = inspected(octet, path)
        (certificate,) = shown["certificates"]
        assert certificate["weights_unchanged"] is True and certificate["problem"] is None
        assert certificate["digest"] == done["digest"]
        documented = {name for name in documented_fields(repository)["inspect"]
                      if name.startswith("certificates")}
        assert {name for name in fields_of(shown) if name.startswith("certificates")} == documented
    assert len(inspected(octet, copy)["certificates"]) == 2
    assert "those that were certified" in octet("inspect", copy).stdout
    # The stamp is no part of what is certified: a second one replaces it.
    again = passed(certify(copy, "--stamp", "--json", "-"))
    assert [each["tensors_sha256"] for each in again["checkpoint"]["files"]] == [
        each["tensors_sha256"] for each in done["checkpoint"]["files"]]
    assert again["psnr_db"] == done["psnr_db"] and again["digest"] != done["digest"]
    assert {each["digest"] for each in inspected(octet, copy)["certificates"]} == {again["digest"]}


def test_a_changed_byte_shows(certify, octet, copy):
    own_files(copy)
    passed(certify(copy, "--stamp", "--json", "-"))
    path = weights_of(copy / "transformer")
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    by_file = {each["file"]: each["weights_unchanged"]
               for each in inspected(octet, copy)["certificates"]}
    assert by_file == {str(path): False, str(weights_of(copy / NETWORKS[1])): True}
    assert "THE WEIGHTS HAVE CHANGED" in octet("inspect", path).stdout


def test_other_metadata_does_not_matter(certify, octet, copy):
    own_files(copy)
    passed(certify(copy, "--stamp", "--json", "-"))
    path = weights_of(copy / "transformer")
    with safe_open(path, "pt") as file:
        metadata = {**file.metadata(), "author": "somebody"}
    tensors = load_file(path)
    save_file(tensors, path, metadata=metadata)
    (certificate,) = inspected(octet, path)["certificates"]
    assert certificate["weights_unchanged"] is True


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"digest": 3}', '"x"',
                                  '{"digest":"a","date":"b","verdict":"c","psnr_db":"d"}'])
def test_stamps_that_are_none(octet, copy, text):
    path = weights_of(copy / "transformer")
    tensors = load_file(path)
    path.unlink()
    save_file(tensors, path, metadata={"octet.certificate": text})
    (certificate,) = inspected(octet, path)["certificates"]
    assert certificate["problem"] and certificate["weights_unchanged"] is False
    assert "cannot be read" in octet("inspect", path).stdout


def test_a_failure_is_stamped_as_one(certify, octet, copy):
    own_files(copy)
    assert certify(copy, "--stamp", "--min-psnr", 1000).returncode == 1
    assert {each["verdict"] for each in inspected(octet, copy)["certificates"]} == {"fail"}


def test_shards_are_stamped_each(certify, octet, copy):
    shard(copy)
    names = {str(path) for part in NETWORKS for path in (copy / part).glob("*.safetensors")}
    assert len(names) > 2
    done = passed(certify(copy, "--stamp", "--json", "-"))
    assert {each["file"] for each in done["checkpoint"]["files"]} == names
    stamps = inspected(octet, copy)["certificates"]
    assert {each["file"] for each in stamps} == names
    assert all(each["weights_unchanged"] for each in stamps)


def test_networks_from_elsewhere(certify, octet, copy, model):
    """Those that were named are certified, those of the base are not."""
    own_files(copy)
    alone, other = (weights_of(copy / part) for part in NETWORKS)
    done = passed(certify(alone, "--base", model, "--json", "-"))
    assert [each["file"] for each in done["checkpoint"]["files"]] == [str(alone)]
    done = passed(certify(alone, "--base", model, "--uncond", other, "--stamp", "--json", "-"))
    assert [each["file"] for each in done["checkpoint"]["files"]] == [str(alone), str(other)]
    for path in (alone, other):
        (stamp,) = inspected(octet, path)["certificates"]
        assert stamp["weights_unchanged"] is True
    assert "certificates" not in inspected(octet, model)
    # What neither has comes from the reference.
    passed(certify(alone, "--uncond", other, "--reference", model, "--stamp", "--json", "-"))


def test_networks_that_do_not_run_are_not_stamped(certify, octet, copy):
    own_files(copy)
    passed(certify(copy, "--guidance", 1, "--stamp", "--json", "-"))
    (stamp,) = inspected(octet, copy)["certificates"]
    assert stamp["file"] == str(weights_of(copy / NETWORKS[0]))


def test_a_folder_that_cannot_be_written_to(certify, copy, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    own_files(copy)
    (copy / NETWORKS[1]).chmod(0o500)
    assert str(copy / NETWORKS[1]) in refusal(certify(copy, "--stamp"))
    assert not (tmp_path / "certificate.html").exists()  # it is known before anything is rendered


def test_links_are_not_stamped(certify, copy):
    own_files(copy)
    path = weights_of(copy / "transformer")
    blob = copy / "blob"
    path.rename(blob)
    path.symlink_to(blob)
    before = blob.read_bytes()
    assert "is a symbolic link" in refusal(certify(copy, "--stamp"))
    assert blob.read_bytes() == before and path.is_symlink()


def test_gguf_takes_no_stamp(certify, model, tmp_path):
    pytest.importorskip("gguf")
    from model_files import tensors_of, write_gguf

    alone = write_gguf(tmp_path / "t.gguf", tensors_of(model))
    before = alone.read_bytes()
    sentence = refusal(certify(alone, "--base", model, "--stamp", "--guidance", 1))
    assert str(alone) in sentence
    assert alone.read_bytes() == before


def test_a_full_disk_leaves_the_checkpoint_alone(certify, copy, tmp_path):
    """The limit on the size of files stands for it; the page is smaller than the weights."""
    import resource

    own_files(copy)
    before = files_in(copy)
    limit = min(weights_of(copy / part).stat().st_size for part in NETWORKS) // 2
    done = certify(copy, "--stamp", "-o", "/dev/null", "-n", 1, "--steps", 1, "--size", "8x6",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
                   restore_signals=False)
    assert done.returncode == 1 and str(copy) in done.stderr
    assert "PASS" in done.stdout  # what was found is not lost
    assert files_in(copy) == before


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "value"), [
    ("--min-psnr", "-1"), ("--min-psnr", "nan"), ("--min-snr", "loud"), ("--linears", "int4"),
    ("--images", "0"), ("--out", ""), ("--size", "7x8"), ("--model", "x"), ("--a-linears", "int8"),
    ("--steps", "0")])
def test_wrong_usage(certify, model, flag, value):
    sentence = refusal(certify(model, flag, value), code=2)
    assert flag in sentence or "image size" in sentence


def test_bad_models_and_files(certify, model, copy, tmp_path):
    assert "nowhere" in refusal(certify(tmp_path / "nowhere"))
    assert "nowhere" in refusal(certify(model, "--reference", tmp_path / "nowhere"))
    assert "none.json" in refusal(certify(model, "--caption", tmp_path / "none.json"))
    assert "folder" in refusal(certify(model, "-o", tmp_path))
    assert "page.html" in refusal(certify(model, "-o", tmp_path / "nowhere" / "page.html"))
    path = weights_of(model / "transformer")
    assert "belongs to" in refusal(certify(model, "-o", path), code=2)
    edit_tensors(copy / "vae", lambda tensors: tensors.pop("decoder.conv_in.weight"))
    assert "decoder.conv_in.weight" in refusal(certify(copy))
    (tmp_path / "bad.json").write_text("{")
    assert "bad.json" in refusal(certify(model, "--caption", tmp_path / "bad.json"))
    assert not (tmp_path / "certificate.html").exists()
