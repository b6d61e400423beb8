"""Holds the oracle to cases worked out by hand and to what must be true of any bucket.

Run with `python3 -m unittest discover -s tests/oracle`.
"""

from __future__ import annotations

import unittest
from dataclasses import astuple
from fractions import Fraction
from pathlib import Path
from random import Random

import bucket
from compare import read
from limit import SECOND, InvalidLimit, Limit, OutsideDomain, parse
from random_traces import Writer
from trace import Case, Line, answers, is_header

SAMPLES = Path(__file__).parents[3] / "shared" / "vectors" / "samples.jsonl"


def random_case(seed: int, changes: bool = False, steps: int = 80) -> list[Line]:
    return list(Writer(Random(seed), changes).lines(f"seed {seed}", steps))


class Limits(unittest.TestCase):
    def test_text(self) -> None:
        for text, count, period, capacity in [
            ("10/s", 10, SECOND, 10),
            ("10 / 2s burst 20", 10, 2 * SECOND, 20),
            ("5000 per hour", 5000, 3600 * SECOND, 5000),
            ("1 per 3days burst 7", 1, 259200 * SECOND, 7),
            ("3/us", 3, 1, 3),
        ]:
            self.assertEqual(parse(text), (Limit(count, period, capacity),), text)

    def test_printing_gives_text_that_reads_the_same(self) -> None:
        for text in [
            "10/s",
            "10/90s burst 3",
            "1/36h",
            "7/1500ms",
            "1/7us",
            "2/d burst 2",
        ]:
            self.assertEqual(parse(str(parse(text)[0])), parse(text), text)

    def test_several(self) -> None:
        self.assertEqual(parse("10/s; 20/d"), parse(["10/s", "20/d"]))
        self.assertEqual(parse(["10/s;20/d", "30/h"]), parse("10/s;20/d;30/h"))

    def test_refused(self) -> None:
        for text in [
            "",
            "0/s",
            "1/0s",
            "1/s burst 0",
            "1/S",
            "+1/s",
            "1_0/s",
            "1,0/s",
            "1.5/s",
            "1/s;",
            "60/m;1/60s",
        ]:
            with self.assertRaises(InvalidLimit, msg=text):
                parse(text)
        with self.assertRaises(InvalidLimit):
            parse([])

    def test_no_opinion_outside_the_exact_domain(self) -> None:
        parse(f"1/us burst {2**52}")
        for text in [f"1/us burst {2**52 + 1}", "1/d burst 52125", f"1/{2**52 + 1}us"]:
            with self.assertRaises(OutsideDomain, msg=text):
                parse(text)


class ByHand(unittest.TestCase):
    held: bucket.Bucket | None = None

    def decide(self, now: int, cost: int = 1, max_wait: int = 0, limits: str = "3/s burst 5") -> tuple[object, ...]:
        self.held, said = bucket.acquire(self.held, parse(limits), now, cost, max_wait)
        return astuple(said)

    def test_thirds_of_a_token(self) -> None:
        self.assertEqual(self.decide(0, 5), (True, 0, 0, 1666667, 0))
        self.assertEqual(self.decide(333333), (False, 0, 1, 1333334, 0))
        self.assertEqual(self.decide(333334), (True, 0, 0, 1666666, 0))
        # 0.000002 of a token was left, which makes the next one come 2/3 us earlier.
        self.assertEqual(self.decide(666667), (True, 0, 0, 1666667, 0))

    def test_waiting_and_a_clock_back(self) -> None:
        self.assertEqual(self.decide(10 * SECOND, 5), (True, 0, 0, 1666667, 0))
        self.assertEqual(self.decide(0, 1, 10333333), (False, 0, 10333334, 11666667, 0))
        self.assertEqual(self.decide(0, 1, 10333334), (True, 0, 0, 12000000, 10333334))
        self.assertEqual(self.decide(10 * SECOND, 2), (False, 0, SECOND, 2 * SECOND, 0))

    def test_a_clock_step_is_stored_by_a_denial_only(self) -> None:
        self.decide(20 * SECOND, 5)
        before = self.held
        self.decide(1, 0)
        self.decide(1, 6)
        self.assertEqual(self.held, before)
        self.decide(1, 2)
        self.assertEqual(
            self.held,
            bucket.Bucket(1, (bucket.Level(parse("3/s burst 5")[0], Fraction(0)),)),
        )

    def test_promises_end(self) -> None:
        limits = f"1/us burst {2**52}"
        self.decide(0, 2**52, 0, limits)
        self.assertEqual(self.decide(0, 2**52, 2**53, limits)[:3], (False, 0, 2**52))
        self.assertEqual(self.decide(0, 2**52 - 1, 2**53, limits)[0], True)


