"""A bucket and the decisions on it, in exact fractions: slow, plain, the yardstick.

All times are whole microseconds. Every function is pure: it takes a bucket, or None
where there is none, and returns the bucket to store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from limit import EXACT, Limit

STEP = 10_000_000
"""A bucket further ahead of the clock than this means that the clock was set back."""

MOST_PROMISED = EXACT - 1
"""The most units (tokens * scale) that waiters can be promised."""


@dataclass(frozen=True)
class Level:
    """What is left of one limit: below zero when waiters were promised some."""

    limit: Limit
    tokens: Fraction

    @property
    def full(self) -> bool:
        return self.tokens >= self.limit.capacity

    @property
    def overdrawn(self) -> bool:
        return self.tokens * self.limit.scale < -MOST_PROMISED

    def until(self, tokens: int) -> int:
        """How long it refills until it has that many tokens."""
        return max(0, ceil((tokens - self.tokens) / self.limit.rate))

    def plus(self, tokens: Fraction | int) -> Level:
        """With tokens put in (never above the capacity) or, below zero, taken out."""
        return replace(self, tokens=min(Fraction(self.limit.capacity), self.tokens + tokens))

    def under(self, limit: Limit) -> Level:
        """What is left, under new numbers for the same period.

        A promise that is too large for the new numbers saturates.
        """
        return Level(limit, max(self.tokens, Fraction(-MOST_PROMISED, limit.scale))).plus(0)


@dataclass(frozen=True)
class Bucket:
    """Levels at one time, each under the limit that it was last written with."""

    at: int
    levels: tuple[Level, ...]

    @property
    def full_at(self) -> int:
        return self.at + max(level.until(level.limit.capacity) for level in self.levels)

    def gone(self, now: int) -> bool:
        """Full is the same as no bucket."""
        return now >= self.full_at

    def shifted(self, now: int) -> Bucket:
        """After a clock step refill starts again from now; else the bucket as it is."""
        return replace(self, at=now) if self.at - now > STEP else self


@dataclass(frozen=True)
class Decision:
    """The answer to acquire and peek; retry_after None means never."""

    allowed: bool
    remaining: int
    retry_after: int | None
    reset_after: int
    wait: int


@dataclass(frozen=True)
class View:
    """A bucket as one caller sees it now: its own limits, and the others as left."""

    at: int
    ahead: int
    known: tuple[Level, ...]
    others: tuple[Level, ...] = ()

    @property
    def full(self) -> bool:
        return all(level.full for level in self.known + self.others)

    @property
    def remaining(self) -> int:
        return max(0, min(floor(level.tokens) for level in self.known))

    @property
    def reset_after(self) -> int:
        return max(self.ahead + level.until(level.limit.capacity) if not level.full else 0 for level in self.known)

    def wait(self, cost: int) -> int:
        """How long until every known level has the cost."""
        if cost == 0:
            return 0
        return max(self.ahead + level.until(cost) if level.tokens < cost else 0 for level in self.known)

    def plus(self, tokens: int) -> View:
        return replace(self, known=tuple(level.plus(tokens) for level in self.known))

    def bucket(self) -> Bucket | None:
        """What is stored once this caller has written."""
        return None if self.full else Bucket(self.at, self.known + self.others)

    def says(self, allowed: bool, retry_after: int | None, wait: int = 0) -> Decision:
        return Decision(allowed, self.remaining, retry_after, self.reset_after, wait)


def look(bucket: Bucket | None, limits: Sequence[Limit], now: int) -> View:
    """What a caller with these limits sees."""
    if bucket is None or bucket.gone(now):
        return View(now, 0, tuple(Level(limit, Fraction(limit.capacity)) for limit in limits))
    bucket = bucket.shifted(now)
    elapsed = max(0, now - bucket.at)
    left = {level.limit.period: level for level in bucket.levels}
    known = []
    for limit in limits:
        level = left.pop(limit.period, None)
        if level is None:
            known.append(Level(limit, Fraction(limit.capacity)))
        else:
            known.append(level.under(limit).plus(limit.rate * elapsed))
    at = max(now, bucket.at)
    view = View(at, at - now, tuple(known), tuple(left.values()))
    # A full bucket owes nothing to the time ahead: who takes from it starts now.
    return replace(view, at=now, ahead=0) if view.full else view


def peek(bucket: Bucket | None, limits: Sequence[Limit], now: int, cost: int) -> Decision:
    """What acquire without waiting would answer, with nothing taken."""
    view = look(bucket, limits, now)
    if any(cost > limit.capacity for limit in limits):
        return view.says(False, None)
    wait = view.wait(cost)
    return view.says(wait == 0, wait)


def acquire(
    bucket: Bucket | None, limits: Sequence[Limit], now: int, cost: int, max_wait: int
) -> tuple[Bucket | None, Decision]:
    """Takes the cost from every limit, or nothing."""
    seen = peek(bucket, limits, now, cost)
    if cost == 0 or seen.retry_after is None:
        return bucket, seen
    view = look(bucket, limits, now)
    wait = view.wait(cost)
    taken = view.plus(-cost)
    if wait > max_wait or any(level.overdrawn for level in taken.known):
        return bucket and bucket.shifted(now), view.says(False, wait)
    return taken.bucket(), taken.says(True, 0, wait)


def refund(bucket: Bucket | None, limits: Sequence[Limit], now: int, count: int) -> tuple[Bucket | None, int]:
    """Gives tokens back, and says what remains."""
    view = look(bucket, limits, now)
    if count == 0 or bucket is None or bucket.gone(now):
        return bucket, view.remaining
    view = view.plus(count)
    return view.bucket(), view.remaining
