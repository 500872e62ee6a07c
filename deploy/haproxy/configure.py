#!/usr/bin/env python3
"""Writes haproxy.cfg for these workers: configure.py w0=127.0.0.1:8700 w1=127.0.0.1:8701

Each line about w0 in haproxy.cfg is written once for each worker; those about w1 are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

TEMPLATE = Path(__file__).with_name("haproxy.cfg")
WORKER = re.compile(r"([a-z0-9]+)=([A-Za-z0-9_.-]+:[0-9]+)", re.ASCII)
FIRST, SECOND, ADDRESS = "w0", "w1", "127.0.0.1:8700"


def is_about(name: str, line: str) -> bool:
    code = line.partition("#")[0]
    return re.search(rf"\b{name}\b", code) is not None


def configuration(template: str, workers: dict[str, str]) -> str:
    lines: list[str] = []
    for line in template.splitlines():
        if is_about(FIRST, line):
            lines += [re.sub(rf"\b{FIRST}\b", name, line.replace(ADDRESS, address))
                      for name, address in workers.items()]
        elif not is_about(SECOND, line):
            lines.append(line)
    return "\n".join(lines) + "\n"


def with_names_looked_up(text: str) -> str:
    """Workers that have no address yet, or another one later, as in Kubernetes."""
    return text.replace("\ndefaults\n", """
resolvers dns
  parse-resolv-conf
  hold valid 5s
  accepted_payload_size 8192

defaults
  default-server resolvers dns init-addr none resolve-prefer ipv4
""", 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workers", nargs="+", metavar="NAME=HOST:PORT")
    parser.add_argument("--check-every", default="500ms", help="time between two health checks")
    parser.add_argument("--queue", default="60s", help="time that a request may wait for a GPU")
    parser.add_argument("--look-up", action="store_true",
                        help="ask for the workers' addresses again and again")
    parser.add_argument("--user", help="whom HAProxy becomes when it is started by root")
    arguments = parser.parse_args()
    workers: dict[str, str] = {}
    for text in arguments.workers:
        match = WORKER.fullmatch(text)
        if not match or match[1] in workers:
            parser.error(f"expected workers as NAME=HOST:PORT, each name once, got {text}")
        workers[match[1]] = match[2]
    text = configuration(TEMPLATE.read_text(encoding="utf-8"), workers)
    text = text.replace(" maxconn 2\n", f" maxconn {len(workers)}\n")
    text = text.replace("inter 500ms", f"inter {arguments.check_every}")
    text = text.replace("timeout queue 60s", f"timeout queue {arguments.queue}")
    if arguments.user:
        whom = f"  user {arguments.user}\n  group {arguments.user}\n"
        text = text.replace("\nglobal\n", f"\nglobal\n{whom}", 1)
        # It calls itself there, and by then it is no longer root.
        text = text.replace(" mode 600\n", f" mode 600 user {arguments.user}\n")
    if arguments.look_up:
        text = with_names_looked_up(text)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
