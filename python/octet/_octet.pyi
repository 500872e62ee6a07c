"""Octet's C and C++ interface. Use the package `octet`, which checks arguments.

Addresses are numbers, strides count elements, dtypes are F32 to I32, 0 is none.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, overload

__version__: str
commit: str
abi_version: int
F32: int
BF16: int
F16: int
I8: int
I32: int

class OctetError(RuntimeError):
    """Something failed."""

    field: str  # the argument that was wrong, or ""

class InvalidRequest(OctetError, ValueError):
    """An argument is wrong."""

class OctetTypeError(OctetError, TypeError):
    """An argument of the wrong type, or an array of the wrong dtype."""

class OutOfMemory(OctetError, MemoryError):
    """Too little memory, the device's or the host's."""

class Cancelled(OctetError):
    """Stopped by cancel()."""

class _Record:
    """Read-only attributes."""

    def as_dict(self) -> dict[str, Any]:
        """The same as dicts and lists, for JSON."""

class Device:
    """A device by name: "cpu", "ref", "cuda:0". It serves all threads."""

    def __init__(self, name: str, threads: int = 0, tuning: str = 'missing') -> None: ...

    name: str
    description: str

    def synchronize(self) -> None: ...

class Weight:
    """The weight of a linear."""

    n: int
    k: int
    gate_up: bool

class PlainWeight(Weight):
    """Rows that are read where they are."""

    def __init__(
        self, codes: int, n: int, k: int, row_stride: int, scales: int, scale_count: int,
        bias: int, bias_dtype: int, smooth: int, rotation_group: int, gate_up: bool,
    ) -> None: ...

class PackedWeight(Weight):
    """A packed copy on its device."""

    def __init__(
        self, device: Device, codes: int, n: int, k: int, scales: int, bias: int, smooth: int,
        rotation_group: int, gate_up: bool,
    ) -> None: ...

def linear_memory(device: Device, weight: Weight, m: int, of_codes: bool = False) -> int:
    """Bytes for `memory`: what a linear of m rows is known to take."""

def quantize_rows(
    device: Device, stream: int, x: int, x_stride: int, x_dtype: int, m: int, k: int, smooth: int,
    rotation_group: int, codes: int, codes_stride: int, scales: int, stepwise: bool = False,
) -> None: ...
def linear(
    device: Device, stream: int, memory: int, memory_bytes: int,
    allocate: Callable[[int], Any] | None, weight: Weight, x: int, x_stride: int, x_dtype: int,
    m: int, y: int, y_stride: int, y_dtype: int, stepwise: bool = False,
) -> str: ...
def linear_int8(
    device: Device, stream: int, memory: int, memory_bytes: int,
    allocate: Callable[[int], Any] | None, weight: Weight, codes: int, codes_stride: int,
    scales: int, m: int, y: int, y_stride: int, y_dtype: int,
) -> str: ...
def int8_mm(
    device: Device, a: int, a_row_stride: int, a_column_stride: int, m: int, k: int, b: int,
    b_row_stride: int, b_column_stride: int, n: int, y: int, y_stride: int,
) -> None:
    """y = a b of int8 [m, k] and [k, n], int32; on hosts."""

class QuantizeStep(_Record):
    """The progress of quantize()."""

    stage: str
    done: int
    total: int
    network: str

class ErrorPlace(_Record):
    """A channel that stands out."""

    index: int
    value: float

class LinearError(_Record):
    """How far a linear in INT8 is from F32, as NRMSE."""

    network: str
    module: str
    n: int
    k: int
    rowwise: float
    smoothquant: float
    convrot: float
    unquantized: float
    is_protected: bool
    worst_rows: list[ErrorPlace]
    worst_columns: list[ErrorPlace]

class QuantizedNetwork(_Record):
    """What happened to a network's linears."""

    network: str
    int8: int
    protected: int
    kept: int
    protected_modules: list[str]

class QuantizeReport(_Record):
    """What quantize() did."""

    device: str
    recipe: str
    activations: str
    files: list[str]
    networks: list[QuantizedNetwork]
    errors: list[LinearError]
    source_bytes: int
    output_bytes: int
    resumed_tensors: int
    verified: bool
    seconds: float

