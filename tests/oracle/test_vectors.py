"""Holds the vectors to the oracle, and their wants to what was worked out without it.

The verdicts and figures below come from the reports that the vectors answer, not from
any program. A verdict has a letter for each step: A admitted, D denied, N never,
E misuse, - anything else.
"""

from __future__ import annotations

import re
import unittest
from itertools import groupby
from pathlib import Path

from compare import read
from limit import OutsideDomain, parse
from trace import Line, answers, is_header

VECTORS = Path(__file__).parents[1] / "vectors"
FILES = sorted(path for path in VECTORS.glob("*.jsonl") if ".want." not in path.name)

VERDICTS = {
    "a wait below a second is not zero [N1]": "ADDA",
    "tenths of a token add up over denied polls [N2]": "A" + "DDDDDDDDDA" * 10,
    "five tokens each half second, taken as they come [N2]": "A" + "AD" * 5,
    "a denied poll keeps the part of a token [N3]": "ADADADADAD",
    "a poll just too fast for the rate lives on the burst [N3]": "A" * 10,
    "one a day [N5]": "ADDA",
    "25000 a day: a token each 3.456 s [N5]": "ADDA",
    "a cost over the capacity can never be had and takes nothing [N6]": "NNNAAN",
    "a product over 2^63 denies [N9]": "NNNANN",
    "an idle hour fills no further than the capacity [N18]": "AAAAA" + "D" * 7,
    "an older clock does not refill again [T1]": "AAAAADDDDDD",
    "the second's digits are no text: 999 us, then 1000 us, are 1 us apart [T3]": "ADA",
    "no second burst at the boundary of a second [T4]": "A" * 11 + "D" * 9,
    "a bucket of three periods lasts three periods [X1]": "ADDAD",
    "slow limits outlive any usual default [X4]": "ADDAD",
    "lowering the capacity takes what is over it [G1]": "A-" + "A" * 10 + "D" * 10,
    "denials consume nothing: raised after 50 takes [G3]": "A" * 10 + "D" * 40 + "-DADD",
    "denials consume nothing: raised after 10 takes [G3]": "A" * 10 + "-DADD",
    "a limiter of ten [G4]": "AD",
    "a limiter of a hundred, in the same process, has its own limit [G4]": "AD",
    "braces anywhere make neither one bucket nor an error [K1]": "A" * 5 + "D" * 5,
    "keys that nearly are the same are not [K3]": "A" * 37 + "D" * 37,
    "no key at all is an error, never the key 'null' [K4]": "EEEEEAA",
    "of fifty waiters, a second admits eleven, each with a token [P2]": "A" * 11 + "D" * 39,
    "twenty calls in one microsecond, ten tokens [P4]": "A" * 10 + "D" * 10,
    "a big cost that was refused leaves a small one its tokens [L3]": "ADAA",
}

FIGURES: dict[str, list[tuple[int, str, int]]] = {
    "a wait below a second is not zero [N1]": [(1, "retry_after", 250_000)],
    "2000 a second: a token each 500 us [N4]": [(1, "remaining", 2)],
    "a million a second: a token each microsecond [N4]": [(1, "remaining", 1000)],
    "five thousand million a second: five tokens each nanosecond [N4]": [(1, "remaining", 5_000_000)],
    "one a day [N5]": [(1, "retry_after", 43_200_000_000)],
    "15 digits are exact [N8]": [(0, "remaining", 999_999_999_999_998)],
    "15 digits, off by less than 1 in 10,000: the tokens left are exact [N8]": [(0, "remaining", 999_999_999_999_998)],
    "cost 0 is always admitted, counts nothing and limits nothing [N16]": [
        (99, "remaining", 5),
        (100, "remaining", 4),
        (102, "remaining", 0),
    ],
    "an idle hour fills no further than the capacity [N18]": [(1, "remaining", 3)],
    "microseconds are microseconds: six a minute is one in ten seconds [T2]": [(0, "reset_after", 10_000_000)],
    "a bucket of three periods lasts three periods [X1]": [
        (0, "reset_after", 45_000_000),
        (1, "retry_after", 8_000_000),
    ],
    "a refill below a second is no reason to forget [X2]": [(2, "remaining", 998)],
    "slow limits outlive any usual default [X4]": [(0, "reset_after", 3_600_000_000)],
    "a new rate counts at once, a raised capacity fills only at the rate [G2]": [
        (2, "remaining", 0),
        (3, "remaining", 10),
        (5, "allowed", True),
    ],
    "a waiter who gives up gives its place to the next [P3]": [(3, "wait", 500_000)],
    "the wait is what is left of the period, not the period [H2]": [(1, "retry_after", 58_000_000)],
    "six a minute, drained: the next in ten seconds, not before [H3]": [
        (1, "retry_after", 10_000_000),
        (2, "allowed", False),
        (3, "allowed", True),
    ],
    "the reset after a reservation counts what was promised [H3]": [
        (1, "retry_after", 1_000_000),
        (2, "reset_after", 301_000_000),
    ],
}


