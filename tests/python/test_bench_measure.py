"""What bench/peers.py does when something fails, with stand-ins for the GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.fixture
def measurement(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "bench"))
    import peers

    nothing = SimpleNamespace(synchronize=lambda: None, empty_cache=lambda: None)
    contestants = SimpleNamespace(compile_passes=dict, poison=lambda contestant: None,
                                  check_ours=lambda contestant, rows: None,
                                  check_against=lambda contestant, ours, rows: None)
    return peers.Measurement(SimpleNamespace(cuda=nothing), SimpleNamespace(kernel="a_kernel"),
                             None, contestants, {"cases": [], "failed": [], "notes": []})


def fails(error):
    def work():
        raise error

    return work


def test_a_failed_case_is_recorded_and_the_run_goes_on(measurement, capsys):
    from octet_library import OctetError, WrongResult

    def attempt(error):
        return measurement.attempt("linear", "o", (8, 16), 4, fails(error))

    assert attempt(RuntimeError("out of memory\nand a trace")) is None
    assert measurement.report["failed"] == [
        {"section": "linear", "name": "o 8x16", "m": 4, "n": 8, "k": 16, "reason": "out of memory"}]
    assert "linear m=4 o 8x16 is left out: out of memory" in capsys.readouterr().err
    assert not measurement.own_failed
    assert attempt(OctetError("no kernel")) is None and measurement.own_failed
    with pytest.raises(WrongResult):
        attempt(WrongResult("wrong"))


def test_only_others_can_be_left_out_of_a_case(measurement):
    import peers_report
    from octet_library import OctetError, WrongResult

    rows = SimpleNamespace(m=4, weight=SimpleNamespace(n=8, k=16))
    good = SimpleNamespace(work=lambda: None, out=SimpleNamespace(clone=lambda: None))
    assert "quantize_rotated" in peers_report.OWN
    works, left_out, kernel = measurement.ready(
        {"octet": lambda: good, "bf16": fails(RuntimeError("no such shape"))}, rows)
    assert list(works) == ["octet"] and left_out == {"bf16": "no such shape"}
    assert kernel == "a_kernel"
    for name in ("octet", "quantize", "octet_plain", "octet_separate"):
        with pytest.raises(OctetError, match="m=4 n=8 k=16: no kernel"):
            measurement.ready({name: fails(OctetError("no kernel"))}, rows)
        with pytest.raises(WrongResult):
            measurement.ready({name: fails(WrongResult("wrong"))}, rows)
