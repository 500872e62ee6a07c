"""What the page is made of: its files, its reading of JSON and of pictures, what it tells of the
small model, the gallery, the key of a server, and its LoRAs."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import Visitor, browser, expect  # noqa: F401
from serving import Server, server, serving  # noqa: F401

KEY = "a-key-for-this-test-alone"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@pytest.fixture(scope="module")
def page(browser: Any, server: Server) -> Iterator[Any]:
    visitor = Visitor(browser, server.url)
    visitor.visit()
    yield visitor.page
    visitor.context.close()
    assert visitor.errors == []


def test_every_file_of_the_folder_is_served(server: Server, repository: Path) -> None:
    files = [
        file
        for file in (repository / "apps/server/page").iterdir()
        if file.suffix in TYPES and file.name != "index.html"
    ]
    assert len(files) > 20
    for file in files:
        answer = server.get(f"/page/{file.name}")
        assert answer.body == file.read_bytes(), file.name
        assert answer.headers["content-type"].startswith(TYPES[file.suffix])


def through(page: Any, text: str) -> str:
    """The text that the page's own reader and writer make of it."""
    return page.evaluate(
        """async (text) => {
          const { parseJson, jsonText } = await import("/page/json_text.js");
          return jsonText(parseJson(text).value);
        }""",
        text,
    )


@pytest.mark.parametrize(
    "text",
    [
        "[1, 1.0, -0, 1e3, 0.1, 12345678901234567890, 1.50, -1E+2]",
        '{\n  "10": 1,\n  "2": 2,\n  "__proto__": 3,\n  "a b": null\n}',
        '"\\u201cquotes\\u201d, \\n and \\\\ and \\u0001"',
        "[true, false, null]",
        "{}",
    ],
)
def test_json_comes_back_as_it_was(page: Any, text: str) -> None:
    assert through(page, text) == text.replace("\\u201c", "\u201c").replace("\\u201d", "\u201d")


@pytest.mark.parametrize("example", ["poster", "product", "photo", "icons", "sticker", "sign"])
def test_examples_come_back_as_they_were(page: Any, repository: Path, example: str) -> None:
    text = (repository / f"examples/{example}.json").read_text(encoding="utf-8")
    assert through(page, text) + "\n" == text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 1, "a": 2}', 'the key "a" is there twice'),
        ('{"a" 1}', 'expected ":", found "1"'),
        ("[1, 2", 'expected "," or "]", found the end'),
        ("[01]", 'expected "," or "]", found "1"'),
        ('"open', "the text in quotes is not closed, or has a wrong escape"),
        ("[" * 200, "it is nested too deeply"),
        ("", "expected a value, found the end"),
    ],
)
def test_broken_json_is_named(page: Any, text: str, fault: str) -> None:
    found = page.evaluate(
        """async (text) => {
          const { parseJson } = await import("/page/json_text.js");
          try { parseJson(text); } catch (fault) { return fault.message; }
        }""",
        text,
    )
    assert found == fault


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def texts_in(page: Any, file: bytes) -> dict[str, str] | str | None:
    return page.evaluate(
        """async (base64) => {
          const { readPictureTexts } = await import("/page/picture_text.js");
          const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
          try {
            const found = await readPictureTexts(bytes);
            return found && Object.fromEntries(found.texts);
          } catch (error) { return "error"; }
        }""",
        base64.b64encode(file).decode(),
    )


PNG_BEGIN = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">II", 16, 8) + b"\x08\2\0\0\0")


def test_texts_of_a_png(page: Any) -> None:
    file = PNG_BEGIN + b"".join(
        [
            chunk(b"tEXt", b"plain\0caf\xe9 \x80"),
            chunk(b"zTXt", b"packed\0\0" + zlib.compress(b"long " * 300)),
            chunk(b"iTXt", b"utf8\0\0\0\0\0" + "\u65e5\u672c".encode()),
            chunk(b"iTXt", b"both\0\1\0en\0name\0" + zlib.compress("\u2615".encode())),
            chunk(b"IEND", b""),
        ]
    )
    texts = {"plain": "caf\xe9 \x80", "packed": "long " * 300, "utf8": "\u65e5\u672c"}
    assert texts_in(page, file) == texts | {"both": "\u2615"}
    # However much of it is missing, it ends.
    for length in range(len(PNG_BEGIN), len(file), 7):
        assert texts_in(page, file[:length]) is not None
    assert texts_in(page, b"GIF89a") is None


