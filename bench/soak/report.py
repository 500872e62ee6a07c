"""The table of a soak, and its verdict."""

from __future__ import annotations

from collections import defaultdict

from .ledger import Ledger
from .server import Sample, Server

FIRST_EVENT_S, OWN_S = 0.050, 0.005
GROWTH = 1.1  # of memory from the middle third of the last process's life to its last third
SPARE_FILES = 4  # that may be open after the last client has left, beside those of the start
MIB = 1 << 20


def share(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def in_ms(values: list[float], parts=(0.5, 0.95, 0.99)) -> str:
    return "".join(f"{1e3 * share(values, part):>9.1f}" for part in parts)


def kinds_table(ledger: Ledger) -> list[str]:
    statuses = defaultdict(dict)
    for (kind, status), count in ledger.statuses.items():
        statuses[kind][status] = count
    lines = [f"{'requests':<32}{'count':>8}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}  statuses"]
    for kind in sorted(statuses):
        counts = statuses[kind]
        shown = ", ".join(f"{status}: {counts[status]}" for status in sorted(counts, key=str))
        lines.append(f"{kind:<32}{sum(counts.values()):>8}{in_ms(ledger.seconds[kind])}  {shown}")
    return lines


def thirds(samples: list[Sample]) -> list[list[Sample]]:
    """By time; the samples of a process are taken at a steady pace."""
    third = max(len(samples) // 3, 1)
    return [samples[:third], samples[third:2 * third], samples[2 * third:]]


def memory_faults(samples: list[Sample], kept_bytes: list[int]) -> list[str]:
    """Flat: the last third's most is at most the middle third's, a tenth more, and what the
    server keeps for its clients beside it."""
    _, middle, last = thirds(samples)
    kept = max(kept_bytes[-1] - kept_bytes[len(kept_bytes) // 2], 0) if kept_bytes else 0
    most = max(each.rss for each in middle) * GROWTH + kept
    found = max(each.rss for each in last)
    if found > most:
        yield f"memory grew to {found / MIB:.0f} MiB, expected at most {most / MIB:.0f}"
    threads = [max(each.threads for each in part) for part in (middle, last)]
    if threads[1] > threads[0]:
        yield f"threads grew from {threads[0]} to {threads[1]}"


def lives_table(server: Server) -> list[str]:
    lines = [f"{'process':<10}{'s':>8}{'MiB: start':>12}{'third 1':>10}{'third 2':>10}"
             f"{'third 3':>10}{'end':>8}{'threads':>9}{'files':>14}  exit"]
    exits = [*server.exits, "runs"]
    for index, samples in enumerate(server.lives):
        parts = [f"{max(each.rss for each in part or samples) / MIB:.0f}"
                 for part in thirds(samples)]
        files = [each.files for each in samples]
        lines.append(
            f"{index + 1:<10}{samples[-1].at - samples[0].at:>8.0f}"
            f"{samples[0].rss / MIB:>12.0f}{parts[0]:>10}{parts[1]:>10}{parts[2]:>10}"
            f"{samples[-1].rss / MIB:>8.0f}{max(each.threads for each in samples):>9}"
            f"{f'{files[0]}/{max(files)}/{files[-1]}':>14}  {exits[index]}")
    lines.append("files: open at the start, at most, and after the last client has left")
    return lines


def goal(name: str, seconds: list[float], part: float, most: float) -> tuple[str, bool]:
    found = share(seconds, part)
    is_met = bool(seconds) and found <= most
    return (f"{name:<58}{in_ms(seconds)}  {'met' if is_met else 'MISSED'}: "
            f"p{100 * part:.0f} at most {1e3 * most:.0f} ms"), is_met


def goals_table(ledger: Ledger) -> tuple[list[str], bool]:
    rows = [goal("first event of a stream", ledger.first_event, 0.5, FIRST_EVENT_S),
            goal("a job's time that is not the engine's (PNG included)", ledger.beside_engine,
                 0.5, OWN_S)]
    lines = [f"{'time':<58}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}"]
    return lines + [text for text, _ in rows], all(is_met for _, is_met in rows)


def ends_line(ledger: Ledger) -> str:
    ends = defaultdict(int)
    names = {"failed": "failed (restarted)", None: "unknown"}
    for noted in ledger.jobs.values():
        ends[names.get(noted.end, noted.end)] += 1
    listed = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    return (f"jobs: {len(ledger.jobs)}: {listed}; {ledger.pictures} pictures compared with their "
            f"requests, {ledger.validated} answers with /openapi.json")


def show(ledger: Ledger, server: Server, seconds: float, requests: int) -> bool:
    """Prints it; whether all went well."""
    goals, goals_met = goals_table(ledger)
    blocks = [kinds_table(ledger), goals, lives_table(server),
              [ends_line(ledger), f"{requests} requests in {seconds:.0f} s"]]
    print("\n" + "\n\n".join("\n".join(lines) for lines in blocks) + "\n")
    if ledger.violations:
        print(f"{len(ledger.violations)} violations; the first of them:")
        print("\n".join(f"  {each}" for each in ledger.violations[:20]))
    print(f"verdict: {'failed' if ledger.violations else 'passed'}"
          f"{'' if goals_met else '; goals of time are missed'}")
    return not ledger.violations
