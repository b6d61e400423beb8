"""A limit: tokens per period, how many a bucket can hold, and both as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

EXACT = 2**52
"""Up to so many units (capacity * scale) everyone must be exact, the oracle too."""

SECOND = 1_000_000
UNITS = {
    "us": 1,
    "ms": 1000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86400 * SECOND,
}
WORDS = {f"{word}{plural}": UNITS[word[0]] for word in ("second", "minute", "hour", "day") for plural in ("", "s")}
ALL_UNITS = UNITS | WORDS
TEXT = re.compile(
    rf" *([0-9]+)(?: */ *| +per +)([0-9]*)({'|'.join(ALL_UNITS)})"
    r"(?: +burst +([0-9]+))? *"
)


class InvalidLimit(ValueError):
    """The text is no limit, or two limits have one period."""


class OutsideDomain(ValueError):
    """The limit cannot be held exactly: the oracle has no opinion on it."""


@dataclass(frozen=True)
class Limit:
    """`count` tokens a `period` (microseconds), at most `capacity` of them at once."""

    count: int
    period: int
    capacity: int

    @property
    def rate(self) -> Fraction:
        """Tokens per microsecond."""
        return Fraction(self.count, self.period)

    @property
    def scale(self) -> int:
        """Units in a token, such that a microsecond refills a whole number of them."""
        return self.period // gcd(self.count, self.period)

    def __str__(self) -> str:
        burst = "" if self.capacity == self.count else f" burst {self.capacity}"
        unit, size = max(
            ((unit, size) for unit, size in UNITS.items() if self.period % size == 0),
            key=lambda item: item[1],
        )
        times = self.period // size
        return f"{self.count}/{'' if times == 1 else times}{unit}{burst}"


def parse(texts: str | Iterable[str]) -> tuple[Limit, ...]:
    """Reads limits from text with `;` between them, or from a list of such texts."""
    pieces = [texts] if isinstance(texts, str) else list(texts)
    limits = tuple(one(text) for piece in pieces for text in piece.split(";"))
    if not limits:
        raise InvalidLimit("no limit")
    if len({limit.period for limit in limits}) < len(limits):
        raise InvalidLimit("two limits of one period")
    return limits


def one(text: str) -> Limit:
    """Reads a single limit."""
    match = TEXT.fullmatch(text)
    if match is None:
        raise InvalidLimit(f"not a limit: {text!r}")
    count, times, unit, burst = match.groups()
    limit = Limit(int(count), int(times or 1) * ALL_UNITS[unit], int(burst or count))
    if not (limit.count and limit.period and limit.capacity):
        raise InvalidLimit(f"a zero in {text!r}")
    if limit.capacity * limit.scale > EXACT:
        raise OutsideDomain(f"not exact in whole numbers: {text!r}")
    return limit
