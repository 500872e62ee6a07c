"""Encoded pictures with their captions, on the GPU, replaced as new ones arrive."""

import numpy as np
import torch

import networks
from feed import BUCKETS, CHUNK, DEVICE, QUARTERS

SHARES = (0.39, 0.39, 0.22)  # of captions that fall into each bucket


class Pool:
    """One bucket's; the oldest are replaced first."""

    def __init__(self, text, size):
        self.text, self.size, self.filled, self.at = text, size, 0, 0
        shape = (size, networks.LATENT_CHANNELS, 32, 32)
        self.latents = torch.empty(shape, dtype=torch.bfloat16, device=DEVICE)
        self.ids = torch.zeros(size, text, dtype=torch.int16, device=DEVICE)
        self.lengths = torch.zeros(size, dtype=torch.int16, device=DEVICE)
        tokens = networks.GRID**2
        self.weights = torch.zeros(size, tokens, dtype=torch.uint8, device=DEVICE)
        self.letters = torch.zeros(size, tokens, QUARTERS, dtype=torch.uint8, device=DEVICE)

    def add(self, latents, ids, lengths, weights, letters):
        places = (self.at + torch.arange(len(ids), device=DEVICE)) % self.size
        self.latents[places], self.ids[places] = latents, ids[:, : self.text]
        self.lengths[places], self.weights[places] = lengths, weights
        self.letters[places] = letters
        self.at = (self.at + len(ids)) % self.size
        self.filled = min(self.size, self.filled + len(ids))

    def batch(self, count):
        chosen = torch.randint(self.filled, (count,), device=DEVICE)
        parts = (self.latents, self.weights, self.letters, self.ids, self.lengths)
        return tuple(part[chosen] for part in parts)


class Data:
    def __init__(self, feed, vae, size):
        self.feed, self.pictures = feed, 0
        self.pools = [Pool(text, round(size * share)) for text, share in zip(BUCKETS, SHARES)]
        vae.requires_grad_(False)

        def encode(pictures, noise):
            x = (pictures.permute(0, 3, 1, 2).float() / 127.5 - 1).bfloat16()
            x = x.contiguous(memory_format=torch.channels_last)
            mean, logvar = vae.quant_conv(vae.encoder(x)).float().chunk(2, 1)
            return (mean + noise * (0.5 * logvar).exp()).bfloat16()

        self.encode = torch.compile(encode) if DEVICE == "cuda" else encode

    @torch.no_grad()
    def refill(self, chunks, wait=False):
        for _ in range(chunks):
            chunk = self.feed.take(wait)
            if chunk is None:
                return
            pictures, ids, weights, letters, lengths = chunk
            noise = torch.randn(CHUNK, networks.LATENT_CHANNELS, 32, 32, device=DEVICE)
            latents = self.encode(pictures, noise)
            bucket = np.searchsorted(BUCKETS, lengths)
            for i, pool in enumerate(self.pools):
                chosen = torch.from_numpy((bucket == i).nonzero()[0])
                known = torch.from_numpy(lengths)[chosen].to(DEVICE)
                chosen = chosen.to(DEVICE)
                parts = (part[chosen] for part in (latents, ids))
                pool.add(*parts, known, weights[chosen], letters[chosen])
            self.pictures += CHUNK


class Step:
    """Forward and backward of one batch. On a GPU they are one CUDA graph: launching thousands of
    small kernels by hand took a quarter of the time."""

    def __init__(self, loss_of, parameters, inputs, as_graph, memory=None):
        self.loss_of, self.parameters, self.inputs = loss_of, parameters, inputs
        self.graph = None
        if not as_graph:
            return
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):  # compiles, and lets libraries allocate
            for _ in range(3):
                self._run()
        torch.cuda.current_stream().wait_stream(beside)
        self.graph = torch.cuda.CUDAGraph()
        for parameter in self.parameters:
            parameter.grad = None
        with torch.cuda.graph(self.graph, pool=memory):
            self.error = self._run()
        self.gradients = [parameter.grad for parameter in self.parameters]

    def _run(self):
        for parameter in self.parameters:
            parameter.grad = None
        loss, error = self.loss_of(*self.inputs)
        loss.backward()
        return error

    def __call__(self, inputs):
        """The gradients, in memory that the next call overwrites, and the error."""
        for own, new in zip(self.inputs, inputs):
            own.copy_(new)
        if self.graph is None:
            error = self._run()
            return [parameter.grad for parameter in self.parameters], error
        self.graph.replay()
        return self.gradients, self.error.clone()
