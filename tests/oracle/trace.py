"""Answers a trace: `python3 tests/oracle/trace.py < in.jsonl > out.jsonl`.

A header line starts a case with an empty store; each step below it is answered by one
line. Exit status 2: the trace cannot be read, or the oracle has no opinion on a limit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from math import copysign
from typing import Any

import bucket
from bucket import Bucket
from limit import InvalidLimit, Limit, parse

MOST = 2**53 - 1
"""The largest whole number that every language holds exactly."""

LONGEST_KEY = 1024
"""In bytes of UTF-8."""

Line = dict[str, Any]


class Misuse(ValueError):
    """A step that no bucket is asked about; the text is the error code."""


def whole(value: object, code: str) -> int:
    """A whole number from 0 to MOST; 2.0 is one, -0.0 (it has a minus) is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misuse(code)
    if isinstance(value, float) and (not value.is_integer() or copysign(1, value) < 0):
        raise Misuse(code)
    if not 0 <= value <= MOST:
        raise Misuse(code)
    return int(value)


def limits_of(line: Line) -> tuple[Limit, ...]:
    """The limits that a header or a `limits` step names."""
    texts = line.get("limits")
    pieces: list[Any] = texts if isinstance(texts, list) else [texts]
    if not all(isinstance(piece, str) for piece in pieces):
        raise Misuse("invalid_limit")
    try:
        return parse(pieces)
    except InvalidLimit as error:
        raise Misuse("invalid_limit") from error


def is_header(line: Line) -> bool:
    return "limits" in line and "op" not in line


class Case:
    """The store of one case, and the limits its caller has now."""

    def __init__(self, header: Line) -> None:
        self.buckets: dict[str, Bucket | None] = {}
        self.limits: tuple[Limit, ...] = ()
        self.refused: Misuse | None = None
        try:
            self.limits = limits_of(header)
        except Misuse as error:
            self.refused = error

    def answer(self, step: Line) -> Line:
        """The answer to a step, as a line of the output."""
        try:
            if self.refused:
                raise self.refused
            return self.perform(step)
        except Misuse as error:
            return {"error": str(error)}

    def perform(self, step: Line) -> Line:
        op = step.get("op", "acquire")
        if op == "limits":
            self.limits = limits_of(step)
            return {"ok": True}
        if op not in ("acquire", "peek", "refund", "reset"):
            raise Misuse("invalid_option")
        key = step.get("key", "k")
        if not isinstance(key, str) or len(key.encode()) > LONGEST_KEY:
            raise Misuse("invalid_key")
        if op == "reset":
            self.buckets.pop(key, None)
            return {"ok": True}
        now = whole(step.get("at"), "invalid_option")
        cost = whole(step.get("cost", 1), "invalid_cost")
        held = self.buckets.get(key)
        if op == "peek":
            return asdict(bucket.peek(held, self.limits, now, cost))
        if op == "refund":
            self.buckets[key], remaining = bucket.refund(held, self.limits, now, cost)
            return {"ok": True, "remaining": remaining}
        max_wait = whole(step.get("max_wait", 0), "invalid_option")
        self.buckets[key], decision = bucket.acquire(held, self.limits, now, cost, max_wait)
        return asdict(decision)


def answers(lines: Iterable[Line]) -> Iterator[Line]:
    """The answers to all steps of a trace, in order."""
    case = None
    for number, line in enumerate(lines, 1):
        try:
            if is_header(line):
                case = Case(line)
            elif case is None:
                raise ValueError("a step before the first header")
            else:
                yield case.answer(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error


def main() -> int:
    try:
        for answer in answers(json.loads(line) for line in sys.stdin):
            print(json.dumps(answer))
    except ValueError as error:
        print(f"trace: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
