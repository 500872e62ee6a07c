"""octet map: the table, the JSON, the drawing and the page, on the CPU with tiny linears."""

import json
import subprocess
import xml.etree.ElementTree as ET

import pytest
from json_docs import check_against, documented_fields


@pytest.fixture
def octet(built_program, tmp_path):
    def run(*arguments, code=0):
        done = subprocess.run([built_program("octet"), *map(str, arguments)], capture_output=True,
                              text=True, timeout=300, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done

    return run


TINY = ["map", "--device", "cpu", "--shapes", "16,64,64;8,128,64", "--seconds", "0", "-q"]


def test_the_host_has_three_ways(octet, repository, tmp_path):
    done = octet(*TINY, "--json", "map.json", "--svg", "map.svg", "--html", "map.html")
    assert "--path auto" in done.stdout and "fake" in done.stdout
    result = json.loads((tmp_path / "map.json").read_text())
    check_against(documented_fields(repository), "map", {
        **result, "steps": [dict.fromkeys(STEP_FIELDS)], "memory": [dict.fromkeys(MEMORY_FIELDS)]})
    assert list(result["ways"]) == ["int8", "bf16", "fake"]
    assert [(row["m"], row["n"], row["k"]) for row in result["rows"]] == [(16, 64, 64),
                                                                         (8, 128, 64)]
    for row in result["rows"]:
        for figures in ("load_us", "cold_us", "tops", "ratio", "error"):
            assert list(row[figures]) == ["int8", "bf16", "fake"]
            assert all(value > 0 for value in row[figures].values())
        assert row["ratio"]["bf16"] == 1
        assert row["fastest"] == min(row["load_us"], key=row["load_us"].get)
        assert row["path"] == min(("int8", "bf16"), key=row["load_us"].get)
        assert row["layer"] is row["pixels"] is None and row["plan"] == "only"
    assert result["steps"] == result["memory"] == [] and result["layers"] is None
    page = (tmp_path / "map.html").read_text()
    assert page.startswith("<!doctype html>") and "<script" not in page and "http://" not in (
        page.replace("http://www.w3.org/2000/svg", ""))
    drawing = ET.parse(tmp_path / "map.svg").getroot()
    texts = ["".join(text.itertext()) for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "128 x 64" in texts and "fake" in texts
    assert any(text.startswith("measured on ") for text in texts)


STEP_FIELDS = ["pixels", "way", "attention", "measured", "ms", "computed_ms", "linears_ms",
               "attention_ms", "rest_ms", "seconds"]
MEMORY_FIELDS = ["way", "networks", "pixels", "weight_bytes", "work_bytes", "measured", "fits_gb"]


@pytest.mark.parametrize(("flags", "sentence"), [
    (["--shapes", "16,64"], "neither m,n,k"),
    (["--layers", "1"], "--layers is 1"),
    (["--seconds", "-1"], "--seconds"),
    (["--text-tokens", "5000"], "--text-tokens"),
])
def test_wrong_usage(octet, flags, sentence):
    done = octet("map", "--device", "cpu", *flags, code=2)
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_outputs_are_checked_before_the_work(octet, tmp_path):
    (tmp_path / "file").write_text("")
    done = octet(*TINY, "--svg", "file/map.svg", code=1)
    assert "map.svg" in done.stderr


def test_path_and_linears_are_one_choice(octet):
    done = octet("generate", "--model", "none", "-p", "a fox", "--path", "auto", "--linears",
                 "int8", code=2)
    assert "--path" in done.stderr and "--linears" in done.stderr
    assert "--path" in octet("generate", "--help").stdout


def test_other_cards_are_predicted(octet, repository, tmp_path):
    words = ["map", "--predict", "rtx3090,h200", "--shapes", "ideogram4@1024", "-q"]
    text = octet(*words[:-1]).stdout
    assert text.startswith("Use INT8 on rtx3090, h200 (steps ")
    assert text.splitlines()[1].startswith("PREDICTED")
    assert "\nrtx3090: estimated constants: " in text
    octet(*words, "--json", "cards.json", "--svg", "cards.svg")
    result = json.loads((tmp_path / "cards.json").read_text())
    check_against(documented_fields(repository), "map.predict",
                  {**result, "held_out": [dict.fromkeys(HELD_OUT_FIELDS)],
                   "public_figures": [dict.fromkeys(PUBLIC_FIELDS)]})
    assert result["public_figures"] == []  # with --check alone
    assert result["predicted"] is True
    assert [card["card"] for card in result["cards"]] == ["rtx3090", "h200"]
    assert "energy" in result["cards"][0]["estimates"]
    assert [step["pixels"] for step in result["cards"][0]["steps"]] == [1024]
    assert "PREDICTED" in (tmp_path / "cards.svg").read_text()


def test_advice_is_for_cards_that_octet_runs_on(octet):
    text = octet("map", "--predict", "4060,t4", "--shapes", "4096,6144,4096", "-q").stdout
    advice, card, not_run = text.splitlines()
    assert "t4" not in advice and " to " not in advice  # one linear has one gain
    assert card.startswith("rtx4060: INT8, predicted ")
    assert not_run.startswith("t4: Octet does not run on it (Turing: ")
    assert not_run.endswith("; of the paths of other programs bf16 is predicted to be the fastest")


def test_advice_is_about_paths_that_octet_has(octet):
    words = ["map", "--predict", "b200,h100", "--shapes", "ideogram4@1024"]
    (advice, *_) = octet(*words).stdout.splitlines()
    assert advice.startswith("Use INT8 on h100 (") and "; bf16 on b200, where FP8, which" in advice
    cards = json.loads(octet(*words, "--json", "-").stdout)["cards"]
    assert [card["steps"][0]["best"] for card in cards] == ["fp8", "int8"]


@pytest.mark.parametrize(("card", "note", "seconds"), [
    ("3060", "has 12 GB, and both networks", "adds 0.0 s"),
    ("4080", "of layers wait in host memory", "adds 0.0 s"), ("3090", "", "")])
def test_networks_that_do_not_fit_are_said(octet, card, note, seconds):
    words = ["map", "--predict", card, "--shapes", "ideogram4@1024"]
    lines = octet(*words).stdout.splitlines()
    assert note in lines[2] and seconds in lines[2] and (not note) == (lines[2] == "")
    assert ("in host memory" in octet(*words, "-q").stdout) == bool(note)


def test_an_unknown_card_is_wrong_usage(octet):
    sentence = octet("map", "--predict", "nosuch", code=2).stderr
    assert '--predict: there is no card "nosuch"; expected one of a10, a100, a6000, b2' in sentence


def test_constants_of_every_card_were_checked(repository):
    data = json.loads((repository / "src/measure/predict/cards.json").read_text())
    assert set(data["checked"]) == {card["id"] for card in data["cards"]}
    for card, checked in data["checked"].items():
        assert checked["pages"], f"{card}: no page was read"
        assert all(page.startswith("http") for page in checked["pages"])
    # What the CUDA guide says holds for no card of another maker.
    assert not [card["id"] for card in data["cards"] if not card["name"].startswith(
        ("NVIDIA ", "Tesla ")) and "capability" in (card["shared_kb"] + card["shared_block_kb"])]


HELD_OUT_FIELDS = ["what", "unit", "measured", "predicted", "error"]
PUBLIC_FIELDS = ["what", "source", "unit", "published", "predicted", "error", "remark"]

MY_CARD = {"schema": "octet.card/1", "id": "mine", "compute": "8.6", "multiprocessors": 82,
           "boost_mhz": 1695, "int8": 2048, "bf16": 512, "fp8": 0, "memory_gbs": 936,
           "memory_gib": 24, "l2_mb": 6, "watts": 350}


def test_any_shapes_and_any_card_are_predicted(octet, tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps(MY_CARD))
    done = octet("map", "--predict", "3090,t4", "--card-file", "mine.json", "--shapes",
                 "4096,13824,4608;512,4608,4608", "--json", "-")
    result = json.loads(done.stdout)
    known, turing, mine = result["cards"]
    assert [known["card"], turing["card"], mine["card"]] == ["rtx3090", "t4", "mine"]
    assert [row["m"] for row in mine["linears"]] == [4096, 512]
    assert mine["linears"][0]["us"] == known["linears"][0]["us"]  # the same constants
    assert mine["steps"] == result["memory"] == []
    assert "8.0" in turing["not_run"] and turing["linears"][0]["us"]["int8"] is None
    assert "energy" in mine["estimates"] and mine["not_run"] is None


@pytest.mark.parametrize(("change", "sentence"), [
    ({"watts": None}, '"watts" is null, expected a number from 1 to 10000'),
    ({"watts": 0}, '"watts" is 0, expected a number'),
    ({"wats": 350}, '"wats" is no constant of a card'),
    ({"compute": "8"}, '"compute" is "8", expected a compute capability'),
    ({"id": ""}, '"id" is ""'),
    ({"id": "m" * 65}, '"id" is 65 bytes long'),
    ({"int8": 1e-300}, '"int8" is 1e-300, expected a number from 0 to 65536, and none between')])
def test_a_wrong_card_file_is_one_sentence(octet, tmp_path, change, sentence):
    (tmp_path / "mine.json").write_text(json.dumps(MY_CARD | change))
    done = octet("map", "--card-file", "mine.json", code=1)
    assert sentence in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_name_of_a_card_cannot_drive_the_terminal(octet, tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps(MY_CARD | {"id": "\x1b[31mred"}))
    done = octet("map", "--card-file", "mine.json", "--shapes", "ideogram4@1024")
    assert "\x1b" not in done.stdout and "\\u001b[31mred" in done.stdout


def test_a_card_file_without_a_constant_says_which(octet, tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps({"id": "mine", "compute": "8.6"}))
    assert '"multiprocessors" is missing' in octet("map", "--card-file", "mine.json",
                                                   code=1).stderr


@pytest.mark.parametrize("flags", [
    ["--predict", "h200", "--layers", "5"], ["--predict", "h200", "--html", "map.html"],
    ["--check"], ["--predict", "h200", "--shapes", "16,64,64", "--svg", "a.svg"],
    ["--predict", "h200", "--device", "cpu"], ["--predict", "h200", "--threads", "1"]])
def test_what_does_not_go_with_predicting(octet, flags):
    assert octet("map", *flags, code=2).stderr.count("\n") == 1
