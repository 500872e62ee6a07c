"""The page of `octet serve` in a real browser, with pictures of the small model."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from page_browser import LONG_MS, Visitor, browser, expect, visitor  # noqa: F401
from serving import Server, server  # noqa: F401


def test_two_drawn_boxes_become_a_picture(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit()
    visitor.drag((100, 400), (500, 800))
    page.get_by_role("textbox", name="Description").fill("A red heart")
    visitor.choose("Tool", "Draw a box for letters")
    visitor.drag((100, 100), (900, 300))
    page.get_by_role("textbox", name="Letters to paint").fill("HELLO")
    heart, hello = visitor.elements()
    assert heart["type"] == "obj" and heart["desc"] == "A red heart"
    assert hello["type"] == "text" and hello["text"] == "HELLO"
    for element, box in ((heart, [400, 100, 800, 500]), (hello, [100, 100, 300, 900])):
        # A pixel of the screen is about two thousandths.
        assert all(abs(is_ - meant) <= 3 for is_, meant in zip(element["bbox"], box, strict=True))
    expect(page.locator(".box")).to_have_count(2)

    frame = page.locator("#frame").bounding_box()
    visitor.choose_speed("Best")
    visitor.render()
    page.locator("#picture.rough").wait_for()  # a preview
    expect(page.locator("#progress-words")).to_contain_text(re.compile(r"step \d+ of 40"))
    visitor.wait_for_picture()
    expect(page.locator("#picture")).not_to_have_class(re.compile("rough"))
    expect(page.locator(".thumb")).to_have_count(1)
    assert page.locator("#frame").bounding_box() == frame
    page.locator(".thumb").click()
    expect(page.locator(".picture-dialog h2")).to_have_text("A red heart, \u201cHELLO\u201d")
    facts = page.locator(".picture-dialog dl")
    expect(facts).to_contain_text(re.compile(r"Seed\d+"))
    expect(facts).to_contain_text("256 \u00d7 256")
    expect(facts).to_contain_text(re.compile(r"INT8.*\d+ %"))
    expect(facts).to_contain_text("Best, 40 steps")


def test_cancel_then_reload_finds_gallery_and_running_job(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Poster")
    visitor.choose_speed("Fast")
    visitor.render()
    visitor.wait_for_picture()
    name = page.locator(".thumb").get_attribute("aria-label")

    visitor.set_steps(100)
    visitor.render()
    page.locator("#picture.rough").wait_for()
    page.reload()
    visitor.wait_for_model()
    expect(page.locator(".thumb")).to_have_attribute("aria-label", name)
    expect(page.locator(".box")).to_have_count(4)  # the draft
    expect(page.locator("#progress-words")).to_contain_text("of 100", timeout=LONG_MS)
    page.locator("#cancel").click()
    expect(page.locator("#render-note")).to_have_text("Cancelled.", timeout=LONG_MS)
    expect(page.locator(".thumb")).to_have_count(1)


# Presses Cancel the moment that it is there.
PRESS_AT_ONCE = """() => {
  const cancel = document.getElementById("cancel");
  new MutationObserver(() => cancel.hidden || cancel.click()).observe(cancel, {attributes: true});
}"""


def test_pressing_render_twice_does_not_cancel(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    visitor.set_steps(100)
    visitor.choose("Pictures at once", "4")  # not done by then on any machine
    page.evaluate(PRESS_AT_ONCE)
    page.locator("#render").focus()
    page.keyboard.down("Enter")
    expect(page.locator("#cancel")).to_be_focused()
    page.wait_for_timeout(600)  # longer than a second click takes
    page.keyboard.down("Enter")  # the key is held
    page.locator("#cancel").dispatch_event("click", {"detail": 2})
    expect(page.locator("#progress-words")).to_contain_text("step")
    page.keyboard.up("Enter")
    page.locator("#cancel").click()
    expect(page.locator("#render-note")).to_have_text("Cancelled.")


def test_behind_a_proxy_without_a_list_of_jobs(visitor: Visitor) -> None:
    """Nothing needs the list, and a job whose worker is gone is let go."""
    page = visitor.page
    visitor.visit("Product")
    visitor.set_steps(1)
    visitor.context.route(
        re.compile(r"/v1/jobs(\?.*)?$"),
        lambda route: route.continue_() if route.request.method == "POST"
        else route.fulfill(status=501, json={"error": {"message": "no list", "code": "no_list"}}),
    )
    visitor.context.route(
        re.compile("/v1/jobs/w7-gone"),
        lambda route: route.fulfill(status=404, json={"error": {"message": "no worker has it"}}),
    )
    page.evaluate("localStorage.setItem('octet.job', JSON.stringify({ id: 'w7-gone' }))")
    page.reload()
    expect(page.locator("#render-note")).to_contain_text("no longer knows it")
    # The browser tells of that one answer by itself.
    assert len(visitor.errors) == 1 and "404" in visitor.errors.pop()
    visitor.render()
    visitor.wait_for_picture()


CAPTION = {
    "high_level_description": "A cup \u2615 and a word. " + "It stands on a table. " * 60,
    "x_notes": {"10": 1, "2": [0.5, 1e-7]},
    "compositional_deconstruction": {
        "background": "A solid beige background in #F2E3C6",
        "elements": [
            {"type": "obj", "bbox": [401, 297, 853, 699], "desc": "A red cup", "x_id": 7},
            {"type": "text", "bbox": [101, 149, 299, 851], "text": "BREW", "desc": "Bold letters"},
            {"type": "obj", "bbox": [1, 2, 3, 4], "desc": "A dot", "color_palette": ["#C0392B"]},
        ],
    },
}


def test_picture_comes_back_with_every_number(
    visitor: Visitor, server: Server, tmp_path: Path
) -> None:
    job = server.finished(server.submit(json_prompt=CAPTION, preset="turbo", seed=12345))
    assert job["state"] == "completed", job["error"]
    file = tmp_path / "cup.png"
    file.write_bytes(server.get(job["pictures"][0]["url"]).body)

    visitor.visit()
    visitor.page.locator("#file").set_input_files(file)
    expect(visitor.page.locator(".box")).to_have_count(3)
    assert json.dumps(visitor.caption()) == json.dumps(CAPTION)
    frame = visitor.page.locator("#frame").bounding_box()
    for i, element in enumerate(CAPTION["compositional_deconstruction"]["elements"]):
        box = visitor.page.locator(".box").nth(i).bounding_box()
        top, left, bottom, right = element["bbox"]
        assert box["x"] - frame["x"] == pytest.approx(left / 1000 * frame["width"], abs=0.6)
        assert box["y"] - frame["y"] == pytest.approx(top / 1000 * frame["height"], abs=0.6)
        # One of three thousandths is smaller than its own border.
        if right - left > 10:
            width, height = (right - left) / 1000, (bottom - top) / 1000
            assert box["width"] == pytest.approx(width * frame["width"], abs=0.6)
            assert box["height"] == pytest.approx(height * frame["height"], abs=0.6)
    # It came with its seed and speed.
    expect(visitor.page.get_by_role("spinbutton", name="Seed")).to_have_value("12345")
    expect(visitor.page.locator("#picture")).to_be_visible()
    # A move changes its own numbers alone.
    visitor.page.locator(".box").nth(1).press("ArrowRight")
    moved = json.loads(json.dumps(CAPTION))
    moved["compositional_deconstruction"]["elements"][1]["bbox"] = [101, 150, 299, 852]
    assert json.dumps(visitor.caption()) == json.dumps(moved)


def test_json_and_boxes_follow_each_other(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    box = page.locator(".box").nth(1)
    before = box.bounding_box()
    text = page.locator("#code-text").input_value()
    visitor.set_json(text.replace("[400, 300, 850, 700]", "[400, 100, 850, 500]"))
    after = box.bounding_box()
    frame = page.locator("#frame").bounding_box()
    assert after["x"] - before["x"] == pytest.approx(-0.2 * frame["width"], abs=0.6)
    assert after["y"] == before["y"]
    page.wait_for_timeout(1000)  # what is typed in one go is undone in one go

    visitor.set_json(text + "}")
    expect(page.locator("#code-findings")).to_contain_text("expected nothing more")
    expect(page.locator("#broken")).to_be_visible()
    expect(page.locator(".box")).to_have_count(2)
    page.keyboard.press("Control+z")
    expect(page.locator("#broken")).to_be_hidden()
    assert page.locator("#code-text").input_value() == text.replace(
        "[400, 300, 850, 700]", "[400, 100, 850, 500]"
    )


def test_each_sentence_stands_at_its_place(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    text = page.locator("#code-text").input_value()
    visitor.set_json(text.replace("850, 700]", "1850, 700]").replace("#C0392B", "red"))
    cup = page.locator(".element").nth(1)
    cup.locator(".head").click()
    expect(cup).to_contain_text("expected a coordinate from 0 to 1000, got 1850")
    expect(cup).to_contain_text("expected a color such as")
    expect(page.locator(".box").nth(1)).to_have_class(re.compile("wrong"))
    expect(page.locator(".code-finding").first).to_contain_text("Line ")
    visitor.render()
    expect(page.locator("#render-note")).to_contain_text("needs mending")
    expect(page.locator(".thumb")).to_have_count(0)


def test_without_a_mouse(visitor: Visitor) -> None:
    page = visitor.page
    visitor.page.goto(visitor.address)
    visitor.wait_for_model()
    page.locator(".card").first.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # from Poster over Product to Empty
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_have_count(0)

    def tab_to(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.locator(f"{selector}:focus").count():
                return
        raise AssertionError(f"the Tab key never reaches {selector}")

    tab_to("#add-buttons button")
    page.keyboard.press("Enter")
    page.keyboard.type("A yellow star")  # the description has the focus
    tab_to(".box")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Alt+ArrowRight")
    assert visitor.elements() == [
        {"type": "obj", "bbox": [310, 299, 610, 600], "desc": "A yellow star"}
    ]
    page.keyboard.press("Control+Enter")
    visitor.wait_for_picture()
    page.locator(".box").focus()
    page.keyboard.press("Delete")
    assert visitor.elements() == []
    page.keyboard.press("Control+z")
    assert len(visitor.elements()) == 1
    page.keyboard.press("Escape")
    expect(page.locator(".box.selected")).to_have_count(0)


def test_what_is_missing_is_said_at_its_place(visitor: Visitor) -> None:
    page = visitor.page
    note = page.locator("#render-note")
    visitor.visit(None)
    page.keyboard.press("Escape")  # no template
    visitor.render()
    expect(note).to_contain_text("Nothing is on the picture yet.")
    page.locator("#add-buttons").get_by_role("button", name="Text").click()
    expect(page.locator(".element .name")).to_have_text("Nothing yet")
    page.locator(".swatch input").press("Delete")
    expect(page.get_by_role("button", name="Add a colour")).to_be_focused()
    visitor.render()
    expect(note).to_contain_text("Text 1 is empty")
    expect(page.get_by_role("textbox", name="Letters to paint")).to_be_focused()
    page.keyboard.type("MMMMMMMM")
    letters, box = (page.locator(f".box .letters{part}").bounding_box() for part in (" span", ""))
    assert 0.9 * box["width"] < letters["width"] <= box["width"]

    visitor.choose("How to describe the picture", "Plain words")
    page.locator("#prompt").fill("a dog in the rain")
    visitor.render()
    expect(page.locator("#prompt-notes .error")).to_contain_text("a dog in the rain")
    expect(page.locator("#prompt")).to_be_focused()
    expect(page.locator("#toast")).to_be_hidden()
    expect(page.locator("#code-findings")).to_contain_text("Plain words are rendered now")
    expect(page.locator(".thumb")).to_have_count(0)
    # The browser tells of that one answer by itself.
    assert len(visitor.errors) == 1 and "400" in visitor.errors.pop()


def test_plain_words_become_boxes(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit()
    visitor.choose("How to describe the picture", "Plain words")
    page.locator("#prompt").fill("a red heart above the word HELLO, and a fluffy dog")
    visitor.choose_speed("Fast")
    visitor.render()
    visitor.wait_for_picture()
    expect(page.locator("#render-note")).to_contain_text(re.compile("fluffy.*dog"))
    page.locator("#to-boxes").click()
    expect(page.locator(".box")).to_have_count(2)
    assert [element.get("text") for element in visitor.elements()] == [None, "HELLO"]


def workflow_png(caption: str) -> bytes:
    """A picture of 1 x 1 pixels with a ComfyUI workflow that has the caption in a node."""
    prompt = {"6": {"class_type": "CLIPTextEncode", "inputs": {"text": caption, "clip": ["4", 1]}}}
    chunks = [
        (b"IHDR", struct.pack(">II", 1, 1) + b"\x08\0\0\0\0"),
        (b"tEXt", b"prompt\0" + json.dumps(prompt).encode()),
        (b"IDAT", zlib.compress(b"\0\0")),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def test_captions_of_other_programs(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    visitor.visit()
    file = tmp_path / "workflow.png"
    file.write_bytes(workflow_png(json.dumps(CAPTION)))
    page.locator("#file").set_input_files(file)
    expect(page.locator(".box")).to_have_count(3)
    assert visitor.caption() == CAPTION
    file.write_bytes(workflow_png("a plain prompt"))
    page.locator("#file").set_input_files(file)
    expect(page.locator("#toast")).to_contain_text("workflow.png has no caption inside")
    assert visitor.caption() == CAPTION
    # What concerns the whole stands above the boxes.
    expect(page.locator("#general-notes")).to_contain_text('unknown key "x_notes"')


def test_compare_and_load(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    visitor.set_json(page.locator("#code-text").input_value().replace("coffee cup", "rabbit"))
    visitor.choose_speed("Fast")
    visitor.choose("Pictures at once", "2")
    visitor.render()
    visitor.wait_for_picture(2)
    expect(page.locator("#render-note")).to_have_text(re.compile("^The model was.*rabbit.*[.]$"))
    page.get_by_role("button", name="Compare two").click()
    for i in range(2):
        page.locator(".thumb").nth(i).click()
    expect(page.locator(".compare-dialog tbody")).to_contain_text("Seed")
    divider = page.get_by_label("Divider between picture A and picture B")
    divider.press("End")
    assert page.locator(".compare-field .above").evaluate("image => image.style.clipPath") in (
        "inset(0px)",
        "inset(0px 0% 0px 0px)",
    )
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    visitor.set_json('{"compositional_deconstruction": {"background": "", "elements": []}}')
    page.locator(".thumb").first.click()
    page.get_by_role("button", name="Load into editor").click()
    assert [element.get("text") for element in visitor.elements()] == ["BREW", None]


def test_stream_that_breaks_goes_on(visitor: Visitor) -> None:
    resumed: list[str | None] = []

    def break_first(route: Any) -> None:
        resumed.append(route.request.headers.get("last-event-id"))
        if len(resumed) > 1:
            route.continue_()
            return
        event = 'id: 1\nevent: queued\ndata: {"position": 4, "eta_s": 9}\n\n'
        route.fulfill(body=event, content_type="text/event-stream")

    visitor.context.route("**/v1/jobs/*/events", break_first)
    visitor.visit("Product")
    visitor.choose_speed("Fast")
    visitor.render()
    visitor.wait_for_picture()
    assert resumed == [None, "1"]
