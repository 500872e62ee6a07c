#!/usr/bin/env python3
"""How busy `octet serve` keeps its device: jobs with new captions, queued all at once.

    bench/serve_busy.py PROGRAM [--jobs 20] [--steps 20] [--size 1024x1024] [--bytes 400-600]
                        [-- options of octet serve]

Busy is the time of all denoising steps over the time from the first job's start to the last one's
end. The rest is text encoding, decoding, and whatever the device waits for; the latter alone is
what a server can waste, so what the engine reports of each picture is listed beside it. Where
nvidia-smi is, the share of its samples in which kernels ran is printed, too.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

ENGINE_SECONDS = ("text_s", "load_s", "denoise_s", "decode_s", "ahead_s")
WORDS = "a red green blue house tree river sky cloud lamp chair cat dog bird old new tall".split()


def caption(rng: random.Random, bytes_: int) -> dict:
    text = ""
    while len(text) < bytes_:
        text += rng.choice(WORDS) + " "
    return {
        "high_level_description": text[:bytes_].strip(),
        "compositional_deconstruction": {"background": "a wall", "elements": []},
    }


class Server:
    def __init__(self, program: str, options: list[str]):
        command = [program, "serve", "--port", "0", "--no-state", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            sys.stderr.write(line)
            if found := re.search(r"http://\S+:\d+", line):
                self.address = found[0]
                break
        else:
            sys.exit("octet serve did not start; its message is above")
        threading.Thread(target=self.read_on, daemon=True).start()

    def read_on(self) -> None:
        for line in self.process.stderr:
            if "GET" not in line and "POST" not in line:
                sys.stderr.write(line)

    def ask(self, path: str, body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=600) as answer:
            text = answer.read()
        return json.loads(text) if path != "/metrics" else {"text": text.decode()}

    def wait_until_ready(self) -> float:
        begun = time.time()
        while self.process.poll() is None:
            try:
                self.ask("/ready")
                return time.time() - begun
            except OSError:
                time.sleep(0.2)
        sys.exit("octet serve ended; its message is above")

    def metric(self, name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", self.ask("/metrics")["text"], re.M)
        return float(found[1])


class Utilization:
    """nvidia-smi's samples, while it exists."""

    def __enter__(self) -> "Utilization":
        self.samples: list[int] = []
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        try:
            self.process = subprocess.Popen(
                [*command, "-lms", "100"], stdout=subprocess.PIPE, text=True)
        except OSError:
            self.process = None
            return self
        threading.Thread(target=self.read, daemon=True).start()
        return self

    def read(self) -> None:
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.samples.append(int(line))

    def __exit__(self, *_: object) -> None:
        if self.process:
            self.process.terminate()


def measure(server: Server, arguments: argparse.Namespace, seed: int) -> dict:
    rng = random.Random(seed)
    least, most = map(int, arguments.bytes.split("-"))
    steps_before = server.metric("octet_step_seconds_sum")
    joules_before = server.metric("octet_joules_total")
    rendering_before = server.metric("octet_job_render_seconds_sum")
    jobs = []
    with Utilization() as utilization:
        for _ in range(arguments.jobs):
            body = {"json_prompt": caption(rng, rng.randint(least, most)),
                    "size": arguments.size, "seed": rng.randrange(1 << 31)}
            if arguments.steps:
                body["steps"] = arguments.steps
            jobs.append(server.ask("/v1/jobs", body)["id"])
        ended = []
        for job in jobs:
            while (now := server.ask(f"/v1/jobs/{job}"))["state"] in ("queued", "running"):
                time.sleep(0.05)
            if now["state"] != "completed":
                sys.exit(f"{job}: {now['state']}: {now['error']}")
            ended.append(now)
    wall = max(job["ended_at"] for job in ended) - min(job["started_at"] for job in ended)
    steps = server.metric("octet_step_seconds_sum") - steps_before
    reports = [job["report"] for job in ended]

    starts = sorted(job["started_at"] for job in ended)
    rendering = server.metric("octet_job_render_seconds_sum") - rendering_before

    def median(name: str) -> float:
        return statistics.median(float(report[name]) for report in reports)

    return {
        "jobs": len(ended),
        "wall_s": wall,
        "steps_s": steps,
        "busy": steps / wall,
        "seconds_per_picture": wall / len(ended),
        "text_s": median("text_s"),
        "load_s": median("load_s"),
        "denoise_s": median("denoise_s"),
        "decode_s": median("decode_s"),
        "ahead_s": median("ahead_s"),
        # What the engine's report leaves out of its calls, and what lies between the calls.
        "rest_of_calls_s": (rendering - sum(engine_seconds(each) for each in reports)) / len(ended),
        "between_calls_s": (starts[-1] - starts[0]) / max(len(ended) - 1, 1)
                           - rendering / len(ended),
        "joules_per_picture":
            (server.metric("octet_joules_total") - joules_before) / len(ended),
        "gpu_utilization":
            statistics.mean(utilization.samples) / 100 if utilization.samples else None,
    }


def engine_seconds(report: dict) -> float:
    return sum(report[name] for name in ENGINE_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=0, help="0: the preset's")
    parser.add_argument("--size", default="1024x1024")
    parser.add_argument("--bytes", default="400-600", help="of a caption, from-to")
    parser.add_argument("--rounds", type=int, default=1)
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1:]
    arguments = parser.parse_args(own)
    server = Server(arguments.program, options)
    try:
        print(f"ready after {server.wait_until_ready():.1f} s")
        for number in range(arguments.rounds):
            print(json.dumps(measure(server, arguments, seed=number), indent=1))
    finally:
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
