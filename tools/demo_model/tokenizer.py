"""The model's own tokenizer: byte-level BPE with Qwen's rule for splitting text.

Pieces of JSON that every caption has are added tokens, so a caption is short. A word of the
vocabulary is one token after a space, by merges that all begin at the space: the letters of a word
to be painted follow a quote and never merge, so the model sees its spelling.
"""

import re

from captions import vocabulary

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
JSON_PIECES = [
    '{"high_level_description":"',
    '","style_description":{"aesthetics":"',
    '{"style_description":{"aesthetics":"',
    '","lighting":"',
    '","photo":"',
    '","medium":"',
    '","art_style":"',
    '"},"compositional_deconstruction":{"background":"',
    '"]},"compositional_deconstruction":{"background":"',
    '","compositional_deconstruction":{"background":"',
    '{"compositional_deconstruction":{"background":"',
    '","elements":[',
    '{"type":"obj","bbox":[',
    '{"type":"text","bbox":[',
    '{"type":"obj","desc":"',
    '{"type":"text","text":"',
    '],"desc":"',
    '],"text":"',
    '","desc":"',
    '","color_palette":["#',
    '","#',
    '"]}',
    '"]},',
    '"},',
    '"]}]}}',
    '"}]}}',
    "]}}",
    "user\n",
    "assistant\n",
    *[f"{digit}," for digit in range(10)],
]
CHAT_TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content is string %}{{- message.content }}{%- else %}"
    "{%- for part in message.content %}{%- if 'text' in part %}{{- part.text }}{%- endif %}"
    "{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ASCII_SPLIT = re.compile(
    SPLIT.replace(r"\p{L}", "A-Za-z")
    .replace(r"[A-Za-z]", "[A-Za-z]")
    .replace("A-Za-z+", "[A-Za-z]+")
    .replace(r"|\p{N}|", "|[0-9]|")
    .replace(r"\p{N}", "0-9")
)


def byte_alphabet() -> list[str]:
    """The character that stands for each byte (GPT-2's rule)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 0
    for byte in range(256):
        if byte in printable:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(256 + extra)
            extra += 1
    return [letters[byte] for byte in range(256)]


def build() -> dict:
    """The content of tokenizer.json."""
    alphabet = byte_alphabet()
    tokens = sorted(alphabet)
    merges, known = [], set(tokens)
    for word in vocabulary():
        whole = alphabet[32]
        for letter in word:
            piece = alphabet[ord(letter)]
            if whole + piece not in known:
                merges.append([whole, piece])
                known.add(whole + piece)
                tokens.append(whole + piece)
            whole += piece
    added = [
        {
            "id": len(tokens) + i,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": content in SPECIAL,
        }
        for i, content in enumerate(SPECIAL + JSON_PIECES)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": SPLIT},
                    "behavior": "Isolated",
                    "invert": False,
                },
                {
                    "type": "ByteLevel",
                    "add_prefix_space": False,
                    "trim_offsets": False,
                    "use_regex": False,
                },
            ],
        },
        "post_processor": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": False,
            "use_regex": False,
        },
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": False,
            "use_regex": False,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": merges,
        },
    }


CONFIG = {
    "tokenizer_class": "Qwen2Tokenizer",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "unk_token": None,
    "chat_template": CHAT_TEMPLATE,
}


class Encoder:
    """The same ids as Octet and the tokenizers library, for captions in ASCII, quickly."""

    def __init__(self, tokenizer: dict):
        self.alphabet = byte_alphabet()
        self.vocab = tokenizer["model"]["vocab"]
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(tokenizer["model"]["merges"])}
        self.added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
        longest_first = sorted(self.added, key=len, reverse=True)
        self.at_added = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
        self.size = max(self.added.values()) + 1
        self.units: dict[str, list[int]] = {}

    def _unit(self, unit: str) -> list[int]:
        if unit not in self.units:
            pieces = [self.alphabet[byte] for byte in unit.encode()]
            while len(pieces) > 1:
                pairs = [self.ranks.get(pair, 1 << 30) for pair in zip(pieces, pieces[1:])]
                best = min(pairs)
                if best == 1 << 30:
                    break
                at = pairs.index(best)
                pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            if len(self.units) > 100_000:
                self.units.clear()
            self.units[unit] = [self.vocab[piece] for piece in pieces]
        return self.units[unit]

    def encode(self, caption: str) -> list[int]:
        prompt = f"<|im_start|>user\n{caption}<|im_end|>\n<|im_start|>assistant\n"
        ids = []
        for i, piece in enumerate(self.at_added.split(prompt)):
            if i % 2:
                ids.append(self.added[piece])
            else:
                for match in ASCII_SPLIT.finditer(piece):
                    ids.extend(self._unit(match.group()))
        return ids
