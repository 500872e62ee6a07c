"""`octet certify --stamp`: what it leaves in a checkpoint, and what `octet inspect` says of it."""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

from certifying import (
    NETWORKS,
    certify,  # noqa: F401: a fixture
    files_in,
    octet,  # noqa: F401: a fixture
    passed,
)
from generating import (
    copy,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
    rewrite,
    shard,
    weights_of,
)
from json_docs import documented_fields, fields_of
from running import only_sentence
from safetensors.torch import load_file, safe_open, save_file


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


def test_the_small_model_is_stamped(octet, repository):
    stamps = inspected(octet, repository / "models" / "demo")["certificates"]
    assert len(stamps) == 2 and len({stamp["digest"] for stamp in stamps}) == 1
    assert all(stamp["verdict"] == "pass" and stamp["weights_unchanged"] for stamp in stamps)


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
    assert "the weights are the certified ones" in octet("inspect", copy).stdout
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
    assert str(copy / NETWORKS[1]) in only_sentence(certify(copy, "--stamp"))
    assert not (tmp_path / "certificate.html").exists()  # it is known before anything is rendered


def test_links_are_not_stamped(certify, copy):
    own_files(copy)
    path = weights_of(copy / "transformer")
    blob = copy / "blob"
    path.rename(blob)
    path.symlink_to(blob)
    before = blob.read_bytes()
    assert "is a symbolic link" in only_sentence(certify(copy, "--stamp"))
    assert blob.read_bytes() == before and path.is_symlink()


def test_gguf_takes_no_stamp(certify, model, tmp_path):
    pytest.importorskip("gguf")
    from model_files import tensors_of, write_gguf

    alone = write_gguf(tmp_path / "t.gguf", tensors_of(model))
    before = alone.read_bytes()
    sentence = only_sentence(certify(alone, "--base", model, "--stamp", "--guidance", 1))
    assert str(alone) in sentence
    assert alone.read_bytes() == before


def test_a_full_disk_leaves_the_checkpoint_alone(certify, copy, tmp_path):
    """The limit on the size of files stands for it: the page is smaller, a stamped file larger."""
    import resource

    own_files(copy)
    before = files_in(copy)
    limit = min(weights_of(copy / part).stat().st_size for part in NETWORKS)
    done = certify(copy, "--stamp", "-o", "/dev/null", "-n", 1, "--steps", 1, "--size", "8x6",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
                   restore_signals=False)
    assert done.returncode == 1 and str(copy) in done.stderr
    assert "PASS" in done.stdout  # what was found is not lost
    assert files_in(copy) == before