def quantize(
    source: str, out: str, *, base: str, network: str, recipe: str, protect: str, clip: bool,
    dialect: str, statistics: str, captions: Sequence[str], any_caption: bool,
    calibration_steps: int, calibration_size: tuple[int, int], seed: int, max_memory: int,
    measure: bool, verify: bool, device: str, threads: int,
    progress: Callable[[Any], object] | None,
) -> QuantizeReport: ...

class TensorSummary(_Record):
    """A tensor of a checkpoint."""

    name: str
    dtype: str
    shape: list[int]
    bytes: int
    file: str

class DTypeSummary(_Record):
    """All tensors of a type."""

    tensors: int
    bytes: int

class CheckpointSummary(_Record):
    """What is in a checkpoint."""

    path: str
    files: list[str]
    metadata: dict[str, str]
    tensors: list[TensorSummary]
    total_bytes: int
    parameters: int
    dtypes: dict[str, DTypeSummary]

class StoredLinear(_Record):
    """A linear, and how it would run here."""

    name: str
    layer: str
    dialect: str
    format: str
    n: int
    k: int
    runs: str
    file_bytes: int
    memory_bytes: int

class ModelPart(_Record):
    """A part of a model."""

    part: str
    path: str
    dialect: str
    linears: list[StoredLinear]
    file_bytes: int
    memory_bytes: int

class ModelSummary(_Record):
    """The parts of a model."""

    parts: list[ModelPart]
    is_checkpoint: bool
    problem: str

def inspect_model(path: str, base: str) -> ModelSummary: ...
def inspect_checkpoint(path: str) -> CheckpointSummary: ...

class DeviceInfo(_Record):
    """A device of this machine."""

    name: str
    description: str
    int8_kernel: str
    features: list[str]
    unavailable: str

def devices() -> list[DeviceInfo]: ...

class Progress(_Record):
    """The progress of an engine."""

    stage: str
    done: int
    total: int
    fraction: float
    seconds: float
    eta_s: float | None

class Preview(_Record):
    """A small, rough rendering of the latent after a step."""

    image: int
    step: int
    steps: int
    width: int
    height: int
    rgb: bytes

class Picture(_Record):
    """A picture as bytes."""

    index: int
    seed: int
    width: int
    height: int
    rgb: bytes
    look: str
    metadata: list[tuple[str, str]]

class KernelUse(_Record):
    """How a class of linears ran."""

    layer: str
    path: str
    kernel: str
    launches: int
    us: float
    tops: float

class OpShare(_Record):
    """The time of an operation."""

    op: str
    calls: int
    us: float

class LinearCount(_Record):
    """How linears ran, by number of linears."""

    int8: int
    protected: int
    kept: int
    floating: int
    fake: int

class BranchUse(_Record):
    """One evaluation of a network within a step."""

    name: str
    network: str
    steps: int
    seconds: float

class RenderReport(_Record):
    """What a call of render() did."""

    device: str
    width: int
    height: int
    caption: str
    negative: str
    preset: str
    text_tokens: int
    steps: int
    checkpoint: str
    linears: LinearCount
    text_linears: LinearCount
    places: str
    recorded_steps: int
    branches: list[BranchUse]
    kernels: list[KernelUse]
    ops: list[OpShare]
    text_cached: bool
    warnings: list[str]
    text_s: float
    load_s: float
    denoise_s: float
    decode_s: float
    ahead_s: float
    peak_bytes: int

class Lora(_Record):
    """A LoRA to merge into the networks."""

    def __init__(
        self, file: str | PathLike[str], strength: float = 1.0, networks: Sequence[str] = ...,
    ) -> None: ...
    file: str
    strength: float
    networks: list[str]

class PresetInfo(_Record):
    """Steps, guidance and times defined by a model."""

    name: str
    official_name: str
    steps: int

class PartPlace(_Record):
    """Where a part's weights are kept between uses."""

    part: str
    where: str
    bytes: int
    device: str

class EngineInfo(_Record):
    """What is loaded."""

    family: str
    device: str
    networks: list[str]
    branches: list[str]
    takes_negative: bool
    plan: list[PartPlace]
    work_bytes: int
    available_bytes: int
    used_bytes: int
    loras: list[Lora]
    token_side: int
    size: tuple[int, int]
    presets: list[PresetInfo]

