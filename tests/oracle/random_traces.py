"""Writes random traces.

    python3 tests/oracle/random_traces.py --seed 1 --cases 100 --steps 60 > x.jsonl

The same seed writes the same traces. The clock often jumps to just before, at or just
after the times that the oracle's last answer names: that is where implementations
differ.

With --changes, limits change within a case: numbers, order, limits put in and left out.
In one case a period takes on a second scale (units per token) at most. What is held is
then rounded down to whole units once at most, and this is never seen: answers are whole
numbers, rounded down from the tokens held or up from the missing ones. So on all these
traces every implementation must agree with the oracle exactly.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from bucket import STEP
from limit import EXACT, SECOND, UNITS, Limit
from trace import MOST, Case, Line

DAY = UNITS["d"]
PERIODS = [
    1,
    7,
    1000,
    100_000,
    SECOND,
    2 * SECOND,
    7 * SECOND,
    60 * SECOND,
    900 * SECOND,
    3600 * SECOND,
    DAY,
]
MISUSES: list[Line] = [
    {"cost": -1},
    {"cost": 2.5},
    {"cost": "1"},
    {"cost": MOST + 1},
    {"op": "peek", "cost": -3},
    {"op": "refund", "cost": 0.5},
    {"max_wait": -1},
    {"max_wait": 0.25},
    {"op": "take"},
    {"key": "k" * 1025},
]
REFUSED = [["0/s"], ["1/s burst 0"], ["3/x"], ["60/m", "1/60s"], []]


class Writer:
    """One random case, played on the oracle as it is written."""

    def __init__(self, random: Random, changes: bool) -> None:
        self.random = random
        self.changes = changes
        self.scales: dict[int, list[int]] = {}
        self.limits = self.some_limits()
        self.now = random.choice([0, random.randrange(DAY), 1_700_000_000 * SECOND])
        self.last: Line = {}

    def upto(self, most: int) -> int:
        """From 1 to most, small as often as large."""
        return min(most, int(most ** self.random.random()))

    def limit(self, period: int) -> Limit:
        """A limit in the exact domain, of at most one token a microsecond."""
        scales = self.scales.setdefault(period, [])
        keep = len(scales) == 2 or (scales and self.random.random() < 0.5)
        while True:
            count = self.upto(period)
            count = self.random.choice([count, min(count, 100), 10 ** (len(str(count)) - 1)])
            if keep:
                count = period // scales[-1] * self.upto(min(100, scales[-1]))
            capacity = self.random.choice(
                [
                    count,
                    1,
                    self.upto(2 * count),
                    self.upto(1000),
                    count + self.upto(count),
                ]
            )
            limit = Limit(count, period, capacity)
            if limit.capacity * limit.scale > EXACT:
                continue
            if keep and limit.scale != scales[-1]:
                continue
            if limit.scale not in scales:
                scales.append(limit.scale)
            return limit

    def some_limits(self) -> list[Limit]:
        return [self.limit(period) for period in self.random.sample(PERIODS, self.random.choice([1, 1, 2, 2, 3, 4]))]

    def changed(self) -> list[Limit]:
        """The limits after someone edited them."""
        limits = list(self.limits)
        place = self.random.randrange(len(limits))
        match self.random.choice(["numbers", "capacity", "capacity", "add", "drop", "order", "all"]):
            case "numbers":
                limits[place] = self.limit(limits[place].period)
            case "capacity":
                most = EXACT // limits[place].scale
                raised = min(
                    most,
                    limits[place].capacity * self.random.choice([1, 2, 10]) + self.random.randrange(2),
                )
                lowered = self.upto(limits[place].capacity)
                limits[place] = replace(limits[place], capacity=self.random.choice([raised, lowered]))
            case "add":
                unused = [period for period in PERIODS if all(period != limit.period for limit in limits)]
                limits.insert(place, self.limit(self.random.choice(unused)))
            case "drop" if len(limits) > 1:
                del limits[place]
            case "order":
                self.random.shuffle(limits)
            case _:
                limits = self.some_limits()
        return limits

    def tick(self) -> None:
        """Moves the clock: little, or to a time that matters; far or back at times."""
        chance = self.random.random()
        if chance < 0.35:
            moved = 0
        elif chance < 0.5:
            moved = self.upto(1000)
        elif chance < 0.75:
            named = [self.last.get(name) or 0 for name in ("retry_after", "reset_after", "wait")]
            moved = self.random.choice(named) + self.random.choice([-1, 0, 0, 1])
        elif chance < 0.85:
            limit = self.random.choice(self.limits)
            moved = self.random.randrange(1, 3 * limit.period // limit.count + 2)
        elif chance < 0.9:
            moved = self.upto(10 * DAY)
        elif chance < 0.97:
            moved = -self.random.choice([1, self.upto(STEP), STEP])
        else:
            moved = -self.random.choice([STEP + 1, STEP + self.upto(3600 * SECOND)])
        self.now = max(0, self.now + moved)

    def cost(self) -> int:
        capacity = min(limit.capacity for limit in self.limits)
        return self.random.choice(
            [
                0,
                1,
                1,
                1,
                1,
                self.upto(capacity),
                self.upto(capacity),
                capacity,
                capacity + 1,
            ]
        )

    def step(self) -> Line:
        """One step, with only the fields that differ from the defaults."""
        chance = self.random.random()
        if self.changes and chance < 0.08:
            if self.random.random() < 0.1:
                return {"op": "limits", "limits": self.random.choice(REFUSED)}
            self.limits = self.changed()
            return {"op": "limits", "limits": [str(limit) for limit in self.limits]}
        step: Line = {"key": self.random.choice(["k", "k", "k", "", "{other}"])}
        if chance > 0.98:
            return step | self.random.choice(MISUSES)
        if chance > 0.97:
            return step | {"op": "reset"}
        if chance > 0.85:
            return step | {
                "op": self.random.choice(["peek", "refund"]),
                "cost": self.cost(),
            }
        step["cost"] = self.cost()
        if self.random.random() < 0.4:
            step["max_wait"] = self.random.choice([1, self.upto(STEP), self.upto(1000 * DAY)])
        return step

    def lines(self, name: str, steps: int) -> Iterator[Line]:
        header: Line = {"name": name, "limits": [str(limit) for limit in self.limits]}
        case = Case(header)
        yield header
        for _ in range(steps):
            self.tick()
            line = {"at": self.now} | self.step()
            self.last = case.answer(line)
            yield line


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--cases", type=int, default=100)
    options.add_argument("--steps", type=int, default=60)
    options.add_argument("--changes", action="store_true", help="change limits within a case")
    given = options.parse_args()
    for number in range(given.cases):
        random = Random(f"{given.seed}/{number}")
        for line in Writer(random, given.changes).lines(f"seed {given.seed} case {number}", given.steps):
            json.dump(line, sys.stdout, separators=(",", ":"))
            print()


if __name__ == "__main__":
    main()
