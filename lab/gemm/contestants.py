"""The contestants of compare.py: Octet as its tuner chose, its kernels one by one, and CUTLASS's.
All work on the same operands and stream, and those whose bits are not Octet's are left out."""

from __future__ import annotations

import ctypes
import fnmatch
import itertools
import math
import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from octet_library import Octet, OctetError, WrongResult

OURS = "octet"
RASTERS = {"m": 1, "n": 2}  # CUTLASS's own choice is one of them
SWIZZLES = (1, 2, 4, 8)


class Cutlass:
    """libcutlass_int8.so, see cutlass.cu."""

    def __init__(self, path: Path, stream: int):
        self._library = ctypes.CDLL(str(path))
        self._stream = stream
        address, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
        for name, result, arguments in (
                ("kernel_count", number, []), ("version", number, []), ("last_error", text, []),
                ("kernel_name", text, [number]),
                ("prepare", address, [number] + 5 * [address] + 5 * [number] + [address]),
                ("launch", number, [address]), ("release", None, [address])):
            function = getattr(self._library, f"cutlass_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, f"_{name}", function)
        self.kernels = [self._kernel_name(i).decode() for i in range(self._kernel_count())]
        major, minor = divmod(self._version() // 10, 10)
        self.version = f"{major}.{minor}"

    def prepare(self, kernel: int, operands, raster: int, swizzle: int):
        """A launch without arguments, and what releases its plan."""
        o = operands
        plan = self._prepare(kernel, o.a.data_ptr(), o.w.data_ptr(), o.row_scale.data_ptr(),
                             o.col_scale.data_ptr(), o.out.data_ptr(), o.m, o.n, o.k, raster,
                             swizzle, self._stream)
        if not plan:
            raise RuntimeError(self._last_error().decode())

        def launch():
            if not self._launch(plan):
                raise RuntimeError(self._last_error().decode())

        return launch, lambda: self._release(plan)


# --- operands ------------------------------------------------------------------------------------


def codes(rows: int, k: int):
    """(int8 [rows, k], float32 [rows]): normal numbers, each row's largest becomes 127. A GPU's
    power, and so its clock, depends on them."""
    x = torch.randn(rows, k, device="cuda")
    amax = x.abs().amax(1)
    return torch.round(x * (127 / amax)[:, None]).to(torch.int8), amax / 127


class WeightRows:
    """One weight in plain rows for CUTLASS, and packed for each of Octet's devices."""

    def __init__(self, octets: dict, n: int, k: int):
        self.w, self.scale = codes(n, k)
        torch.cuda.synchronize()
        self.packed = {name: octet.pack(self.w, self.scale) for name, octet in octets.items()}

    def close(self) -> None:
        for packed in self.packed.values():
            packed.close()


class Operands:
    def __init__(self, weight: WeightRows, m: int):
        self.w, self.col_scale, self.packed = weight.w, weight.scale, weight.packed
        (self.n, self.k), self.m = self.w.shape, m
        self.a, self.row_scale = codes(m, self.k)
        self.out = torch.empty(m, self.n, device="cuda", dtype=torch.bfloat16)
        self.expected = None  # Octet's output

    def check_ours(self) -> None:
        """The first and the last rows in float64, where these sums are exact."""
        ends = min(128, self.m)
        for part in (slice(0, ends), slice(self.m - ends, self.m)):
            sums = self.a[part].double() @ self.w.double().t()
            y = (sums.float() * self.row_scale[part, None]) * self.col_scale[None, :]
            if not torch.equal(self.out[part], y.bfloat16()):
                raise WrongResult(f"Octet's result at m={self.m} n={self.n} k={self.k} is not that "
                                  "of the contract")
        self.expected = self.out.clone()

    def check(self, launch) -> None:
        self.out.fill_(math.nan)
        launch()
        if not torch.equal(self.out, self.expected):
            wrong = (self.out != self.expected).sum().item()
            raise WrongResult(f"{wrong} of {self.out.numel()} outputs are not Octet's")


class Contestant:
    """Works on one set of operands after the other. `family`: CUTLASS's kernel, or Octet's."""

    def __init__(self, name: str, side: str, family: str, launches: list, releases=()):
        self.name, self.side, self.family = name, side, family
        self._turns, self.releases = itertools.cycle(launches), releases

    def work(self) -> None:
        next(self._turns)()


# --- who takes part ------------------------------------------------------------------------------


def open_octets(patterns: str, device: str, stream: int, tune: str) -> dict:
    """{OURS or the kernel's name: Octet}. A kernel is forced when a device is opened."""
    octets = {OURS: Octet(device, stream, tune)}
    if not patterns:
        return octets

    def forced(kernel):
        os.environ["OCTET_FORCE_KERNEL"] = kernel
        try:
            return Octet(device, stream, "off")
        finally:
            del os.environ["OCTET_FORCE_KERNEL"]

    try:
        forced("?")
        raise OctetError("OCTET_FORCE_KERNEL is not read")
    except OctetError as error:  # its sentence ends with all names
        _, _, names = str(error).partition("; it has ")
        if not names:
            raise
    for name in names.split(", "):
        if any(fnmatch.fnmatch(name, pattern.strip()) for pattern in patterns.split(",")):
            octets[name] = forced(name)
    if len(octets) == 1:
        raise OctetError(f"no kernel fits '{patterns}'; there are {names}")
    return octets


def our_contestants(octets: dict, sets: list, say) -> list[Contestant]:
    """The tuner's choice first; all others are checked against its result."""
    octet = octets[OURS]
    launches = [octet.gemm(o.packed[OURS], o.a, o.row_scale, o.out) for o in sets]
    for operands, launch in zip(sets, launches, strict=True):
        operands.out.fill_(math.nan)
        launch()
        operands.check_ours()
    found = [Contestant(OURS, OURS, octet.kernel, launches)]
    for name, octet in octets.items():
        if name == OURS:
            continue
        launches = [octet.gemm(o.packed[name], o.a, o.row_scale, o.out) for o in sets]
        try:
            for operands, launch in zip(sets, launches, strict=True):
                operands.check(launch)
        except WrongResult:
            raise
        except OctetError as error:  # a kernel that does not take this shape
            say(f"{name} is left out: {error}")
            continue
        found.append(Contestant(name, "forced", name, launches))
    return found


def cutlass_contestants(cutlass: Cutlass, sets: list, say) -> list[Contestant]:
    found = []
    for kernel, family in enumerate(cutlass.kernels):
        for (letter, raster), swizzle in itertools.product(RASTERS.items(), SWIZZLES):
            name = f"{family} along {letter} swizzle {swizzle}"
            made = []
            try:
                for operands in sets:
                    made.append(cutlass.prepare(kernel, operands, raster, swizzle))
                    operands.check(made[-1][0])
            except RuntimeError as error:
                torch.cuda.synchronize()  # raises when the GPU is no longer usable
                for _, release in made:
                    release()
                say(f"{name} is left out: {error}")
                continue
            found.append(Contestant(name, "cutlass", family, [launch for launch, _ in made],
                                    [release for _, release in made]))
    if not found:
        raise OctetError(f"no kernel of CUTLASS is right at m={sets[0].m} n={sets[0].n} "
                         f"k={sets[0].k}")
    return found