def verdict(want: Line) -> str:
    if "error" in want:
        return "E"
    if "allowed" not in want:
        return "-"
    if want["allowed"]:
        return "A"
    return "N" if want["retry_after"] is None else "D"


def cases() -> dict[str, list[tuple[Line, Line]]]:
    """The steps and wants of every case, by its name."""
    found: dict[str, list[tuple[Line, Line]]] = {}
    for path in FILES:
        wants = iter(read(path.with_suffix(".want.jsonl")))
        for line in read(path):
            if is_header(line):
                name = line["name"]
                if name in found:
                    raise ValueError(f"two cases are called {name!r}")
                found[name] = []
            else:
                found[name].append((line, next(wants)))
        if next(wants, None) is not None:
            raise ValueError(f"{path.name} has fewer steps than wants")
    return found


class Vectors(unittest.TestCase):
    def test_wants_are_the_oracle_s(self) -> None:
        played = 0
        for path in FILES:
            with self.subTest(path.name):
                if path.stem == "approximate":
                    with self.assertRaises(ValueError):
                        list(answers(read(path)))
                else:
                    wants = read(path.with_suffix(".want.jsonl"))
                    self.assertEqual(list(answers(read(path))), wants)
                    played += 1
        self.assertGreater(played, 0)

    def test_every_reported_fault_is_in_the_table(self) -> None:
        table = (VECTORS / "README.md").read_text(encoding="utf-8")
        reported = [name for name in cases() if name.endswith("]")]
        self.assertTrue(reported)
        for name in reported:
            self.assertIn(name.rpartition(" [")[0], table)

    def test_verdicts(self) -> None:
        known = cases()
        for name, letters in VERDICTS.items():
            said = "".join(verdict(want) for _, want in known[name])
            self.assertEqual(said, letters, name)

    def test_figures(self) -> None:
        known = cases()
        for name, figures in FIGURES.items():
            for step, field, figure in figures:
                self.assertEqual(known[name][step][1][field], figure, f"{name}, {field}")

    def test_33_of_60(self) -> None:
        case = cases()["capacity and the rate's refill, no more [P5]"]
        self.assertEqual(len(case), 60)
        self.assertEqual(sum(want["allowed"] for _, want in case), 33)

    def test_1200_a_minute_pass_2400_in_the_first(self) -> None:
        case = cases()["1200 a minute pass 2400 in the first minute, not one more [P5]"]
        self.assertEqual(sum(step.get("cost", 1) for step, want in case if want["allowed"]), 2400)

    def test_every_misuse_leaves_the_bucket_empty(self) -> None:
        case = cases()["a negative, broken or missing number is refused and mints nothing [N7]"]
        kinds = [kind for kind, _ in groupby(verdict(want) for _, want in case)]
        self.assertEqual("".join(kinds), "AEDED")

    def test_raised_after_denials_is_as_without_them(self) -> None:
        known = cases()
        tails = [
            [want for _, want in known[f"denials consume nothing: raised after {n} takes [G3]"]][-4:] for n in (10, 50)
        ]
        self.assertEqual(tails[0], tails[1])


class Approximate(unittest.TestCase):
    """The limits that are not exact, by the rule that the vectors' README gives."""

    def test_refused_beyond_one_in_ten_thousand(self) -> None:
        judged = 0
        wants = iter(read(VECTORS / "approximate.want.jsonl"))
        header: Line = {}
        for line in read(VECTORS / "approximate.jsonl"):
            if is_header(line):
                header = line
                continue
            want = next(wants)
            try:
                parse(header["limits"])
            except OutsideDomain:
                refused = want == {"error": "invalid_limit"}
                self.assertEqual(refused, self.too_far_off(header["limits"][0]), header)
                judged += 1
        self.assertGreater(judged, 0)

    @staticmethod
    def too_far_off(text: str) -> bool:
        match = re.fullmatch(r"(\d+)/(\d*)(us|s|d) burst (\d+)|(\d+)/d", text)
        assert match is not None
        unit = {"us": 1, "s": 10**6, "d": 86400 * 10**6, None: 86400 * 10**6}[match[3]]
        count, capacity = int(match[1] or match[5]), int(match[4] or match[5])
        period = unit * int(match[2] or 1)
        scale = 2**52 // capacity
        refill = count * scale // period
        return refill == 0 or refill * period * 10000 < count * scale * 9999


if __name__ == "__main__":
    unittest.main()
