"""What a GPU draws while something runs on it: NVML, queried from a thread of its own."""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import threading
import time

BETWEEN_S = 0.05
UNANSWERED = (OSError, AttributeError)  # also by a library that lacks a function
SM_CLOCK = 1  # of NVML's clocks
POWER_CAP = 0x4 | 0x80  # of its reasons for a lower clock: the limit, the brake


class Gauge:
    """A GPU by its UUID, "GPU-...", whatever number NVML gives it. Raises OSError if the library or
    the GPU is missing."""

    def __init__(self, uuid: str):
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._device = ctypes.c_void_p()
        self._ask("nvmlInit_v2")
        self._ask("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(self._device))

    def _ask(self, function: str, *arguments) -> None:
        if getattr(self._nvml, function)(*arguments) != 0:
            raise OSError(f"{function} failed")

    def _value(self, function: str, kind, *arguments):
        value = kind()
        self._ask(function, self._device, *arguments, ctypes.byref(value))
        return value.value

    def read(self) -> dict:
        reasons = self._value("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong)
        return {"w": self._value("nvmlDeviceGetPowerUsage", ctypes.c_uint) * 1e-3,
                "mhz": self._value("nvmlDeviceGetClockInfo", ctypes.c_uint, SM_CLOCK),
                "capped": bool(reasons & POWER_CAP)}

    def joules(self) -> float:
        return self._value("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong) * 1e-3


def gauge_of(torch, device):
    """The gauge of torch's device; None if there is none."""
    if torch.device(device).type != "cuda":
        return None
    try:
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        return Gauge(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
    except UNANSWERED:
        return None


def counted_joules(gauge) -> float:
    """Since a moment in the past; 0: nobody counts."""
    try:
        return gauge.joules()
    except UNANSWERED:
        return 0.0


@contextlib.contextmanager
def sampled(gauge):
    """Yields a dict that afterwards contains what was drawn, with the fields of `power` of
    `octet bench step`; empty if the gauge is None or does not answer."""
    use, readings, ended = {}, [], threading.Event()

    def sample():
        with contextlib.suppress(*UNANSWERED):
            while True:
                readings.append(gauge.read())
                if ended.wait(BETWEEN_S):
                    return

    if gauge is None:
        yield use
        return
    thread = threading.Thread(target=sample, daemon=True)
    before, begun = counted_joules(gauge), time.perf_counter()
    thread.start()
    try:
        yield use
    finally:
        seconds, joules = time.perf_counter() - begun, counted_joules(gauge) - before
        ended.set()
        thread.join()
        if readings:
            # The counter misses nothing, but moves in steps of a tenth of a second.
            counted = before > 0 and joules > 0 and seconds >= 1
            mean = joules / seconds if counted else statistics.mean(r["w"] for r in readings)
            use.update(samples=len(readings), mean_w=mean, max_w=max(r["w"] for r in readings),
                       joules=mean * seconds,
                       mean_mhz=statistics.mean(r["mhz"] for r in readings),
                       power_capped=statistics.mean(r["capped"] for r in readings))
