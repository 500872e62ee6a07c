"""A browser, and somebody who looks at the page of `octet serve` with it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Server

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page is tested with playwright, which is not installed"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
if CHROMIUM is None:
    pytest.skip("the page is tested in chromium, which is not installed", allow_module_level=True)

expect = playwright.expect
LONG_MS = 20_000  # until a picture is there, on a busy machine
expect.set_options(timeout=LONG_MS)


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


# Each as the gallery keeps it, newest first.
KEEP = """async (pictures) => {
  const { keepPicture } = await import("/page/store.js");
  const canvas = new OffscreenCanvas(256, 256);
  canvas.getContext("2d");
  const blob = await canvas.convertToBlob();
  for (const [i, more] of pictures.entries()) {
    await keepPicture({ id: `kept/${i}`, made: pictures.length - i, blob, width: 256, height: 256,
      format: "png", text: "{}", mode: "boxes", request: {}, ...more });
  }
}"""


def keep_pictures(page: Any, *pictures: dict[str, Any]) -> None:
    """Puts pictures into the gallery, which are there when the page is loaded again."""
    page.evaluate(KEEP, pictures)


@pytest.fixture(scope="module")  # one at a time: of each module that imports it
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as play:
        # Its sandbox needs rights that a container does not have; the only page it sees is ours.
        # Scrollbars take room, as they do for most people with a mouse.
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"],
            ignore_default_args=["--hide-scrollbars"],
        )
        yield browser
        browser.close()


@pytest.fixture
def visitor(browser: Any, server: Server) -> Iterator[Visitor]:
    visitor = Visitor(browser, server.url)
    yield visitor
    visitor.context.close()
    assert visitor.errors == []
