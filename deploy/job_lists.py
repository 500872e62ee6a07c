"""GET /v1/jobs of several workers as one list: newest first, `limit`, `after` and `has_more`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

Ask = Callable[[str, dict], Awaitable[dict]]  # what a worker answers to a path and parameters
USUAL, LONGEST = 50, 1000


class Refused(Exception):
    """A worker's answer is no list, and is passed on: its status, body and headers."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str] | None = None):
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers or {}


def order(job: dict) -> tuple[float, str]:
    return job["created_at"] or 0, job["id"]


def merged(pages: list[dict], limit: int) -> dict:
    """Of a worker that has more, nothing is known about what is older than its last one."""
    jobs = sorted((job for page in pages for job in page["data"]), key=order, reverse=True)
    known = max((order(page["data"][-1]) for page in pages if page["has_more"] and page["data"]),
                default=(0, ""))
    shown = [job for job in jobs if order(job) >= known][:limit]
    has_more = len(shown) < len(jobs) or any(page["has_more"] for page in pages)
    return {"object": "list", "data": shown, "has_more": has_more}


async def older_than(ask: Ask, mark: tuple[float, str]) -> dict:
    """A worker's jobs that are older than one of another worker."""
    after: dict = {}
    while True:
        page = await ask("/v1/jobs", {"limit": LONGEST, **after})
        older = [job for job in page["data"] if order(job) < mark]
        if older or not page["has_more"]:
            return {"data": older, "has_more": page["has_more"]}
        after = {"after": page["data"][-1]["id"]}


async def list_of_all(workers: dict[str, Ask], limit: str | None, after: str | None) -> dict:
    """`workers` by their names. One that does not answer has to answer with an empty list."""
    asked = {} if limit is None else {"limit": limit}  # the workers say if it is none
    if after is None:
        pages = await asyncio.gather(*(ask("/v1/jobs", asked) for ask in workers.values()))
    else:
        # If its worker is not there, any other says that there is no such job.
        owner = after.rpartition("-")[0]
        owner = owner if owner in workers else next(iter(workers))
        first = await workers[owner]("/v1/jobs", {**asked, "after": after})
        mark = order(await workers[owner](f"/v1/jobs/{after}", {}))
        pages = [first, *await asyncio.gather(*(older_than(ask, mark) for name, ask
                                                in workers.items() if name != owner))]
    return merged(list(pages), USUAL if limit is None else int(limit))
