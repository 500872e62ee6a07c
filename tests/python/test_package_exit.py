"""Python that exits while daemon threads are inside the package. Ten seconds on two cores."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import octet
import pytest
from conftest import BUILD, REPOSITORY

MODEL = REPOSITORY / "models" / "demo"
SHORT = {"wrap_text": True, "steps": 1, "size": 64}
LONG = {"wrap_text": True, "steps": 40, "size": 256}


def run(script):
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    return done.stdout


ENDING = """
import sys, threading, time
import octet

begun = threading.Event()


def callback(state):
    begun.set()
    if "{how}" == "callback":
        time.sleep(0.2)


def work():
    engine = octet.Engine({model!r}, device="cpu")
    begun_loading.set()
    while True:
        try:
            engine.render("a star", wrap_text=True, steps=2, size=64, progress=callback)
        except octet.Cancelled:
            print("cancelled", flush=True)


begun_loading = threading.Event()
threading.Thread(target=work, daemon=True).start()
(begun_loading if "{how}" == "early" else begun).wait(60)
time.sleep({pause})
print("end")
"""


@pytest.mark.parametrize("how", ["render", "callback", "early"])
@pytest.mark.parametrize("pause", [0, 0.07])
def test_a_daemon_thread_inside_render_ends_with_python(how, pause):
    """Python ends such a thread wherever it is; a thread in C++ used to abort the process."""
    script = ENDING.format(model=str(MODEL), how=how, pause=pause)
    assert "end" in run(script).splitlines()


@pytest.mark.parametrize("work", [
    "engine.render('a star', wrap_text=True, steps=2, size=64, preview=print)",
    "octet.Engine({model!r}, device='cpu')",
])  # fmt: skip
def test_a_daemon_thread_says_nothing_as_python_ends(work):
    """Cancelled was raised in it, and Python printed that."""
    script = f"""
import threading, time
import octet

engine = octet.Engine({{model!r}}, device="cpu")


def endlessly():
    while True:
        {work}


threading.Thread(target=endlessly, daemon=True).start()
time.sleep({{pause}})
"""
    for pause in (0.05, 0.15):
        run(script.format(model=str(MODEL), pause=pause).replace("print", "len"))


def test_an_object_closes_its_engine_as_python_ends():
    script = """
import octet


class Holder:
    def __del__(self):
        self.engine.close()


holder = Holder()
holder.engine = octet.Engine({model!r}, device="cpu")
"""
    run(script.format(model=str(MODEL)))


def test_a_daemon_thread_inside_a_linear_ends_with_python():
    script = """
import threading, time
import numpy as np
import octet

weight, scale = np.ones((512, 512), np.int8), np.ones(512, np.float32)
x = np.ones((256, 512), np.float32)
begun = threading.Event()


def work():
    while True:
        octet.int8_linear(x, weight, scale)
        begun.set()


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
"""
    for _ in range(3):
        run(script)


def test_subinterpreters_are_refused():
    """One that Python ended with itself waited for ever, and the attempt took the types of the main
    one away from it."""
    script = """
import octet
try:
    import _interpreters as interpreters
except ImportError:  # before 3.13
    import _xxsubinterpreters as interpreters
try:
    print(interpreters.run_string(interpreters.create(), "import octet"))
except Exception as error:
    print(error)
octet.Stop().request()
print(octet.devices()[0].name)
try:
    octet.Engine(5)
except octet.OctetTypeError as error:
    print(error)
"""
    said = run(script)
    assert "subinterpreter" in said  # from 3.12 on, Python itself says so
    assert "`model` is int 5" in said


def test_close_ends_a_render_of_another_thread():
    engine = octet.Engine(MODEL, device="cpu")
    begun, ended = threading.Event(), []

    def work():
        with pytest.raises(octet.Cancelled):
            engine.render("a star", **LONG, progress=lambda state: begun.set())
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(60)
    engine.close()
    thread.join()
    assert ended and repr(engine) == "Engine(closed)"


def test_close_in_a_callback_is_refused():
    with octet.Engine(MODEL, device="cpu") as engine:
        with pytest.raises(octet.OctetError, match="a callback may call only"):
            engine.render("a star", **SHORT, progress=lambda state: engine.close())
        assert len(engine.render("a star", **SHORT)) == 1


FORKING = """
import os, signal, threading
import octet

engine = octet.Engine({model!r}, device="cpu")
begun = threading.Event()
ended = False


def work():
    while not ended:
        engine.render("a star", wrap_text=True, steps=2, size=64, progress=lambda _: begun.set())


thread = threading.Thread(target=work)
thread.start()
begun.wait()
for _ in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(8)
        try:
            engine.render("a star", wrap_text=True, steps=1, size=64)
        except octet.OctetError as error:
            assert "forked" in str(error)
        raise SystemExit(0)
    print(os.waitpid(child, 0)[1])
ended = True
thread.join()
"""


def test_a_child_ends_while_its_parent_renders():
    """It does not wait for work that only the parent does."""
    assert run(FORKING.format(model=str(MODEL))).split() == ["0"] * 3
