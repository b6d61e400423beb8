"""Plays an access log (common or combined format) against limits, on its own clock.

    python3 tests/oracle/replay.py access.log --limit "1/s burst 10"

Prints JSON: the counts, the keys (most denied first) and one letter per line of the
log, in the log's order: A admitted, D denied, B a line that cannot be read.
"""

from __future__ import annotations

import argparse
import heapq
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import bucket
from bucket import Bucket
from limit import SECOND, Limit, parse

LINE = re.compile(
    r'(\S+) \S+ .+? \[([^\]]+)\] "(?:[^"\\]|\\.)*" \d{3} (?:\d+|-)'
    r'(?: "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*")?\s*'
)

Event = tuple[int, int, str]
"""Time in microseconds, line number (it keeps the order within a second), key."""


def event(number: int, line: str) -> Event | None:
    """What a line of the log asks, or None when it cannot be read."""
    match = LINE.fullmatch(line)
    if match is None:
        return None
    try:
        when = datetime.strptime(match[2], "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        return None
    return int(when.timestamp()) * SECOND, number, match[1]


def in_order(events: Iterable[Event], window: int) -> Iterator[Event]:
    """Sorts events that are out of order by at most the window.

    One that is later still is played at once; its clock never goes back.
    """
    held: list[Event] = []
    newest = reached = 0

    def due(until: int) -> Iterator[Event]:
        nonlocal reached
        while held and held[0][0] <= until:
            time, number, key = heapq.heappop(held)
            reached = max(reached, time)
            yield reached, number, key

    for entry in events:
        heapq.heappush(held, entry)
        newest = max(newest, entry[0])
        yield from due(newest - window)
    yield from due(newest)


def replay(lines: list[str], limits: tuple[Limit, ...], window: int) -> dict[str, Any]:
    """Every line of the log as one acquire of one token."""
    decisions = ["B"] * len(lines)
    buckets: dict[str, Bucket | None] = {}
    admitted: Counter[str] = Counter()
    denied: Counter[str] = Counter()
    events = filter(None, (event(number, line) for number, line in enumerate(lines)))
    for now, number, key in in_order(events, window):
        buckets[key], decision = bucket.acquire(buckets.get(key), limits, now, 1, 0)
        decisions[number] = "A" if decision.allowed else "D"
        (admitted if decision.allowed else denied)[key] += 1
    return {
        "lines": len(lines),
        "bad_lines": decisions.count("B"),
        "admitted": admitted.total(),
        "denied": denied.total(),
        "keys": [
            {"key": key, "admitted": admitted[key], "denied": denied[key]}
            for key in sorted(
                buckets,
                key=lambda key: (-denied[key], key.encode(errors="surrogateescape")),
            )
        ],
        "decisions": "".join(decisions),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("log", metavar="LOG")
    options.add_argument("--limit", action="append", required=True, help="may be given several times")
    options.add_argument("--key", choices=["ip"], default="ip")
    options.add_argument(
        "--window",
        type=int,
        default=60,
        metavar="SECONDS",
        help="how far out of order lines may be",
    )
    given = options.parse_args()
    with open(given.log, encoding="utf-8", errors="surrogateescape", newline="\n") as log:
        lines = [line.removesuffix("\n") for line in log]
    json.dump(replay(lines, parse(given.limit), given.window * SECOND), sys.stdout)
    print()


if __name__ == "__main__":
    main()