def test_damaged_and_swollen_texts_are_refused(page: Any) -> None:
    assert texts_in(page, PNG_BEGIN + chunk(b"zTXt", b"k\0\0no zlib")) == "error"
    bomb = zlib.compress(bytes(17 << 20))
    assert texts_in(page, PNG_BEGIN + chunk(b"zTXt", b"k\0\0" + bomb)) == "error"
    two_halves = chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(9 << 20)))
    assert texts_in(page, PNG_BEGIN + 2 * two_halves) == "error"


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_captions_in_files_of_octet(page: Any, server: Server, kind: str) -> None:
    formats = server.get("/v1/models").json["data"][0]["octet"]["formats"]
    if kind not in formats:
        pytest.skip(f"this build writes no {kind}")
    caption = {
        "high_level_description": "A <red> heart & \u2764",
        "compositional_deconstruction": {"background": "White", "elements": []},
    }
    request = {"json_prompt": caption, "steps": 1, "output_format": kind, "seed": 3}
    job = server.finished(server.submit(**request))
    assert job["state"] == "completed", job["error"]
    texts = texts_in(page, server.get(job["pictures"][0]["url"]).body)
    assert isinstance(texts, dict)
    assert json.loads(texts["caption"]) == caption
    assert texts["seed"] == "3" and texts["steps"] == "1"


# What the guide for a person says of the small model, by what it answers.
GUIDE = """async ({ objects, characters }) => {
  const { Guide } = await import("/page/guide.js");
  const guide = new Guide();
  guide.take({ prompt: "words" });
  const thing = (desc) => new Map([["type", "obj"], ["desc", desc]]);
  const letters = (text) => guide.aboutLetters(new Map([["type", "text"], ["text", text]]));
  const isGood = (text) => letters(text).rule === undefined;
  const most = (test) => [...Array(50).keys()].filter(test).at(-1);
  const ascii = [...Array(95).keys()].map((i) => String.fromCharCode(32 + i));
  const things = guide.ideasFor(thing(""));
  return {
    colours: Object.fromEntries(things.map((each) => [each, guide.coloursOf(each)])),
    unknown: objects.filter((each) => guide.ideasFor(thing(`A ${each}`)).length > 0),
    characters: ascii.filter(isGood),
    letters: most((count) => isGood("A".repeat(count))),
    elements: most((count) => guide.aboutAll(Array(count)) === ""),
  };
}"""
BLUE = "#285AD7"  # what has no colour of its own


def test_guide_tells_what_the_small_model_paints(page: Any, repository: Path) -> None:
    model = repository / "models/demo"
    words = json.loads((model / "words.json").read_text(encoding="utf-8"))
    trained = json.loads((model / "octet_trained_for.json").read_text(encoding="utf-8"))
    assert page.evaluate(GUIDE, trained) == {
        "colours": {each["noun"]: each["colours"] or [BLUE] for each in words["things"]},
        "unknown": [],
        "characters": sorted(trained["characters"]),
        "letters": trained["most_letters"],
        "elements": trained["most_elements"],
    }


# A full gallery; its oldest picture makes room while a window shows it, and is let go after that.
EVICT = """async () => {
  const live = new Set();
  const [make, revoke] = [URL.createObjectURL, URL.revokeObjectURL];
  URL.createObjectURL = (blob) => { const url = make.call(URL, blob); live.add(url); return url; };
  URL.revokeObjectURL = (url) => { live.delete(url); revoke.call(URL, url); };
  const { Gallery } = await import("/page/gallery.js");
  const { keepPicture, kMostPictures, allPictures } = await import("/page/store.js");
  const picture = (made) => ({ id: `p/${made}`, made, blob: new Blob(["x"]), width: 8, height: 8,
    seed: made, format: "png", text: "{}", mode: "boxes", request: {} });
  await keepPicture(picture(0));
  const database = await new Promise((done) => {
    const request = indexedDB.open("octet", 1);
    request.onsuccess = () => done(request.result);
  });
  const transaction = database.transaction("pictures", "readwrite");
  for (let i = 1; i < kMostPictures; ++i) transaction.objectStore("pictures").put(picture(i));
  await new Promise((done) => (transaction.oncomplete = done));
  const gallery = new Gallery({ show() {} });
  await gallery.update();
  const full = live.size;
  const window = gallery.open(gallery.pictures.at(-1));
  gallery.pick(new Set(["p/0", "p/1"]));
  await keepPicture(picture(kMostPictures));
  await keepPicture(picture(kMostPictures + 1));
  await gallery.update();
  const shown = live.size;
  window.remove();
  await gallery.update();
  return { full, shown, after: live.size, most: kMostPictures, picked: gallery.picked.size,
    kept: (await allPictures()).length };
}"""


