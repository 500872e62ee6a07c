"""The page of `octet serve` when something goes wrong, or comes at the wrong moment. The tests play
the server's jobs, so that they choose the moment."""

from __future__ import annotations

import json
import re
from typing import Any

from page_browser import Visitor, browser, expect, keep_pictures, visitor  # noqa: F401
from serving import Server, server  # noqa: F401

JOB: dict[str, Any] = {
    "id": "played", "state": "running", "position": None, "eta_s": None, "cancelling": False,
    "created_at": 1, "started_at": 1, "ended_at": None, "request": {}, "warnings": [],
    "pictures": [], "report": None, "error": None,
}
ENDED = JOB | {"state": "completed", "ended_at": 2}


class Play:
    """The jobs of a server: each call waits in `calls` until the test answers it."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.calls: list[Any] = []
        visitor.context.route(re.compile("/v1/jobs"), lambda route: self.calls.append(route))

    def next(self, method: str = "GET", path: str = "/v1/jobs") -> Any:
        """The next call, which has to be this one."""
        for _ in range(200):
            if self.calls:
                break
            self.visitor.page.wait_for_timeout(50)
        route = self.calls.pop(0)
        assert (route.request.method, route.request.url) == (method, self.visitor.address + path)
        return route

    def next_of_job(self, more: str = "") -> Any:
        return self.next("GET", f"/v1/jobs/played{more}")

    def forget_errors(self, *statuses: int) -> None:
        """The browser tells of each of these answers by itself."""
        assert len(self.visitor.errors) == len(statuses), self.visitor.errors
        for status in statuses:
            assert str(status) in self.visitor.errors.pop(0)


def event(name: str, data: object, number: int = 1) -> dict[str, str]:
    return {"content_type": "text/event-stream",
            "body": f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"}


def error(status: int, message: str, **more: object) -> dict[str, Any]:
    return {"status": status, "json": {"error": {"message": message, **more}}}


def test_the_end_of_a_job_that_a_new_server_knows(visitor: Visitor) -> None:
    visitor.visit("Product")
    play = Play(visitor)
    visitor.render()
    play.next("POST").fulfill(json=JOB)
    play.next_of_job("/events").fulfill(**event("started", {}, 37))
    again = play.next_of_job("/events")
    assert again.request.headers["last-event-id"] == "37"
    again.fulfill(status=204)
    play.next_of_job().fulfill(
        json=JOB | {"state": "failed", "error": {"message": "the server was restarted"}})
    expect(visitor.page.locator("#render-note")).to_have_text("The server was restarted.")
    expect(visitor.page.locator("#render")).to_be_visible()


def test_cancel_that_fails_is_said(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    play = Play(visitor)
    visitor.render()
    job = play.next("POST")
    page.wait_for_timeout(600)  # longer than a second click takes
    page.locator("#cancel").click()  # the server has not answered yet
    job.fulfill(json=JOB)
    play.next_of_job().fulfill(**error(500, "the disk is full"))
    expect(page.locator("#toast")).to_have_text("The disk is full.")
    expect(page.locator("#cancel")).to_be_enabled()
    events = play.next_of_job("/events")
    page.locator("#cancel").click()
    play.next_of_job().fulfill(json=JOB)
    play.next("DELETE", "/v1/jobs/played").fulfill(json=JOB)
    events.fulfill(**event("cancelled", ENDED | {"state": "cancelled"}))
    expect(page.locator("#render-note")).to_have_text("Cancelled.")
    play.forget_errors(500)


def test_nothing_is_begun_beside_the_job_of_before(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    page.evaluate("localStorage.setItem('octet.job', JSON.stringify({ id: 'played' }))")
    play = Play(visitor)
    page.reload()
    former = play.next_of_job()
    expect(page.locator("#progress-words")).to_contain_text("Looking for the picture of before")
    expect(page.locator("#render")).to_be_hidden()
    page.keyboard.press("Control+Enter")
    former.fulfill(json=JOB)
    play.next_of_job("/events").fulfill(**event("completed", ENDED))
    expect(page.locator("#render")).to_be_visible()
    assert play.calls == []


def test_before_the_model_is_known(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    keep_pictures(page, {"seed": 4321, "text": page.locator("#code-text").input_value()})
    visitor.set_json('{"compositional_deconstruction": {"background": "", "elements": []}}')
    loading = error(503, "the model is being loaded")
    visitor.context.route("**/v1/models", lambda route: route.fulfill(**loading))
    page.reload()
    expect(page.locator("#model-name")).to_contain_text("is being loaded")
    new = page.get_by_role("button", name="New, from a template")
    expect(new).to_be_disabled()
    page.locator(".thumb").click()
    page.get_by_role("button", name="Load into editor").click()
    expect(page.locator(".box")).to_have_count(2)
    visitor.context.unroute("**/v1/models")
    expect(new).to_be_enabled()
    page.locator(".views [data-view=settings]").click()
    expect(page.get_by_role("spinbutton", name="Seed")).to_have_value("4321")
    assert visitor.errors and all("503" in each for each in visitor.errors)
    visitor.errors.clear()


def test_broken_draft_is_not_called_empty(visitor: Visitor) -> None:
    visitor.visit("Product")
    visitor.set_json('{"compositional_deconstruction": ')
    visitor.page.reload()
    visitor.wait_for_model()
    visitor.render()
    expect(visitor.page.locator("#render-note")).to_contain_text("needs mending: invalid JSON")


def test_what_is_rendered_is_what_was_there_when_it_was_asked_for(visitor: Visitor) -> None:
    page = visitor.page
    with page.expect_response("**/v1/captions/check"):
        visitor.visit("Product")
    text = page.locator("#code-text").input_value()
    page.wait_for_timeout(500)  # until nothing more is to be checked
    checks: list[Any] = []
    visitor.context.route("**/v1/captions/check", lambda route: checks.append(route))
    play = Play(visitor)
    with page.expect_request("**/v1/captions/check"):
        visitor.render()
    visitor.set_json("{")
    checks[0].continue_()
    job = play.next("POST")
    assert job.request.post_data_json["json_prompt"] == text
    job.fulfill(**error(400, "no room", param="json_prompt"))
    expect(page.locator("#render-note")).to_have_text("No room.")
    for check in checks[1:]:
        check.continue_()
    play.forget_errors(400)


def test_words_that_change_while_the_server_reads_them(visitor: Visitor) -> None:
    page = visitor.page
    words = page.locator("#prompt")
    visitor.visit()
    visitor.choose("How to describe the picture", "Plain words")
    words.fill("a dog")
    play = Play(visitor)
    visitor.render()
    job = play.next("POST")
    words.fill("a red heart")
    job.fulfill(**error(400, "it knows no dog", param="prompt"))
    expect(page.locator("#render-note")).to_have_text("It knows no dog.")
    expect(page.locator("#prompt-notes .error")).to_have_count(0)
    words.fill("a dog")
    expect(page.locator("#prompt-notes .error")).to_have_text("It knows no dog.")

    words.fill("a red heart")
    visitor.render()
    play.next("POST").fulfill(json=JOB)
    events = play.next_of_job("/events")
    visitor.choose("How to describe the picture", "Boxes")
    reading = json.dumps({"compositional_deconstruction": {"background": "", "elements": [
        {"type": "obj", "bbox": [1, 1, 500, 500], "desc": "A red heart"}]}})
    events.fulfill(**event("completed", ENDED | {"request": {"json_prompt": reading}}))
    expect(page.locator("#render")).to_be_visible()
    visitor.choose("How to describe the picture", "Plain words")
    page.locator("#to-boxes").click()
    expect(page.get_by_role("button", name="Object 1, A red heart", exact=True)).to_be_focused()
    play.forget_errors(400)


def test_focus_stays_where_the_work_is(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    rows = page.locator(".element")

    def press(row: int, name: str) -> None:
        rows.nth(row).get_by_role("button", name=name).press("Enter")

    rows.nth(0).locator(".head").press("Enter")
    for button, start, end in (("Move down", 0, 1), ("Move up", 1, 0), ("Duplicate", 0, 1)):
        press(start, button)
        expect(rows.nth(end).get_by_role("button", name=button)).to_be_focused()
    expect(rows).to_have_count(3)

    caption = visitor.caption()
    del caption["compositional_deconstruction"]["elements"][0]["bbox"]
    visitor.set_json(json.dumps(caption))
    rows.nth(0).locator(".head").press("Enter")
    press(0, "Give it a place")
    expect(rows.nth(0).get_by_label("Left, in")).to_be_focused()
    rows.nth(0).get_by_label("Colour 1:").fill("#112233")
    expect(rows.nth(0).get_by_label("Colour 1: #112233", exact=True)).to_be_focused()

    visitor.set_json(page.locator("#code-text").input_value().replace("#112233", "#aabbcc"))
    page.get_by_role("button", name="Mend what can be mended").press("Enter")
    expect(page.locator("#code-text")).to_be_focused()

    keep_pictures(page, {"seed": 1}, {"seed": 2}, {"seed": 3})
    page.reload()
    visitor.wait_for_model()
    thumbs = page.locator(".thumb")
    thumbs.nth(1).press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Take the picture away").press("Enter")
    expect(page.get_by_role("button", name="Show the boxes")).to_be_focused()
    for row, near in ((1, 1), (1, 0)):
        thumbs.nth(row).press("Enter")
        page.get_by_role("button", name="Delete").press("Enter")
        expect(thumbs.nth(near)).to_be_focused()
    thumbs.nth(0).press("Enter")
    page.get_by_role("button", name="Delete").press("Enter")
    expect(page.locator("#render")).to_be_focused()


def test_findings_are_read_aloud_when_they_change_alone(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("Product")
    text = page.locator("#code-text").input_value()
    wrong = text.replace("850, 700]", "1850, 700]")
    visitor.set_json(wrong)
    finding = page.locator(".code-finding").first
    expect(finding).to_contain_text("Line ")
    node = finding.element_handle()
    with page.expect_response("**/v1/captions/check"):
        page.locator("#code-text").fill(wrong.replace("coffee", "very large coffee"))
    page.wait_for_timeout(100)
    assert node.evaluate("node => node.isConnected")
    # It still leads to its place, which has moved.
    finding.click()
    caret = page.locator("#code-text").evaluate("field => field.selectionStart")
    assert page.locator("#code-text").input_value()[caret:].startswith("1850")
