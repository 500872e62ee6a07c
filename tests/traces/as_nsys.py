#!/usr/bin/env python3
"""Writes what Nsight Systems would have of a run, from a trace of PyTorch's profiler.

    tests/traces/as_nsys.py TRACE.json.gz FOLDER NAME

    FOLDER/NAME.nsys_sum.csv     nsys stats --report cuda_gpu_kern_sum --format csv
    FOLDER/NAME.nsys_trace.csv   nsys stats --report cuda_gpu_trace --format csv
    FOLDER/NAME.nsys.sqlite      nsys export --type sqlite: kernels, copies, launches, NVTX ranges

Made by hand, since that profiler was not at hand, and never compared with a file that it wrote. The
CSV headers and the tables with their main columns are publicly described; the rarer columns of the
tables are not checked. Kernels, their order, times and launches are of the trace.
https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html
https://docs.nvidia.com/drive/drive-os-5.2.3.0L/nsight-systems/nsys-exporter/exported_data.html
"""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import statistics
import sys
from pathlib import Path

SUM_COLUMNS = ("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)", "Min (ns)",
               "Max (ns)", "StdDev (ns)", "Name")
TRACE_COLUMNS = ("Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY",
                 "BlkZ", "Reg/Trd", "StcSMem (MB)", "DymSMem (MB)", "Bytes (MB)",
                 "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx", "GreenCtx", "Strm",
                 "Name")
TABLES = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT,
  busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER,
  memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, chipName TEXT, computeMajor INTEGER,
  computeMinor INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,
  blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
  localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER,
  graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
  srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER,
  migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,
  doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
  jsonText TEXT, binaryData TEXT);
"""
PUSH_POP_RANGE, API_CALL = 59, 0
HOST_TO_DEVICE, DEVICE_TO_DEVICE = 1, 8
PROCESS = 0x1000000000000


class Run:
    """Device work and launches of a trace, in ns from its first event on."""

    def __init__(self, path: Path):
        with gzip.open(path, "rt") as file:
            trace = json.load(file)
        self.properties = (trace.get("deviceProperties") or [{}])[0]
        events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
        self.origin = min(event["ts"] for event in events)

        def of(*kinds):
            return sorted((event for event in events if event.get("cat") in kinds),
                          key=lambda event: event["ts"])

        self.kernels, self.copies = of("kernel"), of("gpu_memcpy", "gpu_memset")
        self.launches, self.ranges = of("cuda_runtime", "cuda_driver"), of("user_annotation")

    def span(self, event) -> tuple[int, int]:
        start = round((event["ts"] - self.origin) * 1000)
        return start, start + round(event.get("dur", 0) * 1000)


def write_sum(run: Run, path: Path) -> None:
    times: dict[str, list[int]] = {}
    for kernel in run.kernels:
        start, end = run.span(kernel)
        times.setdefault(kernel["name"], []).append(end - start)
    whole = sum(map(sum, times.values()))
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        # What the program says first, where its output was piped into a file.
        file.write("Processing [run.sqlite] with [cuda_gpu_kern_sum.py]... \n\n")
        writer.writerow(SUM_COLUMNS)
        for name, ns in sorted(times.items(), key=lambda item: -sum(item[1])):
            spread = statistics.stdev(ns) if len(ns) > 1 else 0
            writer.writerow([round(100 * sum(ns) / whole, 1), sum(ns), len(ns),
                             round(statistics.mean(ns), 1), round(statistics.median(ns), 1),
                             min(ns), max(ns), round(spread, 1), name])


def copy_name(event) -> str:
    if event["cat"] == "gpu_memset":
        return "[CUDA memset]"
    ways = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device"}
    way = next((words for key, words in ways.items() if key in event["name"]), "Device-to-Device")
    return f"[CUDA memcpy {way}]"


def write_trace(run: Run, path: Path) -> None:
    device = f"{run.properties.get('name', 'NVIDIA H200')} (0)"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TRACE_COLUMNS)
        for event in sorted(run.kernels + run.copies, key=lambda event: event["ts"]):
            given, (start, end) = event.get("args", {}), run.span(event)
            if event["cat"] == "kernel":
                cells = [*given.get("grid", [1, 1, 1]), *given.get("block", [1, 1, 1]),
                         given.get("registers per thread", 0), "0.000",
                         f"{given.get('shared memory', 0) / 1e6:.3f}", "", "", "", ""]
                name = event["name"]
            else:
                size = given.get("bytes", 0) / 1e6
                source = "Pinned" if "HtoD" in event["name"] else "Device"
                cells = [""] * 9 + [f"{size:.3f}", f"{size / max(end - start, 1) * 1e9:.3f}",
                                    source, "Device"]
                name = copy_name(event)
            writer.writerow([start, end - start, given.get("correlation", 0), *cells, device,
                             given.get("context", 1), "", given.get("stream", 7), name])


def write_sqlite(run: Run, path: Path) -> None:
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 1024")  # many small tables
    database.executescript(TABLES)
    strings: dict[str, int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings) + 1)

    def insert(table: str, row) -> None:
        database.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)

    p = run.properties
    insert("TARGET_INFO_GPU", (0, 0, p.get("name", "NVIDIA H200"), None, 1, None,
                               p.get("totalGlobalMem"), None, None, p.get("numSms"), "GH100",
                               p.get("computeMajor", 9), p.get("computeMinor", 0)))
    for event in run.kernels:
        given, name = event.get("args", {}), event["name"]
        short = name.removeprefix("void ").split("<")[0].split("(")[0].split("::")[-1]
        insert("CUPTI_ACTIVITY_KIND_KERNEL", (
            *run.span(event), 0, given.get("context", 1), None, given.get("stream", 7),
            given.get("correlation"), PROCESS, string(name), string(short or name), None, None,
            None, given.get("registers per thread", 0), *given.get("grid", [1, 1, 1]),
            *given.get("block", [1, 1, 1]), 0, given.get("shared memory", 0), 0, 0, 0, None, None,
            None))
    for event in (copy for copy in run.copies if copy["cat"] == "gpu_memcpy"):
        given = event.get("args", {})
        kind = HOST_TO_DEVICE if "HtoD" in event["name"] else DEVICE_TO_DEVICE
        insert("CUPTI_ACTIVITY_KIND_MEMCPY", (
            *run.span(event), 0, given.get("context", 1), None, given.get("stream", 7),
            given.get("correlation"), PROCESS, given.get("bytes", 0), kind, *[None] * 10))
    for event in run.launches:
        insert("CUPTI_ACTIVITY_KIND_RUNTIME", (
            *run.span(event), API_CALL, PROCESS, event.get("args", {}).get("correlation"),
            string(event["name"]), 0, None))
    for event in run.ranges:
        insert("NVTX_EVENTS", (*run.span(event), PUSH_POP_RANGE, None, None, None, event["name"],
                               PROCESS, *[None] * 12))
    database.executemany("INSERT INTO StringIds VALUES (?, ?)",
                         [(number, text) for text, number in strings.items()])
    database.commit()
    database.execute("VACUUM")
    database.close()


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__)
        return 2
    run, folder, name = Run(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
    if not run.kernels:
        print(f"{sys.argv[1]}: no kernels, expected the trace of a run on a GPU")
        return 1
    write_sum(run, folder / f"{name}.nsys_sum.csv")
    write_trace(run, folder / f"{name}.nsys_trace.csv")
    write_sqlite(run, folder / f"{name}.nsys.sqlite")
    return 0


if __name__ == "__main__":
    sys.exit(main())
