"""The line of blocking requests in the real HAProxy: shares, bounds, and who leaves it."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_deploy_haproxy import (
    GENERATIONS,
    fleet,  # noqa: F401: a fixture
    picture,
)

from local_fleet import Fleet, Proxy, ask, find_haproxy, tell, wait_until

pytestmark = pytest.mark.skipif(not find_haproxy(), reason="haproxy is not installed")


def generate_as(port: int, who: str, seed: int) -> tuple[int, float]:
    """Status, and when the answer came."""
    status = ask(port, "POST", GENERATIONS, picture(seed), {"Authorization": who})[0]
    return status, time.monotonic()


def test_a_client_with_many_requests_does_not_hold_up_another(fleet: Fleet) -> None:  # noqa: F811
    # A basic password is the same key, whatever name goes with it.
    spelled = ["Bearer many", *(f"Basic {base64.b64encode(f'u{i}:many'.encode()).decode()}"
                                for i in range(2))]
    with ThreadPoolExecutor(18) as clients:
        many = [clients.submit(generate_as, fleet.port, spelled[i % 3], i) for i in range(15)]
        wait_until(lambda: waiting(fleet.proxy) >= 10, 10, "the line to be as long as that")
        few = [clients.submit(generate_as, fleet.port, "Bearer few", i) for i in range(2)]
        answers = [each.result() for each in many + few]
        assert {status for status, _ in answers} == {200}
        ends = sorted(end for _, end in answers[:15])
        assert max(end for _, end in answers[15:]) < ends[-5]
        # Some of them are new, but the one that came first is not overtaken for ever.
        assert many[3].result()[1] < ends[-1]


def waiting(proxy: Proxy) -> int:
    page = ask(proxy.metrics_port, "GET", "/metrics")[2].decode()
    return int(re.search(r'^haproxy_backend_current_queue{proxy="blocking"} (\d+)', page,
                         re.MULTILINE)[1])


def test_a1111_clients_see_and_interrupt_their_own_picture(fleet: Fleet) -> None:  # noqa: F811
    fields = {"prompt": "a red circle", "width": 256, "height": 256, "steps": 100}
    # The third has no key, and is known by its address.
    clients = [{"Authorization": "Bearer anna"}, {"Authorization": "Bearer bert"}, {}]

    def progress_of(headers: dict) -> str:
        page = ask(fleet.port, "GET", "/sdapi/v1/progress", None, headers)[2]
        return json.loads(page)["state"]["job"]

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(ask, fleet.port, "POST", "/sdapi/v1/txt2img", fields, headers)
                   for headers in clients]
        wait_until(lambda: len({*map(progress_of, clients)} - {""}) == 3, 30, "all to be painted")
        seen = [{progress_of(headers) for _ in range(4)} for headers in clients]
        assert all(len(ids) == 1 for ids in seen) and len(set.union(*seen)) == 3
        # Who has nothing painted means no picture of the others.
        nobody = {"Authorization": "Bearer nobody"}
        for headers in (nobody, *clients):
            assert progress_of(headers) == "" or headers != nobody
            assert ask(fleet.port, "POST", "/sdapi/v1/interrupt", headers=headers)[0] == 200
        assert [each.result()[0] for each in running] == [409] * 3


def test_no_worker_answers_for_one_without_an_address(fleet: Fleet) -> None:  # noqa: F811
    """As those of --look-up that are not there yet."""
    proxy = Proxy(fleet.workers[:2], fleet.folder)
    try:
        proxy.start()
        wait_until(lambda: proxy.sees("w0") and proxy.sees("w1"), 10, "HAProxy to see both")
        for backend in ("gpu", "owner"):
            tell(proxy.socket, f"set server {backend}/w1 state maint")
        wait_until(lambda: not proxy.sees("w1"), 10, "w1 to be out")
        assert proxy.sees("w0")
        status, _, body = ask(proxy.port, "GET", "/v1/jobs/w1-0")
        assert (status, json.loads(body)["error"]["code"]) == (503, "worker_lost")
    finally:
        proxy.end()


def test_a_client_may_fill_its_own_part_of_the_line_alone(fleet: Fleet) -> None:  # noqa: F811
    proxy = Proxy(fleet.workers[:1], fleet.folder)
    held = []
    try:
        proxy.start()
        wait_until(lambda: proxy.sees("w0"), 10, "HAProxy to see w0")
        for seed in range(32):
            held.append(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60))
            held[-1].request("POST", GENERATIONS, json.dumps(picture(seed, 50)),
                             {"Content-Type": "application/json", "Authorization": "Bearer many"})
        wait_until(lambda: waiting(proxy) == 31, 10, "them to wait")
        begin = time.monotonic()
        status, headers, body = ask(proxy.port, "POST", GENERATIONS, picture(1),
                                    {"Authorization": "Bearer many"})
        error = json.loads(body)["error"]
        assert (status, error["code"]) == (429, "queue_full") and "your" in error["message"]
        assert int(headers["retry-after"]) > 0 and time.monotonic() - begin < 5
        for each in held:  # whoever leaves the line has no place in it
            each.close()
        assert generate_as(proxy.port, "Bearer few", 1)[0] == 200
        wait_until(lambda: not re.search("conn_cur=[1-9]", clients_of(proxy, "many")), 10,
                   "them to be forgotten")
        assert generate_as(proxy.port, "Bearer many", 1)[0] == 200
    finally:
        for each in held:
            each.close()
        proxy.end()


def test_many_who_leave_at_once_stop_nobody(fleet: Fleet) -> None:  # noqa: F811
    """HAProxy 2.6 forgets who still waits, in about every second round; so somebody wakes it."""
    proxy = Proxy(fleet.workers[:1], fleet.folder, queue="20s")
    try:
        proxy.start()
        wait_until(lambda: proxy.sees("w0"), 10, "HAProxy to see w0")
        for seed in range(5):
            held = [http.client.HTTPConnection("127.0.0.1", proxy.port) for _ in range(25)]
            for each in held:
                each.request("POST", GENERATIONS, json.dumps(picture(seed, 50)),
                             {"Content-Type": "application/json", "Authorization": "Bearer many"})
            time.sleep(0.05)
            for each in held:
                each.close()
            assert generate_as(proxy.port, "Bearer few", seed)[0] == 200
    finally:
        proxy.end()


def clients_of(proxy: Proxy, key: str) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest().upper()
    return tell(proxy.socket, f"show table blocking_clients key {digest}")
