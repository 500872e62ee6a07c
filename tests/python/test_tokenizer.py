"""Octet's tokenizer gives the ids that the `tokenizers` library gives.

The vocabulary is trained here, on this repository's own texts and the samples below, with the
normalizer, splitting rule and added tokens of Qwen's. A second vocabulary has a merge for every
pair of bytes, so that a text which is cut in another place gets other ids. Code points are those
of Unicode 3.2 and a few later blocks: the two libraries carry tables of different Unicode
versions, and all of them agree on these. OCTET_QWEN_TOKENIZER names a tokenizer.json to compare
with instead, Qwen's own.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import unicodedata
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<think>", "</think>", "<think>>"]

SAMPLES = [
    "The quick brown fox jumps over the lazy dog, doesn't it? WE'LL SEE; they're sure I'd've.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Straße, Maß, Öl.",
    "Portez ce vieux whisky au juge blond qui fume ; l'été, à Noël, où ça ? PÊCHE DU JOUR",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń. Işık ılık süt içti.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Їжак, ґанок, йод.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ἄνθρωπος, ὁδός",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق ٠١٢٣٤٥٦٧٨٩",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה שָׁלוֹם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले ०१२३४५६७८९",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๐๑๒๓",
    "いろはにほへと ちりぬるを 我が世誰ぞ 常ならむ ガギグゲゴ ﾊﾟﾋﾟ 入場無料",
    "天地玄黃,宇宙洪荒。日月盈昃,辰宿列張。视野无限广,窗外有蓝天。",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. \u1112\u1161\u11ab",
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪🇯🇵 ❤️‍🔥 1️⃣ ☕️ 🧑‍🚀 🫠",
    "x² + ½ = Ⅷ ≠ ③ ∑ᵢ αᵢ·βᵢ → ∞ °C µm Å Å ﬁ ﬆ",
    "\tif (a != b) {\r\n\t\treturn x[i]->y;  // done\r\n\t}\n\n\n  end  \n",
    '{"high_level_description":"A red cube.","elements":[{"type":"obj","bbox":[180,300,930,620],'
    '"desc":"A vendor in her fifties.","color_palette":["#F6C945","#2F4858"]}]}',
    '{"type":"text","text":"VIER\\nSAITEN","desc":"Halle 3 · 20:15 · 入場無料"}',
]
WHITE_SPACE = [
    *map(chr, [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]),
    *map(chr, [0x2028, 0x2029, 0x202F, 0x205F, 0x3000]),
]
LOOKS_LIKE_SPACE = list("\x1c\x1d\x1e\x1f\u180e\u200b\u200c\u200d\u2060\ufeff")
LATER_BLOCKS = [(0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F900, 0x1F9FF), (0x1E900, 0x1E943),
                (0x1B00, 0x1B4B), (0x07C0, 0x07F7), (0x10900, 0x10915), (0x1D165, 0x1D172)]


def code_points() -> list[str]:
    old = unicodedata.ucd_3_2_0
    found = [chr(c) for c in range(0x110000) if old.category(chr(c)) not in ("Cn", "Cs", "Co")]
    return found + [chr(c) for low, high in LATER_BLOCKS for c in range(low, high + 1)]


def with_rules_of_qwen(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def with_added_tokens(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens([AddedToken(content, normalized=False) for content in PLAIN])
    return tokenizer


def trained(repository: Path) -> Tokenizer:
    tokenizer = with_rules_of_qwen(models.BPE(
        continuing_subword_prefix="", end_of_word_suffix=""))
    texts = [path.read_text(encoding="utf-8") for path in sorted(repository.glob("*.md"))]
    tokenizer.train_from_iterator(texts + SAMPLES * 3, trainers.BpeTrainer(
        vocab_size=4000, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return with_added_tokens(tokenizer)


def with_every_pair_of_bytes() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(left, right) for left in alphabet for right in alphabet]
    random.Random(0).shuffle(merges)
    tokens = alphabet + [left + right for left, right in merges]
    return with_added_tokens(with_rules_of_qwen(models.BPE(
        vocab={token: number for number, token in enumerate(tokens)}, merges=merges)))


@pytest.fixture(scope="module", params=["words", "pairs"])
def reference(repository: Path, request) -> Tokenizer:
    if request.param == "pairs":
        return with_every_pair_of_bytes()
    if path := os.environ.get("OCTET_QWEN_TOKENIZER"):
        return Tokenizer.from_file(path)
    return trained(repository)


@pytest.fixture(scope="module")
def saved(reference: Tokenizer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    reference.save(str(path))
    return path


@pytest.fixture
def octet_ids(built_program, tmp_path: Path):
    def encode(tokenizer: Path, texts: list[str]) -> list[list[int]]:
        (tmp_path / "texts.json").write_text(json.dumps(texts))
        command = [built_program("tokenize"), tokenizer, tmp_path / "texts.json",
                   tmp_path / "ids.json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if "has no utf8proc" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "ids.json").read_text())

    return encode


def assert_same(reference: Tokenizer, texts: list[str], ours: list[list[int]]) -> None:
    assert len(ours) == len(texts)
    for text, ids in zip(texts, ours):
        theirs = reference.encode(text, add_special_tokens=False).ids
        assert ids == theirs, ascii(text)


def test_the_vocabulary_is_worth_comparing(reference: Tokenizer) -> None:
    assert reference.get_vocab_size() > 3000
    assert len(reference.encode(SAMPLES[0]).ids) < len(SAMPLES[0]) * 0.75


def test_texts_of_many_scripts(reference, saved, octet_ids) -> None:
    pieces = [*SAMPLES, *(unicodedata.normalize("NFD", text) for text in SAMPLES)]
    pieces += [text.upper() for text in SAMPLES] + [json.dumps(text) for text in SAMPLES]
    texts = ["", *pieces]
    chosen = random.Random(1)
    for _ in range(1000):  # cut anywhere, also inside of clusters, and joined anyhow
        left, right = chosen.choice(pieces), chosen.choice(pieces)
        texts.append(left[chosen.randrange(len(left)):] + right[: chosen.randrange(len(right))])
    assert_same(reference, texts, octet_ids(saved, texts))


def test_every_code_point_in_every_place(reference, saved, octet_ids, request) -> None:
    points = code_points()
    assert len(points) > 90_000
    if request.node.callspec.params["reference"] == "pairs":
        points = points[::8]  # its rules are those of the other, which sees them all
    places = [f"x{c} {c}{c}1{c}\n'{c} {c}a {c}{c}\u0301.{c}" for c in points]
    texts = ["".join(places[i : i + 40]) for i in range(0, len(places), 40)]
    assert_same(reference, texts, octet_ids(saved, texts))


def test_random_unicode(reference, saved, octet_ids) -> None:
    points = code_points()
    marks = [c for c in points if unicodedata.combining(c)]
    chosen = random.Random(2)
    texts = []
    for _ in range(1500):
        kinds = [points, marks, WHITE_SPACE, list("aeiousAEIOUS '\u017f.,-\r\n 0")]
        texts.append("".join(
            chosen.choice(chosen.choice(kinds)) for _ in range(chosen.randrange(1, 60))))
    assert_same(reference, texts, octet_ids(saved, texts))


def test_white_space_and_control_characters(reference, saved, octet_ids) -> None:
    controls = [chr(c) for c in (*range(0x20), 0x7F, *range(0x80, 0xA0))]
    alphabet = WHITE_SPACE + LOOKS_LIKE_SPACE
    texts = [f"a{c}b{c}{c}c {c}.{c}" for c in alphabet + controls]
    chosen = random.Random(3)
    for _ in range(1000):
        text = [chosen.choice(alphabet + ["\n", "\r", " ", " "]) for _ in range(8)]
        text.insert(chosen.randrange(8), chosen.choice(["word", "7", "!?", "é", ""]))
        texts.append("".join(text))
    assert_same(reference, texts, octet_ids(saved, texts))


def test_contractions_in_mixed_case(reference, saved, octet_ids) -> None:
    endings = ["s", "t", "re", "ve", "m", "ll", "d", "\u017f", "r", "v", "l", "lt", "x", ""]
    texts = []
    for ending in endings:
        for spelled in {ending, ending.upper(), ending.title(), ending.swapcase()}:
            for before in ("it", "IT", "", " ", "1", "''", "\u2019"):
                for after in ("", "s", " ", "'", "1", "\u0301"):
                    texts.append(f"{before}'{spelled}{after}")
    assert_same(reference, texts, octet_ids(saved, texts))


def test_added_tokens_inside_of_text(reference, saved, octet_ids) -> None:
    parts = [*SPECIAL, *PLAIN, "<|im_", "<|", "|>", "<", ">", " ", "\n", "think", "e", "\u0301",
             "<think", "user\n", "入", "<|IM_START|>"]
    chosen = random.Random(4)
    texts = ["".join(chosen.choices(parts, k=chosen.randrange(1, 9))) for _ in range(1000)]
    ours = octet_ids(saved, texts)
    assert_same(reference, texts, ours)
    added = {reference.token_to_id(content) for content in SPECIAL + PLAIN} - {None}
    assert len(added) > 8
    assert added <= {token for ids in ours for token in ids}


def test_long_units(reference, saved, octet_ids) -> None:
    chosen = random.Random(5)
    texts = ["a" * 30_000, " " * 30_000, "\u0301\u0323" * 5_000 + "e", "-" * 9_999 + "\n" * 999,
             "".join(chosen.choices("theandofing", k=50_000)),
             "".join(chosen.choices("\u0301\u0308\u0302\u0323\u0327", k=5_000))]
    assert_same(reference, texts, octet_ids(saved, texts))


def rewritten(saved: Path, folder: Path, change) -> Path:
    content = json.loads(saved.read_text(encoding="utf-8"))
    change(content)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(content))
    return path


def with_old_merges(content) -> None:
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]


def with_line_ends_in_the_regex(content) -> None:
    pattern = content["pre_tokenizer"]["pretokenizers"][0]["pattern"]
    pattern["Regex"] = pattern["Regex"].replace(r"\r", "\r").replace(r"\n", "\n")


def with_an_inverted_split(content) -> None:
    content["pre_tokenizer"]["pretokenizers"][0].update(behavior="Removed", invert=True)


def without_normalizer(content) -> None:
    content["normalizer"] = None


def with_a_sequence_of_normalizers(content) -> None:
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}


@pytest.mark.parametrize("change", [
    with_old_merges, with_line_ends_in_the_regex, with_an_inverted_split, without_normalizer,
    with_a_sequence_of_normalizers,
])
def test_other_ways_to_write_the_file(saved, octet_ids, tmp_path, change) -> None:
    path = rewritten(saved, tmp_path, change)
    texts = [*SAMPLES, *(unicodedata.normalize("NFD", text) for text in SAMPLES), "<think>\r\n\r x"]
    assert_same(Tokenizer.from_file(str(path)), texts, octet_ids(path, texts))


def test_octets_own_tokenizer_loads_in_the_library(built_program, octet_ids, tmp_path) -> None:
    path = tmp_path / "own.json"
    subprocess.run([built_program("tokenize"), "--make", path], check=True, timeout=60)
    theirs = Tokenizer.from_file(str(path))
    assert theirs.get_vocab_size() == max(theirs.get_vocab().values()) + 1  # no gaps
    texts = [*SAMPLES, "<|im_start|>user\n" + SAMPLES[-2] + "<|im_end|>\n<|im_start|>assistant\n"]
    assert_same(theirs, texts, octet_ids(path, texts))
    assert theirs.decode(theirs.encode(SAMPLES[0]).ids) == SAMPLES[0]
