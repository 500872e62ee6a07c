"""The files of deploy/ and docker/ agree with each other and with the program.

Kubernetes' own schemas are used where `kubernetes-validate` is installed (PyPI); those of KEDA and
of the Prometheus operator are not to be had that way, so what we rely on is checked by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SERVE = DEPLOY.parent / "apps/cli/serve.cpp"


def documents(name: str) -> dict[tuple[str, str], dict]:
    text = (DEPLOY / "kubernetes" / name).read_text()
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}


def flags_of_serve() -> set[str]:
    common = {"--model", "--base", "--device", "--threads", "--quiet", "--json"}
    return common | set(re.findall(r'"(--[a-z-]+)"', SERVE.read_text()))


@pytest.fixture
def workers() -> dict:
    return documents("workers.yaml")


@pytest.fixture
def proxy() -> dict:
    return documents("proxy.yaml")


def seconds_to_end(grace: int) -> float:
    """After SIGTERM: the jobs under way, their clients, and answers that are half sent."""
    defaults = (DEPLOY.parent / "apps/server/server.h").read_text()
    source = (DEPLOY.parent / "apps/server/server.cpp").read_text()
    linger = float(re.search(r"double linger_s = (\d+)", defaults)[1])
    return grace + linger + float(re.search(r"server\.stop\(/\*seconds=\*/(\d+)\)", source)[1])


def pod_of(kind: dict) -> dict:
    return kind["spec"]["template"]["spec"]


def test_kubernetes_accepts_the_manifests() -> None:
    validator = pytest.importorskip("kubernetes_validate")
    for name in ("workers.yaml", "proxy.yaml"):
        for each in documents(name).values():
            validator.validate(each, validator.latest_version(), strict=True)


def test_selectors_find_the_pods(workers: dict, proxy: dict) -> None:
    for kind, files in (("StatefulSet", workers), ("Deployment", proxy)):
        (each,) = (value for (which, _), value in files.items() if which == kind)
        labels = each["spec"]["template"]["metadata"]["labels"]
        for (which, _), other in files.items():
            selector = other["spec"].get("selector") if "spec" in other else None
            selector = selector or (other.get("spec") or {}).get("podSelector")
            if selector and which != kind:
                assert selector.get("matchLabels", selector) == labels, which
    assert workers[("StatefulSet", "octet")]["spec"]["serviceName"] == "octet"
    (rule,) = workers[("NetworkPolicy", "octet")]["spec"]["ingress"]
    labels = proxy[("Deployment", "octet-proxy")]["spec"]["template"]["metadata"]["labels"]
    assert {"podSelector": {"matchLabels": labels}} in rule["from"]


def test_probes_and_patience(workers: dict) -> None:
    pod = pod_of(workers[("StatefulSet", "octet")])
    (container,) = pod["containers"]
    paths = {probe: container[probe]["httpGet"]["path"]
             for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths == {"startupProbe": "/ready", "readinessProbe": "/ready",
                     "livenessProbe": "/health"}
    arguments = dict(word.split("=", 1) for word in container["args"] if "=" in word)
    assert seconds_to_end(int(arguments["--grace"])) < pod["terminationGracePeriodSeconds"]
    assert arguments["--name"] == "w$(POD_INDEX)"
    # What `octet quantize` writes has no text encoder: it needs a base.
    for flag in ("--keys", "--model", "--base"):
        folder = "/" + arguments[flag].split("/")[1]
        assert folder in [mount["mountPath"] for mount in container["volumeMounts"]], flag
    assert set(arguments) <= flags_of_serve()
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_the_proxy_knows_as_many_workers_as_there_may_be(proxy: dict) -> None:
    scaled = documents("autoscale.yaml")[("ScaledObject", "octet")]["spec"]
    (init,) = pod_of(proxy[("Deployment", "octet-proxy")])["initContainers"]
    last = int(re.search(r"seq 0 (\d+)", init["command"][-1])[1])
    assert last + 1 == scaled["maxReplicaCount"]
    assert "octet-$i.octet.octet.svc.cluster.local:8642" in init["command"][-1]
    assert scaled["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet",
                                        "name": "octet"}


def test_the_metrics_that_are_asked_for_exist() -> None:
    (trigger,) = documents("autoscale.yaml")[("ScaledObject", "octet")]["spec"]["triggers"]
    asked = set(re.findall(r"octet_\w+", trigger["metadata"]["query"]))
    asked |= set(re.findall(r"octet_\w+", (DEPLOY / "haproxy/haproxy.cfg").read_text()))
    asked |= set(re.findall(r"octet_\w+", (DEPLOY / "haproxy/rolling_restart.py").read_text()))
    metrics = (DEPLOY.parent / "apps/server/routes/metrics.cpp").read_text()
    assert asked == {"octet_queue_depth", "octet_jobs_running", "octet_ready",
                     "octet_start_time_seconds"}
    assert all(f'"{name}"' in metrics for name in asked)


def test_compose_waits_longer_than_the_workers_take_to_end() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    names = [name for name in composed["services"] if re.fullmatch(r"w\d+", name)]
    assert names == ["w0", "w1"]
    for name in names:
        worker = composed["services"][name]
        words = worker["command"]
        assert words[0] == "serve" and words[words.index("--name") + 1] == name
        assert {word for word in words if word.startswith("--")} <= flags_of_serve()
        patience = int(worker["stop_grace_period"].rstrip("s"))
        assert seconds_to_end(int(words[words.index("--grace") + 1])) < patience
        assert f"{name}={name}:8642" in composed["services"]["config"]["command"][-1]
        assert worker["networks"] == ["workers"] and composed["networks"]["workers"]["internal"]
        assert (DEPLOY / worker["build"]["context"] / worker["build"]["dockerfile"]).is_file()
        assert (DEPLOY.parent / "docker" / worker["healthcheck"]["test"][1]).stat().st_mode & 0o111
    proxy = composed["services"]["proxy"]
    # Docker ends it first, with what the workers were still to answer.
    assert int(proxy["stop_grace_period"].rstrip("s")) >= patience
    assert proxy["depends_on"].keys() == {"config", *names}
    for port in proxy["ports"]:
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_images_serve_and_are_asked_whether_they_do(name: str) -> None:
    text = (DEPLOY.parent / f"docker/{name}.Dockerfile").read_text()
    assert 'CMD ["serve", "--host", "0.0.0.0", "--insecure"]' in text.splitlines()
    assert re.search(r'^HEALTHCHECK .* CMD \["octet-is-healthy"\]$', text, re.MULTILINE)
    assert "libmicrohttpd-dev" in text and "COPY docker/octet-is-healthy" in text
    assert not re.search(r"^USER root", text, re.MULTILINE)


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (None, 1)])
def test_an_image_knows_its_health(status: int | None, code: int) -> None:
    class Ready(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.path == "/ready" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Ready) as server:
        if status is None:
            server.server_close()
        else:
            threading.Thread(target=server.handle_request, daemon=True).start()
        done = subprocess.run([DEPLOY.parent / "docker/octet-is-healthy"], capture_output=True,
                              env={**os.environ, "OCTET_PORT": str(server.server_port)})
    assert done.returncode == code


def unit() -> str:
    return (DEPLOY / "systemd/octet@.service").read_text()


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    for text, is_good in ((unit(), True), (unit().replace("TimeoutStop", "TimeoutStopp"), False)):
        (tmp_path / "octet@.service").write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", tmp_path / "octet@0.service"],
                              capture_output=True, text=True)
        if "Failed to" in done.stderr and "Unknown" not in done.stderr:
            pytest.skip(f"systemd-analyze does not work here: {done.stderr.splitlines()[0]}")
        about_ours = [line for line in done.stderr.splitlines() if "octet@" in line]
        assert (about_ours == []) == is_good, about_ours


def test_a_unit_is_given_longer_than_its_worker_takes_to_end() -> None:
    text = unit()
    grace = int(re.search(r"--grace (\d+)", text)[1])
    patience = int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)[1])
    assert seconds_to_end(grace) < patience
    assert set(re.findall(r"(--[a-z-]+) ", text[text.index("ExecStart=/"):])) <= flags_of_serve()
    assert "Restart=on-failure" in text
    # The port and name are those that haproxy.cfg has for the first two.
    proxy = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    assert "$$((8700 + %i))" in text and "--name w%i" in text
    assert "server w0 127.0.0.1:8700" in proxy and "server w1 127.0.0.1:8701" in proxy


def test_the_unit_needs_no_group_that_a_bare_machine_lacks() -> None:
    """systemd starts nothing if one is missing: `render` is made by udev, which it may lack."""
    groups = re.search(r"^SupplementaryGroups=(.*)$", unit(), re.MULTILINE)[1].split()
    assert groups == ["video"]


def test_the_unit_may_write_what_the_server_writes() -> None:
    text = unit()
    assert "ProtectSystem=strict" in text and "ReadOnlyPaths" not in text
    assert "--state %S/octet/w%i" in text and "\nStateDirectory=octet\n" in text
    assert "OCTET_CACHE_DIR=%C/octet HF_HOME=%C/octet/" in text
    assert "\nCacheDirectory=octet\n" in text


def test_the_unit_stays_locked(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    (tmp_path / "octet@.service").write_text(unit())
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=17",
                           tmp_path / "octet@.service"], capture_output=True, text=True)
    if "unrecognized option" in done.stderr:
        pytest.skip("systemd-analyze is older than 250")
    assert done.returncode == 0, done.stdout.splitlines()[-1:] + done.stderr.splitlines()


def test_a_package_has_the_unit(build_dir: Path, tmp_path: Path) -> None:
    """Packages are made of components; `make install` leaves the unit to who wants it."""
    subprocess.run(["cmake", "--install", build_dir, "--component", "program", "--prefix",
                    tmp_path], check=True, capture_output=True)
    assert (tmp_path / "lib/systemd/system/octet@.service").read_text() == unit()
