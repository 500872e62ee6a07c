"""One INT8 linear on this CPU: Octet compared with what people install from PyPI.

Everything runs on the same shapes, the same number of threads and f32 activations in and out, and
includes quantizing the activations. The contestants take turns, so that a busy neighbour or a
falling clock hits all of them; each figure is the median over the rounds of the median of a turn.

    python bench/cpu_peers.py [--shapes m,n,k;...] [--threads N] [--rounds R] [--json F] [--svg F]
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from bars import bar_chart

ROOT = Path(__file__).resolve().parents[1]
OCTET = Path(os.environ.get("OCTET_BUILD_DIR", ROOT / "build")) / "octet"
SHAPES = "512,4608,4608;512,12288,4608;512,4608,12288"

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)  # onnxruntime's advice about preprocessing models


def median_us(work, seconds: float) -> float:
    """Median microseconds of one call, over at least five calls and `seconds`."""
    work()
    times = []
    start = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def octet_rows(shape, threads: int, seconds: float) -> dict:
    text = ",".join(map(str, shape))
    done = subprocess.run(
        [OCTET, "bench", "gemm", "-q", "--device", "cpu", "--threads", str(threads), "--dtype",
         "f32", "--only-native", "--shapes", text, "--seconds", str(seconds), "--json", "-"],
        capture_output=True, text=True, check=True)
    bench = json.loads(done.stdout)
    return {**bench["rows"][0], "commit": bench["commit"], "device": bench["device"]}


def onnxruntime_peers(m, n, k, x, w, threads):
    """The weight quantized per channel by onnxruntime's own tool, which leaves the dynamic
    quantization of the activations (per tensor) to the fused operator."""
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n])],
        [numpy_helper.from_array(w.T.copy(), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/float.onnx")
        for name, kind in (("s8", QuantType.QInt8), ("u8", QuantType.QUInt8)):
            path = f"{folder}/{name}.onnx"
            quantize_dynamic(f"{folder}/float.onnx", path, per_channel=True, weight_type=kind,
                             extra_options={"DefaultTensorType": TensorProto.FLOAT})
            session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            yield (f"onnxruntime {ort.__version__} dynamic quantized MatMul ({name} weight)",
                   lambda session=session: session.run(None, {"x": x}))


def torch_peers(x, w, threads):
    import torch

    torch.set_num_threads(threads)
    tx, tw = torch.from_numpy(x), torch.from_numpy(w)
    with torch.inference_mode():
        for engine in ("onednn", "x86", "fbgemm", "qnnpack"):
            if engine not in torch.backends.quantized.supported_engines:
                continue
            torch.backends.quantized.engine = engine
            try:
                linear = torch.nn.Linear(w.shape[1], w.shape[0], bias=False)
                linear.weight.data = tw
                module = torch.ao.quantization.quantize_dynamic(
                    torch.nn.Sequential(linear), {torch.nn.Linear}, dtype=torch.qint8)
                module(tx)
            except (RuntimeError, AttributeError) as error:
                print(f"left out torch {engine}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            yield (f"torch {torch.__version__} dynamic quantized Linear ({engine})",
                   lambda module=module: module(tx))

        scale = tw.abs().amax(dim=1) / 127
        q = torch.round(tw / scale[:, None]).to(torch.int8).t().contiguous()

        def int_mm():
            row = tx.abs().amax(dim=1, keepdim=True) / 127
            a = torch.round(tx / row).to(torch.int8)
            return torch._int_mm(a, q).float() * row * scale

        yield f"torch {torch.__version__} quantize + _int_mm + scale (eager, per token)", int_mm


def in_inference_mode(work):
    """Grad mode belongs to the call, not to the generator that made it."""
    import torch

    def run():
        with torch.inference_mode():
            return work()

    return run


def measure(shape, threads, rounds, seconds):
    import numpy as np

    m, n, k = shape
    random = np.random.default_rng(0)
    x = random.standard_normal((m, k), dtype=np.float32)
    w = random.standard_normal((n, k), dtype=np.float32) * 0.02
    peers = list(onnxruntime_peers(m, n, k, x, w, threads))
    peers += [(name, in_inference_mode(work)) for name, work in torch_peers(x, w, threads)]
    times = {name: [] for name, _ in peers}
    ours, single = [], []
    for round_number in range(rounds):
        ours.append(octet_rows(shape, threads, seconds))
        if threads > 1:
            single.append(octet_rows(shape, 1, seconds))
        for name, work in (peers if round_number % 2 == 0 else reversed(peers)):
            times[name].append(median_us(work, seconds))
    middle = lambda key, rows: statistics.median(row[key] for row in rows)
    result = {
        "m": m, "n": n, "k": k, "device": ours[0]["device"], "commit": ours[0]["commit"],
        "kernel": ours[0]["kernel"], "linear_us": middle("linear_us", ours),
        "gemm_us": middle("us", ours), "ceiling_share": middle("ceiling_share", ours),
        "peers_us": {name: statistics.median(values) for name, values in times.items()},
    }
    if single:
        result["gemm_us_one_thread"] = middle("us", single)
        result["scaling"] = result["gemm_us_one_thread"] / result["gemm_us"]
    return result


def print_table(result):
    print(f"\n### m={result['m']} n={result['n']} k={result['k']}\n")
    print("| contestant | us, quantization included | Octet is |\n|---|---:|---:|")
    ours = result["linear_us"]
    print(f"| **Octet, {result['kernel']}** | **{ours:.0f}** | |")
    for name, us in sorted(result["peers_us"].items(), key=lambda item: item[1]):
        print(f"| {name} | {us:.0f} | {us / ours:.2f}x |")
    scaling = f", {result['scaling']:.2f}x one thread" if "scaling" in result else ""
    print(f"\nGEMM alone {result['gemm_us']:.0f} us, {result['ceiling_share'] * 100:.0f} % of the "
          f"instruction's ceiling{scaling}.")


def write_svg(results, path):
    """Octet and, for each library, its fastest path."""
    groups = []
    for result in results:
        fastest = {}
        for name, us in result["peers_us"].items():
            library = " ".join(name.split()[:2])
            if library not in fastest or us < fastest[library][1]:
                fastest[library] = (name, us)
        bars = [(f"Octet, {result['kernel']}", result["linear_us"] / 1e3, True)]
        bars += [(name, us / 1e3, False) for name, us in fastest.values()]
        groups.append((f"m={result['m']} n={result['n']} k={result['k']}", bars))
    about = f"Quantization of the activations included. {results[0]['device'].split(',')[0]}"
    path.write_text(bar_chart("Time of one INT8 linear on the CPU",
                              f"{about}, commit {results[0]['commit']}", groups, "ms", "lower"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="per contestant and round")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    arguments = parser.parse_args()
    if not OCTET.is_file():
        sys.exit(f"{OCTET} does not exist; run `make build` first")
    results = []
    for item in arguments.shapes.split(";"):
        shape = tuple(map(int, item.split(",")))
        results.append(measure(shape, arguments.threads, arguments.rounds, arguments.seconds))
        if len(results) == 1:
            print(f"{results[0]['device']}; commit {results[0]['commit']}; "
                  f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC; "
                  f"{arguments.threads} threads")
        print_table(results[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    if arguments.svg:
        write_svg(results, arguments.svg)


if __name__ == "__main__":
    main()
