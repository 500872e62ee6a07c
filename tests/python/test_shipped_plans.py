"""The plans that come with the program are what `ship_plans` writes."""

import json
import subprocess
from pathlib import Path

import pytest

SHIPPED = Path(__file__).parents[2] / "src/tune/shipped"


@pytest.fixture
def ship_plans(built_program):
    def run(*words, ok=True):
        done = subprocess.run([built_program("ship_plans"), *map(str, words)],
                              capture_output=True, text=True)
        assert (done.returncode == 0) == ok, done.stderr
        return done.stdout if ok else done.stderr

    return run


def test_predicted_plans_are_what_the_model_predicts(ship_plans):
    text = (SHIPPED / "predicted_plans.json").read_text()
    cards = json.loads(text)["cards"]
    assert {card["source"] for card in cards} == {"predicted"}
    [(date, commit)] = {(card["date"], card["commit"]) for card in cards}
    assert ship_plans("predicted", date, commit) == text


def plan(kernel, references):
    return {"kernel": kernel, "us": 31.5, "under_load": True, "runner_up": "", "runner_up_us": 0,
            "reference_us": references, "date": "2026-01-31T12:00:00Z"}


@pytest.fixture
def plan_file(tmp_path):
    def write(plans):
        header = {"schema": 2, "device": "NVIDIA Made Up", "multiprocessors": 7, "driver": "1.0",
                  "toolkit": "2.0", "library": "0.1.0"}
        path = tmp_path / "nvidia_made_up.json"
        path.write_text(json.dumps({"header": header, "plans": plans}))
        return path

    return write


def test_a_plan_file_becomes_a_measured_card(ship_plans, plan_file):
    thorough = {"quantize": 2.5}
    path = plan_file({
        "m4096 n4608 k4608 BF16 rows": plan("wide", thorough),
        "m4608 n4608 k4608 BF16 rows": plan("wide", thorough),
        "m4096 n24576 k4608 BF16+swiglu rows": plan("tall", thorough),
        "m4096 n24576 k4608 BF16 rows": plan("flat", thorough),
        "m256 n4608 k4608 BF16 rows": plan("hasty", {}),
    })
    before = json.loads((SHIPPED / "measured_plans.json").read_text())["cards"]
    cards = json.loads(ship_plans("measured", path, "2026-02-01", "abcdef0"))["cards"]
    assert cards[:-1] == before
    assert cards[-1] == {
        "device": "NVIDIA Made Up", "names": ["NVIDIA Made Up"], "multiprocessors": 7,
        "source": "measured", "layout": "rows", "date": "2026-02-01", "commit": "abcdef0",
        "plans": {"4608x4608": {"wide": [4096, 4608]},
                  "24576x4608+swiglu": {"tall": [4096]},
                  "24576x4608": {"flat": [4096]}}}


def test_what_octet_tune_did_not_write_is_refused(ship_plans, plan_file, tmp_path):
    hasty = plan_file({"m256 n4608 k4608 BF16 rows": plan("hasty", {})})
    assert "has no plan of `octet tune`" in ship_plans("measured", hasty, "d", "c", ok=False)
    two = plan_file({"m1 n8 k16 BF16 rows": plan("a", {"quantize": 1}),
                     "m2 n8 k16 BF16 others": plan("a", {"quantize": 1})})
    assert "as rows and as others" in ship_plans("measured", two, "d", "c", ok=False)
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    assert "damaged.json" in ship_plans("measured", damaged, "d", "c", ok=False)
    assert "usage" in ship_plans("guessed", ok=False)


def test_only_a_device_with_a_choice_is_tuned(ship_plans):
    assert "was not measured" in ship_plans("tune", "cpu", ok=False)
