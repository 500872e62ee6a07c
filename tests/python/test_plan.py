"""octet plan: where weights go by a GPU's memory, without one."""

import json

import pytest
from generating import model  # noqa: F401: a fixture
from json_docs import check_against, documented_fields
from running import octet, only_sentence  # noqa: F401: a fixture


@pytest.fixture(scope="module")
def rows_of():
    def rows(text):
        """The table's rows by their first cell, in GB."""
        lines = text.split("\n\n")[0].splitlines()
        return {float(line.split()[0]): line for line in lines if line.split()[1] == "GB"}

    return rows


def test_usual_cards_are_planned(octet, rows_of):  # noqa: F811
    text = octet("plan", "--card", "3090").stdout
    rows = rows_of(text)
    assert list(rows) == [6, 8, 10, 12, 16, 24, 32, 48, 80]
    assert "68 of 68" in rows[24] and "1.00x" in rows[24]
    assert "68 of 68" not in rows[12]
    assert "PREDICTED for NVIDIA GeForce RTX 3090" in text
    assert max(map(len, text.splitlines())) <= 100


def test_its_json_is_documented(octet, repository):  # noqa: F811
    plan = json.loads(octet("plan", "--card", "3090", "--max-memory", "8GB", "--json", "-").stdout)
    check_against(documented_fields(repository), "plan", plan)
    [row] = plan["plans"]
    assert plan["predicted"] is True and row["fits"] and row["least_bytes"] < 8e9
    taken = ["weight_bytes", "buffer_bytes", "work_bytes", "context_bytes"]
    assert sum(row[name] for name in taken) <= row["memory_bytes"] == 8e9
    assert row["step_ms"] == pytest.approx(plan["resident_ms"])  # copies take less
    assert {part["part"] for part in row["parts"]} == {
        "text_encoder", "transformer", "unconditional_transformer", "vae"}


def test_a_larger_picture_leaves_fewer_layers(octet):  # noqa: F811
    def layers(*flags):
        words = ["plan", "--max-memory", "12GB", "--json", "-", *flags]
        return json.loads(octet(*words).stdout)["plans"][0]["layers_here"]

    assert layers("--size", "2048") < layers() == layers("--size", "1024x1024")


def test_the_least_that_works_is_told(octet):  # noqa: F811
    text = octet("plan", "--max-memory", "1GB").stdout
    assert "1 GB are too few: at least " in text
    least = text.split("at least ")[1].split()[0]
    assert "too few" not in octet("plan", "--max-memory", f"{least}GB").stdout


def test_a_model_is_planned_without_times(octet, model):  # noqa: F811
    text = octet("plan", "--model", model, "--card", "3090", "--max-memory", "24GB").stdout
    assert "text_encoder" in text and "is not predicted" in text


@pytest.mark.parametrize(("flags", "part"), [
    (["--card", "nosuch"], '--card: there is no card "nosuch"'),
    (["--size", "100"], "the width of 100x100 is not a multiple of 16"),
    (["--card", "3090", "--card-file", "a.json"], "--card"),
    (["--keep", "nosuch=host"], '--keep: the model has no part "nosuch"')])
def test_wrong_usage(octet, flags, part):  # noqa: F811
    assert part in only_sentence(octet("plan", *flags), code=2)
