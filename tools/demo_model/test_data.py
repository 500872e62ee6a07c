"""Scenes, captions and the tokenizer: about ten seconds."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import captions  # noqa: E402
import drawing  # noqa: E402
import feed  # noqa: E402
import scenes  # noqa: E402
import tokenizer  # noqa: E402

FONTS = "/usr/share/fonts/truetype/dejavu"
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not all((Path(FONTS) / name).exists() for name in drawing.FONT_FILES.values()),
    reason=f"the fonts that words are drawn in are not in {FONTS}; they are in fonts-dejavu-core",
)


def written(count, held_out=False):
    maker = scenes.SceneMaker(FONTS, held_out=held_out)
    for seed in range(count):
        scene = maker.make(seed)
        yield scene, captions.CaptionWriter(random.Random(seed)).write(scene)


def words_of(scene):
    return [element.text for element in scene.elements if isinstance(element, scenes.Word)]


def test_a_seed_gives_one_scene_and_one_picture():
    maker = scenes.SceneMaker(FONTS)
    assert maker.make(7) == scenes.SceneMaker(FONTS).make(7) != maker.make(8)
    assert (
        scenes.paint(maker.make(7), FONTS).tobytes() == scenes.paint(maker.make(7), FONTS).tobytes()
    )


def test_ids_are_those_of_the_tokenizers_library():
    tokenizers = pytest.importorskip("tokenizers")
    built = tokenizer.build()
    library = tokenizers.Tokenizer.from_str(json.dumps(built))
    encoder = tokenizer.Encoder(built)
    for _, caption in written(300):
        prompt = f"<|im_start|>user\n{caption}<|im_end|>\n<|im_start|>assistant\n"
        assert encoder.encode(caption) == library.encode(prompt, add_special_tokens=False).ids


def test_letters_of_words_never_merge():
    encoder = tokenizer.Encoder(tokenizer.build())
    for word in ("TEXT", "text", "Circle", "red", "A1b2C3"):
        with_word, without = (
            encoder.encode(f'{{"type":"text","bbox":[1,2,3,4],"text":"{text}","desc":"x"}}')
            for text in (word, "")
        )
        assert len(with_word) == len(without) + len(word)


def test_training_never_sees_what_is_held_out():
    hidden = {word.lower() for word in scenes.HELD_OUT_WORDS}
    for scene, _ in written(400):
        assert not hidden & {word.lower() for word in words_of(scene)}
    for scene, _ in written(100, held_out=True):
        assert {word.lower() for word in words_of(scene)} <= hidden


def test_elements_stay_on_the_picture_and_apart():
    for scene, _ in written(300):
        for element in scene.elements:
            x0, y0, x1, y1 = element.box
            assert 0 <= x0 < x1 <= scenes.SIDE and 0 <= y0 < y1 <= scenes.SIDE
        apart = [e.box for e in scene.elements if not getattr(e, "on_panel", False)]
        for i, a in enumerate(apart):
            for b in apart[:i]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_the_letters_of_the_side_task_lie_where_they_are_painted():
    """Read from left to right they are the word, and they cover its ink and little else."""
    compared = 0
    for scene, _ in written(60):
        words = [element for element in scene.elements if isinstance(element, scenes.Word)]
        letters = feed.letters_of(scene, FONTS)
        cells = scenes.SIDE // feed.CELL
        grid = letters.reshape(cells, cells, 2, 2).transpose(0, 2, 1, 3).reshape(2 * cells, -1)
        labelled = sum((grid == ord(c) - 32).sum() for c in set("".join(w.text for w in words)))
        assert labelled == (grid > 0).sum()
        for word in words:
            x0, y0, x1, y1 = word.ink
            if (x1 - x0) / len(word.text) < 24:  # narrower ones may fall between the quarters
                continue
            row = grid[(y0 + y1) // 16]
            read = [chr(32 + a) for a, b in zip(row, [0, *row]) if a and a != b]
            twice = [b for a, b in zip(" " + word.text, word.text) if a != b]
            assert "".join(twice) in "".join(read)
            compared += 1
    assert compared > 10


def test_octet_accepts_the_captions(tmp_path):
    program = Path(os.environ.get("OCTET_BUILD_DIR", ROOT / "build")) / "octet"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    for i, (_, caption) in enumerate(written(12)):
        path = tmp_path / f"{i}.json"
        path.write_text(caption)
        subprocess.run([program, "caption", "check", path], check=True, capture_output=True)
