"""How the page of `octet serve` looks: everything fits, has a name, and can be read in light and in
dark."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from page_browser import Visitor, browser, expect, keep_pictures  # noqa: F401
from serving import Server, server  # noqa: F401

# What fingers would miss, or what shows less than it says.
SMALL_OR_CLIPPED = """least => [...document.querySelectorAll(
    "button:not(.link), .segments label, summary, input[type=color]")]
  .filter((each) => each.checkVisibility())
  .filter((each) => {
    const { width, height } = each.getBoundingClientRect();
    return Math.min(width, height) < least || each.scrollWidth > each.clientWidth + 1;
  }).map((each) => each.outerHTML)"""

TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll(
    "dialog, .dialog-body, .pane:not(.gallery)")]
  .filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.cloneNode().outerHTML)"""

# Texts and icons whose colour is too near to what is behind them. What stands on a picture, or is
# disabled, may.
FAINT = """() => {
  const parse = (text) => {
    const [red, green, blue, alpha = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [red, green, blue], alpha };
  };
  const over = ({ rgb, alpha }, below) => rgb.map((c, i) => alpha * c + (1 - alpha) * below[i]);
  const behind = (node) => {
    if (!node) return [255, 255, 255];
    const { backgroundColor, backgroundImage } = getComputedStyle(node);
    if (backgroundImage !== "none") return null;
    const colour = parse(backgroundColor);
    if (colour.alpha === 1) return colour.rgb;
    const below = behind(node.parentElement);
    return below && over(colour, below);
  };
  const light = (rgb) => rgb.map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (colour, below) => {
    const [dark, bright] = [light(over(parse(colour), below)), light(below)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const faint = [];
  const check = (node, colour, least) => {
    const below = behind(node);
    if (!below) return;
    const found = contrast(colour, below);
    if (found < least) faint.push(`${found.toFixed(2)} ${node.outerHTML.slice(0, 120)}`);
  };
  const isTyped = (node) => node.matches(
    "textarea:not(#code-text), input:is([type=text], [type=number], [type=password])");
  for (const node of document.body.querySelectorAll("*")) {
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (node.closest(":disabled, .unseen, .letters, .layout")) continue;
    const { color } = getComputedStyle(node);
    const hasText = [...node.childNodes].some((each) =>
      each.nodeType === Node.TEXT_NODE && each.textContent.trim());
    if (node.matches("svg.icon")) check(node, color, 3);
    else if (isTyped(node)) {
      check(node, color, 4.5);
      check(node, getComputedStyle(node, "::placeholder").color, 4.5);
    } else if (hasText && node.id !== "code-text") check(node, color, 4.5);
  }
  return faint;
}"""


class Looker:
    """Looks at all that is on the page now."""

    def __init__(self, visitor: Visitor, width: int) -> None:
        self.page = visitor.page
        self.least = 32 if width <= 390 else 24

    def look(self, what: str) -> str:
        page = self.page
        assert page.evaluate(TOO_WIDE) == [], what
        assert page.evaluate(SMALL_OR_CLIPPED, self.least) == [], what
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(FAINT) == [], f"{what}, {scheme}"
        tree = page.locator("body").aria_snapshot()
        # A control without a name is a line that ends with its role.
        bare = re.findall(r"^\s*- (?:button|textbox|spinbutton|radio|slider|checkbox|combobox)"
                          r"(?: \[[^\]]*\])*:?$", tree, re.MULTILINE)
        assert bare == [], tree
        return tree

    def look_at_window(self, name: str) -> None:
        self.page.locator("dialog").wait_for()
        self.look(name)
        self.page.keyboard.press("Escape")
        expect(self.page.locator("dialog")).to_have_count(0)


LONG = "A very large poster of a lighthouse on a cliff, with an unpronounceable word"
PICTURE: dict[str, Any] = {
    "mode": "words", "prompt": LONG, "warnings": ["json_prompt: " + LONG], "look": "refusal",
    "request": {"preset": "quality", "lora": [{"name": "a-style-with-a-long-name", "strength": 1}]},
}


@pytest.mark.parametrize("width", [320, 390, 820, 1440])
def test_everything_fits_and_has_a_name(browser: Any, server: Server, width: int) -> None:
    visitor = Visitor(browser, server.url, viewport={"width": width, "height": 844})
    page = visitor.page
    looker = Looker(visitor, width)
    visitor.visit("Poster")
    keep_pictures(page, PICTURE | {"seed": 2}, PICTURE | {"seed": 4_294_967_295})
    page.reload()
    visitor.wait_for_model()
    for view in ("picture", "describe", "settings", "json", "gallery"):
        button = page.locator(f".views [data-view={view}]")
        if button.is_visible():
            button.click()
        if view == "describe":
            page.locator(".element .head").first.click()
        tree = looker.look(view)
    assert re.search(r'button "Text 1, .HELLO., 9 % from the left, 7 % from the top', tree) or (
        width <= 390
    )
    page.get_by_role("button", name="New, from").click()
    looker.look_at_window("start")
    page.get_by_role("button", name="How it works").click()
    looker.look_at_window("help")
    page.locator(".thumb").first.click()
    page.locator("dialog summary").click()
    looker.look_at_window("picture")
    page.get_by_role("button", name="Compare two").click()
    for i in range(2):
        page.locator(".thumb").nth(i).click()
    looker.look_at_window("compare")

    # All that can be red or yellow.
    text = page.locator("#code-text").input_value()
    page.locator(".views [data-view=json]").click()
    page.locator("#code-text").fill(
        text.replace("{", '{"x_notes": 1,', 1).replace("250, 700", "1250, 700"))
    expect(page.locator(".code-finding")).to_have_count(2)
    looker.look("findings")
    for kind in ("note", "error"):
        page.evaluate("kind => import('/page/dom.js').then((dom) => dom.toast('No.', kind))", kind)
        looker.look(kind)
        toast, button = (page.locator(each).bounding_box() for each in ("#toast", "#render"))
        # Nothing keeps anybody from the button.
        assert (toast["y"] + toast["height"] <= button["y"]
                or button["y"] + button["height"] <= toast["y"])
    visitor.render()
    expect(page.locator("#render-note")).to_contain_text("needs mending")
    looker.look("obstacle")
    if width > 390:
        page.locator("#render").focus()
        page.keyboard.press("Tab")  # to the views, then to what they show
        expect(page.locator(".views button:visible").first).to_be_focused()
    visitor.context.close()
    assert visitor.errors == []


def test_every_line_of_the_json_can_be_reached(browser: Any, server: Server) -> None:
    visitor = Visitor(browser, server.url, viewport={"width": 1440, "height": 500})
    page = visitor.page
    visitor.visit("Poster")
    page.locator(".views [data-view=json]").click()
    # At once: the lines are made anew when the server has looked at the caption.
    place = page.evaluate("""() => {
      const lines = [...document.querySelectorAll("#code-view .line")];
      const line = lines.find(({ textContent }) => textContent.includes("A round tree"));
      line.scrollIntoView({ block: "center" });
      const { x, y, width, height } = line.getBoundingClientRect();
      return [x + width / 2, y + height / 2];
    }""")
    page.mouse.click(*place)
    line = page.locator("#code-view .line", has_text="A round tree")
    expect(line).to_have_class(re.compile("selected"))
    page.keyboard.press("End")
    page.keyboard.type('"x": 1,')
    assert json.loads(page.locator("#code-text").input_value())
    visitor.context.close()