def test_gallery_lets_old_pictures_go(page: Any) -> None:
    found = page.evaluate(EVICT)
    most = found["most"]
    assert found == {
        "full": most, "shown": most + 1, "after": most, "most": most, "picked": 0, "kept": most,
    }


# As browsers do where somebody allows a page no data.
BLOCKED = """for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException(name, "SecurityError"); } });
}"""


def test_a_server_that_wants_a_key(browser: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"somebody {KEY}\n")
    keys.chmod(0o600)
    with serving("--keys", keys) as server:
        visitor = Visitor(browser, server.url)
        page = visitor.page
        page.goto(server.url)
        page.get_by_label("Key", exact=True).fill("wrong")
        page.get_by_role("button", name="Use key").click()
        expect(page.locator("dialog")).to_contain_text("was not accepted")
        page.get_by_label("Key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        visitor.wait_for_model()
        assert page.evaluate("sessionStorage.getItem('octet.key')") == KEY
        assert page.evaluate("JSON.stringify(localStorage)").find(KEY) == -1
        page.locator(".card", has_text="Product").click()
        visitor.choose_speed("Fast")
        visitor.render()
        visitor.wait_for_picture()
        # Each 401 is in a browser's console, and nothing else is.
        assert all("401" in error for error in visitor.errors)
        visitor.context.close()

        # The key, the caption and the pictures are there until the page is left.
        visitor = Visitor(browser, server.url)
        visitor.context.add_init_script(BLOCKED)
        page = visitor.page
        page.goto(server.url)
        page.get_by_label("Key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        visitor.wait_for_model()
        page.locator(".card", has_text="Product").click()
        visitor.set_steps(1)
        visitor.render()
        visitor.wait_for_picture()
        assert all("401" in error for error in visitor.errors)
        visitor.context.close()


def safetensors(tensors: dict[str, list[int]]) -> bytes:
    """A file of these shapes, all zeros."""
    header: dict[str, Any] = {}
    size = 0
    for name, shape in tensors.items():
        end = size + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [size, end]}
        size = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


def test_a_lora_is_chosen(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "ink.safetensors"
    linear = "transformer.layers.0.attention.o"
    file.write_bytes(safetensors(
        {f"{linear}.lora_A.weight": [2, 512], f"{linear}.lora_B.weight": [512, 2]}))
    long = "a_name_that_does_not_fit_into_a_line"
    with serving("--lora", f"ink={file}", "--lora", f"{long}={file}") as server:
        visitor = Visitor(browser, server.url)
        page = visitor.page
        visitor.visit("Product")
        visitor.set_steps(1)
        strength = page.get_by_label("Strength of ink")
        expect(strength).to_be_disabled()
        page.get_by_role("checkbox", name="ink").check()
        strength.fill("0.5")
        row = page.locator(".lora", has=strength)
        expect(row.locator("output")).to_have_text("0.50")
        name = page.locator(".lora label", has_text=long)
        assert name.evaluate("label => label.scrollWidth <= label.clientWidth")
        with page.expect_request(re.compile("/v1/jobs$")) as asked:
            visitor.render()
        assert asked.value.post_data_json["lora"] == [{"name": "ink", "strength": 0.5}]
        visitor.wait_for_picture()
        page.locator(".thumb").click()
        expect(page.locator(".picture-dialog dl")).to_contain_text("LoRAsink \u00d7 0.5")
        page.keyboard.press("Escape")
        page.get_by_role("checkbox", name="ink").uncheck()
        page.locator(".thumb").click()
        page.get_by_role("button", name="Load into editor").click()
        expect(page.get_by_role("checkbox", name="ink")).to_be_checked()
        expect(strength).to_have_value("0.5")
        visitor.context.close()
        assert visitor.errors == []