@overload
def encode_png(picture: Picture, level: int = 1) -> bytes:
    """A PNG file, with the picture's metadata."""

@overload
def encode_png(preview: Preview, scale: int = 1) -> bytes:
    """A PNG file."""

def parse_lora(text: str) -> Lora: ...
class CaptionFinding(_Record):
    """What is wrong with a caption."""

    path: str
    rule: str
    severity: str
    fixable: bool

class CaptionReport(_Record):
    """What a check of a caption found."""

    findings: list[CaptionFinding]
    canonical: str
    valid: bool

def check_caption(text: str) -> CaptionReport: ...
def wrap_plain_text(text: str) -> str: ...

class Job(_Record):
    """A request that was checked by its engine."""

    size: tuple[int, int]
    latents: tuple[int, int]
    steps: int
    text_tokens: int
    branches: list[str]
    warnings: list[str]

class Estimate(_Record):
    """What a job is expected to take."""

    seconds: float | None
    device_bytes: int
    host_bytes: int

class EngineState(_Record):
    """What an engine is doing."""

    loaded: bool
    busy: bool
    progress: Progress
    used_bytes: int
    peak_bytes: int
    free_bytes: int
    joules: float

class Stop:
    """Ends the calls that it was passed to, even before they begin."""

    def __init__(self) -> None: ...
    def request(self) -> None:
        """From any thread."""

    requested: bool

class Engine:
    """A model that stays loaded."""

    def __init__(self) -> None: ...
    def load(
        self, model: str, *, base: str, fallback: str, parts: Mapping[str, str],
        loras: Sequence[Lora], guided: bool, device: str, threads: int, activations: str,
        linears: str, attention: str, text_encoder_linears: str, tuning: str, convention: str,
        require_int8: bool, cache_weights: bool, keep: Sequence[tuple[str, str]], max_memory: int,
        lazy: bool, stop: Stop | None, progress: Callable[[Any], object] | None,
    ) -> None: ...
    def unload(self) -> None: ...
    is_loaded: bool

    def check(
        self, caption: str, *, any_caption: bool, negative: str, size: tuple[int, int],
        preset: str, steps: int, guidance: Sequence[float], seed: int, noise: Any | None,
        images: int, loras: Sequence[Lora] | None, stop: Stop | None,
    ) -> Job: ...
    def render(
        self, job: Job, *, progress: Callable[[Any], object] | None,
        preview: Callable[[Any], object] | None, preview_every: int,
        picture: Callable[[Any], object],
    ) -> RenderReport: ...
    def estimate(self, job: Job) -> Estimate: ...
    def state(self) -> EngineState: ...
    def warm_up(self, size: tuple[int, int], previews: bool, stop: Stop | None) -> None: ...
    def set_loras(
        self, loras: Sequence[Lora], progress: Callable[[Any], object] | None,
    ) -> None: ...
    def cancel(self) -> None: ...
    def info(self) -> EngineInfo: ...

class StoredWeight:
    """One linear's weight as a checkpoint stores it."""

    module: str
    rows: int
    k: int
    format: str
    is_int8: bool
    rotation_group: int
    has_smooth: bool
    tensors: list[str]  # The names of all tensors that it is made of.

    def read_codes(self, into: Any, first: int = 0) -> None:
        """The file's INT8 codes, unchanged, as rows of `into`."""

    def read_scales(self, into: Any, first: int = 0) -> None: ...
    def read_smooth(self, into: Any) -> None:
        """What activations are multiplied by before they are quantized."""

    def read(self, into: Any, first: int = 0) -> None:
        """The weight in floating point, its transform undone."""

def parse_comfy_quant(text: bytes, what: str) -> tuple[str, int, bool]:
    """Format, rotation group and full_precision of ComfyUI's description of a linear."""

class Checkpoint:
    """A safetensors or GGUF file, an index, or their folder."""

    def __init__(self, path: str) -> None: ...

    path: str
    metadata: dict[str, str]
    tensors: dict[str, tuple[str, tuple[int, ...]]]

    def dialect(self, module: str) -> str | None:
        """How it stores a linear; None if it has none of this name."""

    def weight(self, module: str, rows: int, k: int) -> StoredWeight: ...
    def read_vector(self, name: str, into: Any) -> None:
        """Reads a tensor in floating point that has the shape of `into`."""
