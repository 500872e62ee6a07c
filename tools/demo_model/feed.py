"""Pictures and captions from many processes, through memory that they share.

Workers draw scenes of ever new seeds and write them into chunks; the trainer takes chunks. Captions
go to one of three buckets by their length, so that little of a batch is padding.
"""

import mmap
import multiprocessing
import os
import random

import numpy as np
import torch

import captions
import drawing
import scenes
import tokenizer

CHUNK = 128
BUCKETS = (112, 160, 240)  # tokens of a caption, at most
CELL = 16  # pixels of a token's side
TEXT_WEIGHT, THING_WEIGHT = 4, 2  # of the loss where there are words or things
QUARTERS = 4  # of a token, 2 x 2, each with the letter that is there
LETTERS = 96  # classes: 0 for none, else the ASCII code less 32


def _shared(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, size), dtype=dtype).reshape(shape)


def weights_of(scene) -> np.ndarray:
    """What each token of the picture counts in the loss."""
    cells = scenes.SIDE // CELL
    weights = np.ones((cells, cells), np.uint8)
    for element in scene.elements:
        is_word = isinstance(element, scenes.Word)
        x0, y0, x1, y1 = element.ink if is_word else element.box
        area = weights[y0 // CELL : -(-y1 // CELL), x0 // CELL : -(-x1 // CELL)]
        np.maximum(area, TEXT_WEIGHT if is_word else THING_WEIGHT, out=area)
    return weights.reshape(-1)


def letters_of(scene, fonts) -> np.ndarray:
    """The letter at each quarter of each token, [tokens, 4]: what a side task of training names."""
    cells, half = scenes.SIDE // CELL, CELL // 2
    centres = half / 2 + half * np.arange(2 * cells)
    letters = np.zeros((2 * cells, 2 * cells), np.uint8)
    for word in scene.elements:
        if not isinstance(word, scenes.Word):
            continue
        edges = drawing.letter_edges(fonts, word.text, word.font, word.size)
        x0, y0, _, y1 = word.ink
        rows = (centres >= y0) & (centres < y1)
        for letter, begin, end in zip(word.text, edges, edges[1:]):
            columns = (centres >= x0 + begin) & (centres < x0 + end)
            letters[np.ix_(rows, columns)] = ord(letter) - 32
    return letters.reshape(cells, 2, cells, 2).transpose(0, 2, 1, 3).reshape(-1, QUARTERS)


def make_sample(maker, encoder, seed):
    """A picture, its caption's ids, weights and letters, and the caption."""
    scene = maker.make(seed)
    picture = np.asarray(scenes.paint(scene, maker.fonts))
    for attempt in range(4):
        caption = captions.CaptionWriter(random.Random(seed * 7 + attempt)).write(scene)
        ids = encoder.encode(caption)
        if len(ids) <= BUCKETS[-1]:
            return picture, ids, weights_of(scene), letters_of(scene, maker.fonts), caption
    return make_sample(maker, encoder, seed + (1 << 40))


class Feed:
    """`short_words`: the share of words with at most three letters, which workers read again for
    each chunk."""

    def __init__(self, fonts, workers, first_seed, slots=96):
        self.pictures = _shared((slots, CHUNK, scenes.SIDE, scenes.SIDE, 3), np.uint8)
        self.ids = _shared((slots, CHUNK, BUCKETS[-1]), np.int16)
        self.lengths = _shared((slots, CHUNK), np.int16)
        cells = (scenes.SIDE // CELL) ** 2
        self.weights = _shared((slots, CHUNK, cells), np.uint8)
        self.letters = _shared((slots, CHUNK, cells, QUARTERS), np.uint8)
        context = multiprocessing.get_context("fork")  # before CUDA is touched
        self.free, self.ready = context.Queue(), context.Queue()
        self.next_seed = context.Value("q", first_seed)
        self.short_words = context.Value("d", 0.0)
        self.upload = None
        for slot in range(slots):
            self.free.put(slot)
        self.processes = [
            context.Process(target=self._work, args=(fonts,), daemon=True) for _ in range(workers)
        ]
        for process in self.processes:
            process.start()

    def _work(self, fonts):
        os.nice(5)
        maker = scenes.SceneMaker(fonts)
        encoder = tokenizer.Encoder(tokenizer.build())
        while True:
            slot = self.free.get()
            with self.next_seed.get_lock():
                seed = self.next_seed.value
                self.next_seed.value += CHUNK
            maker.short_words = self.short_words.value
            self.ids[slot] = 0
            for i in range(CHUNK):
                picture, ids, weights, letters, _ = make_sample(maker, encoder, seed + i)
                self.pictures[slot, i] = picture
                self.ids[slot, i, : len(ids)] = ids
                self.lengths[slot, i] = len(ids)
                self.weights[slot, i], self.letters[slot, i] = weights, letters
            self.ready.put(slot)

    def take(self, wait: bool):
        """A chunk on the GPU, its lengths on the host; None when none is ready and nobody waits.
        Copies go through a stream of their own: the trainer does not wait for the GPU."""
        if not wait and self.ready.empty():
            return None
        slot = self.ready.get()
        lengths = self.lengths[slot].copy()
        parts = (self.pictures, self.ids, self.weights, self.letters)
        parts = [torch.from_numpy(part[slot]) for part in parts]
        if DEVICE == "cuda":
            if self.upload is None:
                self.upload = torch.cuda.Stream()
            with torch.cuda.stream(self.upload):
                parts = [part.to(DEVICE) for part in parts]
            torch.cuda.current_stream().wait_stream(self.upload)
            for part in parts:
                part.record_stream(torch.cuda.current_stream())
        else:
            parts = [part.clone() for part in parts]
        self.free.put(slot)
        return *parts, lengths

    def stop(self):
        for process in self.processes:
            process.terminate()


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
