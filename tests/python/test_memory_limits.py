"""Commands under a limit of memory: a result or one sentence, never a signal."""

from __future__ import annotations

import gzip
import json
import os
import resource
import sqlite3
import struct
import subprocess

import pytest
from hub_server import File, Hub, RunningHub, random_bytes
from pulling import clean_environment

MEGABYTE = 1 << 20
MORE = [1, 6, 14, 24, 44, 100]  # megabytes, above the least


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """20,000 tensors in one file: values by the hundred thousand in its header."""
    header = {
        f"model.layers.{i}.weight": {"dtype": "U8", "shape": [1, 1], "data_offsets": [i, i + 1]}
        for i in range(20_000)
    }
    text = json.dumps(header).encode()
    path = tmp_path_factory.mktemp("many") / "many.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(len(header)))
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """An index of 60,000 tensors, whose file is missing."""
    path = tmp_path_factory.mktemp("index") / "model.safetensors.index.json"
    names = {f"model.layers.{i}.weight": "a.safetensors" for i in range(60_000)}
    path.write_text(json.dumps({"metadata": {}, "weight_map": names}))
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A profile with 10,000 kernels, whose names are all different."""
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    events = [
        {"ph": "X", "cat": "kernel", "name": f"void vendor::kernel_{i}<signed char>(int)",
         "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5, "args": {"stream": 7, "correlation": i}}
        for i in range(10_000)
    ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A list of captions with a long way to the last, which is wrong."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    first, last = '{"prompt": "a red circle"}', '{"seed": 1, "prompt": "}'
    path.write_text("\n".join([first, " " * (64 << 20), last]))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory, trace, built_program, repository):
    """A folder with a file of each format that a command reads, and is in no other fixture."""
    folder = tmp_path_factory.mktemp("files")
    with gzip.open(folder / "trace.json.gz", "wb", 1) as packed:
        packed.write(trace.read_bytes())
    names = [f"void vendor::kernel_{i}<signed char>(int)" for i in range(3_000)]
    database = sqlite3.connect(folder / "nsys.sqlite")
    database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    numbers = "start, end, deviceId, correlationId, gridX, gridY, gridZ, blockX, blockY, blockZ"
    database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({numbers}, demangledName)")
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
    database.executemany(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({'?, ' * 10}?)",
        [(10 * i, 10 * i + 5, 0, i + 1, 1, 1, 1, 32, 1, 1, i) for i in range(len(names))])
    database.commit()
    database.close()
    (folder / "run.log").write_text("".join(
        f"[DEBUG] Backend cuda selected for int8_linear {name}\n" for name in names))
    (folder / "nsys.csv").write_text("".join(
        ["Time (%),Total Time (ns),Instances,Avg (ns),Name\n",
         *(f'0.1,100,1,100,"{name}"\n' for name in names)]))
    layers = [{"Name": name, "LayerType": "gemm", "TacticName": name,
               "Inputs": [{"Name": "x", "Dimensions": [1, 64], "Format/Datatype": "Int8"}],
               "Outputs": [{"Name": "y", "Dimensions": [1, 64], "Format/Datatype": "Half"}]}
              for name in names]
    (folder / "engine.json").write_text(json.dumps({"Layers": layers, "Bindings": ["x"]}))
    (folder / "rows.csv").write_text("prompt,seed\na red circle,7\n")
    (folder / "rows.jsonl").write_text('{"prompt": "a red circle", "seed": 7}\n')
    (folder / "caption.json").write_text(CAPTION)
    subprocess.run([built_program("octet"), "generate", "--model", repository / "models/demo",
                    *PICTURE, "-q", "-o", folder / "made.png"], check=True, capture_output=True)
    return folder


def run_with(program, megabytes, *arguments, folder=None, environment=None):
    limit = int(megabytes * MEGABYTE)
    return subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        timeout=120,
        cwd=folder,
        env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


def check_said(done, *what):
    """Its result or one sentence; true if the sentence is that memory is missing."""
    said = done.stderr.decode()
    assert done.returncode in (0, 1, 2, 3), (what, done.returncode, said)
    assert "terminate" not in said and "unexpected" not in said, (what, said)
    if done.returncode != 1:
        return False
    lines = [line for line in said.splitlines() if line.startswith("octet: ")]
    assert len(lines) == 1 and said.endswith(lines[0] + "\n"), (what, said)
    return "memory" in said


@pytest.fixture(scope="module")
def least(built_program):
    """Megabytes in which the program just begins."""
    program = built_program("octet")
    few, enough = 8.0, 256.0
    while enough - few > 0.1:
        middle = (few + enough) / 2
        done = run_with(program, middle, "help")
        few, enough = (few, middle) if done.returncode == 0 else (middle, enough)
    return enough


@pytest.fixture
def refusals(built_program, least):
    """Counts the limits under which memory is missing for a command."""

    def count(*arguments):
        program = built_program("octet")
        return sum(check_said(run_with(program, least + more, *arguments), more) for more in MORE)

    return count


@pytest.mark.parametrize("form", [[], ["--json", "-"]])
def test_inspect_of_many_tensors(refusals, many, form):
    assert refusals("inspect", many, *form) >= 2


def test_inspect_of_a_long_index(refusals, index):
    assert refusals("inspect", index) >= 2


@pytest.mark.parametrize("form", [[], ["--json", "-"], ["--html", "-"]])
def test_audit_of_many_kernels(refusals, trace, form, tmp_path):
    if form[:1] == ["--html"]:
        form = ["--html", tmp_path / "audit.html"]
    assert refusals("audit", trace, *form) >= 2


def test_a_list_that_does_not_fit_is_not_cut(refusals, rows, repository, tmp_path):
    """Streams of the standard library end where there is no memory, as they do at the end."""
    picture = ["--steps", "1", "--size", "64", "--device", "cpu", "-o", tmp_path / "out.png"]
    model = repository / "models/demo"
    assert refusals("generate", "--model", model, "--caption", rows, *picture) == len(MORE)
    assert list(tmp_path.iterdir()) == []


CAPTION = json.dumps({"high_level_description": "a red circle",
                      "compositional_deconstruction": {"background": "white", "elements": []}})
LIST = ["--steps", "1", "--size", "64", "--device", "cpu"]
PICTURE = ["--caption", CAPTION, *LIST]
# What each command writes is in the folder where it runs; MODEL is that of the demo, and FILES
# that of the fixture.
COMMANDS = {
    "help": ["help"],
    "man": ["man"],
    "completion": ["completion", "bash"],
    "config": ["config"],
    "devices": ["devices"],
    "config as JSON": ["config", "--json", "-"],
    "list": ["list", "MODEL/..", "--json", "-"],
    "rm": ["rm", "nobody/nothing", "-y"],
    "pull": ["pull", "nobody/nothing", "--retries", "0", "--cache-dir", "cache"],
    "caption check": ["caption", "check", CAPTION],
    "caption check --fix": ["caption", "check", "FILES/caption.json", "--fix"],
    "audit of gzip": ["audit", "FILES/trace.json.gz"],
    "audit of SQLite": ["audit", "FILES/nsys.sqlite", "--json", "audit.json"],
    "audit of CSV": ["audit", "FILES/nsys.csv", "--html", "audit.html"],
    "audit of a log": ["audit", "FILES/run.log"],
    "audit of TensorRT": ["audit", "FILES/engine.json"],
    "inspect": ["inspect", "MODEL", "--json", "inspect.json"],
    "map --predict": ["map", "--predict", "3090", "--shapes", "ideogram4@1024", "--svg", "map.svg"],
    "map": ["map", "--shapes", "8,64,64", "--seconds", "0.01", "--device", "cpu"],
    "plan": ["plan", "--card", "3090", "--max-memory", "8GB", "--json", "plan.json"],
    "tune": ["tune", "--shapes", "8,64,64", "--device", "cpu"],
    "bench gemm": ["bench", "gemm", "--shapes", "8,64,64", "--device", "cpu"],
    "bench linear": ["bench", "linear", "--shape", "8,64,64", "--seconds", "0.01", "--device",
                     "cpu"],
    "bench quantize": ["bench", "quantize", "--rows", "8", "--k", "64", "--seconds", "0.01",
                       "--device", "cpu"],
    "bench step": ["bench", "step", "--layers", "1", "--size", "64", "--steps", "1", "--tune",
                   "off", "--device", "cpu"],
    "quantize": ["quantize", "MODEL-bf16", "int8", "--device", "cpu"],
    "quantize --measure": ["quantize", "MODEL-bf16", "--measure", "--report", "errors.html",
                           "--device", "cpu"],
    "demo": ["demo", "--prompt", "a red heart", "--steps", "1", "--device", "cpu"],
    "demo as JPEG": ["demo", "--steps", "1", "--device", "cpu", "-o", "demo.jpg"],
    "generate": ["generate", "--model", "MODEL", *PICTURE, "--json", "report.json"],
    "generate as WebP": ["generate", "--model", "MODEL", *PICTURE, "-o", "out.webp"],
    "generate --from": ["generate", "--model", "MODEL", "--from", "FILES/made.png", "--device",
                        "cpu"],
    "generate from CSV": ["generate", "--model", "MODEL", *LIST, "--caption", "FILES/rows.csv"],
    "generate from JSONL": ["generate", "--model", "MODEL", *LIST, "--caption",
                            "FILES/rows.jsonl"],
    "generate --cache-weights": ["generate", "--model", "MODEL-bf16", *PICTURE, "--cache-weights",
                                 "--preview", "preview.png"],
    "compare": ["compare", "MODEL", "MODEL-bf16", *PICTURE],
    "certify": ["certify", "MODEL", "-n", "1", *PICTURE],
    "bench e2e": ["bench", "e2e", "--model", "MODEL", "--size", "64", "--steps", "1", "--device",
                  "cpu"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command(built_program, command, least, files, repository, tmp_path):
    program = built_program("octet")
    model = str(repository / "models/demo")
    arguments = [word.replace("MODEL", model).replace("FILES", str(files))
                 for word in COMMANDS[command]]
    environment = os.environ | {"OCTET_CACHE_DIR": str(tmp_path / "cache")}
    for more in (0, 1, 3, 9, 27):
        folder = tmp_path / str(more)
        folder.mkdir()
        done = run_with(program, least + more, *arguments, folder=folder, environment=environment)
        if check_said(done, command, more):
            assert [path for path in folder.rglob("*") if path.is_file()] == [], (command, more)
        elif done.returncode == 0:
            break  # and it is in what follows


def test_pull(built_program, least, tmp_path):
    """Nor does a folder that is there, or the network, take the blame."""
    program = built_program("octet")
    hub = Hub({f"a/{i}.bin": File(random_bytes(1_000, i)) for i in range(3)})
    with RunningHub(hub) as server:
        environment = clean_environment(HF_ENDPOINT=server.url, HOME=str(tmp_path))
        for more in (0.3, 9, 12, 15, 40):
            done = run_with(program, least + more, "pull", hub.repo, "--cache-dir",
                            tmp_path / str(more), "--retries", "0", "--connections", "1",
                            environment=environment)
            assert check_said(done, more) or done.returncode == 0, (more, done.stderr)


def test_less_than_the_program_needs(built_program, least):
    """Once its libraries are there, it says so itself, though no constant was made yet."""
    program = built_program("octet")
    refused = 0
    for less in range(1, 33):
        done = run_with(program, least - less / 16, "help")
        assert done.returncode in (1, 127), (less, done)
        refused += done.returncode == 1 and check_said(done, less)
    assert refused >= 3
