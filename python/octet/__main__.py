"""`python -m octet`: versions, devices, and a self-test of what can run here."""

from __future__ import annotations

import array
import platform
import random
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import octet
from octet import _octet

_FRAMEWORKS = ("numpy", "torch", "diffusers", "comfy-kitchen")


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _print_machine() -> None:
    print(f"octet {octet.__version__} ({_octet.commit}), Python {platform.python_version()}")
    print("  " + ", ".join(f"{package} {_version_of(package)}" for package in _FRAMEWORKS))
    for device in octet.devices():
        state = device.unavailable or f"INT8 kernel {device.int8_kernel}"
        print(f"  {device.name}: {device.description or 'not available'}; {state}")


# Without a framework: the sizes are small enough for loops.
_M, _K, _N = 5, 96, 40


def _address(values: array.array[Any]) -> int:
    return values.buffer_info()[0]


def _check_host(name: str) -> None:
    """int8_mm must be exact, and int8_linear close to the product of the same numbers."""
    device = _octet.Device(name)
    numbers = random.Random(18)
    a = array.array("b", (numbers.randint(-128, 127) for _ in range(_M * _K)))
    rows = array.array("b", (numbers.randint(-128, 127) for _ in range(_N * _K)))
    sums = array.array("i", bytes(4 * _M * _N))
    _octet.int8_mm(
        *(device, _address(a), _K, 1, _M, _K, _address(rows), 1, _K, _N, _address(sums), _N)
    )
    x = array.array("f", (numbers.gauss(0, 1) for _ in range(_M * _K)))
    scales = array.array("f", (numbers.uniform(0.001, 0.01) for _ in range(_N)))
    y = array.array("f", bytes(4 * _M * _N))
    weight = _octet.PlainWeight(
        *(_address(rows), _N, _K, _K, _address(scales), _N, 0, 0, 0, 0, False)
    )
    _octet.linear(
        *(device, 0, 0, 0, None, weight, _address(x), _K, _octet.F32, _M),
        *(_address(y), _N, _octet.F32),
    )
    for i in range(_M):
        for j in range(_N):
            row = rows[j * _K : (j + 1) * _K]
            exact = sum(p * q for p, q in zip(a[i * _K : (i + 1) * _K], row))
            if sums[i * _N + j] != exact:
                raise octet.OctetError(f"int8_mm gave {sums[i * _N + j]}, expected {exact}")
            activations = x[i * _K : (i + 1) * _K]
            expected = scales[j] * sum(p * q for p, q in zip(activations, row))
            # At most half a code for each of k activations.
            step = max(map(abs, activations)) / 127
            allowed = 0.51 * step * scales[j] * sum(map(abs, row))
            if not abs(y[i * _N + j] - expected) <= allowed:
                raise octet.OctetError(f"int8_linear gave {y[i * _N + j]}, expected {expected}")


def _check_torch(device: str) -> None:
    import torch  # noqa: PLC0415 - only where it is installed

    generator = torch.Generator().manual_seed(18)
    weight = torch.randint(-128, 128, (128, 192), generator=generator, dtype=torch.int8)
    a = torch.randint(-128, 128, (64, 192), generator=generator, dtype=torch.int8)
    x = torch.randn(64, 192, generator=generator)
    sums = octet.int8_mm(a.to(device), weight.t().to(device)).cpu()
    if not torch.equal(sums, a.int() @ weight.t().int()):
        raise octet.OctetError("int8_mm is not the exact product")
    scale = torch.full((128,), 0.01)
    y = octet.int8_linear(x.to(device), weight.to(device), scale.to(device)).cpu()
    expected = x @ (weight * scale[:, None]).t()
    error = ((y - expected).norm() / expected.norm()).item()
    if not error < 0.02:
        raise octet.OctetError(f"int8_linear is off by {error:.1%}, expected less than 2 %")


def _run(title: str, check: Callable[[str], None], device: str) -> bool:
    try:
        check(device)
    except Exception as error:  # the self-test reports whatever goes wrong
        print(f"  {title}: FAILED: {error}")
        return False
    print(f"  {title}: ok")
    return True


def main() -> int:
    _print_machine()
    print("self-test")
    passed = [_run(name, _check_host, name) for name in ("ref", "cpu")]
    if _version_of("torch") != "not installed":
        passed.append(_run("torch on cpu", _check_torch, "cpu"))
        for device in octet.devices():
            if device.name.startswith("cuda") and not device.unavailable:
                passed.append(_run(f"torch on {device.name}", _check_torch, device.name))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
