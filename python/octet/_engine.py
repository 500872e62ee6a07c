"""Engine: a model that stays loaded, and pictures from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from octet import _octet
from octet._calls import Path, call, check_names, path_text
from octet._octet import (
    CaptionReport,
    EngineInfo,
    EngineState,
    Estimate,
    Job,
    Lora,
    RenderReport,
    Stop,
)
from octet._requests import caption_text, guidance_of, seed_of, size_of, whole
from octet.errors import OctetError, refuse, refuse_type

OnProgress = Callable[[_octet.Progress], object]
Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Preview:
    """A small, rough rendering of the latent after a step."""

    image: Any  # a PIL image, an array, or the bytes of a PNG file
    index: int  # among the images of the call
    step: int  # the first is 1
    steps: int


@dataclass(frozen=True)
class Rendering:
    """The pictures of a call, in order, and its report."""

    images: list[Any]  # PIL images, uint8 arrays [height, width, 3], or the bytes of PNG files
    seeds: list[int]  # each alone gives the same picture, to the last bit
    metadata: list[dict[str, str]]
    looks: list[str]  # "ordinary", "constant", or "refusal"
    report: RenderReport

    @property
    def image(self) -> Any:
        """The first picture."""
        return self.images[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.images)

    def __len__(self) -> int:
        return len(self.images)


class Engine:
    """A model that stays loaded. It renders one picture at a time; threads wait for each other.

    `model`: a folder in Hugging Face's pipeline layout, owner/name of a pulled one, or only the
    networks; `base` and `fallback` supply what it lacks, `parts` names parts that are elsewhere.
    `loras`: "style.safetensors:0.8", or Lora. `keep`: "device", "host" or "stream", for all parts
    or by part. `max_memory`: bytes of device memory to use; 0: what is free.
    docs/library.md explains the options.
    """

    def __init__(
        self,
        model: Path,
        *,
        device: str = "auto",
        base: Path = "",
        fallback: Path = "",
        parts: Mapping[str, Path] | None = None,
        loras: Iterable[str | Lora] = (),
        guided: bool = True,
        threads: int = 0,
        activations: str = "bf16",
        linears: str = "int8",
        attention: str = "auto",
        text_encoder_linears: str = "float",
        tuning: str = "missing",
        convention: str = "official",
        require_int8: bool = False,
        cache_weights: bool = False,
        keep: str | Mapping[str, str] | None = None,
        max_memory: int = 0,
        lazy: bool = False,
        stop: Stop | None = None,
        progress: OnProgress | None = None,
    ) -> None:
        self._engine = _octet.Engine()
        rules = {"": keep} if isinstance(keep, str) else _by_name(keep, "keep")
        call(
            self._engine.load,
            path_text("model", model),
            base=path_text("base", base),
            fallback=path_text("fallback", fallback),
            parts={name: path_text("parts", at) for name, at in _by_name(parts, "parts").items()},
            loras=_loras(loras),
            guided=guided,
            device=device,
            threads=threads,
            activations=activations,
            linears=linears,
            attention=attention,
            text_encoder_linears=text_encoder_linears,
            tuning=tuning,
            convention=convention,
            require_int8=require_int8,
            cache_weights=cache_weights,
            keep=list(rules.items()),
            max_memory=max_memory,
            lazy=lazy,
            stop=stop,
            progress=_callback(progress, "progress"),
        )

    def check(
        self,
        caption: str | Mapping[str, Any] | os.PathLike[str],
        *,
        size: int | tuple[int, int] | None = None,
        width: int = 0,
        height: int = 0,
        steps: int = 0,
        seed: int = 0,
        preset: str = "",
        guidance: float | Sequence[float] | None = None,
        images: int = 1,
        noise: Any = None,
        negative: str = "",
        loras: Iterable[str | Lora] | None = None,
        wrap_text: bool = False,
        any_caption: bool = False,
        stop: Stop | None = None,
    ) -> Job:
        """A request that can be rendered; never waits, whatever the engine is doing.

        `caption`: JSON as text or as a dict, or the path of its file. `wrap_text`: it is plain
        text. `any_caption`: run it despite errors. Arguments that are not given come from the model
        or the preset. `guidance`: one value for all steps, or one per step. `noise`: float32
        [tokens, channels] instead of the seed's. `negative`: what to guide away from, for models
        that take it. `loras`: instead of the engine's, for these pictures only. `stop` ends the
        rendering, even before it begins.
        """
        return call(
            self._engine.check,
            caption_text(caption, wrap_text),
            any_caption=any_caption,
            negative=negative,
            size=size_of(size, width, height),
            preset=preset,
            steps=steps,
            guidance=guidance_of(guidance),
            seed=seed_of(seed),
            noise=noise,
            images=images,
            loras=None if loras is None else _loras(loras),
            stop=stop,
        )

    def render(
        self,
        caption: Job | str | Mapping[str, Any] | os.PathLike[str],
        *,
        progress: OnProgress | None = None,
        preview: Callable[[Preview], object] | None = None,
        preview_every: int = 1,
        output: str = "pil",
        level: int = 1,
        scale: int = 1,
        **request: Any,
    ) -> Rendering:
        """Pictures of a job, or of a caption with the other arguments of check().

        `output`: "pil", "numpy" or "png" (the bytes of a file, with metadata), also for previews,
        which come every `preview_every` steps and after the last. "png" has a `level` (up to 9:
        slower, and smaller for drawings) and a `scale` of previews (4: each pixel becomes 4 x 4).
        `progress` is called at each step and may return False to stop; exceptions in callbacks and
        Ctrl-C stop it, too. `report.warnings` has the warnings about the request.
        """
        if not isinstance(caption, Job):
            check_names(self.render, request, self.check)  # or Python would blame check()
            job = self.check(caption, **request)
        elif request:
            refuse(next(iter(request)), "a job takes no arguments of check(); it has its own")
        else:
            job = caption
        if (whole(preview_every) or 1) < 1 or preview_every == 0:
            refuse("preview_every", f"`preview_every` is {preview_every}; expected 1 or more steps")
        # Last: it imports, for which a forked child may wait in vain.
        convert, convert_preview = _converters(output, level, scale)
        made: list[_octet.Picture] = []

        def show(rough: _octet.Preview) -> None:
            assert preview is not None
            preview(Preview(convert_preview(rough), rough.image, rough.step, rough.steps))

        report = call(
            self._engine.render,
            job,
            progress=_callback(progress, "progress"),
            preview=_callback(preview, "preview") and show,
            preview_every=preview_every,
            picture=made.append,
        )
        made.sort(key=lambda picture: picture.index)
        return Rendering(
            images=[convert(picture) for picture in made],
            seeds=[picture.seed for picture in made],
            metadata=[dict(picture.metadata) for picture in made],
            looks=[picture.look for picture in made],
            report=report,
        )

    def estimate(self, job: Job) -> Estimate:
        """Seconds, if this engine has measured any, and bytes; never waits."""
        return call(self._engine.estimate, job)

    @property
    def state(self) -> EngineState:
        """What the engine is doing now, and its memory; never waits."""
        return self._engine.state()

    def warm_up(
        self,
        size: int | tuple[int, int] | None = None,
        *,
        previews: bool = False,
        stop: Stop | None = None,
    ) -> None:
        """Does ahead of time what the first picture of a size and its preview would wait for."""
        call(self._engine.warm_up, size_of(size, 0, 0), previews, stop)

    def set_loras(
        self, loras: Iterable[str | Lora] = (), *, progress: OnProgress | None = None
    ) -> None:
        """Replaces the LoRAs; after an error, the previous ones are still in place."""
        call(self._engine.set_loras, _loras(loras), _callback(progress, "progress"))

    def cancel(self) -> None:
        """Ends the running call, if any, with Cancelled; from any thread."""
        self._engine.cancel()

    @property
    def info(self) -> EngineInfo:
        """What is loaded: device, memory plan, presets, size."""
        return self._engine.info()

    def close(self) -> None:
        """Ends a call of another thread and releases the model, for good."""
        self._engine.unload()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._engine.is_loaded:
            return "Engine(closed)"
        info = self.info
        return f"Engine({info.family} on {info.device})"


def check_caption(caption: str | Mapping[str, Any] | os.PathLike[str]) -> CaptionReport:
    """What is wrong with a caption, and the caption as passed to the model (`canonical`)."""
    return call(_octet.check_caption, caption_text(caption, wrap_text=False))


def _loras(loras: Iterable[str | Lora]) -> list[Lora]:
    if isinstance(loras, (str, Lora)):
        loras = [loras]
    if not isinstance(loras, Iterable):
        refuse_type("loras", f"`loras` is {loras!r}; expected a list of files, or of Lora")
    return [call(_octet.parse_lora, lora) if isinstance(lora, str) else lora for lora in loras]


def _by_name(rules: Any, name: str) -> Mapping[str, Any]:
    if rules is not None and not isinstance(rules, Mapping):
        refuse_type(name, f"`{name}` is {rules!r}; expected a dict with names of parts")
    return rules or {}


def _callback(callback: Any, name: str) -> Any:
    if callback is not None and not callable(callback):
        refuse_type(name, f"`{name}` is of type {type(callback).__name__}; expected a function")
    return callback


def _converters(output: str, level: int, scale: int) -> tuple[Convert, Convert]:
    """Convert pictures and previews to the form that the caller wants."""
    if output == "png":
        for name, value, most in (("level", level, 9), ("scale", scale, 64)):  # the engine's limits
            if not 1 <= (whole(value) or 0) <= most:
                refuse(name, f"`{name}` is {value!r}; expected a whole number from 1 to {most}")
        encode = _octet.encode_png
        return partial(encode, level=level), partial(encode, scale=scale)
    for name, value in (("level", level), ("scale", scale)):
        if value != 1:
            refuse(name, f'`{name}` goes with output="png", and `output` is {output!r}')
    return (_converter(output),) * 2


def _converter(output: str) -> Convert:
    """Converts a picture with width, height and rgb."""
    if output == "pil":
        try:
            from PIL import Image  # noqa: PLC0415 - optional
        except ImportError:
            raise OctetError(
                'output="pil" needs Pillow, which is not installed; run `pip install pillow`, or '
                'use output="numpy"'
            ) from None
        return lambda picture: Image.frombytes(
            "RGB", (picture.width, picture.height), picture.rgb
        )
    if output == "numpy":
        try:
            import numpy  # noqa: PLC0415 - optional
        except ImportError:
            raise OctetError(
                'output="numpy" needs NumPy, which is not installed; run `pip install numpy`'
            ) from None
        return lambda picture: (
            numpy.frombuffer(picture.rgb, numpy.uint8)
            .reshape(picture.height, picture.width, 3)
            .copy()  # so that it is writable
        )
    refuse("output", f'`output` is {output!r}; expected "pil", "numpy" or "png"')
