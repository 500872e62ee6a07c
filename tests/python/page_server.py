"""The server with the small model, and a browser that looks at its page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
LONG_MS = 20_000  # until a picture is there, on a busy machine


def start_server(program: Path, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """The process and its address; skips where this build has no server."""
    command = [str(program), "serve", "--port", "0", "--no-state", "--device", "cpu", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if found := re.search(r"(https?://[\d.:]+)", line):
            # What it writes later has to be read, or it waits for a reader.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, found[1]
    process.wait()
    if "libmicrohttpd" in "".join(said):
        pytest.skip("this build has no server: libmicrohttpd was not found")
    raise AssertionError(f"{command} ended with {process.returncode}: {''.join(said)}")


@contextmanager
def serving(program: Path, *arguments: str) -> Iterator[str]:
    process, address = start_server(program, *arguments)
    try:
        # Until its model is there it refuses, and a browser's console notes that.
        until = time.monotonic() + LONG_MS / 1000
        while not is_ready(address) and time.monotonic() < until:
            time.sleep(0.1)
        yield address
        assert process.poll() is None, f"the server ended with {process.returncode}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def is_ready(address: str) -> bool:
    try:
        return bool(ask(address, "/ready"))
    except urllib.error.HTTPError:
        return False


def ask(address: str, path: str, body: Any = None) -> Any:
    headers = {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer) if "json" in answer.headers["Content-Type"] else answer.read()


def open_browser(play: Any) -> Any:
    # Its sandbox needs rights that a container does not have; the only page it sees is ours.
    return play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


class Visitor:
    """One person at the page: a fresh browser profile, and everything that went wrong in it."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        size = context.pop("viewport", {"width": 1440, "height": 900})
        self.context = browser.new_context(viewport=size, reduced_motion="reduce", **context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(LONG_MS)
        self.address = address
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._listen)

    def _listen(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def visit(self, template: str | None = "Empty") -> None:
        """Opens the page; a person who is new here chooses a template."""
        self.page.goto(self.address)
        self.wait_for_model()
        if template:
            self.page.locator(".card", has_text=template).click()

    def wait_for_model(self) -> None:
        self.page.locator("#model-name", has_text="demo").wait_for(state="attached")

    # --- what is on the page ---

    def caption(self) -> Any:
        return json.loads(self.page.locator("#code-text").input_value())

    def elements(self) -> list[dict[str, Any]]:
        return self.caption()["compositional_deconstruction"]["elements"]

    def set_json(self, text: str) -> None:
        self.page.locator(".views [data-view=json]").click()
        self.page.locator("#code-text").fill(text)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Where on the screen a place of the picture is, in thousandths."""
        area = self.page.locator("#frame").bounding_box()
        return area["x"] + area["width"] * x / 1000, area["y"] + area["height"] * y / 1000

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = self.page.mouse
        self.page.keyboard.down("Alt")  # no snapping: the test says where
        mouse.move(*self.point(*start))
        mouse.down()
        mouse.move(*self.point(*end), steps=4)
        mouse.up()
        self.page.keyboard.up("Alt")

    def choose(self, group: str, name: str) -> None:
        of_group = self.page.get_by_role("radiogroup", name=group, exact=True)
        of_group.get_by_role("radio", name=re.compile(f"^{name}")).click()

    def choose_speed(self, name: str) -> None:
        self.page.locator(".views [data-view=settings]").click()
        self.choose("Speed", name)

    def set_steps(self, steps: int) -> None:
        self.page.locator(".views [data-view=settings]").click()
        self.page.locator("#settings summary").click()
        self.page.get_by_label("Steps", exact=True).fill(str(steps))

    def render(self) -> None:
        self.page.locator("#render").click()

    def wait_for_picture(self, count: int = 1) -> None:
        self.page.locator(".thumb").nth(count - 1).wait_for(state="attached", timeout=LONG_MS)
        self.page.locator("#render").wait_for(timeout=LONG_MS)