class Invariants(unittest.TestCase):
    def test_admitted_is_at_most_capacity_and_refill(self) -> None:
        for seed in range(40):
            random = Random(seed)
            limits = Writer(random, False).limits
            now, spent, held = 0, 0, None
            for _ in range(150):
                now += random.choice([0, 1, random.randrange(10 ** random.randrange(1, 9))])
                cost = random.randint(0, max(1, min(limit.capacity for limit in limits)))
                held, said = bucket.acquire(held, limits, now, cost, 0)
                spent += cost * said.allowed
                for limit in limits:
                    self.assertLessEqual(spent, limit.capacity + limit.rate * now, f"seed {seed}")

    def test_answers_are_within_bounds(self) -> None:
        for seed in range(60):
            header, *steps = random_case(seed)
            least = min(limit.capacity for limit in parse(header["limits"]))
            case = Case(header)
            for step in steps:
                said = case.answer(step)
                self.assertTrue(0 <= said.get("remaining", 0) <= least, step)
                if said.get("allowed") and step.get("op") != "peek":
                    self.assertEqual(said["retry_after"], 0)
                    self.assertLessEqual(said["wait"], step.get("max_wait", 0))
                elif said.get("retry_after"):
                    self.assertLessEqual(said["retry_after"], said["reset_after"])

    def test_a_denied_caller_succeeds_at_retry_after_and_not_before(self) -> None:
        for seed in range(60):
            random = Random(seed)
            limits = Writer(random, False).limits
            most = min(limit.capacity for limit in limits)
            held, _ = bucket.acquire(None, limits, 0, most, 0)
            cost = random.randint(1, most)
            wait = bucket.peek(held, limits, 0, cost).retry_after
            assert wait is not None
            self.assertFalse(bucket.peek(held, limits, wait - 1, cost).allowed)
            self.assertTrue(bucket.peek(held, limits, wait, cost).allowed)

    def test_looking_changes_nothing_and_a_reset_is_final(self) -> None:
        for seed in range(60):
            header, *steps = random_case(seed, changes=True)
            looked, plain = Case(header), Case(header)
            for step in steps:
                for look in ({"op": "peek"}, {"cost": 0}, {"op": "refund", "cost": 0}):
                    looked.answer(step | {"max_wait": 0} | look)
                self.assertEqual(looked.answer(step), plain.answer(step))
            for _ in range(2):
                plain.answer({"at": 0, "op": "reset"})
                said = plain.answer({"at": 0, "op": "peek"})
                self.assertEqual(said["remaining"], min(limit.capacity for limit in plain.limits))
                self.assertEqual(said["reset_after"], 0)


class Samples(unittest.TestCase):
    def test_samples(self) -> None:
        if not SAMPLES.exists():
            self.skipTest("../shared/vectors/samples.jsonl is not there")
        trace = read(SAMPLES)
        self.assertTrue(any(map(is_header, trace)))
        self.assertEqual(list(answers(trace)), read(SAMPLES.with_name("samples.want.jsonl")))


if __name__ == "__main__":
    unittest.main()
