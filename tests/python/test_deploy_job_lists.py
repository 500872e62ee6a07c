"""One list of the jobs of several workers, which are lists here."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy"))

from job_lists import Refused, list_of_all, order  # noqa: E402


class Worker:
    """Answers as octet serve does, with pages of at most `longest` jobs."""

    def __init__(self, jobs: list[dict], longest: int = 1000):
        self.jobs, self.longest = sorted(jobs, key=order, reverse=True), longest

    async def ask(self, path: str, parameters: dict) -> dict:
        ids = [job["id"] for job in self.jobs]
        if path != "/v1/jobs":
            return self.jobs[ids.index(path.removeprefix("/v1/jobs/"))]
        limit = int(parameters.get("limit", 50))
        if not 1 <= limit <= 1000:
            raise Refused(400, b"limit")
        begin = 0
        if "after" in parameters:
            if parameters["after"] not in ids:
                raise Refused(404, b"after")
            begin = ids.index(parameters["after"]) + 1
        end = begin + min(limit, self.longest)
        return {"data": self.jobs[begin:end], "has_more": end < len(self.jobs)}


def a_fleet(counts: dict[str, int], longest: int = 1000) -> tuple[dict, list[str]]:
    """Workers with so many jobs, and all their ids, newest first."""
    draw = random.Random(7)
    jobs = {name: [{"id": f"{name}-{number}", "created_at": draw.randrange(200) / 2}
                   for number in range(count)] for name, count in counts.items()}
    every = sorted((job for each in jobs.values() for job in each), key=order, reverse=True)
    return ({name: Worker(each, longest).ask for name, each in jobs.items()},
            [job["id"] for job in every])


def page(workers: dict, limit: str | None = None, after: str | None = None) -> dict:
    return asyncio.run(list_of_all(workers, limit, after))


@pytest.mark.parametrize("longest", [1000, 3])
@pytest.mark.parametrize("counts", [{"a": 9, "b": 30, "c": 0}, {"a": 70}, {"a": 0, "b": 0}])
def test_pages_of_all_workers_are_the_whole_list(counts: dict, longest: int) -> None:
    workers, expected = a_fleet(counts, longest)
    for limit in (None, "1", "7", "1000"):
        seen: list[str] = []
        after = None
        while True:
            found = page(workers, limit, after)
            seen += [job["id"] for job in found["data"]]
            assert len(found["data"]) <= int(limit or 50)
            if not found["has_more"]:
                break
            after = seen[-1]
        assert seen == expected


def test_the_last_page_says_so() -> None:
    workers, ids = a_fleet({"a": 5, "b": 5})
    assert page(workers, "10")["has_more"] is False and page(workers, "9")["has_more"] is True
    assert page(workers, "5", after=ids[4])["has_more"] is False
    assert page(workers, "5", after=ids[9]) == {"object": "list", "data": [], "has_more": False}


def test_refusals_are_passed_on() -> None:
    workers, _ = a_fleet({"a": 3, "b": 3})
    for limit, after, status in (("0", None, 400), (None, "b-99", 404), (None, "gone-1", 404)):
        with pytest.raises(Refused) as refused:
            page(workers, limit, after)
        assert refused.value.status == status

    async def no_key(path: str, parameters: dict) -> dict:
        raise Refused(401, json.dumps({"error": {}}).encode())

    with pytest.raises(Refused) as refused:
        page({**workers, "c": no_key})
    assert refused.value.status == 401
